# An approval is used once, whatever happens to the server between its steps,
# and what was refused never reaches the tool.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('approvals', 'max_connections = 100');
my $execution = '00000000-0000-0000-0000-000000000001';

add_people($node);

sub add_people
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'EOF');
CREATE ROLE agent LOGIN;
CREATE ROLE alice LOGIN;
CREATE ROLE bob LOGIN;
CREATE ROLE admin LOGIN;
SELECT tool_claims.grant_duty('agent', 'proposer');
SELECT tool_claims.grant_duty('alice', 'approver');
SELECT tool_claims.grant_duty('bob', 'approver');
SELECT tool_claims.grant_duty('admin', 'administrator');
SELECT tool_claims.set_tool_policy('refund', approvals_required => 2);
SELECT tool_claims.add_approver('alice');
SELECT tool_claims.add_approver('bob');
EOF
	return;
}

# What is bound; reserve gets the same, and the execution.
my @action = (tool_name => 'refund', input => '{"order": 7}', actor => 'agent');

# One verb in a session of its own, and what it answers.  A role in another
# database is named as [ role, database ].
sub answer
{
	my ($role, $verb, $key, %arguments) = @_;
	my ($name, $dbname) = ref $role ? @$role : ($role, 'postgres');
	my $row = call(session($node, $name, dbname => $dbname),
		$verb, task_id => 't', tool_call_id => $key, %arguments);

	return $row->{sqlstate} if defined $row->{sqlstate};
	return join ' ', grep { defined } @$row{qw(outcome reason state attempt result error)};
}

sub binding_digest
{
	my ($key, %option) = @_;

	return value(session($node, undef, %option),
		'SELECT binding_digest FROM tool_claims.proposals WHERE tool_call_id = ?', $key);
}

sub propose
{
	my ($key, @more) = @_;

	return answer('agent', 'propose', $key, @action, execution_id => $execution, @more);
}

sub decide
{
	my ($person, $verb, $key, @more) = @_;

	return answer($person, $verb, $key, binding_digest => binding_digest($key), @more);
}

# A proposal that both have approved.
sub approved
{
	my ($key, @more) = @_;

	propose($key, @more);
	decide('alice', 'approve', $key);
	is(decide('bob', 'approve', $key), 'recorded approved', "$key: approved");
	return;
}

# The tool, in the world outside: it writes down who reaches it.
$node->safe_psql('postgres', <<'EOF');
CREATE TABLE reached (tool_call_id text, effect_key text);
CREATE TABLE answers (outcome tool_claims.outcome, reason text, attempt integer);
GRANT SELECT, INSERT ON reached, answers TO worker, rival;
CREATE FUNCTION refund(jsonb) RETURNS json LANGUAGE sql AS
	$$ INSERT INTO reached VALUES ('execute', '') RETURNING '"done"'::json $$;
CREATE FUNCTION reserve_with_all(call text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock_shared(1);
	INSERT INTO answers
	SELECT outcome, reason, attempt
	FROM tool_claims.reserve('t', call, '00000000-0000-0000-0000-000000000001', 'refund', '{"order": 7}', 'agent', lease => '10 min');
END $$;
EOF

sub reached
{
	my ($key) = @_;

	return value(session($node), 'SELECT count(*) FROM reached WHERE tool_call_id = ?', $key);
}

# The process that acts: only what it has acquired reaches the tool.
sub act
{
	my ($key, $verb, @arguments) = @_;
	my $worker = session($node, 'worker');
	my $claim = call($worker, $verb, task_id => 't', tool_call_id => $key, @arguments);

	return $claim->{sqlstate} if defined $claim->{sqlstate};
	if ($claim->{outcome} eq 'acquired')
	{
		$worker->do('INSERT INTO reached VALUES (?, ?)', undef, $key, $claim->{effect_key});
		return call($worker, 'complete', task_id => 't', tool_call_id => $key,
			attempt => $claim->{attempt}, result => '"done"')->{outcome};
	}
	return join ' ', grep { defined } @$claim{qw(outcome reason result)};
}

sub act_on
{
	my ($key, @more) = @_;
	my %arguments = (@action, execution_id => $execution, lease => '10 min', @more);

	return act($key, 'reserve', %arguments);
}

#
# 64 processes of one execution reserve at once.
#
approved('race');
my $gate = session($node);
value($gate, 'SELECT pg_advisory_lock(1)');
my @racers = map { session($node, 'worker') } 1 .. 64;
start_statement($_, "SELECT reserve_with_all('race')") foreach @racers;
ok( wait_until(
		sub {
			value($gate, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 64;
		}),
	'64 sessions stand at the gate');
value($gate, 'SELECT pg_advisory_unlock(1)');
is((grep { end_statement($_) ne '00000' } @racers), 0, 'none of them fails');
is_deeply(
	$gate->selectall_arrayref('SELECT outcome, attempt, count(*) FROM answers GROUP BY outcome, attempt ORDER BY outcome'),
	[ [ 'acquired', 1, 1 ], [ 'in_progress', undef, 63 ] ],
	'one of them acquires');
is(value($gate, "SELECT count(*) FROM tool_claims.events WHERE kind = 'reserved'"), 1, 'and the approval is used once');
$_->disconnect foreach @racers, $gate;

#
# A restart between any two steps.
#
sub restart
{
	$node->restart;
	evidence_ok(session($node), 'restart: evidence verifies');
	return;
}

my @reserve = (@action, execution_id => $execution, lease => '10 min');
my $request = '0b9e3c5a-6d0f-4c3e-9d43-5b3f7c2f8a11';

is(propose('restart'), 'proposed pending', 'propose');
restart();
is(propose('restart'), 'existing pending', 'the same proposal');
is(decide('alice', 'approve', 'restart'), 'recorded pending', 'the first approval');
restart();
is(decide('alice', 'approve', 'restart'), 'already_recorded pending', 'the same once more');
is(answer('worker', 'reserve', 'restart', @reserve), 'refused pending', 'one is not enough');
is(decide('bob', 'approve', 'restart'), 'recorded approved', 'the second approval');
restart();
is(value(session($node, 'worker'), 'SELECT tool_call_id FROM tool_claims.ready'), 'restart', 'it is in the work list');
is(answer('worker', 'reserve', 'restart', @reserve, request_id => $request, dispatched => 'false'),
	'acquired 1', 'reserve');
restart();
is(answer('worker', 'reserve', 'restart', @reserve, request_id => $request, dispatched => 'false'),
	'acquired already_held 1', 'the lost answer of reserve');
is(answer('rival', 'reserve', 'restart', @reserve), 'in_progress', 'nobody else');
is(answer('alice', 'revoke', 'restart', reason => 'too late'), 'refused reserved reserved', 'too late to revoke');
is(answer('worker', 'dispatch', 'restart', attempt => 1), 'acquired 1', 'dispatch');
restart();
is(answer('worker', 'complete', 'restart', attempt => 1, result => '"done"'), 'completed 1 "done"', 'complete');
restart();
is(answer('rival', 'reserve', 'restart', @reserve), 'completed "done"', 'reserve gets the stored result');
is(propose('restart'), 'existing reserved "done"', 'so does propose');
is(value(session($node), q{SELECT execution FROM tool_claims.review('t', 'restart')}), 'completed', 'and review');
is(join(' ', @{ session($node)->selectcol_arrayref(q{SELECT kind FROM tool_claims.evidence('t', 'restart') WHERE kind <> 'refused' ORDER BY seq}) }),
	'proposed approved approved reserved dispatched', 'every step is in the evidence');

#
# The server is killed between reserve and complete.
#
approved('killed');
is(answer('worker', 'reserve', 'killed', @reserve, lease => '1 s'), 'acquired 1', 'reserve');
crash($node);
ok(wait_until(sub { answer('worker', 'reserve', 'killed', @reserve) ne 'in_progress' }), 'the lease ends');
is(answer('worker', 'reserve', 'killed', @reserve), 'uncertain lease_expired', 'nobody knows what happened');
is(answer('rival', 'reserve', 'killed', @reserve), 'uncertain lease_expired', 'nobody may act');
my @other = (@action, execution_id => '00000000-0000-0000-0000-000000000002', lease => '10 min');
is(answer('rival', 'reserve', 'killed', @other), 'refused other_execution', 'another execution still less');
is(answer('reconciler', 'reconcile', 'killed', attempt => 1, finding => 'not_occurred', evidence => '{"statement": "none"}'),
	'released', 'a person looked');
is(answer('rival', 'reserve', 'killed', @other), 'refused other_execution', 'the next attempt is for the same execution alone');
is(answer('worker', 'claim', 'killed', tool_name => 'refund', input => '{"order": 7}', lease => '1 min'),
	'refused approval_required', 'by reserve alone');
is(act_on('killed'), 'completed', 'which acts');
is(act_on('killed'), 'completed "done"', 'and then gets the result');
is(reached('killed'), 1, 'the tool was reached once');

# killed in the transaction of the reservation
approved('open');
my $session = session($node, 'worker');
$session->do('BEGIN');
is(call($session, 'reserve', task_id => 't', tool_call_id => 'open', @reserve)->{outcome}, 'acquired', 'reserve in a transaction');
crash($node);
is(act_on('open'), 'completed', 'which never was: the approval is still there');
is(act_on('open'), 'completed "done"', 'and used then');
is(reached('open'), 1, 'once');

#
# Whatever is refused never reaches the tool, and leaves its reason.
#
my %refused;

sub refused
{
	my ($key, $reason, @more) = @_;

	is(act_on($key, @more), "refused $reason", "refused: $key, $reason");
	push @{ $refused{$key} }, $reason;
	return;
}

refused('nothing', 'not_found');
propose('undecided');
refused('undecided', 'pending');
propose('rejected');
decide('alice', 'reject', 'rejected');
refused('rejected', 'rejected');
approved('withdrawn');
answer('agent', 'withdraw', 'withdrawn', reason => 'not needed');
refused('withdrawn', 'withdrawn');
approved('revoked');
answer('bob', 'revoke', 'revoked', reason => 'wrong account');
refused('revoked', 'revoked');
approved('superseded');
propose('newer', supersedes => 'superseded');
refused('superseded', 'superseded');
approved('late', expires_in => '3 s');
propose('hasty');
decide('alice', 'approve', 'hasty', use_within => '1 ms');
decide('bob', 'approve', 'hasty');
refused('hasty', 'use_by_passed');

approved('changed');
refused('changed', 'changed_actor', actor => 'somebody');
refused('changed', 'changed_project', project => 'other');
refused('changed', 'changed_tool_server', tool_server => 'other');
refused('changed', 'changed_tool_name', tool_name => 'mail');
refused('changed', 'changed_schema_version', schema_version => '2');
refused('changed', 'changed_policy_version', policy_version => '2');
refused('changed', 'changed_input', input => '{"order": 8}');
refused('changed', 'changed_operation_id', operation_id => 'order 7');
refused('changed', 'other_execution', execution_id => '00000000-0000-0000-0000-000000000002');
is(act('changed', 'reserve_by_digest', execution_id => $execution, binding_digest => '0' x 64, lease => '1 min'),
	'refused changed_binding', 'refused: another digest');
push @{ $refused{changed} }, 'changed_binding';
is(act('changed', 'claim', tool_name => 'refund', input => '{"order": 7}', lease => '1 min'),
	'refused approval_required', 'refused: claim');
push @{ $refused{changed} }, 'approval_required';
is(sqlstate(session($node, 'worker'), q{SELECT tool_claims.execute('t', 'changed', 'refund', '{"order": 7}', 'refund(jsonb)')}),
	'TC010', 'refused: execute');

my $admin = session($node, 'admin');
approved('removed');
$admin->do(q{SELECT tool_claims.remove_approver('alice')});
refused('removed', 'approver_ineligible');
$admin->do(q{SELECT tool_claims.add_approver('alice')});
approved('raised');
$admin->do(q{SELECT tool_claims.set_tool_policy('refund', enabled => false)});
refused('raised', 'policy_changed');
$admin->do(q{SELECT tool_claims.set_tool_policy('refund', reset => ARRAY['enabled'])});
refused('raised', 'policy_changed');
wait_until(sub { answer('worker', 'reserve', 'late', @reserve) ne 'refused policy_changed' });
refused('late', 'expired');

is(value(session($node), 'SELECT count(*) FROM reached WHERE tool_call_id = \'execute\' OR tool_call_id = ANY (?)', [ keys %refused ]),
	0, 'the tool was never reached');
is(value(session($node), 'SELECT count(*) FROM tool_claims.events WHERE kind IN (\'reserved\', \'acquired\', \'dispatched\') AND tool_call_id = ANY (?)', [ keys %refused ]),
	0, 'nothing was granted');
foreach my $key (sort keys %refused)
{
	my $reasons = session($node)->selectcol_arrayref(
		q{SELECT DISTINCT detail ->> 'reason' FROM tool_claims.events WHERE kind = 'refused' AND tool_call_id = ?}, undef, $key);
	my %there = map { $_ => 1 } @$reasons;

	is_deeply([ grep { !$there{$_} } @{ $refused{$key} } ], [], "the evidence of $key says why");
}
evidence_ok(session($node), 'evidence verifies');

#
# Dump and restore: what was decided holds in the copy, and goes on there.
#
my @tables = qw(claim_records events policies policy_numbers proposal_records votes approvers);

sub content
{
	my ($session) = @_;

	return { map { $_ => [ sort @{ $session->selectcol_arrayref("SELECT t::text FROM tool_claims.$_ AS t") } ] } @tables };
}

$node->safe_psql('postgres', <<'EOF');
CREATE ROLE dumper LOGIN;
SELECT tool_claims.grant_duty('dumper', 'backup');
GRANT SELECT ON reached, answers TO dumper;
EOF
propose('dump pending');
decide('alice', 'approve', 'dump pending');
approved('dump approved');
approved('dump removed');
approved('dump reserved');
is(answer('worker', 'reserve', 'dump reserved', @reserve), 'acquired 1', 'reserve');

my $before = content(session($node));
my $folder = PostgreSQL::Test::Utils::tempdir();
my @source = ('-h', $node->host, '-p', $node->port);
command_ok([ 'pg_dump', @source, '-U', 'dumper', '-Fc', '-f', "$folder/dump", 'postgres' ], 'pg_dump with the backup duty');
$node->safe_psql('postgres', 'CREATE DATABASE copy');
command_ok([ 'pg_restore', @source, '--exit-on-error', '-d', 'copy', "$folder/dump" ], 'pg_restore');

my $copy = session($node, undef, dbname => 'copy');
my @copy = (dbname => 'copy');
is_deeply(content($copy), $before, 'copy: every row is the same');
evidence_ok($copy, 'copy: evidence verifies');
is(answer([ 'worker', 'copy' ], 'reserve', 'dump pending', @reserve), 'refused pending', 'copy: pending');
is(answer([ 'alice', 'copy' ], 'approve', 'dump pending', binding_digest => binding_digest('dump pending', @copy)),
	'already_recorded pending', 'copy: the vote is there');
is(answer([ 'bob', 'copy' ], 'approve', 'dump pending', binding_digest => binding_digest('dump pending', @copy)),
	'recorded approved', 'copy: the next vote');
is(answer([ 'worker', 'copy' ], 'reserve', 'dump pending', @reserve), 'acquired 1', 'copy: and it is reserved');
is(answer([ 'worker', 'copy' ], 'reserve', 'dump approved', @reserve, input => '{"order": 8}'),
	'refused changed_input', 'copy: the binding holds');
is(answer([ 'worker', 'copy' ], 'reserve', 'dump approved', @reserve), 'acquired 1', 'copy: reserved');
is(answer([ 'worker', 'copy' ], 'complete', 'dump approved', attempt => 1, result => '"done"'),
	'completed 1 "done"', 'copy: completed');
is(answer([ 'rival', 'copy' ], 'reserve', 'dump reserved', @reserve), 'in_progress', 'copy: what was reserved is held');
is(answer([ 'worker', 'copy' ], 'complete', 'dump reserved', attempt => 1, result => '"done"'),
	'completed 1 "done"', 'copy: by the one who reserved it');
is(answer([ 'rival', 'copy' ], 'reserve', 'dump reserved', @reserve), 'completed "done"', 'copy: the result for everybody');
is(answer([ 'worker', 'copy' ], 'reserve', 'raised', @reserve), 'refused policy_changed', 'copy: an old policy version stays old');
$copy->do(q{SELECT tool_claims.remove_approver('alice')});
is(answer([ 'worker', 'copy' ], 'reserve', 'dump removed', @reserve), 'refused approver_ineligible', 'copy: an approver is removed');
my $version = value($copy, q{SELECT policy_version::integer FROM tool_claims.policies WHERE tool_name = 'refund'});
$copy->do(q{SELECT tool_claims.drop_tool_policy('refund')});
$copy->do(q{SELECT tool_claims.set_tool_policy('refund', approvals_required => 2)});
is(value($copy, q{SELECT policy_version::integer FROM tool_claims.policies WHERE tool_name = 'refund'}),
	$version + 1, 'copy: the policy is numbered on');
evidence_ok($copy, 'copy: evidence verifies after more work');

#
# A synchronous standby that is not there: every change waits for it, whatever
# the session says.
#
my $observer = session($node);
my @values = qw(off local remote_write on remote_apply);

$observer->do('SET synchronous_commit = local');
foreach my $value (@values)
{
	propose("$value vote");
	propose("$value taken back");
	approved("$value granted");
	approved("$value local");
	approved("$value revoked");
	$observer->do('SELECT tool_claims.add_approver(?)', undef, "$value leaver");
	$observer->do('SELECT tool_claims.set_tool_policy(?)', undef, "$value old");
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

$observer->do(q{ALTER SYSTEM SET synchronous_standby_names = 'nobody'});
$observer->do('SELECT pg_reload_conf()');
my $probe = session($node);
$probe->do('SET synchronous_commit = on');
wait_until(sub { ending($probe, 'CREATE TEMP TABLE IF NOT EXISTS probe (); DROP TABLE probe') eq 'waits' })
  or die 'nobody waits';

my $bound = q{'refund', '{"order": 7}', 'agent'};
foreach my $value (@values)
{
	my %digest = map { $_ => binding_digest("$value $_") } qw(vote granted);
	my @changes = (
		[ 'agent', "propose('t', '$value new', $bound)" ],
		[ 'alice', "approve('t', '$value vote', '$digest{vote}')" ],
		[ 'bob', "reject('t', '$value vote', '$digest{vote}')" ],
		[ 'bob', "revoke('t', '$value revoked', 'wrong account')" ],
		[ 'agent', "withdraw('t', '$value taken back', 'not needed')" ],
		[ 'worker', "reserve('t', '$value granted', '$execution', $bound, lease => '1 min')" ],
		[ 'admin', "add_approver('$value carol')" ],
		[ 'admin', "remove_approver('$value leaver')" ],
		[ 'admin', "set_tool_policy('$value tool', enabled => true)" ],
		[ 'admin', "drop_tool_policy('$value old')" ]);

	foreach my $change (@changes)
	{
		my ($role, $sql) = @$change;
		my $session = session($node, $role);
		my ($verb) = $sql =~ /^(\w+)/;

		$session->do("SET synchronous_commit = $value");
		is(ending($session, "SELECT tool_claims.$sql"), 'waits', "$verb, synchronous_commit = $value");
	}

	# asked for less after the call, and a reservation without a lease
	my $session = session($node, 'worker');
	$session->do('BEGIN');
	is(value($session, "SELECT outcome FROM tool_claims.reserve('t', '$value local', '$execution', $bound)"), 'acquired', 'reserve without a lease');
	is(value($session, "SELECT outcome FROM tool_claims.complete('t', '$value local', '\"done\"')"), 'completed', 'complete');
	$session->do("SET LOCAL synchronous_commit = $value");
	is(ending($session, 'COMMIT'), 'waits', "COMMIT after reserve, synchronous_commit = $value");
}

$observer->do('ALTER SYSTEM RESET synchronous_standby_names');
$observer->do('SELECT pg_reload_conf()');
wait_until(sub { value(session($node), 'SHOW synchronous_standby_names') eq '' }) or die 'the setting does not change';
foreach my $value (@values)
{
	is(join(' ', @{ $observer->selectcol_arrayref('SELECT state FROM tool_claims.proposals WHERE tool_call_id LIKE ? ORDER BY tool_call_id COLLATE "C"', undef, "$value %") }),
		'reserved reserved pending revoked withdrawn rejected', "all of it is there, $value");
}
evidence_ok($observer, 'evidence verifies');

$_->disconnect foreach grep { defined } $observer, $probe, $copy, $admin, $session;
$node->stop;
done_testing();
