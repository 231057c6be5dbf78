/*
 * wait.h
 *
 * Bounded waiting for somebody else's transaction or lease.
 */
#ifndef TC_WAIT_H
#define TC_WAIT_H

#include "portability/instr_time.h"

typedef struct Wait
{
	instr_time	start;
	int64		budget;			/* microseconds */
	int			nap;			/* milliseconds, of the next nap */
} Wait;

extern void wait_begin(Wait *wait, int64 budget);
extern bool wait_nap(Wait *wait);

#endif							/* TC_WAIT_H */
