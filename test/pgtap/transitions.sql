-- transitions.sql: every state of a record × every verb: what it answers, how the
-- record then reads, and that nothing was written where nothing should be.

\set organization tap_transitions
\ir include/helpers.psql

SELECT plan(1941);

-- Each combination has a key of its own, task_id = state, tool_call_id = verb; K stands
-- for it.  The steps that make a state are transactions of their own: call = answer.
CREATE TEMPORARY TABLE states (
	state text PRIMARY KEY,
	reads text,				-- as what the record then reads
	seconds integer,		-- how far the clock moves before the verb
	own boolean,			-- the verb runs in the transaction of the steps
	steps text[]
);
INSERT INTO states VALUES
	('none', NULL, 0, false, '{}'),
	('own transactional', 'claimed', 0, true,
		ARRAY[$$claim(K, 'tool', '{}') = acquired$$]),
	('own leased', 'claimed', 0, true,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$]),
	('leased', 'claimed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$]),
	('leased, dispatched later', 'claimed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$,
			$$dispatch(K, 1) = acquired$$]),
	('leased, undispatched', 'claimed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$]),
	('expired', 'uncertain', 61, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$]),
	('expired, swept', 'uncertain', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 microsecond') = acquired$$,
			$$sweep() = done$$]),
	('expired undispatched', 'released', 61, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$]),
	('expired undispatched, swept', 'released', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 microsecond', dispatched => false) = acquired$$,
			$$sweep() = done$$]),
	('expired reacquire', 'released', 61, false,
		ARRAY[$$claim(K, 'safe', '{}', lease => '1 min') = acquired$$]),
	('expired reacquire, swept', 'released', 0, false,
		ARRAY[$$claim(K, 'safe', '{}', lease => '1 microsecond') = acquired$$,
			$$sweep() = done$$]),
	('expired reacquire undispatched', 'released', 61, false,
		ARRAY[$$claim(K, 'safe', '{}', lease => '1 min', dispatched => false) = acquired$$]),
	('reported', 'uncertain', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$]),
	('reported undispatched', 'uncertain', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$]),
	('reported by a reconciler', 'uncertain', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$reconciler: mark_uncertain(K, 1, 'lost') = uncertain/reported$$]),
	('reported by a reconciler, lease over', 'uncertain', 61, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$reconciler: mark_uncertain(K, 1, 'lost') = uncertain/reported$$]),
	('completed', 'completed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$complete(K, '"r"', 1) = completed$$]),
	('completed, lease over', 'completed', 61, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$complete(K, '"r"', 1) = completed$$]),
	('completed late', 'completed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 microsecond') = acquired$$,
			$$complete(K, '"r"', 1) = completed$$]),
	('failed', 'failed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$fail(K, '"e"', 1) = failed$$]),
	('released', 'released', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$release(K, 1) = released$$]),
	('reconciled occurred', 'completed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
			$$reconcile(K, 1, 'occurred', '{"by": 1}') = completed$$]),
	('reconciled not_occurred', 'released', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
			$$reconcile(K, 1, 'not_occurred', '{"by": 1}') = released$$]),
	('reconciled abandoned', 'failed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
			$$reconcile(K, 1, 'abandoned', '{"by": 1}') = failed$$]),
	('reconciled compensated', 'failed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
			$$reconcile(K, 1, 'compensated', '{"by": 1}') = failed$$]),
	('released, reconciled occurred', 'completed', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$release(K, 1) = released$$,
			$$reconcile(K, 1, 'occurred', '{"by": 1}') = completed$$]),
	('retired', 'retired', 0, false,
		ARRAY[$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
			$$complete(K, '"r"', 1) = completed$$,
			$$prune('0 s') = done$$]);

CREATE TEMPORARY TABLE verbs (n integer, verb text PRIMARY KEY, call text);
INSERT INTO verbs VALUES
	(1, 'claim', $$claim(K, TOOL, '{}')$$),
	(2, 'claim with a lease', $$claim(K, TOOL, '{}', lease => '1 min')$$),
	(3, 'claim with other input', $$claim(K, TOOL, '[]', lease => '1 min')$$),
	(4, 'dispatch', $$dispatch(K, 1, 'ref')$$),
	(5, 'renew', $$renew(K, 1, '2 min')$$),
	(6, 'complete', $$complete(K, '"r"', 1)$$),
	(7, 'complete otherwise', $$complete(K, '"other"', 1)$$),
	(8, 'fail', $$fail(K, '"e"', 1)$$),
	(9, 'fail otherwise', $$fail(K, '"other"', 1)$$),
	(10, 'release', $$release(K, 1)$$),
	(11, 'release with a new effect key', $$release(K, 1, new_effect_key => true)$$),
	(12, 'mark_uncertain', $$mark_uncertain(K, 1, 'lost')$$),
	(13, 'report_late', $$report_late(K, 1, '"late"')$$),
	(14, 'occurred', $$reconcile(K, 1, 'occurred', '{"by": 1}')$$),
	(15, 'not_occurred', $$reconcile(K, 1, 'not_occurred', '{"by": 1}')$$),
	(16, 'abandoned', $$reconcile(K, 1, 'abandoned', '{"by": 1}')$$),
	(17, 'compensated', $$reconcile(K, 1, 'compensated', '{"by": 1}')$$),
	(18, 'assert_claim', $$assert_claim(K, 1)$$);

-- The answers, in the order of the verbs: a claim's on the first line, the holder's
-- verbs on the second, the rest on the third.  A dash leaves the combination out: a
-- claim without a lease cannot be committed as it is, the one with a lease is tried.
CREATE TEMPORARY TABLE matrix (state text PRIMARY KEY, answers text);
INSERT INTO matrix VALUES
	('none', '
		- acquired acquired
		TC001 TC001 TC001 TC001 TC001 TC001 TC001 TC001 TC001
		TC001 TC001 TC001 TC001 TC001 TC001'),
	('own transactional', '
		acquired/already_held 22023 conflict/input
		TC003 22023 completed completed failed failed released released TC003
		done TC003 TC003 TC003 TC003 done'),
	('own leased', '
		22023 acquired/already_held conflict/input
		TC003 acquired TC003 TC003 failed failed released released uncertain/reported
		done TC003 TC003 TC003 TC003 done'),
	('leased', '
		in_progress in_progress conflict/input
		acquired acquired completed completed failed failed released released uncertain/reported
		done TC003 TC003 TC003 TC003 done'),
	('leased, dispatched later', '
		in_progress in_progress conflict/input
		acquired acquired completed completed failed failed released released uncertain/reported
		done TC003 TC003 TC003 TC003 done'),
	('leased, undispatched', '
		in_progress in_progress conflict/input
		acquired acquired TC003 TC003 failed failed released released uncertain/reported
		done TC003 TC003 TC003 TC003 done'),
	('expired', '
		uncertain/lease_expired uncertain/lease_expired conflict/input
		TC003 TC003 completed completed failed failed TC003 TC003 TC003
		done completed released failed failed TC003'),
	('expired, swept', '
		uncertain/lease_expired uncertain/lease_expired conflict/input
		TC003 TC003 completed completed failed failed TC003 TC003 TC003
		done completed released failed failed TC003'),
	('expired undispatched', '
		- acquired/takeover conflict/input
		TC003 released TC003 TC003 TC003 TC003 released - TC003
		done completed TC003 failed failed TC003'),
	('expired undispatched, swept', '
		- acquired/takeover conflict/input
		TC003 released TC003 TC003 TC003 TC003 released - TC003
		done completed TC003 failed failed TC003'),
	('expired reacquire', '
		- acquired/takeover conflict/input
		TC003 released completed completed failed failed released - TC003
		done completed TC003 failed failed TC003'),
	('expired reacquire, swept', '
		- acquired/takeover conflict/input
		TC003 released completed completed failed failed released - TC003
		done completed TC003 failed failed TC003'),
	('expired reacquire undispatched', '
		- acquired/takeover conflict/input
		TC003 released TC003 TC003 TC003 TC003 released - TC003
		done completed TC003 failed failed TC003'),
	('reported', '
		uncertain/reported uncertain/reported conflict/input
		TC003 TC003 completed completed failed failed TC003 TC003 TC003
		done completed released failed failed TC003'),
	('reported undispatched', '
		uncertain/reported uncertain/reported conflict/input
		TC003 TC003 TC003 TC003 failed failed TC003 TC003 TC003
		done completed released failed failed TC003'),
	('reported by a reconciler', '
		uncertain/reported uncertain/reported conflict/input
		TC003 TC003 completed completed failed failed TC003 TC003 TC003
		done completed TC003 failed failed TC003'),
	('reported by a reconciler, lease over', '
		uncertain/reported uncertain/reported conflict/input
		TC003 TC003 completed completed failed failed TC003 TC003 TC003
		done completed released failed failed TC003'),
	('completed', '
		completed completed conflict/input
		TC003 completed completed TC005 TC003 TC003 TC003 TC003 TC003
		done TC003 TC003 TC003 TC003 TC003'),
	('completed, lease over', '
		completed completed conflict/input
		TC003 completed completed TC005 TC003 TC003 TC003 TC003 TC003
		done TC003 TC003 TC003 TC003 TC003'),
	('completed late', '
		completed completed conflict/input
		TC003 completed completed TC005 TC003 TC003 TC003 TC003 TC003
		done TC003 TC003 TC003 TC003 TC003'),
	('failed', '
		failed failed conflict/input
		TC003 failed TC003 TC003 failed TC005 TC003 TC003 TC003
		done TC003 TC003 TC003 TC003 TC003'),
	('released', '
		- acquired/retry conflict/input
		TC003 released TC003 TC003 TC003 TC003 released TC003 TC003
		done completed TC003 failed failed TC003'),
	('reconciled occurred', '
		completed completed conflict/input
		TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002
		done completed TC003 TC003 TC003 TC002'),
	('reconciled not_occurred', '
		- acquired/retry conflict/input
		TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002
		done completed released failed failed TC002'),
	('reconciled abandoned', '
		failed failed conflict/input
		TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002
		done TC003 TC003 failed TC003 TC002'),
	('reconciled compensated', '
		failed failed conflict/input
		TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002
		done TC003 TC003 TC003 failed TC002'),
	('released, reconciled occurred', '
		completed completed conflict/input
		TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002 TC002
		done completed TC003 TC003 TC003 TC002'),
	('retired', '
		refused/key_retired refused/key_retired conflict/input
		TC003 TC003 TC003 TC003 TC003 TC003 TC003 TC003 TC003
		done TC003 TC003 TC003 TC003 TC003');

CREATE TEMPORARY TABLE results (
	state text,
	verb text,
	made text,				-- the steps that answered otherwise
	reads text,
	seen_before text,
	image_before text,
	expected text,
	answer text,
	seen_after text,
	image_after text
);

CREATE PROCEDURE pg_temp.try_all()
LANGUAGE plpgsql
AS $$
DECLARE
	t record;
	key text;
	call text;
	made text;
	step text;
	parts text[];
	answer text;
	seen text;
	image text;
BEGIN
	FOR t IN
		SELECT s.*, v.verb, v.call, a.expected
		FROM matrix AS m
			JOIN states AS s USING (state)
			CROSS JOIN regexp_split_to_table(trim(m.answers, E'\n\t'), '\s+')
				WITH ORDINALITY AS a (expected, n)
			JOIN verbs AS v USING (n)
		WHERE a.expected <> '-'
	LOOP
		key := format('%L, %L', t.state, t.verb);
		made := NULL;
		FOREACH step IN ARRAY t.steps LOOP
			parts := regexp_match(step, '^(reconciler: )?(.*) = (.*)$');
			answer := pg_temp.answer(replace(parts[2], 'K', key),
				CASE WHEN parts[1] IS NOT NULL THEN 'regress_tap_reconciler' END);
			IF answer <> parts[3] THEN
				made := concat_ws(', ', made, step || ' but ' || answer);
			END IF;
			IF NOT t.own THEN
				COMMIT;
			END IF;
		END LOOP;
		PERFORM pg_temp.clock(t.seconds);
		seen := pg_temp.state(t.state, t.verb);
		image := pg_temp.image(t.state, t.verb);
		call := replace(replace(t.call, 'K', key), 'TOOL',
			CASE WHEN t.state LIKE '%reacquire%' THEN '''safe''' ELSE '''tool''' END);
		answer := pg_temp.answer(call);
		INSERT INTO results VALUES (t.state, t.verb, made, t.reads, seen, image, t.expected, answer,
			pg_temp.state(t.state, t.verb), pg_temp.image(t.state, t.verb));
		IF t.own THEN
			PERFORM pg_temp.answer(format('release(%s, 1)', key));
		END IF;
		COMMIT;
		PERFORM pg_temp.clock(0);
	END LOOP;
END
$$;

SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done',
	'a tool that is safe to repeat');
CALL pg_temp.make_roles('regress_tap_reconciler');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_reconciler', 'reconciler')$$), 'done', 'a reconciler');
CALL pg_temp.try_all();

-- errors, and answers that only tell or repeat, change nothing; an expired claim may
-- be written down as what it reads
ALTER TABLE results ADD COLUMN writes boolean;
UPDATE results SET writes =
	expected !~ '^(22023|TC|in_progress|conflict|refused|done)'
	AND (split_part(expected, '/', 1) IS DISTINCT FROM reads OR state ~ '^expired' AND expected !~ '^uncertain/');

SELECT is((SELECT count(DISTINCT state)::integer FROM results), (SELECT count(*)::integer FROM states),
	'every state is tried');
SELECT is((SELECT count(DISTINCT verb)::integer FROM results), (SELECT count(*)::integer FROM verbs),
	'every verb is tried');
SELECT is(string_agg(DISTINCT made, '; '), NULL, state || ': made')
FROM results GROUP BY state ORDER BY state;
SELECT is(seen_before, reads, state || ': reads as it should before ' || verb)
FROM results ORDER BY state, verb;
SELECT is(answer, expected, state || ': ' || verb)
FROM results ORDER BY state, verb;
SELECT is(seen_after,
	CASE
		WHEN expected LIKE 'acquired%' THEN 'claimed'
		WHEN writes THEN split_part(expected, '/', 1)
		ELSE reads
	END,
	state || ': as what it reads after ' || verb)
FROM results ORDER BY state, verb;
SELECT is(image_after, image_before, state || ': not written by ' || verb)
FROM results WHERE NOT writes ORDER BY state, verb;
SELECT isnt(image_after, image_before, state || ': written by ' || verb)
FROM results WHERE writes AND expected <> 'acquired/already_held' AND state !~ '^expired'
ORDER BY state, verb;

-- each key still has a chain that holds
SELECT is(
	(SELECT string_agg(r.state || ': ' || r.verb, '; ')
	FROM results AS r, tool_claims.verify_evidence(r.state, r.verb) AS v
	WHERE v.ok IS NOT true),
	NULL, 'every chain verifies');

SELECT * FROM finish();
CALL pg_temp.drop_roles('regress_tap_reconciler');
CALL pg_temp.forget();
