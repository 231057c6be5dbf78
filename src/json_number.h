/*
 * json_number.h
 *	  Numbers of JSON texts, by their decimal digits.
 */
#ifndef JSON_NUMBER_H
#define JSON_NUMBER_H

/* the decimal exponent of a value's first digit goes up and down to this */
#define JSON_NUMBER_MAX_EXPONENT	999999999

/* what json_number_put writes is at most this much longer than the digits */
#define JSON_NUMBER_EXTRA			32

/*
 * The value is 0.DDD... * 10^point, with "count" digits D of which neither the
 * first nor the last is zero.  The digits stay where they were read.
 */
typedef struct JsonNumber
{
	bool		negative;		/* never set for zero */
	const char *digits;			/* first digit; a point may stand among them */
	const char *dot;			/* that point, or NULL */
	size_t		count;			/* digits, without the point; 0 means zero */
	int64		point;			/* where the decimal point belongs */
} JsonNumber;

typedef enum JsonNumberStatus
{
	JSON_NUMBER_GOOD,
	JSON_NUMBER_MALFORMED,		/* a digit is missing where "next" points to */
	JSON_NUMBER_OUT_OF_RANGE
} JsonNumberStatus;

extern JsonNumberStatus json_number_scan(const char *text, const char *end,
										 JsonNumber *number,
										 const char **next);
extern void json_number_from_digits(const char *digits, size_t length,
									bool negative, int64 point,
									JsonNumber *number);
extern char *json_number_put(const JsonNumber *number, char *to);
extern bool json_number_is_portable(const JsonNumber *number);

#endif							/* JSON_NUMBER_H */
