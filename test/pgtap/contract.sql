-- contract.sql: every name that the contract gives, as the catalog has it, and
-- every reason and code of it, each produced once.

\set organization tap_contract
\ir include/helpers.psql

SELECT plan(720);

--
-- functions: argument names, types, defaults, result
--

CREATE TEMPORARY TABLE functions (name text PRIMARY KEY, arguments text, result text);
INSERT INTO functions VALUES
	-- 2
	('digest', 'canonical_json', 'sha256_digest'),
	('is_portable', 'canonical_json', 'boolean'),
	-- 3
	('claim', $$task_id text, tool_call_id text, tool_name text, input canonical_json, lease interval = NULL, wait interval = '00:00:00', operation_id text = NULL, request_id uuid = NULL, tool_server text = '', not_after timestamptz = NULL, dispatched boolean = true$$, 'claim_result'),
	('dispatch', 'task_id text, tool_call_id text, attempt integer, external_ref text = NULL', 'claim_result'),
	('renew', 'task_id text, tool_call_id text, attempt integer, lease interval', 'claim_result'),
	('complete', 'task_id text, tool_call_id text, result json = NULL, attempt integer = NULL', 'claim_result'),
	('fail', 'task_id text, tool_call_id text, error json, attempt integer = NULL', 'claim_result'),
	('release', 'task_id text, tool_call_id text, attempt integer = NULL, reason text = NULL, new_effect_key boolean = false', 'claim_result'),
	('mark_uncertain', 'task_id text, tool_call_id text, attempt integer, reason text', 'claim_result'),
	('report_late', 'task_id text, tool_call_id text, attempt integer, result json', 'void'),
	('reconcile', 'task_id text, tool_call_id text, attempt integer, finding finding, evidence jsonb, result json = NULL, error json = NULL, new_effect_key boolean = false', 'claim_result'),
	('assert_claim', 'task_id text, tool_call_id text, attempt integer', 'void'),
	('current_claim', '', 'SETOF claim_status'),
	('require_claim', $$tool_name text, tool_server text = ''$$, 'claim_status'),
	('status', 'task_id text, tool_call_id text', 'SETOF claim_status'),
	('find_claims', 'effect_key text', 'SETOF claim_status'),
	('execute', $$task_id text, tool_call_id text, tool_name text, input canonical_json, handler regprocedure, operation_id text = NULL, wait interval = '00:00:10', tool_server text = ''$$, 'json'),
	-- 4
	('propose', $$task_id text, tool_call_id text, tool_name text, input canonical_json, actor text, project text = '', tool_server text = '', schema_version text = '', policy_version text = NULL, operation_id text = NULL, execution_id uuid = NULL, expires_in interval = NULL, summary text = NULL, supersedes text = NULL$$, 'proposal_result'),
	('approve', 'task_id text, tool_call_id text, binding_digest sha256_digest, comment text = NULL, use_within interval = NULL', 'decision_result'),
	('reject', 'task_id text, tool_call_id text, binding_digest sha256_digest, comment text = NULL', 'decision_result'),
	('revoke', 'task_id text, tool_call_id text, reason text', 'decision_result'),
	('approve_as', 'approver text, task_id text, tool_call_id text, binding_digest sha256_digest, comment text = NULL, use_within interval = NULL', 'decision_result'),
	('reject_as', 'approver text, task_id text, tool_call_id text, binding_digest sha256_digest, comment text = NULL', 'decision_result'),
	('revoke_as', 'approver text, task_id text, tool_call_id text, reason text', 'decision_result'),
	('withdraw', 'task_id text, tool_call_id text, reason text', 'decision_result'),
	('reserve', $$task_id text, tool_call_id text, execution_id uuid, tool_name text, input canonical_json, actor text, project text = '', tool_server text = '', schema_version text = '', policy_version text = NULL, operation_id text = NULL, lease interval = NULL, wait interval = '00:00:00', request_id uuid = NULL, dispatched boolean = true$$, 'claim_result'),
	('reserve_by_digest', $$task_id text, tool_call_id text, execution_id uuid, binding_digest sha256_digest, lease interval = NULL, wait interval = '00:00:00', request_id uuid = NULL, dispatched boolean = true$$, 'claim_result'),
	('review', 'task_id text, tool_call_id text', 'proposal_review'),
	('add_approver', $$principal text, grp text = '', project text = '*', tool_server text = '*', tool_name text = '*'$$, 'void'),
	('remove_approver', $$principal text, grp text = '', project text = '*', tool_server text = '*', tool_name text = '*'$$, 'void'),
	('inbox_for', 'principal text', 'SETOF inbox'),
	-- 5
	('evidence', 'task_id text, tool_call_id text', 'SETOF record'),
	('verify_evidence', 'task_id text, tool_call_id text, expected_head sha256_digest = NULL, OUT ok boolean, OUT broken_at integer, OUT reason text', 'record'),
	('evidence_heads', '', 'SETOF record'),
	-- 6
	('expect_result', $$task_id text, deadline timestamptz, check_function regprocedure = NULL, correlation jsonb = '{}', mark_context text = NULL$$, 'result_gate'),
	('offer_result', $$task_id text, status task_status, result json = NULL, content text = NULL, mark text = NULL, correlation jsonb = '{}'$$, 'result_gate'),
	('gate', 'task_id text', 'SETOF result_gate'),
	('require_accepted', 'task_id text', 'json'),
	('add_mark_key', $$key_id text, secret bytea, algorithm text = 'hmac-sha256'$$, 'void'),
	('retire_mark_key', 'key_id text', 'void'),
	('revoke_mark_key', 'key_id text', 'void'),
	('mark_content', $$content text, key_id text, context text = ''$$, 'text'),
	('verify_mark', $$content text, mark text, context text = '', OUT verdict mark_verdict, OUT reason text$$, 'record'),
	-- 7
	('set_tool_policy', NULL, 'void'),
	('drop_tool_policy', $$tool_name text, tool_server text = '*'$$, 'void'),
	('grant_duty', 'role regrole, duty text', 'void'),
	('revoke_duty', 'role regrole, duty text', 'void'),
	('sweep', 'max_rows integer = 1000', 'integer'),
	('prune', 'older_than interval = NULL, max_rows integer = 1000, tombstones boolean = true', 'integer'),
	('redact', 'task_id text, tool_call_id text, reason text', 'void'),
	('accept_recovery', 'lost_since timestamptz', 'void'),
	('timeline', 'task_id text, tool_call_id text', 'SETOF text'),
	('doctor', 'OUT level text, OUT finding text, OUT advice text', 'SETOF record');
SELECT is((SELECT count(*)::integer FROM pg_proc WHERE pronamespace = 'tool_claims'::regnamespace AND proname = name AND prokind = 'f'), 1, name || ': exists once') FROM functions;
-- as the contract writes it: no schema, no casts, = for DEFAULT
CREATE FUNCTION pg_temp.short(t text) RETURNS text LANGUAGE sql
AS $$ SELECT regexp_replace(replace(replace(replace(t, 'tool_claims.', ''), 'timestamp with time zone', 'timestamptz'), ' DEFAULT ', ' = '), '::\w+(\[\])?', '', 'g') $$;
SELECT is(regexp_replace(pg_temp.short(pg_get_function_arguments(p.oid)), CASE WHEN name IN ('evidence', 'evidence_heads') THEN '(, )?OUT .*' ELSE '^$' END, ''), arguments, name || ': its arguments')
FROM functions JOIN pg_proc AS p ON p.pronamespace = 'tool_claims'::regnamespace AND p.proname = name WHERE arguments IS NOT NULL;
SELECT is(pg_temp.short(pg_get_function_result(p.oid)), result, name || ': its result')
FROM functions JOIN pg_proc AS p ON p.pronamespace = 'tool_claims'::regnamespace AND p.proname = name;
SELECT ok(provolatile IN ('v', 's') AND NOT proisstrict AND NOT prosecdef AND NOT proleakproof, name || ': how it is called')
FROM functions JOIN pg_proc AS p ON p.pronamespace = 'tool_claims'::regnamespace AND p.proname = name WHERE name NOT IN ('digest', 'is_portable');
SELECT ok(provolatile = 'i' AND proparallel = 's', name || ': immutable, parallel safe')
FROM functions JOIN pg_proc AS p ON p.pronamespace = 'tool_claims'::regnamespace AND p.proname = name WHERE name IN ('digest', 'is_portable');
SELECT ok(obj_description(p.oid, 'pg_proc') IS NOT NULL, name || ': has a comment') FROM functions JOIN pg_proc AS p ON p.pronamespace = 'tool_claims'::regnamespace AND p.proname = name;
SELECT is((SELECT string_agg(c, ' ') FROM unnest((SELECT proargnames FROM pg_proc WHERE pronamespace = 'tool_claims'::regnamespace AND proname = 'evidence')) AS c
	WHERE c IN ('seq', 'at', 'kind', 'attempt', 'role', 'principal', 'detail', 'previous', 'hash')), 'seq at kind attempt role principal detail previous hash', 'evidence: its columns');
SELECT is((SELECT pg_temp.short(pg_get_function_arguments('tool_claims.evidence_heads()'::regprocedure))), 'OUT organization text, OUT task_id text, OUT tool_call_id text, OUT seq integer, OUT hash sha256_digest',
	'evidence_heads: its columns');
-- the members of a policy, by name; NULL means not named
CREATE TEMPORARY TABLE members (name text, type text);
INSERT INTO members VALUES
	('enabled', 'boolean'), ('effect', 'text'), ('approvals_required', 'integer'), ('approval_rule', 'regprocedure'), ('approver_groups', 'text[]'), ('allow_self_approval', 'boolean'), ('policy_version', 'text'),
	('on_lease_expiry', 'text'), ('max_attempts', 'integer'), ('operation_required', 'boolean'), ('proposal_ttl', 'interval'), ('keep_input', 'boolean'), ('input_check', 'regprocedure'), ('retention', 'interval'), ('log', 'text'),
	('reset', 'text[]');
SELECT ok(pg_temp.short(pg_get_function_arguments(p.oid)) ~ format('^tool_name text, tool_server text = ''\*'', .*\m%s %s = NULL', name, replace(replace(type, '[', '\['), ']', '\]')), 'set_tool_policy: ' || name)
FROM members, pg_proc AS p WHERE p.pronamespace = 'tool_claims'::regnamespace AND p.proname = 'set_tool_policy';
SELECT is((SELECT pronargs::integer FROM pg_proc WHERE pronamespace = 'tool_claims'::regnamespace AND proname = 'set_tool_policy'), 18, 'and no others');
SELECT is(pg_temp.answer(format('set_tool_policy(''members'', reset => ARRAY[%L])', name)), 'done', 'reset: ' || name) FROM members WHERE name <> 'reset';

--
-- types
--

CREATE TEMPORARY TABLE enums (name text, labels text);
INSERT INTO enums VALUES
	('outcome', 'acquired completed failed released in_progress uncertain conflict refused'),
	('claim_state', 'claimed completed failed released uncertain retired'),
	('proposal_state', 'pending approved rejected withdrawn revoked superseded expired reserved'),
	('proposal_outcome', 'proposed existing conflict refused'),
	('decision_outcome', 'recorded already_recorded refused'),
	('finding', 'occurred not_occurred abandoned compensated'),
	('task_status', 'succeeded failed_retryable failed filtered cancelled timed_out'),
	('gate_verdict', 'pending retry accepted rejected'),
	('mark_verdict', 'valid invalid unmarked unknown_key');
SELECT is((SELECT string_agg(enumlabel, ' ' ORDER BY enumsortorder) FROM pg_enum JOIN pg_type AS t ON t.oid = enumtypid WHERE t.typnamespace = 'tool_claims'::regnamespace AND t.typname = name), labels, 'type ' || name) FROM enums;
CREATE TEMPORARY TABLE composites (name text, columns text);
INSERT INTO composites VALUES
	('claim_result', 'outcome outcome, reason text, task_id text, tool_call_id text, attempt integer, effect_key text, result json, error json, input json, held_by text, retry_after interval, lease_expires_at timestamptz, claimed_at timestamptz, finished_at timestamptz'),
	('claim_status', 'organization text, task_id text, tool_call_id text, tool_server text, tool_name text, input_digest sha256_digest, input canonical_json, operation_id text, effect_key text, state claim_state, attempt integer, held_by text, '
		'claimed_at timestamptz, dispatched_at timestamptz, lease_expires_at timestamptz, not_after timestamptz, finished_at timestamptz, external_ref text, result json, error json'),
	('proposal_result', 'outcome proposal_outcome, reason text, state proposal_state, binding_digest sha256_digest, execution_id uuid, policy_version text, expires_at timestamptz, approvals integer, approvals_required integer, execution outcome, result json, error json'),
	('decision_result', 'outcome decision_outcome, reason text, state proposal_state, approvals integer, approvals_required integer'),
	('result_gate', 'verdict gate_verdict, reason text, deadline timestamptz, correlation jsonb'),
	('attention', 'organization text, kind text, task_id text, tool_call_id text, tool_server text, tool_name text, attempt integer, effect_key text, external_ref text, held_by text, since timestamptz, age interval, reason text');
CREATE FUNCTION pg_temp.columns_of(relation text) RETURNS text LANGUAGE sql
AS $$ SELECT string_agg(attname || ' ' || pg_temp.short(format_type(atttypid, atttypmod)), ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = ('tool_claims.' || relation)::regclass AND attnum > 0 AND NOT attisdropped $$;
SELECT is(pg_temp.columns_of(name), columns, 'the columns of ' || name) FROM composites;
SELECT is((SELECT string_agg(word, ' ') FROM unnest(string_to_array(words, ' ')) AS word WHERE NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = ('tool_claims.' || name)::regclass AND attname = word)), NULL, 'columns that are there: ' || name)
FROM (VALUES
	('proposal_review', 'actor project tool_server tool_name schema_version policy_version input operation_id execution_id expires_at binding_digest votes age earlier_rejections execution'),
	('claims', 'organization task_id tool_call_id tool_server tool_name input_digest operation_id effect_key state attempt held_by claimed_at dispatched_at lease_expires_at not_after finished_at external_ref'),
	('proposals', 'organization task_id tool_call_id state binding_digest'), ('inbox', 'organization task_id tool_call_id age expires_at'), ('ready', 'organization task_id tool_call_id execution_id binding_digest use_by'),
	('gates', 'organization task_id verdict reason deadline correlation'), ('stats', 'organization tool_name state'),
	('events', 'seq at kind attempt role principal detail previous hash')) AS t (name, words);
SELECT is((SELECT relkind::text FROM pg_class WHERE oid = ('tool_claims.' || name)::regclass), 'v', 'view ' || name)
FROM unnest(ARRAY['claims', 'proposals', 'inbox', 'ready', 'gates', 'attention', 'stats']) AS name;
SELECT is((SELECT string_agg(c.relname || '.' || attname, ' ') FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relname = ANY ('{claims,proposals,inbox,ready,gates,attention,stats}')
	AND attname IN ('result', 'error', 'input')), NULL, 'no view has a result, an error or an input');
-- value types
SELECT is((typlen, typcategory IS NOT NULL, typreceive <> 0, typsend <> 0)::text, format('(%s,t,t,t)', len), 'type ' || name)
FROM (VALUES ('canonical_json', -1), ('sha256_digest', 32)) AS t (name, len) JOIN pg_type ON typname = name AND typnamespace = 'tool_claims'::regnamespace;
SELECT is((SELECT castcontext::text FROM pg_cast WHERE castsource = ('tool_claims.' || source)::regtype AND casttarget = target::regtype), context, format('cast from %s to %s', source, target))
FROM (VALUES ('canonical_json', 'jsonb', 'a'), ('canonical_json', 'json', 'a'), ('canonical_json', 'text', 'a'), ('sha256_digest', 'bytea', 'a')) AS t (source, target, context);
SELECT is((SELECT castcontext::text FROM pg_cast WHERE castsource = source::regtype AND casttarget = ('tool_claims.' || target)::regtype), context, format('cast from %s to %s', source, target))
FROM (VALUES ('json', 'canonical_json', 'i'), ('jsonb', 'canonical_json', 'i'), ('text', 'canonical_json', 'e')) AS t (source, target, context);
SELECT ok(EXISTS (SELECT FROM pg_cast WHERE castsource = 'bytea'::regtype AND casttarget = 'tool_claims.sha256_digest'::regtype), 'cast from bytea to sha256_digest');
SELECT is((SELECT string_agg(amname, ' ' ORDER BY amname) FROM pg_opclass AS o JOIN pg_am AS a ON a.oid = opcmethod WHERE opcintype = ('tool_claims.' || name)::regtype AND opcdefault), 'btree hash', 'classes of ' || name)
FROM unnest(ARRAY['canonical_json', 'sha256_digest']) AS name;
SELECT is((SELECT count(*)::integer FROM pg_operator WHERE oprleft = ('tool_claims.' || name)::regtype AND oprright = oprleft AND oprname IN ('=', '<>', '<', '<=', '>', '>=')), 6, 'operators of ' || name)
FROM unnest(ARRAY['canonical_json', 'sha256_digest']) AS name;

--
-- settings, duties, kinds of events
--

SELECT is((context, vartype, setting, coalesce(unit, ''), coalesce(enumvals::text, ''))::text, ('superuser'::text, type, value, unit, vals)::text, 'setting ' || t.name)
FROM (VALUES
	('after_recovery', 'enum', 'continue', '', '{continue,stop}'), ('clock_offset', 'real', '0', 'ms', ''), ('max_input_size', 'integer', '16384', 'kB', ''), ('max_lease', 'integer', '3600000', 'ms', ''),
	('organization', 'string', 'tap_contract', '', ''), ('require_organization', 'enum', 'off', '', '{off,on,transaction}')) AS t (name, type, value, unit, vals)
	LEFT JOIN (SELECT name, context, vartype, setting, pg_settings.unit AS u, enumvals FROM pg_settings) AS s (name, context, vartype, setting, unit_of, enumvals) ON s.name = 'tool_claims.' || t.name;
SELECT is((SELECT boot_val FROM pg_settings WHERE name = 'tool_claims.organization'), '', 'no organization by default');
SELECT is((SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE name LIKE 'tool\_claims.%'),
	'tool_claims.after_recovery tool_claims.clock_offset tool_claims.max_input_size tool_claims.max_lease tool_claims.organization tool_claims.require_organization', 'no other setting');
CREATE TEMPORARY TABLE kinds (kind text);
INSERT INTO kinds SELECT unnest(ARRAY['proposed', 'approved', 'rejected', 'withdrawn', 'revoked', 'superseded', 'expired', 'reserved', 'acquired', 'dispatched', 'completed', 'failed', 'released', 'uncertain', 'reconciled',
	'conflict', 'refused', 'late_report', 'redacted', 'pruned']);
SELECT is((SELECT count(*)::integer FROM regexp_matches(pg_get_constraintdef(oid), '''[a-z_]+''', 'g')), 20, 'as many kinds of events') FROM pg_constraint WHERE conname = 'events_kind_check';

--
-- every outcome and reason, in steps: 'call = answer'.  In a call {D x} and {E x}
-- stand for the digest and the execution of the proposal x, a number moves the
-- clock.
--

DROP SCHEMA IF EXISTS regress_tap_contract CASCADE;
CREATE SCHEMA regress_tap_contract;
CREATE FUNCTION regress_tap_contract.no_fives(json) RETURNS text LANGUAGE sql AS $$ SELECT 'five' WHERE $1::text = '5' $$;
CREATE FUNCTION regress_tap_contract.handler(jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$ BEGIN IF $1::text = '"raise"' THEN RAISE 'handler'; END IF; RETURN $1; END $$;
CREATE FUNCTION regress_tap_contract.claiming(json) RETURNS text LANGUAGE sql AS $$ SELECT outcome::text FROM tool_claims.claim('t', 'by a check', 'tool', '{}') $$;
CALL pg_temp.make_roles('regress_tap_rival');
SELECT is(pg_temp.answer($$grant_duty('regress_tap_rival', 'worker')$$), 'done', 'a rival');
CREATE TEMPORARY TABLE steps (n integer GENERATED ALWAYS AS IDENTITY, step text);
CREATE TEMPORARY TABLE produced (n integer, call text, have text, want text, verb text GENERATED ALWAYS AS (substring(call FROM '^(?:as rival: )?(\w+)')) STORED);
INSERT INTO steps (step) VALUES
	-- claim
	($$claim('t', 'a', 'tool', '{}', lease => '1 min', operation_id => 'op', tool_server => 's') = acquired$$),
	($$claim('t', 'a', 'tool', '{}', lease => '1 min', operation_id => 'op', tool_server => 's', request_id => '00000000-0000-4000-8000-000000000001') = in_progress$$),
	($$claim('t', 'a', 'tool', '{}', operation_id => 'op') = conflict/tool_server$$),
	($$claim('t', 'a', 'other', '{}', operation_id => 'op', tool_server => 's') = conflict/tool_name$$),
	($$claim('t', 'a', 'tool', '[]', operation_id => 'op', tool_server => 's') = conflict/input$$),
	($$claim('t', 'a', 'tool', '{}', tool_server => 's') = conflict/operation_id$$),
	($$claim('t', 'a', 'tool', '{}', operation_id => 'other', tool_server => 's') = conflict/operation_id$$),
	($$claim('t', 'a 2', 'tool', '[]', operation_id => 'op', tool_server => 's') = conflict/operation$$),
	($$claim('t', 'a 2', 'tool', '{}', operation_id => 'op', tool_server => 's') = in_progress/operation$$),
	($$renew('t', 'a', 1, '1 min') = acquired$$),
	($$dispatch('t', 'a', 1, 'ref') = acquired$$),
	($$assert_claim('t', 'a', 1) = done$$),
	($$release('t', 'a', 1) = released$$),
	($$claim('t', 'a', 'tool', '{}', lease => '1 min', operation_id => 'op', tool_server => 's') = acquired/retry$$),
	($$mark_uncertain('t', 'a', 2, 'x') = uncertain/reported$$),
	($$claim('t', 'a', 'tool', '{}', operation_id => 'op', tool_server => 's') = uncertain/reported$$),
	($$claim('t', 'a 2', 'tool', '{}', operation_id => 'op', tool_server => 's') = uncertain/operation$$),
	($$reconcile('t', 'a', 2, 'occurred', '{"by": 1}', '1') = completed$$),
	($$report_late('t', 'a', 2, '2') = done$$),
	($$claim('t', 'a', 'tool', '{}', operation_id => 'op', tool_server => 's') = completed$$),
	($$claim('t', 'a 2', 'tool', '{}', operation_id => 'op', tool_server => 's') = completed/operation$$),
	($$claim('t', 'b', 'tool', '{}', lease => '1 min', request_id => '00000000-0000-4000-8000-000000000002') = acquired$$),
	($$claim('t', 'b', 'tool', '{}', lease => '1 min', request_id => '00000000-0000-4000-8000-000000000002') = acquired/already_held$$),
	($$fail('t', 'b', '1', 1) = failed$$),
	($$claim('t', 'b', 'tool', '{}') = failed$$),
	($$claim('t', 'c', 'tool', '{}', lease => '1 min') = acquired$$),
	($$claim('t', 'd', 'tool', '{}', lease => '1 min', dispatched => false) = acquired$$),
	('120'),
	($$claim('t', 'c', 'tool', '{}') = uncertain/lease_expired$$),
	($$reconcile('t', 'c', 1, 'not_occurred', '{"by": 1}') = released$$),
	($$reconcile('t', 'c', 1, 'compensated', '{"by": 1}') = failed$$),
	($$claim('t', 'd', 'tool', '{}', lease => '1 min') = acquired/takeover$$),
	($$complete('t', 'd', '1', 2) = completed$$),
	('0'),
	($$claim('t', 'e', 'tool', '{}', not_after => '2000-01-01') = refused/deadline_passed$$),
	($$set_tool_policy('limited', max_attempts => 1) = done$$),
	($$claim('t', 'f', 'limited', '{}', lease => '1 min') = acquired$$),
	($$release('t', 'f', 1) = released$$),
	($$claim('t', 'f', 'limited', '{}', lease => '1 min') = refused/attempts_exhausted$$),
	($$reconcile('t', 'f', 1, 'abandoned', '{"by": 1}') = failed$$),
	($$set_tool_policy('disabled', enabled => false) = done$$),
	($$claim('t', 'g', 'disabled', '{}') = refused/tool_disabled$$),
	($$set_tool_policy('checked', input_check => 'regress_tap_contract.no_fives(json)') = done$$),
	($$claim('t', 'h', 'checked', '5') = refused/invalid_input$$),
	($$set_tool_policy('gated', approvals_required => 1) = done$$),
	($$claim('t', 'i', 'gated', '{}') = refused/approval_required$$),
	($$redact('t', 'd', 'a wish') = done$$),
	($$claim('t', 'd', 'tool', '{}') = completed/redacted$$),
	($$redact('t', 'b', 'a wish') = done$$),
	($$claim('t', 'b', 'tool', '{}') = failed/redacted$$),
	('200'),
	($$prune('1 s') = done$$),
	('0'),
	($$claim('t', 'd', 'tool', '{}') = refused/key_retired$$),
	($$claim('t', 'a 2', 'tool', '{}', operation_id => 'op', tool_server => 's') = refused/key_retired$$),
	($$set_tool_policy('logged', log => 'all', retention => '1 day', keep_input => true) = done$$),
	($$claim('t', 'j', 'logged', '{}', lease => '1 min') = acquired$$),
	($$dispatch('t', 'j', 1, 'ref') = acquired$$),
	($$complete('t', 'j', '1', 1) = completed$$),
	($$report_late('t', 'j', 1, '2') = done$$),
	($$claim('t', 'n', 'tool', '{}', lease => '1 min') = acquired$$),
	($$release('t', 'n', 1) = released$$),
	($$claim('t', 'n', 'tool', '{}', lease => '1 min') = acquired/retry$$),
	($$mark_uncertain('t', 'n', 2, 'x') = uncertain/reported$$),
	($$reconcile('t', 'n', 2, 'occurred', '{"by": 1}') = completed$$),
	($$redact('t', 'n', 'a wish') = done$$),
	-- codes
	($$dispatch('t', 'none', 1) = TC001$$),
	($$claim('t', 'k', 'tool', '{}', lease => '1 min') = acquired$$),
	($$renew('t', 'k', 2, '1 min') = TC002$$),
	($$as rival: renew('t', 'k', 1, '1 min') = 42501$$),
	($$reconcile('t', 'k', 1, 'occurred', '{"by": 1}') = TC003$$),
	($$execute('t', 'k', 'tool', '[]', 'regress_tap_contract.handler(jsonb)') = TC006$$),
	($$execute('t', 'k', 'tool', '{}', 'regress_tap_contract.handler(jsonb)', wait => '0') = TC007$$),
	($$complete('t', 'k', '1', 1) = completed$$),
	($$complete('t', 'k', '2', 1) = TC005$$),
	($$claim('t', 'l', 'tool', '{}', lease => '1 min') = acquired$$),
	($$mark_uncertain('t', 'l', 1, 'x') = uncertain/reported$$),
	($$execute('t', 'l', 'tool', '{}', 'regress_tap_contract.handler(jsonb)') = TC008$$),
	($$fail('t', 'l', '1', 1) = failed$$),
	($$execute('t', 'l', 'tool', '{}', 'regress_tap_contract.handler(jsonb)') = TC009$$),
	($$execute('t', 'm', 'disabled', '{}', 'regress_tap_contract.handler(jsonb)') = TC010$$),
	($$execute('t', 'm', 'tool', '"raise"', 'regress_tap_contract.handler(jsonb)') = P0001$$),
	($$require_claim('tool') = TC010$$),
	($$require_accepted('none') = TC011$$),
	($$claim(NULL, 'c', 'tool', '{}') = 22004$$),
	($$claim('', 'c', 'tool', '{}') = 22023$$),
	($$claim('t', 'm', 'tool', '{}', lease => '2 hours') = 22023$$),
	($$claim('t', 'm', 'tool', '{"a": 1, "a": 1}') = 22030$$),
	($$claim('t', 'm', 'tool', '"\u0000"') = 22P05$$),
	($$claim('t', 'm', 'tool', '"\ud800"') = 22P02$$),
	($$claim('t', 'm', 'tool', '1e1000000000') = 22003$$),
	($$claim('t', 'm', 'tool', (repeat('[', 100000) || repeat(']', 100000))::tool_claims.canonical_json) = 54001$$),
	($$claim('t', 'm', 'tool', to_json(repeat('x', 17000000))) = 54000$$),
	($$set_tool_policy('tool', input_check => 'regress_tap_contract.none(json)') = 42883$$),
	($$drop_tool_policy('none') = 42704$$),
	($$set_tool_policy('checking', input_check => 'regress_tap_contract.claiming(json)') = done$$),
	($$claim('t', 'm', 'checking', '{}') = 0A000$$),
	($$set_tool_policy('needs', operation_required => true, effect => 'local') = done$$),
	($$claim('t', 'm', 'needs', '{}') = 22004$$),
	($$claim('t', 'm', 'needs', '{}', lease => '1 min', operation_id => 'op') = 22023$$),
	-- proposals
	($$propose('p', 'x', 'tool', '{}', 'agent') = refused/no_eligible_approver$$),
	($$add_approver('ann') = done$$), ($$add_approver('bob') = done$$), ($$add_approver('agent') = done$$), (format('add_approver(%L) = done', session_user)),
	($$propose('p', 'x', 'tool', '{}', 'agent', policy_version => '7') = refused/policy_changed$$),
	($$propose('p', 'x', 'tool', '{}', 'agent', supersedes => 'none') = refused/not_found$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', execution_id => '00000000-0000-4000-8000-00000000000a', operation_id => 'op p') = proposed$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p') = existing$$),
	($$propose('p', 'a', 'tool', '[]', 'agent', operation_id => 'op p') = conflict/input$$),
	($$propose('p', 'a', 'tool 2', '{}', 'agent', operation_id => 'op p') = conflict/tool_name$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p', tool_server => 's') = conflict/tool_server$$),
	($$propose('p', 'a', 'tool', '{}', 'agent 2', operation_id => 'op p') = conflict/actor$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', 'project', operation_id => 'op p') = conflict/project$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p', schema_version => '2') = conflict/schema_version$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p', policy_version => '2') = conflict/policy_version$$),
	($$propose('p', 'a', 'tool', '{}', 'agent') = conflict/operation_id$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p', execution_id => '00000000-0000-4000-8000-00000000000b') = conflict/execution_id$$),
	($$propose('p', 'a', 'tool', '{}', 'agent', operation_id => 'op p', supersedes => 'z') = conflict/supersedes$$),
	($$propose('t', 'k', 'tool', '{}', 'agent') = refused/completed$$),
	($$claim('p', 'a', 'tool', '{}', operation_id => 'op p') = refused/approval_required$$),
	($$approve_as('ann', 'p', 'none', tool_claims.digest('{}')) = refused/not_found$$),
	($$approve_as('ann', 'p', 'a', tool_claims.digest('{}')) = refused/changed_binding$$),
	($$approve_as('eve', 'p', 'a', {D a}) = refused/not_an_approver$$),
	($$approve_as('agent', 'p', 'a', {D a}) = refused/self_approval$$),
	($$reserve_by_digest('p', 'none', {E a}, {D a}, lease => '1 min') = refused/not_found$$),
	($$reserve_by_digest('p', 'a', {E a}, {D a}, lease => '1 min') = refused/pending$$),
	($$revoke_as('ann', 'p', 'a', 'x') = refused/pending$$),
	($$approve('p', 'a', {D a}, use_within => '1 hour') = recorded$$),
	($$approve('p', 'a', {D a}) = already_recorded$$),
	($$reject('p', 'a', {D a}) = refused/already_voted$$),
	($$approve_as('ann', 'p', 'a', {D a}) = refused/approved$$),
	($$reserve_by_digest('p', 'a', {E a}, tool_claims.digest('{}'), lease => '1 min') = refused/changed_binding$$),
	($$reserve_by_digest('p', 'a', '00000000-0000-4000-8000-00000000000b', {D a}, lease => '1 min') = refused/other_execution$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent 2', operation_id => 'op p', lease => '1 min') = refused/changed_actor$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', 'project', operation_id => 'op p', lease => '1 min') = refused/changed_project$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', tool_server => 's', operation_id => 'op p', lease => '1 min') = refused/changed_tool_server$$),
	($$reserve('p', 'a', {E a}, 'tool 2', '{}', 'agent', operation_id => 'op p', lease => '1 min') = refused/changed_tool_name$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', schema_version => '2', operation_id => 'op p', lease => '1 min') = refused/changed_schema_version$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', policy_version => '2', operation_id => 'op p', lease => '1 min') = refused/changed_policy_version$$),
	($$reserve('p', 'a', {E a}, 'tool', '[]', 'agent', operation_id => 'op p', lease => '1 min') = refused/changed_input$$),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', lease => '1 min') = refused/changed_operation_id$$),
	('7200'),
	($$reserve_by_digest('p', 'a', {E a}, {D a}, lease => '1 min') = refused/use_by_passed$$),
	('0'),
	(format('remove_approver(%L) = done', session_user)),
	($$reserve_by_digest('p', 'a', {E a}, {D a}, lease => '1 min') = refused/approver_ineligible$$),
	(format('add_approver(%L) = done', session_user)),
	($$reserve('p', 'a', {E a}, 'tool', '{}', 'agent', operation_id => 'op p', lease => '1 min') = acquired$$),
	($$reserve_by_digest('p', 'a', {E a}, {D a}, lease => '1 min') = in_progress$$),
	($$reserve_by_digest('p', 'a', '00000000-0000-4000-8000-00000000000b', {D a}, lease => '1 min') = refused/other_execution$$),
	($$revoke_as('ann', 'p', 'a', 'x') = refused/reserved$$),
	($$complete('p', 'a', '1', 1) = completed$$),
	($$reserve_by_digest('p', 'a', {E a}, {D a}, lease => '1 min') = completed$$),
	($$propose('p', 'b', 'tool', '{}', 'agent') = proposed$$),
	($$reject_as('ann', 'p', 'b', {D b}) = recorded$$),
	($$reject_as('ann', 'p', 'b', {D b}) = already_recorded$$),
	($$reserve_by_digest('p', 'b', {E b}, {D b}, lease => '1 min') = refused/rejected$$),
	($$propose('p', 'c', 'tool', '{}', 'agent') = proposed$$),
	($$withdraw('p', 'c', 'x') = recorded$$),
	($$withdraw('p', 'c', 'x') = already_recorded$$),
	($$withdraw('p', 'none', 'x') = refused/not_found$$),
	($$withdraw('p', 'b', 'x') = refused/rejected$$),
	($$reserve_by_digest('p', 'c', {E c}, {D c}, lease => '1 min') = refused/withdrawn$$),
	($$propose('p', 'd', 'tool', '{}', 'agent') = proposed$$),
	($$approve_as('ann', 'p', 'd', {D d}) = recorded$$),
	($$revoke_as('bob', 'p', 'd', 'x') = recorded$$),
	($$revoke_as('bob', 'p', 'd', 'x') = already_recorded$$),
	($$reserve_by_digest('p', 'd', {E d}, {D d}, lease => '1 min') = refused/revoked$$),
	($$propose('p', 'e', 'tool', '{}', 'agent') = proposed$$),
	($$propose('p', 'e 2', 'tool', '[]', 'agent', supersedes => 'e') = proposed$$),
	($$reserve_by_digest('p', 'e', {E e}, {D e}, lease => '1 min') = refused/superseded$$),
	($$propose('p', 'f', 'tool', '{}', 'agent', expires_in => '1 min') = proposed$$),
	('120'),
	($$reserve_by_digest('p', 'f', {E f}, {D f}, lease => '1 min') = refused/expired$$),
	($$approve_as('ann', 'p', 'f', {D f}) = refused/expired$$),
	($$sweep() = done$$),
	('0'),
	($$propose('p', 'g', 'gated', '{}', 'agent') = proposed$$),
	($$propose('p', 'g 2', 'gated', '{}', 'agent') = proposed$$),
	($$approve_as('ann', 'p', 'g', {D g}) = recorded$$),
	($$set_tool_policy('gated', keep_input => true) = done$$),
	($$reserve_by_digest('p', 'g', {E g}, {D g}, lease => '1 min') = refused/policy_changed$$),
	($$approve_as('ann', 'p', 'g 2', {D g 2}) = refused/policy_changed$$),
	($$review('p', 'none') = TC001$$),
	($$propose('p', 'h', 'gated', '{}', 'agent', expires_in => '2 days') = 22023$$),
	-- gates and marks
	($$offer_result('none', 'succeeded', '1') = not_expected$$),
	($$expect_result('g', '2100-01-01') = done$$),
	($$offer_result('g', 'failed_retryable') = failed_retryable$$),
	($$offer_result('g', 'timed_out') = timed_out$$),
	($$offer_result('g', 'succeeded', '1') = done$$),
	($$offer_result('g', 'succeeded', '2') = already_accepted$$),
	($$expect_result('g', '2100-01-02') = 22023$$),
	($$require_accepted('g') = done$$),
	($$expect_result('g failed', '2100-01-01') = done$$), ($$offer_result('g failed', 'failed') = failed$$),
	($$expect_result('g filtered', '2100-01-01') = done$$), ($$offer_result('g filtered', 'filtered') = filtered$$),
	($$expect_result('g cancelled', '2100-01-01') = done$$), ($$offer_result('g cancelled', 'cancelled') = cancelled$$),
	($$expect_result('g none', '2100-01-01') = done$$), ($$offer_result('g none', 'succeeded') = no_result$$),
	($$expect_result('g past', '2000-01-01') = deadline_passed$$), ($$offer_result('g past', 'succeeded', '1') = deadline_passed$$),
	($$expect_result('g check', '2100-01-01', 'regress_tap_contract.no_fives(json)') = done$$), ($$offer_result('g check', 'succeeded', '5') = five$$),
	($$expect_result('g unmarked', '2100-01-01', mark_context => 'c') = done$$), ($$offer_result('g unmarked', 'succeeded', content => '1') = mark_unmarked$$),
	($$expect_result('g invalid', '2100-01-01', mark_context => 'c') = done$$), ($$offer_result('g invalid', 'succeeded', content => '1', mark => 'x') = mark_invalid$$),
	($$expect_result('g unknown', '2100-01-01', mark_context => 'c') = done$$),
	($$offer_result('g unknown', 'succeeded', content => '1', mark => 'tcm1.eA.' || repeat('A', 43)) = mark_unknown_key$$),
	($$add_mark_key('k', 'secret') = done$$), ($$add_mark_key('k', 'secret') = 23505$$), ($$retire_mark_key('none') = 42704$$), ($$retire_mark_key('k') = done$$), ($$mark_content('x', 'k') = 55000$$);
CREATE PROCEDURE pg_temp.tell()
LANGUAGE plpgsql
AS $$
DECLARE
	s record;
	parts text[];
	call text;
	name text[];
BEGIN
	FOR s IN SELECT * FROM steps ORDER BY n LOOP
		IF s.step ~ '^\d+$' THEN
			PERFORM pg_temp.clock(s.step::integer);
		ELSE
			parts := regexp_match(s.step, '^(?:(as rival): )?(.*) = ([^=]*)$');
			call := parts[2];
			FOR name IN SELECT regexp_matches(call, '\{([DE]) ([^}]*)\}', 'g') LOOP
				call := replace(call, format('{%s %s}', name[1], name[2]), (
					SELECT quote_literal(CASE name[1] WHEN 'D' THEN p.binding_digest::text ELSE p.execution_id::text END) FROM tool_claims.proposals AS p WHERE p.task_id = 'p' AND p.tool_call_id = name[2]));
			END LOOP;
			INSERT INTO produced (n, call, have, want) VALUES (s.n, concat_ws(': ', parts[1], parts[2]), pg_temp.answer(call, CASE WHEN parts[1] IS NOT NULL THEN 'regress_tap_rival' END), parts[3]);
		END IF;
		COMMIT;
	END LOOP;
END
$$;
CALL pg_temp.tell();
SELECT is(have, want, call) FROM produced ORDER BY n;

-- what needs a transaction of its own, or another session
BEGIN;
SELECT pg_temp.answer($$claim('own', 'c', 'tool', '{}')$$) AS first, pg_temp.answer($$claim('own', 'c', 'tool', '{}')$$) AS second, pg_temp.answer($$claim('own', 'c', 'tool', '{}', lease => '1 min')$$) AS third,
	pg_temp.answer($$complete('own', 'leased', '1')$$) AS fourth, pg_temp.answer($$execute('own', 'c', 'tool', '{}', 'regress_tap_contract.handler(jsonb)')$$) AS fifth \gset
ROLLBACK;
INSERT INTO produced (call, have, want) VALUES ('claim', :'first', 'acquired'), ('claim', :'second', 'acquired/already_held'), ('claim', :'third', '22023'), ('complete', :'fourth', 'TC001'), ('execute', :'fifth', 'TC007');
BEGIN READ ONLY;
SELECT pg_temp.answer($$claim('own', 'c', 'tool', '{}')$$) AS first \gset
ROLLBACK;
INSERT INTO produced (call, have, want) VALUES ('claim', :'first', '25006');
SET tool_claims.organization = '*';
SELECT pg_temp.answer($$claim('own', 'c', 'tool', '{}')$$) AS first \gset
SET tool_claims.organization = 'tap_contract';
INSERT INTO produced (call, have, want) VALUES ('claim', :'first', '22023');
\set commit `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.organization = 'tap_contract'" -c "BEGIN; SELECT outcome FROM tool_claims.claim('own', 'open', 'tool', '{}'); COMMIT" 2>&1 | tail -n 1`
\set prepare `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.organization = 'tap_contract'" -c "BEGIN; SELECT outcome FROM tool_claims.claim('own', 'open', 'tool', '{}'); SELECT outcome FROM tool_claims.complete('own', 'open', '1'); PREPARE TRANSACTION 'regress tap contract'" 2>&1 | tail -n 1`
INSERT INTO produced (call, have, want) VALUES ('commit', :'commit', 'ERROR:  TC004'),
	('prepare', :'prepare', CASE WHEN current_setting('max_prepared_transactions') = '0' THEN 'ERROR:  55000' ELSE 'ERROR:  0A000' END);
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT count(*) AS snapshot FROM tool_claims.claims \gset
\set other `psql -X -At -d ":DBNAME" -v VERBOSITY=sqlstate -c "SET tool_claims.organization = 'tap_contract'" -c "SELECT outcome FROM tool_claims.claim('own', 'new', 'tool', '{}', lease => '1 min')" 2>&1 | tail -n 1`
SELECT pg_temp.answer($$claim('own', 'new', 'tool', '{}')$$) AS first \gset
ROLLBACK;
INSERT INTO produced (call, have, want) VALUES ('another session''s claim', :'other', 'acquired'), ('claim', :'first', '40001');
-- a recovery
BEGIN;
UPDATE tool_claims.server_identity SET timeline = timeline + 98;
ALTER TABLE tool_claims.server_identity SET (fillfactor = 90);
SET LOCAL tool_claims.after_recovery = 'stop';
SELECT pg_temp.answer($$claim('own', 'recovered', 'tool', '{}', lease => '1 min')$$) AS first \gset
ROLLBACK;
INSERT INTO produced (call, have, want) VALUES ('claim', :'first', 'TC012');
SELECT is(have, want, call) FROM produced WHERE n IS NULL;

-- the list: every outcome with its reason, every state in the way, every code
CREATE TEMPORARY TABLE reasons (verb text, answer text);
INSERT INTO reasons SELECT 'claim', unnest(ARRAY['acquired', 'acquired/already_held', 'acquired/takeover', 'acquired/retry', 'completed', 'completed/redacted', 'completed/operation', 'failed', 'failed/redacted',
	'in_progress', 'in_progress/operation', 'uncertain/lease_expired', 'uncertain/reported', 'uncertain/operation',
	'conflict/tool_server', 'conflict/tool_name', 'conflict/input', 'conflict/operation_id', 'conflict/operation',
	'refused/approval_required', 'refused/deadline_passed', 'refused/attempts_exhausted', 'refused/key_retired', 'refused/tool_disabled', 'refused/invalid_input']);
INSERT INTO reasons VALUES ('renew', 'acquired'), ('dispatch', 'acquired'), ('complete', 'completed'), ('fail', 'failed'), ('release', 'released'), ('mark_uncertain', 'uncertain/reported'),
	('reconcile', 'completed'), ('reconcile', 'released'), ('reconcile', 'failed');
INSERT INTO reasons SELECT 'propose', unnest(ARRAY['proposed', 'existing', 'conflict/tool_server', 'conflict/tool_name', 'conflict/input', 'conflict/actor', 'conflict/project', 'conflict/schema_version', 'conflict/policy_version',
	'conflict/operation_id', 'conflict/execution_id', 'conflict/supersedes', 'refused/no_eligible_approver', 'refused/policy_changed', 'refused/not_found']);
INSERT INTO reasons SELECT 'reserve', 'refused/changed_' || unnest(ARRAY['actor', 'project', 'tool_server', 'tool_name', 'schema_version', 'policy_version', 'input', 'operation_id']);
INSERT INTO reasons SELECT 'reserve_by_digest', 'refused/' || unnest(ARRAY['not_found', 'pending', 'rejected', 'withdrawn', 'revoked', 'superseded', 'expired', 'use_by_passed', 'changed_binding', 'other_execution', 'approver_ineligible', 'policy_changed']);
INSERT INTO reasons SELECT 'approve_as', unnest(ARRAY['recorded', 'refused/not_found', 'refused/changed_binding', 'refused/not_an_approver', 'refused/self_approval', 'refused/approved', 'refused/expired', 'refused/policy_changed']);
INSERT INTO reasons VALUES ('approve', 'recorded'), ('approve', 'already_recorded'), ('reject', 'refused/already_voted'), ('reject_as', 'recorded'), ('reject_as', 'already_recorded'), ('revoke_as', 'recorded'), ('revoke_as', 'refused/reserved'),
	('withdraw', 'recorded'), ('withdraw', 'already_recorded');
INSERT INTO reasons SELECT 'offer_result', unnest(ARRAY['not_expected', 'no_result', 'failed_retryable', 'timed_out', 'failed', 'filtered', 'cancelled', 'already_accepted', 'deadline_passed', 'mark_invalid', 'mark_unmarked', 'mark_unknown_key']);
SELECT ok(EXISTS (SELECT FROM produced AS p WHERE p.verb = r.verb AND p.have = r.answer), format('produced: %s → %s', verb, answer)) FROM reasons AS r;
SELECT ok(EXISTS (SELECT FROM produced AS p WHERE right(p.have, 5) = code), 'produced: ' || code)
FROM unnest(ARRAY['TC001', 'TC002', 'TC003', 'TC004', 'TC005', 'TC006', 'TC007', 'TC008', 'TC009', 'TC010', 'TC011', 'TC012',
	'22004', '22023', '22030', '22P05', '22P02', '22003', '54001', '54000', '42704', '42501', '0A000', '25006', '40001', '23505']) AS code;
SELECT ok(EXISTS (SELECT FROM tool_claims.events WHERE organization = 'tap_contract' AND events.kind = kinds.kind), 'an event: ' || kind) FROM kinds;
SELECT is((SELECT string_agg(DISTINCT verdict::text, ' ' ORDER BY verdict::text) FROM (
	SELECT (tool_claims.verify_mark('x', m)).verdict FROM unnest(ARRAY[NULL, 'x', 'tcm1.eA.' || repeat('A', 43)]) AS m) AS v), 'invalid unknown_key unmarked', 'three verdicts about marks (valid: marks.sql)');
-- every chain verifies at the end of it all
SELECT is((SELECT string_agg(format('%s %s: %s', h.task_id, h.tool_call_id, v.reason), ', ') FROM (SELECT DISTINCT task_id, tool_call_id FROM tool_claims.evidence_heads()) AS h, tool_claims.verify_evidence(h.task_id, h.tool_call_id) AS v
	WHERE NOT v.ok), NULL, 'every chain verifies');

SELECT * FROM finish();
CREATE PROCEDURE pg_temp.forget_all()
LANGUAGE plpgsql
AS $$
DECLARE
	t text;
BEGIN
	PERFORM set_config('session_replication_role', 'replica', true);
	FOREACH t IN ARRAY ARRAY['claim_records', 'operations', 'events', 'policies', 'policy_numbers', 'proposal_records', 'votes', 'approvers', 'result_gates', 'mark_keys'] LOOP
		EXECUTE format('DELETE FROM tool_claims.%I WHERE organization = ''tap_contract''', t);
	END LOOP;
	PERFORM set_config('session_replication_role', 'origin', true);
END
$$;
CALL pg_temp.forget_all();
DROP SCHEMA regress_tap_contract CASCADE;
CALL pg_temp.drop_roles('regress_tap_rival');
