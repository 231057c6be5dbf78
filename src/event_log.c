/*
 * event_log.c
 *
 * The only module that reads or writes the table events.
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
 * Nobody's ordinary SQL can UPDATE, DELETE or TRUNCATE the table: a statement
 * trigger refuses it unless this module itself is at work.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgtime.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "clock.h"
#include "event_log.h"
#include "query.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_events_guard);
PG_FUNCTION_INFO_V1(tc_evidence);
PG_FUNCTION_INFO_V1(tc_evidence_heads);
PG_FUNCTION_INFO_V1(tc_verify_evidence);

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

/*
 * What the last event with an answer says of it, where it still says so, and
 * what the record holds.
 */
static SavedQuery answer_query = {
	"SELECT l.seq, l.detail OPERATOR(pg_catalog.->>) 'result_digest', "
	"l.detail OPERATOR(pg_catalog.->>) 'error_digest', r.result, r.error "
	"FROM tool_claims.claim_records r JOIN LATERAL (SELECT e.seq, e.kind, "
	"e.attempt, e.detail FROM tool_claims.events e WHERE " KEY_CONDITION
	" AND e.kind OPERATOR(pg_catalog.=) ANY (ARRAY['completed', 'failed', "
	"'reconciled']) ORDER BY e.seq DESC LIMIT 1) l "
	"ON l.attempt OPERATOR(pg_catalog.=) r.attempt "
	"WHERE r.organization OPERATOR(pg_catalog.=) $1 AND "
	"r.task_id OPERATOR(pg_catalog.=) $2 AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) $3 AND r.redacted IS NULL AND "
	"l.detail IS NOT NULL AND "
	"r.state OPERATOR(pg_catalog.=) ANY ('{d,f}'::pg_catalog.\"char\"[])",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery evidence_query = {
	"SELECT e.seq, e.at, e.kind, e.attempt, e.role, e.principal, e.detail, "
	"e.detail_digest, e.previous, e.hash FROM tool_claims.events e "
	"WHERE " KEY_CONDITION " ORDER BY e.seq, e.at, e.hash",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery heads_query = {
	"SELECT e.organization, e.task_id, e.tool_call_id, e.seq, e.hash "
	"FROM tool_claims.events e "
	"WHERE ($1 OPERATOR(pg_catalog.=) '*' OR "
	"e.organization OPERATOR(pg_catalog.=) $1) AND NOT EXISTS ("
	"SELECT 1 FROM tool_claims.events n "
	"WHERE n.organization OPERATOR(pg_catalog.=) e.organization AND "
	"n.task_id OPERATOR(pg_catalog.=) e.task_id AND "
	"n.tool_call_id OPERATOR(pg_catalog.=) e.tool_call_id AND "
	"n.previous::pg_catalog.bytea OPERATOR(pg_catalog.=) "
	"e.hash::pg_catalog.bytea) "
	"ORDER BY e.organization, e.task_id, e.tool_call_id, e.seq, e.hash",
	1, {TEXTOID}
};

static SavedQuery chain_query = {
	"SELECT e.seq, e.at, e.kind, e.attempt, e.role, e.principal, "
	"e.detail::pg_catalog.text, e.detail_digest::pg_catalog.bytea, "
	"e.previous::pg_catalog.bytea, e.hash::pg_catalog.bytea "
	"FROM tool_claims.events e WHERE " KEY_CONDITION " ORDER BY e.seq, e.hash",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

/* what claim and proposal say is their newest event */
static SavedQuery record_heads_query = {
	"SELECT e.evidence_head::pg_catalog.bytea "
	"FROM tool_claims.claim_records e WHERE " KEY_CONDITION " UNION ALL "
	"SELECT e.evidence_head::pg_catalog.bytea "
	"FROM tool_claims.proposal_records e WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
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

static bool
kind_changes(const char *kind)
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

static void
json_digest(const char *json, Sha256Digest *digest)
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
static void
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
	json_digest(detail_end(&object), hash);
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

static bool
same_digest(const Sha256Digest *a, const Sha256Digest *b)
{
	return memcmp(a, b, sizeof(Sha256Digest)) == 0;
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
		if (kind_changes(links[i].kind))
			anchor = i;
	if (!kind_changes(links[anchor].kind))
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
	return store_any_changing("events", "events_key_idx", 3, keys, deleting);
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
	row->detail = kind_changes(row->kind) ? detail : with_process(detail);
	json_digest(row->detail, &row->detail_digest);
	row->seq = 1;
	if (after != NULL)
	{
		row->has_previous = true;
		row->previous = after->hash;
		row->seq = after->seq + 1;
	}
	else if (find_previous(key, kind_changes(row->kind), &previous))
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

/* ----- verification ----- */

typedef struct Verdict
{
	bool		ok;
	int32		broken_at;
	const char *reason;
} Verdict;

typedef struct Chain
{
	EventRow   *rows;
	uint64		count;
	bool		known;			/* there are events, or a record */
	uint64		head_count;
	int32		answer_seq;		/* an event whose answer the record lacks, or 0 */
	Sha256Digest heads[2];		/* that claim and proposal name */
} Chain;

static void
chain_row(uint64 i, const ClaimKey *key, EventRow *row)
{
	bool		isnull;
	Datum		value;

	row->key = *key;
	row->seq = DatumGetInt32(column(i, 1, &isnull));
	row->at = DatumGetTimestampTz(column(i, 2, &isnull));
	row->kind = TextDatumGetCString(column(i, 3, &isnull));
	value = column(i, 4, &isnull);
	row->attempt = isnull ? 0 : DatumGetInt32(value);
	row->role = TextDatumGetCString(column(i, 5, &isnull));
	row->principal = TextDatumGetCString(column(i, 6, &isnull));
	value = column(i, 7, &isnull);
	row->detail = isnull ? NULL : TextDatumGetCString(value);
	(void) digest_column(i, 8, &row->detail_digest);
	row->has_previous = digest_column(i, 9, &row->previous);
	(void) digest_column(i, 10, &row->hash);
}

/* is a stored answer the one that has this digest in hex, both NULL for none? */
static bool
has_digest(int json_column, int hex_column)
{
	bool		no_json;
	bool		no_hex;
	Datum		json = column(0, json_column, &no_json);
	Datum		hex = column(0, hex_column, &no_hex);
	Sha256Digest digest;
	char		expected[SHA256_HEX_BYTES + 1];
	text	   *bytes;

	if (no_json || no_hex)
		return no_json && no_hex;
	bytes = DatumGetTextPP(json);
	sha256_compute(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), &digest);
	sha256_to_hex(&digest, expected);
	return strcmp(TextDatumGetCString(hex), expected) == 0;
}

/* the seq of the event of which the record holds another answer, or 0 */
static int32
answer_differs(void)
{
	bool		isnull;

	return has_digest(4, 2) && has_digest(5, 3) ? 0 :
		DatumGetInt32(column(0, 1, &isnull));
}

static void
load_chain(const ClaimKey *key, Chain *chain)
{
	QueryScope	scope;
	Datum		values[3];
	MemoryContext old;
	Snapshot	snapshot;
	uint64		records;

	/* one snapshot: a record that is just changing must fit its chain */
	query_key_arguments(key, values);
	query_begin(&scope);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	chain->count = query_run(&chain_query, values, NULL, snapshot);
	old = MemoryContextSwitchTo(scope.caller);
	chain->rows = palloc_extended((chain->count + 1) * sizeof(EventRow),
								  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint64 i = 0; i < chain->count; i++)
		chain_row(i, key, &chain->rows[i]);
	MemoryContextSwitchTo(old);
	records = query_run(&record_heads_query, values, NULL, snapshot);
	chain->known = chain->count > 0 || records > 0;
	for (uint64 i = 0; i < records; i++)
		if (digest_column(i, 1, &chain->heads[chain->head_count]))
			chain->head_count++;
	if (query_run(&answer_query, values, NULL, snapshot) > 0)
		chain->answer_seq = answer_differs();
	UnregisterSnapshot(snapshot);
	query_end(&scope);
}

static bool
broken(Verdict *verdict, int32 seq, const char *reason)
{
	verdict->ok = false;
	verdict->broken_at = seq;
	verdict->reason = reason;
	return false;
}

/* does one event agree with itself? */
static bool
verify_content(const Chain *chain, const EventRow *row, Verdict *verdict)
{
	Sha256Digest digest;

	event_hash(row, &digest);
	if (!same_digest(&digest, &row->hash))
		return broken(verdict, row->seq, "hash does not match the event");
	if (row->detail != NULL)
	{
		json_digest(row->detail, &digest);
		if (!same_digest(&digest, &row->detail_digest))
			return broken(verdict, row->seq, "detail does not match its digest");
		return true;
	}
	for (uint64 i = 0; i < chain->count; i++)
		if (strcmp(chain->rows[i].kind, "redacted") == 0 &&
			(chain->rows[i].seq > row->seq || !kind_changes(row->kind)))
			return true;
	return broken(verdict, row->seq, "detail is missing without a redaction");
}

/* what an event continues: its index, or -1; rows are in the order of seq */
static int64
find_hash(const Chain *chain, int64 before, const Sha256Digest *hash)
{
	for (int64 i = before - 1; i >= 0; i--)
		if (same_digest(&chain->rows[i].hash, hash))
			return i;
	return -1;
}

/*
 * Do all events hang together?  One root: the first event, or the one that
 * pruning left.  line is, per event, whether a changing event stands on it or
 * above; of the events that continue the same one, at most one may have that.
 */
static bool
verify_links(const Chain *chain, Verdict *verdict)
{
	int64		root = -1;
	int64	   *parent = palloc_extended((chain->count + 1) * sizeof(int64),
										 MCXT_ALLOC_HUGE);
	int64	   *changing = palloc_extended((chain->count + 1) * sizeof(int64),
										   MCXT_ALLOC_HUGE);

	for (int64 i = 0; i < (int64) chain->count; i++)
		if (strcmp(chain->rows[i].kind, "pruned") == 0)
			root = i;
	for (int64 i = 0; i < (int64) chain->count; i++)
	{
		const EventRow *row = &chain->rows[i];

		changing[i] = -1;
		parent[i] = row->has_previous ?
			find_hash(chain, i, &row->previous) : -1;
		if (i > 0 && same_digest(&row->hash, &chain->rows[i - 1].hash))
			return broken(verdict, row->seq, "event stands twice");
		if (parent[i] >= 0)
		{
			if (row->seq != chain->rows[parent[i]].seq + 1)
				return broken(verdict, row->seq, "seq does not follow the previous event");
			continue;
		}
		if (i == root)
			continue;
		if (!row->has_previous && row->seq == 1 &&
			(root < 0 || !kind_changes(row->kind)))
		{
			/* a first event; others may be first beside it */
			continue;
		}
		/* written while the chain that it continued was pruned */
		if (root >= 0 && !kind_changes(row->kind) &&
			row->seq <= chain->rows[root].seq)
			continue;
		return broken(verdict, row->seq, "previous event is missing");
	}

	/* -1: no changing event above; else the child that leads to one */
	for (int64 i = chain->count - 1; i >= 0; i--)
	{
		const EventRow *row = &chain->rows[i];
		int64		up = parent[i] >= 0 ? parent[i] : (int64) chain->count;

		if (i == (int64) chain->count - 1)
			changing[chain->count] = -1;
		if (!kind_changes(row->kind) && changing[i] < 0)
			continue;
		if (changing[up] >= 0 && changing[up] != i)
			return broken(verdict, row->seq, "the chain forks at changing events");
		changing[up] = i;
	}
	return true;
}

/* is it the head that pruning took away, and names? */
static bool
was_pruned(const Chain *chain, const Sha256Digest *head)
{
	for (uint64 i = 0; i < chain->count; i++)
		if (strcmp(chain->rows[i].kind, "pruned") == 0 &&
			chain->rows[i].has_previous &&
			same_digest(&chain->rows[i].previous, head))
			return true;
	return false;
}

static void
verify_chain(const Chain *chain, const Sha256Digest *expected_head,
			 Verdict *verdict)
{
	verdict->ok = true;
	verdict->broken_at = 0;
	verdict->reason = NULL;
	for (uint64 i = 0; i < chain->count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!verify_content(chain, &chain->rows[i], verdict))
			return;
	}
	if (!verify_links(chain, verdict))
		return;
	for (uint64 i = 0; i < chain->head_count; i++)
		if (find_hash(chain, chain->count, &chain->heads[i]) < 0)
		{
			broken(verdict, 0, "the newest event of the record is missing");
			return;
		}
	if (chain->answer_seq > 0)
	{
		broken(verdict, chain->answer_seq,
			   "the record holds another answer than the event");
		return;
	}
	if (!chain->known)
		verdict->reason = "nothing is known under this key";
	if (expected_head != NULL &&
		find_hash(chain, chain->count, expected_head) < 0 &&
		!was_pruned(chain, expected_head))
		broken(verdict, 0, "the expected head is missing");
}

/*
 * tool_claims.verify_evidence(task_id text, tool_call_id text,
 *							   expected_head sha256_digest)
 *		returns (ok boolean, broken_at integer, reason text)
 */
Datum
tc_verify_evidence(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	Sha256Digest *expected = PG_ARGISNULL(2) ? NULL :
		PG_GETARG_SHA256_DIGEST(2);
	TupleDesc	descriptor;
	Chain		chain;
	Verdict		verdict;
	Datum		values[3] = {0};
	bool		nulls[3] = {false};

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	memset(&chain, 0, sizeof(chain));
	load_chain(&key, &chain);
	verify_chain(&chain, expected, &verdict);
	values[0] = BoolGetDatum(verdict.ok);
	values[1] = Int32GetDatum(verdict.broken_at);
	nulls[1] = verdict.ok || verdict.broken_at == 0;
	nulls[2] = verdict.reason == NULL;
	if (verdict.reason != NULL)
		values[2] = CStringGetTextDatum(verdict.reason);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(descriptor),
											 values, nulls));
}

/* tool_claims.evidence(task_id text, tool_call_id text) returns setof record */
Datum
tc_evidence(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	Datum		values[3];

	query_key_arguments(&key, values);
	query_return_set(fcinfo, &evidence_query, values, NULL, QUERY_BY_KEY);
	return (Datum) 0;
}

/* tool_claims.evidence_heads() returns setof record */
Datum
tc_evidence_heads(PG_FUNCTION_ARGS)
{
	Datum		values[1];

	values[0] = CStringGetTextDatum(settings_organization());
	query_return_set(fcinfo, &heads_query, values, NULL, QUERY_SCAN);
	return (Datum) 0;
}
