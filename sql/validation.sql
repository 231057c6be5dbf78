-- validation: results of tasks are judged before anybody acts on them
SET tool_claims.organization = 'validation';
\set VERBOSITY terse

-- Orders that wait for a quote of another agent.  Whoever places one asks for
-- the accepted result in the transaction of the business write.
CREATE TABLE orders (
	id integer PRIMARY KEY,
	state text NOT NULL DEFAULT 'pending',
	amount numeric,
	reason text,
	correlation jsonb
);
INSERT INTO orders (id) SELECT generate_series(1, 7);
CREATE FUNCTION place(id integer) RETURNS void LANGUAGE sql AS $$
	UPDATE orders SET state = 'placed', amount = (tool_claims.require_accepted('quote ' || $1) ->> 'amount')::numeric
	WHERE orders.id = $1
$$;
-- what the gate says is written to the order, and never overrules an act
CREATE FUNCTION note(id integer) RETURNS TABLE (state text, reason text, correlation jsonb) LANGUAGE sql AS $$
	UPDATE orders AS o
	SET state = CASE g.verdict WHEN 'rejected' THEN 'rejected' ELSE o.state END, reason = g.reason, correlation = g.correlation
	FROM tool_claims.gate('quote ' || $1) AS g
	WHERE o.id = $1 AND o.state = 'pending'
	RETURNING o.state, o.reason, o.correlation
$$;

-- the rule of the domain, which no schema says: at most 100, in euros
CREATE FUNCTION check_quote(quote json) RETURNS text LANGUAGE sql AS $$
	SELECT CASE
		WHEN quote ->> 'currency' <> 'EUR' THEN 'quote is in ' || (quote ->> 'currency')
		WHEN (quote ->> 'amount')::numeric > 100 THEN 'amount is over the limit of 100'
	END
$$;

-- a good result: expected, offered, accepted, acted on
SELECT verdict, reason, correlation
FROM tool_claims.expect_result('quote 1', clock_timestamp() + '1 hour', 'check_quote(json)', '{"order": 1, "trace": "4bf9"}');
SELECT place(1);		-- fails, nothing was offered
SELECT * FROM note(1);
SELECT verdict, reason, correlation
FROM tool_claims.offer_result('quote 1', 'succeeded', '{"amount": 12.50, "currency": "EUR"}', correlation => '{"span": "00f0"}');
SELECT verdict, reason, correlation FROM tool_claims.gate('quote 1');
SELECT tool_claims.require_accepted('quote 1');
SELECT place(1);
-- delivered again it is the same; a second, different one changes nothing
SELECT verdict, reason FROM tool_claims.offer_result('quote 1', 'succeeded', '{"currency": "EUR", "amount": 12.5}');
SELECT verdict, reason FROM tool_claims.offer_result('quote 1', 'succeeded', '{"amount": 13, "currency": "EUR"}');
SELECT verdict, reason FROM tool_claims.offer_result('quote 1', 'failed');
SELECT tool_claims.require_accepted('quote 1');

-- case 1: valid by its schema, and against a rule of the domain
SELECT verdict FROM tool_claims.expect_result('quote 2', clock_timestamp() + '1 hour', 'check_quote(json)', '{"order": 2, "trace": "a3ce"}');
SELECT verdict, reason, correlation
FROM tool_claims.offer_result('quote 2', 'succeeded', '{"amount": 1000000, "currency": "EUR"}', correlation => '{"span": "b7ad"}');
SELECT * FROM note(2);
\set VERBOSITY default
SELECT place(2);		-- fails, rejected by the check
\set VERBOSITY terse
SELECT verdict, reason FROM tool_claims.offer_result('quote 2', 'succeeded', '{"amount": 99, "currency": "EUR"}');

-- case 2: the task crosses its deadline
SELECT verdict FROM tool_claims.expect_result('quote 3', clock_timestamp() + '1 hour', 'check_quote(json)', '{"order": 3, "trace": "c1d2"}');
SELECT verdict, reason FROM tool_claims.offer_result('quote 3', 'failed_retryable');
SELECT verdict, reason FROM tool_claims.offer_result('quote 3', 'timed_out');
SELECT * FROM note(3);
SET tool_claims.clock_offset = '2 h';
SELECT verdict, reason, correlation FROM tool_claims.gate('quote 3');
SELECT kind, task_id, age > interval '50 min' AS late, reason FROM tool_claims.attention WHERE kind = 'gate_overdue';
SELECT verdict, reason, correlation
FROM tool_claims.offer_result('quote 3', 'succeeded', '{"amount": 12.50, "currency": "EUR"}', correlation => '{"span": "e5f6"}');
SELECT * FROM note(3);
\set VERBOSITY default
SELECT place(3);		-- fails, too late
\set VERBOSITY terse
RESET tool_claims.clock_offset;
SELECT verdict, reason FROM tool_claims.gate('quote 3');

-- case 3: filtered, and not to be tried again
SELECT verdict FROM tool_claims.expect_result('quote 4', clock_timestamp() + '1 hour', 'check_quote(json)', '{"order": 4, "trace": "77aa"}');
SELECT verdict, reason, correlation FROM tool_claims.offer_result('quote 4', 'filtered', correlation => '{"policy": "pii"}');
SELECT * FROM note(4);
\set VERBOSITY default
SELECT place(4);		-- fails, filtered
\set VERBOSITY terse
SELECT verdict, reason FROM tool_claims.offer_result('quote 4', 'succeeded', '{"amount": 12.50, "currency": "EUR"}');

-- a marked result, and the same with one character changed
SELECT tool_claims.add_mark_key('quotes', '\x6b6579');
SELECT tool_claims.mark_content('{"amount": 12.50, "currency": "EUR"}', 'quotes', 'quote 5') AS mark \gset
SELECT task, g.verdict
FROM unnest(ARRAY['quote 5', 'quote 6']) AS task,
	tool_claims.expect_result(task, clock_timestamp() + '1 hour', 'check_quote(json)', '{"trace": "0e0e"}', 'quote 5') AS g;
SELECT verdict, reason, correlation
FROM tool_claims.offer_result('quote 6', 'succeeded', content => '{"amount": 92.50, "currency": "EUR"}', mark => :'mark');
SELECT * FROM note(6);
\set VERBOSITY default
SELECT place(6);		-- fails, the mark is of another content
\set VERBOSITY terse
SELECT verdict, reason
FROM tool_claims.offer_result('quote 5', 'succeeded', content => '{"amount": 12.50, "currency": "EUR"}', mark => :'mark');
SELECT tool_claims.require_accepted('quote 5');
SELECT place(5);

-- a check that raises rejects with its message, and the offer is kept
CREATE FUNCTION check_raising(quote json) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no rate for %', quote ->> 'currency'; END $$;
SELECT verdict FROM tool_claims.expect_result('quote 7', clock_timestamp() + '1 hour', 'check_raising(json)', '{"order": 7}');
SELECT verdict, reason FROM tool_claims.offer_result('quote 7', 'succeeded', '{"amount": 1, "currency": "XAU"}');
SELECT offered_status, offered_result FROM tool_claims.result_gates WHERE organization = 'validation' AND task_id = 'quote 7';
SELECT * FROM note(7);

-- nobody expected it
SELECT verdict, reason, deadline FROM tool_claims.offer_result('quote 8', 'succeeded', '1');
SELECT count(*) FROM tool_claims.gate('quote 8');
SELECT tool_claims.require_accepted('quote 8');		-- fails

-- expecting the same again is the same gate, other arguments are not
BEGIN;
SELECT verdict FROM tool_claims.expect_result('quote 9', '2100-01-01', 'check_quote(json)', '{"order": 9}');
SELECT verdict FROM tool_claims.expect_result('quote 9', '2100-01-01', 'check_quote(json)', '{"order": 9}');
SELECT verdict FROM tool_claims.expect_result('quote 9', '2100-01-01', 'check_quote(json)', '{"order": 8}');		-- fails
ROLLBACK;

-- what came of it: only what was accepted was acted on
SELECT id, state, amount, reason, correlation FROM orders ORDER BY id;
SELECT task_id, verdict, reason, correlation, offered_status FROM tool_claims.gates ORDER BY task_id;

DROP FUNCTION place, note, check_quote, check_raising;
DROP TABLE orders;
