-- sha256_digest.sql: the type sha256_digest, by tables of inputs.

BEGIN;
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS tool_claims;
SET search_path = tool_claims, public, pg_catalog, pg_temp;

SELECT plan(97);

--
-- text and bytea
--

-- digests of FIPS 180
CREATE TEMPORARY TABLE known (message bytea, hex text);
INSERT INTO known VALUES
	('', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'),
	('abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'),
	('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq', '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1');
SELECT is(hex::sha256_digest::text, hex, 'text') FROM known;
SELECT is(upper(hex)::sha256_digest::text, hex, 'upper case') FROM known;
SELECT is(('\x' || hex)::sha256_digest::text, hex, 'with \x') FROM known;
SELECT is(sha256(message)::sha256_digest::text, hex, 'from bytea') FROM known;
SELECT is(hex::sha256_digest::bytea, sha256(message), 'to bytea') FROM known;
SELECT is(sha256_digest_send(hex::sha256_digest), decode(hex, 'hex'), 'binary form') FROM known;
SELECT is(digest('"abc"'), sha256('"abc"')::sha256_digest, 'OpenSSL and the server agree');

SELECT throws_ok(format('SELECT %L::sha256_digest', input), '22P02', NULL, 'not a digest: ' || translate(left(input, 70), E'\n', ''))
FROM unnest(ARRAY['', '\x', 'a', repeat('a', 63), repeat('a', 65), repeat('a', 128), repeat('g', 64), repeat('a', 63) || ' ', ' ' || repeat('a', 63),
	repeat('a', 63) || E'\n', '\X' || repeat('a', 64), '0x' || repeat('a', 64), '\x' || repeat('a', 62), '\x\x' || repeat('a', 60), repeat('a', 63) || '-',
	repeat('/', 64), repeat(':', 64), repeat('@', 64), repeat('`', 64), repeat('G', 64)]) AS input;
SELECT throws_ok(format('SELECT %L::bytea::sha256_digest', decode(repeat('00', length), 'hex')), '22023', NULL, length || ' bytes')
FROM unnest(ARRAY[0, 1, 31, 33, 64, 1000000]) AS length;
SELECT is(NULL::bytea::sha256_digest, NULL::sha256_digest, 'NULL stays NULL');

CREATE TEMPORARY TABLE assigned (digest sha256_digest, bytes bytea);
SELECT lives_ok($$INSERT INTO assigned VALUES (sha256('x'), sha256('x')::sha256_digest)$$, 'both casts on assignment');
SELECT ok(digest::bytea = bytes, 'the same bytes') FROM assigned;

--
-- operators and classes
--

CREATE TEMPORARY TABLE digests AS
SELECT i, sha256(i::text::bytea)::sha256_digest AS digest, sha256(i::text::bytea) AS bytes
FROM generate_series(0, 9) AS i;
SELECT ok((a.digest = b.digest) = (a.bytes = b.bytes) AND (a.digest <> b.digest) = (a.bytes <> b.bytes) AND (a.digest < b.digest) = (a.bytes < b.bytes)
	AND (a.digest <= b.digest) = (a.bytes <= b.bytes) AND (a.digest > b.digest) = (a.bytes > b.bytes) AND (a.digest >= b.digest) = (a.bytes >= b.bytes)
	AND sign(sha256_digest_cmp(a.digest, b.digest)) = sign(byteacmp(a.bytes, b.bytes))
	AND (sha256_digest_hash(a.digest) = sha256_digest_hash(b.digest)) = (a.i = b.i)
	AND (sha256_digest_hash_extended(a.digest, 42) = sha256_digest_hash_extended(b.digest, 42)) = (a.i = b.i),
	format('operators of %s and %s', a.i, b.i))
FROM digests AS a CROSS JOIN digests AS b WHERE a.i <= 2;
SELECT is((SELECT array_agg(i ORDER BY digest) FROM digests), (SELECT array_agg(i ORDER BY bytes) FROM digests), 'sorts as the bytes do');
SELECT is(sha256_digest_hash_extended(digest, 0) & 4294967295, sha256_digest_hash(digest)::bigint & 4294967295, 'seed 0 gives the plain hash') FROM digests;

CREATE UNIQUE INDEX ON digests (digest);
CREATE INDEX ON digests USING hash (digest);
SET LOCAL enable_seqscan = off;
SELECT is((SELECT i FROM digests WHERE digest = sha256('7')::sha256_digest), 7, 'looked up');

--
-- the catalog
--

SELECT is((typlen, typbyval, typalign, typstorage, typcategory)::text, '(32,f,c,p,U)', 'how it is stored') FROM pg_type WHERE oid = 'sha256_digest'::regtype;
SELECT is(castcontext::text || castmethod::text, 'af', format('cast %s to %s', source, target))
FROM (VALUES ('bytea', 'sha256_digest'), ('sha256_digest', 'bytea')) AS c (source, target)
	LEFT JOIN pg_cast ON castsource = source::regtype AND casttarget = target::regtype;
SELECT is((SELECT count(*) FROM pg_cast WHERE 'sha256_digest'::regtype IN (castsource, casttarget)), 2::bigint, 'no other cast');
SELECT is((SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc AS p
	WHERE pronamespace = 'tool_claims'::regnamespace AND proname ~ '^sha256_digest_'
		AND (provolatile, proisstrict, proparallel, proleakproof, prosecdef) <> ('i', true, 's', false, false)), NULL,
	'functions are immutable, strict, parallel safe, not leakproof');
SELECT is((SELECT string_agg(p.oid::regprocedure::text, ', ') FROM pg_proc AS p, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS a
	WHERE pronamespace = 'tool_claims'::regnamespace AND proname ~ '^sha256_digest_' AND a.grantee = 0), NULL, 'PUBLIC may not call them');
SELECT is((SELECT count(*) FROM pg_opclass WHERE opcintype = 'sha256_digest'::regtype AND opcdefault AND amvalidate(oid)
	AND opcmethod IN (SELECT oid FROM pg_am WHERE amname IN ('btree', 'hash'))), 2::bigint, 'default btree and hash classes are valid');

SELECT * FROM finish();
ROLLBACK;
