/*
 * execution.c
 *
 * The one-call form: claim, run the handler, complete, in the caller's
 * transaction.  And what a handler or a trigger asks to know under which claim
 * it runs.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "claim_rows.h"
#include "compat.h"
#include "errors.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_execute);
PG_FUNCTION_INFO_V1(tc_current_claim);
PG_FUNCTION_INFO_V1(tc_require_claim);

/* a handler takes one jsonb, returns json or jsonb, and may be run by the caller */
static Oid
check_handler(Oid handler)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(handler));
	Form_pg_proc proc;
	Oid			result;
	bool		fits;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("handler with OID %u does not exist", handler)));
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	result = proc->prorettype;
	fits = proc->prokind == PROKIND_FUNCTION && !proc->proretset &&
		proc->pronargs == 1 && proc->proargtypes.values[0] == JSONBOID &&
		(result == JSONOID || result == JSONBOID);
	ReleaseSysCache(tuple);
	if (!fits)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("handler %s has the wrong signature",
						format_procedure(handler)),
				 errhint("A handler takes one jsonb and returns json or jsonb.")));
	if (object_aclcheck(ProcedureRelationId, handler, GetUserId(),
						ACL_EXECUTE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s",
						format_procedure(handler))));
	return result;
}

/* runs the handler and returns its result as json text, NULL for a null */
static const text *
run_handler(Oid handler, Oid result_type, const ClaimCall *call)
{
	FmgrInfo	flinfo;
	Datum		input;
	Datum		result;

	LOCAL_FCINFO(handler_call, 1);

	/* before the handler: a number that jsonb cannot hold is 22003 here */
	input = DirectFunctionCall1(jsonb_in,
								CStringGetDatum(canonical_json_to_cstring(call->input)));
	fmgr_info(handler, &flinfo);
	InitFunctionCallInfoData(*handler_call, &flinfo, 1, InvalidOid, NULL, NULL);
	handler_call->args[0].value = input;
	handler_call->args[0].isnull = false;
	at_commit_execute_begin(&call->key);
	result = FunctionCallInvoke(handler_call);
	at_commit_execute_end();
	if (handler_call->isnull)
		return NULL;
	if (result_type == JSONBOID)
	{
		Jsonb	   *value = DatumGetJsonbP(result);

		return cstring_to_text(JsonbToCString(NULL, &value->root,
											  VARSIZE(value)));
	}
	return DatumGetTextPP(result);
}

/* raises what claim returns as a row */
static void
raise_outcome(const ClaimStep *step, const ClaimCall *call)
{
	const ClaimRecord *record = step->answer;
	const char *task = call->key.task_id;
	const char *id = call->key.tool_call_id;
	const char *detail = psprintf("Task \"%s\", call \"%s\", tool \"%s\" of server \"%s\", state %s, reason %s.",
								  task, id, call->tool_name,
								  call->tool_server,
								  record != NULL && record->state != CLAIM_NONE ?
								  claim_state_name(record->state) :
								  step->open_transaction ? "claimed" : "none",
								  step->reason ? step->reason : "none");

	switch (step->outcome)
	{
		case OUTCOME_CONFLICT:
			ereport(ERROR,
					(errcode(ERRCODE_TC_CONFLICT),
					 errmsg("claim (\"%s\", \"%s\") conflicts with other data under its key",
							task, id),
					 errdetail_internal("%s", detail),
					 errhint("A changed call needs a tool_call_id of its own.")));
			break;
		case OUTCOME_UNCERTAIN:
			ereport(ERROR,
					(errcode(ERRCODE_TC_UNCERTAIN),
					 errmsg("claim (\"%s\", \"%s\") is uncertain", task, id),
					 errdetail_internal("%s", detail),
					 errhint("Somebody has to find out whether the effect happened, and reconcile it.")));
			break;
		case OUTCOME_FAILED:
			ereport(ERROR,
					(errcode(ERRCODE_TC_FAILED),
					 errmsg("claim (\"%s\", \"%s\") has failed", task, id),
					 record->error != NULL ?
					 errdetail_internal("%s", text_to_cstring(record->error)) :
					 errdetail_internal("%s", detail)));
			break;
		case OUTCOME_REFUSED:
			ereport(ERROR,
					(errcode(ERRCODE_TC_REFUSED),
					 errmsg("claim (\"%s\", \"%s\") is refused: %s", task, id,
							step->reason),
					 errdetail_internal("%s", detail)));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_TC_IN_PROGRESS),
					 errmsg("claim (\"%s\", \"%s\") is in progress", task, id),
					 errdetail_internal("%s", detail),
					 step->held_here ?
					 errhint("This transaction holds it: complete it here, or leave all of it to execute.") :
					 errhint("Try again with the same key.")));
	}
}

/*
 * tool_claims.execute(task_id text, tool_call_id text, tool_name text,
 *					   input canonical_json, handler regprocedure,
 *					   operation_id text, wait interval, tool_server text)
 *		returns json
 *
 * Claims, runs handler(input) as the calling role, and completes, all in this
 * transaction.  Returns the stored result, whoever did the work.
 */
Datum
tc_execute(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_CLAIM};
	ClaimCall	completion = {.verb = VERB_COMPLETE};
	ClaimStep	step;
	Oid			handler;
	Oid			result_type;
	int64		wait;
	const text *result;

	verb_enter("tool_claims.execute()");
	call.key = argument_key(fcinfo);
	call.tool_name = argument_tool(fcinfo, 2, "tool_name", KEY_TEXT_FILLED);
	call.input = argument_input(fcinfo, 3);
	require_argument(fcinfo, 4, "handler");
	handler = PG_GETARG_OID(4);
	call.operation_id = argument_key_text(fcinfo, 5, "operation_id",
										  KEY_TEXT_NULLABLE);
	wait = argument_wait(fcinfo, 6);
	call.tool_server = argument_tool(fcinfo, 7, "tool_server",
									 KEY_TEXT_MAY_BE_EMPTY);
	call.not_after = CLAIM_NO_TIME;
	call.dispatched = true;
	call.executing = true;
	result_type = check_handler(handler);
	canonical_json_digest(call.input, &call.input_digest);
	claim_caller(&call);

	claim_acquire(&call, wait, &step);
	if (step.outcome == OUTCOME_COMPLETED)
	{
		if (step.answer->result == NULL)
			PG_RETURN_NULL();
		PG_RETURN_TEXT_P(step.answer->result);
	}
	if (step.outcome != OUTCOME_ACQUIRED)
		raise_outcome(&step, &call);

	/* the caller is who entered the verb, whatever the handler does */
	claim_caller(&completion);
	result = run_handler(handler, result_type, &call);

	completion.key = call.key;
	completion.has_attempt = true;
	completion.attempt = step.next.attempt;
	completion.result = result;
	claim_change(&completion, &step);
	if (result == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}

/*
 * The stored record of the claim under which the transaction acts, where it
 * is the session's organization's.
 */
static bool
read_current(ClaimRecord *record)
{
	const char *organization = settings_verb_organization();
	const HeldClaim *current = at_commit_current();

	return current != NULL &&
		strcmp(current->key.organization, organization) == 0 &&
		store_read(&current->key, record);
}

/* tool_claims.current_claim() returns setof claim_status */
Datum
tc_current_claim(PG_FUNCTION_ARGS)
{
	ClaimRecord record;

	claim_status_set(fcinfo, read_current(&record) ? list_make1(&record) : NIL);
	return (Datum) 0;
}

/*
 * tool_claims.require_claim(tool_name text, tool_server text)
 *		returns claim_status
 *
 * Raises unless the transaction acts under a claim of this tool.
 */
Datum
tc_require_claim(PG_FUNCTION_ARGS)
{
	const char *tool_name = argument_tool(fcinfo, 0, "tool_name",
										  KEY_TEXT_FILLED);
	const char *tool_server = argument_tool(fcinfo, 1, "tool_server",
											KEY_TEXT_MAY_BE_EMPTY);
	ClaimRecord record;

	if (!read_current(&record) ||
		strcmp(record.tool_name, tool_name) != 0 ||
		strcmp(record.tool_server, tool_server) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_TC_REFUSED),
				 errmsg("no claim of tool \"%s\" of server \"%s\" in this transaction",
						tool_name, tool_server),
				 at_commit_current() == NULL ?
				 errdetail("The transaction acts under no claim.") :
				 errdetail("The transaction acts under task \"%s\", call \"%s\", tool \"%s\" of server \"%s\".",
						   at_commit_current()->key.task_id,
						   at_commit_current()->key.tool_call_id,
						   at_commit_current()->tool_name,
						   at_commit_current()->tool_server),
				 errhint("Act through tool_claims.execute, or claim or assert_claim in the same transaction.")));
	return claim_status_datum(fcinfo, &record);
}
