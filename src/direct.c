/*
 * direct.c
 *
 * Rows through the table and index access methods, on plain local tables.
 *
 * A look with a dirty snapshot shows what open transactions have inserted,
 * which no statement can see.  It may say that somebody is there, never that
 * nobody is.  An insertion never waits for a rival: it is speculative, and is
 * killed at once where the key is there.  (A plain insertion, deleted on
 * conflict, is a little cheaper; but a deleted row of a still open transaction
 * goes on to conflict with everybody, so two losers of one race would keep
 * each other out after the winner has rolled back.)
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "direct.h"
#include "query.h"

/* can rows of the table be looked up through the access methods? */
bool
direct_is_local(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!rel->rd_rel->relispartition &&
		!rel->rd_rel->relhassubclass;
}

/*
 * Can rows of the table be written and read whole through the access methods
 * as well?  It must have the columns that the install script gave it.  The
 * guard of an append-only table is no insert trigger and does not stand in
 * the way.
 */
bool
direct_is_plain(Relation rel, int natts)
{
	return direct_is_local(rel) && rel->rd_att->natts == natts &&
		!rel->rd_rel->relrowsecurity &&
		rel->rd_rules == NULL &&
		(rel->trigdesc == NULL ||
		 (!rel->trigdesc->trig_insert_before_row &&
		  !rel->trigdesc->trig_insert_after_row &&
		  !rel->trigdesc->trig_insert_instead_row &&
		  !rel->trigdesc->trig_insert_before_statement &&
		  !rel->trigdesc->trig_insert_after_statement));
}

/*
 * Copies the values of a row that may be rolled back, and vacuumed away, at
 * any moment: what stands out of line is left out.
 */
static void
copy_inline(TupleDesc descriptor, Datum *values, bool *nulls)
{
	for (int i = 0; i < descriptor->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(descriptor, i);

		if (nulls[i])
			continue;
		if (attribute->attlen == -1 &&
			VARATT_IS_EXTERNAL(DatumGetPointer(values[i])))
			nulls[i] = true;
		else
			values[i] = datumCopy(values[i], attribute->attbyval,
								  attribute->attlen);
	}
}

/* true where a row was found; it stands in the slot until the end */
bool
direct_scan_begin(DirectScan *look, Relation rel, Oid index, int nkeys,
			   const char *const *keys, Snapshot snapshot)
{
	look->index = index_open(index, AccessShareLock);
	look->slot = table_slot_create(rel, NULL);
	for (int i = 0; i < nkeys; i++)
		ScanKeyEntryInitialize(&look->keys[i], 0, i + 1,
							   BTEqualStrategyNumber, TEXTOID,
							   C_COLLATION_OID, F_TEXTEQ,
							   CStringGetTextDatum(keys[i]));
	look->scan = tc_index_beginscan(rel, look->index, snapshot, nkeys);
	index_rescan(look->scan, look->keys, nkeys, NULL, 0);
	return index_getnext_slot(look->scan, ForwardScanDirection, look->slot);
}

void
direct_scan_end(DirectScan *look)
{
	index_endscan(look->scan);
	ExecDropSingleTupleTableSlot(look->slot);
	index_close(look->index, AccessShareLock);
}

/*
 * Looks up a key with a dirty snapshot.  STORE_ABSENT, where nobody was seen,
 * is no proof.  STORE_UNCOMMITTED is a row of an open transaction of somebody
 * else; *changing tells whether such a one has inserted, updated or deleted
 * it.  values gets the columns where it is not NULL.
 */
StoreLook
direct_look(Relation rel, int nkeys, const char *const *keys,
		   Datum *values, bool *nulls, bool *changing)
{
	SnapshotData snapshot;
	DirectScan		look;
	bool		found;

	InitDirtySnapshot(snapshot);
	found = direct_scan_begin(&look, rel, tc_primary_key_index(rel), nkeys, keys,
						   &snapshot);
	*changing = found && (TransactionIdIsValid(snapshot.xmin) ||
						  TransactionIdIsValid(snapshot.xmax));
	if (found)
	{
		if (values != NULL)
		{
			slot_getallattrs(look.slot);
			memcpy(values, look.slot->tts_values,
				   rel->rd_att->natts * sizeof(Datum));
			memcpy(nulls, look.slot->tts_isnull,
				   rel->rd_att->natts * sizeof(bool));
			copy_inline(rel->rd_att, values, nulls);
		}
	}
	direct_scan_end(&look);
	if (!found)
		return STORE_ABSENT;
	return TransactionIdIsValid(snapshot.xmin) ? STORE_UNCOMMITTED : STORE_FOUND;
}

/*
 * Inserts a row unless its key is there, without ever waiting for whoever has
 * it.  An empty arbiter list makes every unique index non-raising, also the
 * transient one of a REINDEX CONCURRENTLY.
 */
bool
direct_insert(Relation rel, Datum *values, bool *nulls)
{
	EState	   *estate = CreateExecutorState();
	ResultRelInfo *result = makeNode(ResultRelInfo);
	TupleTableSlot *slot = table_slot_create(rel, &estate->es_tupleTable);
	uint32		token;
	bool		conflict = false;

	InitResultRelInfo(result, rel, 0, NULL, 0);
	ExecOpenIndices(result, false);
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, rel->rd_att->natts * sizeof(Datum));
	memcpy(slot->tts_isnull, nulls, rel->rd_att->natts * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	slot->tts_tableOid = RelationGetRelid(rel);

	token = SpeculativeInsertionLockAcquire(GetCurrentTransactionId());
	table_tuple_insert_speculative(rel, slot, GetCurrentCommandId(true), 0,
								   NULL, token);
	(void) tc_insert_index_tuples(result, slot, estate, &conflict);
	table_tuple_complete_speculative(rel, slot, token, !conflict);
	SpeculativeInsertionLockRelease(GetCurrentTransactionId());

	ExecCloseIndices(result);
	ExecResetTupleTable(estate->es_tupleTable, false);
	FreeExecutorState(estate);
	CommandCounterIncrement();
	return !conflict;
}

/*
 * Inserts a row of a plain table unless its key is there, without waiting for
 * whoever has it.
 */
bool
direct_insert_row(const char *table, int natts, Datum *values, bool *nulls)
{
	Relation	rel = table_open(query_table(table), RowExclusiveLock);
	bool		inserted = direct_is_plain(rel, natts) &&
		direct_insert(rel, values, nulls);

	table_close(rel, NoLock);
	return inserted;
}

/*
 * Is an open transaction of somebody just inserting, updating or deleting the
 * row with this primary key?  Locks nothing.
 */
bool
direct_is_changing(const char *table, int nkeys, const char *const *keys)
{
	Relation	rel = table_open(query_table(table), AccessShareLock);
	bool		changing = false;

	if (direct_is_local(rel))
		(void) direct_look(rel, nkeys, keys, NULL, NULL, &changing);
	table_close(rel, AccessShareLock);
	return changing;
}

/*
 * The same for any of the rows that have these keys in an index; *deleting
 * tells whether one is being updated or deleted.  Locks nothing.
 */
bool
direct_any_changing(const char *table, const char *index, int nkeys,
				   const char *const *keys, bool *deleting)
{
	Relation	rel = table_open(query_table(table), AccessShareLock);
	SnapshotData snapshot;
	DirectScan		look;
	bool		changing = false;

	*deleting = false;
	if (direct_is_local(rel))
	{
		bool		found;

		InitDirtySnapshot(snapshot);
		found = direct_scan_begin(&look, rel, query_table(index), nkeys, keys,
							   &snapshot);
		while (found && !*deleting)
		{
			*deleting = TransactionIdIsValid(snapshot.xmax);
			changing = changing || *deleting ||
				TransactionIdIsValid(snapshot.xmin);
			found = index_getnext_slot(look.scan, ForwardScanDirection,
									   look.slot);
		}
		direct_scan_end(&look);
	}
	table_close(rel, AccessShareLock);
	return changing;
}
