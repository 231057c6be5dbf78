/*
 * proposal_flow.c
 *
 * What proposals, decisions and reservations have in common: what an approval
 * is bound to, the events, the locks, and what a decision rests on.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "arguments.h"
#include "clock.h"
#include "event_log.h"
#include "proposal_flow.h"
#include "proposal_store.h"

/* ----- the binding ----- */

const char *
proposal_uuid_text(const pg_uuid_t *uuid)
{
	return DatumGetCString(DirectFunctionCall1(uuid_out,
											   UUIDPGetDatum(uuid)));
}

/* whole seconds of UTC, as the binding has them */
const char *
proposal_seconds_text(TimestampTz time)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(time, NULL, &tm, &fsec, NULL, NULL) != 0)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range")));
	return psprintf("%04d-%02d-%02dT%02d:%02d:%02dZ", tm.tm_year, tm.tm_mon,
					tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

/* SHA-256 over the RFC 8785 form of everything that is bound */
void
proposal_binding_digest(const ClaimKey *key, const Binding *bound,
						Sha256Digest *digest)
{
	StringInfoData object;

	detail_begin(&object);
	detail_json(&object, "v", "1");
	detail_text(&object, "organization", key->organization);
	detail_text(&object, "task_id", key->task_id);
	detail_text(&object, "tool_call_id", key->tool_call_id);
	detail_text(&object, "actor", bound->actor);
	detail_text(&object, "project", bound->project);
	detail_text(&object, "tool_server", bound->tool_server);
	detail_text(&object, "tool_name", bound->tool_name);
	detail_text(&object, "schema_version", bound->schema_version);
	detail_text(&object, "policy_version", bound->policy_version);
	detail_json(&object, "input", canonical_json_to_cstring(bound->input));
	if (bound->operation_id != NULL)
		detail_text(&object, "operation_id", bound->operation_id);
	else
		detail_json(&object, "operation_id", "null");
	detail_text(&object, "execution_id", proposal_uuid_text(bound->execution_id));
	detail_text(&object, "expires_at", proposal_seconds_text(bound->expires_at));
	(void) detail_end(&object);
	canonical_json_digest(canonical_json_parse(object.data, object.len),
						  digest);
}

const pg_uuid_t *
argument_execution_id(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : PG_GETARG_UUID_P(n);
}

/*
 * What propose and reserve are given alike, from argument n on: tool_name,
 * input, actor, project, tool_server, schema_version, policy_version and
 * operation_id.
 */
void
argument_binding(FunctionCallInfo fcinfo, int n, Binding *bound)
{
	memset(bound, 0, sizeof(*bound));
	bound->tool_name = argument_tool(fcinfo, n, "tool_name", KEY_TEXT_FILLED);
	bound->input = argument_input(fcinfo, n + 1);
	canonical_json_digest(bound->input, &bound->input_digest);
	bound->actor = argument_key_text(fcinfo, n + 2, "actor", KEY_TEXT_FILLED);
	bound->project = argument_key_text(fcinfo, n + 3, "project",
									   KEY_TEXT_MAY_BE_EMPTY);
	bound->tool_server = argument_tool(fcinfo, n + 4, "tool_server",
									   KEY_TEXT_MAY_BE_EMPTY);
	bound->schema_version = argument_key_text(fcinfo, n + 5, "schema_version",
											  KEY_TEXT_MAY_BE_EMPTY);
	if (!PG_ARGISNULL(n + 6))
		bound->policy_version = argument_key_text(fcinfo, n + 6,
												  "policy_version",
												  KEY_TEXT_MAY_BE_EMPTY);
	bound->operation_id = argument_key_text(fcinfo, n + 7, "operation_id",
											KEY_TEXT_NULLABLE);
}

/* ----- events ----- */

/* writes a changing event of a locked proposal, which names it from then on */
void
proposal_event(const ClaimKey *key, EventKind kind, const char *principal,
			   const char *detail, ProposalRecord *next)
{
	EventRow   *row = palloc(sizeof(EventRow));

	event_log_prepare(row, key, kind, 0, principal, detail, NULL);
	event_log_write(row);
	next->evidence_head = &row->hash;
}

void
proposal_refused_event(const ClaimKey *key, const char *verb,
					   const char *reason, const char *principal)
{
	StringInfoData detail;
	EventRow	row;

	detail_begin(&detail);
	detail_text(&detail, "verb", verb);
	detail_text(&detail, "reason", reason);
	event_log_prepare(&row, key, EVENT_REFUSED, 0, principal,
					  detail_end(&detail), NULL);
	event_log_write(&row);
}

/* other data under a pair that has a proposal */
void
proposal_conflict_event(const ClaimKey *key, const Binding *bound,
						const char *field)
{
	StringInfoData detail;
	char		hex[SHA256_HEX_BYTES + 1];
	EventRow	row;

	detail_begin(&detail);
	detail_text(&detail, "verb", "propose");
	detail_text(&detail, "reason", field);
	detail_text(&detail, "tool_server", bound->tool_server);
	detail_text(&detail, "tool_name", bound->tool_name);
	sha256_to_hex(&bound->input_digest, hex);
	detail_text(&detail, "input_digest", hex);
	event_log_prepare(&row, key, EVENT_CONFLICT, 0, NULL, detail_end(&detail),
					  NULL);
	event_log_write(&row);
}

/* locks a proposal as an UPDATE does; false where there is none */
bool
proposal_lock_waiting(const ClaimKey *key, ProposalRecord *record)
{
	StoreLock	lock;

	do
	{
		CHECK_FOR_INTERRUPTS();
		lock = proposal_lock(key, STORE_WAIT, record);
	} while (lock == STORE_BUSY);
	return lock == STORE_LOCKED;
}

/* writes down that a locked proposal has expired */
void
proposal_write_expiry(const ProposalRecord *stored, TimestampTz now)
{
	ProposalRecord next;
	StringInfoData detail;

	if (!proposal_as_of(stored, now, &next))
		return;
	detail_begin(&detail);
	detail_text(&detail, "expires_at", proposal_seconds_text(next.bound.expires_at));
	proposal_event(&stored->key, EVENT_EXPIRED, NULL, detail_end(&detail),
				   &next);
	proposal_update(&next);
}

/* after a recovery: an approval that may have been used in what was lost */
void
proposal_write_recovered(const ClaimKey *key)
{
	ProposalRecord record;
	ProposalRecord next;

	if (!proposal_lock_waiting(key, &record) ||
		proposal_as_of(&record, clock_now(), &next) ||
		record.state != PROPOSAL_APPROVED)
		return;
	next.state = PROPOSAL_REVOKED;
	next.ended_at = clock_now();
	next.ended_by = GetUserNameFromId(GetSessionUserId(), false);
	proposal_event(key, EVENT_REVOKED, NULL, "{\"reason\":\"recovery\"}",
				   &next);
	proposal_update(&next);
}

/* ----- what a decision rests on ----- */

static int
count_registrations(List *voters)
{
	ListCell   *cell;
	int			count = 0;

	foreach(cell, voters)
		count += list_length(((Voter *) lfirst(cell))->groups);
	return count;
}

/*
 * Looks up who has voted and may vote, and the policy as it is.  With a
 * skipping lock, returns false where somebody is just changing it.
 */
bool
proposal_gather(const ProposalRecord *record, ProposalCall *call, bool lock,
				StoreWait wait)
{
	List	   *own = NIL;

	if (call->verb == PROPOSAL_APPROVE || call->verb == PROPOSAL_REJECT ||
		call->verb == PROPOSAL_REVOKE)
	{
		own = proposal_registered(record, call->principal, lock);
		call->own_vote = proposal_own_vote(&record->key, call->principal);
	}
	call->eligible = own != NIL;
	call->groups = own != NIL ? ((Voter *) linitial(own))->groups : NIL;

	/* to say no rests on nobody else, and waits for nobody else */
	if (call->verb != PROPOSAL_APPROVE && call->verb != PROPOSAL_RESERVE)
		lock = false;
	call->voters = proposal_voters(record, lock, wait);
	if (lock && wait == STORE_SKIP &&
		count_registrations(call->voters) <
		count_registrations(proposal_voters(record, false, wait)))
		return false;
	return proposal_policy(record, lock, wait, &call->policy_version,
						   &call->policy_source);
}
