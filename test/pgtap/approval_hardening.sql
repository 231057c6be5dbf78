-- approval_hardening.sql: what approvals, and what stands beside them, must not
-- do when somebody is careless, late, or wants them to.

\set organization tap_hardening
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(673);

CALL pg_temp.make_roles('regress_tap_admin', 'regress_tap_owner');
DROP SCHEMA IF EXISTS regress_tap_hardening CASCADE;
CREATE SCHEMA regress_tap_hardening;
SELECT is(pg_temp.answer(format('add_approver(%L)', principal)), 'done', principal || ' approves')
FROM unnest(ARRAY['ann', 'bob']) AS principal;

-- an answer, or that it took too long
CREATE FUNCTION pg_temp.soon(call text)
RETURNS text
LANGUAGE plpgsql
SET statement_timeout = '2s'
AS $$
BEGIN
	RETURN pg_temp.answer(call);
EXCEPTION WHEN query_canceled THEN
	RETURN 'too slow';
END
$$;

--
-- a redacted input does not run again
--

-- the check sees the input whole
CREATE FUNCTION regress_tap_hardening.whole(input json) RETURNS text LANGUAGE sql
AS $$ SELECT CASE WHEN input ->> 'n' IS NULL THEN 'there is no n' END $$;
SELECT is(pg_temp.answer($$set_tool_policy('pay', approvals_required => 1)$$), 'done', 'a policy');
SELECT is(pg_temp.answer($$set_tool_policy('checked', approvals_required => 1, input_check => 'regress_tap_hardening.whole(json)')$$), 'done', 'one with a check');
SELECT is(pg_temp.answer($$set_tool_policy('safe', approvals_required => 1, on_lease_expiry => 'reacquire')$$), 'done', 'a tool that is safe to repeat');
INSERT INTO stories (name, steps)
SELECT format('%s, %s', ending, tool), ARRAY[
	format($$propose(K, %L, '{"n": 1}', 'agent') = proposed$$, tool),
	$$approve_as('ann', K, D) = recorded$$,
	format($$reserve(K, E, %L, '{"n": 1}', 'agent', lease => '1 min') = acquired$$, tool)]
	|| steps || ARRAY[
	'claim = released',
	$$redact(K, 'a wish') = done$$]
	|| ARRAY[
	$$reserve_by_digest(K, E, D, lease => '1 min') = refused/changed_input$$,
	$$reserve_by_digest(K, E, D) = refused/changed_input$$,
	$$reserve_by_digest(K, E, D, lease => '1 min', request_id => '00000000-0000-4000-8000-000000000001') = refused/changed_input$$,
	'claim = released']
	|| ARRAY[
	format($$reserve(K, E, %L, '{"n": 2}', 'agent', lease => '1 min') = refused/changed_input$$, tool),
	format($$reserve(K, E, %L, '{}', 'agent', lease => '1 min') = refused/changed_input$$, tool),
	format($$reserve(K, E, %L, 'null', 'agent', lease => '1 min') = refused/changed_input$$, tool),
	'claim = released',
	format($$reserve(K, E, %L, '{"n": 1}', 'agent', lease => '1 min') = acquired/retry$$, tool),
	'claim = claimed',
	$$complete(K, '"done"', 2) = completed$$,
	$$reserve_by_digest(K, E, D) = completed$$,
	format($$reserve(K, E, %L, '{"n": 1}', 'agent') = completed$$, tool)]
FROM (VALUES
	('released', ARRAY[$$release(K, 1) = released$$]),
	('not occurred', ARRAY[$$mark_uncertain(K, 1, 'lost') = uncertain/reported$$, $$reconcile(K, 1, 'not_occurred', '{"by": 1}') = released$$])
) AS t (ending, steps), unnest(ARRAY['pay', 'checked']) AS tool;
INSERT INTO stories (name, steps) VALUES
	('completed and redacted', ARRAY[
		$$propose(K, 'pay', '{"n": 1}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', lease => '1 min') = acquired$$,
		$$complete(K, '"done"', 1) = completed$$,
		$$redact(K, 'a wish') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = completed/redacted$$,
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', lease => '1 min') = completed/redacted$$,
		$$reserve(K, E, 'pay', '{"n": 2}', 'agent', lease => '1 min') = refused/changed_input$$]);
CALL pg_temp.tell();
SELECT is(count(*)::integer, 4, 'nothing of the input is kept after it was redacted')
FROM tool_claims.proposal_records AS p WHERE p.organization = :'organization' AND p.tool_call_id ~ '^(released|not occurred),' AND p::text !~ '"n"';

--
-- an answer that was lost grants nothing new
--

INSERT INTO stories (name, steps)
SELECT format('lost answer, %s, %s', name, verb), ARRAY[
	format($$set_tool_policy('safe', policy_version => '%s %s') = done$$, name, verb),
	$$propose(K, 'safe', '{"n": 1}', 'agent', expires_in => '1 hour') = proposed$$,
	$$approve_as('ann', K, D, use_within => '5 min') = recorded$$,
	call || ' = acquired',
	'30',
	call || ' = acquired/already_held']
	|| steps || ARRAY[
	call || ' = ' || answer,
	'claim = ' || CASE answer WHEN 'acquired/takeover' THEN 'claimed' ELSE 'released' END,
	format($$kinds = proposed approved reserved %s$$, CASE answer WHEN 'acquired/takeover' THEN 'released acquired' ELSE 'refused' END)]
	|| cleanup
FROM (VALUES
	('all as it was', ARRAY['120'], 'acquired/takeover', '{}'::text[]),
	('too late', ARRAY['600'], 'refused/use_by_passed', '{}'),
	('approver gone', ARRAY[$$remove_approver('ann') = done$$, '120'], 'refused/approver_ineligible', ARRAY[$$add_approver('ann') = done$$]),
	('policy changed', ARRAY[$$set_tool_policy('safe', max_attempts => 5) = done$$, '120'], 'refused/policy_changed', '{}')
) AS t (name, steps, answer, cleanup), (VALUES
	('reserve', $$reserve(K, E, 'safe', '{"n": 1}', 'agent', lease => '1 min', request_id => '00000000-0000-4000-8000-000000000001')$$),
	('reserve_by_digest', $$reserve_by_digest(K, E, D, lease => '1 min', request_id => '00000000-0000-4000-8000-000000000001')$$)
) AS v (verb, call);
INSERT INTO stories (name, steps) VALUES
	('lost answer, nobody knows', ARRAY[
		$$propose(K, 'pay', '{"n": 1}', 'agent', expires_in => '1 hour') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', lease => '1 min', request_id => '00000000-0000-4000-8000-000000000001') = acquired$$,
		'120',
		$$reserve(K, E, 'pay', '{"n": 1}', 'agent', lease => '1 min', request_id => '00000000-0000-4000-8000-000000000001') = uncertain/lease_expired$$]);
CALL pg_temp.tell();

--
-- groups: somebody of his own for each of them
--

-- many people in four groups, nobody in the fifth
SELECT is(pg_temp.answer(format('add_approver(%L, %L)', format('%s %s', grp, n), grp)), 'done', format('person %s of %s', n, grp))
FROM unnest(ARRAY['g1', 'g2', 'g3', 'g4']) AS grp, generate_series(1, 60) AS n WHERE n IN (1, 60);
SELECT is(count(tool_claims.add_approver(format('%s %s', grp, n), grp))::integer, 232, 'and those between')
FROM unnest(ARRAY['g1', 'g2', 'g3', 'g4']) AS grp, generate_series(2, 59) AS n;
SELECT is(count(tool_claims.add_approver(format('all %s', n), 'h' || grp))::integer, 240, 'sixty people in four groups each')
FROM generate_series(1, 4) AS grp, generate_series(1, 60) AS n;
SELECT is(count(tool_claims.add_approver(format('few %s', n), 'few'))::integer, 15, 'fifteen people')
FROM generate_series(1, 15) AS n;
SELECT is(pg_temp.answer(format('set_tool_policy(%L, approvals_required => 1, approver_groups => %L)', tool, groups)), 'done', 'groups of ' || tool)
FROM (VALUES
	('none in the last', '{g1,g2,g3,g4,g5}'), ('none in the first', '{g5,g1,g2,g3,g4}'), ('everybody in four', '{h1,h2,h3,h4,h5}'),
	('four of four', '{h1,h2,h3,h4}'), ('sixteen', ARRAY(SELECT 'few' FROM generate_series(1, 16))::text), ('fifteen', ARRAY(SELECT 'few' FROM generate_series(1, 15))::text)
) AS t (tool, groups);
SELECT is(pg_temp.soon(format('propose(%L, %L, %L, %L, %L)', 'groups', tool, tool, '{}', 'agent')), answer, format('%s: %s at once', tool, answer))
FROM (VALUES
	('none in the last', 'refused/no_eligible_approver'), ('none in the first', 'refused/no_eligible_approver'), ('everybody in four', 'refused/no_eligible_approver'),
	('four of four', 'proposed'), ('sixteen', 'refused/no_eligible_approver'), ('fifteen', 'proposed')
) AS t (tool, answer);
SELECT is(concat_ws(' ', pg_temp.soon(format('approve_as(%L, %L, %L, %L)', 'few ' || n, 'groups', 'fifteen', pg_temp.binding('groups', 'fifteen'))), pg_temp.proposal('groups', 'fifteen')),
	CASE WHEN n < 15 THEN 'recorded pending' ELSE 'recorded approved' END, format('vote %s of 15', n))
FROM generate_series(1, 15) AS n ORDER BY n;
SELECT is(pg_temp.answer($$add_approver('few 16', 'few')$$), 'done', 'a sixteenth');
SELECT is(pg_temp.soon($$propose('groups', 'sixteen', 'sixteen', '{}', 'agent')$$), 'proposed', 'sixteen: proposed');

-- who stands for which group is found out anew with each vote
SELECT is(pg_temp.answer(format('add_approver(%L, %L)', principal, grp)), 'done', format('%s is of %s', principal, grp))
FROM (VALUES ('cat', 'a'), ('cat', 'b'), ('dan', 'a'), ('eve', 'a'), ('w', 'k1'), ('x', 'k1'), ('x', 'k2'), ('y', 'k2'), ('y', 'k3'), ('z', 'k3'), ('z', 'k4')) AS t (principal, grp);
SELECT is(pg_temp.answer(format('set_tool_policy(%L, approver_groups => %L)', tool, groups)), 'done', groups)
FROM (VALUES ('a b', '{a,b}'), ('b a', '{b,a}'), ('chain', '{k1,k2,k3,k4}'), ('chain back', '{k4,k3,k2,k1}')) AS t (tool, groups);
INSERT INTO stories (name, steps)
SELECT format('%s: %s, %s', tool, first, second), ARRAY[
	format($$propose(K, %L, '{}', 'agent') = proposed$$, tool),
	format($$approve_as(%L, K, D) = recorded$$, first),
	'proposal = pending',
	format($$approve_as(%L, K, D) = recorded$$, second),
	'proposal = ' || state]
	|| CASE state WHEN 'pending' THEN ARRAY[$$approve_as('cat', K, D) = recorded$$, 'proposal = approved'] ELSE '{}' END
	|| ARRAY[format($$reserve(K, E, %L, '{}', 'agent', lease => '1 min') = acquired$$, tool)]
FROM unnest(ARRAY['a b', 'b a']) AS tool,
	(VALUES ('cat', 'dan', 'approved'), ('dan', 'cat', 'approved'), ('dan', 'eve', 'pending'), ('eve', 'dan', 'pending')) AS t (first, second, state);
INSERT INTO stories (name, steps)
SELECT format('%s: %s', tool, concat_ws(', ', p, q, r, s)), ARRAY[
	format($$propose(K, %L, '{}', 'agent') = proposed$$, tool),
	format($$approve_as(%L, K, D) = recorded$$, p),
	format($$approve_as(%L, K, D) = recorded$$, q),
	format($$approve_as(%L, K, D) = recorded$$, r),
	'proposal = pending',
	format($$approve_as(%L, K, D) = recorded$$, s),
	'proposal = approved']
FROM unnest(ARRAY['chain', 'chain back']) AS tool,
	unnest(ARRAY['w', 'x', 'y', 'z']) AS p, unnest(ARRAY['w', 'x', 'y', 'z']) AS q, unnest(ARRAY['w', 'x', 'y', 'z']) AS r, unnest(ARRAY['w', 'x', 'y', 'z']) AS s
WHERE (SELECT count(DISTINCT v) FROM unnest(ARRAY[p, q, r, s]) AS v) = 4;
CALL pg_temp.tell();

--
-- registrations
--

CREATE FUNCTION pg_temp.long_name(seed text, length integer)
RETURNS text
LANGUAGE sql
AS $$ SELECT left(string_agg(encode(sha512((seed || n)::bytea), 'base64'), ''), length) FROM generate_series(1, 8) AS n $$;
SELECT is(pg_temp.answer(format('%s(%L, %L, %L, %L, %L)', verb, pg_temp.long_name('1', n), pg_temp.long_name('2', n), pg_temp.long_name('3', n), pg_temp.long_name('4', n), pg_temp.long_name('5', n))),
	answer, format('%s: five names of %s bytes', verb, n))
FROM (VALUES ('add_approver', 510, '22023'), ('add_approver', 512, '22023'), ('add_approver', 400, 'done'), ('remove_approver', 400, 'done')) AS t (verb, n, answer);
SELECT is(pg_temp.answer(format('add_approver(%L, %L, %L, %L, %L)', repeat('x', 510), repeat('x', 510), repeat('x', 510), repeat('x', 510), repeat('x', 510))), '22023', 'however well they compress');
SELECT is(pg_temp.answer(format('add_approver(%L)', pg_temp.long_name('1', 512))), 'done', 'one long name');
SELECT is(pg_temp.answer(format('remove_approver(%L)', pg_temp.long_name('1', 512))), 'done', 'is removed');

--
-- keys under which a signature proves nothing
--

CREATE FUNCTION pg_temp.add_key(key_id text, public_key text)
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.answer(format('add_mark_key(%L, %L, %L)', key_id, decode('302a300506032b6570032100' || public_key, 'hex'), 'ed25519')) $$;
SELECT is(pg_temp.add_key('weak', public_key), '22023', 'a point of small order: ' || public_key)
FROM (VALUES
	('01' || repeat('00', 31)), (repeat('00', 32)), ('ec' || repeat('ff', 30) || '7f'), (repeat('00', 31) || '80'),
	('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05'), ('26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85'),
	('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a'), ('c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa')
) AS t (public_key);
SELECT is(pg_temp.add_key(n, public_key), 'done', 'a key of RFC 8032: ' || public_key)
FROM (VALUES
	('1', 'd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a'), ('2', '3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'),
	('3', 'fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025')) AS t (n, public_key);

--
-- an accepted result is the one that was accepted
--

CREATE FUNCTION pg_temp.verdict(call text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	EXECUTE 'SELECT concat_ws(''/'', verdict, reason) FROM tool_claims.' || call INTO answer;
	RETURN answer;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END
$$;
SELECT is(pg_temp.answer($$add_mark_key('h', 'a secret of thirty-two bytes ....')$$), 'done', 'a key');
SELECT is(pg_temp.verdict($$expect_result('marked', '2100-01-01', mark_context => 'context')$$), 'pending', 'a marked result is expected');
SELECT tool_claims.mark_content('{"a": 1}', 'h', 'context') AS mark \gset
SELECT is(pg_temp.verdict(format('offer_result(%L, %L, %L, %L, %L)', 'marked', 'succeeded', result, content, :'mark')), answer, format('offer %s: %s with %s', n, result, content))
FROM (VALUES
	(1, '{"a": 1}', '{"a": 1}', 'accepted'), (2, '{"a": 2}', '{"a": 1}', 'rejected/already_accepted'), (3, '{"a":1.0}', '{"a": 1}', 'accepted'),
	(4, NULL, '{"a": 1}', 'accepted'), (5, '{"a": 1, "b": 2}', '{"a": 1}', 'rejected/already_accepted'), (6, '{"a": 1}', '{"a": 2}', 'rejected/already_accepted'),
	(7, 'null', '{"a": 1}', 'rejected/already_accepted'), (8, '{"a": 1}', '{"a": 1}', 'accepted')) AS t (n, result, content, answer) ORDER BY n;
SELECT is(result::text, '{"a": 1}', 'the first one stands') FROM tool_claims.result_gates WHERE organization = :'organization';

--
-- evidence under a parent table
--

BEGIN;
CREATE TABLE regress_tap_hardening.parent (LIKE tool_claims.events);
ALTER TABLE tool_claims.events INHERIT regress_tap_hardening.parent;
CREATE TEMPORARY TABLE events_before AS SELECT count(*) AS n, md5(string_agg(e::text, '' ORDER BY e::text)) AS digest FROM tool_claims.events AS e;
SELECT is(pg_temp.state_of(statement), '42501', statement)
FROM (VALUES
	($$DELETE FROM regress_tap_hardening.parent$$),
	($$DELETE FROM regress_tap_hardening.parent WHERE organization = 'tap_hardening' AND kind = 'approved'$$),
	($$UPDATE regress_tap_hardening.parent SET kind = 'rejected'$$),
	($$UPDATE regress_tap_hardening.parent SET organization = organization$$),
	($$TRUNCATE regress_tap_hardening.parent$$),
	($$DELETE FROM tool_claims.events$$)) AS t (statement);
SELECT is((count(*), md5(string_agg(e::text, '' ORDER BY e::text)))::text, (SELECT b::text FROM events_before AS b), 'the events are as they were') FROM tool_claims.events AS e;
ROLLBACK;

--
-- an acceptance without a recovery is an administrator's own affair
--

SELECT is(pg_temp.answer($$grant_duty('regress_tap_admin', 'administrator')$$), 'done', 'an administrator');
SET tool_claims.organization = 'tap_hardening_2';
CALL pg_temp.forget();
SET tool_claims.organization = 'tap_hardening';
CREATE TEMPORARY TABLE recovered AS SELECT * FROM unnest(ARRAY['tap_hardening', 'tap_hardening_2']) AS organization;
CREATE FUNCTION pg_temp.as_of(organization text, call text)
RETURNS text
LANGUAGE sql
SET tool_claims.organization = ''
AS $$
	SELECT set_config('tool_claims.organization', organization, true);
	SELECT pg_temp.answer(call);
$$;
SELECT is(pg_temp.as_of(organization, call), answer, format('%s: %s', organization, call))
FROM recovered, (VALUES
	(1, $$add_approver('ann')$$, 'done'), (2, $$set_tool_policy('tool', approvals_required => 1)$$, 'done'),
	(3, $$claim('recovery', 'claim', 'open', '{}', lease => '1 hour')$$, 'acquired'), (4, $$propose('recovery', 'proposal', 'tool', '{}', 'agent')$$, 'proposed')) AS t (n, call, answer)
ORDER BY organization, n;
SELECT is(pg_temp.as_of(p.organization, format('approve_as(%L, %L, %L, %L)', 'ann', 'recovery', 'proposal', p.binding_digest)), 'recorded', p.organization || ': approved')
FROM tool_claims.proposal_records AS p WHERE p.task_id = 'recovery' AND p.organization IN (SELECT organization FROM recovered);
CREATE FUNCTION pg_temp.left_open()
RETURNS text
LANGUAGE sql
AS $$
	SELECT string_agg(concat_ws(' ', r.organization, c.state, p.state), ', ' ORDER BY r.organization)
	FROM recovered AS r
	JOIN tool_claims.claim_records AS c USING (organization)
	JOIN tool_claims.proposal_records AS p USING (organization, task_id)
	WHERE c.task_id = 'recovery' AND c.tool_call_id = 'claim' AND p.tool_call_id = 'proposal'
$$;
SELECT is(pg_temp.left_open(), 'tap_hardening c a, tap_hardening_2 c a', 'a claim in progress and an approval in each');
BEGIN;
SELECT is(pg_temp.answer($$accept_recovery('-infinity')$$, 'regress_tap_admin'), 'done', 'accepted by the one administrator');
SELECT is(pg_temp.left_open(), 'tap_hardening u v, tap_hardening_2 c a', 'the other organization goes on');
ROLLBACK;
BEGIN;
SET LOCAL tool_claims.organization = 'tap_hardening_2';
SELECT is(pg_temp.answer($$accept_recovery('-infinity')$$, 'regress_tap_admin'), 'done', 'accepted in the other');
SELECT is(pg_temp.left_open(), 'tap_hardening c a, tap_hardening_2 u v', 'and the first one goes on');
ROLLBACK;
BEGIN;
SET LOCAL tool_claims.organization = '*';
SELECT is(pg_temp.answer($$accept_recovery('-infinity')$$), 'done', 'accepted under *');
SELECT is(pg_temp.left_open(), 'tap_hardening u v, tap_hardening_2 u v', 'for all');
ROLLBACK;
BEGIN;
UPDATE tool_claims.server_identity SET timeline = timeline + 98;
-- (has every session look at the row again)
ALTER TABLE tool_claims.server_identity SET (fillfactor = 90);
SELECT is(pg_temp.answer($$accept_recovery('-infinity')$$, 'regress_tap_admin'), 'done', 'a recovery that is pending');
SELECT is(pg_temp.left_open(), 'tap_hardening u v, tap_hardening_2 u v', 'is the whole server''s');
ROLLBACK;
SELECT is(pg_temp.left_open(), 'tap_hardening c a, tap_hardening_2 c a', 'all was rolled back');
-- (another look, now that the row is as it was)
SELECT is(pg_temp.answer('sweep()'), 'done', 'a verb');

--
-- doctor() does not need a superuser, be it among the owners
--

BEGIN;
ALTER ROLE regress_tap_admin SET tool_claims.organization = 'tap_hardening';
GRANT USAGE ON SCHEMA tool_claims TO regress_tap_owner;
DO $$
DECLARE
	t regclass;
BEGIN
	FOR t IN SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'tool_claims'::regnamespace AND relkind IN ('r', 'v') LOOP
		EXECUTE format('ALTER TABLE %s OWNER TO regress_tap_owner', t);
	END LOOP;
	GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA tool_claims TO regress_tap_owner;
END
$$;
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.doctor()', 'regress_tap_admin'), 'done', 'doctor() with tables of an ordinary owner');
ROLLBACK;

SELECT is(have, want, format('%s: %s', name, step)) FROM told ORDER BY n;
SELECT is((SELECT string_agg(DISTINCT p.tool_call_id, ', ') FROM tool_claims.proposals AS p, tool_claims.verify_evidence(p.task_id, p.tool_call_id) AS v WHERE NOT v.ok),
	NULL, 'every chain verifies');

SELECT * FROM finish();
DROP SCHEMA regress_tap_hardening CASCADE;
DELETE FROM tool_claims.result_gates WHERE organization = :'organization';
DELETE FROM tool_claims.mark_keys WHERE organization = :'organization';
SET tool_claims.organization = 'tap_hardening_2';
CALL pg_temp.forget();
SET tool_claims.organization = :'organization';
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_admin', 'regress_tap_owner');
