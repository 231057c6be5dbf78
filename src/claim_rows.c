/*
 * claim_rows.c
 *
 * Builds the rows that the claim verbs return.  Which columns an outcome
 * fills stands here and nowhere else.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_enum.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "claim_rows.h"
#include "clock.h"
#include "compat.h"

#define LONGEST_RETRY	(5 * USECS_PER_SEC)
#define RETRY_OF_OPEN_TRANSACTION	USECS_PER_SEC

enum
{
	RESULT_OUTCOME,
	RESULT_REASON,
	RESULT_TASK_ID,
	RESULT_TOOL_CALL_ID,
	RESULT_ATTEMPT,
	RESULT_EFFECT_KEY,
	RESULT_RESULT,
	RESULT_ERROR,
	RESULT_INPUT,
	RESULT_HELD_BY,
	RESULT_RETRY_AFTER,
	RESULT_LEASE_EXPIRES_AT,
	RESULT_CLAIMED_AT,
	RESULT_FINISHED_AT,
	RESULT_COLUMNS
};

const char *const claim_outcome_names[] = {
	[OUTCOME_ACQUIRED] = "acquired",
	[OUTCOME_COMPLETED] = "completed",
	[OUTCOME_FAILED] = "failed",
	[OUTCOME_RELEASED] = "released",
	[OUTCOME_IN_PROGRESS] = "in_progress",
	[OUTCOME_UNCERTAIN] = "uncertain",
	[OUTCOME_CONFLICT] = "conflict",
	[OUTCOME_REFUSED] = "refused"
};

/* a label of an enum type, found by name: OIDs change with every install */
Datum
enum_datum(Oid type, const char *label)
{
	HeapTuple	tuple = SearchSysCache2(ENUMTYPOIDNAME,
										ObjectIdGetDatum(type),
										CStringGetDatum(label));
	Oid			value;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "enum type %u has no label \"%s\"", type, label);
	value = ((Form_pg_enum) GETSTRUCT(tuple))->oid;
	ReleaseSysCache(tuple);
	return ObjectIdGetDatum(value);
}

/* the row type of the calling function, looked up once for each call site */
TupleDesc
row_descriptor(FunctionCallInfo fcinfo)
{
	if (fcinfo->flinfo->fn_extra == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(fcinfo->flinfo->fn_mcxt);
		TupleDesc	descriptor;

		if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
			elog(ERROR, "return type must be a row type");
		fcinfo->flinfo->fn_extra = BlessTupleDesc(descriptor);
		MemoryContextSwitchTo(old);
	}
	return fcinfo->flinfo->fn_extra;
}

void
row_put_text(Datum *values, bool *nulls, int column, const char *value)
{
	nulls[column] = value == NULL;
	if (value != NULL)
		values[column] = CStringGetTextDatum(value);
}

void
row_put_pointer(Datum *values, bool *nulls, int column, const void *value)
{
	nulls[column] = value == NULL;
	values[column] = PointerGetDatum(value);
}

void
row_put_time(Datum *values, bool *nulls, int column, TimestampTz value)
{
	nulls[column] = value == CLAIM_NO_TIME;
	values[column] = TimestampTzGetDatum(value);
}

/* who holds a record, for people to read */
static const char *
held_by(const ClaimRecord *record)
{
	StringInfoData text;

	if (record->held_role == NULL)
		return "an open transaction";
	initStringInfo(&text);
	appendStringInfoString(&text, record->held_role);
	if (record->held_session != NULL)
		appendStringInfo(&text, ", session user %s", record->held_session);
	if (record->held_from != NULL)
		appendStringInfo(&text, " (%s)", record->held_from);
	return text.data;
}

static Datum
retry_after(const ClaimStep *step)
{
	Interval   *interval = palloc0(sizeof(Interval));

	if (step->open_transaction || !step->answer->leased)
		interval->time = RETRY_OF_OPEN_TRANSACTION;
	else
	{
		interval->time = step->answer->lease_expires_at - clock_now();
		interval->time = Max(interval->time, 1);
		interval->time = Min(interval->time, LONGEST_RETRY);
	}
	return IntervalPGetDatum(interval);
}

/* the columns that tell about the record that answers */
static void
put_record(const ClaimStep *step, const ClaimRecord *record, bool holder,
		   Datum *values, bool *nulls)
{
	if (holder)
	{
		values[RESULT_ATTEMPT] = Int32GetDatum(record->attempt);
		nulls[RESULT_ATTEMPT] = false;
		row_put_text(values, nulls, RESULT_EFFECT_KEY, claim_effect_key(record));
		row_put_time(values, nulls, RESULT_LEASE_EXPIRES_AT,
				 step->outcome == OUTCOME_ACQUIRED ?
				 record->lease_expires_at : CLAIM_NO_TIME);
	}
	if (step->outcome == OUTCOME_COMPLETED)
		row_put_pointer(values, nulls, RESULT_RESULT, record->result);
	if (step->outcome == OUTCOME_FAILED)
		row_put_pointer(values, nulls, RESULT_ERROR, record->error);
	row_put_time(values, nulls, RESULT_CLAIMED_AT, record->claimed_at);
	row_put_time(values, nulls, RESULT_FINISHED_AT, record->finished_at);
}

/* a step as claim_result; key is what was asked for */
Datum
claim_result_datum(FunctionCallInfo fcinfo, const ClaimStep *step,
				   const ClaimKey *key, bool holder)
{
	TupleDesc	descriptor = row_descriptor(fcinfo);
	const ClaimRecord *record = step->answer;
	Datum		values[RESULT_COLUMNS] = {0};
	bool		nulls[RESULT_COLUMNS];

	memset(nulls, true, sizeof(nulls));
	values[RESULT_OUTCOME] =
		enum_datum(TupleDescAttr(descriptor, RESULT_OUTCOME)->atttypid,
				   claim_outcome_names[step->outcome]);
	nulls[RESULT_OUTCOME] = false;
	row_put_text(values, nulls, RESULT_REASON, step->reason);
	if (record != NULL && record->key.task_id != NULL)
		key = &record->key;
	row_put_text(values, nulls, RESULT_TASK_ID, key->task_id);
	row_put_text(values, nulls, RESULT_TOOL_CALL_ID, key->tool_call_id);

	switch (step->outcome)
	{
		case OUTCOME_CONFLICT:
		case OUTCOME_REFUSED:
			break;
		case OUTCOME_IN_PROGRESS:
			row_put_text(values, nulls, RESULT_HELD_BY, held_by(record));
			values[RESULT_RETRY_AFTER] = retry_after(step);
			nulls[RESULT_RETRY_AFTER] = false;
			break;
		default:
			if (step->outcome == OUTCOME_ACQUIRED && step->input != NULL)
				row_put_text(values, nulls, RESULT_INPUT,
						 canonical_json_to_cstring(step->input));
			put_record(step, record, holder, values, nulls);
			break;
	}
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}

/* a record as claim_status, with the state as it reads now */
HeapTuple
claim_status_tuple(TupleDesc descriptor, const ClaimRecord *stored)
{
	enum
	{
		ORGANIZATION, TASK_ID, TOOL_CALL_ID, TOOL_SERVER, TOOL_NAME,
		INPUT_DIGEST, INPUT, OPERATION_ID, EFFECT_KEY, STATE, ATTEMPT, HELD_BY,
		CLAIMED_AT, DISPATCHED_AT, LEASE_EXPIRES_AT, NOT_AFTER, FINISHED_AT,
		EXTERNAL_REF, RESULT, ERROR_COLUMN, COLUMNS
	};
	ClaimRecord record;
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS] = {false};

	(void) claim_as_of(stored, clock_now(), &record);
	row_put_text(values, nulls, ORGANIZATION, record.key.organization);
	row_put_text(values, nulls, TASK_ID, record.key.task_id);
	row_put_text(values, nulls, TOOL_CALL_ID, record.key.tool_call_id);
	row_put_text(values, nulls, TOOL_SERVER, record.tool_server);
	row_put_text(values, nulls, TOOL_NAME, record.tool_name);
	values[INPUT_DIGEST] = PointerGetDatum(&record.input_digest);
	row_put_pointer(values, nulls, INPUT, record.input);
	row_put_text(values, nulls, OPERATION_ID, record.operation_id);
	row_put_text(values, nulls, EFFECT_KEY, claim_effect_key(&record));
	values[STATE] = enum_datum(TupleDescAttr(descriptor, STATE)->atttypid,
							   claim_state_name(record.state));
	values[ATTEMPT] = Int32GetDatum(record.attempt);
	row_put_text(values, nulls, HELD_BY, held_by(&record));
	row_put_time(values, nulls, CLAIMED_AT, record.claimed_at);
	row_put_time(values, nulls, DISPATCHED_AT, record.dispatched_at);
	row_put_time(values, nulls, LEASE_EXPIRES_AT, record.lease_expires_at);
	row_put_time(values, nulls, NOT_AFTER, record.not_after);
	row_put_time(values, nulls, FINISHED_AT, record.finished_at);
	row_put_text(values, nulls, EXTERNAL_REF, record.external_ref);
	row_put_pointer(values, nulls, RESULT, record.result);
	row_put_pointer(values, nulls, ERROR_COLUMN, record.error);
	return heap_form_tuple(descriptor, values, nulls);
}

Datum
claim_status_datum(FunctionCallInfo fcinfo, const ClaimRecord *stored)
{
	return HeapTupleGetDatum(claim_status_tuple(row_descriptor(fcinfo),
												stored));
}

/* returns records as the set of claim_status that the SQL function returns */
void
claim_status_set(FunctionCallInfo fcinfo, List *records)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	ListCell   *cell;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	foreach(cell, records)
		tuplestore_puttuple(set->setResult,
							claim_status_tuple(set->setDesc, lfirst(cell)));
}
