-- privileges.sql: nobody has a right but through a duty, and each duty has its list.

\set organization tap_privileges
\ir include/helpers.psql

SELECT plan(1420);

CREATE VIEW pg_temp.functions AS
SELECT p.oid, p.oid::regprocedure AS signature, p.proname AS name, p.proacl AS acl, p.prosecdef
FROM pg_catalog.pg_depend AS d
	JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'tool_claims'
	JOIN pg_catalog.pg_proc AS p ON p.oid = d.objid
WHERE d.deptype = 'e' AND d.classid = 'pg_catalog.pg_proc'::regclass;
CREATE VIEW pg_temp.relations AS
SELECT c.oid, c.relname AS name, c.relkind AS kind, c.relacl AS acl
FROM pg_catalog.pg_depend AS d
	JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'tool_claims'
	JOIN pg_catalog.pg_class AS c ON c.oid = d.objid
WHERE d.deptype = 'e' AND d.classid = 'pg_catalog.pg_class'::regclass AND c.relkind IN ('r', 'v', 'm', 'S', 'p');

--
-- PUBLIC
--

SELECT is((SELECT string_agg(signature::text, ', ') FROM pg_temp.functions
	WHERE has_function_privilege('public', oid, 'EXECUTE')), NULL, 'PUBLIC can execute nothing');
SELECT is((SELECT string_agg(name, ', ') FROM pg_temp.relations
	WHERE has_table_privilege('public', oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
		OR has_any_column_privilege('public', oid, 'SELECT, INSERT, UPDATE, REFERENCES')), NULL, 'PUBLIC has no table and no view');
SELECT ok(NOT has_schema_privilege('public', 'tool_claims', 'USAGE'), 'PUBLIC has not the schema');
SELECT ok(NOT has_schema_privilege('public', 'tool_claims', 'CREATE'), 'nor may create in it');

--
-- each duty, function by function, view by view
--

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_reconciler', 'regress_tap_auditor', 'regress_tap_administrator',
	'regress_tap_backup', 'regress_tap_nobody', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service');
CREATE TEMPORARY TABLE roles (duty text, role text);
INSERT INTO roles SELECT d, 'regress_tap_' || d FROM unnest(ARRAY['worker', 'proposer', 'approver', 'approval_service', 'reconciler', 'auditor', 'administrator', 'backup']) AS d;
INSERT INTO roles VALUES (NULL, 'regress_tap_nobody');

SELECT is((SELECT count(*)::integer FROM pg_temp.functions AS f, roles AS d WHERE has_function_privilege(d.role, f.oid, 'EXECUTE')), 0, 'a new role can execute nothing');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', 'granted: ' || duty) FROM roles WHERE duty IS NOT NULL;
SELECT is(pg_temp.answer($$grant_duty('regress_tap_worker', 'worker')$$), 'done', 'granted twice');
SELECT is(pg_temp.answer(format($$grant_duty('regress_tap_nobody', %L)$$, duty)), '22023', 'no duty: ' || duty)
FROM unnest(ARRAY['', 'Worker', 'superuser', '*', 'worker ', 'approvals', 'approval service']) AS duty;
SELECT is(pg_temp.answer($$grant_duty('regress_tap_no_such', 'worker')$$), '42704', 'no such role');

CREATE TEMPORARY TABLE allowed (name text, duties text[]);
INSERT INTO allowed VALUES
	('claim', '{worker}'), ('dispatch', '{worker}'), ('renew', '{worker}'), ('complete', '{worker}'), ('fail', '{worker}'),
	('release', '{worker}'), ('report_late', '{worker}'), ('assert_claim', '{worker}'), ('current_claim', '{worker}'),
	('require_claim', '{worker}'), ('execute', '{worker}'),
	('reserve', '{worker}'), ('reserve_by_digest', '{worker}'),
	('propose', '{proposer}'), ('withdraw', '{proposer}'),
	('approve', '{approver,approval_service}'), ('reject', '{approver,approval_service}'), ('revoke', '{approver,approval_service}'),
	('review', '{approver,approval_service}'), ('inbox_for', '{approver,approval_service}'),
	('approve_as', '{approval_service}'), ('reject_as', '{approval_service}'), ('revoke_as', '{approval_service}'),
	('add_approver', '{administrator}'), ('remove_approver', '{administrator}'),
	('mark_uncertain', '{worker,reconciler}'), ('reconcile', '{reconciler}'),
	('status', '{worker,proposer,reconciler}'), ('find_claims', '{worker,reconciler}'),
	('evidence', '{reconciler,auditor}'), ('timeline', '{reconciler,auditor}'),
	('verify_evidence', '{auditor}'), ('evidence_heads', '{auditor}'),
	('set_tool_policy', '{administrator}'), ('drop_tool_policy', '{administrator}'), ('sweep', '{administrator}'),
	('prune', '{administrator}'), ('redact', '{administrator}'), ('grant_duty', '{administrator}'), ('revoke_duty', '{administrator}');
SELECT is(
	(SELECT array_agg(d.duty ORDER BY d.duty) FROM roles AS d
	WHERE has_function_privilege(d.role, f.oid, 'EXECUTE')),
	(SELECT array_agg(x ORDER BY x) FROM unnest(a.duties) AS x),
	format('%s: who may', f.name))
FROM allowed AS a LEFT JOIN pg_temp.functions AS f USING (name) ORDER BY a.name;
SELECT is((SELECT count(*)::integer FROM allowed AS a WHERE NOT EXISTS (SELECT FROM pg_temp.functions AS f WHERE f.name = a.name)), 0, 'all of them exist');
-- what is left are functions of the value types, which every duty has, and what no user calls
SELECT is(
	(SELECT string_agg(f.signature || ' ' || d.role, ', ') FROM pg_temp.functions AS f, roles AS d
	WHERE d.duty IS NOT NULL AND f.name IN ('digest', 'is_portable') AND NOT has_function_privilege(d.role, f.oid, 'EXECUTE')),
	NULL, 'every duty has the value types'' functions');
SELECT is((SELECT count(*)::integer FROM pg_temp.functions AS f WHERE has_function_privilege('regress_tap_nobody', f.oid, 'EXECUTE')), 0, 'a role without a duty has none');

SELECT ok(has_schema_privilege(role, 'tool_claims', 'USAGE') = (duty IS NOT NULL), role || ': the schema') FROM roles;
SELECT ok(NOT has_schema_privilege(role, 'tool_claims', 'CREATE'), role || ': creates nothing in it') FROM roles;
SELECT is(
	(SELECT array_agg(d.duty ORDER BY d.duty) FROM roles AS d WHERE has_table_privilege(d.role, r.oid, 'SELECT')),
	CASE r.name
		WHEN 'claims' THEN '{auditor}'::text[]
		WHEN 'attention' THEN '{administrator,auditor,reconciler}'
		WHEN 'proposals' THEN '{auditor}'
		WHEN 'inbox' THEN '{approval_service,approver,auditor}'
		WHEN 'ready' THEN '{auditor,worker}'
		WHEN 'gates' THEN '{auditor}'
		WHEN 'stats' THEN '{auditor}'
		WHEN 'tool_policies' THEN '{administrator,auditor}'
		WHEN 'registered_approvers' THEN '{administrator,auditor}'
		WHEN 'registered_mark_keys' THEN '{administrator,auditor}'
		WHEN 'granted_duties' THEN '{administrator,auditor}'
		ELSE CASE WHEN r.kind = 'r' THEN '{backup}'::text[] END
	END, r.name || ': who may read')
FROM pg_temp.relations AS r WHERE r.kind IN ('r', 'v') ORDER BY r.name;
SELECT is(
	(SELECT string_agg(r.name || ' ' || d.role, ', ') FROM pg_temp.relations AS r, roles AS d
	WHERE has_table_privilege(d.role, r.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
		OR has_any_column_privilege(d.role, r.oid, 'INSERT, UPDATE, REFERENCES')), NULL, 'no duty writes a table');

--
-- tried, role by role: the privilege is all that tells 42501 from an answer
--

CREATE TEMPORARY TABLE calls (name text, call text);
INSERT INTO calls VALUES
	('claim', $$claim('', 'c', 'tool', '{}')$$),
	('dispatch', $$dispatch('t', 'none', 1)$$),
	('renew', $$renew('t', 'none', 1, '1 min')$$),
	('complete', $$complete('t', 'none', '1', 1)$$),
	('fail', $$fail('t', 'none', '1', 1)$$),
	('release', $$release('t', 'none', 1)$$),
	('mark_uncertain', $$mark_uncertain('t', 'none', 1, 'lost')$$),
	('report_late', $$report_late('t', 'none', 1, '1')$$),
	('reconcile', $$reconcile('t', 'none', 1, 'occurred', '{"by": 1}')$$),
	('assert_claim', $$assert_claim('t', 'none', 1)$$),
	('current_claim', $$current_claim()$$),
	('require_claim', $$require_claim('tool')$$),
	('status', $$status('t', 'none')$$),
	('find_claims', $$find_claims('none')$$),
	('execute', $$execute('', 'c', 'tool', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$),
	('evidence', $$evidence('t', 'none')$$),
	('timeline', $$timeline('t', 'none')$$),
	('verify_evidence', $$verify_evidence('t', 'none')$$),
	('evidence_heads', $$evidence_heads()$$),
	('propose', $$propose('', 'c', 'tool', '{}', 'agent')$$),
	('withdraw', $$withdraw('t', '', 'why')$$),
	('approve', $$approve('t', '', repeat('0', 64)::tool_claims.sha256_digest)$$),
	('reject', $$reject('t', '', repeat('0', 64)::tool_claims.sha256_digest)$$),
	('revoke', $$revoke('t', '', 'why')$$),
	('approve_as', $$approve_as('x', 't', '', repeat('0', 64)::tool_claims.sha256_digest)$$),
	('reject_as', $$reject_as('x', 't', '', repeat('0', 64)::tool_claims.sha256_digest)$$),
	('revoke_as', $$revoke_as('x', 't', '', 'why')$$),
	('reserve', $$reserve('', 'c', '00000000-0000-0000-0000-000000000001', 'tool', '{}', 'agent')$$),
	('reserve_by_digest', $$reserve_by_digest('', 'c', '00000000-0000-0000-0000-000000000001', repeat('0', 64)::tool_claims.sha256_digest)$$),
	('review', $$review('t', 'none')$$),
	('inbox_for', $$inbox_for('x')$$),
	('add_approver', $$add_approver('')$$),
	('remove_approver', $$remove_approver('none')$$),
	('set_tool_policy', $$set_tool_policy('')$$),
	('drop_tool_policy', $$drop_tool_policy('none')$$),
	('sweep', $$sweep(0)$$),
	('prune', $$prune('100 years')$$),
	('redact', $$redact('t', 'none', 'why')$$),
	('grant_duty', $$grant_duty('regress_tap_nobody', 'none')$$),
	('revoke_duty', $$revoke_duty('regress_tap_nobody', 'none')$$);
SELECT is(pg_temp.answer(c.call, d.role) = '42501', NOT coalesce(d.duty = ANY (a.duties), false), format('%s: %s', d.role, c.name))
FROM roles AS d CROSS JOIN calls AS c JOIN allowed AS a USING (name) ORDER BY d.role, c.name;
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || v, d.role) = 'done', coalesce(d.duty = ANY (who), false), format('%s: SELECT FROM %s', d.role, v))
FROM roles AS d, (VALUES
	('claims', '{auditor}'::text[]),
	('attention', '{reconciler,auditor,administrator}'),
	('proposals', '{auditor}'), ('inbox', '{approver,approval_service,auditor}'), ('ready', '{worker,auditor}'),
	('proposal_records', '{backup}'), ('votes', '{backup}'), ('approvers', '{backup}'), ('policy_numbers', '{backup}'),
	('claim_records', '{backup}'), ('operations', '{backup}'), ('events', '{backup}'), ('policies', '{backup}'), ('duties', '{backup}')
) AS t (v, who);
SELECT is(pg_temp.state_of(format(statement, r.name), d.role), '42501', format('%s: ' || statement, d.role, r.name))
FROM roles AS d, pg_temp.relations AS r,
	unnest(ARRAY['INSERT INTO tool_claims.%I DEFAULT VALUES', 'DELETE FROM tool_claims.%I', 'TRUNCATE tool_claims.%I']) AS statement
WHERE r.kind = 'r';
-- a worker's whole day, a reconciler's: by their duty alone
SELECT is(pg_temp.answer($$claim('day', '1', 'tool', '{"secret": "canary"}', lease => '1 min', request_id => '00000000-0000-0000-0000-000000000001')$$, 'regress_tap_worker'), 'acquired', 'claim');
SELECT is(pg_temp.answer($$dispatch('day', '1', 1)$$, 'regress_tap_worker'), 'acquired', 'dispatch');
SELECT is(pg_temp.answer($$renew('day', '1', 1, '1 min')$$, 'regress_tap_worker'), 'acquired', 'renew');
SELECT is(pg_temp.answer($$mark_uncertain('day', '1', 1, 'lost')$$, 'regress_tap_worker'), 'uncertain/reported', 'mark_uncertain');
SELECT is(pg_temp.answer($$reconcile('day', '1', 1, 'occurred', '{"by": 1}', '"canary"')$$, 'regress_tap_reconciler'), 'completed', 'reconcile');
SELECT is(pg_temp.state_of($$SELECT tool_claims.execute('day', '2', 'tool', '{"a": null}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$, 'regress_tap_worker'), 'done', 'execute');
SELECT is(pg_temp.state_of($$SELECT * FROM tool_claims.claim('day', '2', 'tool', '{"a": null}'::json)$$, 'regress_tap_worker'), 'done', 'with a cast from json');
SELECT is(pg_temp.state_of($$SELECT * FROM tool_claims.claim('day', '2', 'tool', '{"a": null}'::jsonb)$$, 'regress_tap_worker'), 'done', 'and from jsonb');
-- an approval's whole day, and what each role cannot do to it
SELECT is(pg_temp.answer(call, 'regress_tap_' || role), answer, format('%s: %s', role, left(call, 60)))
FROM (VALUES
	(1, 'administrator', $$add_approver('regress_tap_approver')$$, 'done'),
	(2, 'administrator', $$add_approver('person')$$, 'done'),
	(3, 'administrator', $$set_tool_policy('paid', approvals_required => 2)$$, 'done'),
	(4, 'proposer', $$propose('day', 'paid', 'paid', '{"secret": "canary"}', 'agent', execution_id => '00000000-0000-4000-8000-000000000001')$$, 'proposed')) AS t (n, role, call, answer) ORDER BY n;
CREATE TEMPORARY TABLE paid AS SELECT binding_digest::text AS digest FROM tool_claims.proposals WHERE task_id = 'day' AND tool_call_id = 'paid';
CREATE TEMPORARY TABLE attempts (n integer GENERATED ALWAYS AS IDENTITY, call text, duty text[]);
INSERT INTO attempts (call, duty) VALUES
	($$approve('day', 'paid', 'DIGEST')$$, '{approver,approval_service}'),
	($$reject('day', 'paid', 'DIGEST')$$, '{approver,approval_service}'),
	($$revoke('day', 'paid', 'why')$$, '{approver,approval_service}'),
	($$approve_as('person', 'day', 'paid', 'DIGEST')$$, '{approval_service}'),
	($$reject_as('person', 'day', 'paid', 'DIGEST')$$, '{approval_service}'),
	($$revoke_as('person', 'day', 'paid', 'why')$$, '{approval_service}'),
	($$withdraw('day', 'paid', 'why')$$, '{proposer}'),
	($$withdraw('day', NULL, 'why')$$, '{proposer}'),
	($$reserve('day', 'paid', '00000000-0000-4000-8000-000000000001', 'paid', '{"secret": "canary"}', 'agent', lease => '1 min')$$, '{worker}'),
	($$reserve_by_digest('day', 'paid', '00000000-0000-4000-8000-000000000001', 'DIGEST', lease => '1 min')$$, '{worker}'),
	($$review('day', 'paid')$$, '{approver,approval_service}'),
	($$add_approver(current_user::text)$$, '{administrator}'),
	($$remove_approver('person')$$, '{administrator}'),
	($$set_tool_policy('paid', approvals_required => 0)$$, '{administrator}'),
	($$drop_tool_policy('paid')$$, '{administrator}'),
	($$grant_duty(current_user::regrole, 'approver')$$, '{administrator}'),
	($$propose('day', 'paid', 'paid', '{"secret": "canary"}', 'agent')$$, '{proposer}'),
	($$status('day', 'paid')$$, '{worker,proposer,reconciler}');
SELECT is(pg_temp.answer(replace(a.call, 'DIGEST', digest), d.role), '42501', format('%s: %s', d.role, left(a.call, 60)))
FROM paid, attempts AS a, roles AS d WHERE NOT coalesce(d.duty = ANY (a.duty), false) ORDER BY a.n, d.role;
SELECT is(pg_temp.state_of(statement, d.role), '42501', format('%s: %s', d.role, statement))
FROM roles AS d, (VALUES
	('INSERT INTO tool_claims.votes VALUES (''tap_privileges'', ''day'', ''paid'', ''person'', ''a'', now())'),
	('UPDATE tool_claims.proposal_records SET state = ''a'''),
	('UPDATE tool_claims.votes SET vote = ''a'''),
	('INSERT INTO tool_claims.approvers VALUES (''tap_privileges'', ''x'', '''', ''*'', ''*'', ''*'')'),
	('DELETE FROM tool_claims.approvers'),
	('UPDATE tool_claims.policy_numbers SET number = 1'),
	('SET tool_claims.clock_offset = ''1 hour'''),
	('SET LOCAL tool_claims.clock_offset = ''-1 hour'''),
	('SELECT set_config(''tool_claims.clock_offset'', ''3600000'', true)'),
	('SET tool_claims.organization = ''another'''),
	('ALTER TABLE tool_claims.votes DISABLE TRIGGER ALL'),
	('SET session_replication_role = ''replica''')
) AS t (statement);
SELECT is((state, approvals)::text, '(pending,0)', 'nothing of it decided anything') FROM tool_claims.proposals WHERE task_id = 'day' AND tool_call_id = 'paid';
-- and those who may: by their duty alone
SELECT is(pg_temp.answer(replace(call, 'DIGEST', digest), 'regress_tap_' || role), answer, format('%s: %s', role, left(call, 60)))
FROM paid, (VALUES
	(1, 'approver', $$review('day', 'paid')$$, 'done'),
	(2, 'approver', $$inbox_for('person')$$, 'done'),
	-- the session user is the tests' own, who is no approver
	(3, 'approver', $$approve('day', 'paid', 'DIGEST')$$, 'refused/not_an_approver'),
	(4, 'approval_service', $$approve_as('regress_tap_approver', 'day', 'paid', 'DIGEST')$$, 'recorded'),
	(5, 'worker', $$reserve_by_digest('day', 'paid', '00000000-0000-4000-8000-000000000001', 'DIGEST', lease => '1 min')$$, 'refused/pending'),
	(6, 'approval_service', $$approve_as('person', 'day', 'paid', 'DIGEST')$$, 'recorded'),
	(7, 'worker', $$reserve_by_digest('day', 'paid', '00000000-0000-4000-8000-000000000001', 'DIGEST', lease => '1 min')$$, 'acquired')) AS t (n, role, call, answer) ORDER BY n;
SELECT is(pg_temp.answer($$complete('day', 'paid', '"canary"', 1)$$, 'regress_tap_worker'), 'completed', 'worker: complete');
SELECT is(pg_temp.answer($$propose('day', 'paid', 'paid', '{"secret": "canary"}', 'agent')$$, 'regress_tap_proposer'), 'existing', 'proposer: propose');
-- what is secret is read by nobody but those who have it
SELECT is((SELECT count(*)::integer FROM pg_temp.relations AS r, pg_catalog.pg_attribute AS a
	WHERE r.kind = 'v' AND a.attrelid = r.oid AND a.attname IN ('input', 'result', 'error', 'comment')
		AND EXISTS (SELECT FROM roles AS d WHERE has_column_privilege(d.role, r.oid, a.attname, 'SELECT'))), 0, 'no view shows an input, a result or a comment');
SELECT is(pg_temp.state_of($$SELECT tool_claims.digest('{}') OPERATOR(tool_claims.=) tool_claims.digest('[]'), '{}'::text::tool_claims.canonical_json$$, role), 'done', 'the value types: ' || role)
FROM roles WHERE duty IS NOT NULL;
SELECT is((SELECT count(*)::integer FROM pg_temp.relations WHERE name = 'claims'), 1, 'view claims');
SELECT is(
	(SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'tool_claims.claims'::regclass AND attname IN ('result', 'error', 'input')),
	NULL, 'an auditor''s view has no result, no error, no input');

-- revoked, nothing is left
SELECT is(pg_temp.answer(format('revoke_duty(%L, %L)', role, duty)), 'done', 'revoked: ' || duty) FROM roles WHERE duty IS NOT NULL;
SELECT is((SELECT string_agg(f.signature || ' ' || d.role, ', ') FROM pg_temp.functions AS f, roles AS d WHERE has_function_privilege(d.role, f.oid, 'EXECUTE')), NULL, 'no function');
SELECT is((SELECT string_agg(r.name || ' ' || d.role, ', ') FROM pg_temp.relations AS r, roles AS d WHERE has_table_privilege(d.role, r.oid, 'SELECT')), NULL, 'no table');
SELECT is((SELECT string_agg(role, ', ') FROM roles WHERE has_schema_privilege(role, 'tool_claims', 'USAGE')), NULL, 'no schema');
-- of two duties, revoking one leaves what the other needs
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', 'regress_tap_nobody', duty)), 'done', 'granted: ' || duty) FROM unnest(ARRAY['worker', 'reconciler']) AS duty;
SELECT is(pg_temp.answer($$revoke_duty('regress_tap_nobody', 'worker')$$), 'done', 'one is revoked');
SELECT is(pg_temp.answer(call, 'regress_tap_nobody'), answer, call)
FROM (VALUES
	($$status('t', 'none')$$, 'done'), ($$find_claims('none')$$, 'done'), ($$mark_uncertain('t', 'none', 1, 'lost')$$, 'TC001'),
	($$reconcile('t', 'none', 1, 'occurred', '{"by": 1}')$$, 'TC001'), ($$claim('t', 'none', 'tool', '{}')$$, '42501'),
	($$digest('{}')$$, 'done')) AS t (call, answer);
SELECT is(pg_temp.answer($$revoke_duty('regress_tap_nobody', 'reconciler')$$), 'done', 'the other too');
SELECT is(pg_temp.answer($$revoke_duty('regress_tap_nobody', 'reconciler')$$), 'done', 'revoked twice');
-- an administrator grants
SELECT is(pg_temp.answer($$grant_duty('regress_tap_administrator', 'administrator')$$), 'done', 'an administrator');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_nobody', 'worker')$$, 'regress_tap_administrator'), 'done', 'makes a worker');
SELECT is(pg_temp.answer($$claim('day', '3', 'tool', '{}', lease => '1 min')$$, 'regress_tap_nobody'), 'acquired', 'who works');
SELECT is(pg_temp.answer($$revoke_duty('regress_tap_nobody', 'worker')$$, 'regress_tap_administrator'), 'done', 'and takes it back');
SELECT is(pg_temp.answer($$claim('day', '4', 'tool', '{}', lease => '1 min')$$, 'regress_tap_nobody'), '42501', 'it is taken back');
-- an odd name of a role
CALL pg_temp.make_roles('Regress "tap" ; x');
SELECT is(pg_temp.answer($$grant_duty('"Regress ""tap"" ; x"', 'worker')$$), 'done', 'a role with an odd name');
SELECT is(pg_temp.answer($$claim('day', '5', 'tool', '{}', lease => '1 min')$$, 'Regress "tap" ; x'), 'acquired', 'works too');
CALL pg_temp.drop_roles('Regress "tap" ; x');

--
-- settings
--

SELECT is(pg_temp.answer($$grant_duty('regress_tap_worker', 'worker')$$), 'done', 'a worker');
SELECT is(pg_temp.state_of(statement, 'regress_tap_worker'), '42501', 'a worker: ' || statement)
FROM (VALUES
	('SET tool_claims.organization = ''another'''),
	('SET tool_claims.organization = ''*'''),
	('SET LOCAL tool_claims.organization = ''another'''),
	('SELECT set_config(''tool_claims.organization'', ''another'', true)'),
	('SET tool_claims.max_lease = ''1 year'''),
	('SET tool_claims.max_input_size = ''1 GB'''),
	('SET tool_claims.clock_offset = 1'),
	('SET tool_claims.nonsense = 1')
) AS t (statement) WHERE statement NOT LIKE '%nonsense%';
SELECT is(pg_temp.state_of('SET tool_claims.nonsense = 1'), '42602', 'the prefix is reserved');
SELECT is(current_setting('tool_claims.' || name), value, 'default of ' || name)
FROM (VALUES ('max_lease', '1h'), ('max_input_size', '16MB')) AS t (name, value);

--
-- hostile surroundings
--

DROP SCHEMA IF EXISTS regress_tap_hostile CASCADE;
CREATE SCHEMA regress_tap_hostile AUTHORIZATION regress_tap_worker;
SET ROLE regress_tap_worker;
CREATE FUNCTION regress_tap_hostile.seen(text, text) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION regress_tap_hostile.seen_int(integer, integer) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION regress_tap_hostile.seen_time(timestamptz, timestamptz) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user USING ERRCODE = 'ZZ001'; END $$;
CREATE OPERATOR regress_tap_hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_tap_hostile.seen);
CREATE OPERATOR regress_tap_hostile.<> (LEFTARG = text, RIGHTARG = text, FUNCTION = regress_tap_hostile.seen);
CREATE OPERATOR regress_tap_hostile.= (LEFTARG = integer, RIGHTARG = integer, FUNCTION = regress_tap_hostile.seen_int);
CREATE OPERATOR regress_tap_hostile.< (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = regress_tap_hostile.seen_time);
CREATE OPERATOR regress_tap_hostile.<= (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = regress_tap_hostile.seen_time);
CREATE OPERATOR regress_tap_hostile.> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = regress_tap_hostile.seen_time);
CREATE FUNCTION regress_tap_hostile.now() RETURNS timestamptz LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION regress_tap_hostile.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'ran as %', current_user USING ERRCODE = 'ZZ001'; END $$;
CREATE FUNCTION regress_tap_hostile.coalesce(text, text) RETURNS text LANGUAGE sql AS $$ SELECT 'x' $$;
CREATE FUNCTION regress_tap_hostile.current_setting(text) RETURNS text LANGUAGE sql AS $$ SELECT '*' $$;
CREATE FUNCTION regress_tap_hostile.current_setting(text, boolean) RETURNS text LANGUAGE sql AS $$ SELECT '*' $$;
RESET ROLE;
-- the call as that role, with his schema and his temporary objects in front
CREATE FUNCTION pg_temp.hostile(call text, as_role text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer json;
	name text;
BEGIN
	PERFORM pg_catalog.set_config('role', as_role, true);
	FOREACH name IN ARRAY ARRAY['claim_records', 'operations', 'events', 'policies', 'duties', 'proposal_records', 'votes', 'approvers', 'policy_numbers', 'claims', 'proposals', 'inbox', 'ready', 'pg_class', 'pg_proc', 'pg_roles'] LOOP
		EXECUTE pg_catalog.format('CREATE TEMPORARY TABLE %I (organization text, oid oid)', name);
	END LOOP;
	FOREACH name IN ARRAY ARRAY['text', 'outcome', 'claim_result', 'int4', 'timestamptz'] LOOP
		EXECUTE pg_catalog.format('CREATE DOMAIN pg_temp.%I AS pg_catalog.bool', name);
	END LOOP;
	PERFORM pg_catalog.set_config('search_path', 'pg_temp, regress_tap_hostile, pg_catalog', true);
	EXECUTE pg_catalog.concat('SELECT pg_catalog.to_json(r) FROM tool_claims.', call,
		CASE WHEN pg_catalog.strpos(call, ' AS ') OPERATOR(pg_catalog.=) 0 THEN ' AS r' END) INTO answer;
	RAISE EXCEPTION '%', pg_catalog.concat_ws('/', answer OPERATOR(pg_catalog.->>) 'outcome', answer OPERATOR(pg_catalog.->>) 'reason')
		USING ERRCODE = 'ZY001';
EXCEPTION
	WHEN SQLSTATE 'ZY001' THEN
		RETURN SQLERRM;
	WHEN OTHERS THEN
		RETURN SQLSTATE;
END
$$;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', 'regress_tap_worker', duty)), 'done', 'all duties: ' || duty)
FROM unnest(ARRAY['reconciler', 'auditor', 'administrator', 'proposer', 'approval_service']::pg_catalog.text[]) AS duty;
-- each is rolled back and then done in peace, so that the next finds it
SELECT is(pg_temp.hostile(call, 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM (VALUES
	($$claim('h', 'c', 'tool', '{"a": 1}', lease => '1 min', operation_id => 'op', dispatched => false)$$, 'acquired'),
	($$claim('h', 'c', 'tool', '{"a": 1}')$$, 'acquired'),
	($$set_tool_policy('tool', max_attempts => 9)$$, ''),
	($$sweep()$$, ''),
	($$prune('0 s')$$, ''),
	($$grant_duty('regress_tap_nobody', 'auditor')$$, ''),
	($$revoke_duty('regress_tap_nobody', 'auditor')$$, ''),
	($$evidence_heads()$$, ''),
	($$claims$$, ''),
	($$attention$$, ''),
	($$current_claim()$$, '')
) AS t (call, answer);
SELECT is(pg_temp.answer($$claim('h', 'c', 'tool', '{"a": 1}', lease => '1 min', operation_id => 'op', dispatched => false)$$, 'regress_tap_worker'), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$set_tool_policy('tool', max_attempts => 9, log => 'all')$$, 'regress_tap_worker'), 'done', 'a policy');
SELECT is(pg_temp.hostile(call, 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM (VALUES
	($$claim('h', 'c', 'tool', '{"a": 1}', operation_id => 'op')$$, 'in_progress'),
	($$claim('h', 'c 2', 'tool', '{"a": 1}', operation_id => 'op')$$, 'in_progress/operation'),
	($$claim('h', 'c', 'tool', '{"a": 2}', operation_id => 'op')$$, 'conflict/input'),
	($$dispatch('h', 'c', 1, 'ref')$$, 'acquired'),
	($$renew('h', 'c', 1, '1 min')$$, 'acquired'),
	($$assert_claim('h', 'c', 1)$$, ''),
	($$mark_uncertain('h', 'c', 1, 'lost')$$, 'uncertain/reported'),
	($$release('h', 'c', 1)$$, 'released'),
	($$fail('h', 'c', '1', 1)$$, 'failed'),
	($$report_late('h', 'c', 1, '1')$$, ''),
	($$status('h', 'c')$$, ''),
	($$find_claims('op')$$, ''),
	($$evidence('h', 'c')$$, ''),
	($$verify_evidence('h', 'c')$$, ''),
	($$timeline('h', 'c')$$, ''),
	($$drop_tool_policy('tool')$$, '')
) AS t (call, answer);
SELECT is(pg_temp.hostile($$claims AS r WHERE r.task_id = 'h' UNION ALL SELECT to_json(d) FROM tool_claims.digest('{}') AS d$$, 'regress_tap_worker'),
	'ZZ001', 'the same role''s own = under that path is the hostile one');
SELECT is(pg_temp.answer($$mark_uncertain('h', 'c', 1, 'lost')$$, 'regress_tap_worker'), 'uncertain/reported', 'uncertain');
SELECT is(pg_temp.hostile(call, 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM (VALUES
	($$reconcile('h', 'c', 1, 'not_occurred', '{"by": 1}')$$, 'released'),
	($$reconcile('h', 'c', 1, 'abandoned', '{"by": 1}')$$, 'failed'),
	($$claim('h', 'c', 'tool', '{"a": 1}', operation_id => 'op')$$, 'uncertain/reported')
) AS t (call, answer);
SELECT is(pg_temp.answer($$reconcile('h', 'c', 1, 'occurred', '{"by": 1}', '1')$$, 'regress_tap_worker'), 'completed', 'completed');
SELECT is(pg_temp.hostile(call, 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM (VALUES
	($$claim('h', 'c', 'tool', '{"a": 1}', operation_id => 'op')$$, 'completed'),
	($$redact('h', 'c', 'a wish')$$, ''),
	($$prune('0 s')$$, ''),
	($$prune('0 s', tombstones => false)$$, '')
) AS t (call, answer);
-- proposals too, from the first to the last
SELECT is(pg_temp.answer($$add_approver('person')$$), 'done', 'an approver');
SELECT is(pg_temp.hostile(call, 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM (VALUES
	($$propose('h', 'p', 'tool', '{"a": 1}', 'agent', operation_id => 'op p', summary => 's')$$, 'proposed'),
	($$add_approver('x', 'g')$$, ''),
	($$remove_approver('person')$$, ''),
	($$withdraw('h', 'p', 'why')$$, 'refused/not_found'),
	($$reserve('h', 'p', '00000000-0000-4000-8000-000000000001', 'tool', '{"a": 1}', 'agent')$$, 'refused/not_found')) AS t (call, answer);
SELECT is(pg_temp.answer($$propose('h', 'p', 'tool', '{"a": 1}', 'agent', execution_id => '00000000-0000-4000-8000-000000000001')$$, 'regress_tap_worker'), 'proposed', 'a proposal');
CREATE TEMPORARY TABLE hostile_digest AS SELECT binding_digest::text AS digest FROM tool_claims.proposals WHERE task_id = 'h' AND tool_call_id = 'p';
SELECT is(pg_temp.hostile(replace(call, 'DIGEST', digest), 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM hostile_digest, (VALUES
	($$propose('h', 'p', 'tool', '{"a": 1}', 'agent')$$, 'existing'),
	($$propose('h', 'p 2', 'tool', '{"a": 1}', 'agent', supersedes => 'p')$$, 'proposed'),
	($$claim('h', 'p', 'tool', '{"a": 1}')$$, 'refused/approval_required'),
	($$approve_as('person', 'h', 'p', 'DIGEST', 'comment')$$, 'recorded'),
	($$reject_as('person', 'h', 'p', 'DIGEST')$$, 'recorded'),
	($$revoke_as('person', 'h', 'p', 'why')$$, 'refused/pending'),
	($$withdraw('h', 'p', 'why')$$, 'recorded'),
	($$withdraw('h', NULL, 'why')$$, 'recorded'),
	($$review('h', 'p')$$, ''),
	($$inbox_for('person')$$, ''),
	($$proposals$$, ''), ($$inbox$$, ''), ($$ready$$, '')) AS t (call, answer);
SELECT is(pg_temp.answer(format($$approve_as('person', 'h', 'p', %L)$$, digest), 'regress_tap_worker'), 'recorded', 'approved') FROM hostile_digest;
SELECT is(pg_temp.hostile(replace(call, 'DIGEST', digest), 'regress_tap_worker'), answer, 'hostile path: ' || call)
FROM hostile_digest, (VALUES
	($$reserve('h', 'p', '00000000-0000-4000-8000-000000000001', 'tool', '{"a": 1}', 'agent', lease => '1 min')$$, 'acquired'),
	($$reserve_by_digest('h', 'p', '00000000-0000-4000-8000-000000000001', 'DIGEST', lease => '1 min')$$, 'acquired'),
	($$reserve('h', 'p', '00000000-0000-4000-8000-000000000001', 'tool', '{"a": 2}', 'agent', lease => '1 min')$$, 'refused/changed_input'),
	($$ready$$, '')) AS t (call, answer);
DROP SCHEMA regress_tap_hostile CASCADE;

--
-- errors name what they are about, never what it holds
--

CREATE TEMPORARY TABLE texts (call text, error text);
SELECT is(pg_temp.answer($$claim('leak', 'c', 'the tool', '{"secret": "canary"}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$complete('leak', 'c', '"canary result"', 1)$$), 'completed', 'completed');
SELECT is(pg_temp.answer($$claim('leak', 'open', 'the tool', '{"secret": "canary"}', lease => '1 min')$$), 'acquired', 'another');
INSERT INTO texts (call) VALUES
	($$complete('leak', 'c', '"canary 2"', 1)$$),
	($$complete('leak', 'c', '"canary 2"', 2)$$),
	($$fail('leak', 'c', '"canary 2"', 1)$$),
	($$release('leak', 'c', 1)$$),
	($$dispatch('leak', 'c', 1, 'canary ref')$$),
	($$mark_uncertain('leak', 'c', 1, 'canary reason')$$),
	($$reconcile('leak', 'c', 1, 'occurred', '{"by": "canary"}', '"canary"')$$),
	($$reconcile('leak', 'open', 1, 'occurred', '{"by": "canary"}', '"canary"')$$),
	($$complete('leak', 'none', '"canary"', 1)$$),
	($$claim('leak', 'c', '*', '{"secret": "canary"}')$$),
	($$claim('leak', 'other', 'the tool', '{"secret": "canary"}', lease => '10 years')$$),
	($$execute('leak', 'c', 'the tool', '{"secret": "canary 2"}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$),
	($$execute('leak', 'open', 'the tool', '{"secret": "canary"}', 'pg_catalog.jsonb_strip_nulls(jsonb)', wait => '0')$$);
-- of proposals too
SELECT is(pg_temp.answer($$propose('leak', 'proposed', 'the tool', '{"secret": "canary"}', 'agent', summary => 'canary')$$), 'proposed', 'a proposal');
INSERT INTO texts (call) VALUES
	($$execute('leak', 'proposed', 'the tool', '{"secret": "canary"}', 'pg_catalog.jsonb_strip_nulls(jsonb)')$$),
	($$propose('leak', 'proposed 2', 'the tool', '{"secret": "canary"}', 'agent', expires_in => '10 years')$$),
	($$reserve('leak', 'proposed', NULL, 'the tool', '{"secret": "canary"}', 'agent')$$),
	($$complete('leak', 'proposed', '"canary"', 1)$$);
UPDATE texts SET error = pg_temp.error_text('SELECT tool_claims.' || call);
SELECT isnt(error, NULL, 'raises: ' || call) FROM texts;
-- the context repeats the statement, as PostgreSQL does: that is the test's own
SELECT ok(replace(error, call, '') NOT LIKE '%canary%', 'without a canary: ' || call) FROM texts;
SELECT ok(pg_temp.error_detail('SELECT tool_claims.' || call) ~ word, format('DETAIL names %s: %s', word, call))
FROM texts, unnest(ARRAY['leak', '"c"', 'the tool', 'completed']) AS word
WHERE call ~ $$^(complete|fail|release|dispatch|mark_uncertain)\('leak', 'c', ('"canary 2"', )?(1|'canary ref')$$;

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_reconciler', 'regress_tap_auditor', 'regress_tap_administrator',
	'regress_tap_backup', 'regress_tap_nobody', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service');
