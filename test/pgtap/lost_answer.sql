-- lost_answer.sql: request_id, for a delivery whose answer was lost.

\set organization tap_lost_answer
\ir include/helpers.psql

SELECT plan(56);

CALL pg_temp.make_roles('regress_tap_a', 'regress_tap_a_member');
GRANT regress_tap_a TO regress_tap_a_member;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, 'worker')), 'done', role || ' is a worker')
FROM unnest(ARRAY['regress_tap_a', 'regress_tap_a_member']) AS role;
SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');

-- C stands for the call, R for a request id
CREATE FUNCTION pg_temp.ask(call text, request text, more text DEFAULT '', tool text DEFAULT 'tool', role text DEFAULT NULL)
RETURNS text
LANGUAGE sql
AS $$
	SELECT pg_temp.answer(format($c$claim('t', %L, %L, '{}', request_id => %L %s)$c$, call, tool,
		'00000000-0000-0000-0000-00000000000' || request, ', ' || coalesce(nullif(more, ''), $c$lease => '1 min'$c$)), role)
$$;

-- the same request id gets the same attempt, and a lease counted anew
SELECT is(pg_temp.ask('c', '1'), 'acquired', 'a claim whose answer is lost');
SELECT pg_temp.clock(30);
SELECT is((outcome, reason, attempt, effect_key IS NOT NULL)::text, '(acquired,already_held,1,t)', 'asked again: the same attempt')
FROM tool_claims.claim('t', 'c', 'tool', '{}', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001');
SELECT ok(lease_expires_at BETWEEN clock_timestamp() + '89 s' AND clock_timestamp() + '90 s', 'with a lease counted anew')
FROM tool_claims.status('t', 'c');
SELECT pg_temp.clock(80);
SELECT is(pg_temp.ask('c', '1', $$lease => '2 min'$$), 'acquired/already_held', 'while the new lease runs, with another one');
SELECT pg_temp.clock(190);
SELECT is(pg_temp.ask('c', '1'), 'acquired/already_held', 'which runs now');
SELECT is(pg_temp.kinds('t', 'c'), NULL, 'routine leaves no event');
-- others
SELECT is(pg_temp.ask('c', '2'), 'in_progress', 'another request id waits');
SELECT is(pg_temp.answer($$claim('t', 'c', 'tool', '{}', lease => '1 min')$$), 'in_progress', 'none waits');
SELECT is(pg_temp.ask('c', '1', role => 'regress_tap_a'), 'in_progress', 'another role waits');
SELECT is(pg_temp.answer($$claim('t', 'c', 'tool', '[]', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001')$$),
	'conflict/input', 'other data is a conflict');
SELECT is(pg_temp.ask('c', '1', $$tool_server => ''$$), '22023', 'a claim keeps its shape');
SELECT is(pg_temp.state('t', 'c'), 'claimed', 'it runs');
SELECT pg_temp.clock(300);
SELECT is(pg_temp.ask('c', '1'), 'uncertain/lease_expired', 'when the lease is over it is as for anybody');
SELECT pg_temp.clock(0);

-- until the first dispatch or renew
SELECT is(pg_temp.ask(c, '1', more), 'acquired', 'a claim: ' || c)
FROM (VALUES
	('dispatched', $$lease => '1 min', dispatched => false$$),
	('dispatched again', $$lease => '1 min'$$),
	('renewed', $$lease => '1 min'$$)) AS t (c, more);
SELECT is(pg_temp.answer($$dispatch('t', 'dispatched', 1)$$), 'acquired', 'dispatched');
SELECT is(pg_temp.answer($$dispatch('t', 'dispatched again', 1)$$), 'acquired', 'dispatched');
SELECT is(pg_temp.answer($$renew('t', 'renewed', 1, '1 min')$$), 'acquired', 'renewed');
SELECT is(pg_temp.ask(c, '1'), 'in_progress', 'then it waits as anybody: ' || c)
FROM unnest(ARRAY['dispatched', 'dispatched again', 'renewed']) AS c;

-- after an end it is as for anybody
SELECT is(pg_temp.ask(c, '1'), 'acquired', 'a claim: ' || c) FROM unnest(ARRAY['completed', 'failed', 'reported', 'released']) AS c;
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$complete('t', 'completed', '1', 1)$$, 'completed'),
	($$fail('t', 'failed', '1', 1)$$, 'failed'),
	($$mark_uncertain('t', 'reported', 1, 'lost')$$, 'uncertain/reported'),
	($$release('t', 'released', 1)$$, 'released')) AS t (call, answer);
SELECT is(pg_temp.ask(c, '1'), answer, 'then: ' || c)
FROM (VALUES ('completed', 'completed'), ('failed', 'failed'), ('reported', 'uncertain/reported'), ('released', 'acquired/retry'))
	AS t (c, answer);
SELECT is((attempt, outcome, reason)::text, '(2,acquired,already_held)', 'and the request id counts for the new attempt')
FROM tool_claims.claim('t', 'released', 'tool', '{}', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001');

-- of each attempt only its own request id
SELECT is(pg_temp.ask('attempts', '1'), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$release('t', 'attempts', 1)$$), 'released', 'released');
SELECT is(pg_temp.ask('attempts', '2'), 'acquired/retry', 'acquired by another request');
SELECT is(pg_temp.ask('attempts', '1'), 'in_progress', 'the first one waits');
SELECT is(pg_temp.ask('attempts', '2'), 'acquired/already_held', 'the second one holds');
SELECT is(pg_temp.ask('none', '1'), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$release('t', 'none', 1)$$), 'released', 'released');
SELECT is(pg_temp.answer($$claim('t', 'none', 'tool', '{}', lease => '1 min')$$), 'acquired/retry', 'acquired without a request id');
SELECT is(pg_temp.ask('none', '1'), 'in_progress', 'the first one waits');

-- expired and free again: a new attempt, not the old one
SELECT is(pg_temp.ask('free', '1', $$lease => '1 min', dispatched => false$$), 'acquired', 'a claim that is not dispatched');
SELECT is(pg_temp.ask('safe', '1', '', 'safe'), 'acquired', 'a claim of a safe tool');
SELECT pg_temp.clock(61);
SELECT is(pg_temp.ask('free', '1'), 'acquired/takeover', 'expired: the next attempt');
SELECT is(pg_temp.ask('safe', '1', '', 'safe'), 'acquired/takeover', 'expired: the next attempt');
SELECT pg_temp.clock(0);

-- the same role, not its members
SELECT is(pg_temp.ask('role', '1', role => 'regress_tap_a'), 'acquired', 'A claims');
SELECT is(pg_temp.ask('role', '1', role => 'regress_tap_a_member'), 'in_progress', 'a member of A waits');
SELECT is(pg_temp.ask('role', '1', role => 'regress_tap_a'), 'acquired/already_held', 'A holds');

-- a policy or a deadline that came meanwhile does not stand in the way: it is held
SELECT is(pg_temp.answer($$set_tool_policy('tool', enabled => false)$$), 'done', 'the tool is disabled');
SELECT is(pg_temp.ask('role', '1', $$lease => '1 min', not_after => '2000-01-01'$$, role => 'regress_tap_a'),
	'acquired/already_held', 'A still holds');

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_a', 'regress_tap_a_member');
