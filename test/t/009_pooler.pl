# Behind PgBouncer in transaction mode all tenants share one role and, here,
# one server session.  tool_claims.require_organization = transaction stops a
# client that has forgotten to say for whom it works.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use DBI;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

# Debian keeps it where only root looks
my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), qw(/usr/sbin /usr/local/sbin);
plan skip_all => 'pgbouncer is not installed' if !defined $program;

my $node = new_server('pooled');
my $admin = session($node);
my $folder = PostgreSQL::Test::Utils::tempdir();
my $sockets = PostgreSQL::Test::Utils::tempdir_short();
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $pooler;

foreach my $statement (
	'CREATE ROLE gateway LOGIN',
	'CREATE ROLE pinned_a LOGIN',
	'GRANT SET ON PARAMETER tool_claims.organization TO gateway',
	'ALTER ROLE gateway SET tool_claims.require_organization = \'transaction\'',
	'ALTER ROLE pinned_a SET tool_claims.organization = \'a\'',
	'ALTER ROLE pinned_a SET tool_claims.require_organization = \'on\'',
	'CREATE TABLE refunds (organization text, tool_call_id text)',
	'GRANT INSERT, SELECT ON refunds TO gateway',
	map { my $role = $_; map { "SELECT tool_claims.grant_duty('$role', '$_')" } qw(worker reconciler proposer auditor) }
	qw(gateway pinned_a))
{
	$admin->do($statement) or BAIL_OUT("$statement: " . $admin->errstr);
}

sub write_file
{
	my ($name, $text) = @_;

	open my $file, '>', "$folder/$name" or die "$name: $!";
	print $file $text;
	close $file or die "$name: $!";
	return "$folder/$name";
}

# A pooler in transaction mode, with one server session for each role.
sub start_pooler
{
	my $users = write_file('users', join('', map { "\"$_\" \"\"\n" } qw(gateway pinned_a)));
	my $settings = write_file('pgbouncer.ini', sprintf(<<'EOS', $node->host, $node->port, $sockets, $port, $users));
[databases]
postgres = host=%s port=%d dbname=postgres

[pgbouncer]
listen_addr =
unix_socket_dir = %s
listen_port = %d
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 1
query_wait_timeout = 20
ignore_startup_parameters = extra_float_digits
EOS

	$pooler = fork // die "fork: $!";
	if ($pooler == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$folder/log";
		open STDERR, '>&', \*STDOUT;
		exec $program, '-q', $settings or die "$program: $!";
	}
	wait_until(sub { -S "$sockets/.s.PGSQL.$port" }, 20) or die slurp_file("$folder/log");
	return;
}

sub stop_pooler
{
	return if !defined $pooler;
	kill 'TERM', $pooler;
	waitpid $pooler, 0;
	undef $pooler;
	return;
}

END
{
	my $status = $?;
	stop_pooler();
	$? = $status;
}

sub client
{
	my ($role) = @_;

	return DBI->connect(
		"dbi:Pg:host=$sockets;port=$port;dbname=postgres",
		$role, '',
		{ AutoCommit => 1, AutoInactiveDestroy => 1, PrintError => 0, PrintWarn => 0, pg_server_prepare => 0 })
	  // die DBI->errstr;
}

sub answer
{
	my ($row) = @_;

	return $row->{sqlstate} // join ' ', grep { defined } @$row{qw(outcome reason)},
	  ($row->{outcome} // '') eq 'acquired' ? $row->{attempt} : ();
}

# One verb in one transaction, after other statements.
sub transaction
{
	my ($client, $first, $verb, @arguments) = @_;

	$client->do('BEGIN') or return $client->errstr;
	foreach my $statement (@$first)
	{
		$client->do($statement) or return $client->errstr;
	}
	my $answer = answer(call($client, $verb, @arguments));
	$client->do('COMMIT');
	return $answer;
}

sub local_to
{
	return ["SET LOCAL tool_claims.organization = '$_[0]'"];
}

sub key
{
	return (task_id => 't', tool_call_id => $_[0]);
}

my @refund = (tool_name => 'refund', input => '{"order": 7}');

foreach my $preload (0, 1)
{
	my $with = $preload ? 'with preload' : 'without preload';

	if ($preload)
	{
		$admin->disconnect;
		$node->append_conf('postgresql.conf', 'shared_preload_libraries = \'tool_claims\'');
		$node->restart;
		$admin = session($node);
	}

	# in a server session that has not used the extension yet, and in one that has
	foreach my $used (0, 1)
	{
		my $where = "$with, " . ($used ? 'used' : 'fresh') . ' session';
		my $one = "$preload$used";

		# a value that a client leaves behind
		foreach my $case (
			[ 'nothing', [] ],
			[ 'an empty value', ['SET tool_claims.organization = \'\''] ],
			[ 'SET', ['SET tool_claims.organization = \'a\''] ],
			[ 'SET in a transaction', [ 'BEGIN', 'SET tool_claims.organization = \'a\'', 'COMMIT' ] ],
			[ 'set_config', ['SELECT set_config(\'tool_claims.organization\', \'a\', false)'] ],
			[ 'SET LOCAL, over', [ 'BEGIN', @{ local_to('a') }, 'COMMIT' ] ],
			[ 'SET LOCAL over a left-over SET', [
				'SET tool_claims.organization = \'a\'', 'BEGIN', @{ local_to('b') }, 'COMMIT' ] ])
		{
			my ($name, $statements) = @$case;

			start_pooler();
			my ($a, $b) = (client('gateway'), client('gateway'));
			is(transaction($a, local_to('a'), 'status', key('used')), '', "$where: used") if $used;
			foreach my $statement (@$statements)
			{
				$a->do($statement) or BAIL_OUT("$statement: " . $a->errstr);
			}
			is(transaction($b, [], 'claim', key("$one $name"), @refund, lease => '10 min'),
				'22023', "$where: after $name of another client, a forgotten SET LOCAL raises");
			is(value($b, 'SELECT count(*) FROM tool_claims.claims'), 'error 22023', "$where: $name: views too");
			is(answer(call($a, 'claim', key("$one $name"), @refund, lease => '10 min')),
				'22023', "$where: $name: so does the client that left it");
			is(transaction($b, local_to('b'), 'claim', key("$one $name"), @refund, lease => '10 min'),
				'acquired 1', "$where: $name: a normal SET LOCAL works");
			is(value($admin, 'SELECT string_agg(organization, \' \') FROM tool_claims.claim_records WHERE tool_call_id = ?',
					"$one $name"), 'b', "$where: $name: for whom it says");
			stop_pooler();
		}
	}

	#
	# The life of a claim, by turns of two tenants.
	#
	start_pooler();
	my ($a, $b) = (client('gateway'), client('gateway'));
	my %sessions;
	foreach my $step (
		[ claim => [ @refund, lease => '10 min', dispatched => 'false' ], 'acquired 1' ],
		[ claim => [ @refund, lease => '10 min' ], 'in_progress' ],
		[ claim => [ tool_name => 'refund', input => '{}', lease => '10 min' ], 'conflict input' ],
		[ dispatch => [ attempt => 1, external_ref => 'bank' ], 'acquired 1' ],
		[ renew => [ attempt => 1, lease => '20 min' ], 'acquired 1' ],
		[ release => [ attempt => 1 ], 'released' ],
		[ claim => [ @refund, lease => '10 min' ], 'acquired retry 2' ],
		[ complete => [ attempt => 1, result => '1' ], 'TC002' ],
		[ mark_uncertain => [ attempt => 2, reason => 'time-out' ], 'uncertain reported' ],
		[ claim => [ @refund, lease => '10 min' ], 'uncertain reported' ],
		[ reconcile => [ attempt => 2, finding => 'not_occurred', evidence => '{"statement": "none"}' ], 'released' ],
		[ claim => [ @refund, lease => '10 min' ], 'acquired retry 3' ],
		[ complete => [ attempt => 3, result => '"sent"' ], 'completed' ],
		[ claim => [ @refund, lease => '10 min' ], 'completed' ],
		[ claim => [@refund], 'completed' ])
	{
		my ($verb, $arguments, $expected) = @$step;

		foreach my $tenant ([ $a, 'a' ], [ $b, 'b' ])
		{
			my ($client, $organization) = @$tenant;
			is(transaction($client, local_to($organization), $verb, key("life $with"), @$arguments),
				$expected, "$with: tenant $organization: $verb: $expected");
			$sessions{ value($client, 'SELECT pg_backend_pid()') } = 1;
		}
	}
	is(keys %sessions, 1, "$with: all of it in one server session");

	# effects in the database, and everything rolled back
	foreach my $tenant ([ $a, 'a' ], [ $b, 'b' ])
	{
		my ($client, $organization) = @$tenant;

		foreach my $end (qw(ROLLBACK COMMIT))
		{
			$client->do('BEGIN');
			$client->do(local_to($organization)->[0]);
			is(answer(call($client, 'claim', key("local $with"), @refund)), 'acquired 1', "$with: tenant $organization: a claim without lease");
			$client->do('INSERT INTO refunds VALUES (?, ?)', undef, $organization, $with);
			is(answer(call($client, 'complete', key("local $with"), result => '1')), 'completed', "$with: completed");
			is(sqlstate($client, $end), '00000', "$with: $end");
		}
		$client->do('BEGIN');
		$client->do(local_to($organization)->[0]);
		is( value($client, 'SELECT string_agg(DISTINCT organization, \' \') FROM tool_claims.claims'),
			$organization, "$with: it sees its own only");
		is(value($client, 'SELECT count(*) FROM tool_claims.attention WHERE organization <> ?', $organization),
			'0', "$with: in attention too");
		is(value($client, 'SELECT v.ok FROM tool_claims.verify_evidence(\'t\', ?) AS v', "life $with"), '1', "$with: evidence verifies");
		$client->do('ROLLBACK');
	}
	is(value($admin, "SELECT string_agg(organization, ' ' ORDER BY organization) FROM refunds WHERE tool_call_id = '$with'"),
		'a b', "$with: one refund for each");

	# a transaction that goes on is another one
	$a->do('BEGIN');
	$a->do(local_to('a')->[0]);
	$a->do('COMMIT AND CHAIN');
	is(answer(call($a, 'status', key("life $with"))), '22023', "$with: COMMIT AND CHAIN begins a new transaction");
	$a->do('ROLLBACK');
	is(transaction($a, local_to('*'), 'claim', key('all'), @refund, lease => '1 min'), '22023', "$with: no verb under *");

	#
	# Each tenant with a role of its own, pinned.
	#
	my ($c, $d) = (client('pinned_a'), client('pinned_a'));
	is(answer(call($c, 'claim', key("life $with"), @refund, lease => '1 min')),
		'completed', "$with: a pinned role needs no SET");
	$c->do('SET tool_claims.organization = \'b\'');
	is($c->state, $preload || $c->err ? '42501' : '00000', "$with: nor may it");
	is(value($d, 'SELECT string_agg(DISTINCT organization, \' \') FROM tool_claims.claims'), 'a', "$with: it sees its own only");
	stop_pooler();
}

$node->stop;
done_testing();
