-- marks: detached marks of content
SET tool_claims.organization = 'marks';
\set VERBOSITY terse

-- a key, a mark, and what it says
SELECT tool_claims.add_mark_key('2030-a', 'a secret of the office');
SELECT tool_claims.mark_content('pay 12.50 to ada', '2030-a', 'invoice 7') AS mark \gset
SELECT :'mark' AS mark;
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
-- one changed character, another context
SELECT * FROM tool_claims.verify_mark('pay 92.50 to ada', :'mark', 'invoice 7');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 8');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark');
-- another organization
SET tool_claims.organization = 'marks 2';
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
SELECT tool_claims.add_mark_key('2030-a', 'a secret of the office');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
SET tool_claims.organization = 'marks';
-- no mark, what is none, a damaged one, one of a key that is not here
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', NULL, 'invoice 7');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', '', 'invoice 7');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', 'signed, ada', 'invoice 7');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', left(:'mark', -1), 'invoice 7');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', replace(:'mark', 'tcm1.MjAzMC1h', 'tcm1.MjAzMC1i'), 'invoice 7');

-- Anyone who has the key recomputes it: HMAC-SHA-256 over a label, and then
-- each field with its length in front, which keeps fields apart.
CREATE FUNCTION framed(VARIADIC fields text[]) RETURNS bytea LANGUAGE sql AS $$
	SELECT convert_to('tool_claims content mark v1', 'UTF8') || '\x00'::bytea
		|| string_agg(int8send(octet_length(convert_to(field, 'UTF8'))) || convert_to(field, 'UTF8'), '' ORDER BY n)
	FROM unnest(fields) WITH ORDINALITY AS f (field, n)
$$;
-- RFC 2104, for a key of at most 64 bytes
CREATE FUNCTION hmac_sha256(message bytea, key bytea) RETURNS bytea LANGUAGE plpgsql AS $$
DECLARE
	inner_pad bytea := decode(repeat('36', 64), 'hex');
	outer_pad bytea := decode(repeat('5c', 64), 'hex');
BEGIN
	FOR i IN 0 .. octet_length(key) - 1 LOOP
		inner_pad := set_byte(inner_pad, i, get_byte(inner_pad, i) # get_byte(key, i));
		outer_pad := set_byte(outer_pad, i, get_byte(outer_pad, i) # get_byte(key, i));
	END LOOP;
	RETURN sha256(outer_pad || sha256(inner_pad || message));
END
$$;
CREATE FUNCTION base64url(data bytea) RETURNS text LANGUAGE sql AS $$
	SELECT rtrim(translate(encode(data, 'base64'), E'+/\n', '-_'), '=')
$$;
SELECT concat_ws('.', 'tcm1', base64url('2030-a'),
	base64url(hmac_sha256(framed('hmac-sha256', '2030-a', 'marks', 'invoice 7', 'pay 12.50 to ada'), 'a secret of the office')))
	= :'mark' AS recomputed;
DROP FUNCTION framed, hmac_sha256, base64url;

-- rotation: a retired key still verifies, and marks nothing more
SELECT tool_claims.add_mark_key('2030-a', 'another secret');		-- fails, the id is taken
SELECT tool_claims.add_mark_key('2030-b', 'another secret');
SELECT tool_claims.retire_mark_key('2030-a');
SELECT tool_claims.mark_content('pay 12.50 to ada', '2030-a', 'invoice 7');		-- fails
SELECT verdict FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
SELECT verdict FROM tool_claims.verify_mark('pay 12.50 to ada', tool_claims.mark_content('pay 12.50 to ada', '2030-b'));
-- revocation: its marks are worth nothing from now on, for good
SELECT tool_claims.revoke_mark_key('2030-a');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
SELECT tool_claims.retire_mark_key('2030-a');
SELECT verdict FROM tool_claims.verify_mark('pay 12.50 to ada', :'mark', 'invoice 7');
SELECT tool_claims.revoke_mark_key('2029-z');		-- fails, no such key

-- Ed25519: the secret key marks, the public key alone verifies.  The keys are
-- those of RFC 8032, test 1, the public one as SubjectPublicKeyInfo.
SELECT tool_claims.add_mark_key('ada', '\x9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60', 'ed25519');
SELECT tool_claims.mark_content('pay 12.50 to bob', 'ada', 'invoice 8') AS mark \gset
SELECT :'mark' AS mark;
SELECT * FROM tool_claims.verify_mark('pay 12.50 to bob', :'mark', 'invoice 8');
SELECT * FROM tool_claims.verify_mark('pay 12.50 to bob', :'mark', 'invoice 9');
-- (another installation, of the same organization, which has the public key)
BEGIN;
DELETE FROM tool_claims.mark_keys WHERE organization = 'marks' AND key_id = 'ada';
SELECT verdict FROM tool_claims.verify_mark('pay 12.50 to bob', :'mark', 'invoice 8');
SELECT tool_claims.add_mark_key('ada', '\x302a300506032b6570032100d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a', 'ed25519');
SELECT verdict FROM tool_claims.verify_mark('pay 12.50 to bob', :'mark', 'invoice 8');
SELECT tool_claims.mark_content('pay 12.50 to bob', 'ada', 'invoice 8');		-- fails, it only verifies
ROLLBACK;

-- keys that are none
SELECT tool_claims.add_mark_key('bad', '');		-- fails
SELECT tool_claims.add_mark_key('bad', 'too short', 'ed25519');		-- fails
SELECT tool_claims.add_mark_key('bad', 'secret', 'md5');		-- fails
