/*
 * retention.c
 *
 * What becomes of records in the long run: sweep writes down what has expired,
 * prune takes away what is over, redact what must not be kept.
 *
 * Rows that somebody holds are skipped, and so are keys whose evidence an open
 * transaction is just continuing.  A proposal is locked before its claim, as
 * everywhere.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "clock.h"
#include "errors.h"
#include "event_log.h"
#include "policy.h"
#include "proposal_flow.h"
#include "proposal_store.h"
#include "query.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_sweep);
PG_FUNCTION_INFO_V1(tc_prune);
PG_FUNCTION_INFO_V1(tc_redact);
PG_FUNCTION_INFO_V1(tc_retention_cutoff);

/*
 * tool_claims.retention_cutoff(organization text, tool_server text,
 *								tool_name text) returns timestamptz
 *
 * Records of the tool that ended before this may be pruned; NULL: none.
 */
Datum
tc_retention_cutoff(PG_FUNCTION_ARGS)
{
	ClaimPolicy policy;
	int64		retention;
	TimestampTz now = clock_now();

	policy_of(text_to_cstring(PG_GETARG_TEXT_PP(0)),
			  text_to_cstring(PG_GETARG_TEXT_PP(1)),
			  text_to_cstring(PG_GETARG_TEXT_PP(2)), &policy);
	if (policy.retention == NULL)
		PG_RETURN_NULL();
	retention = clock_interval_us(policy.retention);
	if (retention > now - MIN_TIMESTAMP)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(now - retention);
}

#define IN_ORGANIZATION \
	"($1 OPERATOR(pg_catalog.=) '*' OR " \
	"r.organization OPERATOR(pg_catalog.=) $1) "

static SavedQuery expired_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND r.open_since IS NOT NULL AND "
	"r.state OPERATOR(pg_catalog.=) 'c'::pg_catalog.\"char\" AND "
	"r.lease_expires_at OPERATOR(pg_catalog.<=) $2 "
	"ORDER BY r.open_since LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

#define FINAL_STATES \
	"(r.state OPERATOR(pg_catalog.=) ANY ('{d,f,r}'::pg_catalog.\"char\"[]) " \
	"OR ($4 AND r.state OPERATOR(pg_catalog.=) 't'::pg_catalog.\"char\")) "

static SavedQuery old_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND " FINAL_STATES " AND "
	"r.finished_at OPERATOR(pg_catalog.<) $2 "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

static SavedQuery retention_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND " FINAL_STATES " AND "
	"r.finished_at OPERATOR(pg_catalog.<) tool_claims.retention_cutoff("
	"r.organization, r.tool_server, r.tool_name) "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

/* the keys that a query finds and locks */
static ClaimKey *
find_keys(SavedQuery *query, Datum *values, uint64 *count)
{
	QueryScope	scope;
	ClaimKey   *keys;

	query_begin_scan(&scope);
	*count = query_run(query, values, NULL, InvalidSnapshot);
	keys = query_keys(&scope, *count);
	query_end(&scope);
	return keys;
}

static int32
max_rows_argument(FunctionCallInfo fcinfo, int n)
{
	require_argument(fcinfo, n, "max_rows");
	if (PG_GETARG_INT32(n) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"max_rows\" must not be negative")));
	return PG_GETARG_INT32(n);
}

/*
 * Shows in pg_stat_activity how far a verb is that goes through many rows.
 */
static void
show_progress(const char *verb, uint64 done, uint64 count)
{
	if (done % 100 == 0)
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("tool_claims.%s(): %llu of %llu rows",
										verb, (unsigned long long) done,
										(unsigned long long) count));
}

static void
end_progress(void)
{
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
}

static SavedQuery expired_proposals_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.proposal_records r "
	"WHERE " IN_ORGANIZATION " AND "
	"r.state OPERATOR(pg_catalog.=) ANY ('{p,a}'::pg_catalog.\"char\"[]) AND "
	"r.expires_at OPERATOR(pg_catalog.<=) $2 "
	"ORDER BY r.expires_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

/* writes down which proposals have expired; arguments as for claims */
static int32
sweep_proposals(Datum *values)
{
	uint64		count;
	ClaimKey   *keys = find_keys(&expired_proposals_query, values, &count);
	int32		done = 0;

	for (uint64 i = 0; i < count; i++)
	{
		ProposalRecord record;

		CHECK_FOR_INTERRUPTS();
		if (proposal_lock(&keys[i], STORE_SKIP, &record) != STORE_LOCKED)
			continue;
		proposal_write_expiry(&record, clock_now());
		done++;
	}
	return done;
}

/*
 * tool_claims.sweep(max_rows integer) returns integer
 *
 * Writes down which attempts have ended by expiry, at most max_rows; returns
 * how many.  Rows that somebody holds are skipped.
 */
Datum
tc_sweep(PG_FUNCTION_ARGS)
{
	MemoryContext row_context;
	MemoryContext old;
	Datum		values[3];
	ClaimKey   *keys;
	uint64		count;
	int32		done = 0;

	verb_enter("tool_claims.sweep()");
	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(clock_now());
	values[2] = Int32GetDatum(max_rows_argument(fcinfo, 0));
	keys = find_keys(&expired_query, values, &count);

	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"tool_claims sweep",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (uint64 i = 0; i < count; i++)
	{
		ClaimRecord stored;
		ClaimRecord now;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_context);
		show_progress("sweep", i, count);
		if (store_lock(&keys[i], STORE_SKIP, &stored) == STORE_LOCKED &&
			claim_as_of(&stored, clock_now(), &now))
		{
			claim_write_expiry(&stored, &now);
			done++;
		}
	}
	MemoryContextSwitchTo(old);
	end_progress();
	values[2] = Int32GetDatum(PG_GETARG_INT32(0) - done);
	PG_RETURN_INT32(done + sweep_proposals(values));
}

/* what is left of a pruned record: its key, its identity, and one event */
static void
retire(const ClaimRecord *stored)
{
	ClaimRecord next = *stored;
	StringInfoData detail;
	EventRow	row;

	detail_begin(&detail);
	detail_text(&detail, "state", claim_state_name(stored->state));
	event_log_prepare(&row, &stored->key, EVENT_PRUNED, 0, NULL,
					  detail_end(&detail), NULL);
	event_log_write(&row);
	event_log_delete(&stored->key, &row);

	next.state = CLAIM_RETIRED;
	next.finished_at = clock_now();
	next.open_since = CLAIM_NO_TIME;
	next.held_session = NULL;
	next.held_from = NULL;
	next.request_id = NULL;
	next.external_ref = NULL;
	next.result = NULL;
	next.error = NULL;
	next.reconciled = NULL;
	next.redacted = NULL;
	next.evidence_head = &row.hash;
	store_redact(&next);
	proposal_delete(&stored->key);
}

static void
forget(const ClaimRecord *stored)
{
	event_log_delete(&stored->key, NULL);
	if (stored->operation_id != NULL)
		store_operation_delete(stored);
	store_delete(&stored->key);
	proposal_delete(&stored->key);
	if (stored->leased)
		at_commit_durable();
}

#define PRUNABLE_PROPOSALS \
	"SELECT r.organization, r.task_id, r.tool_call_id " \
	"FROM tool_claims.proposal_records r " \
	"WHERE " IN_ORGANIZATION " AND " \
	"r.state OPERATOR(pg_catalog.=) ANY ('{r,w,v,s,x}'::pg_catalog.\"char\"[]) " \
	"AND ($4 OR NOT r.pruned) AND NOT EXISTS (SELECT 1 " \
	"FROM tool_claims.claim_records c " \
	"WHERE c.organization OPERATOR(pg_catalog.=) r.organization AND " \
	"c.task_id OPERATOR(pg_catalog.=) r.task_id AND " \
	"c.tool_call_id OPERATOR(pg_catalog.=) r.tool_call_id) AND "

static SavedQuery old_proposals_query = {
	PRUNABLE_PROPOSALS "r.ended_at OPERATOR(pg_catalog.<) $2 "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

static SavedQuery retained_proposals_query = {
	PRUNABLE_PROPOSALS "r.ended_at OPERATOR(pg_catalog.<) "
	"tool_claims.retention_cutoff(r.organization, r.tool_server, r.tool_name) "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

/* gates have no tool: their retention is the caller's alone */
static SavedQuery old_gates_query = {
	"DELETE FROM tool_claims.result_gates g USING ("
	"SELECT r.organization, r.task_id FROM tool_claims.result_gates r "
	"WHERE " IN_ORGANIZATION " AND "
	"CASE WHEN r.decided_at IS NOT NULL THEN r.decided_at ELSE r.deadline END "
	"OPERATOR(pg_catalog.<) $2 LIMIT $3 FOR UPDATE SKIP LOCKED) o "
	"WHERE g.organization OPERATOR(pg_catalog.=) o.organization AND "
	"g.task_id OPERATOR(pg_catalog.=) o.task_id",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

/*
 * Ended proposals that never became a claim.  A tombstone keeps the pair, its
 * binding and how it ended.
 */
static int32
prune_proposals(SavedQuery *query, Datum *values, bool tombstones)
{
	uint64		count;
	ClaimKey   *keys = find_keys(query, values, &count);
	int32		done = 0;

	for (uint64 i = 0; i < count; i++)
	{
		ProposalRecord record;
		StringInfoData detail;
		EventRow	row;

		CHECK_FOR_INTERRUPTS();
		if (proposal_lock(&keys[i], STORE_SKIP, &record) != STORE_LOCKED ||
			event_log_in_flight(&keys[i]))
			continue;
		if (tombstones)
		{
			detail_begin(&detail);
			detail_text(&detail, "state", proposal_state_name(record.state));
			event_log_prepare(&row, &keys[i], EVENT_PRUNED, 0, NULL,
							  detail_end(&detail), NULL);
			event_log_write(&row);
			event_log_delete(&keys[i], &row);
			record.evidence_head = &row.hash;
			proposal_retire(&record);
		}
		else
		{
			event_log_delete(&keys[i], NULL);
			proposal_delete(&keys[i]);
		}
		done++;
	}
	return done;
}

static int32
prune_gates(TimestampTz cutoff, int32 max_rows)
{
	QueryScope	scope;
	Datum		values[3];
	uint64		rows;

	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(cutoff);
	values[2] = Int32GetDatum(max_rows);
	query_begin_scan(&scope);
	rows = query_run(&old_gates_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	return (int32) rows;
}

/* before which time records have ended that are older than an interval */
static TimestampTz
cutoff_argument(FunctionCallInfo fcinfo, int n)
{
	int64		age = clock_interval_us(PG_GETARG_INTERVAL_P(n));
	TimestampTz now = clock_now();

	if (age < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"older_than\" must not be negative")));
	return age > now - MIN_TIMESTAMP ? MIN_TIMESTAMP : now - age;
}

/*
 * tool_claims.prune(older_than interval, max_rows integer,
 *					 tombstones boolean) returns integer
 *
 * Takes away what final records hold, or the records themselves; returns how
 * many.  Rows that somebody holds are skipped.
 */
Datum
tc_prune(PG_FUNCTION_ARGS)
{
	bool		by_age = !PG_ARGISNULL(0);
	MemoryContext row_context;
	MemoryContext old;
	TimestampTz cutoff = CLAIM_NO_TIME;
	int32		max_rows;
	bool		tombstones;
	Datum		values[4];
	ClaimKey   *keys;
	uint64		count;
	int32		done = 0;

	verb_enter("tool_claims.prune()");
	if (by_age)
		cutoff = cutoff_argument(fcinfo, 0);
	max_rows = max_rows_argument(fcinfo, 1);
	require_argument(fcinfo, 2, "tombstones");
	tombstones = PG_GETARG_BOOL(2);
	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(cutoff);
	values[2] = Int32GetDatum(max_rows);
	values[3] = BoolGetDatum(!tombstones);
	keys = find_keys(by_age ? &old_query : &retention_query, values, &count);

	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"tool_claims prune",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (uint64 i = 0; i < count; i++)
	{
		ClaimRecord stored;
		ProposalRecord proposal;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_context);
		show_progress("prune", i, count);
		if (proposal_lock(&keys[i], STORE_SKIP, &proposal) == STORE_BUSY ||
			store_lock(&keys[i], STORE_SKIP, &stored) != STORE_LOCKED ||
			event_log_in_flight(&keys[i]))
			continue;
		if (tombstones)
			retire(&stored);
		else
			forget(&stored);
		done++;
	}
	MemoryContextSwitchTo(old);
	end_progress();

	if (done < max_rows)
	{
		values[2] = Int32GetDatum(max_rows - done);
		done += prune_proposals(by_age ? &old_proposals_query :
								&retained_proposals_query, values, tombstones);
	}
	if (by_age && done < max_rows)
		done += prune_gates(cutoff, max_rows - done);

	/* calls that were only ever refused have evidence and no record */
	if (by_age && !tombstones && done < max_rows)
		done += event_log_delete_orphans(settings_organization(), cutoff,
										 max_rows - done);
	PG_RETURN_INT32(done);
}

/* takes the details of a chain away, and says so in it: the new head */
static void
redact_events(const ClaimKey *key, const char *reason,
			  const Sha256Digest **head)
{
	StringInfoData detail;
	EventRow   *row = palloc(sizeof(EventRow));

	event_log_redact(key);
	detail_begin(&detail);
	detail_text(&detail, "reason", reason);
	event_log_prepare(row, key, EVENT_REDACTED, 0, NULL, detail_end(&detail),
					  NULL);
	event_log_write(row);
	*head = &row->hash;
}

/* the proposal that led to a redacted claim, if there is one */
static void
redact_proposal(const ClaimKey *key, const Sha256Digest *head)
{
	ProposalRecord record;

	if (proposal_lock(key, STORE_WAIT, &record) != STORE_LOCKED)
		return;
	record.evidence_head = head;
	proposal_redact(&record);
}

/* redacts a proposal that never became a claim */
static void
redact_ended_proposal(const ClaimKey *key, const char *reason)
{
	ProposalRecord stored;
	ProposalRecord now;

	if (proposal_lock(key, STORE_WAIT, &stored) != STORE_LOCKED)
		ereport(ERROR,
				(errcode(ERRCODE_TC_NO_SUCH_RECORD),
				 errmsg("claim (\"%s\", \"%s\") does not exist",
						key->task_id, key->tool_call_id),
				 errdetail("There is no record in organization \"%s\".",
						   key->organization)));
	if (proposal_as_of(&stored, clock_now(), &now))
	{
		proposal_write_expiry(&stored, clock_now());
		(void) proposal_lock(key, STORE_WAIT, &now);
	}
	if (now.state == PROPOSAL_PENDING || now.state == PROPOSAL_APPROVED)
		ereport(ERROR,
				(errcode(ERRCODE_TC_WRONG_STATE),
				 errmsg("cannot redact proposal (\"%s\", \"%s\") in state %s",
						key->task_id, key->tool_call_id,
						proposal_state_name(now.state)),
				 errhint("Withdraw, reject or revoke it first.")));
	redact_events(key, reason, &now.evidence_head);
	proposal_redact(&now);
}

/*
 * tool_claims.redact(task_id text, tool_call_id text, reason text)
 *		returns void
 *
 * Takes input, result, error, external reference and the details of the
 * events away.  Digests stay.
 */
Datum
tc_redact(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	ProposalRecord proposal;
	ClaimRecord stored;
	ClaimRecord next;
	const text *answer;
	Sha256Digest digest;
	StoreLock	lock;

	verb_enter("tool_claims.redact()");
	key = argument_key(fcinfo);
	require_argument(fcinfo, 2, "reason");
	/* the proposal first, as everybody locks the two */
	(void) proposal_lock(&key, STORE_WAIT, &proposal);
	do
	{
		CHECK_FOR_INTERRUPTS();
		lock = store_lock(&key, STORE_WAIT, &stored);
	} while (lock == STORE_BUSY);
	if (lock == STORE_GONE)
	{
		redact_ended_proposal(&key, argument_text(fcinfo, 2));
		PG_RETURN_VOID();
	}
	if (claim_as_of(&stored, clock_now(), &next))
	{
		/* what has ended by expiry is written down first */
		claim_write_expiry(&stored, &next);
		(void) store_lock(&key, STORE_WAIT, &stored);
	}
	if (stored.state == CLAIM_CLAIMED || stored.state == CLAIM_UNCERTAIN)
		ereport(ERROR,
				(errcode(ERRCODE_TC_WRONG_STATE),
				 errmsg("cannot redact claim (\"%s\", \"%s\") in state %s",
						key.task_id, key.tool_call_id,
						claim_state_name(stored.state)),
				 errhint("What is not final may still need it: end or reconcile the claim first.")));

	next = stored;
	redact_events(&key, argument_text(fcinfo, 2), &next.evidence_head);
	if (next.redacted == NULL)
	{
		answer = stored.state == CLAIM_FAILED ? stored.error : stored.result;
		sha256_compute(answer ? VARDATA_ANY(answer) : "",
					   answer ? VARSIZE_ANY_EXHDR(answer) : 0, &digest);
		next.redacted = &digest;
	}
	next.result = NULL;
	next.error = NULL;
	next.external_ref = NULL;
	store_redact(&next);
	redact_proposal(&key, next.evidence_head);
	PG_RETURN_VOID();
}
