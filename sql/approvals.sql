-- approvals: a person decides about one exact action, which is then done once
SET tool_claims.organization = 'approvals';

CREATE ROLE regress_approvals_agent;
CREATE ROLE regress_approvals_ann;
CREATE ROLE regress_approvals_bob;
CREATE ROLE regress_approvals_executor;
CREATE ROLE regress_approvals_admin;
SELECT tool_claims.grant_duty('regress_approvals_agent', 'proposer');
SELECT tool_claims.grant_duty('regress_approvals_ann', 'approver');
SELECT tool_claims.grant_duty('regress_approvals_bob', 'approver');
SELECT tool_claims.grant_duty('regress_approvals_executor', 'worker');
SELECT tool_claims.grant_duty('regress_approvals_admin', 'administrator');

-- an export of reports needs one approval
SET ROLE regress_approvals_admin;
SELECT tool_claims.set_tool_policy('export_report', approvals_required => 1, policy_version => 'exports 1');
SELECT tool_claims.add_approver('regress_approvals_ann', tool_name => 'export_report');
SELECT tool_claims.add_approver('regress_approvals_bob', tool_name => 'export_report');
RESET ROLE;

-- the agent's tool proposes and returns; nothing runs
SET ROLE regress_approvals_agent;
SELECT outcome, reason, state, policy_version, approvals, approvals_required
FROM tool_claims.propose('task-1', 'call-1', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', actor => 'agent-7',
	project => 'finance', schema_version => '2', execution_id => '00000000-0000-4000-8000-000000000001',
	summary => 'Revenue to the board');
-- again: it is there already, and there is no other action under this pair
SELECT outcome, reason, state
FROM tool_claims.propose('task-1', 'call-1', 'export_report',
	'{"to": "board@example.com", "rows": 100, "report": "revenue"}', actor => 'agent-7',
	project => 'finance', schema_version => '2');
SELECT outcome, reason, state
FROM tool_claims.propose('task-1', 'call-1', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "press@example.com"}', actor => 'agent-7',
	project => 'finance', schema_version => '2');
RESET ROLE;

-- nobody claims around it
SET ROLE regress_approvals_executor;
SELECT outcome, reason
FROM tool_claims.claim('task-1', 'call-1', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', lease => '1 min');
SELECT outcome, reason
FROM tool_claims.claim('task-1', 'call-2', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', lease => '1 min');
SELECT outcome, reason
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
RESET ROLE;

-- the binding digest, computed without the extension from what is bound
CREATE FUNCTION json_text(value text) RETURNS text LANGUAGE sql AS $$ SELECT to_json(value)::text $$;
SELECT binding_digest::text = encode(sha256(convert_to(concat(
		'{"actor":', json_text(actor),
		',"execution_id":"', execution_id, '"',
		',"expires_at":"', to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), '"',
		',"input":', '{"report":"revenue","rows":100,"to":"board@example.com"}',
		',"operation_id":', coalesce(json_text(operation_id), 'null'),
		',"organization":', json_text(organization),
		',"policy_version":', json_text(policy_version),
		',"project":', json_text(project),
		',"schema_version":', json_text(schema_version),
		',"task_id":', json_text(task_id),
		',"tool_call_id":', json_text(tool_call_id),
		',"tool_name":', json_text(tool_name),
		',"tool_server":', json_text(tool_server),
		',"v":1}'), 'UTF8')), 'hex') AS recomputed
FROM tool_claims.proposals WHERE task_id = 'task-1';
SELECT binding_digest::text = tool_claims.digest(json_build_object('v', 1, 'organization', organization,
		'task_id', task_id, 'tool_call_id', tool_call_id, 'actor', actor, 'project', project,
		'tool_server', tool_server, 'tool_name', tool_name, 'schema_version', schema_version,
		'policy_version', policy_version, 'input', '{"report": "revenue", "rows": 1e2, "to": "board@example.com"}'::json,
		'operation_id', operation_id, 'execution_id', execution_id,
		'expires_at', to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))::text AS by_digest
FROM tool_claims.proposals WHERE task_id = 'task-1';

-- a person sees all of it, and decides by the digest of what was seen
SET SESSION AUTHORIZATION regress_approvals_ann;
SELECT tool_call_id, tool_name, summary, approvals, approvals_required, equal_pending FROM tool_claims.inbox;
SELECT tool_call_id FROM tool_claims.inbox_for('regress_approvals_ann');
SELECT state, actor, project, tool_name, schema_version, policy_version, input, input_visible, invisible_characters, proposed_by
FROM tool_claims.review('task-1', 'call-1');
SELECT outcome, reason FROM tool_claims.approve('task-1', 'call-1', tool_claims.digest('{"of": "something else"}'));
SELECT outcome, state, approvals
FROM tool_claims.approve('task-1', 'call-1', (SELECT binding_digest FROM tool_claims.review('task-1', 'call-1')), 'fine for the board');
RESET SESSION AUTHORIZATION;

-- the executor finds its work, and is held to what was approved
SET ROLE regress_approvals_executor;
SELECT task_id, tool_call_id, tool_name, actor, execution_id FROM tool_claims.ready;
-- another destination
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "press@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
-- a wider scope
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100000, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'all projects',
	schema_version => '2', lease => '1 min');
-- another execution
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000002', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
RESET ROLE;

-- the approver leaves: the approval counts no more, on the very next reservation
SET ROLE regress_approvals_admin;
SELECT tool_claims.remove_approver('regress_approvals_ann', tool_name => 'export_report');
SET ROLE regress_approvals_executor;
SELECT count(*) AS ready FROM tool_claims.ready;
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
SET ROLE regress_approvals_admin;
SELECT tool_claims.add_approver('regress_approvals_ann', tool_name => 'export_report');

-- exactly what was approved: the authority, once
SET ROLE regress_approvals_executor;
SELECT outcome, reason, attempt, input
FROM tool_claims.reserve_by_digest('task-1', 'call-1', '00000000-0000-4000-8000-000000000001',
	(SELECT binding_digest FROM tool_claims.ready), lease => '1 min', request_id => '00000000-0000-4000-8000-0000000000aa');
-- the reply was dropped: the same request is answered the same
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min', request_id => '00000000-0000-4000-8000-0000000000aa');
-- anybody else waits, or is turned away
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
SELECT outcome, reason, attempt
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000003', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2', lease => '1 min');
SELECT outcome FROM tool_claims.complete('task-1', 'call-1', '{"file": "r-1"}', attempt => 1);
SELECT outcome, result
FROM tool_claims.reserve('task-1', 'call-1', '00000000-0000-4000-8000-000000000001', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', 'agent-7', 'finance',
	schema_version => '2');
RESET ROLE;
-- the agent asks again and gets what came of it; too late to take it back
SET ROLE regress_approvals_agent;
SELECT outcome, state, execution, result
FROM tool_claims.propose('task-1', 'call-1', 'export_report',
	'{"report": "revenue", "rows": 100, "to": "board@example.com"}', actor => 'agent-7',
	project => 'finance', schema_version => '2');
SELECT outcome, reason FROM tool_claims.withdraw('task-1', 'call-1', 'never mind');
RESET ROLE;

-- all of it is in the evidence
SELECT seq, kind, role, CASE principal WHEN session_user THEN 'session user' ELSE principal END AS principal,
	detail ->> 'verb' AS verb, detail ->> 'reason' AS reason
FROM tool_claims.evidence('task-1', 'call-1') ORDER BY seq;
SELECT ok, broken_at, reason FROM tool_claims.verify_evidence('task-1', 'call-1');

-- a policy that is raised asks anew: propose the same under another call, for the old one
SET ROLE regress_approvals_agent;
SELECT outcome, state FROM tool_claims.propose('task-2', 'call-1', 'export_report', '{"report": "costs"}', actor => 'agent-7');
SET SESSION AUTHORIZATION regress_approvals_bob;
SELECT outcome, state FROM tool_claims.approve('task-2', 'call-1', (SELECT binding_digest FROM tool_claims.review('task-2', 'call-1')), use_within => '10 min');
RESET SESSION AUTHORIZATION;
SET ROLE regress_approvals_admin;
SELECT tool_claims.set_tool_policy('export_report', approvals_required => 2, policy_version => 'exports 2');
SET ROLE regress_approvals_executor;
SELECT outcome, reason
FROM tool_claims.reserve_by_digest('task-2', 'call-1', '00000000-0000-4000-8000-000000000004', tool_claims.digest('{}'), lease => '1 min');
RESET ROLE;
SELECT outcome, reason
FROM tool_claims.proposals AS p, tool_claims.reserve_by_digest('task-2', 'call-1', p.execution_id, p.binding_digest, lease => '1 min')
WHERE p.task_id = 'task-2';
SET ROLE regress_approvals_agent;
SELECT outcome, reason, state, approvals_required
FROM tool_claims.propose('task-2', 'call-2', 'export_report', '{"report": "costs"}', actor => 'agent-7', supersedes => 'call-1');
RESET ROLE;
SELECT tool_call_id, state, supersedes, approvals, approvals_required FROM tool_claims.proposals WHERE task_id = 'task-2' ORDER BY tool_call_id;

-- two people, then; the second one says no, which ends it
SET SESSION AUTHORIZATION regress_approvals_ann;
SELECT outcome, state, approvals, approvals_required FROM tool_claims.approve('task-2', 'call-2', (SELECT binding_digest FROM tool_claims.review('task-2', 'call-2')));
SELECT outcome, reason FROM tool_claims.reject('task-2', 'call-2', (SELECT binding_digest FROM tool_claims.review('task-2', 'call-2')));
SET SESSION AUTHORIZATION regress_approvals_bob;
SELECT outcome, state FROM tool_claims.reject('task-2', 'call-2', (SELECT binding_digest FROM tool_claims.review('task-2', 'call-2')), 'ask the controller first');
RESET SESSION AUTHORIZATION;
-- proposed once more, it carries that
SET ROLE regress_approvals_agent;
SELECT outcome, state FROM tool_claims.propose('task-2', 'call-3', 'export_report', '{"report": "costs"}', actor => 'agent-7');
RESET ROLE;
SELECT r ->> 'tool_call_id' AS tool_call_id, r ->> 'rejected_by' AS rejected_by, r ->> 'comment' AS comment
FROM tool_claims.review('task-2', 'call-3') AS v, jsonb_array_elements(v.earlier_rejections) AS r;
SELECT outcome, state FROM tool_claims.withdraw('task-2', NULL, 'the task is over');

--
-- the two steps as a program: the tool proposes, another process acts
--

CREATE TABLE exports (report text, destination text);
-- step one, in the agent's tool
CREATE FUNCTION propose_export(task text, call text, input json) RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	p tool_claims.proposal_result;
BEGIN
	SELECT * INTO p FROM tool_claims.propose(task, call, 'export_table', input, actor => 'agent-7');
	RETURN CASE
		WHEN p.outcome IN ('conflict', 'refused') THEN format('cannot: %s', p.reason)
		WHEN p.execution = 'completed' THEN format('done: %s', p.result)
		ELSE format('waits, %s', p.state)
	END;
END
$$;
-- step two, in the process that holds the credential of the destination
CREATE PROCEDURE run_ready()
LANGUAGE plpgsql
AS $$
DECLARE
	work record;
	c tool_claims.claim_result;
BEGIN
	FOR work IN SELECT * FROM tool_claims.ready WHERE tool_name = 'export_table' LOOP
		SELECT * INTO c
		FROM tool_claims.reserve_by_digest(work.task_id, work.tool_call_id, work.execution_id, work.binding_digest);
		CONTINUE WHEN c.outcome <> 'acquired';
		INSERT INTO exports VALUES (c.input ->> 'report', c.input ->> 'to');
		PERFORM * FROM tool_claims.complete(work.task_id, work.tool_call_id, json_build_object('to', c.input ->> 'to'));
	END LOOP;
END
$$;
SELECT tool_claims.add_approver('regress_approvals_ann', tool_name => 'export_table');
SELECT propose_export('task-3', 'call-1', '{"report": "stock", "to": "s3://reports"}');
CALL run_ready();
SELECT propose_export('task-3', 'call-1', '{"report": "stock", "to": "s3://reports"}');
SET SESSION AUTHORIZATION regress_approvals_ann;
SELECT outcome, state FROM tool_claims.approve('task-3', 'call-1', (SELECT binding_digest FROM tool_claims.review('task-3', 'call-1')));
RESET SESSION AUTHORIZATION;
SELECT propose_export('task-3', 'call-1', '{"report": "stock", "to": "s3://reports"}');
SELECT propose_export('task-3', 'call-1', '{"report": "stock", "to": "s3://elsewhere"}');
CALL run_ready();
CALL run_ready();
SELECT * FROM exports;
SELECT propose_export('task-3', 'call-1', '{"report": "stock", "to": "s3://reports"}');

-- nobody to decide, and who may not
\set VERBOSITY terse
SELECT outcome, reason FROM tool_claims.propose('task-4', 'call-1', 'export_all', '{}', actor => 'agent-7');
SET ROLE regress_approvals_agent;
SELECT tool_claims.approve('task-2', 'call-2', tool_claims.digest('{}'));		-- fails, no approver
SELECT tool_claims.add_approver('regress_approvals_agent');		-- fails
SELECT tool_claims.set_tool_policy('export_report', approvals_required => 0);		-- fails
SELECT tool_claims.reserve_by_digest('task-2', 'call-2', '00000000-0000-4000-8000-000000000001', tool_claims.digest('{}'));		-- fails
SET ROLE regress_approvals_ann;
SELECT tool_claims.approve_as('regress_approvals_bob', 'task-2', 'call-2', tool_claims.digest('{}'));		-- fails, for a service only
SELECT tool_claims.propose('task-4', 'call-1', 'export_report', '{}', actor => 'ann');		-- fails
RESET ROLE;

DROP TABLE exports;
DROP FUNCTION propose_export;
DROP FUNCTION json_text;
DROP PROCEDURE run_ready;
SELECT tool_claims.revoke_duty(role_name::regrole, duty) FROM tool_claims.duties WHERE role_name ~ '^regress_approvals_';
DROP ROLE regress_approvals_agent, regress_approvals_ann, regress_approvals_bob, regress_approvals_executor, regress_approvals_admin;
