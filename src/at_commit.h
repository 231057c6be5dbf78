/*
 * at_commit.h
 *
 * What this transaction holds, and what has to be true when it commits.
 */
#ifndef TC_AT_COMMIT_H
#define TC_AT_COMMIT_H

#include "claim.h"

typedef struct HeldClaim
{
	ClaimKey	key;			/* hash key */
	int32		attempt;
	bool		acquired;		/* by this transaction, else only asserted */
	bool		leased;
	bool		final;			/* completed, failed or released here */
	bool		stands;			/* not failed or released: may be current */
	const char *tool_server;
	const char *tool_name;
} HeldClaim;

extern void at_commit_define(void);
extern void at_commit_acquired(const ClaimRecord *record);
extern void at_commit_asserted(const ClaimRecord *record);
extern void at_commit_final(const ClaimRecord *record);
extern void at_commit_durable(void);
extern const HeldClaim *at_commit_find(const ClaimKey *key);
extern bool at_commit_holds(const ClaimRecord *record);
extern const HeldClaim *at_commit_current(void);
extern void at_commit_execute_begin(const ClaimKey *key);
extern void at_commit_execute_end(void);

#endif							/* TC_AT_COMMIT_H */
