# A backend does not grow with the number of calls.
#
# TOOL_CLAIMS_CALLS says how many there are (100,000).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $calls = $ENV{TOOL_CLAIMS_CALLS} || 100_000;
my $node = new_server('memory', <<'EOF');
synchronous_commit = off
max_wal_size = '2GB'
jit = off
EOF
my $session = session($node);

# One round of each is ten calls or so, in transactions of their own, errors
# included.  Every loop numbers its keys from where it is told to.
$session->do(<<'EOF') or die $session->errstr;
CREATE FUNCTION handler(input jsonb) RETURNS json LANGUAGE sql AS 'SELECT $1::json';

CREATE FUNCTION expect(got text, wanted text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	IF got IS DISTINCT FROM wanted THEN
		RAISE EXCEPTION 'got %, not %', got, wanted;
	END IF;
END
$$;

CREATE PROCEDURE transactional(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM expect(c.outcome::text, 'acquired')
		FROM tool_claims.claim('transactional', i::text, 'book', json_build_object('order', i)) AS c;
		PERFORM expect(c.outcome::text, 'completed')
		FROM tool_claims.complete('transactional', i::text, json_build_object('booked', i)) AS c;
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE leased(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM expect(c.outcome::text, 'acquired')
		FROM tool_claims.claim('leased', i::text, 'refund', json_build_object('order', i),
			lease => '1 min', operation_id => 'order ' || i) AS c;
		COMMIT;
		PERFORM tool_claims.dispatch('leased', i::text, 1, 'bank ' || i);
		PERFORM tool_claims.renew('leased', i::text, 1, '1 min');
		COMMIT;
		PERFORM tool_claims.complete('leased', i::text, '"done"', 1);
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE replay(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM expect(c.outcome::text, 'completed')
		FROM tool_claims.claim('transactional', (i % 100 + 1)::text, 'book',
			json_build_object('order', i % 100 + 1)) AS c;
		PERFORM s.state FROM tool_claims.status('transactional', (i % 100 + 1)::text) AS s;
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE conflict(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM expect(c.outcome::text, 'conflict')
		FROM tool_claims.claim('transactional', (i % 100 + 1)::text, 'book', json_build_object('order', -i)) AS c;
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE execute(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM tool_claims.execute('execute', i::text, 'book', json_build_object('order', i),
			'public.handler(jsonb)');
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE errors(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		BEGIN
			PERFORM tool_claims.complete('leased', (i % 100 + 1)::text, '1', 7);
			RAISE EXCEPTION 'no error';
		EXCEPTION WHEN SQLSTATE 'TC002' THEN
			NULL;
		END;
		BEGIN
			PERFORM tool_claims.claim('transactional', 'x', 'book', '{"a": 1, "a": 2}');
			RAISE EXCEPTION 'no error';
		EXCEPTION WHEN duplicate_json_object_key_value THEN
			NULL;
		END;
		BEGIN
			PERFORM tool_claims.claim('given up', i::text, 'book', '{}');
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
			NULL;
		END;
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE released(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM tool_claims.claim('released', i::text, 'refund', '{}', lease => '1 min', dispatched => false);
		PERFORM tool_claims.release('released', i::text, 1, 'no money');
		COMMIT;
	END LOOP;
END
$$;

CREATE PROCEDURE canonical(first integer, last integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN first .. last LOOP
		PERFORM tool_claims.digest(format('{"b": [%s.5e3, "\u00e4", null], "a": {"c": %s}}', i, i)::tool_claims.canonical_json);
		PERFORM tool_claims.is_portable(format('[%s.125]', i)::tool_claims.canonical_json);
	END LOOP;
END
$$;
EOF

# Memory of the session, in kB: its contexts, and what is resident but for
# shared buffers.
sub contexts
{
	return value($session, 'SELECT sum(total_bytes) / 1024 FROM pg_backend_memory_contexts');
}

sub resident
{
	my ($size) = slurp_file("/proc/$session->{pg_pid}/status") =~ /^RssAnon:\s+(\d+) kB/m;
	return $size;
}

# how often each procedure runs, and how many calls of ours one turn makes
my %share = (
	transactional => [ 0.15, 2 ],
	leased => [ 0.05, 4 ],
	replay => [ 0.10, 2 ],
	conflict => [ 0.05, 1 ],
	execute => [ 0.05, 1 ],
	errors => [ 0.03, 3 ],
	released => [ 0.05, 2 ],
	canonical => [ 0.045, 4 ]);
my @order = qw(transactional leased replay conflict execute errors released canonical);
my $made = 0;

foreach my $procedure (@order)
{
	my ($share, $each) = @{ $share{$procedure} };
	my $warm = 500;
	my $turns = int($share * $calls) || 1;

	$session->do("CALL $procedure(1, $warm)") or die "$procedure: " . $session->errstr;
	my ($contexts, $resident) = (contexts(), resident());
	$session->do("CALL $procedure($warm + 1, $warm + $turns)") or die "$procedure: " . $session->errstr;
	cmp_ok(contexts() - $contexts, '<=', 64, "$procedure: the memory contexts do not grow");
	cmp_ok(resident() - $resident, '<=', 2048, "$procedure: nor does the process");
	$made += $each * ($warm + $turns);
}
note("$made calls");

# many calls in one statement and one transaction
foreach my $case (
	[
		'replays',
		"SELECT count(c.outcome) FROM generate_series(1, %d) AS i,
			tool_claims.claim('transactional', (i %% 100 + 1)::text, 'book', json_build_object('order', i %% 100 + 1)) AS c"
	],
	[
		'values',
		"SELECT count(tool_claims.digest(format('{\"b\": %%s}', i)::tool_claims.canonical_json)) FROM generate_series(1, %d) AS i"
	])
{
	my ($name, $statement) = @$case;

	value($session, sprintf($statement, 1000));
	my ($contexts, $resident) = (contexts(), resident());
	is(value($session, sprintf($statement, $calls / 2)), int($calls / 2), "$name in one statement");
	cmp_ok(contexts() - $contexts, '<=', 64, "$name in one statement: the memory contexts do not grow");
	cmp_ok(resident() - $resident, '<=', 4096, "$name in one statement: nor does the process");
}

# what a transaction keeps of its claims is gone at its end
my $many = "SELECT count(*) FROM generate_series(%d, %d) AS i,
	tool_claims.claim('many', i::text, 'book', '{}') AS c, tool_claims.complete('many', c.tool_call_id, '1') AS d";
value($session, sprintf($many, 1, 1000));
my $contexts = contexts();
is(value($session, sprintf($many, 1001, 11000)), 10000, '10,000 claims in one transaction');
cmp_ok(contexts() - $contexts, '<=', 64, 'leave nothing behind');

$session->disconnect;
$node->stop;
done_testing();
