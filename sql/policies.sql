-- policies: what an administrator says about a tool
SET tool_claims.organization = 'policies';

-- switched off: nothing new begins, what is stored answers
SELECT outcome FROM tool_claims.claim('t', 'c-1', 'refund', '{}', lease => '1 min');
SELECT tool_claims.set_tool_policy('refund', enabled => false);
SELECT outcome, reason FROM tool_claims.claim('t', 'c-2', 'refund', '{}', lease => '1 min');
SELECT outcome, reason FROM tool_claims.dispatch('t', 'c-1', 1);
SELECT outcome FROM tool_claims.complete('t', 'c-1', '1', attempt => 1);
SELECT outcome, result FROM tool_claims.claim('t', 'c-1', 'refund', '{}', lease => '1 min');
SELECT tool_claims.set_tool_policy('refund', reset => '{enabled}');
SELECT outcome, reason FROM tool_claims.claim('t', 'c-2', 'refund', '{}', lease => '1 min');

-- effects in this database, or outside
SELECT tool_claims.set_tool_policy('book', effect => 'local');
SELECT tool_claims.claim('t', 'b-1', 'book', '{}', lease => '1 min');		-- fails
SELECT tool_claims.set_tool_policy('mail', effect => 'external');
SELECT tool_claims.claim('t', 'm-1', 'mail', '{}');		-- fails
SELECT tool_claims.execute('t', 'm-1', 'mail', '{}', 'jsonb_strip_nulls(jsonb)');		-- fails

-- so many attempts
SELECT tool_claims.set_tool_policy('mail', max_attempts => 1);
SELECT outcome FROM tool_claims.claim('t', 'm-1', 'mail', '{}', lease => '1 min');
SELECT outcome FROM tool_claims.release('t', 'm-1', 1);
SELECT outcome, reason FROM tool_claims.claim('t', 'm-1', 'mail', '{}', lease => '1 min');
SELECT kind, tool_call_id, attempt FROM tool_claims.attention;

-- keep the input, log the routine too
SELECT tool_claims.set_tool_policy('note', keep_input => true, log => 'all');
SELECT outcome FROM tool_claims.claim('t', 'n-1', 'note', '{"b": 1.0, "a": "x"}', lease => '1 min');
SELECT outcome FROM tool_claims.complete('t', 'n-1', '1', attempt => 1);
SELECT input FROM tool_claims.status('t', 'n-1');
SELECT kind, attempt FROM tool_claims.evidence('t', 'n-1');

-- look at the input first
CREATE FUNCTION positive_amount(input json) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN (input ->> 'cents')::numeric > 0 THEN NULL ELSE 'cents must be positive' END
$$;
SELECT tool_claims.set_tool_policy('pay', input_check => 'positive_amount(json)');
SELECT outcome, reason FROM tool_claims.claim('t', 'p-1', 'pay', '{"cents": -1}', lease => '1 min');
SELECT kind, detail - 'pid' AS detail FROM tool_claims.evidence('t', 'p-1');
SELECT outcome, reason FROM tool_claims.claim('t', 'p-1', 'pay', '{"cents": 1}', lease => '1 min');
-- a check runs as the one who registered it, and cannot call the verbs
CREATE FUNCTION nosy(input json) RETURNS text LANGUAGE sql AS $$
	SELECT outcome::text FROM tool_claims.claim('t', 'nosy', 'note', '{}')
$$;
SELECT tool_claims.set_tool_policy('pay', input_check => 'nosy(json)');
\set VERBOSITY terse
SELECT tool_claims.claim('t', 'p-2', 'pay', '{"cents": 1}', lease => '1 min');		-- fails
DROP FUNCTION nosy(json);
SELECT tool_claims.claim('t', 'p-2', 'pay', '{"cents": 1}', lease => '1 min');		-- fails, the function is gone
SELECT tool_claims.set_tool_policy('pay', reset => '{input_check}');
SELECT outcome FROM tool_claims.claim('t', 'p-2', 'pay', '{"cents": 1}', lease => '1 min');

-- deny by default: the most specific policy counts, as a whole
SELECT tool_claims.set_tool_policy('*', '*', enabled => false);
SELECT tool_claims.set_tool_policy('search', '*', enabled => true);
SELECT tool_claims.set_tool_policy('search', 'intranet', enabled => false);
SELECT tool_server, tool_name, outcome, reason
FROM (VALUES ('', 'search'), ('web', 'search'), ('intranet', 'search'), ('', 'unheard_of')) AS t (server, tool),
	tool_claims.claim('t', server || '/' || tool, tool, '{}', tool_server => server, lease => '1 min') AS c,
	LATERAL (SELECT server AS tool_server, tool AS tool_name) AS l;
SELECT tool_claims.drop_tool_policy('*', '*');
SELECT tool_claims.drop_tool_policy('*', '*');		-- fails, there is none
SELECT outcome FROM tool_claims.claim('t', '/unheard_of', 'unheard_of', '{}', lease => '1 min');

-- values
SELECT tool_claims.set_tool_policy('*', 'intranet', enabled => false);		-- fails
SELECT tool_claims.set_tool_policy('x', effect => 'both');		-- fails
SELECT tool_claims.set_tool_policy('x', on_lease_expiry => 'forget');		-- fails
SELECT tool_claims.set_tool_policy('x', max_attempts => 0);		-- fails
SELECT tool_claims.set_tool_policy('x', log => 'none');		-- fails
SELECT tool_claims.set_tool_policy('x', retention => '-1 day');		-- fails
SELECT tool_claims.set_tool_policy('x', reset => '{everything}');		-- fails

DROP FUNCTION positive_amount(json);
