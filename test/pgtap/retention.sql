-- retention.sql: sweep, prune and redact.

\set organization tap_retention
\ir include/helpers.psql

SELECT plan(176);

-- a key in one state, made by a claim and what follows
CREATE PROCEDURE pg_temp.make(task text, call text, state text, tool text DEFAULT 'tool', operation text DEFAULT NULL)
LANGUAGE plpgsql
AS $$
DECLARE
	key text := format('%L, %L', task, call);
	answer text;
BEGIN
	answer := pg_temp.answer(format('claim(%s, %L, ''{"secret": "canary"}'', operation_id => %L, lease => %L, dispatched => %L)', key, tool, operation,
		CASE WHEN state IN ('expired', 'free') THEN '1 microsecond' ELSE '10 min' END, state <> 'free'));
	IF answer !~ '^acquired' THEN
		RAISE '% %: %', task, call, answer;
	END IF;
	COMMIT;
	IF state IN ('completed', 'failed', 'released', 'uncertain') THEN
		answer := pg_temp.answer(CASE state
			WHEN 'completed' THEN format('complete(%s, ''"canary"'', 1)', key)
			WHEN 'failed' THEN format('fail(%s, ''"canary"'', 1)', key)
			WHEN 'released' THEN format('release(%s, 1, ''canary'')', key)
			WHEN 'uncertain' THEN format('mark_uncertain(%s, 1, ''canary'')', key)
		END);
		IF split_part(answer, '/', 1) <> state THEN
			RAISE '% %: %', task, call, answer;
		END IF;
	END IF;
END
$$;
CREATE TEMPORARY TABLE states (state text, final boolean);
INSERT INTO states VALUES ('claimed', false), ('expired', false), ('free', false), ('uncertain', false),
	('completed', true), ('failed', true), ('released', true);
CREATE PROCEDURE pg_temp.make_all(task text, tool text DEFAULT 'tool')
LANGUAGE plpgsql
AS $$
DECLARE
	s text;
BEGIN
	FOR s IN SELECT state FROM states LOOP
		CALL pg_temp.make(task, s, s, tool);
	END LOOP;
END
$$;

--
-- sweep writes down what is already true
--

CALL pg_temp.make_all('s');
CREATE TEMPORARY TABLE reads AS SELECT state AS call, pg_temp.state('s', state) AS reads, pg_temp.image('s', state) AS image FROM states;
SELECT results_eq('SELECT call, reads FROM reads ORDER BY 1',
	$$VALUES ('claimed', 'claimed'), ('completed', 'completed'), ('expired', 'uncertain'), ('failed', 'failed'),
		('free', 'released'), ('released', 'released'), ('uncertain', 'uncertain')$$, 'as what they read');
SELECT is(tool_claims.sweep(1), 1, 'sweep of one');
SELECT is(tool_claims.sweep(), 1, 'sweep of the rest');
SELECT is(tool_claims.sweep(), 0, 'nothing more');
SELECT is(pg_temp.state('s', call), reads, call || ' reads the same') FROM reads;
SELECT is(pg_temp.image('s', call) = image, call NOT IN ('expired', 'free'), call || ': written or not') FROM reads;
SELECT is(pg_temp.kinds('s', 'expired') || ' ' || pg_temp.kinds('s', 'free'), 'uncertain released', 'with an event each');
SELECT is(pg_temp.answer($$claim('s', 'expired', 'tool', '{"secret": "canary"}')$$), 'uncertain/lease_expired', 'the reason stays');
SELECT is(pg_temp.answer($$claim('s', 'free', 'tool', '{"secret": "canary"}', lease => '1 min')$$), 'acquired/takeover', 'this one too');
SELECT is(pg_temp.answer($$sweep(-1)$$), '22023', 'a negative number of rows');

--
-- prune: final records, by age
--

SELECT is(pg_temp.answer($$set_tool_policy('kept', keep_input => true, log => 'all')$$), 'done', 'a tool whose input is kept');
CALL pg_temp.make_all('p', 'kept');
SELECT is(pg_temp.answer($$claim('p', 'refused', 'tool', '{}', not_after => '2000-01-01')$$), 'refused/deadline_passed', 'a refused call');
CREATE TEMPORARY TABLE heads AS SELECT * FROM tool_claims.evidence_heads();
SELECT is(tool_claims.prune('1 hour'), 0, 'none is old enough');
SELECT pg_temp.clock(-7200);
SELECT is(tool_claims.prune('1 hour'), 0, 'nor two hours ago');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer($$prune('-1 s')$$), '22023', 'a negative age');
SELECT is(pg_temp.answer($$prune('0 s', -1)$$), '22023', 'a negative number of rows');
SELECT is(tool_claims.prune(), 0, 'without an age and without a policy: none');
SELECT is(tool_claims.prune('0 s', 2), 2, 'two of them');
SELECT cmp_ok(tool_claims.prune('0 s'), '>=', 3, 'the rest');
SELECT is(tool_claims.prune('0 s'), 0, 'nothing more');
SELECT is(pg_temp.state('p', state), CASE WHEN final THEN 'retired' WHEN state = 'expired' THEN 'uncertain'
	WHEN state = 'free' THEN pg_temp.state('p', 'free') ELSE state END, state || ': then') FROM states;
SELECT is(pg_temp.answer(format($$claim('p', %L, 'kept', '{"secret": "canary"}')$$, state)), 'refused/key_retired', state || ': its key is retired')
FROM states WHERE final;
SELECT is(pg_temp.answer(format($$claim('p', %L, 'kept', '[]')$$, state)), 'conflict/input', state || ': other data is a conflict')
FROM states WHERE final;
SELECT is((s.tool_name, s.input_digest::text = tool_claims.digest('{"secret": "canary"}')::text, s.result, s.error, s.input)::text, '(kept,t,,,)',
	t.state || ': what the tombstone has')
FROM states AS t, tool_claims.status('p', t.state) AS s WHERE t.final;
SELECT ok(pg_temp.kinds('p', state) ~ '^pruned( (refused|conflict))*$', state || ': pruned: ' || pg_temp.kinds('p', state)) FROM states WHERE final;
SELECT is(v.ok, true, state || ': its chain verifies') FROM states, tool_claims.verify_evidence('p', state) AS v WHERE final;
SELECT is(v.ok, true, state || ': … with the head kept before') 
FROM states JOIN heads AS h ON h.task_id = 'p' AND h.tool_call_id = state, tool_claims.verify_evidence('p', state, h.hash) AS v
WHERE final;
SELECT ok(e.previous::text = h.hash::text, state || ': the pruned event continues the chain')
FROM states JOIN heads AS h ON h.task_id = 'p' AND h.tool_call_id = state, tool_claims.evidence('p', state) AS e
WHERE final AND e.kind = 'pruned';
SELECT ok(c.*::text NOT LIKE '%canary%', 'nothing of the content is left')
FROM tool_claims.claim_records AS c JOIN states AS s ON s.state = c.tool_call_id AND s.final
WHERE organization = :'organization' AND task_id = 'p';

SELECT ok(pg_temp.kinds('p', 'refused') ~ '^(refused|pruned)$', 'the evidence of a refused call does not vanish without a trace');

-- without tombstones the key is free, and nothing of it is left
CALL pg_temp.make_all('g');
CALL pg_temp.make('g', 'operation', 'completed', 'tool', 'op');
SELECT cmp_ok(tool_claims.prune('0 s', tombstones => false), '>=', 4, 'forgotten');
SELECT is(pg_temp.state('g', state), NULL, state || ': no record') FROM states WHERE final;
SELECT is(pg_temp.kinds('g', state), NULL, state || ': no events') FROM states WHERE final;
SELECT is(pg_temp.state('g', state), state, state || ': untouched') FROM states WHERE NOT final AND state IN ('claimed', 'uncertain');
SELECT is(pg_temp.answer(format($$claim('g', %L, 'tool', '[]', lease => '1 min')$$, state)), 'acquired', state || ': free for anything')
FROM states WHERE final;
SELECT is(pg_temp.answer($$claim('g', 'another', 'tool', '[]', lease => '1 min', operation_id => 'op')$$), 'acquired', 'the operation too');
SELECT is((SELECT count(*)::integer FROM tool_claims.events WHERE organization = :'organization' AND task_id = 'g'
	AND tool_call_id IN (SELECT state FROM states WHERE final)), 0, 'no events in the table');

-- retention by policy, counted from the last change
SELECT is(pg_temp.answer($$set_tool_policy('short', retention => '1 hour')$$), 'done', 'an hour');
SELECT is(pg_temp.answer($$set_tool_policy('long', retention => '1 day')$$), 'done', 'a day');
CALL pg_temp.make('r', 'short', 'completed', 'short');
CALL pg_temp.make('r', 'long', 'completed', 'long');
CALL pg_temp.make('r', 'none', 'completed');
CALL pg_temp.make('r', 'claimed', 'claimed', 'short');
SELECT is(tool_claims.prune(), 0, 'at once');
SELECT pg_temp.clock(3599);
SELECT is(tool_claims.prune(), 0, 'before the hour');
SELECT pg_temp.clock(3602);
SELECT is(tool_claims.prune(), 1, 'after an hour');
SELECT is(pg_temp.state('r', 'short') || ' ' || pg_temp.state('r', 'long'), 'retired completed', 'the one');
SELECT pg_temp.clock(2 * 86400);
SELECT is(tool_claims.prune(), 1, 'after two days');
SELECT is(pg_temp.state('r', 'long') || ' ' || pg_temp.state('r', 'none'), 'retired completed', 'the other');
SELECT is(pg_temp.state('r', 'claimed'), 'uncertain', 'never one that is not final');
SELECT is(tool_claims.prune('3 days'), 0, 'an age that is given counts alone');
SELECT pg_temp.clock(0);
-- a repeated or corrected one counts from its change
CALL pg_temp.make('r', 'corrected', 'uncertain', 'short');
SELECT is(pg_temp.answer($$reconcile('r', 'corrected', 1, 'not_occurred', '{"by": 1}')$$), 'released', 'did not occur');
SELECT pg_temp.clock(3000);
SELECT is(pg_temp.answer($$reconcile('r', 'corrected', 1, 'occurred', '{"by": 1}')$$), 'completed', 'it did');
SELECT pg_temp.clock(4000);
SELECT is(tool_claims.prune(), 0, 'it changed less than an hour ago');
SELECT pg_temp.clock(7000);
SELECT is(tool_claims.prune(), 1, 'more than an hour ago');
SELECT pg_temp.clock(0);
-- a policy with a short retention looked up by *
SELECT is(pg_temp.answer($$set_tool_policy('*', '*', retention => '1 s')$$), 'done', 'a second for all');
SELECT pg_temp.clock(10);
SELECT cmp_ok(tool_claims.prune(), '>=', 1, 'all that have no policy of their own');
SELECT is(pg_temp.state('r', 'none'), 'retired', 'this one');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer($$drop_tool_policy('*', '*')$$), 'done', 'dropped');

--
-- redact: the content goes, the digests stay
--

CALL pg_temp.make_all('x', 'kept');
SELECT is(pg_temp.answer($$claim('x', 'completed', 'kept', '{"secret": "another canary"}')$$), 'conflict/input', 'a conflict');
SELECT is(pg_temp.answer($$claim('x', 'reference', 'kept', '{"secret": "canary"}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$dispatch('x', 'reference', 1, 'canary ref')$$), 'acquired', 'with a reference');
SELECT is(pg_temp.answer($$mark_uncertain('x', 'reference', 1, 'canary reason')$$), 'uncertain/reported', 'a reason');
SELECT is(pg_temp.answer($$reconcile('x', 'reference', 1, 'occurred', '{"seen": "canary evidence"}', result => '"canary"')$$), 'completed', 'evidence');
SELECT is(pg_temp.answer($$report_late('x', 'reference', 1, '"canary late"')$$), 'done', 'and a late report');
SELECT is(pg_temp.answer($$redact('x', 'nobody', 'a wish')$$), 'TC001', 'no such record');
SELECT is(pg_temp.answer(format($$redact('x', %L, 'a wish')$$, state)), CASE WHEN final OR state = 'free' THEN 'done' ELSE 'TC003' END, state || ': redact')
FROM states;
CREATE TEMPORARY TABLE reference_head AS
SELECT hash FROM tool_claims.evidence('x', 'reference') ORDER BY seq DESC LIMIT 1;
SELECT is(pg_temp.answer($$redact('x', 'reference', 'a wish')$$), 'done', 'redacted');
SELECT is(pg_temp.answer(format($$claim('x', %L, 'kept', '{"secret": "canary"}')$$, call)), answer, call || ': what claim answers')
FROM (VALUES ('completed', 'completed/redacted'), ('failed', 'failed/redacted'), ('reference', 'completed/redacted')) AS t (call, answer);
SELECT is((result, error)::text, '(,)', 'no result') FROM tool_claims.claim('x', 'completed', 'kept', '{"secret": "canary"}');
SELECT is((result, error)::text, '(,)', 'no error') FROM tool_claims.claim('x', 'failed', 'kept', '{"secret": "canary"}');
SELECT is(pg_temp.answer($$claim('x', 'completed', 'kept', '[]')$$), 'conflict/input', 'other data is a conflict still');
SELECT is((s.state, s.input, s.result, s.error, s.external_ref, s.input_digest::text = tool_claims.digest('{"secret": "canary"}')::text)::text,
	'(completed,,,,,t)', 'what status shows')
FROM tool_claims.status('x', 'reference') AS s;
SELECT ok(pg_temp.kinds('x', 'reference') LIKE '%dispatched uncertain reconciled late_report redacted', 'the events stay');
SELECT is(v.ok, true, call || ': its chain verifies')
FROM unnest(ARRAY['completed', 'failed', 'released', 'reference']) AS call, tool_claims.verify_evidence('x', call) AS v;
SELECT is(v.ok, true, 'with the head that was kept too') FROM reference_head AS h, tool_claims.verify_evidence('x', 'reference', h.hash) AS v;
SELECT is((SELECT count(*)::integer FROM tool_claims.claim_records AS c
	WHERE c.organization = :'organization' AND c.task_id = 'x' AND c.tool_call_id IN ('completed', 'failed', 'released', 'reference')
		AND c.*::text LIKE '%canary%'), 0, 'no content in the records');
SELECT is((SELECT count(*)::integer FROM tool_claims.events AS e
	WHERE e.organization = :'organization' AND e.task_id = 'x' AND e.tool_call_id IN ('completed', 'failed', 'released', 'reference')
		AND e.*::text LIKE '%canary%'), 0, 'nor in the events');
SELECT is((SELECT count(*)::integer FROM tool_claims.timeline('x', 'reference') AS line WHERE line LIKE '%canary%'), 0, 'nor in the timeline');
SELECT is(pg_temp.answer($$redact('x', 'reference', 'again')$$), 'done', 'redacted again');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$complete('x', 'completed', '"canary"', 1)$$, 'completed/redacted'),
	($$complete('x', 'completed', '"another"', 1)$$, 'TC005'),
	($$fail('x', 'failed', '"canary"', 1)$$, 'failed/redacted'),
	($$fail('x', 'failed', '"another"', 1)$$, 'TC005'),
	($$renew('x', 'completed', 1, '1 min')$$, 'completed/redacted')
) AS t (call, answer);
SELECT is(pg_temp.answer($$claim('x', 'released', 'kept', '{"secret": "canary"}', lease => '1 min')$$), 'acquired/retry', 'a released one goes on');

-- what is acquired or found out afterwards is no redacted answer
SELECT is(pg_temp.answer($$set_tool_policy('again', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');
CREATE TEMPORARY TABLE after_redact (n integer GENERATED ALWAYS AS IDENTITY, ahead integer, call text, answer text);
INSERT INTO after_redact (ahead, call, answer) VALUES
	(0, $$claim('a', 'late', 'again', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	(120, $$redact('a', 'late', 'a wish')$$, 'done'),
	(120, $$complete('a', 'late', '"new"', 1)$$, 'completed'),
	(120, $$complete('a', 'late', '"new"', 1)$$, 'completed'),
	(120, $$complete('a', 'late', '"canary"', 1)$$, 'TC005'),
	(120, $$claim('a', 'late', 'again', '{"secret": "canary"}')$$, 'completed'),
	(0, $$claim('a', 'late fail', 'again', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	(120, $$redact('a', 'late fail', 'a wish')$$, 'done'),
	(120, $$fail('a', 'late fail', '"new"', 1)$$, 'failed'),
	(120, $$fail('a', 'late fail', '"new"', 1)$$, 'failed'),
	(120, $$claim('a', 'late fail', 'again', '{"secret": "canary"}')$$, 'failed'),
	(0, $$claim('a', 'found', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	(0, $$release('a', 'found', 1, 'canary')$$, 'released'),
	(0, $$redact('a', 'found', 'a wish')$$, 'done'),
	(0, $$reconcile('a', 'found', 1, 'occurred', '{"by": 1}', result => '"new"')$$, 'completed'),
	(0, $$reconcile('a', 'found', 1, 'occurred', '{"by": 1}', result => '"new"')$$, 'completed'),
	(0, $$claim('a', 'found', 'tool', '{"secret": "canary"}')$$, 'completed'),
	(0, $$claim('a', 'abandoned', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	(0, $$release('a', 'abandoned', 1, 'canary')$$, 'released'),
	(0, $$redact('a', 'abandoned', 'a wish')$$, 'done'),
	(0, $$reconcile('a', 'abandoned', 1, 'abandoned', '{"by": 1}', error => '"new"')$$, 'failed'),
	(0, $$claim('a', 'abandoned', 'tool', '{"secret": "canary"}')$$, 'failed'),
	(0, $$claim('a', 'next', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired'),
	(0, $$release('a', 'next', 1, 'canary')$$, 'released'),
	(0, $$redact('a', 'next', 'a wish')$$, 'done'),
	(0, $$claim('a', 'next', 'tool', '{"secret": "canary"}', lease => '1 min')$$, 'acquired/retry'),
	(0, $$complete('a', 'next', '"new"', 2)$$, 'completed'),
	(0, $$complete('a', 'next', '"new"', 2)$$, 'completed'),
	(0, $$claim('a', 'next', 'tool', '{"secret": "canary"}')$$, 'completed'),
	(0, $$redact('a', 'next', 'once more')$$, 'done'),
	(0, $$claim('a', 'next', 'tool', '{"secret": "canary"}')$$, 'completed/redacted');
CREATE TEMPORARY TABLE after_redact_told (n integer, answer text);
CREATE PROCEDURE pg_temp.tell_after_redact()
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
BEGIN
	FOR s IN SELECT * FROM after_redact ORDER BY n LOOP
		PERFORM pg_temp.clock(s.ahead);
		INSERT INTO after_redact_told VALUES (s.n, pg_temp.answer(s.call));
		COMMIT;
	END LOOP;
	PERFORM pg_temp.clock(0);
END
$$;
CALL pg_temp.tell_after_redact();
SELECT is(t.answer, s.answer, s.call) FROM after_redact AS s LEFT JOIN after_redact_told AS t USING (n) ORDER BY s.n;
SELECT is((s.result, s.error)::text, stored, call || ': what is stored')
FROM (VALUES ('late', '("""new""",)'), ('late fail', '(,"""new""")'), ('found', '("""new""",)'), ('abandoned', '(,"""new""")'), ('next', '(,)')) AS t (call, stored),
	tool_claims.status('a', call) AS s;
SELECT is((v.ok, v.reason)::text, '(t,)', call || ': its chain verifies')
FROM unnest(ARRAY['late', 'late fail', 'found', 'abandoned', 'next']) AS call, tool_claims.verify_evidence('a', call) AS v;

SELECT * FROM finish();
CALL pg_temp.forget();
