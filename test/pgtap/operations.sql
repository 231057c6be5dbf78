-- operations.sql: one business operation, delivered under several pairs.

\set organization tap_operations
\ir include/helpers.psql

SELECT plan(160);

-- a claim of operation OP under the pair (task, call)
CREATE FUNCTION pg_temp.claim(call text, op text, input text DEFAULT '{}', more text DEFAULT $$lease => '1 min'$$,
	tool text DEFAULT 'tool', server text DEFAULT '')
RETURNS text
LANGUAGE sql
AS $$
	SELECT pg_temp.answer(format('claim(%L, %L, %L, %L, operation_id => %L, tool_server => %L, %s)',
		't', call, tool, input, op, server, coalesce(nullif(more, ''), 'wait => ''0''')))
$$;
SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');

-- each state of the first pair, then the same operation under a second one
CREATE TEMPORARY TABLE cases (
	op text,
	tool text,
	lease text,
	ends text,				-- how the first pair's attempt ends
	answer text,			-- the second pair's with equal input, without a lease
	state text
);
INSERT INTO cases VALUES
	('claimed', 'tool', $$lease => '10 min'$$, NULL, 'in_progress/operation', 'claimed'),
	('dispatched', 'tool', $$lease => '10 min'$$, $$dispatch('t', 'dispatched 1', 1)$$, 'in_progress/operation', 'claimed'),
	('uncertain', 'tool', $$lease => '10 min'$$, $$mark_uncertain('t', 'uncertain 1', 1, 'lost')$$, 'uncertain/operation', 'uncertain'),
	('expired', 'tool', $$lease => '1 microsecond'$$, NULL, 'uncertain/operation', 'uncertain'),
	('completed', 'tool', $$lease => '10 min'$$, $$complete('t', 'completed 1', '"r"', 1)$$, 'completed/operation', 'completed'),
	('failed', 'tool', $$lease => '10 min'$$, $$fail('t', 'failed 1', '"e"', 1)$$, 'failed/operation', 'failed'),
	('released', 'tool', $$lease => '10 min'$$, $$release('t', 'released 1', 1)$$, 'acquired', 'released'),
	('free', 'tool', $$lease => '1 microsecond', dispatched => false$$, NULL, 'acquired', 'released'),
	('repeatable', 'safe', $$lease => '1 microsecond'$$, NULL, 'acquired', 'released');
SELECT is(pg_temp.claim(op || ' 1', op, '{}', lease, tool), 'acquired', op || ': the first pair acquires') FROM cases;
SELECT is(effect_key, op, op || ': the effect key is the operation')
FROM cases, tool_claims.status('t', op || ' 1');
SELECT is(split_part(pg_temp.answer(ends), '/', 1),
	CASE op WHEN 'dispatched' THEN 'acquired' ELSE state END, op || ': then ' || ends)
FROM cases WHERE ends IS NOT NULL;
SELECT is(pg_temp.state('t', op || ' 1'), state, op || ': reads ' || state) FROM cases;
CREATE TEMPORARY TABLE images AS SELECT op, pg_temp.image('t', op || ' 1') FROM cases;
SELECT is(pg_temp.claim(op || ' 2', op, '[]', tool => tool), 'conflict/operation', op || ': the second pair, other input')
FROM cases;
SELECT is(pg_temp.claim(op || ' 2', op, '{}', '', tool), answer, op || ': the second pair, equal input')
FROM cases WHERE answer <> 'acquired';
SELECT is(pg_temp.claim(op || ' 2', op, '{}', tool => tool), answer, op || ': the second pair, equal input, with a lease')
FROM cases WHERE answer <> 'acquired';
SELECT is((tool_call_id, attempt, effect_key, result, error)::text,
	format('("%s 1",,,%s,%s)', op, CASE op WHEN 'completed' THEN '"""r"""' END, CASE op WHEN 'failed' THEN '"""e"""' END),
	op || ': the record that answers')
FROM cases, tool_claims.claim('t', op || ' 2', tool, '{}', operation_id => op)
WHERE answer <> 'acquired';
SELECT is(pg_temp.state('t', op || ' 2'), NULL, op || ': the second pair has no record') FROM cases;
SELECT is(pg_temp.image('t', op || ' 1'), image, op || ': the first pair''s is unchanged') FROM cases JOIN images USING (op);
SELECT is(pg_temp.claim(op || ' 2', NULL, '[1]'), 'acquired', op || ': so the second pair is free for something else')
FROM cases WHERE answer <> 'acquired';

-- a released one goes over to the other pair, with its effect key
SELECT is((r.outcome, r.reason, r.tool_call_id, r.attempt, r.effect_key)::text,
	format('(acquired,%s,"%s 2",1,%s)', CASE op WHEN 'released' THEN 'retry' ELSE 'takeover' END, op, op),
	op || ': the second pair takes it over')
FROM cases, tool_claims.claim('t', op || ' 2', tool, '{}', operation_id => op, lease => '10 min') AS r
WHERE answer = 'acquired';
SELECT is(pg_temp.claim(op || ' 1', op, '{}', tool => tool), 'in_progress/operation', op || ': the first pair gets its answer')
FROM cases WHERE answer = 'acquired';
SELECT is(tool_call_id, op || ' 2', op || ': from the second')
FROM cases, tool_claims.claim('t', op || ' 1', tool, '{}', operation_id => op)
WHERE answer = 'acquired';
SELECT is(pg_temp.claim(op || ' 1', op, '[]', tool => tool), 'conflict/input', op || ': the first pair, other input')
FROM cases WHERE answer = 'acquired';
SELECT is(pg_temp.claim(op || ' 3', op, '[]', tool => tool), 'conflict/operation', op || ': a third pair, other input')
FROM cases WHERE answer = 'acquired';
-- only the pair that owns the operation can be reconciled
SELECT is(pg_temp.answer(format($$reconcile('t', %L, 1, 'occurred', '{"by": 1}')$$, op || ' 1')), 'TC003', op || ': the first pair cannot be reconciled')
FROM cases WHERE answer = 'acquired';
SELECT is(pg_temp.answer(format($$complete('t', %L, '"of 2"', 1)$$, op || ' 2')), 'completed', op || ': the second completes')
FROM cases WHERE answer = 'acquired';
SELECT is((tool_call_id, outcome, reason, result)::text, format('("%s 2",completed,operation,"""of 2""")', op), op || ': and the first gets the result')
FROM cases, tool_claims.claim('t', op || ' 1', tool, '{}', operation_id => op)
WHERE answer = 'acquired';
-- a late answer of the attempt that lost the operation
SELECT is(pg_temp.answer($$complete('t', 'repeatable 1', '"late"', 1)$$), 'TC002', 'the attempt that was taken over from is stale');
SELECT is(pg_temp.answer($$report_late('t', 'repeatable 1', 1, '"late"')$$), 'done', 'but it can tell');

-- by turns: the operation belongs to the pair that acquired last
SELECT is(pg_temp.claim('turn 1', 'turns'), 'acquired', 'turn 1');
SELECT is(pg_temp.answer($$release('t', 'turn 1', 1)$$), 'released', 'released');
SELECT is(pg_temp.claim('turn 2', 'turns'), 'acquired/retry', 'turn 2');
SELECT is(pg_temp.answer($$release('t', 'turn 2', 1)$$), 'released', 'released');
SELECT is((outcome, tool_call_id, attempt, effect_key)::text, '(acquired,"turn 1",2,turns)', 'turn 1 again')
FROM tool_claims.claim('t', 'turn 1', 'tool', '{}', operation_id => 'turns', lease => '1 min');
SELECT is(pg_temp.claim('turn 2', 'turns'), 'in_progress/operation', 'turn 2 gets its answer');
SELECT is(pg_temp.answer($$mark_uncertain('t', 'turn 1', 2, 'lost')$$), 'uncertain/reported', 'turn 1 is uncertain');
SELECT is(pg_temp.claim('turn 3', 'turns'), 'uncertain/operation', 'so is turn 3');
SELECT is(pg_temp.answer($$reconcile('t', 'turn 1', 2, 'not_occurred', '{"by": 1}', new_effect_key => true)$$), 'released', 'it did not occur');
SELECT is((outcome, tool_call_id, attempt)::text, '(acquired,"turn 3",1)', 'turn 3 takes it over')
FROM tool_claims.claim('t', 'turn 3', 'tool', '{}', operation_id => 'turns', lease => '1 min');
SELECT is(effect_key, 'tc1-' || tool_claims.digest(json_build_array('tool_claims effect key',
		current_setting('tool_claims.organization'), 't', 'turn 1', 2))::text,
	'with the effect key that the release made new')
FROM tool_claims.status('t', 'turn 3');
SELECT is(array_agg(f.tool_call_id ORDER BY f.tool_call_id)::text, '{"turn 3"}', 'find_claims finds it by that key')
FROM tool_claims.status('t', 'turn 3') AS s, tool_claims.find_claims(s.effect_key) AS f
WHERE f.state = 'claimed';

-- one operation per server, tool and organization
SELECT is(pg_temp.claim('scope 1', 'scope'), 'acquired', 'an operation');
SELECT is(pg_temp.claim('scope 2', 'scope', '[]', server => 's'), 'acquired', 'the same id on another server');
SELECT is(pg_temp.claim('scope 3', 'scope', '[]', tool => 'other'), 'acquired', 'the same id of another tool');
SET tool_claims.organization = 'tap_operations_2';
CALL pg_temp.forget();
SELECT is(pg_temp.claim('scope 1', 'scope', '[]'), 'acquired', 'the same id in another organization');
CALL pg_temp.forget();
SET tool_claims.organization = :'organization';

-- redacted and retired
SELECT is(pg_temp.answer($$redact('t', 'completed 1', 'a wish')$$), 'done', 'redacted');
SELECT is(pg_temp.claim('completed 3', 'completed'), 'completed/redacted', 'the reason stays redacted');
SELECT is(pg_temp.answer($$prune('0 s')$$), 'done', 'pruned');
SELECT is(pg_temp.claim('completed 3', 'completed'), 'refused/key_retired', 'the reason stays key_retired');
SELECT is(pg_temp.claim('failed 3', 'failed'), 'refused/key_retired', 'a failed one too');
SELECT is(pg_temp.claim('failed 3', 'failed', '[]'), 'conflict/operation', 'other input is still a conflict');
SELECT is(pg_temp.state('t', 'failed 3'), NULL, 'neither leaves a record');
SELECT is(pg_temp.answer($$prune('0 s', tombstones => false)$$), 'done', 'pruned altogether');
SELECT is(pg_temp.claim('failed 3', 'failed', '[]'), 'acquired', 'the operation is forgotten');

-- transactional claims
BEGIN;
SELECT is(pg_temp.claim('tx 1', 'tx', more => ''), 'acquired', 'a transactional claim');
SELECT is(pg_temp.answer($$complete('t', 'tx 1', '"r"')$$), 'completed', 'completes');
SELECT is(pg_temp.claim('tx 2', 'tx', more => ''), 'completed/operation', 'and answers a second pair at once');
COMMIT;
SELECT is(pg_temp.claim('tx 2', 'tx', more => ''), 'completed/operation', 'and later');
BEGIN;
SAVEPOINT s;
SELECT is(pg_temp.claim('tx 3', 'undone', more => ''), 'acquired', 'one that is rolled back');
ROLLBACK TO s;
SELECT is(pg_temp.claim('tx 4', 'undone', '[]', ''), 'acquired', 'leaves its operation free');
ROLLBACK;
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('t', 'ex 1', 'tool', '{"a": null}', 'pg_catalog.jsonb_strip_nulls(jsonb)', operation_id => 'ex')$$),
	'done', 'execute');
SELECT is(tool_claims.execute('t', 'ex 2', 'tool', '{"a": null}', 'pg_catalog.jsonb_strip_nulls(jsonb)', operation_id => 'ex')::text,
	'{}', 'gives a second pair the stored result');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('t', 'ex 2', 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)', operation_id => 'ex')$$),
	'TC006', 'and other input a conflict');

-- taken over in a savepoint that is rolled back, it is the first pair's again
BEGIN;
SELECT is(pg_temp.claim('back 1', 'back', more => ''), 'acquired', 'an operation');
SELECT is(pg_temp.answer($$release('t', 'back 1')$$), 'released', 'released');
SAVEPOINT s;
SELECT is(pg_temp.claim('back 2', 'back', more => ''), 'acquired/retry', 'taken over');
SELECT is(pg_temp.claim('back 1', 'back', more => ''), 'in_progress/operation', 'the first pair has it no more');
ROLLBACK TO s;
SELECT is((outcome, reason, attempt)::text, '(acquired,retry,2)', 'rolled back: it has')
FROM tool_claims.claim('t', 'back 1', 'tool', '{}', operation_id => 'back');
SELECT is(pg_temp.answer($$complete('t', 'back 1', '1')$$), 'completed', 'and completes');
COMMIT;
SELECT is(pg_temp.claim('back 2', 'back', more => ''), 'completed/operation', 'the other gets the answer');

-- an operation can be required
SELECT is(pg_temp.answer($$claim('t', 'free 3', 'refund', '{}', lease => '1 min')$$), 'acquired', 'one without an operation');
SELECT is(pg_temp.answer($$release('t', 'free 3', 1)$$), 'released', 'released');
SELECT is(pg_temp.answer($$claim('t', 'free 4', 'refund', '{}', lease => '1 min')$$), 'acquired', 'another one');
SELECT is(pg_temp.answer($$set_tool_policy('refund', operation_required => true)$$), 'done', 'an operation is required');
SELECT is(pg_temp.answer($$claim('t', 'free 5', 'refund', '{}', lease => '1 min')$$), '22004', 'no claim without one');
SELECT is(pg_temp.answer($$claim('t', 'free 3', 'refund', '{}', lease => '1 min')$$), '22004', 'nor another attempt');
SELECT is(pg_temp.answer($$claim('t', 'free 4', 'refund', '{}', lease => '1 min')$$), 'in_progress', 'but what is stored answers');
SELECT is(pg_temp.claim('free 5', 'refund 5', tool => 'refund'), 'acquired', 'and with one it is acquired');

SELECT is(
	(SELECT string_agg(c.task_id || ' ' || c.tool_call_id, ', ')
	FROM tool_claims.claims AS c, tool_claims.verify_evidence(c.task_id, c.tool_call_id) AS v
	WHERE v.ok IS NOT true),
	NULL, 'every chain verifies');

SELECT * FROM finish();
CALL pg_temp.forget();
