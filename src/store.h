/*
 * store.h
 *
 * The only module that reads or writes claim_records and operations.
 */
#ifndef TC_STORE_H
#define TC_STORE_H

#include "nodes/pg_list.h"

#include "claim.h"

typedef enum StoreLook
{
	STORE_ABSENT,
	STORE_FOUND,
	STORE_UNCOMMITTED			/* an open transaction of somebody has it */
} StoreLook;

typedef enum StoreLock
{
	STORE_LOCKED,
	STORE_BUSY,
	STORE_GONE
} StoreLock;

typedef enum StoreWait
{
	STORE_SKIP,					/* never blocks */
	STORE_WAIT					/* blocks as an UPDATE does */
} StoreWait;

extern StoreLook store_look(const ClaimKey *key, ClaimRecord *record);
extern bool store_read(const ClaimKey *key, ClaimRecord *record);
extern StoreLock store_lock(const ClaimKey *key, StoreWait wait,
							ClaimRecord *record);
extern bool store_insert(const ClaimRecord *record);
extern void store_update(const ClaimRecord *record);
extern void store_redact(const ClaimRecord *record);
extern void store_delete(const ClaimKey *key);
extern List *store_find_by_effect_key(const char *organization,
									  const char *effect_key);

extern StoreLook store_proposal_look(const ClaimKey *key);

extern StoreLook store_operation_look(const ClaimRecord *record,
									  ClaimKey *owner);
extern bool store_operation_insert(const ClaimRecord *record);
extern void store_operation_move(const ClaimRecord *record);
extern void store_operation_delete(const ClaimRecord *record);

#endif							/* TC_STORE_H */
