/*
 * policy.h
 *
 * The policy of a tool.
 */
#ifndef TC_POLICY_H
#define TC_POLICY_H

#include "claim.h"

extern void policy_define(void);
extern uint64 policy_changes(void);
extern bool policy_equal(const ClaimPolicy *a, const ClaimPolicy *b);
extern List *policy_text_list(Datum array);
extern const char *policy_source(const char *organization,
								 const char *tool_name,
								 const char *tool_server);
extern void policy_of(const char *organization, const char *tool_server,
					  const char *tool_name, ClaimPolicy *policy);

#endif							/* TC_POLICY_H */
