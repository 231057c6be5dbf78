-- review.sql: what a person sees before deciding, and the three lists.

\set organization tap_review
\ir include/helpers.psql
\ir include/stories.psql

SELECT plan(199);

-- the lists are asked often here, and short
SET jit = off;

SET tool_claims.organization = 'tap_review_2';
CALL pg_temp.forget();
SET tool_claims.organization = 'tap_review';
CALL pg_temp.make_roles('regress_tap_agent');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_agent', 'proposer')$$), 'done', 'a proposer');
SELECT is(pg_temp.answer(format('add_approver(%L, %L)', principal, grp)), 'done', principal || ' approves')
FROM (VALUES ('ann', 'a'), ('bob', 'b'), ('cat', 'a'), ('agent', 'a')) AS t (principal, grp);
SELECT is(pg_temp.answer($$set_tool_policy('export', approvals_required => 2, approver_groups => '{a,b}', policy_version => 'v7')$$), 'done', 'a policy');

--
-- the whole action
--

-- an input too long to be shown in a line, with text that hides
SELECT is(pg_temp.answer(format($$propose('whole', 'c', 'export', %L, 'agent "x"', project => 'p', tool_server => 's', schema_version => 'v1', operation_id => 'op',
	execution_id => '00000000-0000-4000-8000-000000000001', expires_in => '1 hour', summary => 'Export all')$$,
	json_build_object('to', E'ann\u200b@example.com', 'body', repeat('long ', 20000), 'n', 1.50)), 'regress_tap_agent'), 'proposed', 'a proposal');
SELECT is(pg_temp.answer(format($$approve_as('bob', 'whole', 'c', %L, 'seen', '10 min')$$, pg_temp.binding('whole', 'c'))), 'recorded', 'one vote');
SELECT is((organization, task_id, tool_call_id, state, actor, project, tool_server, tool_name, schema_version, policy_version, operation_id, execution_id, summary, supersedes)::text,
	'(tap_review,whole,c,pending,"agent ""x""",p,s,export,v1,v7,op,00000000-0000-4000-8000-000000000001,"Export all",)', 'every bound field')
FROM tool_claims.review('whole', 'c');
SELECT is((proposed_by, approvals, approvals_required, approver_groups, equal_pending, earlier_rejections, execution)::text,
	'(regress_tap_agent,1,2,"{a,b}",1,,)', 'who, how many votes, of which groups') FROM tool_claims.review('whole', 'c');
SELECT is(input::text, '{"body":"' || repeat('long ', 20000) || E'","n":1.5,"to":"ann\u200b@example.com"}', 'the canonical input, nothing cut') FROM tool_claims.review('whole', 'c');
SELECT is(input_length, octet_length(input::text), 'its length in bytes') FROM tool_claims.review('whole', 'c');
SELECT is(input_visible, replace(input::text, E'\u200b', '\u200b'), 'with what hides made visible') FROM tool_claims.review('whole', 'c');
SELECT is(invisible_characters, 1, 'and counted') FROM tool_claims.review('whole', 'c');
SELECT is(r.binding_digest::text, p.binding_digest::text, 'the digest') FROM tool_claims.review('whole', 'c') AS r, tool_claims.proposals AS p WHERE p.task_id = 'whole';
SELECT is((jsonb_array_length(votes), votes #>> '{0,principal}', votes #>> '{0,vote}', votes #>> '{0,comment}', (votes #>> '{0,at}')::timestamptz > clock_timestamp() - interval '1 min')::text,
	'(1,bob,approve,seen,t)', 'the votes') FROM tool_claims.review('whole', 'c');
SELECT ok(proposed_at + age BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp() + interval '1 min', 'its age') FROM tool_claims.review('whole', 'c');
SELECT is(date_trunc('minute', time_left + interval '30 s'), interval '1 hour', 'the time that is left') FROM tool_claims.review('whole', 'c');
SELECT is(date_trunc('minute', use_by - clock_timestamp() + interval '30 s'), interval '10 min', 'use_by') FROM tool_claims.review('whole', 'c');
SELECT pg_temp.clock(1800);
SELECT is(date_trunc('minute', age + interval '30 s') || ' ' || date_trunc('minute', time_left + interval '30 s'), '00:30:00 00:30:00', 'half an hour later') FROM tool_claims.review('whole', 'c');
SELECT pg_temp.clock(3700);
SELECT is(state::text, 'expired', 'after its end') FROM tool_claims.review('whole', 'c');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	($$review('whole', 'none')$$, 'TC001'), ($$review(NULL, 'c')$$, '22004'), ($$review('whole', NULL)$$, '22004'), ($$review('', 'c')$$, '22023'), ($$review('whole', repeat('x', 513))$$, '22023'),
	($$inbox_for(NULL)$$, '22004'), ($$inbox_for('')$$, '22023'), ($$inbox_for(repeat('x', 513))$$, '22023')) AS t (call, answer);
BEGIN READ ONLY;
SELECT is(pg_temp.answer(call), 'done', 'where nothing can be written: ' || call)
FROM unnest(ARRAY[$$review('whole', 'c')$$, $$inbox$$, $$ready$$, $$proposals$$, $$inbox_for('ann')$$]) AS call;
ROLLBACK;
-- looking decides nothing
SELECT is((SELECT count(*)::integer FROM tool_claims.evidence('whole', 'c')), 2, 'none of it left a trace');

--
-- characters that hide
--

CREATE TEMPORARY TABLE hidden (what text, input text, visible text, count integer);
INSERT INTO hidden VALUES
	('plain text', '{"a":"b c"}', '{"a":"b c"}', 0),
	('a letter with an accent', '"é€😀"', '"é€😀"', 0),
	('a tabulator, a line feed', '"\t\n"', '"\t\n"', 2),
	('control characters', '"\u0001\u001f"', '"\u0001\u001f"', 2),
	('delete and a C1 control', E'"\u007f\u0085"', '"\u007f\u0085"', 2),
	('a no-break space', E'"a\u00a0b"', '"a\u00a0b"', 1),
	('a soft hyphen', E'"a\u00adb"', '"a\u00adb"', 1),
	('zero width', E'"\u200b\u200c\u200d\ufeff\u2060"', '"\u200b\u200c\u200d\ufeff\u2060"', 5),
	('directions', E'"\u202e\u2066\u2069\u200f\u061c"', '"\u202e\u2066\u2069\u200f\u061c"', 5),
	('line and paragraph separators', E'"\u2028\u2029"', '"\u2028\u2029"', 2),
	('fillers', E'"\u115f\u3164\uffa0\u2800"', '"\u115f\u3164\uffa0\u2800"', 4),
	('a variation selector', E'"a\ufe0f"', '"a\ufe0f"', 1),
	('a tag, beyond the first plane', E'"a\U000E0041"', '"a\udb40\udc41"', 1),
	('private use', E'"\ue000\U00100000"', '"\ue000\udbc0\udc00"', 2),
	('in a name', E'{"a\u200b":1,"a":2}', '{"a":2,"a\u200b":1}', 1),
	('an escaped backslash is none', '"\\u200b"', '"\\u200b"', 0),
	('quotes and slashes are none', '"\"\/\\"', '"\"/\\"', 0),
	('a backslash before a control', '"\\\t"', '"\\\t"', 1);
SELECT is(tool_claims.visible_text(input::text::tool_claims.canonical_json), visible, what || ': made visible') FROM hidden;
SELECT is(tool_claims.invisible_characters(input::text::tool_claims.canonical_json), count, what || ': counted') FROM hidden;
SELECT is(tool_claims.digest(tool_claims.visible_text(input::text::tool_claims.canonical_json)::json)::text, tool_claims.digest(input::text::tool_claims.canonical_json)::text, what || ': the value is the same') FROM hidden;
SELECT is(input_visible || invisible_characters, '{"to":"x\u202e"}1', 'a review has both')
FROM tool_claims.propose('hidden', 'c', 'tool', E'{"to":"x\u202e"}', 'agent'), LATERAL tool_claims.review('hidden', 'c');

--
-- repeats
--

SELECT is(pg_temp.answer(format($$propose('again', %L, 'tool', %L, 'agent')$$, call, input)), 'proposed', call)
FROM (VALUES ('1', '{"n": 1}'), ('2', '{"n": 1.0}'), ('3', '{"n":1}'), ('other', '{"n": 2}')) AS t (call, input);
SELECT is(pg_temp.answer($$propose('again', 'of server', 'tool', '{"n": 1}', 'agent', tool_server => 's')$$), 'proposed', 'of another server');
SELECT is(pg_temp.answer($$propose('again 2', '1', 'tool', '{"n": 1}', 'agent')$$), 'proposed', 'of another task');
SELECT is((SELECT string_agg(tool_call_id || ' ' || equal_pending, ', ' ORDER BY tool_call_id) FROM tool_claims.inbox WHERE task_id = 'again'),
	'1 3, 2 3, 3 3, of server 1, other 1', 'inbox counts the equal ones, this one included');
SELECT is(equal_pending, 3, 'review too') FROM tool_claims.review('again', '2');
SELECT is(pg_temp.answer(format($$reject_as('ann', 'again', '1', %L, 'not at night')$$, pg_temp.binding('again', '1'))), 'recorded', 'one is rejected');
SELECT is((equal_pending, jsonb_array_length(earlier_rejections), earlier_rejections #>> '{0,tool_call_id}', earlier_rejections #>> '{0,rejected_by}', earlier_rejections #>> '{0,comment}')::text,
	'(2,1,1,ann,"not at night")', 'the others carry it') FROM tool_claims.review('again', '2');
SELECT is((equal_pending, earlier_rejections)::text, '(2,)', 'it does not carry itself') FROM tool_claims.review('again', '1');
SELECT is(earlier_rejections, NULL, 'another action does not') FROM tool_claims.review('again', 'other');
SELECT is(earlier_rejections, NULL, 'nor another server') FROM tool_claims.review('again', 'of server');
SELECT is(earlier_rejections, NULL, 'nor another task') FROM tool_claims.review('again 2', '1');
SELECT is(pg_temp.answer(format($$reject_as('bob', 'again', '2', %L)$$, pg_temp.binding('again', '2'))), 'recorded', 'the next is rejected');
SELECT is(pg_temp.answer($$propose('again', '4', 'tool', '{"n": 1}', 'agent 2', summary => 'please')$$), 'proposed', 'and proposed again');
SELECT is((equal_pending, (SELECT string_agg(r ->> 'tool_call_id', ' ') FROM jsonb_array_elements(earlier_rejections) AS r))::text, '(2,"1 2")', 'with both rejections') FROM tool_claims.review('again', '4');

--
-- the lists, as time and people go on
--

-- which of the calls of a story's proposal are listed where, and for whom
CREATE FUNCTION pg_temp.lists(task text, call text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT concat_ws(' ',
		CASE WHEN EXISTS (SELECT FROM tool_claims.proposals AS p WHERE (p.task_id, p.tool_call_id) = (task, call)) THEN 'proposals' END,
		CASE WHEN EXISTS (SELECT FROM tool_claims.inbox AS p WHERE (p.task_id, p.tool_call_id) = (task, call)) THEN 'inbox' END,
		(SELECT string_agg(n, ' ') FROM unnest(ARRAY['ann', 'bob', 'cat', 'agent', 'eve']) AS n
			WHERE EXISTS (SELECT FROM tool_claims.inbox_for(n) AS p WHERE (p.task_id, p.tool_call_id) = (task, call))),
		CASE WHEN EXISTS (SELECT FROM tool_claims.ready AS p WHERE (p.task_id, p.tool_call_id) = (task, call)) THEN 'ready' END)
$$;
CREATE OR REPLACE FUNCTION pg_temp.state(task text, call text)
RETURNS text
LANGUAGE sql
AS $$ SELECT pg_temp.lists(task, call) $$;
-- in these stories, 'claim' tells the lists
INSERT INTO stories (name, steps) VALUES
	('listed', ARRAY[
		$$claim = $$,
		$$propose(K, 'export', '{}', 'agent') = proposed$$,
		$$claim = proposals inbox ann bob cat$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$claim = proposals inbox bob cat$$,
		$$remove_approver('cat', 'a') = done$$,
		$$claim = proposals inbox bob$$,
		$$add_approver('cat', 'a') = done$$,
		$$approve_as('bob', K, D) = recorded$$,
		$$claim = proposals ready$$,
		$$remove_approver('ann', 'a') = done$$,
		$$claim = proposals$$,
		$$add_approver('ann', 'a') = done$$,
		$$claim = proposals ready$$,
		$$reserve_by_digest(K, E, D, lease => '1 min') = acquired$$,
		$$claim = proposals$$,
		$$release(K, 1) = released$$,
		$$claim = proposals ready$$]),
	('rejected', ARRAY[$$propose(K, 'tool', '{}', 'agent') = proposed$$, $$reject_as('ann', K, D) = recorded$$, $$claim = proposals$$]),
	('withdrawn', ARRAY[$$propose(K, 'tool', '{}', 'agent') = proposed$$, $$withdraw(K, 'why') = recorded$$, $$claim = proposals$$]),
	('revoked', ARRAY[$$propose(K, 'tool', '{}', 'agent') = proposed$$, $$approve_as('ann', K, D) = recorded$$, $$claim = proposals ready$$, $$revoke_as('bob', K, 'why') = recorded$$, $$claim = proposals$$]),
	('superseded', ARRAY[$$propose(K, 'tool', '{}', 'agent') = proposed$$, $$propose(K2, 'tool', '{}', 'agent', supersedes => N) = proposed$$, $$claim = proposals$$]),
	('expiring', ARRAY[
		$$propose(K, 'tool', '{}', 'agent', expires_in => '1 min') = proposed$$,
		$$claim = proposals inbox ann bob cat$$,
		'61',
		$$claim = proposals$$]),
	('used too late', ARRAY[
		$$propose(K, 'tool', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D, use_within => '5 min') = recorded$$,
		$$claim = proposals ready$$,
		'301',
		$$claim = proposals$$]),
	('the policy is raised', ARRAY[
		$$propose(K, 'raised', '{}', 'agent') = proposed$$,
		$$propose(K2, 'raised', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$claim = proposals ready$$,
		$$set_tool_policy('raised', approvals_required => 2) = done$$,
		$$claim = proposals$$]),
	('the policy is raised under a pending one', ARRAY[
		$$propose(K, 'raised 2', '{}', 'agent') = proposed$$,
		$$claim = proposals inbox ann bob cat$$,
		$$set_tool_policy('raised 2', approvals_required => 2) = done$$,
		$$claim = proposals$$]),
	('the tool is disabled', ARRAY[
		$$set_tool_policy('off', enabled => false) = done$$,
		$$propose(K, 'off', '{}', 'agent') = proposed$$,
		$$approve_as('ann', K, D) = recorded$$,
		$$claim = proposals$$]),
	('self approval', ARRAY[
		$$set_tool_policy('self', allow_self_approval => true) = done$$,
		$$propose(K, 'self', '{}', 'agent') = proposed$$,
		$$claim = proposals inbox ann bob cat agent$$]),
	('by rule', ARRAY[
		$$set_tool_policy('free', approval_rule => 'pg_catalog.json_array_length(json)') = done$$,
		$$propose(K, 'free', '[]', 'agent') = proposed$$,
		$$claim = proposals ready$$]);
CALL pg_temp.tell();
SELECT is(have, want, format('%s: %s', name, replace(step, 'claim', 'lists'))) FROM told ORDER BY n;

-- an uncommitted proposal is nobody's yet
BEGIN;
SELECT is(pg_temp.answer($$propose('lists', 'own', 'tool', '{}', 'agent')$$), 'proposed', 'a proposal');
SELECT is(pg_temp.lists('lists', 'own'), 'proposals inbox ann bob cat', 'its transaction sees it');
ROLLBACK;
SELECT is(pg_temp.lists('lists', 'own'), '', 'rolled back, nobody does');
-- the columns
SELECT is(pg_temp.answer($$propose('lists', 'c', 'tool', '{}', 'agent', project => 'p', operation_id => 'op', summary => 'a summary', expires_in => '1 hour')$$), 'proposed', 'a proposal');
SELECT is((actor, project, summary, approvals, approvals_required, equal_pending, date_trunc('minute', time_left + interval '30 s'), age < interval '1 min', expires_at > clock_timestamp())::text,
	'(agent,p,"a summary",0,1,1,01:00:00,t,t)', 'inbox') FROM tool_claims.inbox WHERE task_id = 'lists';
SELECT is(pg_temp.answer(format($$approve_as('ann', 'lists', 'c', %L, use_within => '2 hours')$$, pg_temp.binding('lists', 'c'))), 'recorded', 'approved');
SELECT is((r.execution_id, r.binding_digest::text, r.operation_id, r.tool_name)::text, (p.execution_id, p.binding_digest::text, 'op', 'tool')::text, 'ready: execution and digest')
FROM tool_claims.ready AS r JOIN tool_claims.proposals AS p USING (task_id, tool_call_id) WHERE task_id = 'lists';
SELECT is(use_by, expires_at, 'use_by is no later than the proposal''s end') FROM tool_claims.ready WHERE task_id = 'lists';
SELECT is((state, approvals, proposed_by = session_user, ended_at, ended_by)::text, '(approved,1,t,,)', 'proposals') FROM tool_claims.proposals WHERE task_id = 'lists';
SELECT is(pg_temp.answer($$withdraw('lists', 'c', 'why')$$), 'recorded', 'withdrawn');
SELECT is((state, ended_at BETWEEN clock_timestamp() - interval '1 min' AND clock_timestamp(), ended_by = session_user)::text, '(withdrawn,t,t)', 'and who ended it') FROM tool_claims.proposals WHERE task_id = 'lists';
SELECT is((SELECT string_agg(attname, ' ') FROM pg_catalog.pg_attribute WHERE attrelid IN ('tool_claims.proposals'::regclass, 'tool_claims.inbox'::regclass, 'tool_claims.ready'::regclass)
	AND attname IN ('input', 'result', 'error')), NULL, 'no list has an input or a result');
-- inbox_for, oldest first
SELECT is((SELECT array_agg(proposed_at) FROM tool_claims.inbox_for('ann')), (SELECT array_agg(proposed_at ORDER BY proposed_at) FROM tool_claims.inbox_for('ann')), 'oldest first');

--
-- each organization has its own
--

SELECT is(pg_temp.answer($$propose('tenant', 'c', 'tool', '{"of": 1}', 'agent')$$), 'proposed', 'one of the first');
CREATE TEMPORARY TABLE first AS SELECT binding_digest::text AS digest, execution_id::text AS execution FROM tool_claims.proposals WHERE task_id = 'tenant';
SET tool_claims.organization = 'tap_review_2';
SELECT is((SELECT count(*)::integer FROM tool_claims.proposals) + (SELECT count(*)::integer FROM tool_claims.inbox) + (SELECT count(*)::integer FROM tool_claims.ready)
	+ (SELECT count(*)::integer FROM tool_claims.inbox_for('ann')), 0, 'the second sees nothing');
SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$review('tenant', 'c')$$, 'TC001'), (2, $$withdraw('tenant', 'c', 'why')$$, 'refused/not_found'), (3, $$withdraw('tenant', NULL, 'why')$$, 'refused/not_found'),
	(4, $$propose('tenant', 'c', 'tool', '{"of": 2}', 'agent')$$, 'refused/no_eligible_approver'), (5, $$remove_approver('ann', 'a')$$, '42704'),
	(6, $$add_approver('ann', 'a')$$, 'done'), (7, $$propose('tenant', 'c', 'tool', '{"of": 2}', 'agent')$$, 'proposed'),
	(8, $$approve_as('bob', 'tenant', 'c', repeat('0', 64)::tool_claims.sha256_digest)$$, 'refused/changed_binding')) AS t (n, call, answer) ORDER BY n;
SELECT is(pg_temp.answer(format($$approve_as('ann', 'tenant', 'c', %L)$$, digest)), 'refused/changed_binding', 'the digest of another organization') FROM first;
SELECT is(pg_temp.answer(format($$approve_as('bob', 'tenant', 'c', %L)$$, pg_temp.binding('tenant', 'c'))), 'refused/not_an_approver', 'an approver of another organization');
SELECT is(pg_temp.answer(format($$approve_as('ann', 'tenant', 'c', %L)$$, pg_temp.binding('tenant', 'c'))), 'recorded', 'its own');
SELECT is((SELECT count(*)::integer FROM tool_claims.ready), 1, 'is ready');
SET tool_claims.organization = 'tap_review';
SELECT is(pg_temp.proposal('tenant', 'c'), 'pending', 'that of the first is not');
-- its helpers look into no other organization
SELECT is((tool_claims.approvals_now('tap_review_2', 'tenant', 'c'), tool_claims.can_vote('tap_review_2', 'tenant', 'c', 'ann'),
	tool_claims.can_be_reserved('tap_review_2', 'tenant', 'c'), tool_claims.can_be_decided('tap_review_2', 'tenant', 'c'))::text, '(,,,)', 'nor can it be asked about');
-- a policy of '' is everybody's, and an own one goes first
SET tool_claims.organization = '*';
SELECT is((SELECT string_agg(organization || ' ' || state, ', ' ORDER BY organization) FROM tool_claims.proposals WHERE task_id = 'tenant'), 'tap_review pending, tap_review_2 approved', 'the organization * sees all');
SELECT is((SELECT string_agg(organization, ', ' ORDER BY organization) FROM tool_claims.inbox WHERE task_id = 'tenant'), 'tap_review', 'in inbox');
SELECT is((SELECT string_agg(organization, ', ' ORDER BY organization) FROM tool_claims.ready WHERE task_id = 'tenant'), 'tap_review_2', 'in ready');
SELECT is(pg_temp.answer($$review('tenant', 'c')$$), '22023', 'but a pair is of one');
SET tool_claims.organization = 'tap_review_2';
CALL pg_temp.forget();
SET tool_claims.organization = 'tap_review';

SELECT * FROM finish();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_agent');
