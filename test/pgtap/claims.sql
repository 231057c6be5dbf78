-- claims.sql: the arguments of every verb, and every outcome and reason of claim.

\set organization tap_claims
\ir include/helpers.psql

SELECT plan(403);

--
-- NULL where there is no NULL default: 22004
--

SELECT is(pg_temp.answer(call), '22004', call)
FROM (VALUES
	('claim(NULL, ''c'', ''t'', ''{}'')'),
	('claim(''t'', NULL, ''t'', ''{}'')'),
	('claim(''t'', ''c'', NULL, ''{}'')'),
	('claim(''t'', ''c'', ''t'', NULL)'),
	('claim(''t'', ''c'', ''t'', ''{}'', wait => NULL)'),
	('claim(''t'', ''c'', ''t'', ''{}'', tool_server => NULL)'),
	('claim(''t'', ''c'', ''t'', ''{}'', dispatched => NULL)'),
	('dispatch(NULL, ''c'', 1)'),
	('dispatch(''t'', NULL, 1)'),
	('dispatch(''t'', ''c'', NULL)'),
	('renew(NULL, ''c'', 1, ''1 min'')'),
	('renew(''t'', NULL, 1, ''1 min'')'),
	('renew(''t'', ''c'', NULL, ''1 min'')'),
	('renew(''t'', ''c'', 1, NULL)'),
	('complete(NULL, ''c'', ''1'', 1)'),
	('complete(''t'', NULL, ''1'', 1)'),
	('fail(NULL, ''c'', ''1'', 1)'),
	('fail(''t'', NULL, ''1'', 1)'),
	('fail(''t'', ''c'', NULL, 1)'),
	('release(NULL, ''c'', 1)'),
	('release(''t'', NULL, 1)'),
	('release(''t'', ''c'', 1, new_effect_key => NULL)'),
	('mark_uncertain(NULL, ''c'', 1, ''why'')'),
	('mark_uncertain(''t'', NULL, 1, ''why'')'),
	('mark_uncertain(''t'', ''c'', NULL, ''why'')'),
	('mark_uncertain(''t'', ''c'', 1, NULL)'),
	('report_late(NULL, ''c'', 1, ''1'')'),
	('report_late(''t'', NULL, 1, ''1'')'),
	('report_late(''t'', ''c'', NULL, ''1'')'),
	('report_late(''t'', ''c'', 1, NULL)'),
	('reconcile(NULL, ''c'', 1, ''occurred'', ''{"by": "hand"}'')'),
	('reconcile(''t'', NULL, 1, ''occurred'', ''{"by": "hand"}'')'),
	('reconcile(''t'', ''c'', NULL, ''occurred'', ''{"by": "hand"}'')'),
	('reconcile(''t'', ''c'', 1, NULL, ''{"by": "hand"}'')'),
	('reconcile(''t'', ''c'', 1, ''occurred'', NULL)'),
	('reconcile(''t'', ''c'', 1, ''not_occurred'', ''{"by": "hand"}'', new_effect_key => NULL)'),
	('assert_claim(NULL, ''c'', 1)'),
	('assert_claim(''t'', NULL, 1)'),
	('assert_claim(''t'', ''c'', NULL)'),
	('require_claim(NULL)'),
	('require_claim(''t'', NULL)'),
	('status(NULL, ''c'')'),
	('status(''t'', NULL)'),
	('find_claims(NULL)'),
	('execute(NULL, ''c'', ''t'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('execute(''t'', NULL, ''t'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('execute(''t'', ''c'', NULL, ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('execute(''t'', ''c'', ''t'', NULL, ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('execute(''t'', ''c'', ''t'', ''{}'', NULL)'),
	('execute(''t'', ''c'', ''t'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'', wait => NULL)'),
	('execute(''t'', ''c'', ''t'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'', tool_server => NULL)'),
	('set_tool_policy(NULL)'),
	('set_tool_policy(''t'', NULL)'),
	('drop_tool_policy(NULL)'),
	('drop_tool_policy(''t'', NULL)'),
	('grant_duty(NULL, ''worker'')'),
	('grant_duty(''pg_monitor'', NULL)'),
	('revoke_duty(NULL, ''worker'')'),
	('revoke_duty(''pg_monitor'', NULL)'),
	('sweep(NULL)'),
	('prune(max_rows => NULL)'),
	('prune(tombstones => NULL)'),
	('redact(NULL, ''c'', ''why'')'),
	('redact(''t'', NULL, ''why'')'),
	('redact(''t'', ''c'', NULL)'),
	('evidence(NULL, ''c'')'),
	('evidence(''t'', NULL)'),
	('verify_evidence(NULL, ''c'')'),
	('verify_evidence(''t'', NULL)'),
	('timeline(NULL, ''c'')'),
	('timeline(''t'', NULL)')
) AS t (call);

SELECT is(pg_temp.answer('digest(NULL)'), 'done', 'a value type''s function is strict');

--
-- names: 1 to 512 bytes, bytes and not characters
--

CREATE TEMPORARY TABLE texts (name text, value text, id_ok boolean, server_ok boolean);
INSERT INTO texts VALUES
	('empty', '', false, true),
	('1 byte', 'x', true, true),
	('512 bytes', repeat('x', 512), true, true),
	('513 bytes', repeat('x', 513), false, false),
	('512 bytes of 3 and 2', repeat('€', 170) || 'é', true, true),
	('513 bytes in 171 characters', repeat('€', 171), false, false),
	('a blank', ' ', true, true),
	('quotes and a newline', E'a"b''c\nd\\', true, true);

SELECT is(
	pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'')', value, 'of task', 'tool')),
	CASE WHEN id_ok THEN 'acquired' ELSE '22023' END, 'task_id: ' || name)
FROM texts;
SELECT is(
	pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'')', 'of call', value, 'tool')),
	CASE WHEN id_ok THEN 'acquired' ELSE '22023' END, 'tool_call_id: ' || name)
FROM texts;
SELECT is(
	pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'')', 'of tool', name, value)),
	CASE WHEN id_ok THEN 'acquired' ELSE '22023' END, 'tool_name: ' || name)
FROM texts;
SELECT is(
	pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'', tool_server => %L)',
		'of server', name, 'tool', value)),
	CASE WHEN server_ok THEN 'acquired' ELSE '22023' END, 'tool_server: ' || name)
FROM texts;
SELECT is(
	pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'', operation_id => %L)',
		'of operation', name, 'tool', value)),
	CASE WHEN id_ok THEN 'acquired' ELSE '22023' END, 'operation_id: ' || name)
FROM texts;
SELECT is(pg_temp.answer(format(call, quote_literal(value), quote_literal('x'))),
	CASE WHEN id_ok THEN absent ELSE '22023' END, format(call, 'task_id', '') || ': ' || name)
FROM texts,
	(VALUES
		('dispatch(%s, ''c'', 1)', 'TC001'),
		('complete(%s, ''c'')', 'TC001'),
		('status(%s, ''c'')', 'done'),
		('evidence(%s, ''c'')', 'done')) AS verbs (call, absent)
WHERE NOT id_ok OR name = '512 bytes';
-- all of them at their longest, and not compressible
CREATE FUNCTION pg_temp.long(seed text)
RETURNS text
LANGUAGE sql
AS $$ SELECT string_agg(md5(seed || n), '') FROM generate_series(1, 16) AS n $$;
SELECT set_config('tool_claims.organization', pg_temp.long('organization'), false) AS long \gset
SELECT is(pg_temp.answer(format('claim(%L, %L, %L, ''{}'', lease => ''1 min'', tool_server => %L, operation_id => %L)',
	pg_temp.long('task'), pg_temp.long('call'), pg_temp.long('tool'), pg_temp.long('server'), pg_temp.long('operation'))),
	'acquired', 'the longest key of all');
SELECT is(pg_temp.answer(format('claim(%L, %L, %L, ''[]'')', pg_temp.long('task'), pg_temp.long('call'), pg_temp.long('tool'))),
	'conflict/tool_server', 'and its evidence');
SELECT is(pg_temp.answer(format('set_tool_policy(%L, %L)', pg_temp.long('tool'), pg_temp.long('server'))), 'done', 'and its policy');
CALL pg_temp.forget();
SET tool_claims.organization = :'organization';
SELECT is(pg_temp.answer(call), '22023', call)
FROM (VALUES
	('claim(''t'', ''c'', ''*'', ''{}'')'),
	('claim(''t'', ''c'', ''t'', ''{}'', tool_server => ''*'')'),
	('execute(''t'', ''c'', ''*'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('execute(''t'', ''c'', ''t'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'', tool_server => ''*'')'),
	('require_claim(''*'')'),
	('require_claim(''t'', ''*'')'),
	('require_claim('''')'),
	('set_tool_policy(''*'', ''some server'')'),
	('set_tool_policy('''')')
) AS t (call);

--
-- lease, wait, the deadline, the shape
--

SELECT is(
	pg_temp.answer(format('claim(''of lease'', %L, ''tool'', ''{}'', lease => %L)', lease, lease)),
	answer, 'lease ' || lease)
FROM (VALUES
	('0', '22023'),
	('-1 microsecond', '22023'),
	('-1 hour', '22023'),
	('1 microsecond', 'acquired'),
	('1 hour', 'acquired'),
	('1 hour 1 microsecond', '22023'),
	('1 day -23 hours', 'acquired'),
	('1 month -29 days -23 hours', 'acquired'),
	('1 day', '22023'),
	('1 month', '22023'),
	('178000000 years', '22023'),
	('-178000000 years', '22023')
) AS t (lease, answer);
SELECT is(
	pg_temp.answer(format('renew(''of lease'', ''1 hour'', 1, %L)', lease)),
	answer, 'renew by ' || lease)
FROM (VALUES
	('0', '22023'),
	('-1 s', '22023'),
	('1 hour', 'acquired'),
	('1 hour 1 microsecond', '22023')
) AS t (lease, answer);
SET tool_claims.max_lease = '10 s';
SELECT is(
	pg_temp.answer(format('claim(''of max_lease'', %L, ''tool'', ''{}'', lease => %L)', lease, lease)),
	answer, 'lease ' || lease || ' where 10 s is the most')
FROM (VALUES ('10 s', 'acquired'), ('10.000001 s', '22023')) AS t (lease, answer);
RESET tool_claims.max_lease;
SELECT is(
	pg_temp.answer(format('claim(''of wait'', %L, ''tool'', ''{}'', lease => ''1 min'', wait => %L)', wait, wait)),
	answer, 'wait ' || wait)
FROM (VALUES
	('0', 'acquired'),
	('-1 microsecond', '22023'),
	('-1 month 40 days', 'acquired'),
	('1 month -40 days', '22023'),
	('1 year', 'acquired')
) AS t (wait, answer);
SELECT is(
	pg_temp.answer(format('claim(''of deadline'', %L, ''tool'', ''{}'', lease => ''1 min'', not_after => %L)',
		deadline, deadline)),
	answer, 'not_after ' || deadline)
FROM (VALUES
	('infinity', 'acquired'),
	('-infinity', '22023'),
	('2000-01-01', 'refused/deadline_passed'),
	('9999-12-31', 'acquired')
) AS t (deadline, answer);
SELECT is(
	pg_temp.answer('claim(''t'', ''c'', ''tool'', ''{}'', dispatched => false)'),
	'22023', 'dispatched => false needs a lease');

-- an interval can be infinite from PostgreSQL 17 on
CREATE FUNCTION pg_temp.infinite(call text)
RETURNS text
LANGUAGE sql
AS $$
	SELECT CASE WHEN current_setting('server_version_num')::integer < 170000 THEN '22023'
		ELSE pg_temp.answer(call) END
$$;
SELECT is(pg_temp.infinite(call), '22023', call)
FROM (VALUES
	('claim(''t'', ''c'', ''tool'', ''{}'', lease => ''infinity'')'),
	('claim(''t'', ''c'', ''tool'', ''{}'', lease => ''-infinity'')'),
	('claim(''t'', ''c'', ''tool'', ''{}'', wait => ''infinity'')'),
	('claim(''t'', ''c'', ''tool'', ''{}'', wait => ''-infinity'')'),
	('renew(''of lease'', ''1 hour'', 1, ''infinity'')'),
	('prune(''infinity'')'),
	('set_tool_policy(''tool'', retention => ''infinity'')')
) AS t (call);

--
-- the evidence of a reconciliation, and what goes with which finding
--

SELECT is(
	pg_temp.answer('claim(''of reconcile'', ''c'', ''tool'', ''{}'', lease => ''1 min'')'),
	'acquired', 'a claim to reconcile');
SELECT is(
	pg_temp.answer('mark_uncertain(''of reconcile'', ''c'', 1, ''lost'')'),
	'uncertain/reported', '… is uncertain');
SELECT is(pg_temp.answer('reconcile(''of reconcile'', ''c'', 1, ' || rest || ')'), answer, rest)
FROM (VALUES
	('''occurred'', ''{}''', '22023'),
	('''occurred'', ''[]''', '22023'),
	('''occurred'', ''[1]''', '22023'),
	('''occurred'', ''1''', '22023'),
	('''occurred'', ''"x"''', '22023'),
	('''occurred'', ''null''', '22023'),
	('''occurred'', ''{"by": 1}'', error => ''1''', '22023'),
	('''occurred'', ''{"by": 1}'', new_effect_key => true', '22023'),
	('''not_occurred'', ''{"by": 1}'', result => ''1''', '22023'),
	('''not_occurred'', ''{"by": 1}'', error => ''1''', '22023'),
	('''abandoned'', ''{"by": 1}'', result => ''1''', '22023'),
	('''abandoned'', ''{"by": 1}'', new_effect_key => true', '22023'),
	('''compensated'', ''{"by": 1}'', result => ''1''', '22023'),
	('''compensated'', ''{"by": 1}'', new_effect_key => true', '22023'),
	('''perhaps'', ''{"by": 1}''', '22P02')
) AS t (rest, answer);
SELECT is(pg_temp.state('of reconcile', 'c'), 'uncertain', '… and still is');

--
-- the organization '*' is for reading
--

SET tool_claims.organization = '*';
SELECT is(pg_temp.answer(call), '22023', call || ' under *')
FROM (VALUES
	('claim(''t'', ''c'', ''tool'', ''{}'')'),
	('dispatch(''t'', ''c'', 1)'),
	('renew(''t'', ''c'', 1, ''1 min'')'),
	('complete(''t'', ''c'', ''1'', 1)'),
	('fail(''t'', ''c'', ''1'', 1)'),
	('release(''t'', ''c'', 1)'),
	('mark_uncertain(''t'', ''c'', 1, ''why'')'),
	('report_late(''t'', ''c'', 1, ''1'')'),
	('reconcile(''t'', ''c'', 1, ''occurred'', ''{"by": 1}'')'),
	('assert_claim(''t'', ''c'', 1)'),
	('execute(''t'', ''c'', ''tool'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('set_tool_policy(''tool'')'),
	('drop_tool_policy(''tool'')'),
	('redact(''t'', ''c'', ''why'')')
) AS t (call);
SET tool_claims.organization = :'organization';
SELECT is(pg_temp.state_of(format('SET tool_claims.organization = %L', repeat('x', 513))),
	'22023', 'an organization has at most 512 bytes');
SET tool_claims.organization = :'organization';

--
-- the input
--

SET tool_claims.max_input_size = '1 kB';
SELECT is(
	pg_temp.answer(format('claim(''of size'', %L, ''tool'', %L, lease => ''1 min'')', name, input)),
	answer, name)
FROM (VALUES
	('1,000 bytes', to_json(repeat('x', 998))::text, 'acquired'),
	('1,024 bytes', to_json(repeat('x', 1022))::text, 'acquired'),
	('1,025 bytes', to_json(repeat('x', 1023))::text, '54000'),
	('1,025 bytes in 342 characters', to_json(repeat('€', 341))::text, '54000'),
	('little between many blanks', repeat(' ', 5000) || '1', 'acquired')
) AS t (name, input, answer);
SELECT is(
	pg_temp.answer(format('execute(''of size'', ''e'', ''tool'', %L, ''pg_catalog.jsonb_strip_nulls(jsonb)'')',
		to_json(repeat('x', 1023)))),
	'54000', 'execute, 1,025 bytes');
RESET tool_claims.max_input_size;
SELECT is(
	pg_temp.answer(format('claim(''of input'', ''c'', ''tool'', %L, lease => ''1 min'')', input)),
	answer, 'input ' || left(input, 30))
FROM (VALUES
	('{"a": 1, "a": 2}', '22030'),
	('{"a": 1', '22P02'),
	('', '22P02'),
	('{"a": "\u0000"}', '22P05')
) AS t (input, answer);

-- every kind of JSON is an input, and its layout does not matter
SELECT is(
	pg_temp.answer(format('claim(''of kinds'', %L, ''tool'', %L, lease => ''1 min'')', input, input)),
	'acquired', 'input ' || input)
FROM (VALUES ('null'), ('true'), ('1'), ('"x"'), ('[]'), ('{}')) AS t (input);
SELECT is(
	pg_temp.answer('claim(''of layout'', ''c'', ''tool'', ''{"b": 1.0, "a": "\u0041"}'', lease => ''1 min'')'),
	'acquired', 'a claim');
SELECT is(
	pg_temp.answer(format('claim(''of layout'', ''c'', ''tool'', %s)', input)),
	answer, 'then input ' || input)
FROM (VALUES
	('''{"a":"A","b":1}''', 'in_progress'),
	('''{"a":"A","b":10e-1}''', 'in_progress'),
	('''{"b":1,"a":"A"}''::json', 'in_progress'),
	('''{"b":1,"a":"A"}''::jsonb', 'in_progress'),
	('''{"a":"A","b":"1"}''', 'conflict/input'),
	('''{"a":"A","b":1.0000000000000000001}''', 'conflict/input'),
	('''{"a":"A","b":1,"c":null}''', 'conflict/input'),
	('''{"a":"a","b":1}''', 'conflict/input')
) AS t (input, answer);

--
-- every outcome and reason, and what is filled
--

CREATE TEMPORARY TABLE answers (
	name text PRIMARY KEY,
	answer tool_claims.claim_result
);
CREATE TEMPORARY TABLE calls (
	name text PRIMARY KEY,
	call text,
	answer text,
	filled text[],
	never text[]
);

SELECT is(pg_temp.answer('set_tool_policy(''once'', max_attempts => 1)'), 'done', 'a tool with one attempt');
SELECT is(pg_temp.answer('set_tool_policy(''off'', enabled => false)'), 'done', 'a disabled tool');
SELECT is(pg_temp.answer(call), answer, 'prepare: ' || call)
FROM (VALUES
	('claim(''o'', ''leased'', ''tool'', ''{}'', lease => ''1 hour'')', 'acquired'),
	('claim(''o'', ''short'', ''tool'', ''{}'', lease => ''2 s'')', 'acquired'),
	('claim(''o'', ''completed'', ''tool'', ''{}'', lease => ''1 min'', tool_server => ''s'')', 'acquired'),
	('claim(''o'', ''no result'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired'),
	('claim(''o'', ''failed'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired'),
	('claim(''o'', ''released'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired'),
	('claim(''o'', ''released and due'', ''once'', ''{}'', lease => ''1 min'')', 'acquired'),
	('claim(''o'', ''reported'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired'),
	('claim(''o'', ''expired'', ''tool'', ''{}'', lease => ''1 microsecond'')', 'acquired'),
	('claim(''o'', ''free'', ''tool'', ''{}'', lease => ''1 microsecond'', dispatched => false)', 'acquired'),
	('claim(''o'', ''operated'', ''tool'', ''{}'', lease => ''1 min'', operation_id => ''op'')', 'acquired')
) AS t (call, answer);
SELECT is(pg_temp.answer(call), answer, 'prepare: ' || call)
FROM (VALUES
	('complete(''o'', ''completed'', ''{"r": 1}'', 1)', 'completed'),
	('complete(''o'', ''no result'', NULL, 1)', 'completed'),
	('fail(''o'', ''failed'', ''{"e": 1}'', 1)', 'failed'),
	('release(''o'', ''released'', 1)', 'released'),
	('release(''o'', ''released and due'', 1)', 'released'),
	('mark_uncertain(''o'', ''reported'', 1, ''lost'')', 'uncertain/reported')
) AS t (call, answer);

INSERT INTO calls VALUES
	('a leased one', 'claim(''o'', ''new'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired',
		'{outcome,task_id,tool_call_id,attempt,effect_key,lease_expires_at,claimed_at}',
		'{reason,result,error,input,retry_after,finished_at}'),
	('after a release', 'claim(''o'', ''released'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired/retry',
		'{outcome,reason,task_id,tool_call_id,attempt,effect_key,lease_expires_at,claimed_at}',
		'{result,error,input,retry_after,finished_at}'),
	('after an attempt that never began', 'claim(''o'', ''free'', ''tool'', ''{}'', lease => ''1 min'')', 'acquired/takeover',
		'{outcome,reason,task_id,tool_call_id,attempt,effect_key,lease_expires_at,claimed_at}',
		'{result,error,input,retry_after,finished_at}'),
	('completed', 'claim(''o'', ''completed'', ''tool'', ''{}'', tool_server => ''s'')', 'completed',
		'{outcome,task_id,tool_call_id,result,finished_at}',
		'{reason,attempt,effect_key,error,input,held_by,retry_after,lease_expires_at}'),
	('completed, asked with a lease', 'claim(''o'', ''completed'', ''tool'', ''{}'', tool_server => ''s'', lease => ''1 min'')', 'completed',
		'{outcome,task_id,tool_call_id,result,finished_at}',
		'{reason,attempt,effect_key,error,input,held_by,retry_after,lease_expires_at}'),
	('completed without a result', 'claim(''o'', ''no result'', ''tool'', ''{}'')', 'completed',
		'{outcome,task_id,tool_call_id,finished_at}',
		'{reason,attempt,effect_key,result,error,input,held_by,retry_after,lease_expires_at}'),
	('failed', 'claim(''o'', ''failed'', ''tool'', ''{}'')', 'failed',
		'{outcome,task_id,tool_call_id,error,finished_at}',
		'{reason,attempt,effect_key,result,input,held_by,retry_after,lease_expires_at}'),
	('in progress', 'claim(''o'', ''leased'', ''tool'', ''{}'', lease => ''1 min'')', 'in_progress',
		'{outcome,task_id,tool_call_id,held_by,retry_after}',
		'{reason,attempt,effect_key,result,error,input,finished_at}'),
	('in progress, asked without a lease', 'claim(''o'', ''leased'', ''tool'', ''{}'')', 'in_progress',
		'{outcome,task_id,tool_call_id,held_by,retry_after}',
		'{reason,attempt,effect_key,result,error,input,finished_at}'),
	('in progress for short', 'claim(''o'', ''short'', ''tool'', ''{}'')', 'in_progress',
		'{outcome,task_id,tool_call_id,held_by,retry_after}',
		'{reason,attempt,effect_key,result,error,input,finished_at}'),
	('in progress, by its operation', 'claim(''o'', ''another'', ''tool'', ''{}'', operation_id => ''op'')', 'in_progress/operation',
		'{outcome,reason,task_id,tool_call_id,held_by,retry_after}',
		'{attempt,effect_key,result,error,input,finished_at}'),
	('uncertain by time', 'claim(''o'', ''expired'', ''tool'', ''{}'')', 'uncertain/lease_expired',
		'{outcome,reason,task_id,tool_call_id}',
		'{attempt,effect_key,result,error,input,retry_after,finished_at}'),
	('uncertain by report', 'claim(''o'', ''reported'', ''tool'', ''{}'')', 'uncertain/reported',
		'{outcome,reason,task_id,tool_call_id}',
		'{attempt,effect_key,result,error,input,retry_after,finished_at}'),
	('another server', 'claim(''o'', ''completed'', ''tool'', ''{}'')', 'conflict/tool_server', NULL, NULL),
	('another tool', 'claim(''o'', ''completed'', ''tool 2'', ''{}'', tool_server => ''s'')', 'conflict/tool_name', NULL, NULL),
	('other input', 'claim(''o'', ''completed'', ''tool'', ''[]'', tool_server => ''s'')', 'conflict/input', NULL, NULL),
	('an operation where there is none', 'claim(''o'', ''completed'', ''tool'', ''{}'', tool_server => ''s'', operation_id => ''x'')',
		'conflict/operation_id', NULL, NULL),
	('another operation', 'claim(''o'', ''operated'', ''tool'', ''{}'', operation_id => ''x'')', 'conflict/operation_id', NULL, NULL),
	('no operation where there is one', 'claim(''o'', ''operated'', ''tool'', ''{}'')', 'conflict/operation_id', NULL, NULL),
	('the operation with other input', 'claim(''o'', ''another'', ''tool'', ''[]'', operation_id => ''op'')', 'conflict/operation', NULL, NULL),
	('past the deadline', 'claim(''o'', ''late'', ''tool'', ''{}'', not_after => ''2000-01-01'')', 'refused/deadline_passed', NULL, NULL),
	('no attempt left', 'claim(''o'', ''released and due'', ''once'', ''{}'')', 'refused/attempts_exhausted', NULL, NULL),
	('disabled', 'claim(''o'', ''disabled'', ''off'', ''{}'')', 'refused/tool_disabled', NULL, NULL);
UPDATE calls
SET filled = '{outcome,reason,task_id,tool_call_id}',
	never = '{attempt,effect_key,result,error,input,held_by,retry_after,lease_expires_at,claimed_at,finished_at}'
WHERE filled IS NULL;

CREATE PROCEDURE pg_temp.call_all()
LANGUAGE plpgsql
AS $$
DECLARE
	c record;
	rows bigint;
BEGIN
	FOR c IN SELECT * FROM calls LOOP
		EXECUTE format('INSERT INTO answers SELECT %L, r FROM tool_claims.%s AS r', c.name, c.call);
		GET DIAGNOSTICS rows = ROW_COUNT;
		IF rows <> 1 THEN
			RAISE '% gave % rows', c.name, rows;
		END IF;
		COMMIT;
	END LOOP;
END
$$;
CALL pg_temp.call_all();

SELECT is(concat_ws('/', (a.answer).outcome, (a.answer).reason), c.answer, c.name)
FROM calls AS c LEFT JOIN answers AS a USING (name);
SELECT is(
	(SELECT array_agg(f ORDER BY f) FROM unnest(c.filled) AS f WHERE to_json(a.answer) ->> f IS NULL),
	NULL, c.name || ': filled')
FROM calls AS c JOIN answers AS a USING (name);
SELECT is(
	(SELECT array_agg(f ORDER BY f) FROM unnest(c.never) AS f WHERE to_json(a.answer) ->> f IS NOT NULL),
	NULL, c.name || ': not filled')
FROM calls AS c JOIN answers AS a USING (name);

CREATE FUNCTION pg_temp.the(wanted text)
RETURNS tool_claims.claim_result
LANGUAGE sql
AS $$ SELECT answer FROM answers WHERE name = wanted $$;

SELECT is((pg_temp.the('a leased one')).attempt, 1, 'the first attempt is 1');
SELECT is((pg_temp.the('after a release')).attempt, 2, 'the next one is 2');
SELECT is((pg_temp.the('after an attempt that never began')).attempt, 2, 'after an expiry too');
SELECT is((pg_temp.the('a leased one')).lease_expires_at - (pg_temp.the('a leased one')).claimed_at,
	'1 min', 'a lease counts from the grant');
SELECT is((pg_temp.the('completed')).result::text, '{"r": 1}', 'the stored result');
SELECT is((pg_temp.the('failed')).error::text, '{"e": 1}', 'the stored error');
SELECT ok(starts_with((pg_temp.the('in progress')).held_by, session_user), 'held_by opens with the role');
SELECT is((pg_temp.the('in progress')).retry_after, '5 s', 'retry_after is 5 s at most');
SELECT ok((pg_temp.the('in progress for short')).retry_after BETWEEN '0' AND '2 s',
	'… and what is left of the lease at most');
SELECT is((pg_temp.the('in progress, by its operation')).tool_call_id, 'operated',
	'the pair is that of the record that answered');
SELECT is(((pg_temp.the('another tool')).task_id, (pg_temp.the('another tool')).tool_call_id)::text, '(o,completed)',
	'a conflict names the pair');
SELECT is((SELECT count(*)::integer FROM tool_claims.status('o', 'late')), 0, 'a refused claim leaves no record');
SELECT is((SELECT count(*)::integer FROM tool_claims.status('o', 'another')), 0, '… nor does one that its operation answered');

-- a transactional claim, its own transaction
BEGIN;
SELECT is(
	(SELECT array_agg(f) FROM unnest('{outcome,task_id,tool_call_id,attempt,effect_key,claimed_at}'::text[]) AS f
		WHERE to_json(r) ->> f IS NULL),
	NULL, 'a transactional one: filled')
FROM tool_claims.claim('o', 'tx', 'tool', '{}') AS r;
SELECT is((outcome, reason, attempt)::text, '(acquired,already_held,1)', 'a claim sees itself')
FROM tool_claims.claim('o', 'tx', 'tool', '{}');
SELECT is((outcome, reason, attempt)::text, '(acquired,already_held,1)', '… and waits for nobody')
FROM tool_claims.claim('o', 'tx', 'tool', '{}', wait => '1 hour');
SELECT is(pg_temp.answer('claim(''o'', ''tx'', ''tool'', ''{}'', lease => ''1 min'')'), '22023', 'it keeps its shape');
SELECT is(pg_temp.answer('claim(''o'', ''tx'', ''tool'', ''[]'')'), 'conflict/input', 'other data is a conflict');
SELECT is(pg_temp.answer('claim(''o'', ''tx'', ''tool'', ''[]'', lease => ''1 min'')'), 'conflict/input',
	'… before its shape');
SELECT is((dispatched_at, lease_expires_at)::text, '(,)', 'it has no lease and is not dispatched')
FROM tool_claims.status('o', 'tx');
SELECT is((outcome, attempt, effect_key IS NOT NULL, result::text)::text, '(completed,1,t,2)', 'complete answers its holder')
FROM tool_claims.complete('o', 'tx', '2');
COMMIT;
SELECT is(pg_temp.answer('claim(''o'', ''tx'', ''tool'', ''{}'')'), 'completed', 'stored');
BEGIN;
SELECT is(pg_temp.answer('claim(''o'', ''leased tx'', ''tool'', ''{}'', lease => ''1 min'')'), 'acquired', 'a leased one');
SELECT is(pg_temp.answer('claim(''o'', ''leased tx'', ''tool'', ''{}'', lease => ''1 min'')'), 'acquired/already_held',
	'sees itself too');
SELECT is(pg_temp.answer('claim(''o'', ''leased tx'', ''tool'', ''{}'')'), '22023', '… and keeps its shape');
ROLLBACK;
SELECT is(pg_temp.answer('dispatch(''o'', ''leased tx'', 1)'), 'TC001', 'rolled back, it never was');

-- a result is given back byte for byte
SELECT is(pg_temp.answer('claim(''o'', ''bytes'', ''tool'', ''{}'', lease => ''1 min'')'), 'acquired', 'a claim');
SELECT is(result::text, '  {"u":"\u0000","s":"\ud800","d":1,"d":2,"n":1e99999999999} ', 'any json text is a result')
FROM tool_claims.complete('o', 'bytes', '  {"u":"\u0000","s":"\ud800","d":1,"d":2,"n":1e99999999999} ', 1);
SELECT is(result::text, '  {"u":"\u0000","s":"\ud800","d":1,"d":2,"n":1e99999999999} ', '… and comes back byte for byte')
FROM tool_claims.claim('o', 'bytes', 'tool', '{}');

--
-- the order of the reasons to refuse
--

SELECT is(pg_temp.answer('set_tool_policy(''once'', enabled => false)'), 'done', 'one attempt, and disabled');
SELECT is(pg_temp.answer('claim(''o'', ''released and due'', ''once'', ''{}'', not_after => ''2000-01-01'')'),
	'refused/deadline_passed', 'first the deadline');
SELECT is(pg_temp.answer('claim(''o'', ''released and due'', ''once'', ''{}'')'),
	'refused/attempts_exhausted', 'then the attempts');
SELECT is(pg_temp.answer('claim(''o'', ''not yet'', ''once'', ''{}'')'), 'refused/tool_disabled', 'then the tool');
SELECT is(pg_temp.answer('claim(''o'', ''released and due'', ''once'', ''[]'', not_after => ''2000-01-01'')'),
	'conflict/input', 'before them a conflict');
SELECT is(pg_temp.answer('set_tool_policy(''tool'', enabled => false, effect => ''local'', operation_required => true)'),
	'done', 'a tool that is disabled later');
SELECT is(pg_temp.answer('claim(''o'', ''no result'', ''tool'', ''{}'', lease => ''1 min'', not_after => ''2000-01-01'')'),
	'completed', 'does not take the answer from a completed call');
SELECT is(pg_temp.answer('claim(''o'', ''leased'', ''tool'', ''{}'', lease => ''1 min'', not_after => ''2000-01-01'')'),
	'in_progress', '… nor from one in progress');

--
-- the deadline is stored, and the earlier one counts
--

SELECT is(pg_temp.answer('drop_tool_policy(''tool'')'), 'done', 'the tool is free again');
SELECT is(
	pg_temp.answer(format('claim(''d'', ''c'', ''tool'', ''{}'', lease => ''10 min'', not_after => %L)',
		clock_timestamp() + interval '1 min')),
	'acquired', 'a claim with a deadline');
SELECT ok(not_after BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 min', 'which is stored')
FROM tool_claims.status('d', 'c');
SELECT is(pg_temp.answer('dispatch(''d'', ''c'', 1)'), 'acquired', 'dispatched in time');
SELECT pg_temp.clock(120);
SELECT is(pg_temp.answer('dispatch(''d'', ''c'', 1)'), 'refused/deadline_passed', 'not after it');
SELECT is(pg_temp.state('d', 'c'), 'claimed', '… and it stays claimed');
SELECT is(pg_temp.answer('release(''d'', ''c'', 1)'), 'released', 'released');
SELECT is(pg_temp.answer('claim(''d'', ''c'', ''tool'', ''{}'', lease => ''1 min'', not_after => ''infinity'')'),
	'refused/deadline_passed', 'a later deadline does not extend it');
SELECT pg_temp.clock(0);
SELECT is(pg_temp.answer('claim(''d'', ''c'', ''tool'', ''{}'', lease => ''1 min'', not_after => ''2000-01-01'')'),
	'refused/deadline_passed', 'an earlier one counts');
SELECT is(pg_temp.answer('claim(''d'', ''c'', ''tool'', ''{}'', lease => ''1 min'')'), 'acquired/retry',
	'… for its own call');

--
-- answers write nothing, and nobody waits longer than he said
--

-- (pgTAP itself takes an id, so it is asked for before)
BEGIN;
SELECT string_agg(pg_temp.answer(call), ' ') AS answers
FROM (VALUES
	('claim(''o'', ''completed'', ''tool'', ''{}'', tool_server => ''s'')'),
	('claim(''o'', ''failed'', ''tool'', ''{}'')'),
	('claim(''o'', ''leased'', ''tool'', ''{}'', wait => ''10 ms'')'),
	('claim(''o'', ''expired'', ''tool'', ''{}'')'),
	('claim(''o'', ''another'', ''tool'', ''{}'', operation_id => ''op'')'),
	('status(''o'', ''leased'')')
) AS t (call) \gset
SELECT coalesce(pg_current_xact_id_if_assigned()::text, 'none') AS id \gset
COMMIT;
SELECT is(:'answers'::text, 'completed failed in_progress uncertain/lease_expired in_progress/operation done', 'answers');
SELECT is(:'id'::text, 'none', 'took no transaction id');
SELECT is(pg_temp.answer('claim(''w'', ''short'', ''tool'', ''{}'', lease => ''200 ms'', dispatched => false)'), 'acquired', 'a short lease');
SELECT is(pg_temp.answer('claim(''w'', ''short'', ''tool'', ''{}'', lease => ''10 min'', wait => ''1 min'')'), 'acquired/takeover',
	'waited for until it is over');
CREATE TEMPORARY TABLE waited AS SELECT clock_timestamp() AS since;
SELECT is(pg_temp.answer('claim(''w'', ''short'', ''tool'', ''{}'', wait => ''200 ms'')'), 'in_progress', 'waited for in vain');
SELECT ok(clock_timestamp() - since BETWEEN '200 ms' AND '30 s', 'and not much longer than said') FROM waited;
SET statement_timeout = '200 ms';
DO $$
BEGIN
	PERFORM * FROM tool_claims.claim('w', 'short', 'tool', '{}', wait => '1 hour');
EXCEPTION WHEN query_canceled THEN
	CREATE TEMPORARY TABLE canceled ();
END
$$;
RESET statement_timeout;
SELECT has_table('canceled', 'statement_timeout ends a wait');
BEGIN;
SELECT is(pg_temp.answer('claim(''w'', ''own'', ''tool'', ''{}'', operation_id => ''own'')'), 'acquired', 'a claim with an operation');
SELECT is(pg_temp.answer('claim(''w'', ''own 2'', ''tool'', ''{}'', operation_id => ''own'', wait => ''1 hour'')'), 'in_progress/operation',
	'its transaction does not wait for itself');
ROLLBACK;

--
-- in a read-only transaction nothing can be said, but looked at
--

BEGIN READ ONLY;
SELECT is(pg_temp.answer(call), '25006', 'read only: ' || call)
FROM (VALUES
	('claim(''t'', ''c'', ''tool'', ''{}'')'),
	('claim(''o'', ''failed'', ''tool'', ''{}'')'),
	('dispatch(''o'', ''leased'', 1)'),
	('renew(''o'', ''leased'', 1, ''1 min'')'),
	('complete(''o'', ''leased'', ''1'', 1)'),
	('fail(''o'', ''leased'', ''1'', 1)'),
	('release(''o'', ''leased'', 1)'),
	('mark_uncertain(''o'', ''leased'', 1, ''why'')'),
	('report_late(''o'', ''leased'', 1, ''1'')'),
	('reconcile(''o'', ''reported'', 1, ''occurred'', ''{"by": 1}'')'),
	('assert_claim(''o'', ''leased'', 1)'),
	('execute(''t'', ''c'', ''tool'', ''{}'', ''pg_catalog.jsonb_strip_nulls(jsonb)'')'),
	('set_tool_policy(''tool'')'),
	('drop_tool_policy(''tool'')'),
	('sweep()'),
	('prune()'),
	('redact(''o'', ''failed'', ''why'')')
) AS t (call);
SELECT is(pg_temp.answer(call), 'done', 'read only: ' || call)
FROM (VALUES
	('status(''o'', ''leased'')'),
	('find_claims(''op'')'),
	('evidence(''o'', ''leased'')'),
	('verify_evidence(''o'', ''leased'')'),
	('evidence_heads()'),
	('timeline(''o'', ''leased'')'),
	('current_claim()')
) AS t (call);
SELECT is(pg_temp.state_of('SELECT * FROM tool_claims.' || v), 'done', 'read only: ' || v)
FROM unnest(ARRAY['claims', 'attention']) AS v;
ROLLBACK;

SELECT * FROM finish();
CALL pg_temp.forget();
