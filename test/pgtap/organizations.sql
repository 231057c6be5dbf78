-- organizations.sql: two tenants with equal keys, and '*'.

\set organization tap_tenant_1
\ir include/helpers.psql

SELECT plan(57);

SET tool_claims.organization = 'tap_tenant_2';
CALL pg_temp.forget();
SET tool_claims.organization = 'tap_tenant_1';

-- a call under another organization
CREATE FUNCTION pg_temp.at(tenant text, call text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	mine text := current_setting('tool_claims.organization');
	answer text;
BEGIN
	PERFORM set_config('tool_claims.organization', tenant, true);
	answer := pg_temp.answer(call);
	PERFORM set_config('tool_claims.organization', mine, true);
	RETURN answer;
END
$$;
CREATE FUNCTION pg_temp.read(tenant text, query text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	mine text := current_setting('tool_claims.organization');
	answer text;
BEGIN
	PERFORM set_config('tool_claims.organization', tenant, true);
	EXECUTE query INTO answer;
	PERFORM set_config('tool_claims.organization', mine, true);
	RETURN answer;
END
$$;

-- the same key, the same operation, other data: they do not meet
SELECT is(pg_temp.at(tenant, call), answer, format('%s, %s: %s', n, tenant, call))
FROM (VALUES
	(1, 'tap_tenant_1', $$claim('t', 'c', 'tool', '{"of": 1}', lease => '10 min', operation_id => 'op')$$, 'acquired'),
	(2, 'tap_tenant_2', $$claim('t', 'c', 'tool', '{"of": 2}', lease => '10 min', operation_id => 'op')$$, 'acquired'),
	(3, 'tap_tenant_1', $$claim('t', 'c', 'tool', '{"of": 1}', operation_id => 'op', lease => '1 min')$$, 'acquired/already_held'),
	(4, 'tap_tenant_2', $$claim('t', 'c 2', 'tool', '{"of": 1}', operation_id => 'op')$$, 'conflict/operation'),
	(5, 'tap_tenant_2', $$claim('t', 'only 2', 'tool', '{"of": 2}', lease => '10 min')$$, 'acquired'),
	(6, 'tap_tenant_1', $$dispatch('t', 'only 2', 1)$$, 'TC001')
) AS t (n, tenant, call, answer) ORDER BY n;
SELECT is(pg_temp.at('tap_tenant_1', $$complete('t', 'c', '"of 1"', 1)$$), 'completed', 'the first completes');
SELECT is(pg_temp.at(tenant, $$claim('t', 'c', 'tool', '{"of": 1}', operation_id => 'op')$$), answer, tenant || ' is asked')
FROM (VALUES ('tap_tenant_1', 'completed'), ('tap_tenant_2', 'conflict/input')) AS t (tenant, answer);
SELECT is(pg_temp.at('tap_tenant_2', $$claim('t', 'c', 'tool', '{"of": 2}', operation_id => 'op')$$), 'in_progress', 'the second is at its work');
SELECT isnt(pg_temp.read('tap_tenant_1', $$SELECT effect_key FROM tool_claims.status('t', 'c')$$), NULL, 'an effect key');
SELECT is(pg_temp.at(tenant, $$claim('t', 'derived', 'tool', '{}', lease => '10 min')$$), 'acquired', 'without an operation: ' || tenant)
FROM unnest(ARRAY['tap_tenant_1', 'tap_tenant_2']) AS tenant;
SELECT isnt(pg_temp.read('tap_tenant_1', $$SELECT effect_key FROM tool_claims.status('t', 'derived')$$),
	pg_temp.read('tap_tenant_2', $$SELECT effect_key FROM tool_claims.status('t', 'derived')$$), 'their effect keys differ');

-- what each sees: in every function and view its own only
SELECT is(pg_temp.at('tap_tenant_1', $$set_tool_policy('tool', max_attempts => 1)$$), 'done', 'a policy of the first');
SELECT is(pg_temp.at('tap_tenant_2', $$drop_tool_policy('tool')$$), '42704', 'is none of the second');
SELECT is(pg_temp.at('tap_tenant_2', $$mark_uncertain('t', 'only 2', 1, 'lost')$$), 'uncertain/reported', 'something for attention');
SELECT is(pg_temp.read(tenant, query), answer, format('%s: %s', tenant, query))
FROM (VALUES
	('tap_tenant_1', $$SELECT string_agg(tool_call_id, ', ' ORDER BY tool_call_id) FROM tool_claims.claims$$, 'c, derived'),
	('tap_tenant_2', $$SELECT string_agg(tool_call_id, ', ' ORDER BY tool_call_id) FROM tool_claims.claims$$, 'c, derived, only 2'),
	('tap_tenant_1', $$SELECT string_agg(DISTINCT organization, ', ') FROM tool_claims.claims$$, 'tap_tenant_1'),
	('tap_tenant_1', $$SELECT string_agg(DISTINCT organization || kind, ', ') FROM tool_claims.attention$$, NULL),
	('tap_tenant_2', $$SELECT string_agg(DISTINCT organization || ' ' || kind, ', ' ORDER BY organization || ' ' || kind) FROM tool_claims.attention$$,
		'tap_tenant_2 conflict, tap_tenant_2 uncertain'),
	('tap_tenant_1', $$SELECT string_agg(DISTINCT organization, ', ') FROM tool_claims.evidence_heads()$$, NULL),
	('tap_tenant_2', $$SELECT string_agg(DISTINCT organization, ', ') FROM tool_claims.evidence_heads()$$, 'tap_tenant_2'),
	('tap_tenant_1', $$SELECT result::text FROM tool_claims.status('t', 'c')$$, '"of 1"'),
	('tap_tenant_2', $$SELECT state::text FROM tool_claims.status('t', 'c')$$, 'claimed'),
	('tap_tenant_1', $$SELECT state::text FROM tool_claims.status('t', 'only 2')$$, NULL),
	('tap_tenant_1', $$SELECT count(*)::text FROM tool_claims.find_claims('op')$$, '1'),
	('tap_tenant_2', $$SELECT string_agg(organization, ', ') FROM tool_claims.find_claims('op')$$, 'tap_tenant_2'),
	('tap_tenant_1', $$SELECT count(*)::text FROM tool_claims.evidence('t', 'only 2')$$, '0'),
	('tap_tenant_2', $$SELECT count(*)::text FROM tool_claims.evidence('t', 'only 2')$$, '1'),
	('tap_tenant_2', $$SELECT (count(*) > 0)::text FROM tool_claims.timeline('t', 'only 2')$$, 'true'),
	('tap_tenant_1', $$SELECT count(*)::text FROM tool_claims.timeline('t', 'only 2') AS line WHERE line LIKE '%uncertain%'$$, '0')
) AS t (tenant, query, answer);

-- helpers of the views say nothing about somebody else's either
SELECT is(pg_temp.read(tenant, format('SELECT tool_claims.%s::text', call)), answer, format('%s: %s', tenant, call))
FROM (VALUES
	('tap_tenant_1', $$max_attempts('tap_tenant_1', '', 'tool')$$, '1'),
	('tap_tenant_2', $$max_attempts('tap_tenant_1', '', 'tool')$$, NULL),
	('tap_tenant_2', $$max_attempts('tap_tenant_2', '', 'tool')$$, NULL),
	('', $$max_attempts('tap_tenant_1', '', 'tool')$$, NULL),
	('*', $$max_attempts('tap_tenant_1', '', 'tool')$$, '1')
) AS t (tenant, call, answer);

-- sweep and prune work within the organization
SELECT is(pg_temp.at(tenant, $$claim('t', 'expired', 'tool', '{}', lease => '1 microsecond')$$), 'acquired', 'one expires: ' || tenant)
FROM unnest(ARRAY['tap_tenant_1', 'tap_tenant_2']) AS tenant;
SELECT is(pg_temp.read('tap_tenant_1', 'SELECT tool_claims.sweep()'), '1', 'the first sweeps its own');
SELECT is(pg_temp.read('tap_tenant_2', 'SELECT tool_claims.prune(''0 s'')'), '0', 'the second has nothing to prune');
SELECT is(pg_temp.read('tap_tenant_1', 'SELECT tool_claims.prune(''0 s'')'), '1', 'the first has');
SELECT is(pg_temp.at('tap_tenant_2', $$redact('t', 'only 1', 'a wish')$$), 'TC001', 'redact too');

-- under '*': all of them, to read; sweep and prune work on all
SELECT is(pg_temp.read('*', $$SELECT string_agg(organization || ' ' || tool_call_id, ', ' ORDER BY organization, tool_call_id) FROM tool_claims.claims WHERE organization LIKE 'tap_tenant_%'$$),
	'tap_tenant_1 c, tap_tenant_1 derived, tap_tenant_1 expired, tap_tenant_2 c, tap_tenant_2 derived, tap_tenant_2 expired, tap_tenant_2 only 2', 'view claims');
SELECT is(pg_temp.read('*', $$SELECT string_agg(DISTINCT organization, ', ' ORDER BY organization) FROM tool_claims.attention WHERE organization LIKE 'tap_tenant_%'$$),
	'tap_tenant_1, tap_tenant_2', 'view attention');
SELECT cmp_ok(pg_temp.read('*', 'SELECT tool_claims.sweep()')::integer, '>=', 1, 'sweep');
SELECT is((SELECT count(*)::integer FROM tool_claims.events WHERE organization = 'tap_tenant_2' AND tool_call_id = 'expired' AND kind = 'uncertain'), 1, 'the second''s too');
SELECT is(pg_temp.at('*', call), '22023', 'not: ' || call)
FROM (VALUES
	($$claim('t', 'c', 'tool', '{}')$$), ($$complete('t', 'c', '1', 1)$$), ($$set_tool_policy('tool')$$)
) AS t (call);

-- the empty organization is one of its own
SELECT is(pg_temp.read('', $$SELECT count(*)::text FROM tool_claims.status('t', 'c')$$), '0', 'not that of everybody');

-- letters count
SELECT is(pg_temp.read('TAP_TENANT_1', $$SELECT count(*)::text FROM tool_claims.claims$$), '0', 'another organization');

-- a tenant that is pinned
CALL pg_temp.make_roles('regress_tap_tenant');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_tenant', 'worker')$$), 'done', 'a tenant''s worker');
SELECT is(pg_temp.state_of('SET tool_claims.organization = ''tap_tenant_2''', 'regress_tap_tenant'), '42501', 'cannot go elsewhere');
SELECT is(pg_temp.answer($$claim('t', 'worker', 'tool', '{}', lease => '1 min')$$, 'regress_tap_tenant'), 'acquired', 'works');
SELECT is(organization, 'tap_tenant_1', 'where its session is') FROM tool_claims.status('t', 'worker');

SELECT * FROM finish();
SET tool_claims.organization = 'tap_tenant_2';
CALL pg_temp.forget();
SET tool_claims.organization = 'tap_tenant_1';
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_tenant');
