/*
 * proposal_store.c
 *
 * The rows of proposals, votes and approvers.
 *
 * What a decision rests on is read under lock: the proposal FOR NO KEY
 * UPDATE, the registrations of those who voted and the policy's row FOR SHARE,
 * in this order and by principal.  Removing an approver or changing a policy
 * has to wait for it, or is seen by it.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "at_commit.h"
#include "clock.h"
#include "direct.h"
#include "policy.h"
#include "proposal_store.h"
#include "query.h"

#define COLUMN_LIST \
	"p.organization, p.task_id, p.tool_call_id, p.tool_server, p.tool_name, " \
	"p.input::pg_catalog.json, p.input_digest::pg_catalog.bytea, p.actor, " \
	"p.project, p.schema_version, p.policy_version, p.operation_id, " \
	"p.execution_id, p.expires_at, p.binding_digest::pg_catalog.bytea, " \
	"p.state, p.summary, p.supersedes, p.policy_source, " \
	"p.approvals_required, p.approver_groups, p.allow_self_approval, " \
	"p.by_rule, p.proposed_by, p.proposed_at, p.use_by, p.ended_at, " \
	"p.ended_by, p.evidence_head::pg_catalog.bytea, p.redacted"

enum
{
	COL_ORGANIZATION = 1, COL_TASK_ID, COL_TOOL_CALL_ID, COL_TOOL_SERVER,
	COL_TOOL_NAME, COL_INPUT, COL_INPUT_DIGEST, COL_ACTOR, COL_PROJECT,
	COL_SCHEMA_VERSION, COL_POLICY_VERSION, COL_OPERATION_ID,
	COL_EXECUTION_ID, COL_EXPIRES_AT, COL_BINDING_DIGEST, COL_STATE,
	COL_SUMMARY, COL_SUPERSEDES, COL_POLICY_SOURCE, COL_APPROVALS_REQUIRED,
	COL_APPROVER_GROUPS, COL_ALLOW_SELF_APPROVAL, COL_BY_RULE,
	COL_PROPOSED_BY, COL_PROPOSED_AT, COL_USE_BY, COL_ENDED_AT, COL_ENDED_BY,
	COL_EVIDENCE_HEAD, COL_REDACTED
};

#define COLUMNS		COL_REDACTED

#define KEY_CONDITION \
	"p.organization OPERATOR(pg_catalog.=) $1 AND " \
	"p.task_id OPERATOR(pg_catalog.=) $2 AND " \
	"p.tool_call_id OPERATOR(pg_catalog.=) $3"

#define SELECT_PROPOSAL \
	"SELECT " COLUMN_LIST ", p.ctid FROM tool_claims.proposal_records p " \
	"WHERE " KEY_CONDITION

static SavedQuery read_query = {
	SELECT_PROPOSAL, 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery lock_wait_query = {
	SELECT_PROPOSAL " FOR NO KEY UPDATE", 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery lock_skip_query = {
	SELECT_PROPOSAL " FOR NO KEY UPDATE SKIP LOCKED", 3,
	{TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery open_of_task_query = {
	"SELECT p.tool_call_id FROM tool_claims.proposal_records p "
	"WHERE p.organization OPERATOR(pg_catalog.=) $1 AND "
	"p.task_id OPERATOR(pg_catalog.=) $2 AND "
	"p.state OPERATOR(pg_catalog.=) ANY ('{p,a}'::pg_catalog.\"char\"[]) "
	"ORDER BY p.tool_call_id",
	2, {TEXTOID, TEXTOID}
};

static SavedQuery insert_query = {
	"INSERT INTO tool_claims.proposal_records (organization, task_id, "
	"tool_call_id, tool_server, tool_name, input, input_digest, actor, "
	"project, schema_version, policy_version, operation_id, execution_id, "
	"expires_at, binding_digest, state, summary, supersedes, policy_source, "
	"approvals_required, approver_groups, allow_self_approval, by_rule, "
	"proposed_by, proposed_at, use_by, ended_at, ended_by, evidence_head, "
	"redacted) VALUES ($1, $2, $3, $4, $5, "
	"$6::tool_claims.canonical_json, $7::tool_claims.sha256_digest, $8, $9, "
	"$10, $11, $12, $13, $14, $15::tool_claims.sha256_digest, $16, $17, $18, "
	"$19, $20, $21, $22, $23, $24, $25, $26, $27, $28, "
	"$29::tool_claims.sha256_digest, $30) ON CONFLICT DO NOTHING",
	COLUMNS,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, JSONOID, BYTEAOID, TEXTOID,
		TEXTOID, TEXTOID, TEXTOID, TEXTOID, UUIDOID, TIMESTAMPTZOID, BYTEAOID,
		CHAROID, TEXTOID, TEXTOID, TEXTOID, INT4OID, TEXTARRAYOID, BOOLOID,
		BOOLOID, TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	TEXTOID, BYTEAOID, BOOLOID}
};

static SavedQuery update_query = {
	"UPDATE tool_claims.proposal_records p SET state = $4, use_by = $5, "
	"ended_at = $6, ended_by = $7, "
	"evidence_head = $8::tool_claims.sha256_digest WHERE " KEY_CONDITION,
	8,
	{TEXTOID, TEXTOID, TEXTOID, CHAROID, TIMESTAMPTZOID, TIMESTAMPTZOID,
	TEXTOID, BYTEAOID}
};

static SavedQuery redact_query = {
	"UPDATE tool_claims.proposal_records p SET input = 'null'::pg_catalog.json, "
	"summary = NULL, redacted = true WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery retire_query = {
	"UPDATE tool_claims.proposal_records p SET pruned = true WHERE "
	KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery redact_votes_query = {
	"UPDATE tool_claims.votes p SET comment = NULL WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery delete_query = {
	"DELETE FROM tool_claims.proposal_records p WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery delete_votes_query = {
	"DELETE FROM tool_claims.votes p WHERE " KEY_CONDITION,
	3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery own_vote_query = {
	"SELECT p.vote FROM tool_claims.votes p WHERE " KEY_CONDITION
	" AND p.principal OPERATOR(pg_catalog.=) $4",
	4, {TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery vote_query = {
	"INSERT INTO tool_claims.votes (organization, task_id, tool_call_id, "
	"principal, vote, voted_at, comment) VALUES ($1, $2, $3, $4, $5, $6, $7)",
	7,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID, CHAROID, TIMESTAMPTZOID, TEXTOID}
};

/* registrations that cover an action */
#define COVERS(organization, project, tool_server, tool_name) \
	"a.organization OPERATOR(pg_catalog.=) " organization " AND " \
	"a.project OPERATOR(pg_catalog.=) ANY (ARRAY['*', " project "]) AND " \
	"a.tool_server OPERATOR(pg_catalog.=) ANY (ARRAY['*', " tool_server "]) AND " \
	"a.tool_name OPERATOR(pg_catalog.=) ANY (ARRAY['*', " tool_name "])"

#define VOTERS \
	"SELECT a.principal, a.grp FROM tool_claims.votes p " \
	"JOIN tool_claims.approvers a " \
	"ON a.principal OPERATOR(pg_catalog.=) p.principal AND " \
	COVERS("$1", "$4", "$5", "$6") \
	" WHERE " KEY_CONDITION " AND p.vote OPERATOR(pg_catalog.=) " \
	"'a'::pg_catalog.\"char\" ORDER BY a.principal, a.grp"

static SavedQuery voters_query = {
	VOTERS, 6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery voters_wait_query = {
	VOTERS " FOR SHARE OF a", 6,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery voters_skip_query = {
	VOTERS " FOR SHARE OF a SKIP LOCKED", 6,
	{TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

#define REGISTERED \
	"SELECT a.principal, a.grp FROM tool_claims.approvers a WHERE " \
	COVERS("$1", "$2", "$3", "$4") " AND " \
	"($5 IS NULL OR a.principal OPERATOR(pg_catalog.=) $5) " \
	"ORDER BY a.principal, a.grp"

static SavedQuery registered_query = {
	REGISTERED, 5, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery registered_lock_query = {
	REGISTERED " FOR SHARE", 5, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

/* the row that policy_of would take, of the organization $1 */
#define POLICY_ROW \
	"SELECT w.policy_version, w.organization, w.tool_name, w.tool_server, " \
	"w.ctid " \
	"FROM tool_claims.policies w WHERE " \
	"w.organization OPERATOR(pg_catalog.=) ANY (ARRAY[$1, '']) AND (" \
	"(w.tool_name OPERATOR(pg_catalog.=) $3 AND " \
	"w.tool_server OPERATOR(pg_catalog.=) ANY (ARRAY[$2, '*'])) OR " \
	"(w.tool_name OPERATOR(pg_catalog.=) '*' AND " \
	"w.tool_server OPERATOR(pg_catalog.=) '*')) ORDER BY " \
	"w.tool_name OPERATOR(pg_catalog.=) '*', " \
	"w.tool_server OPERATOR(pg_catalog.=) '*', " \
	"w.organization OPERATOR(pg_catalog.<>) $1 LIMIT 1"

static SavedQuery policy_query = {
	POLICY_ROW, 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery policy_wait_query = {
	POLICY_ROW " FOR SHARE", 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery policy_skip_query = {
	POLICY_ROW " FOR SHARE SKIP LOCKED", 3, {TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery approver_add_query = {
	"INSERT INTO tool_claims.approvers (organization, principal, grp, "
	"project, tool_server, tool_name) VALUES ($1, $2, $3, $4, $5, $6) "
	"ON CONFLICT DO NOTHING",
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

static SavedQuery approver_remove_query = {
	"DELETE FROM tool_claims.approvers a "
	"WHERE a.organization OPERATOR(pg_catalog.=) $1 AND "
	"a.principal OPERATOR(pg_catalog.=) $2 AND "
	"a.grp OPERATOR(pg_catalog.=) $3 AND "
	"a.project OPERATOR(pg_catalog.=) $4 AND "
	"a.tool_server OPERATOR(pg_catalog.=) $5 AND "
	"a.tool_name OPERATOR(pg_catalog.=) $6",
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

/* ----- rows ----- */

static Datum
column(uint64 row, int number, bool *isnull)
{
	return SPI_getbinval(SPI_tuptable->vals[row], SPI_tuptable->tupdesc,
						 number, isnull);
}

static const char *
text_column(uint64 row, int number)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);

	return isnull ? NULL : TextDatumGetCString(value);
}

static TimestampTz
time_column(uint64 row, int number)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);

	return isnull ? CLAIM_NO_TIME : DatumGetTimestampTz(value);
}

static bool
bool_column(uint64 row, int number)
{
	bool		isnull;

	return DatumGetBool(column(row, number, &isnull));
}

static const Sha256Digest *
digest_column(uint64 row, int number)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);
	Sha256Digest *digest;

	if (isnull)
		return NULL;
	digest = palloc(sizeof(Sha256Digest));
	memcpy(digest, VARDATA_ANY(DatumGetPointer(value)), sizeof(Sha256Digest));
	return digest;
}

static List *
list_column(uint64 row, int number)
{
	bool		isnull;
	Datum		value = column(row, number, &isnull);

	return isnull ? NIL : policy_text_list(value);
}

/* row 0 as record, copied to the caller's context */
static void
record_from_result(const QueryScope *scope, ProposalRecord *record)
{
	MemoryContext old = MemoryContextSwitchTo(scope->caller);
	Binding    *bound = &record->bound;
	pg_uuid_t  *execution_id = palloc(sizeof(pg_uuid_t));
	const char *input;
	bool		isnull;

	memset(record, 0, sizeof(*record));
	record->key.organization = text_column(0, COL_ORGANIZATION);
	record->key.task_id = text_column(0, COL_TASK_ID);
	record->key.tool_call_id = text_column(0, COL_TOOL_CALL_ID);
	bound->tool_server = text_column(0, COL_TOOL_SERVER);
	bound->tool_name = text_column(0, COL_TOOL_NAME);
	input = text_column(0, COL_INPUT);
	bound->input = canonical_json_parse(input, strlen(input));
	bound->input_digest = *digest_column(0, COL_INPUT_DIGEST);
	bound->actor = text_column(0, COL_ACTOR);
	bound->project = text_column(0, COL_PROJECT);
	bound->schema_version = text_column(0, COL_SCHEMA_VERSION);
	bound->policy_version = text_column(0, COL_POLICY_VERSION);
	bound->operation_id = text_column(0, COL_OPERATION_ID);
	*execution_id = *DatumGetUUIDP(column(0, COL_EXECUTION_ID, &isnull));
	bound->execution_id = execution_id;
	bound->expires_at = time_column(0, COL_EXPIRES_AT);
	record->binding_digest = *digest_column(0, COL_BINDING_DIGEST);
	record->state = DatumGetChar(column(0, COL_STATE, &isnull));
	record->summary = text_column(0, COL_SUMMARY);
	record->supersedes = text_column(0, COL_SUPERSEDES);
	record->policy_source = text_column(0, COL_POLICY_SOURCE);
	record->approvals_required =
		DatumGetInt32(column(0, COL_APPROVALS_REQUIRED, &isnull));
	record->approver_groups = list_column(0, COL_APPROVER_GROUPS);
	record->allow_self_approval = bool_column(0, COL_ALLOW_SELF_APPROVAL);
	record->by_rule = bool_column(0, COL_BY_RULE);
	record->proposed_by = text_column(0, COL_PROPOSED_BY);
	record->proposed_at = time_column(0, COL_PROPOSED_AT);
	record->use_by = time_column(0, COL_USE_BY);
	record->ended_at = time_column(0, COL_ENDED_AT);
	record->ended_by = text_column(0, COL_ENDED_BY);
	record->evidence_head = digest_column(0, COL_EVIDENCE_HEAD);
	record->redacted = bool_column(0, COL_REDACTED);
	MemoryContextSwitchTo(old);
}

static Datum
nullable_text(const char *value, char *null)
{
	*null = value == NULL ? 'n' : ' ';
	return value != NULL ? CStringGetTextDatum(value) : (Datum) 0;
}

static Datum
nullable_time(TimestampTz value, char *null)
{
	*null = value == CLAIM_NO_TIME ? 'n' : ' ';
	return TimestampTzGetDatum(value);
}

static Datum
nullable_digest(const Sha256Digest *value, char *null)
{
	*null = value == NULL ? 'n' : ' ';
	return value != NULL ? query_digest_argument(value) : (Datum) 0;
}

static Datum
text_array(List *texts)
{
	Datum	   *values = palloc((list_length(texts) + 1) * sizeof(Datum));
	ListCell   *cell;
	int			count = 0;

	foreach(cell, texts)
		values[count++] = CStringGetTextDatum(lfirst(cell));
	return PointerGetDatum(construct_array(values, count, TEXTOID, -1, false,
										   TYPALIGN_INT));
}

/* ----- proposals ----- */

static bool
read_proposal(const ClaimKey *key, bool current, ProposalRecord *record)
{
	QueryScope	scope;
	Datum		values[3];
	bool		found;

	query_key_arguments(key, values);
	query_begin(&scope);
	found = current ? query_read_current(&read_query, values) :
		query_run(&read_query, values, NULL, InvalidSnapshot) > 0;
	if (found)
		record_from_result(&scope, record);
	query_end(&scope);
	return found;
}

/* the proposal as an ordinary statement would see it; works on a standby */
bool
proposal_read(const ClaimKey *key, ProposalRecord *record)
{
	return read_proposal(key, false, record);
}

/* the proposal as it is, for a verb: what its snapshot cannot see is 40001 */
bool
proposal_look(const ClaimKey *key, ProposalRecord *record)
{
	return read_proposal(key, true, record);
}

/* locks the proposal until the transaction ends, and reads it */
StoreLock
proposal_lock(const ClaimKey *key, StoreWait wait, ProposalRecord *record)
{
	QueryScope	scope;
	Datum		values[3];
	StoreLock	result = STORE_LOCKED;

	query_key_arguments(key, values);
	query_begin(&scope);
	if (query_run(wait == STORE_SKIP ? &lock_skip_query : &lock_wait_query,
				  values, NULL, InvalidSnapshot) > 0)
		record_from_result(&scope, record);
	else if (query_read_current(&read_query, values))
		result = STORE_BUSY;
	else
		result = STORE_GONE;
	query_end(&scope);
	return result;
}

/* inserts a proposal; false where the pair has one, waiting as an INSERT does */
bool
proposal_insert(const ProposalRecord *record)
{
	const Binding *bound = &record->bound;
	QueryScope	scope;
	Datum		values[COLUMNS];
	char		nulls[COLUMNS];
	bool		inserted;

#define SET(column, datum) (values[(column) - 1] = (datum))
#define SET_NULLABLE(column, make, value) \
	(values[(column) - 1] = make((value), &nulls[(column) - 1]))

	memset(nulls, ' ', sizeof(nulls));
	query_key_arguments(&record->key, values);
	SET(COL_TOOL_SERVER, CStringGetTextDatum(bound->tool_server));
	SET(COL_TOOL_NAME, CStringGetTextDatum(bound->tool_name));
	SET(COL_INPUT, CStringGetTextDatum(canonical_json_to_cstring(bound->input)));
	SET(COL_INPUT_DIGEST, query_digest_argument(&bound->input_digest));
	SET(COL_ACTOR, CStringGetTextDatum(bound->actor));
	SET(COL_PROJECT, CStringGetTextDatum(bound->project));
	SET(COL_SCHEMA_VERSION, CStringGetTextDatum(bound->schema_version));
	SET(COL_POLICY_VERSION, CStringGetTextDatum(bound->policy_version));
	SET_NULLABLE(COL_OPERATION_ID, nullable_text, bound->operation_id);
	SET(COL_EXECUTION_ID, UUIDPGetDatum(bound->execution_id));
	SET(COL_EXPIRES_AT, TimestampTzGetDatum(bound->expires_at));
	SET(COL_BINDING_DIGEST, query_digest_argument(&record->binding_digest));
	SET(COL_STATE, CharGetDatum(record->state));
	SET_NULLABLE(COL_SUMMARY, nullable_text, record->summary);
	SET_NULLABLE(COL_SUPERSEDES, nullable_text, record->supersedes);
	SET(COL_POLICY_SOURCE, CStringGetTextDatum(record->policy_source));
	SET(COL_APPROVALS_REQUIRED, Int32GetDatum(record->approvals_required));
	SET(COL_APPROVER_GROUPS, text_array(record->approver_groups));
	SET(COL_ALLOW_SELF_APPROVAL, BoolGetDatum(record->allow_self_approval));
	SET(COL_BY_RULE, BoolGetDatum(record->by_rule));
	SET(COL_PROPOSED_BY, CStringGetTextDatum(record->proposed_by));
	SET(COL_PROPOSED_AT, TimestampTzGetDatum(record->proposed_at));
	SET_NULLABLE(COL_USE_BY, nullable_time, record->use_by);
	SET_NULLABLE(COL_ENDED_AT, nullable_time, record->ended_at);
	SET_NULLABLE(COL_ENDED_BY, nullable_text, record->ended_by);
	SET_NULLABLE(COL_EVIDENCE_HEAD, nullable_digest, record->evidence_head);
	SET(COL_REDACTED, BoolGetDatum(record->redacted));
	query_begin(&scope);
	query_run(&insert_query, values, nulls, InvalidSnapshot);
	inserted = SPI_processed > 0;
	query_end(&scope);
	at_commit_durable();
	return inserted;
}

/* stores what can change in a proposal, which is locked */
void
proposal_update(const ProposalRecord *record)
{
	QueryScope	scope;
	Datum		values[8];
	char		nulls[8];

	memset(nulls, ' ', sizeof(nulls));
	query_key_arguments(&record->key, values);
	values[3] = CharGetDatum(record->state);
	values[4] = nullable_time(record->use_by, &nulls[4]);
	values[5] = nullable_time(record->ended_at, &nulls[5]);
	values[6] = nullable_text(record->ended_by, &nulls[6]);
	values[7] = nullable_digest(record->evidence_head, &nulls[7]);
	query_begin(&scope);
	query_run(&update_query, values, nulls, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
}

static void
run_on_key(SavedQuery *query, const ClaimKey *key)
{
	QueryScope	scope;
	Datum		values[3];

	query_key_arguments(key, values);
	query_begin(&scope);
	query_run(query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
}

/* takes input, summary and comments away */
void
proposal_redact(const ProposalRecord *record)
{
	proposal_update(record);
	run_on_key(&redact_query, &record->key);
	run_on_key(&redact_votes_query, &record->key);
}

/* what is left of a pruned proposal: its binding and how it ended */
void
proposal_retire(const ProposalRecord *record)
{
	proposal_update(record);
	run_on_key(&redact_query, &record->key);
	run_on_key(&delete_votes_query, &record->key);
	run_on_key(&retire_query, &record->key);
}

void
proposal_delete(const ClaimKey *key)
{
	run_on_key(&delete_votes_query, key);
	run_on_key(&delete_query, key);
}

/* the calls of a task whose proposals are pending or approved */
List *
proposal_open_of_task(const char *organization, const char *task_id)
{
	QueryScope	scope;
	Datum		values[2];
	List	   *calls = NIL;
	uint64		rows;
	MemoryContext old;

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(task_id);
	query_begin(&scope);
	rows = query_run(&open_of_task_query, values, NULL, InvalidSnapshot);
	old = MemoryContextSwitchTo(scope.caller);
	for (uint64 i = 0; i < rows; i++)
		calls = lappend(calls, (char *) text_column(i, 1));
	MemoryContextSwitchTo(old);
	query_end(&scope);
	return calls;
}

/* ----- votes ----- */

Vote
proposal_own_vote(const ClaimKey *key, const char *principal)
{
	QueryScope	scope;
	Datum		values[4];
	bool		isnull;
	Vote		vote = VOTE_NONE;

	query_key_arguments(key, values);
	values[3] = CStringGetTextDatum(principal);
	query_begin(&scope);
	if (query_run(&own_vote_query, values, NULL, InvalidSnapshot) > 0)
		vote = DatumGetChar(column(0, 1, &isnull));
	query_end(&scope);
	return vote;
}

void
proposal_vote(const ClaimKey *key, const char *principal, Vote vote,
			  const char *comment)
{
	QueryScope	scope;
	Datum		values[7];
	char		nulls[7];

	memset(nulls, ' ', sizeof(nulls));
	query_key_arguments(key, values);
	values[3] = CStringGetTextDatum(principal);
	values[4] = CharGetDatum(vote);
	values[5] = TimestampTzGetDatum(clock_now());
	values[6] = nullable_text(comment, &nulls[6]);
	query_begin(&scope);
	query_run(&vote_query, values, nulls, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
}

/* rows (principal, grp) in the order of principal, as voters */
static List *
voters_from_result(const QueryScope *scope, uint64 rows)
{
	MemoryContext old = MemoryContextSwitchTo(scope->caller);
	List	   *voters = NIL;
	Voter	   *voter = NULL;

	for (uint64 i = 0; i < rows; i++)
	{
		const char *principal = text_column(i, 1);

		if (voter == NULL || strcmp(voter->principal, principal) != 0)
		{
			voter = palloc(sizeof(Voter));
			voter->principal = principal;
			voter->groups = NIL;
			voters = lappend(voters, voter);
		}
		voter->groups = lappend(voter->groups, (char *) text_column(i, 2));
	}
	MemoryContextSwitchTo(old);
	return voters;
}

/* those who voted for it and are registered for it now */
List *
proposal_voters(const ProposalRecord *record, bool lock, StoreWait wait)
{
	QueryScope	scope;
	Datum		values[6];
	List	   *voters;
	uint64		rows;

	query_key_arguments(&record->key, values);
	values[3] = CStringGetTextDatum(record->bound.project);
	values[4] = CStringGetTextDatum(record->bound.tool_server);
	values[5] = CStringGetTextDatum(record->bound.tool_name);
	query_begin(&scope);
	rows = query_run(!lock ? &voters_query :
					 wait == STORE_SKIP ? &voters_skip_query :
					 &voters_wait_query, values, NULL, InvalidSnapshot);
	voters = voters_from_result(&scope, rows);
	query_end(&scope);
	return voters;
}

/* those who could vote for it: one principal, or with NULL everybody */
List *
proposal_registered(const ProposalRecord *record, const char *principal,
					bool lock)
{
	QueryScope	scope;
	Datum		values[5];
	char		nulls[5];
	List	   *voters;
	uint64		rows;

	memset(nulls, ' ', sizeof(nulls));
	values[0] = CStringGetTextDatum(record->key.organization);
	values[1] = CStringGetTextDatum(record->bound.project);
	values[2] = CStringGetTextDatum(record->bound.tool_server);
	values[3] = CStringGetTextDatum(record->bound.tool_name);
	values[4] = nullable_text(principal, &nulls[4]);
	query_begin(&scope);
	rows = query_run(lock ? &registered_lock_query : &registered_query,
					 values, nulls, InvalidSnapshot);
	voters = voters_from_result(&scope, rows);
	query_end(&scope);
	return voters;
}

/*
 * The version of the tool's policy as it is now, and which row it is of; both
 * empty without one.  Returns false where a skipping lock found it changing.
 */
bool
proposal_policy(const ProposalRecord *record, bool lock, StoreWait wait,
				const char **version, const char **source)
{
	QueryScope	scope;
	Datum		values[3];
	uint64		rows;
	bool		busy = false;
	MemoryContext old;

	values[0] = CStringGetTextDatum(record->key.organization);
	values[1] = CStringGetTextDatum(record->bound.tool_server);
	values[2] = CStringGetTextDatum(record->bound.tool_name);
	query_begin(&scope);
	/* a policy that the snapshot cannot see must not be passed over */
	if (lock)
		(void) query_read_current(&policy_query, values);
	if (lock && wait == STORE_SKIP)
	{
		uint64		there = query_run(&policy_query, values, NULL,
									  InvalidSnapshot);

		rows = query_run(&policy_skip_query, values, NULL, InvalidSnapshot);
		busy = rows < there;
	}
	else
		rows = query_run(lock ? &policy_wait_query : &policy_query, values,
						 NULL, InvalidSnapshot);
	old = MemoryContextSwitchTo(scope.caller);
	*version = *source = "";
	if (rows > 0)
	{
		*version = text_column(0, 1);
		*source = policy_source(text_column(0, 2), text_column(0, 3),
								text_column(0, 4));
	}
	MemoryContextSwitchTo(old);
	query_end(&scope);
	return !busy;
}

/* the registrations of those who voted, as far as they are a key */
static SavedQuery registrations_query = {
	"SELECT a.organization, a.principal, a.grp, a.project, a.tool_server, "
	"a.tool_name FROM tool_claims.votes p JOIN tool_claims.approvers a "
	"ON a.principal OPERATOR(pg_catalog.=) p.principal AND "
	COVERS("$1", "$4", "$5", "$6") " WHERE " KEY_CONDITION,
	6, {TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID}
};

#define REGISTRATION_COLUMNS	6

static bool
registrations_are_changing(const ProposalRecord *record)
{
	QueryScope	scope;
	Datum		values[6];
	const char *(*keys)[REGISTRATION_COLUMNS];
	uint64		rows;
	MemoryContext old;

	query_key_arguments(&record->key, values);
	values[3] = CStringGetTextDatum(record->bound.project);
	values[4] = CStringGetTextDatum(record->bound.tool_server);
	values[5] = CStringGetTextDatum(record->bound.tool_name);
	query_begin(&scope);
	rows = query_run(&registrations_query, values, NULL, InvalidSnapshot);
	old = MemoryContextSwitchTo(scope.caller);
	keys = palloc((rows + 1) * sizeof(*keys));
	for (uint64 i = 0; i < rows; i++)
		for (int j = 0; j < REGISTRATION_COLUMNS; j++)
			keys[i][j] = text_column(i, j + 1);
	MemoryContextSwitchTo(old);
	query_end(&scope);
	for (uint64 i = 0; i < rows; i++)
		if (direct_is_changing("approvers", REGISTRATION_COLUMNS, keys[i]))
			return true;
	return false;
}

/*
 * Is somebody's open transaction just changing what a reservation would rest
 * on: the proposal, a registration of who voted, or any policy row that the
 * tool could have?  Locks nothing, so that a reservation can wait for it
 * without standing in the way of a revocation.
 */
bool
proposal_is_changing(const ProposalRecord *record)
{
	const char *tools[3];
	const char *servers[3];
	const char *keys[3];

	keys[0] = record->key.organization;
	keys[1] = record->key.task_id;
	keys[2] = record->key.tool_call_id;
	if (direct_is_changing("proposal_records", 3, keys))
		return true;
	tools[0] = tools[1] = record->bound.tool_name;
	servers[0] = record->bound.tool_server;
	tools[2] = servers[1] = servers[2] = "*";
	for (int i = 0; i < 3; i++)
	{
		keys[0] = record->key.organization;
		keys[1] = tools[i];
		keys[2] = servers[i];
		if (direct_is_changing("policies", 3, keys))
			return true;
		keys[0] = "";
		if (direct_is_changing("policies", 3, keys))
			return true;
	}
	return registrations_are_changing(record);
}

/* ----- approvers ----- */

static bool
run_on_approver(SavedQuery *query, const char *organization,
				const char *principal, const char *grp, const char *project,
				const char *tool_server, const char *tool_name)
{
	QueryScope	scope;
	Datum		values[6];
	uint64		rows;

	values[0] = CStringGetTextDatum(organization);
	values[1] = CStringGetTextDatum(principal);
	values[2] = CStringGetTextDatum(grp);
	values[3] = CStringGetTextDatum(project);
	values[4] = CStringGetTextDatum(tool_server);
	values[5] = CStringGetTextDatum(tool_name);
	query_begin(&scope);
	rows = query_run(query, values, NULL, InvalidSnapshot);
	query_end(&scope);
	at_commit_durable();
	return rows > 0;
}

bool
approver_add(const char *organization, const char *principal, const char *grp,
			 const char *project, const char *tool_server,
			 const char *tool_name)
{
	return run_on_approver(&approver_add_query, organization, principal, grp,
						   project, tool_server, tool_name);
}

bool
approver_remove(const char *organization, const char *principal,
				const char *grp, const char *project,
				const char *tool_server, const char *tool_name)
{
	return run_on_approver(&approver_remove_query, organization, principal,
						   grp, project, tool_server, tool_name);
}
