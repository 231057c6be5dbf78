/*
 * json_writer.c
 *	  Collects the canonical text of a JSON value from left to right.
 *
 * The caller writes a value as it reads it: strings and numbers in canonical
 * form, brackets through json_writer_begin and _end, and tells where each
 * member of an object begins and ends.  Most texts have their members in
 * order, and then what was written is the result.
 *
 * Where an object's members are not in order it stays as written for now, and
 * is remembered with its members sorted.  json_writer_finish then copies the
 * whole text once, each such object's members in their place.  Sorting at
 * once, object by object, would copy a text again for each level that it is
 * nested, so that a hostile one would cost a thousand times its size.
 *
 * For the same reason the sort is a merge sort: quicksort has inputs that
 * make it quadratic.
 *
 * Everything lives in the memory context that is current at each call, so it
 * must be the same one throughout.  After a fault nothing is freed.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "utils/memutils.h"

#include "compat.h"
#include "json_writer.h"

/* runs of members up to this long are sorted by insertion */
#define INSERTION_SORT_MAX	12

/* Starts a value, with room for a text of about this size. */
void
json_writer_init(JsonWriter *writer, size_t size)
{
	memset(writer, 0, offsetof(JsonWriter, levels));
	size = Min(size, MaxAllocSize - VARHDRSZ) + VARHDRSZ;
	writer->data = palloc(size);
	writer->at = writer->data + VARHDRSZ;
	writer->limit = writer->data + size;
}

/* Makes room for so many more bytes, and some beyond. */
bool
json_writer_grow(JsonWriter *writer, size_t bytes)
{
	size_t		used = json_writer_offset(writer);
	size_t		size;

	if (bytes > MaxAllocSize - used)
	{
		writer->fault.kind = JSON_FAULT_SIZE;
		return false;
	}
	size = Min(used + bytes + used / 2 + 64, MaxAllocSize);
	writer->data = repalloc(writer->data, size);
	writer->at = writer->data + used;
	writer->limit = writer->data + size;
	return true;
}

/* Returns the array with room for "more" further elements. */
static void *
array_reserve(void *array, size_t *size, size_t count, size_t more,
			  size_t element)
{
	size_t		wanted;

	if (more <= *size - count)
		return array;
	wanted = Max(*size * 2, count + more);
	wanted = Max(wanted, 32);
	*size = wanted;
	if (array == NULL)
		return MemoryContextAllocHuge(CurrentMemoryContext, wanted * element);
	return repalloc_huge(array, wanted * element);
}

/* Writes the opening bracket of an object or array. */
bool
json_writer_begin(JsonWriter *writer, char bracket)
{
	JsonLevel  *level;

	if (writer->depth == JSON_MAX_DEPTH)
	{
		writer->fault.kind = JSON_FAULT_DEPTH;
		return false;
	}
	if (!json_writer_reserve(writer, 1))
		return false;
	*writer->at++ = bracket;

	level = &writer->levels[writer->depth++];
	level->start = json_writer_offset(writer);
	level->members = writer->open_count;
	level->objects = writer->object_count;
	level->is_object = (bracket == '{');
	level->ordered = true;
	return true;
}

/*
 * A byte of UTF-8 such that comparing these compares UTF-16 code units: there,
 * characters beyond U+FFFF (lead bytes from 0xF0) sort before U+E000 to U+FFFF
 * (lead bytes 0xEE and 0xEF).
 */
static inline unsigned char
utf16_order(unsigned char byte)
{
	if (byte < 0xEE)
		return byte;
	return byte < 0xF0 ? byte + 5 : byte - 2;
}

/*
 * Returns the next byte of the name as it is without escapes, and steps over
 * it.  The name is in canonical form, so there are only these escapes.
 */
static unsigned char
next_name_byte(const char **name)
{
	const char *p = *name;

	if (*p != '\\')
	{
		*name = p + 1;
		return *p;
	}
	*name = p + 2;
	switch (p[1])
	{
		case 'b':
			return '\b';
		case 'f':
			return '\f';
		case 'n':
			return '\n';
		case 'r':
			return '\r';
		case 't':
			return '\t';
		case 'u':
			*name = p + 6;
			return (p[4] - '0') * 16 +
				(p[5] <= '9' ? p[5] - '0' : p[5] - 'a' + 10);
		default:
			return p[1];
	}
}

/*
 * Returns the first eight bytes of the name as a number that orders names
 * which differ in them.  Shorter names are filled up with zeros: no name has
 * a NUL of its own.  Eight bytes must be readable, whatever the length.
 */
static inline uint64
name_prefix(const char *name, size_t length, bool escaped)
{
	unsigned char bytes[sizeof(uint64)];
	uint64		prefix;

	if (escaped)
	{
		const char *end = name + length;

		memset(bytes, 0, sizeof(bytes));
		for (int i = 0; i < (int) sizeof(bytes) && name < end; i++)
			bytes[i] = next_name_byte(&name);
		memcpy(&prefix, bytes, sizeof(prefix));
		prefix = pg_ntoh64(prefix);
	}
	else
	{
		memcpy(&prefix, name, sizeof(prefix));
		prefix = pg_ntoh64(prefix);
		if (length < sizeof(prefix))
			prefix &= ~(PG_UINT64_MAX >> (8 * length));
	}

	if ((prefix & UINT64CONST(0x8080808080808080)) != 0)
	{
		prefix = pg_hton64(prefix);
		memcpy(bytes, &prefix, sizeof(prefix));
		for (int i = 0; i < (int) sizeof(bytes); i++)
			bytes[i] = utf16_order(bytes[i]);
		memcpy(&prefix, bytes, sizeof(prefix));
		prefix = pg_ntoh64(prefix);
	}
	return prefix;
}

/* Compares the names that two members have without their escapes. */
static int
compare_members(const JsonWriter *writer, const JsonMember *a,
				const JsonMember *b)
{
	const char *p;
	const char *p_end;
	const char *q;
	const char *q_end;

	if (a->prefix != b->prefix)
		return a->prefix < b->prefix ? -1 : 1;

	p = writer->data + a->start + 1;
	p_end = p + a->name_length;
	q = writer->data + b->start + 1;
	q_end = q + b->name_length;

	if (!a->escaped && !b->escaped)
	{
		while (p_end - p >= 8 && q_end - q >= 8 && memcmp(p, q, 8) == 0)
		{
			p += 8;
			q += 8;
		}
	}
	while (p < p_end && q < q_end)
	{
		unsigned char c = utf16_order(next_name_byte(&p));
		unsigned char d = utf16_order(next_name_byte(&q));

		if (c != d)
			return c < d ? -1 : 1;
	}
	return (p < p_end) - (q < q_end);
}

/*
 * Call it when a member's name has been written, from offset "start" on.
 * "source" is where it stands in the source text.
 */
bool
json_writer_begin_member(JsonWriter *writer, size_t start, bool escaped,
						 size_t source)
{
	JsonLevel  *level = &writer->levels[writer->depth - 1];
	JsonMember *member;

	/* a colon; and name_prefix reads on behind a short name */
	if (!json_writer_reserve(writer, sizeof(uint64)))
		return false;
	writer->open = array_reserve(writer->open, &writer->open_size,
								 writer->open_count, 1, sizeof(JsonMember));
	member = &writer->open[writer->open_count++];
	member->start = start;
	member->name_length = json_writer_offset(writer) - start - 2;
	member->source = source;
	member->escaped = escaped;
	member->prefix = name_prefix(writer->data + start + 1,
								 member->name_length, escaped);
	if (level->ordered && writer->open_count - level->members > 1)
		level->ordered = compare_members(writer, member - 1, member) < 0;

	*writer->at++ = ':';
	return true;
}

/*
 * Sorts members by name, equal ones in reading order.  "scratch" has room for
 * half of them.
 */
static void
sort_members(const JsonWriter *writer, JsonMember *members, size_t count,
			 JsonMember *scratch)
{
	size_t		half = count / 2;
	size_t		left = 0;
	size_t		right = half;
	size_t		to = 0;

	if (count <= INSERTION_SORT_MAX)
	{
		for (size_t i = 1; i < count; i++)
		{
			JsonMember	member = members[i];
			size_t		j = i;

			while (j > 0 &&
				   compare_members(writer, &members[j - 1], &member) > 0)
			{
				members[j] = members[j - 1];
				j--;
			}
			members[j] = member;
		}
		return;
	}

	CHECK_FOR_INTERRUPTS();
	sort_members(writer, members, half, scratch);
	sort_members(writer, members + half, count - half, scratch);

	/* merge, unless all of one half come before all of the other */
	if (compare_members(writer, &members[half - 1], &members[half]) <= 0)
		return;
	memcpy(scratch, members, half * sizeof(JsonMember));
	while (left < half && right < count)
	{
		if (compare_members(writer, &scratch[left], &members[right]) <= 0)
			members[to++] = scratch[left++];
		else
			members[to++] = members[right++];
	}
	memcpy(members + to, scratch + left, (half - left) * sizeof(JsonMember));
}

/*
 * Sorts the members of the object that ends and keeps it for the end.  Returns
 * false if two of them have the same name.
 */
static bool
keep_unordered(JsonWriter *writer, const JsonLevel *level)
{
	JsonMember *members = writer->open + level->members;
	size_t		count = writer->open_count - level->members;
	JsonMember *scratch = NULL;
	JsonObject *object;

	if (count > INSERTION_SORT_MAX)
		scratch = MemoryContextAllocHuge(CurrentMemoryContext,
										 count / 2 * sizeof(JsonMember));
	sort_members(writer, members, count, scratch);
	if (scratch)
		pfree(scratch);

	for (size_t i = 1; i < count; i++)
	{
		if (compare_members(writer, &members[i - 1], &members[i]) == 0)
		{
			writer->fault.kind = JSON_FAULT_DUPLICATE;
			writer->fault.offset = members[i].source;
			return false;
		}
	}

	writer->objects = array_reserve(writer->objects, &writer->object_size,
									writer->object_count, 1,
									sizeof(JsonObject));
	object = &writer->objects[writer->object_count++];
	object->start = level->start;
	object->end = json_writer_offset(writer);
	object->members = writer->sorted_count;
	object->member_count = count;
	object->objects = level->objects;

	writer->sorted = array_reserve(writer->sorted, &writer->sorted_size,
								   writer->sorted_count, count,
								   sizeof(JsonMember));
	memcpy(writer->sorted + writer->sorted_count, members,
		   count * sizeof(JsonMember));
	writer->sorted_count += count;
	return true;
}

/* Writes the closing bracket of the innermost object or array. */
bool
json_writer_end(JsonWriter *writer)
{
	JsonLevel  *level = &writer->levels[writer->depth - 1];

	if (!json_writer_reserve(writer, 1))
		return false;
	if (!level->ordered && !keep_unordered(writer, level))
		return false;
	*writer->at++ = level->is_object ? '}' : ']';
	writer->open_count = level->members;
	writer->depth--;
	return true;
}

/*
 * Writes a control character, quotation mark or backslash as inside of a
 * string, at most six bytes, and returns where it ends.
 */
char *
json_writer_put_control(char *to, unsigned char control)
{
	static const char digits[] = "0123456789abcdef";

	*to++ = '\\';
	switch (control)
	{
		case '\b':
			*to++ = 'b';
			break;
		case '\f':
			*to++ = 'f';
			break;
		case '\n':
			*to++ = 'n';
			break;
		case '\r':
			*to++ = 'r';
			break;
		case '\t':
			*to++ = 't';
			break;
		case '"':
		case '\\':
			*to++ = control;
			break;
		default:
			*to++ = 'u';
			*to++ = '0';
			*to++ = '0';
			*to++ = digits[control >> 4];
			*to++ = digits[control & 15];
	}
	return to;
}

/*
 * Writes a string, given in UTF-8 without escapes, with its quotes.  Tells
 * whether it got a backslash.
 */
bool
json_writer_put_string(JsonWriter *writer, const char *string, size_t length,
					   bool *escaped)
{
	const char *end = string + length;

	*escaped = false;
	if (!json_writer_reserve(writer, length + 2))
		return false;
	*writer->at++ = '"';
	for (;;)
	{
		size_t		plain = json_plain_length(string, end);

		/* the next escape or the closing quote, too */
		if (!json_writer_reserve(writer, plain + 6))
			return false;
		json_writer_put(writer, string, plain);
		string += plain;
		if (string == end)
			break;
		writer->at = json_writer_put_control(writer->at, *string++);
		*escaped = true;
	}
	*writer->at++ = '"';
	return true;
}

/* Writes a number. */
bool
json_writer_put_number(JsonWriter *writer, const JsonNumber *number)
{
	if (!json_writer_reserve(writer, number->count + JSON_NUMBER_EXTRA))
		return false;
	writer->at = json_number_put(number, writer->at);
	return true;
}

/* Writes true, false, null or a comma. */
bool
json_writer_put_word(JsonWriter *writer, const char *word)
{
	size_t		length = strlen(word);

	if (!json_writer_reserve(writer, length))
		return false;
	json_writer_put(writer, word, length);
	return true;
}

static inline char *
copy_backward(char *to, const char *from, size_t length)
{
	to -= length;
	memcpy(to, from, length);
	return to;
}

/*
 * Copies the text from "start" to "end" so that it ends before "to", unordered
 * objects in it with their members in order, and returns where it begins.  Of
 * the unordered objects "objects" had ended by "end"; the last of those lies
 * outermost and nearest to the end.
 *
 * Goes one level deeper for each unordered object around another.
 */
static char *
copy_in_order(const JsonWriter *writer, char *to, size_t start, size_t end,
			  size_t objects)
{
	check_stack_depth();
	while (objects > 0 && writer->objects[objects - 1].start >= start)
	{
		const JsonObject *object = &writer->objects[objects - 1];
		const JsonMember *members = writer->sorted + object->members;

		CHECK_FOR_INTERRUPTS();
		to = copy_backward(to, writer->data + object->end, end - object->end);
		for (size_t i = object->member_count; i-- > 0;)
		{
			to = copy_in_order(writer, to, members[i].start, members[i].end,
							   members[i].objects);
			if (i > 0)
				*--to = ',';
		}
		end = object->start;
		objects = object->objects;
	}
	return copy_backward(to, writer->data + start, end - start);
}

/*
 * Ends the value and returns its canonical text.  The writer's memory is freed
 * but for that.
 */
struct varlena *
json_writer_finish(JsonWriter *writer)
{
	size_t		size = json_writer_offset(writer);
	char	   *result = writer->data;

	if (writer->object_count > 0)
	{
		result = palloc(size);
		(void) copy_in_order(writer, result + size, VARHDRSZ, size,
							 writer->object_count);
		pfree(writer->data);
		pfree(writer->objects);
		pfree(writer->sorted);
	}
	if (writer->open)
		pfree(writer->open);
	SET_VARSIZE(result, size);
	return (struct varlena *) result;
}
