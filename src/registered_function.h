/*
 * registered_function.h
 *
 * Functions that an administrator registers, such as input checks.
 */
#ifndef TC_REGISTERED_FUNCTION_H
#define TC_REGISTERED_FUNCTION_H

extern char *registered_function_name(Oid function, Oid argument, Oid result,
									  Oid registrar);
extern Datum registered_function_call(const char *name, const char *registrar,
									  Datum argument, bool *isnull);
extern bool registered_function_running(void);

#endif							/* TC_REGISTERED_FUNCTION_H */
