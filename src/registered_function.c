/*
 * registered_function.c
 *
 * Functions that an administrator registers.  They are kept as text (a reg*
 * column would stop pg_upgrade) and resolved at each use, and run as the role
 * that registered them, in a security-restricted operation under a pinned
 * search_path.  That role must have EXECUTE, and the function's owner must be
 * somebody who could act as that role anyway: otherwise the owner, by changing
 * the body, would get the registrar's rights.
 */
#include "postgres.h"

#include "catalog/pg_proc.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/syscache.h"

#include "compat.h"
#include "registered_function.h"

static int	running = 0;

/* is a registered function being run?  Verbs refuse to be called from one */
bool
registered_function_running(void)
{
	return running > 0;
}

static void
check_rights(Oid function, Oid registrar)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("registered function with OID %u does not exist",
						function)));
	owner = ((Form_pg_proc) GETSTRUCT(tuple))->proowner;
	ReleaseSysCache(tuple);

	if (object_aclcheck(ProcedureRelationId, function, registrar,
						ACL_EXECUTE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for function %s",
						format_procedure(function)),
				 errdetail("The role \"%s\" that registered it may not execute it.",
						   GetUserNameFromId(registrar, false))));
	if (!superuser_arg(owner) && !is_member_of_role(owner, registrar))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("function %s cannot be run as role \"%s\"",
						format_procedure(function),
						GetUserNameFromId(registrar, false)),
				 errdetail("Its owner \"%s\" is neither a superuser nor a member of that role.",
						   GetUserNameFromId(owner, false)),
				 errhint("Register a function that the registering role owns itself.")));
}

/* does a function take these arguments and return that? */
bool
registered_function_fits(Oid function, int nargs, const Oid *arguments,
						 Oid result)
{
	HeapTuple	tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
	Form_pg_proc proc;
	bool		fits;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("function with OID %u does not exist", function)));
	proc = (Form_pg_proc) GETSTRUCT(tuple);
	fits = proc->prokind == PROKIND_FUNCTION && !proc->proretset &&
		proc->pronargs == nargs && proc->prorettype == result;
	for (int i = 0; fits && i < nargs; i++)
		fits = proc->proargtypes.values[i] == arguments[i];
	ReleaseSysCache(tuple);
	return fits;
}

/*
 * Checks the rights of a function that the current role registers, and
 * returns the text it is kept as, qualified in full.
 */
char *
registered_function_name(Oid function)
{
	check_rights(function, GetUserId());
	return format_procedure_qualified(function);
}

/* the same for a function of one json; anything else is an error */
char *
registered_function_of_json(Oid function, Oid result)
{
	const Oid	arguments[] = {JSONOID};

	if (!registered_function_fits(function, 1, arguments, result))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("function %s has the wrong signature",
						format_procedure(function)),
				 errdetail("It must take one argument of type json and return %s.",
						   format_type_be(result))));
	return registered_function_name(function);
}

/* finds a registered function again, with the rights it has now */
void
registered_function_resolve(const char *name, const char *registrar,
							RegisteredFunction *function)
{
	Datum		resolved;

	LOCAL_FCINFO(resolve, 1);

	function->role = get_role_oid(registrar, true);
	if (!OidIsValid(function->role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("role \"%s\", which registered function %s, does not exist",
						registrar, name),
				 errhint("Register the function again.")));

	InitFunctionCallInfoData(*resolve, NULL, 1, InvalidOid, NULL, NULL);
	resolve->args[0].value = CStringGetTextDatum(name);
	resolve->args[0].isnull = false;
	resolved = to_regprocedure(resolve);
	if (resolve->isnull)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("registered function %s does not exist", name),
				 errhint("Register another one.")));
	function->oid = DatumGetObjectId(resolved);
	check_rights(function->oid, function->role);
	fmgr_info(function->oid, &function->flinfo);
}

/* runs it with its arguments; the result is in the current memory context */
Datum
registered_function_run(RegisteredFunction *function, Datum *arguments,
						bool *isnull)
{
	Oid			save_role;
	int			save_context;
	int			guc_level;
	Datum		result = (Datum) 0;

	LOCAL_FCINFO(call, REGISTERED_FUNCTION_MAX_ARGS);

	GetUserIdAndSecContext(&save_role, &save_context);
	SetUserIdAndSecContext(function->role,
						   save_context | SECURITY_LOCAL_USERID_CHANGE |
						   SECURITY_RESTRICTED_OPERATION);
	guc_level = NewGUCNestLevel();
	(void) set_config_option("search_path", "pg_catalog, pg_temp",
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	running++;
	PG_TRY();
	{
		InitFunctionCallInfoData(*call, &function->flinfo,
								 function->flinfo.fn_nargs,
								 DEFAULT_COLLATION_OID, NULL, NULL);
		for (int i = 0; i < function->flinfo.fn_nargs; i++)
		{
			call->args[i].value = arguments[i];
			call->args[i].isnull = false;
		}
		result = FunctionCallInvoke(call);
		*isnull = call->isnull;
	}
	PG_FINALLY();
	{
		running--;
	}
	PG_END_TRY();
	AtEOXact_GUC(false, guc_level);
	SetUserIdAndSecContext(save_role, save_context);
	return result;
}

/* finds a function of one argument again and runs it */
Datum
registered_function_call(const char *name, const char *registrar,
						 Datum argument, bool *isnull)
{
	RegisteredFunction function;

	registered_function_resolve(name, registrar, &function);
	return registered_function_run(&function, &argument, isnull);
}
