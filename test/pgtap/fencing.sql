-- fencing.sql: attempts, holders, the order of checks, repeated verbs.

\set organization tap_fencing
\ir include/helpers.psql

SELECT plan(269);

CALL pg_temp.make_roles('regress_tap_a', 'regress_tap_b', 'regress_tap_a_member', 'regress_tap_reconciler');
GRANT regress_tap_a TO regress_tap_a_member;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', role || ' is a ' || duty)
FROM (VALUES
	('regress_tap_a', 'worker'),
	('regress_tap_b', 'worker'),
	('regress_tap_a_member', 'worker'),
	('regress_tap_reconciler', 'reconciler')
) AS t (role, duty);

-- the verbs of a holder, N standing for the attempt
CREATE TEMPORARY TABLE verbs (verb text, call text);
INSERT INTO verbs VALUES
	('dispatch', $$dispatch(K, N)$$),
	('renew', $$renew(K, N, '1 min')$$),
	('complete', $$complete(K, '1', N)$$),
	('fail', $$fail(K, '1', N)$$),
	('release', $$release(K, N)$$),
	('mark_uncertain', $$mark_uncertain(K, N, 'lost')$$),
	('assert_claim', $$assert_claim(K, N)$$);
CREATE FUNCTION pg_temp.verb_call(call text, key text, attempt text)
RETURNS text
LANGUAGE sql
AS $$ SELECT replace(replace(call, 'K', key), 'N', attempt) $$;

--
-- a stale attempt, and one that never was
--

SELECT is(pg_temp.answer($$claim('f', 'stale', 'tool', '{}', lease => '1 min')$$), 'acquired', 'attempt 1');
SELECT is(pg_temp.answer($$release('f', 'stale', 1)$$), 'released', '… ends');
SELECT is(attempt, 2, 'attempt 2') FROM tool_claims.claim('f', 'stale', 'tool', '{}', lease => '1 min');
CREATE TEMPORARY TABLE before AS SELECT pg_temp.image('f', 'stale');
SELECT is(pg_temp.answer(pg_temp.verb_call(call, $$'f', 'stale'$$, n)), 'TC002', verb || ' with attempt ' || n)
FROM verbs, unnest(ARRAY['1', '3', '0', '-1', '2147483647']) AS n;
SELECT is(pg_temp.answer(format($$reconcile('f', 'stale', %s, 'occurred', '{"by": 1}')$$, n)), 'TC002', 'reconcile with attempt ' || n)
FROM unnest(ARRAY['1', '3', '0', '-1']) AS n;
SELECT is(pg_temp.answer(format($$report_late('f', 'stale', %s, '1')$$, n)), answer, 'report_late with attempt ' || n)
FROM (VALUES (1, 'done'), (2, 'done'), (3, 'TC002'), (0, 'TC002'), (-1, 'TC002')) AS t (n, answer);
SELECT results_eq($$SELECT pg_temp.image('f', 'stale')$$, 'TABLE before', 'nothing of it was written');

-- business writes roll back with the stale verb
CREATE TEMPORARY TABLE business (n integer);
SELECT is(pg_temp.state_of($$
	WITH w AS (INSERT INTO business VALUES (1) RETURNING n)
	SELECT w.n, r.outcome FROM w, tool_claims.complete('f', 'stale', '1', 1) AS r$$), 'TC002', 'a stale complete raises');
SELECT is_empty('TABLE business', 'and takes the business write with it');
BEGIN;
SELECT is(pg_temp.answer($$assert_claim('f', 'stale', 2)$$), 'done', 'the current attempt is asserted');
INSERT INTO business VALUES (2);
SELECT is(pg_temp.answer($$complete('f', 'stale', '1', 2)$$), 'completed', 'and completed');
COMMIT;
SELECT results_eq('TABLE business', 'VALUES (2)', 'and its write stays');

--
-- attempts grow with every acquisition, the effect key stays
--

SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');
CREATE TEMPORARY TABLE attempts (n integer, answer text, attempt integer, effect_key text);
CREATE PROCEDURE pg_temp.acquire(how text)
LANGUAGE plpgsql
AS $$
BEGIN
	INSERT INTO attempts
	SELECT (SELECT count(*) + 1 FROM attempts), concat_ws('/', outcome, reason), attempt, effect_key
	FROM tool_claims.claim('f', 'grows', 'safe', '{}', lease => '1 min', dispatched => how <> 'undispatched');
	COMMIT;
END
$$;
CALL pg_temp.acquire('first');
SELECT is(pg_temp.answer($$release('f', 'grows', 1)$$), 'released', 'the first is released');
CALL pg_temp.acquire('retry');
SELECT pg_temp.clock(61);
CALL pg_temp.acquire('undispatched');
SELECT pg_temp.clock(122);
CALL pg_temp.acquire('takeover');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer($$mark_uncertain('f', 'grows', 4, 'lost')$$), 'uncertain/reported', 'the fourth is uncertain');
SELECT is(pg_temp.answer($$reconcile('f', 'grows', 4, 'not_occurred', '{"by": 1}')$$), 'released', '… and did not occur');
CALL pg_temp.acquire('retry');
SELECT is(pg_temp.answer($$release('f', 'grows', 5, 'wrong account', new_effect_key => true)$$), 'released',
	'the fifth is released for another effect');
CALL pg_temp.acquire('retry');
SELECT is(pg_temp.answer($$mark_uncertain('f', 'grows', 6, 'lost')$$), 'uncertain/reported', 'the sixth is uncertain');
SELECT is(pg_temp.answer($$reconcile('f', 'grows', 6, 'not_occurred', '{"by": 1}', new_effect_key => true)$$), 'released',
	'… and did not occur, the next is another effect');
CALL pg_temp.acquire('retry');
SELECT results_eq('SELECT answer, attempt FROM attempts ORDER BY n',
	$$VALUES ('acquired', 1), ('acquired/retry', 2), ('acquired/takeover', 3), ('acquired/takeover', 4),
		('acquired/retry', 5), ('acquired/retry', 6), ('acquired/retry', 7)$$,
	'each acquisition has the next number');
CREATE FUNCTION pg_temp.derived_key(call text, generation integer)
RETURNS text
LANGUAGE sql
AS $$
	SELECT 'tc1-' || tool_claims.digest(json_build_array('tool_claims effect key',
		current_setting('tool_claims.organization'), 'f', call, generation))::text
$$;
SELECT is(effect_key, pg_temp.derived_key('grows', CASE WHEN n > 6 THEN 6 WHEN n > 5 THEN 5 ELSE 0 END),
	'effect key of attempt ' || n)
FROM attempts ORDER BY n;
SELECT is((effect_key, attempt)::text, (SELECT (effect_key, attempt)::text FROM attempts WHERE n = 7), 'status shows it')
FROM tool_claims.status('f', 'grows');
SELECT is(pg_temp.answer($$claim('f', 'again', 'tool', '{}', lease => '1 min')$$), 'acquired', 'another');
SELECT is(pg_temp.answer($$release('f', 'again', 1, new_effect_key => true)$$), 'released', 'released for another effect');
SELECT is(pg_temp.answer($$release('f', 'again', 1, new_effect_key => true)$$), 'released', '… said again');
SELECT is(pg_temp.answer($$release('f', 'again', 1)$$), 'TC003', '… not said otherwise');
SELECT is(effect_key, pg_temp.derived_key('again', 1), 'the next has the new key')
FROM tool_claims.claim('f', 'again', 'tool', '{}', lease => '1 min');
-- an attempt that ended with its lease has kept its key: that is settled
SELECT is(pg_temp.answer($$claim('f', 'ended', 'safe', '{}', lease => '1 microsecond')$$), 'acquired', 'an attempt that ends with its lease');
SELECT is(pg_temp.answer($$release('f', 'ended', 1, new_effect_key => true)$$), 'TC003', 'not for another effect');
SELECT is(pg_temp.answer($$release('f', 'ended', 1)$$), 'released', 'as it is');
SELECT is(pg_temp.answer($$release('f', 'ended', 1, new_effect_key => true)$$), 'TC003', '… and still not');
SELECT is(pg_temp.answer($$claim('f', 'idle', 'tool', '{}', lease => '1 microsecond', dispatched => false)$$), 'acquired', 'one that was not dispatched');
SELECT is(pg_temp.answer($$release('f', 'idle', 1, new_effect_key => true)$$), 'TC003', 'neither');
SELECT cmp_ok(tool_claims.sweep(), '>=', 2, 'written down');
SELECT is(pg_temp.answer(format('release(''f'', %L, 1, new_effect_key => true)', call)), 'TC003', call || ': it stays so')
FROM unnest(ARRAY['ended', 'idle']) AS call;
SELECT is(effect_key, pg_temp.derived_key(call, 0), call || ': the next has the same key')
FROM (VALUES ('ended', 'safe'), ('idle', 'tool')) AS t (call, tool), tool_claims.claim('f', call, tool, '{}', lease => '1 min');

--
-- no attempt given: only for a claim of this very transaction
--

SELECT is(pg_temp.answer($$claim('f', 'null', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a committed claim');
SELECT is(pg_temp.answer($$complete('f', 'null', '1')$$), 'TC002', 'complete without an attempt');
SELECT is(pg_temp.answer($$fail('f', 'null', '1')$$), 'TC002', 'fail without an attempt');
SELECT is(pg_temp.answer($$release('f', 'null')$$), 'TC002', 'release without an attempt');
SELECT is(pg_temp.answer($$complete('f', 'null', '1', 1)$$), 'completed', 'completed with it');
SELECT is(pg_temp.answer($$complete('f', 'null', '1')$$), 'TC002', 'without it again, the same bytes');
SELECT is(pg_temp.answer($$complete('f', 'none', '1')$$), 'TC001', 'no such record');
BEGIN;
SELECT is(pg_temp.answer($$claim('f', 'own', 'tool', '{}')$$), 'acquired', 'a transactional claim');
SELECT is(pg_temp.answer($$complete('f', 'own', '1')$$), 'completed', 'completes without an attempt');
SELECT is(pg_temp.answer($$complete('f', 'own', '1')$$), 'completed', '… again');
SELECT is(pg_temp.answer($$complete('f', 'own', '2')$$), 'TC005', '… not otherwise');
COMMIT;
SELECT is(pg_temp.answer($$complete('f', 'own', '1')$$), 'TC002', 'in the next transaction it needs the attempt');
SELECT is(pg_temp.answer($$complete('f', 'own', '1', 1)$$), 'completed', '… and repeats with it');
BEGIN;
SELECT is(pg_temp.answer($$claim('f', 'own 2', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a leased claim');
SELECT is(pg_temp.answer($$complete('f', 'own 2', '1')$$), 'TC003', 'cannot complete in its transaction');
SELECT is(pg_temp.answer($$fail('f', 'own 2', '1')$$), 'failed', 'but fail, without an attempt');
ROLLBACK;
BEGIN;
SELECT is(pg_temp.answer($$claim('f', 'own 3', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a leased claim');
SELECT is(pg_temp.answer($$release('f', 'own 3')$$), 'released', 'or be released');
COMMIT;
-- what one savepoint acquired, the whole transaction holds; rolled back, it is not held
BEGIN;
SAVEPOINT s;
SELECT is(pg_temp.answer($$claim('f', 'own 4', 'tool', '{}')$$), 'acquired', 'in a savepoint');
RELEASE s;
SELECT is(pg_temp.answer($$complete('f', 'own 4', '1')$$), 'completed', 'completed after its release');
ROLLBACK;
SELECT is(pg_temp.answer($$claim('f', 'own 5', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a leased claim');
BEGIN;
SELECT is(pg_temp.answer($$release('f', 'own 5', 1)$$), 'released', 'released');
SAVEPOINT s;
SELECT is(pg_temp.answer($$claim('f', 'own 5', 'tool', '{}')$$), 'acquired/retry', 'acquired again in a savepoint');
ROLLBACK TO s;
SELECT is(pg_temp.answer($$complete('f', 'own 5', '1')$$), 'TC002', 'which is rolled back: it is not held');
COMMIT;

--
-- holders
--

SELECT is(pg_temp.answer(format($$claim('h', %L, 'tool', '{}', lease => '1 min')$$, verb), 'regress_tap_a'),
	'acquired', 'A claims for ' || verb)
FROM verbs;
SELECT is(pg_temp.answer(pg_temp.verb_call(call, format('%L, %L', 'h', verb), '1'), 'regress_tap_b'), '42501', 'not B: ' || verb)
FROM verbs;
SELECT is(pg_temp.answer(pg_temp.verb_call(call, format('%L, %L', 'h', verb), '1'), 'regress_tap_a_member'), answer,
	'a member of A: ' || verb)
FROM verbs JOIN (VALUES
	('dispatch', 'acquired'), ('renew', 'acquired'), ('complete', 'completed'), ('fail', 'failed'),
	('release', 'released'), ('mark_uncertain', 'uncertain/reported'), ('assert_claim', 'done')) AS t (verb, answer) USING (verb);
SELECT is(pg_temp.answer($$report_late('h', 'complete', 1, '1')$$, 'regress_tap_b'), 'done', 'anybody may report late');
SELECT is(pg_temp.answer($$claim('h', 'complete', 'tool', '{}')$$, 'regress_tap_b'), 'completed', 'anybody gets the result');
SELECT is((attempt, effect_key)::text, '(,)', 'but neither attempt nor effect key, not even the holder')
FROM tool_claims.claim('h', 'complete', 'tool', '{}');
SELECT is(pg_temp.answer($$claim('h', 'marked', 'tool', '{}', lease => '1 min')$$, 'regress_tap_a'), 'acquired', 'A claims');
SELECT is(pg_temp.answer($$mark_uncertain('h', 'marked', 2, 'lost')$$, 'regress_tap_reconciler'), 'TC002',
	'a reconciler needs the current attempt');
SELECT is(pg_temp.answer($$mark_uncertain('h', 'marked', 1, 'lost')$$, 'regress_tap_reconciler'), 'uncertain/reported',
	'and then marks a claim uncertain that is not his');
SELECT is(pg_temp.answer($$complete('h', 'marked', '1', 1)$$, 'regress_tap_b'), '42501', 'B cannot answer for A');
SELECT is(pg_temp.answer($$complete('h', 'marked', '1', 1)$$, 'regress_tap_a'), 'completed', 'A may, late');
-- the role that counts is the effective one; the session user stands beside it
SELECT is((held_by LIKE 'regress_tap_a%', strpos(held_by, session_user) > 0)::text, '(t,t)', 'held_by: role and session user')
FROM tool_claims.status('h', 'assert_claim');
-- the holder is who acquired last
SELECT is(pg_temp.answer($$claim('h', 'release', 'tool', '{}', lease => '1 min')$$, 'regress_tap_b'), 'acquired/retry', 'B acquires');
SELECT is(pg_temp.answer($$release('h', 'release', 2)$$, 'regress_tap_a'), '42501', 'A does not hold it any more');
SELECT is(pg_temp.answer($$release('h', 'release', 1)$$, 'regress_tap_a'), 'TC002', 'nor with its old attempt');

-- what a reconciler's verbs return is not for a holder
SET ROLE regress_tap_b;
SELECT (outcome, attempt, effect_key IS NOT NULL)::text AS claimed
FROM tool_claims.claim('h', 'told', 'tool', '{}', lease => '1 min') \gset
SET ROLE regress_tap_reconciler;
SELECT (outcome, attempt, effect_key)::text AS marked FROM tool_claims.mark_uncertain('h', 'told', 1, 'lost') \gset
SELECT (outcome, attempt, effect_key)::text AS reconciled
FROM tool_claims.reconcile('h', 'told', 1, 'occurred', '{"by": 1}') \gset
RESET ROLE;
SELECT is(:'claimed'::text, '(acquired,1,t)', 'the holder gets attempt and effect key');
SELECT is(:'marked'::text, '(uncertain,,)', 'a reconciler neither when it marks');
SELECT is(:'reconciled'::text, '(completed,,)', '… nor when it reconciles');
-- in a SECURITY DEFINER function the effective role is its owner
CREATE FUNCTION public.regress_tap_definer(call text) RETURNS text
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$ SELECT outcome FROM tool_claims.claim('h', call, 'tool', '{}', lease => '1 min') $$;
ALTER FUNCTION public.regress_tap_definer(text) OWNER TO regress_tap_a;
SET ROLE regress_tap_b;
SELECT public.regress_tap_definer('definer') AS answer \gset
RESET ROLE;
SELECT is(:'answer'::text, 'acquired', 'A''s function claims for B');
SELECT ok(starts_with(held_by, 'regress_tap_a'), 'A holds it') FROM tool_claims.status('h', 'definer');
SELECT is(pg_temp.answer($$complete('h', 'definer', '1', 1)$$, 'regress_tap_b'), '42501', 'B does not hold it');
SELECT is(pg_temp.answer($$complete('h', 'definer', '1', 1)$$, 'regress_tap_a'), 'completed', 'A does');
DROP FUNCTION public.regress_tap_definer(text);
-- a role that is gone
CALL pg_temp.make_roles('regress_tap_gone');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_gone', 'worker')$$), 'done', 'a worker');
SELECT is(pg_temp.answer(format($$claim('h', %L, 'tool', '{}', lease => '1 min')$$, call), 'regress_tap_gone'), 'acquired', 'claims: ' || call)
FROM unnest(ARRAY['gone', 'gone 2']) AS call;
CALL pg_temp.drop_roles('regress_tap_gone');
SELECT is(pg_temp.answer($$complete('h', 'gone', '1', 1)$$, 'regress_tap_a'), '42501', 'and is gone: nobody inherits');
SELECT is(pg_temp.answer($$mark_uncertain('h', 'gone', 1, 'gone')$$, 'regress_tap_reconciler'), 'uncertain/reported', 'a reconciler can end it');
SELECT is(pg_temp.answer($$complete('h', 'gone 2', '1', 1)$$), 'completed', 'and a superuser');

--
-- the order of checks: arguments, TC001, TC002, 42501, TC003
--

SELECT is(pg_temp.answer($$claim('o', 'c', 'tool', '{}', lease => '1 min')$$, 'regress_tap_a'), 'acquired', 'A claims');
SELECT is(pg_temp.answer($$complete('o', 'c', '1', 1)$$, 'regress_tap_a'), 'completed', '… and completes');
SELECT is(pg_temp.answer(call, role), answer, role || ': ' || call)
FROM (VALUES
	('regress_tap_b', $$dispatch('', 'none', 9)$$, '22023'),
	('regress_tap_b', $$renew('o', 'none', 9, '-1 s')$$, '22023'),
	('regress_tap_b', $$renew('o', 'none', NULL, '1 s')$$, '22004'),
	('regress_tap_b', $$dispatch('o', 'none', 9)$$, 'TC001'),
	('regress_tap_b', $$dispatch('o', 'c', 9)$$, 'TC002'),
	('regress_tap_b', $$dispatch('o', 'c', 1)$$, '42501'),
	('regress_tap_b', $$complete('o', 'c', '1', 1)$$, '42501'),
	('regress_tap_b', $$complete('o', 'c', '2', 1)$$, '42501'),
	('regress_tap_b', $$fail('o', 'c', '1', 1)$$, '42501'),
	('regress_tap_b', $$complete('o', 'c', '1')$$, 'TC002'),
	('regress_tap_a', $$dispatch('o', 'c', 1)$$, 'TC003'),
	('regress_tap_a', $$complete('o', 'c', '2', 1)$$, 'TC005'),
	('regress_tap_reconciler', $$reconcile('o', 'none', 9, 'occurred', '{}')$$, '22023'),
	('regress_tap_reconciler', $$reconcile('o', 'none', 9, 'occurred', '{"by": 1}')$$, 'TC001'),
	('regress_tap_reconciler', $$reconcile('o', 'c', 9, 'occurred', '{"by": 1}')$$, 'TC002'),
	('regress_tap_reconciler', $$reconcile('o', 'c', 1, 'occurred', '{"by": 1}')$$, 'TC003')
) AS t (role, call, answer);

--
-- a final verb said again
--

SELECT is(pg_temp.answer(format($$claim('r', %L, 'tool', '{}', lease => '1 min')$$, name)), 'acquired', 'a claim: ' || name)
FROM unnest(ARRAY['result', 'no result', 'null', 'failed', 'released']) AS name;
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$complete('r', 'result', '{"a": 1}', 1)$$, 'completed'),
	(2, $$complete('r', 'no result', NULL, 1)$$, 'completed'),
	(3, $$complete('r', 'null', 'null', 1)$$, 'completed'),
	(4, $$fail('r', 'failed', '{"e": 1}', 1)$$, 'failed'),
	(5, $$release('r', 'released', 1, 'why')$$, 'released')
) AS t (n, call, answer);
CREATE TEMPORARY TABLE finals AS
SELECT c, pg_temp.image('r', c) AS image FROM unnest(ARRAY['result', 'no result', 'null', 'failed', 'released']) AS c;
SELECT is(pg_temp.answer(call), answer, 'again: ' || call)
FROM (VALUES
	($$complete('r', 'result', '{"a": 1}', 1)$$, 'completed'),
	($$complete('r', 'result', '{"a":1}', 1)$$, 'TC005'),
	($$complete('r', 'result', NULL, 1)$$, 'TC005'),
	($$complete('r', 'result', '{"a": 1} ', 1)$$, 'TC005'),
	($$complete('r', 'no result', NULL, 1)$$, 'completed'),
	($$complete('r', 'no result', 'null', 1)$$, 'TC005'),
	($$complete('r', 'null', 'null', 1)$$, 'completed'),
	($$complete('r', 'null', NULL, 1)$$, 'TC005'),
	($$fail('r', 'failed', '{"e": 1}', 1)$$, 'failed'),
	($$fail('r', 'failed', '{"e":1}', 1)$$, 'TC005'),
	($$fail('r', 'result', '{"a": 1}', 1)$$, 'TC003'),
	($$complete('r', 'failed', '{"e": 1}', 1)$$, 'TC003'),
	($$release('r', 'released', 1, 'why')$$, 'released'),
	($$release('r', 'result', 1)$$, 'TC003'),
	($$renew('r', 'result', 1, '1 min')$$, 'completed'),
	($$renew('r', 'failed', 1, '1 min')$$, 'failed'),
	($$renew('r', 'released', 1, '1 min')$$, 'released')
) AS t (call, answer);
SELECT is(result::text, '{"a": 1}', 'a repeated complete gives the result') FROM tool_claims.complete('r', 'result', '{"a": 1}', 1);
SELECT is(result::text, '{"a": 1}', 'so does renew') FROM tool_claims.renew('r', 'result', 1, '1 min');
SELECT is(error::text, '{"e": 1}', 'and the error') FROM tool_claims.renew('r', 'failed', 1, '1 min');
SELECT is((attempt, effect_key IS NOT NULL)::text, '(1,t)', 'the holder''s verbs fill attempt and effect key')
FROM tool_claims.complete('r', 'result', '{"a": 1}', 1);
SELECT is(pg_temp.image('r', c), image, 'not written again: ' || c) FROM finals;

-- dispatch and renew of a running attempt may be repeated, and count anew
SELECT is(pg_temp.answer($$claim('r', 'running', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$dispatch('r', 'running', 1, 'ref 1')$$), 'acquired', 'dispatched');
SELECT is(pg_temp.answer($$dispatch('r', 'running', 1, 'ref 2')$$), 'acquired', '… again');
SELECT is(external_ref, 'ref 2', 'with its last reference') FROM tool_claims.status('r', 'running');
SELECT is(pg_temp.answer($$dispatch('r', 'running', 1)$$), 'acquired', '… and again, without one');
SELECT ok(lease_expires_at BETWEEN clock_timestamp() + '119 s' AND clock_timestamp() + '120 s', 'renew counts from now')
FROM tool_claims.renew('r', 'running', 1, '2 min');
SELECT ok(lease_expires_at < clock_timestamp() + '30 s', '… and may shorten')
FROM tool_claims.renew('r', 'running', 1, '30 s');

--
-- reconcile said again
--

SELECT is(pg_temp.answer(format($$claim('q', %L, 'tool', '{}', lease => '1 min')$$, name)), 'acquired', 'a claim: ' || name)
FROM unnest(ARRAY['occurred', 'not_occurred', 'abandoned', 'compensated']) AS name;
SELECT is(pg_temp.answer(format($$mark_uncertain('q', %L, 1, 'lost')$$, name)), 'uncertain/reported', 'uncertain: ' || name)
FROM unnest(ARRAY['occurred', 'not_occurred', 'abandoned', 'compensated']) AS name;
SELECT is(pg_temp.answer(call), answer, n || ': ' || call)
FROM (VALUES
	(1, $$reconcile('q', 'occurred', 1, 'occurred', '{"seen": 1}', result => '[1]')$$, 'completed'),
	(2, $$reconcile('q', 'occurred', 1, 'occurred', '{"seen": 1}', result => '[1]')$$, 'completed'),
	(3, $$reconcile('q', 'occurred', 1, 'occurred', '{"seen": 1}', result => '[2]')$$, 'TC003'),
	(4, $$reconcile('q', 'occurred', 1, 'occurred', '{"seen": 1}')$$, 'TC003'),
	(5, $$reconcile('q', 'occurred', 1, 'not_occurred', '{"seen": 1}')$$, 'TC003'),
	(6, $$reconcile('q', 'abandoned', 1, 'abandoned', '{"seen": 1}', error => '[1]')$$, 'failed'),
	(7, $$reconcile('q', 'abandoned', 1, 'abandoned', '{"seen": 1}', error => '[1]')$$, 'failed'),
	(8, $$reconcile('q', 'abandoned', 1, 'abandoned', '{"seen": 1}', error => '[2]')$$, 'TC003'),
	(9, $$reconcile('q', 'abandoned', 1, 'compensated', '{"seen": 1}', error => '[1]')$$, 'TC003'),
	(10, $$reconcile('q', 'compensated', 1, 'compensated', '{"seen": 1}')$$, 'failed'),
	(11, $$reconcile('q', 'compensated', 1, 'compensated', '{"seen": 1}')$$, 'failed'),
	(12, $$reconcile('q', 'not_occurred', 1, 'not_occurred', '{"seen": 1}')$$, 'released'),
	(13, $$reconcile('q', 'not_occurred', 1, 'not_occurred', '{"seen": 1}')$$, 'released'),
	(14, $$reconcile('q', 'not_occurred', 1, 'occurred', '{"seen": 2}', result => '[3]')$$, 'completed'),
	(15, $$complete('q', 'not_occurred', '[3]', 1)$$, 'TC002'),
	(16, $$complete('q', 'not_occurred', '[3]', 2)$$, 'TC002')
) AS t (n, call, answer) ORDER BY n;
SELECT is(result::text, '[1]', 'the result that the reconciler found') FROM tool_claims.claim('q', 'occurred', 'tool', '{}');
SELECT is(error::text, '[1]', 'the error that the reconciler gave') FROM tool_claims.claim('q', 'abandoned', 'tool', '{}');
SELECT is(result::text, '[3]', 'the corrected result') FROM tool_claims.claim('q', 'not_occurred', 'tool', '{}');
SELECT is(pg_temp.kinds('q', 'occurred'), 'uncertain reconciled', 'a repetition is no event');
-- a correction is possible until the next attempt
SELECT is(pg_temp.answer($$claim('q', 'again', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$mark_uncertain('q', 'again', 1, 'lost')$$), 'uncertain/reported', 'uncertain');
SELECT is(pg_temp.answer($$reconcile('q', 'again', 1, 'not_occurred', '{"seen": 0}')$$), 'released', 'did not occur');
SELECT is(pg_temp.answer($$claim('q', 'again', 'tool', '{}', lease => '1 min')$$), 'acquired/retry', 'the next attempt');
SELECT is(pg_temp.answer($$reconcile('q', 'again', 1, 'occurred', '{"seen": 1}')$$), 'TC002', 'too late to correct');
SELECT is(pg_temp.answer($$report_late('q', 'again', 1, '{"it": "did"}')$$), 'done', 'the first attempt can still tell');
SELECT is((kind, attempt)::text, '(late_report,1)', 'and attention shows it')
FROM tool_claims.attention WHERE task_id = 'q' AND tool_call_id = 'again' AND kind = 'late_report';

--
-- an uncertain attempt answers late
--

SELECT is(pg_temp.answer($$claim('l', 'late', 'tool', '{}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT pg_temp.clock(3600);
SELECT is(pg_temp.answer($$claim('l', 'late', 'tool', '{}')$$), 'uncertain/lease_expired', 'an hour later');
SELECT is(pg_temp.answer($$complete('l', 'late', '"late"', 1)$$), 'completed', 'the attempt still completes');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer($$claim('l', 'late', 'tool', '{}')$$), 'completed', 'and that is the answer');
SELECT is(pg_temp.answer($$claim('l', 'taken', 'safe', '{}', lease => '1 min')$$), 'acquired', 'a claim of a safe tool');
SELECT pg_temp.clock(3600);
SELECT is(pg_temp.answer($$claim('l', 'taken', 'safe', '{}', lease => '1 min')$$), 'acquired/takeover', 'an hour later');
SELECT is(pg_temp.answer($$complete('l', 'taken', '"late"', 1)$$), 'TC002', 'the first attempt is stale');
SELECT is(pg_temp.answer($$complete('l', 'taken', '"in time"', 2)$$), 'completed', 'the second completes');
SELECT pg_temp.clock(0);
-- what the policy said when the attempt was acquired counts
SELECT is(pg_temp.answer($$claim('l', 'kept', 'safe', '{}', lease => '1 min')$$), 'acquired', 'a claim of a safe tool');
SELECT is(pg_temp.answer($$claim('l', 'kept 2', 'tool', '{}', lease => '1 min')$$), 'acquired', 'and of one that is not');
SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'uncertain')$$), 'done', 'the one changes');
SELECT is(pg_temp.answer($$set_tool_policy('tool', on_lease_expiry => 'reacquire')$$), 'done', 'the other too');
SELECT pg_temp.clock(3600);
SELECT is(pg_temp.state('l', 'kept'), 'released', 'the record keeps what it was');
SELECT is(pg_temp.state('l', 'kept 2'), 'uncertain', 'this one too');
SELECT pg_temp.clock(0);

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_a', 'regress_tap_b', 'regress_tap_a_member', 'regress_tap_reconciler');
