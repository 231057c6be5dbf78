-- execution: the one-call form for effects in this database
SET tool_claims.organization = 'execution';

CREATE TABLE refunds (order_id integer, cents integer, task_id text, tool_call_id text);
CREATE FUNCTION refund(wanted jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	IF (wanted ->> 'cents')::integer <= 0 THEN
		RAISE EXCEPTION 'nothing to refund';
	END IF;
	INSERT INTO refunds
	SELECT (wanted ->> 'order')::integer, (wanted ->> 'cents')::integer, c.task_id, c.tool_call_id
	FROM tool_claims.current_claim() AS c;
	RETURN json_build_object('refunded', wanted -> 'cents');
END
$$;

-- claim, handler, complete; delivered again, the stored result
SELECT tool_claims.execute('task-1', 'call-1', 'refund', '{"order": 7, "cents": 100}', 'refund(jsonb)');
SELECT tool_claims.execute('task-1', 'call-1', 'refund', '{"cents": 100, "order": 7.0}', 'refund(jsonb)');
TABLE refunds;

-- an error of the handler leaves nothing behind, and the call can be tried again
SELECT tool_claims.execute('task-1', 'call-2', 'refund', '{"order": 7, "cents": 0}', 'refund(jsonb)');		-- fails
SELECT count(*) FROM tool_claims.status('task-1', 'call-2');

-- where claim answers in rows, execute raises
SELECT outcome FROM tool_claims.claim('task-2', 'in progress', 'refund', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.claim('task-2', 'uncertain', 'refund', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.mark_uncertain('task-2', 'uncertain', 1, 'no answer');
SELECT outcome FROM tool_claims.claim('task-2', 'failed', 'refund', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.fail('task-2', 'failed', '{"code": "closed"}', attempt => 1);
SELECT tool_claims.set_tool_policy('closed', enabled => false);
SELECT tool_claims.execute('task-1', 'call-1', 'refund', '{"order": 7, "cents": 999}', 'refund(jsonb)');		-- fails, TC006
SELECT tool_claims.execute('task-2', 'in progress', 'refund', '{}', 'refund(jsonb)', wait => '0');		-- fails, TC007
SELECT tool_claims.execute('task-2', 'uncertain', 'refund', '{}', 'refund(jsonb)');		-- fails, TC008
SELECT tool_claims.execute('task-2', 'failed', 'refund', '{}', 'refund(jsonb)');		-- fails, TC009
SELECT tool_claims.execute('task-2', 'refused', 'closed', '{}', 'refund(jsonb)');		-- fails, TC010
\set VERBOSITY sqlstate
SELECT tool_claims.execute('task-1', 'call-1', 'refund', '{"order": 7, "cents": 999}', 'refund(jsonb)');		-- fails, TC006
SELECT tool_claims.execute('task-2', 'in progress', 'refund', '{}', 'refund(jsonb)', wait => '0');		-- fails, TC007
SELECT tool_claims.execute('task-2', 'uncertain', 'refund', '{}', 'refund(jsonb)');		-- fails, TC008
SELECT tool_claims.execute('task-2', 'failed', 'refund', '{}', 'refund(jsonb)');		-- fails, TC009
SELECT tool_claims.execute('task-2', 'refused', 'closed', '{}', 'refund(jsonb)');		-- fails, TC010
\set VERBOSITY terse

-- a handler that runs itself
CREATE FUNCTION recursive(input jsonb) RETURNS json LANGUAGE sql AS $$
	SELECT tool_claims.execute('task-3', 'call-1', 'refund', input, 'recursive(jsonb)')
$$;
SELECT tool_claims.execute('task-3', 'call-1', 'refund', '{}', 'recursive(jsonb)');		-- fails, TC007

-- one call inside another: each knows its own claim
CREATE FUNCTION inner_call(input jsonb) RETURNS jsonb LANGUAGE sql AS $$
	SELECT jsonb_agg(tool_call_id) FROM tool_claims.current_claim()
$$;
CREATE FUNCTION outer_call(input jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	inside json := tool_claims.execute('task-4', 'inner', 'tool 2', input, 'inner_call(jsonb)');
BEGIN
	RETURN (SELECT json_build_object('inside', inside, 'outside', tool_call_id) FROM tool_claims.current_claim());
END
$$;
SELECT tool_claims.execute('task-4', 'outer', 'tool', '{}', 'outer_call(jsonb)');
SELECT tool_call_id, state, result FROM unnest(ARRAY['inner', 'outer']) AS call, tool_claims.status('task-4', call);

-- at the business table: no refund without a claim of the tool
CREATE FUNCTION need_claim() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM * FROM tool_claims.require_claim('refund');
	RETURN NEW;
END
$$;
CREATE TRIGGER need_claim BEFORE INSERT ON refunds FOR EACH ROW EXECUTE FUNCTION need_claim();
\set VERBOSITY default
\set SHOW_CONTEXT never
INSERT INTO refunds VALUES (7, 100);		-- fails
\set VERBOSITY terse
SELECT tool_claims.execute('task-5', 'call-1', 'refund', '{"order": 8, "cents": 1}', 'refund(jsonb)');
SELECT tool_claims.execute('task-5', 'call-2', 'mail', '{"order": 8, "cents": 1}', 'refund(jsonb)');		-- fails, of another tool
BEGIN;
SELECT outcome FROM tool_claims.claim('task-5', 'call-3', 'refund', '{}');
INSERT INTO refunds SELECT 9, 1, task_id, tool_call_id FROM tool_claims.require_claim('refund');
SELECT outcome FROM tool_claims.complete('task-5', 'call-3', '1');
COMMIT;
SELECT count(*) FROM tool_claims.current_claim();
TABLE refunds;

-- handlers
SELECT tool_claims.execute('task-6', 'call-1', 'tool', '{}', 'lower(text)');		-- fails
SELECT tool_claims.execute('task-6', 'call-1', 'tool', '{}', 'no_such_function(jsonb)');		-- fails
SELECT tool_claims.execute('task-6', 'call-1', 'tool', '{"n": 1e200000}', 'jsonb_strip_nulls(jsonb)');		-- fails, no jsonb
SELECT tool_claims.execute('task-6', 'call-1', 'tool', '{"a": null, "b": 1.50}', 'jsonb_strip_nulls(jsonb)');

DROP TABLE refunds;
DROP FUNCTION refund(jsonb), recursive(jsonb), inner_call(jsonb), outer_call(jsonb), need_claim();
