-- gates.sql: results of tasks: every status at every gate, checks, marks,
-- correlation, and what require_accepted lets through.

\set organization tap_gates
\ir include/helpers.psql

SELECT plan(580);

CREATE PROCEDURE pg_temp.forget_gates()
LANGUAGE sql
AS $$
	DELETE FROM tool_claims.result_gates WHERE organization LIKE 'tap_gates%';
	DELETE FROM tool_claims.mark_keys WHERE organization LIKE 'tap_gates%';
$$;
CALL pg_temp.forget_gates();

-- what a call about a gate answers: verdict, with the reason behind a slash
CREATE FUNCTION pg_temp.verdict(call text, as_role text DEFAULT NULL)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	IF as_role IS NOT NULL THEN
		PERFORM set_config('role', as_role, true);
	END IF;
	EXECUTE 'SELECT concat_ws(''/'', verdict, reason) FROM tool_claims.' || call INTO answer;
	IF as_role IS NOT NULL THEN
		PERFORM set_config('role', 'none', true);
	END IF;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
-- a gate as it is stored
CREATE FUNCTION pg_temp.gate_image(task text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT concat_ws(' ', g.ctid, g.xmin, g.*::text) FROM tool_claims.result_gates AS g
	WHERE g.organization = current_setting('tool_claims.organization') AND g.task_id = task
$$;
-- what an offer left
CREATE FUNCTION pg_temp.offered(task text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT concat_ws(' ', offered_status, offered_result, offered_content) FROM tool_claims.result_gates AS g
	WHERE g.organization = current_setting('tool_claims.organization') AND g.task_id = task
$$;
CREATE FUNCTION pg_temp.accepted(task text)
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	RETURN tool_claims.require_accepted(task)::text;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
DROP SCHEMA IF EXISTS regress_tap_checks CASCADE;
CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_other', 'regress_tap_deputy');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, 'worker')), 'done', role || ' is a worker')
FROM unnest(ARRAY['regress_tap_worker', 'regress_tap_other', 'regress_tap_deputy']) AS role;
GRANT regress_tap_worker TO regress_tap_deputy;
CREATE SCHEMA regress_tap_checks;
GRANT ALL ON SCHEMA regress_tap_checks TO PUBLIC;
CREATE FUNCTION regress_tap_checks.good(json) RETURNS text LANGUAGE sql AS 'SELECT NULL::text';
CREATE FUNCTION regress_tap_checks.bad(json) RETURNS text LANGUAGE sql AS $$ SELECT 'bad' $$;

--
-- every status at every gate
--

CREATE TEMPORARY TABLE states (state text PRIMARY KEY, check_function text, steps text[], late boolean);
INSERT INTO states VALUES
	('none', NULL, '{}', false),
	('pending', NULL, '{}', false),
	('retry', NULL, ARRAY['failed_retryable'], false),
	('retried twice', NULL, ARRAY['failed_retryable', 'timed_out'], false),
	('accepted', NULL, ARRAY['succeeded'], false),
	('rejected', 'regress_tap_checks.bad(json)', ARRAY['succeeded'], false),
	('rejected by status', NULL, ARRAY['cancelled'], false),
	('late pending', NULL, '{}', true),
	('late retry', NULL, ARRAY['timed_out'], true),
	('late accepted', NULL, ARRAY['succeeded'], true),
	('late rejected', 'regress_tap_checks.bad(json)', ARRAY['succeeded'], true);
CREATE TEMPORARY TABLE offers (n integer, state text, status text, result text, answer text);
INSERT INTO offers (n, state, status, result, answer)
SELECT row_number() OVER (), s.state, t.status, r.result,
	CASE
		WHEN s.state = 'none' THEN 'rejected/not_expected'
		WHEN s.state ~ 'rejected by status' THEN 'rejected/cancelled'
		WHEN s.state ~ 'rejected' THEN 'rejected/bad'
		WHEN s.state ~ 'accepted' THEN
			CASE WHEN t.status = 'succeeded' AND r.result = '{"a": 1}' THEN 'accepted' ELSE 'rejected/already_accepted' END
		WHEN s.late THEN 'rejected/deadline_passed'
		WHEN t.status IN ('failed_retryable', 'timed_out') THEN 'retry/' || t.status
		WHEN t.status <> 'succeeded' THEN 'rejected/' || t.status
		WHEN r.result IS NULL THEN 'rejected/no_result'
		ELSE 'accepted'
	END
FROM states AS s, unnest(enum_range(NULL::tool_claims.task_status)) AS t (status),
	unnest(ARRAY['{"a": 1}', '{"a": 2}', NULL]) AS r (result);
SELECT is((SELECT count(*)::integer FROM offers), 11 * 6 * 3, 'so many');
CREATE TEMPORARY TABLE given (n integer, before text, image text, answer text, after text, image_after text, accepted text, offered text);
DO $$
DECLARE
	o record;
	s record;
	step text;
	task text;
BEGIN
	FOR o IN SELECT * FROM offers ORDER BY n LOOP
		SELECT * INTO s FROM states WHERE state = o.state;
		task := 'offer ' || o.n;
		PERFORM pg_temp.clock(0);
		IF s.state <> 'none' THEN
			PERFORM tool_claims.expect_result(task, clock_timestamp() + '1 hour', s.check_function::regprocedure);
		END IF;
		FOREACH step IN ARRAY s.steps LOOP
			PERFORM tool_claims.offer_result(task, step::tool_claims.task_status, '{"a": 1}');
		END LOOP;
		PERFORM pg_temp.clock(CASE WHEN s.late THEN 3601 ELSE 0 END);
		INSERT INTO given (n, before, image) VALUES (o.n, pg_temp.verdict(format('gate(%L)', task)), pg_temp.gate_image(task));
		UPDATE given SET answer = pg_temp.verdict(format('offer_result(%L, %L, %L)', task, o.status, o.result)) WHERE n = o.n;
		UPDATE given SET after = pg_temp.verdict(format('gate(%L)', task)), image_after = pg_temp.gate_image(task),
			accepted = pg_temp.accepted(task), offered = pg_temp.offered(task)
		WHERE n = o.n;
	END LOOP;
	PERFORM pg_temp.clock(0);
END
$$;
SELECT is(g.answer, o.answer, format('%s: %s with %s', o.state, o.status, coalesce(o.result, 'no result')))
FROM offers AS o JOIN given AS g USING (n) ORDER BY n;
SELECT is((SELECT string_agg(DISTINCT concat_ws(' ', o.state, g.before), ', ' ORDER BY concat_ws(' ', o.state, g.before)) FROM offers AS o JOIN given AS g USING (n)),
	'accepted accepted, late accepted accepted, late pending rejected/deadline_passed, late rejected rejected/bad, late retry rejected/deadline_passed, '
	'none, pending pending, rejected by status rejected/cancelled, rejected rejected/bad, retried twice retry/timed_out, retry retry/failed_retryable',
	'how they read before');
SELECT is((SELECT string_agg(o.n::text, ', ') FROM offers AS o JOIN given AS g USING (n)
	WHERE o.state ~ 'accepted|rejected' AND (g.image IS DISTINCT FROM g.image_after OR g.before IS DISTINCT FROM g.after)), NULL,
	'a closed gate does not change by a byte');
SELECT is((SELECT string_agg(o.n::text, ', ') FROM offers AS o JOIN given AS g USING (n)
	WHERE o.state !~ 'accepted|rejected|none' AND (g.image IS NOT DISTINCT FROM g.image_after OR g.after IS DISTINCT FROM g.answer)), NULL,
	'an open one reads as it answered');
SELECT is((SELECT string_agg(o.n::text, ', ') FROM offers AS o JOIN given AS g USING (n)
	WHERE o.state !~ 'accepted|rejected|none' AND g.offered IS DISTINCT FROM concat_ws(' ', o.status, o.result)), NULL,
	'and keeps what was offered');
SELECT is((SELECT string_agg(o.n::text, ', ') FROM offers AS o JOIN given AS g USING (n)
	WHERE g.accepted IS DISTINCT FROM CASE WHEN g.after = 'accepted' THEN CASE WHEN o.state ~ 'accepted' THEN '{"a": 1}' ELSE o.result END ELSE 'TC011' END), NULL,
	'require_accepted gives what was accepted, and raises at all others');
SELECT is((SELECT count(*)::integer FROM tool_claims.gates), (SELECT count(*)::integer FROM offers WHERE state <> 'none'), 'no offer makes a gate');
-- the view reads as gate() does, also when time passes
SELECT is((SELECT string_agg(g.task_id, ', ') FROM tool_claims.gates AS g
	WHERE concat_ws('/', g.verdict, g.reason) <> pg_temp.verdict(format('gate(%L)', g.task_id))), NULL, 'view and function agree');
SELECT pg_temp.clock(7200);
SELECT is((SELECT string_agg(g.task_id, ', ') FROM tool_claims.gates AS g
	WHERE concat_ws('/', g.verdict, g.reason) <> pg_temp.verdict(format('gate(%L)', g.task_id))), NULL, 'later too');
SELECT is((SELECT string_agg(DISTINCT verdict::text, ', ') FROM tool_claims.gates WHERE verdict IN ('pending', 'retry')), NULL, 'none is open any more');
SELECT is((SELECT count(*)::integer FROM tool_claims.attention WHERE kind = 'gate_overdue'),
	(SELECT count(*)::integer FROM tool_claims.result_gates WHERE organization = 'tap_gates' AND decided_at IS NULL), 'attention shows those that nobody decided');
SELECT pg_temp.clock(0);
-- and back: reading wrote nothing
SELECT isnt((SELECT count(*)::integer FROM tool_claims.gates WHERE verdict = 'retry'), 0, 'reading wrote nothing');

--
-- expecting
--

SELECT is(pg_temp.verdict(call), answer, call)
FROM (VALUES
	(1, $$expect_result(NULL, '2100-01-01')$$, '22004'),
	(2, $$expect_result('', '2100-01-01')$$, '22023'),
	(3, $$expect_result(repeat('x', 513), '2100-01-01')$$, '22023'),
	(4, $$expect_result(repeat('x', 512), '2100-01-01')$$, 'pending'),
	(5, $$expect_result('e', NULL)$$, '22004'),
	(6, $$expect_result('e', '2100-01-01', correlation => NULL)$$, '22004'),
	(7, $$expect_result('e', '2100-01-01', correlation => '[]')$$, '22023'),
	(8, $$expect_result('e', '2100-01-01', correlation => '1')$$, '22023'),
	(9, $$expect_result('e', '2100-01-01', correlation => 'null')$$, '22023'),
	(10, $$expect_result('e', '2100-01-01', mark_context => repeat('x', 513))$$, '22023'),
	(11, $$expect_result('e', '2100-01-01', 'no_such(json)')$$, '42883'),
	(12, $$expect_result('e', '2100-01-01', 'pg_catalog.json_array_length(json)')$$, '22023'),
	(13, $$expect_result('e', '2100-01-01', 'pg_catalog.jsonb_typeof(jsonb)')$$, '22023'),
	(14, $$expect_result('e', '2100-01-01', 'pg_catalog.json_array_elements_text(json)')$$, '22023'),
	(15, $$expect_result('e', '2100-01-01', 'pg_catalog.json_object_field_text(json,text)')$$, '22023'),
	(16, $$expect_result('e', '2100-01-01', 'pg_catalog.upper(text)')$$, '22023'),
	(17, $$expect_result('e past', '2000-01-01')$$, 'rejected/deadline_passed'),
	(18, $$offer_result('e past', 'succeeded', '1')$$, 'rejected/deadline_passed'),
	(19, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"a": 1, "b": 2}', 'context')$$, 'pending'),
	(20, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"b": 2, "a": 1.0}', 'context')$$, 'pending'),
	(21, $$expect_result('e', '2100-01-01 00:00:00.000001', 'regress_tap_checks.good(json)', '{"a": 1, "b": 2}', 'context')$$, '22023'),
	(22, $$expect_result('e', '2100-01-01', 'regress_tap_checks.bad(json)', '{"a": 1, "b": 2}', 'context')$$, '22023'),
	(23, $$expect_result('e', '2100-01-01', NULL, '{"a": 1, "b": 2}', 'context')$$, '22023'),
	(24, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"a": 1}', 'context')$$, '22023'),
	(25, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"a": 1, "b": 2}', 'another')$$, '22023'),
	(26, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"a": 1, "b": 2}', '')$$, '22023'),
	(27, $$expect_result('e', '2100-01-01', 'regress_tap_checks.good(json)', '{"a": 1, "b": 2}')$$, '22023'),
	(28, $$expect_result('e', '2100-01-01')$$, '22023'),
	(29, $$expect_result('e 2', '2100-01-01')$$, 'pending'),
	(30, $$expect_result('e 2', '2100-01-01', mark_context => '')$$, '22023'),
	(31, $$expect_result('e 2', '2100-01-01', 'regress_tap_checks.good(json)')$$, '22023'),
	(32, $$offer_result('e 2', 'timed_out', correlation => '{"late": 1}')$$, 'retry/timed_out'),
	(33, $$expect_result('e 2', '2100-01-01')$$, 'retry/timed_out'),
	(34, $$expect_result('e 2', '2100-01-01', correlation => '{"late": 1}')$$, '22023'),
	(35, $$offer_result('e 2', 'succeeded', '1')$$, 'accepted'),
	(36, $$expect_result('e 2', '2100-01-01')$$, 'accepted'),
	(37, $$expect_result('e 2', '2100-01-02')$$, '22023'),
	(38, $$expect_result('e 3', '2100-01-01')$$, 'pending'),
	(39, $$offer_result('e 3', 'filtered')$$, 'rejected/filtered'),
	(40, $$expect_result('e 3', '2100-01-01')$$, 'rejected/filtered'),
	(41, $$expect_result('e 3', '2100-01-02')$$, '22023'),
	(42, $$offer_result(NULL, 'succeeded', '1')$$, '22004'),
	(43, $$offer_result('', 'succeeded', '1')$$, '22023'),
	(44, $$offer_result('e', NULL, '1')$$, '22004'),
	(45, $$offer_result('e', 'done', '1')$$, '22P02'),
	(46, $$offer_result('e', 'succeeded', '{')$$, '22P02'),
	(47, $$offer_result('e', 'succeeded', '1', correlation => NULL)$$, '22004'),
	(48, $$offer_result('e', 'succeeded', '1', correlation => '[1]')$$, '22023'),
	(49, $$gate(NULL)$$, '22004'),
	(50, $$gate('')$$, '22023'),
	(51, $$gate('none')$$, NULL)
) AS t (n, call, answer) ORDER BY n;
SELECT is(pg_temp.accepted(NULL), '22004', 'require_accepted of NULL');
SELECT is(pg_temp.accepted(''), '22023', 'of an empty id');
SELECT is((deadline, correlation)::text, $$(,"{""x"": 1}")$$, 'not expected: no deadline, the correlation of the offer')
FROM tool_claims.offer_result('none', 'succeeded', '1', correlation => '{"x": 1}');
SELECT is(pg_temp.gate_image('none'), NULL, 'and no gate');
SELECT is((verdict, reason, deadline = '2100-01-01', correlation)::text, $$(pending,,t,"{""a"": 1, ""b"": 2}")$$, 'the gate stayed what it was')
FROM tool_claims.gate('e');
SELECT is(pg_temp.state_of('BEGIN; ROLLBACK'), '0A000', '(a function cannot end a transaction)');
-- in one transaction, and gone with it
BEGIN;
SELECT is(pg_temp.verdict($$expect_result('in one', '2100-01-01')$$), 'pending', 'expected');
SELECT is(pg_temp.verdict($$offer_result('in one', 'succeeded', '1')$$), 'accepted', 'offered');
SELECT is(pg_temp.accepted('in one'), '1', 'accepted');
ROLLBACK;
SELECT is(pg_temp.verdict($$gate('in one')$$), NULL, 'rolled back');
-- read only
BEGIN READ ONLY;
SELECT is(pg_temp.verdict($$expect_result('e 2', '2100-01-01')$$), '25006', 'read only: expect_result');
SELECT is(pg_temp.verdict($$offer_result('e 2', 'succeeded', '1')$$), '25006', 'offer_result');
SELECT is(pg_temp.verdict($$gate('e 2')$$), 'accepted', 'gate works');
SELECT is(pg_temp.accepted('e 2'), '1', 'require_accepted too');
ROLLBACK;

--
-- same or different after acceptance
--

SELECT is(pg_temp.verdict(format($$expect_result(%L, '2100-01-01')$$, 'same ' || n)), 'pending', 'expected: ' || stored) FROM (VALUES
	(1, '{"a": 1, "b": [1, 2]}'), (2, '1'), (3, '"1"'), (4, 'null'), (5, '{"a": 1, "a": 2}'), (6, '9007199254740993'), (7, '"\u00e9"')) AS t (n, stored);
SELECT is(pg_temp.verdict(format('offer_result(%L, ''succeeded'', %L)', 'same ' || t.n, result)), answer, format('%s: %s', t.n, result))
FROM (VALUES
	(1, 1, '{"a": 1, "b": [1, 2]}', 'accepted'),
	(1, 2, '{"a": 1, "b": [1, 2]}', 'accepted'),
	(1, 3, '{ "b":[1,2.0], "a":1e0 }', 'accepted'),
	(1, 4, '{"a": 1, "b": [2, 1]}', 'rejected/already_accepted'),
	(1, 5, '{"a": "1", "b": [1, 2]}', 'rejected/already_accepted'),
	(1, 6, '{"a": 1, "b": [1, 2], "c": null}', 'rejected/already_accepted'),
	(1, 7, '{"A": 1, "b": [1, 2]}', 'rejected/already_accepted'),
	(1, 8, '{"a": 1, "b": [1, 2]}', 'accepted'),
	(2, 1, '1', 'accepted'), (2, 2, '1.0', 'accepted'), (2, 3, '"1"', 'rejected/already_accepted'), (2, 4, '1.0000000000000001', 'rejected/already_accepted'),
	(3, 1, '"1"', 'accepted'), (3, 2, '"\u0031"', 'accepted'), (3, 3, '1', 'rejected/already_accepted'),
	(4, 1, 'null', 'accepted'), (4, 2, ' null ', 'accepted'), (4, 3, '{}', 'rejected/already_accepted'),
	(5, 1, '{"a": 1, "a": 2}', 'accepted'), (5, 2, '{"a": 1, "a": 2}', 'accepted'), (5, 3, '{"a": 2}', 'rejected/already_accepted'),
	(5, 4, '{"a": 1, "a": 3}', 'rejected/already_accepted'),
	(6, 1, '9007199254740993', 'accepted'), (6, 2, '9007199254740992', 'rejected/already_accepted'), (6, 3, '9007199254740993.0', 'accepted'),
	(7, 1, '"\u00e9"', 'accepted'), (7, 2, '"é"', 'accepted'), (7, 3, E'"e\u0301"', 'rejected/already_accepted')
) AS t (n, step, result, answer) ORDER BY t.n, step;
SELECT is(pg_temp.accepted('same ' || n), stored, 'byte for byte: ' || stored) FROM (VALUES
	(1, '{"a": 1, "b": [1, 2]}'), (2, '1'), (3, '"1"'), (4, 'null'), (5, '{"a": 1, "a": 2}'), (6, '9007199254740993'), (7, '"\u00e9"')) AS t (n, stored);
SELECT is(pg_temp.verdict($$offer_result('same 1', 'succeeded')$$), 'rejected/already_accepted', 'nothing is another result');
SELECT is((SELECT correlation::text FROM tool_claims.offer_result('same 1', 'succeeded', '0', correlation => '{"x": 1}')), '{}', 'its correlation counts for nothing');
SELECT is((SELECT correlation::text FROM tool_claims.offer_result('same 1', 'succeeded', '{"a": 1, "b": [1, 2]}', correlation => '{"x": 1}')), '{}', 'that of the same neither');
SELECT is(pg_temp.verdict($$expect_result('large', '2100-01-01')$$), 'pending', 'a large one');
SELECT is(pg_temp.verdict($$offer_result('large', 'succeeded', to_json(repeat('x', 20 * 1024 * 1024)))$$), 'accepted', 'of 20 MB');
SELECT is(length(pg_temp.accepted('large')), 20 * 1024 * 1024 + 2, 'comes out again');
SELECT is(pg_temp.verdict($$offer_result('large', 'succeeded', to_json(repeat('x', 20 * 1024 * 1024 - 1) || 'y'))$$), 'rejected/already_accepted', 'one changed character');
DELETE FROM tool_claims.result_gates WHERE organization = 'tap_gates' AND task_id = 'large';
SELECT is(pg_temp.verdict($$expect_result('deep', '2100-01-01')$$), 'pending', 'a deep one');
SELECT is(pg_temp.verdict(format('offer_result(''deep'', ''succeeded'', %L)', repeat('[', 3000) || repeat(']', 3000))), 'accepted', 'of 3000 levels');
SELECT is(pg_temp.verdict(format('offer_result(''deep'', ''succeeded'', %L)', repeat('[', 3000) || repeat(']', 3000))), 'accepted', 'is the same');
SELECT is(pg_temp.verdict(format('offer_result(''deep'', ''succeeded'', %L)', repeat('[', 2999) || repeat(']', 2999))), 'rejected/already_accepted', 'and not another');

--
-- correlation: the offer's over the expectation's
--

SELECT is(pg_temp.verdict($$expect_result('c', '2100-01-01', correlation => '{"trace": "t", "n": {"a": 1, "b": 2}, "l": [1]}')$$), 'pending', 'expected');
SELECT is((SELECT correlation::text FROM tool_claims.offer_result('c', 'timed_out', correlation => offered::jsonb)), merged, 'offered: ' || offered)
FROM (VALUES
	(1, '{}', '{"l": [1], "n": {"a": 1, "b": 2}, "trace": "t"}'),
	(2, '{"span": 1}', '{"l": [1], "n": {"a": 1, "b": 2}, "span": 1, "trace": "t"}'),
	(3, '{"trace": "other"}', '{"l": [1], "n": {"a": 1, "b": 2}, "trace": "other"}'),
	(4, '{"n": {"c": 3}}', '{"l": [1], "n": {"c": 3}, "trace": "t"}'),
	(5, '{"l": [2]}', '{"l": [2], "n": {"a": 1, "b": 2}, "trace": "t"}'),
	(6, '{"trace": null}', '{"l": [1], "n": {"a": 1, "b": 2}, "trace": null}')
) AS t (n, offered, merged) ORDER BY n;
SELECT is((SELECT correlation::text FROM tool_claims.gate('c')), '{"l": [1], "n": {"a": 1, "b": 2}, "trace": null}', 'gate() has that of the last offer');
SELECT is((SELECT correlation::text FROM tool_claims.gates WHERE task_id = 'c'), '{"l": [1], "n": {"a": 1, "b": 2}, "trace": null}', 'the view too');
SELECT is(pg_temp.verdict($$expect_result('c', '2100-01-01', correlation => '{"trace": "t", "n": {"a": 1, "b": 2}, "l": [1]}')$$), 'retry/timed_out', 'the expectation is the same still');
SELECT is(pg_temp.verdict($$offer_result('c', 'filtered', '{"secret": "canary"}', content => 'canary', correlation => '{"order": 7}')$$), 'rejected/filtered', 'filtered');
SELECT ok(pg_temp.error_detail($$SELECT tool_claims.require_accepted('c')$$) LIKE '%' || word || '%', 'DETAIL of TC011 names ' || word)
FROM unnest(ARRAY['rejected', 'filtered', '"order": 7', '"trace": "t"']) AS word;
SELECT ok(pg_temp.error_text($$SELECT tool_claims.require_accepted('c')$$) NOT LIKE '%canary%', 'and not what was offered');
SELECT is(pg_temp.error_detail($$SELECT tool_claims.require_accepted('none')$$) ~ 'not_expected', true, 'not_expected too');
SELECT is(pg_temp.error_detail($$SELECT tool_claims.require_accepted('e')$$) ~ 'pending', true, 'and pending');
SELECT is((SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = 'tool_claims.gates'::regclass AND attname IN ('result', 'offered_result', 'offered_content')),
	NULL, 'the view gates has no result');

--
-- checks
--

CREATE FUNCTION regress_tap_checks.of_three(json, task_id text, correlation jsonb) RETURNS text LANGUAGE sql
AS $$ SELECT concat_ws(' | ', $1, task_id, correlation) $$;
CREATE FUNCTION regress_tap_checks.amount(json, task_id text, correlation jsonb) RETURNS text LANGUAGE sql
AS $$ SELECT 'over the limit' WHERE ($1 ->> 'amount')::numeric > (correlation ->> 'limit')::numeric $$;
CREATE FUNCTION regress_tap_checks.empty(json) RETURNS text LANGUAGE sql AS $$ SELECT '' $$;
CREATE FUNCTION regress_tap_checks.raising(json) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN RAISE EXCEPTION 'the message' USING DETAIL = 'the detail', ERRCODE = $1 ->> 'code'; END $$;
CREATE FUNCTION regress_tap_checks.dividing(json) RETURNS text LANGUAGE sql AS $$ SELECT (1 / ($1 ->> 'by')::integer)::text WHERE false OR 1 / ($1 ->> 'by')::integer = 9 $$;
CREATE FUNCTION regress_tap_checks.claiming(json) RETURNS text LANGUAGE sql
AS $$ SELECT outcome::text FROM tool_claims.claim('by a check', 'c', 'tool', '{}') $$;
CREATE FUNCTION regress_tap_checks.offering(json) RETURNS text LANGUAGE sql
AS $$ SELECT verdict::text FROM tool_claims.offer_result('by a check', 'succeeded', '1') $$;
CREATE FUNCTION regress_tap_checks.who(json) RETURNS text LANGUAGE sql
AS $$ SELECT format('%s %s', current_user, current_setting('search_path')) $$;
CREATE FUNCTION regress_tap_checks.setting_role(json) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN SET ROLE postgres; RETURN NULL; END $$;
CREATE FUNCTION regress_tap_checks.slow(json) RETURNS text LANGUAGE sql AS $$ SELECT pg_sleep(60)::text $$;
CREATE TABLE regress_tap_checks.log (entry text);
GRANT ALL ON regress_tap_checks.log TO PUBLIC;
CREATE FUNCTION regress_tap_checks.logging(json) RETURNS text LANGUAGE plpgsql
AS $$ BEGIN INSERT INTO regress_tap_checks.log VALUES ($1 ->> 'entry'); IF $1 ->> 'raise' IS NOT NULL THEN RAISE 'raised'; END IF; RETURN NULL; END $$;
CREATE FUNCTION pg_temp.checked(task text, check_function text, result text, correlation text DEFAULT '{}')
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	answer := pg_temp.verdict(format('expect_result(%L, ''2100-01-01'', %L, correlation => ''{"limit": 100}'')', task, check_function));
	IF answer <> 'pending' THEN
		RETURN 'expected: ' || answer;
	END IF;
	RETURN pg_temp.verdict(format('offer_result(%L, ''succeeded'', %L, correlation => %L)', task, result, correlation));
END
$$;
SELECT is(pg_temp.checked('check ' || n, 'regress_tap_checks.' || name, result, correlation), answer, format('%s of %s', name, result))
FROM (VALUES
	(1, 'good(json)', '1', '{}', 'accepted'),
	(2, 'bad(json)', '1', '{}', 'rejected/bad'),
	(3, 'empty(json)', '1', '{}', 'rejected/'),
	(4, 'of_three(json,text,jsonb)', '{"amount":   1}', '{"x": 1}', 'rejected/{"amount":   1} | check 4 | {"x": 1, "limit": 100}'),
	(5, 'amount(json,text,jsonb)', '{"amount": 100}', '{}', 'accepted'),
	(6, 'amount(json,text,jsonb)', '{"amount": 101}', '{}', 'rejected/over the limit'),
	(7, 'amount(json,text,jsonb)', '{"amount": 101}', '{"limit": 200}', 'accepted'),
	(8, 'amount(json,text,jsonb)', '{"amount": "x"}', '{}', 'rejected/invalid input syntax for type numeric: "x"'),
	(9, 'dividing(json)', '{"by": 0}', '{}', 'rejected/division by zero'),
	(10, 'raising(json)', '{"code": "P0001"}', '{}', 'rejected/the message'),
	(11, 'raising(json)', '{"code": "XX000"}', '{}', 'rejected/the message'),
	(12, 'raising(json)', '{"code": "TC003"}', '{}', 'rejected/the message'),
	(13, 'raising(json)', '{"code": "42501"}', '{}', 'rejected/the message'),
	(14, 'raising(json)', '{"code": "42704"}', '{}', 'rejected/the message'),
	(15, 'raising(json)', '{"code": "40001"}', '{}', '40001'),
	(16, 'raising(json)', '{"code": "40P01"}', '{}', '40P01'),
	(17, 'raising(json)', '{"code": "53200"}', '{}', '53200'),
	(18, 'raising(json)', '{"code": "57P01"}', '{}', '57P01'),
	(19, 'setting_role(json)', '1', '{}', 'rejected/cannot set parameter "role" within security-definer function'),
	(20, 'logging(json)', '{"entry": "kept"}', '{}', 'accepted'),
	(21, 'logging(json)', '{"entry": "gone", "raise": true}', '{}', 'rejected/raised')
) AS t (n, name, result, correlation, answer) ORDER BY n;
SELECT is((SELECT string_agg(entry, ', ') FROM regress_tap_checks.log), 'kept', 'what a raising check wrote is gone');
SELECT is(pg_temp.verdict(format('gate(%L)', 'check ' || n)), 'pending', 'a passing fault decides nothing: ' || n) FROM generate_series(15, 18) AS n;
SELECT is(pg_temp.offered('check 10'), 'succeeded {"code": "P0001"}', 'a raising check never loses the offer');
SELECT is(pg_temp.verdict($$offer_result('check 10', 'succeeded', '1')$$), 'rejected/the message', 'and it stays');
SELECT is(pg_temp.offered('check 10'), 'succeeded {"code": "P0001"}', 'the offer too');
-- a verb in a check
SELECT ok(pg_temp.checked('verb ' || name, format('regress_tap_checks.%s(json)', name), '1') ~ '^rejected/cannot execute tool_claims\.(claim|offer_result)\(\) inside a registered function$',
	'a check that calls a verb rejects: ' || name) FROM unnest(ARRAY['claiming', 'offering']) AS name;
SELECT is(pg_temp.offered('verb claiming'), 'succeeded 1', 'with the offer kept');
SELECT is((pg_temp.state('by a check', 'c'), pg_temp.gate_image('by a check'))::text, '(,)', 'and the verb did nothing');
SELECT is(pg_temp.answer($$claim('after a check', 'c', 'tool', '{}', lease => '1 min')$$), 'acquired', 'verbs work again after it');
-- cancel, and the timeout of the statement
SELECT is(pg_temp.verdict($$expect_result('slow', '2100-01-01', 'regress_tap_checks.slow(json)')$$), 'pending', 'a slow check');
SET statement_timeout = 100;
DO $$ BEGIN PERFORM tool_claims.offer_result('slow', 'succeeded', '1'); RAISE 'no timeout'; EXCEPTION WHEN query_canceled THEN NULL; END $$;
RESET statement_timeout;
SELECT is(pg_temp.verdict($$gate('slow')$$), 'pending', 'a cancelled offer decides nothing');
-- other statuses, no result and a bad mark never run it
SELECT is(pg_temp.verdict(format('expect_result(%L, ''2100-01-01'', ''regress_tap_checks.raising(json)'')', 'not run ' || status)), 'pending', 'expected: ' || status)
FROM unnest(enum_range(NULL::tool_claims.task_status)) AS status;
SELECT isnt(split_part(pg_temp.verdict(format('offer_result(%L, %L)', 'not run ' || status, status)), '/', 2), 'the message', 'not run at ' || status)
FROM unnest(enum_range(NULL::tool_claims.task_status)) AS status;

-- the rights of who registers
SET ROLE regress_tap_worker;
CREATE FUNCTION regress_tap_checks.of_worker(json) RETURNS text LANGUAGE sql AS $$ SELECT format('%s %s', current_user, current_setting('search_path')) $$;
RESET ROLE;
SET ROLE regress_tap_other;
CREATE FUNCTION regress_tap_checks.of_other(json) RETURNS text LANGUAGE sql AS $$ SELECT current_user::text $$;
RESET ROLE;
SET ROLE regress_tap_deputy;
CREATE FUNCTION regress_tap_checks.of_deputy(json) RETURNS text LANGUAGE sql AS $$ SELECT current_user::text $$;
RESET ROLE;
REVOKE EXECUTE ON FUNCTION regress_tap_checks.good(json) FROM PUBLIC;
SELECT is(pg_temp.verdict(format($$expect_result(%L, '2100-01-01', %L)$$, 'r ' || n, 'regress_tap_checks.' || name), role), answer, format('%s registers %s', role, name))
FROM (VALUES
	(1, 'regress_tap_worker', 'good(json)', '42501'),
	(2, 'regress_tap_worker', 'who(json)', 'pending'),
	(3, 'regress_tap_worker', 'of_worker(json)', 'pending'),
	(4, 'regress_tap_worker', 'of_other(json)', '42501'),
	(5, 'regress_tap_worker', 'of_deputy(json)', 'pending'),
	(6, 'regress_tap_deputy', 'of_worker(json)', '42501'),
	(7, 'regress_tap_other', 'of_other(json)', 'pending'),
	(8, 'regress_tap_other', 'bad(json)', 'pending'),
	(9, NULL, 'of_worker(json)', '42501')
) AS t (n, role, name, answer) ORDER BY n;
SELECT is(pg_temp.gate_image('r 1'), NULL, 'a refused registration leaves no gate');
-- it runs as who registered, whoever offers, with the search_path pinned
SET search_path = regress_tap_checks, public;
SELECT is(pg_temp.verdict($$offer_result('r 2', 'succeeded', '1')$$, 'regress_tap_other'), 'rejected/regress_tap_worker pg_catalog, pg_temp', 'as the registrar');
SELECT is(pg_temp.verdict($$offer_result('r 5', 'succeeded', '1')$$), 'rejected/regress_tap_worker', 'also the deputy''s function');
SELECT is(current_setting('search_path'), 'regress_tap_checks, public', 'the path is back');
RESET search_path;
-- at each use the rights are looked at again
SELECT is(pg_temp.verdict(format($$expect_result(%L, '2100-01-01', 'regress_tap_checks.of_other(json)')$$, task), 'regress_tap_other'), 'pending', task)
FROM unnest(ARRAY['gone', 'revoked', 'given away', 'role gone']) AS task;
BEGIN;
DROP FUNCTION regress_tap_checks.of_other(json);
SELECT is(pg_temp.verdict($$offer_result('gone', 'succeeded', '1')$$), '42704', 'the function is gone');
SELECT is(pg_temp.verdict($$gate('gone')$$), 'pending', 'the gate waits');
SELECT is(pg_temp.verdict($$offer_result('gone', 'failed')$$), 'rejected/failed', 'a failed task needs no check');
ROLLBACK;
BEGIN;
REVOKE EXECUTE ON FUNCTION regress_tap_checks.of_other(json) FROM PUBLIC, regress_tap_other;
SELECT is(pg_temp.verdict($$offer_result('revoked', 'succeeded', '1')$$), '42501', 'the right is gone');
ROLLBACK;
BEGIN;
ALTER FUNCTION regress_tap_checks.of_other(json) OWNER TO regress_tap_worker;
SELECT is(pg_temp.verdict($$offer_result('given away', 'succeeded', '1')$$), '42501', 'the function is somebody else''s');
ROLLBACK;
BEGIN;
ALTER ROLE regress_tap_other RENAME TO regress_tap_renamed;
SELECT is(pg_temp.verdict($$offer_result('role gone', 'succeeded', '1')$$), '42501', 'the registrar is gone');
ROLLBACK;
SELECT is(pg_temp.verdict($$offer_result('gone', 'succeeded', '1')$$), 'rejected/regress_tap_other', 'and all is well again');
-- the same gate for another role; the check stays the first one's
SELECT is(pg_temp.verdict($$expect_result('r 8', '2100-01-01', 'regress_tap_checks.bad(json)')$$, 'regress_tap_worker'), 'pending', 'expected again by another');
SELECT is((expected_by, check_role)::text, '(regress_tap_other,regress_tap_other)', 'the first one''s') FROM tool_claims.result_gates
WHERE organization = 'tap_gates' AND task_id = 'r 8';

--
-- marked content
--

SELECT is(pg_temp.answer(call), 'done', call) FROM unnest(ARRAY[
	$$add_mark_key('k', 'secret')$$, $$add_mark_key('retired', 'secret')$$, $$add_mark_key('revoked', 'secret')$$, $$add_mark_key('away', 'secret')$$]) AS call;
CREATE TEMPORARY TABLE content (n integer PRIMARY KEY, content text);
INSERT INTO content VALUES (1, '{"a":  1}'), (2, 'no json'), (3, '{"a": 1, "a": 2}'), (4, ''), (5, 'null'), (6, '{"amount": 1}'), (7, '{"amount": 101}');
CREATE TEMPORARY TABLE made (key_id text, context text, n integer, mark text);
INSERT INTO made SELECT k, c, n, tool_claims.mark_content(content, k, c)
FROM content, unnest(ARRAY['k', 'retired', 'revoked', 'away']) AS k, unnest(ARRAY['context', '', 'other']) AS c;
SELECT is(pg_temp.answer(call), 'done', call) FROM unnest(ARRAY[$$retire_mark_key('retired')$$, $$revoke_mark_key('revoked')$$]) AS call;
DELETE FROM tool_claims.mark_keys WHERE organization = 'tap_gates' AND key_id = 'away';
CREATE TEMPORARY TABLE marked (n integer, gate_context text, check_function text, result text, content integer, key_id text, mark_context text, answer text, accepted text);
INSERT INTO marked VALUES
	(1, 'context', NULL, NULL, 1, 'k', 'context', 'accepted', '{"a":  1}'),
	(2, 'context', NULL, '{"a":1}', 1, 'k', 'context', 'accepted', '{"a":  1}'),
	(3, 'context', NULL, '{"a":1.0}', 1, 'k', 'context', 'accepted', '{"a":  1}'),
	(4, 'context', NULL, '{"a":2}', 1, 'k', 'context', 'rejected/mark_invalid', NULL),
	(5, 'context', NULL, NULL, 1, 'k', 'other', 'rejected/mark_invalid', NULL),
	(6, 'context', NULL, NULL, 1, 'k', '', 'rejected/mark_invalid', NULL),
	(7, '', NULL, NULL, 1, 'k', '', 'accepted', '{"a":  1}'),
	(8, '', NULL, NULL, 1, 'k', 'context', 'rejected/mark_invalid', NULL),
	(9, 'context', NULL, NULL, 1, 'retired', 'context', 'accepted', '{"a":  1}'),
	(10, 'context', NULL, NULL, 1, 'revoked', 'context', 'rejected/mark_invalid', NULL),
	(11, 'context', NULL, NULL, 1, 'away', 'context', 'rejected/mark_unknown_key', NULL),
	(12, 'context', NULL, NULL, 1, NULL, NULL, 'rejected/mark_unmarked', NULL),
	(13, 'context', NULL, '{"a":1}', 1, NULL, NULL, 'rejected/mark_unmarked', NULL),
	(14, 'context', NULL, '{"a":1}', NULL, NULL, NULL, 'rejected/mark_unmarked', NULL),
	(15, 'context', NULL, '{"a":1}', NULL, 'k', 'context', 'rejected/mark_invalid', NULL),
	(16, 'context', NULL, NULL, 2, 'k', 'context', 'rejected/no_result', NULL),
	(17, 'context', NULL, NULL, 3, 'k', 'context', 'rejected/no_result', NULL),
	(18, 'context', NULL, NULL, 4, 'k', 'context', 'rejected/no_result', NULL),
	(19, 'context', NULL, NULL, 5, 'k', 'context', 'accepted', 'null'),
	(20, 'context', 'amount(json,text,jsonb)', NULL, 6, 'k', 'context', 'accepted', '{"amount": 1}'),
	(21, 'context', 'amount(json,text,jsonb)', NULL, 7, 'k', 'context', 'rejected/over the limit', NULL),
	(22, 'context', 'amount(json,text,jsonb)', '{"amount": 1}', 7, 'k', 'context', 'rejected/mark_invalid', NULL),
	(23, NULL, NULL, NULL, 1, 'k', 'context', 'rejected/no_result', NULL),
	(24, NULL, NULL, '{"b": 1}', 1, 'k', 'context', 'accepted', '{"b": 1}'),
	(25, NULL, NULL, '{"b": 1}', 1, 'revoked', 'other', 'accepted', '{"b": 1}');
SELECT is(pg_temp.verdict(format($$expect_result(%L, '2100-01-01', %L, '{"limit": 100}', %L)$$, 'm ' || n, 'regress_tap_checks.' || check_function, gate_context)), 'pending', 'marked ' || n)
FROM marked ORDER BY n;
SELECT is(pg_temp.verdict(format($$offer_result(%L, 'succeeded', %L, %L, %L)$$, 'm ' || m.n, m.result, c.content, d.mark)), m.answer,
	format('marked %s: result %L, content %L, key %L, context %L', m.n, m.result, c.content, m.key_id, m.mark_context))
FROM marked AS m LEFT JOIN content AS c ON c.n = m.content
	LEFT JOIN made AS d ON d.key_id = m.key_id AND d.context = m.mark_context AND d.n = coalesce(m.content, 1)
ORDER BY m.n;
SELECT is(pg_temp.accepted('m ' || n), coalesce(accepted, 'TC011'), format('marked %s: what is accepted', n)) FROM marked ORDER BY n;
SELECT is(pg_temp.offered('m 16'), 'succeeded no json', 'content that is no JSON is kept too');
SELECT is(pg_temp.offered('m 12'), 'succeeded {"a":  1}', 'content without a mark is kept too');
SELECT is(pg_temp.verdict(format($$offer_result('m 1', 'succeeded', content => '{"a":  1}', mark => %L)$$, mark)), 'accepted', 'the same again')
FROM made WHERE key_id = 'k' AND context = 'context' AND n = 1;
SELECT is(pg_temp.verdict($$offer_result('m 1', 'succeeded', content => '{"a":  2}')$$), 'rejected/already_accepted', 'another after acceptance');
-- one changed character of the content, at each place
SELECT is(pg_temp.verdict(format($$expect_result(%L, '2100-01-01', mark_context => 'context')$$, 'x ' || i)), 'pending', 'change ' || i)
FROM generate_series(1, 13) AS i;
SELECT is(pg_temp.verdict(format($$offer_result(%L, 'succeeded', content => %L, mark => %L)$$, 'x ' || i, overlay(c.content PLACING '7' FROM i), m.mark)),
	'rejected/mark_invalid', 'change ' || i)
FROM content AS c, made AS m, generate_series(1, 13) AS i
WHERE c.n = 6 AND m.n = 6 AND m.key_id = 'k' AND m.context = 'context';

--
-- who may
--

SELECT is(pg_temp.verdict(call, role), answer, format('%s: %s', role, call))
FROM (VALUES
	(1, 'regress_tap_worker', $$expect_result('w', '2100-01-01')$$, 'pending'),
	(2, 'regress_tap_other', $$offer_result('w', 'succeeded', '1')$$, 'accepted'),
	(3, 'regress_tap_deputy', $$gate('w')$$, 'accepted')
) AS t (n, role, call, answer) ORDER BY n;
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || relation, 'regress_tap_worker'), '42501', 'a worker does not read ' || relation)
FROM unnest(ARRAY['gates', 'result_gates', 'mark_keys']) AS relation;
CALL pg_temp.make_roles('regress_tap_duty');
CREATE FUNCTION pg_temp.with_duty(duty text, call text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	PERFORM tool_claims.grant_duty('regress_tap_duty', duty);
	answer := pg_temp.state_of('SELECT * FROM tool_claims.' || call, 'regress_tap_duty');
	PERFORM tool_claims.revoke_duty('regress_tap_duty', duty);
	RETURN answer;
END
$$;
SELECT is(pg_temp.with_duty(duty, call), '42501', format('%s: not %s', duty, call))
FROM unnest(ARRAY['proposer', 'approver', 'approval_service', 'reconciler', 'auditor', 'administrator', 'backup']) AS duty,
	unnest(ARRAY[$$expect_result('d', '2100-01-01')$$, $$offer_result('w', 'succeeded', '1')$$, $$gate('w')$$, $$require_accepted('w')$$]) AS call;

--
-- another organization
--

SET tool_claims.organization = 'tap_gates_2';
SELECT is(pg_temp.verdict($$gate('w')$$), NULL, 'has no gate of ours');
SELECT is(pg_temp.verdict($$offer_result('w', 'succeeded', '1')$$), 'rejected/not_expected', 'no offer reaches it');
SELECT is(pg_temp.accepted('w'), 'TC011', 'no result comes out');
SELECT is((SELECT count(*)::integer FROM tool_claims.gates), 0, 'none in the view');
SELECT is(pg_temp.verdict($$expect_result('w', '2100-01-02')$$), 'pending', 'the same task is another gate');
SELECT is((SELECT organization FROM tool_claims.gates), 'tap_gates_2', 'of its own');
SET tool_claims.organization = '*';
SELECT is(pg_temp.verdict(call), '22023', 'not under *: ' || call)
FROM unnest(ARRAY[$$expect_result('w', '2100-01-01')$$, $$offer_result('w', 'succeeded', '1')$$, $$gate('w')$$]) AS call;
SELECT is(pg_temp.accepted('w'), '22023', 'nor require_accepted');
SELECT is((SELECT string_agg(organization || ' ' || verdict, ', ' ORDER BY organization) FROM tool_claims.gates WHERE task_id = 'w'),
	'tap_gates accepted, tap_gates_2 pending', 'the view shows all');
SET tool_claims.organization = 'tap_gates';

SELECT * FROM finish();
CALL pg_temp.forget_gates();
CALL pg_temp.forget();
DROP SCHEMA regress_tap_checks CASCADE;
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_other', 'regress_tap_deputy', 'regress_tap_duty');
