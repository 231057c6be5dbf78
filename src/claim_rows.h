/*
 * claim_rows.h
 *
 * The row types claim_result and claim_status.
 */
#ifndef TC_CLAIM_ROWS_H
#define TC_CLAIM_ROWS_H

#include "fmgr.h"
#include "funcapi.h"

#include "claim.h"

extern Datum claim_result_datum(FunctionCallInfo fcinfo,
								const ClaimStep *step, const ClaimKey *key,
								bool holder);
extern HeapTuple claim_status_tuple(TupleDesc descriptor,
									const ClaimRecord *stored);
extern Datum claim_status_datum(FunctionCallInfo fcinfo,
								const ClaimRecord *stored);
extern void claim_status_set(FunctionCallInfo fcinfo, List *records);
extern const char *const claim_outcome_names[];
extern TupleDesc row_descriptor(FunctionCallInfo fcinfo);
extern void row_put_text(Datum *values, bool *nulls, int column,
						 const char *value);
extern void row_put_pointer(Datum *values, bool *nulls, int column,
							const void *value);
extern void row_put_time(Datum *values, bool *nulls, int column,
						 TimestampTz value);
extern Datum enum_datum(Oid type, const char *label);

#endif							/* TC_CLAIM_ROWS_H */
