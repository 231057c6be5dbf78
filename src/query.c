/*
 * query.c
 *
 * The one door through which statements reach the extension's tables.
 *
 * Between query_begin() and query_end() the current role is the owner of the
 * tables, as in a referential-integrity trigger, and the search_path is pinned
 * with pg_temp last: a saved plan is parsed again under the path of the
 * moment, so qualified names alone would not do.  An error in between needs no
 * care: the abort of the (sub)transaction restores role, path and SPI.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "query.h"

/* the OID of one of the extension's tables */
Oid
query_table(const char *name)
{
	Oid			schema = get_namespace_oid("tool_claims", false);
	Oid			table = get_relname_relid(name, schema);

	if (!OidIsValid(table))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation \"tool_claims.%s\" does not exist", name),
				 errhint("Create the extension tool_claims anew, or update it.")));
	return table;
}

static Oid
tables_owner(void)
{
	HeapTuple	tuple;
	Oid			owner;

	tuple = SearchSysCache1(RELOID,
							ObjectIdGetDatum(query_table("claim_records")));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for tool_claims.claim_records");
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

static void
set_here(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

static void
begin(QueryScope *scope)
{
	Oid			owner = tables_owner();

	scope->caller = CurrentMemoryContext;
	GetUserIdAndSecContext(&scope->role, &scope->security_context);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	SetUserIdAndSecContext(owner, scope->security_context |
						   SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_NOFORCE_RLS);
	scope->guc_level = NewGUCNestLevel();
	set_here("search_path", "pg_catalog, pg_temp");
}

/*
 * For statements that find their rows by key.  A plan that was made and saved
 * while the table was small must not read all of it when it has grown.
 */
void
query_begin(QueryScope *scope)
{
	begin(scope);
	set_here("enable_seqscan", "off");
}

/*
 * For statements that look through a table.  Where a table can only be read
 * as a whole, a plan without sequential scans seems so expensive that it would
 * be compiled, for longer than it runs.
 */
void
query_begin_scan(QueryScope *scope)
{
	begin(scope);
	set_here("jit", "off");
}

void
query_end(QueryScope *scope)
{
	AtEOXact_GUC(true, scope->guc_level);
	SetUserIdAndSecContext(scope->role, scope->security_context);
	if (SPI_finish() != SPI_OK_FINISH)
		elog(ERROR, "SPI_finish failed");
}

/*
 * Runs a saved statement and returns the number of rows.  snapshot is
 * InvalidSnapshot for what an ordinary statement of the session would see:
 * all that is committed under READ COMMITTED, the transaction's snapshot under
 * the higher levels, and this transaction's own changes.
 */
uint64
query_run(SavedQuery *query, Datum *values, const char *nulls, Snapshot snapshot)
{
	int			result;

	if (query->plan == NULL)
	{
		SPIPlanPtr	plan = SPI_prepare(query->sql, query->nargs, query->types);

		if (plan == NULL)
			elog(ERROR, "SPI_prepare failed: %s",
				 SPI_result_code_string(SPI_result));
		if (SPI_keepplan(plan) != 0)
			elog(ERROR, "SPI_keepplan failed");
		query->plan = plan;
	}
	result = SPI_execute_snapshot(query->plan, values, nulls, snapshot,
								  InvalidSnapshot, false, true, 0);
	if (result < 0)
		elog(ERROR, "SPI_execute_snapshot failed: %s",
			 SPI_result_code_string(result));
	return SPI_processed;
}

/* the first three arguments of a statement on one key */
void
query_key_arguments(const ClaimKey *key, Datum *values)
{
	values[0] = CStringGetTextDatum(key->organization);
	values[1] = CStringGetTextDatum(key->task_id);
	values[2] = CStringGetTextDatum(key->tool_call_id);
}

/* the keys that the last statement found, as its first three columns */
ClaimKey *
query_keys(QueryScope *scope, uint64 count)
{
	MemoryContext old = MemoryContextSwitchTo(scope->caller);
	ClaimKey   *keys = palloc_extended((count + 1) * sizeof(ClaimKey),
									   MCXT_ALLOC_HUGE);

	for (uint64 i = 0; i < count; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	descriptor = SPI_tuptable->tupdesc;

		keys[i].organization = SPI_getvalue(tuple, descriptor, 1);
		keys[i].task_id = SPI_getvalue(tuple, descriptor, 2);
		keys[i].tool_call_id = SPI_getvalue(tuple, descriptor, 3);
	}
	MemoryContextSwitchTo(old);
	return keys;
}

/* a digest as argument of a statement */
Datum
query_digest_argument(const Sha256Digest *digest)
{
	bytea	   *bytes = palloc(VARHDRSZ + SHA256_BYTES);

	SET_VARSIZE(bytes, VARHDRSZ + SHA256_BYTES);
	memcpy(VARDATA(bytes), digest, SHA256_BYTES);
	return PointerGetDatum(bytes);
}

/* under the higher levels: what is current is not what the snapshot sees */
void
query_raise_serialization_failure(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("could not serialize access due to concurrent update"),
			 errhint("Roll back and repeat the whole transaction.")));
}

/* the last column of the first row of the last statement, a ctid */
static ItemPointer
last_ctid(void)
{
	TupleDesc	descriptor = SPI_tuptable->tupdesc;
	bool		isnull;

	return (ItemPointer) DatumGetPointer(SPI_getbinval(SPI_tuptable->vals[0],
													   descriptor,
													   descriptor->natts,
													   &isnull));
}

/*
 * Runs a statement that reads one row by key, its last column the ctid, with
 * the latest snapshot.  Under the higher isolation levels what is current
 * must be what the transaction's snapshot sees, or it is 40001.
 */
bool
query_read_current(SavedQuery *query, Datum *values)
{
	ItemPointerData seen;
	ItemPointerData current;
	bool		sees = false;
	bool		found;

	if (IsolationUsesXactSnapshot())
	{
		sees = query_run(query, values, NULL, InvalidSnapshot) > 0;
		if (sees)
			seen = *last_ctid();
	}
	found = query_run(query, values, NULL, GetLatestSnapshot()) > 0;
	if (found)
		current = *last_ctid();
	if (IsolationUsesXactSnapshot() &&
		(found != sees || (found && !ItemPointerEquals(&seen, &current))))
		query_raise_serialization_failure();
	return found;
}

/* returns the rows of a statement as the set that the SQL function returns */
void
query_return_set(FunctionCallInfo fcinfo, SavedQuery *query, Datum *values,
				 const char *nulls, QueryKind kind)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	QueryScope	scope;
	uint64		rows;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (kind == QUERY_SCAN)
		query_begin_scan(&scope);
	else
		query_begin(&scope);
	rows = query_run(query, values, nulls, InvalidSnapshot);
	for (uint64 i = 0; i < rows; i++)
		tuplestore_puttuple(set->setResult, SPI_tuptable->vals[i]);
	query_end(&scope);
}
