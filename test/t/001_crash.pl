# A server that is killed at any moment keeps what it acknowledged, and of the
# rest either all or nothing.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep);
use ToolClaims;

# With a WAL writer that hardly ever comes, a commit that was not flushed at
# its end is lost for sure.
my $node = new_server('crash', <<'EOF');
wal_writer_delay = '10s'
wal_writer_flush_after = '1GB'
checkpoint_timeout = '1h'
max_wal_size = '1GB'
EOF

# the record as it is kept, in one line
sub record
{
	my ($key) = @_;
	my $admin = session($node);
	my $record = value($admin, <<'EOF', $key) // 'none';
SELECT concat_ws(' ', state, attempt, dispatched_at IS NOT NULL, external_ref, result, error)
FROM tool_claims.status('crash', ?)
EOF
	return $record;
}

sub key { return (task_id => 'crash', tool_call_id => $_[0]); }

sub leased_claim
{
	my ($session, $key, %more) = @_;

	my %arguments = (
		key($key),
		tool_name => 'refund',
		input => '{"order": 7}',
		lease => '10 min',
		%more);

	return call($session, 'claim', %arguments);
}

#
# Every change of a leased claim, killed just before and just after its commit.
#
my @changes = (
	{
		verb => 'claim',
		role => 'worker',
		act => sub { leased_claim(@_, dispatched => 'false') },
		outcome => 'acquired',
		record => 'claimed 1 f'
	},
	{
		verb => 'dispatch',
		role => 'worker',
		act => sub {
			call(shift, 'dispatch', key(shift), attempt => 1, external_ref => 'bank-7');
		},
		outcome => 'acquired',
		record => 'claimed 1 t bank-7'
	},
	{
		verb => 'renew',
		role => 'worker',
		act => sub { call(shift, 'renew', key(shift), attempt => 1, lease => '20 min') },
		outcome => 'acquired',
		record => 'claimed 1 t bank-7'
	},
	{
		verb => 'mark_uncertain',
		role => 'worker',
		act => sub { call(shift, 'mark_uncertain', key(shift), attempt => 1, reason => 'time-out') },
		outcome => 'uncertain',
		record => 'uncertain 1 t bank-7'
	},
	{
		verb => 'reconcile',
		role => 'reconciler',
		act => sub {
			call(shift, 'reconcile', key(shift),
				attempt => 1,
				finding => 'not_occurred',
				evidence => '{"statement": "none"}');
		},
		outcome => 'released',
		record => 'released 1 t bank-7'
	},
	{
		verb => 'claim again',
		role => 'worker',
		act => sub { leased_claim(@_) },
		outcome => 'acquired',
		record => 'claimed 2 t'
	},
	{
		verb => 'release',
		role => 'worker',
		act => sub { call(shift, 'release', key(shift), attempt => 2, reason => 'nothing sent') },
		outcome => 'released',
		record => 'released 2 t'
	},
	{
		verb => 'claim a third time',
		role => 'worker',
		act => sub { leased_claim(@_) },
		outcome => 'acquired',
		record => 'claimed 3 t'
	},
	{
		verb => 'complete',
		role => 'worker',
		act => sub {
			call(shift, 'complete', key(shift), attempt => 3, result => ' {"refunded" : 12.50} ');
		},
		outcome => 'completed',
		record => 'completed 3 t  {"refunded" : 12.50} '
	});

my $before = 'none';
foreach my $change (@changes)
{
	my $session = session($node, $change->{role});
	$session->do('SET synchronous_commit = off');
	$session->do('BEGIN');
	my $row = $change->{act}->($session, 'leased');
	is($row->{outcome} // $row->{message},
		$change->{outcome}, "$change->{verb} answers $change->{outcome}");
	crash($node);
	is(record('leased'), $before, "killed before the commit of $change->{verb}: nothing happened");

	$session = session($node, $change->{role});
	$session->do('SET synchronous_commit = off');
	$session->do('BEGIN');
	$row = $change->{act}->($session, 'leased');
	is($row->{outcome} // $row->{message},
		$change->{outcome}, "$change->{verb} after the crash answers as if for the first time");
	is(sqlstate($session, 'COMMIT'), '00000', 'commit');
	crash($node);
	is(record('leased'), $change->{record}, "killed after the commit of $change->{verb}: it happened");
	evidence_ok(session($node), 'evidence verifies');
	$before = $change->{record};
}

# the final answer is the same bytes for anybody
is(leased_claim(session($node, 'rival'), 'leased')->{result},
	' {"refunded" : 12.50} ', 'the result survives, byte for byte');

#
# A transactional claim and its business rows come or vanish together.
#
my $admin = session($node);
$admin->do('CREATE TABLE refunds (tool_call_id text); GRANT ALL ON refunds TO worker');

sub transactional
{
	my ($session, $key) = @_;

	$session->do('BEGIN');
	my $row = call($session, 'claim', key($key), tool_name => 'refund', input => '{}');
	$session->do("INSERT INTO refunds VALUES ('$key')");
	call($session, 'complete', key($key), result => '"done"');
	return $row->{outcome} // $row->{message};
}

sub refunds { return value(session($node), 'SELECT count(*) FROM refunds'); }

my $session = session($node, 'worker');
is(transactional($session, 'local'), 'acquired', 'transactional claim');
crash($node);
is(record('local') . ' ' . refunds(), 'none 0', 'killed before COMMIT: neither record nor refund');

$session = session($node, 'worker');
is(transactional($session, 'local'), 'acquired', 'transactional claim again');
is(sqlstate($session, 'COMMIT'), '00000', 'commit');
crash($node);
is(record('local') . ' ' . refunds(), 'completed 1 f "done" 1', 'killed after COMMIT: both');

# what a session without durability may lose, it loses as a whole
$session = session($node, 'worker');
$session->do('SET synchronous_commit = off');
foreach my $number (1 .. 20)
{
	transactional($session, "unsafe $number");
	$session->do('COMMIT');
}
crash($node);
my ($records, $refunds) = session($node)->selectrow_array(<<'EOF');
SELECT (SELECT count(*) FROM tool_claims.claims WHERE tool_call_id LIKE 'unsafe%'),
	(SELECT count(*) FROM refunds WHERE tool_call_id LIKE 'unsafe%')
EOF
is($records, $refunds, 'under synchronous_commit = off each transaction is there as a whole or not');
cmp_ok($records, '<', 20, 'and this server does lose what nobody flushed');

#
# Writers without durability, killed at any moment: no acknowledged change of a
# leased claim is lost.  A writer notes each acknowledgement, unbuffered.
#
sub writer
{
	my ($round, $log, $setup) = @_;
	my $session = session($node, 'worker') or return;
	my $say = sub { syswrite $log, "@_\n"; };

	$session->do($setup) if defined $setup;
	for (my $number = 1;; $number++)
	{
		my $key = "round $round call $number";
		my $way = $number % 4;
		my $lease = $number % 3 ? '10 min' : '50 ms';
		my $row;

		# the call alone; a later SET LOCAL; a savepoint rolled back before it;
		# a savepoint rolled back that had asked for more
		$session->do('BEGIN') if $way;
		if ($way == 2 || $way == 3)
		{
			$session->do('SAVEPOINT s');
			$session->do('SET LOCAL synchronous_commit = on') if $way == 3;
			leased_claim($session, "$key given up");
			$session->do('ROLLBACK TO SAVEPOINT s');
		}
		$row = leased_claim($session, $key, lease => $lease);
		$session->do('SET LOCAL synchronous_commit = off') if $way == 1;
		$session->do('COMMIT') if $way;
		last if $session->err || ($row->{outcome} // '') ne 'acquired';
		$say->('claimed', $number);

		# two of three are completed, the third is left to expire
		next if $number % 3 == 0;
		$row = call($session, 'dispatch', key($key), attempt => 1, external_ref => "ref $number");
		last if ($row->{outcome} // '') ne 'acquired';
		$say->('dispatched', $number);
		$row = call($session, 'complete', key($key), attempt => 1, result => $number);
		last if ($row->{outcome} // '') ne 'completed';
		$say->('completed', $number);
	}
	return;
}

my @rounds = (
	[ 'session', 'SET synchronous_commit = off', undef ],
	[ 'role', undef, 'ALTER ROLE worker SET synchronous_commit = off' ],
	[ 'database', undef, 'ALTER DATABASE postgres SET synchronous_commit = off' ],
	[ 'session', 'SET synchronous_commit = local', 'ALTER ROLE worker RESET ALL' ],
	[ 'session', 'SET synchronous_commit = off', undef ],
	[ 'session', 'SET synchronous_commit = off', undef ]);
my $round = 0;
foreach my $case (@rounds)
{
	my ($level, $setup, $configure) = @$case;
	my $file = PostgreSQL::Test::Utils::tempdir() . '/acknowledged';

	$round++;
	session($node)->do($configure) if defined $configure;
	open my $log, '>', $file or die "$file: $!";
	my $child = fork // die "fork: $!";
	if ($child == 0)
	{
		eval { writer($round, $log, $setup); };
		diag("writer: $@") if $@;
		POSIX::_exit(0);
	}
	wait_until(sub { -s $file > 3000 }) or die 'the writer does not write';
	sleep 0.1 + rand 0.3;
	crash($node);
	waitpid $child, 0;

	my %acknowledged = (claimed => [], dispatched => [], completed => []);
	foreach my $line (split /\n/, slurp_file($file))
	{
		my ($what, $number) = split / /, $line;
		push @{ $acknowledged{$what} }, $number;
	}
	my $admin = session($node);
	my $states = $admin->selectall_hashref(<<"EOF", 'number');
SELECT substring(c.tool_call_id FROM '\\d+\$')::integer AS number,
	s.state::text, s.external_ref, s.result::text
FROM tool_claims.claims AS c, tool_claims.status(c.task_id, c.tool_call_id) AS s
WHERE c.tool_call_id LIKE 'round $round call %'
EOF
	my $name = "round $round, synchronous_commit lowered for the $level";
	my $count = @{ $acknowledged{claimed} };
	cmp_ok($count, '>', 50, "$name: claims were acknowledged");
	is(join(' ', grep { !$states->{$_} } @{ $acknowledged{claimed} }),
		'', "$name: none of $count acknowledged claims is lost");
	is( join(' ', grep { ($states->{$_}{external_ref} // '') ne "ref $_" } @{ $acknowledged{dispatched} }),
		'',
		"$name: no acknowledged dispatch is lost");
	is( join(' ', grep { $states->{$_}{state} ne 'completed' || $states->{$_}{result} ne $_ } @{ $acknowledged{completed} }),
		'',
		"$name: no acknowledged result is lost");
	is(value($admin, "SELECT count(*) FROM tool_claims.claims WHERE tool_call_id LIKE '%given up'"),
		'0', "$name: what was rolled back is not there");

	# the expired ones are uncertain, and nobody else gets them
	my @expired = grep { $_ % 3 == 0 } @{ $acknowledged{claimed} };
	cmp_ok(scalar @expired, '>', 10, "$name: leases have expired");
	is(join(' ', grep { $states->{$_}{state} ne 'uncertain' } @expired),
		'', "$name: they read uncertain");
	my $rival = session($node, 'rival');
	my %answers;
	foreach my $number (@expired)
	{
		my $row = leased_claim($rival, "round $round call $number", lease => '50 ms');
		$answers{ join ' ', $row->{outcome} // $row->{message}, $row->{reason} // '' } = 1;
	}
	is(join(', ', keys %answers), 'uncertain lease_expired', "$name: a rival acquires none of them");
	evidence_ok($admin, "$name: evidence verifies");
}

$node->stop;
done_testing();
