/*
 * query.h
 *
 * Saved statements on the extension's own tables, run as their owner.
 */
#ifndef TC_QUERY_H
#define TC_QUERY_H

#include "executor/spi.h"
#include "fmgr.h"

#include "claim.h"

#define QUERY_MAX_ARGS	32

/*
 * A statement of constant text.  Its arguments have types of the core only:
 * the extension's own types get other OIDs with every CREATE EXTENSION, while
 * a saved plan finds tables and functions again by itself.
 */
typedef struct SavedQuery
{
	const char *sql;
	int			nargs;
	Oid			types[QUERY_MAX_ARGS];
	SPIPlanPtr	plan;			/* saved at first use */
} SavedQuery;

typedef enum QueryKind
{
	QUERY_BY_KEY,
	QUERY_SCAN					/* looks through a table */
} QueryKind;

typedef struct QueryScope
{
	Oid			role;
	int			security_context;
	int			guc_level;
	MemoryContext caller;		/* where results are to be copied to */
} QueryScope;

extern void query_begin(QueryScope *scope);
extern void query_begin_scan(QueryScope *scope);
extern void query_end(QueryScope *scope);
extern uint64 query_run(SavedQuery *query, Datum *values, const char *nulls,
						Snapshot snapshot);
extern void query_raise_serialization_failure(void);
extern bool query_read_current(SavedQuery *query, Datum *values);
extern Oid	query_table(const char *name);
extern void query_key_arguments(const ClaimKey *key, Datum *values);
extern ClaimKey *query_keys(QueryScope *scope, uint64 count);
extern Datum query_digest_argument(const Sha256Digest *digest);
extern void query_return_set(FunctionCallInfo fcinfo, SavedQuery *query,
							 Datum *values, const char *nulls, QueryKind kind);

#endif							/* TC_QUERY_H */
