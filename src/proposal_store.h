/*
 * proposal_store.h
 *
 * The only module that reads or writes proposal_records, votes and approvers.
 */
#ifndef TC_PROPOSAL_STORE_H
#define TC_PROPOSAL_STORE_H

#include "proposal.h"
#include "store.h"

extern bool proposal_read(const ClaimKey *key, ProposalRecord *record);
extern bool proposal_look(const ClaimKey *key, ProposalRecord *record);
extern StoreLock proposal_lock(const ClaimKey *key, StoreWait wait,
							   ProposalRecord *record);
extern bool proposal_insert(const ProposalRecord *record);
extern void proposal_update(const ProposalRecord *record);
extern void proposal_redact(const ProposalRecord *record);
extern void proposal_retire(const ProposalRecord *record);
extern void proposal_delete(const ClaimKey *key);
extern List *proposal_open_of_task(const char *organization,
								   const char *task_id);

extern Vote proposal_own_vote(const ClaimKey *key, const char *principal);
extern void proposal_vote(const ClaimKey *key, const char *principal,
						  Vote vote, const char *comment);
extern List *proposal_voters(const ProposalRecord *record, bool lock,
							 StoreWait wait);
extern List *proposal_registered(const ProposalRecord *record,
								 const char *principal, bool lock);

extern bool proposal_policy(const ProposalRecord *record, bool lock,
							StoreWait wait, const char **version,
							const char **source);

extern bool proposal_is_changing(const ProposalRecord *record);

extern bool approver_add(const char *organization, const char *principal,
						 const char *grp, const char *project,
						 const char *tool_server, const char *tool_name);
extern bool approver_remove(const char *organization, const char *principal,
							const char *grp, const char *project,
							const char *tool_server, const char *tool_name);

#endif							/* TC_PROPOSAL_STORE_H */
