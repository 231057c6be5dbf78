/*
 * canonical_json.c
 *	  libFuzzer harness of the reader, writer and numbers of canonical_json.
 *
 * Holds them against a second implementation that is as plain as can be
 * (recursive, strings as UTF-16, insertion sort, double by trial), and looks
 * whether the result reads as itself.  test/fuzz/run builds and runs it.
 *
 * What the code under test takes from a server stands in the first part.
 */
#include "postgres.h"

#include <malloc.h>
#include <math.h>
#include <setjmp.h>

#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "compat.h"
#include "json_reader.h"

/*
 * A server, as far as it is needed
 */
volatile sig_atomic_t InterruptPending = false;
MemoryContext CurrentMemoryContext = NULL;

/* what is allocated now, so that it can be freed after a fault, too */
static void *allocated[64];

void
ProcessInterrupts(void)
{
}

void
check_stack_depth(void)
{
}

static void
replace(void *old, void *new)
{
	int			i = 0;

	while (allocated[i] != old)
	{
		if (++i == lengthof(allocated))
			abort();
	}
	allocated[i] = new;
}

void *
palloc(Size size)
{
	void	   *pointer = malloc(size ? size : 1);

	replace(NULL, pointer);
	return pointer;
}

void *
repalloc(void *pointer, Size size)
{
	void	   *new = malloc(size);

	/* always another place, so that stale pointers are seen */
	memcpy(new, pointer, Min(malloc_usable_size(pointer), size));
	replace(pointer, new);
	free(pointer);
	return new;
}

void *
repalloc_huge(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return palloc(size);
}

void
pfree(void *pointer)
{
	replace(pointer, NULL);
	free(pointer);
}

static void
reset_memory(void)
{
	for (int i = 0; i < lengthof(allocated); i++)
	{
		free(allocated[i]);
		allocated[i] = NULL;
	}
}

bool
errstart(int elevel, const char *domain)
{
	abort();
}

bool
errstart_cold(int elevel, const char *domain)
{
	abort();
}

int
errmsg_internal(const char *fmt,...)
{
	abort();
}

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	abort();
}

/*
 * The second implementation
 */
#define MAX_UNITS	8192
#define MAX_MEMBERS	1024

typedef struct Text
{
	char	   *bytes;
	size_t		length;
	size_t		size;
} Text;

typedef struct Units
{
	uint16		units[MAX_UNITS];
	int			count;
} Units;

typedef struct Member
{
	Units	   *name;
	Text		value;
} Member;

static jmp_buf refused;
static const char *at;
static const char *end;

/* memory of one run, never freed */
static char pool[256 * 1024 * 1024];
static size_t pool_used;

static Text plain_value(int depth);

static void *
get(size_t size)
{
	void	   *memory = pool + pool_used;

	pool_used += MAXALIGN(size);
	if (pool_used > sizeof(pool))
		abort();
	return memory;
}

static void
append(Text *text, const char *bytes, size_t length)
{
	if (text->length + length >= text->size)
	{
		char	   *old = text->bytes;

		text->size = 2 * (text->length + length) + 16;
		text->bytes = get(text->size);
		if (text->length > 0)
			memcpy(text->bytes, old, text->length);
	}
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

static void
space(void)
{
	while (at < end && *at && strchr(" \t\r\n", *at))
		at++;
}

static bool
skip(const char *token)
{
	size_t		length = strlen(token);

	if ((size_t) (end - at) < length || memcmp(at, token, length) != 0)
		return false;
	at += length;
	return true;
}

static void
need(bool good)
{
	if (!good)
		longjmp(refused, 1);
}

static Units *
plain_string(void)
{
	Units	   *name = get(sizeof(Units));

	name->count = 0;
	need(skip("\""));
	while (!skip("\""))
	{
		uint32		unit;

		need(at < end && (unsigned char) *at >= 0x20);
		need(name->count < MAX_UNITS - 2);
		if (skip("\\u"))
		{
			char		hex[5] = {0};

			need(end - at >= 4);
			memcpy(hex, at, 4);
			at += 4;
			need(strspn(hex, "0123456789abcdefABCDEF") == 4);
			unit = strtoul(hex, NULL, 16);
			need(unit != 0);
			name->units[name->count++] = unit;
		}
		else if (skip("\\"))
		{
			static const char from[] = "\"\\/bfnrt";
			static const char to[] = "\"\\/\b\f\n\r\t";

			need(at < end && *at && strchr(from, *at));
			name->units[name->count++] = to[strchr(from, *at++) - from];
		}
		else
		{
			unit = utf8_to_unicode((const unsigned char *) at);
			at += pg_utf_mblen((const unsigned char *) at);
			if (unit >= 0x10000)
			{
				name->units[name->count++] = 0xD800 + ((unit - 0x10000) >> 10);
				unit = 0xDC00 + ((unit - 0x10000) & 0x3FF);
			}
			name->units[name->count++] = unit;
		}
	}
	for (int i = 0; i < name->count; i++)
	{
		if (name->units[i] >= 0xD800 && name->units[i] <= 0xDBFF)
		{
			i++;
			need(i < name->count && name->units[i] >= 0xDC00 &&
				 name->units[i] <= 0xDFFF);
		}
		else
			need(name->units[i] < 0xDC00 || name->units[i] > 0xDFFF);
	}
	return name;
}

static void
append_string(Text *text, const Units *name)
{
	append(text, "\"", 1);
	for (int i = 0; i < name->count; i++)
	{
		static const char from[] = "\"\\\b\f\n\r\t";
		static const char to[] = "\"\\bfnrt";
		uint32		code = name->units[i];
		char		bytes[16] = {0};

		if (code < 0x80 && strchr(from, code))
			sprintf(bytes, "\\%c", to[strchr(from, code) - from]);
		else if (code < 0x20)
			sprintf(bytes, "\\u%04x", (unsigned) code);
		else
		{
			if (code >= 0xD800 && code <= 0xDBFF)
				code = 0x10000 + ((code - 0xD800) << 10) +
					(name->units[++i] - 0xDC00);
			unicode_to_utf8(code, (unsigned char *) bytes);
		}
		append(text, bytes, strlen(bytes));
	}
	append(text, "\"", 1);
}

static int
compare(const Units *a, const Units *b)
{
	for (int i = 0; i < a->count && i < b->count; i++)
	{
		if (a->units[i] != b->units[i])
			return a->units[i] < b->units[i] ? -1 : 1;
	}
	return a->count - b->count;
}

static Text
plain_number(void)
{
	Text		digits = {0};
	Text		text = {0};
	char		exponent[32] = {0};
	const char *first;
	int64		point;
	int64		count;
	bool		minus = skip("-");
	bool		minus_exponent = false;

	append(&digits, "", 0);
	first = at;
	while (at < end && *at >= '0' && *at <= '9')
		append(&digits, at++, 1);
	need(at > first);
	need(*first != '0' || at == first + 1);
	point = digits.length;
	if (skip("."))
	{
		first = at;
		while (at < end && *at >= '0' && *at <= '9')
			append(&digits, at++, 1);
		need(at > first);
	}
	if (skip("e") || skip("E"))
	{
		if (!skip("+"))
			minus_exponent = skip("-");
		first = at;
		while (at < end && *at == '0')
			at++;
		for (int i = 0; at < end && *at >= '0' && *at <= '9'; at++)
		{
			if (i < 18)
				exponent[i++] = *at;
		}
		need(at > first);
		point += (minus_exponent ? -1 : 1) * atoll(exponent);
	}

	count = digits.length;
	while (count > 0 && digits.bytes[count - 1] == '0')
		count--;
	first = digits.bytes;
	while (count > 0 && *first == '0')
	{
		first++;
		count--;
		point--;
	}
	if (count == 0)
	{
		append(&text, "0", 1);
		return text;
	}
	need(point - 1 <= 999999999 && point - 1 >= -999999999);

	if (minus)
		append(&text, "-", 1);
	if (point > 21 || point <= -6)
	{
		char		tail[32];

		append(&text, first, 1);
		if (count > 1)
			append(&text, ".", 1);
		append(&text, first + 1, count - 1);
		sprintf(tail, "e%+lld", (long long) point - 1);
		append(&text, tail, strlen(tail));
	}
	else
	{
		if (point <= 0)
			append(&text, "0.", 2);
		for (int64 i = point; i < 0; i++)
			append(&text, "0", 1);
		for (int64 i = 0; i < count; i++)
		{
			if (i == point && point > 0)
				append(&text, ".", 1);
			append(&text, first + i, 1);
		}
		for (int64 i = count; i < point; i++)
			append(&text, "0", 1);
	}
	return text;
}

static Text
plain_object(int depth)
{
	Text		text = {0};
	Member	   *members = get(MAX_MEMBERS * sizeof(Member));
	int			count = 0;

	space();
	if (!skip("}"))
	{
		do
		{
			Member		member;
			int			i;

			space();
			member.name = plain_string();
			space();
			need(skip(":"));
			member.value = plain_value(depth);
			need(count < MAX_MEMBERS);
			for (i = count++; i > 0; i--)
			{
				need(compare(members[i - 1].name, member.name) != 0);
				if (compare(members[i - 1].name, member.name) < 0)
					break;
				members[i] = members[i - 1];
			}
			members[i] = member;
			space();
		} while (skip(","));
		need(skip("}"));
	}
	append(&text, "{", 1);
	for (int i = 0; i < count; i++)
	{
		if (i > 0)
			append(&text, ",", 1);
		append_string(&text, members[i].name);
		append(&text, ":", 1);
		append(&text, members[i].value.bytes, members[i].value.length);
	}
	append(&text, "}", 1);
	return text;
}

static Text
plain_array(int depth)
{
	Text		text = {0};

	append(&text, "[", 1);
	space();
	if (!skip("]"))
	{
		do
		{
			Text		value = plain_value(depth);

			if (text.length > 1)
				append(&text, ",", 1);
			append(&text, value.bytes, value.length);
			space();
		} while (skip(","));
		need(skip("]"));
	}
	append(&text, "]", 1);
	return text;
}

static Text
plain_value(int depth)
{
	static const char *const words[] = {"true", "false", "null"};
	Text		text = {0};

	space();
	need(at < end);
	if (*at == '{' || *at == '[')
	{
		need(depth < JSON_MAX_DEPTH);
		return *at++ == '{' ? plain_object(depth + 1) : plain_array(depth + 1);
	}
	if (*at == '"')
	{
		Units	   *string = plain_string();

		append_string(&text, string);
		return text;
	}
	for (int i = 0; i < lengthof(words); i++)
	{
		if (skip(words[i]))
		{
			append(&text, words[i], strlen(words[i]));
			return text;
		}
	}
	return plain_number();
}

/* Returns false if the text is refused. */
static bool
plain_text(const char *input, size_t length, Text *text)
{
	if (setjmp(refused))
		return false;
	at = input;
	end = input + length;
	*text = plain_value(0);
	space();
	need(at == end);
	return true;
}

/* Does ECMAScript print the double nearest to this decimal like this? */
static bool
plain_is_portable(const char *decimal)
{
	double		value = strtod(decimal, NULL);
	Text		text;

	if (value == 0 || isinf(value))
		return strcmp(decimal, "0") == 0;
	for (int digits = 1; digits <= 17; digits++)
	{
		char		nearest[64];
		char		candidate[64];
		char		integer[64];
		int			exponent;
		long long	significand;

		/* as an integer of so many digits and an exponent */
		sprintf(nearest, "%.*e", digits - 1, fabs(value));
		exponent = atoi(strchr(nearest, 'e') + 1) - (digits - 1);
		integer[0] = nearest[0];
		memcpy(integer + 1, nearest + 2, digits);
		integer[digits] = '\0';
		significand = atoll(integer);

		/* the nearest one; if that is none, one of its neighbours may be */
		for (int i = 0; i < 3; i++)
		{
			static const int away[] = {0, -1, 1};

			sprintf(candidate, "%s%llde%d", value < 0 ? "-" : "",
					significand + away[i], exponent);
			if (strtod(candidate, NULL) != value)
				continue;
			if (!plain_text(candidate, strlen(candidate), &text))
				abort();
			return strcmp(text.bytes, decimal) == 0;
		}
	}
	abort();
}

/*
 * The tests
 */
static bool
is_text(const char *bytes, size_t length)
{
	for (size_t i = 0; i < length;)
	{
		int			step = pg_utf_mblen((const unsigned char *) bytes + i);

		if (bytes[i] == '\0' || length - i < (size_t) step ||
			!pg_utf8_islegal((const unsigned char *) bytes + i, step))
			return false;
		i += step;
	}
	return true;
}

static void
must(bool good)
{
	if (!good)
		abort();
}

static void
check_numbers(const char *text, size_t length)
{
	bool		in_string = false;

	for (size_t i = 0; i < length; i++)
	{
		if (text[i] == '"')
			in_string = !in_string;
		else if (in_string && text[i] == '\\')
			i++;
		else if (!in_string && (text[i] == '-' ||
								(text[i] >= '0' && text[i] <= '9')))
		{
			JsonNumber	number;
			const char *next;
			Text		decimal = {0};

			must(json_number_scan(text + i, text + length, &number, &next) ==
				 JSON_NUMBER_GOOD);
			append(&decimal, text + i, next - (text + i));
			must(json_number_is_portable(&number) ==
				 plain_is_portable(decimal.bytes));
			i = next - text - 1;
		}
	}
}

/* Any bytes as a string that has no escapes yet, as they come from a jsonb. */
static void
check_string(const char *bytes, size_t length)
{
	JsonWriter	writer;
	JsonFault	fault;
	struct varlena *string;
	struct varlena *again;
	bool		escaped;

	if (memchr(bytes, '\0', length))
		return;
	json_writer_init(&writer, 0);
	must(json_writer_put_string(&writer, bytes, length, &escaped));
	string = json_writer_finish(&writer);
	must(escaped == (memchr(VARDATA(string), '\\',
							VARSIZE(string) - VARHDRSZ) != NULL));
	again = json_reader_canonicalize(VARDATA(string),
									 VARSIZE(string) - VARHDRSZ, &fault);
	must(again && VARSIZE(again) == VARSIZE(string) &&
		 memcmp(VARDATA(again), VARDATA(string),
				VARSIZE(string) - VARHDRSZ) == 0);
}

int			LLVMFuzzerTestOneInput(const uint8 *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8 *data, size_t size)
{
	char	   *input = malloc(size ? size : 1);
	struct varlena *value;
	JsonFault	fault;
	Text		plain = {0};

	pool_used = 0;
	/* a copy of exactly this size, so that reading beyond it is seen */
	memcpy(input, data, size);
	check_string(input, size);
	value = json_reader_canonicalize(input, size, &fault);
	must((value == NULL) == (fault.kind != JSON_FAULT_NONE));
	must(value || fault.offset <= size);

	if (is_text(input, size))
	{
		must(plain_text(input, size, &plain) == (value != NULL));
		if (value)
		{
			char	   *text = VARDATA(value);
			size_t		length = VARSIZE(value) - VARHDRSZ;
			struct varlena *again;

			must(length == plain.length &&
				 memcmp(text, plain.bytes, length) == 0);
			again = json_reader_canonicalize(text, length, &fault);
			must(again && VARSIZE(again) == VARSIZE(value) &&
				 memcmp(VARDATA(again), text, length) == 0);
			check_numbers(text, length);
		}
	}
	reset_memory();
	free(input);
	return 0;
}
