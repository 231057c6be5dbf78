-- marks.sql: marks of content, recomputed from the RFCs, and everything that
-- makes one invalid.

\set organization tap_marks
\ir include/helpers.psql

SELECT plan(497);

CREATE PROCEDURE pg_temp.forget_keys()
LANGUAGE sql
AS $$
	DELETE FROM tool_claims.mark_keys WHERE organization LIKE 'tap_marks%';
$$;
CALL pg_temp.forget_keys();

CREATE FUNCTION pg_temp.verdict(content text, mark text, context text DEFAULT '')
RETURNS text
LANGUAGE plpgsql
AS $$
BEGIN
	RETURN (tool_claims.verify_mark(content, mark, context)).verdict;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END
$$;

--
-- an implementation of its own: HMAC of RFC 2104, Ed25519 of RFC 8032
--

CREATE FUNCTION pg_temp.hmac(message bytea, key bytea)
RETURNS bytea
LANGUAGE plpgsql
AS $$
DECLARE
	inner_pad bytea := decode(repeat('36', 64), 'hex');
	outer_pad bytea := decode(repeat('5c', 64), 'hex');
BEGIN
	IF octet_length(key) > 64 THEN
		key := sha256(key);
	END IF;
	FOR i IN 0 .. octet_length(key) - 1 LOOP
		inner_pad := set_byte(inner_pad, i, get_byte(inner_pad, i) # get_byte(key, i));
		outer_pad := set_byte(outer_pad, i, get_byte(outer_pad, i) # get_byte(key, i));
	END LOOP;
	RETURN sha256(outer_pad || sha256(inner_pad || message));
END
$$;

CREATE FUNCTION pg_temp.prime() RETURNS numeric IMMUTABLE LANGUAGE sql
AS 'SELECT 57896044618658097711785492504343953926634992332820282019728792003956564819949';
CREATE FUNCTION pg_temp.group_order() RETURNS numeric IMMUTABLE LANGUAGE sql
AS 'SELECT 7237005577332262213973186563042994240857116359379907606001950938285454250989';
CREATE FUNCTION pg_temp.from_bytes(b bytea) RETURNS numeric LANGUAGE plpgsql
AS $$
DECLARE
	n numeric := 0;
BEGIN
	FOR i IN REVERSE octet_length(b) - 1 .. 0 LOOP
		n := n * 256 + get_byte(b, i);
	END LOOP;
	RETURN n;
END
$$;
CREATE FUNCTION pg_temp.to_bytes(n numeric) RETURNS bytea LANGUAGE plpgsql
AS $$
DECLARE
	b bytea := decode(repeat('00', 32), 'hex');
BEGIN
	FOR i IN 0 .. 31 LOOP
		b := set_byte(b, i, mod(n, 256)::integer);
		n := div(n, 256);
	END LOOP;
	RETURN b;
END
$$;
-- points in extended coordinates
CREATE FUNCTION pg_temp.add_points(p numeric[], q numeric[]) RETURNS numeric[] LANGUAGE plpgsql
AS $$
DECLARE
	m numeric := pg_temp.prime();
	d numeric := 37095705934669439343138083508754565189542113879843219016388785533085940283555;
	a numeric := mod((p[2] - p[1] + m) * (q[2] - q[1] + m), m);
	b numeric := mod((p[2] + p[1]) * (q[2] + q[1]), m);
	c numeric := mod(mod(2 * p[4] * q[4], m) * d, m);
	z numeric := mod(2 * p[3] * q[3], m);
	e numeric := b - a + m;
	f numeric := z - c + m;
	g numeric := z + c;
	h numeric := b + a;
BEGIN
	RETURN ARRAY[mod(e * f, m), mod(g * h, m), mod(f * g, m), mod(e * h, m)];
END
$$;
CREATE FUNCTION pg_temp.times_base(n numeric) RETURNS bytea LANGUAGE plpgsql
AS $$
DECLARE
	m numeric := pg_temp.prime();
	p numeric[] := '{0,1,1,0}';
	q numeric[] := ARRAY[15112221349535400772501151409588531511454012693041857206046113283949847762202,
		46316835694926478169428394003475163141307993866256225615783033603165251855960, 1,
		46827403850823179245072216630277197565144205554125654976674165829533817101731];
	exponent numeric := m - 2;
	z numeric;
	inverse numeric := 1;
BEGIN
	WHILE n > 0 LOOP
		IF mod(n, 2) = 1 THEN
			p := pg_temp.add_points(p, q);
		END IF;
		q := pg_temp.add_points(q, q);
		n := div(n, 2);
	END LOOP;
	z := p[3];
	WHILE exponent > 0 LOOP
		IF mod(exponent, 2) = 1 THEN
			inverse := mod(inverse * z, m);
		END IF;
		z := mod(z * z, m);
		exponent := div(exponent, 2);
	END LOOP;
	RETURN pg_temp.to_bytes(mod(p[2] * inverse, m) + mod(mod(p[1] * inverse, m), 2) * 2::numeric ^ 255);
END
$$;
CREATE FUNCTION pg_temp.clamped(seed bytea) RETURNS numeric LANGUAGE sql
AS $$
	SELECT pg_temp.from_bytes(set_byte(set_byte(h, 0, get_byte(h, 0) & 248), 31, (get_byte(h, 31) & 63) | 64))
	FROM substr(sha512(seed), 1, 32) AS h
$$;
CREATE FUNCTION pg_temp.public_key(seed bytea) RETURNS bytea LANGUAGE sql
AS 'SELECT pg_temp.times_base(pg_temp.clamped(seed))';
CREATE FUNCTION pg_temp.ed25519(message bytea, seed bytea) RETURNS bytea LANGUAGE plpgsql
AS $$
DECLARE
	l numeric := pg_temp.group_order();
	r numeric := mod(pg_temp.from_bytes(sha512(substr(sha512(seed), 33) || message)), l);
	r_bytes bytea := pg_temp.times_base(r);
	k numeric := mod(pg_temp.from_bytes(sha512(r_bytes || pg_temp.public_key(seed) || message)), l);
BEGIN
	RETURN r_bytes || pg_temp.to_bytes(mod(r + k * pg_temp.clamped(seed), l));
END
$$;

-- RFC 4231, cases 1 to 4, 6 and 7
CREATE TEMPORARY TABLE rfc4231 (n integer, key bytea, data bytea, mac text);
INSERT INTO rfc4231 VALUES
	(1, decode(repeat('0b', 20), 'hex'), 'Hi There', 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7'),
	(2, 'Jefe', 'what do ya want for nothing?', '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843'),
	(3, decode(repeat('aa', 20), 'hex'), decode(repeat('dd', 50), 'hex'), '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe'),
	(4, '\x0102030405060708090a0b0c0d0e0f10111213141516171819', decode(repeat('cd', 50), 'hex'), '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b'),
	(6, decode(repeat('aa', 131), 'hex'), 'Test Using Larger Than Block-Size Key - Hash Key First', '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54'),
	(7, decode(repeat('aa', 131), 'hex'), 'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm.',
		'9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2');
SELECT is(encode(pg_temp.hmac(data, key), 'hex'), mac, 'RFC 4231, case ' || n) FROM rfc4231;
-- RFC 8032, 7.1
CREATE TEMPORARY TABLE rfc8032 (n integer, seed bytea, public bytea, message bytea, signature text);
INSERT INTO rfc8032 VALUES
	(1, '\x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', '\xd75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', '',
		'e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b'),
	(2, '\x4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb', '\x3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c', '\x72',
		'92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00'),
	(3, '\xc5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7', '\xfc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025', '\xaf82',
		'6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a');
SELECT is(encode(pg_temp.public_key(seed), 'hex'), encode(public, 'hex'), 'RFC 8032, public key ' || n) FROM rfc8032;
SELECT is(encode(pg_temp.ed25519(message, seed), 'hex'), signature, 'RFC 8032, signature ' || n) FROM rfc8032;

--
-- marks are exactly what the manual says
--

CREATE FUNCTION pg_temp.framed(VARIADIC fields text[]) RETURNS bytea LANGUAGE sql
AS $$
	SELECT convert_to('tool_claims content mark v1', 'UTF8') || '\x00'::bytea
		|| string_agg(int8send(octet_length(convert_to(field, 'UTF8'))) || convert_to(field, 'UTF8'), '' ORDER BY n)
	FROM unnest(fields) WITH ORDINALITY AS f (field, n)
$$;
CREATE FUNCTION pg_temp.base64url(b bytea) RETURNS text LANGUAGE sql
AS $$ SELECT rtrim(translate(encode(b, 'base64'), E'+/\n', '-_'), '=') $$;
CREATE FUNCTION pg_temp.from_base64url(t text) RETURNS bytea LANGUAGE sql
AS $$ SELECT decode(rpad(translate(t, '-_', '+/'), (length(t) + 3) / 4 * 4, '='), 'base64') $$;
CREATE FUNCTION pg_temp.mark(key_id text, signature bytea) RETURNS text LANGUAGE sql
AS $$ SELECT concat_ws('.', 'tcm1', pg_temp.base64url(convert_to(key_id, 'UTF8')), pg_temp.base64url(signature)) $$;

SELECT is(pg_temp.answer(format('add_mark_key(%L, %L)', 'h' || n, key)), 'done', 'key of RFC 4231, case ' || n) FROM rfc4231;
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L, %L)', 'e' || n, seed, 'ed25519')), 'done', 'key of RFC 8032, test ' || n) FROM rfc8032;
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L, %L)', 'p' || n, '\x302a300506032b6570032100'::bytea || public, 'ed25519')), 'done', 'its public key') FROM rfc8032;
CREATE TEMPORARY TABLE samples (n integer, context text, content text);
INSERT INTO samples VALUES (1, '', ''), (2, '', 'x'), (3, 'invoice 7', 'pay 12.50 to ada'), (4, 'Übung', 'naïve – 漢字 😀'), (5, repeat('c', 600), repeat('content ', 5000)),
	(6, E'\t\n', E'\r\n\001'), (7, '.', 'tcm1.a.b'), (8, 'x', E'ends with a blank ');
SELECT is(tool_claims.mark_content(content, 'h' || k.n, context),
	pg_temp.mark('h' || k.n, pg_temp.hmac(pg_temp.framed('hmac-sha256', 'h' || k.n, 'tap_marks', context, content), k.key)), format('hmac-sha256: key %s, sample %s', k.n, s.n))
FROM rfc4231 AS k, samples AS s;
SELECT is(tool_claims.mark_content(content, 'e' || k.n, context),
	pg_temp.mark('e' || k.n, pg_temp.ed25519(pg_temp.framed('ed25519', 'e' || k.n, 'tap_marks', context, content), k.seed)), format('ed25519: key %s, sample %s', k.n, s.n))
FROM rfc8032 AS k, samples AS s;
SELECT is(pg_temp.verdict(content, tool_claims.mark_content(content, k, context), context), 'valid', format('valid: key %s, sample %s', k, n))
FROM samples, unnest(ARRAY['h1', 'h6', 'e1']) AS k;
-- what another program has signed with the secret key is valid with the public one
SELECT is(pg_temp.verdict(content, pg_temp.mark('p' || k.n, pg_temp.ed25519(pg_temp.framed('ed25519', 'p' || k.n, 'tap_marks', context, content), k.seed)), context),
	'valid', format('public key %s, sample %s', k.n, s.n))
FROM rfc8032 AS k, samples AS s WHERE s.n IN (1, 3, 4);
SELECT is((v.verdict, v.reason)::text, '(valid,)', 'valid has no reason') FROM tool_claims.verify_mark('x', tool_claims.mark_content('x', 'h1')) AS v;
SELECT is(tool_claims.mark_content('x', 'h1'), tool_claims.mark_content('x', 'h1', ''), 'the context is empty by default');
SELECT is(pg_temp.answer($$add_mark_key('schlüssel ', 'secret')$$), 'done', 'a key with an odd name');
SELECT is(tool_claims.mark_content('x', 'schlüssel '), pg_temp.mark('schlüssel ', pg_temp.hmac(pg_temp.framed('hmac-sha256', 'schlüssel ', 'tap_marks', '', 'x'), 'secret')), 'marks');
SELECT is(pg_temp.verdict('x', tool_claims.mark_content('x', 'schlüssel ')), 'valid', 'and verifies');
SELECT is(pg_temp.answer(format('add_mark_key(%L, ''secret'')', repeat('k', 512))), 'done', 'a key with a long name');
SELECT is(pg_temp.verdict('x', tool_claims.mark_content('x', repeat('k', 512))), 'valid', 'too');

--
-- one changed character
--

-- the same key under other names, and in another organization: the verdict then
-- tells about the signature and not about the key
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L)', 'i1', (SELECT key FROM rfc4231 WHERE n = 1))), 'done', 'the key of h1 as i1');
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L, %L)', 'f1', (SELECT seed FROM rfc8032 WHERE n = 1), 'ed25519')), 'done', 'the key of e1 as f1');
SET tool_claims.organization = 'tap_marks2';
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L)', 'h1', (SELECT key FROM rfc4231 WHERE n = 1))), 'done', 'the key of h1 in another organization');
SELECT is(pg_temp.answer(format('add_mark_key(%L, %L, %L)', 'e1', (SELECT seed FROM rfc8032 WHERE n = 1), 'ed25519')), 'done', 'the key of e1 too');
SET tool_claims.organization = 'tap_marks';
CREATE TEMPORARY TABLE good (key_id text, content text, context text, mark text);
INSERT INTO good SELECT k, content, context, tool_claims.mark_content(content, k, context)
FROM unnest(ARRAY['h1', 'e1']) AS k, (VALUES ('{"pay": 12.50, "to": "ada"}', 'invoice 7')) AS t (content, context);
SELECT is(pg_temp.verdict(content, mark, context), 'valid', key_id || ' before') FROM good;
-- content and context: each character changed in several ways, left out, doubled, swapped
CREATE FUNCTION pg_temp.changes(t text) RETURNS SETOF text LANGUAGE sql
AS $$
	SELECT DISTINCT c FROM generate_series(1, length(t)) AS i,
		LATERAL (VALUES (chr(ascii(substr(t, i, 1)) # 1)), (chr(coalesce(nullif(ascii(substr(t, i, 1)) # 32, 0), 33))), (''), (repeat(substr(t, i, 1), 2)), ('7'), (' '), ('é'), (chr(8203) || substr(t, i, 1))) AS v (by),
		LATERAL (SELECT overlay(t PLACING by FROM i FOR 1)) AS o (c)
	WHERE c <> t
	UNION SELECT overlay(t PLACING reverse(substr(t, i, 2)) FROM i FOR 2) FROM generate_series(1, length(t) - 1) AS i WHERE substr(t, i, 1) <> substr(t, i + 1, 1)
	UNION SELECT t || c FROM unnest(ARRAY[' ', E'\n', '0', t]) AS c
	UNION SELECT c || t FROM unnest(ARRAY[' ', E'\n', '0', chr(65279)]) AS c
	UNION SELECT left(t, i) FROM generate_series(0, length(t) - 1) AS i
$$;
SELECT cmp_ok((SELECT count(*) FROM good, pg_temp.changes(content)), '>', 400::bigint, 'so many changes of content');
SELECT is((SELECT string_agg(DISTINCT pg_temp.verdict(c, mark, context), ', ') FROM pg_temp.changes(content) AS c), 'invalid', key_id || ': changed content is invalid') FROM good;
SELECT is((SELECT string_agg(DISTINCT pg_temp.verdict(content, mark, c), ', ') FROM pg_temp.changes(context) AS c), 'invalid', key_id || ': a changed context is invalid') FROM good;
-- the mark: each character to each other one
CREATE TEMPORARY TABLE damaged AS
SELECT key_id, i, overlay(mark PLACING c FROM i FOR 1) AS mark, pg_temp.verdict(content, overlay(mark PLACING c FROM i FOR 1), context) AS verdict
FROM good, generate_series(1, length(mark)) AS i,
	unnest(string_to_array('A B C D E F G H I J K L M N O P Q R S T U V W X Y Z a b c d e f g h i j k l m n o p q r s t u v w x y z 0 1 2 3 4 5 6 7 8 9 - _ . = + / é', ' ') || ARRAY['', ' ', E'\n']) AS c
WHERE overlay(mark PLACING c FROM i FOR 1) <> mark;
SELECT cmp_ok((SELECT count(*) FROM damaged), '>', 9000::bigint, 'so many changes of a mark');
SELECT is((SELECT string_agg(concat_ws(' ', mark, verdict), ', ') FROM damaged WHERE verdict NOT IN ('invalid', 'unknown_key')), NULL, 'none is valid');
SELECT is((SELECT string_agg(concat_ws(' ', mark, verdict), ', ') FROM damaged WHERE verdict <> 'invalid' AND i NOT IN (6, 7, 8)), NULL,
	'all are invalid, but for those that name another key');
SELECT ok(EXISTS (SELECT FROM damaged WHERE verdict = 'unknown_key' AND i IN (6, 7, 8)), 'which are of an unknown key');
-- a changed organization, a changed key id: the key is there and the same
SELECT is(pg_temp.verdict(content, replace(mark, '.' || pg_temp.base64url(key_id::bytea) || '.', '.' || pg_temp.base64url(other::bytea) || '.'), context), 'invalid', key_id || ' as ' || other)
FROM good JOIN (VALUES ('h1', 'i1'), ('e1', 'f1'), ('h1', 'e1'), ('e1', 'h1'), ('e1', 'p1'), ('e1', 'p2'), ('h1', 'h2')) AS t (key_id, other) USING (key_id);
SET tool_claims.organization = 'tap_marks2';
SELECT is(pg_temp.verdict(content, mark, context), 'invalid', key_id || ' in another organization with the same key') FROM good;
SELECT isnt(tool_claims.mark_content(content, key_id, context), mark, key_id || ': whose marks are others') FROM good;
SET tool_claims.organization = 'tap_marks3';
SELECT is(pg_temp.verdict(content, mark, context), 'unknown_key', key_id || ' in an organization without it') FROM good;
SET tool_claims.organization = '';
SELECT is(pg_temp.verdict(content, mark, context), 'unknown_key', key_id || ' without an organization') FROM good;
SET tool_claims.organization = 'tap_marks';
-- fields do not run into each other
SELECT is(pg_temp.verdict(content2, tool_claims.mark_content(content, k, context), context2), 'invalid', format('%s: %L %L is not %L %L', k, context, content, context2, content2))
FROM unnest(ARRAY['h1', 'e1']) AS k, (VALUES ('a', 'bc', 'ab', 'c'), ('ab', 'c', 'abc', ''), ('', 'abc', 'abc', ''), ('a', 'a', '', 'aa'), ('x', 'y', 'y', 'x')) AS t (context, content, context2, content2);
SELECT is((SELECT count(DISTINCT tool_claims.mark_content(content, 'h1', context)) FROM (VALUES ('a', 'bc'), ('ab', 'c'), ('abc', ''), ('', 'abc'), ('bc', 'a'), ('c', 'ab')) AS t (context, content)), 6::bigint, 'six marks');
-- equal to the eye is not equal
SELECT is(pg_temp.verdict(E'e\u0301', tool_claims.mark_content('é', 'h1')), 'invalid', 'another normalization');
SELECT is(pg_temp.verdict(E'a\r\nb', tool_claims.mark_content(E'a\nb', 'h1')), 'invalid', 'other line ends');
-- an Ed25519 signature has one spelling: s and s + order
SELECT is(pg_temp.verdict(content, pg_temp.mark(key_id, substr(signature, 1, 32) || pg_temp.to_bytes(pg_temp.from_bytes(substr(signature, 33)) + pg_temp.group_order())), context),
	'invalid', 'a signature with s + order')
FROM good, LATERAL (SELECT pg_temp.from_base64url(split_part(mark, '.', 3))) AS t (signature) WHERE key_id = 'e1';
-- (the same made again is valid: it was taken apart well)
SELECT is(pg_temp.verdict(content, pg_temp.mark(key_id, pg_temp.from_base64url(split_part(mark, '.', 3))), context), 'valid', 'taken apart and put together') FROM good;
-- bits that base64 leaves over
SELECT is(pg_temp.verdict(content, left(mark, -1) || substr('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', strpos('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_', right(mark, 1)) + 1, 1), context),
	'invalid', key_id || ': another spelling of the last byte') FROM good;
-- an HMAC under what everybody knows of an Ed25519 key, and other confusions
SELECT is(pg_temp.verdict('x', pg_temp.mark('p1', pg_temp.hmac(pg_temp.framed(algorithm, 'p1', 'tap_marks', '', 'x'), public))), 'invalid', 'HMAC under a public key, as ' || algorithm)
FROM rfc8032, unnest(ARRAY['hmac-sha256', 'ed25519']) AS algorithm WHERE n = 1;
SELECT is(pg_temp.verdict('x', pg_temp.mark('p1', decode(repeat(byte, 64), 'hex'))), 'invalid', 'a signature of ' || byte) FROM unnest(ARRAY['00', '01', 'ff']) AS byte;
SELECT is(pg_temp.verdict('x', pg_temp.mark('h1', decode(repeat(byte, 32), 'hex'))), 'invalid', 'a MAC of ' || byte) FROM unnest(ARRAY['00', '01', 'ff']) AS byte;
SELECT is(pg_temp.verdict('x', pg_temp.mark(k, substr(pg_temp.from_base64url(split_part(tool_claims.mark_content('x', k), '.', 3)), 1, n))), 'invalid', format('%s: cut to %s bytes', k, n))
FROM (VALUES ('h1', 0), ('h1', 1), ('h1', 16), ('h1', 31), ('e1', 32), ('e1', 63)) AS t (k, n);

--
-- the four verdicts, and never an error
--

CREATE TEMPORARY TABLE odd (n integer, mark text, verdict text);
INSERT INTO odd VALUES
	(1, NULL, 'unmarked'), (2, '', 'unmarked'),
	(3, ' ', 'invalid'), (4, 'x', 'invalid'), (5, 'tcm1', 'invalid'), (6, 'tcm1.', 'invalid'), (7, 'tcm1..', 'invalid'), (8, 'tcm1...', 'invalid'), (9, '...', 'invalid'),
	(10, 'tcm1.aDE', 'invalid'), (11, 'tcm1.aDE.', 'invalid'), (12, 'tcm1..' || repeat('A', 43), 'invalid'), (13, 'tcm1.aDE.' || repeat('A', 42), 'invalid'),
	(14, 'tcm1.aDE.' || repeat('A', 44), 'invalid'), (15, 'tcm1.aDE.' || repeat('A', 43), 'invalid'), (16, 'tcm1.eA.' || repeat('A', 43), 'unknown_key'),
	(17, 'tcm1.eA.' || repeat('A', 86), 'unknown_key'), (18, 'tcm1.eA.' || repeat('A', 85), 'invalid'), (19, 'TCM1.eA.' || repeat('A', 43), 'invalid'),
	(20, 'tcm2.eA.' || repeat('A', 43), 'invalid'), (21, ' tcm1.eA.' || repeat('A', 43), 'invalid'), (22, 'tcm1.eA.' || repeat('A', 43) || ' ', 'invalid'),
	(23, 'tcm1.eA.' || repeat('A', 43) || '=', 'invalid'), (24, 'tcm1.eA==.' || repeat('A', 43), 'invalid'), (25, 'tcm1.eB.' || repeat('A', 43), 'invalid'),
	(26, 'tcm1.AA.' || repeat('A', 43), 'invalid'), (27, 'tcm1.eAB4.' || repeat('A', 43), 'invalid'), (28, 'tcm1._w.' || repeat('A', 43), 'invalid'),
	(29, 'tcm1.7aCA.' || repeat('A', 43), 'invalid'), (30, 'tcm1.wIA.' || repeat('A', 43), 'invalid'), (31, 'tcm1.eA.' || repeat('A', 43) || '.eA', 'invalid'),
	(32, 'tcm1.8J-YgA.' || repeat('A', 43), 'unknown_key'), (33, 'tcm1.' || repeat('eHh4', 170) || 'eHg.' || repeat('A', 43), 'unknown_key'),
	(34, 'tcm1.' || repeat('eHh4', 100000) || '.' || repeat('A', 43), 'invalid'), (35, 'tcm1.eA.' || repeat('A', 1000003), 'invalid'),
	(36, repeat('tcm1.', 100000), 'invalid'), (37, chr(1) || chr(127) || chr(1114111) || chr(65533), 'invalid'), (38, 'tcm1.é.' || repeat('A', 43), 'invalid'),
	(39, '{"mark": "x"}', 'invalid'), (40, '''; DROP TABLE x; --', 'invalid'), (41, 'tcm1.*.' || repeat('A', 43), 'invalid'), (42, 'tcm1.Kg.' || repeat('A', 43), 'unknown_key');
SELECT is(pg_temp.verdict('x', mark), verdict, format('odd mark %s: %s', n, left(mark, 40))) FROM odd;
SELECT is(pg_temp.verdict(NULL, mark), verdict, format('odd mark %s, no content', n)) FROM odd;
SELECT is(pg_temp.verdict('x', mark, NULL), verdict, format('odd mark %s, no context', n)) FROM odd;
SELECT is(pg_temp.verdict(c, mark, x), 'invalid', format('%s: content %L, context %L', key_id, c, x))
FROM good, (VALUES (NULL, 'invoice 7'), (NULL, NULL), ('{"pay": 12.50, "to": "ada"}', NULL)) AS t (c, x);
SELECT is((SELECT count(*)::integer FROM odd AS o, unnest(ARRAY['x', NULL]) AS c, tool_claims.verify_mark(c, o.mark) AS v WHERE v.reason IS NULL OR v.reason = ''), 0,
	'each verdict but valid has a reason');
-- rubbish: no random text is anything but invalid, or of an unknown key
SELECT setseed(0.5);
SELECT is((SELECT string_agg(DISTINCT pg_temp.verdict(t, t, t), ', ')
	FROM (SELECT string_agg(chr(CASE WHEN random() < 0.7 THEN 1 + floor(random() * 126)::integer WHEN random() < 0.5 THEN 160 + floor(random() * 50000)::integer ELSE 65536 + floor(random() * 1000000)::integer END), '') AS t
		FROM generate_series(1, 2000) AS n, generate_series(1, 30) AS i WHERE i <= 1 + n % 30 GROUP BY n) AS r), 'invalid', '2000 random texts');
SELECT is((SELECT string_agg(DISTINCT pg_temp.verdict('x', pg_temp.mark('h1', b)), ', ')
	FROM (SELECT sha256(convert_to(n::text, 'UTF8')) FROM generate_series(1, 2000) AS n) AS r (b)), 'invalid', '2000 random signatures');
SELECT is((SELECT string_agg(DISTINCT pg_temp.verdict('x', pg_temp.mark('p1', b)), ', ')
	FROM (SELECT sha512(convert_to(n::text, 'UTF8')) FROM generate_series(1, 500) AS n) AS r (b)), 'invalid', '500 random Ed25519 signatures');
-- large content
SELECT is(pg_temp.verdict(repeat('content!', 4 * 1024 * 1024), tool_claims.mark_content(repeat('content!', 4 * 1024 * 1024), k)), 'valid', k || ': 32 MB')
FROM unnest(ARRAY['h1', 'e1']) AS k;
SELECT is(pg_temp.verdict(repeat('content!', 4 * 1024 * 1024 - 1) || 'content?', tool_claims.mark_content(repeat('content!', 4 * 1024 * 1024), k)), 'invalid', k || ': the last of 32 MB changed')
FROM unnest(ARRAY['h1', 'e1']) AS k;

--
-- keys: what is taken
--

SELECT is(pg_temp.answer(call), answer, call)
FROM (VALUES
	(1, $$add_mark_key(NULL, 'x')$$, '22004'),
	(2, $$add_mark_key('n', NULL)$$, '22004'),
	(3, $$add_mark_key('n', 'x', NULL)$$, '22004'),
	(4, $$add_mark_key('', 'x')$$, '22023'),
	(5, $$add_mark_key(repeat('x', 513), 'x')$$, '22023'),
	(6, $$add_mark_key('n', '')$$, '22023'),
	(7, $$add_mark_key('n', '', 'ed25519')$$, '22023'),
	(8, $$add_mark_key('n', 'x', 'HMAC-SHA256')$$, '22023'),
	(9, $$add_mark_key('n', 'x', '')$$, '22023'),
	(10, $$add_mark_key('n', 'x', 'none')$$, '22023'),
	(11, $$add_mark_key('n', decode(repeat('01', 31), 'hex'), 'ed25519')$$, '22023'),
	(12, $$add_mark_key('n', decode(repeat('01', 33), 'hex'), 'ed25519')$$, '22023'),
	(13, $$add_mark_key('n', decode(repeat('01', 64), 'hex'), 'ed25519')$$, '22023'),
	(14, $$add_mark_key('n', decode('302a300506032b6570032100' || repeat('01', 31), 'hex'), 'ed25519')$$, '22023'),
	(15, $$add_mark_key('n', decode('302a300506032b6570032100' || repeat('01', 33), 'hex'), 'ed25519')$$, '22023'),
	(16, $$add_mark_key('n', decode('302a300506032b656e032100' || repeat('09', 32), 'hex'), 'ed25519')$$, '22023'),
	(17, $$add_mark_key('n', decode('302e020100300506032b656e04220420' || repeat('09', 32), 'hex'), 'ed25519')$$, '22023'),
	(18, $$add_mark_key('n', decode('302e020100300506032b657004220420' || repeat('09', 32) || '00', 'hex'), 'ed25519')$$, '22023'),
	(19, $$add_mark_key('n', convert_to('-----BEGIN PRIVATE KEY-----', 'UTF8'), 'ed25519')$$, '22023'),
	(20, $$add_mark_key('h1', 'x')$$, '23505'),
	(21, $$add_mark_key('h1', decode(repeat('01', 32), 'hex'), 'ed25519')$$, '23505'),
	(22, $$add_mark_key('pkcs8', decode('302e020100300506032b657004220420' || '9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'hex'), 'ed25519')$$, 'done'),
	(23, $$add_mark_key('one byte', '\x00')$$, 'done'),
	(24, $$add_mark_key('long', decode(repeat('ab', 1000000), 'hex'))$$, 'done'),
	(25, $$mark_content(NULL, 'h1')$$, '22004'),
	(26, $$mark_content('x', NULL)$$, '22004'),
	(27, $$mark_content('x', 'h1', NULL)$$, '22004'),
	(28, $$mark_content('x', '')$$, '22023'),
	(29, $$mark_content('x', 'none')$$, '42704'),
	(30, $$mark_content('x', 'H1')$$, '42704'),
	(31, $$mark_content('x', 'p1')$$, '55000'),
	(32, $$retire_mark_key(NULL)$$, '22004'),
	(33, $$retire_mark_key('')$$, '22023'),
	(34, $$retire_mark_key('none')$$, '42704'),
	(35, $$revoke_mark_key(NULL)$$, '22004'),
	(36, $$revoke_mark_key('')$$, '22023'),
	(37, $$revoke_mark_key('none')$$, '42704')
) AS t (n, call, answer) ORDER BY n;
SELECT is(pg_temp.from_base64url(split_part(tool_claims.mark_content('x', 'pkcs8'), '.', 3)), pg_temp.ed25519(pg_temp.framed('ed25519', 'pkcs8', 'tap_marks', '', 'x'), seed), 'a key in PKCS #8')
FROM rfc8032 WHERE n = 1;
SELECT is(pg_temp.verdict('x', tool_claims.mark_content('x', 'long')), 'valid', 'a key of 1 MB');
-- the table holds no secret where there is none
SELECT is((secret IS NULL, public_key IS NOT NULL)::text, '(t,t)', 'a public key alone') FROM tool_claims.mark_keys WHERE organization = 'tap_marks' AND key_id = 'p1';
-- rolled back
BEGIN;
SELECT is(pg_temp.answer($$add_mark_key('n', 'x')$$), 'done', 'added');
SELECT is(pg_temp.verdict('x', tool_claims.mark_content('x', 'n')), 'valid', 'marks in its own transaction');
ROLLBACK;
SELECT is(pg_temp.answer($$mark_content('x', 'n')$$), '42704', 'rolled back');

--
-- retire, revoke, rotate
--

CREATE TEMPORARY TABLE lives (n integer, step text, mark_answer text, verdict text);
INSERT INTO lives VALUES
	(1, $$add_mark_key('life', 'secret')$$, 'done', 'valid'),
	(2, $$retire_mark_key('life')$$, '55000', 'valid'),
	(3, $$retire_mark_key('life')$$, '55000', 'valid'),
	(4, $$revoke_mark_key('life')$$, '55000', 'invalid'),
	(5, $$retire_mark_key('life')$$, '55000', 'invalid'),
	(6, $$revoke_mark_key('life')$$, '55000', 'invalid');
CREATE TEMPORARY TABLE lived (n integer, step_answer text, mark_answer text, verdict text, unknown text);
SELECT pg_temp.mark('life', pg_temp.hmac(pg_temp.framed('hmac-sha256', 'life', 'tap_marks', '', 'x'), 'secret')) AS mark \gset
SELECT is(pg_temp.verdict('x', :'mark'), 'unknown_key', 'before there is such a key');
SELECT set_config('tap.mark', :'mark', false);
DO $$
DECLARE
	l record;
BEGIN
	FOR l IN SELECT * FROM lives ORDER BY n LOOP
		INSERT INTO lived SELECT l.n, pg_temp.answer(l.step), NULL, NULL, NULL;
		UPDATE lived SET mark_answer = pg_temp.answer($c$mark_content('x', 'life')$c$), verdict = pg_temp.verdict('x', current_setting('tap.mark')) WHERE n = l.n;
	END LOOP;
END
$$;
SELECT is((d.step_answer, d.mark_answer, d.verdict)::text, ('done'::text, l.mark_answer, l.verdict)::text, format('%s. %s', n, l.step)) FROM lives AS l JOIN lived AS d USING (n) ORDER BY n;
SELECT is(pg_temp.answer($$add_mark_key('life', 'secret')$$), '23505', 'the id of a revoked key is taken for good');
SELECT is((verdict, reason)::text, '(invalid,"the key is revoked")', 'its reason') FROM tool_claims.verify_mark('x', :'mark');
SELECT is((verdict, reason)::text, '(invalid,"the key is revoked")', 'also for other content') FROM tool_claims.verify_mark('y', :'mark');
SELECT is(pg_temp.answer($$retire_mark_key('p2')$$), 'done', 'a public key is retired');
SELECT is(pg_temp.verdict('x', pg_temp.mark('p2', pg_temp.ed25519(pg_temp.framed('ed25519', 'p2', 'tap_marks', '', 'x'), seed))), 'valid', 'it still verifies') FROM rfc8032 WHERE n = 2;
SELECT is(pg_temp.answer($$revoke_mark_key('p2')$$), 'done', 'and revoked');
SELECT is(pg_temp.verdict('x', pg_temp.mark('p2', pg_temp.ed25519(pg_temp.framed('ed25519', 'p2', 'tap_marks', '', 'x'), seed))), 'invalid', 'no more') FROM rfc8032 WHERE n = 2;
SELECT is(pg_temp.verdict(content, mark, context), 'valid', key_id || ': other keys are untouched') FROM good;

--
-- secrets are nowhere
--

CALL pg_temp.make_roles('regress_tap_duty');
SELECT is(pg_temp.answer($$add_mark_key('canary', 'canary secret')$$), 'done', 'a canary');
SELECT encode('canary secret', 'hex') AS canary_hex \gset
CREATE TEMPORARY TABLE texts (call text, error text);
INSERT INTO texts (call) VALUES
	($$add_mark_key('canary', 'canary secret')$$), ($$add_mark_key('', 'canary secret')$$), ($$add_mark_key('n', 'canary secret', 'md5')$$), ($$add_mark_key('n', 'canary secret', 'ed25519')$$),
	($$mark_content('canary secret', 'none')$$), ($$mark_content('canary secret', 'p1')$$), ($$revoke_mark_key('none')$$), ($$mark_content(NULL, 'canary')$$);
UPDATE texts SET error = pg_temp.error_text('SELECT tool_claims.' || call);
SELECT isnt(error, NULL, 'raises: ' || call) FROM texts;
SELECT ok(replace(error, call, '') NOT LIKE '%canary secret%' AND error NOT LIKE '%' || :'canary_hex' || '%', 'without the secret: ' || call) FROM texts;
SELECT is((SELECT count(*)::integer FROM pg_class AS c CROSS JOIN LATERAL (SELECT query_to_xml(format('SELECT * FROM %s', c.oid::regclass), true, true, '')::text) AS x (t)
	WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind IN ('v', 'r') AND c.relname <> 'mark_keys'
		AND (x.t LIKE '%canary secret%' OR x.t LIKE '%' || :'canary_hex' || '%' OR x.t LIKE '%' || encode('canary secret', 'base64') || '%')), 0, 'in no view and in no other table');
SELECT is((SELECT count(*)::integer FROM tool_claims.events WHERE organization = 'tap_marks'), 0, 'no evidence about keys');
SELECT is((SELECT string_agg(attrelid::regclass || '.' || attname, ', ') FROM pg_attribute JOIN pg_class AS c ON c.oid = attrelid
	WHERE c.relnamespace = 'tool_claims'::regnamespace AND c.relkind = 'v' AND attname ~ 'secret'), NULL, 'no view has a column for it');
CREATE FUNCTION pg_temp.with_duty(duty text, statement text)
RETURNS text
LANGUAGE plpgsql
AS $$
DECLARE
	answer text;
BEGIN
	PERFORM tool_claims.grant_duty('regress_tap_duty', duty);
	answer := pg_temp.state_of(statement, 'regress_tap_duty');
	PERFORM tool_claims.revoke_duty('regress_tap_duty', duty);
	RETURN answer;
END
$$;
SELECT is(pg_temp.with_duty(duty, 'SELECT ' || what || ' FROM tool_claims.mark_keys'), CASE duty WHEN 'backup' THEN 'done' ELSE '42501' END, format('%s: SELECT %s', duty, what))
FROM unnest(ARRAY['worker', 'proposer', 'approver', 'approval_service', 'reconciler', 'auditor', 'administrator', 'backup']) AS duty, unnest(ARRAY['secret', 'key_id', '1']) AS what;
SELECT is(pg_temp.with_duty(duty, 'SELECT * FROM tool_claims.' || call), CASE WHEN duty = ANY (who) THEN 'done' ELSE '42501' END, format('%s: %s', duty, call))
FROM unnest(ARRAY['worker', 'proposer', 'approver', 'approval_service', 'reconciler', 'auditor', 'administrator', 'backup']) AS duty, (VALUES
	($$mark_content('x', 'h1')$$, '{worker}'::text[]), ($$verify_mark('x', 'y')$$, '{worker}'),
	($$add_mark_key(gen_random_uuid()::text, 'x')$$, '{administrator}'), ($$retire_mark_key('canary')$$, '{administrator}'), ($$revoke_mark_key('canary')$$, '{administrator}')
) AS t (call, who);

--
-- transactions, organizations
--

BEGIN READ ONLY;
SELECT is(pg_temp.answer(call), answer, 'read only: ' || call)
FROM (VALUES ($$mark_content('x', 'h1')$$, 'done'), ($$verify_mark('x', 'y')$$, 'the mark is damaged'), ($$add_mark_key('n', 'x')$$, '25006'), ($$retire_mark_key('h1')$$, '25006'), ($$revoke_mark_key('h1')$$, '25006')) AS t (call, answer);
ROLLBACK;
BEGIN;
SELECT count(tool_claims.mark_content(content, key_id, context)), count(tool_claims.verify_mark(content, mark, context)) AS verified FROM good \gset
SELECT pg_current_xact_id_if_assigned() IS NULL AS unwritten \gset
COMMIT;
SELECT is((:verified, :'unwritten'::boolean)::text, '(2,t)', 'marks write nothing');
SET tool_claims.organization = '*';
SELECT is(pg_temp.answer(call), '22023', 'not under *: ' || call)
FROM unnest(ARRAY[$$mark_content('x', 'h1')$$, $$verify_mark('x', 'y')$$, $$add_mark_key('n', 'x')$$, $$retire_mark_key('h1')$$, $$revoke_mark_key('h1')$$]) AS call;
SET tool_claims.organization = 'tap_marks3';
SELECT is(pg_temp.answer(call), '42704', 'of another organization: ' || call) FROM unnest(ARRAY[$$mark_content('x', 'h1')$$, $$retire_mark_key('h1')$$, $$revoke_mark_key('h1')$$]) AS call;
SET tool_claims.organization = 'tap_marks';
SELECT is(pg_temp.verdict(content, mark, context), 'valid', key_id || ' at the end') FROM good;

SELECT * FROM finish();
CALL pg_temp.forget_keys();
CALL pg_temp.forget();
CALL pg_temp.drop_roles('regress_tap_duty');
