/*
 * administration.c
 *
 * Policies, duties, sweep, prune and redact.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_flow.h"
#include "clock.h"
#include "errors.h"
#include "event_log.h"
#include "policy.h"
#include "proposal_api.h"
#include "proposal_store.h"
#include "query.h"
#include "registered_function.h"
#include "settings.h"
#include "store.h"

PG_FUNCTION_INFO_V1(tc_set_tool_policy);
PG_FUNCTION_INFO_V1(tc_drop_tool_policy);
PG_FUNCTION_INFO_V1(tc_grant_duty);
PG_FUNCTION_INFO_V1(tc_revoke_duty);
PG_FUNCTION_INFO_V1(tc_sweep);
PG_FUNCTION_INFO_V1(tc_prune);
PG_FUNCTION_INFO_V1(tc_redact);
PG_FUNCTION_INFO_V1(tc_timeline);
PG_FUNCTION_INFO_V1(tc_retention_cutoff);
PG_FUNCTION_INFO_V1(tc_max_attempts);

/* ----- policies ----- */

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
 * tool_claims.retention_cutoff(organization text, tool_server text,
 *								tool_name text) returns timestamptz
 *
 * Records of the tool that ended before this may be pruned; NULL: none.
 */
Datum
tc_retention_cutoff(PG_FUNCTION_ARGS)
{
	ClaimPolicy policy;
	int64		retention;
	TimestampTz now = clock_now();

	policy_of(text_to_cstring(PG_GETARG_TEXT_PP(0)),
			  text_to_cstring(PG_GETARG_TEXT_PP(1)),
			  text_to_cstring(PG_GETARG_TEXT_PP(2)), &policy);
	if (policy.retention == NULL)
		PG_RETURN_NULL();
	retention = clock_interval_us(policy.retention);
	if (retention > now - MIN_TIMESTAMP)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(now - retention);
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

/* ----- duties ----- */

static SavedQuery duty_exists_query = {
	"SELECT 1 FROM tool_claims.duty_privileges d "
	"WHERE d.duty OPERATOR(pg_catalog.=) $1",
	1, {TEXTOID}
};

static SavedQuery duty_insert_query = {
	"INSERT INTO tool_claims.duties (role_name, duty) VALUES ($1, $2) "
	"ON CONFLICT DO NOTHING",
	2, {TEXTOID, TEXTOID}
};

static SavedQuery duty_delete_query = {
	"DELETE FROM tool_claims.duties d "
	"WHERE d.role_name OPERATOR(pg_catalog.=) $1 AND "
	"d.duty OPERATOR(pg_catalog.=) $2",
	2, {TEXTOID, TEXTOID}
};

#define PRIVILEGES \
	"SELECT DISTINCT d.privilege || CASE d.kind " \
	"WHEN 'function' THEN pg_catalog.format(' ON FUNCTION %s', " \
	"p.oid::pg_catalog.regprocedure) " \
	"WHEN 'schema' THEN pg_catalog.format(' ON SCHEMA %I', d.name) " \
	"ELSE pg_catalog.format(' ON tool_claims.%I', d.name) END " \
	"FROM tool_claims.duty_privileges d LEFT JOIN pg_catalog.pg_proc p " \
	"ON d.kind OPERATOR(pg_catalog.=) 'function' AND " \
	"p.proname OPERATOR(pg_catalog.=) d.name::pg_catalog.name AND " \
	"p.pronamespace OPERATOR(pg_catalog.=) " \
	"'tool_claims'::pg_catalog.regnamespace "

static SavedQuery granted_query = {
	PRIVILEGES
	"WHERE d.duty OPERATOR(pg_catalog.=) ANY (ARRAY['*', $1])",
	1, {TEXTOID}
};

/* what goes with a duty: all but what the role's other duties give */
static SavedQuery revoked_query = {
	PRIVILEGES
	"WHERE d.duty OPERATOR(pg_catalog.=) ANY (ARRAY['*', $1]) AND "
	"NOT EXISTS (SELECT 1 FROM tool_claims.duties h "
	"JOIN tool_claims.duty_privileges k "
	"ON k.duty OPERATOR(pg_catalog.=) ANY (ARRAY['*', h.duty]) "
	"WHERE h.role_name OPERATOR(pg_catalog.=) $2 AND "
	"k.kind OPERATOR(pg_catalog.=) d.kind AND "
	"k.name OPERATOR(pg_catalog.=) d.name AND "
	"k.privilege OPERATOR(pg_catalog.=) d.privilege)",
	2, {TEXTOID, TEXTOID}
};

static void
duty_arguments(FunctionCallInfo fcinfo, Datum *values, char **role)
{
	QueryScope	scope;
	uint64		rows;
	Oid			oid;

	require_argument(fcinfo, 0, "role");
	require_argument(fcinfo, 1, "duty");
	oid = PG_GETARG_OID(0);
	*role = GetUserNameFromId(oid, true);
	if (*role == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("role with OID %u does not exist", oid)));
	values[0] = CStringGetTextDatum(*role);
	values[1] = PG_GETARG_DATUM(1);
	query_begin(&scope);
	rows = query_run(&duty_exists_query, &values[1], NULL, InvalidSnapshot);
	query_end(&scope);
	if (rows == 0 || strcmp(TextDatumGetCString(values[1]), "*") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("duty \"%s\" does not exist",
						TextDatumGetCString(values[1])),
				 errhint("Duties are listed in tool_claims.duty_privileges.")));
}

/* runs GRANT or REVOKE for every privilege that the query names */
static void
run_privileges(SavedQuery *query, Datum *values, const char *statement,
			   const char *direction, const char *role)
{
	uint64		rows = query_run(query, values, NULL, InvalidSnapshot);
	char	  **privileges = palloc((rows + 1) * sizeof(char *));

	for (uint64 i = 0; i < rows; i++)
		privileges[i] = SPI_getvalue(SPI_tuptable->vals[i],
									 SPI_tuptable->tupdesc, 1);
	for (uint64 i = 0; i < rows; i++)
	{
		char	   *sql = psprintf("%s %s %s %s", statement, privileges[i],
								   direction, quote_identifier(role));
		int			result = SPI_execute(sql, false, 0);

		if (result < 0)
			elog(ERROR, "SPI_execute failed: %s",
				 SPI_result_code_string(result));
	}
}

/* tool_claims.grant_duty(role regrole, duty text) returns void */
Datum
tc_grant_duty(PG_FUNCTION_ARGS)
{
	Datum		values[2];
	char	   *role;
	QueryScope	scope;

	verb_enter("tool_claims.grant_duty()");
	duty_arguments(fcinfo, values, &role);
	query_begin(&scope);
	query_run(&duty_insert_query, values, NULL, InvalidSnapshot);
	run_privileges(&granted_query, &values[1], "GRANT", "TO", role);
	query_end(&scope);
	PG_RETURN_VOID();
}

/* tool_claims.revoke_duty(role regrole, duty text) returns void */
Datum
tc_revoke_duty(PG_FUNCTION_ARGS)
{
	Datum		values[2];
	Datum		swapped[2];
	char	   *role;
	QueryScope	scope;

	verb_enter("tool_claims.revoke_duty()");
	duty_arguments(fcinfo, values, &role);
	swapped[0] = values[1];
	swapped[1] = values[0];
	query_begin(&scope);
	query_run(&duty_delete_query, values, NULL, InvalidSnapshot);
	run_privileges(&revoked_query, swapped, "REVOKE", "FROM", role);
	query_end(&scope);
	PG_RETURN_VOID();
}

/* ----- sweep, prune, redact ----- */

#define IN_ORGANIZATION \
	"($1 OPERATOR(pg_catalog.=) '*' OR " \
	"r.organization OPERATOR(pg_catalog.=) $1) "

static SavedQuery expired_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND r.open_since IS NOT NULL AND "
	"r.state OPERATOR(pg_catalog.=) 'c'::pg_catalog.\"char\" AND "
	"r.lease_expires_at OPERATOR(pg_catalog.<=) $2 "
	"ORDER BY r.open_since LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

#define FINAL_STATES \
	"(r.state OPERATOR(pg_catalog.=) ANY ('{d,f,r}'::pg_catalog.\"char\"[]) " \
	"OR ($4 AND r.state OPERATOR(pg_catalog.=) 't'::pg_catalog.\"char\")) "

static SavedQuery old_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND " FINAL_STATES " AND "
	"r.finished_at OPERATOR(pg_catalog.<) $2 "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

static SavedQuery retention_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.claim_records r "
	"WHERE " IN_ORGANIZATION " AND " FINAL_STATES " AND "
	"r.finished_at OPERATOR(pg_catalog.<) tool_claims.retention_cutoff("
	"r.organization, r.tool_server, r.tool_name) "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

/* the keys that a query finds and locks */
static ClaimKey *
find_keys(SavedQuery *query, Datum *values, uint64 *count)
{
	QueryScope	scope;
	ClaimKey   *keys;

	query_begin_scan(&scope);
	*count = query_run(query, values, NULL, InvalidSnapshot);
	keys = query_keys(&scope, *count);
	query_end(&scope);
	return keys;
}

static int32
max_rows_argument(FunctionCallInfo fcinfo, int n)
{
	require_argument(fcinfo, n, "max_rows");
	if (PG_GETARG_INT32(n) < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"max_rows\" must not be negative")));
	return PG_GETARG_INT32(n);
}

/*
 * Shows in pg_stat_activity how far a verb is that goes through many rows.
 */
static void
show_progress(const char *verb, uint64 done, uint64 count)
{
	if (done % 100 == 0)
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("tool_claims.%s(): %llu of %llu rows",
										verb, (unsigned long long) done,
										(unsigned long long) count));
}

static void
end_progress(void)
{
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
}

static SavedQuery expired_proposals_query = {
	"SELECT r.organization, r.task_id, r.tool_call_id "
	"FROM tool_claims.proposal_records r "
	"WHERE " IN_ORGANIZATION " AND "
	"r.state OPERATOR(pg_catalog.=) ANY ('{p,a}'::pg_catalog.\"char\"[]) AND "
	"r.expires_at OPERATOR(pg_catalog.<=) $2 "
	"ORDER BY r.expires_at LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

/* writes down which proposals have expired; arguments as for claims */
static int32
sweep_proposals(Datum *values)
{
	uint64		count;
	ClaimKey   *keys = find_keys(&expired_proposals_query, values, &count);
	int32		done = 0;

	for (uint64 i = 0; i < count; i++)
	{
		ProposalRecord record;

		CHECK_FOR_INTERRUPTS();
		if (proposal_lock(&keys[i], STORE_SKIP, &record) != STORE_LOCKED)
			continue;
		proposal_write_expiry(&record, clock_now());
		done++;
	}
	return done;
}

/*
 * tool_claims.sweep(max_rows integer) returns integer
 *
 * Writes down which attempts have ended by expiry, at most max_rows; returns
 * how many.  Rows that somebody holds are skipped.
 */
Datum
tc_sweep(PG_FUNCTION_ARGS)
{
	MemoryContext row_context;
	MemoryContext old;
	Datum		values[3];
	ClaimKey   *keys;
	uint64		count;
	int32		done = 0;

	verb_enter("tool_claims.sweep()");
	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(clock_now());
	values[2] = Int32GetDatum(max_rows_argument(fcinfo, 0));
	keys = find_keys(&expired_query, values, &count);

	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"tool_claims sweep",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (uint64 i = 0; i < count; i++)
	{
		ClaimRecord stored;
		ClaimRecord now;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_context);
		show_progress("sweep", i, count);
		if (store_lock(&keys[i], STORE_SKIP, &stored) == STORE_LOCKED &&
			claim_as_of(&stored, clock_now(), &now))
		{
			claim_write_expiry(&stored, &now);
			done++;
		}
	}
	MemoryContextSwitchTo(old);
	end_progress();
	values[2] = Int32GetDatum(PG_GETARG_INT32(0) - done);
	PG_RETURN_INT32(done + sweep_proposals(values));
}

/* what is left of a pruned record: its key, its identity, and one event */
static void
retire(const ClaimRecord *stored)
{
	ClaimRecord next = *stored;
	StringInfoData detail;
	EventRow	row;

	detail_begin(&detail);
	detail_text(&detail, "state", claim_state_name(stored->state));
	event_log_prepare(&row, &stored->key, EVENT_PRUNED, 0, NULL,
					  detail_end(&detail), NULL);
	event_log_write(&row);
	event_log_delete(&stored->key, &row);

	next.state = CLAIM_RETIRED;
	next.finished_at = clock_now();
	next.open_since = CLAIM_NO_TIME;
	next.held_session = NULL;
	next.held_from = NULL;
	next.request_id = NULL;
	next.external_ref = NULL;
	next.result = NULL;
	next.error = NULL;
	next.reconciled = NULL;
	next.redacted = NULL;
	next.evidence_head = &row.hash;
	store_redact(&next);
	proposal_delete(&stored->key);
}

static void
forget(const ClaimRecord *stored)
{
	event_log_delete(&stored->key, NULL);
	if (stored->operation_id != NULL)
		store_operation_delete(stored);
	store_delete(&stored->key);
	proposal_delete(&stored->key);
	if (stored->leased)
		at_commit_durable();
}

#define PRUNABLE_PROPOSALS \
	"SELECT r.organization, r.task_id, r.tool_call_id " \
	"FROM tool_claims.proposal_records r " \
	"WHERE " IN_ORGANIZATION " AND " \
	"r.state OPERATOR(pg_catalog.=) ANY ('{r,w,v,s,x}'::pg_catalog.\"char\"[]) " \
	"AND ($4 OR NOT r.pruned) AND NOT EXISTS (SELECT 1 " \
	"FROM tool_claims.claim_records c " \
	"WHERE c.organization OPERATOR(pg_catalog.=) r.organization AND " \
	"c.task_id OPERATOR(pg_catalog.=) r.task_id AND " \
	"c.tool_call_id OPERATOR(pg_catalog.=) r.tool_call_id) AND "

static SavedQuery old_proposals_query = {
	PRUNABLE_PROPOSALS "r.ended_at OPERATOR(pg_catalog.<) $2 "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

static SavedQuery retained_proposals_query = {
	PRUNABLE_PROPOSALS "r.ended_at OPERATOR(pg_catalog.<) "
	"tool_claims.retention_cutoff(r.organization, r.tool_server, r.tool_name) "
	"LIMIT $3 FOR UPDATE SKIP LOCKED",
	4, {TEXTOID, TIMESTAMPTZOID, INT4OID, BOOLOID}
};

/* gates have no tool: their retention is the caller's alone */
static SavedQuery old_gates_query = {
	"DELETE FROM tool_claims.result_gates g USING ("
	"SELECT r.organization, r.task_id FROM tool_claims.result_gates r "
	"WHERE " IN_ORGANIZATION " AND "
	"CASE WHEN r.decided_at IS NOT NULL THEN r.decided_at ELSE r.deadline END "
	"OPERATOR(pg_catalog.<) $2 LIMIT $3 FOR UPDATE SKIP LOCKED) o "
	"WHERE g.organization OPERATOR(pg_catalog.=) o.organization AND "
	"g.task_id OPERATOR(pg_catalog.=) o.task_id",
	3, {TEXTOID, TIMESTAMPTZOID, INT4OID}
};

/*
 * Ended proposals that never became a claim.  A tombstone keeps the pair, its
 * binding and how it ended.
 */
static int32
prune_proposals(SavedQuery *query, Datum *values, bool tombstones)
{
	uint64		count;
	ClaimKey   *keys = find_keys(query, values, &count);
	int32		done = 0;

	for (uint64 i = 0; i < count; i++)
	{
		ProposalRecord record;
		StringInfoData detail;
		EventRow	row;

		CHECK_FOR_INTERRUPTS();
		if (proposal_lock(&keys[i], STORE_SKIP, &record) != STORE_LOCKED ||
			event_log_in_flight(&keys[i]))
			continue;
		if (tombstones)
		{
			detail_begin(&detail);
			detail_text(&detail, "state", proposal_state_name(record.state));
			event_log_prepare(&row, &keys[i], EVENT_PRUNED, 0, NULL,
							  detail_end(&detail), NULL);
			event_log_write(&row);
			event_log_delete(&keys[i], &row);
			record.evidence_head = &row.hash;
			proposal_retire(&record);
		}
		else
		{
			event_log_delete(&keys[i], NULL);
			proposal_delete(&keys[i]);
		}
		done++;
	}
	return done;
}

static int32
prune_gates(TimestampTz cutoff, int32 max_rows)
{
	QueryScope	scope;
	Datum		values[3];
	uint64		rows;

	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(cutoff);
	values[2] = Int32GetDatum(max_rows);
	query_begin_scan(&scope);
	rows = query_run(&old_gates_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	return (int32) rows;
}

/* before which time records have ended that are older than an interval */
static TimestampTz
cutoff_argument(FunctionCallInfo fcinfo, int n)
{
	int64		age = clock_interval_us(PG_GETARG_INTERVAL_P(n));
	TimestampTz now = clock_now();

	if (age < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"older_than\" must not be negative")));
	return age > now - MIN_TIMESTAMP ? MIN_TIMESTAMP : now - age;
}

/*
 * tool_claims.prune(older_than interval, max_rows integer,
 *					 tombstones boolean) returns integer
 *
 * Takes away what final records hold, or the records themselves; returns how
 * many.  Rows that somebody holds are skipped.
 */
Datum
tc_prune(PG_FUNCTION_ARGS)
{
	bool		by_age = !PG_ARGISNULL(0);
	MemoryContext row_context;
	MemoryContext old;
	TimestampTz cutoff = CLAIM_NO_TIME;
	int32		max_rows;
	bool		tombstones;
	Datum		values[4];
	ClaimKey   *keys;
	uint64		count;
	int32		done = 0;

	verb_enter("tool_claims.prune()");
	if (by_age)
		cutoff = cutoff_argument(fcinfo, 0);
	max_rows = max_rows_argument(fcinfo, 1);
	require_argument(fcinfo, 2, "tombstones");
	tombstones = PG_GETARG_BOOL(2);
	values[0] = CStringGetTextDatum(settings_organization());
	values[1] = TimestampTzGetDatum(cutoff);
	values[2] = Int32GetDatum(max_rows);
	values[3] = BoolGetDatum(!tombstones);
	keys = find_keys(by_age ? &old_query : &retention_query, values, &count);

	row_context = AllocSetContextCreate(CurrentMemoryContext,
										"tool_claims prune",
										ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(row_context);
	for (uint64 i = 0; i < count; i++)
	{
		ClaimRecord stored;
		ProposalRecord proposal;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(row_context);
		show_progress("prune", i, count);
		if (proposal_lock(&keys[i], STORE_SKIP, &proposal) == STORE_BUSY ||
			store_lock(&keys[i], STORE_SKIP, &stored) != STORE_LOCKED ||
			event_log_in_flight(&keys[i]))
			continue;
		if (tombstones)
			retire(&stored);
		else
			forget(&stored);
		done++;
	}
	MemoryContextSwitchTo(old);
	end_progress();

	if (done < max_rows)
	{
		values[2] = Int32GetDatum(max_rows - done);
		done += prune_proposals(by_age ? &old_proposals_query :
								&retained_proposals_query, values, tombstones);
	}
	if (by_age && done < max_rows)
		done += prune_gates(cutoff, max_rows - done);

	/* calls that were only ever refused have evidence and no record */
	if (by_age && !tombstones && done < max_rows)
		done += event_log_delete_orphans(settings_organization(), cutoff,
										 max_rows - done);
	PG_RETURN_INT32(done);
}

/* takes the details of a chain away, and says so in it: the new head */
static void
redact_events(const ClaimKey *key, const char *reason,
			  const Sha256Digest **head)
{
	StringInfoData detail;
	EventRow   *row = palloc(sizeof(EventRow));

	event_log_redact(key);
	detail_begin(&detail);
	detail_text(&detail, "reason", reason);
	event_log_prepare(row, key, EVENT_REDACTED, 0, NULL, detail_end(&detail),
					  NULL);
	event_log_write(row);
	*head = &row->hash;
}

/* the proposal that led to a redacted claim, if there is one */
static void
redact_proposal(const ClaimKey *key, const Sha256Digest *head)
{
	ProposalRecord record;

	if (proposal_lock(key, STORE_WAIT, &record) != STORE_LOCKED)
		return;
	record.evidence_head = head;
	proposal_redact(&record);
}

/* redacts a proposal that never became a claim */
static void
redact_ended_proposal(const ClaimKey *key, const char *reason)
{
	ProposalRecord stored;
	ProposalRecord now;

	if (proposal_lock(key, STORE_WAIT, &stored) != STORE_LOCKED)
		ereport(ERROR,
				(errcode(ERRCODE_TC_NO_SUCH_RECORD),
				 errmsg("claim (\"%s\", \"%s\") does not exist",
						key->task_id, key->tool_call_id),
				 errdetail("There is no record in organization \"%s\".",
						   key->organization)));
	if (proposal_as_of(&stored, clock_now(), &now))
	{
		proposal_write_expiry(&stored, clock_now());
		(void) proposal_lock(key, STORE_WAIT, &now);
	}
	if (now.state == PROPOSAL_PENDING || now.state == PROPOSAL_APPROVED)
		ereport(ERROR,
				(errcode(ERRCODE_TC_WRONG_STATE),
				 errmsg("cannot redact proposal (\"%s\", \"%s\") in state %s",
						key->task_id, key->tool_call_id,
						proposal_state_name(now.state)),
				 errhint("Withdraw, reject or revoke it first.")));
	redact_events(key, reason, &now.evidence_head);
	proposal_redact(&now);
}

/*
 * tool_claims.redact(task_id text, tool_call_id text, reason text)
 *		returns void
 *
 * Takes input, result, error, external reference and the details of the
 * events away.  Digests stay.
 */
Datum
tc_redact(PG_FUNCTION_ARGS)
{
	ClaimKey	key;
	ProposalRecord proposal;
	ClaimRecord stored;
	ClaimRecord next;
	const text *answer;
	Sha256Digest digest;
	StoreLock	lock;

	verb_enter("tool_claims.redact()");
	key = argument_key(fcinfo);
	require_argument(fcinfo, 2, "reason");
	/* the proposal first, as everybody locks the two */
	(void) proposal_lock(&key, STORE_WAIT, &proposal);
	do
	{
		CHECK_FOR_INTERRUPTS();
		lock = store_lock(&key, STORE_WAIT, &stored);
	} while (lock == STORE_BUSY);
	if (lock == STORE_GONE)
	{
		redact_ended_proposal(&key, argument_text(fcinfo, 2));
		PG_RETURN_VOID();
	}
	if (claim_as_of(&stored, clock_now(), &next))
	{
		/* what has ended by expiry is written down first */
		claim_write_expiry(&stored, &next);
		(void) store_lock(&key, STORE_WAIT, &stored);
	}
	if (stored.state == CLAIM_CLAIMED || stored.state == CLAIM_UNCERTAIN)
		ereport(ERROR,
				(errcode(ERRCODE_TC_WRONG_STATE),
				 errmsg("cannot redact claim (\"%s\", \"%s\") in state %s",
						key.task_id, key.tool_call_id,
						claim_state_name(stored.state)),
				 errhint("What is not final may still need it: end or reconcile the claim first.")));

	next = stored;
	redact_events(&key, argument_text(fcinfo, 2), &next.evidence_head);
	if (next.redacted == NULL)
	{
		answer = stored.state == CLAIM_FAILED ? stored.error : stored.result;
		sha256_compute(answer ? VARDATA_ANY(answer) : "",
					   answer ? VARSIZE_ANY_EXHDR(answer) : 0, &digest);
		next.redacted = &digest;
	}
	next.result = NULL;
	next.error = NULL;
	next.external_ref = NULL;
	store_redact(&next);
	redact_proposal(&key, next.evidence_head);
	PG_RETURN_VOID();
}

/* ----- timeline ----- */

/*
 * One line an event.  Of the routine ones that the log leaves out, the record
 * itself still knows those of its last attempt.
 */
static SavedQuery timeline_query = {
	"WITH record AS (SELECT * FROM tool_claims.claim_records r WHERE "
	"r.organization OPERATOR(pg_catalog.=) $1 AND "
	"r.task_id OPERATOR(pg_catalog.=) $2 AND "
	"r.tool_call_id OPERATOR(pg_catalog.=) $3), "
	"logged AS (SELECT e.at, e.seq, e.kind, e.attempt, "
	"e.role || CASE WHEN e.principal OPERATOR(pg_catalog.<>) e.role "
	"THEN ' for ' || e.principal ELSE '' END AS who, "
	"CASE WHEN e.detail IS NULL THEN '(redacted)' ELSE "
	"pg_catalog.concat_ws(', ', e.detail ->> 'reason', "
	"'finding ' || (e.detail ->> 'finding'), e.detail ->> 'text', "
	"e.detail ->> 'message', e.detail ->> 'comment', 'ref ' || (e.detail ->> 'external_ref'), "
	"'evidence ' || (e.detail ->> 'evidence'), "
	"'was ' || (e.detail ->> 'state')) END AS note "
	"FROM tool_claims.events e WHERE "
	"e.organization OPERATOR(pg_catalog.=) $1 AND "
	"e.task_id OPERATOR(pg_catalog.=) $2 AND "
	"e.tool_call_id OPERATOR(pg_catalog.=) $3), "
	"entries AS (SELECT * FROM logged UNION ALL "
	"SELECT r.claimed_at, 0, 'acquired', r.attempt, r.held_role, "
	"CASE WHEN r.leased THEN 'until ' || pg_catalog.to_char("
	"r.lease_expires_at, 'HH24:MI:SS') ELSE 'in one transaction' END "
	"FROM record r WHERE r.state OPERATOR(pg_catalog.<>) "
	"'t'::pg_catalog.\"char\" AND NOT EXISTS (SELECT 1 FROM logged l "
	"WHERE l.kind OPERATOR(pg_catalog.=) 'acquired' AND "
	"l.attempt OPERATOR(pg_catalog.=) r.attempt) UNION ALL "
	"SELECT r.finished_at, 2147483647, CASE r.state "
	"WHEN 'd' THEN 'completed' WHEN 'f' THEN 'failed' ELSE 'released' END, "
	"r.attempt, r.held_role, '' FROM record r "
	"WHERE r.finished_at IS NOT NULL AND r.state "
	"OPERATOR(pg_catalog.<>) 't'::pg_catalog.\"char\" AND NOT EXISTS ("
	"SELECT 1 FROM logged l WHERE l.attempt OPERATOR(pg_catalog.=) r.attempt "
	"AND l.kind OPERATOR(pg_catalog.=) ANY (ARRAY['completed', 'failed', "
	"'released', 'reconciled']))), "
	"drawn AS (SELECT n.*, pg_catalog.row_number() OVER w AS line, "
	"n.at OPERATOR(pg_catalog.-) pg_catalog.lag(n.at) OVER w AS step "
	"FROM entries n WINDOW w AS (ORDER BY n.at, n.seq)) "
	"SELECT text_line FROM (SELECT 0::pg_catalog.int8 AS line, "
	"pg_catalog.format('task %s, call %s: tool %s%s, %s, attempt %s', "
	"r.task_id, r.tool_call_id, r.tool_name, "
	"CASE WHEN r.tool_server OPERATOR(pg_catalog.=) '' THEN '' "
	"ELSE ' of server ' || r.tool_server END, "
	"tool_claims.state_now(r.state, r.leased, r.reacquire, r.dispatched_at, "
	"r.lease_expires_at), r.attempt) AS text_line FROM record r UNION ALL "
	"SELECT 0, pg_catalog.format('task %s, call %s: tool %s%s, proposal %s', "
	"p.task_id, p.tool_call_id, p.tool_name, "
	"CASE WHEN p.tool_server OPERATOR(pg_catalog.=) '' THEN '' "
	"ELSE ' of server ' || p.tool_server END, "
	"tool_claims.proposal_state_now(p.state, p.expires_at)) "
	"FROM tool_claims.proposal_records p WHERE "
	"p.organization OPERATOR(pg_catalog.=) $1 AND "
	"p.task_id OPERATOR(pg_catalog.=) $2 AND "
	"p.tool_call_id OPERATOR(pg_catalog.=) $3 AND "
	"NOT EXISTS (SELECT 1 FROM record) UNION ALL "
	"SELECT d.line, pg_catalog.rtrim(pg_catalog.format('%s  %s  %s %s  %s  %s', "
	"pg_catalog.to_char(d.at, 'YYYY-MM-DD HH24:MI:SS.MS'), "
	"pg_catalog.lpad(CASE WHEN d.step IS NULL THEN '' ELSE '+' || CASE "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 minute' "
	"THEN pg_catalog.round(EXTRACT(epoch FROM d.step), 3) || ' s' "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 hour' "
	"THEN pg_catalog.to_char(d.step, 'FMMI \"min\" FMSS \"s\"') "
	"WHEN d.step OPERATOR(pg_catalog.<) '1 day' "
	"THEN pg_catalog.to_char(d.step, 'FMHH24 \"h\" FMMI \"min\"') "
	"ELSE pg_catalog.to_char(d.step, 'FMDD \"d\" FMHH24 \"h\"') END END, 14), "
	"pg_catalog.rpad(d.kind, 11), "
	"pg_catalog.rpad(COALESCE('#' || d.attempt, ''), 4), "
	"pg_catalog.rpad(d.who, pg_catalog.max(pg_catalog.length(d.who)) OVER ()), "
	"d.note)) FROM drawn d) t ORDER BY t.line",
	3, {TEXTOID, TEXTOID, TEXTOID}
};

/* tool_claims.timeline(task_id text, tool_call_id text) returns setof text */
Datum
tc_timeline(PG_FUNCTION_ARGS)
{
	ClaimKey	key = argument_key(fcinfo);
	Datum		values[3];

	query_key_arguments(&key, values);
	query_return_set(fcinfo, &timeline_query, values, NULL, QUERY_BY_KEY);
	return (Datum) 0;
}
