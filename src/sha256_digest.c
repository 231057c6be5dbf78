/*
 * sha256_digest.c
 *	  Type sha256_digest: 32 bytes, and how they are computed.
 *
 * Text: 64 lower-case hexadecimal digits; upper case and a leading \x, as
 * bytea prints it, are read.  Binary: the 32 bytes.
 */
#include "postgres.h"

#include <openssl/evp.h>

#include "common/hashfn.h"
#include "libpq/pqformat.h"

#include "compat.h"
#include "sha256_digest.h"

/* Computes the SHA-256 of the data. */
void
sha256_compute(const void *data, size_t length, Sha256Digest *digest)
{
	if (EVP_Digest(data, length, digest->bytes, NULL, EVP_sha256(), NULL) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not compute SHA-256"),
				 errhint("Look whether the server's OpenSSL provides SHA-256.")));
}

/* Writes the digest as 64 lower-case hexadecimal digits and a NUL. */
void
sha256_to_hex(const Sha256Digest *digest, char hex[SHA256_HEX_BYTES + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (int i = 0; i < SHA256_BYTES; i++)
	{
		hex[2 * i] = digits[digest->bytes[i] >> 4];
		hex[2 * i + 1] = digits[digest->bytes[i] & 15];
	}
	hex[SHA256_HEX_BYTES] = '\0';
}

/* Returns what a hexadecimal digit stands for, or -1. */
static int
hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/*
 * Reads 64 hexadecimal digits.  Returns false for anything else.
 */
static bool
read_hex(const char *hex, Sha256Digest *digest)
{
	if (strlen(hex) != SHA256_HEX_BYTES)
		return false;
	for (int i = 0; i < SHA256_BYTES; i++)
	{
		int			high = hex_value(hex[2 * i]);
		int			low = hex_value(hex[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		digest->bytes[i] = high << 4 | low;
	}
	return true;
}

/* tool_claims.sha256_digest_in(cstring) returns tool_claims.sha256_digest */
PG_FUNCTION_INFO_V1(tc_sha256_digest_in);

Datum
tc_sha256_digest_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);
	const char *hex = strncmp(text, "\\x", 2) == 0 ? text + 2 : text;
	Sha256Digest *digest = palloc(sizeof(Sha256Digest));

	if (!read_hex(hex, digest))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type %s", "sha256_digest"),
				 strlen(hex) == SHA256_HEX_BYTES ?
				 errdetail("A character is no hexadecimal digit.") :
				 errdetail("There are %zu characters.", strlen(hex)),
				 errhint("Write %d hexadecimal digits, with or without \\x before them.",
						 SHA256_HEX_BYTES)));
	PG_RETURN_SHA256_DIGEST(digest);
}

/* tool_claims.sha256_digest_out(tool_claims.sha256_digest) returns cstring */
PG_FUNCTION_INFO_V1(tc_sha256_digest_out);

Datum
tc_sha256_digest_out(PG_FUNCTION_ARGS)
{
	char	   *hex = palloc(SHA256_HEX_BYTES + 1);

	sha256_to_hex(PG_GETARG_SHA256_DIGEST(0), hex);
	PG_RETURN_CSTRING(hex);
}

/* tool_claims.sha256_digest_recv(internal) returns tool_claims.sha256_digest */
PG_FUNCTION_INFO_V1(tc_sha256_digest_recv);

Datum
tc_sha256_digest_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			length = message->len - message->cursor;
	Sha256Digest *digest = palloc(sizeof(Sha256Digest));

	if (length != SHA256_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid binary form of type %s", "sha256_digest"),
				 errdetail("The value has %d bytes.", length),
				 errhint("Send exactly %d bytes.", SHA256_BYTES)));
	pq_copymsgbytes(message, (char *) digest->bytes, SHA256_BYTES);
	PG_RETURN_SHA256_DIGEST(digest);
}

/* tool_claims.sha256_digest_send(tool_claims.sha256_digest) returns bytea */
PG_FUNCTION_INFO_V1(tc_sha256_digest_send);

Datum
tc_sha256_digest_send(PG_FUNCTION_ARGS)
{
	Sha256Digest *digest = PG_GETARG_SHA256_DIGEST(0);
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendbytes(&message, (const char *) digest->bytes, SHA256_BYTES);
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

/* tool_claims.sha256_digest_from_bytea(bytea) returns tool_claims.sha256_digest */
PG_FUNCTION_INFO_V1(tc_sha256_digest_from_bytea);

Datum
tc_sha256_digest_from_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = PG_GETARG_BYTEA_PP(0);
	Sha256Digest *digest;

	if (VARSIZE_ANY_EXHDR(bytes) != SHA256_BYTES)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("a SHA-256 digest has %d bytes, not %zu",
						SHA256_BYTES, (size_t) VARSIZE_ANY_EXHDR(bytes)),
				 errhint("Hexadecimal digits are read by a cast from text.")));
	digest = palloc(sizeof(Sha256Digest));
	memcpy(digest->bytes, VARDATA_ANY(bytes), SHA256_BYTES);
	PG_RETURN_SHA256_DIGEST(digest);
}

/* tool_claims.sha256_digest_to_bytea(tool_claims.sha256_digest) returns bytea */
PG_FUNCTION_INFO_V1(tc_sha256_digest_to_bytea);

Datum
tc_sha256_digest_to_bytea(PG_FUNCTION_ARGS)
{
	bytea	   *bytes = palloc(VARHDRSZ + SHA256_BYTES);

	SET_VARSIZE(bytes, VARHDRSZ + SHA256_BYTES);
	memcpy(VARDATA(bytes), PG_GETARG_SHA256_DIGEST(0)->bytes, SHA256_BYTES);
	PG_RETURN_BYTEA_P(bytes);
}

static int
compare_digests(FunctionCallInfo fcinfo)
{
	return memcmp(PG_GETARG_SHA256_DIGEST(0)->bytes,
				  PG_GETARG_SHA256_DIGEST(1)->bytes, SHA256_BYTES);
}

/* tool_claims.sha256_digest_eq(...) and so on: the operators, byte by byte */
#define DIGEST_OPERATOR(name, operator) \
PG_FUNCTION_INFO_V1(tc_sha256_digest_##name); \
Datum \
tc_sha256_digest_##name(PG_FUNCTION_ARGS) \
{ \
	PG_RETURN_BOOL(compare_digests(fcinfo) operator 0); \
}

DIGEST_OPERATOR(eq, ==)
DIGEST_OPERATOR(ne, !=)
DIGEST_OPERATOR(lt, <)
DIGEST_OPERATOR(le, <=)
DIGEST_OPERATOR(gt, >)
DIGEST_OPERATOR(ge, >=)

/* tool_claims.sha256_digest_cmp(...) returns integer: btree support */
PG_FUNCTION_INFO_V1(tc_sha256_digest_cmp);

Datum
tc_sha256_digest_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare_digests(fcinfo));
}

/* tool_claims.sha256_digest_hash(...) returns integer: hash support */
PG_FUNCTION_INFO_V1(tc_sha256_digest_hash);

Datum
tc_sha256_digest_hash(PG_FUNCTION_ARGS)
{
	return hash_any(PG_GETARG_SHA256_DIGEST(0)->bytes, SHA256_BYTES);
}

/* tool_claims.sha256_digest_hash_extended(..., bigint) returns bigint: the same */
PG_FUNCTION_INFO_V1(tc_sha256_digest_hash_extended);

Datum
tc_sha256_digest_hash_extended(PG_FUNCTION_ARGS)
{
	return hash_any_extended(PG_GETARG_SHA256_DIGEST(0)->bytes, SHA256_BYTES,
							 PG_GETARG_INT64(1));
}
