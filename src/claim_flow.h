/*
 * claim_flow.h
 *
 * How a call becomes a change: load, decide, store.
 */
#ifndef TC_CLAIM_FLOW_H
#define TC_CLAIM_FLOW_H

#include "claim.h"

extern void claim_caller(ClaimCall *call);
extern void claim_acquire(ClaimCall *call, int64 wait, ClaimStep *step);
extern void claim_peek(ClaimCall *call, ClaimStep *step);
extern void claim_write_answer(ClaimCall *call, ClaimStep *step);
extern int32 claim_approvals_required(const ClaimPolicy *policy,
									  const CanonicalJson *input);
extern void claim_change(ClaimCall *call, ClaimStep *step);
extern void claim_report(ClaimCall *call, ClaimStep *step);
extern void claim_write_expiry(const ClaimRecord *stored,
							   const ClaimRecord *now);
extern void claim_write_recovered(const ClaimKey *key);
extern void claim_raise(const ClaimStep *step, const ClaimCall *call);

#endif							/* TC_CLAIM_FLOW_H */
