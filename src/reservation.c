/*
 * reservation.c
 *
 * From an approved proposal to the claim: once, for one execution.
 *
 * A reservation first looks without locks, and waits there where it has to
 * wait, also for a transaction that is just changing what it rests on: a
 * waiting reservation must not stand in the way of a revocation.  When it
 * would be granted it locks the proposal, the registrations of those who voted
 * and the policy's row, all skipping what somebody is just changing, decides
 * again on what it then reads, and acquires the claim in the same transaction.
 * Once granted, the verbs of claims take over.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

#include "arguments.h"
#include "claim_flow.h"
#include "claim_rows.h"
#include "clock.h"
#include "event_log.h"
#include "policy.h"
#include "proposal_flow.h"
#include "proposal_store.h"
#include "wait.h"

PG_FUNCTION_INFO_V1(tc_reserve);
PG_FUNCTION_INFO_V1(tc_reserve_by_digest);

static void
answer_refused(ClaimStep *step, const char *reason)
{
	memset(step, 0, sizeof(*step));
	step->kind = STEP_ANSWER;
	step->outcome = OUTCOME_REFUSED;
	step->reason = reason;
}

static void
answer_busy(ClaimStep *step)
{
	memset(step, 0, sizeof(*step));
	step->kind = STEP_ANSWER;
	step->outcome = OUTCOME_IN_PROGRESS;
	step->answer = palloc0(sizeof(ClaimRecord));
	step->open_transaction = true;
}

static void
refuse(const ClaimKey *key, ClaimStep *step, const char *reason)
{
	answer_refused(step, reason);
	proposal_refused_event(key, "reserve", reason, NULL);
}

/*
 * The claim that goes with a proposal.  Where the input is given it is the
 * approved one, and is used as given: the stored one may be redacted.
 */
static void
claim_of_proposal(const ProposalRecord *record, const ProposalCall *asked,
				  ClaimCall *call)
{
	call->tool_server = record->bound.tool_server;
	call->tool_name = record->bound.tool_name;
	call->input = asked->by_digest ? record->bound.input : asked->bound.input;
	call->input_digest = record->bound.input_digest;
	call->operation_id = record->bound.operation_id;
}

/* decides once more under lock, and acquires; the step says what came of it */
static void
grant(ClaimCall *call, ProposalCall *asked, ClaimStep *step)
{
	ProposalRecord record;
	ProposalStep proposal;
	StringInfoData detail;
	TimestampTz now;

	switch (proposal_lock(&call->key, STORE_SKIP, &record))
	{
		case STORE_BUSY:
			answer_busy(step);
			return;
		case STORE_GONE:
			refuse(&call->key, step, "not_found");
			return;
		case STORE_LOCKED:
			break;
	}
	if (!proposal_gather(&record, asked, true, STORE_SKIP))
	{
		answer_busy(step);
		return;
	}
	now = clock_now();
	proposal_decide(&record, asked, now, &proposal);
	if (proposal.refusal != NULL)
	{
		proposal_write_expiry(&record, now);
		refuse(&call->key, step, proposal.refusal);
		return;
	}
	claim_of_proposal(&record, asked, call);
	claim_acquire(call, 0, step);
	if (step->outcome != OUTCOME_ACQUIRED || !proposal.changes)
		return;

	detail_begin(&detail);
	detail_text(&detail, "execution_id",
				DatumGetCString(DirectFunctionCall1(uuid_out,
													UUIDPGetDatum(record.bound.execution_id))));
	detail_json(&detail, "attempt", psprintf("%d", step->next.attempt));
	proposal_event(&call->key, EVENT_RESERVED, NULL, detail_end(&detail),
				   &proposal.next);
	proposal_update(&proposal.next);
}

/*
 * One look, without waiting.  A claim that would not be acquired is answered
 * as it is; the approval stays unused then.
 */
static void
try_reserve(ClaimCall *call, ProposalCall *asked, ClaimStep *step)
{
	ProposalRecord record;
	ProposalStep proposal;

	AcceptInvalidationMessages();
	if (!proposal_look(&call->key, &record))
	{
		refuse(&call->key, step, "not_found");
		return;
	}
	(void) proposal_gather(&record, asked, false, STORE_SKIP);
	proposal_decide(&record, asked, clock_now(), &proposal);
	if (proposal.refusal != NULL && !proposal.again)
	{
		refuse(&call->key, step, proposal.refusal);
		return;
	}
	claim_of_proposal(&record, asked, call);
	if (proposal.refusal != NULL)
	{
		/* it only observes: the policy's functions have nothing to say */
		memset(&call->facts, 0, sizeof(call->facts));
		call->facts.known = true;
		call->facts.changes = policy_changes();
	}
	claim_peek(call, step);
	if (proposal.refusal != NULL)
		call->facts.known = false;
	if (step->kind == STEP_CHANGE && step->outcome == OUTCOME_ACQUIRED &&
		step->reason != NULL && strcmp(step->reason, "already_held") == 0)
	{
		/* its answer was lost; if it has ended since, this grants nothing */
		call->only_held = true;
		claim_acquire(call, 0, step);
		call->only_held = false;
	}
	else if (step->kind == STEP_CHANGE && proposal.refusal != NULL)
		refuse(&call->key, step, proposal.refusal);
	else if (step->kind == STEP_CHANGE && proposal_is_changing(&record))
		answer_busy(step);
	else if (step->kind == STEP_CHANGE)
		grant(call, asked, step);
	else
		claim_write_answer(call, step);
}

static void
reserve(ClaimCall *call, ProposalCall *asked, int64 budget, ClaimStep *step)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "tool_claims reservation",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller;
	Wait		wait;

	call->reserving = true;
	claim_caller(call);
	asked->principal = GetUserNameFromId(GetSessionUserId(), false);
	caller = MemoryContextSwitchTo(context);
	wait_begin(&wait, budget);
	for (;;)
	{
		try_reserve(call, asked, step);
		if (step->outcome != OUTCOME_IN_PROGRESS || step->held_here ||
			!wait_nap(&wait))
			break;
		MemoryContextReset(context);
	}
	/* the step points into this context, which goes with the caller's */
	MemoryContextSwitchTo(caller);
}

/* what both forms are given alike, from argument n on */
static int64
claim_arguments(FunctionCallInfo fcinfo, int n, ClaimCall *call)
{
	int64		wait;

	call->leased = !PG_ARGISNULL(n);
	if (call->leased)
		call->lease = argument_lease(fcinfo, n);
	wait = argument_wait(fcinfo, n + 1);
	call->request_id = argument_execution_id(fcinfo, n + 2);
	require_argument(fcinfo, n + 3, "dispatched");
	call->dispatched = PG_GETARG_BOOL(n + 3);
	call->not_after = CLAIM_NO_TIME;
	if (!call->dispatched && !call->leased)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"dispatched\" must not be false without a lease"),
				 errhint("Pass lease, or leave dispatched out.")));
	return wait;
}

/*
 * tool_claims.reserve(task_id text, tool_call_id text, execution_id uuid,
 *					   tool_name text, input canonical_json, actor text,
 *					   project text, tool_server text, schema_version text,
 *					   policy_version text, operation_id text,
 *					   lease interval, wait interval, request_id uuid,
 *					   dispatched boolean) returns claim_result
 *
 * Acquires the claim of an approved proposal, for exactly what was approved.
 */
Datum
tc_reserve(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_CLAIM};
	ProposalCall asked = {.verb = PROPOSAL_RESERVE};
	ClaimStep	step;
	int64		wait;

	verb_enter("tool_claims.reserve()");
	call.key = argument_key(fcinfo);
	require_argument(fcinfo, 2, "execution_id");
	argument_binding(fcinfo, 3, &asked.bound);
	asked.bound.execution_id = argument_execution_id(fcinfo, 2);
	wait = claim_arguments(fcinfo, 11, &call);
	reserve(&call, &asked, wait, &step);
	return claim_result_datum(fcinfo, &step, &call.key,
							  step.outcome == OUTCOME_ACQUIRED);
}

/*
 * tool_claims.reserve_by_digest(task_id text, tool_call_id text,
 *								 execution_id uuid,
 *								 binding_digest sha256_digest,
 *								 lease interval, wait interval,
 *								 request_id uuid, dispatched boolean)
 *		returns claim_result
 *
 * The same, bound by the digest; the approved input comes with the claim.
 */
Datum
tc_reserve_by_digest(PG_FUNCTION_ARGS)
{
	ClaimCall	call = {.verb = VERB_CLAIM};
	ProposalCall asked = {.verb = PROPOSAL_RESERVE, .by_digest = true};
	ClaimStep	step;
	int64		wait;

	verb_enter("tool_claims.reserve_by_digest()");
	call.key = argument_key(fcinfo);
	require_argument(fcinfo, 2, "execution_id");
	asked.bound.execution_id = argument_execution_id(fcinfo, 2);
	require_argument(fcinfo, 3, "binding_digest");
	asked.binding_digest = *PG_GETARG_SHA256_DIGEST(3);
	wait = claim_arguments(fcinfo, 4, &call);
	reserve(&call, &asked, wait, &step);
	step.input = call.input;
	return claim_result_datum(fcinfo, &step, &call.key,
							  step.outcome == OUTCOME_ACQUIRED);
}
