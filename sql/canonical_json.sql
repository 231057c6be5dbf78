-- canonical_json: a JSON value in RFC 8785 form, its numbers exact
SET search_path = tool_claims, pg_catalog;

-- no white space, members in the order of UTF-16 code units, few escapes
SELECT canonical_json '{"b": [1, true, null], "a": {"z": "", "": {}}, "B": []}';
SELECT canonical_json '["\u0041\/\"\\\n\u000b\u001F\u007f", " \b\f\r\t "]' AS strings;
SELECT digest('{"\ue000": 1, "\ud83d\ude00": 2, "z": 3}') =
	sha256('\x7b227a223a332c22f09f9880223a322c22ee8080223a317d')::sha256_digest AS utf16_order;

-- numbers keep their value, whatever they look like
SELECT number, number::canonical_json AS canonical, is_portable(number::canonical_json)
FROM unnest(ARRAY['1', '1.0', '1e0', '-0', '0.0e99999999999999999999', '100e-2', '12.50', '1E2',
	'0.000001', '0.0000001', '1e20', '1e21', '123456789012345678901.5', '-1.50e-7', '1e23',
	'9.999999999999999e22', '9007199254740993', '0.1000000000000000055511151231257827',
	'5e-324', '4e-324', '1.7976931348623157e308', '1e309', '1e999999999', '1e-999999999']) AS number;

-- equal values have equal digests, others never
SELECT digest('{"amount": 12.5, "to": "anna"}');
SELECT digest('{"to":"ann\u0061","amount":1.250E1}');
SELECT canonical_json '[1]' = '[1.0]' AS same_number,
	canonical_json '1' = '"1"' AS number_and_string,
	canonical_json '9007199254740993' = '9007199254740992' AS equal_as_doubles,
	digest('{}') = sha256('{}')::sha256_digest AS plain_sha256;

-- what two programs could read differently is refused
SELECT canonical_json '{"amount": 1, "amount": 100}';		-- fails, a name twice
SELECT canonical_json '[{"a": 1, "b": {}, "\u0061": 1}]';	-- fails, it is the same name
SELECT canonical_json '{"a": {"a": 1}, "A": 2}';
SELECT canonical_json '"\u0000"';							-- fails
SELECT canonical_json '"\ud83d"';							-- fails
SELECT canonical_json '"\ude00\ud83d"';						-- fails
SELECT canonical_json '1e1000000000';						-- fails
SELECT canonical_json '[-0.1e-999999999]';					-- fails
SELECT repeat('[', 1001)::canonical_json;					-- fails

-- JSON and nothing else
SELECT canonical_json '';									-- fails
SELECT canonical_json '[1, 2,]';							-- fails
SELECT canonical_json '{"a": 1';							-- fails
SELECT canonical_json '{a: 1}';								-- fails
SELECT canonical_json '{"a" 1}';							-- fails
SELECT canonical_json '[1 2]';								-- fails
SELECT canonical_json '01';									-- fails
SELECT canonical_json '1.';									-- fails
SELECT canonical_json 'NaN';								-- fails
SELECT canonical_json '"a	b"';							-- fails, a raw tab
SELECT canonical_json '"\x41"';								-- fails
SELECT canonical_json '"\u12g4"';							-- fails
SELECT canonical_json '{} {}';								-- fails

-- implicit from json and jsonb, explicit from text
SELECT digest('{"a":1.0}'::json) = digest('{"a":1}'::jsonb) AS implicit;
SELECT digest('{"a":1}'::text);								-- fails, text has no implicit cast
SELECT digest('{"a":1}'::text::canonical_json) = digest('{"a":1}') AS explicit;
SELECT digest('{"a":1, "a":2}'::jsonb) = digest('{"a":2}') AS jsonb_has_dropped_one;
SELECT digest('{"a":1, "a":2}'::json);						-- fails, json has not

-- assignment to json, jsonb and text; to_json and to_jsonb see the value
CREATE TEMPORARY TABLE copies (a json, b jsonb, c text);
INSERT INTO copies
SELECT v, v, v FROM (SELECT canonical_json '{"n": 1e2, "a": []}' AS v) AS v;
SELECT a, b, c FROM copies;
SELECT to_json(v), to_jsonb(v), json_build_array(v) FROM (SELECT canonical_json '{"n": 1e2}' AS v) AS v;
SELECT canonical_json '1e200000'::jsonb;					-- fails, too large for jsonb

-- a number of jsonb is not expanded
SELECT '{"n": [1e131071, -1e-16383, 1e21, 123.4500, 0.0, 10000, 20000.0002]}'::jsonb::canonical_json;
SELECT octet_length(digest(('[' || repeat('1e131071,', 100000) || '1]')::jsonb)::bytea);

-- comparison, grouping and indexes
SELECT canonical_json '{"a":1}' <> '{"a":1.0}' AS differ, canonical_json '[1]' < '[2]' AS less,
	canonical_json '1' < '10' AS prefix_first;
CREATE TEMPORARY TABLE inputs (input canonical_json PRIMARY KEY);
INSERT INTO inputs VALUES ('{"b":2, "a":1}'), ('[]'), ('"x"'), ('7');
INSERT INTO inputs VALUES ('{"a":1.0, "b":2e0}');			-- fails, there already
SELECT input FROM inputs ORDER BY input;
SELECT input, count(*)
FROM unnest(ARRAY['1', '1.0', '2']::canonical_json[]) AS input
GROUP BY input
ORDER BY input;

-- the binary form is a JSON text, as that of json is
SELECT canonical_json_send('{"b":1, "a":2}');
CREATE TEMPORARY TABLE copied (LIKE inputs);
\copy inputs TO 'results/canonical_json.copy' (FORMAT binary)
\copy copied FROM 'results/canonical_json.copy' (FORMAT binary)
SELECT count(*) FROM inputs JOIN copied USING (input);
\copy (SELECT '{"b": 1, "a": 1e2}'::text) TO 'results/canonical_json.copy' (FORMAT binary)
\copy copied FROM 'results/canonical_json.copy' (FORMAT binary)
SELECT input FROM copied WHERE input = '{"a": 100, "b": 1}';
\copy (SELECT '{"b": 1, "b": 1}'::text) TO 'results/canonical_json.copy' (FORMAT binary)
\copy copied FROM 'results/canonical_json.copy' (FORMAT binary)		-- fails
\copy (SELECT ''::text) TO 'results/canonical_json.copy' (FORMAT binary)
\copy copied FROM 'results/canonical_json.copy' (FORMAT binary)		-- fails
\copy (SELECT '\x225b00'::bytea) TO 'results/canonical_json.copy' (FORMAT binary)
\copy copied FROM 'results/canonical_json.copy' (FORMAT binary)		-- fails, no text

-- large values
SELECT digest(('[' || repeat('{"b":1,"a":2},', 100000) || '{}]')::canonical_json) =
	digest(('[' || repeat('{"a":2,"b":1},', 100000) || '{}]')::canonical_json) AS objects,
	digest(('{' || string_agg(format('"%s":%s', i, i), ',' ORDER BY i) || '}')::canonical_json) =
	digest(('{' || string_agg(format('"%s":%s', i, i), ',' ORDER BY i DESC) || '}')::canonical_json) AS members
FROM generate_series(1, 20000) AS i;
SELECT length((repeat('[', 1000) || repeat(']', 1000))::canonical_json::text) AS deepest;

-- the bytes hashed are UTF-8 in every encoding of a database, and what a
-- database prints it reads: what its encoding does not have becomes an escape
SELECT current_database() AS regression \gset
CREATE DATABASE tool_claims_latin1 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0;
\c tool_claims_latin1
SET client_encoding = 'UTF8';
CREATE EXTENSION tool_claims;
SET search_path = tool_claims, pg_catalog;
SELECT v, v::text::canonical_json = v AS read_again, digest(v) = sha256(
		'\x7b22c3a9223a22e282ac20f09f9880227d')::sha256_digest AS utf8
FROM (SELECT canonical_json '{"é": "\u20ac \ud83d\ude00"}' AS v) AS v;
SELECT digest('["ä", {"ö": "ü"}]'::jsonb) = digest('["\u00e4", {"\u00f6": "\u00fc"}]') AS same;
SELECT canonical_json '"\u20ac"'::json;
SELECT canonical_json '"\u20ac"'::jsonb;					-- fails, jsonb cannot hold it here
\c :regression
DROP DATABASE tool_claims_latin1;
CREATE DATABASE tool_claims_sql_ascii ENCODING 'SQL_ASCII' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0;
\c tool_claims_sql_ascii
CREATE EXTENSION tool_claims;
SET search_path = tool_claims, pg_catalog;
SELECT v, v::text::canonical_json = v AS read_again, digest(v) = sha256(
		'\x7b22c3a9223a22e282ac20f09f9880227d')::sha256_digest AS utf8
FROM (SELECT canonical_json '{"é": "\u20ac \ud83d\ude00"}' AS v) AS v;
SELECT digest(E'"\xe9"');									-- fails, not UTF-8
SELECT digest(to_jsonb(E'\xe9'::text));						-- fails, the same
\c :regression
DROP DATABASE tool_claims_sql_ascii;
