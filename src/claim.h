/*
 * claim.h
 *
 * The state machine of a claim: what a record is, what a verb asks, and the
 * one function that decides what comes of it.
 */
#ifndef TC_CLAIM_H
#define TC_CLAIM_H

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "utils/uuid.h"

#include "canonical_json.h"
#include "sha256_digest.h"

/* "no time": a NULL timestamp; -infinity is refused where users give times */
#define CLAIM_NO_TIME	DT_NOBEGIN

/* stored as "char", so the values are on disk and never change */
typedef enum ClaimState
{
	CLAIM_NONE = 0,				/* no record */
	CLAIM_CLAIMED = 'c',
	CLAIM_COMPLETED = 'd',
	CLAIM_FAILED = 'f',
	CLAIM_RELEASED = 'r',
	CLAIM_UNCERTAIN = 'u',
	CLAIM_RETIRED = 't'
} ClaimState;

/* how the current attempt ended, stored as "char", NULL while it goes on */
typedef enum ClaimEnding
{
	ENDING_NONE = 0,
	ENDING_HOLDER = 'h',		/* by a verb of its holder */
	ENDING_EXPIRY = 'e',		/* by the end of its lease */
	ENDING_MARKED = 'm',		/* a reconciler marked it uncertain */
	ENDING_RECONCILED = 'r'		/* by reconcile */
} ClaimEnding;

typedef enum ClaimVerb
{
	VERB_CLAIM,
	VERB_DISPATCH,
	VERB_RENEW,
	VERB_COMPLETE,
	VERB_FAIL,
	VERB_RELEASE,
	VERB_MARK_UNCERTAIN,
	VERB_REPORT_LATE,
	VERB_RECONCILE,
	VERB_ASSERT
} ClaimVerb;

/* in the order of the enum tool_claims.outcome */
typedef enum ClaimOutcome
{
	OUTCOME_ACQUIRED,
	OUTCOME_COMPLETED,
	OUTCOME_FAILED,
	OUTCOME_RELEASED,
	OUTCOME_IN_PROGRESS,
	OUTCOME_UNCERTAIN,
	OUTCOME_CONFLICT,
	OUTCOME_REFUSED
} ClaimOutcome;

/* in the order of the enum tool_claims.finding */
typedef enum ClaimFinding
{
	FINDING_OCCURRED,
	FINDING_NOT_OCCURRED,
	FINDING_ABANDONED,
	FINDING_COMPENSATED
} ClaimFinding;

typedef enum ClaimError
{
	CLAIM_OK,
	CLAIM_NO_SUCH_RECORD,		/* TC001 */
	CLAIM_STALE_ATTEMPT,		/* TC002 */
	CLAIM_NOT_THE_HOLDER,		/* 42501 */
	CLAIM_WRONG_STATE,			/* TC003 */
	CLAIM_OTHER_RESULT,			/* TC005 */
	CLAIM_WRONG_SHAPE,			/* 22023 */
	CLAIM_WRONG_EFFECT,			/* 22023 */
	CLAIM_OPERATION_MISSING,	/* 22004 */
	CLAIM_RECOVERY_PENDING		/* TC012 */
} ClaimError;

typedef enum EventKind
{
	EVENT_PROPOSED,
	EVENT_APPROVED,
	EVENT_REJECTED,
	EVENT_WITHDRAWN,
	EVENT_REVOKED,
	EVENT_SUPERSEDED,
	EVENT_EXPIRED,
	EVENT_RESERVED,
	EVENT_ACQUIRED,
	EVENT_DISPATCHED,
	EVENT_COMPLETED,
	EVENT_FAILED,
	EVENT_RELEASED,
	EVENT_UNCERTAIN,
	EVENT_RECONCILED,
	EVENT_CONFLICT,
	EVENT_REFUSED,
	EVENT_LATE_REPORT,
	EVENT_REDACTED,
	EVENT_PRUNED
} EventKind;

typedef struct ClaimKey
{
	const char *organization;
	const char *task_id;
	const char *tool_call_id;
} ClaimKey;

typedef struct ClaimRecord
{
	ClaimKey	key;
	const char *tool_server;
	const char *tool_name;
	Sha256Digest input_digest;
	const CanonicalJson *input; /* NULL unless the policy keeps it */
	const char *operation_id;	/* NULL without one */
	const char *effect_key;		/* NULL: the operation id, or else derived */
	ClaimState	state;
	ClaimEnding ended_by;
	int32		attempt;
	bool		leased;
	bool		reacquire;		/* the policy when the attempt was acquired */
	const char *held_role;		/* effective role of the holder */
	const char *held_session;	/* his session user, NULL when the same */
	const char *held_from;		/* application name and client address */
	const pg_uuid_t *request_id;	/* NULL once the answer surely arrived */
	TimestampTz claimed_at;
	TimestampTz dispatched_at;
	TimestampTz lease_expires_at;
	TimestampTz not_after;
	TimestampTz finished_at;
	TimestampTz open_since;		/* set while a committed record is not final */
	const char *external_ref;
	const text *result;			/* json, byte for byte */
	const text *error;
	const Sha256Digest *reconciled; /* of the arguments of reconcile */
	const Sha256Digest *redacted;	/* of the result or error that is gone */
	const Sha256Digest *evidence_head;	/* hash of its newest event */
} ClaimRecord;

/* what the tool's policy says; see policy.h for where it comes from */
typedef struct ClaimPolicy
{
	bool		enabled;
	char		effect;			/* 'a'ny, 'l'ocal, 'e'xternal */
	bool		reacquire;
	int32		max_attempts;	/* 0: no limit */
	bool		operation_required;
	bool		keep_input;
	bool		log_all;
	int32		approvals_required;
	const char *approval_rule;	/* function, NULL without one */
	const char *approval_rule_role; /* who registered it */
	List	   *approver_groups;	/* of char * */
	bool		allow_self_approval;
	const char *version;		/* empty without a policy */
	const char *source;			/* which row it is, empty without one */
	int64		proposal_ttl;	/* microseconds */
	const char *input_check;	/* function, NULL without one */
	const char *input_check_role;	/* who registered it */
	const Interval *retention;	/* NULL: kept */
} ClaimPolicy;

/* whom an operation id belongs to, seen from the pair that asks */
typedef enum OperationOwner
{
	OPERATION_FREE,				/* nobody has it, or there is none */
	OPERATION_OWN,
	OPERATION_OTHER,			/* call->operation_record is its record */
	OPERATION_BUSY				/* an open transaction of somebody has it */
} OperationOwner;

/* what acquiring needs to know beyond the record; see claim_flow.c */
typedef struct ClaimFacts
{
	bool		known;
	uint64		changes;		/* policy_changes() when they were found out */
	bool		proposal_open;	/* of a transaction that may roll back */
	bool		approval_required;
	const char *check_message;	/* of the input check, NULL: passed */
} ClaimFacts;

typedef struct ClaimCall
{
	ClaimVerb	verb;
	ClaimKey	key;

	/* who calls */
	Oid			role_oid;		/* effective role as the verb was entered */
	const char *role;			/* its name */
	const char *session_role;	/* NULL when the same */
	const char *from;			/* application name and client address */
	bool		is_holder;		/* role is the holder's, or a member of it */
	bool		is_reconciler;	/* may reconcile and is not the holder's role */
	bool		held_here;		/* this transaction acquired the attempt */
	bool		executing;		/* by execute, which completes it as well */

	/* identity and terms, of claim */
	const char *tool_server;
	const char *tool_name;
	const CanonicalJson *input;
	Sha256Digest input_digest;
	const char *operation_id;
	OperationOwner operation;
	const ClaimRecord *operation_record;
	bool		operation_held_here;
	bool		leased;
	int64		lease;			/* microseconds; renew too */
	const pg_uuid_t *request_id;
	TimestampTz not_after;
	bool		dispatched;
	bool		reserving;		/* on behalf of an approved proposal */
	bool		recovery_pending;	/* nobody has accepted a recovery yet */
	uint64		policy_changes; /* how often policies had changed by this look */
	ClaimFacts	facts;
	bool		only_held;		/* take nothing that is not held already */

	/* of the other verbs */
	bool		has_attempt;
	int32		attempt;
	const text *result;
	const text *error;
	const char *external_ref;
	const char *reason;
	bool		new_effect_key;
	ClaimFinding finding;
	const char *evidence;		/* canonical JSON text */
	Sha256Digest arguments;		/* of reconcile */
} ClaimCall;

typedef struct ClaimEvent
{
	EventKind	kind;
	int32		attempt;		/* 0: none */
	const char *reason;			/* NULL without one */
} ClaimEvent;

typedef enum StepKind
{
	STEP_ANSWER,				/* nothing changes */
	STEP_CHANGE,				/* step->next replaces the record */
	STEP_NEEDS_FACTS,			/* find out call->facts, ask again */
	STEP_ERROR
} StepKind;

typedef struct ClaimStep
{
	StepKind	kind;
	ClaimError	error;
	const char *hint;			/* of an error, NULL without one */
	ClaimOutcome outcome;
	const char *reason;
	const ClaimRecord *answer;	/* the record that answers, as it reads now */
	ClaimRecord now;			/* the stored record as it reads now */
	ClaimRecord next;
	bool		owner_expired;	/* the operation's record ended by expiry */
	ClaimRecord owner_now;		/* the operation's record as it reads now */
	const CanonicalJson *input; /* to run with, of a proposal */
	bool		open_transaction;	/* in_progress by an open transaction */
	bool		held_here;		/* in_progress by this very transaction */
	int			nevents;
	ClaimEvent	events[2];
} ClaimStep;

extern void claim_decide(const ClaimRecord *stored, const ClaimCall *call,
						 const ClaimPolicy *policy, TimestampTz now,
						 ClaimStep *step);
extern bool claim_as_of(const ClaimRecord *stored, TimestampTz now,
						ClaimRecord *record);
extern const char *claim_identity_conflict(const ClaimRecord *stored,
										   const ClaimCall *call);
extern const char *claim_effect_key(const ClaimRecord *record);
extern const char *claim_state_name(ClaimState state);
extern bool claim_is_open(const ClaimRecord *record);

#endif							/* TC_CLAIM_H */
