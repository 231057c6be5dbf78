/*
 * proposal_flow.h
 *
 * What proposals and reservations have in common.
 */
#ifndef TC_PROPOSAL_FLOW_H
#define TC_PROPOSAL_FLOW_H

#include "fmgr.h"

#include "proposal.h"
#include "store.h"

extern void proposal_binding_digest(const ClaimKey *key, const Binding *bound,
									Sha256Digest *digest);
extern bool proposal_gather(const ProposalRecord *record, ProposalCall *call,
							bool lock, StoreWait wait);
extern const char *proposal_uuid_text(const pg_uuid_t *uuid);
extern const char *proposal_seconds_text(TimestampTz time);
extern bool proposal_lock_waiting(const ClaimKey *key, ProposalRecord *record);
extern void proposal_conflict_event(const ClaimKey *key, const Binding *bound,
									const char *field);
extern void proposal_event(const ClaimKey *key, EventKind kind,
						   const char *principal, const char *detail,
						   ProposalRecord *next);
extern void proposal_refused_event(const ClaimKey *key, const char *verb,
								   const char *reason, const char *principal);
extern void proposal_write_expiry(const ProposalRecord *stored,
								  TimestampTz now);
extern void proposal_write_recovered(const ClaimKey *key);
extern const pg_uuid_t *argument_execution_id(FunctionCallInfo fcinfo, int n);
extern void argument_binding(FunctionCallInfo fcinfo, int n, Binding *bound);

#endif							/* TC_PROPOSAL_FLOW_H */
