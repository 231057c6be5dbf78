-- doctor.sql: each finding of doctor() that a session can provoke, and that it
-- is gone with its cause.  What needs another server is in test/t.

\set organization tap_doctor
\ir include/helpers.psql

SELECT plan(121);

-- so many findings in one query that compiling it would take most of the time
SET jit = off;

CALL pg_temp.make_roles('regress_tap_one', 'regress_tap_two', 'regress_tap_group', 'regress_tap_auditor', 'regress_tap_admin');
-- the levels of the findings that match, and how many
CREATE FUNCTION pg_temp.finds(pattern text)
RETURNS text
LANGUAGE sql
AS $$ SELECT coalesce(string_agg(level, ' ' ORDER BY level, finding), 'none') FROM tool_claims.doctor() WHERE finding ~ pattern $$;

SELECT is((SELECT string_agg(DISTINCT level, ' ') FROM tool_claims.doctor() WHERE level NOT IN ('error', 'warning', 'info')), NULL, 'three levels');
SELECT is((SELECT count(*)::integer FROM tool_claims.doctor() WHERE level IS NULL OR coalesce(finding, '') = '' OR coalesce(advice, '') = ''), 0, 'all have a finding and an advice');
SELECT is((SELECT array_agg(level) FROM tool_claims.doctor()), (SELECT array_agg(level ORDER BY array_position(ARRAY['error', 'warning', 'info'], level)) FROM tool_claims.doctor()),
	'the worst first');

-- the server's settings: found exactly when they are so
SELECT is(pg_temp.finds(finding), CASE WHEN current_setting(setting) = value THEN level ELSE 'none' END, format('%s = %s', setting, current_setting(setting)))
FROM (VALUES
	('fsync', 'off', 'error', '^fsync '),
	('full_page_writes', 'off', 'error', '^full_page_writes '),
	('data_checksums', 'off', 'info', '^data checksums '),
	('idle_in_transaction_session_timeout', '0', 'warning', '^idle_in_transaction_session_timeout '),
	('client_connection_check_interval', '0', 'info', '^client_connection_check_interval ')
) AS t (setting, value, level, finding);
SELECT set_config(setting, '0', false) FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'client_connection_check_interval']) AS setting;
SELECT is(pg_temp.finds('^idle_in_transaction_session_timeout '), 'warning', 'no timeout of idle transactions');
SELECT is(pg_temp.finds('^client_connection_check_interval '), 'info', 'no check of the connection');
SELECT set_config(setting, '10min', false) FROM unnest(ARRAY['idle_in_transaction_session_timeout', 'client_connection_check_interval']) AS setting;
SELECT is(pg_temp.finds('^(idle_in_transaction_session_timeout|client_connection_check_interval) '), 'none', 'both set');
RESET idle_in_transaction_session_timeout;
RESET client_connection_check_interval;

-- what a statement changes in a transaction that is rolled back: the finding
-- before, with it, and after
CREATE TEMPORARY TABLE causes (n integer GENERATED ALWAYS AS IDENTITY, statement text, pattern text, level text);
CREATE TEMPORARY TABLE effects (n integer, before text, during text, after text, error text);
INSERT INTO causes (statement, pattern, level)
SELECT format('ALTER TABLE tool_claims.%I SET UNLOGGED', relname), format('^table %s is not permanent', relname), 'error'
FROM pg_class WHERE relnamespace = 'tool_claims'::regnamespace AND relkind = 'r';
INSERT INTO causes (statement, pattern, level) VALUES
	-- publications
	('CREATE PUBLICATION regress_tap FOR TABLE tool_claims.claim_records', '^publication regress_tap has the table claim_records', 'warning'),
	('CREATE PUBLICATION regress_tap FOR TABLE tool_claims.approvers, tool_claims.result_gates', '^publication regress_tap has the table ', 'warning warning'),
	('CREATE PUBLICATION regress_tap FOR ALL TABLES', '^publication regress_tap has the table claim_records', 'warning'),
	('CREATE PUBLICATION regress_tap', '^publication regress_tap', 'none'),
	-- grants that no duty gives
	('GRANT SELECT ON tool_claims.events TO regress_tap_one', 'regress_tap_one has SELECT on events', 'error'),
	('GRANT ALL ON tool_claims.claim_records TO regress_tap_one', 'regress_tap_one has (INSERT|UPDATE|DELETE|TRUNCATE) on claim_records', 'error error error error'),
	('GRANT SELECT ON tool_claims.claims TO PUBLIC', 'PUBLIC has SELECT on claims', 'error'),
	('GRANT EXECUTE ON FUNCTION tool_claims.sweep TO PUBLIC', 'PUBLIC has EXECUTE on sweep', 'error'),
	('GRANT EXECUTE ON FUNCTION tool_claims.sweep TO regress_tap_one', 'regress_tap_one has EXECUTE on sweep', 'error'),
	('GRANT USAGE ON SCHEMA tool_claims TO PUBLIC', 'PUBLIC has USAGE on tool_claims', 'error'),
	('GRANT CREATE ON SCHEMA tool_claims TO regress_tap_one', 'regress_tap_one has CREATE on tool_claims', 'error'),
	('GRANT SELECT (result) ON tool_claims.claim_records TO regress_tap_one', 'regress_tap_one has SELECT.* on claim_records', 'error'),
	('GRANT UPDATE (state) ON tool_claims.claim_records TO PUBLIC', 'PUBLIC has UPDATE.* on claim_records', 'error'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'worker')$$, 'regress_tap_one has', 'none'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'worker'); GRANT EXECUTE ON FUNCTION tool_claims.claim TO regress_tap_one$$, 'regress_tap_one has', 'none'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'worker'); GRANT EXECUTE ON FUNCTION tool_claims.reconcile TO regress_tap_one$$, 'regress_tap_one has EXECUTE on reconcile', 'error'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'backup'); GRANT INSERT ON tool_claims.duties TO regress_tap_one$$, 'regress_tap_one has INSERT on duties', 'error'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'worker'); DELETE FROM tool_claims.duties WHERE role_name = 'regress_tap_one'$$, 'regress_tap_one has EXECUTE on claim ', 'error'),
	-- both sides of a separation
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'proposer')$$, 'regress_tap_one has the duties', 'none'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{proposer,worker}'::text[]) AS d$$, 'regress_tap_one has the duties', 'none'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{proposer,approver}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{proposer,approval_service}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{worker,approver}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{worker,approval_service}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{worker,reconciler}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{administrator,approver}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', d) FROM unnest('{administrator,auditor}'::text[]) AS d$$, 'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_one', 'proposer'), tool_claims.grant_duty('regress_tap_two', 'approver')$$, 'regress_tap_(one|two) has the duties', 'none'),
	($$SELECT tool_claims.grant_duty('regress_tap_group', 'proposer'), tool_claims.grant_duty('regress_tap_one', 'approver'); GRANT regress_tap_group TO regress_tap_one$$,
		'regress_tap_one has the duties', 'warning'),
	($$SELECT tool_claims.grant_duty('regress_tap_group', 'proposer'), tool_claims.grant_duty('regress_tap_two', 'approver'); GRANT regress_tap_group, regress_tap_two TO regress_tap_one$$,
		'regress_tap_one has the duties', 'warning'),
	-- who writes everything
	('GRANT pg_write_all_data TO regress_tap_one', 'regress_tap_one can write every table', 'warning'),
	('GRANT pg_write_all_data TO regress_tap_group; GRANT regress_tap_group TO regress_tap_one', 'regress_tap_(one|group) can write every table', 'warning warning'),
	('GRANT pg_read_all_data TO regress_tap_one', 'regress_tap_one can write every table', 'none'),
	-- triggers
	('ALTER TABLE tool_claims.events DISABLE TRIGGER events_guard', '^trigger events_guard is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.events DISABLE TRIGGER ALL', '^trigger events_guard is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.events ENABLE REPLICA TRIGGER events_guard', '^trigger events_guard is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.events ENABLE ALWAYS TRIGGER events_guard', '^trigger events_guard is missing or disabled', 'none'),
	('ALTER EXTENSION tool_claims DROP FUNCTION tool_claims.events_guard(); DROP TRIGGER events_guard ON tool_claims.events', '^trigger events_guard is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.policies DISABLE TRIGGER policies_changed', '^trigger policies_changed is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.policies ENABLE TRIGGER policies_changed', '^trigger policies_changed is missing or disabled', 'error'),
	('ALTER TABLE tool_claims.policies DISABLE TRIGGER policies_truncated', '^trigger policies_truncated is missing or disabled', 'error'),
	-- what makes a claim wait as an INSERT does
	('CREATE TRIGGER t BEFORE INSERT ON tool_claims.claim_records FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
		'^table claim_records has insert triggers', 'warning'),
	('CREATE TRIGGER t BEFORE UPDATE ON tool_claims.claim_records FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()',
		'^table claim_records has insert triggers', 'none'),
	('CREATE RULE r AS ON INSERT TO tool_claims.operations DO ALSO NOTHING', '^table operations has insert triggers', 'warning'),
	('ALTER TABLE tool_claims.claim_records ENABLE ROW LEVEL SECURITY', '^table claim_records has insert triggers', 'warning'),
	-- the clock
	('SET LOCAL tool_claims.clock_offset = 1', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = ''-2 h''', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = 0.001', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = 0.5', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = 1e15', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = 123456789012345', '^tool_claims.clock_offset is not 0', 'error'),
	('SET LOCAL tool_claims.clock_offset = 0', '^tool_claims.clock_offset is not 0', 'none'),
	('ALTER ROLE regress_tap_one SET tool_claims.clock_offset = 1', '^tool_claims.clock_offset is not 0', 'error'),
	(format('ALTER DATABASE %I SET tool_claims.clock_offset = 1', current_database()), '^tool_claims.clock_offset is not 0', 'error'),
	-- pins without the library at start
	('ALTER ROLE regress_tap_one SET tool_claims.organization = ''acme''', '^organizations are pinned to roles',
		CASE WHEN current_setting('shared_preload_libraries') LIKE '%tool_claims%' THEN 'none' ELSE 'error' END),
	('ALTER ROLE regress_tap_one SET tool_claims.max_lease = ''1 min''', '^organizations are pinned to roles', 'none'),
	-- the version of the library
	('UPDATE pg_extension SET extversion = ''0.0.9'' WHERE extname = ''tool_claims''', '^extension version 0.0.9 runs with library version 0.1.0', 'error'),
	-- a recovery
	('UPDATE tool_claims.server_identity SET changed_from = ''{"timeline": 1}'', accepted_at = NULL', '^the server has changed its identity', 'warning'),
	('UPDATE tool_claims.server_identity SET changed_from = ''{"timeline": 1}'', accepted_at = now()', '^the server has changed its identity', 'info');
-- the identity is written down by the first verb
SELECT is(pg_temp.answer($$sweep()$$), 'done', 'a verb');
CREATE PROCEDURE pg_temp.provoke()
LANGUAGE plpgsql
AS $$
DECLARE
	c record;
	found text;
	failed text;
BEGIN
	FOR c IN SELECT * FROM causes ORDER BY n LOOP
		INSERT INTO effects (n, before) VALUES (c.n, pg_temp.finds(c.pattern));
		COMMIT;
		found := NULL;
		failed := NULL;
		BEGIN
			EXECUTE c.statement;
			found := pg_temp.finds(c.pattern);
			RAISE SQLSTATE 'ZZ000';
		EXCEPTION
			WHEN SQLSTATE 'ZZ000' THEN NULL;
			WHEN OTHERS THEN failed := SQLSTATE || ' ' || SQLERRM;
		END;
		UPDATE effects SET during = found, error = failed, after = pg_temp.finds(c.pattern) WHERE n = c.n;
		COMMIT;
	END LOOP;
END
$$;
SET client_min_messages = error;
CALL pg_temp.provoke();
SET client_min_messages = warning;
SELECT is(coalesce(e.error, e.during), c.level, c.statement) FROM causes AS c JOIN effects AS e USING (n) ORDER BY n;
SELECT is((SELECT string_agg(c.statement, '; ') FROM causes AS c JOIN effects AS e USING (n) WHERE e.before <> 'none' OR e.after <> 'none'), NULL, 'none before, none after');

-- a real change of the identity: noticed by the next verb, shown until it is
-- accepted, and on record after that
SELECT is(pg_temp.answer($$claim('t', 'before', 'tool', '{}', lease => '1 hour')$$), 'acquired', 'a leased claim');
BEGIN;
UPDATE tool_claims.server_identity SET timeline = timeline + 98;
-- (has every session look at the row again)
ALTER TABLE tool_claims.server_identity SET (fillfactor = 90);
SELECT is(pg_temp.finds('^the server has changed its identity'), 'warning', 'seen also before a verb');
SELECT is(pg_temp.answer($$sweep()$$), 'done', 'a verb');
SELECT is(pg_temp.finds('^the server has changed its identity'), 'warning', 'noticed');
SELECT is((kind, organization, reason IS NOT NULL, since IS NOT NULL)::text, '(recovery,tap_doctor,t,t)', 'which attention shows') FROM tool_claims.attention;
SELECT is(changed_from ->> 'timeline', (timeline + 98)::text, 'the identity before is written down') FROM tool_claims.server_identity;
SELECT is(pg_temp.answer($$claim('t', 'continue', 'tool', '{}', lease => '1 hour')$$), 'acquired', 'continue: claims go on');
SET LOCAL tool_claims.after_recovery = 'stop';
SELECT is(pg_temp.answer(call), answer, 'stop: ' || call)
FROM (VALUES
	($$claim('t', 'stop', 'tool', '{}', lease => '1 hour')$$, 'TC012'),
	($$claim('t', 'before', 'tool', '{}', lease => '1 hour')$$, 'in_progress'),
	($$claim('t', 'before', 'tool', '[]', lease => '1 hour')$$, 'conflict/input'),
	($$claim('t', 'transactional', 'tool', '{}')$$, 'acquired'),
	($$complete('t', 'transactional', '1')$$, 'completed'),
	($$renew('t', 'before', 1, '1 hour')$$, 'acquired'),
	($$accept_recovery(NULL)$$, '22004')
) AS t (call, answer);
SELECT is(pg_temp.answer($$accept_recovery(tool_claims.clock() + '2 hours')$$), 'done', 'accepted: nothing was lost');
SELECT is(pg_temp.finds('^the server has changed its identity'), 'info', 'accepted');
SELECT is((SELECT string_agg(kind, ' ') FROM tool_claims.attention WHERE kind = 'recovery'), NULL, 'attention is quiet');
SELECT is(pg_temp.answer($$claim('t', 'stop', 'tool', '{}', lease => '1 hour')$$), 'acquired', 'grants go on');
SELECT is(pg_temp.state('t', 'before'), 'claimed', 'a claim from before too');
SELECT is((accepted_by, accepted_at IS NOT NULL)::text, format('(%s,t)', session_user), 'who accepted, and when') FROM tool_claims.server_identity;
SELECT is(pg_temp.answer($$accept_recovery('-infinity')$$), 'done', 'accepted again: everything may be lost');
SELECT is(pg_temp.answer($$claim('t', 'before', 'tool', '{}', lease => '1 hour')$$), 'uncertain/reported', 'then it is uncertain');
ROLLBACK;
SELECT is(pg_temp.answer($$sweep()$$), 'done', 'a verb');
SELECT is(pg_temp.finds('^the server has changed its identity'), 'none', 'all was rolled back');

-- a prepared transaction that holds a key
SELECT current_setting('max_prepared_transactions')::integer > 0 AS can_prepare \gset
\if :can_prepare
BEGIN;
UPDATE tool_claims.claim_records SET external_ref = 'x' WHERE organization = 'tap_doctor';
PREPARE TRANSACTION 'regress tap';
SELECT is(pg_temp.finds('^prepared transaction regress tap holds a lock on claim_records'), 'warning', 'a prepared transaction');
ROLLBACK PREPARED 'regress tap';
\else
SELECT skip('max_prepared_transactions is 0');
\endif
SELECT is(pg_temp.finds('^prepared transaction regress tap'), 'none', 'no prepared transaction');

-- an auditor and an administrator see what a superuser sees; others nothing
SELECT is(pg_temp.answer($$grant_duty('regress_tap_auditor', 'auditor')$$), 'done', 'an auditor');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_admin', 'administrator')$$), 'done', 'an administrator');
GRANT SELECT ON tool_claims.events TO PUBLIC;
CREATE TEMPORARY TABLE seen AS SELECT 'superuser' AS role, string_agg(d::text, E'\n') AS findings FROM tool_claims.doctor() AS d;
GRANT ALL ON seen TO PUBLIC;
SET ROLE regress_tap_auditor;
INSERT INTO seen SELECT 'auditor', string_agg(d::text, E'\n') FROM tool_claims.doctor() AS d;
SET ROLE regress_tap_admin;
INSERT INTO seen SELECT 'administrator', string_agg(d::text, E'\n') FROM tool_claims.doctor() AS d;
RESET ROLE;
REVOKE SELECT ON tool_claims.events FROM PUBLIC;
SELECT is(s.findings, u.findings, 'what the ' || s.role || ' sees') FROM seen AS s, seen AS u WHERE u.role = 'superuser' AND s.role <> 'superuser';
SELECT ok(findings LIKE '%PUBLIC has SELECT on events%', 'with the stray grant') FROM seen WHERE role = 'superuser';
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.doctor()', 'regress_tap_one'), '42501', 'nobody without a duty');
-- it works under any organization, and in a hostile path
SET tool_claims.organization = '*';
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.doctor()'), 'done', 'under *');
SET tool_claims.organization = 'tap_doctor';
BEGIN READ ONLY;
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.doctor()'), 'done', 'read only');
ROLLBACK;
CREATE FUNCTION pg_temp.equal(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'hostile'; END $$;
CREATE OPERATOR pg_temp.= (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.equal);
CREATE TEMPORARY TABLE pg_class (oid oid);
SET search_path = pg_temp, pg_catalog, public;
SELECT pg_catalog.count(*) > 0 AS hostile FROM tool_claims.doctor() \gset
RESET search_path;
DROP TABLE pg_temp.pg_class;
SELECT is(:'hostile'::text, 't', 'in a hostile path');

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_one', 'regress_tap_two', 'regress_tap_group', 'regress_tap_auditor', 'regress_tap_admin');
