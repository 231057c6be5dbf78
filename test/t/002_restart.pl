# A restart between any two steps changes no answer.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('restart');

# Restarts, and looks that the evidence of before is still the evidence.
sub restart
{
	my %now = heads();

	$node->restart;
	is_deeply({ heads() }, \%now, 'restart: the same heads of evidence');
	evidence_ok(session($node), 'restart: evidence verifies');
	return;
}

sub heads
{
	return map { @$_ } @{ session($node)->selectall_arrayref(<<'EOF') };
SELECT concat_ws(' ', task_id, tool_call_id, seq), hash FROM tool_claims.evidence_heads()
EOF
}

# One call in a session of its own, as after a restart, and what it answers.
sub answer
{
	my ($role, $verb, @arguments) = @_;
	my $row = call(session($node, $role), $verb, task_id => 'restart', @arguments);

	return $row->{sqlstate} if defined $row->{sqlstate};
	return join ' ', grep { defined } @$row{qw(outcome reason attempt result error)};
}

my @leased = (tool_call_id => 'leased');
my @call = (@leased, tool_name => 'refund', input => '{"order": 7}', lease => '10 min');
my $request = '0b9e3c5a-6d0f-4c3e-9d43-5b3f7c2f8a11';

#
# The leased path.
#
is(answer('worker', 'claim', @call, dispatched => 'false', request_id => $request),
	'acquired 1', 'claim');
restart();
is(answer('worker', 'claim', @call, dispatched => 'false', request_id => $request),
	'acquired already_held 1', 'the lost answer of the claim');
is(answer('rival', 'claim', @call, request_id => $request),
	'in_progress', 'the same request id from another role');
restart();
is(answer('worker', 'complete', @leased, attempt => 1), 'TC003', 'complete before dispatch');
is(answer('worker', 'dispatch', @leased, attempt => 1, external_ref => 'bank-7'),
	'acquired 1', 'dispatch');
restart();
is(answer('worker', 'renew', @leased, attempt => 1, lease => '20 min'), 'acquired 1', 'renew');
restart();
is(answer('worker', 'claim', @call, request_id => $request),
	'in_progress', 'after a dispatch the request id is as for anybody');
is(answer('worker', 'mark_uncertain', @leased, attempt => 1, reason => 'time-out'),
	'uncertain reported 1', 'mark_uncertain');
restart();
is(answer('rival', 'claim', @call), 'uncertain reported', 'nobody acquires what is uncertain');
my @found = (@leased, attempt => 1, finding => 'not_occurred', evidence => '{"statement": "none"}');
is(answer('reconciler', 'reconcile', @found), 'released', 'reconcile');
restart();
is(answer('reconciler', 'reconcile', @found), 'released', 'reconcile, repeated');
is(answer('worker', 'complete', @leased, attempt => 1), 'TC002', 'the reconciled attempt is stale');
is(answer('worker', 'report_late', @leased, attempt => 1, result => '"sent"'), '', 'report_late');
restart();
is(answer('rival', 'claim', @call), 'acquired retry 2', 'the next attempt, by another role');
restart();
is(answer('worker', 'complete', @leased, attempt => 2), '42501', 'which is not the first one\'s');
is(answer('rival', 'release', @leased, attempt => 2, reason => 'bank closed'), 'released 2', 'release');
restart();
is(answer('rival', 'release', @leased, attempt => 2, reason => 'bank closed'),
	'released 2', 'release, repeated');
is(answer('worker', 'claim', @call), 'acquired retry 3', 'the third attempt');
restart();
is(answer('worker', 'complete', @leased, attempt => 3, result => ' {"refunded" : 12.50} '),
	'completed 3  {"refunded" : 12.50} ', 'complete');
restart();
is(answer('worker', 'complete', @leased, attempt => 3, result => ' {"refunded" : 12.50} '),
	'completed 3  {"refunded" : 12.50} ', 'complete, repeated');
is(answer('worker', 'complete', @leased, attempt => 3, result => '{"refunded": 12.50}'),
	'TC005', 'complete with other bytes');
is(answer('rival', 'claim', @call), 'completed  {"refunded" : 12.50} ', 'the stored result');
is(answer('rival', 'claim', @leased, tool_name => 'refund', input => '{"order": 8}'),
	'conflict input', 'other input');

# a lease runs on while the server is down
my @expiring = (tool_call_id => 'expiring', tool_name => 'refund', input => '{}', lease => '100 ms');
is(answer('worker', 'claim', @expiring), 'acquired 1', 'a short lease');
my @undispatched = (tool_call_id => 'undispatched', @expiring[ 2 .. $#expiring ], dispatched => 'false');
is(answer('worker', 'claim', @undispatched), 'acquired 1', 'a short lease, not dispatched');
restart();
is(answer('rival', 'claim', @expiring), 'uncertain lease_expired', 'expired over the restart');
is(answer('rival', 'claim', @undispatched), 'acquired takeover 2', 'and free when never dispatched');

#
# The transactional path.
#
my @local = (tool_call_id => 'local', tool_name => 'book', input => '{"order": 7}', operation_id => 'order 7');
my $session = session($node, 'worker');
$session->do('BEGIN');
is(call($session, 'claim', task_id => 'restart', @local)->{outcome}, 'acquired', 'claim in a transaction');
restart();
is(sqlstate($session, 'COMMIT') ne '00000', 1, 'which the restart ends');
is(value(session($node), "SELECT count(*) FROM tool_claims.status('restart', 'local')"),
	'0', 'nothing is left of it');

$session = session($node, 'worker');
$session->do('BEGIN');
is(call($session, 'claim', task_id => 'restart', @local)->{outcome}, 'acquired', 'claim again');
is(call($session, 'complete', task_id => 'restart', tool_call_id => 'local', result => '"booked"')->{outcome},
	'completed', 'complete');
is(sqlstate($session, 'COMMIT'), '00000', 'commit');
restart();
is(answer('rival', 'claim', @local), 'completed "booked"', 'the stored result');
is(answer('rival', 'claim', tool_call_id => 'local again', @local[ 2 .. $#local ]),
	'completed operation "booked"', 'also for the same operation under another pair');

#
# What an administrator has set.
#
is(value(session($node), "SELECT tool_claims.set_tool_policy('refund', enabled => false)"), '', 'a tool is disabled');
restart();
is(answer('worker', 'claim', tool_call_id => 'disabled', tool_name => 'refund', input => '{}', lease => '1 min'),
	'refused tool_disabled', 'it still is');
is(answer('rival', 'claim', @call), 'completed  {"refunded" : 12.50} ', 'what is stored is answered all the same');

$node->stop;
done_testing();
