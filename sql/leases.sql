-- leases: claims of effects outside this database, what happens when nobody answers
SET tool_claims.organization = 'leases';

-- claim, COMMIT, act, complete, COMMIT; each statement here is a transaction
SELECT outcome, attempt FROM tool_claims.claim('t', 'mail-1', 'mail', '{"to": "ada"}', lease => '2 min');
SELECT outcome, attempt FROM tool_claims.renew('t', 'mail-1', 1, '5 min');
SELECT state, attempt, dispatched_at IS NOT NULL AS dispatched, lease_expires_at > claimed_at + interval '4 min' AS renewed
FROM tool_claims.status('t', 'mail-1');
SELECT outcome, attempt, result FROM tool_claims.complete('t', 'mail-1', '{"id": 1}', attempt => 1);
-- a worker that renews too late learns that it is done
SELECT outcome, result FROM tool_claims.renew('t', 'mail-1', 1, '5 min');

-- in two steps: claimed, prepared, dispatched right before the effect
SELECT outcome, attempt FROM tool_claims.claim('t', 'mail-2', 'mail', '{"to": "bob"}', lease => '2 min', dispatched => false);
SELECT tool_claims.complete('t', 'mail-2', '{"id": 2}', attempt => 1);		-- fails, it was never dispatched
SELECT outcome, attempt FROM tool_claims.dispatch('t', 'mail-2', 1, external_ref => 'batch 12');
SELECT state, dispatched_at IS NOT NULL AS dispatched, external_ref FROM tool_claims.status('t', 'mail-2');
SELECT outcome FROM tool_claims.complete('t', 'mail-2', '{"id": 2}', attempt => 1);

-- the lease of a dispatched claim runs out: nobody knows, and it stays so
SELECT outcome FROM tool_claims.claim('t', 'mail-3', 'mail', '{"to": "cy"}', lease => '2 min');
SET tool_claims.clock_offset = '3 min';
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'mail-3', 'mail', '{"to": "cy"}', lease => '2 min');
SELECT state FROM tool_claims.status('t', 'mail-3');
SELECT tool_claims.renew('t', 'mail-3', 1, '2 min');		-- fails
SELECT tool_claims.release('t', 'mail-3', 1);		-- fails
SELECT kind, tool_call_id, tool_name, attempt, reason FROM tool_claims.attention;
-- the worker was only slow: its late answer still counts
SELECT outcome, result FROM tool_claims.complete('t', 'mail-3', '{"id": 3}', attempt => 1);
SELECT outcome, result FROM tool_claims.claim('t', 'mail-3', 'mail', '{"to": "cy"}', lease => '2 min');
SELECT kind, attempt FROM tool_claims.evidence('t', 'mail-3');
RESET tool_claims.clock_offset;

-- one that was never dispatched is free again
SELECT outcome FROM tool_claims.claim('t', 'mail-4', 'mail', '{"to": "dee"}', lease => '2 min', dispatched => false);
SET tool_claims.clock_offset = '3 min';
SELECT state FROM tool_claims.status('t', 'mail-4');
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'mail-4', 'mail', '{"to": "dee"}', lease => '2 min');
SELECT tool_claims.dispatch('t', 'mail-4', 1);		-- fails, the first attempt is stale
RESET tool_claims.clock_offset;

-- a tool that is safe to repeat
SELECT tool_claims.set_tool_policy('put_file', on_lease_expiry => 'reacquire');
SELECT outcome FROM tool_claims.claim('t', 'put-1', 'put_file', '{}', lease => '2 min');
SET tool_claims.clock_offset = '3 min';
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'put-1', 'put_file', '{}', lease => '2 min');
SELECT tool_claims.complete('t', 'put-1', '1', attempt => 1);		-- fails, another has taken over
SELECT outcome FROM tool_claims.complete('t', 'put-1', '2', attempt => 2);
RESET tool_claims.clock_offset;

-- a worker that does not know says so
SELECT outcome FROM tool_claims.claim('t', 'pay-1', 'pay', '{"cents": 1}', lease => '2 min');
SELECT outcome FROM tool_claims.mark_uncertain('t', 'pay-1', 1, 'the connection broke after the request');
SELECT outcome, reason FROM tool_claims.claim('t', 'pay-1', 'pay', '{"cents": 1}', lease => '2 min');
SELECT kind, tool_call_id, attempt, reason FROM tool_claims.attention;

-- somebody looks, and decides with evidence: it has happened
SELECT tool_claims.reconcile('t', 'pay-1', 1, 'occurred', '{}');		-- fails, no evidence
SELECT outcome, result FROM tool_claims.reconcile('t', 'pay-1', 1, 'occurred', '{"statement": "p. 3"}', result => '{"paid": 1}');
SELECT outcome, result FROM tool_claims.claim('t', 'pay-1', 'pay', '{"cents": 1}', lease => '2 min');
SELECT tool_claims.complete('t', 'pay-1', '{"paid": 1}', attempt => 1);		-- fails, reconciling ended the attempt

-- it has not happened: the next delivery may try again, under the same effect key
SELECT effect_key AS key FROM tool_claims.claim('t', 'pay-2', 'pay', '{"cents": 2}', lease => '2 min') \gset
SELECT outcome FROM tool_claims.mark_uncertain('t', 'pay-2', 1, 'no answer');
SELECT outcome FROM tool_claims.reconcile('t', 'pay-2', 1, 'not_occurred', '{"statement": "not on it"}');
SELECT outcome, reason, attempt, effect_key = :'key' AS same_key FROM tool_claims.claim('t', 'pay-2', 'pay', '{"cents": 2}', lease => '2 min');
-- and then the first attempt speaks up: the effect may have happened twice
SELECT tool_claims.complete('t', 'pay-2', '{"paid": 2}', attempt => 1);		-- fails
SELECT tool_claims.report_late('t', 'pay-2', 1, '{"paid": 2}');
SELECT tool_claims.report_late('t', 'pay-2', 3, '{"paid": 2}');		-- fails, there is no such attempt
SELECT kind, tool_call_id, attempt FROM tool_claims.attention;
SELECT outcome FROM tool_claims.complete('t', 'pay-2', '{"paid": 2}', attempt => 2);

-- it is given up, or was compensated: failed, with the reconciler's error
SELECT outcome FROM tool_claims.claim('t', 'pay-3', 'pay', '{"cents": 3}', lease => '2 min');
SELECT tool_claims.reconcile('t', 'pay-3', 1, 'abandoned', '{"by": "ann"}');		-- fails, it is in progress
SELECT outcome FROM tool_claims.mark_uncertain('t', 'pay-3', 1, 'no answer');
SELECT outcome, error FROM tool_claims.reconcile('t', 'pay-3', 1, 'compensated', '{"by": "ann"}', error => '{"code": "paid back"}');
SELECT outcome, error FROM tool_claims.claim('t', 'pay-3', 'pay', '{"cents": 3}', lease => '2 min');

-- a finding that was wrong can be corrected until the next attempt
SELECT outcome FROM tool_claims.claim('t', 'pay-4', 'pay', '{"cents": 4}', lease => '2 min');
SELECT outcome FROM tool_claims.mark_uncertain('t', 'pay-4', 1, 'no answer');
SELECT outcome FROM tool_claims.reconcile('t', 'pay-4', 1, 'not_occurred', '{"statement": "not yet on it"}');
SELECT outcome FROM tool_claims.reconcile('t', 'pay-4', 1, 'occurred', '{"statement": "now it is"}', result => '{"paid": 4}');
SELECT tool_claims.reconcile('t', 'pay-4', 1, 'not_occurred', '{"statement": "gone"}');		-- fails

-- another effect needs another key
SELECT effect_key AS key FROM tool_claims.claim('t', 'pay-5', 'pay', '{"cents": 5}', lease => '2 min') \gset
SELECT outcome FROM tool_claims.release('t', 'pay-5', 1, reason => 'the destination has burnt the key', new_effect_key => true);
SELECT attempt, effect_key = :'key' AS same_key,
	effect_key = 'tc1-' || tool_claims.digest('["tool_claims effect key", "leases", "t", "pay-5", 1]')::text AS derived
FROM tool_claims.claim('t', 'pay-5', 'pay', '{"cents": 5}', lease => '2 min');

-- the answer to the claim itself is lost: its request id brings it back
SELECT outcome, attempt FROM tool_claims.claim('t', 'mail-5', 'mail', '{}', lease => '2 min', request_id => '8f5c0c9e-0000-4000-8000-000000000001');
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'mail-5', 'mail', '{}', lease => '2 min', request_id => '8f5c0c9e-0000-4000-8000-000000000001');
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'mail-5', 'mail', '{}', lease => '2 min', request_id => '8f5c0c9e-0000-4000-8000-000000000002');
SELECT outcome FROM tool_claims.dispatch('t', 'mail-5', 1);
SELECT outcome, reason, attempt FROM tool_claims.claim('t', 'mail-5', 'mail', '{}', lease => '2 min', request_id => '8f5c0c9e-0000-4000-8000-000000000001');

-- business writes beside the completion, fenced
CREATE TABLE sent (tool_call_id text);
SELECT outcome, attempt FROM tool_claims.claim('t', 'mail-6', 'mail', '{}', lease => '2 min');
BEGIN;
SELECT tool_claims.assert_claim('t', 'mail-6', 1);
INSERT INTO sent VALUES ('mail-6');
SELECT outcome FROM tool_claims.complete('t', 'mail-6', '1', attempt => 1);
COMMIT;
BEGIN;
INSERT INTO sent VALUES ('mail-6, by a stale attempt');
SELECT tool_claims.assert_claim('t', 'mail-6', 2);		-- fails
COMMIT;
TABLE sent;
DROP TABLE sent;

SELECT tool_call_id, state, attempt FROM tool_claims.claims ORDER BY tool_call_id;
