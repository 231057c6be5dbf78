#!/bin/bash
# Runs the conformance vectors of canonical_json, where they are there, on the
# running server that PGHOST, PGPORT, PGUSER and PGDATABASE name.  The database
# must have encoding UTF8 and the extension.  Prints what failed and, as its
# last line, "N passed, N failed"; fails if something did.
set -u
here=$(dirname "$0")
vectors=${TOOL_CLAIMS_SHARED:-$here/../../shared}/jcs

if ! ls "$vectors"/*.jsonl >/dev/null 2>&1
then
	echo "no conformance vectors in $vectors"
	echo "0 passed, 0 failed"
	exit 0
fi

table()
{
	cat <<'SQL'
SET client_encoding = 'UTF8';
SET client_min_messages = 'warning';
SET search_path = tool_claims, pg_catalog, pg_temp;

CREATE TEMPORARY TABLE vectors (
	name text,
	input text,
	input_hex text,				-- instead, what no text can hold
	expect text,				-- ok or error
	canonical text,
	sha256 text,
	portable boolean,
	why text,					-- of an error
	or_error text,				-- an error that is as good as what is expected
	relation text,				-- equal or differ: to the other text
	other text
);
COPY vectors FROM STDIN;
SQL
	perl "$here/vectors.pl" "$vectors"/*.jsonl && echo '\.'
}

verdict()
{
	cat <<'SQL'
-- the value of a jsonb, NULL where jsonb cannot hold it
CREATE FUNCTION pg_temp.through_jsonb(input text) RETURNS canonical_json
LANGUAGE plpgsql AS $$
BEGIN
	RETURN input::jsonb;
EXCEPTION WHEN numeric_value_out_of_range OR statement_too_complex THEN
	RETURN NULL;
END $$;

CREATE FUNCTION pg_temp.digest_or_null(input text) RETURNS sha256_digest
LANGUAGE plpgsql AS $$
BEGIN
	RETURN digest(input::canonical_json);
EXCEPTION WHEN OTHERS THEN
	RETURN NULL;
END $$;

-- what is wrong with a vector, NULL if nothing
CREATE FUNCTION pg_temp.fault(v vectors) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	value canonical_json;
	code text;
BEGIN
	BEGIN
		value := CASE WHEN v.input IS NULL
			THEN convert_from(decode(v.input_hex, 'hex'), 'UTF8')
			ELSE v.input END::canonical_json;
	EXCEPTION WHEN OTHERS THEN
		code := SQLSTATE;
	END;

	IF code = '54001' AND v.or_error = 'too_deep' THEN
		RETURN NULL;
	ELSIF v.expect = 'error' THEN
		RETURN CASE
			WHEN code IS NULL THEN 'was accepted'
			-- not a text at all
			WHEN v.input IS NULL AND code = '22021' THEN NULL
			WHEN code <> CASE v.why
				WHEN 'syntax' THEN '22P02'
				WHEN 'lone_surrogate' THEN '22P02'
				WHEN 'duplicate_key' THEN '22030'
				WHEN 'nul_character' THEN '22P05'
				WHEN 'number_out_of_range' THEN '22003'
				ELSE 'none' END THEN 'SQLSTATE ' || code || ' for ' || v.why
			END;
	END IF;

	RETURN CASE
		WHEN code IS NOT NULL THEN 'SQLSTATE ' || code
		WHEN value::text <> v.canonical THEN 'canonical text'
		WHEN digest(value)::text <> v.sha256 THEN 'digest'
		WHEN sha256(convert_to(value::text, 'UTF8')) <> digest(value)::bytea
			THEN 'digest of the text'
		WHEN is_portable(value) <> v.portable THEN 'portable'
		WHEN value::text::canonical_json <> value
			OR value::text::canonical_json::text <> value::text THEN 'read again'
		WHEN v.input::json::canonical_json <> value THEN 'through json'
		WHEN pg_temp.through_jsonb(v.input) <> value THEN 'through jsonb'
		WHEN v.relation = 'equal' AND digest(value) <> digest(v.other::canonical_json)
			THEN 'not equal to the other'
		WHEN v.relation = 'differ' AND digest(value) = pg_temp.digest_or_null(v.other)
			THEN 'equal to the other'
		END;
END $$;

CREATE TEMPORARY TABLE faults AS
SELECT name, pg_temp.fault(vectors) AS fault
FROM vectors;

SELECT 'not ok: ' || name || ': ' || fault
FROM faults
WHERE fault IS NOT NULL;

SELECT count(*) FILTER (WHERE fault IS NULL) || ' passed, '
	|| count(*) FILTER (WHERE fault IS NOT NULL) || ' failed'
FROM faults;
SQL
}

report=$({ table && verdict; } | psql -X -q -A -t -v ON_ERROR_STOP=1)
status=$?
if [ "$status" != 0 ]
then
	report+=$'\n0 passed, 1 failed'
fi
printf '%s\n' "$report"
[[ $report == *' 0 failed' ]]
