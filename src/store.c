/*
 * store.c
 *
 * The rows of claim_records and operations.
 *
 * Looks never block.  A look first asks the unique index with a dirty
 * snapshot, and reads what an existing record says with the latest MVCC
 * snapshot; absence is decided by the unique index alone, in store_insert().
 *
 * Inserting a key that a rival's open transaction has inserted must not wait
 * for the rival, which no SQL statement can do.  On plain local heap tables it
 * goes through direct.c.  Anything else (partitioned, distributed, changed,
 * with insert triggers, rules or row security) gets an INSERT ... ON CONFLICT
 * DO NOTHING, which waits as every INSERT does.
 *
 * Under REPEATABLE READ and SERIALIZABLE a record that the transaction's
 * snapshot cannot see, or that has changed since, raises 40001.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "at_commit.h"
#include "compat.h"
#include "direct.h"
#include "query.h"
#include "store.h"

/* columns of claim_records, in the order of the install script */
enum
{
	COL_ORGANIZATION = 1,
	COL_TASK_ID,
	COL_TOOL_CALL_ID,
	COL_TOOL_SERVER,
	COL_TOOL_NAME,
	COL_INPUT_DIGEST,
	COL_STATE,
	COL_ENDED_BY,
	COL_LEASED,
	COL_REACQUIRE,
	COL_ATTEMPT,
	COL_CLAIMED_AT,
	COL_DISPATCHED_AT,
	COL_LEASE_EXPIRES_AT,
	COL_NOT_AFTER,
	COL_FINISHED_AT,
	COL_OPEN_SINCE,
	COL_HELD_ROLE,
	COL_HELD_SESSION,
	COL_HELD_FROM,
	COL_OPERATION_ID,
	COL_EFFECT_KEY,
	COL_REQUEST_ID,
	COL_EXTERNAL_REF,
	COL_INPUT,
	COL_RESULT,
	COL_ERROR,
	COL_RECONCILED,
	COL_REDACTED,
	COL_EVIDENCE_HEAD
};

#define RECORD_COLUMNS		COL_EVIDENCE_HEAD
#define OPERATION_COLUMNS	6

#define COLUMN_LIST \
	"organization, task_id, tool_call_id, tool_server, tool_name, " \
	"input_digest, state, ended_by, leased, reacquire, attempt, claimed_at, " \
	"dispatched_at, lease_expires_at, not_after, finished_at, open_since, " \
	"held_role, held_session, held_from, operation_id, effect_key, " \
	"request_id, external_ref, input, result, error, reconciled, redacted, " \
	"evidence_head"

#define KEY_CONDITION \
	"organization OPERATOR(pg_catalog.=) $1 AND " \
	"task_id OPERATOR(pg_catalog.=) $2 AND " \
	"tool_call_id OPERATOR(pg_catalog.=) $3"

#define SELECT_RECORD \
	"SELECT " COLUMN_LIST ", ctid FROM tool_claims.claim_records WHERE " \
	KEY_CONDITION

static SavedQuery read_query = {
	SELECT_RECORD, 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery lock_skip_query = {
	SELECT_RECORD " FOR NO KEY UPDATE SKIP LOCKED", 3,
	{TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery lock_wait_query = {
	SELECT_RECORD " FOR NO KEY UPDATE", 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery insert_query = {
	"INSERT INTO tool_claims.claim_records (" COLUMN_LIST ") VALUES "
	"($1, $2, $3, $4, $5, $6::tool_claims.sha256_digest, $7, $8, $9, $10, "
	"$11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, "
	"$25::pg_catalog.json::tool_claims.canonical_json, $26, $27, "
	"$28::tool_claims.sha256_digest, $29::tool_claims.sha256_digest, "
	"$30::tool_claims.sha256_digest) ON CONFLICT DO NOTHING",
	RECORD_COLUMNS,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, BYTEAOID, CHAROID, CHAROID,
		BOOLOID, BOOLOID, INT4OID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, UUIDOID, TEXTOID,
	JSONOID, JSONOID, JSONOID, BYTEAOID, BYTEAOID, BYTEAOID}
};

/* all that can change in a record; the input stays what it was */
static SavedQuery update_query = {
	"UPDATE tool_claims.claim_records SET state = $4, ended_by = $5, "
	"leased = $6, reacquire = $7, attempt = $8, claimed_at = $9, "
	"dispatched_at = $10, lease_expires_at = $11, not_after = $12, "
	"finished_at = $13, open_since = $14, held_role = $15, "
	"held_session = $16, held_from = $17, effect_key = $18, "
	"request_id = $19, external_ref = $20, result = $21, error = $22, "
	"reconciled = $23::tool_claims.sha256_digest, "
	"redacted = $24::tool_claims.sha256_digest, "
	"evidence_head = $25::tool_claims.sha256_digest "
	"WHERE " KEY_CONDITION,
	25,
	{TEXTOID, TEXTOID, TEXTOID, CHAROID, CHAROID, BOOLOID, BOOLOID, INT4OID,
		TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
		TIMESTAMPTZOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID,
	UUIDOID, TEXTOID, JSONOID, JSONOID, BYTEAOID, BYTEAOID, BYTEAOID}
};

static SavedQuery redact_input_query = {
	"UPDATE tool_claims.claim_records SET input = NULL WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery delete_query = {
	"DELETE FROM tool_claims.claim_records WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery find_query = {
	"SELECT " COLUMN_LIST ", ctid FROM tool_claims.claim_records "
	"WHERE organization OPERATOR(pg_catalog.=) $1 AND "
	"effect_key OPERATOR(pg_catalog.=) $2 "
	"ORDER BY task_id, tool_call_id",
	2, {TEXTOID, TEXTOID}
};

/* those whose key is derived and not stored, a look through all of them */
static SavedQuery find_derived_query = {
	"SELECT " COLUMN_LIST ", ctid FROM tool_claims.claim_records "
	"WHERE organization OPERATOR(pg_catalog.=) $1 AND effect_key IS NULL AND "
	"tool_claims.effect_key(effect_key, operation_id, organization, task_id, "
	"tool_call_id) OPERATOR(pg_catalog.=) $2",
	2, {TEXTOID, TEXTOID}
};

static SavedQuery proposal_there_query = {
	"SELECT 1 FROM tool_claims.proposal_records WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

#define OPERATION_CONDITION \
	"organization OPERATOR(pg_catalog.=) $1 AND " \
	"tool_server OPERATOR(pg_catalog.=) $2 AND " \
	"tool_name OPERATOR(pg_catalog.=) $3 AND " \
	"operation_id OPERATOR(pg_catalog.=) $4"

static SavedQuery operation_read_query = {
	"SELECT task_id, tool_call_id, ctid FROM tool_claims.operations WHERE "
	OPERATION_CONDITION,
	4, {TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery operation_insert_query = {
	"INSERT INTO tool_claims.operations (organization, tool_server, "
	"tool_name, operation_id, task_id, tool_call_id) "
	"VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery operation_move_query = {
	"UPDATE tool_claims.operations SET task_id = $5, tool_call_id = $6 WHERE "
	OPERATION_CONDITION,
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery operation_delete_query = {
	"DELETE FROM tool_claims.operations WHERE " OPERATION_CONDITION " AND "
	"task_id OPERATOR(pg_catalog.=) $5 AND "
	"tool_call_id OPERATOR(pg_catalog.=) $6",
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

/* ----- rows and structures ----- */

static Datum
text_datum(const char *string, bool *isnull)
{
	*isnull = string == NULL;
	return string != NULL ? CStringGetTextDatum(string) : (Datum) 0;
}

static Datum
time_datum(TimestampTz time, bool *isnull)
{
	*isnull = time == CLAIM_NO_TIME;
	return TimestampTzGetDatum(time);
}

static Datum
pointer_datum(const void *pointer, bool *isnull)
{
	*isnull = pointer == NULL;
	return PointerGetDatum(pointer);
}

static Datum
char_datum(char value, bool *isnull)
{
	*isnull = value == 0;
	return CharGetDatum(value);
}

/* the record as a row, with digests as the type itself has them */
static void
record_values(const ClaimRecord *r, Datum *values, bool *nulls)
{
#define SET(column, datum) (values[(column) - 1] = (datum))
#define SET_NULLABLE(column, make, value) \
	(values[(column) - 1] = make((value), &nulls[(column) - 1]))

	memset(nulls, false, RECORD_COLUMNS * sizeof(bool));
	SET(COL_ORGANIZATION, CStringGetTextDatum(r->key.organization));
	SET(COL_TASK_ID, CStringGetTextDatum(r->key.task_id));
	SET(COL_TOOL_CALL_ID, CStringGetTextDatum(r->key.tool_call_id));
	SET(COL_TOOL_SERVER, CStringGetTextDatum(r->tool_server));
	SET(COL_TOOL_NAME, CStringGetTextDatum(r->tool_name));
	SET(COL_INPUT_DIGEST, PointerGetDatum(&r->input_digest));
	SET(COL_STATE, CharGetDatum(r->state));
	SET_NULLABLE(COL_ENDED_BY, char_datum, r->ended_by);
	SET(COL_LEASED, BoolGetDatum(r->leased));
	SET(COL_REACQUIRE, BoolGetDatum(r->reacquire));
	SET(COL_ATTEMPT, Int32GetDatum(r->attempt));
	SET(COL_CLAIMED_AT, TimestampTzGetDatum(r->claimed_at));
	SET_NULLABLE(COL_DISPATCHED_AT, time_datum, r->dispatched_at);
	SET_NULLABLE(COL_LEASE_EXPIRES_AT, time_datum, r->lease_expires_at);
	SET_NULLABLE(COL_NOT_AFTER, time_datum, r->not_after);
	SET_NULLABLE(COL_FINISHED_AT, time_datum, r->finished_at);
	SET_NULLABLE(COL_OPEN_SINCE, time_datum, r->open_since);
	SET(COL_HELD_ROLE, CStringGetTextDatum(r->held_role));
	SET_NULLABLE(COL_HELD_SESSION, text_datum, r->held_session);
	SET_NULLABLE(COL_HELD_FROM, text_datum, r->held_from);
	SET_NULLABLE(COL_OPERATION_ID, text_datum, r->operation_id);
	SET_NULLABLE(COL_EFFECT_KEY, text_datum, r->effect_key);
	SET_NULLABLE(COL_REQUEST_ID, pointer_datum, r->request_id);
	SET_NULLABLE(COL_EXTERNAL_REF, text_datum, r->external_ref);
	SET_NULLABLE(COL_INPUT, pointer_datum, r->input);
	SET_NULLABLE(COL_RESULT, pointer_datum, r->result);
	SET_NULLABLE(COL_ERROR, pointer_datum, r->error);
	SET_NULLABLE(COL_RECONCILED, pointer_datum, r->reconciled);
	SET_NULLABLE(COL_REDACTED, pointer_datum, r->redacted);
	SET_NULLABLE(COL_EVIDENCE_HEAD, pointer_datum, r->evidence_head);
}

/* the same with types of the core, for statements */
static void
record_arguments(const ClaimRecord *r, Datum *values, char *null_flags)
{
	static const int digests[] = {
		COL_INPUT_DIGEST, COL_RECONCILED, COL_REDACTED, COL_EVIDENCE_HEAD
	};
	bool		nulls[RECORD_COLUMNS];

	record_values(r, values, nulls);
	for (int i = 0; i < lengthof(digests); i++)
		if (!nulls[digests[i] - 1])
			values[digests[i] - 1] =
				query_digest_argument(DatumGetSha256Digest(values[digests[i] - 1]));
	if (r->input != NULL)
		values[COL_INPUT - 1] =
			CStringGetTextDatum(canonical_json_to_cstring(r->input));
	for (int i = 0; i < RECORD_COLUMNS; i++)
		null_flags[i] = nulls[i] ? 'n' : ' ';
}

static const char *
get_text(const Datum *values, const bool *nulls, int column)
{
	return nulls[column - 1] ? NULL : TextDatumGetCString(values[column - 1]);
}

static TimestampTz
get_time(const Datum *values, const bool *nulls, int column)
{
	return nulls[column - 1] ? CLAIM_NO_TIME :
		DatumGetTimestampTz(values[column - 1]);
}

static const void *
get_fixed(const Datum *values, const bool *nulls, int column, Size size)
{
	void	   *copy;

	if (nulls[column - 1])
		return NULL;
	copy = palloc(size);
	memcpy(copy, DatumGetPointer(values[column - 1]), size);
	return copy;
}

static const void *
get_varlena(const Datum *values, const bool *nulls, int column)
{
	return nulls[column - 1] ? NULL :
		PG_DETOAST_DATUM_COPY(values[column - 1]);
}

/* a row as record, all copied to the current memory context */
static void
record_from_values(const Datum *values, const bool *nulls, ClaimRecord *r)
{
	memset(r, 0, sizeof(*r));
	r->key.organization = get_text(values, nulls, COL_ORGANIZATION);
	r->key.task_id = get_text(values, nulls, COL_TASK_ID);
	r->key.tool_call_id = get_text(values, nulls, COL_TOOL_CALL_ID);
	r->tool_server = get_text(values, nulls, COL_TOOL_SERVER);
	r->tool_name = get_text(values, nulls, COL_TOOL_NAME);
	memcpy(&r->input_digest, DatumGetPointer(values[COL_INPUT_DIGEST - 1]),
		   sizeof(Sha256Digest));
	r->state = DatumGetChar(values[COL_STATE - 1]);
	if (!nulls[COL_ENDED_BY - 1])
		r->ended_by = DatumGetChar(values[COL_ENDED_BY - 1]);
	r->leased = DatumGetBool(values[COL_LEASED - 1]);
	r->reacquire = DatumGetBool(values[COL_REACQUIRE - 1]);
	r->attempt = DatumGetInt32(values[COL_ATTEMPT - 1]);
	r->claimed_at = get_time(values, nulls, COL_CLAIMED_AT);
	r->dispatched_at = get_time(values, nulls, COL_DISPATCHED_AT);
	r->lease_expires_at = get_time(values, nulls, COL_LEASE_EXPIRES_AT);
	r->not_after = get_time(values, nulls, COL_NOT_AFTER);
	r->finished_at = get_time(values, nulls, COL_FINISHED_AT);
	r->open_since = get_time(values, nulls, COL_OPEN_SINCE);
	r->held_role = get_text(values, nulls, COL_HELD_ROLE);
	r->held_session = get_text(values, nulls, COL_HELD_SESSION);
	r->held_from = get_text(values, nulls, COL_HELD_FROM);
	r->operation_id = get_text(values, nulls, COL_OPERATION_ID);
	r->effect_key = get_text(values, nulls, COL_EFFECT_KEY);
	r->request_id = get_fixed(values, nulls, COL_REQUEST_ID, UUID_LEN);
	r->external_ref = get_text(values, nulls, COL_EXTERNAL_REF);
	r->input = get_varlena(values, nulls, COL_INPUT);
	r->result = get_varlena(values, nulls, COL_RESULT);
	r->error = get_varlena(values, nulls, COL_ERROR);
	r->reconciled = get_fixed(values, nulls, COL_RECONCILED, SHA256_BYTES);
	r->redacted = get_fixed(values, nulls, COL_REDACTED, SHA256_BYTES);
	r->evidence_head = get_fixed(values, nulls, COL_EVIDENCE_HEAD, SHA256_BYTES);
}

/* row i of the last statement, copied to the caller's context */
static void
record_from_result(const QueryScope *scope, uint64 i, ClaimRecord *record)
{
	Datum		values[RECORD_COLUMNS + 1];
	bool		nulls[RECORD_COLUMNS + 1];
	MemoryContext old;

	heap_deform_tuple(SPI_tuptable->vals[i], SPI_tuptable->tupdesc,
					  values, nulls);
	old = MemoryContextSwitchTo(scope->caller);
	record_from_values(values, nulls, record);
	MemoryContextSwitchTo(old);
}

/* ----- the direct way ----- */

/*
 * Reads a record by key with an MVCC snapshot.  tid is where the version
 * stands that the snapshot sees.
 */
static bool
read_record(Relation rel, const char *const *keys, Snapshot snapshot,
			ClaimRecord *record, ItemPointer tid)
{
	DirectScan		look;
	bool		found;

	snapshot = RegisterSnapshot(snapshot);
	PushActiveSnapshot(snapshot);
	found = direct_scan_begin(&look, rel, tc_primary_key_index(rel), 3, keys,
						   snapshot);
	if (found)
	{
		*tid = look.slot->tts_tid;
		slot_getallattrs(look.slot);
		if (record != NULL)
			record_from_values(look.slot->tts_values, look.slot->tts_isnull,
							   record);
	}
	direct_scan_end(&look);
	PopActiveSnapshot();
	UnregisterSnapshot(snapshot);
	return found;
}

/*
 * The record as it is, read through the access methods: what
 * query_read_current does for statements.
 */
static bool
read_current_record(Relation rel, const char *const *keys,
					ClaimRecord *record)
{
	ItemPointerData tid;
	ItemPointerData seen;
	bool		sees = false;
	bool		found;

	/* see what this transaction's statements have done */
	CommandCounterIncrement();
	if (IsolationUsesXactSnapshot())
		sees = read_record(rel, keys, GetTransactionSnapshot(), NULL, &seen);
	found = read_record(rel, keys, GetLatestSnapshot(), record, &tid);
	if (IsolationUsesXactSnapshot() &&
		(found != sees || (found && !ItemPointerEquals(&tid, &seen))))
		query_raise_serialization_failure();
	return found;
}

/* ----- records ----- */

/*
 * What is there under a key, without ever blocking.  With STORE_UNCOMMITTED
 * the record holds who has it, and nothing else.
 */
StoreLook
store_look(const ClaimKey *key, ClaimRecord *record)
{
	Relation	rel = table_open(query_table("claim_records"), AccessShareLock);
	const char *keys[3];
	Datum		dirty[RECORD_COLUMNS];
	bool		dirty_nulls[RECORD_COLUMNS];
	bool		open = false;
	bool		found = false;

	keys[0] = key->organization;
	keys[1] = key->task_id;
	keys[2] = key->tool_call_id;
	if (!direct_is_plain(rel, RECORD_COLUMNS))
	{
		QueryScope	scope;
		Datum		values[3];

		query_key_arguments(key, values);
		query_begin(&scope);
		found = query_read_current(&read_query, values);
		if (found)
			record_from_result(&scope, 0, record);
		query_end(&scope);
	}
	else if (direct_look(rel, 3, keys, dirty, dirty_nulls,
						&open) != STORE_ABSENT)
		found = read_current_record(rel, keys, record);
	table_close(rel, AccessShareLock);
	if (found)
		return STORE_FOUND;
	if (!open)
		return STORE_ABSENT;	/* never there, or deleted or rolled back since */
	memset(record, 0, sizeof(*record));
	record->held_role = get_text(dirty, dirty_nulls, COL_HELD_ROLE);
	record->held_session = get_text(dirty, dirty_nulls, COL_HELD_SESSION);
	record->held_from = get_text(dirty, dirty_nulls, COL_HELD_FROM);
	return STORE_UNCOMMITTED;
}

/* the record as an ordinary statement would see it; works on a standby */
bool
store_read(const ClaimKey *key, ClaimRecord *record)
{
	QueryScope	scope;
	Datum		values[3];
	bool		found;

	query_key_arguments(key, values);
	query_begin(&scope);
	found = query_run(&read_query, values, NULL, InvalidSnapshot) > 0;
	if (found)
		record_from_result(&scope, 0, record);
	query_end(&scope);
	return found;
}

/*
 * Locks the record until the transaction ends, and reads it as it then is.
 * With STORE_SKIP a row that somebody else has locked is STORE_BUSY.
 */
StoreLock
store_lock(const ClaimKey *key, StoreWait wait, ClaimRecord *record)
{
	QueryScope	scope;
	Datum		values[3];
	StoreLock	result = STORE_LOCKED;

	query_key_arguments(key, values);
	query_begin(&scope);
	if (query_run(wait == STORE_SKIP ? &lock_skip_query : &lock_wait_query,
				  values, NULL, InvalidSnapshot) > 0)
		record_from_result(&scope, 0, record);
	else if (query_read_current(&read_query, values))
		result = STORE_BUSY;
	else
		result = STORE_GONE;
	query_end(&scope);
	return result;
}

/* inserts a record; false where the key is there already */
bool
store_insert(const ClaimRecord *record)
{
	Relation	rel = table_open(query_table("claim_records"), RowExclusiveLock);
	bool		inserted;

	if (direct_is_plain(rel, RECORD_COLUMNS))
	{
		Datum		values[RECORD_COLUMNS];
		bool		nulls[RECORD_COLUMNS];

		record_values(record, values, nulls);
		inserted = direct_insert(rel, values, nulls);
	}
	else
	{
		Datum		values[RECORD_COLUMNS];
		char		nulls[RECORD_COLUMNS];
		QueryScope	scope;

		record_arguments(record, values, nulls);
		query_begin(&scope);
		query_run(&insert_query, values, nulls, InvalidSnapshot);
		inserted = SPI_processed > 0;
		query_end(&scope);
	}
	table_close(rel, NoLock);
	if (inserted && record->leased)
		at_commit_durable();
	return inserted;
}

/* replaces a record that is locked by this transaction */
void
store_update(const ClaimRecord *record)
{
	static const int columns[] = {
		COL_ORGANIZATION, COL_TASK_ID, COL_TOOL_CALL_ID, COL_STATE,
		COL_ENDED_BY, COL_LEASED, COL_REACQUIRE, COL_ATTEMPT, COL_CLAIMED_AT,
		COL_DISPATCHED_AT, COL_LEASE_EXPIRES_AT, COL_NOT_AFTER,
		COL_FINISHED_AT, COL_OPEN_SINCE, COL_HELD_ROLE, COL_HELD_SESSION,
		COL_HELD_FROM, COL_EFFECT_KEY, COL_REQUEST_ID, COL_EXTERNAL_REF,
		COL_RESULT, COL_ERROR, COL_RECONCILED, COL_REDACTED, COL_EVIDENCE_HEAD
	};
	Datum		all[RECORD_COLUMNS];
	char		all_nulls[RECORD_COLUMNS];
	Datum		values[lengthof(columns)];
	char		nulls[lengthof(columns)];
	QueryScope	scope;

	record_arguments(record, all, all_nulls);
	for (int i = 0; i < lengthof(columns); i++)
	{
		values[i] = all[columns[i] - 1];
		nulls[i] = all_nulls[columns[i] - 1];
	}
	query_begin(&scope);
	if (query_run(&update_query, values, nulls, InvalidSnapshot) != 1)
		elog(ERROR, "a locked claim record is gone");
	query_end(&scope);
	if (record->leased)
		at_commit_durable();
}

/* an update that takes the stored input away as well */
void
store_redact(const ClaimRecord *record)
{
	QueryScope	scope;
	Datum		values[3];

	store_update(record);
	query_key_arguments(&record->key, values);
	query_begin(&scope);
	query_run(&redact_input_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
}

void
store_delete(const ClaimKey *key)
{
	QueryScope	scope;
	Datum		values[3];

	query_key_arguments(key, values);
	query_begin(&scope);
	query_run(&delete_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
}

static List *
find(SavedQuery *query, const char *organization, const char *effect_key)
{
	QueryScope	scope;
	Datum		values[2];
	List	   *records = NIL;
	uint64		rows;

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(effect_key);
	if (query == &find_derived_query)
		query_begin_scan(&scope);
	else
		query_begin(&scope);
	rows = query_run(query, values, NULL, InvalidSnapshot);
	for (uint64 i = 0; i < rows; i++)
	{
		MemoryContext old = MemoryContextSwitchTo(scope.caller);
		ClaimRecord *record = palloc(sizeof(ClaimRecord));

		records = lappend(records, record);
		MemoryContextSwitchTo(old);
		record_from_result(&scope, i, record);
	}
	query_end(&scope);
	return records;
}

/* all records that hand this key to the destination */
List *
store_find_by_effect_key(const char *organization, const char *effect_key)
{
	List	   *records = find(&find_query, organization, effect_key);

	if (records == NIL && strncmp(effect_key, "tc1-", 4) == 0)
		records = find(&find_derived_query, organization, effect_key);
	return records;
}

/* ----- operations ----- */

static void
operation_arguments(const ClaimRecord *record, Datum *values)
{
	values[0] = CStringGetTextDatum(record->key.organization);
	values[1] = CStringGetTextDatum(record->tool_server);
	values[2] = CStringGetTextDatum(record->tool_name);
	values[3] = CStringGetTextDatum(record->operation_id);
	values[4] = CStringGetTextDatum(record->key.task_id);
	values[5] = CStringGetTextDatum(record->key.tool_call_id);
}

/*
 * To which pair the operation of the record belongs.  Only the tool and the
 * operation of record are looked at.
 */
StoreLook
store_operation_look(const ClaimRecord *record, ClaimKey *owner)
{
	Relation	rel = table_open(query_table("operations"), AccessShareLock);
	const char *keys[4];
	bool		plain = direct_is_local(rel);
	bool		there = false;
	bool		open = false;
	bool		found;
	QueryScope	scope;
	Datum		values[OPERATION_COLUMNS];

	keys[0] = record->key.organization;
	keys[1] = record->tool_server;
	keys[2] = record->tool_name;
	keys[3] = record->operation_id;
	if (plain)
		there = direct_look(rel, 4, keys, NULL, NULL, &open) != STORE_ABSENT;
	table_close(rel, AccessShareLock);
	if (plain && !there)
		return STORE_ABSENT;

	operation_arguments(record, values);
	query_begin(&scope);
	found = query_read_current(&operation_read_query, values);
	if (found)
	{
		MemoryContext old = MemoryContextSwitchTo(scope.caller);
		bool		isnull;

		owner->organization = record->key.organization;
		owner->task_id = TextDatumGetCString(SPI_getbinval(SPI_tuptable->vals[0],
														   SPI_tuptable->tupdesc,
														   1, &isnull));
		owner->tool_call_id = TextDatumGetCString(SPI_getbinval(SPI_tuptable->vals[0],
																SPI_tuptable->tupdesc,
																2, &isnull));
		MemoryContextSwitchTo(old);
	}
	query_end(&scope);
	if (found)
		return STORE_FOUND;
	return open ? STORE_UNCOMMITTED : STORE_ABSENT;
}

/* makes the record's pair the owner of its operation, if it is a new one */
bool
store_operation_insert(const ClaimRecord *record)
{
	Relation	rel = table_open(query_table("operations"), RowExclusiveLock);
	Datum		values[OPERATION_COLUMNS];
	bool		nulls[OPERATION_COLUMNS] = {false};
	bool		inserted;

	operation_arguments(record, values);
	if (direct_is_plain(rel, OPERATION_COLUMNS))
		inserted = direct_insert(rel, values, nulls);
	else
	{
		QueryScope	scope;

		query_begin(&scope);
		query_run(&operation_insert_query, values, NULL, InvalidSnapshot);
		inserted = SPI_processed > 0;
		query_end(&scope);
	}
	table_close(rel, NoLock);
	return inserted;
}

static void
run_on_operation(SavedQuery *query, const ClaimRecord *record)
{
	QueryScope	scope;
	Datum		values[OPERATION_COLUMNS];

	operation_arguments(record, values);
	query_begin(&scope);
	query_run(query, values, NULL, InvalidSnapshot);
	query_end(&scope);
}

/* hands an operation over to the record's pair; its owner's row is locked */
void
store_operation_move(const ClaimRecord *record)
{
	run_on_operation(&operation_move_query, record);
}

/* forgets the operation, where it still is the record's */
void
store_operation_delete(const ClaimRecord *record)
{
	run_on_operation(&operation_delete_query, record);
}

/* ----- keys of other tables ----- */

/*
 * Has anybody, in whatever transaction, a proposal for the pair?  May only
 * miss one whose transaction begins to insert it after this look.
 */
StoreLook
store_proposal_look(const ClaimKey *key)
{
	Relation	rel = table_open(query_table("proposal_records"), AccessShareLock);
	const char *keys[3];
	StoreLook	look = STORE_ABSENT;
	bool		changing;

	keys[0] = key->organization;
	keys[1] = key->task_id;
	keys[2] = key->tool_call_id;
	if (direct_is_local(rel))
	{
		/* most installations have none at all */
		if (RelationGetNumberOfBlocks(rel) > 0)
			look = direct_look(rel, 3, keys, NULL, NULL, &changing);
	}
	else
	{
		QueryScope	scope;
		Datum		values[3];

		query_key_arguments(key, values);
		query_begin(&scope);
		if (query_run(&proposal_there_query, values, NULL,
					  GetLatestSnapshot()) > 0)
			look = STORE_FOUND;
		query_end(&scope);
	}
	table_close(rel, AccessShareLock);
	return look;
}
