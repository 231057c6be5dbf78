/*
 * doctor.c
 *
 * What weakens the promises on this server.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "query.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_doctor);

#define LIBRARY_VERSION	"0.1.0"

/* the extension's tables */
#define TABLES \
	"SELECT c.oid, c.relname, c.relpersistence, c.relacl, c.relowner, " \
	"c.relhasrules, c.relrowsecurity " \
	"FROM pg_catalog.pg_class c " \
	"WHERE c.relnamespace = 'tool_claims'::pg_catalog.regnamespace " \
	"AND c.relkind IN ('r', 'p')"

#define SETTING(name, value, level, finding, advice) \
	"SELECT '" level "', '" finding "', '" advice "' " \
	"WHERE pg_catalog.current_setting('" name "') = '" value "' "

/*
 * One branch a finding.  The search_path is pinned, with pg_temp last, so the
 * operators are those of pg_catalog.
 */
static SavedQuery doctor_query = {
	"SELECT d.level, d.finding, d.advice FROM ("
	SETTING("fsync", "off", "error", "fsync is off",
			"Set fsync = on: a crash can lose claims that were acted on.")
	"UNION ALL "
	SETTING("full_page_writes", "off", "error", "full_page_writes is off",
			"Set full_page_writes = on: a crash can damage the tables.")
	"UNION ALL "
	SETTING("data_checksums", "off", "info", "data checksums are off",
			"Enable them with pg_checksums: a damaged index can hide a key.")
	"UNION ALL "
	SETTING("idle_in_transaction_session_timeout", "0", "warning",
			"idle_in_transaction_session_timeout is not set",
			"Set it: a client that vanished keeps its keys until the server notices.")
	"UNION ALL "
	SETTING("client_connection_check_interval", "0", "info",
			"client_connection_check_interval is not set",
			"Set it, so that a query of a vanished client ends.")
	"UNION ALL SELECT 'error', pg_catalog.format('table %s is not permanent', "
	"t.relname), 'ALTER TABLE ... SET LOGGED: a crash empties it.' "
	"FROM (" TABLES ") t WHERE t.relpersistence <> 'p' "
	"UNION ALL SELECT 'warning', pg_catalog.format("
	"'publication %s has the table %s', p.pubname, p.tablename), "
	"'A subscriber that grants as well is a second authority: never use both.' "
	"FROM pg_catalog.pg_publication_tables p "
	"WHERE p.schemaname = 'tool_claims' "
	"UNION ALL SELECT DISTINCT 'warning', pg_catalog.format("
	"'subscription %s writes the table %s', s.subname, t.relname), "
	"'Make grants on one side only.' "
	"FROM pg_catalog.pg_subscription_rel r "
	"JOIN pg_catalog.pg_subscription s ON s.oid = r.srsubid "
	"JOIN (" TABLES ") t ON t.oid = r.srrelid "
	"UNION ALL SELECT 'warning', pg_catalog.format("
	"'standby %s is asynchronous and there are leased claims', "
	"r.application_name), 'Make it synchronous, or set "
	"tool_claims.after_recovery = stop: a failover can lose claims that were "
	"acted on.' FROM pg_catalog.pg_stat_replication r "
	"WHERE r.sync_state = 'async' AND EXISTS (SELECT 1 "
	"FROM tool_claims.claim_records c WHERE c.effect_key IS NOT NULL AND "
	"c.leased) "
	/* every right on a member must come from a duty */
	"UNION ALL SELECT 'error', pg_catalog.format("
	"'role %s has %s on %s without a duty that gives it', "
	"CASE g.grantee WHEN 0 THEN 'PUBLIC' "
	"ELSE pg_catalog.pg_get_userbyid(g.grantee)::pg_catalog.text END, "
	"g.privilege_type, g.name), 'REVOKE it, or use grant_duty.' FROM ("
	"SELECT 'relation' AS kind, c.relname::pg_catalog.text AS name, "
	"a.grantee, a.privilege_type FROM pg_catalog.pg_class c, "
	"pg_catalog.aclexplode(c.relacl) a "
	"WHERE c.relnamespace = 'tool_claims'::pg_catalog.regnamespace "
	"AND a.grantee <> c.relowner UNION "
	"SELECT 'relation', c.relname || ' (' || t.attname || ')', a.grantee, "
	"a.privilege_type FROM pg_catalog.pg_class c "
	"JOIN pg_catalog.pg_attribute t ON t.attrelid = c.oid, "
	"pg_catalog.aclexplode(t.attacl) a "
	"WHERE c.relnamespace = 'tool_claims'::pg_catalog.regnamespace "
	"AND a.grantee <> c.relowner UNION "
	"SELECT 'function', p.proname, a.grantee, a.privilege_type "
	"FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(COALESCE(p.proacl, "
	"pg_catalog.acldefault('f', p.proowner))) a "
	"WHERE p.pronamespace = 'tool_claims'::pg_catalog.regnamespace "
	"AND a.grantee <> p.proowner UNION "
	"SELECT 'schema', n.nspname, a.grantee, a.privilege_type "
	"FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a "
	"WHERE n.nspname = 'tool_claims' AND a.grantee <> n.nspowner) g "
	"WHERE NOT EXISTS (SELECT 1 FROM tool_claims.duties h "
	"JOIN tool_claims.duty_privileges p ON p.duty IN ('*', h.duty) "
	"WHERE h.role_name = pg_catalog.pg_get_userbyid(g.grantee) "
	"AND p.kind = g.kind AND p.name = g.name "
	"AND p.privilege = g.privilege_type) "
	/* a login that can reach both sides, also through membership */
	"UNION ALL SELECT 'warning', pg_catalog.format("
	"'role %s has the duties %s and %s', r.rolname, a.duty, b.duty), "
	"'Give them to different roles: who proposes or acts must not decide, and "
	"who decides must not rule.' FROM pg_catalog.pg_roles r "
	"CROSS JOIN tool_claims.duties a CROSS JOIN tool_claims.duties b "
	"WHERE NOT r.rolsuper AND (a.duty, b.duty) IN (('proposer', 'approver'), "
	"('proposer', 'approval_service'), ('worker', 'approver'), "
	"('worker', 'approval_service'), ('worker', 'reconciler'), "
	"('administrator', 'approver'), ('administrator', 'approval_service'), "
	"('administrator', 'auditor'), ('administrator', 'worker'), "
	"('administrator', 'backup')) "
	"AND EXISTS (SELECT 1 FROM pg_catalog.pg_roles x "
	"WHERE x.rolname = a.role_name "
	"AND pg_catalog.pg_has_role(r.oid, x.oid, 'MEMBER')) "
	"AND EXISTS (SELECT 1 FROM pg_catalog.pg_roles x "
	"WHERE x.rolname = b.role_name "
	"AND pg_catalog.pg_has_role(r.oid, x.oid, 'MEMBER')) "
	"UNION ALL SELECT 'warning', pg_catalog.format("
	"'role %s can write every table through %s', m.rolname, w.rolname), "
	"'It is outside of what the extension promises: take the membership away.' "
	"FROM pg_catalog.pg_roles m, pg_catalog.pg_roles w "
	"WHERE w.rolname = 'pg_write_all_data' AND m.oid <> w.oid "
	"AND NOT m.rolsuper "
	"AND pg_catalog.pg_has_role(m.oid, w.oid, 'MEMBER') "
	"UNION ALL SELECT DISTINCT 'warning', pg_catalog.format("
	"'prepared transaction %s holds a lock on %s', x.gid, t.relname), "
	"'COMMIT PREPARED or ROLLBACK PREPARED: the keys it holds stay in progress.' "
	"FROM pg_catalog.pg_prepared_xacts x JOIN pg_catalog.pg_locks l "
	"ON l.pid IS NULL AND l.virtualtransaction IN ("
	"SELECT o.virtualtransaction FROM pg_catalog.pg_locks o "
	"WHERE o.locktype = 'transactionid' AND o.pid IS NULL "
	"AND o.transactionid = x.transaction) "
	"JOIN (" TABLES ") t ON t.oid = l.relation "
	"WHERE x.database = pg_catalog.current_database() "
	"UNION ALL SELECT 'error', pg_catalog.format("
	"'trigger %s is missing or disabled', w.name), "
	"'Enable it, or create the extension anew.' FROM (VALUES "
	"('events', 'events_guard', ARRAY['O', 'A']), "
	"('events', 'events_row_guard', ARRAY['O', 'A']), "
	"('policies', 'policies_changed', ARRAY['A']), "
	"('policies', 'policies_truncated', ARRAY['A'])) w (relation, name, states) "
	"WHERE NOT EXISTS (SELECT 1 FROM pg_catalog.pg_trigger g "
	"JOIN (" TABLES ") t ON t.oid = g.tgrelid WHERE t.relname = w.relation "
	"AND g.tgname = w.name AND g.tgenabled::pg_catalog.text = ANY (w.states)) "
	"UNION ALL SELECT 'warning', pg_catalog.format("
	"'table %s has insert triggers, rules or row security', t.relname), "
	"'Remove them: with them a claim waits as an INSERT does, also at wait 0.' "
	"FROM (" TABLES ") t WHERE t.relname IN ('claim_records', 'operations') "
	"AND (EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite w "
	"WHERE w.ev_class = t.oid) OR t.relrowsecurity OR EXISTS (SELECT 1 "
	"FROM pg_catalog.pg_trigger g WHERE g.tgrelid = t.oid "
	"AND NOT g.tgisinternal AND g.tgtype & 4 <> 0)) "
	"UNION ALL SELECT 'error', 'tool_claims.clock_offset is not 0', "
	"'It is for tests only: RESET it.' WHERE $2 "
	"OR EXISTS (SELECT 1 FROM pg_catalog.pg_db_role_setting s, "
	"pg_catalog.unnest(s.setconfig) c "
	"WHERE c LIKE 'tool\\_claims.clock\\_offset=%') "
	"UNION ALL SELECT 'error', 'organizations are pinned to roles and the "
	"library is not preloaded', 'Add tool_claims to shared_preload_libraries: "
	"without it a client that asks for another organization is only refused.' "
	"WHERE $3 NOT LIKE '%tool\\_claims%' AND EXISTS (SELECT 1 "
	"FROM pg_catalog.pg_db_role_setting s, pg_catalog.unnest(s.setconfig) c "
	"WHERE c LIKE 'tool\\_claims.organization=%') "
	"UNION ALL SELECT CASE WHEN tool_claims.recovery_is_pending() "
	"THEN 'warning' ELSE 'info' END, pg_catalog.format('the server has "
	"changed its identity (known since %s, before: %s)', i.since, "
	"COALESCE(i.changed_from::pg_catalog.text, 'what is stored')), "
	"CASE WHEN tool_claims.recovery_is_pending() THEN 'Find out what was "
	"lost, then call accept_recovery(lost_since).' "
	"ELSE pg_catalog.format('Accepted at %s by %s: nothing is left to do.', "
	"i.accepted_at, i.accepted_by) END "
	"FROM tool_claims.server_identity i WHERE i.changed_from IS NOT NULL "
	"OR tool_claims.recovery_is_pending() "
	"UNION ALL SELECT 'error', pg_catalog.format("
	"'extension version %s runs with library version %s', e.extversion, $1), "
	"'ALTER EXTENSION tool_claims UPDATE, or install the fitting library.' "
	"FROM pg_catalog.pg_extension e WHERE e.extname = 'tool_claims' "
	"AND e.extversion <> $1) d (level, finding, advice) "
	"ORDER BY pg_catalog.array_position(ARRAY['error', 'warning', 'info'], "
	"d.level), d.finding",
	3, {TEXTOID, BOOLOID, TEXTOID}
};

/* tool_claims.doctor() returns setof (level text, finding text, advice text) */
Datum
tc_doctor(PG_FUNCTION_ARGS)
{
	Datum		values[3];

	(void) settings_organization();
	values[0] = CStringGetTextDatum(LIBRARY_VERSION);
	values[1] = BoolGetDatum(tc_clock_offset != 0);
	values[2] = CStringGetTextDatum(shared_preload_libraries_string ?
									shared_preload_libraries_string : "");
	query_return_set(fcinfo, &doctor_query, values, NULL, QUERY_SCAN);
	return (Datum) 0;
}
