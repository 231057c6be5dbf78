-- administration: sweep, prune, redact, and what wants attention
SET tool_claims.organization = 'administration';

-- a few keys
SELECT tool_claims.set_tool_policy('mail', keep_input => true);
SELECT outcome FROM tool_claims.claim('t', 'done', 'mail', '{"to": "ada"}', lease => '1 min');
SELECT outcome FROM tool_claims.complete('t', 'done', '{"id": 1}', attempt => 1);
SELECT outcome FROM tool_claims.claim('t', 'lost', 'mail', '{"to": "bob"}', lease => '1 min');
SELECT outcome FROM tool_claims.claim('t', 'prepared', 'mail', '{"to": "cy"}', lease => '1 min', dispatched => false);
SELECT outcome FROM tool_claims.claim('t', 'running', 'mail', '{"to": "dee"}', lease => '1 hour');
SELECT outcome FROM tool_claims.claim('t', 'done', 'mail', '{"to": "eve"}');
SELECT tool_call_id, state FROM tool_claims.claims ORDER BY tool_call_id;

-- time passes: every look sees it, sweep only writes it down
SET tool_claims.clock_offset = '10 min';
SELECT tool_call_id, state FROM tool_claims.claims ORDER BY tool_call_id;
SELECT kind, tool_call_id, tool_name, attempt, age > interval '8 min' AS old, reason FROM tool_claims.attention ORDER BY kind, tool_call_id;
SELECT count(*) FROM tool_claims.evidence('t', 'lost');
SELECT tool_claims.sweep();
SELECT tool_claims.sweep();
SELECT tool_call_id, state FROM tool_claims.claims ORDER BY tool_call_id;
SELECT kind, tool_call_id, attempt, reason FROM tool_claims.attention ORDER BY kind, tool_call_id;
SELECT kind, attempt, detail FROM tool_claims.evidence('t', 'lost');
RESET tool_claims.clock_offset;

-- one key's history, to read
SELECT outcome FROM tool_claims.reconcile('t', 'lost', 1, 'occurred', '{"seen by": "ann"}', result => '{"id": 2}');
SELECT count(*) > 2 AS lines, bool_or(line ~ 'uncertain') AS uncertain, bool_or(line ~ 'reconciled') AS reconciled
FROM tool_claims.timeline('t', 'lost') AS line;
SELECT count(*) FROM tool_claims.evidence('t', 'lost');

-- redact: the content goes, the digests stay, and the chain still verifies
SELECT tool_claims.redact('t', 'running', 'a customer asked for it');		-- fails, it is in progress
SELECT tool_claims.redact('t', 'nobody', 'a customer asked for it');		-- fails, no such record
SELECT tool_claims.redact('t', 'lost', 'a customer asked for it');
SELECT outcome, reason, result FROM tool_claims.claim('t', 'lost', 'mail', '{"to": "bob"}');
SELECT outcome, reason FROM tool_claims.claim('t', 'lost', 'mail', '{"to": "eve"}');
SELECT state, input, result, input_digest::text = tool_claims.digest('{"to": "bob"}')::text AS digest FROM tool_claims.status('t', 'lost');
SELECT kind, detail ->> 'evidence' AS evidence FROM tool_claims.evidence('t', 'lost');
SELECT * FROM tool_claims.verify_evidence('t', 'lost');

-- prune: final records of a certain age; a tombstone keeps the key
SELECT tool_claims.prune(older_than => '1 day');
SET tool_claims.clock_offset = '2 d';
SELECT tool_claims.prune();
SELECT tool_claims.prune(older_than => '1 day');
RESET tool_claims.clock_offset;
SELECT tool_call_id, state FROM tool_claims.claims ORDER BY tool_call_id;
SELECT outcome, reason FROM tool_claims.claim('t', 'done', 'mail', '{"to": "ada"}', lease => '1 min');
SELECT outcome, reason FROM tool_claims.claim('t', 'done', 'mail', '{"to": "eve"}', lease => '1 min');
SELECT kind FROM tool_claims.evidence('t', 'done') WHERE kind = 'pruned';
SELECT * FROM tool_claims.verify_evidence('t', 'done');

-- by the policy's retention
SELECT outcome FROM tool_claims.claim('t', 'short', 'note', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.complete('t', 'short', '1', attempt => 1);
SELECT tool_claims.set_tool_policy('note', retention => '1 hour');
SELECT tool_claims.prune();
SET tool_claims.clock_offset = '2 h';
SELECT tool_claims.prune();
RESET tool_claims.clock_offset;
SELECT state FROM tool_claims.status('t', 'short');

-- without tombstones the key is forgotten: a late redelivery would run again
SELECT outcome FROM tool_claims.claim('t', 'gone', 'note', '{}', lease => '1 min', operation_id => 'op');
SELECT outcome FROM tool_claims.complete('t', 'gone', '1', attempt => 1);
SET tool_claims.clock_offset = '2 h';
SELECT tool_claims.prune(tombstones => false) > 0 AS pruned;
RESET tool_claims.clock_offset;
SELECT count(*) FROM tool_claims.status('t', 'gone');
SELECT count(*) FROM tool_claims.evidence('t', 'gone');
SELECT outcome, attempt FROM tool_claims.claim('t', 'gone', 'note', '[]', lease => '1 min', operation_id => 'op');
SELECT tool_claims.prune(older_than => '-1 day');		-- fails
