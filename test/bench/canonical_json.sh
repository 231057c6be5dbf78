#!/bin/bash
# What canonical_json and its digest cost against what a user has without the
# extension: jsonb's text and core sha256.  Server CPU of one backend, on the
# running server that PGHOST, PGPORT, PGUSER and PGDATABASE name (a superuser
# on the same Linux machine; the database must have the extension).
#
# Each way runs in turn, ROUNDS times over, and the least time counts.  Prints
# microseconds a document and the ratio; the goal for a ratio is 1.00 or less.
set -eu
rounds=${ROUNDS:-7}

# one line a document: name, how often to run it in a round, the jsonb
documents()
{
	cat <<'SQL'
CREATE TEMPORARY TABLE documents AS
WITH line AS (
	SELECT i, jsonb_build_object(
		'sku', 'A-' || i * 7919 % 100000,
		'description', CASE i % 3
			WHEN 0 THEN 'Refund for a damaged parcel'
			WHEN 1 THEN 'Größe XL, ' || i || ' Stück'
			ELSE E'first line\nsecond "line" of the note' END,
		'quantity', i % 10 + 1,
		'price', (i * 37 % 10000)::numeric / 100,
		'taxable', i % 2 = 0,
		'discount', NULL) AS line
	FROM generate_series(1, 6500) AS i)
SELECT '1 KB' AS name, 5000 AS times, jsonb_build_object(
	'order', 4711, 'customer', 'c-20931', 'currency', 'EUR', 'express', false,
	'lines', (SELECT jsonb_agg(line ORDER BY i) FROM line WHERE i <= 6)) AS document
UNION ALL
SELECT '1 MB', 5, jsonb_build_object(
	'order', 4711, 'customer', 'c-20931', 'currency', 'EUR', 'express', false,
	'lines', (SELECT jsonb_agg(line ORDER BY i) FROM line));
SQL
}

# Runs the expression on a document as a value in memory and notes the CPU.
# $1 document, $2 type of the value, $3 name of the way, $4 expression on d
run()
{
	cat <<SQL
SELECT split_part(pg_read_file('/proc/self/schedstat'), ' ', 1) AS before \\gset
WITH d AS MATERIALIZED (
	SELECT (document::text)::$2 AS d
	FROM documents
	WHERE name = '$1')
SELECT count($4) AS times
FROM d, generate_series(1, (SELECT times FROM documents WHERE name = '$1')) \\gset
INSERT INTO timings
SELECT '$1', '$3', (split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)::numeric - :before) / :times / 1000;
SQL
}

{
	cat <<'SQL'
SET client_min_messages = 'warning';
SET search_path = tool_claims, pg_catalog, pg_temp;
SET work_mem = '64MB';
SET jit = off;
CREATE TEMPORARY TABLE timings (document text, way text, microseconds numeric);
SQL
	documents
	for ((round = 0; round < rounds; round++)); do
		for document in '1 KB' '1 MB'; do
			run "$document" jsonb 'jsonb_out + sha256' "sha256(convert_to(d::text, 'UTF8'))"
			run "$document" text 'text to jsonb, jsonb_out + sha256' "sha256(convert_to(d::jsonb::text, 'UTF8'))"
			run "$document" json 'canonical_json of json + digest' 'digest(d)'
			run "$document" jsonb 'canonical_json of jsonb + digest' 'digest(d)'
		done
	done
	cat <<'SQL'
SELECT format('%s (%s bytes)', name, length(document::text))
FROM documents
ORDER BY times DESC;
WITH best AS (
	SELECT document, way, min(microseconds) AS microseconds
	FROM timings
	GROUP BY document, way)
SELECT format('%s  %s %s us  ratio %s', document, rpad(way, 34),
	lpad(round(microseconds, 2)::text, 10),
	round(microseconds / (SELECT b.microseconds FROM best AS b
		WHERE b.document = best.document AND b.way = 'jsonb_out + sha256'), 2))
FROM best
ORDER BY document, way DESC;
SQL
} | psql -X -q -A -t -v ON_ERROR_STOP=1
