/*
 * content_mark.h
 *
 * Marks of content: who vouches for it, and whether it is unchanged.
 */
#ifndef TC_CONTENT_MARK_H
#define TC_CONTENT_MARK_H

#include "postgres.h"

/* in the order of the enum tool_claims.mark_verdict */
typedef enum MarkVerdict
{
	MARK_VALID,
	MARK_INVALID,
	MARK_UNMARKED,
	MARK_UNKNOWN_KEY
} MarkVerdict;

extern const char *const mark_verdict_names[];
extern MarkVerdict content_mark_verify(const char *organization,
									   const text *content, const char *mark,
									   const char *context,
									   const char **reason);

#endif							/* TC_CONTENT_MARK_H */
