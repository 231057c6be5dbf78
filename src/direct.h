/*
 * direct.h
 *
 * Rows through the access methods.
 */
#ifndef TC_DIRECT_H
#define TC_DIRECT_H

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

#include "store.h"

#define DIRECT_MAX_KEYS	6

/* a look-up of one key in an index of a table */
typedef struct DirectScan
{
	Relation	index;
	TupleTableSlot *slot;
	IndexScanDesc scan;
	ScanKeyData keys[DIRECT_MAX_KEYS];
} DirectScan;

extern bool direct_is_local(Relation rel);
extern bool direct_is_plain(Relation rel, int natts);
extern bool direct_scan_begin(DirectScan *look, Relation rel, Oid index,
							  int nkeys, const char *const *keys,
							  Snapshot snapshot);
extern void direct_scan_end(DirectScan *look);
extern StoreLook direct_look(Relation rel, int nkeys, const char *const *keys,
							 Datum *values, bool *nulls, bool *changing);
extern bool direct_insert(Relation rel, Datum *values, bool *nulls);
extern bool direct_insert_row(const char *table, int natts, Datum *values,
							  bool *nulls);
extern bool direct_is_changing(const char *table, int nkeys,
							   const char *const *keys);
extern bool direct_any_changing(const char *table, const char *index,
								int nkeys, const char *const *keys,
								bool *deleting);

#endif							/* TC_DIRECT_H */
