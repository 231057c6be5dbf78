/*
 * tool_policy.c
 *
 * The verbs that set the policy of a tool.  What a call reads is policy.c.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "at_commit.h"
#include "clock.h"
#include "policy.h"
#include "query.h"
#include "registered_function.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_set_tool_policy);
PG_FUNCTION_INFO_V1(tc_drop_tool_policy);
PG_FUNCTION_INFO_V1(tc_max_attempts);

/* the members of a policy, as arguments of set_tool_policy from 2 on */
enum
{
	MEMBER_ENABLED,
	MEMBER_EFFECT,
	MEMBER_APPROVALS_REQUIRED,
	MEMBER_APPROVAL_RULE,
	MEMBER_APPROVER_GROUPS,
	MEMBER_ALLOW_SELF_APPROVAL,
	MEMBER_POLICY_VERSION,
	MEMBER_ON_LEASE_EXPIRY,
	MEMBER_MAX_ATTEMPTS,
	MEMBER_OPERATION_REQUIRED,
	MEMBER_PROPOSAL_TTL,
	MEMBER_KEEP_INPUT,
	MEMBER_INPUT_CHECK,
	MEMBER_RETENTION,
	MEMBER_LOG,
	MEMBERS
};

static const struct
{
	const char *name;
	const char *values[4];		/* the words allowed, where it is a word */
}			members[MEMBERS] = {
	[MEMBER_ENABLED] = {"enabled"},
	[MEMBER_EFFECT] = {"effect", {"any", "local", "external"}},
	[MEMBER_APPROVALS_REQUIRED] = {"approvals_required"},
	[MEMBER_APPROVAL_RULE] = {"approval_rule"},
	[MEMBER_APPROVER_GROUPS] = {"approver_groups"},
	[MEMBER_ALLOW_SELF_APPROVAL] = {"allow_self_approval"},
	[MEMBER_POLICY_VERSION] = {"policy_version"},
	[MEMBER_ON_LEASE_EXPIRY] = {"on_lease_expiry", {"uncertain", "reacquire"}},
	[MEMBER_MAX_ATTEMPTS] = {"max_attempts"},
	[MEMBER_OPERATION_REQUIRED] = {"operation_required"},
	[MEMBER_PROPOSAL_TTL] = {"proposal_ttl"},
	[MEMBER_KEEP_INPUT] = {"keep_input"},
	[MEMBER_INPUT_CHECK] = {"input_check"},
	[MEMBER_RETENTION] = {"retention"},
	[MEMBER_LOG] = {"log", {"exceptions", "all"}}
};

#define FIRST_MEMBER	2
#define RESET_ARGUMENT	(FIRST_MEMBER + MEMBERS)

/* arguments of the statement: key, members, who registers, reset, number */
#define ARG_MEMBERS		3
#define ARG_REGISTRAR	(ARG_MEMBERS + MEMBERS)
#define ARG_RESET		(ARG_REGISTRAR + 1)
#define ARG_NUMBER		(ARG_RESET + 1)
#define POLICY_ARGS		(ARG_NUMBER + 1)

/* the value of a member: put back, or the new one, or the old one */
#define MEMBER(column, parameter) \
	#column " = CASE WHEN '" #column "' OPERATOR(pg_catalog.=) ANY ($20) " \
	"THEN NULL ELSE COALESCE($" #parameter ", p." #column ") END"

/* who registered a function, beside the function */
#define REGISTRAR(column, parameter) \
	#column "_role = CASE WHEN '" #column "' OPERATOR(pg_catalog.=) " \
	"ANY ($20) THEN NULL WHEN $" #parameter " IS NOT NULL THEN $19 " \
	"ELSE p." #column "_role END"

static SavedQuery set_policy_query = {
	"INSERT INTO tool_claims.policies AS p (organization, tool_name, "
	"tool_server, enabled, effect, approvals_required, approval_rule, "
	"approval_rule_role, approver_groups, allow_self_approval, "
	"policy_version, on_lease_expiry, max_attempts, operation_required, "
	"proposal_ttl, keep_input, input_check, input_check_role, retention, "
	"log) VALUES ($1, $2, $3, $4, $5, $6, $7, CASE WHEN $7 IS NOT NULL THEN "
	"$19 END, $8, $9, COALESCE($10, $21), $11, $12, $13, $14, $15, $16, "
	"CASE WHEN $16 IS NOT NULL THEN $19 END, $17, $18) "
	"ON CONFLICT (organization, tool_name, tool_server) DO UPDATE SET "
	MEMBER(enabled, 4) ", " MEMBER(effect, 5) ", "
	MEMBER(approvals_required, 6) ", " MEMBER(approval_rule, 7) ", "
	REGISTRAR(approval_rule, 7) ", " MEMBER(approver_groups, 8) ", "
	MEMBER(allow_self_approval, 9) ", "
	"policy_version = COALESCE($10, $21), "
	MEMBER(on_lease_expiry, 11) ", " MEMBER(max_attempts, 12) ", "
	MEMBER(operation_required, 13) ", " MEMBER(proposal_ttl, 14) ", "
	MEMBER(keep_input, 15) ", " MEMBER(input_check, 16) ", "
	REGISTRAR(input_check, 16) ", " MEMBER(retention, 17) ", "
	MEMBER(log, 18),
	POLICY_ARGS,
	{TEXTOID, TEXTOID, TEXTOID, BOOLOID, TEXTOID, INT4OID, TEXTOID,
		TEXTARRAYOID, BOOLOID, TEXTOID, TEXTOID, INT4OID, BOOLOID, INTERVALOID,
	BOOLOID, TEXTOID, INTERVALOID, TEXTOID, TEXTOID, TEXTARRAYOID, TEXTOID}
};

/*
 * Numbers the policy's change.  The number outlives the policy: one that was
 * dropped and made anew must not take an old version up again.  Nor must it
 * come to a version that was given by name, so it goes past that ($4).
 */
static SavedQuery number_query = {
	"INSERT INTO tool_claims.policy_numbers AS n (organization, tool_name, "
	"tool_server, number) VALUES ($1, $2, $3, GREATEST(1, $4)) "
	"ON CONFLICT (organization, tool_name, tool_server) DO UPDATE SET "
	"number = GREATEST(n.number OPERATOR(pg_catalog.+) 1, $4) "
	"RETURNING n.number::pg_catalog.text",
	4, {TEXTOID, TEXTOID, TEXTOID, INT8OID}
};

static SavedQuery drop_policy_query = {
	"DELETE FROM tool_claims.policies p "
	"WHERE p.organization OPERATOR(pg_catalog.=) $1 AND "
	"p.tool_name OPERATOR(pg_catalog.=) $2 AND "
	"p.tool_server OPERATOR(pg_catalog.=) $3",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static void
refuse_value(const char *name, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("argument \"%s\" has a value that is not allowed", name),
			 errhint("%s", hint)));
}

/* a word must be one of those that the member knows */
static void
check_word(FunctionCallInfo fcinfo, int member)
{
	const char *value;

	if (members[member].values[0] == NULL || PG_ARGISNULL(FIRST_MEMBER + member))
		return;
	value = argument_text(fcinfo, FIRST_MEMBER + member);
	for (int i = 0; members[member].values[i] != NULL; i++)
		if (strcmp(value, members[member].values[i]) == 0)
			return;
	refuse_value(members[member].name,
				 psprintf("It is one of: %s, %s%s%s.",
						  members[member].values[0], members[member].values[1],
						  members[member].values[2] ? ", " : "",
						  members[member].values[2] ? members[member].values[2] : ""));
}

static const char *
member_names(void)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < MEMBERS; i++)
		appendStringInfo(&names, "%s%s", i > 0 ? ", " : "", members[i].name);
	return names.data;
}

/* the members to put back; each is one, and is not set by the same call */
static Datum
reset_argument(FunctionCallInfo fcinfo)
{
	ArrayType  *array;
	Datum	   *names;
	bool	   *nulls;
	int			count;

	if (PG_ARGISNULL(RESET_ARGUMENT))
		return PointerGetDatum(construct_empty_array(TEXTOID));
	array = PG_GETARG_ARRAYTYPE_P(RESET_ARGUMENT);
	deconstruct_array(array, TEXTOID, -1, false, TYPALIGN_INT,
					  &names, &nulls, &count);
	for (int i = 0; i < count; i++)
	{
		const char *name = nulls[i] ? "" : TextDatumGetCString(names[i]);
		int			member = -1;

		for (int j = 0; j < MEMBERS; j++)
			if (strcmp(name, members[j].name) == 0)
				member = j;
		if (member < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("policy has no member \"%s\"", name),
					 errhint("Members are: %s.", member_names())));
		if (!PG_ARGISNULL(FIRST_MEMBER + member))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("policy member \"%s\" is both set and reset", name)));
	}
	return PointerGetDatum(array);
}

/* the tool and server that a policy is for, '*' for all of them */
static void
policy_key_arguments(FunctionCallInfo fcinfo, Datum *values)
{
	const char *tool_name = argument_key_text(fcinfo, 0, "tool_name",
											  KEY_TEXT_FILLED);
	const char *tool_server = argument_key_text(fcinfo, 1, "tool_server",
												KEY_TEXT_MAY_BE_EMPTY);

	if (strcmp(tool_name, "*") == 0 && strcmp(tool_server, "*") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a policy for every tool is a policy for every server"),
				 errhint("Name the tool, or use \"*\" for both.")));
	values[0] = CStringGetTextDatum(settings_verb_organization());
	values[1] = CStringGetTextDatum(tool_name);
	values[2] = CStringGetTextDatum(tool_server);
}

static bool
has_member(FunctionCallInfo fcinfo, int member)
{
	return !PG_ARGISNULL(FIRST_MEMBER + member);
}

/* values that no word list can check */
static void
check_members(FunctionCallInfo fcinfo)
{
	if (has_member(fcinfo, MEMBER_MAX_ATTEMPTS) &&
		PG_GETARG_INT32(FIRST_MEMBER + MEMBER_MAX_ATTEMPTS) < 1)
		refuse_value("max_attempts", "It is at least 1.");
	if (has_member(fcinfo, MEMBER_APPROVALS_REQUIRED) &&
		PG_GETARG_INT32(FIRST_MEMBER + MEMBER_APPROVALS_REQUIRED) < 0)
		refuse_value("approvals_required", "It is not negative.");
	if (has_member(fcinfo, MEMBER_RETENTION) &&
		clock_interval_us(PG_GETARG_INTERVAL_P(FIRST_MEMBER + MEMBER_RETENTION)) < 0)
		refuse_value("retention", "It is not negative.");
	if (has_member(fcinfo, MEMBER_PROPOSAL_TTL) &&
		clock_interval_us(PG_GETARG_INTERVAL_P(FIRST_MEMBER + MEMBER_PROPOSAL_TTL)) <= 0)
		refuse_value("proposal_ttl", "It is positive.");
	if (has_member(fcinfo, MEMBER_POLICY_VERSION))
		(void) argument_key_text(fcinfo, FIRST_MEMBER + MEMBER_POLICY_VERSION,
								 "policy_version", KEY_TEXT_FILLED);
	if (has_member(fcinfo, MEMBER_APPROVER_GROUPS) &&
		array_contains_nulls(PG_GETARG_ARRAYTYPE_P(FIRST_MEMBER + MEMBER_APPROVER_GROUPS)))
		refuse_value("approver_groups", "No group is null.");
}

/* a version given by name that looks like a number, or 0 */
static int64
named_number(FunctionCallInfo fcinfo)
{
	const char *version = argument_text(fcinfo,
										FIRST_MEMBER + MEMBER_POLICY_VERSION);

	if (version == NULL || strlen(version) > 18 ||
		strspn(version, "0123456789") != strlen(version))
		return 0;
	return strtoi64(version, NULL, 10);
}

/* puts the text of a function that is registered in the place of its OID */
static void
register_member(FunctionCallInfo fcinfo, int member, Oid result,
				Datum *values)
{
	if (has_member(fcinfo, member))
		values[ARG_MEMBERS + member] =
			CStringGetTextDatum(registered_function_of_json(PG_GETARG_OID(FIRST_MEMBER + member),
															result));
}

/*
 * tool_claims.set_tool_policy(tool_name text, tool_server text, ...,
 *							   reset text[]) returns void
 *
 * Changes the members that are named and keeps all others.
 */
Datum
tc_set_tool_policy(PG_FUNCTION_ARGS)
{
	Datum		values[POLICY_ARGS];
	char		nulls[POLICY_ARGS];
	Datum		number_values[4];
	QueryScope	scope;

	verb_enter("tool_claims.set_tool_policy()");
	policy_key_arguments(fcinfo, values);
	memset(nulls, ' ', sizeof(nulls));
	for (int i = 0; i < MEMBERS; i++)
	{
		check_word(fcinfo, i);
		values[ARG_MEMBERS + i] = PG_GETARG_DATUM(FIRST_MEMBER + i);
		if (PG_ARGISNULL(FIRST_MEMBER + i))
			nulls[ARG_MEMBERS + i] = 'n';
	}
	check_members(fcinfo);
	values[ARG_RESET] = reset_argument(fcinfo);
	values[ARG_REGISTRAR] =
		CStringGetTextDatum(GetUserNameFromId(GetUserId(), false));
	register_member(fcinfo, MEMBER_APPROVAL_RULE, INT4OID, values);
	register_member(fcinfo, MEMBER_INPUT_CHECK, TEXTOID, values);

	query_begin(&scope);
	memcpy(number_values, values, 3 * sizeof(Datum));
	number_values[3] = Int64GetDatum(named_number(fcinfo));
	query_run(&number_query, number_values, NULL, InvalidSnapshot);
	values[ARG_NUMBER] =
		CStringGetTextDatum(SPI_getvalue(SPI_tuptable->vals[0],
										 SPI_tuptable->tupdesc, 1));
	query_run(&set_policy_query, values, nulls, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
	PG_RETURN_VOID();
}

/* tool_claims.drop_tool_policy(tool_name text, tool_server text) returns void */
Datum
tc_drop_tool_policy(PG_FUNCTION_ARGS)
{
	Datum		values[3];
	QueryScope	scope;
	uint64		rows;

	verb_enter("tool_claims.drop_tool_policy()");
	policy_key_arguments(fcinfo, values);
	query_begin(&scope);
	rows = query_run(&drop_policy_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	if (rows == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("policy of tool \"%s\" of server \"%s\" does not exist",
						TextDatumGetCString(values[1]),
						TextDatumGetCString(values[2]))));
	at_commit_durable();
	PG_RETURN_VOID();
}

/*
 * tool_claims.max_attempts(organization text, tool_server text,
 *							tool_name text) returns integer
 *
 * How often the tool's policy lets a claim be acquired; NULL: no limit.
 */
Datum
tc_max_attempts(PG_FUNCTION_ARGS)
{
	ClaimPolicy policy;
	const char *organization = text_to_cstring(PG_GETARG_TEXT_PP(0));

	if (!settings_all_organizations() &&
		strcmp(organization, settings_organization()) != 0)
		PG_RETURN_NULL();
	policy_of(organization, text_to_cstring(PG_GETARG_TEXT_PP(1)),
			  text_to_cstring(PG_GETARG_TEXT_PP(2)), &policy);
	if (policy.max_attempts == 0)
		PG_RETURN_NULL();
	PG_RETURN_INT32(policy.max_attempts);
}
