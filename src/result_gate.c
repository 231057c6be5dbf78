/*
 * result_gate.c
 *
 * Results of tasks, validated before anybody acts on them.  A gate says what
 * is expected, an offer is judged against it, and only an accepted result
 * comes out again.
 *
 * The check function runs before the gate is locked, inside a subtransaction
 * of its own: one that raises rejects, with its message as the reason, and the
 * offer is stored all the same.  Of concurrent offers the first that gets the
 * lock is judged by the gate as it was, the others by what it has become.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/memutils.h"
#include "utils/regproc.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
#include "catalog/pg_enum.h"

#include "arguments.h"
#include "at_commit.h"
#include "canonical_json.h"
#include "claim_rows.h"
#include "clock.h"
#include "compare.h"
#include "compat.h"
#include "content_mark.h"
#include "errors.h"
#include "query.h"
#include "registered_function.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_expect_result);
PG_FUNCTION_INFO_V1(tc_offer_result);
PG_FUNCTION_INFO_V1(tc_gate);
PG_FUNCTION_INFO_V1(tc_require_accepted);
PG_FUNCTION_INFO_V1(tc_gate_verdict_now);

/* stored as "char", so the values are on disk and never change */
typedef enum GateVerdict
{
	GATE_PENDING = 'p',
	GATE_RETRY = 't',
	GATE_ACCEPTED = 'a',
	GATE_REJECTED = 'r'
} GateVerdict;

typedef struct Gate
{
	const char *organization;
	const char *task_id;
	GateVerdict verdict;
	const char *reason;
	TimestampTz deadline;
	const char *check_function;
	const char *check_role;
	const char *mark_context;
	Datum		correlation;	/* jsonb, of the expectation */
	Datum		merged;			/* jsonb, with the last offer's over it */
	const text *result;			/* accepted */
} Gate;

typedef struct Offer
{
	const char *status;
	const text *result;
	const text *content;
	const char *mark;
	Datum		correlation;
} Offer;

typedef struct Judgement
{
	GateVerdict verdict;
	const char *reason;
	const text *result;			/* what would be accepted */
} Judgement;

#define GATE_COLUMNS \
	"g.verdict, g.reason, g.deadline, g.check_function, g.check_role, " \
	"g.mark_context, g.correlation, g.merged, g.result"

#define GATE_CONDITION \
	"g.organization OPERATOR(pg_catalog.=) $1 AND " \
	"g.task_id OPERATOR(pg_catalog.=) $2"

static SavedQuery read_query = {
	"SELECT " GATE_COLUMNS ", g.ctid FROM tool_claims.result_gates g "
	"WHERE " GATE_CONDITION,
	2, {TEXTOID, TEXTOID}
};

static SavedQuery lock_query = {
	"SELECT " GATE_COLUMNS " FROM tool_claims.result_gates g WHERE "
	GATE_CONDITION " FOR NO KEY UPDATE",
	2, {TEXTOID, TEXTOID}
};

static SavedQuery insert_query = {
	"INSERT INTO tool_claims.result_gates (organization, task_id, verdict, "
	"deadline, check_function, check_role, mark_context, correlation, merged, "
	"expected_by, expected_at) VALUES ($1, $2, 'p', $3, $4, $5, $6, $7, $7, "
	"$8, tool_claims.clock()) ON CONFLICT DO NOTHING",
	8,
	{TEXTOID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, TEXTOID, JSONBOID,
	TEXTOID}
};

static SavedQuery update_query = {
	"UPDATE tool_claims.result_gates g SET verdict = $3, reason = $4, "
	"merged = $5, result = $6, offered_status = $7, offered_result = $8, "
	"offered_content = $9, decided_at = CASE WHEN $3 OPERATOR(pg_catalog.=) "
	"ANY ('{a,r}'::pg_catalog.\"char\"[]) THEN tool_claims.clock() END "
	"WHERE " GATE_CONDITION,
	9,
	{TEXTOID, TEXTOID, CHAROID, TEXTOID, JSONBOID, JSONOID, TEXTOID, JSONOID,
	TEXTOID}
};

/* ----- rows ----- */

static const char *
verdict_name(GateVerdict verdict)
{
	switch (verdict)
	{
		case GATE_PENDING:
			return "pending";
		case GATE_RETRY:
			return "retry";
		case GATE_ACCEPTED:
			return "accepted";
		case GATE_REJECTED:
			return "rejected";
	}
	return NULL;
}

static bool
is_open(const Gate *gate)
{
	return gate->verdict == GATE_PENDING || gate->verdict == GATE_RETRY;
}

/* the gate as it reads at this moment: an open one ends with its deadline */
static void
gate_as_of(Gate *gate, TimestampTz now)
{
	if (is_open(gate) && now >= gate->deadline)
	{
		gate->verdict = GATE_REJECTED;
		gate->reason = "deadline_passed";
	}
}

static Datum
gate_column(int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
						 number, isnull);
}

static const char *
text_column(int number)
{
	bool		isnull;
	Datum		value = gate_column(number, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

static Datum
copy_column(int number)
{
	bool		isnull;
	Datum		value = gate_column(number, &isnull);

	return isnull ? (Datum) 0 : PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
}

typedef enum GateRead
{
	GATE_PLAIN,					/* as an ordinary statement sees it */
	GATE_CURRENT,				/* for a verb */
	GATE_LOCK					/* as an UPDATE locks it */
} GateRead;

static bool
read_gate(const char *organization, const char *task_id, GateRead how,
		  Gate *gate)
{
	QueryScope	scope;
	Datum		values[2];
	bool		found;

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(task_id);
	query_begin(&scope);
	if (how == GATE_LOCK)
	{
		do
		{
			CHECK_FOR_INTERRUPTS();
			found = query_run(&lock_query, values, NULL, InvalidSnapshot) > 0;
		} while (!found && query_read_current(&read_query, values));
	}
	else if (how == GATE_CURRENT)
		found = query_read_current(&read_query, values);
	else
		found = query_run(&read_query, values, NULL, InvalidSnapshot) > 0;
	if (found)
	{
		MemoryContext old = MemoryContextSwitchTo(scope.caller);
		bool		isnull;

		gate->organization = organization;
		gate->task_id = task_id;
		gate->verdict = DatumGetChar(gate_column(1, &isnull));
		gate->reason = text_column(2);
		gate->deadline = DatumGetTimestampTz(gate_column(3, &isnull));
		gate->check_function = text_column(4);
		gate->check_role = text_column(5);
		gate->mark_context = text_column(6);
		gate->correlation = copy_column(7);
		gate->merged = copy_column(8);
		gate->result = (const text *) DatumGetPointer(copy_column(9));
		MemoryContextSwitchTo(old);
	}
	query_end(&scope);
	return found;
}

static HeapTuple
gate_tuple(TupleDesc descriptor, GateVerdict verdict, const char *reason,
		   TimestampTz deadline, bool has_deadline, Datum correlation)
{
	enum
	{
		VERDICT, REASON, DEADLINE, CORRELATION, COLUMNS
	};
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS] = {false};

	values[VERDICT] = enum_datum(TupleDescAttr(descriptor, VERDICT)->atttypid,
								 verdict_name(verdict));
	row_put_text(values, nulls, REASON, reason);
	values[DEADLINE] = TimestampTzGetDatum(deadline);
	nulls[DEADLINE] = !has_deadline;
	values[CORRELATION] = correlation;
	return heap_form_tuple(descriptor, values, nulls);
}

static Datum
gate_datum(FunctionCallInfo fcinfo, const Gate *gate)
{
	return HeapTupleGetDatum(gate_tuple(row_descriptor(fcinfo), gate->verdict,
										gate->reason, gate->deadline, true,
										gate->merged));
}

/* ----- expecting ----- */

static Datum
correlation_argument(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *correlation;

	require_argument(fcinfo, n, "correlation");
	correlation = PG_GETARG_JSONB_P(n);
	if (!JB_ROOT_IS_OBJECT(correlation))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"correlation\" must be a JSON object")));
	return PointerGetDatum(correlation);
}

/* the check as it is kept: a function of the result, or of all three */
static const char *
check_argument(FunctionCallInfo fcinfo, int n)
{
	const Oid	arguments[] = {JSONOID, TEXTOID, JSONBOID};
	Oid			function;

	if (PG_ARGISNULL(n))
		return NULL;
	function = PG_GETARG_OID(n);
	if (!registered_function_fits(function, 1, arguments, TEXTOID) &&
		!registered_function_fits(function, 3, arguments, TEXTOID))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("function %s has the wrong signature",
						format_procedure(function)),
				 errhint("A check takes (json) or (json, task_id text, correlation jsonb) and returns text.")));
	return registered_function_name(function);
}

/*
 * tool_claims.expect_result(task_id text, deadline timestamptz,
 *							 check_function regprocedure, correlation jsonb,
 *							 mark_context text) returns result_gate
 *
 * Says what result a task is to deliver, and until when.
 */
Datum
tc_expect_result(PG_FUNCTION_ARGS)
{
	const char *task_id;
	const char *organization;
	const char *check;
	const char *mark_context;
	TimestampTz deadline;
	Datum		correlation;
	Datum		values[8];
	char		nulls[8];
	QueryScope	scope;
	uint64		inserted;
	Gate		gate;

	verb_enter("tool_claims.expect_result()");
	task_id = argument_key_text(fcinfo, 0, "task_id", KEY_TEXT_FILLED);
	organization = settings_verb_organization();
	require_argument(fcinfo, 1, "deadline");
	deadline = PG_GETARG_TIMESTAMPTZ(1);
	check = check_argument(fcinfo, 2);
	correlation = correlation_argument(fcinfo, 3);
	mark_context = PG_ARGISNULL(4) ? NULL :
		argument_key_text(fcinfo, 4, "mark_context", KEY_TEXT_MAY_BE_EMPTY);

	memset(nulls, ' ', sizeof(nulls));
	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(task_id);
	values[2] = TimestampTzGetDatum(deadline);
	values[3] = check ? CStringGetTextDatum(check) : (Datum) 0;
	values[4] = CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	nulls[3] = nulls[4] = check ? ' ' : 'n';
	values[5] = mark_context ? CStringGetTextDatum(mark_context) : (Datum) 0;
	nulls[5] = mark_context ? ' ' : 'n';
	values[6] = correlation;
	values[7] = values[4];
	query_begin(&scope);
	query_run(&insert_query, values, nulls, InvalidSnapshot);
	inserted = SPI_processed;
	query_end(&scope);
	if (!read_gate(organization, task_id, GATE_CURRENT, &gate))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("gate of task \"%s\" was removed meanwhile", task_id)));
	if (inserted == 0 &&
		(gate.deadline != deadline || !same_text(gate.check_function, check) ||
		 !same_text(gate.mark_context, mark_context) ||
		 !DatumGetBool(DirectFunctionCall2(jsonb_eq, gate.correlation,
										   correlation))))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a result of task \"%s\" is expected already, with other arguments",
						task_id),
				 errhint("Expect the result of another task_id.")));
	gate_as_of(&gate, clock_now());
	return gate_datum(fcinfo, &gate);
}

/* ----- judging ----- */

/* are two JSON texts the same value?  What is no canonical JSON is compared as text */
static bool
same_json(const text *a, const text *b)
{
	CanonicalJson *x;
	CanonicalJson *y;

	if (a == NULL || b == NULL)
		return a == b;
	if (VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0)
		return true;
	x = canonical_json_try_parse(VARDATA_ANY(a), VARSIZE_ANY_EXHDR(a));
	y = canonical_json_try_parse(VARDATA_ANY(b), VARSIZE_ANY_EXHDR(b));
	return x != NULL && y != NULL &&
		canonical_json_size(x) == canonical_json_size(y) &&
		memcmp(VARDATA_ANY(x), VARDATA_ANY(y), canonical_json_size(x)) == 0;
}

static Judgement
judged(GateVerdict verdict, const char *reason)
{
	Judgement	judgement = {.verdict = verdict, .reason = reason};

	return judgement;
}

/* an error that says nothing about the result: the offer is to be repeated */
static bool
is_passing_fault(int sqlerrcode)
{
	return sqlerrcode == ERRCODE_T_R_SERIALIZATION_FAILURE ||
		sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED ||
		sqlerrcode == ERRCODE_OUT_OF_MEMORY ||
		ERRCODE_TO_CATEGORY(sqlerrcode) == ERRCODE_OPERATOR_INTERVENTION;
}

/*
 * Runs the gate's check.  Returns NULL where it agrees, else the reason.  Its
 * subtransaction is the only one in the extension.
 */
static const char *
run_check(const Gate *gate, const text *result, Datum correlation)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	RegisteredFunction function;
	Datum		arguments[REGISTERED_FUNCTION_MAX_ARGS];
	const char *volatile reason = NULL;

	registered_function_resolve(gate->check_function, gate->check_role,
								&function);
	arguments[0] = PointerGetDatum(result);
	arguments[1] = CStringGetTextDatum(gate->task_id);
	arguments[2] = correlation;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		bool		isnull;
		Datum		answer = registered_function_run(&function, arguments,
													 &isnull);

		if (!isnull)
			reason = TextDatumGetCString(answer);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (is_passing_fault(error->sqlerrcode))
			ReThrowError(error);
		reason = error->message;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return reason;
}

/* what an offer comes to at an open gate, the deadline apart */
static Judgement
judge(const Gate *gate, const Offer *offer, Datum correlation)
{
	Judgement	judgement = {.verdict = GATE_ACCEPTED, .result = offer->result};

	if (strcmp(offer->status, "failed_retryable") == 0 ||
		strcmp(offer->status, "timed_out") == 0)
		return judged(GATE_RETRY, offer->status);
	if (strcmp(offer->status, "succeeded") != 0)
		return judged(GATE_REJECTED, offer->status);

	if (gate->mark_context != NULL)
	{
		const char *why;
		MarkVerdict verdict = content_mark_verify(gate->organization,
												  offer->content, offer->mark,
												  gate->mark_context, &why);

		if (verdict != MARK_VALID)
			return judged(GATE_REJECTED,
						  psprintf("mark_%s", mark_verdict_names[verdict]));
		if (canonical_json_try_parse(VARDATA_ANY(offer->content),
									 VARSIZE_ANY_EXHDR(offer->content)) == NULL)
			return judged(GATE_REJECTED, "no_result");
		if (offer->result != NULL && !same_json(offer->result, offer->content))
			return judged(GATE_REJECTED, "mark_invalid");
		judgement.result = offer->content;
	}
	if (judgement.result == NULL)
		return judged(GATE_REJECTED, "no_result");
	if (gate->check_function != NULL)
	{
		const char *reason = run_check(gate, judgement.result, correlation);

		if (reason != NULL)
			return judged(GATE_REJECTED, reason);
	}
	return judgement;
}

/* the answer of a gate that takes no offer any more */
static void
answer_closed(Gate *gate, const Offer *offer)
{
	const text *offered = gate->mark_context != NULL && offer->content != NULL ?
		offer->content : offer->result;

	if (gate->verdict == GATE_ACCEPTED &&
		(strcmp(offer->status, "succeeded") != 0 ||
		 !same_json(gate->result, offered) ||
		 (offer->result != NULL && !same_json(gate->result, offer->result))))
	{
		gate->verdict = GATE_REJECTED;
		gate->reason = "already_accepted";
	}
}

static void
store_judgement(Gate *gate, const Judgement *judgement, const Offer *offer,
				Datum correlation)
{
	Datum		values[9];
	char		nulls[9];
	QueryScope	scope;

	gate->verdict = judgement->verdict;
	gate->reason = judgement->reason;
	gate->merged = correlation;
	memset(nulls, ' ', sizeof(nulls));
	values[0] = CStringGetTextDatum(gate->organization);
	values[1] = CStringGetTextDatum(gate->task_id);
	values[2] = CharGetDatum(gate->verdict);
	values[3] = gate->reason ? CStringGetTextDatum(gate->reason) : (Datum) 0;
	nulls[3] = gate->reason ? ' ' : 'n';
	values[4] = correlation;
	values[5] = PointerGetDatum(judgement->result);
	nulls[5] = gate->verdict == GATE_ACCEPTED ? ' ' : 'n';
	values[6] = CStringGetTextDatum(offer->status);
	values[7] = PointerGetDatum(offer->result);
	nulls[7] = offer->result ? ' ' : 'n';
	values[8] = PointerGetDatum(offer->content);
	nulls[8] = offer->content ? ' ' : 'n';
	query_begin(&scope);
	query_run(&update_query, values, nulls, InvalidSnapshot);
	query_end(&scope);
}

/* is it the gate that was judged by, or one that took its place meanwhile? */
static bool
same_expectation(const Gate *a, const Gate *b)
{
	return a->deadline == b->deadline &&
		same_text(a->check_function, b->check_function) &&
		same_text(a->check_role, b->check_role) &&
		same_text(a->mark_context, b->mark_context) &&
		DatumGetBool(DirectFunctionCall2(jsonb_eq, a->correlation,
										 b->correlation));
}

static const char *
status_argument(FunctionCallInfo fcinfo, int n)
{
	HeapTuple	tuple;
	char	   *label;

	require_argument(fcinfo, n, "status");
	tuple = SearchSysCache1(ENUMOID, PG_GETARG_DATUM(n));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for enum %u", PG_GETARG_OID(n));
	label = pstrdup(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel));
	ReleaseSysCache(tuple);
	return label;
}

/*
 * tool_claims.offer_result(task_id text, status task_status, result json,
 *							content text, mark text, correlation jsonb)
 *		returns result_gate
 *
 * Judges the result of a task by what is expected of it.
 */
Datum
tc_offer_result(PG_FUNCTION_ARGS)
{
	const char *task_id;
	const char *organization;
	Offer		offer;
	Gate		judged_by;
	Gate		gate;
	Judgement	judgement;
	Datum		correlation;

	verb_enter("tool_claims.offer_result()");
	task_id = argument_key_text(fcinfo, 0, "task_id", KEY_TEXT_FILLED);
	organization = settings_verb_organization();
	offer.status = status_argument(fcinfo, 1);
	offer.result = PG_ARGISNULL(2) ? NULL : PG_GETARG_TEXT_PP(2);
	offer.content = PG_ARGISNULL(3) ? NULL : PG_GETARG_TEXT_PP(3);
	offer.mark = argument_text(fcinfo, 4);
	offer.correlation = correlation_argument(fcinfo, 5);

	do
	{
		if (!read_gate(organization, task_id, GATE_CURRENT, &judged_by))
			return HeapTupleGetDatum(gate_tuple(row_descriptor(fcinfo),
												GATE_REJECTED, "not_expected",
												0, false, offer.correlation));
		correlation = DirectFunctionCall2(jsonb_concat, judged_by.correlation,
										  offer.correlation);
		gate_as_of(&judged_by, clock_now());
		judgement = judged(GATE_REJECTED, "deadline_passed");
		if (is_open(&judged_by))
			judgement = judge(&judged_by, &offer, correlation);

		if (!read_gate(organization, task_id, GATE_LOCK, &gate))
			return HeapTupleGetDatum(gate_tuple(row_descriptor(fcinfo),
												GATE_REJECTED, "not_expected",
												0, false, offer.correlation));
	} while (is_open(&gate) && !same_expectation(&gate, &judged_by));
	if (!is_open(&gate))
		answer_closed(&gate, &offer);
	else
	{
		if (clock_now() >= gate.deadline)
			judgement = judged(GATE_REJECTED, "deadline_passed");
		store_judgement(&gate, &judgement, &offer, correlation);
	}
	return gate_datum(fcinfo, &gate);
}

/* ----- looking ----- */

/* tool_claims.gate(task_id text) returns setof result_gate */
Datum
tc_gate(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *set = (ReturnSetInfo *) fcinfo->resultinfo;
	const char *task_id = argument_key_text(fcinfo, 0, "task_id",
											KEY_TEXT_FILLED);
	Gate		gate;

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (read_gate(settings_verb_organization(), task_id, GATE_PLAIN, &gate))
	{
		gate_as_of(&gate, clock_now());
		tuplestore_puttuple(set->setResult,
							gate_tuple(set->setDesc, gate.verdict,
									   gate.reason, gate.deadline, true,
									   gate.merged));
	}
	return (Datum) 0;
}

/*
 * tool_claims.require_accepted(task_id text) returns json
 *
 * The accepted result, or TC011.
 */
Datum
tc_require_accepted(PG_FUNCTION_ARGS)
{
	const char *task_id = argument_key_text(fcinfo, 0, "task_id",
											KEY_TEXT_FILLED);
	Gate		gate = {.verdict = GATE_REJECTED, .reason = "not_expected"};
	bool		found;

	found = read_gate(settings_verb_organization(), task_id, GATE_PLAIN, &gate);
	if (found)
		gate_as_of(&gate, clock_now());
	if (!found || gate.verdict != GATE_ACCEPTED)
	{
		const char *correlation = "{}";

		if (found)
		{
			Jsonb	   *merged = DatumGetJsonbP(gate.merged);

			correlation = JsonbToCString(NULL, &merged->root, VARSIZE(merged));
		}
		ereport(ERROR,
				(errcode(ERRCODE_TC_NOT_ACCEPTED),
				 errmsg("result of task \"%s\" is not accepted", task_id),
				 errdetail_internal("Verdict %s, reason %s, correlation %s",
									verdict_name(gate.verdict),
									gate.reason ? gate.reason : "none",
									correlation),
				 errhint("Do not act on it.")));
	}
	PG_RETURN_TEXT_P(gate.result);
}

/*
 * tool_claims.gate_verdict_now(verdict "char", deadline timestamptz)
 *		returns gate_verdict
 */
Datum
tc_gate_verdict_now(PG_FUNCTION_ARGS)
{
	Gate		gate = {.verdict = PG_GETARG_CHAR(0)};

	if (verdict_name(gate.verdict) == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%c\" is no verdict of a gate", PG_GETARG_CHAR(0))));
	gate.deadline = PG_GETARG_TIMESTAMPTZ(1);
	gate_as_of(&gate, clock_now());
	return enum_datum(get_fn_expr_rettype(fcinfo->flinfo),
					  verdict_name(gate.verdict));
}
