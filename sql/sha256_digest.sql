-- sha256_digest: 32 bytes
SET search_path = tool_claims, pg_catalog;

-- 64 hexadecimal digits; upper case and \x are read
SELECT sha256_digest 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';
SELECT sha256_digest '\xBA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD';
SELECT sha256_digest '';									-- fails
SELECT sha256_digest 'ba7816bf';							-- fails
SELECT sha256_digest 'xa7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';	-- fails
SELECT sha256_digest ' ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';	-- fails

-- to and from bytea
SELECT sha256('abc')::sha256_digest;
SELECT sha256('abc') = sha256('abc')::sha256_digest::bytea AS same;
SELECT 'abc'::bytea::sha256_digest;							-- fails, 3 bytes
CREATE TEMPORARY TABLE digests (digest sha256_digest PRIMARY KEY, bytes bytea);
INSERT INTO digests
SELECT sha256(i::text::bytea), sha256(i::text::bytea)::sha256_digest
FROM generate_series(1, 1000) AS i;
SELECT count(*) FROM digests WHERE digest::bytea = bytes;
SELECT pg_column_size(digest) FROM digests LIMIT 1;

-- comparison, byte by byte; btree and hash
SELECT count(*) FROM digests WHERE digest = sha256('77')::sha256_digest;
INSERT INTO digests VALUES (sha256('77'));					-- fails, there already
SELECT array_agg(digest ORDER BY digest) = array_agg(digest ORDER BY bytes) AS ordered FROM digests;
SELECT count(DISTINCT digest) FROM (TABLE digests UNION ALL TABLE digests) AS twice;
CREATE INDEX ON digests USING hash (digest);
SELECT count(*) FROM digests AS a JOIN digests AS b USING (digest);
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt
FROM (VALUES (sha256('a')::sha256_digest, sha256('b')::sha256_digest)) AS v (a, b);

-- the binary form is the 32 bytes
SELECT sha256_digest_send('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
CREATE TEMPORARY TABLE copied (digest sha256_digest);
\copy (SELECT digest FROM digests) TO 'results/sha256_digest.copy' (FORMAT binary)
\copy copied FROM 'results/sha256_digest.copy' (FORMAT binary)
SELECT count(*) FROM digests JOIN copied USING (digest);
\copy (SELECT '\x00'::bytea) TO 'results/sha256_digest.copy' (FORMAT binary)
\copy copied FROM 'results/sha256_digest.copy' (FORMAT binary)		-- fails
\copy (SELECT sha256('a') || sha256('b')) TO 'results/sha256_digest.copy' (FORMAT binary)
\copy copied FROM 'results/sha256_digest.copy' (FORMAT binary)		-- fails
