/*
 * compat.h
 *
 * Every difference between the server versions that the extension builds on
 * (15 to 18).  The code calls the newest version's name.
 */
#ifndef TC_COMPAT_H
#define TC_COMPAT_H

#include "access/genam.h"
#include "catalog/pg_proc.h"
#include "executor/executor.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/* 16 moved the macros of varlenas into a header of their own */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#if PG_VERSION_NUM < 160000
#define object_aclcheck(classid, objectid, roleid, mode) \
	((void) (classid), pg_proc_aclcheck((objectid), (roleid), (mode)))
#endif

/* 18 added the instrumentation argument */
#if PG_VERSION_NUM < 180000
#define tc_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan((heap), (index), (snapshot), (nkeys), 0)
#else
#define tc_index_beginscan(heap, index, snapshot, nkeys) \
	index_beginscan((heap), (index), (snapshot), NULL, (nkeys), 0)
#endif

/* 16 added onlySummarizing */
#if PG_VERSION_NUM < 160000
#define tc_insert_index_tuples(rri, slot, estate, conflict) \
	ExecInsertIndexTuples((rri), (slot), (estate), false, true, (conflict), NIL)
#else
#define tc_insert_index_tuples(rri, slot, estate, conflict) \
	ExecInsertIndexTuples((rri), (slot), (estate), false, true, (conflict), NIL, false)
#endif

/* 18 added deferrable_ok */
#if PG_VERSION_NUM < 180000
#define tc_primary_key_index(rel) RelationGetPrimaryKeyIndex(rel)
#else
#define tc_primary_key_index(rel) RelationGetPrimaryKeyIndex((rel), false)
#endif

/* infinite intervals exist from 17 */
#if PG_VERSION_NUM >= 170000
#define tc_interval_is_infinite(interval) INTERVAL_NOT_FINITE(interval)
#else
#define tc_interval_is_infinite(interval) false
#endif

/* 16 took guc_malloc out of reach of malloc, and made it public */
#include "utils/guc.h"
#if PG_VERSION_NUM < 160000
#define guc_malloc(elevel, size) malloc(size)
#endif

/* 16 made the look-up of a setting public; before, there is the whole list */
#include "utils/guc_tables.h"

static inline struct config_generic *
tc_find_setting(const char *name)
{
#if PG_VERSION_NUM < 160000
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
		if (strcmp(settings[i]->name, name) == 0)
			return settings[i];
	return NULL;
#else
	return find_option(name, false, true, 0);
#endif
}

/* 17 moved the local transaction id; none outside of a session */
#include "storage/proc.h"
#if PG_VERSION_NUM < 170000
#define tc_current_lxid() \
	(MyProc != NULL ? MyProc->lxid : InvalidLocalTransactionId)
#else
#define tc_current_lxid() \
	(MyProc != NULL ? MyProc->vxid.lxid : InvalidLocalTransactionId)
#endif

#endif							/* TC_COMPAT_H */
