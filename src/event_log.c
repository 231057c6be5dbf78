/*
 * event_log.c
 *
 * The only module that writes the table events.
 *
 * Every event names the hash of the one before it.  Events that change the
 * record are written under its lock, so they see each other and form one
 * line: each continues a branch that holds the changing event before it.
 * Events that change nothing never wait: they name the newest event that they
 * see, so several may name the same one.
 *
 * The row is prepared first and written second, because the record stores the
 * hash of its newest changing event: cutting that off shows without a head
 * kept elsewhere.
 *
 * Nobody's ordinary SQL can UPDATE, DELETE or TRUNCATE the table: its triggers
 * refuse it unless this module itself is at work.  Reading and verifying is
 * evidence.c.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compare.h"
#include "direct.h"
#include "event_log.h"
#include "query.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_events_guard);

#define KEY_CONDITION \
	"e.organization OPERATOR(pg_catalog.=) $1 AND " \
	"e.task_id OPERATOR(pg_catalog.=) $2 AND " \
	"e.tool_call_id OPERATOR(pg_catalog.=) $3"

static SavedQuery newest_query = {
	"SELECT e.seq, e.kind, e.previous::pg_catalog.bytea, "
	"e.hash::pg_catalog.bytea FROM tool_claims.events e "
	"WHERE " KEY_CONDITION " ORDER BY e.seq DESC LIMIT 1",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

/* the last changing event and all that came since */
static SavedQuery branch_query = {
	"SELECT e.seq, e.kind, e.previous::pg_catalog.bytea, "
	"e.hash::pg_catalog.bytea FROM tool_claims.events e "
	"WHERE " KEY_CONDITION " AND e.seq OPERATOR(pg_catalog.>=) COALESCE(("
	"SELECT l.seq FROM tool_claims.events l "
	"WHERE l.organization OPERATOR(pg_catalog.=) $1 AND "
	"l.task_id OPERATOR(pg_catalog.=) $2 AND "
	"l.tool_call_id OPERATOR(pg_catalog.=) $3 AND "
	"l.kind OPERATOR(pg_catalog.<>) ALL (ARRAY['conflict', 'refused', 'late_report']) "
	"ORDER BY l.seq DESC LIMIT 1), 0) ORDER BY e.seq",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery write_query = {
	"INSERT INTO tool_claims.events (organization, task_id, tool_call_id, "
	"seq, at, kind, attempt, role, principal, detail, detail_digest, "
	"previous, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, "
	"$10::pg_catalog.jsonb, $11::tool_claims.sha256_digest, "
	"$12::tool_claims.sha256_digest, $13::tool_claims.sha256_digest)",
	13,
	{TEXTOID, TEXTOID, TEXTOID, INT4OID, TIMESTAMPTZOID, TEXTOID, INT4OID,
	TEXTOID, TEXTOID, TEXTOID, BYTEAOID, BYTEAOID, BYTEAOID}
};

static SavedQuery redact_query = {
	"UPDATE tool_claims.events e SET detail = NULL WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery delete_query = {
	"DELETE FROM tool_claims.events e WHERE " KEY_CONDITION
	" AND e.hash::pg_catalog.bytea OPERATOR(pg_catalog.<>) $4",
	4, {TEXTOID, TEXTOID, TEXTOID, BYTEAOID}
};

/* keys that have old events and never had a record: refused calls */
static SavedQuery orphans_query = {
	"SELECT o.organization, o.task_id, o.tool_call_id "
	"FROM tool_claims.events o "
	"WHERE ($1 OPERATOR(pg_catalog.=) '*' OR "
	"o.organization OPERATOR(pg_catalog.=) $1) AND NOT EXISTS ("
	"SELECT 1 FROM tool_claims.claim_records r "
	"WHERE r.organization OPERATOR(pg_catalog.=) o.organization AND "
	"r.task_id OPERATOR(pg_catalog.=) o.task_id AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) o.tool_call_id) AND NOT EXISTS ("
	"SELECT 1 FROM tool_claims.proposal_records r "
	"WHERE r.organization OPERATOR(pg_catalog.=) o.organization AND "
	"r.task_id OPERATOR(pg_catalog.=) o.task_id AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) o.tool_call_id) "
	"GROUP BY o.organization, o.task_id, o.tool_call_id "
	"HAVING pg_catalog.max(o.at) OPERATOR(pg_catalog.<) $2 LIMIT $3",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

static bool guard_open = false;

static const char *const kind_names[] = {
	[EVENT_PROPOSED] = "proposed",
	[EVENT_APPROVED] = "approved",
	[EVENT_REJECTED] = "rejected",
	[EVENT_WITHDRAWN] = "withdrawn",
	[EVENT_REVOKED] = "revoked",
	[EVENT_SUPERSEDED] = "superseded",
	[EVENT_EXPIRED] = "expired",
	[EVENT_RESERVED] = "reserved",
	[EVENT_ACQUIRED] = "acquired",
	[EVENT_DISPATCHED] = "dispatched",
	[EVENT_COMPLETED] = "completed",
	[EVENT_FAILED] = "failed",
	[EVENT_RELEASED] = "released",
	[EVENT_UNCERTAIN] = "uncertain",
	[EVENT_RECONCILED] = "reconciled",
	[EVENT_CONFLICT] = "conflict",
	[EVENT_REFUSED] = "refused",
	[EVENT_LATE_REPORT] = "late_report",
	[EVENT_REDACTED] = "redacted",
	[EVENT_PRUNED] = "pruned"
};

/* does an event of this kind change the record? */
bool
event_kind_changes(const char *kind)
{
	return strcmp(kind, "conflict") != 0 && strcmp(kind, "refused") != 0 &&
		strcmp(kind, "late_report") != 0;
}

/* ----- details ----- */

void
detail_begin(StringInfo detail)
{
	initStringInfo(detail);
	appendStringInfoChar(detail, '{');
}

/* adds a member whose value is JSON already; nothing for a NULL */
void
detail_json(StringInfo detail, const char *name, const char *json)
{
	if (json == NULL)
		return;
	if (detail->len > 1)
		appendStringInfoChar(detail, ',');
	escape_json(detail, name);
	appendStringInfoChar(detail, ':');
	appendStringInfoString(detail, json);
}

/* adds a string; nothing for a NULL */
void
detail_text(StringInfo detail, const char *name, const char *value)
{
	StringInfoData quoted;

	if (value == NULL)
		return;
	initStringInfo(&quoted);
	escape_json(&quoted, value);
	detail_json(detail, name, quoted.data);
	pfree(quoted.data);
}

const char *
detail_end(StringInfo detail)
{
	appendStringInfoChar(detail, '}');
	return detail->data;
}

/* ----- hashing ----- */

void
event_json_digest(const char *json, Sha256Digest *digest)
{
	canonical_json_digest(canonical_json_parse(json, strlen(json)), digest);
}

static const char *
utc_text(TimestampTz time)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(time, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
					tm.tm_year, tm.tm_mon, tm.tm_mday,
					tm.tm_hour, tm.tm_min, tm.tm_sec, (int) fsec);
}

/* the hash of an event, over the object that README.md spells out */
void
event_hash(const EventRow *row, Sha256Digest *hash)
{
	StringInfoData object;
	char		hex[SHA256_HEX_BYTES + 1];

	detail_begin(&object);
	detail_json(&object, "v", "1");
	detail_text(&object, "organization", row->key.organization);
	detail_text(&object, "task_id", row->key.task_id);
	detail_text(&object, "tool_call_id", row->key.tool_call_id);
	detail_json(&object, "seq", psprintf("%d", row->seq));
	detail_text(&object, "at", utc_text(row->at));
	detail_text(&object, "kind", row->kind);
	detail_json(&object, "attempt",
				row->attempt > 0 ? psprintf("%d", row->attempt) : "null");
	detail_text(&object, "role", row->role);
	detail_text(&object, "principal", row->principal);
	sha256_to_hex(&row->detail_digest, hex);
	detail_text(&object, "detail", hex);
	if (row->has_previous)
	{
		sha256_to_hex(&row->previous, hex);
		detail_text(&object, "previous", hex);
	}
	else
		detail_json(&object, "previous", "null");
	event_json_digest(detail_end(&object), hash);
}

/* ----- rows ----- */

static Datum
column(uint64 row, int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						 number, isnull);
}

static bool
digest_column(uint64 row, int number, Sha256Digest *digest)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);

	if (!isnull)
		memcpy(digest, VARDATA_ANY(DatumGetPointer(value)),
			   sizeof(Sha256Digest));
	return !isnull;
}

typedef struct Link
{
	int32		seq;
	const char *kind;
	bool		has_previous;
	Sha256Digest previous;
	Sha256Digest hash;
} Link;

static void
link_from_result(uint64 row, Link *link)
{
	bool		isnull;

	link->seq = DatumGetInt32(column(row, 1, &isnull));
	link->kind = TextDatumGetCString(column(row, 2, &isnull));
	link->has_previous = digest_column(row, 3, &link->previous);
	(void) digest_column(row, 4, &link->hash);
}

/*
 * The newest event that descends from the last changing one.  Rows come in
 * the order of seq, so what a row continues was seen before it.
 */
static void
newest_of_line(Link *links, uint64 count, Link *newest)
{
	uint64		ndescendants = 0;
	uint64		anchor = 0;

	for (uint64 i = 0; i < count; i++)
		if (event_kind_changes(links[i].kind))
			anchor = i;
	if (!event_kind_changes(links[anchor].kind))
		anchor = count - 1;		/* nothing has changed yet: any will do */
	*newest = links[anchor];
	links[ndescendants++] = links[anchor];
	for (uint64 i = anchor + 1; i < count; i++)
		for (uint64 j = ndescendants; j-- > 0;)
			if (links[i].has_previous &&
				same_digest(&links[i].previous, &links[j].hash))
			{
				links[ndescendants++] = links[i];
				if (links[i].seq > newest->seq)
					*newest = links[i];
				break;
			}
}

/*
 * Is an open transaction of somebody inserting events of the key, or with
 * *deleting, taking them away?
 */
static bool
events_changing(const ClaimKey *key, bool *deleting)
{
	const char *keys[3];

	keys[0] = key->organization;
	keys[1] = key->task_id;
	keys[2] = key->tool_call_id;
	return direct_any_changing("events", "events_key_idx", 3, keys, deleting);
}

/*
 * The event that a new one is to follow; false where there is none, or where
 * an open transaction is just pruning the key: a new chain begins then.
 */
static bool
find_previous(const ClaimKey *key, bool changes, Link *previous)
{
	QueryScope	scope;
	Datum		values[3];
	uint64		count;
	bool		deleting;

	if (events_changing(key, &deleting) && deleting)
		return false;
	query_key_arguments(key, values);
	query_begin(&scope);
	count = query_run(changes ? &branch_query : &newest_query, values, NULL,
					  GetLatestSnapshot());
	if (count > 0)
	{
		Link	   *links = palloc_extended(count * sizeof(Link),
											MCXT_ALLOC_HUGE);

		for (uint64 i = 0; i < count; i++)
			link_from_result(i, &links[i]);
		newest_of_line(links, count, previous);
	}
	query_end(&scope);
	return count > 0;
}

/*
 * Adds the process to the detail of an event that changes nothing.  Without
 * it, two sessions that write the same in the same microsecond would write
 * the same event twice, which looks like tampering.
 */
static const char *
with_process(const char *detail)
{
	size_t		length = strlen(detail) - 1;

	return psprintf("%.*s%s\"pid\":%d}", (int) length, detail,
					length > 1 ? "," : "", MyProcPid);
}

/*
 * Makes an event of the current role and of a principal, NULL for the session
 * user, after another prepared one or else after what is stored.  A changing kind needs the lock on the record.
 */
void
event_log_prepare(EventRow *row, const ClaimKey *key, EventKind kind,
				  int32 attempt, const char *principal, const char *detail,
				  const EventRow *after)
{
	Link		previous;

	memset(row, 0, sizeof(*row));
	row->key = *key;
	row->kind = kind_names[kind];
	row->at = clock_now();
	row->attempt = attempt;
	row->role = GetUserNameFromId(GetUserId(), false);
	row->principal = principal != NULL ? principal :
		GetUserNameFromId(GetSessionUserId(), false);
	row->detail = event_kind_changes(row->kind) ? detail : with_process(detail);
	event_json_digest(row->detail, &row->detail_digest);
	row->seq = 1;
	if (after != NULL)
	{
		row->has_previous = true;
		row->previous = after->hash;
		row->seq = after->seq + 1;
	}
	else if (find_previous(key, event_kind_changes(row->kind), &previous))
	{
		row->has_previous = true;
		row->previous = previous.hash;
		row->seq = previous.seq + 1;
	}
	event_hash(row, &row->hash);
}

void
event_log_write(const EventRow *row)
{
	QueryScope	scope;
	Datum		values[13];
	char		nulls[13];

	memset(nulls, ' ', sizeof(nulls));
	query_key_arguments(&row->key, values);
	values[3] = Int32GetDatum(row->seq);
	values[4] = TimestampTzGetDatum(row->at);
	values[5] = CStringGetTextDatum(row->kind);
	values[6] = Int32GetDatum(row->attempt);
	if (row->attempt <= 0)
		nulls[6] = 'n';
	values[7] = CStringGetTextDatum(row->role);
	values[8] = CStringGetTextDatum(row->principal);
	values[9] = CStringGetTextDatum(row->detail);
	values[10] = query_digest_argument(&row->detail_digest);
	values[11] = query_digest_argument(&row->previous);
	if (!row->has_previous)
		nulls[11] = 'n';
	values[12] = query_digest_argument(&row->hash);
	query_begin(&scope);
	query_run(&write_query, values, nulls, InvalidSnapshot);
	query_end(&scope);
}

/* ----- the guard, and what passes it ----- */

static uint64
run_past_guard(SavedQuery *query, Datum *values)
{
	QueryScope	scope;
	uint64		rows = 0;

	query_begin(&scope);
	guard_open = true;
	PG_TRY();
	{
		rows = query_run(query, values, NULL, InvalidSnapshot);
	}
	PG_FINALLY();
	{
		guard_open = false;
	}
	PG_END_TRY();
	query_end(&scope);
	return rows;
}

/* takes the details of a key's events away; their digests stay */
void
event_log_redact(const ClaimKey *key)
{
	Datum		values[3];

	query_key_arguments(key, values);
	(void) run_past_guard(&redact_query, values);
}

/* deletes the events of a key, all but one where keep is given */
void
event_log_delete(const ClaimKey *key, const EventRow *keep)
{
	Sha256Digest nothing;
	Datum		values[4];

	memset(&nothing, 0, sizeof(nothing));
	query_key_arguments(key, values);
	values[3] = query_digest_argument(keep != NULL ? &keep->hash : &nothing);
	(void) run_past_guard(&delete_query, values);
}

/*
 * Is an open transaction of somebody just writing an event of the key?  It may
 * continue one that is about to be deleted.
 */
bool
event_log_in_flight(const ClaimKey *key)
{
	bool		deleting;

	return events_changing(key, &deleting);
}

/* deletes old events of keys that have no record; returns how many keys */
int
event_log_delete_orphans(const char *organization, TimestampTz before,
						 int max_rows)
{
	QueryScope	scope;
	Datum		values[3];
	ClaimKey   *keys;
	uint64		count;
	int			done = 0;

	values[0] = CStringGetTextDatum(organization);
	values[1] = TimestampTzGetDatum(before);
	values[2] = Int32GetDatum(max_rows);
	query_begin_scan(&scope);
	count = query_run(&orphans_query, values, NULL, InvalidSnapshot);
	keys = query_keys(&scope, count);
	query_end(&scope);
	for (uint64 i = 0; i < count; i++)
	{
		ClaimRecord record;

		/* a record of an open transaction stands on these events */
		if (store_look(&keys[i], &record) != STORE_ABSENT ||
			store_proposal_look(&keys[i]) != STORE_ABSENT ||
			event_log_in_flight(&keys[i]))
			continue;
		event_log_delete(&keys[i], NULL);
		done++;
	}
	return done;
}

/*
 * The triggers of the table events: for statements, because they see also what
 * matches no row, and for rows, because a statement on a parent table does not
 * fire those of its children.
 */
Datum
tc_events_guard(PG_FUNCTION_ARGS)
{
	TriggerData *data;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"events_guard\" was not called by trigger manager")));
	if (!guard_open)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("table \"events\" is append-only"),
				 errhint("Use tool_claims.prune or tool_claims.redact.")));
	data = (TriggerData *) fcinfo->context;
	if (TRIGGER_FIRED_FOR_ROW(data->tg_event))
		return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(data->tg_event) ?
							   data->tg_newtuple : data->tg_trigtuple);
	return PointerGetDatum(NULL);
}
