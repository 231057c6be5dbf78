#!/usr/bin/perl
# The main job of tool_claims, told with a small refund business: tool calls that
# are delivered twice, at once, with changed input, and by workers that die
# half-way; and refunds that a person has to allow first.  Runs on the server in the PG* environment, as a superuser, in a
# database of its own.  The exit status tells whether the books balance.
use strict;
use warnings;

use DBI;
use Fcntl qw(O_APPEND O_CREAT O_WRONLY);
use File::Temp;
use POSIX ();
use Time::HiRes qw(sleep);

$| = 1;

my $database = 'tool_claims_demo';
my $work     = File::Temp->newdir;
my $provider = "$work/payments";    # the payment provider's books
my $chapter  = 0;

my $owner = open_shop();
my $balanced;

eval {
	introduce();
	delivered_twice();
	changed_input();
	dies_inside();
	outside_twice();
	dies_outside();
	reconcile();
	needs_a_person();
	$balanced = close_books();
	show_timeline();
	1;
} or print "\nThe demo failed: $@";

$owner->disconnect;
eval {
	my $dbh = connect_as('postgres', 'demo', 'postgres');
	$dbh->do("DROP DATABASE $database");
	$dbh->do('DROP ROLE shop_agent, shop_clerk, shop_manager, shop_worker');
};
exit($balanced ? 0 : 1);


# ---- the shop -----------------------------------------------------------

sub connect_as
{
	my ($db, $name, $role) = @_;

	return DBI->connect("dbi:Pg:dbname=$db;application_name='$name'",
		$role, undef,
		{
			AutoCommit          => 1,
			AutoInactiveDestroy => 1,
			PrintError          => 0,
			PrintWarn           => 0,
			RaiseError          => 1
		});
}

# a connection of a worker, named as such
sub worker
{
	my ($name) = @_;

	return connect_as($database, "worker $name", 'shop_worker');
}

# open_shop(): the database with its tables, roles and the tool's function
sub open_shop
{
	my $dbh = connect_as('postgres', 'demo', 'postgres');
	$dbh->do('SET client_min_messages = warning');
	$dbh->do("DROP DATABASE IF EXISTS $database");
	$dbh->do("DROP ROLE IF EXISTS shop_$_") for qw(agent clerk manager worker);
	$dbh->do("CREATE DATABASE $database");
	$dbh->disconnect;

	$dbh = connect_as($database, 'demo', 'postgres');
	$dbh->do($_) for split /\n--\n/, <<'SQL';
CREATE EXTENSION tool_claims
--
CREATE ROLE shop_worker LOGIN
--
CREATE ROLE shop_clerk LOGIN
--
CREATE ROLE shop_agent LOGIN
--
CREATE ROLE shop_manager LOGIN
--
SELECT tool_claims.grant_duty('shop_worker', 'worker')
--
SELECT tool_claims.grant_duty('shop_clerk', 'reconciler')
--
SELECT tool_claims.grant_duty('shop_agent', 'proposer')
--
SELECT tool_claims.grant_duty('shop_manager', 'approver')
--
SELECT tool_claims.add_approver('shop_manager')
--
CREATE FUNCTION approvals(input json) RETURNS integer LANGUAGE sql IMMUTABLE AS
	$$ SELECT CASE WHEN (input ->> 'amount')::numeric > 100 THEN 1 ELSE 0 END $$
--
SELECT tool_claims.set_tool_policy('*', log => 'all')
--
SELECT tool_claims.set_tool_policy('pay_out', log => 'all', approval_rule => 'public.approvals(json)')
--
CREATE TABLE asked (task_id text, tool_call_id text, amount numeric(10, 2), note text)
--
CREATE TABLE refunds (task_id text, tool_call_id text, amount numeric(10, 2), paid_by text)
--
CREATE TABLE payments (effect_key text, amount numeric(10, 2), paid_by text)
--
CREATE FUNCTION refund(input jsonb) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO refunds
	SELECT task_id, tool_call_id, (refund.input ->> 'amount')::numeric(10, 2), current_setting('application_name')
	FROM tool_claims.current_claim();
	PERFORM pg_sleep(0.3);
	RETURN json_build_object('refunded', (input ->> 'amount')::numeric(10, 2), 'by', current_setting('application_name'));
END $$
--
GRANT SELECT, INSERT ON refunds TO shop_worker
SQL
	return $dbh;
}

# What the agent asks for, once for each call.
sub agent_asks
{
	my ($task, $call, $amount, $note) = @_;

	$owner->do('INSERT INTO asked VALUES (?, ?, ?, ?)', undef, $task, $call, $amount, $note);
}

# a payment at the provider: a line in its books, under the key it was given
sub pay
{
	my ($effect_key, $amount, $name) = @_;

	sysopen my $books, $provider, O_WRONLY | O_APPEND | O_CREAT or die "$provider: $!\n";
	syswrite $books, "$effect_key\t$amount\tworker $name\n";
	close $books;
}

# the provider's books, as the person at the desk can look them up
sub payments
{
	my %payment;

	open my $books, '<', $provider or return {};
	while (<$books>)
	{
		chomp;
		my ($key, $amount, $by) = split /\t/;
		push @{ $payment{$key} }, [ $amount, $by ];
	}
	close $books;
	return \%payment;
}

sub chapter
{
	my ($title) = @_;

	printf "\n%d. %s\n\n", ++$chapter, $title;
}

sub say
{
	print map { length ? "   $_\n" : "\n" } @_;
}

# Runs subs at once, each in a process of its own; returns what they returned.
sub at_once
{
	my @from;

	pipe my $gate, my $open or die "pipe: $!\n";
	for my $job (@_)
	{
		pipe my $read, my $write or die "pipe: $!\n";
		my $pid = fork;
		die "fork: $!\n" unless defined $pid;
		if ($pid)
		{
			push @from, $read;
			next;
		}
		close $open;
		sysread $gate, my $go, 1;
		my $said = eval { $job->() };
		syswrite $write, defined $said ? $said : "failed: $@";
		POSIX::_exit(0);
	}
	close $gate;
	close $open;

	my @said;
	for my $from (@from)
	{
		local $/;
		my $text = <$from>;
		$text =~ s/\s+\z//;
		push @said, $text;
	}
	1 while wait > 0;
	return @said;
}

# claim(connection, task, call, input, arguments ...): a leased claim
sub claim
{
	my ($dbh, $task, $call, $input) = @_;

	return $dbh->selectrow_hashref(
		q{SELECT *, ceil(extract(epoch FROM retry_after))::integer AS seconds FROM tool_claims.claim($1, $2, 'pay_out', $3, lease => '2 s')},
		undef, $task, $call, $input);
}

# The process of a worker dies: here its backend is terminated from outside.
sub kill_worker
{
	my ($dbh) = @_;
	my $pid = $dbh->{pg_pid};

	$owner->do('SELECT pg_terminate_backend(?, 5000)', undef, $pid);
	eval { $dbh->disconnect };
}

# the SQLSTATE and message of an error
sub refused
{
	my ($dbh) = @_;
	my ($message) = $dbh->errstr =~ /^(?:ERROR: *)?(.*)/;

	return $dbh->state . ', ' . $message;
}


# ---- what happens -------------------------------------------------------

sub introduce
{
	print <<'TEXT';

A small shop lets an agent give refunds.  Each of the agent's tool calls has a
name of its own, the pair (task, call).  The network may deliver a call twice,
to two workers; a worker may die at any moment.  The shop wants each refund
paid once: never twice, never silently not at all.

Some refunds are store credit, booked in this database.  The others are paid
out by a payment provider outside of it, which keeps books of its own.
TEXT
}

sub delivered_twice
{
	chapter('One call, delivered to two workers at the same moment (store credit)');
	agent_asks('order-1001', 'call-1', 12.50, 'store credit');
	say('The agent asks for 12.50 for order 1001.  Workers A and B both get the call.');

	my @said = at_once(map {
		my $name = $_;
		sub {
			my ($result) = worker($name)->selectrow_array(
				q{SELECT tool_claims.execute('order-1001', 'call-1', 'refund', '{"amount": 12.50}', 'public.refund(jsonb)')});
			return "worker $name is answered: $result";
		}
	} qw(A B));
	say(@said, '',
		'Only one of them did it; the other waited a moment, and got the same answer.',
		booked('order-1001', 'call-1'));
}

sub booked
{
	my ($task, $call) = @_;
	my ($n, $sum) = $owner->selectrow_array(
		'SELECT count(*), sum(amount) FROM refunds WHERE task_id = ? AND tool_call_id = ?',
		undef, $task, $call);

	return "In the shop's books for this call: " . ($n ? "$n refund, $sum." : 'nothing.');
}

sub changed_input
{
	chapter('The same call, with changed input');
	say('The call comes a third time, but now it says 1250.00.');

	my $dbh = worker('C');
	eval {
		$dbh->do(
			q{SELECT tool_claims.execute('order-1001', 'call-1', 'refund', '{"amount": 1250.00}', 'public.refund(jsonb)')});
	};
	say('worker C is refused: ' . refused($dbh), '', booked('order-1001', 'call-1'));
}

sub dies_inside
{
	chapter('A worker dies half-way (store credit)');
	agent_asks('order-1002', 'call-1', 30.00, 'store credit');
	say('The agent asks for 30.00 for order 1002.  Worker A claims the call, books the',
		'refund, and dies before it commits.');

	my $dbh = worker('A');
	$dbh->begin_work;
	my ($outcome) = $dbh->selectrow_array(
		q{SELECT outcome FROM tool_claims.claim('order-1002', 'call-1', 'refund', '{"amount": 30.00}')});
	$dbh->do(q{INSERT INTO refunds VALUES ('order-1002', 'call-1', 30.00, 'worker A')});
	kill_worker($dbh);
	say("worker A: $outcome, and then gone",
		booked('order-1002', 'call-1') . '  The claim is gone with it.', '',
		'The call is delivered again, to worker B.');

	$dbh = worker('B');
	my ($result) = $dbh->selectrow_array(
		q{SELECT tool_claims.execute('order-1002', 'call-1', 'refund', '{"amount": 30.00}', 'public.refund(jsonb)')});
	say("worker B is answered: $result", booked('order-1002', 'call-1'));
}

sub outside_twice
{
	chapter('One call, two workers, and the money goes outside (paid out)');
	agent_asks('order-1003', 'call-1', 79.90, 'paid out');
	say('The agent asks to pay out 79.90 for order 1003.  Both workers claim the call',
		'with a lease of 2 seconds; who acquires it commits, pays, and completes.');

	my @said = at_once(map {
		my $name = $_;
		sub {
			my $dbh   = worker($name);
			my $claim = claim($dbh, 'order-1003', 'call-1', '{"amount": 79.90}');

			unless ($claim->{outcome} eq 'acquired')
			{
				my $told = "told \"$claim->{outcome}\", try again in $claim->{seconds} s";

				sleep 1;
				$claim = claim($dbh, 'order-1003', 'call-1', '{"amount": 79.90}');
				return "worker $name: $told\n   worker $name: told \"$claim->{outcome}\", $claim->{result}";
			}
			pay($claim->{effect_key}, '79.90', $name);
			sleep 0.3;
			my ($outcome) = $dbh->selectrow_array(
				q{SELECT outcome FROM tool_claims.complete('order-1003', 'call-1', $1, $2)},
				undef, qq({"paid": 79.90, "by": "worker $name"}), $claim->{attempt});
			return "worker $name: acquired, paid, $outcome";
		}
	} qw(A B));
	say(@said);
}

sub dies_outside
{
	chapter('Two workers die half-way (paid out)');
	agent_asks('order-1004', 'call-1', 45.00, 'paid out');
	agent_asks('order-1005', 'call-1', 15.25, 'paid out');
	say('Worker A claims the call for order 1004 (45.00), pays, and dies before it can',
		'say so.  Worker B claims the one for order 1005 (15.25), and dies before paying.');

	my $first = worker('A');
	my $claim = claim($first, 'order-1004', 'call-1', '{"amount": 45.00}');
	pay($claim->{effect_key}, '45.00', 'A');
	kill_worker($first);
	my $second = worker('B');
	claim($second, 'order-1005', 'call-1', '{"amount": 15.25}');
	kill_worker($second);

	say('', 'Both calls are delivered again, to worker C.');
	my $c = worker('C');
	for my $when ('at once', 'when the leases are over')
	{
		for my $order ([ 'order-1004', '{"amount": 45.00}' ], [ 'order-1005', '{"amount": 15.25}' ])
		{
			my $told = claim($c, $order->[0], 'call-1', $order->[1]);
			say("worker C, $when: $order->[0] is \"$told->{outcome}\""
				  . (defined $told->{reason} ? ", $told->{reason}" : ''));
		}
		sleep 2.1 if $when eq 'at once';
	}
	say('', 'From inside, the two look the same: nobody knows whether the money went out.',
		'So nobody pays, until somebody has looked.');
}

sub reconcile
{
	my $payments = payments();
	my $clerk    = connect_as($database, 'desk', 'shop_clerk');

	chapter('A person looks');
	say('The clerk at the desk opens the list of what needs attention, and looks up',
		'each key in the provider\'s books.', '');
	my $list = $clerk->selectall_arrayref(
		q{SELECT task_id, tool_call_id, attempt, effect_key, held_by FROM tool_claims.attention WHERE kind IN ('uncertain', 'lease_expired') ORDER BY task_id},
		{ Slice => {} });
	for my $claim (@$list)
	{
		my $payment = $payments->{ $claim->{effect_key} };
		my ($outcome) = $clerk->selectrow_array(
			q{SELECT outcome FROM tool_claims.reconcile($1, $2, $3, $4, $5, result => $6)},
			undef,
			@$claim{qw(task_id tool_call_id attempt)},
			$payment
			? ('occurred', '{"seen": "in the provider\'s books"}', qq({"paid": $payment->[0][0], "by": "$payment->[0][1]"}))
			: ('not_occurred', '{"seen": "not in the provider\'s books"}', undef));

		say("$claim->{task_id}, attempt $claim->{attempt}: "
			  . ($payment ? "$payment->[0][0] was paid" : 'nothing was paid')
			  . " -> $outcome");
	}

	say('', 'Both calls are delivered once more.');
	my $d     = worker('D');
	my $claim = claim($d, 'order-1004', 'call-1', '{"amount": 45.00}');
	say("worker D: order-1004 is \"$claim->{outcome}\", $claim->{result}");
	$claim = claim($d, 'order-1005', 'call-1', '{"amount": 15.25}');
	pay($claim->{effect_key}, '15.25', 'D');
	my ($outcome) = $d->selectrow_array(
		q{SELECT outcome FROM tool_claims.complete('order-1005', 'call-1', '{"paid": 15.25, "by": "worker D"}', $1)},
		undef, $claim->{attempt});
	say("worker D: order-1005 is \"$claim->{outcome}\", attempt $claim->{attempt}; paid, $outcome");

	say('', 'Worker B was not dead but slow.  Before it pays, it asks for more time.');
	my $late = worker('B');
	eval { $late->do(q{SELECT tool_claims.renew('order-1005', 'call-1', 1, '2 s')}) };
	say('worker B is refused: ' . refused($late), 'So it does not pay.');
}

# what a worker is told who asks for an approved payment
sub reserve
{
	my ($name, $execution, $amount) = @_;

	return worker($name)->selectrow_hashref(
		q{SELECT * FROM tool_claims.reserve('order-1006', 'call-1', $1, 'pay_out', $2, 'agent', lease => '10 s')},
		undef, $execution, qq({"amount": $amount}));
}

sub told
{
	my ($name, $answer) = @_;

	return "worker $name: told " . join ', ', grep { defined } qq("$answer->{outcome}"), @$answer{qw(reason result)};
}

sub needs_a_person
{
	chapter('A refund above the limit (paid out)');
	agent_asks('order-1006', 'call-1', 250.00, 'paid out');
	say('More than 100.00 needs a yes of the manager.  The agent asks to pay out 250.00',
		'for order 1006.');
	say(told('A', claim(worker('A'), 'order-1006', 'call-1', '{"amount": 250.00}')));

	my $agent = connect_as($database, 'agent', 'shop_agent');
	my ($state) = $agent->selectrow_array(
		q{SELECT state FROM tool_claims.propose('order-1006', 'call-1', 'pay_out', '{"amount": 250.00}', 'agent', summary => 'arrived broken')});
	say('', "So the agent proposes it.  It is $state, and nothing is paid.  The manager",
		'opens the inbox, and looks at the whole action.', '');

	my $manager = connect_as($database, 'manager', 'shop_manager');
	my ($task, $call) = $manager->selectrow_array('SELECT task_id, tool_call_id FROM tool_claims.inbox');
	my $action = $manager->selectrow_hashref('SELECT * FROM tool_claims.review($1, $2)', undef, $task, $call);
	say("$action->{task_id}: $action->{actor} asks for $action->{tool_name} $action->{input} (\"$action->{summary}\")");
	($state) = $manager->selectrow_array('SELECT state FROM tool_claims.approve($1, $2, $3)',
		undef, $task, $call, $action->{binding_digest});
	say("The manager says yes to exactly this: $state.", '');

	my ($execution) = worker('B')->selectrow_array('SELECT execution_id FROM tool_claims.ready');
	say('Worker B takes it from the list of what is ready, but asks for 2500.00.', told('B', reserve('B', $execution, '2500.00')));

	say('', 'Worker A asks for what was approved, and worker C for the same once more.');
	my $claim = reserve('A', $execution, '250.00');
	pay($claim->{effect_key}, '250.00', 'A');
	my ($outcome) = worker('A')->selectrow_array(
		q{SELECT outcome FROM tool_claims.complete('order-1006', 'call-1', '{"paid": 250.00, "by": "worker A"}', $1)},
		undef, $claim->{attempt});
	say("worker A: $claim->{outcome}, paid, $outcome", told('C', reserve('C', $execution, '250.00')),
		'', 'One yes, for one exact action, used once.');
}

# close_books(): prints the books of both sides; returns whether they balance
sub close_books
{
	my $payments = payments();

	for my $key (keys %$payments)
	{
		$owner->do('INSERT INTO payments VALUES (?, ?, ?)', undef, $key, @$_)
		  for @{ $payments->{$key} };
	}
	my $rows = $owner->selectall_arrayref(<<'SQL', { Slice => {} });
SELECT a.task_id, a.note, a.amount AS asked, count(p.amount) AS times, sum(p.amount) AS paid,
	s.state, count(p.amount) = 1 AND sum(p.amount) = a.amount AND s.state = 'completed' AS good
FROM asked AS a
	LEFT JOIN LATERAL tool_claims.status(a.task_id, a.tool_call_id) AS s ON true
	LEFT JOIN LATERAL (SELECT amount FROM refunds AS r
					   WHERE (r.task_id, r.tool_call_id) = (a.task_id, a.tool_call_id)
					   UNION ALL
					   SELECT amount FROM payments AS p WHERE p.effect_key = s.effect_key) AS p ON true
GROUP BY a.task_id, a.tool_call_id, a.note, a.amount, s.state
ORDER BY a.task_id
SQL
	my ($asked, $given) = $owner->selectrow_array(<<'SQL');
SELECT (SELECT sum(amount) FROM asked),
	(SELECT sum(amount) FROM refunds) + (SELECT sum(amount) FROM payments)
SQL

	chapter('The books');
	my $line = "%-12s %-13s %9s %6s %9s  %s";
	say(sprintf($line, 'task', 'how', 'asked', 'times', 'given', 'record'),
		(map { sprintf $line, @$_{qw(task_id note asked times paid state)} } @$rows),
		sprintf('%-26s %9s %16s', 'sum', $asked, $given), '');

	my $good = @$rows == 6 && $asked == $given && !grep { !$_->{good} } @$rows;
	say($good ? 'The books balance: each refund was given once.' : 'THE BOOKS DO NOT BALANCE.');
	return $good;
}

sub show_timeline
{
	chapter('What is on record about order 1005');
	say(@{ $owner->selectcol_arrayref(q{SELECT * FROM tool_claims.timeline('order-1005', 'call-1')}) });
	print "\n";
}
