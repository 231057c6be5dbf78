/*
 * proposal.c
 *
 * The state machine of a proposal.  proposal_decide() gets the stored record,
 * what is asked, the votes that count and the policy as they are under the
 * lock, and the time, and says what comes of it.  It reads no table and no
 * clock and raises nothing.
 *
 * Of several reasons to refuse, the first in the contract's order is given.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "compare.h"
#include "proposal.h"

const char *
proposal_state_name(ProposalState state)
{
	switch (state)
	{
		case PROPOSAL_PENDING:
			return "pending";
		case PROPOSAL_APPROVED:
			return "approved";
		case PROPOSAL_REJECTED:
			return "rejected";
		case PROPOSAL_WITHDRAWN:
			return "withdrawn";
		case PROPOSAL_REVOKED:
			return "revoked";
		case PROPOSAL_SUPERSEDED:
			return "superseded";
		case PROPOSAL_EXPIRED:
			return "expired";
		case PROPOSAL_RESERVED:
			return "reserved";
		case PROPOSAL_NONE:
			break;
	}
	return "none";
}

/*
 * The proposal as it reads at this moment: past its end it has expired,
 * whether or not anybody wrote that down.  Returns true where reading and
 * stored state differ.
 */
bool
proposal_as_of(const ProposalRecord *stored, TimestampTz now,
			   ProposalRecord *record)
{
	*record = *stored;
	if ((stored->state != PROPOSAL_PENDING &&
		 stored->state != PROPOSAL_APPROVED) ||
		now < stored->bound.expires_at)
		return false;
	record->state = PROPOSAL_EXPIRED;
	record->ended_at = stored->bound.expires_at;
	return true;
}

/*
 * The first bound field that a call gives another value than was bound, NULL
 * when none does.  The execution id is another matter: see reserve.
 */
const char *
proposal_changed_field(const Binding *stored, const Binding *given)
{
	if (strcmp(stored->actor, given->actor) != 0)
		return "actor";
	if (strcmp(stored->project, given->project) != 0)
		return "project";
	if (strcmp(stored->tool_server, given->tool_server) != 0)
		return "tool_server";
	if (strcmp(stored->tool_name, given->tool_name) != 0)
		return "tool_name";
	if (strcmp(stored->schema_version, given->schema_version) != 0)
		return "schema_version";
	if (given->policy_version != NULL &&
		strcmp(stored->policy_version, given->policy_version) != 0)
		return "policy_version";
	if (!same_digest(&stored->input_digest, &given->input_digest))
		return "input";
	if (!same_text(stored->operation_id, given->operation_id))
		return "operation_id";
	return NULL;
}

static bool
same_execution(const Binding *stored, const pg_uuid_t *given)
{
	return given == NULL ||
		memcmp(stored->execution_id, given, UUID_LEN) == 0;
}

/* ----- votes ----- */

static bool
in_group(const Voter *voter, const char *group)
{
	ListCell   *cell;

	foreach(cell, voter->groups)
		if (strcmp(lfirst(cell), group) == 0)
			return true;
	return false;
}

/*
 * Finds a voter for a group, moving others where that frees one: an augmenting
 * path of bipartite matching.  taken is, for each voter, the group he stands
 * for, or -1; seen marks the voters that this search has tried.
 */
static bool
find_voter(List *voters, List *groups, int group, const char *excluded,
		   int *taken, bool *seen)
{
	ListCell   *cell;
	int			n = -1;

	CHECK_FOR_INTERRUPTS();
	foreach(cell, voters)
	{
		Voter	   *voter = lfirst(cell);

		n++;
		if (seen[n] ||
			(excluded != NULL && strcmp(voter->principal, excluded) == 0) ||
			!in_group(voter, list_nth(groups, group)))
			continue;
		seen[n] = true;
		if (taken[n] < 0 ||
			find_voter(voters, groups, taken[n], excluded, taken, seen))
		{
			taken[n] = group;
			return true;
		}
	}
	return false;
}

/* does every group have a voter of his own? */
static bool
fill_groups(List *voters, List *groups, const char *excluded)
{
	int			nvoters = list_length(voters);
	int		   *taken = palloc((nvoters + 1) * sizeof(int));
	bool	   *seen = palloc((nvoters + 1) * sizeof(bool));

	if (list_length(groups) > nvoters)
		return false;
	for (int i = 0; i < nvoters; i++)
		taken[i] = -1;
	for (int group = 0; group < list_length(groups); group++)
	{
		memset(seen, false, nvoters * sizeof(bool));
		if (!find_voter(voters, groups, group, excluded, taken, seen))
			return false;
	}
	return true;
}

/* how many people's votes these are, without the one who is excluded */
int32
proposal_count(List *voters, const char *excluded)
{
	ListCell   *cell;
	int32		count = 0;

	foreach(cell, voters)
		if (excluded == NULL ||
			strcmp(((Voter *) lfirst(cell))->principal, excluded) != 0)
			count++;
	return count;
}

/* are these enough people, with one of his own for each group? */
bool
proposal_quorum(List *voters, int32 required, List *groups,
				const char *excluded)
{
	return proposal_count(voters, excluded) >= required &&
		fill_groups(voters, groups, excluded);
}

static const char *
excluded_voter(const ProposalRecord *record)
{
	return record->allow_self_approval ? NULL : record->bound.actor;
}

static bool
policy_is_bound(const ProposalRecord *record, const ProposalCall *call)
{
	return strcmp(record->bound.policy_version, call->policy_version) == 0 &&
		strcmp(record->policy_source, call->policy_source) == 0;
}

/* ----- verbs ----- */

static void
refuse(ProposalStep *step, const char *reason)
{
	step->refusal = reason;
}

static void
end(ProposalStep *step, ProposalState state, const char *principal,
	TimestampTz now)
{
	step->changes = true;
	step->next.state = state;
	step->next.ended_at = now;
	step->next.ended_by = principal;
}

/* the checks that approve, reject and revoke have in common */
static bool
may_decide(const ProposalCall *call, ProposalStep *step)
{
	const ProposalRecord *record = &step->now;

	if (!same_digest(&call->binding_digest, &record->binding_digest))
		refuse(step, "changed_binding");
	else if (!call->eligible)
		refuse(step, "not_an_approver");
	else if (excluded_voter(record) != NULL &&
			 strcmp(excluded_voter(record), call->principal) == 0)
		refuse(step, "self_approval");
	return step->refusal == NULL;
}

static void
decide_vote(const ProposalCall *call, TimestampTz now, ProposalStep *step)
{
	ProposalRecord *next = &step->next;
	const ProposalRecord *record = &step->now;
	Vote		vote = call->verb == PROPOSAL_APPROVE ? VOTE_APPROVE : VOTE_REJECT;
	Voter		own;
	List	   *voters;

	if (call->own_vote != VOTE_NONE)
	{
		if (!same_digest(&call->binding_digest, &record->binding_digest))
			refuse(step, "changed_binding");
		else if (call->own_vote != vote)
			refuse(step, "already_voted");
		else
			step->again = true;
		return;
	}
	if (record->state != PROPOSAL_PENDING)
	{
		refuse(step, proposal_state_name(record->state));
		return;
	}
	if (!may_decide(call, step))
		return;
	if (vote == VOTE_APPROVE && !policy_is_bound(record, call))
	{
		refuse(step, "policy_changed");
		return;
	}

	/*
	 * Every vote changes the row of the proposal, also where nothing in it is
	 * new: under the higher isolation levels two votes must not miss each
	 * other.
	 */
	step->votes = true;
	step->changes = true;
	step->self_approval = strcmp(record->bound.actor, call->principal) == 0;
	if (vote == VOTE_REJECT)
	{
		end(step, PROPOSAL_REJECTED, call->principal, now);
		return;
	}
	own.principal = call->principal;
	own.groups = call->groups;
	voters = lappend(list_copy(call->voters), &own);
	step->approvals = proposal_count(voters, excluded_voter(record));
	if (call->use_within > 0)
	{
		/* the shortest limit of all who voted, the proposal's end among them */
		TimestampTz use_by = record->use_by == CLAIM_NO_TIME ?
			record->bound.expires_at : record->use_by;

		if (call->use_within < use_by - now)
			use_by = now + call->use_within;
		next->use_by = use_by;
	}
	if (proposal_quorum(voters, record->approvals_required,
						record->approver_groups, excluded_voter(record)))
		next->state = PROPOSAL_APPROVED;
}

static void
decide_revoke(const ProposalCall *call, TimestampTz now, ProposalStep *step)
{
	if (step->now.state == PROPOSAL_REVOKED &&
		same_text(step->now.ended_by, call->principal))
		step->again = true;
	else if (step->now.state != PROPOSAL_APPROVED)
		refuse(step, proposal_state_name(step->now.state));
	else if (!call->eligible)
		refuse(step, "not_an_approver");
	else if (excluded_voter(&step->now) != NULL &&
			 strcmp(excluded_voter(&step->now), call->principal) == 0)
		refuse(step, "self_approval");
	else
		end(step, PROPOSAL_REVOKED, call->principal, now);
}

/* withdraw, and the end of a proposal that a newer one supersedes */
static void
decide_take_back(const ProposalCall *call, TimestampTz now,
				 ProposalStep *step)
{
	ProposalState state = step->now.state;

	if (call->verb == PROPOSAL_SUPERSEDE &&
		(state == PROPOSAL_REJECTED || state == PROPOSAL_EXPIRED))
		return;					/* named for the link: stays what it is */
	if (call->verb == PROPOSAL_WITHDRAW && state == PROPOSAL_WITHDRAWN)
		step->again = true;
	else if (state != PROPOSAL_PENDING && state != PROPOSAL_APPROVED)
		refuse(step, proposal_state_name(state));
	else
		end(step, call->verb == PROPOSAL_SUPERSEDE ? PROPOSAL_SUPERSEDED :
			PROPOSAL_WITHDRAWN, call->principal, now);
}

/*
 * May this execution act now?  A reserved proposal answers its own execution,
 * which then sees its claim; to acquire again it needs all of this too.
 */
static void
decide_reserve(const ProposalCall *call, TimestampTz now, ProposalStep *step)
{
	const ProposalRecord *record = &step->now;
	const char *field;

	if (record->state != PROPOSAL_APPROVED && record->state != PROPOSAL_RESERVED)
		refuse(step, proposal_state_name(record->state));
	else if (record->use_by != CLAIM_NO_TIME && now >= record->use_by)
		refuse(step, "use_by_passed");
	else if (now >= record->bound.expires_at)
		refuse(step, "expired");
	if (record->state == PROPOSAL_RESERVED &&
		same_execution(&record->bound, call->bound.execution_id))
		step->again = true;
	if (step->refusal != NULL && !step->again)
		return;

	if (call->by_digest)
	{
		if (!same_digest(&call->binding_digest, &record->binding_digest))
		{
			step->again = false;
			refuse(step, "changed_binding");
			return;
		}
	}
	else
	{
		field = proposal_changed_field(&record->bound, &call->bound);
		if (field != NULL)
		{
			step->again = false;
			refuse(step, psprintf("changed_%s", field));
			return;
		}
	}
	if (step->refusal != NULL)
		return;
	if (call->by_digest && record->redacted)
	{
		/* the approved input is gone: its execution may look, not act */
		refuse(step, "changed_input");
		return;
	}
	if (!same_execution(&record->bound, call->bound.execution_id))
		refuse(step, "other_execution");
	else if (!record->by_rule &&
			 !proposal_quorum(call->voters, record->approvals_required,
							  record->approver_groups, excluded_voter(record)))
		refuse(step, "approver_ineligible");
	else if (!policy_is_bound(record, call))
		refuse(step, "policy_changed");
	else if (record->state == PROPOSAL_APPROVED)
		end(step, PROPOSAL_RESERVED, call->principal, now);
}

/*
 * What comes of a call.  stored exists.  Where something changes and the
 * proposal read as expired, that is what is to be written down first.
 */
void
proposal_decide(const ProposalRecord *stored, const ProposalCall *call,
				TimestampTz now, ProposalStep *step)
{
	memset(step, 0, sizeof(*step));
	step->expired = proposal_as_of(stored, now, &step->now);
	step->next = step->now;
	step->approvals = proposal_count(call->voters, excluded_voter(stored));
	switch (call->verb)
	{
		case PROPOSAL_APPROVE:
		case PROPOSAL_REJECT:
			decide_vote(call, now, step);
			break;
		case PROPOSAL_REVOKE:
			decide_revoke(call, now, step);
			break;
		case PROPOSAL_WITHDRAW:
		case PROPOSAL_SUPERSEDE:
			decide_take_back(call, now, step);
			break;
		case PROPOSAL_RESERVE:
			decide_reserve(call, now, step);
			break;
	}
}
