-- evidence: a chain of events for each key
SET tool_claims.organization = 'evidence';

-- the routine leaves none, exceptions do
SELECT outcome FROM tool_claims.claim('t', 'quiet', 'mail', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.complete('t', 'quiet', '1', attempt => 1);
SELECT count(*) FROM tool_claims.evidence('t', 'quiet');

SELECT outcome FROM tool_claims.claim('t', 'c', 'mail', '{"to": "ada"}', lease => '1 min');
SELECT outcome FROM tool_claims.claim('t', 'c', 'mail', '{"to": "eve"}', lease => '1 min');
SELECT outcome FROM tool_claims.dispatch('t', 'c', 1, external_ref => 'batch 1');
SELECT outcome FROM tool_claims.mark_uncertain('t', 'c', 1, 'no answer');
SELECT outcome FROM tool_claims.reconcile('t', 'c', 1, 'not_occurred', '{"seen by": "ann"}');
SELECT outcome FROM tool_claims.claim('t', 'c', 'mail', '{"to": "ada"}', lease => '1 min');
SELECT outcome FROM tool_claims.fail('t', 'c', '{"code": 5}', attempt => 2);
SELECT tool_claims.report_late('t', 'c', 1, '{"sent":  true}');
SELECT seq, kind, attempt, detail - 'pid' AS detail, previous IS NULL AS first FROM tool_claims.evidence('t', 'c');
SELECT * FROM tool_claims.verify_evidence('t', 'c');

-- anybody can recompute a hash
SELECT seq, hash::text = tool_claims.digest(json_build_object(
		'v', 1, 'organization', organization, 'task_id', task_id, 'tool_call_id', tool_call_id,
		'seq', seq, 'at', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
		'kind', kind, 'attempt', attempt, 'role', role, 'principal', principal,
		'detail', detail_digest::text, 'previous', previous::text))::text AS same
FROM tool_claims.events
WHERE organization = 'evidence' AND task_id = 't' AND tool_call_id = 'c'
ORDER BY seq;

-- heads, to keep elsewhere
SELECT task_id, tool_call_id, seq FROM tool_claims.evidence_heads();
SELECT hash AS head FROM tool_claims.evidence_heads() \gset
SELECT ok FROM tool_claims.verify_evidence('t', 'c', expected_head => :'head');

-- what ends in an error, or is rolled back, leaves no event
SELECT tool_claims.complete('t', 'c', '1', attempt => 9);		-- fails
BEGIN;
SELECT outcome FROM tool_claims.claim('t', 'c', 'mail', '[]');
ROLLBACK;
SELECT count(*) FROM tool_claims.evidence('t', 'c');

-- append-only, for the owner too
\set VERBOSITY terse
UPDATE tool_claims.events SET detail = NULL;		-- fails
DELETE FROM tool_claims.events;		-- fails
DELETE FROM tool_claims.events WHERE false;		-- fails
TRUNCATE tool_claims.events;		-- fails

-- and touched by a superuser who switches the triggers off, it shows
BEGIN;
SET LOCAL session_replication_role = replica;
UPDATE tool_claims.events SET role = 'somebody else' WHERE organization = 'evidence' AND seq = 3;
SELECT ok, broken_at FROM tool_claims.verify_evidence('t', 'c');
ROLLBACK;
BEGIN;
SET LOCAL session_replication_role = replica;
DELETE FROM tool_claims.events WHERE organization = 'evidence' AND seq = 7;
SELECT ok FROM tool_claims.verify_evidence('t', 'c');
SELECT ok FROM tool_claims.verify_evidence('t', 'c', expected_head => :'head');		-- only the head that was kept shows this
ROLLBACK;
