# After a failover, a restore or a copy the extension notices that it may have
# forgotten what was acted on, at the first verb; tool_claims.after_recovery
# says whether grants go on before an administrator has accepted that.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $lease = '50 min';

# A call of a tool; leased, unless the fields say otherwise.
sub delivery
{
	my ($session, $key, %more) = @_;
	my %call = (
		task_id => 't',
		tool_call_id => $key,
		tool_name => 'refund',
		input => '{"order": 7}',
		lease => $lease,
		wait => '0',
		%more);
	my $answer = call($session, 'claim', %call);

	return $answer->{sqlstate} // join ' ', grep { defined } @$answer{qw(outcome reason)};
}

# One without a lease, in a transaction of its own.
sub local_delivery
{
	my ($session, $key) = @_;

	$session->do('BEGIN');
	my $answer = delivery($session, $key, lease => undef);
	$session->do("SELECT tool_claims.complete('t', '$key', '1')") if $answer eq 'acquired';
	$session->do('COMMIT');
	return $answer;
}

sub proposal
{
	my ($session, $key) = @_;

	return call(
		$session, 'propose',
		task_id => 'p',
		tool_call_id => $key,
		tool_name => 'wire',
		input => '{"to": "acme"}',
		actor => 'agent');
}

sub reservation
{
	my ($session, $key, $proposal, @more) = @_;
	my $answer = call(
		$session, 'reserve',
		task_id => 'p',
		tool_call_id => $key,
		execution_id => $proposal->{execution_id},
		tool_name => 'wire',
		input => '{"to": "acme"}',
		actor => 'agent',
		@more);

	return $answer->{sqlstate} // join ' ', grep { defined } @$answer{qw(outcome reason)};
}

sub now
{
	return value($_[0], 'SELECT clock_timestamp()');
}

sub state
{
	my ($session, $key) = @_;

	return value($session, 'SELECT state FROM tool_claims.status(\'t\', ?)', $key);
}

# What an administrator is shown of a recovery.
sub attention
{
	return value($_[0], 'SELECT count(*) FROM tool_claims.attention WHERE kind = \'recovery\'');
}

sub doctor
{
	return value($_[0], <<'EOS') // 'nothing';
SELECT string_agg(level, ' ') FROM tool_claims.doctor() WHERE finding LIKE '%identity%'
EOS
}

# What is written down about it.
sub identity
{
	return value($_[0], <<'EOS') // 'none';
SELECT concat_ws(', ', 'timeline ' || timeline, 'before ' || (changed_from ->> 'timeline'),
	CASE WHEN accepted_at IS NOT NULL THEN 'accepted by ' || accepted_by END)
FROM tool_claims.server_identity
EOS
}

# What is shown on a server that is the same.
sub unnoticed
{
	my ($session, $name) = @_;

	is(attention($session), '0', "$name: nothing in attention");
	is(doctor($session), 'nothing', "$name: nothing for the doctor");
	return;
}

# And on one that is not.
sub noticed
{
	my ($session, $name) = @_;

	is(attention($session), '1', "$name: attention shows it");
	is(doctor($session), 'warning', "$name: so does the doctor");
	return;
}

# A standby of a server, which follows it.
sub new_standby
{
	my ($node, $backup, $name, $conf) = @_;
	my $standby = PostgreSQL::Test::Cluster->new($name);

	$standby->init_from_backup($node, $backup, has_streaming => 1);
	$standby->append_conf('postgresql.conf', $conf // '');
	$standby->start;
	$node->wait_for_catchup($standby);
	return $standby;
}

# From here on it receives nothing.
sub cut_off
{
	my ($standby) = @_;

	$standby->append_conf('postgresql.conf', 'primary_conninfo = \'\'');
	$standby->reload;
	my $reader = session($standby);
	wait_until(sub { value($reader, 'SELECT count(*) FROM pg_stat_wal_receiver') eq '0' })
	  or die 'the standby goes on receiving';
	return;
}

my $node = new_server('primary', undef, has_archiving => 1);
my $admin = session($node);
my $worker = session($node, 'worker');

foreach my $statement (
	'CREATE ROLE proposer LOGIN',
	'CREATE ROLE alice LOGIN',
	"SELECT tool_claims.grant_duty('proposer', 'proposer')",
	"SELECT tool_claims.grant_duty('alice', 'approver')",
	"SELECT tool_claims.add_approver('alice')",
	"SELECT tool_claims.set_tool_policy('poll', on_lease_expiry => 'reacquire')")
{
	$admin->do($statement) or BAIL_OUT("$statement: " . $admin->errstr);
}
my $proposer = session($node, 'proposer');
my $alice = session($node, 'alice');

#
# The same server, started again, is the same.
#
is(delivery($worker, 'done'), 'acquired', 'a first grant');
is(call($worker, 'complete', task_id => 't', tool_call_id => 'done', result => '"sent"', attempt => 1)->{outcome},
	'completed', 'completed');
is(identity($admin), 'timeline 1', 'the identity is written down');
$_->disconnect foreach $admin, $worker, $proposer, $alice;
$node->restart;
$worker = session($node, 'worker');
is(delivery($worker, 'after restart'), 'acquired', 'grants go on after a restart');
crash($node);
$worker = session($node, 'worker');
$admin = session($node);
is(delivery($worker, 'after crash'), 'acquired', 'and after a crash');
is(identity($admin), 'timeline 1', 'under the same identity');
unnoticed($admin, 'restart and crash');
is(value($admin, "SELECT tool_claims.accept_recovery('-infinity') IS NOT NULL"), '1', 'accepting nothing is no error');
is(state($admin, 'after crash'), 'uncertain', 'it does what it says all the same');

#
# What the copies begin with.
#
$proposer = session($node, 'proposer');
$alice = session($node, 'alice');
my %proposal;
foreach my $key (qw(early late reserved pending))
{
	$proposal{$key} = proposal($proposer, $key);
	is($proposal{$key}{outcome}, 'proposed', "proposal $key");
}

sub approve
{
	my ($session, $key) = @_;

	return call($session, 'approve', task_id => 'p', tool_call_id => $key,
		binding_digest => $proposal{$key}{binding_digest})->{outcome};
}

is(approve($alice, 'early'), 'recorded', 'an early approval');
is(delivery($worker, 'poll', tool_name => 'poll', lease => '1 ms'), 'acquired', 'a short lease');
is(delivery($worker, 'expired', lease => '1 ms'), 'acquired', 'another');
$admin->do('SELECT pg_sleep(0.05)');
my $lost_since = now($admin);
is(approve($alice, $_), 'recorded', "approval $_") foreach qw(late reserved);
is(reservation($worker, 'reserved', $proposal{reserved}, lease => $lease), 'acquired', 'one of them is used');
is(delivery($worker, 'kept'), 'acquired', 'a claim in progress');
is(delivery($worker, 'idle', dispatched => 'false'), 'acquired', 'one that was not dispatched');
is(delivery($worker, 'open'), 'acquired', 'one that will end in time');

$node->backup('base');
$admin->do('SELECT pg_create_restore_point(\'before\')');
my $stop = 'tool_claims.after_recovery = stop';
my $follower = new_standby($node, 'base', 'follower');
my $stopper = new_standby($node, 'base', 'stopper', $stop);
my $twin = new_standby($node, 'base', 'twin', $stop);
cut_off($_) foreach $follower, $stopper, $twin;

# acknowledged here, and lost
is(delivery($worker, 'lost'), 'acquired', 'a claim that the standbys do not have');
is(reservation($worker, 'late', $proposal{late}, lease => $lease), 'acquired', 'and a reservation');

#
# Asynchronous failover, and grants go on.
#
{
	my $connected = session($follower, 'worker');
	my $watcher = session($follower);

	is(delivery($connected, 'lost'), '25006', 'no verb on the standby');
	is(attention($watcher), '0', 'nothing to see there');
	is(doctor($watcher), 'nothing', 'nor for the doctor');
	$node->stop('immediate');
	$follower->promote;

	is(delivery($connected, 'lost'), 'acquired', 'continue: what was lost is granted again');
	noticed($watcher, 'continue');
	noticed(session($follower), 'continue, another session');
	is(identity($watcher), 'timeline 2, before 1', 'what is and what was');
	is(value($watcher, "SELECT string_agg(concat_ws(' ', kind, task_id, tool_call_id, age >= '0'), ',') FROM tool_claims.attention WHERE kind = 'recovery'"),
		'recovery t', 'a line of its own in attention');
	$watcher->do('SET tool_claims.organization = \'other\'');
	is(attention($watcher), '1', 'in every organization');
	$watcher->do('RESET tool_claims.organization');
	is(delivery(session($follower, 'rival'), 'lost'), 'in_progress', 'from then on the claim holds');
	is(delivery($connected, 'kept'), 'in_progress', 'as does what was not lost');
	is(reservation($connected, 'late', $proposal{late}, lease => $lease), 'acquired', 'reservations go on as well');

	$follower->restart;
	$watcher = session($follower);
	$connected = session($follower, 'worker');
	is(delivery($connected, 'next'), 'acquired', 'after a restart too');
	noticed($watcher, 'continue, restarted');
	is(identity($watcher), 'timeline 2, before 1', 'it is no second change');
	is(call($connected, 'accept_recovery', lost_since => 'infinity')->{sqlstate}, '42501', 'a worker cannot accept it');
	is(call($watcher, 'accept_recovery', lost_since => undef)->{sqlstate}, '22004', 'nobody can for no time');
	noticed($watcher, 'continue, not accepted');
	is(value($watcher, 'SELECT tool_claims.accept_recovery(\'infinity\') IS NOT NULL'), '1', 'accepted');
	is(attention($watcher), '0', 'then attention is silent');
	is(doctor($watcher), 'info', 'and the doctor remembers');
	is(identity($watcher), 'timeline 2, before 1, accepted by ' . value($watcher, 'SELECT session_user'), 'and who it was');
	is(state($watcher, 'kept'), 'claimed', 'nothing since that time');
	evidence_ok($watcher, 'continue: evidence verifies');
	$follower->stop;
}

#
# The same, and grants stop.
#
{
	my $connected = session($stopper, 'worker');
	my $reader = session($stopper, 'rival');

	is(value($connected, "SELECT count(*) FROM tool_claims.status('t', 'done')"), '1', 'a session that reads the standby');
	is(value($reader, "SELECT count(*) FROM tool_claims.status('t', 'done')"), '1', 'and another');
	$stopper->promote;

	is(delivery($connected, 'lost'), 'TC012', 'stop: the first verb after the promotion, in a session of before');
	is(delivery(session($stopper, 'worker'), 'lost'), 'TC012', 'in a new one');
	is(delivery($reader, 'lost'), 'TC012', 'in the other one of before');
	is(delivery($connected, 'lost'), 'TC012', 'and again');

	# the first verbs do not wait for each other
	my $admin = session($stopper);
	noticed($admin, 'stop, after refusals only');
	my @sessions = map { session($stopper, 'worker') } 1 .. 6;
	my $open = session($stopper, 'worker');

	$open->do('BEGIN');
	is(delivery($open, 'open first', lease => undef), 'acquired', 'a first verb, in a transaction that stays open');
	$_->do('BEGIN') foreach @sessions;
	foreach my $i (0 .. $#sessions)
	{
		start_statement($sessions[$i],
			"SELECT tool_claims.claim('t', 'first $i', 'refund', '{}', wait => '0')");
	}
	ok(wait_until(sub { !grep { !$_->pg_ready } @sessions }, 10), 'other first verbs do not wait for it');
	is(join(' ', map { end_statement($_) } @sessions), '00000 ' x 5 . '00000', 'and acquire');
	foreach my $i (0 .. $#sessions)
	{
		$sessions[$i]->do("SELECT tool_claims.complete('t', 'first $i', '1')");
	}
	foreach my $session (@sessions)
	{
		start_statement($session, 'COMMIT');
	}
	ok(wait_until(sub { !grep { !$_->pg_ready } @sessions }, 10), 'nor do they at COMMIT');
	is(join(' ', map { end_statement($_) } @sessions), '00000 ' x 5 . '00000', 'and commit');
	is(delivery($reader, 'lost'), 'TC012', 'a leased one is refused meanwhile');
	$open->do('ROLLBACK');
	is(delivery($open, 'lost'), 'TC012', 'and after the open one gave up');

	# stop: what goes on
	is(local_delivery($connected, 'local'), 'acquired', 'stop: a transactional claim');
	noticed($admin, 'stop');
	is(local_delivery($connected, 'local'), 'completed', 'its stored result');
	is(delivery($connected, 'done'), 'completed', 'a stored result of a leased claim');
	is(delivery($connected, 'done', input => '{"order": 8}'), 'conflict input', 'other data');
	is(delivery($connected, 'kept'), 'in_progress', 'a claim in progress');
	is(delivery($connected, 'expired'), 'uncertain lease_expired', 'an uncertain one');
	is(delivery($connected, 'poll', tool_name => 'poll'), 'TC012', 'but not one that is free again');
	is(call($connected, 'renew', task_id => 't', tool_call_id => 'kept', attempt => 1, lease => $lease)->{outcome},
		'acquired', 'the holder renews');
	is(call($connected, 'complete', task_id => 't', tool_call_id => 'open', attempt => 1, result => '1')->{outcome},
		'completed', 'and completes');
	is( value($connected,
			"SELECT tool_claims.execute('t', 'handled', 'refund', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')"),
		'{}', 'the one-call form');
	is(reservation($connected, 'pending', $proposal{pending}), 'refused pending', 'a refused reservation');
	is(reservation($connected, 'reserved', $proposal{reserved}), 'in_progress', 'what a reservation observes');

	# stop: what does not
	is(reservation($connected, 'late', $proposal{late}, lease => $lease), 'TC012', 'stop: no reservation');
	is(reservation($connected, 'early', $proposal{early}), 'TC012', 'without a lease neither');
	is( call($connected, 'reserve_by_digest', task_id => 'p', tool_call_id => 'early',
			execution_id => $proposal{early}{execution_id},
			binding_digest => $proposal{early}{binding_digest})->{sqlstate},
		'TC012', 'nor by digest');
	is(delivery($connected, 'new', dispatched => 'false'), 'TC012', 'nor a claim that is not dispatched yet');
	is(sqlstate($connected, 'SET tool_claims.after_recovery = continue'), '42501', 'a worker cannot change that');

	# accepted, and not committed
	$admin->do('BEGIN');
	is(value($admin, 'SELECT tool_claims.accept_recovery(?) IS NOT NULL', $lost_since), '1', 'accepting');
	is(delivery($admin, 'within'), 'acquired', 'counts in its own transaction');
	is(delivery($reader, 'lost'), 'TC012', 'and in no other');
	$admin->do('ROLLBACK');
	is(delivery($admin, 'within'), 'TC012', 'nor there, when that is rolled back');
	is(state($admin, 'kept'), 'claimed', 'with nothing changed');
	$admin->do('ROLLBACK');

	# accepted
	$admin = session($stopper);
	is(value($admin, 'SELECT tool_claims.accept_recovery(?) IS NOT NULL', $lost_since), '1', 'accepted');
	my %state = map { $_ => state($admin, $_) } qw(kept idle done open expired poll);
	is_deeply(
		\%state,
		{
			kept => 'uncertain',
			idle => 'uncertain',
			done => 'completed',
			open => 'completed',
			expired => 'uncertain',
			poll => 'released'
		},
		'leased claims in progress since then are uncertain');
	is(value($admin, "SELECT state FROM tool_claims.status('p', 'reserved')"), 'uncertain', 'also a reserved one');
	is( value($admin, "SELECT string_agg(tool_call_id || ' ' || state, ', ' ORDER BY tool_call_id) FROM tool_claims.proposals"),
		'early approved, late revoked, pending pending, reserved reserved',
		'approvals decided since then, and not used, are revoked');
	is( value($admin, "SELECT kind || ' ' || (detail ->> 'reason') FROM tool_claims.evidence('t', 'kept') ORDER BY seq DESC LIMIT 1"),
		'uncertain recovery', 'the evidence says why');
	is( value($admin, "SELECT kind || ' ' || (detail ->> 'reason') FROM tool_claims.evidence('p', 'late') ORDER BY seq DESC LIMIT 1"),
		'revoked recovery', 'of both');
	is(attention($admin), '0', 'attention is silent about the recovery');
	is(value($admin, "SELECT count(*) FROM tool_claims.attention WHERE kind = 'uncertain' AND tool_call_id = 'kept'"),
		'1', 'and shows the uncertain claims');

	# the stop is over, for sessions that were refused before too
	is(delivery($connected, 'lost'), 'acquired', 'grants go on, in a session of before the promotion');
	is(delivery($reader, 'more'), 'acquired', 'in the other one');
	is(delivery($open, 'still more'), 'acquired', 'in one of before the acceptance');
	is(delivery(session($stopper, 'worker'), 'most'), 'acquired', 'and in a new one');
	is(reservation($connected, 'early', $proposal{early}, lease => $lease), 'acquired', 'so do reservations');
	is(reservation($connected, 'late', $proposal{late}, lease => $lease), 'refused revoked', 'of what is still approved');
	is( call($connected, 'complete', task_id => 't', tool_call_id => 'kept', attempt => 1, result => '1')->{outcome},
		'completed', 'the holder of an uncertain claim may still say what happened');
	is( call(session($stopper, 'reconciler'), 'reconcile', task_id => 't', tool_call_id => 'idle', attempt => 1,
			finding => 'abandoned', evidence => '{"statement": "none"}')->{outcome},
		'failed', 'or a reconciler');
	evidence_ok($admin, 'stop: evidence verifies');
	$stopper->stop;
}

#
# Two sessions find the change at the same time, and one is so slow that the
# recovery is accepted meanwhile.
#
{
	my $admin = session($twin);
	my $slow = session($twin, 'worker');

	$twin->promote;
	$admin->do('BEGIN');
	$admin->do('LOCK TABLE tool_claims.server_identity IN SHARE MODE');
	$slow->do('BEGIN');
	start_statement($slow, "SELECT tool_claims.claim('t', 'slow', 'refund', '{}', wait => '0')");
	wait_until(sub { $slow->pg_ready || wait_event($admin, $slow) eq 'relation' });
	$admin->do('SELECT tool_claims.accept_recovery(\'infinity\')');
	$admin->do('COMMIT');
	is(end_statement($slow), '00000', 'a slow first verb');
	$slow->do("SELECT tool_claims.complete('t', 'slow', '1')");
	is(sqlstate($slow, 'COMMIT'), '00000', 'commits');
	is(identity($admin), 'timeline 2, before 1, accepted by ' . value($admin, 'SELECT session_user'),
		'does not take the acceptance back');
	is(delivery($slow, 'then'), 'acquired', 'and grants go on');
	$twin->stop;
}

#
# A restored base backup, up to a point in time.
#
{
	my $restored = PostgreSQL::Test::Cluster->new('restored');

	$restored->init_from_backup($node, 'base', has_restoring => 1);
	$restored->append_conf('postgresql.conf', <<"EOS");
$stop
recovery_target_name = 'before'
recovery_target_action = promote
EOS
	$node->start;
	session($node)->do('SELECT pg_switch_wal()');
	$node->stop;
	$restored->start;
	my $admin = session($restored);
	wait_until(sub { value($admin, 'SELECT pg_is_in_recovery()') eq '0' }) or die 'recovery does not end';
	my $worker = session($restored, 'worker');

	is(state($admin, 'lost'), undef, 'restore: something was lost');
	is(delivery($worker, 'lost'), 'TC012', 'restore: a lost claim is not granted');
	is(reservation($worker, 'late', $proposal{late}, lease => $lease), 'TC012', 'restore: nor a used approval');
	is(local_delivery($worker, 'local'), 'acquired', 'restore: a transactional claim is');
	noticed($admin, 'restore');
	is(value($admin, 'SELECT tool_claims.accept_recovery(?) IS NOT NULL', $lost_since), '1', 'restore: accepted');
	is(delivery($worker, 'lost'), 'acquired', 'restore: grants go on');
	is(reservation($worker, 'late', $proposal{late}, lease => $lease), 'refused revoked', 'restore: the approval is gone');
	$restored->stop;
}

#
# A copy of the files that goes on with the same timeline cannot be told apart.
#
{
	my $clone = PostgreSQL::Test::Cluster->new('clone');

	$clone->init_from_backup($node, 'base');
	$clone->append_conf('postgresql.conf', $stop);
	$clone->start;
	is(delivery(session($clone, 'worker'), 'lost'), 'acquired', 'clone on the same timeline: not noticed');
	unnoticed(session($clone), 'clone');
	$clone->stop;
}

#
# Copies of the database within one server.
#
$node->append_conf('postgresql.conf', $stop);
$node->start;
my $folder = PostgreSQL::Test::Utils::tempdir();
$node->safe_psql('template1', 'CREATE DATABASE copied TEMPLATE postgres');
$node->safe_psql('template1', 'CREATE DATABASE reloaded');
$node->command_ok([ 'pg_dump', '-Fc', '-f', "$folder/dump", 'postgres' ], 'dumped');
$node->command_ok([ 'pg_restore', '--exit-on-error', '-d', 'reloaded', "$folder/dump" ], 'restored');

foreach my $database (qw(copied reloaded))
{
	my $admin = session($node, undef, dbname => $database);
	my $worker = session($node, 'worker', dbname => $database);

	is(delivery($worker, 'here'), 'TC012', "$database database: noticed");
	is(delivery($worker, 'done'), 'completed', "$database database: stored results are there");
	noticed($admin, "$database database");
	is(value($admin, 'SELECT tool_claims.accept_recovery(\'infinity\') IS NOT NULL'), '1', "$database database: accepted");
	is(delivery($worker, 'here'), 'acquired', "$database database: grants go on");
	$_->disconnect foreach $admin, $worker;
}
unnoticed(session($node), 'the original database');
is(delivery(session($node, 'worker'), 'here'), 'acquired', 'which grants as ever');

#
# DROP and CREATE EXTENSION, with a session that stays.
#
{
	my $admin = session($node, undef, dbname => 'reloaded');
	my $worker = session($node, 'worker', dbname => 'reloaded');
	my $look = 'SELECT i.incarnation = b.incarnation AND i.changed_from IS NULL FROM tool_claims.server_identity i, tool_claims.births b';

	is(delivery($worker, 'before drop'), 'acquired', 'before DROP EXTENSION');
	my $before = value($admin, 'SELECT incarnation FROM tool_claims.births');
	$admin->do('DROP EXTENSION tool_claims');
	$admin->do('CREATE EXTENSION tool_claims');
	$admin->do('SELECT tool_claims.grant_duty(\'worker\', \'worker\')');
	isnt(value($admin, 'SELECT incarnation FROM tool_claims.births'), $before, 'a new extension is another one');
	is(delivery($worker, 'after drop'), 'acquired', 'an open session notices that it begins anew');
	is(value($admin, $look), '1', 'and writes down the new identity');
	unnoticed($admin, 'a new extension');

	# what is rolled back does not count
	$admin->do('DROP EXTENSION tool_claims');
	$admin->do('CREATE EXTENSION tool_claims');
	$admin->do('BEGIN');
	is(delivery($admin, "rolled back $_"), 'acquired', 'a first transaction, rolled back') foreach 1, 2;
	$admin->do('ROLLBACK');
	is(delivery($admin, 'after rollback'), 'acquired', 'the next one');
	is(value($admin, $look), '1', 'writes the identity down');

	# the old rows come back into a new one
	$admin->do('DROP EXTENSION tool_claims');
	$admin->do('CREATE EXTENSION tool_claims');
	$node->command_ok([ 'pg_restore', '--exit-on-error', '--data-only', '--disable-triggers', '-d', 'reloaded', "$folder/dump" ],
		'old rows in a new extension');
	$admin->do('SELECT tool_claims.grant_duty(\'rival\', \'worker\')');
	is(delivery(session($node, 'rival', dbname => 'reloaded'), 'again'), 'TC012', 'are noticed');
}

$node->stop;
done_testing();
