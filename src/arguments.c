/*
 * arguments.c
 *
 * What all verbs check before they look at anything: the session, and the
 * arguments that they share.
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/timestamp.h"

#include "arguments.h"
#include "clock.h"
#include "compat.h"
#include "recovery.h"
#include "registered_function.h"
#include "settings.h"

#define MAX_KEY_BYTES	512

/*
 * Every verb starts here: not on a standby, not in a read-only transaction,
 * not from inside a registered function, and with what other sessions have
 * changed meanwhile taken note of.
 */
void
verb_enter(const char *name)
{
	PreventCommandDuringRecovery(name);
	PreventCommandIfReadOnly(name);
	if (registered_function_running())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot execute %s inside a registered function", name),
				 errhint("A check only looks at its argument.")));
	AcceptInvalidationMessages();
	recovery_notice();
}

void
require_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
}

/* an id or another text that is part of a key */
const char *
argument_key_text(FunctionCallInfo fcinfo, int n, const char *name,
				  KeyText kind)
{
	char	   *value;
	size_t		length;

	if (kind == KEY_TEXT_NULLABLE && PG_ARGISNULL(n))
		return NULL;
	require_argument(fcinfo, n, name);
	value = text_to_cstring(PG_GETARG_TEXT_PP(n));
	length = strlen(value);
	if (length > MAX_KEY_BYTES ||
		(length == 0 && kind != KEY_TEXT_MAY_BE_EMPTY))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must have %d to %d bytes", name,
						kind == KEY_TEXT_MAY_BE_EMPTY ? 0 : 1, MAX_KEY_BYTES),
				 errdetail("It has %zu bytes.", length)));
	return value;
}

/* the name of a tool or a tool server of a call */
const char *
argument_tool(FunctionCallInfo fcinfo, int n, const char *name, KeyText kind)
{
	const char *value = argument_key_text(fcinfo, n, name, kind);

	if (strcmp(value, "*") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must not be \"*\"", name),
				 errhint("\"*\" stands for all of them in policies only.")));
	return value;
}

/* the pair that arguments n and n + 1 name, in the session's organization */
ClaimKey
argument_key_at(FunctionCallInfo fcinfo, int n)
{
	ClaimKey	key;

	key.task_id = argument_key_text(fcinfo, n, "task_id", KEY_TEXT_FILLED);
	key.tool_call_id = argument_key_text(fcinfo, n + 1, "tool_call_id",
										 KEY_TEXT_FILLED);
	key.organization = settings_verb_organization();
	return key;
}

ClaimKey
argument_key(FunctionCallInfo fcinfo)
{
	return argument_key_at(fcinfo, 0);
}

/* a time limit in microseconds, 0 for a NULL */
int64
argument_limit(FunctionCallInfo fcinfo, int n, const char *name)
{
	Interval   *interval;
	int64		limit;

	if (PG_ARGISNULL(n))
		return 0;
	interval = PG_GETARG_INTERVAL_P(n);
	limit = clock_interval_us(interval);
	if (tc_interval_is_infinite(interval) || limit <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"%s\" must be a positive, finite interval",
						name)));
	return limit;
}

/* any text, NULL for a NULL */
const char *
argument_text(FunctionCallInfo fcinfo, int n)
{
	return PG_ARGISNULL(n) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(n));
}

/* a lease in microseconds; the caller has looked whether it is NULL */
int64
argument_lease(FunctionCallInfo fcinfo, int n)
{
	Interval   *interval = PG_GETARG_INTERVAL_P(n);
	int64		lease = clock_interval_us(interval);

	if (tc_interval_is_infinite(interval) || lease <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"lease\" must be a positive, finite interval")));
	if (lease > (int64) tc_max_lease * 1000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"lease\" is longer than tool_claims.max_lease"),
				 errdetail("At most %d ms are allowed.", tc_max_lease),
				 errhint("Take a shorter lease and renew it.")));
	return lease;
}

/* how long to wait, in microseconds */
int64
argument_wait(FunctionCallInfo fcinfo, int n)
{
	Interval   *interval;
	int64		wait;

	require_argument(fcinfo, n, "wait");
	interval = PG_GETARG_INTERVAL_P(n);
	wait = clock_interval_us(interval);
	if (tc_interval_is_infinite(interval) || wait < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"wait\" must not be negative or infinite")));
	return wait;
}

const CanonicalJson *
argument_input(FunctionCallInfo fcinfo, int n)
{
	CanonicalJson *input;

	require_argument(fcinfo, n, "input");
	input = PG_GETARG_CANONICAL_JSON(n);
	if (canonical_json_size(input) > (size_t) tc_max_input_size * 1024)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("argument \"input\" is larger than tool_claims.max_input_size"),
				 errdetail("It has %zu bytes, at most %d kB are allowed.",
						   canonical_json_size(input), tc_max_input_size),
				 errhint("Pass a reference to large data, with its digest.")));
	return input;
}
