# A slow input check beside sessions that make the server invalidate all its
# caches: that is no change of the policy, so the check runs once and the call
# is answered.  (A change of the policy meanwhile is one: slow_check_policy.spec.)

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('slow_check', 'synchronous_commit = off');
my $admin = session($node);
my $worker = session($node);
my $claim = 'SELECT outcome || coalesce(\'/\' || reason, \'\') FROM tool_claims.claim(\'t\', ?, \'slow\', \'{}\', lease => \'1 min\')';

$admin->do($_) or die $admin->errstr foreach (
	'CREATE SEQUENCE checks',
	'CREATE FUNCTION slow(json) RETURNS text LANGUAGE plpgsql AS $$
		BEGIN
			PERFORM nextval(\'public.checks\'), pg_sleep(1.5);
			RETURN NULL;
		END $$',
	'SELECT tool_claims.set_tool_policy(\'slow\', input_check => \'slow(json)\')');
$worker->do('SET statement_timeout = \'30 s\'');

# caches overflow while the check sleeps
my $churn = $node->basedir . '/churn.sql';
append_to_file($churn, "CREATE TEMP TABLE t (a integer PRIMARY KEY, b text, c text);\nDROP TABLE t;\n");
my $busy = IPC::Run::start(
	[ 'pgbench', '--no-vacuum', '--client=2', '--time=6', '--file', $churn, $node->connstr('postgres') ],
	'>', '/dev/null', '2>', '/dev/null');
sleep 1;
is(value($worker, $claim, 'reset'), 'acquired', 'beside resets of all caches');
is(value($admin, 'SELECT last_value FROM checks'), 1, 'the check ran once');
$busy->finish;

$node->stop;
done_testing();
