/*
 * claim_flow.c
 *
 * How a call becomes a change.  A verb on an existing record locks it, asks
 * claim_decide(), and stores what comes of it.  To acquire never blocks: it
 * looks, decides, and only where the decision is to change something takes the
 * lock (skipping a locked row) and decides again on what it then sees.
 *
 * Operations: an operation belongs to one pair.  It changes hands only under
 * the lock of the record of the pair that has it, the same lock under which
 * that pair would acquire again, so two takers and the owner exclude each
 * other.  Row locks that acquiring takes are all skipping ones: two keys are
 * never waited for.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"

#include "at_commit.h"
#include "claim_flow.h"
#include "clock.h"
#include "errors.h"
#include "event_log.h"
#include "policy.h"
#include "recovery.h"
#include "registered_function.h"
#include "settings.h"
#include "store.h"
#include "wait.h"

/* how often a lost race for a new key is looked at again without a nap */
#define MAX_RACES	3

typedef enum StoreResult
{
	STORED,
	STORED_NOTHING,				/* the step is an answer after all */
	LOST_RACE,					/* look again */
	ROW_BUSY					/* an open transaction has it */
} StoreResult;

/* the client's address, NULL over a socket; the same for the whole session */
static const char *
client_address(void)
{
	static bool known = false;
	static const char *address = NULL;

	LOCAL_FCINFO(call, 0);

	if (!known)
	{
		Datum		result;

		InitFunctionCallInfoData(*call, NULL, 0, InvalidOid, NULL, NULL);
		result = inet_client_addr(call);
		if (!call->isnull)
			address = MemoryContextStrdup(TopMemoryContext,
										  DatumGetCString(DirectFunctionCall1(inet_out, result)));
		known = true;
	}
	return address;
}

/* who calls: read once, before any switch of role */
void
claim_caller(ClaimCall *call)
{
	const char *address = client_address();
	const char *name = application_name != NULL ? application_name : "";

	call->role_oid = GetUserId();
	call->role = GetUserNameFromId(call->role_oid, false);
	call->session_role = GetSessionUserId() == GetUserId() ? NULL :
		GetUserNameFromId(GetSessionUserId(), false);
	if (name[0] != '\0' && address != NULL)
		call->from = psprintf("%s, %s", name, address);
	else if (name[0] != '\0')
		call->from = pstrdup(name);
	else
		call->from = address;
}

/* what the caller is to a record that he wants to change */
static void
compare_caller(ClaimCall *call, const ClaimRecord *record)
{
	Oid			holder = get_role_oid(record->held_role, true);

	call->held_here = at_commit_holds(record);
	call->is_holder = OidIsValid(holder) ?
		is_member_of_role(call->role_oid, holder) :
		superuser_arg(call->role_oid);
	if (strcmp(record->held_role, call->role) == 0)
		call->is_reconciler = false;
}

/* ----- events ----- */

static const char *
quoted_digest(const Sha256Digest *digest)
{
	char		hex[SHA256_HEX_BYTES + 1];

	sha256_to_hex(digest, hex);
	return psprintf("\"%s\"", hex);
}

static const char *
json_bytes_digest(const text *json)
{
	Sha256Digest digest;

	if (json == NULL)
		return NULL;
	sha256_compute(VARDATA_ANY(json), VARSIZE_ANY_EXHDR(json), &digest);
	return quoted_digest(&digest);
}

static const char *
text_of(const text *json)
{
	return json != NULL ? text_to_cstring(json) : NULL;
}

/*
 * What an event tells.  JSON from outside stands in it as a string that holds
 * its text; input never stands in it, only its digest.
 */
static const char *
event_detail(const ClaimCall *call, const ClaimEvent *event)
{
	StringInfoData detail;
	bool		expiry = event->reason != NULL &&
		strcmp(event->reason, "lease_expired") == 0;

	detail_begin(&detail);
	detail_text(&detail, "reason", event->reason);
	if (expiry)
		return detail_end(&detail);
	switch (event->kind)
	{
		case EVENT_CONFLICT:
		case EVENT_REFUSED:
			if (call->verb != VERB_CLAIM)
				break;
			detail_text(&detail, "tool_server", call->tool_server);
			detail_text(&detail, "tool_name", call->tool_name);
			detail_json(&detail, "input_digest",
						quoted_digest(&call->input_digest));
			detail_text(&detail, "operation_id", call->operation_id);
			detail_text(&detail, "message",
						call->facts.known ? call->facts.check_message : NULL);
			break;
		case EVENT_ACQUIRED:
			detail_text(&detail, "operation_id", call->operation_id);
			break;
		case EVENT_DISPATCHED:
			detail_text(&detail, "external_ref", call->external_ref);
			break;
		case EVENT_COMPLETED:
			detail_json(&detail, "result_digest",
						json_bytes_digest(call->result));
			break;
		case EVENT_FAILED:
			detail_json(&detail, "error_digest",
						json_bytes_digest(call->error));
			break;
		case EVENT_RELEASED:
		case EVENT_UNCERTAIN:
			detail_text(&detail, "text", call->reason);
			if (call->new_effect_key)
				detail_json(&detail, "new_effect_key", "true");
			break;
		case EVENT_RECONCILED:
			{
				static const char *const findings[] = {
					[FINDING_OCCURRED] = "occurred",
					[FINDING_NOT_OCCURRED] = "not_occurred",
					[FINDING_ABANDONED] = "abandoned",
					[FINDING_COMPENSATED] = "compensated"
				};

				detail_text(&detail, "finding", findings[call->finding]);
				detail_text(&detail, "evidence", call->evidence);
				detail_json(&detail, "result_digest",
							json_bytes_digest(call->result));
				detail_json(&detail, "error_digest",
							json_bytes_digest(call->error));
				if (call->new_effect_key)
					detail_json(&detail, "new_effect_key", "true");
				break;
			}
		case EVENT_LATE_REPORT:
			detail_text(&detail, "result", text_of(call->result));
			break;
		default:
			break;
	}
	return detail_end(&detail);
}

/*
 * Prepares the step's events and has the next record name the newest one.
 * key is the pair under which they stand.
 */
static EventRow *
prepare_events(const ClaimCall *call, const ClaimKey *key, ClaimStep *step)
{
	EventRow   *rows = palloc0(lengthof(step->events) * sizeof(EventRow));

	for (int i = 0; i < step->nevents; i++)
		event_log_prepare(&rows[i], key, step->events[i].kind,
						  step->events[i].attempt,
						  NULL, event_detail(call, &step->events[i]),
						  i > 0 ? &rows[i - 1] : NULL);
	if (step->kind == STEP_CHANGE && step->nevents > 0)
		step->next.evidence_head = &rows[step->nevents - 1].hash;
	return rows;
}

static void
write_events(const EventRow *rows, int count)
{
	for (int i = 0; i < count; i++)
		event_log_write(&rows[i]);
}

/* writes down that an attempt has ended; the record is locked */
void
claim_write_expiry(const ClaimRecord *stored, const ClaimRecord *now)
{
	ClaimRecord next = *now;
	StringInfoData detail;
	EventRow	row;

	detail_begin(&detail);
	detail_text(&detail, "reason", "lease_expired");
	event_log_prepare(&row, &stored->key,
					  now->state == CLAIM_RELEASED ? EVENT_RELEASED :
					  EVENT_UNCERTAIN,
					  stored->attempt, NULL, detail_end(&detail), NULL);
	event_log_write(&row);
	next.evidence_head = &row.hash;
	store_update(&next);
}

/*
 * After a recovery: the attempt in progress may have been acted on, or ended,
 * in what was lost.  It becomes uncertain, as if a reconciler had marked it.
 */
void
claim_write_recovered(const ClaimKey *key)
{
	ClaimRecord next;
	StringInfoData detail;
	EventRow	row;
	StoreLock	lock;

	do
	{
		CHECK_FOR_INTERRUPTS();
		lock = store_lock(key, STORE_WAIT, &next);
	} while (lock == STORE_BUSY);
	if (lock == STORE_GONE || next.state != CLAIM_CLAIMED || !next.leased)
		return;
	detail_begin(&detail);
	detail_text(&detail, "reason", "recovery");
	event_log_prepare(&row, key, EVENT_UNCERTAIN, next.attempt, NULL,
					  detail_end(&detail), NULL);
	event_log_write(&row);
	next.state = CLAIM_UNCERTAIN;
	next.ended_by = ENDING_MARKED;
	next.request_id = NULL;
	next.evidence_head = &row.hash;
	store_update(&next);
}

/* tells the transaction what it holds now; before is the attempt before */
static void
note_change(const ClaimCall *call, int32 before, const ClaimRecord *next)
{
	switch (next->state)
	{
		case CLAIM_CLAIMED:
			/* an attempt whose answer was lost is not of this transaction */
			if (call->verb == VERB_CLAIM && next->attempt != before)
				at_commit_acquired(next);
			break;
		case CLAIM_UNCERTAIN:
			break;
		default:
			at_commit_final(next);
	}
}

/* ----- errors ----- */

static const char *
caller_detail(const ClaimStep *step, const ClaimCall *call)
{
	const ClaimRecord *record = step->answer;

	if ((record == NULL || record->tool_name == NULL) && call->tool_name != NULL)
		return psprintf("Task \"%s\", call \"%s\", tool \"%s\" of server \"%s\", no record yet.",
						call->key.task_id, call->key.tool_call_id,
						call->tool_name, call->tool_server);
	if (record == NULL || record->tool_name == NULL)
		return psprintf("Task \"%s\", call \"%s\": no record in organization \"%s\".",
						call->key.task_id, call->key.tool_call_id,
						call->key.organization);
	return psprintf("Task \"%s\", call \"%s\", tool \"%s\" of server \"%s\", state %s, attempt %d.",
					call->key.task_id, call->key.tool_call_id,
					record->tool_name, record->tool_server,
					claim_state_name(record->state), record->attempt);
}

/* raises the error of a step; the detail never has input, result or secret */
void
claim_raise(const ClaimStep *step, const ClaimCall *call)
{
	static const char *const verbs[] = {
		[VERB_CLAIM] = "claim",
		[VERB_DISPATCH] = "dispatch",
		[VERB_RENEW] = "renew",
		[VERB_COMPLETE] = "complete",
		[VERB_FAIL] = "fail",
		[VERB_RELEASE] = "release",
		[VERB_MARK_UNCERTAIN] = "mark_uncertain",
		[VERB_REPORT_LATE] = "report_late",
		[VERB_RECONCILE] = "reconcile",
		[VERB_ASSERT] = "assert_claim"
	};
	const char *task = call->key.task_id;
	const char *id = call->key.tool_call_id;
	const char *hint = step->hint;
	int			code = ERRCODE_INTERNAL_ERROR;
	const char *message = NULL;

	switch (step->error)
	{
		case CLAIM_OK:
			elog(ERROR, "no error to raise");
			break;
		case CLAIM_NO_SUCH_RECORD:
			ereport(ERROR,
					(errcode(ERRCODE_TC_NO_SUCH_RECORD),
					 errmsg("claim (\"%s\", \"%s\") does not exist", task, id),
					 errdetail_internal("%s", caller_detail(step, call)),
					 errhint("Claim it first, and commit where the verb runs in another transaction.")));
			break;
		case CLAIM_STALE_ATTEMPT:
			code = ERRCODE_TC_STALE_ATTEMPT;
			message = "attempt of claim (\"%s\", \"%s\") is stale";
			if (hint == NULL)
				hint = "The authority has gone on: do not act, report what is known with report_late.";
			break;
		case CLAIM_NOT_THE_HOLDER:
			code = ERRCODE_INSUFFICIENT_PRIVILEGE;
			message = "permission denied for claim (\"%s\", \"%s\")";
			hint = "Its verbs are for the role that acquired it, and for members of that role.";
			break;
		case CLAIM_WRONG_STATE:
			ereport(ERROR,
					(errcode(ERRCODE_TC_WRONG_STATE),
					 errmsg("cannot %s claim (\"%s\", \"%s\") in state %s",
							verbs[call->verb], task, id,
							claim_state_name(step->answer->state)),
					 errdetail_internal("%s", caller_detail(step, call)),
					 hint != NULL ? errhint("%s", hint) : 0));
			break;
		case CLAIM_OTHER_RESULT:
			code = ERRCODE_TC_OTHER_RESULT;
			message = "claim (\"%s\", \"%s\") has another result already";
			hint = "Use the stored one.";
			break;
		case CLAIM_WRONG_SHAPE:
			code = ERRCODE_INVALID_PARAMETER_VALUE;
			message = "claim (\"%s\", \"%s\") is held in the other way";
			break;
		case CLAIM_WRONG_EFFECT:
			code = ERRCODE_INVALID_PARAMETER_VALUE;
			message = "claim (\"%s\", \"%s\") does not fit the effect of its tool";
			break;
		case CLAIM_RECOVERY_PENDING:
			code = ERRCODE_TC_RECOVERED;
			message = "claim (\"%s\", \"%s\") cannot be acquired after a recovery of the server";
			break;
		case CLAIM_OPERATION_MISSING:
			code = ERRCODE_NULL_VALUE_NOT_ALLOWED;
			message = "claim (\"%s\", \"%s\") needs an operation_id";
			break;
	}
	ereport(ERROR,
			(errcode(code),
			 errmsg_internal("%s", psprintf(message, task, id)),
			 errdetail_internal("%s", caller_detail(step, call)),
			 hint != NULL ? errhint("%s", hint) : 0));
}

/* ----- verbs on an existing record ----- */

/* two keys of one organization */
static bool
same_pair(const ClaimKey *a, const ClaimKey *b)
{
	return strcmp(a->task_id, b->task_id) == 0 &&
		strcmp(a->tool_call_id, b->tool_call_id) == 0;
}

/* whose is the record's operation?  Only what may follow another asks */
static void
find_operation(ClaimCall *call, const ClaimRecord *record)
{
	ClaimKey	owner;

	call->operation = OPERATION_FREE;
	if (record->operation_id == NULL)
		return;
	switch (store_operation_look(record, &owner))
	{
		case STORE_ABSENT:
			break;
		case STORE_UNCOMMITTED:
			call->operation = OPERATION_BUSY;
			break;
		case STORE_FOUND:
			call->operation = same_pair(&owner, &record->key) ?
				OPERATION_OWN : OPERATION_OTHER;
			break;
	}
}

/*
 * Locks a record as an UPDATE does, and reads it; false where there is none.
 * One that this very transaction has acquired is locked already: nobody else
 * can have changed it.
 */
static bool
lock_record(const ClaimKey *key, ClaimRecord *record)
{
	const HeldClaim *held = at_commit_find(key);
	StoreLock	lock;

	if (held != NULL && held->acquired)
		return store_look(key, record) == STORE_FOUND;
	do
	{
		CHECK_FOR_INTERRUPTS();
		lock = store_lock(key, STORE_WAIT, record);
	} while (lock == STORE_BUSY);
	return lock == STORE_LOCKED;
}

/*
 * A verb that changes an existing record: waits for the lock on it as an
 * UPDATE does, decides, stores.  Raises where the decision is an error.
 */
void
claim_change(ClaimCall *call, ClaimStep *step)
{
	ClaimRecord record;
	ClaimRecord *stored = NULL;
	ClaimPolicy policy = {0};
	EventRow   *events;

	if (lock_record(&call->key, &record))
	{
		stored = &record;
		compare_caller(call, stored);
		if (call->verb == VERB_RECONCILE ||
			record.state == CLAIM_RELEASED || record.reacquire)
			find_operation(call, stored);
		policy_of(call->key.organization, record.tool_server,
				  record.tool_name, &policy);
	}
	claim_decide(stored, call, &policy, clock_now(), step);
	if (step->kind == STEP_ERROR)
		claim_raise(step, call);
	events = prepare_events(call, &call->key, step);
	if (step->kind == STEP_CHANGE)
	{
		store_update(&step->next);
		note_change(call, record.attempt, &step->next);
	}
	write_events(events, step->nevents);
}

/* a verb that changes nothing and waits for nobody: report_late */
void
claim_report(ClaimCall *call, ClaimStep *step)
{
	ClaimRecord record;
	ClaimPolicy policy = {0};
	EventRow   *events;
	bool		found = store_look(&call->key, &record) == STORE_FOUND;

	claim_decide(found ? &record : NULL, call, &policy, clock_now(), step);
	if (step->kind == STEP_ERROR)
		claim_raise(step, call);
	events = prepare_events(call, &call->key, step);
	write_events(events, step->nevents);
}

/* ----- acquiring ----- */

/*
 * How many approvals the policy asks for with this input.  Groups ask for one
 * by themselves: only a rule that says 0 opens their gate.
 */
int32
claim_approvals_required(const ClaimPolicy *policy, const CanonicalJson *input)
{
	Datum		result;
	bool		isnull;

	if (policy->approval_rule == NULL)
		return Max(policy->approvals_required,
				   policy->approver_groups != NIL ? 1 : 0);
	result = registered_function_call(policy->approval_rule,
									  policy->approval_rule_role,
									  CStringGetTextDatum(canonical_json_to_cstring(input)),
									  &isnull);
	if (isnull || DatumGetInt32(result) < 0)
		ereport(ERROR,
				(errcode(isnull ? ERRCODE_NULL_VALUE_NOT_ALLOWED :
						 ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("approval rule %s did not return a number of approvals",
						policy->approval_rule)));
	return DatumGetInt32(result);
}

/*
 * Finds out what acquiring needs to know: the gate, which a pair with a
 * proposal passes by reserve only, and the policy's functions.  They run
 * before anything is locked.
 */
static void
find_facts(ClaimCall *call, const ClaimPolicy *policy)
{
	StoreLook	proposal = call->reserving ? STORE_ABSENT :
		store_proposal_look(&call->key);

	call->facts.changes = call->policy_changes;
	call->facts.proposal_open = proposal == STORE_UNCOMMITTED;
	call->facts.approval_required = !call->reserving &&
		(proposal == STORE_FOUND ||
		 claim_approvals_required(policy, call->input) > 0);
	call->facts.check_message = NULL;
	if (!call->facts.approval_required && policy->input_check != NULL)
	{
		bool		isnull;
		Datum		result;

		result = registered_function_call(policy->input_check,
										  policy->input_check_role,
										  CStringGetTextDatum(canonical_json_to_cstring(call->input)),
										  &isnull);
		if (!isnull)
			call->facts.check_message = TextDatumGetCString(result);
	}
	call->facts.known = true;
}

/*
 * A new look wants new facts.  But a reservation goes by the one input and the
 * one policy that were approved: what the policy's functions said of them
 * holds for all its looks, until a policy changes.
 */
static void
forget_facts(ClaimCall *call)
{
	if (!call->reserving || call->facts.check_message != NULL ||
		call->facts.changes != policy_changes())
		call->facts.known = false;
}

/* the record that the call would make, as far as operations are looked up */
static ClaimRecord
asked_operation(const ClaimCall *call)
{
	ClaimRecord asked;

	memset(&asked, 0, sizeof(asked));
	asked.key = call->key;
	asked.tool_server = call->tool_server;
	asked.tool_name = call->tool_name;
	asked.operation_id = call->operation_id;
	return asked;
}

/*
 * Finds out whose the operation is, with its record where that is another
 * pair's.  Returns false where the two rows do not fit: look again.
 */
static bool
load_operation(ClaimCall *call, ClaimRecord *owner_record)
{
	ClaimRecord asked = asked_operation(call);
	ClaimKey	owner;

	call->operation = OPERATION_FREE;
	call->operation_record = NULL;
	if (call->operation_id == NULL)
		return true;
	switch (store_operation_look(&asked, &owner))
	{
		case STORE_ABSENT:
			return true;
		case STORE_UNCOMMITTED:
			call->operation = OPERATION_BUSY;
			return true;
		case STORE_FOUND:
			break;
	}
	if (same_pair(&owner, &call->key))
	{
		call->operation = OPERATION_OWN;
		return true;
	}
	if (store_look(&owner, owner_record) != STORE_FOUND)
		return false;
	call->operation = OPERATION_OTHER;
	call->operation_record = owner_record;
	call->operation_held_here = at_commit_holds(owner_record);
	return true;
}

/* decides, with the facts found out where the decision asks for them */
static void
decide_acquisition(const ClaimRecord *stored, ClaimCall *call,
				   const ClaimPolicy *policy, ClaimStep *step)
{
	call->held_here = stored != NULL && at_commit_holds(stored);
	call->recovery_pending = settings_stop_after_recovery() &&
		recovery_pending();
	claim_decide(stored, call, policy, clock_now(), step);
	if (step->kind == STEP_NEEDS_FACTS)
	{
		find_facts(call, policy);
		claim_decide(stored, call, policy, clock_now(), step);
	}
}

/*
 * Makes the operation the pair's own.  Where another pair has it, that pair's
 * record is locked and everything decided again on what it then says.
 */
static StoreResult
take_operation(const ClaimRecord *stored, ClaimCall *call,
			   const ClaimPolicy *policy, ClaimStep *step)
{
	ClaimRecord asked = asked_operation(call);
	ClaimRecord locked;
	ClaimKey	owner;

	switch (call->operation)
	{
		case OPERATION_FREE:
			if (call->operation_id == NULL)
				return STORED;
			return store_operation_insert(&asked) ? STORED : LOST_RACE;
		case OPERATION_OWN:
			if (store_operation_look(&asked, &owner) != STORE_FOUND ||
				!same_pair(&owner, &call->key))
				return LOST_RACE;
			return STORED;
		case OPERATION_BUSY:
			return ROW_BUSY;
		case OPERATION_OTHER:
			break;
	}

	switch (store_lock(&call->operation_record->key, STORE_SKIP, &locked))
	{
		case STORE_BUSY:
			return ROW_BUSY;
		case STORE_GONE:
			return LOST_RACE;
		case STORE_LOCKED:
			break;
	}
	if (store_operation_look(&asked, &owner) != STORE_FOUND ||
		!same_pair(&owner, &locked.key))
		return LOST_RACE;
	call->operation_record = memcpy(palloc(sizeof(locked)), &locked,
									sizeof(locked));
	call->operation_held_here = at_commit_holds(&locked);
	decide_acquisition(stored, call, policy, step);
	if (step->kind != STEP_CHANGE)
		return STORED_NOTHING;
	if (step->owner_expired)
		claim_write_expiry(&locked, &step->owner_now);
	store_operation_move(&asked);
	return STORED;
}

/* stores an acquisition of a pair that has no record */
static StoreResult
store_new(ClaimCall *call, const ClaimPolicy *policy, ClaimStep *step)
{
	EventRow   *events = prepare_events(call, &call->key, step);
	int			nevents = step->nevents;
	StoreResult result;

	if (!store_insert(&step->next))
		return LOST_RACE;
	/* a proposal that came first, or sees this record and gives way */
	if (!call->reserving && store_proposal_look(&call->key) != STORE_ABSENT)
		result = LOST_RACE;
	else
		result = take_operation(NULL, call, policy, step);
	if (result != STORED)
	{
		store_delete(&call->key);
		return result;
	}
	if (call->operation == OPERATION_OTHER)
	{
		/* decided anew under the lock: say what was decided then */
		events = prepare_events(call, &call->key, step);
		nevents = step->nevents;
		store_update(&step->next);
	}
	write_events(events, nevents);
	return STORED;
}

/* stores a change of a record that exists, decided anew under its lock */
static StoreResult
store_existing(ClaimCall *call, const ClaimPolicy *policy, ClaimStep *step)
{
	ClaimRecord *locked = palloc(sizeof(ClaimRecord));
	EventRow   *events;
	StoreResult result;

	switch (store_lock(&call->key, STORE_SKIP, locked))
	{
		case STORE_BUSY:
			return ROW_BUSY;
		case STORE_GONE:
			return LOST_RACE;
		case STORE_LOCKED:
			break;
	}
	decide_acquisition(locked, call, policy, step);
	if (step->kind != STEP_CHANGE)
		return STORED_NOTHING;
	if (step->next.attempt != locked->attempt)
	{
		result = take_operation(locked, call, policy, step);
		if (result != STORED)
			return result;
	}
	events = prepare_events(call, &call->key, step);
	store_update(&step->next);
	write_events(events, step->nevents);
	return STORED;
}

static void
answer_busy(ClaimStep *step, const ClaimRecord *holder, const char *reason)
{
	ClaimRecord *who = palloc0(sizeof(ClaimRecord));

	if (holder != NULL)
	{
		who->held_role = holder->held_role;
		who->held_session = holder->held_session;
		who->held_from = holder->held_from;
	}
	memset(step, 0, sizeof(*step));
	step->kind = STEP_ANSWER;
	step->outcome = OUTCOME_IN_PROGRESS;
	step->reason = reason;
	step->answer = who;
	step->open_transaction = true;
}

/* have the policy's functions run so long that it is another one by now? */
static bool
policy_has_changed(const ClaimCall *call, const ClaimPolicy *policy)
{
	ClaimPolicy now;

	if (policy->approval_rule == NULL && policy->input_check == NULL)
		return false;
	AcceptInvalidationMessages();
	policy_of(call->key.organization, call->tool_server, call->tool_name,
			  &now);
	return !policy_equal(policy, &now);
}

/* one look, without waiting: fills the step */
static void
try_acquire(ClaimCall *call, ClaimStep *step)
{
	for (int race = 0; race < MAX_RACES; race++)
	{
		ClaimRecord *stored = palloc(sizeof(ClaimRecord));
		ClaimRecord *owner = palloc(sizeof(ClaimRecord));
		ClaimPolicy policy;
		StoreLook	look;
		StoreResult result;

		CHECK_FOR_INTERRUPTS();
		AcceptInvalidationMessages();
		call->policy_changes = policy_changes();
		policy_of(call->key.organization, call->tool_server, call->tool_name,
				  &policy);
		look = store_look(&call->key, stored);
		if (look == STORE_UNCOMMITTED)
		{
			answer_busy(step, stored, NULL);
			return;
		}
		if (look == STORE_ABSENT)
			stored = NULL;
		if (!load_operation(call, owner))
			continue;
		forget_facts(call);
		decide_acquisition(stored, call, &policy, step);
		if (step->kind == STEP_CHANGE)
		{
			if (policy_has_changed(call, &policy))
				continue;

			result = stored == NULL ? store_new(call, &policy, step) :
				store_existing(call, &policy, step);
			if (result == STORED)
			{
				note_change(call, stored != NULL ? step->now.attempt : 0,
							&step->next);
				return;
			}
			if (result == LOST_RACE)
				continue;
			if (result == ROW_BUSY)
			{
				answer_busy(step, NULL, call->operation == OPERATION_OTHER ?
							"operation" : NULL);
				return;
			}
		}
		if (step->kind == STEP_ERROR)
			claim_raise(step, call);
		write_events(prepare_events(call, &call->key, step), step->nevents);
		return;
	}
	answer_busy(step, NULL, NULL);
}

/*
 * What acquiring would come to at this moment, without changing anything: a
 * STEP_CHANGE where it would succeed.
 */
void
claim_peek(ClaimCall *call, ClaimStep *step)
{
	ClaimRecord *stored = palloc(sizeof(ClaimRecord));
	ClaimRecord *owner = palloc(sizeof(ClaimRecord));
	ClaimPolicy policy;
	StoreLook	look;

	call->policy_changes = policy_changes();
	policy_of(call->key.organization, call->tool_server, call->tool_name,
			  &policy);
	look = store_look(&call->key, stored);
	if (look == STORE_UNCOMMITTED || !load_operation(call, owner))
	{
		answer_busy(step, look == STORE_UNCOMMITTED ? stored : NULL, NULL);
		return;
	}
	forget_facts(call);
	decide_acquisition(look == STORE_FOUND ? stored : NULL, call, &policy,
					   step);
	if (step->kind == STEP_ERROR)
		claim_raise(step, call);
}

/* writes the events of an answer that claim_peek gave */
void
claim_write_answer(ClaimCall *call, ClaimStep *step)
{
	write_events(prepare_events(call, &call->key, step), step->nevents);
}

/*
 * Acquires the claim, or says why not, waiting for another holder no longer
 * than wait.  Never blocks otherwise.
 */
void
claim_acquire(ClaimCall *call, int64 wait_budget, ClaimStep *step)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "tool_claims look",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	Wait		wait;

	wait_begin(&wait, wait_budget);
	for (;;)
	{
		try_acquire(call, step);
		if (step->outcome != OUTCOME_IN_PROGRESS || step->held_here ||
			!wait_nap(&wait))
			break;
		MemoryContextReset(context);
	}
	/* the step points into this context, which goes with the caller's */
	MemoryContextSwitchTo(caller);
}
