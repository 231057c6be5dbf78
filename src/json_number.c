/*
 * json_number.c
 *	  Numbers of JSON texts, by their decimal digits.
 *
 * A number is read, judged and printed without ever becoming a binary one, so
 * that no digit is lost, and without ever being expanded, so that 1e999999
 * costs as much as 1.  What is printed has the layout of ECMAScript's
 * Number::toString, which is RFC 8785's, but with all of the value's digits.
 *
 * Only json_number_is_portable asks what an IEEE double would make of it.
 */
#include "postgres.h"

#include <math.h>

#include "common/shortest_dec.h"

#include "json_number.h"

/* up to how many digits before the point ECMAScript writes without exponent */
#define MAX_PLAIN_DIGITS	21
/* with so many digits, or fewer, every normal double gives a decimal back */
#define DOUBLE_SAFE_DIGITS	15
/* and no double is ever printed with more than these */
#define DOUBLE_MAX_DIGITS	17

/* exponents are only added up to this, far beyond any that is in range */
#define EXPONENT_CEILING	INT64CONST(1000000000000000)

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline const char *
skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/*
 * Strips zeros on both sides of the digits that stand from "first" up to
 * "last", with the decimal point (if any) at "dot", and fills the number.
 * "end" is where the integer digits end.
 */
static void
set_digits(JsonNumber *number, const char *first, const char *last,
		   const char *dot, const char *end)
{
	while (first < last && (*first == '0' || first == dot))
		first++;
	while (last > first && (last[-1] == '0' || last - 1 == dot))
		last--;

	if (first == last)
	{
		number->negative = false;
		number->digits = first;
		number->dot = NULL;
		number->count = 0;
		number->point = 0;
		return;
	}

	number->digits = first;
	number->dot = (dot && dot > first && dot < last) ? dot : NULL;
	number->count = (last - first) - (number->dot ? 1 : 0);
	/* digits after the point start one byte behind it */
	number->point = (first < end) ? end - first : end + 1 - first;
}

/*
 * Reads the exponent's digits, of which there may be any number, and returns
 * its value; beyond the ceiling only that it is beyond.
 */
static int64
read_exponent(const char *p, const char *end)
{
	int64		exponent = 0;

	for (; p < end; p++)
	{
		if (exponent < EXPONENT_CEILING)
			exponent = exponent * 10 + (*p - '0');
	}
	return exponent;
}

/*
 * Reads the number at "text", strictly as RFC 8259 spells it, and tells in
 * "next" where it ends or is at fault.  What may follow is for the caller.
 */
JsonNumberStatus
json_number_scan(const char *text, const char *end, JsonNumber *number,
				 const char **next)
{
	const char *p = text;
	const char *first;
	const char *integer_end;
	const char *last;
	const char *dot = NULL;
	int64		exponent = 0;

	number->negative = (p < end && *p == '-');
	if (number->negative)
		p++;

	first = p;
	if (p < end && *p == '0')
		p++;
	else
		p = skip_digits(p, end);
	if (p == first)
		goto malformed;
	integer_end = last = p;

	if (p < end && *p == '.')
	{
		dot = p++;
		last = skip_digits(p, end);
		if (last == p)
			goto malformed;
		p = last;
	}

	if (p < end && (*p == 'e' || *p == 'E'))
	{
		bool		minus;
		const char *exponent_start;

		p++;
		minus = (p < end && *p == '-');
		if (p < end && (*p == '-' || *p == '+'))
			p++;
		exponent_start = p;
		p = skip_digits(p, end);
		if (p == exponent_start)
			goto malformed;
		exponent = read_exponent(exponent_start, p);
		if (minus)
			exponent = -exponent;
	}

	*next = p;
	set_digits(number, first, last, dot, integer_end);
	if (number->count == 0)
		return JSON_NUMBER_GOOD;

	number->point += exponent;
	if (number->point - 1 > JSON_NUMBER_MAX_EXPONENT ||
		number->point - 1 < -JSON_NUMBER_MAX_EXPONENT)
	{
		*next = text;
		return JSON_NUMBER_OUT_OF_RANGE;
	}
	return JSON_NUMBER_GOOD;

malformed:
	*next = p;
	return JSON_NUMBER_MALFORMED;
}

/*
 * Makes a number of bare digits, zeros on either side allowed, with the
 * decimal point after the first "point" of them (which may be negative).
 */
void
json_number_from_digits(const char *digits, size_t length, bool negative,
						int64 point, JsonNumber *number)
{
	number->negative = negative;
	set_digits(number, digits, digits + length, NULL, digits + length);
	if (number->count > 0)
		number->point += point - (int64) length;
}

/* Copies the bare digits, and returns where they end. */
static char *
put_digits(const JsonNumber *number, char *to)
{
	size_t		head = number->count;

	if (number->dot)
		head = number->dot - number->digits;
	memcpy(to, number->digits, head);
	if (number->dot)
		memcpy(to + head, number->dot + 1, number->count - head);
	return to + number->count;
}

/* Makes room for a decimal point after the first "head" digits. */
static char *
insert_point(char *digits, size_t head, char *end)
{
	memmove(digits + head + 1, digits + head, end - (digits + head));
	digits[head] = '.';
	return end + 1;
}

/*
 * Writes the number in canonical form, at most JSON_NUMBER_EXTRA bytes more
 * than it has digits, and returns where it ends (there is no final NUL).
 */
char *
json_number_put(const JsonNumber *number, char *to)
{
	int64		count = (int64) number->count;
	int64		point = number->point;
	char	   *digits;

	if (count == 0)
	{
		*to++ = '0';
		return to;
	}
	if (number->negative)
		*to++ = '-';

	if (point > -6 && point <= 0)
	{
		*to++ = '0';
		*to++ = '.';
		memset(to, '0', -point);
		return put_digits(number, to - point);
	}

	digits = to;
	to = put_digits(number, digits);
	if (point > 0 && point <= MAX_PLAIN_DIGITS)
	{
		if (count > point)
			return insert_point(digits, point, to);
		memset(to, '0', point - count);
		return to + (point - count);
	}

	if (count > 1)
		to = insert_point(digits, 1, to);
	return to + sprintf(to, "e%c%lld", point > 0 ? '+' : '-',
						(long long) (point > 0 ? point - 1 : 1 - point));
}

/* Returns the first (at most 17) digits as an integer. */
static uint64
digits_as_integer(const JsonNumber *number)
{
	char		digits[DOUBLE_MAX_DIGITS];
	uint64		integer = 0;

	Assert(number->count <= DOUBLE_MAX_DIGITS);
	put_digits(number, digits);
	for (size_t i = 0; i < number->count; i++)
		integer = integer * 10 + (digits[i] - '0');
	return integer;
}

/* Returns the double next to integer * 10^exponent. */
static double
double_from_decimal(uint64 integer, int exponent)
{
	char		text[48];

	snprintf(text, sizeof(text), "%llue%d", (unsigned long long) integer,
			 exponent);
	return strtod(text, NULL);
}

/*
 * Would ECMAScript print the double next to this number with the very same
 * digits?  Then every implementation of RFC 8785 agrees with this one.
 *
 * ECMAScript prints the shortest decimal that reads back as the same double.
 * The server's routine does nearly that, but passes over decimals that lie
 * exactly midway between two doubles although they do read back (by rounding
 * to even): 1e23.  Such a decimal, where there is one, is among the two
 * neighbours that have one digit less.
 */
bool
json_number_is_portable(const JsonNumber *number)
{
	char		text[DOUBLE_SHORTEST_DECIMAL_LEN];
	int			length;
	const char *next;
	JsonNumber	shortest;
	uint64		integer;
	uint64		candidate;
	int			exponent;
	double		value;

	if (number->count == 0)
		return true;
	if (number->count > DOUBLE_MAX_DIGITS ||
		number->point > 309 || number->point < -323)
		return false;
	if (number->count <= DOUBLE_SAFE_DIGITS &&
		number->point <= 308 && number->point >= -306)
		return true;

	integer = digits_as_integer(number);
	exponent = (int) number->point - (int) number->count;
	value = double_from_decimal(integer, exponent);
	if (value == 0 || isinf(value))
		return false;

	length = double_to_shortest_decimal_buf(value, text);
	if (json_number_scan(text, text + length, &shortest, &next) !=
		JSON_NUMBER_GOOD)
		elog(ERROR, "unexpected spelling of a double: \"%s\"", text);

	/* more digits than needed, be they the nearest ones or not */
	if (number->count > shortest.count)
		return false;

	candidate = digits_as_integer(&shortest) / 10;
	exponent = (int) shortest.point - (int) shortest.count + 1;
	if (double_from_decimal(candidate, exponent) == value ||
		double_from_decimal(++candidate, exponent) == value)
	{
		/* ends in zeros where even fewer digits do */
		while (candidate % 10 == 0)
		{
			candidate /= 10;
			exponent++;
		}
		return candidate == integer &&
			exponent == (int) number->point - (int) number->count;
	}

	return number->count == shortest.count &&
		number->point == shortest.point &&
		integer == digits_as_integer(&shortest);
}
