-- evidence.sql: which events are written when, the chain, and what breaks it.

\set organization tap_evidence
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(321);

CALL pg_temp.make_roles('regress_tap_worker', 'regress_tap_reconciler');
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', role || ' is a ' || duty)
FROM (VALUES ('regress_tap_worker', 'worker'), ('regress_tap_reconciler', 'reconciler')) AS t (role, duty);
SELECT is(pg_temp.answer($$set_tool_policy('all', log => 'all')$$), 'done', 'a tool that logs all');
SELECT is(pg_temp.answer($$set_tool_policy('safe', on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');
SELECT is(pg_temp.answer($$set_tool_policy('safe all', on_lease_expiry => 'reacquire', log => 'all')$$), 'done', 'and one of both');

--
-- what is written when: the calls of one key in turn, each with its answer, a number
-- moves the clock
--

CREATE TEMPORARY TABLE claim_stories (call text PRIMARY KEY, steps text[], kinds text);
INSERT INTO claim_stories VALUES
	('routine', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = in_progress$$,
		$$renew(K, 1, '1 min') = acquired$$,
		$$complete(K, '1', 1) = completed$$,
		$$complete(K, '1', 1) = completed$$,
		$$claim(K, 'tool', '{}') = completed$$], NULL),
	('routine, logged', ARRAY[
		$$claim(K, 'all', '{}', lease => '1 min') = acquired$$,
		$$claim(K, 'all', '{}', lease => '1 min') = in_progress$$,
		$$renew(K, 1, '1 min') = acquired$$,
		$$complete(K, '1', 1) = completed$$,
		$$complete(K, '1', 1) = completed$$,
		$$claim(K, 'all', '{}') = completed$$], 'acquired completed'),
	('dispatch', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$,
		$$dispatch(K, 1, 'ref') = acquired$$,
		$$dispatch(K, 1, 'ref') = acquired$$,
		$$complete(K, '1', 1) = completed$$], 'dispatched dispatched'),
	('errors', ARRAY[
		$$dispatch(K, 1) = TC001$$,
		$$claim(K, 'tool', '{}', lease => '10 min') = acquired$$,
		$$complete(K, '1', 2) = TC002$$,
		$$reconcile(K, 1, 'occurred', '{"by": 1}') = TC003$$], NULL),
	('conflicts', ARRAY[
		$$claim(K, 'tool', '{}', lease => '10 min') = acquired$$,
		$$claim(K, 'tool', '[]') = conflict/input$$,
		$$claim(K, 'tool 2', '{}') = conflict/tool_name$$,
		$$claim(K, 'tool', '[]') = conflict/input$$], 'conflict conflict conflict'),
	('refused', ARRAY[
		$$claim(K, 'tool', '{}', not_after => '2000-01-01') = refused/deadline_passed$$,
		$$claim(K, 'tool', '{}', lease => '10 min') = acquired$$], 'refused'),
	('failed', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		$$fail(K, '1', 1) = failed$$,
		$$fail(K, '1', 1) = failed$$], 'failed'),
	('retry', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		$$release(K, 1, 'why') = released$$,
		$$release(K, 1, 'why') = released$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired/retry$$,
		$$complete(K, '1', 2) = completed$$], 'released acquired'),
	('retry, logged', ARRAY[
		$$claim(K, 'all', '{}', lease => '1 min') = acquired$$,
		$$release(K, 1, 'why') = released$$,
		$$claim(K, 'all', '{}', lease => '1 min') = acquired/retry$$,
		$$complete(K, '1', 2) = completed$$], 'acquired released acquired completed'),
	('takeover', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$,
		'61',
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired/takeover$$], 'released acquired'),
	('takeover of a safe tool', ARRAY[
		$$claim(K, 'safe', '{}', lease => '1 min') = acquired$$,
		'61',
		$$claim(K, 'safe', '{}', lease => '1 min') = acquired/takeover$$,
		$$complete(K, '1', 2) = completed$$], 'released acquired'),
	('reported', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$,
		$$claim(K, 'tool', '{}') = uncertain/reported$$,
		$$complete(K, '1', 1) = completed$$], 'uncertain completed'),
	('expired', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		'61',
		$$claim(K, 'tool', '{}') = uncertain/lease_expired$$,
		$$claim(K, 'tool', '{}') = uncertain/lease_expired$$,
		$$complete(K, '1', 1) = completed$$], 'uncertain completed'),
	('expired, failed', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		'61',
		$$fail(K, '1', 1) = failed$$], 'uncertain failed'),
	('expired, safe, completed', ARRAY[
		$$claim(K, 'safe', '{}', lease => '1 min') = acquired$$,
		'61',
		$$complete(K, '1', 1) = completed$$], 'released completed'),
	('expired, swept', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		'61',
		$$sweep() = done$$,
		$$sweep() = done$$,
		$$complete(K, '1', 1) = completed$$], 'uncertain completed'),
	('expired, free, swept', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$,
		'61',
		$$sweep() = done$$,
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired/takeover$$], 'released acquired'),
	('reconciled', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		'61',
		$$reconcile(K, 1, 'not_occurred', '{"by": 1}') = released$$,
		$$reconcile(K, 1, 'occurred', '{"by": 2}') = completed$$,
		$$reconcile(K, 1, 'occurred', '{"by": 2}') = completed$$,
		$$report_late(K, 1, '"late"') = done$$], 'uncertain reconciled reconciled late_report'),
	('redacted', ARRAY[
		$$claim(K, 'tool', '{}', lease => '1 min') = acquired$$,
		$$claim(K, 'tool', '[]') = conflict/input$$,
		$$complete(K, '1', 1) = completed$$,
		$$redact(K, 'a wish') = done$$,
		$$claim(K, 'tool', '{}') = completed/redacted$$], 'conflict redacted');

CREATE TEMPORARY TABLE wrong (call text, step text, answer text);
CREATE PROCEDURE pg_temp.tell_claims()
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
	step text;
	parts text[];
	answer text;
BEGIN
	FOR s IN SELECT * FROM claim_stories LOOP
		PERFORM pg_temp.clock(0);
		FOREACH step IN ARRAY s.steps LOOP
			IF step ~ '^\d+$' THEN
				PERFORM pg_temp.clock(step::integer);
			ELSE
				parts := regexp_match(step, '^(.*) = (.*)$');
				answer := pg_temp.answer(replace(parts[1], 'K', format('%L, %L', 'story', s.call)));
				IF answer <> parts[2] THEN
					INSERT INTO wrong VALUES (s.call, step, answer);
				END IF;
			END IF;
			COMMIT;
		END LOOP;
	END LOOP;
	PERFORM pg_temp.clock(0);
END
$$;
CALL pg_temp.tell_claims();
SELECT is_empty('TABLE wrong', 'every step answered as it should');
SELECT is(pg_temp.kinds('story', call), kinds, call || ': its events') FROM claim_stories ORDER BY call;
SELECT is((ok, broken_at, reason)::text, '(t,,)', call || ': verifies')
FROM claim_stories, tool_claims.verify_evidence('story', call) ORDER BY call;

--
-- the columns
--

SELECT results_eq(
	$$SELECT seq::bigint, kind::text COLLATE "C", attempt FROM tool_claims.evidence('story', 'reconciled')$$,
	$$VALUES (1::bigint, 'uncertain'::text COLLATE "C", 1), (2, 'reconciled', 1), (3, 'reconciled', 1), (4, 'late_report', 1)$$,
	'seq counts from 1, evidence is in its order');
SELECT results_eq(
	$$SELECT previous::text FROM tool_claims.evidence('story', 'reconciled')$$,
	$$SELECT lag(hash::text) OVER (ORDER BY seq) FROM tool_claims.evidence('story', 'reconciled')$$,
	'each names the one before');
SELECT is(pg_temp.answer($$claim('who', 'c', 'all', '{}', lease => '1 min')$$, 'regress_tap_worker'), 'acquired', 'a worker claims');
SELECT is(pg_temp.answer($$mark_uncertain('who', 'c', 1, 'lost')$$, 'regress_tap_reconciler'), 'uncertain/reported', 'a reconciler marks it');
SELECT is((SELECT string_agg(role || ' of ' || principal, ', ' ORDER BY seq) FROM tool_claims.evidence('who', 'c')),
	format('regress_tap_worker of %1$s, regress_tap_reconciler of %1$s', session_user),
	'role: the effective one, principal: the session user');
SELECT ok(at BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp(), 'at: now') FROM tool_claims.evidence('who', 'c');
-- JSON from outside is a string in the detail
SELECT is(pg_temp.answer($$reconcile('who', 'c', 1, 'occurred', '{"seen": "in  the books"}', result => '  {"r":1,"r":2} ')$$, 'regress_tap_reconciler'), 'completed', 'reconciled');
SELECT ok(detail::text LIKE '%in  the books%', 'reconciled: the evidence is in the detail') FROM tool_claims.evidence('who', 'c') WHERE seq = 3;
SELECT ok(detail::text LIKE '%occurred%', '… and the finding') FROM tool_claims.evidence('who', 'c') WHERE seq = 3;
SELECT is(pg_temp.answer($$report_late('who', 'c', 1, ' {"n":1e99999999999,"u":"\u0000"} ')$$), 'done', 'a late report of anything');
SELECT ok(EXISTS (
		SELECT FROM tool_claims.evidence('who', 'c') AS e, jsonb_each(e.detail) AS d
		WHERE e.seq = 4 AND jsonb_typeof(d.value) = 'string' AND d.value #>> '{}' = ' {"n":1e99999999999,"u":"\u0000"} '),
	'stands in the detail as a string that holds its text');
SELECT ok(detail::text LIKE '%lease_expired%', 'an expiry says so') FROM tool_claims.evidence('story', 'expired') WHERE seq = 1;
SELECT ok(detail::text LIKE '%input%', 'a conflict names the field') FROM tool_claims.evidence('story', 'conflicts') WHERE seq = 1;
SELECT ok(detail::text LIKE '%deadline_passed%', 'a refusal its reason') FROM tool_claims.evidence('story', 'refused') WHERE seq = 1;
SELECT is(pg_temp.answer($$claim('who', 'canary', 'tool', '{"secret": "canary"}', lease => '1 min')$$), 'acquired', 'a claim');
SELECT is(pg_temp.answer($$claim('who', 'canary', 'tool', '{"secret": "canary 2"}')$$), 'conflict/input', 'a conflict');
SELECT ok(detail::text NOT LIKE '%canary%', 'no input in the evidence of a conflict') FROM tool_claims.evidence('who', 'canary');

-- texts that JSON has to escape
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$claim(E'a "task"\\\n€\t\x1f\x7f', E'/\b', 'tool', '{}', lease => '1 min')$$, 'acquired'),
	(2, $$claim(E'a "task"\\\n€\t\x1f\x7f', E'/\b', 'tool', '[]')$$, 'conflict/input'),
	(3, $$mark_uncertain(E'a "task"\\\n€\t\x1f\x7f', E'/\b', 1, E'"\\u0000"\n€')$$, 'uncertain/reported')
) AS t (n, call, answer) ORDER BY n;
SELECT is(ok, true, 'a chain of such texts verifies') FROM tool_claims.verify_evidence(E'a "task"\\\n€\t\x1f\x7f', E'/\b');
SELECT is(detail ->> 'text', E'"\\u0000"\n€', 'and tells them') FROM tool_claims.evidence(E'a "task"\\\n€\t\x1f\x7f', E'/\b') WHERE seq = 2;

-- an event lives and dies with its transaction
BEGIN;
SELECT is(pg_temp.answer($$claim('who', 'canary', 'tool', '[]')$$), 'conflict/input', 'a conflict');
ROLLBACK;
SELECT is(pg_temp.kinds('who', 'canary'), 'conflict', 'rolled back: no event');
-- several in one transaction, and in a savepoint that goes
BEGIN;
SELECT is(pg_temp.answer($$claim('who', 'many', 'all', '{}', lease => '1 min')$$), 'acquired', 'acquired');
SELECT is(pg_temp.answer($$claim('who', 'many', 'all', '[]')$$), 'conflict/input', 'a conflict');
SAVEPOINT s;
SELECT is(pg_temp.answer($$release('who', 'many')$$), 'released', 'released');
ROLLBACK TO s;
SELECT is(pg_temp.answer($$fail('who', 'many', '1')$$), 'failed', 'failed');
SELECT is(pg_temp.kinds('who', 'many'), 'acquired conflict failed', 'the chain inside the transaction');
COMMIT;
SELECT is(pg_temp.kinds('who', 'many'), 'acquired conflict failed', 'and after it');
SELECT is(ok, true, 'verifies') FROM tool_claims.verify_evidence('who', 'many');
-- neither key nor events
SELECT is((ok, broken_at, reason)::text, '(t,,"nothing is known under this key")', 'a chain without events is whole, and says that it is none') FROM tool_claims.verify_evidence('who', 'nobody');
SELECT is_empty($$SELECT * FROM tool_claims.evidence('who', 'nobody')$$, 'it lists nothing');

--
-- the hash, recomputed: with the extension's canonical form, and with nothing of it
--

CREATE VIEW pg_temp.ours AS
SELECT * FROM tool_claims.events WHERE organization = current_setting('tool_claims.organization');
SELECT is(
	(SELECT count(*)::integer FROM pg_temp.ours AS e
	WHERE e.hash::text IS DISTINCT FROM tool_claims.digest(json_build_object(
		'v', 1, 'organization', e.organization, 'task_id', e.task_id, 'tool_call_id', e.tool_call_id, 'seq', e.seq,
		'at', to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'kind', e.kind, 'attempt', e.attempt,
		'role', e.role, 'principal', e.principal, 'detail', e.detail_digest::text, 'previous', e.previous::text))::text),
	0, 'every hash is the digest of the event''s object');
CREATE FUNCTION pg_temp.hash(e tool_claims.events)
RETURNS tool_claims.sha256_digest
LANGUAGE sql
AS $$
	SELECT sha256(convert_to(format(
		'{"at":"%s","attempt":%s,"detail":%s,"kind":"%s","organization":%s,"previous":%s,"principal":%s,"role":%s,"seq":%s,"task_id":%s,"tool_call_id":%s,"v":1}',
		to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), coalesce(e.attempt::text, 'null'),
		coalesce(to_json(e.detail_digest::text)::text, 'null'), e.kind, to_json(e.organization), coalesce(to_json(e.previous::text)::text, 'null'),
		to_json(e.principal), to_json(e.role), e.seq, to_json(e.task_id), to_json(e.tool_call_id)), 'UTF8'))::tool_claims.sha256_digest
$$;
SELECT is((SELECT count(*)::integer FROM tool_claims.events AS e
	WHERE e.organization = :'organization' AND e.hash::text IS DISTINCT FROM pg_temp.hash(e)::text),
	0, '… and of the text that the manual spells out');
SELECT cmp_ok((SELECT count(*)::integer FROM pg_temp.ours), '>', 40, 'of many events');
SELECT is(
	(SELECT count(*)::integer FROM pg_temp.ours AS e WHERE e.detail IS NOT NULL AND e.detail_digest::text IS DISTINCT FROM tool_claims.digest(e.detail)::text),
	0, 'the detail''s digest is of its canonical form');

--
-- touched by a superuser with the triggers off
--

CREATE TEMPORARY TABLE tampering (what text PRIMARY KEY, statement text, broken_at integer);
INSERT INTO tampering VALUES
	('a changed detail', $$UPDATE E SET detail = '{"changed": 1}' WHERE W AND seq = 2$$, 2),
	('a detail gone', $$UPDATE E SET detail = NULL WHERE W AND seq = 2$$, NULL),
	('a changed detail and its digest', $$UPDATE E SET detail = '{"changed": 1}', detail_digest = tool_claims.digest('{"changed": 1}') WHERE W AND seq = 2$$, 2),
	('a changed kind', $$UPDATE E SET kind = 'released' WHERE W AND seq = 1$$, 1),
	('a changed time', $$UPDATE E SET at = at + interval '1 microsecond' WHERE W AND seq = 3$$, 3),
	('a changed attempt', $$UPDATE E SET attempt = 2 WHERE W AND seq = 3$$, 3),
	('a changed role', $$UPDATE E SET role = 'somebody' WHERE W AND seq = 2$$, 2),
	('a changed principal', $$UPDATE E SET principal = 'somebody' WHERE W AND seq = 2$$, 2),
	('a changed key', $$UPDATE E SET tool_call_id = 'T' WHERE organization = current_setting('tool_claims.organization') AND task_id = 'story' AND tool_call_id = 'expired' AND seq = 1$$, NULL),
	('a changed hash', $$UPDATE E SET hash = tool_claims.digest('{}') WHERE W AND seq = 2$$, 2),
	('the first gone', $$DELETE FROM E WHERE W AND seq = 1$$, NULL),
	('one in the middle gone', $$DELETE FROM E WHERE W AND seq = 2$$, NULL),
	('one gone, the rest renumbered', $$WITH d AS (DELETE FROM E WHERE W AND seq = 2) UPDATE E SET seq = seq - 1 WHERE W AND seq > 2$$, NULL),
	('two exchanged', $$UPDATE E SET seq = 5 - seq WHERE W AND seq IN (2, 3)$$, NULL),
	('one more in the middle', $$INSERT INTO E SELECT (jsonb_populate_record(e.*, jsonb_build_object('kind', 'failed', 'hash', tool_claims.digest('{}')))).* FROM E AS e WHERE W AND seq = 2$$, NULL),
	('one more at the end, not linked', $$INSERT INTO E SELECT (jsonb_populate_record(e.*, jsonb_build_object('seq', 9, 'hash', tool_claims.digest('{}')))).* FROM E AS e WHERE W AND seq = 4$$, NULL);
CREATE FUNCTION pg_temp.tamper(statement text, call text DEFAULT 'reconciled')
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	verdict record;
BEGIN
	SET LOCAL session_replication_role = 'replica';
	EXECUTE regexp_replace(regexp_replace(statement, '\mE\M', 'tool_claims.events', 'g'), '\mW\M',
		'organization = current_setting(''tool_claims.organization'') AND task_id = ''story'' AND tool_call_id = ' || quote_literal(call), 'g');
	SELECT * INTO verdict FROM tool_claims.verify_evidence('story', call);
	RAISE EXCEPTION '%', concat_ws(' ', CASE WHEN verdict.ok THEN 'whole' ELSE 'broken' END,
		verdict.broken_at, CASE WHEN verdict.reason IS NULL THEN 'without a reason' END) USING ERRCODE = 'ZY001';
EXCEPTION WHEN SQLSTATE 'ZY001' THEN
	RETURN SQLERRM;
END
$$;
SELECT ok(pg_temp.tamper(statement) LIKE 'broken ' || coalesce(broken_at::text, '_') || '%', format('%s: %s', what, pg_temp.tamper(statement)))
FROM tampering WHERE what NOT IN ('a detail gone', 'a changed key');
SELECT ok(pg_temp.tamper(statement) LIKE 'broken _', format('%s: %s', what, pg_temp.tamper(statement)))
FROM tampering WHERE what = 'a detail gone';
SELECT is((ok)::text, 'true', 'nothing of it stays') FROM tool_claims.verify_evidence('story', 'reconciled');

--
-- proposals: their events, in one chain with those of the claim
--

SELECT is(pg_temp.answer(format('add_approver(%L)', principal)), 'done', principal || ' approves') FROM unnest(ARRAY['ann', 'bob']) AS principal;
INSERT INTO stories (name, steps) VALUES
	('approval', ARRAY[
		$$propose(K, 'two', '{"secret": "canary"}', 'agent', summary => 'a summary') = proposed$$,
		$$claim(K, 'two', '{"secret": "canary"}', lease => '1 min') = refused/approval_required$$,
		$$propose(K, 'two', '[]', 'agent') = conflict/input$$,
		$$approve_as('eve', K, D) = refused/not_an_approver$$,
		$$approve_as('ann', K, D, 'seen', '10 min') = recorded$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/pending$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$reserve_by_digest(K, O, D, lease => '1 min') = refused/other_execution$$,
		$$reserve_by_digest(K, E, D, lease => '1 min', dispatched => false) = acquired$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = in_progress$$,
		$$dispatch(K, 1, 'ref') = acquired$$,
		'61',
		$$reserve_by_digest(K, E, D, lease => '1 min') = uncertain/lease_expired$$,
		$$reconcile(K, 1, 'not_occurred', '{"by": 1}') = released$$,
		'0',
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired/retry$$,
		$$complete(K, '1', 2) = completed$$,
		$$kinds = proposed refused conflict refused approved refused approved refused reserved dispatched uncertain reconciled acquired$$]),
	('approval, all logged', ARRAY[
		$$propose(K, 'all', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$complete(K, '1', 1) = completed$$]),
	('approval, rejected', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$reject_as('ann', K, D, 'no') = recorded$$,
		$$kinds = proposed rejected$$]),
	('approval, withdrawn', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$withdraw(K, 'why') = recorded$$,
		$$kinds = proposed withdrawn$$]),
	('approval, revoked', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$revoke_as('bob', K, 'why') = recorded$$,
		$$kinds = proposed approved revoked$$]),
	('approval, superseded', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$propose(K2, 'tool', '[]', 'agent', supersedes => N) = proposed$$,
		$$kinds = proposed superseded$$]),
	('approval, expired', ARRAY[
		$$propose(K, 'tool', '{}', 'agent', expires_in => '1 min') = proposed$$,
		'61',
		$$sweep() = done$$,
		$$kinds = proposed expired$$]);
SELECT is(pg_temp.answer($$set_tool_policy('two', approvals_required => 2)$$), 'done', 'two votes');
CALL pg_temp.tell();
SELECT is(have, want, format('%s: %s', name, step)) FROM told ORDER BY n;
SELECT is((ok, broken_at, reason)::text, '(t,,)', name || ': verifies')
FROM (SELECT DISTINCT name FROM told) AS t, tool_claims.verify_evidence('story', name) ORDER BY name;
SELECT is(pg_temp.kinds('story', 'approval, all logged') ~ '^proposed approved (acquired reserved|reserved acquired) completed$', true, 'all logged: the routine too');
SELECT is((detail ->> 'binding_digest', detail ->> 'execution_id', detail ->> 'actor', detail ->> 'tool_name')::text, (p.binding_digest::text, p.execution_id, 'agent', 'two')::text, 'proposed: what is bound')
FROM tool_claims.evidence('story', 'approval') AS e, tool_claims.proposals AS p WHERE p.task_id = 'story' AND p.tool_call_id = 'approval' AND e.kind = 'proposed';
SELECT is((principal, detail ->> 'comment', (detail ->> 'use_within_seconds')::numeric::integer, detail ->> 'approvals', detail ->> 'approvals_required')::text, '(ann,seen,600,1,2)', 'approved: who, and what he said')
FROM tool_claims.evidence('story', 'approval') WHERE kind = 'approved' ORDER BY seq LIMIT 1;
SELECT is((detail ->> 'execution_id', detail ->> 'attempt')::text, (p.execution_id, '1')::text, 'reserved: for which execution')
FROM tool_claims.evidence('story', 'approval') AS e, tool_claims.proposals AS p WHERE p.task_id = 'story' AND p.tool_call_id = 'approval' AND e.kind = 'reserved';
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('story', 'approval') WHERE detail::text LIKE '%canary%'), 0, 'no input in it');
SELECT ok((SELECT count(*) FROM tool_claims.timeline('story', 'approval') AS t WHERE t ~ 'proposed|approved|reserved|refused') >= 8, 'the timeline draws them');
SELECT is(
	(SELECT count(*)::integer FROM tool_claims.events AS e
	WHERE e.organization = :'organization' AND e.tool_call_id LIKE 'approval%' AND e.hash::text IS DISTINCT FROM pg_temp.hash(e)::text),
	0, 'hashes as the manual spells them out');

-- every event, changed, deleted and put elsewhere by a superuser with the triggers off
SELECT ok(pg_temp.tamper(replace(statement, 'SEQ', e.seq::text), 'approval') LIKE 'broken%', format('%s at %s, %s', what, e.seq, e.kind))
FROM tool_claims.evidence('story', 'approval') AS e, (VALUES
	(1, 'changed detail', $$UPDATE E SET detail = '{"changed": 1}' WHERE W AND seq = SEQ$$),
	(2, 'changed detail, with its digest', $$UPDATE E SET detail = '{"changed": 1}', detail_digest = tool_claims.digest('{"changed": 1}') WHERE W AND seq = SEQ$$),
	(3, 'changed kind', $$UPDATE E SET kind = 'late_report' WHERE W AND seq = SEQ$$),
	(4, 'changed person', $$UPDATE E SET principal = 'somebody' WHERE W AND seq = SEQ$$),
	(5, 'changed role', $$UPDATE E SET role = 'somebody' WHERE W AND seq = SEQ$$),
	(6, 'changed time', $$UPDATE E SET at = at + interval '1 microsecond' WHERE W AND seq = SEQ$$),
	(7, 'deleted', $$DELETE FROM E WHERE W AND seq = SEQ$$),
	(8, 'deleted, the rest renumbered', $$WITH d AS (DELETE FROM E WHERE W AND seq = SEQ) UPDATE E SET seq = seq - 1 WHERE W AND seq > SEQ$$),
	(9, 'exchanged with the next', $$UPDATE E SET seq = CASE seq WHEN SEQ THEN SEQ + 1 ELSE SEQ END WHERE W AND seq IN (SEQ, SEQ + 1)$$),
	(10, 'moved to the end', $$UPDATE E SET seq = 100 WHERE W AND seq = SEQ$$)
) AS t (n, what, statement)
-- one that changes nothing may be the newest without being named: the heads that are kept tell
WHERE NOT (n = 9 AND e.seq = (SELECT max(seq) FROM tool_claims.evidence('story', 'approval')))
ORDER BY e.seq, n;
SELECT ok(pg_temp.tamper(statement, call) LIKE 'broken%', format('%s: %s', call, what))
FROM (VALUES
	('approval, rejected', 'the rejection gone', $$DELETE FROM E WHERE W AND kind = 'rejected'$$),
	('approval, rejected', 'made an approval', $$UPDATE E SET kind = 'approved' WHERE W AND kind = 'rejected'$$),
	('approval, withdrawn', 'the end gone', $$DELETE FROM E WHERE W AND kind = 'withdrawn'$$),
	('approval, revoked', 'the end gone', $$DELETE FROM E WHERE W AND kind = 'revoked'$$),
	('approval, superseded', 'the end gone', $$DELETE FROM E WHERE W AND kind = 'superseded'$$),
	('approval, expired', 'the end gone', $$DELETE FROM E WHERE W AND kind = 'expired'$$),
	('approval', 'all gone', $$DELETE FROM E WHERE W$$),
	('approval, rejected', 'all gone', $$DELETE FROM E WHERE W$$),
	('approval, revoked', 'the whole chain from the approval on', $$DELETE FROM E WHERE W AND seq > 1$$)
) AS t (call, what, statement);

-- what a chain alone cannot tell: its end gone, or all of it written anew
CREATE TEMPORARY TABLE heads AS SELECT * FROM tool_claims.evidence_heads();
SELECT is((SELECT count(*)::integer FROM heads WHERE organization <> :'organization'), 0, 'heads are of the session''s organization');
SELECT set_eq($$SELECT task_id, tool_call_id, hash::text FROM heads$$,
	$$SELECT task_id, tool_call_id, hash::text FROM pg_temp.ours AS e
	WHERE NOT EXISTS (SELECT FROM pg_temp.ours AS n
		WHERE (n.task_id, n.tool_call_id) = (e.task_id, e.tool_call_id) AND n.previous::text = e.hash::text)$$,
	'every event that no other names is a head');
SELECT is((ok, broken_at, reason)::text, '(t,,)', 'a whole chain with its head')
FROM heads AS h, tool_claims.verify_evidence('story', 'reconciled', h.hash) WHERE h.task_id = 'story' AND h.tool_call_id = 'reconciled';
SELECT is(ok, false, 'with another head') FROM tool_claims.verify_evidence('story', 'reconciled', tool_claims.digest('{}'));
SELECT is(ok, false, 'no events, but a head') FROM tool_claims.verify_evidence('story', 'routine', tool_claims.digest('{}'));
BEGIN;
SET LOCAL session_replication_role = 'replica';
DELETE FROM tool_claims.events
WHERE organization = :'organization' AND task_id = 'story' AND tool_call_id = 'reconciled' AND seq = 4;
SELECT is(ok, true, 'the end gone: whole') FROM tool_claims.verify_evidence('story', 'reconciled');
SELECT is(ok, false, 'but not with the head that was kept')
FROM heads AS h, tool_claims.verify_evidence('story', 'reconciled', h.hash) WHERE h.task_id = 'story' AND h.tool_call_id = 'reconciled';
ROLLBACK;
-- a head that was kept some time ago is still in the chain
CREATE TEMPORARY TABLE kept AS SELECT hash FROM tool_claims.evidence('story', 'conflicts') ORDER BY seq DESC LIMIT 1;
SELECT is(pg_temp.answer($$claim('story', 'conflicts', 'tool', '[1]')$$), 'conflict/input', 'the chain goes on');
SELECT is(ok, true, 'an earlier head is still part of it') FROM kept, tool_claims.verify_evidence('story', 'conflicts', kept.hash);

-- a fork is right with one changing branch at most
CREATE FUNCTION pg_temp.fork(fork_kind text, fork_seq integer)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	e tool_claims.events;
	verdict record;
BEGIN
	SET LOCAL session_replication_role = 'replica';
	SELECT * INTO STRICT e FROM pg_temp.ours WHERE task_id = 'story' AND tool_call_id = 'reconciled' AND seq = fork_seq;
	e.kind := fork_kind;
	e.at := e.at + interval '1 s';
	e.hash := pg_temp.hash(e);
	INSERT INTO tool_claims.events SELECT e.*;
	SELECT * INTO verdict FROM tool_claims.verify_evidence('story', 'reconciled');
	RAISE EXCEPTION '%', CASE WHEN verdict.ok THEN 'whole' ELSE 'broken' END USING ERRCODE = 'ZY001';
EXCEPTION WHEN SQLSTATE 'ZY001' THEN
	RETURN SQLERRM;
END
$$;
SELECT is(pg_temp.fork(kind, seq), verdict, format('a fork at %s: %s', seq, kind))
FROM (VALUES
	('conflict', 2, 'whole'), ('refused', 3, 'whole'), ('late_report', 4, 'whole'), ('conflict', 1, 'whole'),
	('reconciled', 3, 'broken'), ('completed', 2, 'broken'), ('failed', 4, 'whole')
) AS t (kind, seq, verdict);

--
-- append-only: not even the owner's ordinary SQL
--

SELECT isnt(pg_temp.state_of(statement), 'done', statement)
FROM (VALUES
	('UPDATE tool_claims.events SET detail = NULL'),
	('UPDATE tool_claims.events SET detail = NULL WHERE false'),
	('DELETE FROM tool_claims.events'),
	('DELETE FROM tool_claims.events WHERE false'),
	('TRUNCATE tool_claims.events'),
	('TRUNCATE tool_claims.events, tool_claims.operations CASCADE'),
	('TRUNCATE tool_claims.claim_records CASCADE'),
	('MERGE INTO tool_claims.events USING (SELECT 1) AS x ON true WHEN MATCHED THEN DELETE'),
	('INSERT INTO tool_claims.events SELECT * FROM tool_claims.events ON CONFLICT DO UPDATE SET detail = NULL')
) AS t (statement)
WHERE statement NOT LIKE 'TRUNCATE tool_claims.claim_records%';
SELECT is(pg_temp.state_of($$PREPARE regress_tap AS DELETE FROM tool_claims.events$$), 'done', 'prepared');
SELECT isnt(pg_temp.state_of($$EXECUTE regress_tap$$), 'done', 'and executed: no');
-- prune and redact close the door behind them
SELECT is(pg_temp.answer($$redact('story', 'routine', 'a wish')$$), 'done', 'redact');
SELECT is(pg_temp.answer($$redact('story', 'nobody', 'a wish')$$), 'TC001', 'a redact that raises');
SELECT isnt(pg_temp.state_of('DELETE FROM tool_claims.events WHERE false'), 'done', 'the door is shut');
SELECT is(pg_temp.answer($$prune('100 years')$$), 'done', 'prune');
SELECT isnt(pg_temp.state_of('DELETE FROM tool_claims.events WHERE false'), 'done', 'the door is shut');

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_worker', 'regress_tap_reconciler');
