-- canonical_json.sql: the type canonical_json, by tables of inputs.

BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS tool_claims;
SET search_path = tool_claims, public, pg_catalog, pg_temp;

SELECT plan(1243 + (getdatabaseencoding() = 'UTF8')::integer);

-- an input as a test's name: short, in one line
CREATE FUNCTION pg_temp.name(input text) RETURNS text LANGUAGE sql IMMUTABLE
	RETURN translate(left(input, 60), E'\t\r\n#', '    ');

--
-- what is read, and its canonical text
--

CREATE TEMPORARY TABLE accepted (input text, canonical text, portable boolean);
INSERT INTO accepted VALUES
	-- words, white space, empty values
	('null', 'null', true),
	(E' \t\r\n[ true ,\nfalse\t] \n', '[true,false]', true),
	('{}', '{}', true),
	('{ }', '{}', true),
	('[ ]', '[]', true),
	('""', '""', true),
	('[[],{},[[{}]]]', '[[],{},[[{}]]]', true),
	-- escapes
	('"\u0041\u007a"', '"Az"', true),
	('"\/"', '"/"', true),
	('"\"\\\b\f\n\r\t"', '"\"\\\b\f\n\r\t"', true),
	('"\u0022\u005C\u0008\u000c\u000A\u000d\u0009"', '"\"\\\b\f\n\r\t"', true),
	('"\u0001\u001F\u000b"', '"\u0001\u001f\u000b"', true),
	(E'"\x7f"', E'"\x7f"', true),
	('"0.10e5 -0"', '"0.10e5 -0"', true),
	-- member order: by the unescaped name, shorter first
	('{"b":1,"a":2}', '{"a":2,"b":1}', true),
	('{"aa":1,"a":2,"":3,"b":4,"B":5,"1":6,"10":7,"9":8}', '{"":3,"1":6,"10":7,"9":8,"B":5,"a":2,"aa":1,"b":4}', true),
	('{"\u0062":1,"a":2}', '{"a":2,"b":1}', true),
	('{"\"":1,"!":2,"#":3,"\\":4,"]":5,"[":6}', '{"!":2,"\"":1,"#":3,"[":6,"\\":4,"]":5}', true),
	('{" ":1,"\n":2,"\u0001":3,"\u001f":4,"\t":5,"\b":6}', '{"\u0001":3,"\b":6,"\t":5,"\n":2,"\u001f":4," ":1}', true),
	('{"12345678\n":1,"12345678\t":2,"12345678":3,"1234567\n":4}', '{"1234567\n":4,"12345678":3,"12345678\t":2,"12345678\n":1}', true),
	('{"abcdefghijklmnop2":1,"abcdefghijklmnop1":2,"abcdefghijklmnop":3}', '{"abcdefghijklmnop":3,"abcdefghijklmnop1":2,"abcdefghijklmnop2":1}', true),
	('{"c":{"b":{"z":1,"y":[{"x":1,"w":2}]},"a":1},"b":{"d":1,"c":2},"a":{"f":{"h":1,"g":2},"e":0}}',
		'{"a":{"e":0,"f":{"g":2,"h":1}},"b":{"c":2,"d":1},"c":{"a":1,"b":{"y":[{"w":2,"x":1}],"z":1}}}', true),
	('[{"a":1,"b":[{"d":1,"c":{}}]},{"b":1,"a":2}]', '[{"a":1,"b":[{"c":{},"d":1}]},{"a":2,"b":1}]', true),
	('{"a":{"a":{"a":1}},"A":{"a":1}}', '{"A":{"a":1},"a":{"a":{"a":1}}}', true),
	('{"toJSON":1,"__proto__":2,"constructor":3}', '{"__proto__":2,"constructor":3,"toJSON":1}', true);
SELECT is(input::canonical_json::text, canonical, 'text of ' || pg_temp.name(input)) FROM accepted;

CREATE TEMPORARY TABLE numbers (input text, canonical text, portable boolean);
INSERT INTO numbers VALUES
	('0', '0', true), ('-0', '0', true), ('0.000', '0', true), ('-0e5', '0', true), ('0E-999999999999999999999', '0', true),
	('1', '1', true), ('-1', '-1', true), ('10', '10', true), ('1.0', '1', true), ('1e0', '1', true), ('10e-1', '1', true),
	('0.1', '0.1', true), ('1.10', '1.1', true), ('100', '100', true), ('1e2', '100', true), ('0.001e5', '100', true),
	('1E+2', '100', true), ('123.456e2', '12345.6', true), ('123.456e-2', '1.23456', true), ('0.00012e3', '0.12', true),
	('1e000000000000000000000000000002', '100', true), ('1e-000000000000000000000000000002', '0.01', true),
	-- where the layout changes
	('1e20', '100000000000000000000', true), ('1e21', '1e+21', true), ('123456789012345680000', '123456789012345680000', true),
	('999999999999999900000', '999999999999999900000', true), ('1.5e21', '1.5e+21', true), ('1.5e20', '150000000000000000000', true),
	('0.000001', '0.000001', true), ('0.0000001', '1e-7', true), ('0.00000123', '0.00000123', true), ('0.000000123', '1.23e-7', true),
	('-1.5e-7', '-1.5e-7', true), ('-1.5e-6', '-0.0000015', true),
	-- digits that a double does not keep
	('9007199254740991', '9007199254740991', true), ('9007199254740992', '9007199254740992', true),
	('9007199254740993', '9007199254740993', false), ('9007199254740994', '9007199254740994', true),
	('18446744073709551615', '18446744073709551615', false), ('18446744073709552000', '18446744073709552000', true),
	('0.1000000000000000055511151231257827', '0.1000000000000000055511151231257827', false),
	('0.30000000000000004', '0.30000000000000004', true), ('0.300000000000000040', '0.30000000000000004', true),
	('0.3000000000000000444', '0.3000000000000000444', false), ('3.141592653589793', '3.141592653589793', true),
	('3.1415926535897932', '3.1415926535897932', false), ('1234567890123456789012.5', '1.2345678901234567890125e+21', false),
	('123456789012345678901.25', '123456789012345678901.25', false), ('0.1e1', '1', true),
	-- the shortest decimal of a double, ties, midpoints, subnormal ones
	('1e23', '1e+23', true), ('9.999999999999999e22', '9.999999999999999e+22', false), ('1.0000000000000001e23', '1.0000000000000001e+23', true),
	('5.684341886080802e-14', '5.684341886080802e-14', true), ('5.684341886080801e-14', '5.684341886080801e-14', true),
	('1125899906842624.2', '1125899906842624.2', true), ('1125899906842624.3', '1125899906842624.3', false),
	('1125899906842624.8', '1125899906842624.8', true), ('18014398509481984', '18014398509481984', true),
	('18014398509481985', '18014398509481985', false), ('18014398509481986', '18014398509481986', false),
	('36028797018963970', '36028797018963970', true), ('36028797018963968', '36028797018963968', false),
	('5e-324', '5e-324', true), ('4e-324', '4e-324', false), ('4.9e-324', '4.9e-324', false), ('3e-324', '3e-324', false),
	('2e-324', '2e-324', false), ('1e-323', '1e-323', true), ('2.2250738585072014e-308', '2.2250738585072014e-308', true),
	('2.225073858507201e-308', '2.225073858507201e-308', true), ('1.7976931348623157e308', '1.7976931348623157e+308', true),
	('1.7976931348623158e308', '1.7976931348623158e+308', false), ('1.7976931348623159e308', '1.7976931348623159e+308', false),
	('1e308', '1e+308', true), ('1e309', '1e+309', false), ('1e-400', '1e-400', false),
	-- far away, and still exact
	('1e999999999', '1e+999999999', false), ('1e-999999999', '1e-999999999', false), ('-12e999999998', '-1.2e+999999999', false),
	('0.001e1000000002', '1e+999999999', false), ('1000e-1000000002', '1e-999999999', false),
	(repeat('1', 400), '1.' || repeat('1', 399) || 'e+399', false), ('0.' || repeat('0', 400) || '1', '1e-401', false),
	('0.' || repeat('0', 5000) || '1e5001', '1', true), ('1' || repeat('0', 5000) || 'e-5000', '1', true);
INSERT INTO accepted SELECT '[' || input || ']', '[' || canonical || ']', portable FROM numbers;
SELECT is(input::canonical_json::text, canonical, 'number ' || pg_temp.name(input)) FROM numbers;
SELECT is(is_portable(input::canonical_json), portable, 'is_portable of ' || pg_temp.name(input)) FROM accepted;
SELECT is(is_portable('{"9007199254740993":"9007199254740993\\\"1e400","a":[{"b":1.5}]}'), true, 'digits in strings are no numbers');
SELECT is(is_portable('{"a\\\"":9007199254740993}'), false, 'a number after escapes is one');

-- what every accepted text has in common
SELECT is(input::canonical_json::text::canonical_json::text, canonical, 'reads what it prints: ' || pg_temp.name(input)) FROM accepted;
SELECT is(digest(input::canonical_json), sha256(convert_to(canonical, 'UTF8'))::sha256_digest, 'digest: ' || pg_temp.name(input)) FROM accepted;
SELECT is(canonical_json_send(input::canonical_json), convert_to(canonical, 'UTF8'), 'binary form: ' || pg_temp.name(input)) FROM accepted;
SELECT ok(input::json::canonical_json = input::canonical_json, 'through json: ' || pg_temp.name(input)) FROM accepted;
SELECT ok(input::canonical_json::json::text = canonical, 'as json: ' || pg_temp.name(input)) FROM accepted;
CREATE TEMPORARY VIEW for_jsonb AS
SELECT * FROM accepted WHERE input !~ '\d{9}|e[+-]?9';
SELECT ok(input::jsonb::canonical_json = input::canonical_json, 'from jsonb: ' || pg_temp.name(input)) FROM for_jsonb;
SELECT ok(input::canonical_json::jsonb = input::jsonb, 'to jsonb: ' || pg_temp.name(input)) FROM for_jsonb;

-- characters, as bytes of UTF-8 so that this file does not depend on encodings
CREATE TEMPORARY TABLE characters (input text, utf8 bytea);
INSERT INTO characters VALUES
	('"\u00e9"', '\x22c3a922'), ('"\u20AC"', '\x22e282ac22'), ('"\ud83d\ude00"', '\x22f09f988022'), ('"\uD83D\uDE00"', '\x22f09f988022'),
	('"\ud800\udc00\udbff\udfff"', '\x22f0908080f48fbfbf22'), ('"\u2028\u2029"', '\x22e280a8e280a922'),
	('"\ufeff\ufffe\uffff\ufdd0"', '\x22efbbbfefbfbeefbfbfefb79022'), ('"\u0080\u07ff\u0800"', '\x22c280dfbfe0a08022'),
	('"e\u0301"', '\x2265cc8122'),
	-- UTF-16 order: U+1F600 (d83d) before U+E000, behind U+D7FF
	('{"\ue000":1,"\ud83d\ude00":2,"\ud7ff":3,"\uffff":4,"z":5}', '\x7b227a223a352c22ed9fbf223a332c22f09f9880223a322c22ee8080223a312c22efbfbf223a347d'),
	('{"12345678\ue000":1,"12345678\ud83d\ude00":2}', '\x7b223132333435363738f09f9880223a322c223132333435363738ee8080223a317d'),
	('{"1234567\ue000":1,"1234567\ud83d\ude00":2}', '\x7b2231323334353637f09f9880223a322c2231323334353637ee8080223a317d'),
	('{"\u00e9":1,"e\u0301":2}', '\x7b2265cc81223a322c22c3a9223a317d');
SELECT is(digest(input::canonical_json), sha256(utf8)::sha256_digest, 'characters ' || input) FROM characters;
SELECT ok(input::canonical_json::text::canonical_json = input::canonical_json, 'characters read again ' || input) FROM characters;

--
-- what is refused
--

CREATE TEMPORARY TABLE rejected (input text, code text);
INSERT INTO rejected SELECT input, '22P02' FROM unnest(ARRAY[
	'', ' ', 'nul', 'nulll', 'null null', 'True', 'undefined', 'NaN', 'Infinity', '-Infinity', '-', '+1', '.5', '1.', '1.e1', '01', '-01', '00',
	'1e', '1e+', '1e-', '1e1.5', '1.2.3', '0x10', '1_000', '--1', '1 2', '1,', '- 1', '1e 5',
	'[', ']', '[1', '[1,', '[1,]', '[,1]', '[1,,2]', '[1 2]', '[1}', '{', '}', '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', '{,}', '{"a"}',
	'{"a" 1}', '{"a":1 "b":2}', '{"a":1]', '{a:1}', '{1:1}', '{null:1}', '{''a'':1}', '{"a":1};', '[]]', '{}}', '{"a":1}{', '{[]:1}',
	'"', '"a', '"a"b"', '''a''', '"\"', '"\x41"', '"\U0041"', '"\u"', '"\u12"', '"\u12g4"', '"\u 123"', '"\a"', '"\', '"\u123',
	E'"\t"', E'"\n"', E'"\r"', E'"\x01"', E'"\x1f"', E'\x0c1', E'\x0b1', E'1\x01', '/* */1', '1 // x', '# x', '(1)',
	'"\ud800"', '"\udc00"', '"\ud83d"', '"\ud83dx"', '"\ud83d\n"', '"\ud83d\u0041"', '"\ud83d\ud83d\ude00"', '"\ude00\ud83d"', '"\ud83d\u"',
	'{"\ud83d":1}', '"\ud83d\ude0"']) AS input;
INSERT INTO rejected SELECT input, '22030' FROM unnest(ARRAY[
	'{"a":1,"a":1}', '{"a":1,"b":2,"a":3}', '{"b":1,"a":2,"b":3}', '{"":1,"":1}', '{"a":1,"\u0061":2}', '{"\n":1,"\u000a":2}', '{"\"":1,"\u0022":2}',
	'{"x":{"a":1,"b":{},"a":2}}', '[{"a":1},{"b":1,"b":2}]', '{"abcdefghij":1,"abcdefghij":2}', '{"\ud83d\ude00":1,"\uD83D\uDE00":2}',
	'{"z":1,"y":2,"x":3,"w":4,"v":5,"u":6,"t":7,"s":8,"r":9,"q":10,"p":11,"o":12,"n":13,"m":14,"z":15}']) AS input;
INSERT INTO rejected SELECT input, '22P05' FROM unnest(ARRAY['"\u0000"', '"a\u0000b"', '{"\u0000":1}', '[[{"a":"\u0000"}]]']) AS input;
INSERT INTO rejected SELECT input, '22003' FROM unnest(ARRAY[
	'1e1000000000', '1e-1000000000', '-1e1000000000', '10e999999999', '0.1e-999999999', '1e99999999999999999999999999', '[1e-99999999999999999999999999]',
	'1e9223372036854775807', '1e9223372036854775808', '1e-9223372036854775808', '1e18446744073709551617', '1e' || repeat('9', 10000)]) AS input;
INSERT INTO rejected SELECT input, '54001' FROM unnest(ARRAY[
	repeat('[', 1001) || repeat(']', 1001), repeat('{"a":', 1001) || '1' || repeat('}', 1001), repeat('[', 1000000)]) AS input;
SELECT throws_ok(format('SELECT %L::canonical_json', input), code, NULL, code || ': ' || pg_temp.name(input)) FROM rejected;
SELECT throws_ok(format('SELECT %L::text::canonical_json', input), code, NULL, code || ' from text: ' || pg_temp.name(input)) FROM rejected;
SELECT throws_ok('SELECT digest((repeat(''['', 1001) || repeat('']'', 1001))::jsonb)', '54001', NULL, 'too deep from jsonb');
SELECT throws_ok('SELECT digest(''{"a":1,"a":2}''::json)', '22030', NULL, 'a name twice, from json');
SELECT throws_ok('SELECT canonical_json ''1e131072''::jsonb', '22003', NULL, 'a number that jsonb cannot hold');
SELECT throws_ok('SELECT canonical_json ''1e-16384''::jsonb', '22003', NULL, 'a fraction that jsonb cannot hold');
SELECT is(NULL::text::canonical_json::text, NULL, 'NULL stays NULL');

-- an error names the place and nothing of the value
CREATE FUNCTION pg_temp.fault(input text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	detail text;
	hint text;
BEGIN
	PERFORM input::canonical_json;
	RETURN NULL;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
	RETURN concat_ws(' ', message, detail, hint);
END $$;
SELECT is(count(*) FILTER (WHERE pg_temp.fault(text) !~ 'character \d+|the text ends' OR pg_temp.fault(text) ~ 'secret'), 0::bigint, 'errors show no content')
FROM unnest(ARRAY['{"secret":1,"secret":2}', '["secret\u0000"]', '["secret\ud800"]', '["secret" "secret"]', '["secret', '{"secret":1e9999999999}', 'secret',
	'["secret",' || repeat('[', 1001)]) AS text;
SELECT matches(pg_temp.fault('{"a": 1, "b": 2, "a": 3}'), 'character 18 ', 'a repeated name is found where it stands the second time');
SELECT matches(pg_temp.fault('["' || convert_from('\xc3a9e282acf09f9880', 'UTF8') || '" 1]'), 'character 8\.', 'positions count characters')
WHERE getdatabaseencoding() = 'UTF8';

--
-- sizes
--

SELECT is(length((repeat('[', 1000) || repeat(']', 1000))::canonical_json::text), 2000, '1,000 levels of arrays');
SELECT is(length((repeat('{"b":1,"a":', 1000) || '1' || repeat('}', 1000))::canonical_json::text), 12001, '1,000 levels of objects, none in order');
SELECT is((repeat('{"b":1,"a":', 1000) || '1' || repeat('}', 1000))::canonical_json::text,
	repeat('{"a":', 1000) || '1' || repeat(',"b":1}', 1000), '1,000 levels of objects are ordered');
SELECT is(length(('[' || repeat('1e20,', 100000) || '0]')::canonical_json::text), 2200003, 'numbers that grow');
SELECT is(md5((SELECT ('{' || string_agg(format('"%s":{"b":%s,"a":0}', md5(i::text), i), ',') || '}')::canonical_json::text FROM generate_series(1, 20000) AS i)),
	md5((SELECT '{' || string_agg(format('"%s":{"a":0,"b":%s}', md5(i::text), i), ',' ORDER BY md5(i::text) COLLATE "C") || '}' FROM generate_series(1, 20000) AS i)),
	'many members');
SELECT ok((SELECT jsonb_object_agg(md5(i::text), jsonb_build_object('bb', i, 'a', NULL)) FROM generate_series(1, 5000) AS i)::canonical_json =
	(SELECT jsonb_object_agg(md5(i::text), jsonb_build_object('bb', i, 'a', NULL)) FROM generate_series(1, 5000) AS i)::text::canonical_json, 'many members of a jsonb');
SELECT ok(value::text::numeric = number AND value = number::text::canonical_json, 'number of a jsonb: ' || left(number::text, 30))
FROM (SELECT number, to_jsonb(number)::canonical_json AS value
	FROM unnest(ARRAY[0, 1, -1, 10, 9999, 10000, 10001, 99990000, 1e15, 1e16, 1e30, 0.1, 0.0001, 0.00001, 0.00010001, 1.50, 12345678.87654321,
		-0.000000000000000000001, 1234567890123456789012345678901234567890, 100000000.00000001]) AS number OFFSET 0) AS n;

-- values that are compressed or stored out of line
CREATE TEMPORARY TABLE stored (id integer, v canonical_json, j json, b jsonb);
INSERT INTO stored
SELECT i, text::canonical_json, text::json, text::jsonb
FROM (VALUES (1, '[' || repeat('{"b":1,"a":2},', 100000) || '0]'), (2, (SELECT json_agg(md5(i::text))::text FROM generate_series(1, 10000) AS i)), (3, '7')) AS t (i, text);
SELECT ok(v = j AND v = b AND digest(v) = digest(j) AND v <= v AND is_portable(v), 'stored ' || id) FROM stored;
SELECT ok(a.v <> b.v AND (a.v < b.v) = (b.v > a.v), format('stored %s and %s', a.id, b.id)) FROM stored AS a JOIN stored AS b ON a.id < b.id;
SELECT is((SELECT count(*) FROM stored AS a JOIN stored AS b USING (v)), 3::bigint, 'joins stored values');

--
-- operators and classes
--

CREATE TEMPORARY TABLE pairs (a canonical_json, b canonical_json, expected integer);
INSERT INTO pairs VALUES ('1', '1.0', 0), ('1', '"1"', 1), ('[1]', '[1,2]', 1), ('"a"', '"b"', -1), ('{}', '[]', 1), ('"a"', '"aa"', -1),
	('{"a":1,"b":2}', '{"b":2,"a":1}', 0), ('null', 'true', -1);
SELECT ok((a = b) = (expected = 0) AND (a <> b) = (expected <> 0) AND (a < b) = (expected < 0) AND (a <= b) = (expected <= 0)
	AND (a > b) = (expected > 0) AND (a >= b) = (expected >= 0) AND sign(canonical_json_cmp(a, b)) = expected
	AND (canonical_json_hash(a) = canonical_json_hash(b)) = (expected = 0)
	AND (canonical_json_hash_extended(a, 42) = canonical_json_hash_extended(b, 42)) = (expected = 0)
	AND canonical_json_hash_extended(a, 0) & 4294967295 = canonical_json_hash(a)::bigint & 4294967295,
	format('operators of %s and %s', a, b)) FROM pairs;
SELECT is((SELECT array_agg(v::text ORDER BY v) FROM (SELECT a FROM pairs UNION SELECT b FROM pairs) AS u (v)),
	(SELECT array_agg(v::text ORDER BY v::text COLLATE "C") FROM (SELECT a FROM pairs UNION SELECT b FROM pairs) AS u (v)), 'sorts as the bytes do');

--
-- the catalog
--

SELECT is(castcontext::text || castmethod::text, expected, format('cast %s to %s', source, target))
FROM (VALUES ('text', 'canonical_json', 'ef'), ('json', 'canonical_json', 'if'), ('jsonb', 'canonical_json', 'if'),
		('canonical_json', 'text', 'af'), ('canonical_json', 'json', 'af'), ('canonical_json', 'jsonb', 'af')) AS c (source, target, expected)
	LEFT JOIN pg_cast ON castsource = source::regtype AND casttarget = target::regtype;
SELECT is((SELECT count(*) FROM pg_cast WHERE 'canonical_json'::regtype IN (castsource, casttarget)), 6::bigint, 'no other cast');
SELECT is((typlen, typalign, typstorage, typcategory, typispreferred)::text, '(-1,i,x,U,f)', 'how it is stored') FROM pg_type WHERE oid = 'canonical_json'::regtype;
SELECT is((SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc AS p
	WHERE pronamespace = 'tool_claims'::regnamespace AND (proname ~ '^canonical_json_' OR proname IN ('digest', 'is_portable'))
		AND (provolatile, proisstrict, proparallel, proleakproof, prosecdef) <> ('i', true, 's', false, false)), NULL,
	'functions are immutable, strict, parallel safe, not leakproof');
SELECT is((SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc AS p, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
	WHERE pronamespace = 'tool_claims'::regnamespace AND (proname ~ '^canonical_json_' OR proname IN ('digest', 'is_portable')) AND a.grantee = 0), NULL,
	'PUBLIC may not call them');
SELECT is((SELECT count(*) FROM pg_opclass WHERE opcintype = 'canonical_json'::regtype AND opcdefault AND amvalidate(oid)
	AND opcmethod IN (SELECT oid FROM pg_am WHERE amname IN ('btree', 'hash'))), 2::bigint, 'default btree and hash classes are valid');
SELECT ok(canonical_json_cmp('[]', '[]') = 0 AND '{"a":1}'::jsonb = '{"a":1}' AND '{"a":1}'::jsonb ->> 'a' = '1' AND '{"a":1}'::jsonb || '{"b":2}' = '{"a":1, "b":2}',
	'operators of jsonb stay unambiguous');

SELECT * FROM finish();
ROLLBACK;
