/*
 * json_reader.c
 *	  Reads a JSON text strictly and gives its canonical form.
 *
 * One pass over the text, without recursion: the writer keeps what is open.
 * The grammar is RFC 8259's and nothing beyond.  The text is UTF-8; bytes that
 * are not ASCII may stand in strings only, and are copied without a look at
 * them, so who calls this vouches for the encoding.
 *
 * Nothing is thrown from here but for want of memory and on cancel: a fault of
 * the text is returned.
 */
#include "postgres.h"

#include "mb/pg_wchar.h"
#include "miscadmin.h"

#include "json_reader.h"

/* what a syntax error says was expected */
#define EXPECTED_VALUE		"a value"
#define EXPECTED_NAME		"a member name in double quotes"
#define EXPECTED_COLON		"a colon"
#define EXPECTED_NEXT_MEMBER "a comma or a closing brace"
#define EXPECTED_NEXT_ELEMENT "a comma or a closing bracket"
#define EXPECTED_DIGIT		"a digit"
#define EXPECTED_QUOTE		"a closing double quote"
#define EXPECTED_ESCAPE		"an escape that JSON knows"
#define EXPECTED_HEX		"four hexadecimal digits"
#define EXPECTED_ESCAPED	"an escape in place of a control character"
#define EXPECTED_END		"the end of the text"

typedef struct JsonReader
{
	const char *text;
	const char *at;				/* next byte to read */
	const char *end;
	JsonWriter	writer;
} JsonReader;

/* Notes what is wrong with the text at "at", and returns false. */
static bool
fail(JsonReader *reader, JsonFaultKind kind, const char *at,
	 const char *expected)
{
	reader->writer.fault.kind = kind;
	reader->writer.fault.offset = at - reader->text;
	reader->writer.fault.expected = expected;
	return false;
}

static bool
fail_syntax(JsonReader *reader, const char *expected)
{
	return fail(reader, JSON_FAULT_SYNTAX, reader->at, expected);
}

static inline void
skip_space(JsonReader *reader)
{
	const char *p = reader->at;

	while (p < reader->end &&
		   (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
		p++;
	reader->at = p;
}

/* Is this the next character?  The end of the text is none. */
static inline bool
next_is(const JsonReader *reader, char c)
{
	return reader->at < reader->end && *reader->at == c;
}

/* Reads four hexadecimal digits, or returns -1. */
static int
read_hex(const char *p, const char *end)
{
	int			code = 0;

	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++)
	{
		char		c = p[i];

		code <<= 4;
		if (c >= '0' && c <= '9')
			code += c - '0';
		else if (c >= 'a' && c <= 'f')
			code += c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			code += c - 'A' + 10;
		else
			return -1;
	}
	return code;
}

/*
 * Reads \uXXXX, or two of them that stand for one character, and writes what
 * it stands for.
 */
static bool
read_unicode_escape(JsonReader *reader, bool *escaped)
{
	const char *start = reader->at;
	JsonWriter *writer = &reader->writer;
	int			code = read_hex(start + 2, reader->end);

	if (code < 0)
		return fail_syntax(reader, EXPECTED_HEX);
	if (code == 0)
		return fail(reader, JSON_FAULT_NUL, start, NULL);
	reader->at += 6;

	if (code >= 0xD800 && code <= 0xDFFF)
	{
		int			low = -1;

		if (code <= 0xDBFF && reader->end - reader->at >= 6 &&
			reader->at[0] == '\\' && reader->at[1] == 'u')
			low = read_hex(reader->at + 2, reader->end);
		if (low < 0xDC00 || low > 0xDFFF)
			return fail(reader, JSON_FAULT_SURROGATE, start, NULL);
		code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
		reader->at += 6;
	}

	if (code < 0x20 || code == '"' || code == '\\')
	{
		writer->at = json_writer_put_control(writer->at, code);
		*escaped = true;
	}
	else
	{
		unicode_to_utf8(code, (unsigned char *) writer->at);
		writer->at += pg_utf_mblen((unsigned char *) writer->at);
	}
	return true;
}

/* Reads the escape that begins here and writes what it stands for. */
static bool
read_escape(JsonReader *reader, bool *escaped)
{
	JsonWriter *writer = &reader->writer;

	if (reader->end - reader->at < 2)
		return fail_syntax(reader, EXPECTED_ESCAPE);
	switch (reader->at[1])
	{
		case 'u':
			return read_unicode_escape(reader, escaped);
		case '/':
			*writer->at++ = '/';
			break;
		case '"':
		case '\\':
		case 'b':
		case 'f':
		case 'n':
		case 'r':
		case 't':
			json_writer_put(writer, reader->at, 2);
			*escaped = true;
			break;
		default:
			return fail_syntax(reader, EXPECTED_ESCAPE);
	}
	reader->at += 2;
	return true;
}

/*
 * Reads the string whose opening quote is here.  Tells whether it got a
 * backslash in its canonical form.
 */
static bool
read_string(JsonReader *reader, bool *escaped)
{
	JsonWriter *writer = &reader->writer;
	const char *start = reader->at++;

	*escaped = false;
	for (;;)
	{
		reader->at += json_plain_length(reader->at, reader->end);
		if (reader->at == reader->end)
			return fail_syntax(reader, EXPECTED_QUOTE);
		if (*reader->at != '"' && *reader->at != '\\')
			return fail_syntax(reader, EXPECTED_ESCAPED);

		/* what was passed, and the quote or what an escape becomes */
		if (!json_writer_reserve(writer, reader->at - start + 6))
			return false;
		json_writer_put(writer, start, reader->at - start);
		if (*reader->at == '"')
		{
			*writer->at++ = *reader->at++;
			return true;
		}
		if (!read_escape(reader, escaped))
			return false;
		start = reader->at;
	}
}

/* Reads the number that begins here. */
static bool
read_number(JsonReader *reader)
{
	JsonNumber	number;
	const char *next;

	switch (json_number_scan(reader->at, reader->end, &number, &next))
	{
		case JSON_NUMBER_GOOD:
			break;
		case JSON_NUMBER_MALFORMED:
			return fail(reader, JSON_FAULT_SYNTAX, next, EXPECTED_DIGIT);
		case JSON_NUMBER_OUT_OF_RANGE:
			return fail(reader, JSON_FAULT_NUMBER, next, NULL);
	}
	reader->at = next;
	return json_writer_put_number(&reader->writer, &number);
}

/* Reads true, false or null. */
static bool
read_word(JsonReader *reader, const char *word)
{
	size_t		length = strlen(word);

	if ((size_t) (reader->end - reader->at) < length ||
		memcmp(reader->at, word, length) != 0)
		return fail_syntax(reader, EXPECTED_VALUE);
	reader->at += length;
	return json_writer_put_word(&reader->writer, word);
}

/* Reads a member's name and the colon after it. */
static bool
read_name(JsonReader *reader)
{
	size_t		start = json_writer_offset(&reader->writer);
	size_t		source;
	bool		escaped;

	skip_space(reader);
	if (!next_is(reader, '"'))
		return fail_syntax(reader, EXPECTED_NAME);
	source = reader->at - reader->text;
	if (!read_string(reader, &escaped))
		return false;

	skip_space(reader);
	if (!next_is(reader, ':'))
		return fail_syntax(reader, EXPECTED_COLON);
	reader->at++;
	return json_writer_begin_member(&reader->writer, start, escaped, source);
}

/*
 * Reads what a value begins with: all of a scalar or of an empty object or
 * array, otherwise up to where the next value begins.  Tells which in "whole".
 */
static bool
read_value(JsonReader *reader, bool *whole)
{
	bool		escaped;
	char		first;

	*whole = true;
	skip_space(reader);
	if (reader->at == reader->end)
		return fail_syntax(reader, EXPECTED_VALUE);

	first = *reader->at;
	switch (first)
	{
		case '{':
		case '[':
			if (!json_writer_begin(&reader->writer, first))
				return false;
			reader->at++;
			skip_space(reader);
			if (next_is(reader, first == '{' ? '}' : ']'))
			{
				reader->at++;
				return json_writer_end(&reader->writer);
			}
			*whole = false;
			return first == '{' ? read_name(reader) : true;
		case '"':
			return read_string(reader, &escaped);
		case 't':
			return read_word(reader, "true");
		case 'f':
			return read_word(reader, "false");
		case 'n':
			return read_word(reader, "null");
		case '-':
		case '0':
		case '1':
		case '2':
		case '3':
		case '4':
		case '5':
		case '6':
		case '7':
		case '8':
		case '9':
			return read_number(reader);
		default:
			return fail_syntax(reader, EXPECTED_VALUE);
	}
}

/*
 * Reads what follows a value inside of an object or array: a comma (and then
 * a member's name), or the end of the object or array, which is a value's end
 * again.  Tells in "whole" which it was.
 */
static bool
read_after_value(JsonReader *reader, bool *whole)
{
	JsonWriter *writer = &reader->writer;
	bool		in_object = json_writer_in_object(writer);

	if (in_object)
		json_writer_end_member(writer);
	skip_space(reader);
	if (next_is(reader, ','))
	{
		*whole = false;
		reader->at++;
		if (!json_writer_reserve(writer, 1))
			return false;
		*writer->at++ = ',';
		return in_object ? read_name(reader) : true;
	}
	if (next_is(reader, in_object ? '}' : ']'))
	{
		*whole = true;
		reader->at++;
		return json_writer_end(writer);
	}
	return fail_syntax(reader, in_object ?
					   EXPECTED_NEXT_MEMBER : EXPECTED_NEXT_ELEMENT);
}

/* Reads the whole text. */
static bool
read_text(JsonReader *reader)
{
	bool		whole;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!read_value(reader, &whole))
			return false;
		while (whole && reader->writer.depth > 0)
		{
			if (!read_after_value(reader, &whole))
				return false;
		}
	} while (!whole);

	skip_space(reader);
	if (reader->at < reader->end)
		return fail_syntax(reader, EXPECTED_END);
	return true;
}

/*
 * Returns the canonical form of a JSON text in UTF-8, or NULL and what is
 * wrong with the text.
 */
struct varlena *
json_reader_canonicalize(const char *text, size_t length, JsonFault *fault)
{
	JsonReader	reader;

	reader.text = text;
	reader.at = text;
	reader.end = text + length;
	json_writer_init(&reader.writer, length + JSON_NUMBER_EXTRA);
	if (read_text(&reader))
	{
		fault->kind = JSON_FAULT_NONE;
		return json_writer_finish(&reader.writer);
	}

	*fault = reader.writer.fault;
	if (fault->kind == JSON_FAULT_DEPTH || fault->kind == JSON_FAULT_SIZE)
		fault->offset = reader.at - text;
	return NULL;
}
