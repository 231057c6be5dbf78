/*
 * evidence.c
 *
 * Looking at the evidence: listing the events of a key, exporting the heads,
 * and verifying a chain.
 *
 * A chain holds if every event agrees with its hash and its detail, if all of
 * them hang together, if at most one branch of a fork changes the record, and
 * if claim and proposal name an event that is there and hold the answer that
 * the last event says.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

#include "arguments.h"
#include "compare.h"
#include "compat.h"
#include "event_log.h"
#include "query.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_evidence);
PG_FUNCTION_INFO_V1(tc_evidence_heads);
PG_FUNCTION_INFO_V1(tc_verify_evidence);

#define KEY_CONDITION \
	"e.organization OPERATOR(pg_catalog.=) $1 AND " \
	"e.task_id OPERATOR(pg_catalog.=) $2 AND " \
	"e.tool_call_id OPERATOR(pg_catalog.=) $3"

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
		event_json_digest(row->detail, &digest);
		if (!same_digest(&digest, &row->detail_digest))
			return broken(verdict, row->seq, "detail does not match its digest");
		return true;
	}
	for (uint64 i = 0; i < chain->count; i++)
		if (strcmp(chain->rows[i].kind, "redacted") == 0 &&
			(chain->rows[i].seq > row->seq || !event_kind_changes(row->kind)))
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
			(root < 0 || !event_kind_changes(row->kind)))
		{
			/* a first event; others may be first beside it */
			continue;
		}
		/* written while the chain that it continued was pruned */
		if (root >= 0 && !event_kind_changes(row->kind) &&
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
		if (!event_kind_changes(row->kind) && changing[i] < 0)
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
