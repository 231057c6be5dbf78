/*
 * settings.h
 *
 * The settings tool_claims.*
 */
#ifndef TC_SETTINGS_H
#define TC_SETTINGS_H

extern double tc_clock_offset;
extern int	tc_max_input_size;
extern int	tc_max_lease;

extern void settings_define(void);
extern bool settings_stop_after_recovery(void);
extern const char *settings_organization(void);
extern const char *settings_verb_organization(void);
extern bool settings_all_organizations(void);

#endif							/* TC_SETTINGS_H */
