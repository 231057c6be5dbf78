/*
 * at_commit.c
 *
 * Keeps the claims of this transaction and checks them before COMMIT:
 *  - a transactional claim that is not final raises TC004;
 *  - PREPARE TRANSACTION is refused with a claim acquired in it, or with a
 *    change that must be durable: what is promised for COMMIT would not be
 *    kept by a COMMIT PREPARED in another session;
 *  - where a change has to be durable, synchronous_commit is raised to "on"
 *    for this one commit, never lowered.
 *
 * Savepoints: every change of what is held goes into one undo log together
 * with its nest level and the state before.  Releasing a savepoint hands its
 * entries to the level above, rolling back takes them back, newest first.
 *
 * All memory is in one context, gone at the end of the transaction.
 */
#include "postgres.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "replication/syncrep.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

#include "at_commit.h"
#include "errors.h"

typedef enum UndoKind
{
	UNDO_ACQUIRED,
	UNDO_ASSERTED,
	UNDO_FINAL,
	UNDO_DURABLE
} UndoKind;

typedef struct Undo
{
	UndoKind	kind;
	int			level;			/* nest level of its subtransaction */
	bool		existed;
	HeldClaim  *claim;			/* in held_claims, or NULL */
	HeldClaim	before;
} Undo;

typedef struct Execution
{
	int			level;
	ClaimKey	key;
} Execution;

static MemoryContext held_context = NULL;
static HTAB *held_claims = NULL;
static Undo *undo_log = NULL;
static int	undo_count = 0;
static int	undo_size = 0;
static Execution *executions = NULL;
static int	execution_count = 0;
static int	execution_size = 0;
static int64 open_claims = 0;	/* transactional ones that are not final */

static bool
is_open(const HeldClaim *claim)
{
	return claim->acquired && !claim->leased && !claim->final;
}

static uint32
hash_key(const void *data, Size size)
{
	const ClaimKey *key = data;
	uint32		hash;

	hash = hash_bytes((const unsigned char *) key->organization,
					  strlen(key->organization));
	hash = hash_combine(hash, hash_bytes((const unsigned char *) key->task_id,
										 strlen(key->task_id)));
	return hash_combine(hash,
						hash_bytes((const unsigned char *) key->tool_call_id,
								   strlen(key->tool_call_id)));
}

static int
compare_keys(const void *a, const void *b, Size size)
{
	const ClaimKey *x = a;
	const ClaimKey *y = b;

	return strcmp(x->organization, y->organization) != 0 ||
		strcmp(x->task_id, y->task_id) != 0 ||
		strcmp(x->tool_call_id, y->tool_call_id) != 0;
}

static void
begin(void)
{
	HASHCTL		control;

	if (held_context != NULL)
		return;
	held_context = AllocSetContextCreate(TopMemoryContext,
										 "tool_claims transaction",
										 ALLOCSET_SMALL_SIZES);
	memset(&control, 0, sizeof(control));
	control.keysize = sizeof(ClaimKey);
	control.entrysize = sizeof(HeldClaim);
	control.hash = hash_key;
	control.match = compare_keys;
	control.hcxt = held_context;
	held_claims = hash_create("tool_claims held claims", 16, &control,
							  HASH_ELEM | HASH_FUNCTION | HASH_COMPARE |
							  HASH_CONTEXT);
	undo_size = 16;
	undo_log = MemoryContextAlloc(held_context, undo_size * sizeof(Undo));
}

static void
end(void)
{
	if (held_context != NULL)
		MemoryContextDelete(held_context);
	held_context = NULL;
	held_claims = NULL;
	undo_log = NULL;
	undo_count = undo_size = 0;
	executions = NULL;
	execution_count = execution_size = 0;
	open_claims = 0;
}

static Undo *
remember(UndoKind kind, HeldClaim *claim, bool existed)
{
	Undo	   *undo;

	if (undo_count == undo_size)
	{
		undo_log = repalloc_huge(undo_log,
								 (Size) undo_size * 2 * sizeof(Undo));
		undo_size *= 2;
	}
	undo = &undo_log[undo_count++];
	undo->kind = kind;
	undo->level = GetCurrentTransactionNestLevel();
	undo->claim = claim;
	undo->existed = existed;
	if (claim != NULL && existed)
		undo->before = *claim;
	return undo;
}

/* the entry of a record, made where there is none, with its undo entry */
static HeldClaim *
hold(UndoKind kind, const ClaimRecord *record)
{
	HeldClaim  *claim;
	bool		found;

	begin();
	claim = hash_search(held_claims, &record->key, HASH_FIND, NULL);
	found = claim != NULL;
	if (!found)
	{
		MemoryContext old = MemoryContextSwitchTo(held_context);
		ClaimKey	key;
		const char *tool_server = pstrdup(record->tool_server);
		const char *tool_name = pstrdup(record->tool_name);

		key.organization = pstrdup(record->key.organization);
		key.task_id = pstrdup(record->key.task_id);
		key.tool_call_id = pstrdup(record->key.tool_call_id);
		MemoryContextSwitchTo(old);

		claim = hash_search(held_claims, &key, HASH_ENTER, NULL);
		claim->attempt = 0;
		claim->acquired = claim->leased = claim->final = claim->stands = false;
		claim->tool_server = tool_server;
		claim->tool_name = tool_name;
	}
	remember(kind, claim, found);
	return claim;
}

/* a record was acquired by this transaction */
void
at_commit_acquired(const ClaimRecord *record)
{
	HeldClaim  *claim = hold(UNDO_ACQUIRED, record);

	if (is_open(claim))
		open_claims--;
	claim->attempt = record->attempt;
	claim->acquired = true;
	claim->leased = record->leased;
	claim->final = false;
	claim->stands = true;
	if (is_open(claim))
		open_claims++;
}

/* a record was found held, and locked, by assert_claim */
void
at_commit_asserted(const ClaimRecord *record)
{
	HeldClaim  *claim = hold(UNDO_ASSERTED, record);

	if (claim->attempt != record->attempt)
	{
		claim->attempt = record->attempt;
		claim->acquired = false;
		claim->leased = record->leased;
		claim->final = false;
	}
	claim->stands = true;
}

/* the attempt ended by a verb of its holder */
void
at_commit_final(const ClaimRecord *record)
{
	HeldClaim  *claim;

	if (held_claims == NULL)
		return;
	claim = hash_search(held_claims, &record->key, HASH_FIND, NULL);
	if (claim == NULL || claim->attempt != record->attempt)
		return;
	remember(UNDO_FINAL, claim, true);
	if (is_open(claim))
		open_claims--;
	claim->final = true;
	claim->stands = record->state == CLAIM_COMPLETED;
}

/* something changed that has to be durable once the transaction commits */
void
at_commit_durable(void)
{
	begin();
	if (undo_count > 0 &&
		undo_log[undo_count - 1].kind == UNDO_DURABLE &&
		undo_log[undo_count - 1].level == GetCurrentTransactionNestLevel())
		return;
	remember(UNDO_DURABLE, NULL, false);
}

const HeldClaim *
at_commit_find(const ClaimKey *key)
{
	if (held_claims == NULL)
		return NULL;
	return hash_search(held_claims, key, HASH_FIND, NULL);
}

/* did this very transaction acquire the record's current attempt? */
bool
at_commit_holds(const ClaimRecord *record)
{
	const HeldClaim *claim = at_commit_find(&record->key);

	return claim != NULL && claim->acquired &&
		claim->attempt == record->attempt;
}

/*
 * The claim under which this transaction acts: that of the innermost execute,
 * or else the one acquired or asserted last that still stands.
 */
const HeldClaim *
at_commit_current(void)
{
	if (execution_count > 0)
	{
		const HeldClaim *claim =
			at_commit_find(&executions[execution_count - 1].key);

		return claim != NULL && claim->stands ? claim : NULL;
	}
	for (int i = undo_count - 1; i >= 0; i--)
	{
		const Undo *undo = &undo_log[i];

		if ((undo->kind == UNDO_ACQUIRED || undo->kind == UNDO_ASSERTED) &&
			undo->claim->stands)
			return undo->claim;
	}
	return NULL;
}

void
at_commit_execute_begin(const ClaimKey *key)
{
	const HeldClaim *claim = at_commit_find(key);

	if (execution_count == execution_size)
	{
		int			size = execution_size == 0 ? 4 : execution_size * 2;

		if (executions == NULL)
			executions = MemoryContextAlloc(held_context,
											size * sizeof(Execution));
		else
			executions = repalloc(executions, size * sizeof(Execution));
		execution_size = size;
	}
	executions[execution_count].level = GetCurrentTransactionNestLevel();
	executions[execution_count].key = claim->key;
	execution_count++;
}

void
at_commit_execute_end(void)
{
	execution_count--;
}

/* takes back everything of subtransactions at this level or below */
static void
roll_back(int level)
{
	while (undo_count > 0 && undo_log[undo_count - 1].level >= level)
	{
		Undo	   *undo = &undo_log[--undo_count];
		HeldClaim  *claim = undo->claim;

		if (claim == NULL)
			continue;
		if (is_open(claim))
			open_claims--;
		if (undo->existed)
		{
			*claim = undo->before;
			if (is_open(claim))
				open_claims++;
		}
		else
			hash_search(held_claims, &claim->key, HASH_REMOVE, NULL);
	}
	while (execution_count > 0 &&
		   executions[execution_count - 1].level >= level)
		execution_count--;
}

static void
subtransaction_callback(SubXactEvent event, SubTransactionId mySubid,
						SubTransactionId parentSubid, void *arg)
{
	int			level = GetCurrentTransactionNestLevel();

	if (event == SUBXACT_EVENT_ABORT_SUB)
		roll_back(level);
	else if (event == SUBXACT_EVENT_COMMIT_SUB)
	{
		for (int i = undo_count - 1; i >= 0 && undo_log[i].level >= level; i--)
			undo_log[i].level = level - 1;
	}
}

static void
check_all_final(void)
{
	HASH_SEQ_STATUS scan;
	HeldClaim  *claim;

	if (open_claims == 0)
		return;
	hash_seq_init(&scan, held_claims);
	while ((claim = hash_seq_search(&scan)) != NULL)
	{
		if (!is_open(claim))
			continue;
		hash_seq_term(&scan);
		ereport(ERROR,
				(errcode(ERRCODE_TC_NOT_FINAL),
				 errmsg("transactional claim (\"%s\", \"%s\") is not final at commit",
						claim->key.task_id, claim->key.tool_call_id),
				 errdetail_plural("Tool \"%s\" of server \"%s\", state claimed; " INT64_FORMAT " such claim in this transaction.",
								  "Tool \"%s\" of server \"%s\", state claimed; " INT64_FORMAT " such claims in this transaction.",
								  open_claims,
								  claim->tool_name, claim->tool_server,
								  open_claims),
				 errhint("Complete, fail or release it in the transaction that made it, or pass lease to act outside this database.")));
	}
}

static bool
has_undo(UndoKind kind)
{
	for (int i = 0; i < undo_count; i++)
		if (undo_log[i].kind == kind)
			return true;
	return false;
}

/*
 * Raises synchronous_commit for this commit.  Assigning the variable, or
 * ForceSyncCommit(), would flush here but not wait for a synchronous standby;
 * a SET LOCAL of the verb would be undone with its savepoint.
 */
static void
make_durable(void)
{
	if (!has_undo(UNDO_DURABLE) ||
		synchronous_commit >= SYNCHRONOUS_COMMIT_ON)
		return;
	(void) set_config_option("synchronous_commit", "on",
							 PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_LOCAL, true, 0, false);
}

static void
refuse_prepare(void)
{
	if (has_undo(UNDO_ACQUIRED))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has acquired a claim"),
				 errhint("Use COMMIT.")));
	if (has_undo(UNDO_DURABLE))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has changed records of tool_claims that must be durable"),
				 errhint("Use COMMIT.")));
}

static void
transaction_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			check_all_final();
			make_durable();
			break;
		case XACT_EVENT_PRE_PREPARE:
			refuse_prepare();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			end();
			break;
		default:
			break;
	}
}

void
at_commit_define(void)
{
	RegisterXactCallback(transaction_callback, NULL);
	RegisterSubXactCallback(subtransaction_callback, NULL);
}
