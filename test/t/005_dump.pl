# Dump and restore, physical backup and pg_upgrade keep every claim as it is,
# and the attempts go on.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('original');
my $admin = session($node);
my $worker = session($node, 'worker');
my $reconciler = session($node, 'reconciler');
my $lease = 'lease => \'50 min\'';

# text that only the bytes themselves can stand for
my $odd = '  {"u":"\u0000","s":"\ud800","d":1,"d":2,"n":1e99999999999}' . "\t ";

sub run_all
{
	my ($session, @statements) = @_;

	foreach my $statement (@statements)
	{
		$session->do($statement) or BAIL_OUT("$statement: " . $session->errstr);
	}
	return;
}

sub claim_sql
{
	my ($key, $more) = @_;

	return "SELECT tool_claims.claim('t', '$key', 'refund', '{\"order\": 7}'"
	  . (defined $more ? ", $more" : '') . ')';
}

#
# Something of everything.
#
run_all($admin,
	'CREATE ROLE dumper LOGIN',
	'CREATE ROLE auditor LOGIN',
	"SELECT tool_claims.grant_duty('dumper', 'backup')",
	"SELECT tool_claims.grant_duty('auditor', 'auditor')",
	"SELECT tool_claims.set_tool_policy('refund', keep_input => true, retention => '90 days', log => 'all')",
	"SELECT tool_claims.set_tool_policy('mail', tool_server => 'post', enabled => false, max_attempts => 3)",
	"SELECT tool_claims.set_tool_policy('poll', on_lease_expiry => 'reacquire')");

# one that is forgotten but for its tombstone
run_all($worker,
	claim_sql('pruned', $lease),
	"SELECT tool_claims.complete('t', 'pruned', '1', 1)");
run_all($admin, "SELECT tool_claims.prune(older_than => '0 s')");

run_all($worker,
	claim_sql('running', $lease),
	claim_sql('undispatched', "$lease, dispatched => false"),
	claim_sql('with operation', "$lease, operation_id => 'order 7'"),
	claim_sql('expired', 'lease => \'1 ms\''),
	claim_sql('swept', 'lease => \'1 ms\''),
	"SELECT tool_claims.claim('t', 'free', 'poll', '{}', lease => '1 ms')",
	claim_sql('reported', $lease),
	"SELECT tool_claims.dispatch('t', 'reported', 1, 'bank-7')",
	"SELECT tool_claims.mark_uncertain('t', 'reported', 1, 'time-out')",
	claim_sql('reconciled', $lease),
	"SELECT tool_claims.mark_uncertain('t', 'reconciled', 1, 'time-out')",
	claim_sql('completed', $lease),
	claim_sql('failed', "$lease, tool_server => 'bank', not_after => 'infinity'"),
	"SELECT tool_claims.fail('t', 'failed', '{\"code\": 5}', 1)",
	claim_sql('released', $lease),
	"SELECT tool_claims.release('t', 'released', 1, 'nothing sent', true)",
	claim_sql('redacted', $lease),
	"SELECT tool_claims.complete('t', 'redacted', '1', 1)");
$worker->do("SELECT tool_claims.complete('t', 'completed', ?, 1)", undef, $odd)
  or BAIL_OUT($worker->errstr);
run_all($worker,
	'BEGIN', claim_sql('local', 'operation_id => \'order 8\''),
	"SELECT tool_claims.complete('t', 'local', '\"booked\"')", 'COMMIT',
	"SELECT tool_claims.claim('t', 'completed', 'refund', '{\"order\": 8}')");
run_all($reconciler,
	"SELECT tool_claims.reconcile('t', 'reconciled', 1, 'not_occurred', '{\"statement\": \"none\"}')");
run_all($worker, "SELECT tool_claims.report_late('t', 'reconciled', 1, '\"sent\"')");
run_all($admin,
	"SELECT tool_claims.redact('t', 'redacted', 'request of the customer')",
	'SELECT tool_claims.sweep()',
	'SET tool_claims.organization = \'other\'',
	claim_sql('running', $lease),
	'RESET tool_claims.organization');

# Everything that the extension keeps, as text.
sub content
{
	my ($session) = @_;
	my %content;

	foreach my $table (qw(claim_records operations events policies duties))
	{
		my $rows = $session->selectcol_arrayref("SELECT t::text FROM tool_claims.$table AS t")
		  or return "$table: " . $session->errstr;
		$content{$table} = [ sort @$rows ];
	}
	return \%content;
}

my $content = content($admin);
foreach my $table (sort keys %$content)
{
	cmp_ok(scalar @{ $content->{$table} }, '>', 0, "there is something in $table");
}

# A copy is the same in every answer, and the work goes on in it.
sub check_copy
{
	my ($copy, $name, %option) = @_;
	my $admin = session($copy, undef, %option);
	my $worker = session($copy, 'worker', %option);
	my $rival = session($copy, 'rival', %option);
	my %key = (task_id => 't');
	my %call = (%key, tool_name => 'refund', input => '{"order": 7}', lease => '50 min');

	is_deeply(content($admin), $content, "$name: every row is the same");
	evidence_ok($admin, "$name: evidence verifies");
	is(call($rival, 'claim', %call, tool_call_id => 'completed')->{result},
		$odd, "$name: the result, byte for byte");
	is(call($rival, 'claim', %call, tool_call_id => 'running')->{outcome},
		'in_progress', "$name: a rival does not get the running attempt");
	is(call($rival, 'claim', %call, tool_call_id => 'expired')->{outcome},
		'uncertain', "$name: nor the expired one");
	is(call($rival, 'claim', %call, tool_call_id => 'new', operation_id => 'order 7')->{outcome},
		'in_progress', "$name: nor the operation under another pair");
	is(call($rival, 'complete', %key, tool_call_id => 'running', result => '1', attempt => 1)->{sqlstate},
		'42501', "$name: nor may it complete");
	is(call($worker, 'renew', %key, tool_call_id => 'running', attempt => 1, lease => '20 min')->{outcome},
		'acquired', "$name: the holder renews");
	is(call($worker, 'complete', %key, tool_call_id => 'running', result => '1', attempt => 1)->{outcome},
		'completed', "$name: and completes");
	is(call($worker, 'complete', %key, tool_call_id => 'expired', result => '1', attempt => 1)->{outcome},
		'completed', "$name: the expired attempt is still in time");
	is(call($rival, 'claim', %call, tool_call_id => 'reconciled')->{attempt},
		2, "$name: a released key goes on with the next attempt");
	is(call($rival, 'claim', %key, tool_call_id => 'mail', tool_name => 'mail', tool_server => 'post', input => '{}')
		  ->{reason},
		'tool_disabled', "$name: the policy holds");
	is(sqlstate($rival, 'SELECT count(*) FROM tool_claims.events'), '42501', "$name: a worker reads no table");
	is(sqlstate(session($copy, 'auditor', %option), 'SELECT count(*) FROM tool_claims.claims'),
		'00000', "$name: an auditor reads the view");
	isnt(sqlstate($admin, 'DELETE FROM tool_claims.events'), '00000', "$name: nobody deletes evidence");
	is(call($rival, 'claim', %call, tool_call_id => 'pruned')->{reason},
		'key_retired', "$name: a forgotten key stays forgotten");
	is(sqlstate($admin, "SELECT tool_claims.revoke_duty('rival', 'worker')"), '00000', "$name: a duty is taken away");
	is(call($rival, 'claim', %call, tool_call_id => 'completed')->{sqlstate}, '42501', "$name: and is gone");
	evidence_ok($admin, "$name: evidence verifies after more work");
	return;
}

#
# Dump by a role that may do nothing else, restore into another database.
#
my $folder = PostgreSQL::Test::Utils::tempdir();
my @source = ('-h', $node->host, '-p', $node->port);

command_ok([ 'pg_dump', @source, '-U', 'dumper', '-Fc', '-f', "$folder/custom", 'postgres' ],
	'a role with the backup duty dumps');
command_ok([ 'pg_dump', @source, '-U', 'dumper', '-f', "$folder/plain", 'postgres' ],
	'also as SQL');
is(sqlstate(session($node, 'dumper'), claim_sql('new')), '42501', 'it may not claim');
is(sqlstate(session($node, 'dumper'), 'DELETE FROM tool_claims.claim_records'), '42501', 'nor change a table');

$node->safe_psql('postgres', 'CREATE DATABASE restored');
command_ok([ 'pg_restore', @source, '--exit-on-error', '-d', 'restored', "$folder/custom" ],
	'pg_restore into another database');
check_copy($node, 'restored database', dbname => 'restored');

# over a database that has gone on
command_ok(
	[ 'pg_restore', @source, '--exit-on-error', '--clean', '--if-exists', '-d', 'restored', "$folder/custom" ],
	'pg_restore --clean --if-exists over it');
check_copy($node, 'restored again', dbname => 'restored');

#
# Into another server, where every role has another number.
#
my $fresh = PostgreSQL::Test::Cluster->new('fresh');
$fresh->init;
$fresh->append_conf('postgresql.conf', 'timezone = \'Asia/Kolkata\'');
$fresh->start;
foreach my $role (qw(somebody unrelated dumper reconciler auditor rival worker))
{
	$fresh->safe_psql('postgres', "CREATE ROLE $role LOGIN");
}
$fresh->safe_psql('postgres', "CREATE DATABASE plain; ALTER DATABASE plain SET timezone = 'UTC'");
command_ok(
	[
		'psql', '-X', '-q', '-h', $fresh->host, '-p', $fresh->port, '-v', 'ON_ERROR_STOP=1', '-d', 'plain',
		'-o', '/dev/null', '-f', "$folder/plain"
	],
	'SQL into another server');
check_copy($fresh, 'another server', dbname => 'plain');
$fresh->stop;

#
# A physical backup of the running server.
#
$node->backup('base');
my $backup = PostgreSQL::Test::Cluster->new('backup');
$backup->init_from_backup($node, 'base');
$backup->start;
check_copy($backup, 'physical backup');
$backup->stop;

#
# pg_upgrade.
#
my $upgraded = PostgreSQL::Test::Cluster->new('upgraded');
$upgraded->init;
$node->safe_psql('postgres', 'DROP DATABASE restored');
$_->disconnect foreach $admin, $worker, $reconciler;
$node->stop;
my $bin = $node->config_data('--bindir');
chdir $folder or die "$folder: $!";
command_ok(
	[
		'pg_upgrade', '-b', $bin, '-B', $bin, '-d', $node->data_dir, '-D', $upgraded->data_dir,
		'-p', $node->port, '-P', $upgraded->port, '-s', $node->host
	],
	'pg_upgrade');
$upgraded->append_conf('postgresql.conf', 'timezone = \'UTC\'');
$upgraded->start;
check_copy($upgraded, 'upgraded server');
$upgraded->stop;

done_testing();
