-- decisions.sql: every state and every verb, each reason to refuse, votes that count.

\set organization tap_decisions
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(981);

CALL pg_temp.make_roles('regress_tap_agent', 'regress_tap_deputy', 'regress_tap_other', 'regress_tap_ann', 'regress_tap_bob', 'regress_tap_service');
GRANT regress_tap_agent TO regress_tap_deputy;
GRANT regress_tap_bob TO regress_tap_ann;
SELECT is(pg_temp.answer(format('grant_duty(%L, %L)', role, duty)), 'done', role || ' is a ' || duty)
FROM (VALUES
	('regress_tap_agent', 'proposer'), ('regress_tap_deputy', 'proposer'), ('regress_tap_other', 'proposer'),
	('regress_tap_ann', 'approver'), ('regress_tap_bob', 'approver'), ('regress_tap_service', 'approval_service')) AS t (role, duty);
SELECT is(pg_temp.answer(format('add_approver(%L, %L)', principal, grp)), 'done', format('%s approves, of group "%s"', principal, grp))
FROM (VALUES
	('ann', 'a'), ('ann', 'b'), ('bob', 'a'), ('cat', ''), ('dan', 'b'), ('agent', ''),
	('regress_tap_ann', ''), ('regress_tap_bob', '')) AS t (principal, grp);

--
-- every state, every verb: what it answers, and how the proposal reads then
--

CREATE TEMPORARY TABLE states (state text PRIMARY KEY, steps text[]);
INSERT INTO states VALUES
	('none', '{}'),
	('pending', ARRAY['propose']),
	('approved', ARRAY['propose', $$approve_as('ann', K, D) = recorded$$]),
	('rejected', ARRAY['propose', $$reject_as('ann', K, D) = recorded$$]),
	('withdrawn', ARRAY['propose', $$withdraw(K, 'why') = recorded$$]),
	('revoked', ARRAY['propose', $$approve_as('ann', K, D) = recorded$$, $$revoke_as('ann', K, 'why') = recorded$$]),
	('superseded', ARRAY['propose', $$propose(K2, 'tool', '{"n": 1}', 'agent', supersedes => N) = proposed$$]),
	('expired', ARRAY['propose', '61']),
	('expired, approved', ARRAY['propose', $$approve_as('ann', K, D) = recorded$$, '61']),
	('reserved', ARRAY['propose', $$approve_as('ann', K, D) = recorded$$, $$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$]);
UPDATE states SET steps = array_replace(steps, 'propose', $$propose(K, 'tool', '{"n": 1}', 'agent', expires_in => '1 min') = proposed$$);
CREATE TEMPORARY TABLE verbs (verb text PRIMARY KEY, call text, answers jsonb);
INSERT INTO verbs VALUES
	('approve', $$approve_as('bob', K, D)$$, '{"none": "refused/not_found", "pending": "recorded > approved"}'),
	('reject', $$reject_as('bob', K, D)$$, '{"none": "refused/not_found", "pending": "recorded > rejected"}'),
	('revoke', $$revoke_as('bob', K, 'why')$$, '{"none": "refused/not_found", "approved": "recorded > revoked"}'),
	('withdraw', $$withdraw(K, 'why')$$, '{"none": "refused/not_found", "pending": "recorded > withdrawn", "approved": "recorded > withdrawn", "withdrawn": "already_recorded"}'),
	('reserve', $$reserve(K, E, 'tool', '{"n": 1}', 'agent', lease => '1 min')$$, '{"none": "refused/not_found", "approved": "acquired > reserved", "reserved": "in_progress"}'),
	('reserve by digest', $$reserve_by_digest(K, E, D, lease => '1 min')$$, '{"none": "refused/not_found", "approved": "acquired > reserved", "reserved": "in_progress"}'),
	('propose', $$propose(K, 'tool', '{"n": 1}', 'agent')$$, '{"none": "proposed > pending", "*": "existing"}'),
	('propose other data', $$propose(K, 'tool', '{"n": 2}', 'agent')$$, '{"none": "proposed > pending", "*": "conflict/input"}'),
	('supersede', $$propose('story', N || ' by', 'tool', '{"n": 1}', 'agent', supersedes => N)$$,
		'{"none": "refused/not_found", "pending": "proposed > superseded", "approved": "proposed > superseded", "rejected": "proposed", "expired": "proposed", "expired, approved": "proposed"}'),
	('claim', $$claim(K, 'tool', '{"n": 1}', lease => '1 min')$$, '{"none": "acquired", "*": "refused/approval_required", "reserved": "in_progress"}'),
	('execute', $$execute(K, 'tool', '{"n": 1}', 'pg_catalog.jsonb_strip_nulls(jsonb)', wait => '0')$$, '{"none": "done", "*": "TC010", "reserved": "TC007"}'),
	('approve other bytes', $$approve_as('bob', K, repeat('0', 64)::tool_claims.sha256_digest)$$, '{"none": "refused/not_found", "pending": "refused/changed_binding"}'),
	('reject other bytes', $$reject_as('bob', K, repeat('0', 64)::tool_claims.sha256_digest)$$, '{"none": "refused/not_found", "pending": "refused/changed_binding"}'),
	('approve by nobody', $$approve_as('eve', K, D)$$, '{"none": "refused/not_found", "pending": "refused/not_an_approver"}'),
	('reject by nobody', $$reject_as('eve', K, D)$$, '{"none": "refused/not_found", "pending": "refused/not_an_approver"}'),
	('revoke by nobody', $$revoke_as('eve', K, 'why')$$, '{"none": "refused/not_found", "approved": "refused/not_an_approver"}'),
	('reserve of another execution', $$reserve(K, O, 'tool', '{"n": 1}', 'agent', lease => '1 min')$$, '{"none": "refused/not_found", "approved": "refused/other_execution", "reserved": "refused/other_execution"}'),
	('reserve by other digest', $$reserve_by_digest(K, E, repeat('0', 64)::tool_claims.sha256_digest, lease => '1 min')$$, '{"none": "refused/not_found", "approved": "refused/changed_binding", "reserved": "refused/changed_binding"}'),
	('reserve other input', $$reserve(K, E, 'tool', '{"n": 2}', 'agent', lease => '1 min')$$, '{"none": "refused/not_found", "approved": "refused/changed_input", "reserved": "refused/changed_input"}');
INSERT INTO stories (name, steps)
SELECT format('%s, %s', s.state, v.verb), s.steps || ARRAY[
	format('%s = %s', v.call, split_part(a.answer, ' > ', 1)),
	'proposal = ' || coalesce(nullif(split_part(a.answer, ' > ', 2), ''), split_part(s.state, ',', 1))]
FROM states AS s, verbs AS v, LATERAL (SELECT coalesce(v.answers ->> s.state, v.answers ->> '*', 'refused/' || split_part(s.state, ',', 1))) AS a (answer);
UPDATE stories SET steps = steps[:cardinality(steps) - 1] WHERE name LIKE 'none, %';
CALL pg_temp.tell();

--
-- the same again, the other way, and reasons in their order
--

CREATE FUNCTION pg_temp.votes(n integer, VARIADIC groups text[] DEFAULT '{}')
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.answer(format('set_tool_policy(%L, approvals_required => %s, approver_groups => %L)', 'voted', n, groups)) $$;
SELECT is(pg_temp.answer($$set_tool_policy('two', approvals_required => 2)$$), 'done', 'two votes');
INSERT INTO stories (name, steps) VALUES
	('the same vote', ARRAY[
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$approve_as('ann', K, D, 'with a comment', '1 min') = already_recorded$$,
		$$approve_as('ann', K, digest('{}')) = 42883$$,
		$$approve_as('ann', K, tool_claims.digest('{}')) = refused/changed_binding$$,
		$$reject_as('ann', K, D) = refused/already_voted$$,
		$$reject_as('ann', K, tool_claims.digest('{}')) = refused/changed_binding$$,
		$$proposal = pending$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$reject_as('ann', K, D) = refused/already_voted$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$approve_as('cat', K, D) = refused/reserved$$,
		$$kinds = proposed approved refused refused refused approved refused reserved refused$$]),
	('the same rejection', ARRAY[
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$reject_as('ann', K, D, 'no') = recorded$$,
		$$proposal = rejected$$,
		$$reject_as('ann', K, D) = already_recorded$$,
		$$approve_as('ann', K, D) = refused/already_voted$$,
		$$approve_as('bob', K, D) = already_recorded$$,
		$$reject_as('cat', K, D) = refused/rejected$$,
		$$kinds = proposed approved rejected refused refused$$]),
	('revoked again', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$revoke_as('bob', K, 'changed my mind') = recorded$$,
		$$revoke_as('bob', K, 'changed my mind') = already_recorded$$,
		$$revoke_as('cat', K, 'me too') = refused/revoked$$,
		$$approve_as('ann', K, D) = already_recorded$$,
		$$approve_as('cat', K, D) = refused/revoked$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/revoked$$,
		$$kinds = proposed approved revoked refused refused refused$$]),
	('order', ARRAY[
		$$propose(K, 'tool', '{}', 'agent', expires_in => '1 min') = proposed$$,
		$$approve_as('eve', K, tool_claims.digest('{}')) = refused/changed_binding$$,
		$$approve_as('agent', K, tool_claims.digest('{}')) = refused/changed_binding$$,
		$$approve_as('eve', K, D) = refused/not_an_approver$$,
		$$approve_as('agent', K, D) = refused/self_approval$$,
		$$reject_as('agent', K, D) = refused/self_approval$$,
		$$set_tool_policy('tool', enabled => true) = done$$,
		$$approve_as('eve', K, D) = refused/not_an_approver$$,
		$$approve_as('agent', K, D) = refused/self_approval$$,
		$$approve_as('ann', K, D) = refused/policy_changed$$,
		$$proposal = pending$$,
		'61',
		$$approve_as('eve', K, D) = refused/expired$$,
		$$approve_as('ann', K, tool_claims.digest('{}')) = refused/expired$$,
		'0',
		$$kinds = proposed refused refused refused refused refused refused refused refused expired refused refused$$,
		$$drop_tool_policy('tool') = done$$]),
	('a changed policy can be rejected under', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$set_tool_policy('tool', enabled => true) = done$$,
		$$approve_as('ann', K, D) = refused/policy_changed$$,
		$$reject_as('ann', K, D) = recorded$$,
		$$drop_tool_policy('tool') = done$$]),
	('a policy row of another key', ARRAY[
		$$set_tool_policy('keyed', policy_version => 'v') = done$$,
		$$propose(K, 'keyed', '{}', 'agent', tool_server => 's') = proposed$$,
		$$set_tool_policy('keyed', 's', policy_version => 'v') = done$$,
		$$approve_as('ann', K, D) = refused/policy_changed$$,
		$$drop_tool_policy('keyed', 's') = done$$,
		$$approve_as('ann', K, D) = recorded$$]),
	('the actor does not revoke', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$revoke_as('agent', K, 'why') = refused/self_approval$$,
		$$proposal = approved$$]),
	('covered by the registration', ARRAY[
		$$add_approver('fay', project => 'p', tool_server => 's', tool_name => 'tool') = done$$,
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('fay', K, D) = refused/not_an_approver$$,
		$$reject_as('fay', K, D) = refused/not_an_approver$$,
		$$propose(K2, 'tool', '{}', 'agent', project => 'p', tool_server => 's') = proposed$$,
		$$remove_approver('fay', project => 'p', tool_server => 's', tool_name => 'tool') = done$$]),
	('withdrawn by role', ARRAY[
		$$as agent: propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$as other: withdraw(K, 'why') = 42501$$,
		$$proposal = pending$$,
		$$as deputy: withdraw(K, 'why') = recorded$$,
		$$as other: withdraw(K, 'why') = 42501$$,
		$$as agent: withdraw(K, 'why') = already_recorded$$,
		$$as agent: withdraw(K2, 'why') = refused/not_found$$,
		$$kinds = proposed withdrawn$$]),
	('withdrawn after approval', ARRAY[
		$$as agent: propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$as agent: withdraw(K, 'why') = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/withdrawn$$,
		$$as agent: withdraw(K, 'why') = already_recorded$$]);
CALL pg_temp.tell();

-- withdraw, all of a task
SELECT is(pg_temp.answer(format($$propose('task', %L, 'tool', '{}', 'agent')$$, call), role), 'proposed', format('%s proposes %s', role, call))
FROM (VALUES
	('1', 'regress_tap_agent'), ('2', 'regress_tap_agent'), ('3', 'regress_tap_other'), ('4', 'regress_tap_agent'), ('5', 'regress_tap_agent')) AS t (call, role);
SELECT is(pg_temp.answer(format($$approve_as('ann', 'task', '2', %L)$$, pg_temp.binding('task', '2'))), 'recorded', 'one is approved');
SELECT is(pg_temp.answer(format($$reject_as('ann', 'task', '4', %L)$$, pg_temp.binding('task', '4'))), 'recorded', 'one rejected');
SELECT is(pg_temp.answer($$propose('task 2', '1', 'tool', '{}', 'agent')$$, 'regress_tap_agent'), 'proposed', 'one of another task');
SELECT is(pg_temp.answer($$withdraw('task', NULL, 'all over')$$, 'regress_tap_other'), 'recorded', 'another withdraws his');
SELECT is(pg_temp.answer($$withdraw('task', NULL, 'all over')$$, 'regress_tap_deputy'), 'recorded', 'a member withdraws theirs');
SELECT is(pg_temp.answer($$withdraw('task', NULL, 'all over')$$, 'regress_tap_deputy'), 'refused/not_found', 'nothing is left');
SELECT is(string_agg(tool_call_id || ' ' || state, ', ' ORDER BY tool_call_id), '1 withdrawn, 2 withdrawn, 3 withdrawn, 4 rejected, 5 withdrawn', 'what was open')
FROM tool_claims.proposals WHERE task_id = 'task';
SELECT is(pg_temp.proposal('task 2', '1'), 'pending', 'and no other task');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$withdraw(NULL, NULL, 'why')$$, '22004'), ($$withdraw('', NULL, 'why')$$, '22023'), ($$withdraw('task', '', 'why')$$, '22023'),
	($$withdraw('task', '1', NULL)$$, '22004'), ($$withdraw('no such task', NULL, 'why')$$, 'refused/not_found')) AS t (call, answer);

--
-- arguments
--

SELECT is(pg_temp.answer($$propose('args', 'c', 'two', '{}', 'agent')$$), 'proposed', 'a proposal');
SELECT is(pg_temp.answer(format(call, pg_temp.binding('args', 'c'))), answer, left(call, 80))
FROM (VALUES
	(1, $$approve_as(NULL, 'args', 'c', %L)$$, '22004'), (2, $$approve_as('', 'args', 'c', %L)$$, '22023'), (3, $$approve_as(repeat('x', 513), 'args', 'c', %L)$$, '22023'),
	(4, $$approve_as('ann', NULL, 'c', %L)$$, '22004'), (5, $$approve_as('ann', 'args', NULL, %L)$$, '22004'), (6, $$approve_as('ann', 'args', '', %L)$$, '22023'),
	(7, $$approve_as('ann', 'args', repeat('x', 513), %L)$$, '22023'), (8, $$approve_as('ann', 'args', 'c', NULL)$$, '22004'), (9, $$approve_as('ann', 'args', 'c', 'x')$$, '22P02'),
	(10, $$approve_as('ann', 'args', 'c', %L, use_within => '0')$$, '22023'), (11, $$approve_as('ann', 'args', 'c', %L, use_within => '-1 s')$$, '22023'),
	(12, $$reject_as(NULL, 'args', 'c', %L)$$, '22004'), (13, $$reject_as('', 'args', 'c', %L)$$, '22023'), (14, $$reject_as('ann', 'args', 'c', NULL)$$, '22004'),
	(15, $$revoke_as(NULL, 'args', 'c', 'why')$$, '22004'), (16, $$revoke_as('', 'args', 'c', 'why')$$, '22023'), (17, $$revoke_as('ann', 'args', 'c', NULL)$$, '22004'),
	(18, $$approve(NULL, 'c', %L)$$, '22004'), (19, $$approve('args', NULL, %L)$$, '22004'), (20, $$approve('args', 'c', NULL)$$, '22004'),
	(21, $$reject('args', 'c', NULL)$$, '22004'), (22, $$reject('', 'c', %L)$$, '22023'), (23, $$revoke('args', 'c', NULL)$$, '22004'), (24, $$revoke('args', '', 'x')$$, '22023'),
	(25, $$approve('args', 'c', %L)$$, 'refused/not_an_approver'),
	(26, $$approve_as('ann', 'args', 'c', %L, use_within => '1 microsecond', comment => repeat('x', 100000))$$, 'recorded')
) AS t (n, call, answer) ORDER BY n;
BEGIN READ ONLY;
SELECT is(pg_temp.answer(call), '25006', 'a transaction that only reads: ' || call)
FROM unnest(ARRAY[$$approve_as('ann', 'args', 'c', repeat('0', 64)::tool_claims.sha256_digest)$$, $$reject('args', 'c', repeat('0', 64)::tool_claims.sha256_digest)$$,
	$$revoke('args', 'c', 'why')$$, $$withdraw('args', 'c', 'why')$$, $$withdraw('args', NULL, 'why')$$, $$add_approver('x')$$, $$remove_approver('ann', 'a')$$]) AS call;
ROLLBACK;
BEGIN;
SET LOCAL tool_claims.organization = '*';
SELECT is(pg_temp.answer(call), '22023', 'every organization: ' || call)
FROM unnest(ARRAY[$$approve_as('ann', 'args', 'c', repeat('0', 64)::tool_claims.sha256_digest)$$, $$reject('args', 'c', repeat('0', 64)::tool_claims.sha256_digest)$$,
	$$revoke('args', 'c', 'why')$$, $$withdraw('args', 'c', 'why')$$, $$withdraw('args', NULL, 'why')$$]) AS call;
ROLLBACK;

--
-- votes: how many, of which groups, whose
--

-- each vote in turn, with what it comes to: state, approvals, required
CREATE FUNCTION pg_temp.ballot(call text, voters text[], actor text DEFAULT 'agent')
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	voter text;
	answer record;
	told text := '';
	p record;
BEGIN
	SELECT * INTO p FROM tool_claims.propose('ballot', call, 'voted', '{}', actor);
	IF p.outcome <> 'proposed' THEN
		RETURN p.reason;
	END IF;
	FOREACH voter IN ARRAY voters LOOP
		SELECT * INTO answer FROM tool_claims.approve_as(voter, 'ballot', call, p.binding_digest);
		told := told || format(' %s %s/%s %s', coalesce(answer.reason, answer.outcome::text), answer.approvals, answer.approvals_required, answer.state);
	END LOOP;
	RETURN ltrim(told);
END
$$;
SELECT is(pg_temp.votes(1), 'done', 'one vote');
SELECT is(pg_temp.ballot('1', '{ann}'), 'recorded 1/1 approved', 'is enough');
SELECT is(pg_temp.votes(3), 'done', 'three votes');
SELECT is(pg_temp.ballot('2', '{ann,bob,bob,ann,cat}'), 'recorded 1/3 pending recorded 2/3 pending already_recorded 2/3 pending already_recorded 2/3 pending recorded 3/3 approved', 'of three people');
SELECT is(pg_temp.ballot('3', '{ann,agent,eve,bob}'), 'recorded 1/3 pending self_approval 1/3 pending not_an_approver 1/3 pending recorded 2/3 pending', 'not of the actor, not of anybody');
SELECT is(pg_temp.ballot('4', '{ann,agent,bob,cat}', 'bob'), 'recorded 1/3 pending recorded 2/3 pending self_approval 2/3 pending recorded 3/3 approved', 'another actor');
SELECT is(pg_temp.votes(1, 'a', 'b'), 'done', 'one of each of two groups');
SELECT is(pg_temp.ballot('5', '{ann,bob}'), 'recorded 1/1 pending recorded 2/1 approved', 'who is in both counts for one: the other is in a, so he for b');
SELECT is(pg_temp.ballot('6', '{ann,dan}'), 'recorded 1/1 pending recorded 2/1 approved', 'or he for a');
SELECT is(pg_temp.ballot('7', '{bob,dan}'), 'recorded 1/1 pending recorded 2/1 approved', 'or neither is');
SELECT is(pg_temp.ballot('8', '{bob,cat,dan}'), 'recorded 1/1 pending recorded 2/1 pending recorded 3/1 approved', 'who is in none does not help');
SELECT is(pg_temp.ballot('9', '{bob,dan}', 'bob'), 'self_approval 0/1 pending recorded 1/1 pending', 'the actor of a group does not');
SELECT is(pg_temp.votes(3, 'a', 'b'), 'done', 'three, with one of each');
SELECT is(pg_temp.ballot('10', '{bob,dan,cat}'), 'recorded 1/3 pending recorded 2/3 pending recorded 3/3 approved', 'three');
SELECT is(pg_temp.ballot('11', '{cat,bob,regress_tap_ann,dan}'), 'recorded 1/3 pending recorded 2/3 pending recorded 3/3 pending recorded 4/3 approved', 'three without one of b');
SELECT is(pg_temp.votes(1, 'a', 'a'), 'done', 'two of one group');
SELECT is(pg_temp.ballot('12', '{ann,ann,dan,bob}'), 'recorded 1/1 pending already_recorded 1/1 pending recorded 2/1 pending recorded 3/1 approved', 'different people');
SELECT is(pg_temp.votes(1, 'b', 'a', 'a'), 'done', 'a matching that has to be looked for');
SELECT is(pg_temp.ballot('13', '{ann,bob,dan}'), 'recorded 1/1 pending recorded 2/1 pending recorded 3/1 approved', 'is found');
SELECT is(pg_temp.votes(1, 'c'), 'done', 'a group of nobody');
SELECT is(pg_temp.ballot('14', '{ann}'), 'no_eligible_approver', 'cannot be');
SELECT is(pg_temp.votes(0), 'done', 'none asked for');
SELECT is(pg_temp.ballot('15', '{ann}'), 'recorded 1/1 approved', 'a proposal needs one all the same');

-- self approval, where the policy allows it
SELECT is(pg_temp.answer($$set_tool_policy('selfish', allow_self_approval => true)$$), 'done', 'self approval');
SELECT is(pg_temp.answer($$set_tool_policy('selfish two', allow_self_approval => true, approvals_required => 2)$$), 'done', 'self approval, of two');
INSERT INTO stories (name, steps) VALUES
	('self approval', ARRAY[
		$$propose(K, 'selfish', '{}', 'agent') = proposed$$,
		$$approve_as('agent', K, D) = recorded$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$]),
	('self approval and another', ARRAY[
		$$propose(K, 'selfish two', '{}', 'agent') = proposed$$,
		$$approve_as('agent', K, D) = recorded$$,
		$$proposal = pending$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$revoke_as('agent', K, 'on second thoughts') = recorded$$]),
	('removed before the last vote', ARRAY[
		$$add_approver('gil') = done$$,
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('gil', K, D) = recorded$$,
		$$remove_approver('gil') = done$$,
		$$approve_as('gil', K, D) = already_recorded$$,
		$$reject_as('gil', K, D) = refused/already_voted$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$proposal = pending$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$proposal = approved$$]),
	('removed after the last vote', ARRAY[
		$$add_approver('gil') = done$$,
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('gil', K, D) = recorded$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$remove_approver('gil') = done$$,
		$$proposal = approved$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/approver_ineligible$$,
		$$approve_as('bob', K, D) = refused/approved$$,
		$$revoke_as('gil', K, 'why') = refused/not_an_approver$$,
		$$add_approver('gil', project => 'elsewhere') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/approver_ineligible$$,
		$$add_approver('gil', tool_name => 'two') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$remove_approver('gil', tool_name => 'two') = done$$,
		$$remove_approver('gil', project => 'elsewhere') = done$$]),
	('one more than needed', ARRAY[
		$$add_approver('gil') = done$$,
		$$set_tool_policy('of a', approvals_required => 2, approver_groups => '{a}') = done$$,
		$$propose(K, 'of a', '{}', 'agent') = proposed$$,
		$$approve_as('gil', K, D) = recorded$$,
		$$approve_as('cat', K, D) = recorded$$,
		$$proposal = pending$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$proposal = approved$$,
		$$remove_approver('gil') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$]),
	('a group lost', ARRAY[
		$$add_approver('gil', 'a') = done$$,
		$$propose(K, 'of a', '{}', 'agent') = proposed$$,
		$$approve_as('gil', K, D) = recorded$$,
		$$approve_as('cat', K, D) = recorded$$,
		$$proposal = approved$$,
		$$add_approver('gil', 'other') = done$$,
		$$remove_approver('gil', 'a') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/approver_ineligible$$,
		$$add_approver('gil', 'a') = done$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$remove_approver('gil', 'a') = done$$,
		$$remove_approver('gil', 'other') = done$$]),
	('use_within', ARRAY[
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D, use_within => '10 min') = recorded$$,
		$$approve_as('bob', K, D, use_within => '5 min') = recorded$$,
		'299',
		$$reserve_by_digest(K, O, D, lease => '1 min') = refused/other_execution$$,
		'301',
		$$reserve_by_digest(K, O, D, lease => '1 min') = refused/use_by_passed$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/use_by_passed$$,
		$$reserve(K, E, 'two', '[]', 'agent', lease => '1 min') = refused/use_by_passed$$,
		$$proposal = approved$$]),
	('use_within of the first', ARRAY[
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D, use_within => '5 min') = recorded$$,
		$$approve_as('ann', K, D, use_within => '1 h') = already_recorded$$,
		$$approve_as('bob', K, D) = recorded$$,
		'301',
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/use_by_passed$$,
		'299',
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$]),
	('use_within longer than the proposal', ARRAY[
		$$propose(K, 'tool', '{}', 'agent', expires_in => '1 min') = proposed$$,
		$$approve_as('ann', K, D, use_within => '1 h') = recorded$$,
		'61',
		$$reserve_by_digest(K, E, D, lease => '1 min') = refused/expired$$]);
CALL pg_temp.tell();
SELECT is(string_agg((detail -> 'self_approval')::text, ' ' ORDER BY tool_call_id, seq), 'true true', 'the evidence says self-approval')
FROM tool_claims.events WHERE organization = :'organization' AND kind = 'approved' AND detail ? 'self_approval';
SELECT is((SELECT count(*)::integer FROM tool_claims.events WHERE organization = :'organization' AND kind <> 'approved' AND detail ? 'self_approval'), 0, 'of nothing else');

--
-- who decides: the session user, and the role beside it
--

INSERT INTO stories (name, steps) VALUES
	('who', ARRAY[
		$$as agent: propose(K, 'two', '{}', 'agent') = proposed$$,
		$$agent: approve(K, D) = 42501$$,
		$$agent: approve_as('ann', K, D) = 42501$$,
		$$ann: approve_as('bob', K, D) = 42501$$,
		$$ann: reject_as('bob', K, D) = 42501$$,
		$$ann: revoke_as('bob', K, 'why') = 42501$$,
		$$as ann: approve(K, D) = refused/not_an_approver$$,
		$$ann: approve(K, D, 'I saw it') = recorded$$,
		$$service: approve_as('cat', K, D, 'she saw it') = recorded$$,
		$$proposal = approved$$,
		$$bob: revoke(K, 'no') = recorded$$]),
	('who rejects', ARRAY[
		$$propose(K, 'two', '{}', 'agent') = proposed$$,
		$$service: reject(K, D) = refused/not_an_approver$$,
		$$service: reject_as('cat', K, D, 'no') = recorded$$]),
	('who is it', ARRAY[
		$$propose(K, 'two', '{}', 'regress_tap_ann') = proposed$$,
		$$ann: approve(K, D) = refused/self_approval$$,
		$$bob: approve(K, D) = recorded$$]);
CALL pg_temp.tell();
SELECT results_eq(
	$$SELECT kind::text COLLATE "C", role::text COLLATE "C", principal::text COLLATE "C", detail ->> 'comment', (detail ->> 'by_service')::boolean
		FROM tool_claims.evidence('story', 'who') WHERE kind IN ('approved', 'revoked') ORDER BY seq$$,
	$$VALUES ('approved'::text COLLATE "C", 'regress_tap_ann'::text COLLATE "C", 'regress_tap_ann'::text COLLATE "C", 'I saw it', NULL::boolean),
		('approved', 'regress_tap_service', 'cat', 'she saw it', true), ('revoked', 'regress_tap_bob', 'regress_tap_bob', 'no', NULL)$$,
	'the evidence has the role, the person, the comment');
SELECT is((role, principal, detail ->> 'verb')::text, '(regress_tap_service,cat,)', 'a rejection too') FROM tool_claims.evidence('story', 'who rejects') WHERE kind = 'rejected';
-- a session user is that, whatever role is set
SELECT is(pg_temp.answer($$propose('who', 'set role', 'two', '{}', 'regress_tap_bob')$$), 'proposed', 'an action of bob');
SELECT binding_digest AS digest FROM tool_claims.proposals WHERE task_id = 'who' \gset
SET SESSION AUTHORIZATION regress_tap_ann;
SET ROLE regress_tap_bob;
SELECT coalesce(reason, outcome::text) AS first FROM tool_claims.approve('who', 'set role', :'digest') \gset
SET SESSION AUTHORIZATION regress_tap_bob;
SET ROLE regress_tap_bob;
SELECT coalesce(reason, outcome::text) AS second FROM tool_claims.approve('who', 'set role', :'digest') \gset
RESET SESSION AUTHORIZATION;
SELECT is(:'first' || ' ' || :'second', 'recorded self_approval', 'ann as bob is ann, bob is bob');
SELECT is((role, principal)::text, '(regress_tap_bob,regress_tap_ann)', 'and the evidence has both') FROM tool_claims.evidence('who', 'set role') WHERE kind = 'approved';

SELECT is(have, want, format('%s: %s', name, step)) FROM told ORDER BY n;

SELECT is((SELECT string_agg(DISTINCT p.tool_call_id, ', ') FROM tool_claims.proposals AS p, tool_claims.verify_evidence(p.task_id, p.tool_call_id) AS v WHERE NOT v.ok),
	NULL, 'every chain verifies');
SELECT is((SELECT string_agg(DISTINCT e.tool_call_id, ', ') FROM tool_claims.events AS e
	WHERE e.organization = :'organization' AND e.kind = 'refused' AND (e.detail ->> 'reason' IS NULL)), NULL, 'every refusal has its reason');

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_agent', 'regress_tap_deputy', 'regress_tap_other', 'regress_tap_ann', 'regress_tap_bob', 'regress_tap_service');
