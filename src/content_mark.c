/*
 * content_mark.c
 *
 * Detached marks of content, by HMAC-SHA-256 (RFC 2104, FIPS 180-4) or Ed25519
 * (RFC 8032), both of OpenSSL.
 *
 * A mark is "tcm1.<key id>.<signature>", both parts base64url without padding.
 * What is signed is a label with the version, and then each of algorithm, key
 * id, organization, context and content with its length in front: no two
 * different calls sign the same bytes.  Content counts in UTF-8.
 *
 * Verifying never raises on bad input.  Secrets leave the table mark_keys only
 * for OpenSSL; no error, event or row has them.
 */
#include "postgres.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/x509.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

#include "arguments.h"
#include "at_commit.h"
#include "claim_rows.h"
#include "content_mark.h"
#include "query.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_add_mark_key);
PG_FUNCTION_INFO_V1(tc_retire_mark_key);
PG_FUNCTION_INFO_V1(tc_revoke_mark_key);
PG_FUNCTION_INFO_V1(tc_mark_content);
PG_FUNCTION_INFO_V1(tc_verify_mark);

#define MARK_PREFIX		"tcm1."
#define MARK_LABEL		"tool_claims content mark v1"
#define HMAC_BYTES		32
#define ED25519_KEY_BYTES	32
#define ED25519_SIGNATURE_BYTES	64
#define MAX_SIGNATURE_BYTES	64

const char *const mark_verdict_names[] = {
	[MARK_VALID] = "valid",
	[MARK_INVALID] = "invalid",
	[MARK_UNMARKED] = "unmarked",
	[MARK_UNKNOWN_KEY] = "unknown_key"
};

typedef struct MarkKey
{
	bool		is_ed25519;
	char		state;			/* 'a'ctive, 'r'etired, re'v'oked */
	const unsigned char *secret;	/* NULL: can only verify */
	size_t		secret_length;
	const unsigned char *public_key;	/* of Ed25519 */
} MarkKey;

static SavedQuery find_query = {
	"SELECT k.algorithm, k.state, k.secret, k.public_key "
	"FROM tool_claims.mark_keys k "
	"WHERE k.organization OPERATOR(pg_catalog.=) $1 AND "
	"k.key_id OPERATOR(pg_catalog.=) $2",
	2, {TEXTOID, TEXTOID}
};

static SavedQuery add_query = {
	"INSERT INTO tool_claims.mark_keys (organization, key_id, algorithm, "
	"state, secret, public_key, added_at) VALUES ($1, $2, $3, 'a', $4, $5, "
	"tool_claims.clock()) ON CONFLICT DO NOTHING",
	5, {TEXTOID, TEXTOID, TEXTOID, BYTEAOID, BYTEAOID}
};

/* a revoked key stays revoked */
static SavedQuery state_query = {
	"UPDATE tool_claims.mark_keys k SET state = CASE k.state "
	"WHEN 'v'::pg_catalog.\"char\" THEN k.state ELSE $3 END "
	"WHERE k.organization OPERATOR(pg_catalog.=) $1 AND "
	"k.key_id OPERATOR(pg_catalog.=) $2",
	3, {TEXTOID, TEXTOID, CHAROID}
};

/* ----- base64url ----- */

static const char alphabet[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void
append_base64url(StringInfo to, const unsigned char *data, size_t length)
{
	for (size_t i = 0; i < length; i += 3)
	{
		uint32		bits = (uint32) data[i] << 16;
		size_t		left = length - i;

		if (left > 1)
			bits |= (uint32) data[i + 1] << 8;
		if (left > 2)
			bits |= data[i + 2];
		appendStringInfoChar(to, alphabet[bits >> 18]);
		appendStringInfoChar(to, alphabet[(bits >> 12) & 63]);
		if (left > 1)
			appendStringInfoChar(to, alphabet[(bits >> 6) & 63]);
		if (left > 2)
			appendStringInfoChar(to, alphabet[bits & 63]);
	}
}

/*
 * Decodes into a buffer of size bytes.  Returns the length, or -1 for what is
 * not the one spelling that append_base64url gives.
 */
static int
decode_base64url(const char *from, size_t length, unsigned char *to,
				 size_t size)
{
	size_t		count = 0;
	uint32		bits = 0;
	int			nbits = 0;

	if (length % 4 == 1)
		return -1;
	for (size_t i = 0; i < length; i++)
	{
		const char *at = from[i] != '\0' ? strchr(alphabet, from[i]) : NULL;

		if (at == NULL)
			return -1;
		bits = (bits << 6) | (uint32) (at - alphabet);
		nbits += 6;
		if (nbits >= 8)
		{
			nbits -= 8;
			if (count >= size)
				return -1;
			to[count++] = (bits >> nbits) & 255;
		}
	}
	return (bits & ((1u << nbits) - 1)) == 0 ? (int) count : -1;
}

/* ----- keys ----- */

/* copies a bytea to the current context, NULL for a null */
static const unsigned char *
copy_bytes(Datum value, bool isnull, size_t *length)
{
	bytea	   *bytes;

	*length = 0;
	if (isnull)
		return NULL;
	bytes = DatumGetByteaPCopy(value);
	*length = VARSIZE_ANY_EXHDR(bytes);
	return (const unsigned char *) VARDATA_ANY(bytes);
}

static bool
find_key(const char *organization, const char *key_id, MarkKey *key)
{
	QueryScope	scope;
	Datum		values[2];
	bool		found;

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(key_id);
	query_begin(&scope);
	found = query_run(&find_query, values, NULL, InvalidSnapshot) > 0;
	if (found)
	{
		HeapTuple	tuple = SPI_tuptable->vals[0];
		TupleDesc	descriptor = SPI_tuptable->tupdesc;
		MemoryContext old = MemoryContextSwitchTo(scope.caller);
		bool		isnull;
		Datum		value;
		size_t		length;

		value = SPI_getbinval(tuple, descriptor, 1, &isnull);
		key->is_ed25519 = strcmp(TextDatumGetCString(value), "ed25519") == 0;
		key->state = DatumGetChar(SPI_getbinval(tuple, descriptor, 2, &isnull));
		value = SPI_getbinval(tuple, descriptor, 3, &isnull);
		key->secret = copy_bytes(value, isnull, &key->secret_length);
		value = SPI_getbinval(tuple, descriptor, 4, &isnull);
		key->public_key = copy_bytes(value, isnull, &length);
		MemoryContextSwitchTo(old);
	}
	query_end(&scope);
	return found;
}

/* ----- signing ----- */

static void
append_field(StringInfo framed, const char *data, size_t length)
{
	uint64		size = pg_hton64((uint64) length);

	appendBinaryStringInfo(framed, (const char *) &size, sizeof(size));
	appendBinaryStringInfo(framed, data, (int) length);
}

/*
 * Converts a text between the server's encoding and UTF-8, without an error:
 * NULL for what the other one does not have.
 */
static char *
try_convert(const char *from, size_t length, bool to_utf8, size_t *converted)
{
	int			server = GetDatabaseEncoding();
	int			source = to_utf8 ? server : PG_UTF8;
	int			target = to_utf8 ? PG_UTF8 : server;
	char	   *to;
	Oid			conversion;

	*converted = length;
	if (server == PG_UTF8 || server == PG_SQL_ASCII)
		return pg_encoding_verifymbstr(PG_UTF8, from, (int) length) == (int) length ?
			pnstrdup(from, length) : NULL;
	conversion = FindDefaultConversionProc(source, target);
	if (!OidIsValid(conversion) || length > MaxAllocSize / 8)
		return NULL;
	to = palloc(length * MAX_CONVERSION_GROWTH + 1);
	if (pg_do_encoding_conversion_buf(conversion, source, target,
									  (unsigned char *) from, (int) length,
									  (unsigned char *) to,
									  (int) length * MAX_CONVERSION_GROWTH + 1,
									  true) != (int) length)
		return NULL;
	*converted = strlen(to);
	return to;
}

static bool
append_text_field(StringInfo framed, const char *value, size_t length)
{
	size_t		converted;
	char	   *utf8 = try_convert(value, length, true, &converted);

	if (utf8 != NULL)
		append_field(framed, utf8, converted);
	return utf8 != NULL;
}

/* the bytes that are signed; false where a text has no form in UTF-8 */
static bool
frame(StringInfo framed, const MarkKey *key, const char *key_id,
	  const char *organization, const char *context, const text *content)
{
	const char *algorithm = key->is_ed25519 ? "ed25519" : "hmac-sha256";

	initStringInfo(framed);
	appendBinaryStringInfo(framed, MARK_LABEL, sizeof(MARK_LABEL));
	append_field(framed, algorithm, strlen(algorithm));
	return append_text_field(framed, key_id, strlen(key_id)) &&
		append_text_field(framed, organization, strlen(organization)) &&
		append_text_field(framed, context, strlen(context)) &&
		append_text_field(framed, VARDATA_ANY(content),
						  VARSIZE_ANY_EXHDR(content));
}

static bool
hmac(const MarkKey *key, const StringInfo framed, unsigned char *signature)
{
	unsigned int length = 0;

	return HMAC(EVP_sha256(), key->secret, (int) key->secret_length,
				(const unsigned char *) framed->data, framed->len,
				signature, &length) != NULL && length == HMAC_BYTES;
}

/* OpenSSL's objects live within this function: nothing is raised in between */
static bool
ed25519_sign(const MarkKey *key, const StringInfo framed,
			 unsigned char *signature)
{
	EVP_PKEY   *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL,
													key->secret,
													key->secret_length);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t		length = ED25519_SIGNATURE_BYTES;
	bool		signed_it = pkey != NULL && context != NULL &&
		EVP_DigestSignInit(context, NULL, NULL, NULL, pkey) == 1 &&
		EVP_DigestSign(context, signature, &length,
					   (const unsigned char *) framed->data, framed->len) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return signed_it && length == ED25519_SIGNATURE_BYTES;
}

static bool
ed25519_verify(const MarkKey *key, const StringInfo framed,
			   const unsigned char *signature)
{
	EVP_PKEY   *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
												   key->public_key,
												   ED25519_KEY_BYTES);
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	bool		valid = pkey != NULL && context != NULL &&
		EVP_DigestVerifyInit(context, NULL, NULL, NULL, pkey) == 1 &&
		EVP_DigestVerify(context, signature, ED25519_SIGNATURE_BYTES,
						 (const unsigned char *) framed->data,
						 framed->len) == 1;

	EVP_MD_CTX_free(context);
	EVP_PKEY_free(pkey);
	return valid;
}

/*
 * Is it one of the few public keys under which signatures prove nothing?  For
 * a point of small order the signature of the neutral element and zero
 * verifies every eighth message or more (RFC 8032 has no check for it).
 */
static bool
proves_nothing(const unsigned char *public_key)
{
	unsigned char signature[ED25519_SIGNATURE_BYTES] = {1};
	MarkKey		key = {.is_ed25519 = true, .public_key = public_key};

	for (int i = 0; i < 256; i++)
	{
		StringInfoData message;

		initStringInfo(&message);
		appendStringInfo(&message, "%d", i);
		if (ed25519_verify(&key, &message, signature))
			return true;
	}
	return false;
}

/* the public key of a secret one; false where it is none */
static bool
ed25519_public(const unsigned char *secret, unsigned char *public_key)
{
	EVP_PKEY   *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL,
													secret, ED25519_KEY_BYTES);
	size_t		length = ED25519_KEY_BYTES;
	bool		found = pkey != NULL &&
		EVP_PKEY_get_raw_public_key(pkey, public_key, &length) == 1;

	EVP_PKEY_free(pkey);
	return found;
}

/*
 * Reads an Ed25519 key: a secret as 32 raw bytes or PKCS #8, a public one as
 * SubjectPublicKeyInfo, both DER.  Returns 0 for neither, 1 for a public, 2
 * for a secret one.
 */
static int
ed25519_read(const unsigned char *data, size_t length, unsigned char *secret,
			 unsigned char *public_key)
{
	const unsigned char *at = data;
	size_t		size = ED25519_KEY_BYTES;
	EVP_PKEY   *pkey;
	int			kind = 0;

	if (length == ED25519_KEY_BYTES)
	{
		memcpy(secret, data, ED25519_KEY_BYTES);
		return ed25519_public(secret, public_key) ? 2 : 0;
	}
	pkey = d2i_PUBKEY(NULL, &at, (long) length);
	if (pkey != NULL && at == data + length &&
		EVP_PKEY_id(pkey) == EVP_PKEY_ED25519 &&
		EVP_PKEY_get_raw_public_key(pkey, public_key, &size) == 1)
		kind = 1;
	EVP_PKEY_free(pkey);
	if (kind != 0)
		return kind;

	at = data;
	pkey = d2i_AutoPrivateKey(NULL, &at, (long) length);
	if (pkey != NULL && at == data + length &&
		EVP_PKEY_id(pkey) == EVP_PKEY_ED25519 &&
		EVP_PKEY_get_raw_private_key(pkey, secret, &size) == 1)
		kind = ed25519_public(secret, public_key) ? 2 : 0;
	EVP_PKEY_free(pkey);
	return kind;
}

/* ----- verbs ----- */

static Datum
bytes_datum(const unsigned char *data, size_t length)
{
	bytea	   *bytes = palloc(VARHDRSZ + length);

	SET_VARSIZE(bytes, VARHDRSZ + length);
	memcpy(VARDATA(bytes), data, length);
	return PointerGetDatum(bytes);
}

/*
 * tool_claims.add_mark_key(key_id text, secret bytea, algorithm text)
 *		returns void
 */
Datum
tc_add_mark_key(PG_FUNCTION_ARGS)
{
	Datum		values[5];
	char		nulls[] = {' ', ' ', ' ', ' ', ' '};
	const char *key_id;
	const char *algorithm;
	const char *organization;
	bytea	   *secret;
	QueryScope	scope;
	uint64		rows;

	verb_enter("tool_claims.add_mark_key()");
	key_id = argument_key_text(fcinfo, 0, "key_id", KEY_TEXT_FILLED);
	require_argument(fcinfo, 1, "secret");
	secret = PG_GETARG_BYTEA_PP(1);
	require_argument(fcinfo, 2, "algorithm");
	algorithm = argument_text(fcinfo, 2);
	organization = settings_verb_organization();

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(key_id);
	values[2] = CStringGetTextDatum(algorithm);
	values[3] = PointerGetDatum(secret);
	values[4] = (Datum) 0;
	nulls[4] = 'n';
	if (VARSIZE_ANY_EXHDR(secret) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"secret\" must not be empty")));
	if (strcmp(algorithm, "ed25519") == 0)
	{
		unsigned char raw[ED25519_KEY_BYTES];
		unsigned char public_key[ED25519_KEY_BYTES];
		int			kind;

		kind = ed25519_read((unsigned char *) VARDATA_ANY(secret),
							VARSIZE_ANY_EXHDR(secret), raw, public_key);
		if (kind == 1 && proves_nothing(public_key))
			kind = 0;
		if (kind == 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"secret\" is no Ed25519 key"),
					 errhint("Pass a secret key as 32 bytes or PKCS #8, a public one as SubjectPublicKeyInfo, in DER.")));
		values[3] = bytes_datum(raw, ED25519_KEY_BYTES);
		if (kind == 1)
			nulls[3] = 'n';
		values[4] = bytes_datum(public_key, ED25519_KEY_BYTES);
		nulls[4] = ' ';
		OPENSSL_cleanse(raw, sizeof(raw));
	}
	else if (strcmp(algorithm, "hmac-sha256") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("algorithm \"%s\" is not known", algorithm),
				 errhint("It is one of: hmac-sha256, ed25519.")));

	query_begin(&scope);
	query_run(&add_query, values, nulls, InvalidSnapshot);
	rows = SPI_processed;
	query_end(&scope);
	if (rows == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNIQUE_VIOLATION),
				 errmsg("mark key \"%s\" exists already", key_id),
				 errhint("Add the new key under a new key_id, and retire the old one.")));
	at_commit_durable();
	PG_RETURN_VOID();
}

static Datum
set_key_state(FunctionCallInfo fcinfo, char state)
{
	const char *key_id = argument_key_text(fcinfo, 0, "key_id",
										   KEY_TEXT_FILLED);
	Datum		values[3];
	QueryScope	scope;
	uint64		rows;

	values[0] = CStringGetTextDatum(settings_verb_organization());
	values[1] = CStringGetTextDatum(key_id);
	values[2] = CharGetDatum(state);
	query_begin(&scope);
	rows = query_run(&state_query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	if (rows == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("mark key \"%s\" does not exist", key_id)));
	at_commit_durable();
	PG_RETURN_VOID();
}

/* tool_claims.retire_mark_key(key_id text) returns void */
Datum
tc_retire_mark_key(PG_FUNCTION_ARGS)
{
	verb_enter("tool_claims.retire_mark_key()");
	return set_key_state(fcinfo, 'r');
}

/* tool_claims.revoke_mark_key(key_id text) returns void */
Datum
tc_revoke_mark_key(PG_FUNCTION_ARGS)
{
	verb_enter("tool_claims.revoke_mark_key()");
	return set_key_state(fcinfo, 'v');
}

/*
 * tool_claims.mark_content(content text, key_id text, context text)
 *		returns text
 *
 * The mark of the content.  Writes nothing.
 */
Datum
tc_mark_content(PG_FUNCTION_ARGS)
{
	const char *key_id;
	const char *context;
	const char *organization = settings_verb_organization();
	MarkKey		key;
	StringInfoData framed;
	StringInfoData mark;
	unsigned char signature[MAX_SIGNATURE_BYTES];
	char	   *utf8;
	size_t		converted;

	require_argument(fcinfo, 0, "content");
	key_id = argument_key_text(fcinfo, 1, "key_id", KEY_TEXT_FILLED);
	require_argument(fcinfo, 2, "context");
	context = argument_text(fcinfo, 2);
	if (!find_key(organization, key_id, &key))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("mark key \"%s\" does not exist", key_id)));
	if (key.state != 'a' || key.secret == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("mark key \"%s\" cannot mark", key_id),
				 errdetail("%s", key.state == 'r' ? "It is retired." :
						   key.state == 'v' ? "It is revoked." :
						   "It is a public key, which only verifies.")));

	if (!frame(&framed, &key, key_id, organization, context,
			   PG_GETARG_TEXT_PP(0)))
		ereport(ERROR,
				(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
				 errmsg("content, context or key id has a character that UTF-8 does not have")));
	if (!(key.is_ed25519 ? ed25519_sign(&key, &framed, signature) :
		  hmac(&key, &framed, signature)))
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("could not compute a mark")));
	initStringInfo(&mark);
	appendStringInfoString(&mark, MARK_PREFIX);
	utf8 = try_convert(key_id, strlen(key_id), true, &converted);
	append_base64url(&mark, (unsigned char *) utf8, converted);
	appendStringInfoChar(&mark, '.');
	append_base64url(&mark, signature,
					 key.is_ed25519 ? ED25519_SIGNATURE_BYTES : HMAC_BYTES);
	PG_RETURN_TEXT_P(cstring_to_text_with_len(mark.data, mark.len));
}

/* takes a mark apart; false where it is none */
static bool
read_mark(const char *mark, char **key_id, unsigned char *signature,
		  int *signature_length)
{
	unsigned char id[1024];
	const char *at;
	const char *dot;
	int			length;
	size_t		converted;

	if (strncmp(mark, MARK_PREFIX, strlen(MARK_PREFIX)) != 0)
		return false;
	at = mark + strlen(MARK_PREFIX);
	dot = strchr(at, '.');
	if (dot == NULL)
		return false;
	length = decode_base64url(at, dot - at, id, sizeof(id));
	*signature_length = decode_base64url(dot + 1, strlen(dot + 1), signature,
										 MAX_SIGNATURE_BYTES);
	if (length <= 0 || memchr(id, '\0', length) != NULL ||
		(*signature_length != HMAC_BYTES &&
		 *signature_length != ED25519_SIGNATURE_BYTES) ||
		pg_encoding_verifymbstr(PG_UTF8, (char *) id, length) != length)
		return false;

	/* a key id that this database's encoding lacks is of no key here */
	*key_id = try_convert((char *) id, length, false, &converted);
	if (*key_id == NULL)
		*key_id = pstrdup("");
	return true;
}

/*
 * What a mark says about content.  Never raises because of its arguments;
 * content and mark may be NULL.
 */
MarkVerdict
content_mark_verify(const char *organization, const text *content,
					const char *mark, const char *context,
					const char **reason)
{
	MarkKey		key;
	StringInfoData framed;
	char	   *key_id;
	unsigned char signature[MAX_SIGNATURE_BYTES];
	unsigned char expected[MAX_SIGNATURE_BYTES];
	int			length;
	bool		valid;

	*reason = NULL;
	if (mark == NULL || mark[0] == '\0')
	{
		*reason = "there is no mark";
		return MARK_UNMARKED;
	}
	if (!read_mark(mark, &key_id, signature, &length))
	{
		*reason = "the mark is damaged";
		return MARK_INVALID;
	}
	if (!find_key(organization, key_id, &key))
	{
		*reason = "the key is not here";
		return MARK_UNKNOWN_KEY;
	}
	if (key.state == 'v')
	{
		*reason = "the key is revoked";
		return MARK_INVALID;
	}
	if (content == NULL || context == NULL)
	{
		*reason = "there is no content";
		return MARK_INVALID;
	}
	if (length != (key.is_ed25519 ? ED25519_SIGNATURE_BYTES : HMAC_BYTES))
	{
		*reason = "the mark is damaged";
		return MARK_INVALID;
	}
	if (!frame(&framed, &key, key_id, organization, context, content))
	{
		*reason = "the content is no text that has a mark";
		return MARK_INVALID;
	}
	if (key.is_ed25519)
		valid = ed25519_verify(&key, &framed, signature);
	else
		valid = hmac(&key, &framed, expected) &&
			CRYPTO_memcmp(signature, expected, HMAC_BYTES) == 0;
	if (!valid)
		*reason = "the mark is not of this content and context";
	return valid ? MARK_VALID : MARK_INVALID;
}

/*
 * tool_claims.verify_mark(content text, mark text, context text)
 *		returns (verdict mark_verdict, reason text)
 */
Datum
tc_verify_mark(PG_FUNCTION_ARGS)
{
	TupleDesc	descriptor = row_descriptor(fcinfo);
	Datum		values[2] = {0};
	bool		nulls[2] = {false};
	const char *reason;
	MarkVerdict verdict;

	verdict = content_mark_verify(settings_verb_organization(),
								  PG_ARGISNULL(0) ? NULL : PG_GETARG_TEXT_PP(0),
								  argument_text(fcinfo, 1),
								  argument_text(fcinfo, 2), &reason);
	values[0] = enum_datum(TupleDescAttr(descriptor, 0)->atttypid,
						   mark_verdict_names[verdict]);
	row_put_text(values, nulls, 1, reason);
	return HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls));
}
