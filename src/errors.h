/*
 * errors.h
 *
 * The SQLSTATEs of class TC: what a client has to tell apart and no code of
 * PostgreSQL says.  README.md lists them; none is ever given a second meaning.
 */
#ifndef TC_ERRORS_H
#define TC_ERRORS_H

#include "utils/elog.h"

#define ERRCODE_TC_NO_SUCH_RECORD	MAKE_SQLSTATE('T', 'C', '0', '0', '1')
#define ERRCODE_TC_STALE_ATTEMPT	MAKE_SQLSTATE('T', 'C', '0', '0', '2')
#define ERRCODE_TC_WRONG_STATE		MAKE_SQLSTATE('T', 'C', '0', '0', '3')
#define ERRCODE_TC_NOT_FINAL		MAKE_SQLSTATE('T', 'C', '0', '0', '4')
#define ERRCODE_TC_OTHER_RESULT		MAKE_SQLSTATE('T', 'C', '0', '0', '5')
#define ERRCODE_TC_CONFLICT			MAKE_SQLSTATE('T', 'C', '0', '0', '6')
#define ERRCODE_TC_IN_PROGRESS		MAKE_SQLSTATE('T', 'C', '0', '0', '7')
#define ERRCODE_TC_UNCERTAIN		MAKE_SQLSTATE('T', 'C', '0', '0', '8')
#define ERRCODE_TC_FAILED			MAKE_SQLSTATE('T', 'C', '0', '0', '9')
#define ERRCODE_TC_REFUSED			MAKE_SQLSTATE('T', 'C', '0', '1', '0')
#define ERRCODE_TC_NOT_ACCEPTED		MAKE_SQLSTATE('T', 'C', '0', '1', '1')
#define ERRCODE_TC_RECOVERED		MAKE_SQLSTATE('T', 'C', '0', '1', '2')

#endif							/* TC_ERRORS_H */
