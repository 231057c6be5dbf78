-- reservations.sql: an approval is for one exact action, one execution, once; and
-- there is no way around it.

\set organization tap_reservations
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(504);

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_rival');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, 'worker')), 'done', role || ' is a worker')
FROM unnest(ARRAY['regress_tap_worker', 'regress_tap_rival']) AS role;
SELECT is(pg_temp.answer(format('add_approver(%L)', principal)), 'done', principal || ' approves')
FROM unnest(ARRAY['ann', 'bob']) AS principal;
CREATE FUNCTION pg_temp.named(verb text, arguments jsonb)
RETURNS text
LANGUAGE sql
AS $$
	SELECT format('%s(%s)', verb, string_agg(format('%I => %L', key, value), ', '))
	FROM jsonb_each_text(arguments)
$$;

--
-- every bound field, every change
--

SELECT is(pg_temp.answer($$set_tool_policy('export', policy_version => 'v7', approvals_required => 1)$$), 'done', 'a policy');
CREATE TEMPORARY TABLE base AS SELECT jsonb_build_object('task_id', 'bound', 'tool_call_id', 'c', 'tool_name', 'export', 'input', '{"to": "ann", "n": 1}', 'actor', 'agent',
	'project', 'p', 'tool_server', 's', 'schema_version', 'v1', 'policy_version', 'v7', 'operation_id', 'op',
	'execution_id', '00000000-0000-4000-8000-000000000001') AS given;
SELECT is(pg_temp.answer(pg_temp.named('propose', given)), 'proposed', 'proposed') FROM base;
SELECT is(pg_temp.answer(format($$approve_as('ann', 'bound', 'c', %L)$$, pg_temp.binding('bound', 'c'))), 'recorded', 'approved');
CREATE TEMPORARY TABLE changes (n integer GENERATED ALWAYS AS IDENTITY, change jsonb, answer text);
INSERT INTO changes (change, answer) VALUES
	('{"actor": "agent 2"}', 'changed_actor'), ('{"actor": "Agent"}', 'changed_actor'), ('{"actor": "agent "}', 'changed_actor'),
	('{"project": "q"}', 'changed_project'), ('{"project": ""}', 'changed_project'), ('{"project": "*"}', 'changed_project'),
	('{"tool_server": "t"}', 'changed_tool_server'), ('{"tool_server": ""}', 'changed_tool_server'), ('{"tool_server": "S"}', 'changed_tool_server'),
	('{"tool_name": "Export"}', 'changed_tool_name'), ('{"tool_name": "export "}', 'changed_tool_name'), ('{"tool_name": "delete"}', 'changed_tool_name'),
	('{"schema_version": "v2"}', 'changed_schema_version'), ('{"schema_version": ""}', 'changed_schema_version'),
	('{"policy_version": "v8"}', 'changed_policy_version'), ('{"policy_version": ""}', 'changed_policy_version'),
	('{"input": "{\"to\": \"bob\", \"n\": 1}"}', 'changed_input'), ('{"input": "{\"to\": \"ann\", \"n\": 2}"}', 'changed_input'), ('{"input": "{\"to\": \"ann\", \"n\": \"1\"}"}', 'changed_input'),
	('{"input": "{\"to\": \"ann\"}"}', 'changed_input'), ('{"input": "{\"to\": \"ann\", \"n\": 1, \"cc\": null}"}', 'changed_input'), ('{"input": "{\"to\": \"ann\\u200b\", \"n\": 1}"}', 'changed_input'),
	('{"input": "{\"to\": \"ann\", \"n\": 1.0000000000000000000000001}"}', 'changed_input'), ('{"input": "[]"}', 'changed_input'), ('{"input": "null"}', 'changed_input'),
	('{"operation_id": "op 2"}', 'changed_operation_id'), ('{"operation_id": null}', 'changed_operation_id'),
	('{"execution_id": "00000000-0000-4000-8000-000000000002"}', 'other_execution'), ('{"execution_id": "00000000-0000-0000-0000-000000000000"}', 'other_execution'),
	('{"tool_call_id": "C"}', 'not_found'), ('{"task_id": "Bound"}', 'not_found');
CREATE TEMPORARY TABLE before AS SELECT pg_temp.proposal_image('bound', 'c') AS image;
SELECT is(pg_temp.answer(pg_temp.named('reserve', given || '{"lease": "1 min"}' || change)), 'refused/' || answer, format('reserve with %s', change)) FROM base, changes ORDER BY n;
-- the first that differs is named
CREATE TEMPORARY TABLE fields AS
SELECT * FROM (VALUES
	(1, 'actor', '"x"'::jsonb), (2, 'project', '"x"'), (3, 'tool_server', '"x"'), (4, 'tool_name', '"x"'), (5, 'schema_version', '"x"'), (6, 'policy_version', '"x"'),
	(7, 'input', '"1"'), (8, 'operation_id', '"x"')) AS t (n, field, value);
SELECT is(pg_temp.answer(pg_temp.named('reserve', given || '{"lease": "1 min", "execution_id": "00000000-0000-4000-8000-00000000000a"}' || (SELECT jsonb_object_agg(c.field, c.value) FROM fields AS c WHERE c.n >= f.n))),
	'refused/changed_' || f.field, format('all from %s on differ', f.field)) FROM base, fields AS f ORDER BY f.n;
SELECT is(pg_temp.proposal_image('bound', 'c'), image, 'nothing of it changed a byte') FROM before;
SELECT is(pg_temp.state('bound', 'c'), NULL, 'nor made a claim');
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('bound', 'c') WHERE kind = 'refused'),
	(SELECT count(*)::integer FROM changes WHERE answer <> 'not_found') + 8, 'each refusal is in the evidence');
SELECT is(string_agg(kind, ' '), 'refused', 'also where there is no proposal') FROM tool_claims.evidence('Bound', 'c');
SELECT ok(detail ->> 'reason' = 'changed_actor' AND detail ->> 'verb' = 'reserve', 'with verb and reason') FROM tool_claims.evidence('bound', 'c') WHERE kind = 'refused' ORDER BY seq LIMIT 1;
SELECT is((outcome, reason, attempt, effect_key, result, error, input, held_by, lease_expires_at)::text, '(refused,changed_input,,,,,,,)', 'a refusal grants and tells nothing')
FROM tool_claims.reserve('bound', 'c', '00000000-0000-4000-8000-000000000001', 'export', '[]', 'agent', 'p', 's', 'v1', 'v7', 'op', lease => '1 min');
SELECT is((outcome, reason, attempt, effect_key, input)::text, '(refused,changed_binding,,,)', 'nor one by digest')
FROM tool_claims.reserve_by_digest('bound', 'c', '00000000-0000-4000-8000-000000000001', tool_claims.digest('{}'), lease => '1 min');
-- what does not differ
SELECT is((outcome, reason, attempt, effect_key, lease_expires_at > claimed_at)::text, '(acquired,,1,op,t)', 'what was approved: acquired')
FROM tool_claims.reserve('bound', 'c', '00000000-0000-4000-8000-000000000001', 'export', '{ "n": 1.00, "to": "\u0061nn" }', 'agent', 'p', 's', 'v1', NULL, 'op', lease => '1 min');
SELECT is(pg_temp.answer(pg_temp.named('reserve', given || '{"lease": "1 min"}' || change)), 'refused/' || answer, format('reserved, with %s', change)) FROM base, changes ORDER BY n;
SELECT is(pg_temp.answer(pg_temp.named('reserve', given)), 'in_progress', 'the same is in progress') FROM base;

--
-- arguments
--

SELECT is(
	pg_temp.answer(pg_temp.named('reserve', given || '{"lease": "1 min", "tool_call_id": "none"}' || jsonb_build_object(name, value))), answer, format('reserve: %s = %s', name, left(value, 20)))
FROM base, (VALUES
	('task_id', NULL, '22004'), ('task_id', '', '22023'), ('task_id', repeat('x', 513), '22023'), ('tool_call_id', NULL, '22004'), ('tool_call_id', '', '22023'), ('tool_call_id', repeat('x', 513), '22023'),
	('execution_id', NULL, '22004'), ('tool_name', NULL, '22004'), ('tool_name', '', '22023'), ('tool_name', '*', '22023'), ('tool_name', repeat('x', 513), '22023'),
	('input', NULL, '22004'), ('actor', NULL, '22004'), ('actor', '', '22023'), ('actor', repeat('x', 513), '22023'), ('project', NULL, '22004'), ('project', repeat('x', 513), '22023'),
	('tool_server', NULL, '22004'), ('tool_server', '*', '22023'), ('tool_server', repeat('x', 513), '22023'), ('schema_version', NULL, '22004'), ('schema_version', repeat('x', 513), '22023'),
	('policy_version', repeat('x', 513), '22023'), ('policy_version', NULL, 'refused/not_found'), ('operation_id', '', '22023'), ('operation_id', repeat('x', 513), '22023'),
	('lease', '0', '22023'), ('lease', '-1 s', '22023'), ('lease', '1 year', '22023'), ('lease', NULL, 'refused/not_found'), ('wait', NULL, '22004'), ('wait', '-1 s', '22023'),
	('wait', '1 year', 'refused/not_found'), ('request_id', NULL, 'refused/not_found'), ('dispatched', NULL, '22004'), ('dispatched', 'false', 'refused/not_found')) AS t (name, value, answer);
SELECT is(
	pg_temp.answer(pg_temp.named('reserve_by_digest', jsonb_build_object('task_id', 'bound', 'tool_call_id', 'none', 'execution_id', '00000000-0000-4000-8000-000000000001',
		'binding_digest', repeat('0', 64), 'lease', '1 min') || jsonb_build_object(name, value))), answer, format('reserve_by_digest: %s = %s', name, left(value, 20)))
FROM (VALUES
	('task_id', NULL, '22004'), ('task_id', '', '22023'), ('tool_call_id', NULL, '22004'), ('tool_call_id', repeat('x', 513), '22023'), ('execution_id', NULL, '22004'),
	('binding_digest', NULL, '22004'), ('binding_digest', 'x', '22P02'), ('lease', '0', '22023'), ('lease', '1 year', '22023'), ('wait', NULL, '22004'), ('dispatched', NULL, '22004')) AS t (name, value, answer);
SELECT is(pg_temp.answer($$reserve_by_digest('bound', 'none', '00000000-0000-4000-8000-000000000001', repeat('0', 64)::tool_claims.sha256_digest, dispatched => false)$$), '22023', 'dispatched without a lease');
BEGIN READ ONLY;
SELECT is(pg_temp.answer(pg_temp.named('reserve', given)), '25006', 'a transaction that only reads') FROM base;
SELECT is(pg_temp.answer($$reserve_by_digest('bound', 'c', '00000000-0000-4000-8000-000000000001', repeat('0', 64)::tool_claims.sha256_digest)$$), '25006', 'a transaction that only reads');
ROLLBACK;

--
-- reasons in their order, from all that can be wrong down to nothing
--

SELECT is(pg_temp.answer($$set_tool_policy('ordered', approvals_required => 1)$$), 'done', 'a policy');
INSERT INTO stories (name, steps) VALUES
	('order', ARRAY[
		$$add_approver('gil') = done$$,
		$$propose(K, 'ordered', '{}', 'agent', expires_in => '10 min', execution_id => '00000000-0000-4000-8000-000000000001') = proposed$$,
		$$reserve(K, O, 'ordered', '[]', 'agent 2', lease => '1 min') = refused/pending$$,
		$$approve_as('gil', K, D, use_within => '5 min') = recorded$$,
		$$remove_approver('gil') = done$$,
		$$set_tool_policy('ordered', enabled => false) = done$$,
		'601',
		$$reserve(K, O, 'ordered', '[]', 'agent 2', lease => '1 min') = refused/expired$$,
		$$reserve_by_digest(K, O, tool_claims.digest('{}'), lease => '1 min') = refused/expired$$,
		'301',
		$$reserve(K, O, 'ordered', '[]', 'agent 2', lease => '1 min') = refused/use_by_passed$$,
		$$reserve_by_digest(K, O, tool_claims.digest('{}'), lease => '1 min') = refused/use_by_passed$$,
		'0',
		$$reserve(K, O, 'ordered', '[]', 'agent 2', lease => '1 min') = refused/changed_actor$$,
		$$reserve_by_digest(K, O, tool_claims.digest('{}'), lease => '1 min') = refused/changed_binding$$,
		$$reserve(K, O, 'ordered', '[]', 'agent', lease => '1 min') = refused/changed_input$$,
		$$reserve(K, O, 'ordered', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$reserve_by_digest(K, O, D, lease => '1 min') = refused/other_execution$$,
		$$reserve(K, E, 'ordered', '{}', 'agent', lease => '1 min') = refused/approver_ineligible$$,
		$$add_approver('gil') = done$$,
		$$reserve(K, E, 'ordered', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$proposal = approved$$,
		$$claim = none$$,
		$$remove_approver('gil') = done$$]);
CALL pg_temp.tell();

-- what §3 has against acquiring comes last, and leaves the approval as it is
DROP SCHEMA IF EXISTS regress_tap_reservations CASCADE;
CREATE SCHEMA regress_tap_reservations;
CREATE FUNCTION regress_tap_reservations.never(input json) RETURNS text LANGUAGE sql AS $$ SELECT 'not in this house' $$;
CREATE FUNCTION regress_tap_reservations.raises(input json) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION regress_tap_reservations.votes(input json) RETURNS integer LANGUAGE sql AS $$ SELECT (input ->> 'votes')::integer $$;
INSERT INTO stories (name, steps)
SELECT members, ARRAY[
	format($$set_tool_policy(N, approvals_required => 1, %s) = done$$, members),
	format($$propose(K, %L, '{}', 'agent') = proposed$$, members),
	$$approve_as('ann', K, D) = recorded$$,
	format($$reserve(K, E, %L, '{}', 'agent'%s) = %s$$, members, lease, answer),
	format($$reserve_by_digest(K, E, D%s) = %s$$, lease, answer),
	$$proposal = approved$$, $$claim = none$$,
	$$kinds = proposed approved$$ || CASE WHEN answer LIKE 'refused%' THEN ' refused refused' ELSE '' END]
FROM (VALUES
	('enabled => false', $$, lease => '1 min'$$, 'refused/tool_disabled'),
	('enabled => false, max_attempts => 1', '', 'refused/tool_disabled'),
	($$effect => 'local'$$, $$, lease => '1 min'$$, '22023'),
	($$effect => 'external'$$, '', '22023'),
	('operation_required => true', $$, lease => '1 min'$$, '22004'),
	($$input_check => 'regress_tap_reservations.never(json)'$$, $$, lease => '1 min'$$, 'refused/invalid_input'),
	($$input_check => 'regress_tap_reservations.raises(json)'$$, $$, lease => '1 min'$$, 'ZZ001')
) AS t (members, lease, answer);
CALL pg_temp.tell();
SELECT is((SELECT count(*)::integer FROM tool_claims.events AS e WHERE e.organization = :'organization' AND e.kind = 'refused' AND e.detail::text LIKE '%not in this house%'), 2,
	'what the check said is in the evidence');

--
-- one execution
--

SELECT is(pg_temp.answer($$set_tool_policy('once', max_attempts => 1)$$), 'done', 'one attempt');
SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');
INSERT INTO stories (name, steps)
SELECT name, ARRAY[
	format($$propose(K, %L, '{}', 'agent', expires_in => '1 hour') = proposed$$, tool),
	$$approve_as('ann', K, D) = recorded$$] || steps
FROM (VALUES
	('completed', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = in_progress$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = in_progress$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = in_progress$$,
		$$claim(K, 'tool', '[]', lease => '1 min') = conflict/input$$,
		$$complete(K, '"done"', 1) = completed$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = completed$$,
		$$reserve_by_digest(K, E, D) = completed$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = completed$$,
		$$execute(K, 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)') = done$$,
		$$propose(K, 'tool', '{}', 'agent') = existing$$,
		$$revoke_as('ann', K, 'too late') = refused/reserved$$,
		$$withdraw(K, 'too late') = refused/reserved$$]),
	('observing needs nothing', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$complete(K, '"done"', 1) = completed$$,
		$$remove_approver('ann') = done$$,
		$$set_tool_policy('tool', enabled => false) = done$$,
		'7200',
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = completed$$,
		$$reserve_by_digest(K, E, D) = completed$$,
		$$drop_tool_policy('tool') = done$$,
		$$add_approver('ann') = done$$]),
	('failed', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$fail(K, '"why"', 1) = failed$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = failed$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$]),
	('released', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$release(K, 1) = released$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = refused/approval_required$$,
		$$execute(K, 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)') = TC010$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$reserve(K, E, 'tool', '[]', 'agent', lease => '1 min') = refused/changed_input$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired/retry$$,
		$$complete(K, '"old"', 1) = TC002$$,
		$$complete(K, '"done"', 2) = completed$$]),
	('released, and the approver removed', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$release(K, 1) = released$$,
		$$remove_approver('ann') = done$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/approver_ineligible$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/approver_ineligible$$,
		$$add_approver('ann') = done$$,
		$$set_tool_policy('tool', max_attempts => 9) = done$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$drop_tool_policy('tool') = done$$,
		'3601',
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/expired$$,
		'0',
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired/retry$$]),
	('no attempt is left', 'once', ARRAY[
		$$reserve(K, E, 'once', '{}', 'agent', lease => '1 min') = acquired$$,
		$$release(K, 1) = released$$,
		$$reserve(K, E, 'once', '{}', 'agent', lease => '1 min') = refused/attempts_exhausted$$]),
	('uncertain', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		'61',
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = uncertain/lease_expired$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$propose(K, 'tool', '{}', 'agent') = existing$$,
		$$reconcile(K, 1, 'not_occurred', '{"by": 1}') = released$$,
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = refused/approval_required$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired/retry$$,
		$$complete(K, '"done"', 2) = completed$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = completed$$]),
	('uncertain, occurred', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = uncertain/reported$$,
		$$reconcile(K, 1, 'occurred', '{"by": 1}', '"seen"') = completed$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = completed$$]),
	('never dispatched', 'tool', ARRAY[
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', dispatched => false) = acquired$$,
		'61',
		$$reserve(K, O, 'tool', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = refused/approval_required$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired/takeover$$]),
	('taken over', 'safe', ARRAY[
		$$reserve(K, E, 'safe', '{}', 'agent', lease => '1 min') = acquired$$,
		'61',
		$$claim(K, 'safe', '{}', lease => '1 min') = refused/approval_required$$,
		$$reserve(K, O, 'safe', '{}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$reserve(K, E, 'safe', '{}', 'agent', lease => '1 min') = acquired/takeover$$]),
	('a lost reply', 'tool', ARRAY[
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = acquired$$,
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = acquired/already_held$$,
		$$as worker: reserve_by_digest(K, E, D, lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = acquired/already_held$$,
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000002') = in_progress$$,
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = in_progress$$,
		$$as rival: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = in_progress$$,
		$$as worker: reserve(K, O, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = refused/other_execution$$,
		$$as worker: reserve(K, E, 'tool', '[]', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = refused/changed_input$$,
		$$remove_approver('ann') = done$$,
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = acquired/already_held$$,
		$$add_approver('ann') = done$$,
		$$as rival: complete(K, '1', 1) = 42501$$,
		$$as worker: dispatch(K, 1) = acquired$$,
		$$as worker: reserve(K, E, 'tool', '{}', 'agent', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001') = in_progress$$,
		$$as worker: complete(K, '1', 1) = completed$$]),
	('expiry', 'tool', ARRAY[
		'3599',
		$$proposal = approved$$,
		'3601',
		$$proposal = expired$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/expired$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/expired$$,
		$$approve_as('bob', K, D) = refused/expired$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/expired$$,
		$$kinds = proposed approved refused refused expired refused refused$$]),
	('expiry, swept', 'tool', ARRAY[
		'3601',
		$$sweep() = done$$,
		$$sweep() = done$$,
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = refused/expired$$,
		$$kinds = proposed approved expired refused$$]),
	('a claim outlives its proposal''s time', 'tool', ARRAY[
		'3590',
		$$reserve(K, E, 'tool', '{}', 'agent', lease => '1 min') = acquired$$,
		'3601',
		$$proposal = reserved$$,
		$$renew(K, 1, '1 min') = acquired$$,
		$$complete(K, '1', 1) = completed$$])
) AS t (name, tool, steps);
CALL pg_temp.tell();
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('story', 'released') WHERE kind = 'reserved'), 1, 'reserved is written once');
SELECT is((attempt, state, result)::text, '(2,completed,"""done""")', 'the next attempt''s result') FROM tool_claims.status('story', 'released');
-- what is stored is told by propose, reserve and review
SELECT is((outcome, state, execution, result::text, error::text)::text, answer, 'propose after ' || call)
FROM (VALUES
	('completed', '(existing,reserved,completed,"""done""",)'), ('failed', '(existing,reserved,failed,,"""why""")'), ('uncertain, occurred', '(existing,reserved,completed,"""seen""",)'),
	('no attempt is left', '(existing,reserved,released,,)'), ('expiry', '(existing,expired,,,)')) AS t (call, answer),
	LATERAL tool_claims.propose('story', call, CASE call WHEN 'no attempt is left' THEN 'once' ELSE 'tool' END, '{}', 'agent') ORDER BY call;
SELECT is((outcome, result::text, error::text, attempt, effect_key)::text, answer, 'reserve after ' || call)
FROM (VALUES
	('completed', '(completed,"""done""",,,)'), ('failed', '(failed,,"""why""",,)')) AS t (call, answer),
	LATERAL tool_claims.reserve('story', call, pg_temp.execution('story', call)::uuid, 'tool', '{}', 'agent') ORDER BY call;
SELECT is((state, execution)::text, answer, 'review after ' || call)
FROM (VALUES
	('completed', '(reserved,completed)'), ('failed', '(reserved,failed)'), ('uncertain, occurred', '(reserved,completed)'),
	('no attempt is left', '(reserved,released)'), ('expiry', '(expired,)')) AS t (call, answer), LATERAL tool_claims.review('story', call) ORDER BY call;

-- by digest, the approved input comes with the claim, and only with it
SELECT is(pg_temp.answer($$propose('input', 'c', 'tool', '{"b": 9007199254740993, "a": [1.0]}', 'agent')$$), 'proposed', 'proposed');
SELECT is(pg_temp.answer(format($$approve_as('ann', 'input', 'c', %L)$$, pg_temp.binding('input', 'c'))), 'recorded', 'approved');
SELECT is((outcome, input)::text, '(refused,)', 'another execution: none')
FROM tool_claims.reserve_by_digest('input', 'c', '00000000-0000-4000-8000-00000000000e', pg_temp.binding('input', 'c')::tool_claims.sha256_digest, lease => '1 min');
SELECT is((outcome, input)::text, '(acquired,"{""a"":[1],""b"":9007199254740993}")', 'the input that was approved')
FROM tool_claims.reserve_by_digest('input', 'c', pg_temp.execution('input', 'c')::uuid, pg_temp.binding('input', 'c')::tool_claims.sha256_digest, lease => '1 min');
SELECT is((outcome, input)::text, '(in_progress,)', 'once')
FROM tool_claims.reserve_by_digest('input', 'c', pg_temp.execution('input', 'c')::uuid, pg_temp.binding('input', 'c')::tool_claims.sha256_digest, lease => '1 min');
SELECT is((outcome, execution, result)::text, '(existing,in_progress,)', 'propose sees it in progress')
FROM tool_claims.propose('input', 'c', 'tool', '{"b": 9007199254740993, "a": [1.0]}', 'agent');
SELECT is(execution::text, 'in_progress', 'review too') FROM tool_claims.review('input', 'c');
SELECT is(pg_temp.answer($$complete('input', 'c', '1', 1)$$), 'completed', 'completed');
SELECT is((outcome, input, result::text)::text, '(completed,,1)', 'then the result')
FROM tool_claims.reserve_by_digest('input', 'c', pg_temp.execution('input', 'c')::uuid, pg_temp.binding('input', 'c')::tool_claims.sha256_digest);

--
-- in one transaction
--

SELECT is(pg_temp.answer($$propose('local', 'c', 'tool', '{}', 'agent')$$), 'proposed', 'proposed');
SELECT is(pg_temp.answer(format($$approve_as('ann', 'local', 'c', %L)$$, pg_temp.binding('local', 'c'))), 'recorded', 'approved');
BEGIN;
SELECT is(pg_temp.answer(format($$reserve('local', 'c', %L, 'tool', '{}', 'agent')$$, pg_temp.execution('local', 'c'))), 'acquired', 'without a lease');
SELECT is((tool_call_id, tool_name, state)::text, '(c,tool,claimed)', 'it is the claim of this transaction') FROM tool_claims.current_claim();
SELECT is(pg_temp.answer(format($$reserve('local', 'c', %L, 'tool', '{}', 'agent')$$, pg_temp.execution('local', 'c'))), 'acquired/already_held', 'again: it is held');
SELECT is(pg_temp.answer(format($$reserve('local', 'c', %L, 'tool', '[]', 'agent')$$, pg_temp.execution('local', 'c'))), 'refused/changed_input', 'with other data');
SELECT is(pg_temp.answer(format($$reserve('local', 'c', %L, 'tool', '{}', 'agent', lease => '1 min')$$, pg_temp.execution('local', 'c'))), '22023', 'it keeps its shape');
ROLLBACK;
SELECT is(pg_temp.proposal('local', 'c'), 'approved', 'rolled back, the approval is unused');
SELECT is(pg_temp.state('local', 'c'), NULL, 'and nothing is claimed');
BEGIN;
SELECT is(pg_temp.answer(format($$reserve('local', 'c', %L, 'tool', '{}', 'agent')$$, pg_temp.execution('local', 'c'))), 'acquired', 'again');
SAVEPOINT s;
SELECT is(pg_temp.answer($$complete('local', 'c', '"done"')$$), 'completed', 'completed');
COMMIT;
SELECT is(pg_temp.proposal('local', 'c') || ' ' || pg_temp.state('local', 'c'), 'reserved completed', 'committed');
-- a savepoint
SELECT is(pg_temp.answer($$propose('local', 's', 'tool', '{}', 'agent')$$), 'proposed', 'proposed');
BEGIN;
SAVEPOINT s;
SELECT is(pg_temp.answer(format($$approve_as('ann', 'local', 's', %L)$$, pg_temp.binding('local', 's'))), 'recorded', 'approved');
ROLLBACK TO s;
SELECT is(pg_temp.answer(format($$reserve('local', 's', %L, 'tool', '{}', 'agent', lease => '1 min')$$, pg_temp.execution('local', 's'))), 'refused/pending', 'an approval that was undone');
SELECT is(pg_temp.answer(format($$approve_as('ann', 'local', 's', %L)$$, pg_temp.binding('local', 's'))), 'recorded', 'approved again');
SELECT is(pg_temp.answer(format($$reserve('local', 's', %L, 'tool', '{}', 'agent', lease => '1 min')$$, pg_temp.execution('local', 's'))), 'acquired', 'reserved in the same transaction');
COMMIT;
SELECT is(pg_temp.kinds('local', 's'), 'proposed refused approved reserved', 'and its evidence');

--
-- the gate
--

SELECT is(pg_temp.answer($$set_tool_policy('gated', approvals_required => 1)$$), 'done', 'a gate');
SELECT is(pg_temp.answer($$set_tool_policy('gated here', 'here', approvals_required => 1)$$), 'done', 'a gate of one server');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$claim('gate', '1', 'gated', '{}', lease => '1 min')$$, 'refused/approval_required'),
	(2, $$claim('gate', '1', 'gated', '{}')$$, 'refused/approval_required'),
	(3, $$claim('gate', '1', 'gated', '{}', lease => '1 min', tool_server => 'elsewhere')$$, 'refused/approval_required'),
	(4, $$claim('gate', '1', 'gated', '{}', lease => '1 min', operation_id => 'op')$$, 'refused/approval_required'),
	(5, $$claim('gate', '1', 'gated', '{}', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001')$$, 'refused/approval_required'),
	(6, $$claim('gate', '1', 'gated', '{}', lease => '1 min', not_after => '2000-01-01')$$, 'refused/approval_required'),
	(7, $$execute('gate', '1', 'gated', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$, 'TC010'),
	(8, $$execute('gate', '1', 'gated', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)', tool_server => 'elsewhere')$$, 'TC010'),
	(9, $$claim('gate', '1', 'gated here', '{}', lease => '1 min', tool_server => 'here')$$, 'refused/approval_required'),
	(10, $$claim('gate', '1', '*', '{}', lease => '1 min')$$, '22023'),
	(11, $$dispatch('gate', '1', 1)$$, 'TC001'),
	(12, $$require_claim('gated')$$, 'TC010'),
	(13, $$reserve('gate', '1', '00000000-0000-4000-8000-00000000000e', 'gated', '{}', 'agent', lease => '1 min')$$, 'refused/not_found')
) AS t (n, call, answer) ORDER BY n;
SELECT is(pg_temp.state('gate', '1'), NULL, 'nothing was claimed');
INSERT INTO stories (name, steps) VALUES
	('the policy off and on', ARRAY[
		$$propose(K, 'gated', '{}', 'agent') = proposed$$,
		$$set_tool_policy('gated', enabled => false) = done$$,
		$$set_tool_policy('gated', enabled => true) = done$$,
		$$approve_as('ann', K, D) = refused/policy_changed$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$]),
	('the policy off and on, approved', ARRAY[
		$$propose(K, 'gated', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$set_tool_policy('gated', enabled => false) = done$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$set_tool_policy('gated', enabled => true) = done$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$]),
	('no approvals for a moment', ARRAY[
		$$propose(K, 'gated', '{}', 'agent') = proposed$$,
		$$set_tool_policy('gated', approvals_required => 0) = done$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$,
		$$execute(K, 'gated', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)') = TC010$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/pending$$,
		$$set_tool_policy('gated', approvals_required => 1) = done$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$]),
	('dropped and made anew', ARRAY[
		$$propose(K, 'gated', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$drop_tool_policy('gated') = done$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$set_tool_policy('gated', approvals_required => 1) = done$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$claim(K, 'gated', '{}', lease => '1 min') = refused/approval_required$$]),
	('another row for the tool', ARRAY[
		$$set_tool_policy('rowed', approvals_required => 1, policy_version => 'v') = done$$,
		$$propose(K, 'rowed', '{}', 'agent', tool_server => 's') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$set_tool_policy('rowed', 's', policy_version => 'v') = done$$,
		$$claim(K, 'rowed', '{}', lease => '1 min', tool_server => 's') = refused/approval_required$$,
		$$reserve(K, E, 'rowed', '{}', 'agent', tool_server => 's', lease => '1 min') = refused/policy_changed$$]),
	('a policy where there was none', ARRAY[
		$$propose(K, 'unruled', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$set_tool_policy('*', '*', approvals_required => 2) = done$$,
		$$reserve(K, E, 'unruled', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$claim(K2, 'unruled', '{}', lease => '1 min') = refused/approval_required$$,
		$$drop_tool_policy('*', '*') = done$$,
		$$reserve(K, E, 'unruled', '{}', 'agent', lease => '1 min') = acquired$$]),
	('a policy that was raised', ARRAY[
		$$propose(K, 'gated', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$set_tool_policy('gated', approvals_required => 2) = done$$,
		$$reserve(K, E, 'gated', '{}', 'agent', lease => '1 min') = refused/policy_changed$$,
		$$propose(K2, 'gated', '{}', 'agent', supersedes => N) = proposed$$,
		$$proposal = superseded$$,
		$$set_tool_policy('gated', approvals_required => 1) = done$$]),
	('a proposal for an open tool shuts its pair', ARRAY[
		$$propose(K, 'open', '{}', 'agent') = proposed$$,
		$$claim(K, 'open', '{}', lease => '1 min') = refused/approval_required$$,
		$$claim(K, 'open', '[]', lease => '1 min') = refused/approval_required$$,
		$$claim(K, 'other', '{}', lease => '1 min') = refused/approval_required$$,
		$$claim(K, 'open', '{}', lease => '1 min', tool_server => 's') = refused/approval_required$$,
		$$execute(K, 'open', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)') = TC010$$,
		$$claim(K2, 'open', '{}', lease => '1 min') = acquired$$,
		$$propose(K2, 'open', '{}', 'agent') = refused/claimed$$]),
	('a refused proposal leaves the pair open', ARRAY[
		$$propose(K, 'open', '{}', 'agent', policy_version => 'x') = refused/policy_changed$$,
		$$claim(K, 'open', '{}', lease => '1 min') = acquired$$]),
	('an ended proposal keeps it shut', ARRAY[
		$$propose(K, 'open', '{}', 'agent') = proposed$$,
		$$withdraw(K, 'why') = recorded$$,
		$$claim(K, 'open', '{}', lease => '1 min') = refused/approval_required$$]),
	('gated later', ARRAY[
		$$claim(K, 'later', '{}', lease => '1 min') = acquired$$,
		$$claim(K2, 'later', '{}', lease => '1 min') = acquired$$,
		$$complete(K2, '1', 1) = completed$$,
		$$set_tool_policy('later', approvals_required => 1) = done$$,
		$$claim(K2, 'later', '{}') = completed$$,
		$$claim(K, 'later', '{}', lease => '1 min') = in_progress$$,
		$$renew(K, 1, '1 min') = acquired$$,
		$$release(K, 1) = released$$,
		$$claim(K, 'later', '{}', lease => '1 min') = refused/approval_required$$,
		$$propose(K, 'later', '{}', 'agent') = refused/released$$]),
	('approvals come before what else is wrong', ARRAY[
		$$set_tool_policy('all wrong', approvals_required => 1, enabled => false, input_check => 'regress_tap_reservations.raises(json)') = done$$,
		$$claim(K, 'all wrong', '{}', lease => '1 min') = refused/approval_required$$]);
CALL pg_temp.tell();
BEGIN;
SELECT is(pg_temp.answer($$propose('gate', 'own', 'open', '{}', 'agent')$$), 'proposed', 'a proposal of this transaction');
SELECT is(pg_temp.answer($$claim('gate', 'own', 'open', '{}')$$), 'refused/approval_required', 'shuts the pair at once');
ROLLBACK;
SELECT is(pg_temp.answer($$claim('gate', 'own', 'open', '{}', lease => '1 min')$$), 'acquired', 'rolled back, it never was');

--
-- operations
--

INSERT INTO stories (name, steps) VALUES
	('an operation', ARRAY[
		$$propose(K, 'pay', '{"n": 1}', 'agent', operation_id => 'pay 1') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', lease => '1 min') = refused/changed_operation_id$$,
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', operation_id => 'pay 1', lease => '1 min') = acquired$$,
		$$claim(K2, 'pay', '{"n": 1}', operation_id => 'pay 1', lease => '1 min') = in_progress/operation$$,
		$$claim(K2, 'pay', '{"n": 2}', operation_id => 'pay 1', lease => '1 min') = conflict/operation$$,
		$$complete(K, '"paid"', 1) = completed$$,
		$$claim(K2, 'pay', '{"n": 1}', operation_id => 'pay 1', lease => '1 min') = completed/operation$$]),
	('an operation that another pair has done', ARRAY[
		$$claim(K2, 'pay', '{"n": 3}', operation_id => 'pay 3', lease => '1 min') = acquired$$,
		$$propose(K, 'pay', '{"n": 3}', 'agent', operation_id => 'pay 3') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve(K, E, 'pay', '{"n": 3}', 'agent', operation_id => 'pay 3', lease => '1 min') = in_progress/operation$$,
		$$complete(K2, '"paid"', 1) = completed$$,
		$$reserve(K, E, 'pay', '{"n": 3}', 'agent', operation_id => 'pay 3', lease => '1 min') = completed/operation$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = completed/operation$$,
		$$proposal = approved$$]),
	('an operation with other input', ARRAY[
		$$claim(K2, 'pay', '{"n": 4}', operation_id => 'pay 4', lease => '1 min') = acquired$$,
		$$propose(K, 'pay', '{"n": 5}', 'agent', operation_id => 'pay 4') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve(K, E, 'pay', '{"n": 5}', 'agent', operation_id => 'pay 4', lease => '1 min') = conflict/operation$$,
		$$proposal = approved$$,
		$$kinds = proposed approved conflict$$]);
CALL pg_temp.tell();

SELECT is(have, want, format('%s: %s', name, step)) FROM told ORDER BY n;
SELECT is((SELECT string_agg(DISTINCT p.tool_call_id, ', ') FROM tool_claims.proposals AS p, tool_claims.verify_evidence(p.task_id, p.tool_call_id) AS v WHERE NOT v.ok),
	NULL, 'every chain verifies');
-- a refused call is never dispatched: nothing between a refusal and the next reservation acts
SELECT is((SELECT string_agg(DISTINCT e.tool_call_id, ', ') FROM tool_claims.events AS e JOIN tool_claims.proposals AS p USING (organization, task_id, tool_call_id)
	WHERE e.organization = :'organization' AND e.kind IN ('dispatched', 'completed', 'failed', 'acquired', 'released', 'uncertain')
		AND NOT EXISTS (SELECT FROM tool_claims.events AS r WHERE (r.organization, r.task_id, r.tool_call_id, r.kind) = (e.organization, e.task_id, e.tool_call_id, 'reserved') AND r.seq < e.seq)),
	NULL, 'no event of a claim before its reservation');

SELECT * FROM finish();
DROP SCHEMA regress_tap_reservations CASCADE;
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_rival');
