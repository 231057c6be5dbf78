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
