/*
 * proposal.h
 *
 * The state machine of a proposal: what is bound, who has voted, and the one
 * function that decides what comes of a verb.
 */
#ifndef TC_PROPOSAL_H
#define TC_PROPOSAL_H

#include "nodes/pg_list.h"

#include "claim.h"

/* stored as "char", so the values are on disk and never change */
typedef enum ProposalState
{
	PROPOSAL_NONE = 0,
	PROPOSAL_PENDING = 'p',
	PROPOSAL_APPROVED = 'a',
	PROPOSAL_REJECTED = 'r',
	PROPOSAL_WITHDRAWN = 'w',
	PROPOSAL_REVOKED = 'v',
	PROPOSAL_SUPERSEDED = 's',
	PROPOSAL_EXPIRED = 'x',
	PROPOSAL_RESERVED = 'u'
} ProposalState;

typedef enum ProposalVerb
{
	PROPOSAL_APPROVE,
	PROPOSAL_REJECT,
	PROPOSAL_REVOKE,
	PROPOSAL_WITHDRAW,
	PROPOSAL_SUPERSEDE,
	PROPOSAL_RESERVE
} ProposalVerb;

/* everything that an approval is bound to, beside the key */
typedef struct Binding
{
	const char *actor;
	const char *project;
	const char *tool_server;
	const char *tool_name;
	const char *schema_version;
	const char *policy_version; /* in a call, NULL: the stored one */
	const CanonicalJson *input;
	Sha256Digest input_digest;
	const char *operation_id;	/* NULL without one */
	const pg_uuid_t *execution_id;	/* in a call, NULL: the stored one */
	TimestampTz expires_at;		/* whole seconds */
} Binding;

typedef struct ProposalRecord
{
	ClaimKey	key;
	Binding		bound;
	Sha256Digest binding_digest;
	ProposalState state;
	const char *summary;
	const char *supersedes;		/* tool_call_id in the same task, or NULL */
	const char *policy_source;	/* which policy row the version is of */
	int32		approvals_required;
	List	   *approver_groups;	/* of char * */
	bool		allow_self_approval;
	bool		by_rule;		/* approved by the policy's rule alone */
	const char *proposed_by;	/* role */
	TimestampTz proposed_at;
	TimestampTz use_by;			/* the approvers' shorter limit, or none */
	TimestampTz ended_at;		/* when it left pending and approved */
	const char *ended_by;		/* principal of that */
	const Sha256Digest *evidence_head;
	bool		redacted;
} ProposalRecord;

/* a person whose vote counts, or who could vote */
typedef struct Voter
{
	const char *principal;
	List	   *groups;			/* of char * */
} Voter;

typedef enum Vote
{
	VOTE_NONE = 0,
	VOTE_APPROVE = 'a',
	VOTE_REJECT = 'r'
} Vote;

typedef struct ProposalCall
{
	ProposalVerb verb;
	const char *principal;		/* who decides */
	bool		by_digest;		/* binding_digest is given, else bound */
	Sha256Digest binding_digest;
	Binding		bound;			/* of reserve */
	int64		use_within;		/* microseconds, 0: none */

	/* what was looked up under the lock */
	bool		eligible;		/* principal is registered for this action */
	List	   *groups;			/* of char *, in which he is */
	Vote		own_vote;
	List	   *voters;			/* of Voter *, whose votes count now */
	const char *policy_version; /* of the tool as it is now */
	const char *policy_source;
} ProposalCall;

typedef struct ProposalStep
{
	bool		changes;		/* next is to be stored */
	bool		votes;			/* a vote of the principal is to be stored */
	bool		again;			/* the same vote or decision as before */
	bool		self_approval;
	const char *refusal;		/* NULL where it is not refused */
	bool		expired;		/* expired since it was last written */
	int32		approvals;
	ProposalRecord now;			/* as it reads now */
	ProposalRecord next;
} ProposalStep;

extern void proposal_decide(const ProposalRecord *stored,
							const ProposalCall *call, TimestampTz now,
							ProposalStep *step);
extern bool proposal_as_of(const ProposalRecord *stored, TimestampTz now,
						   ProposalRecord *record);
extern const char *proposal_changed_field(const Binding *stored,
										  const Binding *given);
extern bool proposal_quorum(List *voters, int32 required, List *groups,
							const char *excluded);
extern int32 proposal_count(List *voters, const char *excluded);
extern const char *proposal_state_name(ProposalState state);

#endif							/* TC_PROPOSAL_H */
