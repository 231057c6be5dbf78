-- duties: plain grants, given and taken by name
SET tool_claims.organization = 'duties';

CREATE ROLE regress_duties_worker;
CREATE ROLE regress_duties_rival;
CREATE ROLE regress_duties_operator;
CREATE ROLE regress_duties_admin;
SELECT tool_claims.grant_duty('regress_duties_worker', 'worker');
SELECT tool_claims.grant_duty('regress_duties_rival', 'worker');
SELECT tool_claims.grant_duty('regress_duties_operator', 'reconciler');
SELECT tool_claims.grant_duty('regress_duties_operator', 'auditor');
SELECT tool_claims.grant_duty('regress_duties_admin', 'administrator');
SELECT role_name, duty FROM tool_claims.duties WHERE role_name ~ '^regress_duties_' ORDER BY role_name, duty;
SELECT tool_claims.grant_duty('regress_duties_worker', 'king');		-- fails, no such duty

\set VERBOSITY terse
-- without a duty nobody has anything
SET ROLE pg_monitor;
SELECT tool_claims.claim('t', 'c', 'mail', '{}');		-- fails
RESET ROLE;

-- a worker works
SET ROLE regress_duties_worker;
SELECT outcome, attempt FROM tool_claims.claim('t', 'c', 'mail', '{}', lease => '1 min');
SELECT tool_claims.reconcile('t', 'c', 1, 'occurred', '{"by": "me"}');		-- fails
SELECT tool_claims.evidence('t', 'c');		-- fails
SELECT tool_claims.set_tool_policy('mail', enabled => false);		-- fails
SELECT tool_claims.sweep();		-- fails
SELECT count(*) FROM tool_claims.claims;		-- fails
SELECT count(*) FROM tool_claims.claim_records;		-- fails
UPDATE tool_claims.claim_records SET attempt = 1;		-- fails
SET tool_claims.organization = 'another';		-- fails
SET tool_claims.clock_offset = '1 day';		-- fails
RESET ROLE;

-- what one acquired another cannot end
SET ROLE regress_duties_rival;
SELECT outcome FROM tool_claims.claim('t', 'c', 'mail', '{}', lease => '1 min');
SELECT tool_claims.complete('t', 'c', '1', attempt => 1);		-- fails
SELECT tool_claims.mark_uncertain('t', 'c', 1, 'out of spite');		-- fails
RESET ROLE;
-- unless it is a member of it
GRANT regress_duties_worker TO regress_duties_rival;
SET ROLE regress_duties_rival;
SELECT outcome FROM tool_claims.renew('t', 'c', 1, '1 min');
RESET ROLE;
REVOKE regress_duties_worker FROM regress_duties_rival;

-- a reconciler looks and decides, an auditor reads
SET ROLE regress_duties_operator;
SELECT tool_claims.claim('t', 'c', 'mail', '{}', lease => '1 min');		-- fails
SELECT outcome FROM tool_claims.mark_uncertain('t', 'c', 1, 'the worker is gone');
SELECT kind, tool_call_id, attempt, reason FROM tool_claims.attention;
SELECT outcome FROM tool_claims.reconcile('t', 'c', 1, 'occurred', '{"by": "operator"}', result => '1');
SELECT kind, role FROM tool_claims.evidence('t', 'c');
SELECT ok FROM tool_claims.verify_evidence('t', 'c');
SELECT tool_call_id, state FROM tool_claims.claims;
SELECT tool_claims.redact('t', 'c', 'no reason');		-- fails
RESET ROLE;

-- an administrator administers
SET ROLE regress_duties_admin;
SELECT tool_claims.set_tool_policy('mail', max_attempts => 3);
SELECT tool_claims.sweep();
SELECT tool_claims.redact('t', 'c', 'a customer asked for it');
SELECT tool_claims.claim('t', 'c', 'mail', '{}');		-- fails
SELECT count(*) FROM tool_claims.evidence('t', 'c');		-- fails
SELECT tool_claims.grant_duty('regress_duties_rival', 'reconciler');
SELECT tool_claims.revoke_duty('regress_duties_rival', 'worker');
RESET ROLE;
SET ROLE regress_duties_rival;
SELECT tool_claims.claim('t', 'c', 'mail', '{}');		-- fails, not any more
SELECT state, result FROM tool_claims.status('t', 'c');
RESET ROLE;

SELECT tool_claims.revoke_duty(role_name::regrole, duty) FROM tool_claims.duties WHERE role_name ~ '^regress_duties_';
SELECT count(*) FROM tool_claims.duties WHERE role_name ~ '^regress_duties_';
SELECT has_schema_privilege('regress_duties_worker', 'tool_claims', 'USAGE');
DROP ROLE regress_duties_worker, regress_duties_rival, regress_duties_operator, regress_duties_admin;
