/*
 * canonical_json.c
 *	  Type canonical_json: a JSON value in RFC 8785 form, numbers exact.
 *
 * The payload is the canonical text in UTF-8 in every database, so that a
 * digest does not depend on the database's encoding.  Text that comes in is
 * converted to UTF-8 first.  What goes out is converted back, and characters
 * that the database's encoding does not have become \uXXXX: what is printed
 * can be read, and is the same value.  (SQL_ASCII has no characters; there the
 * bytes must be UTF-8 as they are.)
 *
 * Equal values have equal bytes, so operators compare those.
 */
#include "postgres.h"

#include "access/detoast.h"
#include "catalog/namespace.h"
#include "common/hashfn.h"
#include "libpq/pqformat.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/numeric.h"

#include "canonical_json.h"
#include "compat.h"
#include "json_reader.h"

/* bytes that are converted to the server's encoding at once */
#define ENCODING_PIECE		512

/* The ways between UTF-8 and the server's encoding, where there are any. */
typedef struct EncodingPath
{
	int			encoding;
	Oid			to_server;
	Oid			from_server;
} EncodingPath;

/* Is this a byte of a UTF-8 character other than its first? */
static inline bool
is_continuation(char byte)
{
	return (byte & 0xC0) == 0x80;
}

/* Returns how many characters begin in so many bytes of UTF-8. */
static size_t
count_characters(const char *text, size_t length)
{
	size_t		count = 0;

	for (size_t i = 0; i < length; i++)
		count += !is_continuation(text[i]);
	return count;
}

/*
 * Raises the error that says what is wrong with a JSON value.  "position" is
 * the character of its text, counted from 1, or 0 where there is no text.  No
 * part of the value is shown: it may be confidential.
 */
static void
report_fault(const JsonFault *fault, size_t position, bool at_end)
{
	switch (fault->kind)
	{
		case JSON_FAULT_NONE:
			break;
		case JSON_FAULT_SYNTAX:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid input syntax for type %s",
							"canonical_json"),
					 at_end ?
					 errdetail("Expected %s, but the text ends.",
							   fault->expected) :
					 errdetail("Expected %s at character %zu.",
							   fault->expected, position),
					 errhint("Pass JSON exactly as RFC 8259 defines it.")));
			break;
		case JSON_FAULT_SURROGATE:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
					 errmsg("invalid input syntax for type %s",
							"canonical_json"),
					 errdetail("Half of a surrogate pair stands alone at character %zu.",
							   position),
					 errhint("Write a character beyond U+FFFF itself, or as two escapes, the high surrogate first.")));
			break;
		case JSON_FAULT_NUL:
			ereport(ERROR,
					(errcode(ERRCODE_UNTRANSLATABLE_CHARACTER),
					 errmsg("canonical_json cannot hold \\u0000"),
					 errdetail("The escape stands at character %zu.",
							   position),
					 errhint("Leave the character out, or pass the string in another form, such as base64.")));
			break;
		case JSON_FAULT_DUPLICATE:
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_JSON_OBJECT_KEY_VALUE),
					 errmsg("duplicate member name in a JSON object"),
					 position == 0 ? 0 :
					 errdetail("The name at character %zu stands in the same object before.",
							   position),
					 errhint("Give each member of an object a name of its own; names that differ in their escapes alone are equal.")));
			break;
		case JSON_FAULT_NUMBER:
			ereport(ERROR,
					(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
					 errmsg("JSON number is out of range"),
					 errdetail("The number at character %zu has a decimal exponent beyond %d.",
							   position, JSON_NUMBER_MAX_EXPONENT),
					 errhint("Pass such a number as a string.")));
			break;
		case JSON_FAULT_DEPTH:
			ereport(ERROR,
					(errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
					 errmsg("JSON value is nested too deeply"),
					 position == 0 ?
					 errdetail("Objects and arrays may nest %d levels deep.",
							   JSON_MAX_DEPTH) :
					 errdetail("Objects and arrays may nest %d levels deep; one more begins at character %zu.",
							   JSON_MAX_DEPTH, position),
					 errhint("Pass the deep part as a string.")));
			break;
		case JSON_FAULT_SIZE:
			ereport(ERROR,
					(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
					 errmsg("JSON value is too large"),
					 errdetail("Its canonical form does not fit 1 GB."),
					 errhint("Pass a reference to the data, and its digest.")));
			break;
	}
	elog(ERROR, "unexpected kind of JSON fault: %d", (int) fault->kind);
}

static bool
is_ascii(const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
	{
		if (IS_HIGHBIT_SET(text[i]))
			return false;
	}
	return true;
}

/*
 * Returns a text of the server in UTF-8: a copy, or the text itself where that
 * is the same.
 */
static char *
to_utf8(char *text, size_t *length)
{
	char	   *utf8;

	if (GetDatabaseEncoding() == PG_UTF8 || is_ascii(text, *length))
		return text;

	/* only checks the bytes where the server's encoding is SQL_ASCII */
	utf8 = pg_server_to_any(text, (int) *length, PG_UTF8);
	if (utf8 != text)
		*length = strlen(utf8);
	return utf8;
}

/* Returns the canonical form of a JSON text in the server's encoding. */
CanonicalJson *
canonical_json_parse(const char *text, size_t length)
{
	CanonicalJson *value;
	JsonFault	fault;
	char	   *utf8 = to_utf8(unconstify(char *, text), &length);

	value = json_reader_canonicalize(utf8, length, &fault);
	if (value == NULL)
		report_fault(&fault, count_characters(utf8, fault.offset) + 1,
					 fault.offset == length);
	if (utf8 != text)
		pfree(utf8);
	return value;
}

/* The same, but NULL for a text that is no value, without an error. */
CanonicalJson *
canonical_json_try_parse(const char *text, size_t length)
{
	JsonFault	fault;
	CanonicalJson *value;
	char	   *utf8 = to_utf8(unconstify(char *, text), &length);

	value = json_reader_canonicalize(utf8, length, &fault);
	if (utf8 != text)
		pfree(utf8);
	return value;
}

/* Reads the next 16 bits of a message. */
static int
read_int16(const char **at)
{
	uint16		bits;

	memcpy(&bits, *at, sizeof(bits));
	*at += sizeof(bits);
	return (int16) pg_ntoh16(bits);
}

/*
 * Writes a number of a jsonb.  Its digits are taken from the binary form of
 * numeric, in groups of four that are not expanded: the text form would write
 * all the zeros of 1e131071.
 */
static bool
put_numeric(JsonWriter *writer, Numeric numeric)
{
	bytea	   *bytes = DatumGetByteaP(DirectFunctionCall1(numeric_send,
														   NumericGetDatum(numeric)));
	const char *at = VARDATA(bytes);
	int			groups = read_int16(&at);
	int			weight = read_int16(&at);
	int			sign = read_int16(&at);
	char	   *digits = palloc(groups * 4 + 1);
	char	   *to = digits;
	JsonNumber	number;
	bool		written;

	(void) read_int16(&at);		/* how many digits to display */
	if (sign != 0 && sign != 0x4000)
		elog(ERROR, "unexpected sign of a number in jsonb: %d", sign);

	for (int i = 0; i < groups; i++)
	{
		int			group = read_int16(&at);

		*to++ = '0' + group / 1000;
		*to++ = '0' + group / 100 % 10;
		*to++ = '0' + group / 10 % 10;
		*to++ = '0' + group % 10;
	}
	json_number_from_digits(digits, to - digits, sign != 0,
							((int64) weight + 1) * 4, &number);
	written = json_writer_put_number(writer, &number);
	pfree(digits);
	pfree(bytes);
	return written;
}

/* Writes a string of a jsonb, which is in the server's encoding. */
static inline bool
put_text(JsonWriter *writer, char *string, size_t length, bool *escaped)
{
	char	   *utf8 = to_utf8(string, &length);
	bool		written = json_writer_put_string(writer, utf8, length, escaped);

	if (utf8 != string)
		pfree(utf8);
	return written;
}

/* Writes a string, number, boolean or null of a jsonb. */
static bool
put_scalar(JsonWriter *writer, const JsonbValue *scalar)
{
	bool		escaped;

	switch (scalar->type)
	{
		case jbvString:
			return put_text(writer, scalar->val.string.val,
							scalar->val.string.len, &escaped);
		case jbvNumeric:
			return put_numeric(writer, scalar->val.numeric);
		case jbvBool:
			return json_writer_put_word(writer,
										scalar->val.boolean ? "true" : "false");
		case jbvNull:
			return json_writer_put_word(writer, "null");
		default:
			elog(ERROR, "unexpected type of a scalar in jsonb: %d",
				 (int) scalar->type);
			return false;
	}
}

/* Writes what the jsonb iterator found next. */
static bool
put_token(JsonWriter *writer, JsonbIteratorToken token,
		  const JsonbValue *found)
{
	size_t		start;
	bool		escaped;

	/* what comes next in an object or array follows a comma */
	if (writer->depth > 0 && token != WJB_VALUE &&
		token != WJB_END_ARRAY && token != WJB_END_OBJECT &&
		writer->at[-1] != '[' && writer->at[-1] != '{' &&
		writer->at[-1] != ':')
	{
		if (!json_writer_reserve(writer, 1))
			return false;
		*writer->at++ = ',';
	}

	switch (token)
	{
		case WJB_KEY:
			start = json_writer_offset(writer);
			return put_text(writer, found->val.string.val,
							found->val.string.len, &escaped) &&
				json_writer_begin_member(writer, start, escaped, 0);
		case WJB_BEGIN_ARRAY:
			return json_writer_begin(writer, '[');
		case WJB_BEGIN_OBJECT:
			return json_writer_begin(writer, '{');
		case WJB_ELEM:
			return put_scalar(writer, found);
		case WJB_VALUE:
			if (!put_scalar(writer, found))
				return false;
			break;
		case WJB_END_ARRAY:
		case WJB_END_OBJECT:
			if (!json_writer_end(writer))
				return false;
			break;
		default:
			elog(ERROR, "unexpected token of a jsonb: %d", (int) token);
	}
	if (json_writer_in_object(writer))
		json_writer_end_member(writer);
	return true;
}

/* Returns the canonical form of a jsonb. */
static CanonicalJson *
canonicalize_jsonb(Jsonb *jsonb)
{
	JsonbIterator *iterator = JsonbIteratorInit(&jsonb->root);
	JsonbIteratorToken token;
	JsonbValue	found;
	bool		scalar = false;
	JsonWriter	writer;

	json_writer_init(&writer, VARSIZE(jsonb));
	while ((token = JsonbIteratorNext(&iterator, &found, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		/* a lone scalar is kept as an array of one */
		if (token == WJB_BEGIN_ARRAY && found.val.array.rawScalar)
			scalar = true;
		else if (!(token == WJB_END_ARRAY && scalar) &&
				 !put_token(&writer, token, &found))
			report_fault(&writer.fault, 0, false);
	}
	return json_writer_finish(&writer);
}

/* Returns where the string ends whose opening quote is here. */
static const char *
skip_string(const char *at, const char *end)
{
	at++;
	for (;;)
	{
		at += json_plain_length(at, end);
		if (end - at < 2)
			return end;
		if (*at == '"')
			return at + 1;
		at += 2;
	}
}

/*
 * Appends a piece of canonical text in the server's encoding, if the server
 * has all its characters.  Some encodings give one code to two characters:
 * only what comes back as it was counts.
 */
static bool
append_converted(StringInfo to, const EncodingPath *path, const char *text,
				 int length)
{
	unsigned char server[ENCODING_PIECE * MAX_CONVERSION_GROWTH + 1];
	unsigned char back[sizeof(server) * MAX_CONVERSION_GROWTH + 1];
	int			server_length;

	if (!OidIsValid(path->to_server) || !OidIsValid(path->from_server))
		return false;
	if (pg_do_encoding_conversion_buf(path->to_server,
									  PG_UTF8, path->encoding,
									  (unsigned char *) text, length,
									  server, sizeof(server), true) != length)
		return false;
	server_length = strlen((char *) server);
	if (pg_do_encoding_conversion_buf(path->from_server,
									  path->encoding, PG_UTF8,
									  server, server_length,
									  back, sizeof(back),
									  true) != server_length)
		return false;
	if (strlen((char *) back) != (size_t) length || memcmp(back, text, length) != 0)
		return false;
	appendBinaryStringInfo(to, (char *) server, server_length);
	return true;
}

/* Appends a character as JSON escapes it. */
static void
append_escape(StringInfo to, const char *character)
{
	pg_wchar	code = utf8_to_unicode((const unsigned char *) character);

	if (code >= 0x10000)
	{
		appendStringInfo(to, "\\u%04x", 0xD800 + ((code - 0x10000) >> 10));
		code = 0xDC00 + ((code - 0x10000) & 0x3FF);
	}
	appendStringInfo(to, "\\u%04x", code);
}

/*
 * Appends a piece of canonical text in the server's encoding, with escapes for
 * the characters that it does not have: halves what cannot be converted as a
 * whole, down to these.  (They are inside of strings: all else is ASCII.)
 */
static void
append_for_server(StringInfo to, const EncodingPath *path, const char *text,
				  int length)
{
	int			half = length / 2;

	if (is_ascii(text, length))
	{
		appendBinaryStringInfo(to, text, length);
		return;
	}
	if (append_converted(to, path, text, length))
		return;
	while (half > 0 && is_continuation(text[half]))
		half--;
	if (half == 0)
		half = Min(length, pg_utf_mblen((const unsigned char *) text));
	if (half == length)
		append_escape(to, text);
	else
	{
		append_for_server(to, path, text, half);
		append_for_server(to, path, text + half, length - half);
	}
}

/*
 * Returns the canonical text in the server's encoding: a copy, or the value's
 * own payload where that is the same.
 */
static char *
text_for_server(const CanonicalJson *value, size_t *length)
{
	char	   *text = VARDATA_ANY(value);
	char	   *end = text + VARSIZE_ANY_EXHDR(value);
	EncodingPath path;
	StringInfoData buffer;

	*length = end - text;
	path.encoding = GetDatabaseEncoding();
	if (path.encoding == PG_UTF8 || path.encoding == PG_SQL_ASCII ||
		is_ascii(text, *length))
		return text;

	path.to_server = FindDefaultConversionProc(PG_UTF8, path.encoding);
	path.from_server = FindDefaultConversionProc(path.encoding, PG_UTF8);
	initStringInfo(&buffer);
	while (text < end)
	{
		char	   *piece = text;

		CHECK_FOR_INTERRUPTS();
		text += Min(end - text, ENCODING_PIECE);
		while (text < end && is_continuation(*text))
			text--;
		append_for_server(&buffer, &path, piece, text - piece);
	}
	*length = buffer.len;
	return buffer.data;
}

/* Returns the canonical text as a string of its own. */
char *
canonical_json_to_cstring(const CanonicalJson *value)
{
	size_t		length;
	char	   *text = text_for_server(value, &length);
	char	   *string;

	if (text != VARDATA_ANY(value))
		return text;
	string = palloc(length + 1);
	memcpy(string, text, length);
	string[length] = '\0';
	return string;
}

/* Computes the SHA-256 of the canonical text in UTF-8. */
void
canonical_json_digest(const CanonicalJson *value, Sha256Digest *digest)
{
	sha256_compute(VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value), digest);
}

/* Returns how many bytes the canonical text has in UTF-8. */
size_t
canonical_json_size(const CanonicalJson *value)
{
	return VARSIZE_ANY_EXHDR(value);
}

/* tool_claims.canonical_json_in(cstring) returns tool_claims.canonical_json */
PG_FUNCTION_INFO_V1(tc_canonical_json_in);

Datum
tc_canonical_json_in(PG_FUNCTION_ARGS)
{
	const char *text = PG_GETARG_CSTRING(0);

	PG_RETURN_CANONICAL_JSON(canonical_json_parse(text, strlen(text)));
}

/* tool_claims.canonical_json_out(tool_claims.canonical_json) returns cstring */
PG_FUNCTION_INFO_V1(tc_canonical_json_out);

Datum
tc_canonical_json_out(PG_FUNCTION_ARGS)
{
	PG_RETURN_CSTRING(canonical_json_to_cstring(PG_GETARG_CANONICAL_JSON(0)));
}

/*
 * tool_claims.canonical_json_recv(internal) returns tool_claims.canonical_json
 *
 * The binary form is a JSON text in the client's encoding, as that of json is.
 */
PG_FUNCTION_INFO_V1(tc_canonical_json_recv);

Datum
tc_canonical_json_recv(PG_FUNCTION_ARGS)
{
	StringInfo	message = (StringInfo) PG_GETARG_POINTER(0);
	int			length;
	char	   *text = pq_getmsgtext(message, message->len - message->cursor,
									 &length);

	PG_RETURN_CANONICAL_JSON(canonical_json_parse(text, length));
}

/* tool_claims.canonical_json_send(tool_claims.canonical_json) returns bytea */
PG_FUNCTION_INFO_V1(tc_canonical_json_send);

Datum
tc_canonical_json_send(PG_FUNCTION_ARGS)
{
	size_t		length;
	char	   *text = text_for_server(PG_GETARG_CANONICAL_JSON(0), &length);
	StringInfoData message;

	pq_begintypsend(&message);
	pq_sendtext(&message, text, length);
	PG_RETURN_BYTEA_P(pq_endtypsend(&message));
}

/*
 * tool_claims.canonical_json_from_text(text) returns tool_claims.canonical_json
 * tool_claims.canonical_json_from_json(json) returns tool_claims.canonical_json
 */
PG_FUNCTION_INFO_V1(tc_canonical_json_from_text);

Datum
tc_canonical_json_from_text(PG_FUNCTION_ARGS)
{
	text	   *source = PG_GETARG_TEXT_PP(0);

	PG_RETURN_CANONICAL_JSON(canonical_json_parse(VARDATA_ANY(source),
												  VARSIZE_ANY_EXHDR(source)));
}

/* tool_claims.canonical_json_from_jsonb(jsonb) returns tool_claims.canonical_json */
PG_FUNCTION_INFO_V1(tc_canonical_json_from_jsonb);

Datum
tc_canonical_json_from_jsonb(PG_FUNCTION_ARGS)
{
	PG_RETURN_CANONICAL_JSON(canonicalize_jsonb(PG_GETARG_JSONB_P(0)));
}

/*
 * tool_claims.canonical_json_to_text(tool_claims.canonical_json) returns text
 * tool_claims.canonical_json_to_json(tool_claims.canonical_json) returns json
 */
PG_FUNCTION_INFO_V1(tc_canonical_json_to_text);

Datum
tc_canonical_json_to_text(PG_FUNCTION_ARGS)
{
	size_t		length;
	char	   *text = text_for_server(PG_GETARG_CANONICAL_JSON(0), &length);

	PG_RETURN_TEXT_P(cstring_to_text_with_len(text, length));
}

/*
 * tool_claims.canonical_json_to_jsonb(tool_claims.canonical_json) returns jsonb
 *
 * Fails where jsonb cannot hold a number, or in an encoding that does not have
 * a character.
 */
PG_FUNCTION_INFO_V1(tc_canonical_json_to_jsonb);

Datum
tc_canonical_json_to_jsonb(PG_FUNCTION_ARGS)
{
	char	   *text = canonical_json_to_cstring(PG_GETARG_CANONICAL_JSON(0));

	PG_RETURN_DATUM(DirectFunctionCall1(jsonb_in, CStringGetDatum(text)));
}

/* tool_claims.digest(tool_claims.canonical_json) returns tool_claims.sha256_digest */
PG_FUNCTION_INFO_V1(tc_digest);

Datum
tc_digest(PG_FUNCTION_ARGS)
{
	Sha256Digest *digest = palloc(sizeof(Sha256Digest));

	canonical_json_digest(PG_GETARG_CANONICAL_JSON(0), digest);
	PG_RETURN_SHA256_DIGEST(digest);
}

/*
 * tool_claims.is_portable(tool_claims.canonical_json) returns boolean
 *
 * Does plain RFC 8785, which makes doubles of all numbers, give the same text?
 */
PG_FUNCTION_INFO_V1(tc_is_portable);

Datum
tc_is_portable(PG_FUNCTION_ARGS)
{
	CanonicalJson *value = PG_GETARG_CANONICAL_JSON(0);
	const char *at = VARDATA_ANY(value);
	const char *end = at + VARSIZE_ANY_EXHDR(value);

	while (at < end)
	{
		JsonNumber	number;

		CHECK_FOR_INTERRUPTS();
		if (*at == '"')
			at = skip_string(at, end);
		else if (*at == '-' || (*at >= '0' && *at <= '9'))
		{
			if (json_number_scan(at, end, &number, &at) != JSON_NUMBER_GOOD)
				elog(ERROR, "canonical_json holds a malformed number");
			if (!json_number_is_portable(&number))
				PG_RETURN_BOOL(false);
		}
		else
			at++;
	}
	PG_RETURN_BOOL(true);
}

/* Are the values equal?  Other sizes are told without fetching the values. */
static bool
equal_values(FunctionCallInfo fcinfo)
{
	Datum		a_datum = PG_GETARG_DATUM(0);
	Datum		b_datum = PG_GETARG_DATUM(1);
	CanonicalJson *a;
	CanonicalJson *b;
	bool		equal;

	if (toast_raw_datum_size(a_datum) != toast_raw_datum_size(b_datum))
		return false;

	a = PG_GETARG_CANONICAL_JSON(0);
	b = PG_GETARG_CANONICAL_JSON(1);
	equal = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return equal;
}

/* Compares the values byte by byte. */
static int
compare_values(FunctionCallInfo fcinfo)
{
	CanonicalJson *a = PG_GETARG_CANONICAL_JSON(0);
	CanonicalJson *b = PG_GETARG_CANONICAL_JSON(1);
	size_t		a_size = VARSIZE_ANY_EXHDR(a);
	size_t		b_size = VARSIZE_ANY_EXHDR(b);
	int			order = memcmp(VARDATA_ANY(a), VARDATA_ANY(b),
							   Min(a_size, b_size));

	if (order == 0)
		order = (a_size > b_size) - (a_size < b_size);
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return order;
}

/* tool_claims.canonical_json_eq(...) and so on: the operators */
#define JSON_OPERATOR(name, condition) \
PG_FUNCTION_INFO_V1(tc_canonical_json_##name); \
Datum \
tc_canonical_json_##name(PG_FUNCTION_ARGS) \
{ \
	PG_RETURN_BOOL(condition); \
}

JSON_OPERATOR(eq, equal_values(fcinfo))
JSON_OPERATOR(ne, !equal_values(fcinfo))
JSON_OPERATOR(lt, compare_values(fcinfo) < 0)
JSON_OPERATOR(le, compare_values(fcinfo) <= 0)
JSON_OPERATOR(gt, compare_values(fcinfo) > 0)
JSON_OPERATOR(ge, compare_values(fcinfo) >= 0)

/* tool_claims.canonical_json_cmp(...) returns integer: btree support */
PG_FUNCTION_INFO_V1(tc_canonical_json_cmp);

Datum
tc_canonical_json_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare_values(fcinfo));
}

/* tool_claims.canonical_json_hash(...) returns integer: hash support */
PG_FUNCTION_INFO_V1(tc_canonical_json_hash);

Datum
tc_canonical_json_hash(PG_FUNCTION_ARGS)
{
	CanonicalJson *value = PG_GETARG_CANONICAL_JSON(0);
	Datum		hash = hash_any((unsigned char *) VARDATA_ANY(value),
								VARSIZE_ANY_EXHDR(value));

	PG_FREE_IF_COPY(value, 0);
	return hash;
}

/* tool_claims.canonical_json_hash_extended(..., bigint) returns bigint: the same */
PG_FUNCTION_INFO_V1(tc_canonical_json_hash_extended);

Datum
tc_canonical_json_hash_extended(PG_FUNCTION_ARGS)
{
	CanonicalJson *value = PG_GETARG_CANONICAL_JSON(0);
	Datum		hash = hash_any_extended((unsigned char *) VARDATA_ANY(value),
										 VARSIZE_ANY_EXHDR(value),
										 PG_GETARG_INT64(1));

	PG_FREE_IF_COPY(value, 0);
	return hash;
}
