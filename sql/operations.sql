-- operations: one business effect, whatever the deliveries
SET tool_claims.organization = 'operations';

-- the operation names the effect, and is its key at the destination
SELECT outcome, attempt, effect_key FROM tool_claims.claim('t', 'call-1', 'refund', '{"order": 7}', lease => '1 min', operation_id => 'refund of order 7');

-- the model asks for the same refund under another call id: it is answered by the first
SELECT outcome, reason, tool_call_id, attempt, retry_after FROM tool_claims.claim('t', 'call-2', 'refund', '{"order": 7}', lease => '1 min', operation_id => 'refund of order 7');
SELECT outcome FROM tool_claims.complete('t', 'call-1', '{"refunded": 50}', attempt => 1);
SELECT outcome, reason, tool_call_id, result FROM tool_claims.claim('t', 'call-2', 'refund', '{"order": 7}', lease => '1 min', operation_id => 'refund of order 7');
SELECT count(*) FROM tool_claims.status('t', 'call-2');

-- the same operation with other input is a conflict, in every state
SELECT outcome, reason FROM tool_claims.claim('t', 'call-2', 'refund', '{"order": 7, "all": true}', operation_id => 'refund of order 7');
-- of another tool, or on another server, it is another operation
SELECT outcome, effect_key FROM tool_claims.claim('t', 'call-3', 'mail', '{}', lease => '1 min', operation_id => 'refund of order 7');
SELECT outcome, effect_key FROM tool_claims.claim('t', 'call-4', 'refund', '{}', lease => '1 min', tool_server => 'shop 2', operation_id => 'refund of order 7');

-- a released one goes over to the pair that acquires next
SELECT outcome, effect_key FROM tool_claims.claim('t', 'call-5', 'refund', '{"order": 8}', lease => '1 min', operation_id => 'refund of order 8');
SELECT outcome FROM tool_claims.release('t', 'call-5', 1);
SELECT outcome, tool_call_id, attempt, effect_key FROM tool_claims.claim('t', 'call-6', 'refund', '{"order": 8}', lease => '1 min', operation_id => 'refund of order 8');
SELECT outcome, reason, tool_call_id FROM tool_claims.claim('t', 'call-5', 'refund', '{"order": 8}', lease => '1 min', operation_id => 'refund of order 8');
SELECT tool_claims.reconcile('t', 'call-5', 1, 'occurred', '{"by": "ann"}');		-- fails, it has not the operation any more
SELECT outcome FROM tool_claims.fail('t', 'call-6', '{"code": "closed"}', attempt => 1);
-- a failed operation stays failed: a corrected one has another id
SELECT outcome, reason, tool_call_id, error FROM tool_claims.claim('t', 'call-5', 'refund', '{"order": 8}', lease => '1 min', operation_id => 'refund of order 8');
SELECT outcome, effect_key FROM tool_claims.claim('t', 'call-7', 'refund', '{"order": 8}', lease => '1 min', operation_id => 'refund of order 8, corrected');

-- who has this key at the destination?
SELECT tool_call_id, state, attempt FROM tool_claims.find_claims('refund of order 8') ORDER BY tool_call_id;
SELECT tool_call_id, tool_server, tool_name FROM tool_claims.find_claims('refund of order 7') ORDER BY tool_call_id;

-- an operation can be required
SELECT tool_claims.set_tool_policy('pay', operation_required => true);
SELECT tool_claims.claim('t', 'pay-1', 'pay', '{}', lease => '1 min');		-- fails
SELECT outcome FROM tool_claims.claim('t', 'pay-1', 'pay', '{}', lease => '1 min', operation_id => 'invoice 1');
SELECT tool_claims.claim('t', 'pay-2', 'pay', '{}', lease => '1 min', operation_id => '');		-- fails
