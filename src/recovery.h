/*
 * recovery.h
 *
 * Whether this is still the server under which the extension has granted.
 */
#ifndef TC_RECOVERY_H
#define TC_RECOVERY_H

extern void recovery_define(void);
extern void recovery_notice(void);
extern bool recovery_pending(void);

#endif							/* TC_RECOVERY_H */
