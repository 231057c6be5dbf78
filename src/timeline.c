/*
 * timeline.c
 *
 * The history of one key, drawn to be read at a glance.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"

#include "arguments.h"
#include "query.h"

PG_FUNCTION_INFO_V1(tc_timeline);

/*
 * One line an event.  Of the routine ones that the log leaves out, the record
 * itself still knows those of its last attempt.
 */
static SavedQuery timeline_query = {
	"WITH record AS (SELECT * FROM tool_claims.claim_records r WHERE "
	"r.organization OPERATOR(pg_catalog.=) $1 AND "
	"r.task_id OPERATOR(pg_catalog.=) $2 AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) $3), "
	"logged AS (SELECT e.at, e.seq, e.kind, e.attempt, "
	"e.role || CASE WHEN e.principal OPERATOR(pg_catalog.<>) e.role "
	"THEN ' for ' || e.principal ELSE '' END AS who, "
	"CASE WHEN e.detail IS NULL THEN '(redacted)' ELSE "
	"pg_catalog.concat_ws(', ', e.detail ->> 'reason', "
	"'finding ' || (e.detail ->> 'finding'), e.detail ->> 'text', "
	"e.detail ->> 'message', e.detail ->> 'comment', 'ref ' || (e.detail ->> 'external_ref'), "
	"'evidence ' || (e.detail ->> 'evidence'), "
	"'was ' || (e.detail ->> 'state')) END AS note "
	"FROM tool_claims.events e WHERE "
	"e.organization OPERATOR(pg_catalog.=) $1 AND "
	"e.task_id OPERATOR(pg_catalog.=) $2 AND "
	"e.tool_call_id OPERATOR(pg_catalog.=) $3), "
	"entries AS (SELECT * FROM logged UNION ALL "
	"SELECT r.claimed_at, 0, 'acquired', r.attempt, r.held_role, "
	"CASE WHEN r.leased THEN 'until ' || pg_catalog.to_char("
	"r.lease_expires_at, 'HH24:MI:SS') ELSE 'in one transaction' END "
	"FROM record r WHERE r.state OPERATOR(pg_catalog.<>) "
	"'t'::pg_catalog.\"char\" AND NOT EXISTS (SELECT 1 FROM logged l "
	"WHERE l.kind OPERATOR(pg_catalog.=) 'acquired' AND "
	"l.attempt OPERATOR(pg_catalog.=) r.attempt) UNION ALL "
	"SELECT r.finished_at, 2147483647, CASE r.state "
	"WHEN 'd' THEN 'completed' WHEN 'f' THEN 'failed' ELSE 'released' END, "
	"r.attempt, r.held_role, '' FROM record r "
	"WHERE r.finished_at IS NOT NULL AND r.state "
	"OPERATOR(pg_catalog.<>) 't'::pg_catalog.\"char\" AND NOT EXISTS ("
	"SELECT 1 FROM logged l WHERE l.attempt OPERATOR(pg_catalog.=) r.attempt "
	"AND l.kind OPERATOR(pg_catalog.=) ANY (ARRAY['completed', 'failed', "
	"'released', 'reconciled']))), "
	"drawn AS (SELECT n.*, pg_catalog.row_number() OVER w AS line, "
	"n.at OPERATOR(pg_catalog.-) pg_catalog.lag(n.at) OVER w AS step "
	"FROM entries n WINDOW w AS (ORDER BY n.at, n.seq)) "
	"SELECT text_line FROM (SELECT 0::pg_catalog.int8 AS line, "
	"pg_catalog.format('task %s, call %s: tool %s%s, %s, attempt %s', "
	"r.task_id, r.tool_call_id, r.tool_name, "
	"CASE WHEN r.tool_server OPERATOR(pg_catalog.=) '' THEN '' "
	"ELSE ' of server ' || r.tool_server END, "
	"tool_claims.state_now(r.state, r.leased, r.reacquire, r.dispatched_at, "
	"r.lease_expires_at), r.attempt) AS text_line FROM record r UNION ALL "
	"SELECT 0, pg_catalog.format('task %s, call %s: tool %s%s, proposal %s', "
	"p.task_id, p.tool_call_id, p.tool_name, "
	"CASE WHEN p.tool_server OPERATOR(pg_catalog.=) '' THEN '' "
	"ELSE ' of server ' || p.tool_server END, "
	"tool_claims.proposal_state_now(p.state, p.expires_at)) "
	"FROM tool_claims.proposal_records p WHERE "
	"p.organization OPERATOR(pg_catalog.=) $1 AND "
	"p.task_id OPERATOR(pg_catalog.=) $2 AND "
	"p.tool_call_id OPERATOR(pg_catalog.=) $3 AND "
	"NOT EXISTS (SELECT 1 FROM record) UNION ALL "
	"SELECT d.line, pg_catalog.rtrim(pg_catalog.format('%s  %s  %s %s  %s  %s', "
	"pg_catalog.to_char(d.at, 'YYYY-MM-DD HH24:MI:SS.MS'), "
	"pg_catalog.lpad(CASE WHEN d.step IS NULL THEN '' ELSE '+' || CASE "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 minute' "
	"THEN pg_catalog.round(EXTRACT(epoch FROM d.step), 3) || ' s' "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 hour' "
	"THEN pg_catalog.to_char(d.step, 'FMMI \"min\" FMSS \"s\"') "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 day' "
	"THEN pg_catalog.to_char(d.step, 'FMHH24 \"h\" FMMI \"min\"') "
	"ELSE pg_catalog.to_char(d.step, 'FMDD \"d\" FMHH24 \"h\"') END END, 14), "
	"pg_catalog.rpad(d.kind, 11), "
	"pg_catalog.rpad(COALESCE('#' || d.attempt, ''), 4), "
	"pg_catalog.rpad(d.who, pg_catalog.max(pg_catalog.length(d.who)) OVER ()), "
	"d.note)) FROM drawn d) t ORDER BY t.line",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

/* tool_claims.timeline(task_id text, tool_call_id text) returns setof text */
Datum
tc_timeline(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	Datum		values[3];

	query_key_arguments(&key, values);
	query_return_set(fcinfo, &timeline_query, values, NULL, QUERY_BY_KEY);
	return (Datum) 0;
}
