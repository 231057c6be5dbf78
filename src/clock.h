/*
 * clock.h
 *
 * The one clock: the server's, at the moment of the check.
 */
#ifndef TC_CLOCK_H
#define TC_CLOCK_H

#include "datatype/timestamp.h"

extern TimestampTz clock_now(void);
extern int64 clock_interval_us(const Interval *interval);

#endif							/* TC_CLOCK_H */
