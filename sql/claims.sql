-- claims: one record for each tool call, and who may act
SET tool_claims.organization = 'claims';

-- a call whose effect is in this database: claim, write, complete, in one transaction
CREATE TABLE refunds (order_id integer, cents integer);
BEGIN;
SELECT outcome, reason, attempt FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 1250}');
INSERT INTO refunds VALUES (7, 1250);
SELECT outcome, result FROM tool_claims.complete('task-1', 'call-1', '{"refunded": 12.50}');
COMMIT;

-- the same call, delivered again: the stored result, byte for byte, and nothing to do
SELECT outcome, attempt, effect_key, result FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 1250}');
SELECT outcome, result FROM tool_claims.claim('task-1', 'call-1', 'refund', '{ "cents": 1.25e3, "order": 7.0 }');
SELECT outcome, result FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 1250}'::jsonb);

-- the same call with other data: a conflict, which says what differs and nothing else
SELECT outcome, reason, result, held_by FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 9999}');
SELECT outcome, reason FROM tool_claims.claim('task-1', 'call-1', 'refund_all', '{"order": 7, "cents": 1250}');
SELECT outcome, reason FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 1250}', tool_server => 'shop');
SELECT outcome, reason FROM tool_claims.claim('task-1', 'call-1', 'refund', '{"order": 7, "cents": 1250}', operation_id => 'refund 7');

-- a failure is a final answer too
BEGIN;
SELECT outcome FROM tool_claims.claim('task-1', 'call-2', 'refund', '{"order": 8, "cents": 1}');
SELECT outcome, error FROM tool_claims.fail('task-1', 'call-2', '{"code": "no such order"}');
COMMIT;
SELECT outcome, error FROM tool_claims.claim('task-1', 'call-2', 'refund', '{"order": 8, "cents": 1}');

-- one that is released may be tried again
BEGIN;
SELECT outcome, reason, attempt FROM tool_claims.claim('task-1', 'call-3', 'refund', '{"order": 9}');
SELECT outcome FROM tool_claims.release('task-1', 'call-3', reason => 'the shop is closed');
COMMIT;
BEGIN;
SELECT outcome, reason, attempt FROM tool_claims.claim('task-1', 'call-3', 'refund', '{"order": 9}');
SELECT outcome FROM tool_claims.complete('task-1', 'call-3', '"done"');
COMMIT;

-- a call whose effect is outside: claim with a lease, COMMIT, act, complete
SELECT outcome, reason, attempt, lease_expires_at - claimed_at AS lease
FROM tool_claims.claim('task-2', 'call-1', 'mail', '{"to": "ada"}', lease => '2 min');
-- meanwhile it is delivered again
SELECT outcome, attempt, held_by IS NOT NULL AS held, retry_after FROM tool_claims.claim('task-2', 'call-1', 'mail', '{"to": "ada"}', lease => '2 min');
SELECT outcome, result FROM tool_claims.complete('task-2', 'call-1', '{"id": "m-1"}', attempt => 1);
SELECT outcome, result FROM tool_claims.claim('task-2', 'call-1', 'mail', '{"to": "ada"}', lease => '2 min');

-- a claim sees itself
BEGIN;
SELECT outcome, reason, attempt FROM tool_claims.claim('task-3', 'call-1', 'refund', '{}');
SELECT outcome, reason, attempt FROM tool_claims.claim('task-3', 'call-1', 'refund', '{}', wait => '1 min');
SELECT outcome, reason FROM tool_claims.claim('task-3', 'call-1', 'refund', '[]');
SAVEPOINT shape;
SELECT tool_claims.claim('task-3', 'call-1', 'refund', '{}', lease => '1 min');		-- fails, a claim keeps its shape
ROLLBACK TO shape;
SELECT outcome FROM tool_claims.complete('task-3', 'call-1', '1');
SELECT outcome, result FROM tool_claims.claim('task-3', 'call-1', 'refund', '{}');
ROLLBACK;
SELECT count(*) FROM tool_claims.status('task-3', 'call-1');

-- the wrong shape: a claim without a lease that is still open at COMMIT
\set VERBOSITY default
SELECT outcome FROM tool_claims.claim('task-4', 'autocommit', 'refund', '{}');		-- fails
BEGIN;
SELECT outcome FROM tool_claims.claim('task-4', 'block', 'refund', '{}');
INSERT INTO refunds VALUES (4, 4);
COMMIT;		-- fails
SELECT outcome FROM tool_claims.claim('task-4', 'several', 'refund', '{}') \; INSERT INTO refunds VALUES (4, 4);		-- fails
DO $$
BEGIN
	PERFORM * FROM tool_claims.claim('task-4', 'caught', 'refund', '{}');
EXCEPTION WHEN OTHERS THEN
	RAISE NOTICE 'not reached: it is raised at COMMIT';
END
$$;		-- fails
\set VERBOSITY sqlstate
CREATE PROCEDURE claim_and_commit() LANGUAGE plpgsql AS $$
BEGIN
	PERFORM * FROM tool_claims.claim('task-4', 'procedure', 'refund', '{}');
	INSERT INTO refunds VALUES (4, 4);
	COMMIT;
END
$$;
CALL claim_and_commit();		-- fails
BEGIN;
SAVEPOINT a;
SELECT outcome FROM tool_claims.claim('task-4', 'savepoint', 'refund', '{}');
RELEASE a;
COMMIT;		-- fails
BEGIN;
SELECT outcome FROM tool_claims.claim('task-4', 'undone', 'refund', '{}');
SAVEPOINT a;
SELECT outcome FROM tool_claims.complete('task-4', 'undone', '1');
ROLLBACK TO a;
COMMIT;		-- fails, the completion is rolled back
BEGIN;
SELECT outcome FROM tool_claims.claim('task-4', 'chain', 'refund', '{}');
COMMIT AND CHAIN;		-- fails, and no transaction follows
ROLLBACK;
BEGIN;
SELECT outcome FROM tool_claims.claim('task-4', 'prepared', 'refund', '{}');
SELECT outcome FROM tool_claims.complete('task-4', 'prepared', '1');
PREPARE TRANSACTION 'regress';		-- fails, a claim is not for two-phase commit
CREATE TABLE late (n integer);
CREATE FUNCTION claim_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM * FROM tool_claims.claim('task-4', 'deferred', 'refund', '{}');
	RETURN NULL;
END
$$;
CREATE CONSTRAINT TRIGGER claim_late AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION claim_late();
INSERT INTO late VALUES (1);		-- fails
\set VERBOSITY terse
SELECT count(*) FROM tool_claims.claims WHERE task_id = 'task-4';
SELECT * FROM refunds ORDER BY order_id;

-- what is rolled back to a savepoint is no claim, and needs no completion
BEGIN;
SAVEPOINT a;
SELECT outcome FROM tool_claims.claim('task-5', 'call-1', 'refund', '{}');
ROLLBACK TO a;
COMMIT;
DO $$
BEGIN
	BEGIN
		PERFORM * FROM tool_claims.claim('task-5', 'call-1', 'refund', '{}');
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN
		NULL;
	END;
	PERFORM * FROM tool_claims.claim('task-5', 'call-2', 'refund', '{}');
	PERFORM * FROM tool_claims.complete('task-5', 'call-2', '1');
END
$$;
SELECT tool_call_id, state, attempt FROM tool_claims.claims WHERE task_id = 'task-5';
-- a procedure may commit once it is final
CREATE PROCEDURE complete_and_commit() LANGUAGE plpgsql AS $$
BEGIN
	FOR n IN 3 .. 5 LOOP
		PERFORM * FROM tool_claims.claim('task-5', 'call-' || n, 'refund', '{}');
		PERFORM * FROM tool_claims.complete('task-5', 'call-' || n, to_json(n));
		COMMIT;
	END LOOP;
END
$$;
CALL complete_and_commit();
SELECT tool_call_id, state FROM tool_claims.claims WHERE task_id = 'task-5' ORDER BY tool_call_id;

-- the other wrong shape: completing a leased claim before it is committed
BEGIN;
SELECT outcome FROM tool_claims.claim('task-6', 'call-1', 'mail', '{}', lease => '1 min');
\set VERBOSITY default
SELECT tool_claims.complete('task-6', 'call-1', '1');		-- fails
\set VERBOSITY terse
ROLLBACK;
BEGIN;
SELECT outcome FROM tool_claims.claim('task-6', 'call-1', 'mail', '{}', lease => '1 min');
SELECT tool_claims.dispatch('task-6', 'call-1', 1);		-- fails, not committed
ROLLBACK;
-- but it may be given back or failed there
BEGIN;
SELECT outcome FROM tool_claims.claim('task-6', 'call-1', 'mail', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.release('task-6', 'call-1');
COMMIT;

-- errors of the holder's verbs
SELECT outcome, attempt FROM tool_claims.claim('task-6', 'call-1', 'mail', '{}', lease => '1 min');
\set VERBOSITY default
SELECT tool_claims.complete('task-6', 'call-9', '1', attempt => 1);		-- fails, no such record
SELECT tool_claims.complete('task-6', 'call-1', '1', attempt => 1);		-- fails, stale attempt
SELECT outcome FROM tool_claims.complete('task-6', 'call-1', '1', attempt => 2);
SELECT outcome FROM tool_claims.complete('task-6', 'call-1', '1', attempt => 2);
SELECT tool_claims.complete('task-6', 'call-1', '2', attempt => 2);		-- fails, other result
SELECT tool_claims.release('task-6', 'call-1', attempt => 2);		-- fails, not in this state
\set VERBOSITY terse

-- a deadline, after which nobody may begin
SELECT outcome, reason FROM tool_claims.claim('task-7', 'call-1', 'mail', '{}', lease => '1 min', not_after => '2020-01-01');
SELECT count(*) FROM tool_claims.status('task-7', 'call-1');

-- how a claim reads
SELECT organization, task_id, tool_call_id, tool_server, tool_name, input_digest, input, operation_id, state, attempt, external_ref, result, error
FROM tool_claims.status('task-1', 'call-1') \gx
SELECT effect_key = 'tc1-' || tool_claims.digest('["tool_claims effect key", "claims", "task-1", "call-1", 0]')::text AS derived FROM tool_claims.status('task-1', 'call-1');
SELECT task_id, tool_call_id, tool_name, state, attempt FROM tool_claims.claims ORDER BY task_id, tool_call_id;

-- arguments
SELECT tool_claims.claim(NULL, 'call-1', 'mail', '{}');		-- fails
SELECT tool_claims.claim('', 'call-1', 'mail', '{}');		-- fails
SELECT tool_claims.claim('task-8', repeat('x', 513), 'mail', '{}');		-- fails
SELECT tool_claims.claim('task-8', 'call-1', '*', '{}');		-- fails
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{}', lease => '0');		-- fails
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{}', lease => '2 hours');		-- fails
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{}', wait => '-1 s');		-- fails
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{}', dispatched => false);		-- fails
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{"a": 1, "a": 2}');		-- fails
SET tool_claims.max_input_size = '1 kB';
SELECT tool_claims.claim('task-8', 'call-1', 'mail', to_json(repeat('x', 2000)));		-- fails
RESET tool_claims.max_input_size;
BEGIN READ ONLY;
SELECT tool_claims.claim('task-8', 'call-1', 'mail', '{}');		-- fails
ROLLBACK;

DROP TABLE refunds, late;
DROP FUNCTION claim_late();
DROP PROCEDURE claim_and_commit(), complete_and_commit();
