-- robustness.sql: every function of the schema, taken from the catalog, with odd
-- arguments: one of them NULL, or at an end of its type's range, and all of them
-- NULL.  Whoever calls, and whatever the arguments point at, the answer is a row
-- or an error that means something, and the server lives on.

\set organization tap_robustness
\ir include/helpers.psql

CREATE VIEW pg_temp.functions AS
SELECT p.oid, p.oid::regprocedure AS signature, p.proname AS name, p.prorettype = 'trigger'::regtype AS is_trigger, p.pronargs
FROM pg_catalog.pg_depend AS d
	JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'tool_claims'
	JOIN pg_catalog.pg_proc AS p ON p.oid = d.objid
WHERE d.deptype = 'e' AND d.classid = 'pg_catalog.pg_proc'::regclass
	AND NOT 'internal'::regtype = ANY (p.proargtypes::oid[]);
CREATE VIEW pg_temp.arguments AS
SELECT f.oid AS function, a.n::integer AS n, coalesce(p.proargnames[a.n], '') AS name, a.type
FROM pg_temp.functions AS f
	JOIN pg_catalog.pg_proc AS p ON p.oid = f.oid,
	unnest(p.proargtypes::oid[]) WITH ORDINALITY AS a (type, n);

SELECT plan((SELECT 8 + 11 + 2 + count(*)::integer FROM pg_temp.functions)
	+ (SELECT count(*)::integer FROM pg_temp.arguments WHERE type = '"char"'::regtype));

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service',
	'regress_tap_reconciler', 'regress_tap_auditor', 'regress_tap_administrator', 'regress_tap_backup');
CREATE TEMPORARY TABLE roles AS
SELECT 'regress_tap_' || duty AS role, duty
FROM unnest(ARRAY['worker', 'proposer', 'approver', 'approval_service', 'reconciler', 'auditor', 'administrator', 'backup']) AS duty;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', 'a duty: ' || duty) FROM roles;

--
-- what there is: a pair in each state, a gate, a key of marks
--

SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$claim('claimed', 'c', 'tool', '{}', lease => '10 min')$$, 'acquired'),
	(2, $$claim('completed', 'c', 'tool', '{}', lease => '10 min')$$, 'acquired'),
	(3, $$claim('expired', 'c', 'tool', '{}', lease => '1 microsecond')$$, 'acquired'),
	(4, $$claim('released', 'c', 'tool', '{}', lease => '10 min')$$, 'acquired'),
	(5, $$release('released', 'c', 1)$$, 'released'),
	(6, $$add_approver('ann')$$, 'done'),
	(7, $$propose('pending', 'c', 'tool', '{}', 'agent', execution_id => '00000000-0000-4000-8000-000000000001')$$, 'proposed'),
	(8, $$propose('approved', 'c', 'tool', '{}', 'agent', execution_id => '00000000-0000-4000-8000-000000000001')$$, 'proposed'),
	(9, $$expect_result('pending', 'infinity')$$, 'done'),
	(10, $$add_mark_key('key', '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f')$$, 'done'),
	(11, $$set_tool_policy('tool', log => 'all')$$, 'done')
) AS t (n, call, answer) WHERE n <> 9 ORDER BY n;
SELECT is(pg_temp.state_of($$SELECT tool_claims.expect_result('pending', 'infinity')$$), 'done', 'a gate');
DO $$
BEGIN
	PERFORM tool_claims.complete('completed', 'c', '"done"', 1);
	PERFORM tool_claims.approve_as('ann', 'approved', 'c', p.binding_digest)
	FROM tool_claims.proposals AS p WHERE p.task_id = 'approved';
END
$$;

--
-- what the arguments are: a good one by name or else by type, and odd ones
--

CREATE TEMPORARY TABLE tasks (task text);
INSERT INTO tasks VALUES ('nothing'), ('claimed'), ('completed'), ('expired'), ('released'), ('pending'), ('approved');

CREATE TEMPORARY TABLE good (name text, value text, PRIMARY KEY (name));
INSERT INTO good VALUES
	('tool_call_id', 'c'), ('tool_name', 'tool'), ('tool_server', ''), ('actor', 'agent'), ('principal', 'ann'),
	('organization', 'tap_robustness'), ('lease', '1 min'), ('wait', '0'), ('duty', 'worker'),
	('handler', 'pg_catalog.jsonb_strip_nulls(jsonb)'), ('supersedes', NULL), ('execution_id', '00000000-0000-4000-8000-000000000001'),
	('key_id', 'key'), ('algorithm', 'hmac-sha256'), ('effect', 'any'), ('on_lease_expiry', 'uncertain'), ('log', 'all'),
	('reset', '{}'), ('approver_groups', '{g}'), ('check_function', NULL), ('input_check', NULL), ('approval_rule', NULL),
	('operation_id', NULL), ('request_id', NULL), ('policy_version', NULL), ('not_after', NULL), ('use_within', NULL),
	('expires_in', NULL), ('mark_context', NULL), ('expected_head', NULL), ('new_effect_key', 'false'), ('effect_key', NULL),
	('error', NULL), ('mark', 'tcm1.a2V5.AAAA'), ('retention', '1 day'), ('proposal_ttl', '1 day');
CREATE TEMPORARY TABLE good_of_type (type regtype PRIMARY KEY, value text);
INSERT INTO good_of_type VALUES
	('text', 'x'), ('integer', '1'), ('bigint', '1'), ('boolean', 'true'), ('interval', '1 min'), ('timestamptz', '2030-01-01'),
	('json', '{"a": 1}'), ('jsonb', '{"a": 1}'), ('tool_claims.canonical_json', '{}'), ('uuid', '00000000-0000-4000-8000-000000000001'),
	('bytea', '\x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'), ('regrole', 'regress_tap_worker'), ('"char"', 'c'),
	('text[]', '{}'), ('tool_claims.finding', 'not_occurred'), ('tool_claims.task_status', 'succeeded'),
	('tool_claims.sha256_digest', repeat('0', 64)), ('cstring', '{}'), ('regprocedure', 'pg_catalog.jsonb_strip_nulls(jsonb)');
CREATE TEMPORARY TABLE odd (type regtype, value text);
INSERT INTO odd SELECT type::regtype, value FROM (VALUES
	('text', '{"", "*", " ", "\\\\", "''", "\u00e9\u202e"}'::text[]),
	('integer', '{-2147483648, -1, 0, 2147483647}'), ('bigint', '{-9223372036854775808, 0, 9223372036854775807}'),
	('boolean', '{false, true}'), ('interval', '{0, -1 us, -178000000 years, 178000000 years, 2147483647 months 2147483647 days}'),
	('timestamptz', '{infinity, -infinity, 4713-01-01 BC, 294276-12-31}'),
	('json', '{null, "\"\"", 1e999999, "{\"a\":1,\"a\":2}"}'), ('jsonb', '{null, "\"\"", [], 1e1000}'),
	('tool_claims.canonical_json', '{null, "\"\"", [], 1e999999}'), ('uuid', '{00000000-0000-0000-0000-000000000000}'),
	('bytea', '{"\\x", "\\x00"}'), ('regrole', '{-, 4294967295}'), ('regprocedure', '{-, 4294967295, now()}'),
	('text[]', '{"{NULL}", "{\"\"}", "{{a},{b}}", "{nonsense}", "[5:5]={enabled}"}'), ('cstring', '{"", "*"}')
) AS t (type, words), unnest(words) AS value;
INSERT INTO odd SELECT 'text'::regtype, repeat('x', n) FROM unnest(ARRAY[512, 513, 100000]) AS n;
INSERT INTO odd SELECT t::regtype, value::text FROM unnest(ARRAY['tool_claims.finding', 'tool_claims.task_status']) AS t,
	unnest(enum_range(NULL::tool_claims.finding)::text[] || enum_range(NULL::tool_claims.task_status)::text[]) AS value
WHERE EXISTS (SELECT FROM pg_catalog.pg_enum WHERE enumtypid = t::regtype AND enumlabel = value);

SELECT is((SELECT string_agg(DISTINCT a.type::regtype::text, ', ') FROM pg_temp.arguments AS a
	WHERE a.type NOT IN (SELECT type FROM good_of_type)), NULL, 'there are values for every type of argument');

--
-- the calls
--

-- What a call ends with; whatever it has done is undone.
CREATE FUNCTION pg_temp.end_of(call text, as_role text)
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	PERFORM set_config('role', as_role, true);
	EXECUTE call;
	RAISE SQLSTATE 'RTEND';
EXCEPTION
	WHEN SQLSTATE 'RTEND' THEN
		RETURN 'done';
	WHEN OTHERS THEN
		RETURN SQLSTATE;
END
$$;

CREATE FUNCTION pg_temp.argument(type oid, value text)
RETURNS text
LANGUAGE sql
AS $$ SELECT format('%L::%s', value, type::regtype) $$;

-- The calls of a function for a task: all good, all NULL, one of them odd.
CREATE FUNCTION pg_temp.calls(f oid, task text)
RETURNS SETOF text
LANGUAGE sql
AS $$
	WITH base AS (
		SELECT a.n, a.name, a.type,
			CASE
				WHEN a.name = 'task_id' THEN task
				WHEN g.name IS NOT NULL THEN g.value
				ELSE t.value
			END AS value
		FROM pg_temp.arguments AS a
			LEFT JOIN good AS g ON g.name = a.name
			LEFT JOIN good_of_type AS t ON t.type = a.type
		WHERE a.function = f),
	changes AS (
		SELECT 0 AS at, NULL AS value
		UNION ALL SELECT -1, NULL WHERE EXISTS (SELECT FROM base)
		UNION ALL SELECT n, NULL FROM base
		UNION ALL SELECT b.n, o.value FROM base AS b JOIN odd AS o ON o.type = b.type
		WHERE b.name <> 'wait' OR o.value LIKE '-%'),
	lists AS (
		SELECT coalesce(string_agg(pg_temp.argument(b.type, CASE WHEN c.at IN (b.n, -1) THEN c.value ELSE b.value END), ', ' ORDER BY b.n)
			FILTER (WHERE b.n IS NOT NULL), '') AS list
		FROM changes AS c LEFT JOIN base AS b ON true
		GROUP BY c.at, c.value)
	SELECT CASE WHEN p.is_trigger THEN format('SELECT tool_claims.%I()', p.name)
		ELSE format('SELECT * FROM tool_claims.%I(%s)', p.name, l.list) END
	FROM lists AS l, pg_temp.functions AS p WHERE p.oid = f
$$;

CREATE TEMPORARY TABLE ends (function oid, role text, call text, ends text);
CREATE PROCEDURE pg_temp.call_all()
LANGUAGE plpgsql
AS $$
DECLARE
	f record;
BEGIN
	FOR f IN SELECT * FROM pg_temp.functions ORDER BY signature::text LOOP
		INSERT INTO ends
		SELECT f.oid, r.role, c, pg_temp.end_of(c, r.role)
		FROM tasks AS t, pg_temp.calls(f.oid, t.task) AS c,
			(SELECT 'none' AS role UNION ALL SELECT role FROM roles) AS r
		WHERE (r.role = 'none' OR t.task IN ('nothing', 'claimed', 'approved') AND has_function_privilege(r.role, f.oid, 'EXECUTE'))
			AND (t.task = 'nothing' OR EXISTS (
				SELECT FROM pg_temp.arguments AS a WHERE a.function = f.oid AND a.name = 'task_id'));
		COMMIT;
	END LOOP;
END
$$;
SET statement_timeout = '5 min';
CALL pg_temp.call_all();
RESET statement_timeout;

-- An error that means something is one about arguments, rights, objects or
-- states, or one of the contract.  None is an internal error, a failure of a
-- table's constraint, or a bug in a statement.
SELECT is((SELECT string_agg(DISTINCT format('%s: %s as %s', e.ends, left(e.call, 300), e.role), E'\n')
	FROM ends AS e
	WHERE e.function = f.oid
		AND e.ends !~ '^(done|22...|42501|42704|42883|0A000|39P01|55000|54000|54001|23505|TC0..)$'), NULL, f.signature::text)
FROM pg_temp.functions AS f ORDER BY f.signature::text;
SELECT cmp_ok((SELECT count(*) FROM ends WHERE ends = 'done'), '>', 1000::bigint, 'and many of the calls ended well');

--
-- one letter: a state that there is, or 22023
--

SELECT ok((SELECT bool_and(ends IN ('done', '22023')) AND bool_or(ends = 'done') AND bool_or(ends = '22023')
	FROM (
		SELECT pg_temp.end_of(format('SELECT tool_claims.%I(%s)', f.name, (
			SELECT string_agg(CASE WHEN b.n = a.n THEN format('(%s)::"char"', letter) ELSE pg_temp.argument(b.type, t.value) END, ', ' ORDER BY b.n)
			FROM pg_temp.arguments AS b JOIN good_of_type AS t ON t.type = b.type
			WHERE b.function = f.oid)), 'none') AS ends
		FROM generate_series(-128, 127) AS letter) AS e),
	format('every letter as %s of %s', a.name, f.name))
FROM pg_temp.arguments AS a JOIN pg_temp.functions AS f ON f.oid = a.function
WHERE a.type = '"char"'::regtype;

SELECT * FROM finish();
CALL pg_temp.forget();
DELETE FROM tool_claims.result_gates WHERE organization = :'organization';
DELETE FROM tool_claims.mark_keys WHERE organization = :'organization';
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service',
	'regress_tap_reconciler', 'regress_tap_auditor', 'regress_tap_administrator', 'regress_tap_backup');
