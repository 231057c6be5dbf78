/*
 * settings.c
 *
 * The settings tool_claims.*, and the one place that says which organization
 * the session works for.
 *
 * An organization that the client asked for in its start-up packet, and may
 * not set, outranks the role's own value until the library is loaded, and is
 * then dropped together with it.  The session would go on under no
 * organization, so it is remembered as refused and gets 42501 from then on.
 * With the library in shared_preload_libraries it cannot come to that.
 */
#include "postgres.h"

#include <limits.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#include "compat.h"
#include "settings.h"

#define MAX_KEY_BYTES	512
#define ALL_ORGANIZATIONS	"*"

double		tc_clock_offset = 0;
int			tc_max_input_size = 16 * 1024;
int			tc_max_lease = 3600 * 1000;
static char *tc_organization = NULL;
static bool organization_refused = false;

/* while the variable is being defined: was what the client asked for set? */
static const char *asked_organization = NULL;
static bool asked_was_set = false;

typedef enum RequireOrganization
{
	REQUIRE_OFF,
	REQUIRE_ON,
	REQUIRE_TRANSACTION
} RequireOrganization;

static const struct config_enum_entry require_options[] = {
	{"off", REQUIRE_OFF, false},
	{"on", REQUIRE_ON, false},
	{"transaction", REQUIRE_TRANSACTION, false},
	{"false", REQUIRE_OFF, true},
	{"true", REQUIRE_ON, true},
	{NULL, 0, false}
};

static const struct config_enum_entry recovery_options[] = {
	{"continue", false, false},
	{"stop", true, false},
	{NULL, 0, false}
};

static int	require_organization = REQUIRE_OFF;
static int	stop_after_recovery = false;

/*
 * The transaction in which the organization was set.  It goes along with the
 * value as its "extra", so that a value which comes back at the end of a
 * transaction or savepoint brings back when it was set.
 */
static LocalTransactionId organization_set_in = InvalidLocalTransactionId;

PG_FUNCTION_INFO_V1(tc_session_organization);

static bool
check_organization(char **newval, void **extra, GucSource source)
{
	if (strlen(*newval) > MAX_KEY_BYTES)
	{
		GUC_check_errdetail("An organization has at most %d bytes.",
							MAX_KEY_BYTES);
		return false;
	}
	if (source != PGC_S_DEFAULT && asked_organization != NULL &&
		strcmp(*newval, asked_organization) == 0)
		asked_was_set = true;
	*extra = guc_malloc(LOG, sizeof(LocalTransactionId));
	if (*extra == NULL)
		return false;
	*(LocalTransactionId *) *extra = tc_current_lxid();
	return true;
}

static void
assign_organization(const char *newval, void *extra)
{
	organization_set_in = extra != NULL ? *(LocalTransactionId *) extra :
		InvalidLocalTransactionId;
}

bool
settings_stop_after_recovery(void)
{
	return stop_after_recovery;
}

/*
 * A value that was there before the library was loaded, and that no statement
 * of this transaction has set, is left over from an earlier one.
 */
static void
notice_left_over_organization(void)
{
	struct config_generic *setting = tc_find_setting("tool_claims.organization");

	if (setting == NULL || setting->stack != NULL)
		return;
	organization_set_in = InvalidLocalTransactionId;
	if (setting->extra != NULL)
		*(LocalTransactionId *) setting->extra = InvalidLocalTransactionId;
}

/* defines the settings; called once, when the library is loaded */
void
settings_define(void)
{
	const char *value = GetConfigOption("tool_claims.organization", true, false);

	asked_organization = value != NULL ? pstrdup(value) : NULL;

	DefineCustomEnumVariable("tool_claims.after_recovery",
							 "What happens after a promotion or restore of the server.",
							 "\"stop\" refuses leased acquisitions and reservations until accept_recovery is called.",
							 &stop_after_recovery,
							 false, recovery_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("tool_claims.clock_offset",
							 "Moves the extension's clock, for tests of expiry only.",
							 "Milliseconds that are added to the server's time.",
							 &tc_clock_offset,
							 0, -1e15, 1e15,
							 PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("tool_claims.max_input_size",
							"The largest canonical input that a verb accepts.",
							NULL,
							&tc_max_input_size,
							16 * 1024, 1, 1024 * 1024 - 1,
							PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("tool_claims.max_lease",
							"The longest lease that a claim can be given.",
							NULL,
							&tc_max_lease,
							3600 * 1000, 1, INT_MAX,
							PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("tool_claims.organization",
							   "The organization (tenant) that the session works for.",
							   "Part of every key. The value * shows all of them in views.",
							   &tc_organization,
							   "",
							   PGC_SUSET, 0, check_organization,
							   assign_organization, NULL);
	DefineCustomEnumVariable("tool_claims.require_organization",
							 "Whether a session must have set an organization.",
							 "\"on\" refuses the empty one, \"transaction\" also one that was not set in the current transaction.",
							 &require_organization,
							 REQUIRE_OFF, require_options,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	MarkGUCPrefixReserved("tool_claims");

	organization_refused = asked_organization != NULL && !asked_was_set;
	asked_organization = NULL;
	notice_left_over_organization();
}

/* the session's organization, '*' where it looks at all of them */
const char *
settings_organization(void)
{
	if (organization_refused)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set parameter \"tool_claims.organization\""),
				 errdetail("The client asked for an organization that its role may not set."),
				 errhint("Connect again without it, or have the role granted SET ON PARAMETER tool_claims.organization.")));
	if (require_organization != REQUIRE_OFF && tc_organization[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("no organization is set"),
				 errhint("Set tool_claims.organization, with SET LOCAL behind a transaction pooler.")));
	if (require_organization == REQUIRE_TRANSACTION &&
		(organization_set_in == InvalidLocalTransactionId ||
		 organization_set_in != tc_current_lxid()))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the organization was not set in this transaction"),
				 errdetail("What an earlier transaction of this server session left behind does not count."),
				 errhint("Use SET LOCAL tool_claims.organization at the beginning of each transaction.")));
	return tc_organization;
}

bool
settings_all_organizations(void)
{
	return strcmp(settings_organization(), ALL_ORGANIZATIONS) == 0;
}

/* the organization of a verb, which works for exactly one */
const char *
settings_verb_organization(void)
{
	if (settings_all_organizations())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the organization \"%s\" does not name one organization",
						ALL_ORGANIZATIONS),
				 errhint("It is for views, sweep and prune: set tool_claims.organization to one organization.")));
	return tc_organization;
}

/* tool_claims.session_organization() returns text */
Datum
tc_session_organization(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text(settings_organization()));
}
