/*
 * arguments.h
 *
 * Arguments of the SQL functions, checked.
 */
#ifndef TC_ARGUMENTS_H
#define TC_ARGUMENTS_H

#include "fmgr.h"

#include "claim.h"

typedef enum KeyText
{
	KEY_TEXT_FILLED,			/* 1 to 512 bytes */
	KEY_TEXT_MAY_BE_EMPTY,
	KEY_TEXT_NULLABLE			/* NULL, or filled */
} KeyText;

extern void verb_enter(const char *name);
extern void require_argument(FunctionCallInfo fcinfo, int n, const char *name);
extern const char *argument_key_text(FunctionCallInfo fcinfo, int n,
									 const char *name, KeyText kind);
extern const char *argument_tool(FunctionCallInfo fcinfo, int n,
								 const char *name, KeyText kind);
extern ClaimKey argument_key(FunctionCallInfo fcinfo);
extern ClaimKey argument_key_at(FunctionCallInfo fcinfo, int n);
extern int64 argument_limit(FunctionCallInfo fcinfo, int n, const char *name);
extern const char *argument_text(FunctionCallInfo fcinfo, int n);
extern int64 argument_lease(FunctionCallInfo fcinfo, int n);
extern int64 argument_wait(FunctionCallInfo fcinfo, int n);
extern const CanonicalJson *argument_input(FunctionCallInfo fcinfo, int n);

#endif							/* TC_ARGUMENTS_H */
