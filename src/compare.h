/*
 * compare.h
 *
 * Equality of the values that records are made of.
 */
#ifndef TC_COMPARE_H
#define TC_COMPARE_H

#include "sha256_digest.h"

/* two texts, of which either may be NULL */
static inline bool
same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL)
		return a == b;
	return strcmp(a, b) == 0;
}

static inline bool
same_digest(const Sha256Digest *a, const Sha256Digest *b)
{
	return memcmp(a, b, sizeof(Sha256Digest)) == 0;
}

#endif							/* TC_COMPARE_H */
