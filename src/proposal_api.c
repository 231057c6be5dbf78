/*
 * proposal_api.c
 *
 * The SQL verbs of proposals and decisions.  A verb locks the proposal, then
 * the registrations of those who voted, then the policy's row, decides on what
 * it reads under these locks, and stores.  Refusals are answers, each with an
 * event, so that they stay in the evidence where the caller commits.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/json.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "claim_rows.h"
#include "clock.h"
#include "errors.h"
#include "event_log.h"
#include "policy.h"
#include "proposal_flow.h"
#include "proposal_store.h"
#include "query.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_propose);
PG_FUNCTION_INFO_V1(tc_approve);
PG_FUNCTION_INFO_V1(tc_reject);
PG_FUNCTION_INFO_V1(tc_revoke);
PG_FUNCTION_INFO_V1(tc_approve_as);
PG_FUNCTION_INFO_V1(tc_reject_as);
PG_FUNCTION_INFO_V1(tc_revoke_as);
PG_FUNCTION_INFO_V1(tc_withdraw);
PG_FUNCTION_INFO_V1(tc_add_approver);
PG_FUNCTION_INFO_V1(tc_remove_approver);

/* all of a registration is one key, which an index has to hold */
#define MAX_REGISTRATION_BYTES	2048

typedef enum ProposalOutcome
{
	PROPOSED,
	EXISTING,
	PROPOSAL_CONFLICT,
	PROPOSAL_REFUSED
} ProposalOutcome;

/* ----- propose ----- */

static int32
count_approvals(const ProposalRecord *record)
{
	return proposal_count(proposal_voters(record, false, STORE_WAIT),
						  record->allow_self_approval ? NULL :
						  record->bound.actor);
}

static const char *
claim_state_as_outcome(ClaimState state)
{
	switch (state)
	{
		case CLAIM_CLAIMED:
			return "in_progress";
		case CLAIM_COMPLETED:
			return "completed";
		case CLAIM_FAILED:
			return "failed";
		case CLAIM_RELEASED:
			return "released";
		case CLAIM_UNCERTAIN:
			return "uncertain";
		default:
			return NULL;
	}
}

/* record is NULL where there is no proposal */
static Datum
proposal_result_datum(FunctionCallInfo fcinfo, ProposalOutcome outcome,
					  const char *reason, const ProposalRecord *stored)
{
	enum
	{
		OUTCOME, REASON, STATE, BINDING_DIGEST, EXECUTION_ID, POLICY_VERSION,
		EXPIRES_AT, APPROVALS, APPROVALS_REQUIRED, EXECUTION, RESULT,
		ERROR_COLUMN, COLUMNS
	};
	static const char *const names[] = {
		[PROPOSED] = "proposed",
		[EXISTING] = "existing",
		[PROPOSAL_CONFLICT] = "conflict",
		[PROPOSAL_REFUSED] = "refused"
	};
	TupleDesc	descriptor = row_descriptor(fcinfo);
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS];
	ProposalRecord record;
	ClaimRecord stored_claim;
	ClaimRecord claim;

	memset(nulls, true, sizeof(nulls));
	values[OUTCOME] = enum_datum(TupleDescAttr(descriptor, OUTCOME)->atttypid,
								 names[outcome]);
	nulls[OUTCOME] = false;
	row_put_text(values, nulls, REASON, reason);
	if (stored != NULL && outcome != PROPOSAL_CONFLICT)
	{
		(void) proposal_as_of(stored, clock_now(), &record);
		values[STATE] = enum_datum(TupleDescAttr(descriptor, STATE)->atttypid,
								   proposal_state_name(record.state));
		nulls[STATE] = false;
		row_put_pointer(values, nulls, BINDING_DIGEST, &record.binding_digest);
		row_put_pointer(values, nulls, EXECUTION_ID, record.bound.execution_id);
		row_put_text(values, nulls, POLICY_VERSION, record.bound.policy_version);
		row_put_time(values, nulls, EXPIRES_AT, record.bound.expires_at);
		values[APPROVALS] = Int32GetDatum(count_approvals(&record));
		values[APPROVALS_REQUIRED] = Int32GetDatum(record.approvals_required);
		nulls[APPROVALS] = nulls[APPROVALS_REQUIRED] = false;
		if (record.state == PROPOSAL_RESERVED &&
			store_read(&record.key, &stored_claim))
		{
			const char *label;

			(void) claim_as_of(&stored_claim, clock_now(), &claim);
			label = claim_state_as_outcome(claim.state);
			if (label != NULL)
			{
				values[EXECUTION] =
					enum_datum(TupleDescAttr(descriptor, EXECUTION)->atttypid,
							   label);
				nulls[EXECUTION] = false;
			}
			row_put_pointer(values, nulls, RESULT, claim.result);
			row_put_pointer(values, nulls, ERROR_COLUMN, claim.error);
		}
	}
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}

static Datum
refuse_proposal(FunctionCallInfo fcinfo, const ClaimKey *key,
				const char *reason)
{
	proposal_refused_event(key, "propose", reason, NULL);
	return proposal_result_datum(fcinfo, PROPOSAL_REFUSED, reason, NULL);
}

/* the first field in which a repeated proposal differs, NULL for none */
static const char *
proposal_conflict(const ProposalRecord *stored, const Binding *bound,
				  const char *supersedes)
{
	const char *field = proposal_changed_field(&stored->bound, bound);

	if (field != NULL)
		return field;
	if (bound->execution_id != NULL &&
		memcmp(stored->bound.execution_id, bound->execution_id, UUID_LEN) != 0)
		return "execution_id";
	if ((stored->supersedes == NULL) != (supersedes == NULL) ||
		(supersedes != NULL && strcmp(stored->supersedes, supersedes) != 0))
		return "supersedes";
	return NULL;
}

/*
 * When the proposal ends, in whole seconds: the text of the binding has no
 * more.  Rounded down, but never to less than a second from now.
 */
static TimestampTz
expiry(const ClaimPolicy *policy, int64 expires_in, TimestampTz now)
{
	int64		limit = policy->proposal_ttl;
	TimestampTz end;
	TimestampTz whole;

	if (expires_in > policy->proposal_ttl)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"expires_in\" is longer than the policy's proposal_ttl"),
				 errhint("It can shorten the time that a proposal has, never lengthen it.")));
	if (expires_in > 0)
		limit = expires_in;
	/* far ahead is the end of the years that the binding's text can hold */
	end = limit > INT64CONST(1000) * 366 * USECS_PER_DAY ?
		now + INT64CONST(1000) * 366 * USECS_PER_DAY : now + limit;
	whole = end - (end % USECS_PER_SEC + USECS_PER_SEC) % USECS_PER_SEC;
	while (whole - now < USECS_PER_SEC)
		whole += USECS_PER_SEC;
	return whole;
}

static pg_uuid_t *
random_uuid(void)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	if (!pg_strong_random(uuid->data, UUID_LEN))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not generate random values")));
	uuid->data[6] = (uuid->data[6] & 0x0f) | 0x40;	/* version 4 */
	uuid->data[8] = (uuid->data[8] & 0x3f) | 0x80;	/* variant of RFC 4122 */
	return uuid;
}

static const char *
proposed_detail(const ProposalRecord *record)
{
	StringInfoData detail;
	char		hex[SHA256_HEX_BYTES + 1];

	detail_begin(&detail);
	sha256_to_hex(&record->binding_digest, hex);
	detail_text(&detail, "binding_digest", hex);
	sha256_to_hex(&record->bound.input_digest, hex);
	detail_text(&detail, "input_digest", hex);
	detail_text(&detail, "tool_server", record->bound.tool_server);
	detail_text(&detail, "tool_name", record->bound.tool_name);
	detail_text(&detail, "actor", record->bound.actor);
	detail_text(&detail, "project", record->bound.project);
	detail_text(&detail, "policy_version", record->bound.policy_version);
	detail_text(&detail, "execution_id", proposal_uuid_text(record->bound.execution_id));
	detail_text(&detail, "expires_at", proposal_seconds_text(record->bound.expires_at));
	detail_json(&detail, "approvals_required",
				psprintf("%d", record->approvals_required));
	detail_text(&detail, "supersedes", record->supersedes);
	return detail_end(&detail);
}

static bool
has_rights_of(const char *role)
{
	Oid			oid = get_role_oid(role, true);

	return OidIsValid(oid) ? is_member_of_role(GetUserId(), oid) : superuser();
}

static void
require_proposer(const ProposalRecord *record)
{
	if (!has_rights_of(record->proposed_by))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for proposal (\"%s\", \"%s\")",
						record->key.task_id, record->key.tool_call_id),
				 errhint("Only the role that proposed it, or a member of that role, takes it back.")));
}

/* ends the proposal that a new one supersedes; NULL, or why it cannot */
static const char *
supersede(const ProposalRecord *newer)
{
	ClaimKey	key = newer->key;
	ProposalRecord record;
	ProposalCall call = {.verb = PROPOSAL_SUPERSEDE};
	ProposalStep step;
	StringInfoData detail;

	key.tool_call_id = newer->supersedes;
	if (!proposal_lock_waiting(&key, &record))
		return "not_found";
	require_proposer(&record);
	call.principal = GetUserNameFromId(GetSessionUserId(), false);
	proposal_decide(&record, &call, clock_now(), &step);
	if (step.refusal != NULL || !step.changes)
		return step.refusal;
	detail_begin(&detail);
	detail_text(&detail, "by", newer->key.tool_call_id);
	proposal_event(&key, EVENT_SUPERSEDED, NULL, detail_end(&detail),
				   &step.next);
	proposal_update(&step.next);
	return NULL;
}

/* the record of a new proposal, as far as the policy and the call say */
static void
new_proposal(const ClaimKey *key, const Binding *bound,
			 const ClaimPolicy *policy, int64 expires_in,
			 ProposalRecord *record)
{
	int32		required = claim_approvals_required(policy, bound->input);

	memset(record, 0, sizeof(*record));
	record->key = *key;
	record->bound = *bound;
	record->bound.policy_version = policy->version;
	if (bound->execution_id == NULL)
		record->bound.execution_id = random_uuid();
	record->proposed_at = clock_now();
	record->bound.expires_at = expiry(policy, expires_in, record->proposed_at);
	record->policy_source = policy->source;
	record->by_rule = policy->approval_rule != NULL && required == 0;
	record->approvals_required = record->by_rule ? 0 : Max(required, 1);
	record->approver_groups = record->by_rule ? NIL : policy->approver_groups;
	record->allow_self_approval = policy->allow_self_approval;
	record->state = record->by_rule ? PROPOSAL_APPROVED : PROPOSAL_PENDING;
	record->proposed_by = GetUserNameFromId(GetUserId(), false);
	record->use_by = CLAIM_NO_TIME;
	record->ended_at = CLAIM_NO_TIME;
	proposal_binding_digest(key, &record->bound, &record->binding_digest);
}

/* NULL, or why the proposal cannot be made */
static const char *
check_new_proposal(const ProposalRecord *record, const Binding *bound)
{
	ClaimRecord stored;
	ClaimRecord claim;

	switch (store_look(&record->key, &stored))
	{
		case STORE_FOUND:
			(void) claim_as_of(&stored, clock_now(), &claim);
			return claim_state_name(claim.state);
		case STORE_UNCOMMITTED:
			return "claimed";
		case STORE_ABSENT:
			break;
	}
	if (bound->policy_version != NULL &&
		strcmp(bound->policy_version, record->bound.policy_version) != 0)
		return "policy_changed";
	if (!record->by_rule &&
		!proposal_quorum(proposal_registered(record, NULL, false),
						 record->approvals_required, record->approver_groups,
						 record->allow_self_approval ? NULL :
						 record->bound.actor))
		return "no_eligible_approver";
	return NULL;
}

/*
 * tool_claims.propose(task_id text, tool_call_id text, tool_name text,
 *					   input canonical_json, actor text, project text,
 *					   tool_server text, schema_version text,
 *					   policy_version text, operation_id text,
 *					   execution_id uuid, expires_in interval, summary text,
 *					   supersedes text) returns proposal_result
 *
 * Records one exact action for people to decide.  Runs nothing.
 *
 * A proposal and a claim of the same pair exclude each other: each inserts its
 * own row first and looks for the other one then.
 */
Datum
tc_propose(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	Binding		bound;
	ClaimPolicy policy;
	ProposalRecord record;
	int64		expires_in;
	const char *summary;
	const char *supersedes;
	const char *reason;
	ClaimRecord claim;

	verb_enter("tool_claims.propose()");
	key = argument_key(fcinfo);
	argument_binding(fcinfo, 2, &bound);
	bound.execution_id = argument_execution_id(fcinfo, 10);
	expires_in = argument_limit(fcinfo, 11, "expires_in");
	summary = argument_text(fcinfo, 12);
	supersedes = argument_key_text(fcinfo, 13, "supersedes", KEY_TEXT_NULLABLE);
	if (supersedes != NULL && strcmp(supersedes, key.tool_call_id) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a proposal cannot supersede itself"),
				 errhint("Give the new proposal a tool_call_id of its own.")));

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (proposal_look(&key, &record))
		{
			const char *field = proposal_conflict(&record, &bound, supersedes);

			if (field == NULL)
				return proposal_result_datum(fcinfo, EXISTING, NULL, &record);
			proposal_conflict_event(&key, &bound, field);
			return proposal_result_datum(fcinfo, PROPOSAL_CONFLICT, field,
										 &record);
		}
		policy_of(key.organization, bound.tool_server, bound.tool_name,
				  &policy);
		new_proposal(&key, &bound, &policy, expires_in, &record);
		record.summary = summary;
		record.supersedes = supersedes;
		reason = check_new_proposal(&record, &bound);
		if (reason != NULL)
			return refuse_proposal(fcinfo, &key, reason);
		if (proposal_insert(&record))
			break;
	}

	if (store_look(&key, &claim) != STORE_ABSENT)
		reason = "claimed";
	else if (supersedes != NULL)
		reason = supersede(&record);
	if (reason != NULL)
	{
		proposal_delete(&key);
		return refuse_proposal(fcinfo, &key, reason);
	}
	proposal_event(&key, EVENT_PROPOSED, NULL, proposed_detail(&record),
				   &record);
	if (record.by_rule)
		proposal_event(&key, EVENT_APPROVED, "policy",
					   "{\"reason\":\"approval_rule\"}", &record);
	proposal_update(&record);
	return proposal_result_datum(fcinfo, PROPOSED, NULL, &record);
}

/* ----- decisions ----- */

static Datum
decision_result_datum(FunctionCallInfo fcinfo, const char *outcome,
					  const char *reason, const ProposalRecord *record,
					  int32 approvals)
{
	enum
	{
		OUTCOME, REASON, STATE, APPROVALS, APPROVALS_REQUIRED, COLUMNS
	};
	TupleDesc	descriptor = row_descriptor(fcinfo);
	Datum		values[COLUMNS] = {0};
	bool		nulls[COLUMNS];

	memset(nulls, true, sizeof(nulls));
	values[OUTCOME] = enum_datum(TupleDescAttr(descriptor, OUTCOME)->atttypid,
								 outcome);
	nulls[OUTCOME] = false;
	row_put_text(values, nulls, REASON, reason);
	if (record != NULL)
	{
		values[STATE] = enum_datum(TupleDescAttr(descriptor, STATE)->atttypid,
								   proposal_state_name(record->state));
		values[APPROVALS] = Int32GetDatum(approvals);
		values[APPROVALS_REQUIRED] = Int32GetDatum(record->approvals_required);
		nulls[STATE] = nulls[APPROVALS] = nulls[APPROVALS_REQUIRED] = false;
	}
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}

typedef struct Decision
{
	const char *name;			/* of the verb */
	EventKind	kind;
	const char *comment;
	bool		by_service;		/* a service authenticated the person */
} Decision;

static const char *
decision_detail(const ProposalCall *call, const Decision *decision,
				const ProposalStep *step)
{
	StringInfoData detail;

	detail_begin(&detail);
	detail_text(&detail, "comment", decision->comment);
	if (step->votes)
	{
		detail_json(&detail, "approvals", psprintf("%d", step->approvals));
		detail_json(&detail, "approvals_required",
					psprintf("%d", step->next.approvals_required));
	}
	if (call->use_within > 0)
		detail_json(&detail, "use_within_seconds",
					psprintf("%.6f", call->use_within / 1e6));
	if (step->self_approval && call->verb == PROPOSAL_APPROVE)
		detail_json(&detail, "self_approval", "true");
	if (decision->by_service)
		detail_json(&detail, "by_service", "true");
	return detail_end(&detail);
}

/* what approve, reject and revoke do alike */
static Datum
decide(FunctionCallInfo fcinfo, const ClaimKey *key, ProposalCall *call,
	   const Decision *decision)
{
	ProposalRecord record;
	ProposalStep step;
	TimestampTz now;

	if (!proposal_lock_waiting(key, &record))
	{
		proposal_refused_event(key, decision->name, "not_found",
							   call->principal);
		return decision_result_datum(fcinfo, "refused", "not_found", NULL, 0);
	}
	(void) proposal_gather(&record, call, true, STORE_WAIT);
	now = clock_now();
	proposal_decide(&record, call, now, &step);
	if (step.again)
		return decision_result_datum(fcinfo, "already_recorded", NULL,
									 &step.now, step.approvals);
	if (step.refusal != NULL)
	{
		proposal_write_expiry(&record, now);
		proposal_refused_event(key, decision->name, step.refusal,
							   call->principal);
		return decision_result_datum(fcinfo, "refused", step.refusal,
									 &step.now, step.approvals);
	}
	if (step.votes)
		proposal_vote(key, call->principal,
					  call->verb == PROPOSAL_APPROVE ? VOTE_APPROVE :
					  VOTE_REJECT, decision->comment);
	proposal_event(key, decision->kind, call->principal,
				   decision_detail(call, decision, &step), &step.next);
	proposal_update(&step.next);
	return decision_result_datum(fcinfo, "recorded", NULL, &step.next,
								 step.approvals);
}

/* the person who decides: the session user, or whom a service names */
static const char *
decider(FunctionCallInfo fcinfo, bool by_service)
{
	if (by_service)
		return argument_key_text(fcinfo, 0, "approver", KEY_TEXT_FILLED);
	return GetUserNameFromId(GetSessionUserId(), false);
}

static Datum
vote(FunctionCallInfo fcinfo, ProposalVerb verb, const char *name,
	 bool by_service)
{
	int			first = by_service ? 1 : 0;
	ProposalCall call = {.verb = verb};
	Decision	decision = {.name = name, .by_service = by_service};
	ClaimKey	key;

	verb_enter(psprintf("tool_claims.%s()", name));
	call.principal = decider(fcinfo, by_service);
	key = argument_key_at(fcinfo, first);
	require_argument(fcinfo, first + 2, "binding_digest");
	call.binding_digest = *PG_GETARG_SHA256_DIGEST(first + 2);
	decision.comment = argument_text(fcinfo, first + 3);
	decision.kind = verb == PROPOSAL_APPROVE ? EVENT_APPROVED : EVENT_REJECTED;
	if (verb == PROPOSAL_APPROVE)
		call.use_within = argument_limit(fcinfo, first + 4, "use_within");
	return decide(fcinfo, &key, &call, &decision);
}

static Datum
take_back_approval(FunctionCallInfo fcinfo, const char *name, bool by_service)
{
	int			first = by_service ? 1 : 0;
	ProposalCall call = {.verb = PROPOSAL_REVOKE};
	Decision	decision = {.name = name, .kind = EVENT_REVOKED,
	.by_service = by_service};
	ClaimKey	key;

	verb_enter(psprintf("tool_claims.%s()", name));
	call.principal = decider(fcinfo, by_service);
	key = argument_key_at(fcinfo, first);
	require_argument(fcinfo, first + 2, "reason");
	decision.comment = argument_text(fcinfo, first + 2);
	return decide(fcinfo, &key, &call, &decision);
}

/*
 * tool_claims.approve(task_id text, tool_call_id text,
 *					   binding_digest sha256_digest, comment text,
 *					   use_within interval) returns decision_result
 *
 * The session user's vote for the action that has this digest.
 */
Datum
tc_approve(PG_FUNCTION_ARGS)
{
	return vote(fcinfo, PROPOSAL_APPROVE, "approve", false);
}

Datum
tc_approve_as(PG_FUNCTION_ARGS)
{
	return vote(fcinfo, PROPOSAL_APPROVE, "approve_as", true);
}

/*
 * tool_claims.reject(task_id text, tool_call_id text,
 *					  binding_digest sha256_digest, comment text)
 *		returns decision_result
 */
Datum
tc_reject(PG_FUNCTION_ARGS)
{
	return vote(fcinfo, PROPOSAL_REJECT, "reject", false);
}

Datum
tc_reject_as(PG_FUNCTION_ARGS)
{
	return vote(fcinfo, PROPOSAL_REJECT, "reject_as", true);
}

/*
 * tool_claims.revoke(task_id text, tool_call_id text, reason text)
 *		returns decision_result
 */
Datum
tc_revoke(PG_FUNCTION_ARGS)
{
	return take_back_approval(fcinfo, "revoke", false);
}

Datum
tc_revoke_as(PG_FUNCTION_ARGS)
{
	return take_back_approval(fcinfo, "revoke_as", true);
}

/* withdraws one proposal; its step says what came of it */
static bool
withdraw_one(const ClaimKey *key, const char *reason, ProposalStep *step)
{
	ProposalRecord record;
	ProposalCall call = {.verb = PROPOSAL_WITHDRAW};
	StringInfoData detail;
	TimestampTz now;

	if (!proposal_lock_waiting(key, &record))
		return false;
	require_proposer(&record);
	call.principal = GetUserNameFromId(GetSessionUserId(), false);
	now = clock_now();
	proposal_decide(&record, &call, now, step);
	if (step->changes)
	{
		detail_begin(&detail);
		detail_text(&detail, "reason", reason);
		proposal_event(key, EVENT_WITHDRAWN, NULL, detail_end(&detail),
					   &step->next);
		proposal_update(&step->next);
	}
	else if (step->refusal != NULL)
	{
		proposal_write_expiry(&record, now);
		proposal_refused_event(key, "withdraw", step->refusal, NULL);
	}
	return true;
}

/* all of the task that the caller may take back, in the order of the calls */
static Datum
withdraw_task(FunctionCallInfo fcinfo, const char *reason)
{
	ClaimKey	key;
	ListCell   *cell;
	ProposalStep last;
	bool		withdrawn = false;

	key.organization = settings_verb_organization();
	key.task_id = argument_key_text(fcinfo, 0, "task_id", KEY_TEXT_FILLED);
	foreach(cell, proposal_open_of_task(key.organization, key.task_id))
	{
		ProposalRecord record;
		ProposalStep step;

		key.tool_call_id = lfirst(cell);
		if (!proposal_read(&key, &record) ||
			!has_rights_of(record.proposed_by))
			continue;
		if (withdraw_one(&key, reason, &step) && step.changes)
		{
			last = step;
			withdrawn = true;
		}
	}
	if (!withdrawn)
		return decision_result_datum(fcinfo, "refused", "not_found", NULL, 0);
	return decision_result_datum(fcinfo, "recorded", NULL, &last.next,
								 last.approvals);
}

/*
 * tool_claims.withdraw(task_id text, tool_call_id text, reason text)
 *		returns decision_result
 *
 * Takes back a proposal, or with a null tool_call_id all of the task.
 */
Datum
tc_withdraw(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	ProposalStep step;
	const char *reason;

	verb_enter("tool_claims.withdraw()");
	require_argument(fcinfo, 2, "reason");
	reason = argument_text(fcinfo, 2);
	if (PG_ARGISNULL(1))
		return withdraw_task(fcinfo, reason);
	key = argument_key(fcinfo);
	if (!withdraw_one(&key, reason, &step))
	{
		proposal_refused_event(&key, "withdraw", "not_found", NULL);
		return decision_result_datum(fcinfo, "refused", "not_found", NULL, 0);
	}
	if (step.again)
		return decision_result_datum(fcinfo, "already_recorded", NULL,
									 &step.now, step.approvals);
	if (step.refusal != NULL)
		return decision_result_datum(fcinfo, "refused", step.refusal,
									 &step.now, step.approvals);
	return decision_result_datum(fcinfo, "recorded", NULL, &step.next,
								 step.approvals);
}

/* ----- approvers ----- */

static Datum
change_approver(FunctionCallInfo fcinfo, bool add)
{
	const char *principal = argument_key_text(fcinfo, 0, "principal",
											  KEY_TEXT_FILLED);
	const char *grp = argument_key_text(fcinfo, 1, "grp",
										KEY_TEXT_MAY_BE_EMPTY);
	const char *project = argument_key_text(fcinfo, 2, "project",
											KEY_TEXT_MAY_BE_EMPTY);
	const char *tool_server = argument_key_text(fcinfo, 3, "tool_server",
												KEY_TEXT_MAY_BE_EMPTY);
	const char *tool_name = argument_key_text(fcinfo, 4, "tool_name",
											  KEY_TEXT_FILLED);
	const char *organization = settings_verb_organization();

	if (strlen(principal) + strlen(grp) + strlen(project) +
		strlen(tool_server) + strlen(tool_name) + strlen(organization) >
		MAX_REGISTRATION_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a registration has at most %d bytes, all its names together",
						MAX_REGISTRATION_BYTES)));
	if (add)
		(void) approver_add(organization, principal, grp, project,
							tool_server, tool_name);
	else if (!approver_remove(organization, principal, grp, project,
							  tool_server, tool_name))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("approver \"%s\" is not registered so", principal),
				 errdetail("Group \"%s\", project \"%s\", tool server \"%s\", tool \"%s\".",
						   grp, project, tool_server, tool_name),
				 errhint("Name the same arguments as to add_approver.")));
	PG_RETURN_VOID();
}

/*
 * tool_claims.add_approver(principal text, grp text, project text,
 *							tool_server text, tool_name text) returns void
 */
Datum
tc_add_approver(PG_FUNCTION_ARGS)
{
	verb_enter("tool_claims.add_approver()");
	return change_approver(fcinfo, true);
}

/*
 * tool_claims.remove_approver(principal text, grp text, project text,
 *							   tool_server text, tool_name text) returns void
 */
Datum
tc_remove_approver(PG_FUNCTION_ARGS)
{
	verb_enter("tool_claims.remove_approver()");
	return change_approver(fcinfo, false);
}
