/*
 * tool_claims.c
 *
 * The module's face: what happens when the library is loaded.
 */
#include "postgres.h"

#include "fmgr.h"

#include "at_commit.h"
#include "policy.h"
#include "recovery.h"
#include "settings.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	settings_define();
	at_commit_define();
	policy_define();
	recovery_define();
}
