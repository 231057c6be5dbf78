-- policies.sql: every member of a tool's policy, its look-up, and input checks.

\set organization tap_policies
\ir include/helpers.psql

SELECT plan(297);

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_admin', 'regress_tap_deputy', 'regress_tap_mallory');
GRANT regress_tap_admin TO regress_tap_deputy;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', role || ' is a ' || duty)
FROM (VALUES ('regress_tap_worker', 'worker'), ('regress_tap_admin', 'administrator')) AS t (role, duty);
CREATE FUNCTION pg_temp.policy(members text, tool text DEFAULT 'tool', role text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.answer(format('set_tool_policy(%L, %s)', tool, members), role) $$;

--
-- values
--

SELECT is(pg_temp.policy(members), answer, members)
FROM (VALUES
	($$tool_server => 's'$$, 'done'),
	($$enabled => NULL$$, 'done'),
	($$effect => 'any'$$, 'done'),
	($$effect => 'local'$$, 'done'),
	($$effect => 'external'$$, 'done'),
	($$effect => 'both'$$, '22023'),
	($$effect => ''$$, '22023'),
	($$effect => 'LOCAL'$$, '22023'),
	($$on_lease_expiry => 'uncertain'$$, 'done'),
	($$on_lease_expiry => 'reacquire'$$, 'done'),
	($$on_lease_expiry => 'released'$$, '22023'),
	($$max_attempts => 1$$, 'done'),
	($$max_attempts => 2147483647$$, 'done'),
	($$max_attempts => 0$$, '22023'),
	($$max_attempts => -1$$, '22023'),
	($$operation_required => true$$, 'done'),
	($$keep_input => true$$, 'done'),
	($$retention => '90 days'$$, 'done'),
	($$retention => '0'$$, 'done'),
	($$retention => '-1 day'$$, '22023'),
	($$log => 'all'$$, 'done'),
	($$log => 'exceptions'$$, 'done'),
	($$log => 'none'$$, '22023'),
	($$approvals_required => 0$$, 'done'),
	($$approvals_required => 2147483647$$, 'done'),
	($$approvals_required => -1$$, '22023'),
	($$approval_rule => 'pg_catalog.json_array_length(json)'$$, 'done'),
	($$approval_rule => 'pg_catalog.json_typeof(json)'$$, '22023'),
	($$approval_rule => 'pg_catalog.jsonb_array_length(jsonb)'$$, '22023'),
	($$approval_rule => 'no_such(json)'$$, '42883'),
	($$approver_groups => '{a,b}'$$, 'done'),
	($$approver_groups => '{}'$$, 'done'),
	($$approver_groups => '{NULL}'$$, '22023'),
	($$approver_groups => '{a,NULL}'$$, '22023'),
	($$allow_self_approval => true$$, 'done'),
	($$allow_self_approval => false$$, 'done'),
	($$policy_version => 'v1'$$, 'done'),
	($$policy_version => ''$$, '22023'),
	($$policy_version => repeat('x', 512)$$, 'done'),
	($$policy_version => repeat('x', 513)$$, '22023'),
	($$proposal_ttl => '1 second'$$, 'done'),
	($$proposal_ttl => '1 month'$$, 'done'),
	($$proposal_ttl => '0'$$, '22023'),
	($$proposal_ttl => '-1 day'$$, '22023'),
	($$reset => '{approvals_required,approval_rule,approver_groups,allow_self_approval,policy_version,proposal_ttl}'$$, 'done'),
	($$approvals_required => 1, reset => '{approvals_required}'$$, '22023'),
	($$policy_version => 'v', reset => '{policy_version}'$$, '22023'),
	($$reset => '{}'$$, 'done'),
	($$reset => '{max_attempts}'$$, 'done'),
	($$reset => '{enabled,effect,on_lease_expiry,max_attempts,operation_required,keep_input,input_check,retention,log}'$$, 'done'),
	($$reset => '{max_attempt}'$$, '22023'),
	($$reset => '{max_attempts,nonsense}'$$, '22023'),
	($$reset => '{tool_name}'$$, '22023'),
	($$reset => '{NULL}'$$, '22023'),
	($$input_check => 'no_such(json)'$$, '42883'),
	($$input_check => 'pg_catalog.jsonb_pretty(jsonb)'$$, '22023'),
	($$input_check => 'pg_catalog.json_typeof(json)'$$, 'done'),
	($$input_check => 'pg_catalog.json_array_length(json)'$$, '22023'),
	($$input_check => 'pg_catalog.json_array_elements_text(json)'$$, '22023')
) AS t (members, answer);
SELECT is(pg_temp.answer($$drop_tool_policy('tool', 's')$$), 'done', 'one row is dropped');
SELECT is(pg_temp.answer($$drop_tool_policy('tool', 's')$$), '42704', '… and gone');
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$), 'done', 'the other too');
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$), '42704', '… and gone');
SELECT is(pg_temp.answer($$drop_tool_policy('*', 's')$$), '22023', 'no policy is for any tool of one server');

--
-- each member, set alone, then put back
--

-- enabled
SELECT is(pg_temp.answer($$claim('e', 'running', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim before');
SELECT is(pg_temp.policy('enabled => false'), 'done', 'disabled');
SELECT is(pg_temp.answer(call), answer, 'disabled: ' || call)
FROM (VALUES
	($$claim('e', 'new', 'tool', '{}', lease => '1 min')$$, 'refused/tool_disabled'),
	($$claim('e', 'new', 'tool', '{}')$$, 'refused/tool_disabled'),
	($$claim('e', 'running', 'tool', '{}')$$, 'in_progress'),
	($$dispatch('e', 'running', 1)$$, 'refused/tool_disabled'),
	($$renew('e', 'running', 1, '1 min')$$, 'acquired'),
	($$claim('e', 'of another', 'other', '{}', lease => '1 min')$$, 'acquired')
) AS t (call, answer);
SELECT is(pg_temp.state('e', 'running'), 'claimed', 'a refused dispatch leaves it claimed');
SELECT is(pg_temp.answer($$complete('e', 'running', '1', 1)$$), 'completed', 'and it may complete');
SELECT is(pg_temp.answer($$claim('e', 'running', 'tool', '{}')$$), 'completed', 'and answer');
SELECT is(pg_temp.policy($$max_attempts => 2$$), 'done', 'naming another member');
SELECT is(pg_temp.answer($$claim('e', 'new', 'tool', '[]', lease => '1 min')$$), 'refused/tool_disabled', 'keeps this one');
SELECT is(pg_temp.policy('enabled => true'), 'done', 'enabled');
SELECT is(pg_temp.answer($$claim('e', 'new', 'tool', '[]', lease => '1 min')$$), 'acquired', 'acquired, and a refusal fixed no data');
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$), 'done', 'no policy any more');

-- effect
SELECT is(pg_temp.policy($$effect => 'local'$$), 'done', 'local');
SELECT is(pg_temp.answer($$claim('l', 'c', 'tool', '{}', lease => '1 min')$$), '22023', 'local: no lease');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('l', 'c', 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$), 'done', 'local: execute');
SELECT is(pg_temp.answer($$claim('l', 'c', 'tool', '{}', lease => '1 min')$$), 'completed', 'a stored answer is given all the same');
SELECT is(pg_temp.policy($$effect => 'external'$$), 'done', 'external');
SELECT is(pg_temp.answer($$claim('x', 'c', 'tool', '{}')$$), '22023', 'external: a lease');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('x', 'c', 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$), '22023', 'external: no execute');
SELECT is(pg_temp.answer($$claim('x', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired', 'external: a lease');
SELECT is(pg_temp.answer($$claim('l', 'c', 'tool', '{}')$$), 'completed', 'a stored answer is given all the same');
SELECT is(pg_temp.policy($$reset => '{effect}'$$), 'done', 'reset');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('x', 'c 2', 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$), 'done', 'any: execute');
SELECT is(pg_temp.answer($$claim('x', 'c 3', 'tool', '{}', lease => '1 min')$$), 'acquired', 'any: a lease');

-- on_lease_expiry: see fencing.sql and transitions.sql

-- max_attempts
SELECT is(pg_temp.policy('max_attempts => 2'), 'done', 'two attempts');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min', dispatched => false)$$), 'acquired', 'one');
SELECT is(pg_temp.answer($$release('m', 'c', 1)$$), 'released', 'released');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min', dispatched => false)$$), 'acquired/retry', 'two');
SELECT pg_temp.clock(61);
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min')$$), 'refused/attempts_exhausted', 'no third one after an expiry');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer($$release('m', 'c', 2)$$), 'released', 'released');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min')$$), 'refused/attempts_exhausted', 'no third one');
SELECT is(pg_temp.policy('max_attempts => 3'), 'done', 'three attempts');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired/retry', 'three');
SELECT is(pg_temp.answer($$release('m', 'c', 3)$$), 'released', 'released');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min')$$), 'refused/attempts_exhausted', 'no fourth one');
SELECT is((attempt, kind)::text, '(3,attempts_exhausted)', 'which attention shows')
FROM tool_claims.attention WHERE task_id = 'm' AND kind = 'attempts_exhausted';
SELECT is(pg_temp.policy($$reset => '{max_attempts}'$$), 'done', 'reset');
SELECT is(pg_temp.answer($$claim('m', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired/retry', 'four');
SELECT is((SELECT count(*)::integer FROM tool_claims.attention WHERE task_id = 'm' AND kind = 'attempts_exhausted'), 0, 'attention has nothing');

-- operation_required: see operations.sql
SELECT is(pg_temp.policy('operation_required => true'), 'done', 'an operation is required');
SELECT is(pg_temp.answer($$claim('o', 'c', 'tool', '{}', lease => '1 min')$$), '22004', 'none');
SELECT is(pg_temp.policy($$reset => '{operation_required}'$$), 'done', 'reset');
SELECT is(pg_temp.answer($$claim('o', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired', 'none');

-- keep_input
SELECT is(input::text, NULL, 'the input is not kept') FROM tool_claims.status('o', 'c');
SELECT is(input_digest::text, tool_claims.digest('{}')::text, 'its digest is') FROM tool_claims.status('o', 'c');
SELECT is(pg_temp.policy('keep_input => true'), 'done', 'input kept');
SELECT is(pg_temp.answer($$claim('k', 'c', 'tool', '{"b": 1.0, "a": 9007199254740993}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(input::text, '{"a":9007199254740993,"b":1}', 'it is kept, in its canonical form') FROM tool_claims.status('k', 'c');
SELECT is(input_digest::text, tool_claims.digest('{"a":9007199254740993,"b":1}')::text, 'and its digest') FROM tool_claims.status('k', 'c');
SELECT is(pg_temp.answer($$release('o', 'c', 1)$$), 'released', 'the one before is released');
SELECT is(pg_temp.answer($$claim('o', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired/retry', 'and acquired again');
SELECT is(input_digest::text, tool_claims.digest('{}')::text, 'with the same digest') FROM tool_claims.status('o', 'c');
SELECT is(pg_temp.policy($$reset => '{keep_input}'$$), 'done', 'reset');

-- log
SELECT is(pg_temp.kinds('k', 'c'), NULL, 'a routine claim is not in the evidence');
SELECT is(pg_temp.policy($$log => 'all'$$), 'done', 'all is');
SELECT is(pg_temp.answer($$claim('a', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$complete('a', 'c', '1', 1)$$), 'completed', 'completed');
SELECT is(pg_temp.kinds('a', 'c'), 'acquired completed', 'both are in the evidence');
SELECT is(pg_temp.policy($$log => 'exceptions'$$), 'done', 'back');
SELECT is(pg_temp.answer($$claim('a', 'c 2', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.kinds('a', 'c 2'), NULL, 'is not');

--
-- approvals: each member, set alone, kept by the next call, put back
--

SELECT is(pg_temp.answer(format('add_approver(%L, %L)', principal, principal)), 'done', principal || ' approves') FROM unnest(ARRAY['a', 'b']) AS principal;
CREATE FUNCTION pg_temp.shown(call text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT concat_ws(' ', state, approvals_required, approver_groups, policy_version, round(EXTRACT(epoch FROM expires_at - proposed_at) / 60) || ' min')
	FROM tool_claims.proposals WHERE task_id = 'p' AND tool_call_id = call
$$;
CREATE TEMPORARY TABLE steps (n integer GENERATED ALWAYS AS IDENTITY, members text, claim text, shown text);
INSERT INTO steps (members, claim, shown) VALUES
	($$log => 'exceptions'$$, 'acquired', 'pending 1 {} 1 1440 min'),
	($$approvals_required => 2$$, 'refused/approval_required', 'pending 2 {} 2 1440 min'),
	($$approver_groups => '{b,a}'$$, 'refused/approval_required', 'pending 2 {b,a} 3 1440 min'),
	($$proposal_ttl => '2 hours'$$, 'refused/approval_required', 'pending 2 {b,a} 4 120 min'),
	($$policy_version => 'v5'$$, 'refused/approval_required', 'pending 2 {b,a} v5 120 min'),
	($$approval_rule => 'pg_catalog.json_array_length(json)', approvals_required => 1$$, 'refused/approval_required', 'pending 2 {b,a} 6 120 min'),
	($$reset => '{approval_rule}'$$, 'refused/approval_required', 'pending 1 {b,a} 7 120 min'),
	($$reset => '{approver_groups,proposal_ttl}'$$, 'refused/approval_required', 'pending 1 {} 8 1440 min'),
	($$approvals_required => 0$$, 'acquired', 'pending 1 {} 9 1440 min'),
	($$reset => '{approvals_required}'$$, 'acquired', 'pending 1 {} 10 1440 min');
CREATE TEMPORARY TABLE seen (n integer, policy text, claim text, shown text);
CREATE PROCEDURE pg_temp.step_on()
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
	policy text;
	claim text;
BEGIN
	FOR s IN SELECT * FROM steps ORDER BY n LOOP
		policy := pg_temp.policy(s.members, 'approved tool');
		claim := pg_temp.answer(format($c$claim('p', 'claim %s', 'approved tool', '[1, 2]', lease => '1 min')$c$, s.n));
		PERFORM pg_temp.answer(format($c$propose('p', '%s', 'approved tool', '[1, 2]', 'agent')$c$, s.n));
		INSERT INTO seen VALUES (s.n, policy, claim, pg_temp.shown(s.n::text));
	END LOOP;
END
$$;
CALL pg_temp.step_on();
SELECT is(concat_ws(' ', e.policy, e.claim, e.shown), concat_ws(' ', 'done', s.claim, s.shown), s.members) FROM steps AS s JOIN seen AS e USING (n) ORDER BY n;
-- allow_self_approval: see decisions.sql
-- expires_in shortens, and never lengthens
SELECT is(pg_temp.policy($$proposal_ttl => '2 hours'$$, 'approved tool'), 'done', 'two hours');
SELECT is(pg_temp.answer(format($$propose('p', 'ttl %s', 'approved tool', '[]', 'agent', expires_in => %L)$$, expires_in, expires_in)), answer, 'expires_in ' || expires_in)
FROM (VALUES ('1 hour', 'proposed'), ('2 hours', 'proposed'), ('2 hours 1 second', '22023'), ('1 day', '22023')) AS t (expires_in, answer);
-- one that is longer than the years a date has
SELECT is(pg_temp.policy($$proposal_ttl => '100000 years'$$, 'approved tool'), 'done', 'for ever');
SELECT is(pg_temp.answer($$propose('p', 'for ever', 'approved tool', '[]', 'agent')$$), 'proposed', 'proposed');
SELECT ok(expires_at > clock_timestamp() + interval '900 years' AND to_char(expires_at, 'YYYY') ~ '^\d{4}$', 'ends in four digits') FROM tool_claims.proposals WHERE task_id = 'p' AND tool_call_id = 'for ever';
SELECT is(pg_temp.answer($$drop_tool_policy('approved tool')$$), 'done', 'dropped');

--
-- which policy is a call's: from the least to the most specific, each the other way
--

BEGIN;
CREATE FUNCTION pg_temp.look(call text)
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.answer(format($c$claim('w', %L, 'looked up', '{}', tool_server => 'server')$c$, call)) $$;
CREATE FUNCTION pg_temp.at(organization text, call text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	mine text := current_setting('tool_claims.organization');
	answer text;
BEGIN
	PERFORM set_config('tool_claims.organization', organization, true);
	answer := pg_temp.answer(call);
	PERFORM set_config('tool_claims.organization', mine, true);
	RETURN answer;
END
$$;
SELECT is(pg_temp.look('0'), 'acquired', 'no policy');
SELECT is(pg_temp.at('', $$set_tool_policy('*', '*', enabled => false)$$), 'done', '(*, *) of '''' : off');
SELECT is(pg_temp.look('1'), 'refused/tool_disabled', 'off, deny by default');
SELECT is(pg_temp.at('', $$claim('w', '1', 'any', '{}')$$), 'refused/tool_disabled', 'in the organization '''' too');
SELECT is(pg_temp.at(:'organization', $$set_tool_policy('*', '*', enabled => true)$$), 'done', '(*, *): on');
SELECT is(pg_temp.look('2'), 'acquired', 'on');
SELECT is(pg_temp.at('', $$set_tool_policy('looked up', '*', enabled => false)$$), 'done', '(tool, *) of '''' : off');
SELECT is(pg_temp.look('3'), 'refused/tool_disabled', 'off');
SELECT is(pg_temp.at(:'organization', $$set_tool_policy('looked up', enabled => true)$$), 'done', '(tool, *): on');
SELECT is(pg_temp.look('4'), 'acquired', 'on');
SELECT is(pg_temp.at('', $$set_tool_policy('looked up', 'server', enabled => false)$$), 'done', '(tool, server) of '''' : off');
SELECT is(pg_temp.look('5'), 'refused/tool_disabled', 'off');
SELECT is(pg_temp.answer($$claim('w', '5', 'looked up', '{}', tool_server => 'another')$$), 'acquired', 'on for another server');
SELECT is(pg_temp.at(:'organization', $$set_tool_policy('looked up', 'server', max_attempts => 1)$$), 'done', '(tool, server): nothing but attempts');
SELECT is(pg_temp.look('6'), 'acquired', 'on: a policy counts as a whole');
SELECT is(pg_temp.at('another', $$claim('w', '6', 'looked up', '{}', tool_server => 'server')$$), 'refused/tool_disabled', 'another organization has that of ''''');
-- and back
SELECT is(pg_temp.answer($$drop_tool_policy('looked up', 'server')$$), 'done', 'dropped');
SELECT is(pg_temp.look('7'), 'refused/tool_disabled', 'off');
SELECT is(pg_temp.at('', $$drop_tool_policy('looked up', 'server')$$), 'done', 'dropped');
SELECT is(pg_temp.look('8'), 'acquired', 'on');
SELECT is(pg_temp.answer($$drop_tool_policy('looked up')$$), 'done', 'dropped');
SELECT is(pg_temp.look('9'), 'refused/tool_disabled', 'off');
SELECT is(pg_temp.at('', $$drop_tool_policy('looked up')$$), 'done', 'dropped');
SELECT is(pg_temp.look('10'), 'acquired', 'on');
SELECT is(pg_temp.answer($$drop_tool_policy('*', '*')$$), 'done', 'dropped');
SELECT is(pg_temp.look('11'), 'refused/tool_disabled', 'off');
ROLLBACK;
SELECT is(pg_temp.answer($$claim('w', '12', 'looked up', '{}', tool_server => 'server', lease => '1 min')$$), 'acquired',
	'rolled back, a policy never was');

-- a change counts at once, in the savepoint that makes it and after that is undone
BEGIN;
SELECT is(pg_temp.answer($$claim('v', '0', 'tool', '{}')$$), 'acquired', 'enabled');
SAVEPOINT s;
SELECT is(pg_temp.policy('enabled => false'), 'done', 'disabled');
SELECT is(pg_temp.answer($$claim('v', '1', 'tool', '{}')$$), 'refused/tool_disabled', 'at once');
ROLLBACK TO s;
SELECT is(pg_temp.answer($$claim('v', '1', 'tool', '{}')$$), 'acquired', 'undone with its savepoint');
ROLLBACK;
-- a superuser's own hand in the table is noticed too
SELECT is(pg_temp.policy('enabled => false'), 'done', 'disabled');
SELECT is(pg_temp.answer($$claim('v', '2', 'tool', '{}', lease => '1 min')$$), 'refused/tool_disabled', 'refused');
DELETE FROM tool_claims.policies WHERE organization = :'organization';
SELECT is(pg_temp.answer($$claim('v', '2', 'tool', '{}', lease => '1 min')$$), 'acquired', 'deleted: acquired');

--
-- input checks
--

DROP SCHEMA IF EXISTS regress_tap_policies CASCADE;
CREATE SCHEMA regress_tap_policies;
GRANT USAGE ON SCHEMA regress_tap_policies TO PUBLIC;
SET search_path = regress_tap_policies, public;
CREATE FUNCTION positive(input json) RETURNS text
LANGUAGE sql
AS $$ SELECT CASE WHEN (input ->> 'n')::numeric > 0 THEN NULL ELSE 'n is not positive' END $$;
CREATE FUNCTION seen(input json) RETURNS text
LANGUAGE sql
AS $$ SELECT 'input ' || input::text $$;
CREATE FUNCTION who(input json) RETURNS text
LANGUAGE plpgsql
AS $$ BEGIN RETURN format('current %s, path %s', current_user, current_setting('search_path')); END $$;
CREATE FUNCTION raising(input json) RETURNS text
LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'out of order' USING ERRCODE = 'XX999'; END $$;
CREATE FUNCTION empty(input json) RETURNS text
LANGUAGE sql
AS $$ SELECT '' $$;

SELECT is(pg_temp.policy($$input_check => 'positive(json)'$$), 'done', 'a check');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$claim('c', '1', 'tool', '{"n": 1}', lease => '1 min')$$, 'acquired'),
	($$claim('c', '2', 'tool', '{"n": -1}', lease => '1 min')$$, 'refused/invalid_input'),
	($$claim('c', '2', 'tool', '{"n": -1}')$$, 'refused/invalid_input'),
	($$claim('c', '1', 'tool', '{"n": 1}', lease => '1 min')$$, 'acquired/already_held')
) AS t (call, answer);
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('c', '2', 'tool', '{"n": -1}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$), 'TC010', 'execute raises');
SELECT is(pg_temp.state('c', '2'), NULL, 'a refused call leaves no record');
SELECT is((kind, detail::text LIKE '%n is not positive%')::text, '(refused,t)', 'but evidence, with the check''s message')
FROM tool_claims.evidence('c', '2') WHERE seq = 1;
SELECT is(pg_temp.answer($$claim('c', '2', 'tool', '{"n": 2}', lease => '1 min')$$), 'acquired', 'and the key is free for other data');
SELECT is(pg_temp.policy($$enabled => false$$), 'done', 'disabled beside');
SELECT is(pg_temp.answer($$claim('c', '3', 'tool', '{"n": -1}', lease => '1 min')$$), 'refused/tool_disabled', 'comes first');
SELECT is(pg_temp.policy($$enabled => true$$), 'done', 'enabled');
SELECT is(pg_temp.answer($$complete('c', '1', '1', 1)$$), 'completed', 'completed');
SELECT is(pg_temp.policy($$input_check => 'raising(json)'$$), 'done', 'a check that raises');
SELECT is(pg_temp.answer($$claim('c', '1', 'tool', '{"n": 1}')$$), 'completed', 'a stored answer is given all the same');
SELECT is(pg_temp.answer($$claim('c', '3', 'tool', '{"n": 1}', lease => '1 min')$$), 'XX999', 'its error is the call''s');
SELECT is(pg_temp.state('c', '3'), NULL, 'and nothing is acquired');
SELECT is(pg_temp.policy($$input_check => 'empty(json)'$$), 'done', 'a check with an empty message');
SELECT is(pg_temp.answer($$claim('c', '3', 'tool', '{"n": 1}', lease => '1 min')$$), 'refused/invalid_input', 'is not good: good is NULL');
SELECT is(pg_temp.policy($$input_check => 'seen(json)'$$), 'done', 'a check that tells what it sees');
SELECT is(pg_temp.answer($$claim('c', 'seen', 'tool', '{"n": 9007199254740993, "a": 1.0}', lease => '1 min')$$), 'refused/invalid_input', 'refuses');
SELECT ok(detail::text LIKE '%9007199254740993%', 'numbers exact') FROM tool_claims.evidence('c', 'seen');

-- as its registrar, under a pinned search_path, whoever calls
GRANT EXECUTE ON FUNCTION who(json) TO regress_tap_admin;
ALTER FUNCTION who(json) OWNER TO regress_tap_admin;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.who(json)'$$, role => 'regress_tap_admin'), 'done', 'an administrator registers');
SELECT is(pg_temp.answer($$claim('c', 'who', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'refused/invalid_input', 'a worker calls');
SELECT ok(detail::text LIKE '%current regress_tap_admin,%', 'it runs as the administrator') FROM tool_claims.evidence('c', 'who');
SELECT ok(detail::text LIKE '%path %pg_catalog%' AND detail::text LIKE '%pg_temp%' AND detail::text NOT LIKE '%regress_tap_policies%',
	'under a pinned search_path')
FROM tool_claims.evidence('c', 'who');
SELECT is(current_setting('search_path'), 'regress_tap_policies, public', 'ours is ours again');

-- in a restricted operation
CREATE TABLE deferred (n integer);
CREATE FUNCTION after_all() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER after_all AFTER INSERT ON deferred DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION after_all();
CREATE FUNCTION hostile(input json) RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	EXECUTE input ->> 'run';
	RETURN NULL;
END
$$;
SELECT is(pg_temp.policy($$input_check => 'hostile(json)'$$), 'done', 'a check that runs what it is given');
SELECT is(
	pg_temp.answer(format('claim(''h'', %L, ''tool'', %L, lease => ''1 min'')', run, json_build_object('run', run)), 'regress_tap_worker'),
	answer, run)
FROM (VALUES
	('SELECT 1', 'acquired'),
	('SET ROLE postgres', '42501'),
	('SET SESSION AUTHORIZATION postgres', '42501'),
	('CREATE TEMPORARY TABLE t ()', '42501'),
	('INSERT INTO regress_tap_policies.deferred VALUES (1)', '42501'),
	('LISTEN x', '42501'),
	('PREPARE p AS SELECT 1', '42501'),
	($$SELECT tool_claims.claim('h', 'inner', 'other', '{}')$$, '0A000'),
	($$SELECT tool_claims.complete('e', 'running', '1', 1)$$, '0A000'),
	($$SELECT tool_claims.execute('h', 'inner', 'other', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$, '0A000'),
	($$SELECT tool_claims.set_tool_policy('tool', enabled => true)$$, '0A000'),
	($q$DO $x$ BEGIN PERFORM tool_claims.claim('h', 'inner', 'other', '{}'); EXCEPTION WHEN feature_not_supported THEN NULL; END $x$ $q$, 'acquired'),
	('SET work_mem = ''77MB''', 'acquired'),
	('SET search_path = pg_temp', 'acquired'),
	('SET synchronous_commit = off', 'acquired'),
	('SET tool_claims.organization = ''another''', 'acquired')
) AS t (run, answer);
SELECT is(current_setting('search_path') || ' ' || current_setting('synchronous_commit'),
	'regress_tap_policies, public on', 'its settings end with it');
SELECT isnt(current_setting('work_mem'), '77MB', 'this one too');
SELECT is(current_setting('tool_claims.organization'), :'organization', 'the organization too');
SELECT is(pg_temp.state('h', 'SET tool_claims.organization = ''another'''), 'claimed', 'and the record is where it belongs');
SELECT is(pg_temp.state('h', 'inner'), NULL, 'the inner claim never was');
SELECT is(current_user::text, session_user::text, 'and nobody else is left');

-- a rule for approvals is such a function too
CREATE FUNCTION rule(input json) RETURNS integer
LANGUAGE plpgsql
AS $$
BEGIN
	IF input ->> 'run' IS NOT NULL THEN
		EXECUTE input ->> 'run';
	END IF;
	RETURN CASE WHEN current_user = 'regress_tap_admin' THEN 0 ELSE 7 END;
END
$$;
ALTER FUNCTION rule(json) OWNER TO regress_tap_admin;
SELECT is(pg_temp.policy($$approval_rule => 'regress_tap_policies.rule(json)'$$, 'ruled', 'regress_tap_admin'), 'done', 'an administrator registers');
SELECT is(pg_temp.answer($$claim('rule', 'c', 'ruled', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', 'it runs as he');
SELECT is(pg_temp.answer($$propose('rule', 'p', 'ruled', '{}', 'agent')$$), 'proposed', 'when proposing, too');
SELECT is(pg_temp.answer(format('claim(''rule'', %L, ''ruled'', %L, lease => ''1 min'')', run, json_build_object('run', run)), 'regress_tap_worker'), answer, 'a rule: ' || run)
FROM (VALUES
	('SET ROLE postgres', '42501'), ('CREATE TEMPORARY TABLE t ()', '42501'),
	($$SELECT tool_claims.add_approver('inner')$$, '0A000'), ($$SELECT tool_claims.remove_approver('a', 'a')$$, '0A000'),
	($$SELECT tool_claims.set_tool_policy('ruled', approvals_required => 0)$$, '0A000')
) AS t (run, answer);
-- also one of a superuser
CREATE FUNCTION any_rule(input json) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN EXECUTE input ->> 'run'; RETURN 0; END $$;
SELECT is(pg_temp.policy($$approval_rule => 'regress_tap_policies.any_rule(json)'$$, 'ruled 2'), 'done', 'a superuser registers');
SELECT is(pg_temp.answer(format('%s(''rule'', %L, ''ruled 2'', %L, %s)', verb, run, json_build_object('run', run), rest)), '0A000', format('a rule of %s: %s', verb, run))
FROM (VALUES ('claim', $$lease => '1 min'$$), ('propose', $$'agent'$$)) AS v (verb, rest), unnest(ARRAY[
	$$SELECT tool_claims.claim('rule', 'inner', 'other', '{}')$$,
	$$SELECT tool_claims.propose('rule', 'inner', 'other', '{}', 'agent')$$,
	$$SELECT tool_claims.withdraw('rule', NULL, 'why')$$,
	$$SELECT tool_claims.approve('rule', 'inner', repeat('0', 64)::tool_claims.sha256_digest)$$,
	$$SELECT tool_claims.reject_as('a', 'rule', 'inner', repeat('0', 64)::tool_claims.sha256_digest)$$,
	$$SELECT tool_claims.revoke('rule', 'inner', 'why')$$,
	$$SELECT tool_claims.reserve('rule', 'inner', '00000000-0000-0000-0000-000000000001', 'other', '{}', 'agent')$$,
	$$SELECT tool_claims.reserve_by_digest('rule', 'inner', '00000000-0000-0000-0000-000000000001', repeat('0', 64)::tool_claims.sha256_digest)$$]) AS run;
ALTER FUNCTION rule(json) OWNER TO regress_tap_mallory;
SELECT is(pg_temp.answer($$claim('rule', 'd', 'ruled', '{}', lease => '1 min')$$, 'regress_tap_worker'), '42501', 'another owner, at use');
SELECT is(pg_temp.answer($$propose('rule', 'd', 'ruled', '{}', 'agent')$$), '42501', 'when proposing, too');
DROP FUNCTION rule(json);
SELECT is(pg_temp.answer($$claim('rule', 'd', 'ruled', '{}', lease => '1 min')$$, 'regress_tap_worker'), '42704', 'gone');
SELECT is(pg_temp.answer($$propose('rule', 'd', 'ruled', '{}', 'agent')$$), '42704', 'when proposing, too');
SELECT is(pg_temp.answer($$claim('rule', 'c', 'ruled', '{}')$$), 'in_progress', 'a stored answer is given all the same');

-- a function is resolved at each use
SELECT is(pg_temp.policy($$input_check => 'positive(json)'$$), 'done', 'a check');
SELECT is(pg_temp.answer($$claim('c', 'gone', 'tool', '{"n": 1}', lease => '1 min')$$), 'acquired', 'is good');
ALTER FUNCTION positive(json) RENAME TO positive_2;
SELECT is(pg_temp.answer($$claim('c', 'gone 2', 'tool', '{"n": 1}', lease => '1 min')$$), '42704', 'renamed, it is gone');
SELECT is(pg_temp.answer($$claim('c', 'gone', 'tool', '{"n": 1}', lease => '1 min')$$), 'in_progress', 'a stored answer is given all the same');
ALTER FUNCTION positive_2(json) RENAME TO positive;
SELECT is(pg_temp.answer($$claim('c', 'gone 2', 'tool', '{"n": 1}', lease => '1 min')$$), 'acquired', 'and here again');
CREATE OR REPLACE FUNCTION positive(input json) RETURNS text LANGUAGE sql AS $$ SELECT 'never' $$;
SELECT is(pg_temp.answer($$claim('c', 'gone 3', 'tool', '{"n": 1}', lease => '1 min')$$), 'refused/invalid_input', 'replaced, the new one counts');
DROP FUNCTION positive(json);
SELECT is(pg_temp.answer($$claim('c', 'gone 4', 'tool', '{"n": 1}', lease => '1 min')$$), '42704', 'dropped, it is gone');
SELECT is(pg_temp.policy('enabled => true'), 'done', 'another member can still be set');
SELECT is(pg_temp.policy($$reset => '{input_check}'$$), 'done', 'and the check be taken away');
SELECT is(pg_temp.answer($$claim('c', 'gone 4', 'tool', '{"n": 1}', lease => '1 min')$$), 'acquired', 'then all is good');

-- the registrar must be allowed to run it
CREATE FUNCTION closed(input json) RETURNS text LANGUAGE sql AS $$ SELECT NULL::text $$;
REVOKE EXECUTE ON FUNCTION closed(json) FROM PUBLIC;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$, role => 'regress_tap_admin'), '42501', 'a registrar without EXECUTE');
GRANT EXECUTE ON FUNCTION closed(json) TO regress_tap_admin;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$, role => 'regress_tap_admin'), 'done', 'with EXECUTE');
SELECT is(pg_temp.answer($$claim('c', 'closed', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', 'the caller needs none');
REVOKE EXECUTE ON FUNCTION closed(json) FROM regress_tap_admin;
SELECT is(pg_temp.answer($$claim('c', 'closed 2', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), '42501', 'taken away, the next use fails');
GRANT EXECUTE ON FUNCTION closed(json) TO regress_tap_admin;
SELECT is(pg_temp.answer($$claim('c', 'closed 2', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', 'given back');

-- its owner must be somebody who could act as the registrar anyway
ALTER FUNCTION closed(json) OWNER TO regress_tap_mallory;
SELECT is(pg_temp.answer($$claim('c', 'owner', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), '42501', 'another owner, at use');
GRANT EXECUTE ON FUNCTION closed(json) TO regress_tap_admin;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$, role => 'regress_tap_admin'), '42501', 'another owner, at registration');
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$), '42501', 'also when a superuser registers');
ALTER FUNCTION closed(json) OWNER TO regress_tap_deputy;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$, role => 'regress_tap_admin'), 'done', 'a member of the registrar');
SELECT is(pg_temp.answer($$claim('c', 'owner', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', '… may own it');
REVOKE regress_tap_admin FROM regress_tap_deputy;
SELECT is(pg_temp.answer($$claim('c', 'owner 2', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), '42501', 'a member no more');
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$), '42501', 'a superuser''s check needs a superuser''s function');
ALTER FUNCTION closed(json) OWNER TO CURRENT_USER;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.closed(json)'$$), 'done', 'as this one');
SELECT is(pg_temp.answer($$claim('c', 'owner 2', 'tool', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', 'whoever calls');
-- naming another member makes nobody else the registrar
CREATE FUNCTION registrar(input json) RETURNS text LANGUAGE sql AS $$ SELECT 'as ' || current_user $$;
SELECT is(pg_temp.policy($$input_check => 'regress_tap_policies.registrar(json)'$$), 'done', 'a superuser registers');
SELECT is(pg_temp.policy($$max_attempts => 5$$, role => 'regress_tap_admin'), 'done', 'an administrator sets something else');
SELECT is(pg_temp.answer($$claim('c', 'registrar', 'tool', '{}', lease => '1 min')$$), 'refused/invalid_input', 'called');
SELECT ok(detail::text LIKE '%as ' || session_user || '%', 'it still runs as the superuser') FROM tool_claims.evidence('c', 'registrar');

--
-- who may
--

SELECT is(pg_temp.policy('enabled => true', role => 'regress_tap_worker'), '42501', 'a worker sets no policy');
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$, 'regress_tap_worker'), '42501', 'nor drops one');
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$, 'regress_tap_admin'), 'done', 'an administrator does');

SELECT * FROM finish();
RESET search_path;
DROP SCHEMA regress_tap_policies CASCADE;
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_admin', 'regress_tap_deputy', 'regress_tap_mallory');
