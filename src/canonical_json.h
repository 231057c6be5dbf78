/*
 * canonical_json.h
 *	  Type canonical_json: a JSON value in RFC 8785 form, numbers exact.
 */
#ifndef CANONICAL_JSON_H
#define CANONICAL_JSON_H

#include "fmgr.h"

#include "sha256_digest.h"

/*
 * The payload is the canonical text in UTF-8, whatever the encoding of the
 * database.  These functions take values that are not compressed or stored
 * out of line; a short header does no harm.
 */
typedef struct varlena CanonicalJson;

#define PG_GETARG_CANONICAL_JSON(n) \
	((CanonicalJson *) PG_GETARG_VARLENA_PP(n))
#define PG_RETURN_CANONICAL_JSON(p) PG_RETURN_POINTER(p)

extern CanonicalJson *canonical_json_parse(const char *text, size_t length);
extern CanonicalJson *canonical_json_try_parse(const char *text,
											   size_t length);
extern char *canonical_json_to_cstring(const CanonicalJson *value);
extern void canonical_json_digest(const CanonicalJson *value,
								  Sha256Digest *digest);
extern size_t canonical_json_size(const CanonicalJson *value);

#endif							/* CANONICAL_JSON_H */
