/*
 * json_writer.h
 *	  Collects the canonical text of a JSON value from left to right.
 */
#ifndef JSON_WRITER_H
#define JSON_WRITER_H

#include "json_number.h"

/* how deep objects and arrays may nest; in the manual, so fixed */
#define JSON_MAX_DEPTH		1000

/* why a JSON value is refused */
typedef enum JsonFaultKind
{
	JSON_FAULT_NONE,
	JSON_FAULT_SYNTAX,
	JSON_FAULT_SURROGATE,		/* half a surrogate pair */
	JSON_FAULT_NUL,				/* \u0000 */
	JSON_FAULT_DUPLICATE,		/* a member name twice in one object */
	JSON_FAULT_NUMBER,			/* an exponent out of range */
	JSON_FAULT_DEPTH,
	JSON_FAULT_SIZE				/* does not fit a value of the server */
} JsonFaultKind;

typedef struct JsonFault
{
	JsonFaultKind kind;
	size_t		offset;			/* byte of the text where it was found */
	const char *expected;		/* of a syntax error: what should be there */
} JsonFault;

/*
 * A member of an object, as it stands in the text written so far.  The object
 * keeps its members in reading order until it ends.
 */
typedef struct JsonMember
{
	uint64		prefix;			/* sorts as the name's first eight bytes do */
	uint32		start;			/* opening quote of the name */
	uint32		name_length;	/* bytes between the quotes */
	uint32		end;			/* behind the value */
	uint32		objects;		/* unordered objects that ended by then */
	uint32		source;			/* byte of the source text, for errors */
	bool		escaped;		/* the name as written has a backslash */
} JsonMember;

/* An object whose members were not in order, once it has ended. */
typedef struct JsonObject
{
	uint32		start;			/* first byte of the first member */
	uint32		end;			/* behind the last member */
	uint32		members;		/* the first of its members, which are sorted */
	uint32		member_count;
	uint32		objects;		/* unordered objects that ended before */
} JsonObject;

/* An object or array that has begun and not ended. */
typedef struct JsonLevel
{
	uint32		start;			/* behind the opening brace */
	uint32		members;		/* number of open members when it began */
	uint32		objects;		/* as in JsonObject */
	bool		is_object;
	bool		ordered;		/* members came in order so far */
} JsonLevel;

typedef struct JsonWriter
{
	char	   *data;			/* the varlena that is being built */
	char	   *at;				/* next byte to write */
	char	   *limit;			/* end of the allocation */

	JsonMember *open;			/* members of objects that have not ended */
	size_t		open_count;
	size_t		open_size;
	JsonMember *sorted;			/* members of unordered objects that have */
	size_t		sorted_count;
	size_t		sorted_size;
	JsonObject *objects;		/* unordered objects, in the order they ended */
	size_t		object_count;
	size_t		object_size;

	JsonFault	fault;			/* set when a call returned false */
	int			depth;
	JsonLevel	levels[JSON_MAX_DEPTH];
} JsonWriter;

extern void json_writer_init(JsonWriter *writer, size_t size);
extern bool json_writer_grow(JsonWriter *writer, size_t bytes);
extern bool json_writer_begin(JsonWriter *writer, char bracket);
extern bool json_writer_begin_member(JsonWriter *writer, size_t start,
									 bool escaped, size_t source);
extern bool json_writer_end(JsonWriter *writer);
extern bool json_writer_put_string(JsonWriter *writer, const char *string,
								   size_t length, bool *escaped);
extern bool json_writer_put_number(JsonWriter *writer,
								   const JsonNumber *number);
extern bool json_writer_put_word(JsonWriter *writer, const char *word);
extern char *json_writer_put_control(char *to, unsigned char control);
extern struct varlena *json_writer_finish(JsonWriter *writer);

/* Makes sure that so many more bytes can be written. */
static inline bool
json_writer_reserve(JsonWriter *writer, size_t bytes)
{
	if (likely((size_t) (writer->limit - writer->at) >= bytes))
		return true;
	return json_writer_grow(writer, bytes);
}

/* Writes bytes for which room was made. */
static inline void
json_writer_put(JsonWriter *writer, const char *bytes, size_t length)
{
	memcpy(writer->at, bytes, length);
	writer->at += length;
}

static inline size_t
json_writer_offset(const JsonWriter *writer)
{
	return writer->at - writer->data;
}

static inline bool
json_writer_in_object(const JsonWriter *writer)
{
	return writer->depth > 0 && writer->levels[writer->depth - 1].is_object;
}

/* Call it when a member's value has been written. */
static inline void
json_writer_end_member(JsonWriter *writer)
{
	JsonMember *member = &writer->open[writer->open_count - 1];

	member->end = json_writer_offset(writer);
	member->objects = writer->object_count;
}

/*
 * Returns how many bytes from here need no escape inside a JSON string: all
 * but quotation mark, backslash and control characters.
 */
static inline size_t
json_plain_length(const char *string, const char *end)
{
#define JSON_EACH_BYTE(c)	(UINT64CONST(0x0101010101010101) * (c))
#define JSON_BYTE_BELOW(word, c) \
	(((word) - JSON_EACH_BYTE(c)) & ~(word) & JSON_EACH_BYTE(0x80))
	const char *p = string;

	while (end - p >= (ptrdiff_t) sizeof(uint64))
	{
		uint64		word;

		memcpy(&word, p, sizeof(word));
		if (JSON_BYTE_BELOW(word, 0x20) |
			JSON_BYTE_BELOW(word ^ JSON_EACH_BYTE('"'), 1) |
			JSON_BYTE_BELOW(word ^ JSON_EACH_BYTE('\\'), 1))
			break;
		p += sizeof(word);
	}
	while (p < end && (unsigned char) *p >= 0x20 && *p != '"' && *p != '\\')
		p++;
	return p - string;
}

#endif							/* JSON_WRITER_H */
