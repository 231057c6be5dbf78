/*
 * claim.c
 *
 * The state machine of a claim.  claim_decide() gets the stored record, what
 * the verb asks, the tool's policy and the time, and says what comes of it:
 * an answer, an error, or the next record with its events.  It reads no table
 * and no clock and raises nothing, so every rule about states stands here and
 * can be read, and tested, in one place.
 *
 * Strings of the step point into the record and the call.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "claim.h"
#include "compare.h"
#include "compat.h"

static void
answer(ClaimStep *step, ClaimOutcome outcome, const char *reason)
{
	step->kind = STEP_ANSWER;
	step->outcome = outcome;
	step->reason = reason;
}

static void
change(ClaimStep *step, ClaimOutcome outcome, const char *reason)
{
	step->kind = STEP_CHANGE;
	step->outcome = outcome;
	step->reason = reason;
	step->answer = &step->next;
}

static void
fault(ClaimStep *step, ClaimError error, const char *hint)
{
	step->kind = STEP_ERROR;
	step->error = error;
	step->hint = hint;
}

static void
event(ClaimStep *step, EventKind kind, int32 attempt, const char *reason)
{
	step->events[step->nevents].kind = kind;
	step->events[step->nevents].attempt = attempt;
	step->events[step->nevents].reason = reason;
	step->nevents++;
}

const char *
claim_state_name(ClaimState state)
{
	switch (state)
	{
		case CLAIM_CLAIMED:
			return "claimed";
		case CLAIM_COMPLETED:
			return "completed";
		case CLAIM_FAILED:
			return "failed";
		case CLAIM_RELEASED:
			return "released";
		case CLAIM_UNCERTAIN:
			return "uncertain";
		case CLAIM_RETIRED:
			return "retired";
		case CLAIM_NONE:
			break;
	}
	return "none";
}

/*
 * The key that a destination is to be handed.  The derived form is a digest
 * of canonical JSON, so that anybody can compute it again.  generation is 0,
 * or the attempt that ended with new_effect_key.
 */
static char *
derive_effect_key(const ClaimKey *key, int32 generation)
{
	StringInfoData framed;
	Sha256Digest digest;
	char		hex[2 * SHA256_BYTES + 1];

	initStringInfo(&framed);
	appendStringInfoString(&framed, "[\"tool_claims effect key\",");
	escape_json(&framed, key->organization);
	appendStringInfoChar(&framed, ',');
	escape_json(&framed, key->task_id);
	appendStringInfoChar(&framed, ',');
	escape_json(&framed, key->tool_call_id);
	appendStringInfo(&framed, ",%d]", generation);
	canonical_json_digest(canonical_json_parse(framed.data, framed.len),
						  &digest);
	sha256_to_hex(&digest, hex);
	return psprintf("tc1-%s", hex);
}

const char *
claim_effect_key(const ClaimRecord *record)
{
	if (record->effect_key != NULL)
		return record->effect_key;
	if (record->operation_id != NULL)
		return record->operation_id;
	return derive_effect_key(&record->key, 0);
}

/*
 * Does the record stay in a state that somebody has to end?  Such records are
 * what sweep and the view attention look through.
 */
bool
claim_is_open(const ClaimRecord *record)
{
	switch (record->state)
	{
		case CLAIM_CLAIMED:
			return record->leased;
		case CLAIM_UNCERTAIN:
		case CLAIM_RELEASED:
			return true;
		default:
			return false;
	}
}

/*
 * The record as it reads at this moment: an attempt whose lease is over has
 * ended, whether or not anybody wrote that down.  Returns true where reading
 * and stored state differ.
 */
bool
claim_as_of(const ClaimRecord *stored, TimestampTz now, ClaimRecord *record)
{
	*record = *stored;
	if (stored->state != CLAIM_CLAIMED || !stored->leased ||
		now < stored->lease_expires_at)
		return false;

	record->ended_by = ENDING_EXPIRY;
	record->request_id = NULL;
	if (stored->dispatched_at == CLAIM_NO_TIME || stored->reacquire)
	{
		record->state = CLAIM_RELEASED;
		record->finished_at = stored->lease_expires_at;
	}
	else
		record->state = CLAIM_UNCERTAIN;
	return true;
}

static bool
same_bytes(const text *a, const text *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return VARSIZE_ANY_EXHDR(a) == VARSIZE_ANY_EXHDR(b) &&
		memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

/* the first member of the identity that differs, NULL when none does */
const char *
claim_identity_conflict(const ClaimRecord *stored, const ClaimCall *call)
{
	if (strcmp(stored->tool_server, call->tool_server) != 0)
		return "tool_server";
	if (strcmp(stored->tool_name, call->tool_name) != 0)
		return "tool_name";
	if (!same_digest(&stored->input_digest, &call->input_digest))
		return "input";
	if (!same_text(stored->operation_id, call->operation_id))
		return "operation_id";
	return NULL;
}

static const char *
uncertain_reason(const ClaimRecord *record)
{
	return record->ended_by == ENDING_EXPIRY ? "lease_expired" : "reported";
}

/*
 * The answer that a record holds for everybody.  Returns false for one that
 * is free to be acquired.  reason is "operation" where another pair asks.
 */
static bool
stored_answer(const ClaimRecord *record, const char *reason, ClaimStep *step)
{
	step->answer = record;
	switch (record->state)
	{
		case CLAIM_COMPLETED:
			answer(step, OUTCOME_COMPLETED,
				   record->redacted != NULL ? "redacted" : reason);
			return true;
		case CLAIM_FAILED:
			answer(step, OUTCOME_FAILED,
				   record->redacted != NULL ? "redacted" : reason);
			return true;
		case CLAIM_RETIRED:
			answer(step, OUTCOME_REFUSED, "key_retired");
			event(step, EVENT_REFUSED, 0, "key_retired");
			return true;
		case CLAIM_CLAIMED:
			answer(step, OUTCOME_IN_PROGRESS, reason);
			return true;
		case CLAIM_UNCERTAIN:
			answer(step, OUTCOME_UNCERTAIN,
				   reason != NULL ? reason : uncertain_reason(record));
			return true;
		default:
			return false;
	}
}

/* an open transaction of somebody decides; who that is is not known */
static void
in_open_transaction(ClaimStep *step, const char *reason)
{
	static const ClaimRecord somebody = {.state = CLAIM_CLAIMED};

	step->answer = &somebody;
	step->open_transaction = true;
	answer(step, OUTCOME_IN_PROGRESS, reason);
}

/*
 * A claim of the caller's own: of this transaction, or of a call whose answer
 * was lost.  Returns false where it is somebody else's.
 */
static bool
already_held(const ClaimCall *call, TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;
	bool		lost_answer = record->leased &&
		record->request_id != NULL && call->request_id != NULL &&
		memcmp(record->request_id, call->request_id, UUID_LEN) == 0 &&
		strcmp(record->held_role, call->role) == 0;

	if (!call->held_here && !lost_answer)
		return false;
	if (call->executing)
	{
		/* execute is for one who does not hold it yet */
		step->answer = record;
		step->held_here = true;
		answer(step, OUTCOME_IN_PROGRESS, "already_held");
		return true;
	}
	if (call->leased != record->leased)
	{
		fault(step, CLAIM_WRONG_SHAPE,
			  record->leased ? "The claim is held with a lease." :
			  "The claim is held without a lease.");
		return true;
	}
	if (call->held_here)
	{
		step->answer = record;
		answer(step, OUTCOME_ACQUIRED, "already_held");
		return true;
	}
	step->next = *record;
	step->next.lease_expires_at = now + call->lease;
	change(step, OUTCOME_ACQUIRED, "already_held");
	return true;
}

static TimestampTz
earlier(TimestampTz a, TimestampTz b)
{
	if (a == CLAIM_NO_TIME)
		return b;
	if (b == CLAIM_NO_TIME)
		return a;
	return Min(a, b);
}

/* may the tool be used at all at this moment?  NULL, or the reason why not */
static const char *
refusal(const ClaimRecord *stored, TimestampTz not_after,
		const ClaimPolicy *policy, bool acquiring, TimestampTz now)
{
	if (not_after != CLAIM_NO_TIME && not_after <= now)
		return "deadline_passed";
	if (acquiring && stored != NULL && policy->max_attempts > 0 &&
		stored->attempt >= policy->max_attempts)
		return "attempts_exhausted";
	if (!policy->enabled)
		return "tool_disabled";
	return NULL;
}

/* the record of the next attempt */
static void
next_attempt(const ClaimRecord *previous, const ClaimCall *call,
			 const ClaimPolicy *policy, TimestampTz now, ClaimRecord *next)
{
	if (previous != NULL)
		*next = *previous;
	else
	{
		memset(next, 0, sizeof(*next));
		next->key = call->key;
		next->tool_server = call->tool_server;
		next->tool_name = call->tool_name;
		next->input_digest = call->input_digest;
		next->operation_id = call->operation_id;
		next->not_after = CLAIM_NO_TIME;
	}
	if (policy->keep_input)
		next->input = call->input;
	next->state = CLAIM_CLAIMED;
	next->ended_by = ENDING_NONE;
	next->attempt++;
	next->leased = call->leased;
	next->reacquire = call->leased && policy->reacquire;
	next->held_role = call->role;
	next->held_session = call->session_role;
	next->held_from = call->from;
	next->request_id = call->leased ? call->request_id : NULL;
	next->claimed_at = now;
	next->dispatched_at = call->leased && call->dispatched ? now : CLAIM_NO_TIME;
	next->lease_expires_at = call->leased ? now + call->lease : CLAIM_NO_TIME;
	next->not_after = earlier(next->not_after, call->not_after);
	next->finished_at = CLAIM_NO_TIME;
	next->open_since = call->leased ? now : CLAIM_NO_TIME;
	next->external_ref = NULL;
	next->result = NULL;
	next->error = NULL;
	next->reconciled = NULL;
	next->redacted = NULL;
}

static void
acquire(const ClaimRecord *stored, const ClaimCall *call,
		const ClaimPolicy *policy, TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *previous = stored != NULL ? &step->now : NULL;
	const ClaimRecord *ended = previous;
	const char *reason;

	if (call->only_held)
	{
		in_open_transaction(step, NULL);
		return;
	}
	if (call->recovery_pending && (call->leased || call->reserving))
	{
		fault(step, CLAIM_RECOVERY_PENDING,
			  "An administrator has to call accept_recovery first.");
		return;
	}
	if (policy->effect == 'l' && call->leased)
	{
		fault(step, CLAIM_WRONG_EFFECT,
			  "The tool's effect is local: claim it without a lease.");
		return;
	}
	if (policy->effect == 'e' && !call->leased)
	{
		fault(step, CLAIM_WRONG_EFFECT,
			  "The tool's effect is external: claim it with a lease.");
		return;
	}
	if (policy->operation_required && call->operation_id == NULL)
	{
		fault(step, CLAIM_OPERATION_MISSING,
			  "Pass operation_id, the name of the business effect.");
		return;
	}

	if (!call->facts.known)
	{
		step->kind = STEP_NEEDS_FACTS;
		return;
	}
	if (call->facts.proposal_open && !call->facts.approval_required)
	{
		in_open_transaction(step, NULL);
		return;
	}
	step->answer = previous;
	if (call->facts.approval_required)
		reason = "approval_required";
	else
		reason = refusal(previous,
						 earlier(previous ? previous->not_after : CLAIM_NO_TIME,
								 call->not_after),
						 policy, true, now);
	if (reason == NULL && call->facts.check_message != NULL)
		reason = "invalid_input";
	if (reason != NULL)
	{
		answer(step, OUTCOME_REFUSED, reason);
		event(step, EVENT_REFUSED, 0, reason);
		return;
	}

	next_attempt(previous, call, policy, now, &step->next);
	if (call->operation == OPERATION_OTHER)
	{
		ended = &step->owner_now;
		step->next.effect_key = ended->effect_key;
	}
	/*
	 * Stored where it can matter outside, so that find_claims has an index;
	 * a transactional claim without operation would pay for nothing.
	 */
	if (step->next.effect_key == NULL &&
		(call->leased || call->operation_id != NULL))
		step->next.effect_key = claim_effect_key(&step->next);
	reason = NULL;
	if (ended != NULL)
		reason = ended->ended_by == ENDING_EXPIRY ? "takeover" : "retry";
	change(step, OUTCOME_ACQUIRED, reason);
	if (reason != NULL || policy->log_all)
		event(step, EVENT_ACQUIRED, step->next.attempt, reason);
}

static void
decide_claim(const ClaimRecord *stored, const ClaimCall *call,
			 const ClaimPolicy *policy, TimestampTz now, ClaimStep *step)
{
	const char *conflict = NULL;

	if (stored != NULL)
		conflict = claim_identity_conflict(stored, call);
	if (conflict == NULL && call->operation == OPERATION_OTHER &&
		!same_digest(&call->operation_record->input_digest,
					 &call->input_digest))
	{
		conflict = "operation";
		step->answer = call->operation_record;
	}
	if (conflict != NULL)
	{
		answer(step, OUTCOME_CONFLICT, conflict);
		event(step, EVENT_CONFLICT, 0, conflict);
		return;
	}

	if (call->operation == OPERATION_BUSY)
	{
		in_open_transaction(step, "operation");
		return;
	}
	if (call->operation == OPERATION_OTHER)
	{
		step->owner_expired = claim_as_of(call->operation_record, now,
										  &step->owner_now);
		if (stored_answer(&step->owner_now, "operation", step))
		{
			step->held_here = call->operation_held_here;
			return;
		}
	}
	else if (stored != NULL)
	{
		if (step->now.state == CLAIM_CLAIMED && already_held(call, now, step))
			return;
		if (stored_answer(&step->now, NULL, step))
			return;
	}
	acquire(stored, call, policy, now, step);
}

/* ends the attempt with an answer or without one */
static void
finish(ClaimStep *step, ClaimState state, ClaimEnding ending, TimestampTz now)
{
	ClaimRecord *next = &step->next;

	*next = step->now;
	next->state = state;
	next->ended_by = ending;
	next->request_id = NULL;
	next->redacted = NULL;
	next->finished_at = state == CLAIM_UNCERTAIN ? CLAIM_NO_TIME : now;
}

static void
wrong_state(ClaimStep *step, const char *hint)
{
	fault(step, CLAIM_WRONG_STATE, hint);
}

/* complete and fail: the two verbs that leave an answer */
static void
decide_answer(const ClaimCall *call, const ClaimPolicy *policy,
			  TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;
	bool		completes = call->verb == VERB_COMPLETE;
	ClaimState	target = completes ? CLAIM_COMPLETED : CLAIM_FAILED;
	ClaimOutcome outcome = completes ? OUTCOME_COMPLETED : OUTCOME_FAILED;
	bool		late = record->state != CLAIM_CLAIMED;

	if (record->state == target)
	{
		const text *stored = completes ? record->result : record->error;
		const text *given = completes ? call->result : call->error;
		bool		same;

		if (record->redacted != NULL)
		{
			Sha256Digest digest;

			sha256_compute(given ? VARDATA_ANY(given) : "",
						   given ? VARSIZE_ANY_EXHDR(given) : 0, &digest);
			same = same_digest(record->redacted, &digest);
		}
		else
			same = same_bytes(stored, given);
		step->answer = record;
		if (same)
			answer(step, outcome, record->redacted ? "redacted" : NULL);
		else
			fault(step, CLAIM_OTHER_RESULT, NULL);
		return;
	}
	if (completes && record->leased && !call->held_here &&
		record->dispatched_at == CLAIM_NO_TIME)
	{
		wrong_state(step, "The attempt was never dispatched: call dispatch before acting.");
		return;
	}
	switch (record->state)
	{
		case CLAIM_CLAIMED:
			if (completes && record->leased && call->held_here)
			{
				wrong_state(step, "Commit the claim, act, then complete it in a transaction of its own.");
				return;
			}
			if (!record->leased && !call->held_here)
			{
				wrong_state(step, NULL);
				return;
			}
			break;
		case CLAIM_UNCERTAIN:
			break;
		case CLAIM_RELEASED:
			if (record->ended_by == ENDING_EXPIRY && record->reacquire &&
				record->dispatched_at != CLAIM_NO_TIME)
			{
				if (call->operation == OPERATION_OTHER)
				{
					fault(step, CLAIM_STALE_ATTEMPT, NULL);
					return;
				}
				break;
			}
			/* FALLTHROUGH */
		default:
			wrong_state(step, completes && record->state == CLAIM_FAILED ?
						"It has failed for good: a corrected call needs a tool_call_id of its own, and a handler of execute raises instead." :
						"Its answer is final: a corrected call needs a tool_call_id of its own.");
			return;
	}

	finish(step, target, ENDING_HOLDER, now);
	step->next.result = completes ? call->result : NULL;
	step->next.error = completes ? NULL : call->error;
	change(step, outcome, NULL);
	if (!completes || late || policy->log_all)
		event(step, completes ? EVENT_COMPLETED : EVENT_FAILED,
			  record->attempt, late ? "late" : NULL);
}

static void
decide_release(const ClaimCall *call, TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;
	const char *new_key = NULL;

	if (call->new_effect_key)
		new_key = derive_effect_key(&record->key, record->attempt);
	if (record->state == CLAIM_RELEASED)
	{
		/* a repeated release; the key tells whether it asked for the same */
		step->answer = record;
		if (record->ended_by == ENDING_EXPIRY && call->new_effect_key)
			wrong_state(step, "It has ended with its lease already, and kept its effect key.");
		else if (record->ended_by == ENDING_HOLDER &&
				 call->new_effect_key !=
				 same_text(record->effect_key,
						   derive_effect_key(&record->key, record->attempt)))
			wrong_state(step, "The attempt was released with another new_effect_key.");
		else
			answer(step, OUTCOME_RELEASED, NULL);
		return;
	}
	if (record->state != CLAIM_CLAIMED)
	{
		wrong_state(step, record->state == CLAIM_UNCERTAIN ?
					"Whether the effect happened is not known: reconcile it." :
					NULL);
		return;
	}
	finish(step, CLAIM_RELEASED, ENDING_HOLDER, now);
	if (new_key != NULL)
		step->next.effect_key = new_key;
	change(step, OUTCOME_RELEASED, NULL);
	event(step, EVENT_RELEASED, record->attempt, NULL);
}

static void
decide_renew(const ClaimCall *call, TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;

	step->answer = record;
	switch (record->state)
	{
		case CLAIM_CLAIMED:
			if (!record->leased)
			{
				fault(step, CLAIM_WRONG_SHAPE,
					  "The claim is held without a lease.");
				return;
			}
			step->next = *record;
			step->next.lease_expires_at = now + call->lease;
			step->next.request_id = NULL;
			change(step, OUTCOME_ACQUIRED, NULL);
			return;
		case CLAIM_COMPLETED:
			answer(step, OUTCOME_COMPLETED, record->redacted ? "redacted" : NULL);
			return;
		case CLAIM_FAILED:
			answer(step, OUTCOME_FAILED, record->redacted ? "redacted" : NULL);
			return;
		case CLAIM_RELEASED:
			answer(step, OUTCOME_RELEASED, NULL);
			return;
		default:
			wrong_state(step, record->state == CLAIM_UNCERTAIN ?
						"The lease is over: complete or fail it if you know, else leave it to a reconciler." :
						NULL);
	}
}

static void
decide_dispatch(const ClaimCall *call, const ClaimPolicy *policy,
				TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;
	const char *reason;

	if (record->state != CLAIM_CLAIMED || !record->leased)
	{
		wrong_state(step, record->state == CLAIM_CLAIMED ?
					"Only a claim with a lease is dispatched." : NULL);
		return;
	}
	if (call->held_here)
	{
		wrong_state(step, "Commit the claim first: only then its authority is durable.");
		return;
	}
	reason = refusal(record, record->not_after, policy, false, now);
	if (reason != NULL)
	{
		step->answer = record;
		answer(step, OUTCOME_REFUSED, reason);
		event(step, EVENT_REFUSED, record->attempt, reason);
		return;
	}
	step->next = *record;
	if (record->dispatched_at == CLAIM_NO_TIME)
		step->next.dispatched_at = now;
	if (call->external_ref != NULL)
		step->next.external_ref = call->external_ref;
	step->next.request_id = NULL;
	change(step, OUTCOME_ACQUIRED, NULL);
	event(step, EVENT_DISPATCHED, record->attempt, NULL);
}

static void
decide_mark_uncertain(const ClaimCall *call, TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;

	if (record->state != CLAIM_CLAIMED || !record->leased)
	{
		wrong_state(step, record->state == CLAIM_UNCERTAIN ?
					"It is uncertain already: nothing is left to do but to reconcile it." :
					NULL);
		return;
	}
	finish(step, CLAIM_UNCERTAIN,
		   call->is_reconciler ? ENDING_MARKED : ENDING_HOLDER, now);
	change(step, OUTCOME_UNCERTAIN, "reported");
	event(step, EVENT_UNCERTAIN, record->attempt, "reported");
}

static void
decide_reconcile(const ClaimRecord *stored, const ClaimCall *call,
				 TimestampTz now, ClaimStep *step)
{
	const ClaimRecord *record = &step->now;

	if (call->attempt != stored->attempt)
	{
		fault(step, CLAIM_STALE_ATTEMPT, NULL);
		return;
	}
	if (record->ended_by == ENDING_RECONCILED && record->reconciled != NULL &&
		same_digest(record->reconciled, &call->arguments))
	{
		step->answer = record;
		answer(step, record->state == CLAIM_COMPLETED ? OUTCOME_COMPLETED :
			   record->state == CLAIM_FAILED ? OUTCOME_FAILED :
			   OUTCOME_RELEASED, record->redacted ? "redacted" : NULL);
		return;
	}
	if (record->state != CLAIM_UNCERTAIN && record->state != CLAIM_RELEASED)
	{
		wrong_state(step, record->state == CLAIM_CLAIMED ?
					"The attempt still runs: wait for the end of its lease, or mark it uncertain." :
					"Its answer is final: a correction is a new call.");
		return;
	}
	if (call->operation == OPERATION_OTHER)
	{
		wrong_state(step, "Its operation belongs to another pair now: reconcile that one.");
		return;
	}
	if (call->finding == FINDING_NOT_OCCURRED)
	{
		if (record->state == CLAIM_RELEASED)
		{
			wrong_state(step, "The attempt is released already.");
			return;
		}
		if (record->ended_by == ENDING_MARKED &&
			now < record->lease_expires_at)
		{
			wrong_state(step, "Its holder may still act: wait for the end of the lease.");
			return;
		}
	}

	switch (call->finding)
	{
		case FINDING_OCCURRED:
			finish(step, CLAIM_COMPLETED, ENDING_RECONCILED, now);
			step->next.result = call->result;
			change(step, OUTCOME_COMPLETED, NULL);
			break;
		case FINDING_NOT_OCCURRED:
			finish(step, CLAIM_RELEASED, ENDING_RECONCILED, now);
			if (call->new_effect_key)
				step->next.effect_key = derive_effect_key(&record->key,
														  record->attempt);
			change(step, OUTCOME_RELEASED, NULL);
			break;
		case FINDING_ABANDONED:
		case FINDING_COMPENSATED:
			finish(step, CLAIM_FAILED, ENDING_RECONCILED, now);
			step->next.error = call->error;
			change(step, OUTCOME_FAILED, NULL);
			break;
	}
	step->next.reconciled = &call->arguments;
	event(step, EVENT_RECONCILED, record->attempt, NULL);
}

/* the verbs of a holder: the checks that are theirs, in the contract's order */
static void
decide_holder_verb(const ClaimRecord *stored, const ClaimCall *call,
				   const ClaimPolicy *policy, TimestampTz now, ClaimStep *step)
{
	if (call->has_attempt ? call->attempt != stored->attempt :
		!call->held_here)
	{
		fault(step, CLAIM_STALE_ATTEMPT, !call->has_attempt ?
			  "Pass attempt: it may be left out only in the transaction that acquired the claim." :
			  call->attempt > stored->attempt ?
			  "No such attempt was acquired yet: pass the number that claim returned." :
			  NULL);
		return;
	}
	if (stored->ended_by == ENDING_RECONCILED)
	{
		fault(step, CLAIM_STALE_ATTEMPT,
			  "The attempt was reconciled: report what is known with report_late.");
		return;
	}
	if (!call->is_holder &&
		!(call->verb == VERB_MARK_UNCERTAIN && call->is_reconciler))
	{
		fault(step, CLAIM_NOT_THE_HOLDER, NULL);
		return;
	}

	switch (call->verb)
	{
		case VERB_COMPLETE:
		case VERB_FAIL:
			decide_answer(call, policy, now, step);
			break;
		case VERB_RELEASE:
			decide_release(call, now, step);
			break;
		case VERB_RENEW:
			decide_renew(call, now, step);
			break;
		case VERB_DISPATCH:
			decide_dispatch(call, policy, now, step);
			break;
		case VERB_MARK_UNCERTAIN:
			decide_mark_uncertain(call, now, step);
			break;
		default:
			step->answer = &step->now;
			if (step->now.state == CLAIM_CLAIMED)
				answer(step, OUTCOME_ACQUIRED, NULL);
			else
				wrong_state(step, NULL);
	}
}

/*
 * What comes of a call.  stored is NULL where the pair has no record.  The
 * step holds everything there is to do; where it is STEP_CHANGE and the record
 * read as expired, the expiry is the first event, because the change writes
 * it down.
 */
void
claim_decide(const ClaimRecord *stored, const ClaimCall *call,
			 const ClaimPolicy *policy, TimestampTz now, ClaimStep *step)
{
	bool		expired = false;

	memset(step, 0, sizeof(*step));
	if (stored != NULL)
	{
		expired = claim_as_of(stored, now, &step->now);
		step->answer = &step->now;
	}
	else if (call->verb != VERB_CLAIM)
	{
		fault(step, CLAIM_NO_SUCH_RECORD, NULL);
		return;
	}

	switch (call->verb)
	{
		case VERB_CLAIM:
			decide_claim(stored, call, policy, now, step);
			break;
		case VERB_REPORT_LATE:
			if (call->attempt < 1 || call->attempt > stored->attempt)
				fault(step, CLAIM_STALE_ATTEMPT, NULL);
			else
			{
				answer(step, OUTCOME_ACQUIRED, NULL);
				event(step, EVENT_LATE_REPORT, call->attempt, NULL);
			}
			break;
		case VERB_RECONCILE:
			decide_reconcile(stored, call, now, step);
			break;
		default:
			decide_holder_verb(stored, call, policy, now, step);
	}

	if (step->kind != STEP_CHANGE)
		return;
	if (!claim_is_open(&step->next))
		step->next.open_since = CLAIM_NO_TIME;
	else if (step->next.open_since == CLAIM_NO_TIME)
		step->next.open_since = now;
	if (expired)
	{
		step->events[1] = step->events[0];
		step->nevents++;
		step->events[0].kind = step->now.state == CLAIM_RELEASED ?
			EVENT_RELEASED : EVENT_UNCERTAIN;
		step->events[0].attempt = stored->attempt;
		step->events[0].reason = "lease_expired";
	}
}
