/*
 * clock.c
 *
 * Time as the extension sees it: the server's clock at the moment of the
 * check, never the transaction's start and never a client's, moved by
 * tool_claims.clock_offset where a test of expiry wants that.
 */
#include "postgres.h"

#include <math.h>

#include "common/int.h"
#include "fmgr.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "settings.h"

PG_FUNCTION_INFO_V1(tc_clock);

TimestampTz
clock_now(void)
{
	TimestampTz now = GetCurrentTimestamp();

	if (tc_clock_offset != 0)
	{
		double		moved = (double) now + rint(tc_clock_offset * 1000.0);

		/* far beyond any use, but never outside of what a timestamp holds */
		if (moved < (double) MIN_TIMESTAMP)
			now = MIN_TIMESTAMP;
		else if (moved >= (double) END_TIMESTAMP)
			now = END_TIMESTAMP - 1;
		else
			now += (int64) rint(tc_clock_offset * 1000.0);
	}
	return now;
}

/*
 * An interval as microseconds, with days of 24 hours and months of 30 days.
 * What does not fit becomes the largest or smallest value.
 */
int64
clock_interval_us(const Interval *interval)
{
	int64		days = (int64) interval->month * 30 + interval->day;
	int64		result;

	if (pg_mul_s64_overflow(days, USECS_PER_DAY, &result) ||
		pg_add_s64_overflow(result, interval->time, &result))
		return days < 0 ? PG_INT64_MIN : PG_INT64_MAX;
	return result;
}

/* tool_claims.clock() returns timestamptz */
Datum
tc_clock(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(clock_now());
}
