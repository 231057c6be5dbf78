-- slow_way.sql: tables that an administrator has changed.  With more columns, with
-- triggers, with row security or a child table, rows are not written through the
-- access methods; the answers are the same.
--
-- This works in a database of its own: a column that was dropped is never quite
-- gone.

\set organization tap_slow_way
SELECT current_database() AS database \gset
SET client_min_messages = warning;
DROP DATABASE IF EXISTS regress_tap_slow_way;
CREATE DATABASE regress_tap_slow_way;
\connect regress_tap_slow_way
\ir include/helpers.psql

SELECT plan(42 + 7 * 3 + 5);

CREATE FUNCTION public.handler(input jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';
SELECT tool_claims.set_tool_policy('logged', log => 'all', keep_input => true);
SELECT tool_claims.set_tool_policy('again', on_lease_expiry => 'reacquire');
SELECT tool_claims.add_approver('ann');

-- one story, of as much as there is; @ is the name of the change
CREATE TEMPORARY TABLE steps (n integer GENERATED ALWAYS AS IDENTITY, call text, answer text);
INSERT INTO steps (call, answer) VALUES
	($$claim('@', 'leased', 'logged', '{"n": 1}', lease => '10 min')$$, 'acquired'),
	($$claim('@', 'leased', 'logged', '{"n": 1}', lease => '10 min', request_id => '00000000-0000-4000-8000-000000000001')$$, 'in_progress'),
	($$claim('@', 'leased', 'logged', '{"n": 2}', lease => '10 min')$$, 'conflict/input'),
	($$dispatch('@', 'leased', 1, 'bank 7')$$, 'acquired'),
	($$renew('@', 'leased', 1, '20 min')$$, 'acquired'),
	($$assert_claim('@', 'leased', 1)$$, 'done'),
	($$complete('@', 'leased', '{"done":  1}', 1)$$, 'completed'),
	($$claim('@', 'leased', 'logged', '{"n": 1.0}', lease => '10 min')$$, 'completed'),
	($$complete('@', 'leased', '{"done":  1}', 1)$$, 'completed'),
	($$report_late('@', 'leased', 1, '{"done": 2}')$$, 'done'),
	($$claim('@', 'op 1', 'tool', '{}', lease => '10 min', operation_id => 'op @')$$, 'acquired'),
	($$claim('@', 'op 2', 'tool', '{}', lease => '10 min', operation_id => 'op @')$$, 'in_progress/operation'),
	($$claim('@', 'op 2', 'tool', '[]', lease => '10 min', operation_id => 'op @')$$, 'conflict/operation'),
	($$release('@', 'op 1', 1)$$, 'released'),
	($$claim('@', 'op 2', 'tool', '{}', lease => '10 min', operation_id => 'op @')$$, 'acquired/retry'),
	($$claim('@', 'op 1', 'tool', '{}', lease => '10 min', operation_id => 'op @')$$, 'in_progress/operation'),
	($$fail('@', 'op 2', '"no"', 1)$$, 'failed'),
	($$claim('@', 'op 1', 'tool', '{}', lease => '10 min', operation_id => 'op @')$$, 'failed/operation'),
	($$claim('@', 'doubt', 'tool', '{}', lease => '1 microsecond')$$, 'acquired'),
	($$claim('@', 'doubt', 'tool', '{}', lease => '10 min')$$, 'uncertain/lease_expired'),
	($$sweep()$$, 'done'),
	($$reconcile('@', 'doubt', 1, 'not_occurred', '{"by": 1}', new_effect_key => true)$$, 'released'),
	($$claim('@', 'doubt', 'tool', '{}', lease => '10 min')$$, 'acquired/retry'),
	($$mark_uncertain('@', 'doubt', 2, 'no answer')$$, 'uncertain/reported'),
	($$claim('@', 'again', 'again', '{}', lease => '1 microsecond')$$, 'acquired'),
	($$claim('@', 'again', 'again', '{}', lease => '10 min')$$, 'acquired/takeover'),
	($$execute('@', 'run', 'tool', '{"a": 1}', 'public.handler(jsonb)', operation_id => 'run @')$$, 'done'),
	($$claim('@', 'run', 'tool', '{"a": 1}', operation_id => 'run @')$$, 'completed'),
	($$propose('@', 'asked', 'tool', '{}', 'agent', execution_id => '00000000-0000-4000-8000-000000000001')$$, 'proposed'),
	($$propose('@', 'asked', 'tool', '{}', 'agent')$$, 'existing'),
	($$propose('@', 'asked', 'tool', '[]', 'agent')$$, 'conflict/input'),
	($$claim('@', 'asked', 'tool', '{}', lease => '10 min')$$, 'refused/approval_required'),
	($$approve_as('ann', '@', 'asked', (SELECT binding_digest FROM tool_claims.proposals WHERE task_id = '@'))$$, 'recorded'),
	($$reserve('@', 'asked', '00000000-0000-4000-8000-000000000001', 'tool', '{}', 'agent', lease => '10 min')$$, 'acquired'),
	($$complete('@', 'asked', '1', 1)$$, 'completed'),
	($$propose('@', 'leased', 'logged', '{"n": 1}', 'agent')$$, 'refused/completed'),
	($$expect_result('@', 'infinity', correlation => '{"for": 1}')$$, '{pending}'),
	($$offer_result('@', 'timed_out')$$, '{retry/timed_out}'),
	($$offer_result('@', 'succeeded', '{"good": 1}')$$, '{accepted}'),
	($$offer_result('@', 'succeeded', '{"good": 2}')$$, '{rejected/already_accepted}'),
	($$redact('@', 'leased', 'a wish')$$, 'done'),
	($$claim('@', 'leased', 'logged', '{"n": 1}', lease => '10 min')$$, 'completed/redacted');
CREATE TEMPORARY TABLE told (change text, n integer, answer text);

-- the answer of a gate has other members
CREATE FUNCTION pg_temp.answer_of(call text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer json;
BEGIN
	IF call LIKE '%_result(%' THEN
		EXECUTE 'SELECT to_json(r) FROM tool_claims.' || call || ' AS r' INTO answer;
		RETURN format('{%s}', concat_ws('/', answer ->> 'verdict', answer ->> 'reason'));
	END IF;
	RETURN pg_temp.answer(call);
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
CREATE PROCEDURE pg_temp.tell(change text)
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
BEGIN
	FOR s IN SELECT * FROM steps ORDER BY n LOOP
		INSERT INTO told SELECT change, s.n, pg_temp.answer_of(replace(s.call, '@', change));
		COMMIT;
	END LOOP;
END
$$;

-- what the story leaves, without times, digests and the change's name
CREATE FUNCTION pg_temp.left_by(change text)
RETURNS SETOF text
LANGUAGE sql
AS $$
	SELECT replace(format('%s %s %s %s %s %s %s', s.tool_call_id, s.state, s.attempt, s.operation_id, s.external_ref, s.result, s.error), change, '@')
	FROM tool_claims.claims AS c, tool_claims.status(c.task_id, c.tool_call_id) AS s WHERE c.task_id = change
	UNION ALL
	SELECT format('operation of %s', o.tool_call_id)
	FROM tool_claims.operations AS o WHERE o.organization = current_setting('tool_claims.organization') AND o.task_id = change
	UNION ALL
	SELECT format('%s %s %s', e.tool_call_id, e.seq, e.kind)
	FROM tool_claims.events AS e WHERE e.organization = current_setting('tool_claims.organization') AND e.task_id = change
	UNION ALL
	SELECT format('%s verifies: %s %s', k.tool_call_id, v.ok, v.reason)
	FROM (SELECT DISTINCT tool_call_id FROM tool_claims.events WHERE organization = current_setting('tool_claims.organization') AND task_id = change) AS k,
		tool_claims.verify_evidence(change, k.tool_call_id) AS v
$$;
CREATE FUNCTION pg_temp.same_as_plain(change text)
RETURNS SETOF text
LANGUAGE sql
AS $$
	SELECT is((SELECT string_agg(format('%s: %s, not %s', s.call, t.answer, s.answer), E'\n' ORDER BY s.n)
		FROM steps AS s LEFT JOIN told AS t ON t.n = s.n AND t.change = same_as_plain.change
		WHERE t.answer IS DISTINCT FROM s.answer), NULL, change || ': every answer is the same')
	UNION ALL
	SELECT set_eq(format('SELECT * FROM pg_temp.left_by(%L)', change), $q$SELECT * FROM pg_temp.left_by('plain')$q$, change || ': and leaves the same')
	UNION ALL
	SELECT is((SELECT string_agg(l, ', ') FROM pg_temp.left_by(change) AS l WHERE l ~ 'verifies: f'), NULL, change || ': and all verifies')
$$;

CREATE FUNCTION pg_temp.on_tables(command text)
RETURNS void
LANGUAGE plpgsql
AS $$
DECLARE
	t regclass;
BEGIN
	FOR t IN
		SELECT c.oid
		FROM pg_catalog.pg_depend AS d
			JOIN pg_catalog.pg_extension AS e ON e.oid = d.refobjid AND e.extname = 'tool_claims'
			JOIN pg_catalog.pg_class AS c ON c.oid = d.objid AND c.relkind = 'r'
		WHERE d.deptype = 'e' AND d.classid = 'pg_catalog.pg_class'::regclass
	LOOP
		EXECUTE replace(command, '%T', t::text);
	END LOOP;
END
$$;
CREATE FUNCTION public.unchanged() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';

-- as it was installed
CALL pg_temp.tell('plain');
SELECT is(t.answer, s.answer, s.call) FROM steps AS s LEFT JOIN told AS t USING (n) ORDER BY s.n;

-- one column more, in every table: the default stands in each new row
SELECT pg_temp.on_tables('ALTER TABLE %T ADD COLUMN note text NOT NULL DEFAULT ''x''');
CALL pg_temp.tell('column');
SELECT pg_temp.same_as_plain('column');
SELECT is((SELECT string_agg(DISTINCT note, ' ') FROM tool_claims.claim_records WHERE task_id = 'column'), 'x', 'the default of a record');
SELECT is((SELECT string_agg(DISTINCT note, ' ') FROM tool_claims.operations WHERE task_id = 'column'), 'x', 'the default of an operation');
SELECT is((SELECT string_agg(DISTINCT note, ' ') FROM tool_claims.proposal_records WHERE task_id = 'column'), 'x', 'the default of a proposal');

-- forty more, wide ones among them
SELECT pg_temp.on_tables('ALTER TABLE %T ' || string_agg(format('ADD COLUMN more_%s text DEFAULT repeat(''y'', 200)', n), ', ')) FROM generate_series(1, 40) AS n;
CALL pg_temp.tell('columns');
SELECT pg_temp.same_as_plain('columns');
SELECT is((SELECT string_agg(DISTINCT right(more_40, 1), ' ') FROM tool_claims.claim_records WHERE task_id = 'columns'), 'y', 'the last default');

-- and gone again
SELECT pg_temp.on_tables('ALTER TABLE %T DROP COLUMN note, ' || string_agg(format('DROP COLUMN more_%s', n), ', ')) FROM generate_series(1, 40) AS n;
CALL pg_temp.tell('dropped');
SELECT pg_temp.same_as_plain('dropped');

-- triggers
DROP EXTENSION tool_claims;
CREATE EXTENSION tool_claims;
SELECT tool_claims.set_tool_policy('logged', log => 'all', keep_input => true);
SELECT tool_claims.set_tool_policy('again', on_lease_expiry => 'reacquire');
SELECT tool_claims.add_approver('ann');
DELETE FROM told;
CALL pg_temp.tell('plain');
SELECT pg_temp.on_tables('CREATE TRIGGER a BEFORE INSERT ON %T FOR EACH ROW EXECUTE FUNCTION public.unchanged()');
CALL pg_temp.tell('before');
SELECT pg_temp.same_as_plain('before');
SELECT pg_temp.on_tables('DROP TRIGGER a ON %T');
SELECT pg_temp.on_tables('CREATE TRIGGER a AFTER INSERT OR UPDATE OR DELETE ON %T FOR EACH STATEMENT EXECUTE FUNCTION public.unchanged()');
CALL pg_temp.tell('after');
SELECT pg_temp.same_as_plain('after');
SELECT pg_temp.on_tables('DROP TRIGGER a ON %T');

-- row security, for the owner too
SELECT pg_temp.on_tables('ALTER TABLE %T ENABLE ROW LEVEL SECURITY');
SELECT pg_temp.on_tables('ALTER TABLE %T FORCE ROW LEVEL SECURITY');
SELECT pg_temp.on_tables('CREATE POLICY all_rows ON %T USING (true) WITH CHECK (true)');
CALL pg_temp.tell('secured');
SELECT pg_temp.same_as_plain('secured');
SELECT pg_temp.on_tables('ALTER TABLE %T DISABLE ROW LEVEL SECURITY');

-- a table below
CREATE TABLE public.more_records (LIKE tool_claims.claim_records INCLUDING ALL) INHERITS (tool_claims.claim_records);
CREATE TABLE public.more_operations (LIKE tool_claims.operations INCLUDING ALL) INHERITS (tool_claims.operations);
CREATE TABLE public.more_events (LIKE tool_claims.events INCLUDING ALL) INHERITS (tool_claims.events);
CREATE TABLE public.more_proposals (LIKE tool_claims.proposal_records INCLUDING ALL) INHERITS (tool_claims.proposal_records);
CALL pg_temp.tell('parent');
SELECT pg_temp.same_as_plain('parent');

-- pruned like any other
SELECT cmp_ok(tool_claims.prune('0 s', 10000), '>=', 20, 'all that has ended is pruned');

SELECT * FROM finish();
\connect :"database"
DROP DATABASE regress_tap_slow_way;
