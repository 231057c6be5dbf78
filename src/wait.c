/*
 * wait.c
 *
 * A wait is a row of short naps on the latch, with a fresh look at the rows
 * after each.  Nobody is woken at a holder's commit (NOTIFY costs every commit
 * more than the looks cost), so a nap is at most 6 ms: half of that is what
 * a waiter sees late in the median.  Nothing is locked meanwhile.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "utils/wait_event.h"

#include "wait.h"

#define LONGEST_NAP	6			/* ms */

void
wait_begin(Wait *wait, int64 budget)
{
	INSTR_TIME_SET_CURRENT(wait->start);
	wait->budget = budget;
	wait->nap = 1;
}

/* naps once; false when the time is up and no nap was taken */
bool
wait_nap(Wait *wait)
{
	instr_time	now;
	int64		left;
	long		nap;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, wait->start);
	left = wait->budget - (int64) INSTR_TIME_GET_MICROSEC(now);
	if (left <= 0)
		return false;

	nap = Min(wait->nap, (left + 999) / 1000);
	wait->nap = Min(wait->nap * 2, LONGEST_NAP);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 nap, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	return true;
}
