-- proposals.sql: what propose takes and answers, supersedes, rules, versions.

\set organization tap_proposals
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(445);

CALL pg_temp.make_roles('regress_tap_agent', 'regress_tap_other', 'regress_tap_deputy');
GRANT regress_tap_agent TO regress_tap_deputy;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, 'proposer')), 'done', role || ' is a proposer')
FROM unnest(ARRAY['regress_tap_agent', 'regress_tap_other', 'regress_tap_deputy']) AS role;

-- a call by name: what is given, over what else it needs
CREATE FUNCTION pg_temp.named(verb text, arguments jsonb)
RETURNS text
LANGUAGE sql
AS $$
	SELECT format('%s(%s)', verb, string_agg(format('%I => %L', key, value), ', '))
	FROM jsonb_each_text(arguments)
$$;

--
-- nobody to decide
--

SELECT is(pg_temp.answer($$propose('n', 'c', 'tool', '{}', 'agent')$$), 'refused/no_eligible_approver', 'nobody is registered');
SELECT is(pg_temp.proposal('n', 'c'), NULL, 'a refused proposal leaves none');
SELECT is(pg_temp.kinds('n', 'c'), 'refused', 'but its event');
SELECT is(detail ->> 'reason', 'no_eligible_approver', 'with the reason') FROM tool_claims.evidence('n', 'c');
SELECT is(pg_temp.answer($$add_approver('agent')$$), 'done', 'the actor alone is registered');
SELECT is(pg_temp.answer($$propose('n', 'c', 'tool', '{}', 'agent')$$), 'refused/no_eligible_approver', 'he does not decide about himself');
SELECT is(pg_temp.answer($$propose('n', 'another actor', 'tool', '{}', 'agent 2')$$), 'proposed', 'about another he does');
SELECT is(pg_temp.answer($$remove_approver('agent')$$), 'done', 'removed');
-- a registration covers what it names
SELECT is(pg_temp.answer($$add_approver('dan', project => 'p', tool_server => 's', tool_name => 'narrow')$$), 'done', 'a narrow one');
SELECT is(pg_temp.answer(format($$propose('n', %L, %s, %s)$$, call, arguments, rest)), answer, format('covered: %s', call))
FROM (VALUES
	('1', $$'narrow', '{}', 'agent'$$, $$project => 'p', tool_server => 's'$$, 'proposed'),
	('2', $$'narrow', '{}', 'agent'$$, $$project => 'q', tool_server => 's'$$, 'refused/no_eligible_approver'),
	('3', $$'narrow', '{}', 'agent'$$, $$project => 'p', tool_server => 't'$$, 'refused/no_eligible_approver'),
	('4', $$'wide', '{}', 'agent'$$, $$project => 'p', tool_server => 's'$$, 'refused/no_eligible_approver'),
	('5', $$'narrow', '{}', 'agent'$$, $$project => 'p'$$, 'refused/no_eligible_approver'),
	('6', $$'narrow', '{}', 'agent'$$, $$tool_server => 's'$$, 'refused/no_eligible_approver'),
	('7', $$'narrow', '{}', 'agent'$$, $$project => '', tool_server => ''$$, 'refused/no_eligible_approver')
) AS t (call, arguments, rest, answer);
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$add_approver('dan', project => 'p', tool_server => 's', tool_name => 'narrow')$$, 'done'),
	(2, $$remove_approver('dan')$$, '42704'),
	(3, $$remove_approver('dan', project => 'p', tool_server => 's')$$, '42704'),
	(4, $$remove_approver('dan', project => 'p', tool_server => 's', tool_name => 'narrow')$$, 'done'),
	(5, $$remove_approver('dan', project => 'p', tool_server => 's', tool_name => 'narrow')$$, '42704'),
	(6, $$add_approver(NULL)$$, '22004'),
	(7, $$add_approver('')$$, '22023'),
	(8, $$add_approver(repeat('x', 513))$$, '22023'),
	(9, $$add_approver('x', NULL)$$, '22004'),
	(10, $$add_approver('x', project => NULL)$$, '22004'),
	(11, $$add_approver('x', tool_server => NULL)$$, '22004'),
	(12, $$add_approver('x', tool_name => NULL)$$, '22004'),
	(13, $$add_approver('x', tool_name => '')$$, '22023'),
	(14, $$add_approver('x', repeat('x', 513))$$, '22023'),
	(15, $$remove_approver(NULL)$$, '22004'),
	(16, $$remove_approver('')$$, '22023')
) AS t (n, call, answer) ORDER BY n;

SELECT is(pg_temp.answer(format('add_approver(%L, %L)', principal, grp)), 'done', format('%s approves, of group "%s"', principal, grp))
FROM (VALUES ('ann', 'a'), ('ann', 'b'), ('bob', 'a'), ('cat', '')) AS t (principal, grp);
-- a rule that these people can, or cannot, satisfy
SELECT is(pg_temp.answer(format('set_tool_policy(%L, %s)', 'rule ' || n, members)), 'done', members)
FROM (VALUES
	(1, $$approvals_required => 3$$), (2, $$approvals_required => 4$$),
	(3, $$approver_groups => '{a}'$$), (4, $$approver_groups => '{a,b}'$$), (5, $$approver_groups => '{b,b}'$$),
	(6, $$approver_groups => '{a,a}'$$), (7, $$approver_groups => '{a,a,b}'$$), (8, $$approver_groups => '{c}'$$),
	(9, $$approvals_required => 3, approver_groups => '{a,b}'$$), (10, $$approvals_required => 4, allow_self_approval => true$$),
	(11, $$approver_groups => '{}'$$), (12, $$approvals_required => 0$$), (13, $$approver_groups => '{""}'$$)
) AS t (n, members);
SELECT is(pg_temp.answer(format($$propose('rule', %L, %L, '{}', %L)$$, n || ' ' || actor, 'rule ' || n, actor)), answer, format('rule %s, of %s', n, actor))
FROM (VALUES
	(1, 'agent', 'proposed'), (2, 'agent', 'refused/no_eligible_approver'),
	(3, 'agent', 'proposed'), (4, 'agent', 'proposed'), (5, 'agent', 'refused/no_eligible_approver'),
	(6, 'agent', 'proposed'), (7, 'agent', 'refused/no_eligible_approver'), (8, 'agent', 'refused/no_eligible_approver'),
	(9, 'agent', 'proposed'), (10, 'agent', 'refused/no_eligible_approver'), (11, 'agent', 'proposed'), (12, 'agent', 'proposed'),
	(13, 'agent', 'proposed'),
	(1, 'ann', 'refused/no_eligible_approver'), (4, 'ann', 'refused/no_eligible_approver'), (4, 'bob', 'refused/no_eligible_approver'),
	(4, 'cat', 'proposed'), (6, 'bob', 'refused/no_eligible_approver'), (3, 'bob', 'proposed'), (9, 'cat', 'refused/no_eligible_approver')
) AS t (n, actor, answer);
SELECT is(approvals_required, required, format('votes that rule %s needs', n))
FROM (VALUES (1, 3), (3, 1), (9, 3), (11, 1), (12, 1)) AS t (n, required)
	JOIN tool_claims.proposals AS p ON p.task_id = 'rule' AND p.tool_call_id = n || ' agent';

--
-- arguments
--

CREATE TEMPORARY TABLE arguments (n integer GENERATED ALWAYS AS IDENTITY, given jsonb, answer text);
INSERT INTO arguments (given, answer)
SELECT jsonb_build_object(name, value), answer
FROM (VALUES
	('task_id', NULL, '22004'), ('task_id', '', '22023'), ('task_id', repeat('x', 512), 'proposed'), ('task_id', repeat('x', 513), '22023'),
	('tool_call_id', NULL, '22004'), ('tool_call_id', '', '22023'), ('tool_call_id', repeat('é', 256), 'proposed'), ('tool_call_id', repeat('é', 257), '22023'),
	('tool_name', NULL, '22004'), ('tool_name', '', '22023'), ('tool_name', '*', '22023'), ('tool_name', repeat('x', 512), 'proposed'), ('tool_name', repeat('x', 513), '22023'),
	('input', NULL, '22004'), ('input', '', '22P02'), ('input', '{"a": 1, "a": 1}', '22030'), ('input', 'null', 'proposed'), ('input', '"*"', 'proposed'),
	('actor', NULL, '22004'), ('actor', '', '22023'), ('actor', repeat('x', 512), 'proposed'), ('actor', repeat('x', 513), '22023'),
	('project', NULL, '22004'), ('project', '', 'proposed'), ('project', repeat('x', 512), 'proposed'), ('project', repeat('x', 513), '22023'),
	('tool_server', NULL, '22004'), ('tool_server', '', 'proposed'), ('tool_server', '*', '22023'), ('tool_server', repeat('x', 512), 'proposed'), ('tool_server', repeat('x', 513), '22023'),
	('schema_version', NULL, '22004'), ('schema_version', '', 'proposed'), ('schema_version', repeat('x', 512), 'proposed'), ('schema_version', repeat('x', 513), '22023'),
	('policy_version', NULL, 'proposed'), ('policy_version', '', 'proposed'), ('policy_version', '1', 'refused/policy_changed'), ('policy_version', repeat('x', 513), '22023'),
	('operation_id', NULL, 'proposed'), ('operation_id', '', '22023'), ('operation_id', repeat('x', 512), 'proposed'), ('operation_id', repeat('x', 513), '22023'),
	('execution_id', NULL, 'proposed'), ('execution_id', '00000000-0000-0000-0000-000000000000', 'proposed'), ('execution_id', '', '22P02'),
	('expires_in', NULL, 'proposed'), ('expires_in', '0', '22023'), ('expires_in', '-1 second', '22023'), ('expires_in', '1 microsecond', 'proposed'),
	('expires_in', '1 second', 'proposed'), ('expires_in', '1 day', 'proposed'), ('expires_in', '24:00:00', 'proposed'), ('expires_in', '24:00:00.000001', '22023'),
	('expires_in', '1 month', '22023'), ('expires_in', '1 day -1 hour', 'proposed'), ('expires_in', '-1 day 25 hours', 'proposed'),
	('summary', NULL, 'proposed'), ('summary', '', 'proposed'), ('summary', repeat('x', 100000), 'proposed'),
	('supersedes', NULL, 'proposed'), ('supersedes', '', '22023'), ('supersedes', repeat('x', 513), '22023'), ('supersedes', 'nothing', 'refused/not_found')
) AS t (name, value, answer);
SELECT is(
	pg_temp.answer(pg_temp.named('propose', jsonb_build_object('task_id', 'args', 'tool_call_id', 'c' || n, 'tool_name', 'tool', 'input', '{}', 'actor', 'agent') || given)),
	answer, format('propose: %s', left(given::text, 60)))
FROM arguments ORDER BY n;
SELECT is(pg_temp.answer($$propose('args', 'self', 'tool', '{}', 'agent', supersedes => 'self')$$), '22023', 'a proposal does not supersede itself');
BEGIN;
SET LOCAL tool_claims.max_input_size = '1 kB';
SELECT is(pg_temp.answer($$propose('args', 'large', 'tool', to_json(repeat('x', 1100)), 'agent')$$), '54000', 'an input that is too large');
ROLLBACK;
BEGIN READ ONLY;
SELECT is(pg_temp.answer($$propose('args', 'read only', 'tool', '{}', 'agent')$$), '25006', 'a transaction that only reads');
ROLLBACK;
BEGIN;
SET LOCAL tool_claims.organization = '*';
SELECT is(pg_temp.answer(call), '22023', 'every organization: ' || call)
FROM unnest(ARRAY[$$propose('args', 'all', 'tool', '{}', 'agent')$$, $$add_approver('x')$$, $$remove_approver('x')$$]) AS call;
ROLLBACK;

--
-- what it answers
--

CREATE TEMPORARY TABLE answers AS
SELECT * FROM tool_claims.propose('answer', 'c', 'tool', '{"b": 1.0, "a": "é"}', 'agent "x"', project => 'p', tool_server => 's', schema_version => 'v1',
	operation_id => 'op', expires_in => '90 s', summary => 'A summary');
SELECT is((outcome, reason, state, policy_version, approvals, approvals_required, execution, result, error)::text, '(proposed,,pending,"",0,1,,,)', 'a new proposal') FROM answers;
SELECT matches(execution_id::text, '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 'a random execution id of version 4') FROM answers;
SELECT is(date_trunc('second', expires_at), expires_at, 'it ends at a whole second') FROM answers;
SELECT ok(expires_at <= p.proposed_at + interval '90 s' AND expires_at > p.proposed_at + interval '88 s', 'rounded down')
FROM answers, LATERAL (SELECT proposed_at FROM tool_claims.proposals WHERE task_id = 'answer') AS p;
SELECT ok(expires_at - proposed_at >= interval '0.99 s', 'a second is not rounded to nothing')
FROM tool_claims.proposals AS p JOIN arguments AS a ON p.tool_call_id = 'c' || a.n
WHERE p.task_id = 'args' AND a.given ->> 'expires_in' = '1 second';
SELECT ok(bool_and(expires_at - proposed_at BETWEEN interval '23:59:58' AND interval '24:00:00'), 'a day, where nothing else is said')
FROM tool_claims.proposals AS p JOIN arguments AS a ON p.tool_call_id = 'c' || a.n
WHERE p.task_id = 'args' AND NOT a.given ? 'expires_in';
SELECT is(binding_digest::text, encode(sha256(convert_to(format(
		'{"actor":"agent \"x\"","execution_id":"%s","expires_at":"%s","input":{"a":"é","b":1},"operation_id":"op","organization":"tap_proposals","policy_version":"","project":"p","schema_version":"v1","task_id":"answer","tool_call_id":"c","tool_name":"tool","tool_server":"s","v":1}',
		execution_id, to_char(expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')), 'UTF8')), 'hex'), 'the digest, computed by hand') FROM answers;
SELECT is(p.binding_digest::text, encode(sha256(convert_to(format(
		'{"actor":"agent","execution_id":"%s","expires_at":"%s","input":{},"operation_id":null,"organization":"tap_proposals","policy_version":"","project":"","schema_version":"","task_id":"args","tool_call_id":"%s","tool_name":"tool","tool_server":"","v":1}',
		p.execution_id, to_char(p.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), p.tool_call_id), 'UTF8')), 'hex'), 'without an operation: null')
FROM tool_claims.proposals AS p JOIN arguments AS a ON p.tool_call_id = 'c' || a.n AND a.given = '{"summary": null}' WHERE p.task_id = 'args';
SELECT is(p.execution_id::text, 'aaaaaaaa-0000-0000-0000-00000000000a', 'an execution id that is given is taken, in lower case')
FROM tool_claims.propose('answer', 'own', 'tool', '{}', 'agent', execution_id => 'AAAAAAAA-0000-0000-0000-00000000000A') AS p;
SELECT is((outcome, reason, state, binding_digest::text, execution_id, expires_at)::text,
	(SELECT ('existing'::text, NULL::text, state, binding_digest::text, execution_id, expires_at)::text FROM answers), 'again: the same, with its digest')
FROM tool_claims.propose('answer', 'c', 'tool', '{"a": "é", "b": 1}', 'agent "x"', project => 'p', tool_server => 's', schema_version => 'v1', operation_id => 'op');
SELECT is((outcome, reason, state, binding_digest::text, execution_id, policy_version, expires_at, approvals, approvals_required, result, error)::text, '(conflict,input,,,,,,,,,)', 'a conflict tells nothing else')
FROM tool_claims.propose('answer', 'c', 'tool', '{}', 'agent "x"', project => 'p', tool_server => 's', schema_version => 'v1', operation_id => 'op');
SELECT is((outcome, reason, state, binding_digest::text, execution_id, policy_version, expires_at, approvals, approvals_required)::text, '(refused,policy_changed,,,,,,,)', 'nor does a refusal')
FROM tool_claims.propose('answer', 'other', 'tool', '{}', 'agent', policy_version => 'other');
SELECT is(pg_temp.state('answer', 'c'), NULL, 'no claim was made');

--
-- the same pair again: every bound field, every change
--

CREATE TEMPORARY TABLE base AS SELECT jsonb_build_object('task_id', 'again', 'tool_call_id', 'c', 'tool_name', 'tool', 'input', '{"to": "ann", "n": 1}', 'actor', 'agent',
	'project', 'p', 'tool_server', 's', 'schema_version', 'v1', 'policy_version', '', 'operation_id', 'op 2', 'execution_id', '00000000-0000-4000-8000-000000000001',
	'summary', 'first', 'expires_in', '1 hour') AS given;
SELECT is(pg_temp.answer($$set_tool_policy('versioned', policy_version => 'v7')$$), 'done', 'a policy');
SELECT is(pg_temp.answer(pg_temp.named('propose', given)), 'proposed', 'the first') FROM base;
SELECT is(pg_temp.answer(pg_temp.named('propose', given || '{"tool_name": "versioned", "policy_version": "v7", "tool_call_id": "versioned"}')), 'proposed', 'one under a policy') FROM base;
CREATE TEMPORARY TABLE changes (n integer GENERATED ALWAYS AS IDENTITY, change jsonb, answer text);
INSERT INTO changes (change, answer) VALUES
	('{}', 'existing'),
	('{"input": "{ \"n\": 1.00, \"to\": \"\\u0061nn\" }"}', 'existing'),
	('{"policy_version": null}', 'existing'), ('{"execution_id": null}', 'existing'), ('{"execution_id": null, "policy_version": null}', 'existing'),
	('{"summary": "second"}', 'existing'), ('{"summary": null}', 'existing'), ('{"expires_in": "5 min"}', 'existing'), ('{"expires_in": null}', 'existing'), ('{"expires_in": "10 years"}', 'existing'),
	('{"actor": "agent 2"}', 'conflict/actor'), ('{"actor": "Agent"}', 'conflict/actor'), ('{"actor": "agent "}', 'conflict/actor'),
	('{"project": "q"}', 'conflict/project'), ('{"project": ""}', 'conflict/project'),
	('{"tool_server": "t"}', 'conflict/tool_server'), ('{"tool_server": ""}', 'conflict/tool_server'),
	('{"tool_name": "Tool"}', 'conflict/tool_name'), ('{"tool_name": "tool2"}', 'conflict/tool_name'),
	('{"schema_version": "v2"}', 'conflict/schema_version'), ('{"schema_version": ""}', 'conflict/schema_version'),
	('{"policy_version": "1"}', 'conflict/policy_version'),
	('{"input": "{\"to\": \"ann\", \"n\": \"1\"}"}', 'conflict/input'), ('{"input": "{\"to\": \"ann\", \"n\": 1, \"cc\": null}"}', 'conflict/input'),
	('{"input": "{\"to\": \"bob\", \"n\": 1}"}', 'conflict/input'), ('{"input": "null"}', 'conflict/input'),
	('{"operation_id": "op"}', 'conflict/operation_id'), ('{"operation_id": null}', 'conflict/operation_id'),
	('{"execution_id": "00000000-0000-4000-8000-000000000002"}', 'conflict/execution_id'),
	('{"supersedes": "another"}', 'conflict/supersedes'),
	('{"tool_call_id": "versioned", "tool_name": "versioned", "policy_version": "v7"}', 'existing'),
	('{"tool_call_id": "versioned", "tool_name": "versioned", "policy_version": null}', 'existing'),
	('{"tool_call_id": "versioned", "tool_name": "versioned", "policy_version": "v8"}', 'conflict/policy_version'),
	('{"tool_call_id": "versioned", "tool_name": "versioned", "policy_version": ""}', 'conflict/policy_version');
CREATE TEMPORARY TABLE before AS SELECT pg_temp.proposal_image('again', 'c') AS image, pg_temp.proposal_image('again', 'versioned') AS versioned;
SELECT is(pg_temp.answer(pg_temp.named('propose', given || change)), answer, format('again with %s', change)) FROM base, changes ORDER BY n;
-- the first field that differs is named
WITH fields (n, field, value) AS (VALUES
	(1, 'actor', '"x"'::jsonb), (2, 'project', '"x"'), (3, 'tool_server', '"x"'), (4, 'tool_name', '"x"'), (5, 'schema_version', '"x"'), (6, 'policy_version', '"x"'),
	(7, 'input', '"1"'), (8, 'operation_id', '"x"'), (9, 'execution_id', '"00000000-0000-4000-8000-00000000000a"'), (10, 'supersedes', '"x"'))
SELECT is(pg_temp.answer(pg_temp.named('propose', given || (SELECT jsonb_object_agg(c.field, c.value) FROM fields AS c WHERE c.n >= f.n))),
	'conflict/' || f.field, format('all from %s on differ', f.field))
FROM base, fields AS f ORDER BY f.n;
SELECT is(pg_temp.proposal_image('again', 'c'), image, 'nothing of it changed a byte') FROM before;
SELECT is(pg_temp.proposal_image('again', 'versioned'), versioned, 'there neither') FROM before;
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('again', 'c') WHERE kind = 'conflict'),
	(SELECT count(*)::integer FROM changes WHERE answer LIKE 'conflict%' AND change ->> 'tool_call_id' IS NULL) + 10, 'each conflict is in the evidence');
SELECT is(summary, 'first', 'the first summary stays') FROM tool_claims.proposals WHERE task_id = 'again' AND tool_call_id = 'c';
SELECT ok(detail ->> 'reason' = 'actor' AND detail ->> 'verb' = 'propose' AND detail::text NOT LIKE '%ann%', 'an event names the field, and no input')
FROM tool_claims.evidence('again', 'c') WHERE kind = 'conflict' ORDER BY seq LIMIT 1;

--
-- in every state: existing, or a conflict, and never two
--

INSERT INTO stories (name, steps)
SELECT state, ARRAY[$$propose(K, 'tool', '{"n": 1}', 'agent', expires_in => '1 min') = proposed$$] || steps || ARRAY[
	'proposal = ' || state,
	$$propose(K, 'tool', '{"n": 1}', 'agent', expires_in => '1 min') = existing$$,
	$$propose(K, 'tool', '{"n": 2}', 'agent') = conflict/input$$,
	$$propose(K, 'tool', '{"n": 1}', 'agent 2') = conflict/actor$$,
	'proposal = ' || state]
FROM (VALUES
	('pending', '{}'::text[]),
	('approved', ARRAY[$$approve_as('ann', K, D) = recorded$$]),
	('rejected', ARRAY[$$reject_as('ann', K, D) = recorded$$]),
	('withdrawn', ARRAY[$$withdraw(K, 'why') = recorded$$]),
	('revoked', ARRAY[$$approve_as('ann', K, D) = recorded$$, $$revoke_as('bob', K, 'why') = recorded$$]),
	('superseded', ARRAY[$$propose(K2, 'tool', '{"n": 1}', 'agent', supersedes => N) = proposed$$]),
	('expired', ARRAY['61']),
	('reserved', ARRAY[$$approve_as('ann', K, D) = recorded$$, $$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$])
) AS t (state, steps);
CALL pg_temp.tell();

-- a pair that was claimed cannot be proposed
INSERT INTO stories (name, steps)
SELECT 'claimed: ' || reason, steps || ARRAY[
	format($$propose(K, 'open', '{}', 'agent') = refused/%s$$, reason),
	format($$propose(K, 'other', '[]', 'agent 2') = refused/%s$$, reason),
	'kinds = ' || coalesce(kinds || ' ', '') || 'refused refused']
FROM (VALUES
	('claimed', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$], NULL),
	('completed', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$, $$complete(K, '1', 1) = completed$$], NULL),
	('failed', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$, $$fail(K, '1', 1) = failed$$], 'failed'),
	('released', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$, $$release(K, 1) = released$$], 'released'),
	('uncertain', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$, '61'], NULL),
	('retired', ARRAY[$$claim(K, 'open', '{}', lease => '1 min') = acquired$$, $$complete(K, '1', 1) = completed$$, '100', $$prune('90 s') = done$$], 'pruned')
) AS t (reason, steps, kinds);
CALL pg_temp.tell();
BEGIN;
SELECT is(pg_temp.answer($$claim('claimed', 'here', 'open', '{}')$$), 'acquired', 'a claim of this transaction');
SELECT is(pg_temp.answer($$propose('claimed', 'here', 'open', '{}', 'agent')$$), 'refused/claimed', 'stands in the way');
ROLLBACK;
SELECT is(pg_temp.answer($$propose('claimed', 'here', 'open', '{}', 'agent')$$), 'proposed', 'rolled back, it never was');

-- supersedes: what it ends, and what it only links
INSERT INTO stories (name, steps)
SELECT 'supersedes ' || state, ARRAY[$$propose(K, 'tool', '{"n": 1}', 'agent', expires_in => '1 min') = proposed$$] || steps || ARRAY[
	format($$propose(K2, 'tool', '{"n": 2}', 'agent', supersedes => N) = %s$$, answer),
	'proposal = ' || after,
	format($$propose(K2, 'tool', '{"n": 2}', 'agent', supersedes => N) = %s$$, CASE answer WHEN 'proposed' THEN 'existing' ELSE answer END),
	'proposal = ' || after]
FROM (VALUES
	('pending', '{}'::text[], 'proposed', 'superseded'),
	('approved', ARRAY[$$approve_as('ann', K, D) = recorded$$], 'proposed', 'superseded'),
	('rejected', ARRAY[$$reject_as('ann', K, D) = recorded$$], 'proposed', 'rejected'),
	('withdrawn', ARRAY[$$withdraw(K, 'why') = recorded$$], 'refused/withdrawn', 'withdrawn'),
	('revoked', ARRAY[$$approve_as('ann', K, D) = recorded$$, $$revoke_as('ann', K, 'why') = recorded$$], 'refused/revoked', 'revoked'),
	('superseded', ARRAY[$$propose('story', 'supersedes superseded 3', 'tool', '{"n": 1}', 'agent', supersedes => N) = proposed$$], 'refused/superseded', 'superseded'),
	('expired', ARRAY['61'], 'proposed', 'expired'),
	('reserved', ARRAY[$$approve_as('ann', K, D) = recorded$$, $$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$], 'refused/reserved', 'reserved')
) AS t (state, steps, answer, after);
INSERT INTO stories (name, steps) VALUES
	('supersedes, by role', ARRAY[
		$$as agent: propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$as other: propose(K2, 'tool', '{}', 'agent', supersedes => N) = 42501$$,
		$$proposal = pending$$,
		$$as deputy: propose(K2, 'tool', '{}', 'agent', supersedes => N) = proposed$$,
		$$proposal = superseded$$,
		$$approve_as('ann', K, D) = refused/superseded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/superseded$$,
		$$kinds = proposed superseded refused refused$$]),
	('supersedes, of another task', ARRAY[
		$$propose('another task', N, 'tool', '{}', 'agent') = proposed$$,
		$$propose(K2, 'tool', '{}', 'agent', supersedes => N) = refused/not_found$$]),
	('supersedes, but refused itself', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$propose(K2, 'rule 2', '{}', 'agent', supersedes => N) = refused/no_eligible_approver$$,
		$$proposal = pending$$]);
CALL pg_temp.tell();
SELECT is(supersedes, 'supersedes rejected', 'the link stays') FROM tool_claims.proposals WHERE tool_call_id = 'supersedes rejected 2';
SELECT is(pg_temp.proposal('story', 'supersedes revoked 2'), NULL, 'a refused one leaves no row');
SELECT is(detail ->> 'by', 'supersedes pending 2', 'its evidence names the newer one') FROM tool_claims.evidence('story', 'supersedes pending') WHERE kind = 'superseded';

--
-- rules
--

DROP SCHEMA IF EXISTS regress_tap_proposals CASCADE;
CREATE SCHEMA regress_tap_proposals;
CREATE FUNCTION regress_tap_proposals.votes(input json) RETURNS integer LANGUAGE sql AS $$ SELECT (input ->> 'votes')::integer $$;
CREATE FUNCTION regress_tap_proposals.check(input json) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'ran' USING ERRCODE = 'ZZ001'; END $$;
SELECT is(pg_temp.answer($$set_tool_policy('ruled', approval_rule => 'regress_tap_proposals.votes(json)', approvals_required => 3, approver_groups => '{a}')$$), 'done', 'a rule');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$claim('ruled', 'open', 'ruled', '{"votes": 0}', lease => '1 min')$$, 'acquired'),
	(2, $$claim('ruled', 'shut', 'ruled', '{"votes": 1}', lease => '1 min')$$, 'refused/approval_required'),
	(3, $$claim('ruled', 'null', 'ruled', '{"votes": null}', lease => '1 min')$$, '22004'),
	(4, $$claim('ruled', 'negative', 'ruled', '{"votes": -1}', lease => '1 min')$$, '22023'),
	(5, $$propose('ruled', 'null', 'ruled', '{"votes": null}', 'agent')$$, '22004'),
	(6, $$propose('ruled', 'negative', 'ruled', '{"votes": -1}', 'agent')$$, '22023'),
	(7, $$propose('ruled', 'raises', 'ruled', '{"votes": "x"}', 'agent')$$, '22P02'),
	(8, $$propose('ruled', '0', 'ruled', '{"votes": 0}', 'agent')$$, 'proposed'),
	(9, $$propose('ruled', '0', 'ruled', '{"votes": 0}', 'agent')$$, 'existing'),
	(10, $$propose('ruled', '2', 'ruled', '{"votes": 2}', 'agent')$$, 'proposed'),
	(11, $$propose('ruled', '9', 'ruled', '{"votes": 9}', 'agent')$$, 'refused/no_eligible_approver'),
	(12, $$claim('ruled', '0', 'ruled', '{"votes": 0}', lease => '1 min')$$, 'refused/approval_required')
) AS t (n, call, answer) ORDER BY n;
SELECT is((state, approvals, approvals_required)::text, '(approved,0,0)', 'by rule: approved at once') FROM tool_claims.proposals WHERE task_id = 'ruled' AND tool_call_id = '0';
SELECT is((state, approvals, approvals_required)::text, '(pending,0,2)', 'the rule says how many') FROM tool_claims.proposals WHERE task_id = 'ruled' AND tool_call_id = '2';
SELECT is(string_agg(kind || ' ' || principal, ', ' ORDER BY seq), format('proposed %s, approved policy, refused %1$s', session_user), 'the policy is the principal') FROM tool_claims.evidence('ruled', '0');
SELECT is((outcome, state, approvals_required)::text, '(proposed,approved,0)', 'it says so at once') FROM tool_claims.propose('ruled', '0 2', 'ruled', '{"votes": 0}', 'agent');
INSERT INTO stories (name, steps) VALUES
	('by rule', ARRAY[
		$$propose(K, 'ruled', '{"votes": 0}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = refused/approved$$,
		$$reserve(K, E, 'ruled', '{"votes": 0, "x": 1}', 'agent', lease => '1 min') = refused/changed_input$$,
		$$reserve(K, O, 'ruled', '{"votes": 0}', 'agent', lease => '1 min') = refused/other_execution$$,
		$$reserve(K, E, 'ruled', '{"votes": 0}', 'agent', lease => '1 min') = acquired$$,
		$$kinds = proposed approved refused refused refused reserved$$]),
	('by rule, revoked', ARRAY[
		$$propose(K, 'ruled', '{"votes": 0}', 'agent') = proposed$$,
		$$revoke_as('ann', K, 'no') = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/revoked$$]),
	('by rule, with nobody registered', ARRAY[
		$$propose(K, 'ruled', '{"votes": 0}', 'agent', tool_server => 'nobody') = proposed$$,
		$$proposal = approved$$]);
CALL pg_temp.tell();
-- a check is for whoever acts: proposing runs nothing of it
SELECT is(pg_temp.answer($$set_tool_policy('checked', input_check => 'regress_tap_proposals.check(json)')$$), 'done', 'a check that raises');
SELECT is(pg_temp.answer($$propose('checked', 'c', 'checked', '{}', 'agent')$$), 'proposed', 'is not run');
SELECT is(pg_temp.answer($$set_tool_policy('ruled', reset => '{approval_rule}')$$), 'done', 'no rule');
SELECT is(pg_temp.answer($$claim('ruled', 'open 2', 'ruled', '{"votes": 0}', lease => '1 min')$$), 'refused/approval_required', 'the number counts');
SELECT is(approvals_required, 3, 'when proposing, too') FROM tool_claims.propose('ruled', '3', 'ruled', '{"votes": 0}', 'agent');

--
-- versions of a policy
--

CREATE FUNCTION pg_temp.version(call text)
RETURNS text
LANGUAGE sql
AS $$ SELECT policy_version FROM tool_claims.propose('version', call, 'numbered', '{}', 'agent') $$;
SELECT is(pg_temp.version('1'), '', 'no policy: an empty version');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', log => 'all')$$), 'done', 'a policy');
SELECT is(pg_temp.version('2'), '1', 'the first');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', log => 'all')$$), 'done', 'set to what it is');
SELECT is(pg_temp.version('3'), '2', 'each setting numbers it');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', policy_version => 'named')$$), 'done', 'a version by name');
SELECT is(pg_temp.version('4'), 'named', 'is it');
SELECT is(pg_temp.answer($$propose('version', 'x', 'numbered', '{}', 'agent', policy_version => '2')$$), 'refused/policy_changed', 'an old version');
SELECT is(pg_temp.answer($$propose('version', 'x', 'numbered', '{}', 'agent', policy_version => 'named')$$), 'proposed', 'the current one');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', max_attempts => 2)$$), 'done', 'the next setting');
SELECT is(pg_temp.version('5'), '4', 'is numbered again');
SELECT is(pg_temp.answer($$drop_tool_policy('numbered')$$), 'done', 'dropped');
SELECT is(pg_temp.version('6'), '', 'no policy again');
SELECT is(pg_temp.answer($$set_tool_policy('numbered')$$), 'done', 'made anew');
SELECT is(pg_temp.version('7'), '5', 'goes on counting');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', reset => '{policy_version}')$$), 'done', 'put back');
SELECT is(pg_temp.version('8'), '6', 'to a number');
-- a number that was given by name is never given again
SELECT is(pg_temp.answer($$set_tool_policy('numbered', policy_version => '8', approvals_required => 1)$$), 'done', 'a number by name');
SELECT is(pg_temp.version('9'), '8', 'is the version');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', approvals_required => 2)$$), 'done', 'the next');
SELECT isnt(pg_temp.version('10'), '8', 'is another version');
SELECT is(pg_temp.answer($$set_tool_policy('numbered', approvals_required => 3)$$), 'done', 'and one more');
SELECT isnt(pg_temp.version('11'), '8', 'is another version');

--
-- redacted and pruned
--

INSERT INTO stories (name, steps) VALUES
	('redacted', ARRAY[
		$$propose(K, 'tool', '{"secret": "canary"}', 'agent', summary => 'canary summary') = proposed$$,
		$$approve_as('ann', K, D, 'canary comment') = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$redact(K, 'a wish') = TC003$$,
		$$complete(K, '"canary result"', 1) = completed$$,
		$$redact(K, 'a wish') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = completed/redacted$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$propose(K, 'tool', '{"secret": "canary"}', 'agent') = existing$$,
		$$propose(K, 'tool', '{"secret": "canary 2"}', 'agent') = conflict/input$$]),
	('pruned', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$complete(K, '1', 1) = completed$$,
		'7200',
		$$prune('1 hour') = done$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = refused/key_retired$$,
		$$propose(K, 'tool', '{}', 'agent') = refused/retired$$,
		$$reserve_by_digest(K, O, D, lease => '1 min') = refused/not_found$$]);
CALL pg_temp.tell();
SELECT is((SELECT count(*)::integer FROM tool_claims.proposal_records AS p WHERE p.tool_call_id = 'redacted' AND p::text LIKE '%canary%'), 0, 'redacted: no input, no summary');
SELECT is((SELECT count(*)::integer FROM tool_claims.votes AS v WHERE v.tool_call_id = 'redacted' AND v.comment IS NOT NULL), 0, 'no comment');
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('story', 'redacted') AS e WHERE e.detail::text LIKE '%canary%'), 0, 'nor in the evidence');
SELECT is(ok, true, 'which verifies') FROM tool_claims.verify_evidence('story', 'redacted');
SELECT is((SELECT count(*)::integer FROM tool_claims.proposal_records AS p WHERE p.organization = :'organization' AND p.tool_call_id = 'pruned'), 0, 'pruned: no proposal');
SELECT is((SELECT count(*)::integer FROM tool_claims.votes AS p WHERE p.organization = :'organization' AND p.tool_call_id = 'pruned'), 0, 'no votes');

SELECT is(have, want, format('%s: %s', name, step)) FROM told ORDER BY n;

SELECT is((SELECT string_agg(DISTINCT p.tool_call_id, ', ') FROM tool_claims.proposals AS p, tool_claims.verify_evidence(p.task_id, p.tool_call_id) AS v WHERE NOT v.ok),
	NULL, 'every chain verifies');

SELECT * FROM finish();
DROP SCHEMA regress_tap_proposals CASCADE;
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_agent', 'regress_tap_other', 'regress_tap_deputy');
