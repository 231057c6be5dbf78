# Every change of a leased claim waits for the synchronous standby, whatever
# the session says.  On a standby, verbs are refused and everything can be read.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('primary');
my $observer = session($node);

#
# A standby that is not there: whoever waits for it, waits until cancelled.
#
sub synchronous
{
	my ($names) = @_;

	$observer->do("ALTER SYSTEM SET synchronous_standby_names = '$names'");
	$observer->do('SELECT pg_reload_conf()');

	wait_until(sub { value(session($node), 'SHOW synchronous_standby_names') eq $names })
	  or die 'the setting does not change';

	# it is the checkpointer that tells the others that there is one to wait for
	my $probe = session($node);
	$probe->do('SET synchronous_commit = on');
	wait_until(sub { ending($probe, 'CREATE TEMP TABLE IF NOT EXISTS probe (); DROP TABLE probe') eq 'waits' })
	  or die 'nobody waits'
	  if $names eq 'nobody';
	return;
}

# How a statement ends: 'waits' for the standby (and is then let go), or as it
# ends by itself.
sub ending
{
	my ($session, $statement) = @_;

	start_statement($session, $statement);
	wait_until(sub { $session->pg_ready || wait_event($observer, $session) eq 'SyncRep' });
	if ($session->pg_ready)
	{
		my $state = end_statement($session);
		return $state eq '00000' ? 'returns' : $state;
	}
	value($observer, 'SELECT pg_cancel_backend(?)', $session->{pg_pid});
	my $state = end_statement($session);
	return $state eq '00000' ? 'waits' : $state;
}

sub claim_sql
{
	my ($key, $more) = @_;

	return "SELECT tool_claims.claim('t', '$key', 'refund', '{}'" . (defined $more ? ", $more" : '') . ')';
}

sub state
{
	return value($observer, 'SELECT state FROM tool_claims.status(\'t\', ?)', $_[0]) // 'none';
}

my $lease = 'lease => \'10 min\'';
my @values = qw(off local remote_write on remote_apply);

$observer->do('SET synchronous_commit = local');
$observer->do('CREATE TABLE refunds (tool_call_id text); GRANT ALL ON refunds TO worker');
synchronous('nobody');

foreach my $value (@values)
{
	# where and when the session asks for less
	my %ways = (
		'before the call' => [ "SET synchronous_commit = $value", 'BEGIN', 'CLAIM' ],
		'after the call' => [ 'BEGIN', 'CLAIM', "SET synchronous_commit = $value" ],
		'locally after the call' => [ 'BEGIN', 'CLAIM', "SET LOCAL synchronous_commit = $value" ],
		'in a savepoint' => [
			'BEGIN', 'SAVEPOINT s', "SET synchronous_commit = $value", 'CLAIM', 'RELEASE SAVEPOINT s'
		],
		'before a savepoint that is rolled back' => [
			"SET synchronous_commit = $value", 'BEGIN', 'CLAIM', 'SAVEPOINT s',
			'SET LOCAL synchronous_commit = on', 'ROLLBACK TO SAVEPOINT s'
		],
		'and the claim was made again after a savepoint' => [
			"SET synchronous_commit = $value", 'BEGIN', 'SAVEPOINT s', 'CLAIM',
			'ROLLBACK TO SAVEPOINT s', 'CLAIM'
		]);

	foreach my $way (sort keys %ways)
	{
		my $worker = session($node, 'worker');
		my $key = "$value $way";

		foreach my $statement (@{ $ways{$way} })
		{
			my $sql = $statement eq 'CLAIM' ? claim_sql($key, $lease) : $statement;
			$worker->do($sql) or BAIL_OUT("$sql: " . $worker->errstr);
		}
		is(ending($worker, 'COMMIT'), 'waits', "leased claim, synchronous_commit = $value $way");
		is(state($key), 'claimed', 'and is there');
	}

	# a single statement, and what the session had set stays set
	my $worker = session($node, 'worker');
	$worker->do("SET synchronous_commit = $value");
	is(ending($worker, claim_sql("$value alone", $lease)), 'waits', "leased claim, $value, autocommit");
	is(value($worker, 'SHOW synchronous_commit'), $value, 'the session keeps its value');

	# a transactional claim does as the session says
	my $expected = $value eq 'off' || $value eq 'local' ? 'returns' : 'waits';
	$worker->do('BEGIN');
	$worker->do(claim_sql("$value transactional"));
	$worker->do("SELECT tool_claims.complete('t', '$value transactional', '1')");
	$worker->do('INSERT INTO refunds VALUES (1)');
	is(ending($worker, 'COMMIT'), $expected, "transactional claim, $value: $expected");
	is(state("$value transactional"), 'completed', 'and is there');

	# a leased claim that was given up asks for nothing
	$worker->do('BEGIN');
	$worker->do('INSERT INTO refunds VALUES (2)');
	$worker->do('SAVEPOINT s');
	$worker->do(claim_sql("$value given up", $lease));
	$worker->do('ROLLBACK TO SAVEPOINT s');
	is(ending($worker, 'COMMIT'), $expected, "leased claim rolled back to a savepoint, $value: $expected");
}

#
# Every other change of a leased claim, and of what it depends on.
#
my %sessions = map { $_ => session($node, $_) } qw(worker reconciler);
$sessions{administrator} = session($node);
$_->do('SET synchronous_commit = off') foreach values %sessions;

# first some records, with nobody to wait for
synchronous('');
foreach my $key (qw(dispatch renew complete fail release mark_uncertain reconcile redact))
{
	$sessions{worker}->do(claim_sql($key, $lease));
}
$sessions{worker}->do(claim_sql('sweep', 'lease => \'1 ms\''));
$sessions{worker}->do("SELECT tool_claims.mark_uncertain('t', 'reconcile', 1, 'time-out')");
$sessions{worker}->do("SELECT tool_claims.complete('t', 'redact', '1', 1)");
synchronous('nobody');

foreach my $case (
	[ worker => "dispatch('t', 'dispatch', 1)" ],
	[ worker => "renew('t', 'renew', 1, '5 min')" ],
	[ worker => "complete('t', 'complete', '1', 1)" ],
	[ worker => "fail('t', 'fail', '1', 1)" ],
	[ worker => "release('t', 'release', 1)" ],
	[ worker => "mark_uncertain('t', 'mark_uncertain', 1, 'time-out')" ],
	[ reconciler => "reconcile('t', 'reconcile', 1, 'occurred', '{\"seen\": true}')" ],
	[ administrator => 'sweep()' ],
	[ administrator => "redact('t', 'redact', 'request')" ],
	[ administrator => "set_tool_policy('mail', enabled => false)" ],
	[ administrator => "drop_tool_policy('mail')" ])
{
	my ($role, $call) = @$case;

	is(ending($sessions{$role}, "SELECT tool_claims.$call"), 'waits', "$call waits under off");
}

# what changes nothing waits for nobody
is(ending($sessions{worker}, claim_sql('complete', $lease)), 'returns', 'a stored result does not wait');
is(ending($sessions{worker}, claim_sql('renew', $lease)), 'returns', 'nor does in_progress');
is(ending($sessions{worker}, "SELECT tool_claims.status('t', 'renew')"), 'returns', 'nor does status');

#
# A real standby, which has received and not yet applied.
#
synchronous('');
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
synchronous('standby');
wait_until(
	sub { (value($observer, 'SELECT sync_state FROM pg_stat_replication') // '') eq 'sync' })
  or die 'the standby does not come';

my $reader = session($standby);
$reader->do('SELECT pg_wal_replay_pause()');
wait_until(sub { value($reader, 'SELECT pg_get_wal_replay_pause_state()') eq 'paused' })
  or die 'the replay does not pause';

my $worker = session($node, 'worker');
$worker->do('SET synchronous_commit = off');
start_statement($worker, claim_sql('received', $lease));
ok(wait_until(sub { $worker->pg_ready }, 20), 'off is raised to on, not to remote_apply')
  or value($observer, 'SELECT pg_cancel_backend(?)', $worker->{pg_pid});
is(end_statement($worker), '00000', 'and returns');
$worker->do('SET synchronous_commit = remote_apply');
start_statement($worker, claim_sql('applied', $lease));
ok(!wait_until(sub { $worker->pg_ready }, 2), 'remote_apply is not lowered');
is(wait_event($observer, $worker), 'SyncRep', 'and waits');

$reader->do('SELECT pg_wal_replay_resume()');
is(end_statement($worker), '00000', 'until it is applied');
$node->wait_for_catchup($standby);

#
# On the standby: no verb, every look.
#
my $here = session($standby, 'worker');
foreach my $call (
	claim_sql('complete'),
	claim_sql('complete', $lease),
	claim_sql('new', $lease),
	"SELECT tool_claims.dispatch('t', 'applied', 1)",
	"SELECT tool_claims.renew('t', 'applied', 1, '1 min')",
	"SELECT tool_claims.complete('t', 'applied', '1', 1)",
	"SELECT tool_claims.complete('t', 'complete', '1', 1)",
	"SELECT tool_claims.fail('t', 'applied', '1', 1)",
	"SELECT tool_claims.release('t', 'applied', 1)",
	"SELECT tool_claims.mark_uncertain('t', 'applied', 1, 'time-out')",
	"SELECT tool_claims.report_late('t', 'applied', 1, '1')",
	"SELECT tool_claims.assert_claim('t', 'applied', 1)",
	"SELECT tool_claims.execute('t', 'x', 'refund', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')")
{
	my ($verb) = $call =~ /tool_claims\.(\w+)/;

	is(sqlstate($here, $call), '25006', "$verb on a standby");
}
is(sqlstate(session($standby, 'reconciler'),
		"SELECT tool_claims.reconcile('t', 'mark_uncertain', 1, 'not_occurred', '{\"a\": 1}')"),
	'25006', 'reconcile on a standby');
foreach my $call ('sweep()', 'prune()', "redact('t', 'complete', 'request')",
	"set_tool_policy('mail', enabled => false)", "drop_tool_policy('mail')",
	"grant_duty('worker', 'auditor')", "revoke_duty('worker', 'worker')")
{
	is(sqlstate($reader, "SELECT tool_claims.$call"), '25006', "$call on a standby");
}

foreach my $look (
	"SELECT s::text FROM tool_claims.status('t', 'complete') AS s",
	"SELECT count(*) FROM tool_claims.claims",
	"SELECT string_agg(concat_ws(' ', kind, tool_call_id, attempt, external_ref), ', ' ORDER BY kind, tool_call_id) FROM tool_claims.attention",
	"SELECT string_agg(kind::text, ' ' ORDER BY seq) FROM tool_claims.evidence('t', 'reconcile')",
	"SELECT ok FROM tool_claims.verify_evidence('t', 'reconcile')",
	'SELECT count(*) FROM tool_claims.evidence_heads()',
	"SELECT count(*) FROM tool_claims.find_claims('no such key')",
	"SELECT count(*) FROM tool_claims.timeline('t', 'reconcile')",
	"SELECT tool_claims.digest('{\"b\": 1, \"a\": 2}')")
{
	my $there = value($observer, $look);

	isnt($there, undef, "primary: $look");
	is(value($reader, $look), $there, 'the standby says the same');
}

#
# It takes over: nothing acknowledged is lost, and the attempts go on.
#
$worker = session($node, 'worker');
$worker->do('SET synchronous_commit = off');
is(sqlstate($worker, claim_sql('last', $lease)), '00000', 'a last claim');
$node->stop('immediate');
$standby->promote;
$observer = session($standby);
$observer->do('ALTER SYSTEM RESET synchronous_standby_names');
$observer->do('SELECT pg_reload_conf()');
is(state('last'), 'claimed', 'it is on the promoted standby');
is(call(session($standby, 'rival'), 'claim', task_id => 't', tool_call_id => 'last', tool_name => 'refund',
		input => '{}', lease => '10 min')->{outcome},
	'in_progress', 'where no rival gets it');
is(call(session($standby, 'worker'), 'complete', task_id => 't', tool_call_id => 'last', result => '1',
		attempt => 1)->{outcome},
	'completed', 'and its holder completes it');
evidence_ok($observer, 'evidence verifies');

$standby->stop;
done_testing();
