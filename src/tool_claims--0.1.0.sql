/* src/tool_claims--0.1.0.sql */

-- complain if script is sourced in psql, rather than via CREATE EXTENSION
\echo Use "CREATE EXTENSION tool_claims" to load this file. \quit

CREATE SCHEMA tool_claims;
COMMENT ON SCHEMA tool_claims
	IS 'Durable claims of tool calls';

/*
 * sha256_digest
 */

CREATE TYPE tool_claims.sha256_digest;

CREATE FUNCTION tool_claims.sha256_digest_in(cstring)
	RETURNS tool_claims.sha256_digest
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_in'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_in(cstring) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_in(cstring)
	IS 'Reads a SHA-256 digest';

CREATE FUNCTION tool_claims.sha256_digest_out(tool_claims.sha256_digest)
	RETURNS cstring
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_out'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_out(tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_out(tool_claims.sha256_digest)
	IS 'Writes a SHA-256 digest';

CREATE FUNCTION tool_claims.sha256_digest_recv(internal)
	RETURNS tool_claims.sha256_digest
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_recv'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_recv(internal) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_recv(internal)
	IS 'Reads a SHA-256 digest in binary form';

CREATE FUNCTION tool_claims.sha256_digest_send(tool_claims.sha256_digest)
	RETURNS bytea
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_send'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_send(tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_send(tool_claims.sha256_digest)
	IS 'Writes a SHA-256 digest in binary form';

CREATE TYPE tool_claims.sha256_digest (
	INPUT = tool_claims.sha256_digest_in,
	OUTPUT = tool_claims.sha256_digest_out,
	RECEIVE = tool_claims.sha256_digest_recv,
	SEND = tool_claims.sha256_digest_send,
	INTERNALLENGTH = 32,
	ALIGNMENT = char,
	STORAGE = plain
);

COMMENT ON TYPE tool_claims.sha256_digest
	IS 'SHA-256 digest: 32 bytes, written as 64 lower-case hexadecimal digits';

CREATE FUNCTION tool_claims.sha256_digest_eq(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_eq'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_eq(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_eq(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Are the values equal?';

CREATE FUNCTION tool_claims.sha256_digest_ne(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_ne'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_ne(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_ne(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Do the values differ?';

CREATE FUNCTION tool_claims.sha256_digest_lt(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_lt'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_lt(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_lt(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Does the left value sort before the right one?';

CREATE FUNCTION tool_claims.sha256_digest_le(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_le'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_le(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_le(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Does the left value sort before the right one, or equal to it?';

CREATE FUNCTION tool_claims.sha256_digest_gt(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_gt'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_gt(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_gt(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Does the left value sort after the right one?';

CREATE FUNCTION tool_claims.sha256_digest_ge(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_ge'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_ge(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_ge(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Does the left value sort after the right one, or equal to it?';

CREATE FUNCTION tool_claims.sha256_digest_cmp(tool_claims.sha256_digest, tool_claims.sha256_digest)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_cmp'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_cmp(tool_claims.sha256_digest, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_cmp(tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'Orders two values byte by byte: negative, zero or positive';

CREATE FUNCTION tool_claims.sha256_digest_hash(tool_claims.sha256_digest)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_hash'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_hash(tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_hash(tool_claims.sha256_digest)
	IS 'Hash value';

CREATE FUNCTION tool_claims.sha256_digest_hash_extended(tool_claims.sha256_digest, bigint)
	RETURNS bigint
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_hash_extended'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_hash_extended(tool_claims.sha256_digest, bigint) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_hash_extended(tool_claims.sha256_digest, bigint)
	IS 'Hash value of 64 bits with a seed';

CREATE OPERATOR tool_claims.= (
	FUNCTION = tool_claims.sha256_digest_eq,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.=),
	NEGATOR = OPERATOR(tool_claims.<>),
	RESTRICT = pg_catalog.eqsel,
	JOIN = pg_catalog.eqjoinsel,
	HASHES,
	MERGES
);
COMMENT ON OPERATOR tool_claims.= (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'equal';

CREATE OPERATOR tool_claims.<> (
	FUNCTION = tool_claims.sha256_digest_ne,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.<>),
	NEGATOR = OPERATOR(tool_claims.=),
	RESTRICT = pg_catalog.neqsel,
	JOIN = pg_catalog.neqjoinsel
);
COMMENT ON OPERATOR tool_claims.<> (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'not equal';

CREATE OPERATOR tool_claims.< (
	FUNCTION = tool_claims.sha256_digest_lt,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.>),
	NEGATOR = OPERATOR(tool_claims.>=),
	RESTRICT = pg_catalog.scalarltsel,
	JOIN = pg_catalog.scalarltjoinsel
);
COMMENT ON OPERATOR tool_claims.< (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'less than';

CREATE OPERATOR tool_claims.<= (
	FUNCTION = tool_claims.sha256_digest_le,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.>=),
	NEGATOR = OPERATOR(tool_claims.>),
	RESTRICT = pg_catalog.scalarlesel,
	JOIN = pg_catalog.scalarlejoinsel
);
COMMENT ON OPERATOR tool_claims.<= (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'less than or equal';

CREATE OPERATOR tool_claims.> (
	FUNCTION = tool_claims.sha256_digest_gt,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.<),
	NEGATOR = OPERATOR(tool_claims.<=),
	RESTRICT = pg_catalog.scalargtsel,
	JOIN = pg_catalog.scalargtjoinsel
);
COMMENT ON OPERATOR tool_claims.> (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'greater than';

CREATE OPERATOR tool_claims.>= (
	FUNCTION = tool_claims.sha256_digest_ge,
	LEFTARG = tool_claims.sha256_digest,
	RIGHTARG = tool_claims.sha256_digest,
	COMMUTATOR = OPERATOR(tool_claims.<=),
	NEGATOR = OPERATOR(tool_claims.<),
	RESTRICT = pg_catalog.scalargesel,
	JOIN = pg_catalog.scalargejoinsel
);
COMMENT ON OPERATOR tool_claims.>= (tool_claims.sha256_digest, tool_claims.sha256_digest)
	IS 'greater than or equal';

CREATE OPERATOR CLASS tool_claims.sha256_digest_ops
	DEFAULT FOR TYPE tool_claims.sha256_digest USING btree AS
	OPERATOR 1 tool_claims.<,
	OPERATOR 2 tool_claims.<=,
	OPERATOR 3 tool_claims.=,
	OPERATOR 4 tool_claims.>=,
	OPERATOR 5 tool_claims.>,
	FUNCTION 1 tool_claims.sha256_digest_cmp(tool_claims.sha256_digest, tool_claims.sha256_digest),
	FUNCTION 4 pg_catalog.btequalimage(oid);
COMMENT ON OPERATOR CLASS tool_claims.sha256_digest_ops USING btree
	IS 'Values in the order of their bytes';
COMMENT ON OPERATOR FAMILY tool_claims.sha256_digest_ops USING btree
	IS 'Values in the order of their bytes';

CREATE OPERATOR CLASS tool_claims.sha256_digest_ops
	DEFAULT FOR TYPE tool_claims.sha256_digest USING hash AS
	OPERATOR 1 tool_claims.=,
	FUNCTION 1 tool_claims.sha256_digest_hash(tool_claims.sha256_digest),
	FUNCTION 2 tool_claims.sha256_digest_hash_extended(tool_claims.sha256_digest, bigint);
COMMENT ON OPERATOR CLASS tool_claims.sha256_digest_ops USING hash
	IS 'Values by their bytes';
COMMENT ON OPERATOR FAMILY tool_claims.sha256_digest_ops USING hash
	IS 'Values by their bytes';

CREATE FUNCTION tool_claims.sha256_digest_from_bytea(bytea)
	RETURNS tool_claims.sha256_digest
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_from_bytea'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_from_bytea(bytea) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_from_bytea(bytea)
	IS 'The digest that these 32 bytes are';

CREATE FUNCTION tool_claims.sha256_digest_to_bytea(tool_claims.sha256_digest)
	RETURNS bytea
	AS 'MODULE_PATHNAME', 'tc_sha256_digest_to_bytea'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.sha256_digest_to_bytea(tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sha256_digest_to_bytea(tool_claims.sha256_digest)
	IS 'The 32 bytes of the digest';

CREATE CAST (bytea AS tool_claims.sha256_digest)
	WITH FUNCTION tool_claims.sha256_digest_from_bytea(bytea) AS ASSIGNMENT;
COMMENT ON CAST (bytea AS tool_claims.sha256_digest)
	IS 'Takes 32 bytes and no other length';

CREATE CAST (tool_claims.sha256_digest AS bytea)
	WITH FUNCTION tool_claims.sha256_digest_to_bytea(tool_claims.sha256_digest) AS ASSIGNMENT;
COMMENT ON CAST (tool_claims.sha256_digest AS bytea)
	IS 'The 32 bytes of the digest';

/*
 * canonical_json
 */

CREATE TYPE tool_claims.canonical_json;

CREATE FUNCTION tool_claims.canonical_json_in(cstring)
	RETURNS tool_claims.canonical_json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_in'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_in(cstring) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_in(cstring)
	IS 'Reads a JSON value';

CREATE FUNCTION tool_claims.canonical_json_out(tool_claims.canonical_json)
	RETURNS cstring
	AS 'MODULE_PATHNAME', 'tc_canonical_json_out'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_out(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_out(tool_claims.canonical_json)
	IS 'Writes a JSON value';

CREATE FUNCTION tool_claims.canonical_json_recv(internal)
	RETURNS tool_claims.canonical_json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_recv'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_recv(internal) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_recv(internal)
	IS 'Reads a JSON value in binary form';

CREATE FUNCTION tool_claims.canonical_json_send(tool_claims.canonical_json)
	RETURNS bytea
	AS 'MODULE_PATHNAME', 'tc_canonical_json_send'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_send(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_send(tool_claims.canonical_json)
	IS 'Writes a JSON value in binary form';

CREATE TYPE tool_claims.canonical_json (
	INPUT = tool_claims.canonical_json_in,
	OUTPUT = tool_claims.canonical_json_out,
	RECEIVE = tool_claims.canonical_json_recv,
	SEND = tool_claims.canonical_json_send,
	INTERNALLENGTH = VARIABLE,
	ALIGNMENT = int4,
	STORAGE = extended
);

COMMENT ON TYPE tool_claims.canonical_json
	IS 'JSON value in RFC 8785 form, numbers exact, no member name twice';

CREATE FUNCTION tool_claims.canonical_json_eq(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_eq'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_eq(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_eq(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Are the values equal?';

CREATE FUNCTION tool_claims.canonical_json_ne(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_ne'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_ne(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_ne(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Do the values differ?';

CREATE FUNCTION tool_claims.canonical_json_lt(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_lt'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_lt(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_lt(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Does the left value sort before the right one?';

CREATE FUNCTION tool_claims.canonical_json_le(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_le'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_le(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_le(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Does the left value sort before the right one, or equal to it?';

CREATE FUNCTION tool_claims.canonical_json_gt(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_gt'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_gt(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_gt(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Does the left value sort after the right one?';

CREATE FUNCTION tool_claims.canonical_json_ge(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_canonical_json_ge'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_ge(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_ge(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Does the left value sort after the right one, or equal to it?';

CREATE FUNCTION tool_claims.canonical_json_cmp(tool_claims.canonical_json, tool_claims.canonical_json)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_canonical_json_cmp'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_cmp(tool_claims.canonical_json, tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_cmp(tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'Orders two values byte by byte: negative, zero or positive';

CREATE FUNCTION tool_claims.canonical_json_hash(tool_claims.canonical_json)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_canonical_json_hash'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_hash(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_hash(tool_claims.canonical_json)
	IS 'Hash value';

CREATE FUNCTION tool_claims.canonical_json_hash_extended(tool_claims.canonical_json, bigint)
	RETURNS bigint
	AS 'MODULE_PATHNAME', 'tc_canonical_json_hash_extended'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_hash_extended(tool_claims.canonical_json, bigint) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_hash_extended(tool_claims.canonical_json, bigint)
	IS 'Hash value of 64 bits with a seed';

CREATE OPERATOR tool_claims.= (
	FUNCTION = tool_claims.canonical_json_eq,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.=),
	NEGATOR = OPERATOR(tool_claims.<>),
	RESTRICT = pg_catalog.eqsel,
	JOIN = pg_catalog.eqjoinsel,
	HASHES,
	MERGES
);
COMMENT ON OPERATOR tool_claims.= (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'equal';

CREATE OPERATOR tool_claims.<> (
	FUNCTION = tool_claims.canonical_json_ne,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.<>),
	NEGATOR = OPERATOR(tool_claims.=),
	RESTRICT = pg_catalog.neqsel,
	JOIN = pg_catalog.neqjoinsel
);
COMMENT ON OPERATOR tool_claims.<> (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'not equal';

CREATE OPERATOR tool_claims.< (
	FUNCTION = tool_claims.canonical_json_lt,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.>),
	NEGATOR = OPERATOR(tool_claims.>=),
	RESTRICT = pg_catalog.scalarltsel,
	JOIN = pg_catalog.scalarltjoinsel
);
COMMENT ON OPERATOR tool_claims.< (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'less than';

CREATE OPERATOR tool_claims.<= (
	FUNCTION = tool_claims.canonical_json_le,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.>=),
	NEGATOR = OPERATOR(tool_claims.>),
	RESTRICT = pg_catalog.scalarlesel,
	JOIN = pg_catalog.scalarlejoinsel
);
COMMENT ON OPERATOR tool_claims.<= (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'less than or equal';

CREATE OPERATOR tool_claims.> (
	FUNCTION = tool_claims.canonical_json_gt,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.<),
	NEGATOR = OPERATOR(tool_claims.<=),
	RESTRICT = pg_catalog.scalargtsel,
	JOIN = pg_catalog.scalargtjoinsel
);
COMMENT ON OPERATOR tool_claims.> (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'greater than';

CREATE OPERATOR tool_claims.>= (
	FUNCTION = tool_claims.canonical_json_ge,
	LEFTARG = tool_claims.canonical_json,
	RIGHTARG = tool_claims.canonical_json,
	COMMUTATOR = OPERATOR(tool_claims.<=),
	NEGATOR = OPERATOR(tool_claims.<),
	RESTRICT = pg_catalog.scalargesel,
	JOIN = pg_catalog.scalargejoinsel
);
COMMENT ON OPERATOR tool_claims.>= (tool_claims.canonical_json, tool_claims.canonical_json)
	IS 'greater than or equal';

CREATE OPERATOR CLASS tool_claims.canonical_json_ops
	DEFAULT FOR TYPE tool_claims.canonical_json USING btree AS
	OPERATOR 1 tool_claims.<,
	OPERATOR 2 tool_claims.<=,
	OPERATOR 3 tool_claims.=,
	OPERATOR 4 tool_claims.>=,
	OPERATOR 5 tool_claims.>,
	FUNCTION 1 tool_claims.canonical_json_cmp(tool_claims.canonical_json, tool_claims.canonical_json),
	FUNCTION 4 pg_catalog.btequalimage(oid);
COMMENT ON OPERATOR CLASS tool_claims.canonical_json_ops USING btree
	IS 'Values in the order of their bytes';
COMMENT ON OPERATOR FAMILY tool_claims.canonical_json_ops USING btree
	IS 'Values in the order of their bytes';

CREATE OPERATOR CLASS tool_claims.canonical_json_ops
	DEFAULT FOR TYPE tool_claims.canonical_json USING hash AS
	OPERATOR 1 tool_claims.=,
	FUNCTION 1 tool_claims.canonical_json_hash(tool_claims.canonical_json),
	FUNCTION 2 tool_claims.canonical_json_hash_extended(tool_claims.canonical_json, bigint);
COMMENT ON OPERATOR CLASS tool_claims.canonical_json_ops USING hash
	IS 'Values by their bytes';
COMMENT ON OPERATOR FAMILY tool_claims.canonical_json_ops USING hash
	IS 'Values by their bytes';

CREATE FUNCTION tool_claims.canonical_json_from_text(text)
	RETURNS tool_claims.canonical_json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_from_text'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_from_text(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_from_text(text)
	IS 'Reads a JSON text';

CREATE FUNCTION tool_claims.canonical_json_from_json(json)
	RETURNS tool_claims.canonical_json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_from_text'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_from_json(json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_from_json(json)
	IS 'Reads a JSON text';

CREATE FUNCTION tool_claims.canonical_json_from_jsonb(jsonb)
	RETURNS tool_claims.canonical_json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_from_jsonb'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_from_jsonb(jsonb) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_from_jsonb(jsonb)
	IS 'The value of a jsonb, which has dropped repeated members already';

CREATE FUNCTION tool_claims.canonical_json_to_text(tool_claims.canonical_json)
	RETURNS text
	AS 'MODULE_PATHNAME', 'tc_canonical_json_to_text'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_to_text(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_to_text(tool_claims.canonical_json)
	IS 'The canonical text';

CREATE FUNCTION tool_claims.canonical_json_to_json(tool_claims.canonical_json)
	RETURNS json
	AS 'MODULE_PATHNAME', 'tc_canonical_json_to_text'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_to_json(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_to_json(tool_claims.canonical_json)
	IS 'The canonical text as json';

CREATE FUNCTION tool_claims.canonical_json_to_jsonb(tool_claims.canonical_json)
	RETURNS jsonb
	AS 'MODULE_PATHNAME', 'tc_canonical_json_to_jsonb'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.canonical_json_to_jsonb(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.canonical_json_to_jsonb(tool_claims.canonical_json)
	IS 'The value as jsonb, where its numbers fit';

CREATE CAST (text AS tool_claims.canonical_json)
	WITH FUNCTION tool_claims.canonical_json_from_text(text);
COMMENT ON CAST (text AS tool_claims.canonical_json)
	IS 'Reads a JSON text';

CREATE CAST (json AS tool_claims.canonical_json)
	WITH FUNCTION tool_claims.canonical_json_from_json(json) AS IMPLICIT;
COMMENT ON CAST (json AS tool_claims.canonical_json)
	IS 'Reads a JSON text';

CREATE CAST (jsonb AS tool_claims.canonical_json)
	WITH FUNCTION tool_claims.canonical_json_from_jsonb(jsonb) AS IMPLICIT;
COMMENT ON CAST (jsonb AS tool_claims.canonical_json)
	IS 'The value of a jsonb, which has dropped repeated members already';

CREATE CAST (tool_claims.canonical_json AS text)
	WITH FUNCTION tool_claims.canonical_json_to_text(tool_claims.canonical_json) AS ASSIGNMENT;
COMMENT ON CAST (tool_claims.canonical_json AS text)
	IS 'The canonical text';

CREATE CAST (tool_claims.canonical_json AS json)
	WITH FUNCTION tool_claims.canonical_json_to_json(tool_claims.canonical_json) AS ASSIGNMENT;
COMMENT ON CAST (tool_claims.canonical_json AS json)
	IS 'The canonical text as json';

CREATE CAST (tool_claims.canonical_json AS jsonb)
	WITH FUNCTION tool_claims.canonical_json_to_jsonb(tool_claims.canonical_json) AS ASSIGNMENT;
COMMENT ON CAST (tool_claims.canonical_json AS jsonb)
	IS 'The value as jsonb, where its numbers fit';

CREATE FUNCTION tool_claims.digest(tool_claims.canonical_json)
	RETURNS tool_claims.sha256_digest
	AS 'MODULE_PATHNAME', 'tc_digest'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.digest(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.digest(tool_claims.canonical_json)
	IS 'SHA-256 of the canonical text in UTF-8';

CREATE FUNCTION tool_claims.is_portable(tool_claims.canonical_json)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_is_portable'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.is_portable(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.is_portable(tool_claims.canonical_json)
	IS 'Does plain RFC 8785, which makes doubles of all numbers, give the same text?';

/*
 * Types of the claims
 */

CREATE TYPE tool_claims.outcome AS ENUM (
	'acquired', 'completed', 'failed', 'released', 'in_progress', 'uncertain',
	'conflict', 'refused'
);
COMMENT ON TYPE tool_claims.outcome
	IS 'What came of a claim verb';

CREATE TYPE tool_claims.claim_state AS ENUM (
	'claimed', 'completed', 'failed', 'released', 'uncertain', 'retired'
);
COMMENT ON TYPE tool_claims.claim_state
	IS 'State of a claim record';

CREATE TYPE tool_claims.finding AS ENUM (
	'occurred', 'not_occurred', 'abandoned', 'compensated'
);
COMMENT ON TYPE tool_claims.finding
	IS 'What somebody found out about an uncertain attempt';

CREATE TYPE tool_claims.claim_result AS (
	outcome				tool_claims.outcome,
	reason				text,
	task_id				text,
	tool_call_id		text,
	attempt				integer,
	effect_key			text,
	result				json,
	error				json,
	input				json,
	held_by				text,
	retry_after			interval,
	lease_expires_at	timestamptz,
	claimed_at			timestamptz,
	finished_at			timestamptz
);
COMMENT ON TYPE tool_claims.claim_result
	IS 'What a claim verb returns';

CREATE TYPE tool_claims.claim_status AS (
	organization		text,
	task_id				text,
	tool_call_id		text,
	tool_server			text,
	tool_name			text,
	input_digest		tool_claims.sha256_digest,
	input				tool_claims.canonical_json,
	operation_id		text,
	effect_key			text,
	state				tool_claims.claim_state,
	attempt				integer,
	held_by				text,
	claimed_at			timestamptz,
	dispatched_at		timestamptz,
	lease_expires_at	timestamptz,
	not_after			timestamptz,
	finished_at			timestamptz,
	external_ref		text,
	result				json,
	error				json
);
COMMENT ON TYPE tool_claims.claim_status
	IS 'A claim record as it reads now';

CREATE TYPE tool_claims.proposal_state AS ENUM (
	'pending', 'approved', 'rejected', 'withdrawn', 'revoked', 'superseded',
	'expired', 'reserved'
);
COMMENT ON TYPE tool_claims.proposal_state
	IS 'State of a proposal';

CREATE TYPE tool_claims.proposal_outcome AS ENUM (
	'proposed', 'existing', 'conflict', 'refused'
);
COMMENT ON TYPE tool_claims.proposal_outcome
	IS 'What came of propose';

CREATE TYPE tool_claims.decision_outcome AS ENUM (
	'recorded', 'already_recorded', 'refused'
);
COMMENT ON TYPE tool_claims.decision_outcome
	IS 'What came of a decision about a proposal';

CREATE TYPE tool_claims.proposal_result AS (
	outcome				tool_claims.proposal_outcome,
	reason				text,
	state				tool_claims.proposal_state,
	binding_digest		tool_claims.sha256_digest,
	execution_id		uuid,
	policy_version		text,
	expires_at			timestamptz,
	approvals			integer,
	approvals_required	integer,
	execution			tool_claims.outcome,
	result				json,
	error				json
);
COMMENT ON TYPE tool_claims.proposal_result
	IS 'What propose returns';

CREATE TYPE tool_claims.decision_result AS (
	outcome				tool_claims.decision_outcome,
	reason				text,
	state				tool_claims.proposal_state,
	approvals			integer,
	approvals_required	integer
);
COMMENT ON TYPE tool_claims.decision_result
	IS 'What approve, reject, revoke and withdraw return';

CREATE TYPE tool_claims.proposal_review AS (
	organization		text,
	task_id				text,
	tool_call_id		text,
	state				tool_claims.proposal_state,
	actor				text,
	project				text,
	tool_server			text,
	tool_name			text,
	schema_version		text,
	policy_version		text,
	operation_id		text,
	execution_id		uuid,
	expires_at			timestamptz,
	summary				text,
	supersedes			text,
	input				tool_claims.canonical_json,
	input_length		integer,
	input_visible		text,
	invisible_characters	integer,
	binding_digest		tool_claims.sha256_digest,
	proposed_by			text,
	proposed_at			timestamptz,
	age					interval,
	time_left			interval,
	use_by				timestamptz,
	approvals			integer,
	approvals_required	integer,
	approver_groups		text[],
	votes				jsonb,
	earlier_rejections	jsonb,
	equal_pending		integer,
	execution			tool_claims.outcome
);
COMMENT ON TYPE tool_claims.proposal_review
	IS 'A whole action as a person has to see it before deciding';

CREATE TYPE tool_claims.task_status AS ENUM (
	'succeeded', 'failed_retryable', 'failed', 'filtered', 'cancelled',
	'timed_out'
);
COMMENT ON TYPE tool_claims.task_status
	IS 'How a task ended, as the one who offers its result says';

CREATE TYPE tool_claims.gate_verdict AS ENUM (
	'pending', 'retry', 'accepted', 'rejected'
);
COMMENT ON TYPE tool_claims.gate_verdict
	IS 'What a gate says about the result of a task';

CREATE TYPE tool_claims.mark_verdict AS ENUM (
	'valid', 'invalid', 'unmarked', 'unknown_key'
);
COMMENT ON TYPE tool_claims.mark_verdict
	IS 'What a mark says about content';

CREATE TYPE tool_claims.result_gate AS (
	verdict				tool_claims.gate_verdict,
	reason				text,
	deadline			timestamptz,
	correlation			jsonb
);
COMMENT ON TYPE tool_claims.result_gate
	IS 'A gate of a result as it reads now';

/*
 * Tables.  Key columns have collation "C": no update of a system library
 * may make an index lose a key.  States are single characters: c claimed,
 * d completed, f failed, r released, u uncertain, t retired.
 */

CREATE TABLE tool_claims.claim_records (
	organization		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	tool_call_id		text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	input_digest		tool_claims.sha256_digest NOT NULL,
	state				"char" NOT NULL,
	ended_by			"char",
	leased				boolean NOT NULL,
	reacquire			boolean NOT NULL,
	attempt				integer NOT NULL,
	claimed_at			timestamptz NOT NULL,
	dispatched_at		timestamptz,
	lease_expires_at	timestamptz,
	not_after			timestamptz,
	finished_at			timestamptz,
	open_since			timestamptz,
	held_role			text COLLATE "C" NOT NULL,
	held_session		text COLLATE "C",
	held_from			text COLLATE "C",
	operation_id		text COLLATE "C",
	effect_key			text COLLATE "C",
	request_id			uuid,
	external_ref		text,
	input				tool_claims.canonical_json,
	result				json,
	error				json,
	reconciled			tool_claims.sha256_digest,
	redacted			tool_claims.sha256_digest,
	evidence_head		tool_claims.sha256_digest,
	CONSTRAINT claim_records_pkey
		PRIMARY KEY (organization, task_id, tool_call_id),
	CONSTRAINT claim_records_state_check
		CHECK (state IN ('c', 'd', 'f', 'r', 'u', 't')),
	CONSTRAINT claim_records_attempt_check
		CHECK (attempt > 0),
	CONSTRAINT claim_records_ended_by_check
		CHECK ((state = 'c') = (ended_by IS NULL)),
	CONSTRAINT claim_records_lease_expires_at_check
		CHECK (NOT leased OR lease_expires_at IS NOT NULL),
	CONSTRAINT claim_records_finished_at_check
		CHECK ((state IN ('c', 'u')) = (finished_at IS NULL)),
	CONSTRAINT claim_records_result_check
		CHECK (result IS NULL OR state = 'd'),
	CONSTRAINT claim_records_error_check
		CHECK (error IS NULL OR state = 'f')
);
COMMENT ON TABLE tool_claims.claim_records
	IS 'One record for each pair of task and tool call';

-- neither column changes on the transactional way, so it stays a HOT update
CREATE INDEX claim_records_effect_key_idx
	ON tool_claims.claim_records (organization, effect_key)
	WHERE effect_key IS NOT NULL;
COMMENT ON INDEX tool_claims.claim_records_effect_key_idx
	IS 'Finds records by the key that their destination was handed';
CREATE INDEX claim_records_open_since_idx
	ON tool_claims.claim_records (open_since)
	WHERE open_since IS NOT NULL;
COMMENT ON INDEX tool_claims.claim_records_open_since_idx
	IS 'Finds committed records that are not final';
COMMENT ON INDEX tool_claims.claim_records_pkey
	IS 'Key of a claim: organization, task and tool call';

CREATE TABLE tool_claims.operations (
	organization		text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	operation_id		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	tool_call_id		text COLLATE "C" NOT NULL,
	CONSTRAINT operations_pkey
		PRIMARY KEY (organization, tool_server, tool_name, operation_id)
);
COMMENT ON TABLE tool_claims.operations
	IS 'Business operations, each with the pair that acquired it last';
COMMENT ON INDEX tool_claims.operations_pkey
	IS 'Key of a business operation: organization, tool server, tool and its id';

CREATE TABLE tool_claims.events (
	organization		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	tool_call_id		text COLLATE "C" NOT NULL,
	seq					integer NOT NULL,
	at					timestamptz NOT NULL,
	kind				text COLLATE "C" NOT NULL,
	attempt				integer,
	role				text COLLATE "C" NOT NULL,
	principal			text COLLATE "C" NOT NULL,
	detail				jsonb,
	detail_digest		tool_claims.sha256_digest NOT NULL,
	previous			tool_claims.sha256_digest,
	hash				tool_claims.sha256_digest NOT NULL,
	CONSTRAINT events_seq_check
		CHECK (seq > 0),
	CONSTRAINT events_kind_check
		CHECK (kind IN ('proposed', 'approved', 'rejected', 'withdrawn',
						'revoked', 'superseded', 'expired', 'reserved',
						'acquired', 'dispatched', 'completed', 'failed',
						'released', 'uncertain', 'reconciled', 'conflict',
						'refused', 'late_report', 'redacted', 'pruned'))
);
COMMENT ON TABLE tool_claims.events
	IS 'Evidence: append-only, one hash chain for each key';

-- not unique: events that change nothing never wait for each other
CREATE INDEX events_key_idx
	ON tool_claims.events (organization, task_id, tool_call_id, seq);
COMMENT ON INDEX tool_claims.events_key_idx
	IS 'Finds the chain of a key';
CREATE INDEX events_attention_idx
	ON tool_claims.events (organization, kind, at)
	WHERE kind IN ('conflict', 'late_report');
COMMENT ON INDEX tool_claims.events_attention_idx
	IS 'Finds what the view attention shows';
ALTER TABLE tool_claims.events REPLICA IDENTITY FULL;

CREATE TABLE tool_claims.policies (
	organization		text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	enabled				boolean,
	effect				text,
	approvals_required	integer,
	approval_rule		text,
	approval_rule_role	text,
	approver_groups		text[],
	allow_self_approval	boolean,
	policy_version		text NOT NULL,
	on_lease_expiry		text,
	max_attempts		integer,
	operation_required	boolean,
	proposal_ttl		interval,
	keep_input			boolean,
	input_check			text,
	input_check_role	text,
	retention			interval,
	log					text,
	CONSTRAINT policies_pkey
		PRIMARY KEY (organization, tool_name, tool_server),
	CONSTRAINT policies_effect_check
		CHECK (effect IN ('any', 'local', 'external')),
	CONSTRAINT policies_approvals_required_check
		CHECK (approvals_required >= 0),
	CONSTRAINT policies_approval_rule_check
		CHECK ((approval_rule IS NULL) = (approval_rule_role IS NULL)),
	CONSTRAINT policies_on_lease_expiry_check
		CHECK (on_lease_expiry IN ('uncertain', 'reacquire')),
	CONSTRAINT policies_max_attempts_check
		CHECK (max_attempts > 0),
	CONSTRAINT policies_input_check_check
		CHECK ((input_check IS NULL) = (input_check_role IS NULL)),
	CONSTRAINT policies_log_check
		CHECK (log IN ('exceptions', 'all'))
);
COMMENT ON TABLE tool_claims.policies
	IS 'Policies of tools; a member that is null has its default';
COMMENT ON INDEX tool_claims.policies_pkey
	IS 'Key of a policy: organization, tool and tool server, * for all of them';

CREATE TABLE tool_claims.proposal_records (
	organization		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	tool_call_id		text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	input				tool_claims.canonical_json NOT NULL,
	input_digest		tool_claims.sha256_digest NOT NULL,
	actor				text COLLATE "C" NOT NULL,
	project				text COLLATE "C" NOT NULL,
	schema_version		text COLLATE "C" NOT NULL,
	policy_version		text COLLATE "C" NOT NULL,
	operation_id		text COLLATE "C",
	execution_id		uuid NOT NULL,
	expires_at			timestamptz NOT NULL,
	binding_digest		tool_claims.sha256_digest NOT NULL,
	state				"char" NOT NULL,
	summary				text,
	supersedes			text COLLATE "C",
	policy_source		text COLLATE "C" NOT NULL,
	approvals_required	integer NOT NULL,
	approver_groups		text[] COLLATE "C" NOT NULL,
	allow_self_approval	boolean NOT NULL,
	by_rule				boolean NOT NULL,
	proposed_by			text COLLATE "C" NOT NULL,
	proposed_at			timestamptz NOT NULL,
	use_by				timestamptz,
	ended_at			timestamptz,
	ended_by			text COLLATE "C",
	evidence_head		tool_claims.sha256_digest,
	redacted			boolean NOT NULL,
	pruned				boolean NOT NULL DEFAULT false,
	CONSTRAINT proposal_records_pkey
		PRIMARY KEY (organization, task_id, tool_call_id),
	CONSTRAINT proposal_records_state_check
		CHECK (state IN ('p', 'a', 'r', 'w', 'v', 's', 'x', 'u')),
	CONSTRAINT proposal_records_ended_at_check
		CHECK ((state IN ('p', 'a')) = (ended_at IS NULL)),
	CONSTRAINT proposal_records_approvals_required_check
		CHECK (approvals_required >= CASE WHEN by_rule THEN 0 ELSE 1 END)
);
COMMENT ON TABLE tool_claims.proposal_records
	IS 'Actions proposed for people to decide.  States: p pending, a approved, r rejected, w withdrawn, v revoked, s superseded, x expired, u reserved';
COMMENT ON INDEX tool_claims.proposal_records_pkey
	IS 'Key of a proposal: organization, task and tool call';
CREATE INDEX proposal_records_open_idx
	ON tool_claims.proposal_records (organization, expires_at)
	WHERE state IN ('p', 'a');
COMMENT ON INDEX tool_claims.proposal_records_open_idx
	IS 'Finds proposals that are pending or approved';

CREATE TABLE tool_claims.votes (
	organization		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	tool_call_id		text COLLATE "C" NOT NULL,
	principal			text COLLATE "C" NOT NULL,
	vote				"char" NOT NULL,
	voted_at			timestamptz NOT NULL,
	comment				text,
	CONSTRAINT votes_pkey
		PRIMARY KEY (organization, task_id, tool_call_id, principal),
	CONSTRAINT votes_vote_check
		CHECK (vote IN ('a', 'r'))
);
COMMENT ON TABLE tool_claims.votes
	IS 'Votes about proposals, one for each person.  a approve, r reject';
COMMENT ON INDEX tool_claims.votes_pkey
	IS 'Key of a vote: the pair of the proposal, and the person';

CREATE TABLE tool_claims.approvers (
	organization		text COLLATE "C" NOT NULL,
	principal			text COLLATE "C" NOT NULL,
	grp					text COLLATE "C" NOT NULL,
	project				text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	CONSTRAINT approvers_pkey
		PRIMARY KEY (organization, principal, grp, project, tool_server, tool_name)
);
COMMENT ON TABLE tool_claims.approvers
	IS 'Who may decide about proposals; * stands for every project, server or tool';
COMMENT ON INDEX tool_claims.approvers_pkey
	IS 'Key of a registration of an approver';

CREATE TABLE tool_claims.policy_numbers (
	organization		text COLLATE "C" NOT NULL,
	tool_name			text COLLATE "C" NOT NULL,
	tool_server			text COLLATE "C" NOT NULL,
	number				bigint NOT NULL,
	CONSTRAINT policy_numbers_pkey
		PRIMARY KEY (organization, tool_name, tool_server)
);
COMMENT ON TABLE tool_claims.policy_numbers
	IS 'How often a policy was changed, kept when it is dropped';
COMMENT ON INDEX tool_claims.policy_numbers_pkey
	IS 'Key of a count of changes: that of the policy';

CREATE TABLE tool_claims.result_gates (
	organization		text COLLATE "C" NOT NULL,
	task_id				text COLLATE "C" NOT NULL,
	verdict				"char" NOT NULL,
	reason				text,
	deadline			timestamptz NOT NULL,
	check_function		text,
	check_role			text,
	mark_context		text,
	correlation			jsonb NOT NULL,
	merged				jsonb NOT NULL,
	result				json,
	offered_status		text,
	offered_result		json,
	offered_content		text,
	expected_by			text COLLATE "C" NOT NULL,
	expected_at			timestamptz NOT NULL,
	decided_at			timestamptz,
	CONSTRAINT result_gates_pkey
		PRIMARY KEY (organization, task_id),
	CONSTRAINT result_gates_verdict_check
		CHECK (verdict IN ('p', 't', 'a', 'r')),
	CONSTRAINT result_gates_result_check
		CHECK ((verdict = 'a') = (result IS NOT NULL)),
	CONSTRAINT result_gates_decided_at_check
		CHECK ((verdict IN ('a', 'r')) = (decided_at IS NOT NULL))
);
COMMENT ON TABLE tool_claims.result_gates
	IS 'What results of tasks are expected, and what became of them.  Verdicts: p pending, t retry, a accepted, r rejected';
COMMENT ON INDEX tool_claims.result_gates_pkey
	IS 'Key of a gate: organization and task';
CREATE INDEX result_gates_open_idx
	ON tool_claims.result_gates (deadline)
	WHERE verdict IN ('p', 't');
COMMENT ON INDEX tool_claims.result_gates_open_idx
	IS 'Finds gates that still wait for a result';

CREATE TABLE tool_claims.mark_keys (
	organization		text COLLATE "C" NOT NULL,
	key_id				text COLLATE "C" NOT NULL,
	algorithm			text NOT NULL,
	state				"char" NOT NULL,
	secret				bytea,
	public_key			bytea,
	added_at			timestamptz NOT NULL,
	CONSTRAINT mark_keys_pkey
		PRIMARY KEY (organization, key_id),
	CONSTRAINT mark_keys_algorithm_check
		CHECK (algorithm IN ('hmac-sha256', 'ed25519')),
	CONSTRAINT mark_keys_state_check
		CHECK (state IN ('a', 'r', 'v')),
	CONSTRAINT mark_keys_secret_check
		CHECK (secret IS NOT NULL OR algorithm = 'ed25519')
);
COMMENT ON TABLE tool_claims.mark_keys
	IS 'Keys of content marks, with their secrets.  States: a active, r retired, v revoked';
COMMENT ON INDEX tool_claims.mark_keys_pkey
	IS 'Key of a key of marks: organization and its id';

CREATE TABLE tool_claims.births (
	incarnation			uuid NOT NULL,
	created_at			timestamptz NOT NULL,
	CONSTRAINT births_pkey
		PRIMARY KEY (incarnation)
);
COMMENT ON TABLE tool_claims.births
	IS 'A random value made at CREATE EXTENSION; dumps leave it out';
COMMENT ON INDEX tool_claims.births_pkey
	IS 'Key of the one birth';
INSERT INTO tool_claims.births (incarnation, created_at)
	VALUES (pg_catalog.gen_random_uuid(), pg_catalog.clock_timestamp());

CREATE TABLE tool_claims.server_identity (
	id					boolean NOT NULL,
	system_identifier	bigint NOT NULL,
	timeline			bigint NOT NULL,
	database_oid		bigint NOT NULL,
	incarnation			uuid NOT NULL,
	since				timestamptz NOT NULL,
	changed_from		jsonb,
	accepted_at			timestamptz,
	accepted_by			text COLLATE "C",
	CONSTRAINT server_identity_pkey
		PRIMARY KEY (id),
	CONSTRAINT server_identity_id_check
		CHECK (id)
);
COMMENT ON TABLE tool_claims.server_identity
	IS 'One row: the identity of the server under which the extension grants, and the one before';
COMMENT ON INDEX tool_claims.server_identity_pkey
	IS 'Key of the one row';

CREATE TABLE tool_claims.duties (
	role_name			text COLLATE "C" NOT NULL,
	duty				text COLLATE "C" NOT NULL,
	CONSTRAINT duties_pkey
		PRIMARY KEY (role_name, duty)
);
COMMENT ON TABLE tool_claims.duties
	IS 'Which role was granted which duty';
COMMENT ON INDEX tool_claims.duties_pkey
	IS 'Key of a duty that a role has';

CREATE TABLE tool_claims.duty_privileges (
	duty				text COLLATE "C" NOT NULL,
	kind				text COLLATE "C" NOT NULL,
	name				text COLLATE "C" NOT NULL,
	privilege			text COLLATE "C" NOT NULL,
	CONSTRAINT duty_privileges_pkey
		PRIMARY KEY (duty, kind, name, privilege)
);
COMMENT ON TABLE tool_claims.duty_privileges
	IS 'What each duty may, * for every duty; filled by the install script';
COMMENT ON INDEX tool_claims.duty_privileges_pkey
	IS 'Key of a privilege of a duty';

-- what a dump has to hold; duty_privileges is filled anew by the script
SELECT pg_catalog.pg_extension_config_dump('tool_claims.claim_records', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.operations', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.events', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.policies', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.policy_numbers', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.proposal_records', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.votes', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.approvers', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.result_gates', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.mark_keys', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.server_identity', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.births', 'WHERE false');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.duties', '');
SELECT pg_catalog.pg_extension_config_dump('tool_claims.duty_privileges', 'WHERE false');

/*
 * Triggers
 */

CREATE FUNCTION tool_claims.events_guard()
	RETURNS trigger
	AS 'MODULE_PATHNAME', 'tc_events_guard'
	LANGUAGE C VOLATILE;
REVOKE ALL ON FUNCTION tool_claims.events_guard() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.events_guard()
	IS 'Refuses to change or delete events';

CREATE TRIGGER events_guard
	BEFORE UPDATE OR DELETE OR TRUNCATE ON tool_claims.events
	FOR EACH STATEMENT EXECUTE FUNCTION tool_claims.events_guard();
COMMENT ON TRIGGER events_guard ON tool_claims.events
	IS 'Keeps the table append-only';
CREATE TRIGGER events_row_guard
	BEFORE UPDATE OR DELETE ON tool_claims.events
	FOR EACH ROW EXECUTE FUNCTION tool_claims.events_guard();
COMMENT ON TRIGGER events_row_guard ON tool_claims.events
	IS 'Keeps the table append-only under a parent table';

CREATE FUNCTION tool_claims.policies_changed()
	RETURNS trigger
	AS 'MODULE_PATHNAME', 'tc_policies_changed'
	LANGUAGE C VOLATILE;
REVOKE ALL ON FUNCTION tool_claims.policies_changed() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.policies_changed()
	IS 'Tells every session to read the policies again';

-- always, so that logical replication tells the subscriber's sessions too
CREATE TRIGGER policies_changed
	AFTER INSERT OR UPDATE OR DELETE ON tool_claims.policies
	FOR EACH ROW EXECUTE FUNCTION tool_claims.policies_changed();
ALTER TABLE tool_claims.policies ENABLE ALWAYS TRIGGER policies_changed;
COMMENT ON TRIGGER policies_changed ON tool_claims.policies
	IS 'Invalidates the policies that sessions keep in memory';
CREATE TRIGGER policies_truncated
	AFTER TRUNCATE ON tool_claims.policies
	FOR EACH STATEMENT EXECUTE FUNCTION tool_claims.policies_changed();
ALTER TABLE tool_claims.policies ENABLE ALWAYS TRIGGER policies_truncated;
COMMENT ON TRIGGER policies_truncated ON tool_claims.policies
	IS 'Invalidates the policies that sessions keep in memory';

/*
 * Helpers of the views
 */

CREATE FUNCTION tool_claims.clock()
	RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tc_clock'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.clock() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.clock()
	IS 'The time as the extension sees it: the clock of the server, moved by tool_claims.clock_offset';

CREATE FUNCTION tool_claims.session_organization()
	RETURNS text
	AS 'MODULE_PATHNAME', 'tc_session_organization'
	LANGUAGE C STABLE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.session_organization() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.session_organization()
	IS 'The organization that the session works for, * where it looks at all of them';

CREATE FUNCTION tool_claims.state_now(
	state "char",
	leased boolean,
	reacquire boolean,
	dispatched_at timestamptz,
	lease_expires_at timestamptz)
	RETURNS tool_claims.claim_state
	AS 'MODULE_PATHNAME', 'tc_state_now'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.state_now("char", boolean, boolean, timestamptz, timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.state_now("char", boolean, boolean, timestamptz, timestamptz)
	IS 'State of a stored record as it reads now, expiry applied';

CREATE FUNCTION tool_claims.effect_key(
	effect_key text,
	operation_id text,
	organization text,
	task_id text,
	tool_call_id text)
	RETURNS text
	AS 'MODULE_PATHNAME', 'tc_effect_key'
	LANGUAGE C IMMUTABLE PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.effect_key(text, text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.effect_key(text, text, text, text, text)
	IS 'Effect key of a stored record, derived where none is stored';

CREATE FUNCTION tool_claims.max_attempts(
	organization text,
	tool_server text,
	tool_name text)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_max_attempts'
	LANGUAGE C STABLE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.max_attempts(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.max_attempts(text, text, text)
	IS 'How often the policy of a tool lets a claim be acquired, null without a limit';

CREATE FUNCTION tool_claims.retention_cutoff(
	organization text,
	tool_server text,
	tool_name text)
	RETURNS timestamptz
	AS 'MODULE_PATHNAME', 'tc_retention_cutoff'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.retention_cutoff(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.retention_cutoff(text, text, text)
	IS 'Before which time records of a tool must have ended to be pruned by policy, null for none';

CREATE FUNCTION tool_claims.visible_text(
	input tool_claims.canonical_json)
	RETURNS text
	AS 'MODULE_PATHNAME', 'tc_visible_text'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.visible_text(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.visible_text(tool_claims.canonical_json)
	IS 'Canonical JSON with characters that hide written as escapes';

CREATE FUNCTION tool_claims.invisible_characters(
	input tool_claims.canonical_json)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_invisible_characters'
	LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;
REVOKE ALL ON FUNCTION tool_claims.invisible_characters(tool_claims.canonical_json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.invisible_characters(tool_claims.canonical_json)
	IS 'How many characters in JSON hide: control, format and blank ones';

CREATE FUNCTION tool_claims.proposal_state_now(
	state "char",
	expires_at timestamptz)
	RETURNS tool_claims.proposal_state
	AS 'MODULE_PATHNAME', 'tc_proposal_state_now'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.proposal_state_now("char", timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.proposal_state_now("char", timestamptz)
	IS 'State of a stored proposal as it reads now, expiry applied';

CREATE FUNCTION tool_claims.approvals_now(
	organization text,
	task_id text,
	tool_call_id text)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_approvals_now'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.approvals_now(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.approvals_now(text, text, text)
	IS 'How many votes for a proposal count at this moment';

CREATE FUNCTION tool_claims.can_be_decided(
	organization text,
	task_id text,
	tool_call_id text)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_can_be_decided'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.can_be_decided(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.can_be_decided(text, text, text)
	IS 'Whether a proposal can still be decided: its policy is in force, and enough people may vote';

CREATE FUNCTION tool_claims.can_be_reserved(
	organization text,
	task_id text,
	tool_call_id text)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_can_be_reserved'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.can_be_reserved(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.can_be_reserved(text, text, text)
	IS 'Whether a proposal can be reserved at this moment';

CREATE FUNCTION tool_claims.can_vote(
	organization text,
	task_id text,
	tool_call_id text,
	principal text)
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_can_vote'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.can_vote(text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.can_vote(text, text, text, text)
	IS 'Whether a person can vote for a proposal at this moment';

CREATE FUNCTION tool_claims.gate_verdict_now(
	verdict "char",
	deadline timestamptz)
	RETURNS tool_claims.gate_verdict
	AS 'MODULE_PATHNAME', 'tc_gate_verdict_now'
	LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.gate_verdict_now("char", timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.gate_verdict_now("char", timestamptz)
	IS 'Verdict of a stored gate as it reads now, deadline applied';

CREATE FUNCTION tool_claims.recovery_is_pending()
	RETURNS boolean
	AS 'MODULE_PATHNAME', 'tc_recovery_is_pending'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.recovery_is_pending() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.recovery_is_pending()
	IS 'Whether the server has changed its identity and nobody has accepted that yet';

/*
 * Claims
 */

CREATE FUNCTION tool_claims.claim(
	task_id text,
	tool_call_id text,
	tool_name text,
	input tool_claims.canonical_json,
	lease interval DEFAULT NULL,
	wait interval DEFAULT '0',
	operation_id text DEFAULT NULL,
	request_id uuid DEFAULT NULL,
	tool_server text DEFAULT '',
	not_after timestamptz DEFAULT NULL,
	dispatched boolean DEFAULT true)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_claim'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.claim(text, text, text, tool_claims.canonical_json, interval, interval, text, uuid, text, timestamptz, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.claim(text, text, text, tool_claims.canonical_json, interval, interval, text, uuid, text, timestamptz, boolean)
	IS 'Acquires the authority to act for one delivery of a tool call, or tells who has it, what it led to, or why not';

CREATE FUNCTION tool_claims.dispatch(
	task_id text,
	tool_call_id text,
	attempt integer,
	external_ref text DEFAULT NULL)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_dispatch'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.dispatch(text, text, integer, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.dispatch(text, text, integer, text)
	IS 'Records that the effect of a committed leased claim is about to begin; answers acquired or refused';

CREATE FUNCTION tool_claims.renew(
	task_id text,
	tool_call_id text,
	attempt integer,
	lease interval)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_renew'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.renew(text, text, integer, interval) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.renew(text, text, integer, interval)
	IS 'Extends the lease of the own attempt, counted from now';

CREATE FUNCTION tool_claims.complete(
	task_id text,
	tool_call_id text,
	result json DEFAULT NULL,
	attempt integer DEFAULT NULL)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_complete'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.complete(text, text, json, integer) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.complete(text, text, json, integer)
	IS 'Stores the result byte for byte and ends the attempt; repeated with the same bytes it answers as the first time';

CREATE FUNCTION tool_claims.fail(
	task_id text,
	tool_call_id text,
	error json,
	attempt integer DEFAULT NULL)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_fail'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.fail(text, text, json, integer) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.fail(text, text, json, integer)
	IS 'Stores the error that every later delivery gets, and ends the attempt';

CREATE FUNCTION tool_claims.release(
	task_id text,
	tool_call_id text,
	attempt integer DEFAULT NULL,
	reason text DEFAULT NULL,
	new_effect_key boolean DEFAULT false)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_release'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.release(text, text, integer, text, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.release(text, text, integer, text, boolean)
	IS 'Gives the claim back when no effect began: the next delivery may acquire it';

CREATE FUNCTION tool_claims.mark_uncertain(
	task_id text,
	tool_call_id text,
	attempt integer,
	reason text)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_mark_uncertain'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.mark_uncertain(text, text, integer, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.mark_uncertain(text, text, integer, text)
	IS 'Says that nobody knows whether the effect of a leased claim happened';

CREATE FUNCTION tool_claims.report_late(
	task_id text,
	tool_call_id text,
	attempt integer,
	result json)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_report_late'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.report_late(text, text, integer, json) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.report_late(text, text, integer, json)
	IS 'Puts what a stale attempt knows into the evidence and changes nothing';

CREATE FUNCTION tool_claims.reconcile(
	task_id text,
	tool_call_id text,
	attempt integer,
	finding tool_claims.finding,
	evidence jsonb,
	result json DEFAULT NULL,
	error json DEFAULT NULL,
	new_effect_key boolean DEFAULT false)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_reconcile'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.reconcile(text, text, integer, tool_claims.finding, jsonb, json, json, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.reconcile(text, text, integer, tool_claims.finding, jsonb, json, json, boolean)
	IS 'Ends an uncertain attempt by what somebody found out, with the evidence for it; grants nothing';

CREATE FUNCTION tool_claims.assert_claim(
	task_id text,
	tool_call_id text,
	attempt integer)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_assert_claim'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.assert_claim(text, text, integer) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.assert_claim(text, text, integer)
	IS 'Raises unless the attempt holds the claim, and locks the record until the transaction ends';

CREATE FUNCTION tool_claims.current_claim()
	RETURNS SETOF tool_claims.claim_status
	AS 'MODULE_PATHNAME', 'tc_current_claim'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
REVOKE ALL ON FUNCTION tool_claims.current_claim() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.current_claim()
	IS 'The claim under which this transaction acts, no row if none';

CREATE FUNCTION tool_claims.require_claim(
	tool_name text,
	tool_server text DEFAULT '')
	RETURNS tool_claims.claim_status
	AS 'MODULE_PATHNAME', 'tc_require_claim'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.require_claim(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.require_claim(text, text)
	IS 'The claim of this tool under which this transaction acts; raises TC010 where there is none';

CREATE FUNCTION tool_claims.status(
	task_id text,
	tool_call_id text)
	RETURNS SETOF tool_claims.claim_status
	AS 'MODULE_PATHNAME', 'tc_status'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
REVOKE ALL ON FUNCTION tool_claims.status(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.status(text, text)
	IS 'The record of a pair as it reads now, no row if none';

CREATE FUNCTION tool_claims.find_claims(
	effect_key text)
	RETURNS SETOF tool_claims.claim_status
	AS 'MODULE_PATHNAME', 'tc_find_claims'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
REVOKE ALL ON FUNCTION tool_claims.find_claims(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.find_claims(text)
	IS 'The records whose destination was handed this effect key';

CREATE FUNCTION tool_claims.execute(
	task_id text,
	tool_call_id text,
	tool_name text,
	input tool_claims.canonical_json,
	handler regprocedure,
	operation_id text DEFAULT NULL,
	wait interval DEFAULT '10 s',
	tool_server text DEFAULT '')
	RETURNS json
	AS 'MODULE_PATHNAME', 'tc_execute'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.execute(text, text, text, tool_claims.canonical_json, regprocedure, text, interval, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.execute(text, text, text, tool_claims.canonical_json, regprocedure, text, interval, text)
	IS 'Claims, runs handler(input) and completes in one transaction; returns the stored result, whoever did the work';

/*
 * Proposals, decisions, reservations
 */

CREATE FUNCTION tool_claims.propose(
	task_id text,
	tool_call_id text,
	tool_name text,
	input tool_claims.canonical_json,
	actor text,
	project text DEFAULT '',
	tool_server text DEFAULT '',
	schema_version text DEFAULT '',
	policy_version text DEFAULT NULL,
	operation_id text DEFAULT NULL,
	execution_id uuid DEFAULT NULL,
	expires_in interval DEFAULT NULL,
	summary text DEFAULT NULL,
	supersedes text DEFAULT NULL)
	RETURNS tool_claims.proposal_result
	AS 'MODULE_PATHNAME', 'tc_propose'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.propose(text, text, text, tool_claims.canonical_json, text, text, text, text, text, text, uuid, interval, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.propose(text, text, text, tool_claims.canonical_json, text, text, text, text, text, text, uuid, interval, text, text)
	IS 'Records one exact action for people to decide about; runs nothing';

CREATE FUNCTION tool_claims.approve(
	task_id text,
	tool_call_id text,
	binding_digest tool_claims.sha256_digest,
	comment text DEFAULT NULL,
	use_within interval DEFAULT NULL)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_approve'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.approve(text, text, tool_claims.sha256_digest, text, interval) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.approve(text, text, tool_claims.sha256_digest, text, interval)
	IS 'The vote of the session user for the action that has this digest';

CREATE FUNCTION tool_claims.reject(
	task_id text,
	tool_call_id text,
	binding_digest tool_claims.sha256_digest,
	comment text DEFAULT NULL)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_reject'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.reject(text, text, tool_claims.sha256_digest, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.reject(text, text, tool_claims.sha256_digest, text)
	IS 'The vote of the session user against a proposal, which ends it';

CREATE FUNCTION tool_claims.revoke(
	task_id text,
	tool_call_id text,
	reason text)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_revoke'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.revoke(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.revoke(text, text, text)
	IS 'Takes an approval back before it is used; for any eligible approver';

CREATE FUNCTION tool_claims.approve_as(
	approver text,
	task_id text,
	tool_call_id text,
	binding_digest tool_claims.sha256_digest,
	comment text DEFAULT NULL,
	use_within interval DEFAULT NULL)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_approve_as'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.approve_as(text, text, text, tool_claims.sha256_digest, text, interval) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.approve_as(text, text, text, tool_claims.sha256_digest, text, interval)
	IS 'approve for a person whom the calling service has authenticated';

CREATE FUNCTION tool_claims.reject_as(
	approver text,
	task_id text,
	tool_call_id text,
	binding_digest tool_claims.sha256_digest,
	comment text DEFAULT NULL)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_reject_as'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.reject_as(text, text, text, tool_claims.sha256_digest, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.reject_as(text, text, text, tool_claims.sha256_digest, text)
	IS 'reject for a person whom the calling service has authenticated';

CREATE FUNCTION tool_claims.revoke_as(
	approver text,
	task_id text,
	tool_call_id text,
	reason text)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_revoke_as'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.revoke_as(text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.revoke_as(text, text, text, text)
	IS 'revoke for a person whom the calling service has authenticated';

CREATE FUNCTION tool_claims.withdraw(
	task_id text,
	tool_call_id text,
	reason text)
	RETURNS tool_claims.decision_result
	AS 'MODULE_PATHNAME', 'tc_withdraw'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.withdraw(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.withdraw(text, text, text)
	IS 'Takes back what the calling role proposed: one proposal, or with a null tool_call_id all of the task';

CREATE FUNCTION tool_claims.reserve(
	task_id text,
	tool_call_id text,
	execution_id uuid,
	tool_name text,
	input tool_claims.canonical_json,
	actor text,
	project text DEFAULT '',
	tool_server text DEFAULT '',
	schema_version text DEFAULT '',
	policy_version text DEFAULT NULL,
	operation_id text DEFAULT NULL,
	lease interval DEFAULT NULL,
	wait interval DEFAULT '0',
	request_id uuid DEFAULT NULL,
	dispatched boolean DEFAULT true)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_reserve'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.reserve(text, text, uuid, text, tool_claims.canonical_json, text, text, text, text, text, text, interval, interval, uuid, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.reserve(text, text, uuid, text, tool_claims.canonical_json, text, text, text, text, text, text, interval, interval, uuid, boolean)
	IS 'Acquires the claim of an approved proposal, once, for one execution and for exactly what was approved';

CREATE FUNCTION tool_claims.reserve_by_digest(
	task_id text,
	tool_call_id text,
	execution_id uuid,
	binding_digest tool_claims.sha256_digest,
	lease interval DEFAULT NULL,
	wait interval DEFAULT '0',
	request_id uuid DEFAULT NULL,
	dispatched boolean DEFAULT true)
	RETURNS tool_claims.claim_result
	AS 'MODULE_PATHNAME', 'tc_reserve_by_digest'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.reserve_by_digest(text, text, uuid, tool_claims.sha256_digest, interval, interval, uuid, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.reserve_by_digest(text, text, uuid, tool_claims.sha256_digest, interval, interval, uuid, boolean)
	IS 'reserve bound by the digest; with acquired, input is the approved input to run with';

CREATE FUNCTION tool_claims.review(
	task_id text,
	tool_call_id text)
	RETURNS tool_claims.proposal_review
	AS 'MODULE_PATHNAME', 'tc_review'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.review(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.review(text, text)
	IS 'The whole action of a proposal, nothing cut';

CREATE FUNCTION tool_claims.add_approver(
	principal text,
	grp text DEFAULT '',
	project text DEFAULT '*',
	tool_server text DEFAULT '*',
	tool_name text DEFAULT '*')
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_add_approver'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.add_approver(text, text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.add_approver(text, text, text, text, text)
	IS 'Registers who may decide about proposals';

CREATE FUNCTION tool_claims.remove_approver(
	principal text,
	grp text DEFAULT '',
	project text DEFAULT '*',
	tool_server text DEFAULT '*',
	tool_name text DEFAULT '*')
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_remove_approver'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.remove_approver(text, text, text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.remove_approver(text, text, text, text, text)
	IS 'Ends a registration; votes given under it stop to count at once';

/*
 * Results of tasks, and marks of content
 */

CREATE FUNCTION tool_claims.expect_result(
	task_id text,
	deadline timestamptz,
	check_function regprocedure DEFAULT NULL,
	correlation jsonb DEFAULT '{}',
	mark_context text DEFAULT NULL)
	RETURNS tool_claims.result_gate
	AS 'MODULE_PATHNAME', 'tc_expect_result'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.expect_result(text, timestamptz, regprocedure, jsonb, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.expect_result(text, timestamptz, regprocedure, jsonb, text)
	IS 'Says what result a task is to deliver, and until when';

CREATE FUNCTION tool_claims.offer_result(
	task_id text,
	status tool_claims.task_status,
	result json DEFAULT NULL,
	content text DEFAULT NULL,
	mark text DEFAULT NULL,
	correlation jsonb DEFAULT '{}')
	RETURNS tool_claims.result_gate
	AS 'MODULE_PATHNAME', 'tc_offer_result'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.offer_result(text, tool_claims.task_status, json, text, text, jsonb) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.offer_result(text, tool_claims.task_status, json, text, text, jsonb)
	IS 'Judges the result of a task by what is expected of it';

CREATE FUNCTION tool_claims.gate(
	task_id text)
	RETURNS SETOF tool_claims.result_gate
	AS 'MODULE_PATHNAME', 'tc_gate'
	LANGUAGE C VOLATILE PARALLEL UNSAFE ROWS 1;
REVOKE ALL ON FUNCTION tool_claims.gate(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.gate(text)
	IS 'The gate of a task as it reads now, no row if none';

CREATE FUNCTION tool_claims.require_accepted(
	task_id text)
	RETURNS json
	AS 'MODULE_PATHNAME', 'tc_require_accepted'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.require_accepted(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.require_accepted(text)
	IS 'The accepted result of a task; raises TC011 where there is none';

CREATE FUNCTION tool_claims.add_mark_key(
	key_id text,
	secret bytea,
	algorithm text DEFAULT 'hmac-sha256')
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_add_mark_key'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.add_mark_key(text, bytea, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.add_mark_key(text, bytea, text)
	IS 'Adds a key of marks: hmac-sha256, or ed25519, of which a public key alone only verifies';

CREATE FUNCTION tool_claims.retire_mark_key(
	key_id text)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_retire_mark_key'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.retire_mark_key(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.retire_mark_key(text)
	IS 'Ends marking with a key; its marks still verify';

CREATE FUNCTION tool_claims.revoke_mark_key(
	key_id text)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_revoke_mark_key'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.revoke_mark_key(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.revoke_mark_key(text)
	IS 'Ends a key; its marks are invalid from then on';

CREATE FUNCTION tool_claims.mark_content(
	content text,
	key_id text,
	context text DEFAULT '')
	RETURNS text
	AS 'MODULE_PATHNAME', 'tc_mark_content'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.mark_content(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.mark_content(text, text, text)
	IS 'The detached mark of content in a context';

CREATE FUNCTION tool_claims.verify_mark(
	content text,
	mark text,
	context text DEFAULT '',
	OUT verdict tool_claims.mark_verdict,
	OUT reason text)
	RETURNS record
	AS 'MODULE_PATHNAME', 'tc_verify_mark'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.verify_mark(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.verify_mark(text, text, text)
	IS 'What a mark says about content in a context; no input is an error';

/*
 * Evidence
 */

CREATE FUNCTION tool_claims.evidence(
	task_id text,
	tool_call_id text,
	OUT seq integer,
	OUT at timestamptz,
	OUT kind text,
	OUT attempt integer,
	OUT role text,
	OUT principal text,
	OUT detail jsonb,
	OUT detail_digest tool_claims.sha256_digest,
	OUT previous tool_claims.sha256_digest,
	OUT hash tool_claims.sha256_digest)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'tc_evidence'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.evidence(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.evidence(text, text)
	IS 'The events of a key, oldest first';

CREATE FUNCTION tool_claims.verify_evidence(
	task_id text,
	tool_call_id text,
	expected_head tool_claims.sha256_digest DEFAULT NULL,
	OUT ok boolean,
	OUT broken_at integer,
	OUT reason text)
	RETURNS record
	AS 'MODULE_PATHNAME', 'tc_verify_evidence'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.verify_evidence(text, text, tool_claims.sha256_digest) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.verify_evidence(text, text, tool_claims.sha256_digest)
	IS 'Checks the chain of a key, and that it holds an event known from elsewhere';

CREATE FUNCTION tool_claims.evidence_heads(
	OUT organization text,
	OUT task_id text,
	OUT tool_call_id text,
	OUT seq integer,
	OUT hash tool_claims.sha256_digest)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'tc_evidence_heads'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.evidence_heads() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.evidence_heads()
	IS 'The events that no other event follows, to be kept elsewhere';

CREATE FUNCTION tool_claims.timeline(
	task_id text,
	tool_call_id text)
	RETURNS SETOF text
	AS 'MODULE_PATHNAME', 'tc_timeline'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.timeline(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.timeline(text, text)
	IS 'Draws the history of a key, one line an event';

/*
 * Administration
 */

CREATE FUNCTION tool_claims.set_tool_policy(
	tool_name text,
	tool_server text DEFAULT '*',
	enabled boolean DEFAULT NULL,
	effect text DEFAULT NULL,
	approvals_required integer DEFAULT NULL,
	approval_rule regprocedure DEFAULT NULL,
	approver_groups text[] DEFAULT NULL,
	allow_self_approval boolean DEFAULT NULL,
	policy_version text DEFAULT NULL,
	on_lease_expiry text DEFAULT NULL,
	max_attempts integer DEFAULT NULL,
	operation_required boolean DEFAULT NULL,
	proposal_ttl interval DEFAULT NULL,
	keep_input boolean DEFAULT NULL,
	input_check regprocedure DEFAULT NULL,
	retention interval DEFAULT NULL,
	log text DEFAULT NULL,
	reset text[] DEFAULT NULL)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_set_tool_policy'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.set_tool_policy(text, text, boolean, text, integer, regprocedure, text[], boolean, text, text, integer, boolean, interval, boolean, regprocedure, interval, text, text[]) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.set_tool_policy(text, text, boolean, text, integer, regprocedure, text[], boolean, text, text, integer, boolean, interval, boolean, regprocedure, interval, text, text[])
	IS 'Changes the members of a policy that are named and keeps all others';

CREATE FUNCTION tool_claims.drop_tool_policy(
	tool_name text,
	tool_server text DEFAULT '*')
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_drop_tool_policy'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.drop_tool_policy(text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.drop_tool_policy(text, text)
	IS 'Removes the policy of a tool';

CREATE FUNCTION tool_claims.grant_duty(
	role regrole,
	duty text)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_grant_duty'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.grant_duty(regrole, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.grant_duty(regrole, text)
	IS 'Grants a role what a duty may';

CREATE FUNCTION tool_claims.revoke_duty(
	role regrole,
	duty text)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_revoke_duty'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.revoke_duty(regrole, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.revoke_duty(regrole, text)
	IS 'Takes from a role what a duty may and no other duty of the role gives';

CREATE FUNCTION tool_claims.sweep(
	max_rows integer DEFAULT 1000)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_sweep'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.sweep(integer) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.sweep(integer)
	IS 'Writes down which leases have expired, and returns how many it did';

CREATE FUNCTION tool_claims.prune(
	older_than interval DEFAULT NULL,
	max_rows integer DEFAULT 1000,
	tombstones boolean DEFAULT true)
	RETURNS integer
	AS 'MODULE_PATHNAME', 'tc_prune'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.prune(interval, integer, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.prune(interval, integer, boolean)
	IS 'Takes away final records that ended long ago, and returns how many it did';

CREATE FUNCTION tool_claims.redact(
	task_id text,
	tool_call_id text,
	reason text)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_redact'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.redact(text, text, text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.redact(text, text, text)
	IS 'Takes away what a final record and its events tell; digests stay';

CREATE FUNCTION tool_claims.accept_recovery(
	lost_since timestamptz)
	RETURNS void
	AS 'MODULE_PATHNAME', 'tc_accept_recovery'
	LANGUAGE C VOLATILE PARALLEL UNSAFE COST 1000;
REVOKE ALL ON FUNCTION tool_claims.accept_recovery(timestamptz) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.accept_recovery(timestamptz)
	IS 'Lets grants go on after a promotion or restore: leased claims in progress since then become uncertain, unused approvals are revoked';

CREATE FUNCTION tool_claims.doctor(
	OUT level text,
	OUT finding text,
	OUT advice text)
	RETURNS SETOF record
	AS 'MODULE_PATHNAME', 'tc_doctor'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.doctor() FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.doctor()
	IS 'What weakens the promises on this server';

/*
 * Views, of the organization of the session only
 */

-- the stored records of the organization, with what is computed from them
CREATE VIEW tool_claims.record_readings WITH (security_barrier) AS
	SELECT
		r.*,
		tool_claims.state_now(r.state, r.leased, r.reacquire, r.dispatched_at,
							  r.lease_expires_at) AS reads,
		tool_claims.effect_key(r.effect_key, r.operation_id, r.organization,
							   r.task_id, r.tool_call_id) AS handed_key,
		r.held_role
			|| COALESCE(', session user ' || r.held_session, '')
			|| COALESCE(' (' || r.held_from || ')', '') AS held_by
	FROM (
		-- two branches, so that the first one can use the primary key
		SELECT * FROM tool_claims.claim_records o
		WHERE o.organization = tool_claims.session_organization()
		UNION ALL
		SELECT * FROM tool_claims.claim_records a
		WHERE tool_claims.session_organization() = '*'
	) r;
COMMENT ON VIEW tool_claims.record_readings
	IS 'Stored claim records with what is computed from them; for the other views only';

CREATE VIEW tool_claims.claims WITH (security_barrier) AS
	SELECT
		r.organization,
		r.task_id,
		r.tool_call_id,
		r.tool_server,
		r.tool_name,
		r.input_digest,
		r.operation_id,
		r.handed_key AS effect_key,
		r.reads AS state,
		r.attempt,
		r.held_by,
		r.claimed_at,
		r.dispatched_at,
		r.lease_expires_at,
		r.not_after,
		r.finished_at,
		r.external_ref
	FROM tool_claims.record_readings r;
COMMENT ON VIEW tool_claims.claims
	IS 'Claim records as they read now, without input, result and error';

CREATE VIEW tool_claims.proposals WITH (security_barrier) AS
	SELECT
		p.organization,
		p.task_id,
		p.tool_call_id,
		p.tool_server,
		p.tool_name,
		p.input_digest,
		p.actor,
		p.project,
		p.schema_version,
		p.policy_version,
		p.operation_id,
		p.execution_id,
		p.expires_at,
		p.binding_digest,
		tool_claims.proposal_state_now(p.state, p.expires_at) AS state,
		p.summary,
		p.supersedes,
		tool_claims.approvals_now(p.organization, p.task_id, p.tool_call_id) AS approvals,
		p.approvals_required,
		p.approver_groups,
		p.proposed_by,
		p.proposed_at,
		p.use_by,
		COALESCE(p.ended_at, CASE WHEN p.expires_at <= tool_claims.clock() THEN p.expires_at END) AS ended_at,
		p.ended_by
	FROM (
		SELECT * FROM tool_claims.proposal_records o
		WHERE o.organization = tool_claims.session_organization()
		UNION ALL
		SELECT * FROM tool_claims.proposal_records a
		WHERE tool_claims.session_organization() = '*'
	) p;
COMMENT ON VIEW tool_claims.proposals
	IS 'Proposals as they read now, without their input';

CREATE VIEW tool_claims.inbox WITH (security_barrier) AS
	SELECT
		p.organization,
		p.task_id,
		p.tool_call_id,
		p.tool_server,
		p.tool_name,
		p.actor,
		p.project,
		p.summary,
		p.binding_digest,
		p.approvals,
		p.approvals_required,
		p.approver_groups,
		p.proposed_by,
		p.proposed_at,
		tool_claims.clock() - p.proposed_at AS age,
		p.expires_at,
		p.expires_at - tool_claims.clock() AS time_left,
		(SELECT count(*)::integer FROM tool_claims.proposals e
		 WHERE e.organization = p.organization
		 AND e.task_id = p.task_id
		 AND e.tool_server = p.tool_server
		 AND e.tool_name = p.tool_name
		 AND e.input_digest::bytea = p.input_digest::bytea
		 AND e.state = 'pending') AS equal_pending
	FROM tool_claims.proposals p
	WHERE p.state = 'pending'
	AND tool_claims.can_be_decided(p.organization, p.task_id, p.tool_call_id);
COMMENT ON VIEW tool_claims.inbox
	IS 'Proposals that can still be decided; equal_pending counts those of the task that ask for the same action, this one included';

CREATE VIEW tool_claims.ready WITH (security_barrier) AS
	SELECT
		p.organization,
		p.task_id,
		p.tool_call_id,
		p.tool_server,
		p.tool_name,
		p.actor,
		p.project,
		p.operation_id,
		p.execution_id,
		p.binding_digest,
		p.expires_at,
		COALESCE(p.use_by, p.expires_at) AS use_by
	FROM tool_claims.proposals p
	WHERE (p.state = 'approved'
		   OR (p.organization, p.task_id, p.tool_call_id) IN (
			-- given back by its execution, which may have it again
			SELECT r.organization, r.task_id, r.tool_call_id
			FROM tool_claims.record_readings r
			WHERE r.open_since IS NOT NULL AND r.reads = 'released'))
	AND tool_claims.can_be_reserved(p.organization, p.task_id, p.tool_call_id);
COMMENT ON VIEW tool_claims.ready
	IS 'Proposals that can be reserved at this moment, for the first time or again after a release: the work list of who acts';

CREATE FUNCTION tool_claims.inbox_for(
	principal text)
	RETURNS SETOF tool_claims.inbox
	AS 'MODULE_PATHNAME', 'tc_inbox_for'
	LANGUAGE C VOLATILE PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tool_claims.inbox_for(text) FROM PUBLIC;
COMMENT ON FUNCTION tool_claims.inbox_for(text)
	IS 'Proposals about which this person can vote now, oldest first';

CREATE VIEW tool_claims.tool_policies WITH (security_barrier) AS
	SELECT
		p.organization,
		p.tool_name,
		p.tool_server,
		COALESCE(p.enabled, true) AS enabled,
		COALESCE(p.effect, 'any') AS effect,
		COALESCE(p.approvals_required, 0) AS approvals_required,
		p.approval_rule,
		p.approver_groups,
		COALESCE(p.allow_self_approval, false) AS allow_self_approval,
		p.policy_version,
		COALESCE(p.on_lease_expiry, 'uncertain') AS on_lease_expiry,
		p.max_attempts,
		COALESCE(p.operation_required, false) AS operation_required,
		COALESCE(p.proposal_ttl, '1 day') AS proposal_ttl,
		COALESCE(p.keep_input, false) AS keep_input,
		p.input_check,
		p.retention,
		COALESCE(p.log, 'exceptions') AS log
	FROM tool_claims.policies p
	WHERE p.organization IN (tool_claims.session_organization(), '')
	OR tool_claims.session_organization() = '*';
COMMENT ON VIEW tool_claims.tool_policies
	IS 'Policies that calls of the organization can have, with their defaults filled in';

CREATE VIEW tool_claims.registered_approvers WITH (security_barrier) AS
	SELECT
		a.organization,
		a.principal,
		a.grp,
		a.project,
		a.tool_server,
		a.tool_name
	FROM tool_claims.approvers a
	WHERE a.organization = tool_claims.session_organization()
	OR tool_claims.session_organization() = '*';
COMMENT ON VIEW tool_claims.registered_approvers
	IS 'Who may decide about proposals, as add_approver was told';

CREATE VIEW tool_claims.registered_mark_keys WITH (security_barrier) AS
	SELECT
		k.organization,
		k.key_id,
		k.algorithm,
		CASE k.state WHEN 'a' THEN 'active' WHEN 'r' THEN 'retired' ELSE 'revoked' END AS state,
		k.secret IS NOT NULL AS can_mark,
		k.added_at
	FROM tool_claims.mark_keys k
	WHERE k.organization = tool_claims.session_organization()
	OR tool_claims.session_organization() = '*';
COMMENT ON VIEW tool_claims.registered_mark_keys
	IS 'Keys of content marks, without their secrets';

CREATE VIEW tool_claims.granted_duties AS
	SELECT d.role_name, d.duty
	FROM tool_claims.duties d;
COMMENT ON VIEW tool_claims.granted_duties
	IS 'Which role was granted which duty';

CREATE VIEW tool_claims.gates WITH (security_barrier) AS
	SELECT
		g.organization,
		g.task_id,
		tool_claims.gate_verdict_now(g.verdict, g.deadline) AS verdict,
		CASE
			WHEN g.verdict IN ('p', 't') AND g.deadline <= tool_claims.clock()
			THEN 'deadline_passed' ELSE g.reason
		END AS reason,
		g.deadline,
		g.merged AS correlation,
		g.check_function,
		g.mark_context,
		g.offered_status,
		g.expected_by,
		g.expected_at,
		g.decided_at
	FROM (
		SELECT * FROM tool_claims.result_gates o
		WHERE o.organization = tool_claims.session_organization()
		UNION ALL
		SELECT * FROM tool_claims.result_gates a
		WHERE tool_claims.session_organization() = '*'
	) g;
COMMENT ON VIEW tool_claims.gates
	IS 'Gates of results as they read now, without the results';

CREATE VIEW tool_claims.stats WITH (security_barrier) AS
	SELECT
		r.organization,
		r.tool_server,
		r.tool_name,
		r.reads AS state,
		count(*) AS claims,
		min(r.claimed_at) AS oldest,
		max(r.claimed_at) AS newest
	FROM tool_claims.record_readings r
	GROUP BY r.organization, r.tool_server, r.tool_name, r.reads;
COMMENT ON VIEW tool_claims.stats
	IS 'How many claims each tool has in each state';

CREATE VIEW tool_claims.attention WITH (security_barrier) AS
	SELECT
		f.organization,
		f.kind,
		f.task_id,
		f.tool_call_id,
		f.tool_server,
		f.tool_name,
		f.attempt,
		f.effect_key,
		f.external_ref,
		f.held_by,
		f.since,
		tool_claims.clock() - f.since AS age,
		f.reason
	FROM (
		-- what nobody knows, and when it became so
		SELECT
			r.organization,
			CASE r.state WHEN 'u' THEN 'uncertain' ELSE 'lease_expired' END AS kind,
			r.task_id, r.tool_call_id, r.tool_server, r.tool_name, r.attempt,
			r.handed_key AS effect_key, r.external_ref, r.held_by,
			COALESCE((
				SELECT max(e.at) FROM tool_claims.events e
				WHERE e.organization = r.organization
				AND e.task_id = r.task_id
				AND e.tool_call_id = r.tool_call_id
				AND e.attempt = r.attempt
				AND e.kind = 'uncertain'), r.lease_expires_at) AS since,
			CASE WHEN r.ended_by IN ('h', 'm') THEN 'reported' ELSE 'lease_expired' END AS reason
		FROM tool_claims.record_readings r
		WHERE r.open_since IS NOT NULL AND r.reads = 'uncertain'
		UNION ALL
		-- what nobody may try again
		SELECT
			r.organization, 'attempts_exhausted',
			r.task_id, r.tool_call_id, r.tool_server, r.tool_name, r.attempt,
			r.handed_key, r.external_ref, r.held_by,
			COALESCE(r.finished_at, r.lease_expires_at),
			'attempts_exhausted'
		FROM tool_claims.record_readings r
		WHERE r.open_since IS NOT NULL AND r.reads = 'released'
		AND r.attempt >= tool_claims.max_attempts(r.organization, r.tool_server, r.tool_name)
		UNION ALL
		-- what came after the authority had gone on, and other data under a key
		SELECT
			e.organization, e.kind,
			e.task_id, e.tool_call_id, r.tool_server, r.tool_name,
			COALESCE(max(e.attempt), r.attempt),
			r.handed_key, r.external_ref, r.held_by,
			max(e.at),
			CASE e.kind
				WHEN 'late_report' THEN 'record reads ' || COALESCE(r.reads::text, 'none')
				ELSE string_agg(DISTINCT COALESCE(e.detail ->> 'reason', 'redacted'), ', ')
			END
		FROM tool_claims.events e
		LEFT JOIN tool_claims.record_readings r
		ON r.organization = e.organization
		AND r.task_id = e.task_id
		AND r.tool_call_id = e.tool_call_id
		WHERE e.kind IN ('conflict', 'late_report')
		AND (e.organization = tool_claims.session_organization()
			 OR tool_claims.session_organization() = '*')
		GROUP BY e.organization, e.kind, e.task_id, e.tool_call_id,
			r.tool_server, r.tool_name, r.attempt, r.handed_key,
			r.external_ref, r.held_by, r.reads
		UNION ALL
		-- what waits for a decision
		SELECT
			i.organization, 'approval_due',
			i.task_id, i.tool_call_id, i.tool_server, i.tool_name,
			NULL, NULL, NULL, i.proposed_by, i.proposed_at,
			'until ' || to_char(i.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
		FROM tool_claims.inbox i
		UNION ALL
		-- results that did not come
		SELECT
			g.organization, 'gate_overdue',
			g.task_id, NULL, NULL, NULL, NULL, NULL, NULL, g.expected_by,
			g.deadline, 'deadline_passed'
		FROM tool_claims.gates g
		WHERE g.decided_at IS NULL AND g.verdict = 'rejected'
		UNION ALL
		-- a server that is not the one that granted
		SELECT
			tool_claims.session_organization(), 'recovery',
			NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			CASE
				WHEN i.changed_from IS NOT NULL AND i.accepted_at IS NULL
				THEN i.since ELSE tool_claims.clock()
			END,
			'the server has changed its identity'
		FROM tool_claims.server_identity i
		WHERE tool_claims.recovery_is_pending()
	) f;
COMMENT ON VIEW tool_claims.attention
	IS 'What a person should look at: uncertain and expired claims, exhausted attempts, late reports, conflicts, open decisions, overdue results, an unaccepted recovery';

/*
 * Duties
 */

INSERT INTO tool_claims.duty_privileges (duty, kind, name, privilege) VALUES
	('administrator', 'relation', 'registered_approvers', 'SELECT'),
	('auditor', 'relation', 'registered_approvers', 'SELECT'),
	('administrator', 'relation', 'registered_mark_keys', 'SELECT'),
	('auditor', 'relation', 'registered_mark_keys', 'SELECT'),
	('administrator', 'relation', 'granted_duties', 'SELECT'),
	('auditor', 'relation', 'granted_duties', 'SELECT'),
	('*', 'function', 'recovery_is_pending', 'EXECUTE'),
	('administrator', 'relation', 'tool_policies', 'SELECT'),
	('auditor', 'relation', 'tool_policies', 'SELECT'),
	('*', 'function', 'gate_verdict_now', 'EXECUTE'),
	('worker', 'function', 'expect_result', 'EXECUTE'),
	('worker', 'function', 'offer_result', 'EXECUTE'),
	('worker', 'function', 'gate', 'EXECUTE'),
	('worker', 'function', 'require_accepted', 'EXECUTE'),
	('worker', 'function', 'mark_content', 'EXECUTE'),
	('worker', 'function', 'verify_mark', 'EXECUTE'),
	('auditor', 'function', 'doctor', 'EXECUTE'),
	('auditor', 'relation', 'gates', 'SELECT'),
	('auditor', 'relation', 'stats', 'SELECT'),
	('administrator', 'function', 'add_mark_key', 'EXECUTE'),
	('administrator', 'function', 'retire_mark_key', 'EXECUTE'),
	('administrator', 'function', 'revoke_mark_key', 'EXECUTE'),
	('administrator', 'function', 'accept_recovery', 'EXECUTE'),
	('administrator', 'function', 'doctor', 'EXECUTE'),
	('backup', 'relation', 'result_gates', 'SELECT'),
	('backup', 'relation', 'mark_keys', 'SELECT'),
	('backup', 'relation', 'births', 'SELECT'),
	('backup', 'relation', 'server_identity', 'SELECT'),
	('*', 'function', 'visible_text', 'EXECUTE'),
	('*', 'function', 'invisible_characters', 'EXECUTE'),
	('*', 'function', 'proposal_state_now', 'EXECUTE'),
	('*', 'function', 'approvals_now', 'EXECUTE'),
	('*', 'function', 'can_be_decided', 'EXECUTE'),
	('*', 'function', 'can_be_reserved', 'EXECUTE'),
	('*', 'function', 'can_vote', 'EXECUTE'),
	('worker', 'function', 'reserve', 'EXECUTE'),
	('worker', 'function', 'reserve_by_digest', 'EXECUTE'),
	('worker', 'relation', 'ready', 'SELECT'),
	('proposer', 'function', 'propose', 'EXECUTE'),
	('proposer', 'function', 'withdraw', 'EXECUTE'),
	('proposer', 'function', 'status', 'EXECUTE'),
	('approver', 'function', 'inbox_for', 'EXECUTE'),
	('approver', 'function', 'review', 'EXECUTE'),
	('approver', 'function', 'approve', 'EXECUTE'),
	('approver', 'function', 'reject', 'EXECUTE'),
	('approver', 'function', 'revoke', 'EXECUTE'),
	('approver', 'relation', 'inbox', 'SELECT'),
	('approval_service', 'function', 'inbox_for', 'EXECUTE'),
	('approval_service', 'function', 'review', 'EXECUTE'),
	('approval_service', 'function', 'approve', 'EXECUTE'),
	('approval_service', 'function', 'reject', 'EXECUTE'),
	('approval_service', 'function', 'revoke', 'EXECUTE'),
	('approval_service', 'function', 'approve_as', 'EXECUTE'),
	('approval_service', 'function', 'reject_as', 'EXECUTE'),
	('approval_service', 'function', 'revoke_as', 'EXECUTE'),
	('approval_service', 'relation', 'inbox', 'SELECT'),
	('auditor', 'relation', 'proposals', 'SELECT'),
	('auditor', 'relation', 'inbox', 'SELECT'),
	('auditor', 'relation', 'ready', 'SELECT'),
	('administrator', 'function', 'add_approver', 'EXECUTE'),
	('administrator', 'function', 'remove_approver', 'EXECUTE'),
	('backup', 'relation', 'proposal_records', 'SELECT'),
	('backup', 'relation', 'votes', 'SELECT'),
	('backup', 'relation', 'approvers', 'SELECT'),
	('backup', 'relation', 'policy_numbers', 'SELECT'),
	('*', 'schema', 'tool_claims', 'USAGE'),
	('*', 'function', 'canonical_json_cmp', 'EXECUTE'),
	('*', 'function', 'canonical_json_eq', 'EXECUTE'),
	('*', 'function', 'canonical_json_from_json', 'EXECUTE'),
	('*', 'function', 'canonical_json_from_jsonb', 'EXECUTE'),
	('*', 'function', 'canonical_json_from_text', 'EXECUTE'),
	('*', 'function', 'canonical_json_ge', 'EXECUTE'),
	('*', 'function', 'canonical_json_gt', 'EXECUTE'),
	('*', 'function', 'canonical_json_hash', 'EXECUTE'),
	('*', 'function', 'canonical_json_hash_extended', 'EXECUTE'),
	('*', 'function', 'canonical_json_in', 'EXECUTE'),
	('*', 'function', 'canonical_json_le', 'EXECUTE'),
	('*', 'function', 'canonical_json_lt', 'EXECUTE'),
	('*', 'function', 'canonical_json_ne', 'EXECUTE'),
	('*', 'function', 'canonical_json_out', 'EXECUTE'),
	('*', 'function', 'canonical_json_recv', 'EXECUTE'),
	('*', 'function', 'canonical_json_send', 'EXECUTE'),
	('*', 'function', 'canonical_json_to_json', 'EXECUTE'),
	('*', 'function', 'canonical_json_to_jsonb', 'EXECUTE'),
	('*', 'function', 'canonical_json_to_text', 'EXECUTE'),
	('*', 'function', 'digest', 'EXECUTE'),
	('*', 'function', 'is_portable', 'EXECUTE'),
	('*', 'function', 'sha256_digest_cmp', 'EXECUTE'),
	('*', 'function', 'sha256_digest_eq', 'EXECUTE'),
	('*', 'function', 'sha256_digest_from_bytea', 'EXECUTE'),
	('*', 'function', 'sha256_digest_ge', 'EXECUTE'),
	('*', 'function', 'sha256_digest_gt', 'EXECUTE'),
	('*', 'function', 'sha256_digest_hash', 'EXECUTE'),
	('*', 'function', 'sha256_digest_hash_extended', 'EXECUTE'),
	('*', 'function', 'sha256_digest_in', 'EXECUTE'),
	('*', 'function', 'sha256_digest_le', 'EXECUTE'),
	('*', 'function', 'sha256_digest_lt', 'EXECUTE'),
	('*', 'function', 'sha256_digest_ne', 'EXECUTE'),
	('*', 'function', 'sha256_digest_out', 'EXECUTE'),
	('*', 'function', 'sha256_digest_recv', 'EXECUTE'),
	('*', 'function', 'sha256_digest_send', 'EXECUTE'),
	('*', 'function', 'sha256_digest_to_bytea', 'EXECUTE'),
	('*', 'function', 'clock', 'EXECUTE'),
	('*', 'function', 'effect_key', 'EXECUTE'),
	('*', 'function', 'max_attempts', 'EXECUTE'),
	('*', 'function', 'session_organization', 'EXECUTE'),
	('*', 'function', 'state_now', 'EXECUTE'),
	('worker', 'function', 'claim', 'EXECUTE'),
	('worker', 'function', 'dispatch', 'EXECUTE'),
	('worker', 'function', 'renew', 'EXECUTE'),
	('worker', 'function', 'complete', 'EXECUTE'),
	('worker', 'function', 'fail', 'EXECUTE'),
	('worker', 'function', 'release', 'EXECUTE'),
	('worker', 'function', 'mark_uncertain', 'EXECUTE'),
	('worker', 'function', 'report_late', 'EXECUTE'),
	('worker', 'function', 'assert_claim', 'EXECUTE'),
	('worker', 'function', 'current_claim', 'EXECUTE'),
	('worker', 'function', 'require_claim', 'EXECUTE'),
	('worker', 'function', 'execute', 'EXECUTE'),
	('worker', 'function', 'status', 'EXECUTE'),
	('worker', 'function', 'find_claims', 'EXECUTE'),
	('reconciler', 'function', 'status', 'EXECUTE'),
	('reconciler', 'function', 'find_claims', 'EXECUTE'),
	('reconciler', 'function', 'evidence', 'EXECUTE'),
	('reconciler', 'function', 'timeline', 'EXECUTE'),
	('reconciler', 'function', 'mark_uncertain', 'EXECUTE'),
	('reconciler', 'function', 'reconcile', 'EXECUTE'),
	('reconciler', 'relation', 'attention', 'SELECT'),
	('auditor', 'function', 'evidence', 'EXECUTE'),
	('auditor', 'function', 'verify_evidence', 'EXECUTE'),
	('auditor', 'function', 'evidence_heads', 'EXECUTE'),
	('auditor', 'function', 'timeline', 'EXECUTE'),
	('auditor', 'relation', 'claims', 'SELECT'),
	('auditor', 'relation', 'attention', 'SELECT'),
	('administrator', 'function', 'set_tool_policy', 'EXECUTE'),
	('administrator', 'function', 'drop_tool_policy', 'EXECUTE'),
	('administrator', 'function', 'grant_duty', 'EXECUTE'),
	('administrator', 'function', 'revoke_duty', 'EXECUTE'),
	('administrator', 'function', 'sweep', 'EXECUTE'),
	('administrator', 'function', 'prune', 'EXECUTE'),
	('administrator', 'function', 'redact', 'EXECUTE'),
	('administrator', 'relation', 'attention', 'SELECT'),
	('backup', 'relation', 'claim_records', 'SELECT'),
	('backup', 'relation', 'operations', 'SELECT'),
	('backup', 'relation', 'events', 'SELECT'),
	('backup', 'relation', 'policies', 'SELECT'),
	('backup', 'relation', 'duties', 'SELECT'),
	('backup', 'relation', 'duty_privileges', 'SELECT');

/*
 * Default privileges of whoever installs this may have granted rights on the
 * members: take every one away.  Only the owner is left, and who gets a duty.
 */
DO $$
DECLARE
	grant_found record;
BEGIN
	FOR grant_found IN
		SELECT 'FUNCTION ' || p.oid::pg_catalog.regprocedure AS object, a.grantee
		FROM pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) a
		WHERE p.pronamespace OPERATOR(pg_catalog.=) 'tool_claims'::pg_catalog.regnamespace
		AND a.grantee OPERATOR(pg_catalog.<>) p.proowner
		UNION
		SELECT 'TABLE ' || c.oid::pg_catalog.regclass, a.grantee
		FROM pg_catalog.pg_class c, pg_catalog.aclexplode(c.relacl) a
		WHERE c.relnamespace OPERATOR(pg_catalog.=) 'tool_claims'::pg_catalog.regnamespace
		AND a.grantee OPERATOR(pg_catalog.<>) c.relowner
		UNION
		SELECT 'SCHEMA tool_claims', a.grantee
		FROM pg_catalog.pg_namespace n, pg_catalog.aclexplode(n.nspacl) a
		WHERE n.nspname OPERATOR(pg_catalog.=) 'tool_claims'
		AND a.grantee OPERATOR(pg_catalog.<>) n.nspowner
		UNION
		SELECT 'TYPE ' || t.oid::pg_catalog.regtype, a.grantee
		FROM pg_catalog.pg_type t, pg_catalog.aclexplode(t.typacl) a
		WHERE t.typnamespace OPERATOR(pg_catalog.=) 'tool_claims'::pg_catalog.regnamespace
		AND a.grantee OPERATOR(pg_catalog.<>) t.typowner
		AND a.grantee OPERATOR(pg_catalog.<>) 0
	LOOP
		EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM %s CASCADE',
			grant_found.object,
			CASE grant_found.grantee WHEN 0 THEN 'PUBLIC'
			ELSE pg_catalog.quote_ident(pg_catalog.pg_get_userbyid(grant_found.grantee)) END);
	END LOOP;
END
$$;
