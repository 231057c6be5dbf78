-- execute.sql: the one-call form, its errors, its handler.

\set organization tap_execute
\ir include/helpers.psql

SELECT plan(114);

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_other');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, 'worker')), 'done', role || ' is a worker')
FROM unnest(ARRAY['regress_tap_worker', 'regress_tap_other']) AS role;

DROP SCHEMA IF EXISTS regress_tap_execute CASCADE;
CREATE SCHEMA regress_tap_execute;
GRANT USAGE ON SCHEMA regress_tap_execute TO PUBLIC;
SET search_path = regress_tap_execute, public;
CREATE TABLE runs (who text DEFAULT current_user, input jsonb, task_id text, tool_call_id text);
GRANT SELECT, INSERT ON runs TO PUBLIC;

CREATE FUNCTION run(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
BEGIN
	INSERT INTO regress_tap_execute.runs (input, task_id, tool_call_id)
	SELECT run.input, c.task_id, c.tool_call_id FROM tool_claims.current_claim() AS c;
	RETURN '{ "done":  true }';
END
$$;
CREATE FUNCTION run_jsonb(input jsonb) RETURNS jsonb
LANGUAGE sql
AS $$ SELECT jsonb_build_object('n', input -> 'n', 'a', 1) $$;
CREATE FUNCTION run_null(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO regress_tap_execute.runs (input) VALUES (input); RETURN NULL; END $$;
CREATE FUNCTION run_raising(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
BEGIN
	INSERT INTO regress_tap_execute.runs (input) VALUES (input);
	IF input ? 'raise' THEN
		RAISE EXCEPTION 'the handler failed' USING ERRCODE = 'XX999';
	END IF;
	RETURN '"well"';
END
$$;

-- how an execute ends: its SQLSTATE, or the text of what it returns
CREATE FUNCTION pg_temp.execute(rest text, role text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	result text;
BEGIN
	IF role IS NOT NULL THEN
		PERFORM set_config('role', role, true);
	END IF;
	EXECUTE format('SELECT tool_claims.execute(%s)::text', rest) INTO result;
	IF role IS NOT NULL THEN
		PERFORM set_config('role', 'none', true);
	END IF;
	RETURN result;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;

--
-- claim, run, complete: once
--

SELECT is(tool_claims.execute('t', '1', 'tool', '{"n": 1}', 'run(jsonb)')::text, '{ "done":  true }', 'what the handler returned');
SELECT is((SELECT string_agg(concat_ws(', ', who, input, task_id, tool_call_id), '; ') FROM runs), current_user || ', {"n": 1}, t, 1',
	'it ran, and knew its claim');
SELECT is(tool_claims.execute('t', '1', 'tool', '{"n": 1.0}', 'run(jsonb)')::text, '{ "done":  true }', 'delivered again: the same bytes');
SELECT is(tool_claims.execute('t', '1', 'tool', '{"n": 1}', 'run_raising(jsonb)')::text, '{ "done":  true }', '… whatever the handler');
SELECT is((SELECT count(*)::integer FROM runs), 1, 'it ran once');
SELECT is((state, attempt, result, dispatched_at, lease_expires_at)::text, '(completed,1,"{ ""done"":  true }",,)', 'the record')
FROM tool_claims.status('t', '1');
SELECT is(result::text, '{ "done":  true }', 'claim gives the result too') FROM tool_claims.claim('t', '1', 'tool', '{"n": 1}');
SELECT is(pg_temp.execute($$'t', '2', 'tool', '{"n": 2.50}', 'run_jsonb(jsonb)'$$), '{"a": 1, "n": 2.5}', 'a handler may return jsonb');
SELECT is(pg_temp.execute($$'t', '2', 'tool', '{"n": 2.5}', 'run_jsonb(jsonb)'$$), '{"a": 1, "n": 2.5}', 'the same again');
TRUNCATE runs;
SELECT is(pg_temp.execute($$'t', '3', 'tool', '{}', 'run_null(jsonb)'$$), NULL, 'a handler may return nothing');
SELECT is(pg_temp.execute($$'t', '3', 'tool', '{}', 'run_null(jsonb)'$$), NULL, 'nothing again');
SELECT is((SELECT count(*)::integer FROM runs), 1, 'it ran once');
SELECT is(pg_temp.state('t', '3'), 'completed', 'and is completed');
SELECT is(pg_temp.execute($$'t', '4', 'tool', 'null', 'run_jsonb(jsonb)'$$), '{"a": 1, "n": null}', 'null is an input');
SELECT is(pg_temp.execute($$'t', '5', 'tool', '{"n": 5}', 'run_jsonb(jsonb)', tool_server => 's', operation_id => 'op'$$), '{"a": 1, "n": 5}',
	'with a server and an operation');
SELECT is((tool_server, operation_id, effect_key)::text, '(s,op,op)', 'which are stored') FROM tool_claims.status('t', '5');

-- an error of the handler is the call's, and nothing has happened
TRUNCATE runs;
SELECT is(pg_temp.execute($$'t', '6', 'tool', '{"raise": 1}', 'run_raising(jsonb)'$$), 'XX999', 'the handler''s error');
SELECT is(pg_temp.state('t', '6'), NULL, 'no record');
SELECT is((SELECT count(*)::integer FROM runs), 0, 'no write');
SELECT is(pg_temp.execute($$'t', '6', 'tool', '{}', 'run_raising(jsonb)'$$), '"well"', 'the key is free');
-- so does the transaction around
BEGIN;
SAVEPOINT s;
SELECT is(pg_temp.execute($$'t', '7', 'tool', '{}', 'run(jsonb)'$$), '{ "done":  true }', 'in a savepoint');
ROLLBACK TO s;
SELECT is(pg_temp.execute($$'t', '7', 'tool', '{}', 'run(jsonb)'$$), '{ "done":  true }', 'rolled back, it runs again');
SELECT is((SELECT count(*)::integer FROM runs WHERE tool_call_id = '7'), 1, 'and has run once');
SELECT is(pg_temp.execute($$'t', '7', 'tool', '{}', 'run(jsonb)'$$), '{ "done":  true }', 'in the same transaction again: stored');
ROLLBACK;

-- who calls is who entered, whatever the handler makes of itself
CALL pg_temp.make_roles('regress_tap_caller', 'regress_tap_entrant');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_caller', 'worker')$$), 'done', 'a worker');
GRANT regress_tap_entrant TO regress_tap_caller;
CREATE FUNCTION regress_tap_execute.become(input jsonb)
RETURNS jsonb
LANGUAGE plpgsql
AS $$
BEGIN
	PERFORM set_config('role', input ->> 'role', (input ->> 'local')::boolean);
	RETURN to_jsonb(current_user);
END
$$;
CREATE FUNCTION pg_temp.execute_as(who text, role text, local boolean)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	me text := session_user;
	result text;
	call text := concat_ws(' ', who, role, local);
BEGIN
	PERFORM set_config('session_authorization', who, true);
	result := tool_claims.execute('role', call, 'tool', json_build_object('role', role, 'local', local),
		'regress_tap_execute.become(jsonb)')::text;
	PERFORM set_config('role', 'none', false);
	PERFORM set_config('session_authorization', me, true);
	RETURN result || ' ' || pg_temp.state('role', call);
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
SELECT is(pg_temp.execute_as(who, role, local), format('"%s" completed', role), format('%s becomes %s, local: %s', who, role, local))
FROM (VALUES ('regress_tap_caller', 'regress_tap_entrant', true), ('regress_tap_caller', 'regress_tap_entrant', false)) AS t (who, role, local);
SELECT is(pg_temp.execute_as(current_user::text, 'regress_tap_entrant', true), '"regress_tap_entrant" completed', 'a superuser becomes less');
SELECT is((SELECT string_agg(DISTINCT held_by, ', ') FROM tool_claims.claims AS c WHERE c.task_id = 'role' AND c.tool_call_id LIKE 'regress_tap_caller%' AND c.held_by NOT LIKE 'regress_tap_caller%'),
	NULL, 'the holder is who entered');

--
-- what claim says in rows it raises
--

SELECT is(pg_temp.answer($$set_tool_policy('off', enabled => false)$$), 'done', 'a disabled tool');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$claim('s', 'leased', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	($$claim('s', 'expired', 'tool', '{"secret": "canary"}', lease => '1 microsecond')$$, 'acquired'),
	($$claim('s', 'failed', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	($$claim('s', 'released', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired')
) AS t (call, answer);
SELECT is(pg_temp.answer($$fail('s', 'failed', '{"why": "no  money"}', 1)$$), 'failed', 'one fails');
SELECT is(pg_temp.answer($$release('s', 'released', 1)$$), 'released', 'one is released');
CREATE TEMPORARY TABLE errors (name text, rest text, state text, detail text);
INSERT INTO errors (name, rest, state) VALUES
	('conflict', $$'t', '1', 'tool', '{"secret": "canary"}', 'run(jsonb)'$$, 'TC006'),
	('in progress', $$'s', 'leased', 'tool', '{"secret": "canary"}', 'run(jsonb)', wait => '0'$$, 'TC007'),
	('uncertain', $$'s', 'expired', 'tool', '{"secret": "canary"}', 'run(jsonb)'$$, 'TC008'),
	('failed', $$'s', 'failed', 'tool', '{"secret": "canary"}', 'run(jsonb)'$$, 'TC009'),
	('refused', $$'s', 'refused', 'off', '{"secret": "canary"}', 'run(jsonb)'$$, 'TC010');
UPDATE errors SET detail = pg_temp.error_detail(format('SELECT tool_claims.execute(%s)', rest));
SELECT is(pg_temp.execute(rest), state, name || ': ' || state) FROM errors;
SELECT ok(detail LIKE '%{"why": "no  money"}%', 'failed: DETAIL has the error') FROM errors WHERE name = 'failed';
SELECT ok(strpos(pg_temp.error_text(format('SELECT tool_claims.execute(%s)', rest)), word) > 0, format('%s: the error names "%s"', name, word))
FROM errors, unnest(CASE name WHEN 'conflict' THEN '{t,1,tool,input}'::text[] WHEN 'in progress' THEN '{s,leased,tool}'
	WHEN 'uncertain' THEN '{s,expired,tool,lease_expired}' WHEN 'failed' THEN '{s,failed,tool}'
	ELSE '{s,refused,off,tool_disabled}' END) AS word;
-- the context repeats the statement, as PostgreSQL does: that is the test's own
SELECT ok(strpos(replace(pg_temp.error_text(format('SELECT tool_claims.execute(%s)', rest)), rest, ''), 'canary') = 0,
	name || ': no input in the error')
FROM errors;
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('t', '1')), 0, 'a conflict that raises leaves no event');
SELECT is(pg_temp.execute($$'s', 'released', 'tool', '{"secret": "canary"}', 'run(jsonb)'$$), '{ "done":  true }', 'a released one is acquired');
SELECT is(attempt, 2, 'as attempt 2') FROM tool_claims.status('s', 'released');
SELECT pg_temp.clock(61);
SELECT is(pg_temp.execute($$'s', 'leased', 'tool', '{"secret": "canary"}', 'run(jsonb)'$$), 'TC008', 'a leased one is uncertain when its lease is over');
SELECT pg_temp.clock(0);

--
-- a pair that this transaction holds: TC007, also by recursion
--

BEGIN;
SELECT is(pg_temp.answer($$claim('r', 'held', 'tool', '{}')$$), 'acquired', 'held');
SELECT is(pg_temp.execute($$'r', 'held', 'tool', '{}', 'run(jsonb)'$$), 'TC007', 'not for execute');
SELECT is(pg_temp.execute($$'r', 'held', 'tool', '[]', 'run(jsonb)'$$), 'TC006', 'but other data is a conflict');
SELECT is(pg_temp.answer($$complete('r', 'held', '1')$$), 'completed', 'completed');
SELECT is(pg_temp.execute($$'r', 'held', 'tool', '{}', 'run(jsonb)'$$), '1', 'it answers');
ROLLBACK;
BEGIN;
SELECT is(pg_temp.answer($$claim('r', 'held', 'tool', '{}', lease => '1 min')$$), 'acquired', 'held with a lease');
SELECT is(pg_temp.execute($$'r', 'held', 'tool', '{}', 'run(jsonb)', wait => '1 min'$$), 'TC007', 'not for execute, and nobody waits');
ROLLBACK;
CREATE FUNCTION run_recursive(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$ BEGIN RETURN tool_claims.execute('r', 'recursive', 'tool', input, 'regress_tap_execute.run_recursive(jsonb)'); END $$;
SELECT is(pg_temp.execute($$'r', 'recursive', 'tool', '{}', 'run_recursive(jsonb)'$$), 'TC007', 'recursion');
SELECT is(pg_temp.state('r', 'recursive'), NULL, 'leaves nothing');
CREATE FUNCTION run_recursive_caught(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
BEGIN
	RETURN tool_claims.execute('r', 'caught', 'tool', input, 'regress_tap_execute.run_recursive_caught(jsonb)');
EXCEPTION WHEN SQLSTATE 'TC007' THEN
	RETURN '"caught"';
END
$$;
SELECT is(pg_temp.execute($$'r', 'caught', 'tool', '{}', 'run_recursive_caught(jsonb)'$$), '"caught"', 'caught in the handler');
SELECT is(pg_temp.execute($$'r', 'caught', 'tool', '{}', 'run_recursive_caught(jsonb)'$$), '"caught"', 'and stored');

--
-- one in another
--

CREATE FUNCTION run_outer(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
DECLARE
	before text;
	inside json;
	after text;
BEGIN
	SELECT tool_call_id INTO before FROM tool_claims.current_claim();
	inside := tool_claims.execute('n', input ->> 'inner', 'tool 2', input, 'regress_tap_execute.run_inner(jsonb)');
	SELECT tool_call_id INTO after FROM tool_claims.current_claim();
	RETURN json_build_array(before, inside, after);
END
$$;
CREATE FUNCTION run_inner(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
BEGIN
	IF input ? 'raise' THEN
		RAISE EXCEPTION 'inner';
	END IF;
	RETURN (SELECT json_build_array(tool_call_id, tool_name) FROM tool_claims.current_claim());
END
$$;
SELECT is(pg_temp.execute($$'n', 'outer', 'tool', '{"inner": "inner"}', 'run_outer(jsonb)'$$),
	'["outer", ["inner", "tool 2"], "outer"]', 'each knows its own claim');
SELECT is(pg_temp.state('n', 'inner') || ' ' || pg_temp.state('n', 'outer'), 'completed completed', 'both are completed');
SELECT is(pg_temp.execute($$'n', 'outer 2', 'tool', '{"inner": "inner", "n": 2}', 'run_outer(jsonb)'$$), 'TC006', 'the inner''s conflict is the outer''s error');
SELECT is(pg_temp.state('n', 'outer 2'), NULL, 'and leaves nothing');
SELECT is(pg_temp.execute($$'n', 'outer 3', 'tool', '{"inner": "inner 3", "raise": 1}', 'run_outer(jsonb)'$$), 'P0001', 'the inner''s error too');
SELECT is(pg_temp.state('n', 'inner 3'), NULL, 'and leaves nothing');

-- a handler that ends its own claim otherwise
CREATE FUNCTION run_failing(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$ BEGIN PERFORM * FROM tool_claims.fail('n', 'failing', '{"no": 1}'); RETURN '1'; END $$;
SELECT is(left(pg_temp.execute($$'n', 'failing', 'tool', '{}', 'run_failing(jsonb)'$$), 2), 'TC', 'cannot also complete it');
SELECT is(pg_temp.state('n', 'failing'), NULL, 'and leaves nothing');

--
-- the handler
--

CREATE FUNCTION run_json(input json) RETURNS json LANGUAGE sql AS $$ SELECT input $$;
CREATE FUNCTION run_text(input jsonb) RETURNS text LANGUAGE sql AS $$ SELECT input::text $$;
CREATE FUNCTION run_set(input jsonb) RETURNS SETOF json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE FUNCTION run_two(input jsonb, b integer) RETURNS json LANGUAGE sql AS $$ SELECT '1'::json $$;
CREATE PROCEDURE run_procedure(input jsonb) LANGUAGE sql AS $$ SELECT 1 $$;
SELECT is(pg_temp.execute(format($$'h', 'c', 'tool', '{}', %L$$, f)), state, f)
FROM (VALUES
	('run_json(json)', '22023'),
	('run_text(jsonb)', '22023'),
	('run_set(jsonb)', '22023'),
	('run_two(jsonb,integer)', '22023'),
	('run_procedure(jsonb)', '22023'),
	('no_such(jsonb)', '42883'),
	('jsonb_agg(anyelement)', '22023')
) AS t (f, state);
SELECT is(pg_temp.execute(format($$'h', 'c', 'tool', '{}', %s$$, 4294967295)), '42883', 'a function that is not there');
SELECT is(pg_temp.state('h', 'c'), NULL, 'nothing is left');

-- runs as the caller, who needs EXECUTE
TRUNCATE runs;
SELECT is(pg_temp.execute($$'h', 'as', 'tool', '{}', 'regress_tap_execute.run(jsonb)'$$, 'regress_tap_worker'), '{ "done":  true }', 'a worker');
SELECT is((SELECT who FROM runs), 'regress_tap_worker', 'the handler runs as he');
REVOKE EXECUTE ON FUNCTION run(jsonb) FROM PUBLIC;
SELECT is(pg_temp.execute($$'h', 'as 2', 'tool', '{}', 'regress_tap_execute.run(jsonb)'$$, 'regress_tap_worker'), '42501', 'without EXECUTE');
SELECT is(pg_temp.state('h', 'as 2'), NULL, 'nothing');
GRANT EXECUTE ON FUNCTION run(jsonb) TO regress_tap_worker;
SELECT is(pg_temp.execute($$'h', 'as 2', 'tool', '{}', 'regress_tap_execute.run(jsonb)'$$, 'regress_tap_worker'), '{ "done":  true }', 'with it');
CREATE FUNCTION run_definer(input jsonb) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ BEGIN RETURN to_json(current_user::text); END $$;
SELECT is(pg_temp.execute($$'h', 'definer', 'tool', '{}', 'regress_tap_execute.run_definer(jsonb)'$$, 'regress_tap_worker'),
	to_json(session_user::text)::text, 'a SECURITY DEFINER handler is what it is');
SELECT is((held_by LIKE 'regress_tap_worker%')::text, 'true', 'the worker holds') FROM tool_claims.status('h', 'definer');
-- the handler's own rights are not more than the caller's
CREATE FUNCTION run_reading(input jsonb) RETURNS json LANGUAGE sql AS $$ SELECT to_json(count(*)) FROM tool_claims.claim_records $$;
SELECT is(pg_temp.execute($$'h', 'reading', 'tool', '{}', 'regress_tap_execute.run_reading(jsonb)'$$, 'regress_tap_worker'), '42501', 'not the tables');

-- an input that is no jsonb
SELECT is(pg_temp.execute($$'h', 'number', 'tool', '{"n": 1e200000}', 'run_null(jsonb)'$$), '22003', 'a number beyond numeric');
SELECT is(pg_temp.state('h', 'number'), NULL, 'before the handler ran');

-- the settings of the handler, search_path too, are the caller's
CREATE FUNCTION run_path(input jsonb) RETURNS json LANGUAGE sql AS $$ SELECT to_json(current_setting('search_path')) $$;
SELECT is(pg_temp.execute($$'h', 'path', 'tool', '{}', 'run_path(jsonb)'$$), '"regress_tap_execute, public"', 'the caller''s search_path');

-- what was pruned is refused
SELECT is(pg_temp.answer($$prune('0 s')$$), 'done', 'pruned');
SELECT is(pg_temp.execute($$'t', '1', 'tool', '{"n": 1}', 'run_jsonb(jsonb)'$$), 'TC010', 'a retired key');

-- from a trigger, a function, over many rows
CREATE TABLE queue (n integer, result json);
CREATE FUNCTION run_queue() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	NEW.result := tool_claims.execute('q', NEW.n::text, 'tool', json_build_object('n', NEW.n), 'regress_tap_execute.run_jsonb(jsonb)');
	RETURN NEW;
END
$$;
CREATE TRIGGER run_queue BEFORE INSERT ON queue FOR EACH ROW EXECUTE FUNCTION run_queue();
INSERT INTO queue SELECT n FROM generate_series(1, 100) AS n;
SELECT is((SELECT count(*)::integer FROM queue WHERE result::text = format('{"a": 1, "n": %s}', n)), 100, 'a hundred in a trigger');
SELECT is((SELECT count(*)::integer FROM tool_claims.claims WHERE task_id = 'q' AND state = 'completed'), 100, 'a hundred records');

SELECT * FROM finish();
RESET search_path;
DROP SCHEMA regress_tap_execute CASCADE;
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_other', 'regress_tap_caller', 'regress_tap_entrant');
