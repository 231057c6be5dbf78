/*
 * recovery.c
 *
 * An asynchronous failover, a restore to a point in time, a copy of the
 * database: after each of them, claims that were acted on may be missing here.
 * The one row of server_identity says under which identity the extension has
 * granted: system identifier, WAL timeline, OID of the database, and a random
 * value made at CREATE EXTENSION, which lies in another table that dumps leave
 * out.  A verb that finds another identity writes it down; until somebody
 * accepts it, tool_claims.after_recovery says whether grants go on.
 *
 * The timeline is read from memory: the control file lags after a promotion.
 * A copy of the files that goes on with the same timeline cannot be told
 * apart from inside.
 *
 * A backend looks at the row once, and again when its timeline changes (it
 * was connected during a promotion) or the tables are not the same any more.
 * While a recovery is pending it looks each time, to see the acceptance.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "direct.h"
#include "clock.h"
#include "event_log.h"
#include "proposal_flow.h"
#include "proposal_store.h"
#include "query.h"
#include "recovery.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_accept_recovery);
PG_FUNCTION_INFO_V1(tc_recovery_is_pending);

#define IDENTITY_ARGS	4

/* columns of server_identity, in the order of the install script */
enum
{
	COL_ID,
	COL_SYSTEM_IDENTIFIER,
	COL_TIMELINE,
	COL_DATABASE_OID,
	COL_INCARNATION,
	COL_SINCE,
	COL_CHANGED_FROM,
	COL_ACCEPTED_AT,
	COL_ACCEPTED_BY,
	COLUMNS
};

static SavedQuery look_query = {
	"SELECT i.system_identifier OPERATOR(pg_catalog.=) $1 AND "
	"i.timeline OPERATOR(pg_catalog.=) $2 AND "
	"i.database_oid OPERATOR(pg_catalog.=) $3 AND "
	"i.incarnation OPERATOR(pg_catalog.=) b.incarnation, "
	"i.changed_from IS NOT NULL AND i.accepted_at IS NULL, "
	"b.incarnation, i.id IS NOT NULL, i.xmin "
	"FROM (SELECT o.incarnation FROM tool_claims.births o LIMIT 1) b "
	"LEFT JOIN (SELECT s.*, s.xmin FROM tool_claims.server_identity s "
	"LIMIT 1) i ON true",
	3, {INT8OID, INT8OID, INT8OID}
};

static SavedQuery change_query = {
	"UPDATE tool_claims.server_identity i SET system_identifier = $1, "
	"timeline = $2, database_oid = $3, incarnation = $4, "
	"since = tool_claims.clock(), changed_from = "
	"pg_catalog.jsonb_build_object('system_identifier', "
	"i.system_identifier::pg_catalog.text, 'timeline', i.timeline, "
	"'database_oid', i.database_oid, 'incarnation', i.incarnation, "
	"'since', i.since), accepted_at = NULL, accepted_by = NULL "
	"WHERE i.id IN (SELECT l.id FROM tool_claims.server_identity l "
	"FOR NO KEY UPDATE SKIP LOCKED) AND NOT ("
	"i.system_identifier OPERATOR(pg_catalog.=) $1 AND "
	"i.timeline OPERATOR(pg_catalog.=) $2 AND "
	"i.database_oid OPERATOR(pg_catalog.=) $3 AND "
	"i.incarnation OPERATOR(pg_catalog.=) $4)",
	4, {INT8OID, INT8OID, INT8OID, UUIDOID}
};

static SavedQuery accept_query = {
	"UPDATE tool_claims.server_identity i "
	"SET accepted_at = tool_claims.clock(), accepted_by = $1",
	1, {TEXTOID}
};

static SavedQuery claims_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE ($2 OPERATOR(pg_catalog.=) '*' OR "
	"r.organization OPERATOR(pg_catalog.=) $2) AND "
	"r.open_since IS NOT NULL AND "
	"r.state OPERATOR(pg_catalog.=) 'c'::pg_catalog.\"char\" AND "
	"r.lease_expires_at OPERATOR(pg_catalog.>=) $1 "
	"ORDER BY r.organization, r.task_id, r.tool_call_id",
	2, {TIMESTAMPTZOID, TEXTOID}
};

static SavedQuery approvals_query = {
	"SELECT p.organization, p.task_id, p.tool_call_id "
	"FROM tool_claims.proposal_records p "
	"WHERE ($2 OPERATOR(pg_catalog.=) '*' OR "
	"p.organization OPERATOR(pg_catalog.=) $2) AND "
	"p.state OPERATOR(pg_catalog.=) 'a'::pg_catalog.\"char\" AND "
	"COALESCE((SELECT pg_catalog.max(v.voted_at) FROM tool_claims.votes v "
	"WHERE v.organization OPERATOR(pg_catalog.=) p.organization AND "
	"v.task_id OPERATOR(pg_catalog.=) p.task_id AND "
	"v.tool_call_id OPERATOR(pg_catalog.=) p.tool_call_id), p.proposed_at) "
	"OPERATOR(pg_catalog.>=) $1 "
	"ORDER BY p.organization, p.task_id, p.tool_call_id",
	2, {TIMESTAMPTZOID, TEXTOID}
};

static bool looked = false;
static bool pending = false;
static TimeLineID looked_timeline = 0;
static Oid	looked_table = InvalidOid;

static void
invalidate(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == looked_table)
		looked = false;
}

void
recovery_define(void)
{
	CacheRegisterRelcacheCallback(invalidate, (Datum) 0);
}

/* writes down the first identity; whoever is first in a new database does */
static void
insert_identity(Datum *identity)
{
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS] = {false};

	values[COL_ID] = BoolGetDatum(true);
	values[COL_SYSTEM_IDENTIFIER] = identity[0];
	values[COL_TIMELINE] = identity[1];
	values[COL_DATABASE_OID] = identity[2];
	values[COL_INCARNATION] = identity[3];
	values[COL_SINCE] = TimestampTzGetDatum(clock_now());
	nulls[COL_CHANGED_FROM] = nulls[COL_ACCEPTED_AT] =
		nulls[COL_ACCEPTED_BY] = true;
	(void) direct_insert_row("server_identity", COLUMNS, values, nulls);
}

/* the row as it compares with the server; identity is filled as well */
typedef struct Look
{
	bool		there;
	bool		same;
	bool		waiting;		/* a change that nobody has accepted */
	bool		own;			/* written by this very transaction */
	pg_uuid_t	incarnation;
	Datum		identity[IDENTITY_ARGS];
} Look;

static void
compare(TimeLineID timeline, Look *look)
{
	QueryScope	scope;
	bool		isnull;

	memset(look, 0, sizeof(*look));
	look->identity[0] = Int64GetDatum((int64) GetSystemIdentifier());
	look->identity[1] = Int64GetDatum(timeline);
	look->identity[2] = Int64GetDatum(MyDatabaseId);
	look->identity[3] = UUIDPGetDatum(&look->incarnation);
	query_begin_scan(&scope);
	if (query_run(&look_query, look->identity, NULL, GetLatestSnapshot()) > 0)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		TupleDesc	descriptor = SPI_tuptable->tupdesc;
		Datum		writer = SPI_getbinval(tuple, descriptor, 5, &isnull);

		look->same = DatumGetBool(SPI_getbinval(tuple, descriptor, 1, &isnull)) &&
			!isnull;
		look->waiting = DatumGetBool(SPI_getbinval(tuple, descriptor, 2,
												   &isnull));
		look->incarnation = *DatumGetUUIDP(SPI_getbinval(tuple, descriptor, 3,
														 &isnull));
		look->there = DatumGetBool(SPI_getbinval(tuple, descriptor, 4,
												 &isnull));
		look->own = look->there &&
			TransactionIdIsCurrentTransactionId(DatumGetTransactionId(writer));
	}
	query_end(&scope);
}

/* looks at the row, and writes down what is new; never waits for others */
static void
look(TimeLineID timeline)
{
	QueryScope	scope;
	Look		seen;

	looked_table = query_table("server_identity");
	compare(timeline, &seen);
	if (!seen.there)
		insert_identity(seen.identity);
	else if (!seen.same)
	{
		query_begin_scan(&scope);
		query_run(&change_query, seen.identity, NULL, GetLatestSnapshot());
		query_end(&scope);
		at_commit_durable();
	}
	pending = seen.waiting || (seen.there && !seen.same);
	/* what was written may be rolled back: only what is stored is kept */
	looked = seen.there && seen.same && !seen.own;
	looked_timeline = timeline;
}

/* notices a change of the server's identity; every verb calls it */
void
recovery_notice(void)
{
	TimeLineID	timeline = GetWALInsertionTimeLine();

	if (!looked || pending || timeline != looked_timeline)
		look(timeline);
}

/* is there a recovery that nobody has accepted? */
bool
recovery_pending(void)
{
	return pending;
}

/*
 * tool_claims.recovery_is_pending() returns boolean
 *
 * The same for views: it looks at the server itself, because a verb that was
 * refused has written nothing down.  Writes nothing.
 */
Datum
tc_recovery_is_pending(PG_FUNCTION_ARGS)
{
	Look		seen;

	/* a standby grants nothing; its timeline is the primary's affair */
	if (RecoveryInProgress())
		PG_RETURN_BOOL(false);
	compare(GetWALInsertionTimeLine(), &seen);
	PG_RETURN_BOOL(seen.waiting || (seen.there && !seen.same));
}

/* the keys that a query finds, in the caller's context */
static ClaimKey *
find_keys(SavedQuery *query, TimestampTz since, const char *organization,
		  uint64 *count)
{
	QueryScope	scope;
	Datum		values[2];
	ClaimKey   *keys;

	values[0] = TimestampTzGetDatum(since);
	values[1] = CStringGetTextDatum(organization);
	query_begin_scan(&scope);
	*count = query_run(query, values, NULL, InvalidSnapshot);
	keys = query_keys(&scope, *count);
	query_end(&scope);
	return keys;
}

/*
 * tool_claims.accept_recovery(lost_since timestamptz) returns void
 *
 * Lets grants go on under the server's new identity, after everything that
 * may have been acted on since then, and is not known here, was made to wait
 * for a person: leased claims in progress become uncertain, approvals that
 * were not used are revoked.
 */
Datum
tc_accept_recovery(PG_FUNCTION_ARGS)
{
	TimestampTz lost_since;
	const char *organization;
	ClaimKey   *keys;
	uint64		count;
	Datum		values[1];
	QueryScope	scope;

	verb_enter("tool_claims.accept_recovery()");
	require_argument(fcinfo, 0, "lost_since");
	lost_since = PG_GETARG_TIMESTAMPTZ(0);
	/* a recovery is the whole server's; without one it is the caller's own */
	organization = pending ? "*" : settings_organization();

	keys = find_keys(&claims_query, lost_since, organization, &count);
	for (uint64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		claim_write_recovered(&keys[i]);
	}
	keys = find_keys(&approvals_query, lost_since, organization, &count);
	for (uint64 i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		proposal_write_recovered(&keys[i]);
	}

	values[0] = CStringGetTextDatum(GetUserNameFromId(GetSessionUserId(), false));
	query_begin_scan(&scope);
	query_run(&accept_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
	PG_RETURN_VOID();
}
