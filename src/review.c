/*
 * review.c
 *
 * What a person sees before deciding: the whole action, nothing cut, with
 * characters that hide made visible.  And the helpers of the views inbox and
 * ready, which say what can be decided or reserved at this moment by the same
 * rules as the verbs.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "claim_rows.h"
#include "clock.h"
#include "errors.h"
#include "policy.h"
#include "proposal_flow.h"
#include "proposal_store.h"
#include "query.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_review);
PG_FUNCTION_INFO_V1(tc_inbox_for);
PG_FUNCTION_INFO_V1(tc_visible_text);
PG_FUNCTION_INFO_V1(tc_invisible_characters);
PG_FUNCTION_INFO_V1(tc_proposal_state_now);
PG_FUNCTION_INFO_V1(tc_approvals_now);
PG_FUNCTION_INFO_V1(tc_can_be_decided);
PG_FUNCTION_INFO_V1(tc_can_be_reserved);
PG_FUNCTION_INFO_V1(tc_can_vote);

/* ----- characters that hide ----- */

/*
 * Ranges of code points that show nothing, or change how others show: control
 * and format characters, blanks other than the space, fillers, variation
 * selectors, tags, private use, noncharacters (Unicode 15, categories Cc, Cf,
 * Co, Cn of the end of planes, Zl, Zp, Zs, and default ignorable ones).
 */
static const struct
{
	pg_wchar	first;
	pg_wchar	last;
}			invisible[] = {
	{0x0000, 0x001F}, {0x007F, 0x00A0}, {0x00AD, 0x00AD}, {0x034F, 0x034F},
	{0x0600, 0x0605}, {0x061C, 0x061C}, {0x06DD, 0x06DD}, {0x070F, 0x070F},
	{0x0890, 0x0891}, {0x08E2, 0x08E2}, {0x115F, 0x1160}, {0x1680, 0x1680},
	{0x17B4, 0x17B5}, {0x180B, 0x180F}, {0x2000, 0x200F}, {0x2028, 0x202F},
	{0x205F, 0x206F}, {0x2800, 0x2800}, {0x3000, 0x3000}, {0x3164, 0x3164},
	{0xE000, 0xF8FF}, {0xFDD0, 0xFDEF}, {0xFE00, 0xFE0F}, {0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0}, {0xFFF0, 0xFFFB}, {0xFFFE, 0xFFFF},
	{0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F},
	{0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0x10FFFF}
};

static bool
is_invisible(pg_wchar c)
{
	int			low = 0;
	int			high = lengthof(invisible) - 1;

	/* the last two code points of every plane */
	if ((c & 0xFFFE) == 0xFFFE)
		return true;
	while (low <= high)
	{
		int			middle = (low + high) / 2;

		if (c < invisible[middle].first)
			high = middle - 1;
		else if (c > invisible[middle].last)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

/*
 * Appends canonical JSON with its hiding characters as escapes, which leaves
 * its value what it is.  Returns how many they were.
 */
static int
make_visible(StringInfo to, const unsigned char *text, size_t length)
{
	const unsigned char *end = text + length;
	int			count = 0;

	while (text < end)
	{
		int			bytes = pg_utf_mblen(text);
		pg_wchar	c = utf8_to_unicode(text);

		if (!is_invisible(c))
			appendBinaryStringInfo(to, (const char *) text, bytes);
		else
		{
			if (c > 0xFFFF)
				appendStringInfo(to, "\\u%04x\\u%04x",
								 0xD800 + ((c - 0x10000) >> 10),
								 0xDC00 + ((c - 0x10000) & 0x3FF));
			else
				appendStringInfo(to, "\\u%04x", c);
			count++;
		}
		text += bytes;
	}
	return count;
}

/*
 * Control characters stand in canonical JSON as escapes already: count them,
 * too.  An escaped backslash is no beginning of one.
 */
static int
count_escapes(const char *text, size_t length)
{
	int			count = 0;

	for (size_t i = 0; i + 1 < length; i++)
		if (text[i] == '\\')
		{
			i++;
			if (text[i] != '\\' && text[i] != '"')
				count++;
		}
	return count;
}

/* tool_claims.visible_text(canonical_json) returns text */
Datum
tc_visible_text(PG_FUNCTION_ARGS)
{
	CanonicalJson *input = PG_GETARG_CANONICAL_JSON(0);
	StringInfoData text;
	char	   *result;

	initStringInfo(&text);
	(void) make_visible(&text, (const unsigned char *) VARDATA_ANY(input),
						canonical_json_size(input));
	/* from UTF-8; the type prints what the server's encoding lacks escaped */
	result = canonical_json_to_cstring(cstring_to_text_with_len(text.data,
																text.len));
	PG_RETURN_TEXT_P(cstring_to_text(result));
}

/* tool_claims.invisible_characters(canonical_json) returns integer */
Datum
tc_invisible_characters(PG_FUNCTION_ARGS)
{
	CanonicalJson *input = PG_GETARG_CANONICAL_JSON(0);
	StringInfoData text;
	int			count;

	initStringInfo(&text);
	count = make_visible(&text, (const unsigned char *) VARDATA_ANY(input),
						 canonical_json_size(input));
	PG_RETURN_INT32(count + count_escapes(VARDATA_ANY(input),
										  canonical_json_size(input)));
}

/* ----- what reads how, for the views ----- */

/*
 * tool_claims.proposal_state_now(state "char", expires_at timestamptz)
 *		returns proposal_state
 */
Datum
tc_proposal_state_now(PG_FUNCTION_ARGS)
{
	ProposalRecord stored;
	ProposalRecord now;

	memset(&stored, 0, sizeof(stored));
	stored.state = PG_GETARG_CHAR(0);
	if (strcmp(proposal_state_name(stored.state), "none") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("\"%c\" is no state of a proposal", PG_GETARG_CHAR(0))));
	stored.bound.expires_at = PG_GETARG_TIMESTAMPTZ(1);
	(void) proposal_as_of(&stored, clock_now(), &now);
	return enum_datum(get_fn_expr_rettype(fcinfo->flinfo),
					  proposal_state_name(now.state));
}

/* the proposal that a view's row names by its first three arguments */
static bool
named_proposal(FunctionCallInfo fcinfo, ProposalRecord *record)
{
	ClaimKey	key;

	key.organization = text_to_cstring(PG_GETARG_TEXT_PP(0));
	key.task_id = text_to_cstring(PG_GETARG_TEXT_PP(1));
	key.tool_call_id = text_to_cstring(PG_GETARG_TEXT_PP(2));
	return (settings_all_organizations() ||
			strcmp(key.organization, settings_organization()) == 0) &&
		proposal_read(&key, record);
}

/*
 * tool_claims.approvals_now(organization text, task_id text,
 *							 tool_call_id text) returns integer
 *
 * How many votes for the proposal count at this moment.
 */
Datum
tc_approvals_now(PG_FUNCTION_ARGS)
{
	ProposalRecord record;

	if (!named_proposal(fcinfo, &record))
		PG_RETURN_NULL();
	PG_RETURN_INT32(proposal_count(proposal_voters(&record, false, STORE_WAIT),
								   record.allow_self_approval ? NULL :
								   record.bound.actor));
}

/*
 * tool_claims.can_be_decided(organization text, task_id text,
 *							  tool_call_id text) returns boolean
 *
 * Is the policy of the tool still the one that the proposal was made under,
 * and are there still enough people who may vote?
 */
Datum
tc_can_be_decided(PG_FUNCTION_ARGS)
{
	ProposalRecord record;
	const char *version;
	const char *source;

	if (!named_proposal(fcinfo, &record))
		PG_RETURN_NULL();
	(void) proposal_policy(&record, false, STORE_WAIT, &version, &source);
	PG_RETURN_BOOL(strcmp(version, record.bound.policy_version) == 0 &&
				   strcmp(source, record.policy_source) == 0 &&
				   proposal_quorum(proposal_registered(&record, NULL, false),
								   record.approvals_required,
								   record.approver_groups,
								   record.allow_self_approval ? NULL :
								   record.bound.actor));
}

/* has the execution of a reserved proposal given it back, with tries left? */
static bool
was_given_back(const ProposalRecord *record, const ClaimPolicy *policy)
{
	ClaimRecord stored;
	ClaimRecord claim;

	if (!store_read(&record->key, &stored))
		return false;
	(void) claim_as_of(&stored, clock_now(), &claim);
	return claim.state == CLAIM_RELEASED &&
		(policy->max_attempts == 0 || claim.attempt < policy->max_attempts);
}

/*
 * tool_claims.can_be_reserved(organization text, task_id text,
 *							   tool_call_id text) returns boolean
 */
Datum
tc_can_be_reserved(PG_FUNCTION_ARGS)
{
	ProposalRecord record;
	ProposalCall call = {.verb = PROPOSAL_RESERVE, .by_digest = true};
	ProposalStep step;
	ClaimPolicy policy;

	if (!named_proposal(fcinfo, &record))
		PG_RETURN_NULL();
	call.binding_digest = record.binding_digest;
	(void) proposal_gather(&record, &call, false, STORE_WAIT);
	proposal_decide(&record, &call, clock_now(), &step);
	policy_of(record.key.organization, record.bound.tool_server,
			  record.bound.tool_name, &policy);
	PG_RETURN_BOOL(step.refusal == NULL && policy.enabled &&
				   (!policy.operation_required ||
					record.bound.operation_id != NULL) &&
				   (step.changes || was_given_back(&record, &policy)));
}

/*
 * tool_claims.can_vote(organization text, task_id text, tool_call_id text,
 *						principal text) returns boolean
 */
Datum
tc_can_vote(PG_FUNCTION_ARGS)
{
	ProposalRecord record;
	ProposalCall call = {.verb = PROPOSAL_APPROVE};
	ProposalStep step;

	if (!named_proposal(fcinfo, &record))
		PG_RETURN_NULL();
	call.principal = text_to_cstring(PG_GETARG_TEXT_PP(3));
	call.binding_digest = record.binding_digest;
	(void) proposal_gather(&record, &call, false, STORE_WAIT);
	proposal_decide(&record, &call, clock_now(), &step);
	PG_RETURN_BOOL(step.votes);
}

/* ----- review and inbox_for ----- */

static SavedQuery review_query = {
	"SELECT p.organization, p.task_id, p.tool_call_id, "
	"tool_claims.proposal_state_now(p.state, p.expires_at), p.actor, "
	"p.project, p.tool_server, p.tool_name, p.schema_version, "
	"p.policy_version, p.operation_id, p.execution_id, p.expires_at, "
	"p.summary, p.supersedes, p.input, "
	"pg_catalog.octet_length(p.input::pg_catalog.text), "
	"tool_claims.visible_text(p.input), "
	"tool_claims.invisible_characters(p.input), p.binding_digest, "
	"p.proposed_by, p.proposed_at, "
	"tool_claims.clock() OPERATOR(pg_catalog.-) p.proposed_at, "
	"p.expires_at OPERATOR(pg_catalog.-) tool_claims.clock(), p.use_by, "
	"tool_claims.approvals_now(p.organization, p.task_id, p.tool_call_id), "
	"p.approvals_required, p.approver_groups, "
	"(SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object("
	"'principal', v.principal, 'vote', CASE v.vote WHEN 'a' THEN 'approve' "
	"ELSE 'reject' END, 'at', v.voted_at, 'comment', v.comment) "
	"ORDER BY v.voted_at, v.principal) FROM tool_claims.votes v "
	"WHERE v.organization OPERATOR(pg_catalog.=) p.organization AND "
	"v.task_id OPERATOR(pg_catalog.=) p.task_id AND "
	"v.tool_call_id OPERATOR(pg_catalog.=) p.tool_call_id), "
	"(SELECT pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object("
	"'tool_call_id', o.tool_call_id, 'rejected_by', o.ended_by, "
	"'rejected_at', o.ended_at, 'comment', (SELECT v.comment "
	"FROM tool_claims.votes v "
	"WHERE v.organization OPERATOR(pg_catalog.=) o.organization AND "
	"v.task_id OPERATOR(pg_catalog.=) o.task_id AND "
	"v.tool_call_id OPERATOR(pg_catalog.=) o.tool_call_id AND "
	"v.vote OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\" LIMIT 1)) "
	"ORDER BY o.ended_at) FROM tool_claims.proposal_records o "
	"WHERE o.organization OPERATOR(pg_catalog.=) p.organization AND "
	"o.task_id OPERATOR(pg_catalog.=) p.task_id AND "
	"o.tool_call_id OPERATOR(pg_catalog.<>) p.tool_call_id AND "
	"o.tool_server OPERATOR(pg_catalog.=) p.tool_server AND "
	"o.tool_name OPERATOR(pg_catalog.=) p.tool_name AND "
	"o.input_digest::pg_catalog.bytea OPERATOR(pg_catalog.=) "
	"p.input_digest::pg_catalog.bytea AND "
	"o.state OPERATOR(pg_catalog.=) 'r'::pg_catalog.\"char\"), "
	"(SELECT pg_catalog.count(*)::pg_catalog.int4 "
	"FROM tool_claims.proposal_records o "
	"WHERE o.organization OPERATOR(pg_catalog.=) p.organization AND "
	"o.task_id OPERATOR(pg_catalog.=) p.task_id AND "
	"o.tool_server OPERATOR(pg_catalog.=) p.tool_server AND "
	"o.tool_name OPERATOR(pg_catalog.=) p.tool_name AND "
	"o.input_digest::pg_catalog.bytea OPERATOR(pg_catalog.=) "
	"p.input_digest::pg_catalog.bytea AND "
	"tool_claims.proposal_state_now(o.state, o.expires_at)::pg_catalog.text "
	"OPERATOR(pg_catalog.=) 'pending'), "
	"(SELECT CASE tool_claims.state_now(r.state, r.leased, r.reacquire, "
	"r.dispatched_at, r.lease_expires_at)::pg_catalog.text "
	"WHEN 'claimed' THEN 'in_progress' WHEN 'retired' THEN NULL "
	"ELSE tool_claims.state_now(r.state, r.leased, r.reacquire, "
	"r.dispatched_at, r.lease_expires_at)::pg_catalog.text END::"
	"tool_claims.outcome FROM tool_claims.claim_records r "
	"WHERE r.organization OPERATOR(pg_catalog.=) p.organization AND "
	"r.task_id OPERATOR(pg_catalog.=) p.task_id AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) p.tool_call_id) "
	"FROM tool_claims.proposal_records p "
	"WHERE p.organization OPERATOR(pg_catalog.=) $1 AND "
	"p.task_id OPERATOR(pg_catalog.=) $2 AND "
	"p.tool_call_id OPERATOR(pg_catalog.=) $3",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery inbox_for_query = {
	"SELECT i.* FROM tool_claims.inbox i "
	"WHERE tool_claims.can_vote(i.organization, i.task_id, i.tool_call_id, $1) "
	"ORDER BY i.proposed_at",
	1, {TEXTOID}
};

/*
 * tool_claims.review(task_id text, tool_call_id text) returns proposal_review
 *
 * The whole action.  Reads only, and works on a standby.
 */
Datum
tc_review(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	TupleDesc	descriptor = row_descriptor(fcinfo);
	QueryScope	scope;
	Datum		arguments[3];
	Datum	   *values;
	bool	   *nulls;
	HeapTuple	tuple = NULL;
	bool		found;

	query_key_arguments(&key, arguments);
	query_begin(&scope);
	found = query_run(&review_query, arguments, NULL, InvalidSnapshot) > 0;
	if (found)
	{
		MemoryContext old = MemoryContextSwitchTo(scope.caller);

		values = palloc(descriptor->natts * sizeof(Datum));
		nulls = palloc(descriptor->natts * sizeof(bool));
		heap_deform_tuple(SPI_tuptable->vals[0], SPI_tuptable->tupdesc,
						  values, nulls);
		tuple = heap_form_tuple(descriptor, values, nulls);
		MemoryContextSwitchTo(old);
	}
	query_end(&scope);
	if (!found)
		ereport(ERROR,
				(errcode(ERRCODE_TC_NO_SUCH_RECORD),
				 errmsg("proposal (\"%s\", \"%s\") does not exist",
						key.task_id, key.tool_call_id),
				 errdetail("There is no proposal in organization \"%s\".",
						   key.organization)));
	return HeapTupleGetDatum(tuple);
}

/* tool_claims.inbox_for(principal text) returns setof inbox */
Datum
tc_inbox_for(PG_FUNCTION_ARGS)
{
	Datum		values[1];

	values[0] = CStringGetTextDatum(argument_key_text(fcinfo, 0, "principal",
													  KEY_TEXT_FILLED));
	query_return_set(fcinfo, &inbox_for_query, values, NULL, QUERY_SCAN);
	return (Datum) 0;
}
