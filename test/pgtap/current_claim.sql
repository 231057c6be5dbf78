-- current_claim.sql: current_claim and require_claim, at the business table.

\set organization tap_current_claim
\ir include/helpers.psql

SELECT plan(61);

DROP SCHEMA IF EXISTS regress_tap_current_claim CASCADE;
CREATE SCHEMA regress_tap_current_claim;
SET search_path = regress_tap_current_claim, public;
CREATE TABLE refunds (task_id text, tool_call_id text, cents integer);
CREATE FUNCTION need_claim() RETURNS trigger
LANGUAGE plpgsql
AS $$
BEGIN
	SELECT c.task_id, c.tool_call_id INTO NEW.task_id, NEW.tool_call_id FROM tool_claims.require_claim('refund') AS c;
	RETURN NEW;
END
$$;
CREATE TRIGGER need_claim BEFORE INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION need_claim();

-- the pair of the current claim
CREATE FUNCTION pg_temp.pair()
RETURNS text
LANGUAGE sql
AS $$ SELECT c.task_id || ' ' || c.tool_call_id FROM tool_claims.current_claim() AS c $$;
CREATE FUNCTION pg_temp.insert()
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.state_of('INSERT INTO refunds (cents) VALUES (1)') $$;

SELECT is_empty('SELECT * FROM tool_claims.current_claim()', 'no claim');
SELECT is(pg_temp.answer($$require_claim('refund')$$), 'TC010', 'require_claim raises');
SELECT is(pg_temp.insert(), 'TC010', 'so does the trigger');

-- acquired: the last one, until it is failed or released
BEGIN;
SELECT is(pg_temp.answer($$claim('t', '1', 'refund', '{"cents": 1}')$$), 'acquired', 'claimed');
SELECT is((organization, task_id, tool_call_id, tool_server, tool_name, state, attempt)::text,
	format('(%s,t,1,"",refund,claimed,1)', :'organization'), 'it is current')
FROM tool_claims.current_claim();
SELECT is((task_id, tool_call_id, effect_key IS NOT NULL)::text, '(t,1,t)', 'require_claim returns it') FROM tool_claims.require_claim('refund');
SELECT is(pg_temp.insert(), 'done', 'the business write passes');
SELECT is(pg_temp.answer($$require_claim('mail')$$), 'TC010', 'not for another tool');
SELECT is(pg_temp.answer($$require_claim('refund', 's')$$), 'TC010', 'not for another server');
SELECT is(pg_temp.answer($$claim('t', '2', 'mail', '{}')$$), 'acquired', 'another is claimed');
SELECT is(pg_temp.pair(), 't 2', 'it is current');
SELECT is(pg_temp.insert(), 'TC010', 'the write does not pass');
SELECT is(pg_temp.answer($$release('t', '2')$$), 'released', 'it is released');
SELECT is(pg_temp.pair(), 't 1', 'the one before is current');
SELECT is(pg_temp.answer($$claim('t', '3', 'mail', '{}')$$), 'acquired', 'another is claimed');
SELECT is(pg_temp.answer($$fail('t', '3', '1')$$), 'failed', 'and failed');
SELECT is(pg_temp.pair(), 't 1', 'the one before is current');
SELECT is(pg_temp.answer($$complete('t', '1', '1')$$), 'completed', 'it is completed');
SELECT is(pg_temp.pair(), 't 1', 'and still current');
SELECT is(pg_temp.insert(), 'done', 'the write passes');
COMMIT;
SELECT is(pg_temp.pair(), NULL, 'not in the next transaction');
SELECT is(pg_temp.insert(), 'TC010', 'where the write does not pass');
SELECT results_eq('SELECT task_id, tool_call_id FROM refunds', $$VALUES ('t', '1'), ('t', '1')$$, 'the rows name their claim');

-- savepoints
BEGIN;
SELECT is(pg_temp.answer($$claim('s', '1', 'refund', '{}')$$), 'acquired', 'claimed');
SAVEPOINT s;
SELECT is(pg_temp.answer($$claim('s', '2', 'refund', '{}')$$), 'acquired', 'another, in a savepoint');
SELECT is(pg_temp.pair(), 's 2', 'it is current');
ROLLBACK TO s;
SELECT is(pg_temp.pair(), 's 1', 'rolled back, the first is');
SELECT is(pg_temp.answer($$release('s', '1')$$), 'released', 'it is released');
SELECT is(pg_temp.pair(), NULL, 'none is current');
SELECT is(pg_temp.insert(), 'TC010', 'the write does not pass');
ROLLBACK TO s;
SELECT is(pg_temp.pair(), 's 1', 'the release is rolled back');
ROLLBACK;

-- asserted
SELECT is(pg_temp.answer($$claim('a', '1', 'refund', '{}', lease => '1 min')$$), 'acquired', 'a leased claim, committed');
SELECT is(pg_temp.pair(), NULL, 'is not current in the next transaction');
SELECT is(pg_temp.insert(), 'TC010', 'where the write does not pass');
BEGIN;
SELECT is(pg_temp.answer($$assert_claim('a', '1', 1)$$), 'done', 'until it is asserted');
SELECT is(pg_temp.pair(), 'a 1', 'then it is current');
SELECT is(pg_temp.insert(), 'done', 'and the write passes');
SELECT is(pg_temp.answer($$complete('a', '1', '1', 1)$$), 'completed', 'completed');
SELECT is(pg_temp.pair(), 'a 1', 'and still current');
COMMIT;
SELECT is(pg_temp.pair(), NULL, 'not in the next transaction');
BEGIN;
SELECT is(pg_temp.answer($$claim('a', '2', 'refund', '{}', lease => '1 min')$$), 'acquired', 'a leased claim');
SELECT is(pg_temp.pair(), 'a 2', 'is current in its own transaction');
COMMIT;
BEGIN;
SELECT is(pg_temp.answer($$assert_claim('a', '2', 2)$$), 'TC002', 'a stale assertion');
SELECT is(pg_temp.pair(), NULL, 'makes nothing current');
SELECT is(pg_temp.answer($$renew('a', '2', 1, '1 min')$$), 'acquired', 'nor does a renewal');
SELECT is(pg_temp.pair(), NULL, 'none is current');
COMMIT;

-- an answer is no claim
BEGIN;
SELECT is(pg_temp.answer($$claim('t', '1', 'refund', '{"cents": 1}')$$), 'completed', 'a stored answer');
SELECT is(pg_temp.pair(), NULL, 'makes nothing current');
SELECT is(pg_temp.answer($$claim('a', '2', 'refund', '{}')$$), 'in_progress', 'nor does one in progress');
SELECT is(pg_temp.insert(), 'TC010', 'the write does not pass');
COMMIT;

-- execute: the innermost, and none afterwards
CREATE FUNCTION refund(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO regress_tap_current_claim.refunds (cents) VALUES (7); RETURN to_json(pg_temp.pair()); END $$;
CREATE FUNCTION mail(input jsonb) RETURNS json
LANGUAGE plpgsql
AS $$
BEGIN
	IF input ? 'refund' THEN
		PERFORM tool_claims.execute('x', 'inner', 'refund', input, 'regress_tap_current_claim.refund(jsonb)');
	END IF;
	INSERT INTO regress_tap_current_claim.refunds (cents) VALUES (8);
	RETURN '1';
END
$$;
SELECT is(tool_claims.execute('x', '1', 'refund', '{}', 'refund(jsonb)')::text, '"x 1"', 'in its handler');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('x', '2', 'mail', '{}', 'mail(jsonb)')$$), 'TC010', 'not in another tool''s');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('x', '3', 'mail', '{"refund": 1}', 'mail(jsonb)')$$), 'TC010', 'nor after an inner one');
BEGIN;
SELECT is(pg_temp.answer($$claim('x', '4', 'mail', '{}')$$), 'acquired', 'a claim');
SELECT is(tool_claims.execute('x', '5', 'refund', '{}', 'refund(jsonb)')::text, '"x 5"', 'an execute beside it');
SELECT is(pg_temp.answer($$complete('x', '4', '1')$$), 'completed', 'the claim is completed');
COMMIT;
SELECT is((SELECT string_agg(tool_call_id, ' ' ORDER BY tool_call_id) FROM refunds WHERE cents = 7), '1 5', 'the rows name their claims');

-- the organization is part of it
BEGIN;
SELECT is(pg_temp.answer($$claim('o', '1', 'refund', '{}')$$), 'acquired', 'claimed');
SET LOCAL tool_claims.organization = 'tap_current_claim_2';
SELECT is(pg_temp.pair(), NULL, 'not current in another organization');
SELECT is(pg_temp.insert(), 'TC010', 'where the write does not pass');
ROLLBACK;

SELECT ok(pg_temp.error_text($$SELECT * FROM tool_claims.require_claim('refund', 's')$$) LIKE '%refund%', 'the error names the tool');

SELECT * FROM finish();
RESET search_path;
DROP SCHEMA regress_tap_current_claim CASCADE;
CALL pg_temp.forget();
