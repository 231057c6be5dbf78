-- administration.sql: the organization that a session must have, '*', stats,
-- attention, policies, prune and redact over all that is kept, duties.

\set organization tap_admin
\ir include/helpers.psql

SELECT plan(1171);

-- the organizations of this test, emptied
CREATE PROCEDURE pg_temp.forget_all()
LANGUAGE plpgsql
AS $$
DECLARE
	t text;
BEGIN
	PERFORM set_config('session_replication_role', 'replica', true);
	FOREACH t IN ARRAY ARRAY['claim_records', 'operations', 'events', 'policies', 'policy_numbers', 'proposal_records', 'votes', 'approvers', 'result_gates', 'mark_keys'] LOOP
		EXECUTE format('DELETE FROM tool_claims.%I WHERE organization LIKE ''tap_admin%%''', t);
	END LOOP;
	PERFORM set_config('session_replication_role', 'origin', true);
END
$$;
CALL pg_temp.forget_all();
CREATE FUNCTION pg_temp.binding(call text, task text DEFAULT 't')
RETURNS text
LANGUAGE sql
AS $$
	SELECT binding_digest::text FROM tool_claims.proposal_records
	WHERE organization = current_setting('tool_claims.organization') AND task_id = task AND tool_call_id = call
$$;
-- the value of a query
CREATE FUNCTION pg_temp.value_of(query text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	v text;
BEGIN
	EXECUTE query INTO v;
	RETURN v;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
CREATE FUNCTION pg_temp.json_handler(jsonb) RETURNS jsonb LANGUAGE sql AS 'SELECT $1';

-- every verb and view, with what it needs to get past its arguments
CREATE TEMPORARY TABLE calls (n integer GENERATED ALWAYS AS IDENTITY, call text, kind text DEFAULT 'verb');
INSERT INTO calls (call) VALUES
	($$claim('t', 'c', 'tool', '{}')$$), ($$claim('t', 'c', 'tool', '{}', lease => '1 min')$$), ($$dispatch('t', 'c', 1)$$), ($$renew('t', 'c', 1, '1 min')$$), ($$complete('t', 'c', '1', 1)$$),
	($$fail('t', 'c', '1', 1)$$), ($$release('t', 'c', 1)$$), ($$mark_uncertain('t', 'c', 1, 'x')$$), ($$report_late('t', 'c', 1, '1')$$), ($$reconcile('t', 'c', 1, 'occurred', '{"a": 1}')$$),
	($$assert_claim('t', 'c', 1)$$), ($$require_claim('tool')$$), ($$status('t', 'c')$$), ($$find_claims('x')$$), ($$execute('t', 'c', 'tool', '{}', 'pg_temp.json_handler(jsonb)')$$),
	($$propose('t', 'c', 'tool', '{}', 'agent')$$), ($$approve('t', 'c', tool_claims.digest('{}'))$$), ($$reject('t', 'c', tool_claims.digest('{}'))$$), ($$revoke('t', 'c', 'x')$$),
	($$approve_as('ann', 't', 'c', tool_claims.digest('{}'))$$), ($$reject_as('ann', 't', 'c', tool_claims.digest('{}'))$$), ($$revoke_as('ann', 't', 'c', 'x')$$), ($$withdraw('t', 'c', 'x')$$), ($$withdraw('t', NULL, 'x')$$),
	($$reserve('t', 'c', gen_random_uuid(), 'tool', '{}', 'agent')$$), ($$reserve_by_digest('t', 'c', gen_random_uuid(), tool_claims.digest('{}'))$$), ($$review('t', 'c')$$),
	($$add_approver('ann')$$), ($$remove_approver('ann')$$),
	($$expect_result('t', '2100-01-01')$$), ($$offer_result('t', 'succeeded', '1')$$), ($$gate('t')$$), ($$require_accepted('t')$$),
	($$add_mark_key('k', 'x')$$), ($$retire_mark_key('k')$$), ($$revoke_mark_key('k')$$), ($$mark_content('x', 'k')$$), ($$verify_mark('x', 'y')$$),
	($$evidence('t', 'c')$$), ($$verify_evidence('t', 'c')$$), ($$timeline('t', 'c')$$), ($$set_tool_policy('tool')$$), ($$drop_tool_policy('tool')$$), ($$redact('t', 'c', 'x')$$);
INSERT INTO calls (call, kind) VALUES
	('claims', 'view'), ('proposals', 'view'), ('inbox', 'view'), ('ready', 'view'), ('gates', 'view'), ('attention', 'view'), ('stats', 'view'), ('tool_policies', 'view'),
	($$inbox_for('ann')$$, 'look'), ($$evidence_heads()$$, 'look'), ('sweep()', 'all'), ($$prune('1000 years')$$, 'all'), ('doctor()', 'look');

--
-- require_organization
--

SELECT is(current_setting('tool_claims.require_organization'), 'off', 'off by default');
SELECT is(pg_temp.state_of('SET tool_claims.require_organization = ' || value), answer, 'SET … = ' || value)
FROM (VALUES ('off', 'done'), ('on', 'done'), ('transaction', 'done'), ('true', 'done'), ('session', '22023'), ('''''', '22023')) AS t (value, answer);
SET tool_claims.require_organization = 'off';
CALL pg_temp.make_roles('regress_tap_worker');
SELECT is(pg_temp.state_of('SET tool_claims.require_organization = off', 'regress_tap_worker'), '42501', 'not for everybody');
-- on: '' is refused by every verb and every view
SET tool_claims.organization = '';
SET tool_claims.require_organization = 'on';
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || call), '22023', 'on: ' || call) FROM calls ORDER BY n;
-- transaction: one that is left over too
SET tool_claims.organization = 'tap_admin';
SET tool_claims.require_organization = 'transaction';
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || call), '22023', 'transaction: ' || call) FROM calls ORDER BY n;
SELECT ok(pg_temp.error_text('SELECT * FROM tool_claims.claims') ~ 'SET LOCAL', 'the hint says what to do');
SET tool_claims.require_organization = 'off';
SELECT is((SELECT count(*)::integer FROM tool_claims.events WHERE organization IN ('', 'tap_admin') AND task_id = 't' AND tool_call_id = 'c'), 0, 'none left a trace');
-- and with an organization set now, each does what it does
SELECT is(count(*)::integer, 0, 'none is missing from the list above: ' || coalesce(string_agg(p.proname, ', '), ''))
FROM pg_proc AS p JOIN tool_claims.duty_privileges AS d ON d.kind = 'function' AND d.name = p.proname AND d.duty <> '*'
WHERE p.pronamespace = 'tool_claims'::regnamespace AND p.proname NOT IN ('current_claim', 'grant_duty', 'revoke_duty', 'accept_recovery')
	AND NOT EXISTS (SELECT FROM calls WHERE call LIKE p.proname || '(%');

-- stories under each value: steps, each a statement, a look at the end of each
CREATE TEMPORARY TABLE looks (name text, step integer, off text, require_on text, by_transaction text);
CREATE TEMPORARY TABLE looked (name text, step integer, setting text, answer text);
CREATE FUNCTION pg_temp.look(name text, step integer)
RETURNS void
LANGUAGE sql
AS $$
	INSERT INTO looked SELECT name, step, current_setting('tool_claims.require_organization'),
		CASE WHEN pg_temp.state_of('SELECT * FROM tool_claims.claims') = pg_temp.state_of('SELECT * FROM tool_claims.evidence_heads()')
			THEN CASE pg_temp.state_of('SELECT * FROM tool_claims.claims') WHEN 'done' THEN tool_claims.session_organization() ELSE pg_temp.state_of('SELECT * FROM tool_claims.claims') END
			ELSE 'they differ' END
$$;
CREATE PROCEDURE pg_temp.in_procedure()
LANGUAGE plpgsql
AS $$
BEGIN
	SET LOCAL tool_claims.organization = 'tap_admin_b';
	PERFORM pg_temp.look('procedure', 1);
	COMMIT;
	PERFORM pg_temp.look('procedure', 2);
	SET LOCAL tool_claims.organization = 'tap_admin_b';
	PERFORM pg_temp.look('procedure', 3);
	COMMIT;
	PERFORM pg_temp.look('procedure', 4);
	COMMIT;
	SET tool_claims.organization = 'tap_admin_b';
	PERFORM pg_temp.look('procedure', 5);
	COMMIT;
	PERFORM pg_temp.look('procedure', 6);
END
$$;
CREATE FUNCTION pg_temp.with_set(name text, step integer) RETURNS void LANGUAGE plpgsql SET tool_claims.organization = 'tap_admin_f'
AS $$ BEGIN PERFORM pg_temp.look(name, step); END $$;
CREATE FUNCTION pg_temp.with_set_and_local(name text, step integer) RETURNS void LANGUAGE plpgsql SET tool_claims.organization = 'tap_admin_f'
AS $$ BEGIN SET LOCAL tool_claims.organization = 'tap_admin_g'; PERFORM pg_temp.look(name, step); END $$;
CREATE FUNCTION pg_temp.raising_with_set() RETURNS void LANGUAGE plpgsql SET tool_claims.organization = 'tap_admin_f'
AS $$ BEGIN RAISE 'x'; END $$;

\set require off
\ir include/organization_stories.psql
\set require on
\ir include/organization_stories.psql
\set require transaction
\ir include/organization_stories.psql
SET tool_claims.require_organization = 'off';
SET tool_claims.organization = 'tap_admin';

-- what a left-over reads as: 'off' and 'on' take it, 'transaction' does not
INSERT INTO looks VALUES
	('nothing', 1, '', '22023', '22023'),
	('left over', 1, 'tap_admin_a', 'tap_admin_a', '22023'),
	('left over', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('local', 1, 'tap_admin_a', 'tap_admin_a', '22023'),
	('local', 2, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('local', 3, 'tap_admin_a', 'tap_admin_a', '22023'),
	('session', 1, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('session', 2, 'tap_admin_b', 'tap_admin_b', '22023'),
	('same value', 1, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('set_config', 1, 'tap_admin_c', 'tap_admin_c', 'tap_admin_c'),
	('rolled back', 1, 'tap_admin_c', 'tap_admin_c', 'tap_admin_c'),
	('rolled back', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('savepoint', 1, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('savepoint', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('savepoint', 3, 'tap_admin_c', 'tap_admin_c', 'tap_admin_c'),
	('savepoint', 4, 'tap_admin_d', 'tap_admin_d', 'tap_admin_d'),
	('savepoint', 5, 'tap_admin_c', 'tap_admin_c', 'tap_admin_c'),
	('savepoint', 6, 'tap_admin_d', 'tap_admin_d', 'tap_admin_d'),
	('savepoint', 7, 'tap_admin_d', 'tap_admin_d', 'tap_admin_d'),
	('reset', 1, '', '22023', '22023'),
	('reset', 2, '', '22023', '22023'),
	('all', 1, '*', '*', '*'),
	('all', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('function', 1, 'tap_admin_f', 'tap_admin_f', 'tap_admin_f'),
	('function', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('function', 3, 'tap_admin_g', 'tap_admin_g', 'tap_admin_g'),
	('function', 4, 'tap_admin_a', 'tap_admin_a', '22023'),
	('function', 5, 'tap_admin_f', 'tap_admin_f', 'tap_admin_f'),
	('function', 6, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('function', 7, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('procedure', 1, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('procedure', 2, 'tap_admin_a', 'tap_admin_a', '22023'),
	('procedure', 3, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('procedure', 4, 'tap_admin_a', 'tap_admin_a', '22023'),
	('procedure', 5, 'tap_admin_b', 'tap_admin_b', 'tap_admin_b'),
	('procedure', 6, 'tap_admin_b', 'tap_admin_b', '22023');
SELECT is(d.answer, CASE setting WHEN 'off' THEN l.off WHEN 'on' THEN l.require_on ELSE l.by_transaction END, format('%s: %s, step %s', setting, l.name, l.step))
FROM looks AS l CROSS JOIN unnest(ARRAY['off', 'on', 'transaction']) AS setting LEFT JOIN looked AS d USING (name, step, setting) ORDER BY setting, l.name, l.step;

-- new sessions, in which the first verb loads the library: what was there before does not count
\set left `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.require_organization = 'transaction'" -c "SET tool_claims.organization = 'tap_admin'" -c "SELECT count(*) FROM tool_claims.claims" 2>&1 | tail -n 1`
SELECT is(:'left'::text, 'ERROR:  22023', 'left over from before the library was loaded');
\set left `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.require_organization = 'transaction'" -c "SET tool_claims.organization = 'tap_admin'" -c "SELECT count(*) FROM tool_claims.claims" -c "SELECT count(*) FROM tool_claims.claims" 2>&1 | tail -n 1`
SELECT is(:'left'::text, 'ERROR:  22023', 'and at the second verb');
\set left `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.require_organization = 'transaction'" -c "BEGIN; SET LOCAL tool_claims.organization = 'tap_admin'; SELECT 'counted ' || count(*) FROM tool_claims.claims; COMMIT" 2>&1 | tail -n 2 | head -n 1`
SELECT ok(:'left'::text LIKE 'counted %', 'set in the transaction that loads it: ' || :'left');

--
-- '*'
--

SET tool_claims.organization = '*';
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || call), CASE kind WHEN 'verb' THEN '22023' ELSE 'done' END, 'under *: ' || call) FROM calls ORDER BY n;
-- the same in two organizations, one row in each view
CREATE PROCEDURE pg_temp.fill(tenant text)
LANGUAGE plpgsql
AS $$
BEGIN
	PERFORM set_config('tool_claims.organization', tenant, false);
	PERFORM tool_claims.add_approver('ann');
	PERFORM tool_claims.set_tool_policy('tool', max_attempts => 2);
	PERFORM tool_claims.claim('t', 'claimed', 'tool', '{}', lease => '1 hour');
	PERFORM tool_claims.propose('t', 'pending', 'tool', '{}', 'agent');
	PERFORM tool_claims.propose('t', 'approved', 'tool', '{}', 'agent');
	PERFORM tool_claims.approve_as('ann', 't', 'approved', pg_temp.binding('approved')::tool_claims.sha256_digest);
	PERFORM tool_claims.expect_result('t', '2100-01-01');
	COMMIT;
	PERFORM tool_claims.mark_uncertain('t', 'claimed', 1, 'x');
END
$$;
CALL pg_temp.fill('tap_admin_1');
CALL pg_temp.fill('tap_admin_2');
SET tool_claims.organization = 'tap_admin';
CREATE TEMPORARY TABLE rows_of (view text, rows text);
INSERT INTO rows_of VALUES ('claims', '1'), ('proposals', '2'), ('inbox', '1'), ('ready', '1'), ('gates', '1'), ('attention', '2'), ('stats', '1'), ('tool_policies', '1');
CREATE FUNCTION pg_temp.rows_in(view text, tenant text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	mine text := current_setting('tool_claims.organization');
	answer text;
BEGIN
	PERFORM set_config('tool_claims.organization', tenant, true);
	EXECUTE format($q$SELECT string_agg(o || ' ' || n, ', ' ORDER BY o) FROM (SELECT organization, count(*) FROM tool_claims.%I WHERE organization LIKE 'tap_admin%%' GROUP BY 1) AS t (o, n)$q$, view)
	INTO answer;
	PERFORM set_config('tool_claims.organization', mine, true);
	RETURN answer;
END
$$;
SELECT is(pg_temp.rows_in(view, 'tap_admin_1'), 'tap_admin_1 ' || rows, view || ': of the first') FROM rows_of;
SELECT is(pg_temp.rows_in(view, 'tap_admin_2'), 'tap_admin_2 ' || rows, view || ': of the second') FROM rows_of;
SELECT is(pg_temp.rows_in(view, 'tap_admin'), NULL, view || ': of a third') FROM rows_of;
SELECT is(pg_temp.rows_in(view, ''), NULL, view || ': of the empty one') FROM rows_of;
SELECT is(pg_temp.rows_in(view, '*'), format('tap_admin_1 %s, tap_admin_2 %s', rows, rows), view || ': of all') FROM rows_of;
SELECT is(pg_temp.value_of('SELECT count(*) FROM tool_claims.' || look), '0', 'of a third: ' || look)
FROM unnest(ARRAY[$$inbox_for('ann')$$, 'evidence_heads()', $$gate('t')$$, $$status('t', 'claimed')$$, $$evidence('t', 'claimed')$$]) AS look;
SET tool_claims.organization = 'tap_admin_1';
SELECT is(pg_temp.value_of('SELECT count(*) FROM tool_claims.' || look), n, 'of the first: ' || look)
FROM (VALUES ($$inbox_for('ann')$$, '1'), ('evidence_heads()', '3'), ($$gate('t')$$, '1'), ($$status('t', 'claimed')$$, '1')) AS t (look, n);
-- sweep and prune of all
SET tool_claims.organization = '*';
SELECT pg_temp.clock(2 * 86400);
SELECT cmp_ok(tool_claims.sweep(), '>=', 4, 'sweep writes down that proposals of both have expired');
SELECT is((SELECT string_agg(organization || ' ' || state, ', ' ORDER BY organization, tool_call_id) FROM tool_claims.proposals WHERE organization LIKE 'tap_admin%'),
	'tap_admin_1 expired, tap_admin_1 expired, tap_admin_2 expired, tap_admin_2 expired', 'all four');
SELECT pg_temp.clock(4 * 86400);
SELECT cmp_ok(tool_claims.prune('1 day', 1000000), '>=', 4, 'prune takes them');
SELECT is((SELECT count(*)::integer FROM tool_claims.proposal_records WHERE organization IN ('tap_admin_1', 'tap_admin_2') AND pruned), 4, 'all four');
SELECT pg_temp.clock(0);
SET tool_claims.organization = 'tap_admin';
CALL pg_temp.forget_all();

--
-- policies as a view
--

SET tool_claims.organization = '';
SELECT is(pg_temp.answer($$set_tool_policy('tap shared', 'server', enabled => false)$$), 'done', 'a policy of the empty organization');
SET tool_claims.organization = 'tap_admin';
SELECT is(pg_temp.answer($$set_tool_policy('tool')$$), 'done', 'a policy without a member');
SELECT is((p.*)::text, $$(tap_admin,tool,*,t,any,0,,,f,1,uncertain,,f,"1 day",f,,,exceptions)$$, 'its defaults') FROM tool_claims.tool_policies AS p WHERE tool_name = 'tool';
SELECT is((organization, enabled)::text, '("",f)', 'the shared one is seen') FROM tool_claims.tool_policies WHERE tool_name = 'tap shared';
SET tool_claims.organization = 'tap_admin_1';
SELECT is((SELECT string_agg(tool_name, ', ') FROM tool_claims.tool_policies WHERE tool_name = 'tool'), NULL, 'another''s is not');
SET tool_claims.organization = '';
SELECT is(pg_temp.answer($$drop_tool_policy('tap shared', 'server')$$), 'done', 'dropped');
SET tool_claims.organization = 'tap_admin';
SELECT is(pg_temp.answer($$drop_tool_policy('tool')$$), 'done', 'dropped too');

--
-- stats
--

SELECT is((SELECT count(*)::integer FROM tool_claims.stats), 0, 'stats of nothing');
CREATE PROCEDURE pg_temp.make(task text, call text, state text, tool text DEFAULT 'tool', server text DEFAULT '')
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	answer := pg_temp.answer(format('claim(%L, %L, %L, ''{"secret": "canary"}'', lease => %L, dispatched => %L, tool_server => %L)', task, call, tool,
		CASE WHEN state IN ('expired', 'free') THEN '1 microsecond' ELSE '10 min' END, state <> 'free', server));
	IF answer !~ '^acquired' THEN
		RAISE '% %: %', task, call, answer;
	END IF;
	COMMIT;
	answer := pg_temp.answer(CASE state
		WHEN 'completed' THEN format('complete(%L, %L, ''"canary"'', 1)', task, call)
		WHEN 'failed' THEN format('fail(%L, %L, ''"canary"'', 1)', task, call)
		WHEN 'released' THEN format('release(%L, %L, 1, ''canary'')', task, call)
		WHEN 'uncertain' THEN format('mark_uncertain(%L, %L, 1, ''canary'')', task, call)
		ELSE format('status(%L, %L)', task, call)
	END);
	IF answer !~ ('^' || CASE WHEN state IN ('claimed', 'expired', 'free') THEN 'done' ELSE state END) THEN
		RAISE '% %: %', task, call, answer;
	END IF;
END
$$;
CREATE PROCEDURE pg_temp.make_all(task text, tool text DEFAULT 'tool', server text DEFAULT '')
LANGUAGE plpgsql
AS $$
DECLARE
	s text;
BEGIN
	FOREACH s IN ARRAY ARRAY['claimed', 'expired', 'free', 'uncertain', 'completed', 'failed', 'released'] LOOP
		CALL pg_temp.make(task, s, s, tool, server);
	END LOOP;
END
$$;
CALL pg_temp.make_all('s');
CALL pg_temp.make_all('s 2', 'tool', 'server');
CALL pg_temp.make('s', 'one more', 'completed');
CREATE FUNCTION pg_temp.stats() RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(format('%s@%s %s %s', tool_name, tool_server, state, claims), ', ' ORDER BY tool_name, tool_server, state::text) FROM tool_claims.stats WHERE organization = 'tap_admin' $$;
SELECT is(pg_temp.stats(), 'tool@ claimed 1, tool@ completed 2, tool@ failed 1, tool@ released 2, tool@ uncertain 2, '
	'tool@server claimed 1, tool@server completed 1, tool@server failed 1, tool@server released 2, tool@server uncertain 2', 'by tool and state, expiry applied');
SELECT is((SELECT sum(claims)::integer FROM tool_claims.stats), (SELECT count(*)::integer FROM tool_claims.claims), 'all of them');
SELECT pg_temp.clock(3600);
SELECT is((SELECT string_agg(claims::text, ', ') FROM tool_claims.stats WHERE state = 'claimed'), NULL, 'an hour later none is claimed');
SELECT is((SELECT sum(claims)::integer FROM tool_claims.stats WHERE state = 'uncertain'), 6, 'but uncertain');
SELECT pg_temp.clock(0);
SELECT tool_claims.prune('0 s');
SELECT is((SELECT sum(claims)::integer FROM tool_claims.stats WHERE state = 'retired'), (SELECT count(*)::integer FROM tool_claims.claims WHERE state = 'retired'), 'retired ones are counted');
CALL pg_temp.forget_all();

--
-- attention, all kinds
--

SELECT is((SELECT count(*)::integer FROM tool_claims.attention), 0, 'nothing to look at');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$set_tool_policy('limited', max_attempts => 1)$$, 'done'),
	(2, $$add_approver('ann')$$, 'done'),
	(3, $$claim('a', 'reported', 'tool', '{}', lease => '10 min', operation_id => 'op 1', tool_server => 'server')$$, 'acquired'),
	(4, $$claim('a', 'expired', 'tool', '{}', lease => '1 s')$$, 'acquired'),
	(5, $$claim('a', 'exhausted', 'limited', '{}', lease => '10 min')$$, 'acquired'),
	(6, $$claim('a', 'late', 'tool', '{}', lease => '10 min')$$, 'acquired'),
	(7, $$claim('a', 'conflict', 'tool', '{}', lease => '10 min')$$, 'acquired'),
	(8, $$propose('a', 'due', 'tool', '{}', 'agent', tool_server => 'server')$$, 'proposed'),
	(9, $$expect_result('a', tool_claims.clock() + '1 second')$$, 'done'),
	(10, $$claim('a', 'fine', 'tool', '{}', lease => '10 min')$$, 'acquired')
) AS t (n, call, answer) ORDER BY n;
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$dispatch('a', 'reported', 1, 'ref 1')$$, 'acquired'),
	(2, $$mark_uncertain('a', 'reported', 1, 'x')$$, 'uncertain/reported'),
	(3, $$release('a', 'exhausted', 1)$$, 'released'),
	(4, $$mark_uncertain('a', 'late', 1, 'x')$$, 'uncertain/reported'),
	(5, $$reconcile('a', 'late', 1, 'occurred', '{"a": 1}')$$, 'completed'),
	(6, $$report_late('a', 'late', 1, '1')$$, 'done'),
	(7, $$claim('a', 'conflict', 'tool', '[]')$$, 'conflict/input'),
	(8, $$claim('a', 'conflict', 'other', '[]')$$, 'conflict/tool_name'),
	(9, $$complete('a', 'conflict', '1', 1)$$, 'completed'),
	(10, $$complete('a', 'fine', '1', 1)$$, 'completed')
) AS t (n, call, answer) ORDER BY n;
SELECT is((SELECT string_agg(concat_ws(' ', kind, tool_call_id), ', ' ORDER BY kind COLLATE "C", tool_call_id) FROM tool_claims.attention),
	'approval_due due, attempts_exhausted exhausted, conflict conflict, late_report late, uncertain reported', 'at once');
SELECT pg_temp.clock(60);
SELECT is((SELECT string_agg(concat_ws(' ', kind, coalesce(tool_call_id, '-')), ', ' ORDER BY kind COLLATE "C", tool_call_id) FROM tool_claims.attention),
	'approval_due due, attempts_exhausted exhausted, conflict conflict, gate_overdue -, late_report late, lease_expired expired, uncertain reported', 'a minute later');
SELECT is((SELECT (task_id, tool_server, tool_name, attempt, effect_key, external_ref, held_by IS NOT NULL, since IS NOT NULL, age BETWEEN '50 s' AND '90 s', reason)::text
	FROM tool_claims.attention AS a WHERE a.kind = t.kind), row, t.kind || ': its row')
FROM (VALUES
	('uncertain', $$(a,server,tool,1,"op 1","ref 1",t,t,t,reported)$$),
	('approval_due', NULL), ('gate_overdue', $$(a,,,,,,t,t,t,deadline_passed)$$)
) AS t (kind, row) WHERE row IS NOT NULL;
SELECT is((SELECT (tool_server, tool_name, attempt, effect_key, external_ref, since = lease_expires_at, age BETWEEN '50 s' AND '90 s', a.reason)::text
	FROM tool_claims.attention AS a JOIN tool_claims.claims AS c USING (organization, task_id, tool_call_id, tool_server, tool_name, attempt, effect_key, external_ref) WHERE kind = 'lease_expired'),
	NULL, '(an external reference that is null joins nothing)');
SELECT is((c.attempt, a.effect_key = c.effect_key, a.since = c.lease_expires_at, a.age BETWEEN '50 s' AND '90 s', a.reason)::text, '(1,t,t,t,lease_expired)', 'lease_expired: its row')
FROM tool_claims.attention AS a JOIN tool_claims.claims AS c USING (organization, task_id, tool_call_id) WHERE kind = 'lease_expired';
SELECT is((tool_server, tool_name, age BETWEEN '50 s' AND '90 s', reason ~ '^until ')::text, '(server,tool,t,t)', 'approval_due: its row') FROM tool_claims.attention WHERE kind = 'approval_due';
SELECT ok(reason ~ 'input' AND reason ~ 'tool_name', 'conflict: all its reasons') FROM tool_claims.attention WHERE kind = 'conflict';
SELECT is((SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'tool_claims.attention'::regclass AND attnum > 0),
	'organization kind task_id tool_call_id tool_server tool_name attempt effect_key external_ref held_by since age reason', 'its columns');
-- what is dealt with, goes
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$reconcile('a', 'reported', 1, 'occurred', '{"a": 1}')$$, 'completed'),
	(2, $$complete('a', 'expired', '1', 1)$$, 'completed'),
	(3, $$reconcile('a', 'exhausted', 1, 'abandoned', '{"a": 1}')$$, 'failed'),
	(4, format($$reject_as('ann', 'a', 'due', %L)$$, pg_temp.binding('due', 'a')), 'recorded'),
	(5, $$offer_result('a', 'succeeded', '1')$$, 'deadline_passed')
) AS t (n, call, answer) ORDER BY n;
SELECT is((SELECT string_agg(concat_ws(' ', kind, tool_call_id), ', ' ORDER BY kind COLLATE "C", tool_call_id) FROM tool_claims.attention), 'conflict conflict, late_report late', 'dealt with');
SELECT is(tool_claims.sweep(), 0, '(nothing to sweep)');
SELECT pg_temp.clock(3600);
SELECT cmp_ok(tool_claims.prune('1 min'), '>=', 5, 'pruned');
SELECT is((SELECT string_agg(concat_ws(' ', kind, tool_call_id), ', ') FROM tool_claims.attention), NULL, 'the rest goes with the evidence');
SELECT pg_temp.clock(0);
CALL pg_temp.forget_all();

--
-- prune and redact over proposals
--

SELECT is(pg_temp.answer($$add_approver(a)$$), '42703', '(an argument is a value)');
SELECT is(pg_temp.answer(format('add_approver(%L)', who)), 'done', who || ' approves') FROM unnest(ARRAY['ann', 'bob']) AS who;
CREATE TEMPORARY TABLE proposal_states (state text, steps text[], final boolean);
INSERT INTO proposal_states VALUES
	('pending', '{}', false),
	('approved', ARRAY[$$approve_as('ann', K, D, 'canary')$$], false),
	('rejected', ARRAY[$$reject_as('ann', K, D, 'canary')$$], true),
	('withdrawn', ARRAY[$$withdraw(K, 'canary')$$], true),
	('revoked', ARRAY[$$approve_as('ann', K, D, 'canary')$$, $$revoke_as('bob', K, 'canary')$$], true),
	('superseded', ARRAY[$$propose(T, 'by ' || N, 'tool', '{}', 'agent', supersedes => N)$$], true),
	('expired', ARRAY[$$sweep()$$], true);
CREATE PROCEDURE pg_temp.make_proposals(task text, tool text DEFAULT 'tool')
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
	step text;
BEGIN
	FOR s IN SELECT * FROM proposal_states LOOP
		PERFORM tool_claims.propose(task, s.state, tool, '{"secret": "canary"}', 'agent', summary => 'canary', operation_id => CASE s.state WHEN 'rejected' THEN 'op ' || task END,
			expires_in => CASE s.state WHEN 'expired' THEN interval '1 s' END);
		FOREACH step IN ARRAY s.steps LOOP
			IF s.state = 'expired' THEN
				PERFORM pg_temp.clock(10);
			END IF;
			step := replace(replace(replace(replace(step, 'K,', format('%L, %L,', task, s.state)), 'D,', quote_literal(pg_temp.binding(s.state, task)) || ','),
				'(T', '(' || quote_literal(task)), ' N', ' ' || quote_literal(s.state));
			PERFORM pg_temp.answer(step);
			IF pg_temp.answer(step) ~ '^[0-9A-Z]{5}$' THEN
				RAISE '%: %', step, pg_temp.answer(step);
			END IF;
			PERFORM pg_temp.clock(0);
		END LOOP;
		COMMIT;
	END LOOP;
END
$$;
CREATE FUNCTION pg_temp.proposal(call text, task text) RETURNS text LANGUAGE sql
AS $$ SELECT state::text FROM tool_claims.proposals WHERE task_id = task AND tool_call_id = call $$;
CREATE FUNCTION pg_temp.canaries(task text, call text) RETURNS text LANGUAGE sql
AS $$
	SELECT string_agg(what, ', ' ORDER BY what) FROM (
		SELECT 'claim' FROM tool_claims.claim_records AS r WHERE r.task_id = task AND r.tool_call_id = call AND r.*::text LIKE '%canary%'
		UNION ALL SELECT 'proposal' FROM tool_claims.proposal_records AS r WHERE r.task_id = task AND r.tool_call_id = call AND r.*::text LIKE '%canary%'
		UNION ALL SELECT DISTINCT 'vote' FROM tool_claims.votes AS r WHERE r.task_id = task AND r.tool_call_id = call AND r.*::text LIKE '%canary%'
		UNION ALL SELECT DISTINCT 'event' FROM tool_claims.events AS r WHERE r.task_id = task AND r.tool_call_id = call AND r.*::text LIKE '%canary%') AS t (what)
$$;
CALL pg_temp.make_proposals('p');
SELECT is(pg_temp.proposal(state, 'p'), state, 'made: ' || state) FROM proposal_states;
SELECT isnt(pg_temp.canaries('p', state), NULL, 'holds canaries: ' || state) FROM proposal_states;
CREATE TEMPORARY TABLE heads AS SELECT * FROM tool_claims.evidence_heads();
CREATE TEMPORARY TABLE bindings AS SELECT tool_call_id, binding_digest::text AS binding FROM tool_claims.proposal_records WHERE organization = 'tap_admin' AND task_id = 'p';
SELECT is(tool_claims.prune('1 hour'), 0, 'none is old enough');
SELECT pg_temp.clock(-7200);
SELECT is(tool_claims.prune('1 hour'), 0, 'nor two hours ago');
SELECT pg_temp.clock(0);
SELECT is(tool_claims.prune(), 0, 'without a retention none');
SELECT is(tool_claims.prune('0 s', 0), 0, 'none of none');
SELECT is(tool_claims.prune('0 s', 2), 2, 'two of them');
SELECT pg_temp.clock(20);
SELECT is(tool_claims.prune('0 s'), 3, 'the rest');
SELECT is(tool_claims.prune('0 s'), 0, 'nothing more');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.proposal(state, 'p'), state, 'still reads ' || state) FROM proposal_states;
SELECT is(pg_temp.canaries('p', state) IS NULL, final, format('%s: %s', state, CASE WHEN final THEN 'no content is left' ELSE 'untouched' END)) FROM proposal_states;
SELECT is((SELECT count(*)::integer FROM tool_claims.votes WHERE organization = 'tap_admin' AND task_id = 'p' AND tool_call_id = state), 0, state || ': no votes') FROM proposal_states WHERE final;
SELECT is(pg_temp.binding(state, 'p'), binding, state || ': the binding digest stays') FROM proposal_states JOIN bindings ON tool_call_id = state;
SELECT ok(pg_temp.kinds('p', state) ~ '^pruned', state || ': one event is left: ' || pg_temp.kinds('p', state)) FROM proposal_states WHERE final;
SELECT is((v.ok, w.ok)::text, '(t,t)', state || ': its evidence verifies, with the head from before too')
FROM proposal_states JOIN heads AS h ON h.task_id = 'p' AND h.tool_call_id = state, tool_claims.verify_evidence('p', state) AS v, tool_claims.verify_evidence('p', state, h.hash) AS w WHERE final;
SELECT is(pg_temp.answer(format($$claim('p', %L, 'tool', '{"secret": "canary"}', lease => '1 min')$$, state)), 'refused/approval_required', state || ': no claim goes around it') FROM proposal_states WHERE final AND state <> 'rejected';
SELECT is(pg_temp.answer(format($$propose('p', %L, 'tool', '[]', 'agent')$$, state)), CASE state WHEN 'rejected' THEN 'conflict/input' ELSE 'conflict/input' END, state || ': other data is a conflict') FROM proposal_states WHERE final;
SELECT is(pg_temp.answer(format($$propose('p', %L, 'tool', '{"secret": "canary"}', 'agent', operation_id => %L)$$, state, CASE state WHEN 'rejected' THEN 'op p' END)), 'existing', state || ': the same is known') FROM proposal_states WHERE final;
SELECT is(pg_temp.answer(format($$reserve('p', %L, %L, 'tool', '{"secret": "canary"}', 'agent', operation_id => %L, lease => '1 min')$$, state,
	(SELECT execution_id FROM tool_claims.proposals AS p WHERE p.task_id = 'p' AND p.tool_call_id = s.state), CASE state WHEN 'rejected' THEN 'op p' END)), 'refused/' || state, state || ': and not reserved') FROM proposal_states AS s WHERE final;
SELECT is((SELECT input::text FROM tool_claims.review('p', 'approved')), '{"secret":"canary"}', 'the approved one can still be reviewed');
SELECT is(pg_temp.value_of($$SELECT input::text FROM tool_claims.review('p', 'withdrawn')$$), 'null', 'a pruned one too, without its input');
-- forgotten
SELECT pg_temp.clock(20);
SELECT cmp_ok(tool_claims.prune('0 s', tombstones => false), '>=', 5, 'without tombstones');
SELECT pg_temp.clock(0);
SELECT is((pg_temp.proposal(state, 'p'), pg_temp.kinds('p', state))::text, CASE WHEN final THEN '(,)' ELSE format('(%s,%s)', state, (pg_temp.kinds('p', state)::text)) END, state || ': forgotten or not')
FROM proposal_states WHERE final OR state = 'pending';
SELECT is(pg_temp.answer(format($$propose('p', %L, 'other', '[]', 'agent')$$, state)), 'proposed', state || ': free for anything') FROM proposal_states WHERE final;
-- by the policy's retention
SELECT is(pg_temp.answer($$set_tool_policy('short', retention => '1 hour')$$), 'done', 'an hour');
CALL pg_temp.make_proposals('short', 'short');
SELECT is(pg_temp.proposal(state, 'short'), state, 'made: ' || state) FROM proposal_states;
SELECT pg_temp.clock(3500);
SELECT is(tool_claims.prune(), 0, 'before the hour');
SELECT pg_temp.clock(3700);
SELECT is(tool_claims.prune(), 5, 'after the hour');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.canaries('short', state) IS NULL, final, state || ': pruned by retention, or not') FROM proposal_states;
-- a retention that no calendar holds stops nobody
SELECT is(pg_temp.answer($$set_tool_policy('endless', retention => '170000000 years')$$), 'done', 'without an end');
CALL pg_temp.make('bad row', 'endless', 'completed', 'endless');
CALL pg_temp.make('bad row', 'short', 'completed', 'short');
SELECT pg_temp.clock(3700);
SELECT is(pg_temp.value_of('SELECT tool_claims.prune()'), '1', 'one bad row never stops the rest');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.value_of($$SELECT tool_claims.prune('170000000 years')$$), '0', 'nor does an age from before all time');

-- a proposal that became a claim goes with it
SELECT is(tool_claims.prune('0 s'), 1, '(the endless one, by age)');
CREATE PROCEDURE pg_temp.make_reserved(call text, state text, tool text DEFAULT 'tool')
LANGUAGE plpgsql
AS $$
DECLARE
	execution text;
BEGIN
	PERFORM tool_claims.propose('t', call, tool, '{"secret": "canary"}', 'agent', summary => 'canary');
	SELECT execution_id INTO execution FROM tool_claims.proposals WHERE task_id = 't' AND tool_call_id = call;
	PERFORM tool_claims.approve_as('ann', 't', call, pg_temp.binding(call)::tool_claims.sha256_digest, 'canary');
	PERFORM tool_claims.reserve_by_digest('t', call, execution::uuid, pg_temp.binding(call)::tool_claims.sha256_digest, lease => '10 min');
	COMMIT;
	IF state = 'completed' THEN
		PERFORM tool_claims.complete('t', call, '"canary"', 1);
	ELSIF state = 'uncertain' THEN
		PERFORM tool_claims.mark_uncertain('t', call, 1, 'canary');
	END IF;
	COMMIT;
END
$$;
DO $$
DECLARE
	s text;
BEGIN
	FOREACH s IN ARRAY ARRAY['claimed', 'completed', 'uncertain'] LOOP
		CALL pg_temp.make_reserved(s, s);
	END LOOP;
END
$$;
SELECT is(pg_temp.state('t', state) || ' ' || pg_temp.proposal(state, 't'), state || ' reserved', 'reserved and ' || state) FROM unnest(ARRAY['claimed', 'completed', 'uncertain']) AS state;
CREATE TEMPORARY TABLE reserved_heads AS SELECT * FROM tool_claims.evidence_heads() WHERE task_id = 't';
SELECT is(tool_claims.prune('0 s'), 1, 'one of them is final');
SELECT is(concat_ws(' ', pg_temp.state('t', state), pg_temp.proposal(state, 't')), CASE state WHEN 'completed' THEN 'retired' ELSE state || ' reserved' END, state || ': after prune')
FROM unnest(ARRAY['claimed', 'completed', 'uncertain']) AS state;
SELECT is(pg_temp.canaries('t', 'completed'), NULL, 'nothing is left of its content');
SELECT is((v.ok, w.ok)::text, '(t,t)', 'its evidence verifies') FROM reserved_heads AS h, tool_claims.verify_evidence('t', 'completed') AS v, tool_claims.verify_evidence('t', 'completed', h.hash) AS w WHERE h.tool_call_id = 'completed';
SELECT is(pg_temp.answer($$claim('t', 'completed', 'tool', '{"secret": "canary"}', lease => '1 min')$$), 'refused/key_retired', 'its key is retired');
SELECT is(split_part(pg_temp.answer($$propose('t', 'completed', 'tool', '{"secret": "canary"}', 'agent')$$), '/', 1), 'refused', 'for a proposal too');

-- redact
CALL pg_temp.make_proposals('r');
SELECT is(pg_temp.answer(format($$redact('r', %L, 'a wish')$$, state)), CASE WHEN final THEN 'done' ELSE 'TC003' END, state || ': redact') FROM proposal_states;
SELECT is(pg_temp.answer($$redact('r', 'none', 'a wish')$$), 'TC001', 'no such proposal');
SELECT is(pg_temp.canaries('r', state) IS NULL, final, format('%s: %s', state, CASE WHEN final THEN 'no content is left' ELSE 'untouched' END)) FROM proposal_states;
SELECT is(pg_temp.proposal(state, 'r'), state, state || ': still reads so') FROM proposal_states;
SELECT is((SELECT ok FROM tool_claims.verify_evidence('r', state)), true, state || ': its evidence verifies') FROM proposal_states;
SELECT ok(pg_temp.kinds('r', state) ~ '^proposed .*redacted$', state || ': the events stay: ' || pg_temp.kinds('r', state)) FROM proposal_states WHERE final;
SELECT is((SELECT count(*)::integer FROM tool_claims.timeline('r', state) AS line WHERE line LIKE '%canary%'), 0, state || ': nothing in the timeline') FROM proposal_states WHERE final;
SELECT is(pg_temp.answer($$redact('r', 'rejected', 'again')$$), 'done', 'redacted again');
SELECT is(pg_temp.answer($$propose('r', 'rejected', 'tool', '{"secret": "canary"}', 'agent', operation_id => 'op r')$$), 'existing', 'the same data is still known');
SELECT is(pg_temp.answer($$propose('r', 'rejected', 'tool', '[]', 'agent', operation_id => 'op r')$$), 'conflict/input', 'and other data a conflict');
CALL pg_temp.make_reserved('done', 'completed');
CALL pg_temp.make_reserved('open', 'claimed');
SELECT is(pg_temp.answer(format($$redact('t', %L, 'a wish')$$, call)), answer, call || ': redact') FROM (VALUES ('done', 'done'), ('open', 'TC003'), ('uncertain', 'TC003')) AS t (call, answer);
SELECT is(pg_temp.canaries('t', 'done'), NULL, 'a reserved one: the claim, the proposal, the votes and the events');
SELECT is((SELECT ok FROM tool_claims.verify_evidence('t', 'done')), true, 'its evidence verifies');
SELECT is(concat_ws(' ', pg_temp.state('t', 'done'), pg_temp.proposal('done', 't')), 'completed reserved', 'it reads as before');
SELECT is(pg_temp.answer(format($$reserve_by_digest('t', 'done', %L, %L, lease => '1 min')$$, (SELECT execution_id FROM tool_claims.proposals WHERE task_id = 't' AND tool_call_id = 'done'), pg_temp.binding('done'))),
	'completed/redacted', 'its execution sees that it is done');
CALL pg_temp.forget_all();

--
-- prune over gates, and evidence without a record
--

SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$expect_result('open', '2100-01-01')$$, 'done'), (2, $$expect_result('retry', '2100-01-01')$$, 'done'), (3, $$offer_result('retry', 'timed_out')$$, 'timed_out'),
	(4, $$expect_result('accepted', '2100-01-01')$$, 'done'), (5, $$offer_result('accepted', 'succeeded', '"canary"')$$, 'done'),
	(6, $$expect_result('rejected', '2100-01-01')$$, 'done'), (7, $$offer_result('rejected', 'failed', '"canary"')$$, 'failed'),
	(8, $$expect_result('overdue', tool_claims.clock() + '1 minute')$$, 'done'),
	(9, $$claim('refused', 'c', 'tool', '{}', not_after => '2000-01-01')$$, 'refused/deadline_passed')
) AS t (n, call, answer) ORDER BY n;
CREATE FUNCTION pg_temp.gate_list() RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(task_id, ' ' ORDER BY task_id) FROM tool_claims.result_gates WHERE organization = 'tap_admin' $$;
SELECT is(tool_claims.prune(), 0, 'gates have no policy');
SELECT is(tool_claims.prune('1 hour'), 0, 'none is old enough');
SELECT pg_temp.clock(1800);
SELECT is(tool_claims.prune('29 min 30 s', 1), 1, 'one of them');
SELECT is(tool_claims.prune('29 min 30 s'), 1, 'the other one that was decided');
SELECT is(pg_temp.gate_list(), 'open overdue retry', 'an overdue one counts from its deadline');
SELECT is(tool_claims.prune('28 min'), 1, 'which comes');
SELECT is(pg_temp.gate_list(), 'open retry', 'what is open stays');
SELECT pg_temp.clock(86400);
SELECT is(tool_claims.prune('0 s'), 0, 'however old it is');
SELECT is(pg_temp.verdict, 'not expected any more', 'a pruned gate') FROM (SELECT CASE (tool_claims.offer_result('accepted', 'succeeded', '"canary"')).reason WHEN 'not_expected' THEN 'not expected any more' END AS verdict) AS pg_temp;
SELECT is(pg_temp.kinds('refused', 'c'), 'refused', 'evidence without a record stays beside tombstones');
SELECT is(pg_temp.answer($$prune('0 s', tombstones => false)$$), 'done', 'forget all');
SELECT is(pg_temp.kinds('refused', 'c'), NULL, 'then it goes');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$prune('-1 s')$$, '22023'), ($$prune('0 s', NULL)$$, '22004'), ($$prune('0 s', -1)$$, '22023'), ($$prune('0 s', 1, NULL)$$, '22004'), ($$sweep(NULL)$$, '22004'), ($$sweep(-1)$$, '22023'),
	($$redact(NULL, 'c', 'x')$$, '22004'), ($$redact('t', NULL, 'x')$$, '22004'), ($$redact('t', 'c', NULL)$$, '22004'), ($$accept_recovery(NULL)$$, '22004')
) AS t (call, answer);
CALL pg_temp.forget_all();

--
-- progress, as others see it
--

SELECT count(tool_claims.complete('progress', n::text, '1')) AS made
FROM (SELECT n, tool_claims.claim('progress', n::text, 'tool', '{}') FROM generate_series(1, 350) AS n OFFSET 0) AS t \gset
SELECT count(tool_claims.claim('sweep', n::text, 'tool', '{}', lease => '1 microsecond')) AS made FROM generate_series(1, 250) AS n \gset
CREATE TEMPORARY TABLE seen (query text);
CREATE FUNCTION pg_temp.look_at_activity() RETURNS trigger LANGUAGE plpgsql
AS $$ BEGIN PERFORM pg_stat_clear_snapshot(); INSERT INTO seen SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid(); RETURN new; END $$;
BEGIN;
CREATE TRIGGER regress_tap BEFORE INSERT ON tool_claims.events FOR EACH ROW EXECUTE FUNCTION pg_temp.look_at_activity();
CREATE TRIGGER regress_tap BEFORE UPDATE ON tool_claims.claim_records FOR EACH ROW EXECUTE FUNCTION pg_temp.look_at_activity();
SELECT tool_claims.sweep();
SELECT tool_claims.prune('0 s');
SELECT pg_stat_clear_snapshot();
SELECT query AS after FROM pg_stat_activity WHERE pid = pg_backend_pid() \gset
DROP TRIGGER regress_tap ON tool_claims.events;
DROP TRIGGER regress_tap ON tool_claims.claim_records;
COMMIT;
SELECT is((SELECT string_agg(DISTINCT query, ', ' ORDER BY query) FROM seen),
	'tool_claims.prune(): 0 of 350 rows, tool_claims.prune(): 100 of 350 rows, tool_claims.prune(): 200 of 350 rows, tool_claims.prune(): 300 of 350 rows, '
	'tool_claims.sweep(): 0 of 250 rows, tool_claims.sweep(): 100 of 250 rows, tool_claims.sweep(): 200 of 250 rows', 'pg_stat_activity shows how far they are');
SELECT ok(:'after'::text LIKE 'SELECT query AS after%', 'and the statement again after that');
CALL pg_temp.forget_all();

--
-- the timeline: one line an event, aligned
--

SELECT is(pg_temp.answer($$add_approver('ann')$$), 'done', 'ann');
CALL pg_temp.make_reserved('drawn', 'uncertain');
SELECT is(pg_temp.answer($$reconcile('t', 'drawn', 1, 'occurred', '{"seen by": "ann"}')$$), 'completed', 'reconciled');
CREATE TEMPORARY TABLE drawing AS SELECT line, n FROM tool_claims.timeline('t', 'drawn') WITH ORDINALITY AS t (line, n);
SELECT is((SELECT line FROM drawing WHERE n = 1), 'task t, call drawn: tool tool, completed, attempt 1', 'what it is about');
SELECT is((SELECT string_agg((regexp_match(line, '^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} .{16} (\w+)'))[1], ' ' ORDER BY n) FROM drawing WHERE n > 1 AND line !~ ' acquired '),
	(SELECT string_agg(kind, ' ' ORDER BY seq) FROM tool_claims.evidence('t', 'drawn')), 'one line an event, the kinds under each other');
SELECT is((SELECT count(DISTINCT strpos(line, 'postgres'))::integer FROM drawing WHERE line LIKE '%postgres%'), 1, 'and who did it');

--
-- duties: exactly what each may
--

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service', 'regress_tap_reconciler', 'regress_tap_auditor',
	'regress_tap_administrator', 'regress_tap_backup');
CREATE TEMPORARY TABLE duties (duty text);
INSERT INTO duties VALUES ('worker'), ('proposer'), ('approver'), ('approval_service'), ('reconciler'), ('auditor'), ('administrator'), ('backup');
SELECT is((SELECT string_agg(DISTINCT duty, ' ' ORDER BY duty) FROM tool_claims.duty_privileges WHERE duty <> '*'), (SELECT string_agg(duty, ' ' ORDER BY duty) FROM duties), 'eight duties');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', 'regress_tap_' || duty, duty)), 'done', 'granted: ' || duty) FROM duties;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', 'regress_tap_worker', duty)), '22023', 'no duty: ' || duty) FROM unnest(ARRAY['king', '*', '', 'Worker']) AS duty;
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES ($$grant_duty(NULL, 'worker')$$, '22004'), ($$grant_duty('regress_tap_worker', NULL)$$, '22004'), ($$revoke_duty(NULL, 'worker')$$, '22004'), ($$revoke_duty('regress_tap_worker', NULL)$$, '22004'),
	($$grant_duty('no_such_role', 'worker')$$, '42704'), ($$grant_duty(4294967295, 'worker')$$, '42704'), ($$revoke_duty('regress_tap_worker', 'king')$$, '22023')) AS t (call, answer);
CREATE TEMPORARY TABLE may (name text, duties text);
INSERT INTO may VALUES
	('claim', 'worker'), ('dispatch', 'worker'), ('renew', 'worker'), ('complete', 'worker'), ('fail', 'worker'), ('release', 'worker'), ('mark_uncertain', 'reconciler worker'), ('report_late', 'worker'),
	('assert_claim', 'worker'), ('current_claim', 'worker'), ('require_claim', 'worker'), ('execute', 'worker'), ('reserve', 'worker'), ('reserve_by_digest', 'worker'),
	('status', 'proposer reconciler worker'), ('find_claims', 'reconciler worker'),
	('expect_result', 'worker'), ('offer_result', 'worker'), ('gate', 'worker'), ('require_accepted', 'worker'), ('mark_content', 'worker'), ('verify_mark', 'worker'),
	('propose', 'proposer'), ('withdraw', 'proposer'),
	('inbox_for', 'approval_service approver'), ('review', 'approval_service approver'), ('approve', 'approval_service approver'), ('reject', 'approval_service approver'), ('revoke', 'approval_service approver'),
	('approve_as', 'approval_service'), ('reject_as', 'approval_service'), ('revoke_as', 'approval_service'),
	('reconcile', 'reconciler'), ('evidence', 'auditor reconciler'), ('timeline', 'auditor reconciler'), ('verify_evidence', 'auditor'), ('evidence_heads', 'auditor'), ('doctor', 'administrator auditor'),
	('set_tool_policy', 'administrator'), ('drop_tool_policy', 'administrator'), ('add_approver', 'administrator'), ('remove_approver', 'administrator'),
	('add_mark_key', 'administrator'), ('retire_mark_key', 'administrator'), ('revoke_mark_key', 'administrator'), ('sweep', 'administrator'), ('prune', 'administrator'), ('redact', 'administrator'),
	('grant_duty', 'administrator'), ('revoke_duty', 'administrator'), ('accept_recovery', 'administrator');
CREATE FUNCTION pg_temp.who(privilege text, object oid) RETURNS text LANGUAGE sql
AS $$
	SELECT coalesce(string_agg(duty, ' ' ORDER BY duty), '') FROM duties
	WHERE CASE privilege WHEN 'EXECUTE' THEN has_function_privilege('regress_tap_' || duty, object, privilege) ELSE has_table_privilege('regress_tap_' || duty, object, privilege) END
$$;
SELECT is((SELECT string_agg(pg_temp.who('EXECUTE', p.oid), '; ') FROM pg_proc AS p WHERE p.pronamespace = 'tool_claims'::regnamespace AND p.proname = may.name), duties, 'who may: ' || name) FROM may;
-- all other functions are of the value types and of the views, and change nothing
SELECT is((SELECT string_agg(DISTINCT pg_temp.who('EXECUTE', p.oid), '; ') FROM pg_proc AS p WHERE p.pronamespace = 'tool_claims'::regnamespace
		AND p.proname ~ '^(canonical_json|sha256_digest)_|^(digest|is_portable)$'), (SELECT string_agg(duty, ' ' ORDER BY duty) FROM duties), 'every duty has the value types');
SELECT is((SELECT string_agg(p.proname, ' ' ORDER BY p.proname) FROM pg_proc AS p WHERE p.pronamespace = 'tool_claims'::regnamespace AND p.proname NOT IN (SELECT name FROM may)
		AND p.proname !~ '^(canonical_json|sha256_digest)_|^(digest|is_portable)$' AND pg_temp.who('EXECUTE', p.oid) NOT IN ('', (SELECT string_agg(duty, ' ' ORDER BY duty) FROM duties))), NULL,
	'what the views need, every duty has or none');
CREATE TEMPORARY TABLE may_read (name text, duties text);
INSERT INTO may_read VALUES ('claims', 'auditor'), ('proposals', 'auditor'), ('inbox', 'approval_service approver auditor'), ('ready', 'auditor worker'), ('gates', 'auditor'), ('attention', 'administrator auditor reconciler'),
	('stats', 'auditor'), ('tool_policies', 'administrator auditor'), ('registered_approvers', 'administrator auditor'),
	('registered_mark_keys', 'administrator auditor'), ('granted_duties', 'administrator auditor'), ('record_readings', '');
SELECT is(pg_temp.who('SELECT', format('tool_claims.%I', name)::regclass), duties, 'who may read: ' || name) FROM may_read;
SELECT is(pg_temp.who('SELECT', c.oid), 'backup', 'who may read the table ' || c.relname) FROM pg_class AS c WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind = 'r';
SELECT is((SELECT string_agg(c.relname, ' ') FROM pg_class AS c WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind = 'v' AND c.relname NOT IN (SELECT name FROM may_read)), NULL, 'no other view');
SELECT is((SELECT string_agg(format('%s %s %s', privilege, c.relname, pg_temp.who(privilege, c.oid)), ', ') FROM pg_class AS c, unnest(ARRAY['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
	WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind IN ('r', 'v') AND pg_temp.who(privilege, c.oid) <> ''), NULL, 'no duty can write directly');
SELECT is((SELECT string_agg(duty, ' ') FROM duties WHERE NOT has_schema_privilege('regress_tap_' || duty, 'tool_claims', 'USAGE') OR has_schema_privilege('regress_tap_' || duty, 'tool_claims', 'CREATE')), NULL, 'USAGE on the schema');
-- tried: 42501 or not
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || c.call, 'regress_tap_' || d.duty) <> '42501', d.duty = ANY (string_to_array(coalesce(m.duties, r.duties), ' ')), format('%s: %s', d.duty, c.call))
FROM duties AS d, calls AS c LEFT JOIN may AS m ON m.name = split_part(c.call, '(', 1) LEFT JOIN may_read AS r ON r.name = split_part(c.call, '(', 1)
WHERE c.call NOT LIKE 'execute%';
-- (execute works as the calling role, which has no right on this session's temporary function)
-- revoked, nothing is left
SELECT is(pg_temp.answer(format('revoke_duty(%L, %L)', 'regress_tap_' || duty, duty)), 'done', 'revoked: ' || duty) FROM duties;
SELECT is((SELECT string_agg(DISTINCT pg_temp.who('EXECUTE', p.oid), '; ') FROM pg_proc AS p WHERE p.pronamespace = 'tool_claims'::regnamespace), '', 'no function');
SELECT is((SELECT string_agg(DISTINCT pg_temp.who('SELECT', c.oid), '; ') FROM pg_class AS c WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind IN ('r', 'v')), '', 'no table');
SELECT is((SELECT string_agg(duty, ' ') FROM duties WHERE has_schema_privilege('regress_tap_' || duty, 'tool_claims', 'USAGE')), NULL, 'no schema');

SELECT * FROM finish();
CALL pg_temp.forget_all();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_proposer', 'regress_tap_approver', 'regress_tap_approval_service', 'regress_tap_reconciler', 'regress_tap_auditor',
	'regress_tap_administrator', 'regress_tap_backup');
