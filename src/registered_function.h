/*
 * registered_function.h
 *
 * Functions that an administrator registers, such as input checks.
 */
#ifndef TC_REGISTERED_FUNCTION_H
#define TC_REGISTERED_FUNCTION_H

#include "fmgr.h"

#define REGISTERED_FUNCTION_MAX_ARGS	3

typedef struct RegisteredFunction
{
	Oid			oid;
	Oid			role;			/* who registered it */
	FmgrInfo	flinfo;
} RegisteredFunction;

extern bool registered_function_fits(Oid function, int nargs,
									 const Oid *arguments, Oid result);
extern char *registered_function_name(Oid function);
extern char *registered_function_of_json(Oid function, Oid result);
extern void registered_function_resolve(const char *name,
										const char *registrar,
										RegisteredFunction *function);
extern Datum registered_function_run(RegisteredFunction *function,
									 Datum *arguments, bool *isnull);
extern Datum registered_function_call(const char *name, const char *registrar,
									  Datum argument, bool *isnull);
extern bool registered_function_running(void);

#endif							/* TC_REGISTERED_FUNCTION_H */
