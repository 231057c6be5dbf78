/*
 * claim_api.c
 *
 * The SQL verbs of claims: arguments in, claim_flow, a row out.  claim_result
 * tells attempt and effect key only to the holder, in what his own verbs
 * return.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/jsonb.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "claim_rows.h"
#include "clock.h"
#include "compat.h"
#include "errors.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_claim);
PG_FUNCTION_INFO_V1(tc_dispatch);
PG_FUNCTION_INFO_V1(tc_renew);
PG_FUNCTION_INFO_V1(tc_complete);
PG_FUNCTION_INFO_V1(tc_fail);
PG_FUNCTION_INFO_V1(tc_release);
PG_FUNCTION_INFO_V1(tc_mark_uncertain);
PG_FUNCTION_INFO_V1(tc_report_late);
PG_FUNCTION_INFO_V1(tc_reconcile);
PG_FUNCTION_INFO_V1(tc_assert_claim);
PG_FUNCTION_INFO_V1(tc_status);
PG_FUNCTION_INFO_V1(tc_find_claims);
PG_FUNCTION_INFO_V1(tc_state_now);
PG_FUNCTION_INFO_V1(tc_effect_key);

static const text *
json_argument(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_TEXT_PP(n);
}

/*
 * tool_claims.claim(task_id text, tool_call_id text, tool_name text,
 *					 input canonical_json, lease interval, wait interval,
 *					 operation_id text, request_id uuid, tool_server text,
 *					 not_after timestamptz, dispatched boolean)
 *		returns claim_result
 *
 * Acquires the authority to act for one delivery, or says who has it, what it
 * led to, or why not.
 *
 * An acquired record stays locked until the transaction ends, and others see
 * it as in progress.  No other outcome locks anything for sure.
 */
Datum
tc_claim(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_CLAIM};
	ClaimStep	step;
	int64		wait;

	verb_enter("tool_claims.claim()");
	call.key = argument_key(fcinfo);
	call.tool_name = argument_tool(fcinfo, 2, "tool_name", KEY_TEXT_FILLED);
	call.input = argument_input(fcinfo, 3);
	call.leased = !PG_ARGISNULL(4);
	if (call.leased)
		call.lease = argument_lease(fcinfo, 4);
	wait = argument_wait(fcinfo, 5);
	call.operation_id = argument_key_text(fcinfo, 6, "operation_id",
										  KEY_TEXT_NULLABLE);
	call.request_id = PG_ARGISNULL(7) ? NULL : PG_GETARG_UUID_P(7);
	call.tool_server = argument_tool(fcinfo, 8, "tool_server",
									 KEY_TEXT_MAY_BE_EMPTY);
	call.not_after = PG_ARGISNULL(9) ? CLAIM_NO_TIME : PG_GETARG_TIMESTAMPTZ(9);
	if (!PG_ARGISNULL(9) && call.not_after == CLAIM_NO_TIME)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"not_after\" must not be -infinity")));
	require_argument(fcinfo, 10, "dispatched");
	call.dispatched = PG_GETARG_BOOL(10);
	if (!call.dispatched && !call.leased)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"dispatched\" must not be false without a lease"),
				 errhint("Pass lease, or leave dispatched out.")));
	canonical_json_digest(call.input, &call.input_digest);
	claim_caller(&call);

	claim_acquire(&call, wait, &step);
	return claim_result_datum(fcinfo, &step, &call.key,
							  step.outcome == OUTCOME_ACQUIRED);
}

/* what all verbs with a number have in common; nullable only where NULL may be */
static void
attempt_argument(FunctionCallInfo fcinfo, int n, bool nullable,
				 ClaimCall *call)
{
	if (!nullable)
		require_argument(fcinfo, n, "attempt");
	call->has_attempt = !PG_ARGISNULL(n);
	if (call->has_attempt)
		call->attempt = PG_GETARG_INT32(n);
}

static Datum
change_and_return(FunctionCallInfo fcinfo, ClaimCall *call, bool holder)
{
	ClaimStep	step;

	claim_caller(call);
	claim_change(call, &step);
	return claim_result_datum(fcinfo, &step, &call->key,
							  holder && call->is_holder);
}

/*
 * tool_claims.dispatch(task_id text, tool_call_id text, attempt integer,
 *						external_ref text) returns claim_result
 *
 * Records that the effect is about to begin.  Its success proves that the
 * claim is committed.
 */
Datum
tc_dispatch(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_DISPATCH};

	verb_enter("tool_claims.dispatch()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	call.external_ref = argument_text(fcinfo, 3);
	return change_and_return(fcinfo, &call, true);
}

/*
 * tool_claims.renew(task_id text, tool_call_id text, attempt integer,
 *					 lease interval) returns claim_result
 *
 * Extends the lease of the caller's attempt, counted from now.
 *
 * The record stays locked until the transaction ends: a rival that finds the
 * old lease expired meanwhile waits, and then sees the new one.
 */
Datum
tc_renew(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_RENEW};

	verb_enter("tool_claims.renew()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	require_argument(fcinfo, 3, "lease");
	call.lease = argument_lease(fcinfo, 3);
	return change_and_return(fcinfo, &call, true);
}

/*
 * tool_claims.complete(task_id text, tool_call_id text, result json,
 *						attempt integer) returns claim_result
 *
 * Stores the result, byte for byte, and ends the attempt.
 */
Datum
tc_complete(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_COMPLETE};

	verb_enter("tool_claims.complete()");
	call.key = argument_key(fcinfo);
	call.result = json_argument(fcinfo, 2);
	attempt_argument(fcinfo, 3, true, &call);
	return change_and_return(fcinfo, &call, true);
}

/*
 * tool_claims.fail(task_id text, tool_call_id text, error json,
 *					attempt integer) returns claim_result
 *
 * Stores the error that everybody gets from then on, and ends the attempt.
 */
Datum
tc_fail(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_FAIL};

	verb_enter("tool_claims.fail()");
	call.key = argument_key(fcinfo);
	require_argument(fcinfo, 2, "error");
	call.error = json_argument(fcinfo, 2);
	attempt_argument(fcinfo, 3, true, &call);
	return change_and_return(fcinfo, &call, true);
}

/*
 * tool_claims.release(task_id text, tool_call_id text, attempt integer,
 *					   reason text, new_effect_key boolean)
 *		returns claim_result
 *
 * Gives the claim back: the caller knows that no effect began.
 */
Datum
tc_release(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_RELEASE};

	verb_enter("tool_claims.release()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, true, &call);
	call.reason = argument_text(fcinfo, 3);
	require_argument(fcinfo, 4, "new_effect_key");
	call.new_effect_key = PG_GETARG_BOOL(4);
	return change_and_return(fcinfo, &call, true);
}

/* may the current role reconcile?  That is what the duty grants */
static bool
may_reconcile(void)
{
	List	   *name = list_make2(makeString("tool_claims"),
								  makeString("reconcile"));
	FuncCandidateList candidates;

	candidates = FuncnameGetCandidates(name, -1, NIL, false, false, false, true);
	return candidates != NULL &&
		object_aclcheck(ProcedureRelationId, candidates->oid, GetUserId(),
						ACL_EXECUTE) == ACLCHECK_OK;
}

/*
 * tool_claims.mark_uncertain(task_id text, tool_call_id text,
 *							  attempt integer, reason text)
 *		returns claim_result
 *
 * Says that nobody knows whether the effect happened.  For the holder, and for
 * a reconciler.
 */
Datum
tc_mark_uncertain(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_MARK_UNCERTAIN};

	verb_enter("tool_claims.mark_uncertain()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	require_argument(fcinfo, 3, "reason");
	call.reason = argument_text(fcinfo, 3);
	call.is_reconciler = may_reconcile();
	return change_and_return(fcinfo, &call, true);
}

/*
 * tool_claims.report_late(task_id text, tool_call_id text, attempt integer,
 *						   result json) returns void
 *
 * Puts what a stale attempt knows into the evidence; the record stays as it
 * is.  Locks nothing.
 */
Datum
tc_report_late(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_REPORT_LATE};
	ClaimStep	step;

	verb_enter("tool_claims.report_late()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	require_argument(fcinfo, 3, "result");
	call.result = json_argument(fcinfo, 3);
	claim_caller(&call);
	claim_report(&call, &step);
	PG_RETURN_VOID();
}

static ClaimFinding
finding_argument(FunctionCallInfo fcinfo, int n)
{
	static const struct
	{
		const char *label;
		ClaimFinding finding;
	}			findings[] = {
		{"occurred", FINDING_OCCURRED},
		{"not_occurred", FINDING_NOT_OCCURRED},
		{"abandoned", FINDING_ABANDONED},
		{"compensated", FINDING_COMPENSATED}
	};
	HeapTuple	tuple;
	ClaimFinding finding = FINDING_OCCURRED;
	bool		found = false;

	require_argument(fcinfo, n, "finding");
	tuple = SearchSysCache1(ENUMOID, PG_GETARG_DATUM(n));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for enum %u", PG_GETARG_OID(n));
	for (int i = 0; i < lengthof(findings); i++)
		if (strcmp(NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel),
				   findings[i].label) == 0)
		{
			finding = findings[i].finding;
			found = true;
		}
	ReleaseSysCache(tuple);
	if (!found)
		elog(ERROR, "unexpected finding");
	return finding;
}

static void
append_argument(StringInfo framed, const char *value)
{
	appendStringInfoChar(framed, ',');
	if (value != NULL)
		escape_json(framed, value);
	else
		appendStringInfoString(framed, "null");
}

/* the digest by which a repeated reconcile is known to be the same */
static void
digest_arguments(ClaimCall *call)
{
	StringInfoData framed;

	initStringInfo(&framed);
	appendStringInfo(&framed, "[%d,%d", (int) call->finding,
					 call->new_effect_key ? 1 : 0);
	append_argument(&framed, call->evidence);
	append_argument(&framed, call->result ? text_to_cstring(call->result) : NULL);
	append_argument(&framed, call->error ? text_to_cstring(call->error) : NULL);
	appendStringInfoChar(&framed, ']');
	sha256_compute(framed.data, framed.len, &call->arguments);
}

static void
refuse_argument(const char *name, const char *finding)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("argument \"%s\" does not go with this finding", name),
			 errhint("It goes with %s only.", finding)));
}

/* evidence: an object that says something */
static const char *
evidence_argument(FunctionCallInfo fcinfo, int n)
{
	Jsonb	   *evidence;
	char	   *evidence_text;

	require_argument(fcinfo, n, "evidence");
	evidence = PG_GETARG_JSONB_P(n);
	if (!JB_ROOT_IS_OBJECT(evidence) || JB_ROOT_COUNT(evidence) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"evidence\" must be a JSON object with members"),
				 errhint("Say what was looked at, and where it stands.")));
	evidence_text = JsonbToCString(NULL, &evidence->root, VARSIZE(evidence));
	return canonical_json_to_cstring(canonical_json_parse(evidence_text,
														  strlen(evidence_text)));
}

/*
 * tool_claims.reconcile(task_id text, tool_call_id text, attempt integer,
 *						 finding finding, evidence jsonb, result json,
 *						 error json, new_effect_key boolean)
 *		returns claim_result
 *
 * Ends an uncertain attempt by what somebody found out.  Grants nothing.
 */
Datum
tc_reconcile(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_RECONCILE};

	verb_enter("tool_claims.reconcile()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	call.finding = finding_argument(fcinfo, 3);
	call.evidence = evidence_argument(fcinfo, 4);
	call.result = json_argument(fcinfo, 5);
	call.error = json_argument(fcinfo, 6);
	require_argument(fcinfo, 7, "new_effect_key");
	call.new_effect_key = PG_GETARG_BOOL(7);
	if (call.result != NULL && call.finding != FINDING_OCCURRED)
		refuse_argument("result", "occurred");
	if (call.error != NULL && (call.finding == FINDING_OCCURRED ||
							   call.finding == FINDING_NOT_OCCURRED))
		refuse_argument("error", "abandoned and compensated");
	if (call.new_effect_key && call.finding != FINDING_NOT_OCCURRED)
		refuse_argument("new_effect_key", "not_occurred");
	digest_arguments(&call);
	return change_and_return(fcinfo, &call, false);
}

/*
 * tool_claims.assert_claim(task_id text, tool_call_id text, attempt integer)
 *		returns void
 *
 * Raises unless the attempt holds the claim, and locks the record until the
 * transaction ends: no takeover can commit in between.
 */
Datum
tc_assert_claim(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_ASSERT};
	ClaimStep	step;

	verb_enter("tool_claims.assert_claim()");
	call.key = argument_key(fcinfo);
	attempt_argument(fcinfo, 2, false, &call);
	claim_caller(&call);
	claim_change(&call, &step);
	at_commit_asserted(step.answer);
	PG_RETURN_VOID();
}

/* tool_claims.status(task_id text, tool_call_id text) returns setof claim_status */
Datum
tc_status(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	ClaimRecord record;

	claim_status_set(fcinfo, store_read(&key, &record) ?
					 list_make1(&record) : NIL);
	return (Datum) 0;
}

/* tool_claims.find_claims(effect_key text) returns setof claim_status */
Datum
tc_find_claims(PG_FUNCTION_ARGS)
{
	const char *organization = settings_verb_organization();
	List	   *records;

	require_argument(fcinfo, 0, "effect_key");
	records = store_find_by_effect_key(organization,
									   argument_text(fcinfo, 0));
	claim_status_set(fcinfo, records);
	return (Datum) 0;
}

/*
 * tool_claims.state_now(state "char", leased boolean, reacquire boolean,
 *						 dispatched_at timestamptz,
 *						 lease_expires_at timestamptz) returns claim_state
 *
 * The state of a stored record as it reads now, for the views.
 */
Datum
tc_state_now(PG_FUNCTION_ARGS)
{
	ClaimRecord stored;
	ClaimRecord now;

	if (PG_ARGISNULL(0) || PG_ARGISNULL(1) || PG_ARGISNULL(2))
		PG_RETURN_NULL();
	memset(&stored, 0, sizeof(stored));
	stored.state = PG_GETARG_CHAR(0);
	if (strcmp(claim_state_name(stored.state), "none") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%c\" is no state of a claim", PG_GETARG_CHAR(0))));
	stored.leased = PG_GETARG_BOOL(1);
	stored.reacquire = PG_GETARG_BOOL(2);
	stored.dispatched_at = PG_ARGISNULL(3) ? CLAIM_NO_TIME :
		PG_GETARG_TIMESTAMPTZ(3);
	stored.lease_expires_at = PG_ARGISNULL(4) ? CLAIM_NO_TIME :
		PG_GETARG_TIMESTAMPTZ(4);
	(void) claim_as_of(&stored, clock_now(), &now);
	return enum_datum(get_fn_expr_rettype(fcinfo->flinfo),
					  claim_state_name(now.state));
}

/*
 * tool_claims.effect_key(effect_key text, operation_id text,
 *						  organization text, task_id text, tool_call_id text)
 *		returns text
 *
 * The effect key of a stored record, derived where none is stored.
 */
Datum
tc_effect_key(PG_FUNCTION_ARGS)
{
	ClaimRecord record;

	memset(&record, 0, sizeof(record));
	record.effect_key = argument_text(fcinfo, 0);
	record.operation_id = argument_text(fcinfo, 1);
	record.key.organization = argument_text(fcinfo, 2);
	record.key.task_id = argument_text(fcinfo, 3);
	record.key.tool_call_id = argument_text(fcinfo, 4);
	if (record.effect_key == NULL && record.operation_id == NULL &&
		(PG_ARGISNULL(2) || PG_ARGISNULL(3) || PG_ARGISNULL(4)))
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(claim_effect_key(&record)));
}
