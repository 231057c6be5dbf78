/*
 * duties.c
 *
 * Duties: plain GRANTs on the members of the extension, given to roles that
 * exist, and written down, so that an update can give new members to who has
 * the duty.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "catalog/pg_type.h"
#include "utils/acl.h"
#include "utils/builtins.h"

#include "arguments.h"
#include "query.h"

PG_FUNCTION_INFO_V1(tc_grant_duty);
PG_FUNCTION_INFO_V1(tc_revoke_duty);

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
