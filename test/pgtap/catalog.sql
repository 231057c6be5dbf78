-- catalog.sql: the extension's objects as the catalog has them.

BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS tool_claims;

SELECT plan(332);

CREATE TEMPORARY VIEW members AS
SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, d.objsubid) AS description,
	(pg_identify_object(d.classid, d.objid, d.objsubid)).*
FROM pg_catalog.pg_depend AS d
	JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'tool_claims'
WHERE d.deptype = 'e' AND d.refclassid = 'pg_catalog.pg_extension'::regclass;
CREATE TEMPORARY VIEW functions AS
SELECT p.*, p.oid::regprocedure::text AS signature
FROM members AS m JOIN pg_catalog.pg_proc AS p ON p.oid = m.objid
WHERE m.classid = 'pg_catalog.pg_proc'::regclass;
CREATE TEMPORARY VIEW tables AS
SELECT c.*
FROM members AS m JOIN pg_catalog.pg_class AS c ON c.oid = m.objid
WHERE m.classid = 'pg_catalog.pg_class'::regclass AND c.relkind = 'r';

--
-- the extension
--

SELECT is((extrelocatable, n.nspname)::text, '(f,pg_catalog)', 'not relocatable, its script makes its schema')
FROM pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace WHERE extname = 'tool_claims';
SELECT is((superuser, trusted, relocatable)::text, '(t,f,f)', 'for superusers, not trusted')
FROM pg_catalog.pg_available_extension_versions WHERE name = 'tool_claims' AND installed;
SELECT is((SELECT string_agg(description, ', ') FROM members
	WHERE description <> 'schema tool_claims' AND schema IS DISTINCT FROM 'tool_claims' AND type NOT IN ('cast')), NULL, 'all members lie in its schema');
SELECT is((SELECT string_agg(description, ', ') FROM members
	WHERE obj_description(objid, (SELECT relname FROM pg_catalog.pg_class WHERE oid = classid)) IS NULL
		AND type NOT IN ('function of access method', 'operator of access method')
		-- a type that PostgreSQL makes beside another object
		AND NOT (type = 'type' AND objid IN (
			SELECT t.oid FROM pg_catalog.pg_type AS t LEFT JOIN pg_catalog.pg_class AS c ON c.oid = t.typrelid
			WHERE t.typelem <> 0 AND t.typcategory = 'A' OR c.relkind IN ('r', 'v')))), NULL, 'every member has a comment');

--
-- functions
--

SELECT is((SELECT string_agg(signature, ', ') FROM functions WHERE prosecdef), NULL, 'no SECURITY DEFINER');
SELECT is((SELECT string_agg(signature, ', ') FROM functions WHERE proleakproof), NULL, 'nothing is LEAKPROOF');

CREATE TEMPORARY TABLE contract (name text PRIMARY KEY, arguments text, result text, volatility "char", parallel "char");
INSERT INTO contract VALUES
	('digest', 'tool_claims.canonical_json', 'tool_claims.sha256_digest', 'i', 's'),
	('is_portable', 'tool_claims.canonical_json', 'boolean', 'i', 's'),
	('claim', 'task_id text, tool_call_id text, tool_name text, input tool_claims.canonical_json, lease interval DEFAULT NULL::interval, wait interval DEFAULT ''00:00:00''::interval, operation_id text DEFAULT NULL::text, request_id uuid DEFAULT NULL::uuid, tool_server text DEFAULT ''''::text, not_after timestamp with time zone DEFAULT NULL::timestamp with time zone, dispatched boolean DEFAULT true', 'tool_claims.claim_result', 'v', 'u'),
	('dispatch', 'task_id text, tool_call_id text, attempt integer, external_ref text DEFAULT NULL::text', 'tool_claims.claim_result', 'v', 'u'),
	('renew', 'task_id text, tool_call_id text, attempt integer, lease interval', 'tool_claims.claim_result', 'v', 'u'),
	('complete', 'task_id text, tool_call_id text, result json DEFAULT NULL::json, attempt integer DEFAULT NULL::integer', 'tool_claims.claim_result', 'v', 'u'),
	('fail', 'task_id text, tool_call_id text, error json, attempt integer DEFAULT NULL::integer', 'tool_claims.claim_result', 'v', 'u'),
	('release', 'task_id text, tool_call_id text, attempt integer DEFAULT NULL::integer, reason text DEFAULT NULL::text, new_effect_key boolean DEFAULT false', 'tool_claims.claim_result', 'v', 'u'),
	('mark_uncertain', 'task_id text, tool_call_id text, attempt integer, reason text', 'tool_claims.claim_result', 'v', 'u'),
	('report_late', 'task_id text, tool_call_id text, attempt integer, result json', 'void', 'v', 'u'),
	('reconcile', 'task_id text, tool_call_id text, attempt integer, finding tool_claims.finding, evidence jsonb, result json DEFAULT NULL::json, error json DEFAULT NULL::json, new_effect_key boolean DEFAULT false', 'tool_claims.claim_result', 'v', 'u'),
	('assert_claim', 'task_id text, tool_call_id text, attempt integer', 'void', 'v', 'u'),
	('current_claim', '', 'SETOF tool_claims.claim_status', NULL, 'u'),
	('require_claim', 'tool_name text, tool_server text DEFAULT ''''::text', 'tool_claims.claim_status', NULL, 'u'),
	('status', 'task_id text, tool_call_id text', 'SETOF tool_claims.claim_status', NULL, NULL),
	('find_claims', 'effect_key text', 'SETOF tool_claims.claim_status', NULL, NULL),
	('execute', 'task_id text, tool_call_id text, tool_name text, input tool_claims.canonical_json, handler regprocedure, operation_id text DEFAULT NULL::text, wait interval DEFAULT ''00:00:10''::interval, tool_server text DEFAULT ''''::text', 'json', 'v', 'u'),
	('propose', 'task_id text, tool_call_id text, tool_name text, input tool_claims.canonical_json, actor text, project text DEFAULT ''''::text, tool_server text DEFAULT ''''::text, schema_version text DEFAULT ''''::text, policy_version text DEFAULT NULL::text, operation_id text DEFAULT NULL::text, execution_id uuid DEFAULT NULL::uuid, expires_in interval DEFAULT NULL::interval, summary text DEFAULT NULL::text, supersedes text DEFAULT NULL::text', 'tool_claims.proposal_result', 'v', 'u'),
	('approve', 'task_id text, tool_call_id text, binding_digest tool_claims.sha256_digest, comment text DEFAULT NULL::text, use_within interval DEFAULT NULL::interval', 'tool_claims.decision_result', 'v', 'u'),
	('reject', 'task_id text, tool_call_id text, binding_digest tool_claims.sha256_digest, comment text DEFAULT NULL::text', 'tool_claims.decision_result', 'v', 'u'),
	('revoke', 'task_id text, tool_call_id text, reason text', 'tool_claims.decision_result', 'v', 'u'),
	('approve_as', 'approver text, task_id text, tool_call_id text, binding_digest tool_claims.sha256_digest, comment text DEFAULT NULL::text, use_within interval DEFAULT NULL::interval', 'tool_claims.decision_result', 'v', 'u'),
	('reject_as', 'approver text, task_id text, tool_call_id text, binding_digest tool_claims.sha256_digest, comment text DEFAULT NULL::text', 'tool_claims.decision_result', 'v', 'u'),
	('revoke_as', 'approver text, task_id text, tool_call_id text, reason text', 'tool_claims.decision_result', 'v', 'u'),
	('withdraw', 'task_id text, tool_call_id text, reason text', 'tool_claims.decision_result', 'v', 'u'),
	('reserve', 'task_id text, tool_call_id text, execution_id uuid, tool_name text, input tool_claims.canonical_json, actor text, project text DEFAULT ''''::text, tool_server text DEFAULT ''''::text, schema_version text DEFAULT ''''::text, policy_version text DEFAULT NULL::text, operation_id text DEFAULT NULL::text, lease interval DEFAULT NULL::interval, wait interval DEFAULT ''00:00:00''::interval, request_id uuid DEFAULT NULL::uuid, dispatched boolean DEFAULT true', 'tool_claims.claim_result', 'v', 'u'),
	('reserve_by_digest', 'task_id text, tool_call_id text, execution_id uuid, binding_digest tool_claims.sha256_digest, lease interval DEFAULT NULL::interval, wait interval DEFAULT ''00:00:00''::interval, request_id uuid DEFAULT NULL::uuid, dispatched boolean DEFAULT true', 'tool_claims.claim_result', 'v', 'u'),
	('review', 'task_id text, tool_call_id text', 'tool_claims.proposal_review', NULL, NULL),
	('inbox_for', 'principal text', 'SETOF tool_claims.inbox', NULL, NULL),
	('add_approver', 'principal text, grp text DEFAULT ''''::text, project text DEFAULT ''*''::text, tool_server text DEFAULT ''*''::text, tool_name text DEFAULT ''*''::text', 'void', 'v', 'u'),
	('remove_approver', 'principal text, grp text DEFAULT ''''::text, project text DEFAULT ''*''::text, tool_server text DEFAULT ''*''::text, tool_name text DEFAULT ''*''::text', 'void', 'v', 'u'),
	('evidence', 'task_id text, tool_call_id text', NULL, NULL, NULL),
	('verify_evidence', 'task_id text, tool_call_id text, expected_head tool_claims.sha256_digest DEFAULT NULL::tool_claims.sha256_digest, OUT ok boolean, OUT broken_at integer, OUT reason text', 'record', NULL, NULL),
	('evidence_heads', NULL, NULL, NULL, NULL),
	('timeline', 'task_id text, tool_call_id text', 'SETOF text', NULL, NULL),
	('set_tool_policy', 'tool_name text, tool_server text DEFAULT ''*''::text, enabled boolean DEFAULT NULL::boolean, effect text DEFAULT NULL::text, approvals_required integer DEFAULT NULL::integer, approval_rule regprocedure DEFAULT NULL::regprocedure, approver_groups text[] DEFAULT NULL::text[], allow_self_approval boolean DEFAULT NULL::boolean, policy_version text DEFAULT NULL::text, on_lease_expiry text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, operation_required boolean DEFAULT NULL::boolean, proposal_ttl interval DEFAULT NULL::interval, keep_input boolean DEFAULT NULL::boolean, input_check regprocedure DEFAULT NULL::regprocedure, retention interval DEFAULT NULL::interval, log text DEFAULT NULL::text, reset text[] DEFAULT NULL::text[]', 'void', 'v', 'u'),
	('drop_tool_policy', 'tool_name text, tool_server text DEFAULT ''*''::text', 'void', 'v', 'u'),
	('grant_duty', 'role regrole, duty text', 'void', 'v', 'u'),
	('revoke_duty', 'role regrole, duty text', 'void', 'v', 'u'),
	('sweep', 'max_rows integer DEFAULT 1000', 'integer', 'v', 'u'),
	('prune', 'older_than interval DEFAULT NULL::interval, max_rows integer DEFAULT 1000, tombstones boolean DEFAULT true', 'integer', 'v', 'u'),
	('redact', 'task_id text, tool_call_id text, reason text', 'void', 'v', 'u');
SELECT is((SELECT count(*)::integer FROM functions WHERE proname = c.name AND prokind = 'f'), 1, c.name || ': exists once')
FROM contract AS c;
SELECT is(regexp_replace(pg_get_function_arguments(f.oid), '(, )?OUT (organization|seq|at|kind) .*', ''), c.arguments, c.name || ': its arguments')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.arguments IS NOT NULL;
SELECT is(pg_get_function_result(f.oid), c.result, c.name || ': its result')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.result IS NOT NULL;
SELECT is(f.provolatile, c.volatility, c.name || ': its volatility')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.volatility IS NOT NULL;
SELECT is(f.proparallel, c.parallel, c.name || ': its parallel safety')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.parallel IS NOT NULL;
SELECT ok(f.provolatile <> 'i', c.name || ': reads the tables, so is not immutable')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.volatility IS NULL;
SELECT cmp_ok(f.procost, '>=', 100::real, c.name || ': costly, so that no planner runs it early')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.volatility = 'v';
SELECT is(f.proisstrict, false, c.name || ': not strict, a NULL is an error')
FROM contract AS c JOIN functions AS f ON f.proname = c.name WHERE c.name NOT IN ('digest', 'is_portable');
SELECT is((SELECT string_agg(s.name, ', ') FROM contract AS c JOIN functions AS f ON f.proname = c.name,
		unnest(f.proargnames) AS s (name) WHERE s.name IS NULL OR s.name = ''), NULL, 'every argument has a name');

--
-- types
--

SELECT enums_are('tool_claims', ARRAY['outcome', 'claim_state', 'finding', 'proposal_state', 'proposal_outcome', 'decision_outcome'] || coalesce((
	SELECT array_agg(typname ORDER BY typname) FROM pg_catalog.pg_type
	WHERE typnamespace = 'tool_claims'::regnamespace AND typtype = 'e' AND typname NOT IN ('outcome', 'claim_state', 'finding', 'proposal_state', 'proposal_outcome', 'decision_outcome')), '{}'), 'the enums');
SELECT enum_has_labels('tool_claims', 'outcome', ARRAY['acquired', 'completed', 'failed', 'released', 'in_progress', 'uncertain', 'conflict', 'refused'], 'outcome');
SELECT enum_has_labels('tool_claims', 'claim_state', ARRAY['claimed', 'completed', 'failed', 'released', 'uncertain', 'retired'], 'claim_state');
SELECT enum_has_labels('tool_claims', 'finding', ARRAY['occurred', 'not_occurred', 'abandoned', 'compensated'], 'finding');
SELECT enum_has_labels('tool_claims', 'proposal_state', ARRAY['pending', 'approved', 'rejected', 'withdrawn', 'revoked', 'superseded', 'expired', 'reserved'], 'proposal_state');
SELECT enum_has_labels('tool_claims', 'proposal_outcome', ARRAY['proposed', 'existing', 'conflict', 'refused'], 'proposal_outcome');
SELECT enum_has_labels('tool_claims', 'decision_outcome', ARRAY['recorded', 'already_recorded', 'refused'], 'decision_outcome');
CREATE FUNCTION pg_temp.columns(relation text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
	FROM pg_catalog.pg_attribute AS a
	WHERE a.attrelid = relation::regclass AND a.attnum > 0 AND NOT a.attisdropped
$$;
SELECT is(pg_temp.columns('tool_claims.claim_result'),
	'outcome tool_claims.outcome, reason text, task_id text, tool_call_id text, attempt integer, effect_key text, result json, error json, input json, held_by text, retry_after interval, lease_expires_at timestamp with time zone, claimed_at timestamp with time zone, finished_at timestamp with time zone',
	'claim_result');
SELECT is(pg_temp.columns('tool_claims.claim_status'),
	'organization text, task_id text, tool_call_id text, tool_server text, tool_name text, input_digest tool_claims.sha256_digest, input '
	|| (SELECT format_type(atttypid, NULL) FROM pg_catalog.pg_attribute WHERE attrelid = 'tool_claims.claim_status'::regclass AND attname = 'input')
	|| ', operation_id text, effect_key text, state tool_claims.claim_state, attempt integer, held_by text, claimed_at timestamp with time zone, dispatched_at timestamp with time zone, lease_expires_at timestamp with time zone, not_after timestamp with time zone, finished_at timestamp with time zone, external_ref text, result json, error json',
	'claim_status');
SELECT is(pg_temp.columns('tool_claims.claims'),
	regexp_replace(pg_temp.columns('tool_claims.claim_status'), ', (input|result|error) [a-z_.]+', '', 'g'),
	'view claims: claim_status without input, result and error');
SELECT is(pg_temp.columns('tool_claims.proposal_result'),
	'outcome tool_claims.proposal_outcome, reason text, state tool_claims.proposal_state, binding_digest tool_claims.sha256_digest, execution_id uuid, policy_version text, expires_at timestamp with time zone, approvals integer, approvals_required integer, execution tool_claims.outcome, result json, error json',
	'proposal_result');
SELECT is(pg_temp.columns('tool_claims.decision_result'),
	'outcome tool_claims.decision_outcome, reason text, state tool_claims.proposal_state, approvals integer, approvals_required integer', 'decision_result');
SELECT is((SELECT string_agg(name, ', ') FROM unnest(ARRAY['organization', 'task_id', 'tool_call_id', 'state', 'actor', 'project', 'tool_server', 'tool_name', 'schema_version',
		'policy_version', 'operation_id', 'execution_id', 'expires_at', 'summary', 'input', 'binding_digest', 'votes', 'age', 'earlier_rejections']) AS name
	WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = 'tool_claims.proposal_review'::regclass AND attname = name)), NULL, 'proposal_review has all that is bound');
SELECT is((SELECT string_agg(name || '.' || column_name, ', ') FROM (VALUES
		('proposals', '{organization,task_id,tool_call_id,tool_server,tool_name,state,binding_digest,execution_id,expires_at,approvals,approvals_required}'::text[]),
		('inbox', '{organization,task_id,tool_call_id,tool_server,tool_name,binding_digest,age,expires_at,equal_pending}'),
		('ready', '{organization,task_id,tool_call_id,tool_server,tool_name,execution_id,binding_digest,use_by}')) AS v (name, columns), unnest(columns) AS column_name
	WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_attribute WHERE attrelid = ('tool_claims.' || name)::regclass AND attname = column_name)), NULL, 'views proposals, inbox and ready');
SELECT is(regexp_replace(pg_temp.columns('tool_claims.attention'), ' (text|integer|interval|timestamp with time zone)', '', 'g'),
	'organization, kind, task_id, tool_call_id, tool_server, tool_name, attempt, effect_key, external_ref, held_by, since, age, reason', 'view attention');

--
-- tables
--

SELECT ok(EXISTS (SELECT FROM tables AS t WHERE t.relname = name), 'table ' || name)
FROM unnest(ARRAY['claim_records', 'operations', 'events', 'policies', 'policy_numbers', 'proposal_records', 'votes', 'approvers', 'duties']) AS name;
SELECT is((SELECT string_agg(c.relname || '.' || a.attname, ', ')
	FROM tables AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	WHERE a.atttypid IN (SELECT oid FROM pg_catalog.pg_type WHERE typname ~ '^(_?reg[a-z]+|_?xid8?|_?oid|_?cid)$' AND typnamespace = 'pg_catalog'::regnamespace)),
	NULL, 'no column of a reg* type, no xid, no OID');
SELECT is((SELECT string_agg(c.relname || '.' || a.attname, ', ')
	FROM tables AS c JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
	WHERE t.typtype = 'e'), NULL, 'no enum in a table');
SELECT is((SELECT string_agg(i.indexrelid::regclass::text || ' ' || a.attname, ', ')
	FROM tables AS c JOIN pg_catalog.pg_index AS i ON i.indrelid = c.oid
		CROSS JOIN unnest(i.indkey::smallint[]) AS k (attnum)
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = k.attnum
	WHERE a.attcollation NOT IN (0, (SELECT oid FROM pg_catalog.pg_collation WHERE collname = 'C' AND collnamespace = 'pg_catalog'::regnamespace))),
	NULL, 'every text in an index has the collation C');
SELECT is((SELECT string_agg(i.indexrelid::regclass::text, ', ')
	FROM tables AS c JOIN pg_catalog.pg_index AS i ON i.indrelid = c.oid CROSS JOIN unnest(i.indcollation::oid[]) AS k (collation_oid)
	WHERE k.collation_oid NOT IN (0, (SELECT oid FROM pg_catalog.pg_collation WHERE collname = 'C' AND collnamespace = 'pg_catalog'::regnamespace))),
	NULL, 'every index too');
SELECT is(
	(SELECT string_agg(a.attname, ' ' ORDER BY k.n)
	FROM pg_catalog.pg_index AS i CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, n)
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
	WHERE i.indrelid = 'tool_claims.claim_records'::regclass AND i.indisprimary),
	'organization task_id tool_call_id', 'the key of a record');
SELECT is(
	(SELECT string_agg(a.attname, ' ' ORDER BY k.n)
	FROM pg_catalog.pg_index AS i CROSS JOIN unnest(i.indkey::smallint[]) WITH ORDINALITY AS k (attnum, n)
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
	WHERE i.indrelid = 'tool_claims.proposal_records'::regclass AND i.indisprimary),
	'organization task_id tool_call_id', 'and of a proposal');
SELECT is((SELECT string_agg(c.relname, ', ') FROM tables AS c WHERE c.relname NOT LIKE 'dut%' AND c.relname NOT IN ('births', 'server_identity')
	AND NOT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = c.oid AND a.attname = 'organization' AND a.attnotnull)),
	NULL, 'every table but those of duties and of the server has the organization');
SELECT is((SELECT string_agg(c.relname, ', ') FROM tables AS c WHERE c.relpersistence <> 'p'), NULL, 'every table is logged');
SELECT is((SELECT string_agg(c.relname, ', ') FROM tables AS c WHERE c.relrowsecurity OR c.relhasrules), NULL, 'plain: no row security, no rules');
SELECT is((SELECT string_agg(c.relname, ', ') FROM tables AS c, pg_catalog.pg_extension AS e
	WHERE e.extname = 'tool_claims' AND NOT c.oid = ANY (e.extconfig)), NULL, 'a dump has the rows of every table');
SELECT is((SELECT string_agg(m.description, ', ') FROM members AS m JOIN pg_catalog.pg_class AS c ON m.classid = 'pg_catalog.pg_class'::regclass AND c.oid = m.objid
	WHERE c.relkind = 'S'), NULL, 'no sequence');
SELECT is((SELECT string_agg(tgrelid::regclass || ' ' || tgname, ', ') FROM pg_catalog.pg_trigger AS t JOIN tables AS c ON c.oid = t.tgrelid
	WHERE NOT tgisinternal AND t.tgtype & 4 <> 0 AND c.relname IN ('claim_records', 'operations', 'events')), NULL, 'no insert trigger in the way of a claim');
-- claim → complete is a HOT update: no index on, or predicated on, what it changes
SELECT is((SELECT string_agg(i.indexrelid::regclass || ' ' || a.attname, ', ')
	FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum > 0
	WHERE i.indrelid = 'tool_claims.claim_records'::regclass AND a.attname IN ('state', 'result', 'finished_at', 'error')
		AND (a.attnum = ANY (i.indkey) OR pg_get_indexdef(i.indexrelid) ~ ('\m' || a.attname || '\M'))), NULL, 'complete can be a HOT update');
SELECT ok(NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k JOIN tables AS c ON c.oid = k.conrelid
	WHERE k.contype = 'f' AND NOT EXISTS (
		SELECT FROM unnest(k.conkey) AS n JOIN pg_catalog.pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = n AND a.attname = 'task_id')),
	'no foreign key without task_id');

--
-- grants: only the owner's, also when default privileges would give more
--

SELECT is((SELECT string_agg(f.signature, ', ') FROM functions AS f, aclexplode(f.proacl) AS a
	WHERE a.grantee <> f.proowner AND a.grantee NOT IN (SELECT oid FROM pg_catalog.pg_roles WHERE rolname IN (SELECT role_name FROM tool_claims.duties))),
	NULL, 'functions');
SELECT is((SELECT string_agg(f.signature, ', ') FROM functions AS f WHERE f.proacl IS NULL), NULL, 'every function''s are set');

-- dropped and created again in one session, twice, the verbs find the new objects
SELECT is(outcome::text, 'acquired', 'before') FROM tool_claims.claim('catalog', 'c', 'tool', '{}');
SELECT is(outcome::text, 'completed', 'before') FROM tool_claims.complete('catalog', 'c', '1');
SAVEPOINT a;
DROP EXTENSION tool_claims CASCADE;
SELECT throws_ok($$SELECT tool_claims.claim('catalog', 'c', 'tool', '{}')$$, '3F000', NULL, 'dropped');
CREATE EXTENSION tool_claims;
SELECT is(outcome::text, 'acquired', 'created again: all is new') FROM tool_claims.claim('catalog', 'c', 'tool', '[]');
SELECT is(result::text, '2', 'it works') FROM tool_claims.complete('catalog', 'c', '2');
SELECT is((state, result)::text, '(completed,2)', 'and reads') FROM tool_claims.status('catalog', 'c');
SELECT lives_ok($$SELECT tool_claims.set_tool_policy('tool', enabled => false)$$, 'a policy');
SELECT is((outcome, reason)::text, '(refused,tool_disabled)', 'counts') FROM tool_claims.claim('catalog', 'd', 'tool', '{}');
SELECT is(kind, 'refused', 'and is in the evidence') FROM tool_claims.evidence('catalog', 'd');
ROLLBACK TO a;
SELECT is((outcome, result)::text, '(completed,1)', 'rolled back, the old ones are there') FROM tool_claims.claim('catalog', 'c', 'tool', '{}');
SELECT is((outcome, reason)::text, '(acquired,)', 'the policy is not') FROM tool_claims.claim('catalog', 'd', 'tool', '{}');

-- an installation under default privileges that give everything away
CREATE ROLE regress_tap_default;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO regress_tap_default;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO regress_tap_default;
ALTER DEFAULT PRIVILEGES GRANT ALL ON FUNCTIONS TO regress_tap_default;
ALTER DEFAULT PRIVILEGES GRANT ALL ON TYPES TO regress_tap_default;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SCHEMAS TO regress_tap_default;
DROP EXTENSION tool_claims CASCADE;
CREATE EXTENSION tool_claims;
SELECT cmp_ok((SELECT count(*)::integer FROM functions), '>', 40, 'installed again');
SELECT is((SELECT string_agg(signature, ', ') FROM functions WHERE has_function_privilege('regress_tap_default', oid, 'EXECUTE')), NULL, 'no function is given away');
SELECT is((SELECT string_agg(relname, ', ') FROM pg_catalog.pg_class WHERE relnamespace = 'tool_claims'::regnamespace AND relkind IN ('r', 'v', 'S')
	AND (has_table_privilege('regress_tap_default', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
		OR has_any_column_privilege('regress_tap_default', oid, 'SELECT, INSERT, UPDATE, REFERENCES'))), NULL, 'no table');
SELECT ok(NOT has_schema_privilege('regress_tap_default', 'tool_claims', 'USAGE, CREATE'), 'nor the schema');
SELECT is((SELECT string_agg(t.typname, ', ') FROM pg_catalog.pg_type AS t, aclexplode(t.typacl) AS a
	WHERE t.typnamespace = 'tool_claims'::regnamespace AND a.grantee = 'regress_tap_default'::regrole), NULL, 'nor a type');

SELECT * FROM finish();
ROLLBACK;
