/*
 * policy.c
 *
 * Which policy a call has: the first row of (tool, server), (tool, *), (*, *),
 * each looked up in the session's organization and then in ''.
 *
 * A backend keeps all rows of the table policies in memory.  They are read
 * with the latest snapshot, never the transaction's: a REPEATABLE READ reload
 * would leave the old policy behind for the transactions to come.  A row
 * trigger on the table sends the invalidation; verbs accept invalidations
 * before they ask.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "common/hashfn.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/json.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "compare.h"
#include "policy.h"
#include "query.h"

PG_FUNCTION_INFO_V1(tc_policies_changed);

typedef struct PolicyKey
{
	const char *organization;
	const char *tool_name;
	const char *tool_server;
} PolicyKey;

typedef struct PolicyEntry
{
	PolicyKey	key;			/* hash key */
	ClaimPolicy policy;
} PolicyEntry;

static SavedQuery load_query = {
	"SELECT organization, tool_name, tool_server, enabled, effect, "
	"on_lease_expiry, max_attempts, operation_required, keep_input, "
	"input_check, input_check_role, retention, log, approvals_required, "
	"approval_rule, approval_rule_role, approver_groups, "
	"allow_self_approval, policy_version, proposal_ttl "
	"FROM tool_claims.policies",
	0, {0}
};

static MemoryContext cache_context = NULL;
static HTAB *cache = NULL;
static Oid	cache_table = InvalidOid;
static uint64 invalidations = 0;
static uint64 loaded_at = 0;	/* invalidations when the cache was loaded */

static const ClaimPolicy default_policy = {
	.enabled = true,
	.effect = 'a',
	.version = "",
	.source = "",
	.proposal_ttl = USECS_PER_DAY
};

static uint32
hash_key(const void *data, Size size)
{
	const PolicyKey *key = data;
	uint32		hash;

	hash = hash_bytes((const unsigned char *) key->organization,
					  strlen(key->organization));
	hash = hash_combine(hash, hash_bytes((const unsigned char *) key->tool_name,
										 strlen(key->tool_name)));
	return hash_combine(hash,
						hash_bytes((const unsigned char *) key->tool_server,
								   strlen(key->tool_server)));
}

static int
compare_keys(const void *a, const void *b, Size size)
{
	const PolicyKey *x = a;
	const PolicyKey *y = b;

	return strcmp(x->organization, y->organization) != 0 ||
		strcmp(x->tool_name, y->tool_name) != 0 ||
		strcmp(x->tool_server, y->tool_server) != 0;
}

static void
invalidate(Datum arg, Oid relid)
{
	if (relid == InvalidOid || relid == cache_table)
		invalidations++;
}

void
policy_define(void)
{
	CacheRegisterRelcacheCallback(invalidate, (Datum) 0);
}

static Datum
column(uint64 row, int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						 number, isnull);
}

static char *
text_column(uint64 row, int number)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

/* the elements of a text array */
List *
policy_text_list(Datum array)
{
	List	   *texts = NIL;
	Datum	   *values;
	bool	   *nulls;
	int			count;

	deconstruct_array(DatumGetArrayTypeP(array), TEXTOID, -1, false,
					  TYPALIGN_INT, &values, &nulls, &count);
	for (int i = 0; i < count; i++)
		if (!nulls[i])
			texts = lappend(texts, TextDatumGetCString(values[i]));
	return texts;
}

/* the name of a row, by which two policies with the same version differ */
const char *
policy_source(const char *organization, const char *tool_name,
			  const char *tool_server)
{
	StringInfoData name;

	initStringInfo(&name);
	appendStringInfoChar(&name, '[');
	escape_json(&name, organization);
	appendStringInfoChar(&name, ',');
	escape_json(&name, tool_name);
	appendStringInfoChar(&name, ',');
	escape_json(&name, tool_server);
	appendStringInfoChar(&name, ']');
	return name.data;
}

/* the members that are about approvals */
static void
load_approval(uint64 row, ClaimPolicy *policy)
{
	Datum		value;
	bool		isnull;

	value = column(row, 14, &isnull);
	if (!isnull)
		policy->approvals_required = DatumGetInt32(value);
	policy->approval_rule = text_column(row, 15);
	policy->approval_rule_role = text_column(row, 16);
	value = column(row, 17, &isnull);
	if (!isnull)
		policy->approver_groups = policy_text_list(value);
	value = column(row, 18, &isnull);
	policy->allow_self_approval = !isnull && DatumGetBool(value);
	policy->version = text_column(row, 19);
	value = column(row, 20, &isnull);
	if (!isnull)
		policy->proposal_ttl = clock_interval_us(DatumGetIntervalP(value));
}

/* reads one row into an entry; what is NULL keeps its default */
static void
load_row(HTAB *table, uint64 row)
{
	PolicyKey	key;
	PolicyEntry *entry;
	ClaimPolicy *policy;
	const char *word;
	Datum		value;
	bool		isnull;

	key.organization = text_column(row, 1);
	key.tool_name = text_column(row, 2);
	key.tool_server = text_column(row, 3);
	entry = hash_search(table, &key, HASH_ENTER, NULL);
	policy = &entry->policy;
	*policy = default_policy;

	value = column(row, 4, &isnull);
	if (!isnull)
		policy->enabled = DatumGetBool(value);
	word = text_column(row, 5);
	if (word != NULL)
		policy->effect = word[0];
	word = text_column(row, 6);
	policy->reacquire = word != NULL && strcmp(word, "reacquire") == 0;
	value = column(row, 7, &isnull);
	if (!isnull)
		policy->max_attempts = DatumGetInt32(value);
	value = column(row, 8, &isnull);
	policy->operation_required = !isnull && DatumGetBool(value);
	value = column(row, 9, &isnull);
	policy->keep_input = !isnull && DatumGetBool(value);
	policy->input_check = text_column(row, 10);
	policy->input_check_role = text_column(row, 11);
	value = column(row, 12, &isnull);
	if (!isnull)
	{
		Interval   *retention = palloc(sizeof(Interval));

		*retention = *DatumGetIntervalP(value);
		policy->retention = retention;
	}
	word = text_column(row, 13);
	policy->log_all = word != NULL && strcmp(word, "all") == 0;
	load_approval(row, policy);
	policy->source = policy_source(key.organization, key.tool_name,
								   key.tool_server);
}

/*
 * Reads the table.  An invalidation that arrives meanwhile stays noticed, and
 * after an error there is no cache.
 */
static void
load(void)
{
	HASHCTL		control;
	HTAB	   *table;
	QueryScope	scope;
	MemoryContext old;
	uint64		rows;

	if (cache_context == NULL)
		cache_context = AllocSetContextCreate(TopMemoryContext,
											  "tool_claims policies",
											  ALLOCSET_SMALL_SIZES);
	cache = NULL;
	MemoryContextReset(cache_context);
	cache_table = query_table("policies");
	loaded_at = invalidations;

	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(PolicyKey);
	control.entrysize = sizeof(PolicyEntry);
	control.hash = hash_key;
	control.match = compare_keys;
	control.hcxt = cache_context;
	table = hash_create("tool_claims policies", 16, &control,
						HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
						HASH_CONTEXT);

	query_begin_scan(&scope);
	rows = query_run(&load_query, NULL, NULL, GetLatestSnapshot());
	old = MemoryContextSwitchTo(cache_context);
	for (uint64 row = 0; row < rows; row++)
		load_row(table, row);
	MemoryContextSwitchTo(old);
	query_end(&scope);
	cache = table;
}

/*
 * Do two policies say the same about a claim?  Their groups go along with the
 * version: nothing changes them without it but an equal name.
 */
bool
policy_equal(const ClaimPolicy *a, const ClaimPolicy *b)
{
	return a->enabled == b->enabled && a->effect == b->effect &&
		a->reacquire == b->reacquire && a->max_attempts == b->max_attempts &&
		a->operation_required == b->operation_required &&
		a->keep_input == b->keep_input && a->log_all == b->log_all &&
		a->approvals_required == b->approvals_required &&
		list_length(a->approver_groups) == list_length(b->approver_groups) &&
		same_text(a->approval_rule, b->approval_rule) &&
		same_text(a->approval_rule_role, b->approval_rule_role) &&
		same_text(a->version, b->version) && same_text(a->source, b->source) &&
		same_text(a->input_check, b->input_check) &&
		same_text(a->input_check_role, b->input_check_role);
}

static const char *
copy_text(const char *value)
{
	return value != NULL ? pstrdup(value) : NULL;
}

static List *
copy_texts(List *texts)
{
	List	   *copy = NIL;
	ListCell   *cell;

	foreach(cell, texts)
		copy = lappend(copy, pstrdup(lfirst(cell)));
	return copy;
}

/* how often the policies were told to have changed */
uint64
policy_changes(void)
{
	return invalidations;
}

/*
 * The policy of a call.  Its strings live until the next invalidation, so
 * they are copied to the caller's context.
 */
void
policy_of(const char *organization, const char *tool_server,
		  const char *tool_name, ClaimPolicy *policy)
{
	const char *tools[3];
	const char *servers[3];
	const char *organizations[2];
	PolicyEntry *entry = NULL;

	if (cache == NULL || loaded_at != invalidations)
		load();

	tools[0] = tools[1] = tool_name;
	servers[0] = tool_server;
	tools[2] = servers[1] = servers[2] = "*";
	organizations[0] = organization;
	organizations[1] = "";
	for (int i = 0; i < 3 && entry == NULL; i++)
		for (int j = 0; j < 2 && entry == NULL; j++)
		{
			PolicyKey	key;

			key.organization = organizations[j];
			key.tool_name = tools[i];
			key.tool_server = servers[i];
			entry = hash_search(cache, &key, HASH_FIND, NULL);
		}
	*policy = entry != NULL ? entry->policy : default_policy;
	policy->approval_rule = copy_text(policy->approval_rule);
	policy->approval_rule_role = copy_text(policy->approval_rule_role);
	policy->approver_groups = copy_texts(policy->approver_groups);
	policy->version = copy_text(policy->version);
	policy->source = copy_text(policy->source);
	policy->input_check = copy_text(policy->input_check);
	policy->input_check_role = copy_text(policy->input_check_role);
	if (policy->retention != NULL)
	{
		Interval   *copy = palloc(sizeof(Interval));

		*copy = *policy->retention;
		policy->retention = copy;
	}
}

/* the trigger of the table policies: tells every backend to read it again */
Datum
tc_policies_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"policies_changed\" was not called by trigger manager")));
	CacheInvalidateRelcache(((TriggerData *) fcinfo->context)->tg_relation);
	return PointerGetDatum(NULL);
}
