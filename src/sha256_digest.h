/*
 * sha256_digest.h
 *	  Type sha256_digest: 32 bytes, and how they are computed.
 */
#ifndef SHA256_DIGEST_H
#define SHA256_DIGEST_H

#include "fmgr.h"

#define SHA256_BYTES		32
#define SHA256_HEX_BYTES	(2 * SHA256_BYTES)

/* also the form on disk: fixed length, by reference, aligned as char */
typedef struct Sha256Digest
{
	uint8		bytes[SHA256_BYTES];
} Sha256Digest;

#define DatumGetSha256Digest(d)	((Sha256Digest *) DatumGetPointer(d))
#define PG_GETARG_SHA256_DIGEST(n) DatumGetSha256Digest(PG_GETARG_DATUM(n))
#define PG_RETURN_SHA256_DIGEST(p) PG_RETURN_POINTER(p)

extern void sha256_compute(const void *data, size_t length,
						   Sha256Digest *digest);
extern void sha256_to_hex(const Sha256Digest *digest,
						  char hex[SHA256_HEX_BYTES + 1]);

#endif							/* SHA256_DIGEST_H */
