# PREPARE TRANSACTION would let a claim outlive its session, or a leased change
# its durability: both are refused.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('prepare', 'max_prepared_transactions = 5');
my $admin = session($node);
my $worker = session($node, 'worker');
my $lease = 'lease => \'10 min\'';

$admin->do('CREATE TABLE refunds (tool_call_id text); GRANT ALL ON refunds TO worker');

# Runs statements in a transaction and prepares it.
sub prepare
{
	my ($name, @statements) = @_;

	$worker->do('BEGIN');
	foreach my $statement (@statements)
	{
		$worker->do($statement) or BAIL_OUT("$statement: " . $worker->errstr);
	}
	return sqlstate($worker, "PREPARE TRANSACTION '$name'");
}

sub prepared { return value($admin, 'SELECT count(*) FROM pg_prepared_xacts'); }

sub claim_sql
{
	my ($key, $more) = @_;

	return "SELECT tool_claims.claim('t', '$key', 'refund', '{}'" . (defined $more ? ", $more" : '') . ')';
}

# the two shapes of a claim, open and final
foreach my $case (
	[ 'a transactional claim', claim_sql('a') ],
	[ 'a transactional claim that is completed', claim_sql('b'), "SELECT tool_claims.complete('t', 'b', '1')" ],
	[ 'a transactional claim that is failed', claim_sql('c'), "SELECT tool_claims.fail('t', 'c', '1')" ],
	[ 'a transactional claim that is released', claim_sql('d'), "SELECT tool_claims.release('t', 'd')" ],
	[ 'a leased claim', claim_sql('e', $lease) ],
	[
		'a claim in a savepoint', 'SAVEPOINT s', claim_sql('f'),
		"SELECT tool_claims.complete('t', 'f', '1')", 'RELEASE SAVEPOINT s'
	])
{
	my ($name, @statements) = @$case;

	is(prepare('x', 'INSERT INTO refunds VALUES (1)', @statements), '0A000', "$name cannot be prepared");
	is(prepared(), '0', 'nothing is prepared');
	is(value($admin, 'SELECT (SELECT count(*) FROM refunds) + (SELECT count(*) FROM tool_claims.claims)'),
		'0', 'the transaction is rolled back');
}

# every change of a leased claim
foreach my $case (
	[ 'dispatch', "SELECT tool_claims.dispatch('t', 'leased', 1)" ],
	[ 'renew', "SELECT tool_claims.renew('t', 'leased', 1, '5 min')" ],
	[ 'complete', "SELECT tool_claims.complete('t', 'leased', '1', 1)" ],
	[ 'fail', "SELECT tool_claims.fail('t', 'leased', '1', 1)" ],
	[ 'release', "SELECT tool_claims.release('t', 'leased', 1)" ],
	[ 'mark_uncertain', "SELECT tool_claims.mark_uncertain('t', 'leased', 1, 'time-out')" ])
{
	my ($verb, $statement) = @$case;

	is(sqlstate($worker, claim_sql('leased', $lease)), '00000', 'a leased claim') if $verb eq 'dispatch';
	is(prepare('x', $statement), '0A000', "$verb of a leased claim cannot be prepared");
	is(prepared(), '0', 'nothing is prepared');
	is(value($admin, "SELECT state FROM tool_claims.status('t', 'leased')"), 'claimed', 'the claim is as before');
}

# a claim that was given up does not stand in the way
is(prepare('x', 'INSERT INTO refunds VALUES (1)', 'SAVEPOINT s', claim_sql('g'), 'ROLLBACK TO SAVEPOINT s'),
	'00000', 'a transaction whose only claim was rolled back to a savepoint is prepared');
is(sqlstate($worker, "COMMIT PREPARED 'x'"), '00000', 'and committed');
is(prepare('x', 'SAVEPOINT s', claim_sql('g', $lease), 'ROLLBACK TO SAVEPOINT s'),
	'00000', 'also with a leased one');
is(sqlstate($worker, "ROLLBACK PREPARED 'x'"), '00000', 'and rolled back');

# nor does reading
is(sqlstate($worker, "SELECT tool_claims.complete('t', 'leased', '1', 1)"), '00000', 'complete the leased claim');
is(prepare('x', 'INSERT INTO refunds VALUES (2)', claim_sql('leased'), "SELECT tool_claims.status('t', 'leased')"),
	'00000', 'a transaction that got a stored result is prepared');
is(sqlstate($worker, "COMMIT PREPARED 'x'"), '00000', 'and committed');
is(value($admin, 'SELECT string_agg(tool_call_id, \' \' ORDER BY 1) FROM refunds'), '1 2', 'with its rows');

# the session goes on as if nothing had been
$worker->do('BEGIN');
is(call($worker, 'claim', task_id => 't', tool_call_id => 'h', tool_name => 'refund', input => '{}')->{outcome},
	'acquired', 'the session claims again');
is(sqlstate($worker, 'COMMIT'), 'TC004', 'and is held to it');

$node->stop;
done_testing();
