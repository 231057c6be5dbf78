#!/usr/bin/perl
# Replays recorded tool calls against tool_claims while things go wrong, and
# then checks that every call took effect exactly once.
#
#   replay.pl [--seed N] [--clients N] [--times N] [--keep] traffic.jsonl
#
# A line of the file is one call: task_id, tool_call_id, tool_name, and, as
# texts, arguments and result.  One pair may come back with other arguments.
#
# There are two passes over the file, each in an organization of its own.  In the
# pass "execute" the tool is a function in the database, run by execute().  In
# the pass "lease" it is something outside, a log file to which each run appends
# a line: claim, COMMIT, append, complete.
#
# In both passes each call is delivered several times, in random order, by
# several client processes, while their backends are terminated at random.  A
# client that loses its connection makes a new one and delivers again; some
# clients of the second pass die half-way and forget what they did.  What such an
# attempt leaves reads uncertain; between two rounds somebody looks into the log
# and reconciles it, and the next round delivers what has no answer yet.
#
# Uses the server in the PG* environment, as a superuser, and a database of its
# own.  Prints what it did, one line a check, and the numbers of passed and failed
# checks; the exit status tells whether any failed.
use strict;
use warnings;
use open qw(:std :encoding(UTF-8));

use DBI;
use Fcntl qw(O_APPEND O_CREAT O_RDONLY O_WRONLY);
use File::Basename qw(basename);
use File::Temp;
use Getopt::Long;
use List::Util qw(shuffle);
use POSIX qw(WNOHANG);
use Time::HiRes qw(sleep time);

my $seed     = time ^ $$;
my $clients  = 8;
my $times    = 3;
my $keep     = 0;
my $database = 'tool_claims_replay';

# A worker acts only in the first half of its lease.
my $lease = 2;

# So many rounds have faults; those after them finish what is left.
my $faulty_rounds = 4;
my $last_round    = 12;

GetOptions(
	'seed=i'     => \$seed,
	'clients=i'  => \$clients,
	'times=i'    => \$times,
	'database=s' => \$database,
	'keep'       => \$keep
  )
  && @ARGV == 1
  or die
  "usage: $0 [--seed N] [--clients N] [--times N] [--database NAME] [--keep] traffic.jsonl\n";
$seed &= 0x7fffffff;
srand($seed);

$| = 1;
my $work = File::Temp->newdir;
my ($passed, $failed) = (0, 0);

my $admin = set_up($ARGV[0]);
my $calls = $admin->selectall_arrayref('SELECT * FROM traffic ORDER BY line',
	{ Slice => {} });
my %call_of_line = map { $_->{line} => $_ } @$calls;
printf "%s: %d calls under %d keys, each delivered %d times by %d clients, seed %d\n",
  basename($ARGV[0]), scalar @$calls,
  $admin->selectrow_array('SELECT count(DISTINCT (task_id, tool_call_id)) FROM traffic'),
  $times, $clients, $seed;

replay('execute', \&deliver_execute, sub { });
replay('lease',   \&deliver_leased,  \&reconcile);

$admin->disconnect;
unless ($keep)
{
	my $dbh = connect_as('replay_setup', $ENV{PGDATABASE} || 'postgres');
	$dbh->do("DROP DATABASE $database");
	$dbh->disconnect;
}
print "$passed passed, $failed failed\n";
exit($failed > 0);


# ---- the database -------------------------------------------------------

# connect_as(application name, database): a new connection
sub connect_as
{
	my ($name, $db) = @_;

	return DBI->connect("dbi:Pg:dbname=$db;application_name=$name",
		undef, undef,
		{
			AutoCommit          => 1,
			AutoInactiveDestroy => 1,
			PrintError          => 0,
			PrintWarn           => 0,
			RaiseError          => 1
		});
}

# set_up(file): makes the database, with the traffic in it; returns a connection
sub set_up
{
	my ($file) = @_;

	my $dbh = connect_as('replay_setup', $ENV{PGDATABASE} || 'postgres');
	$dbh->do('SET client_min_messages = warning');
	$dbh->do("DROP DATABASE IF EXISTS $database");
	$dbh->do("CREATE DATABASE $database ENCODING 'UTF8' TEMPLATE template0");
	$dbh->disconnect;

	$dbh = connect_as('replay_admin', $database);
	$dbh->do($_) for split /\n--\n/, <<'SQL';
CREATE EXTENSION tool_claims
--
CREATE TABLE traffic (
	line integer PRIMARY KEY,
	task_id text COLLATE "C",
	tool_call_id text COLLATE "C",
	tool_name text,
	arguments text,
	result json,
	identity integer)
--
CREATE TABLE effects (
	pass text,
	task_id text COLLATE "C",
	tool_call_id text COLLATE "C",
	line integer,
	attempt integer)
--
CREATE TABLE answers (
	pass text,
	delivery integer,
	line integer,
	outcome text,
	result text)
--
CREATE TABLE tally (pass text, what text, n integer)
--
-- what is not JSON becomes a JSON string
CREATE FUNCTION json_of(value text) RETURNS json LANGUAGE plpgsql AS $$
BEGIN
	RETURN value::json;
EXCEPTION WHEN invalid_text_representation THEN
	RETURN to_json(value);
END $$
--
-- the tool of the pass "execute": takes effect, and returns what was recorded
CREATE FUNCTION tool(input jsonb) RETURNS json LANGUAGE plpgsql AS $$
DECLARE
	claim tool_claims.claim_status;
	call traffic;
BEGIN
	SELECT * INTO STRICT claim FROM tool_claims.current_claim();
	SELECT * INTO STRICT call
	FROM traffic AS t
	WHERE (t.task_id, t.tool_call_id, t.tool_name) = (claim.task_id, claim.tool_call_id, claim.tool_name)
		AND t.arguments::jsonb = input
	ORDER BY line
	LIMIT 1;
	INSERT INTO effects VALUES ('execute', claim.task_id, claim.tool_call_id, call.line, claim.attempt);
	PERFORM pg_sleep(0.01 * random());
	RETURN call.result;
END $$
SQL

	# the second pass has every event written, so that it can be counted
	$dbh->do("SET tool_claims.organization = 'lease'");
	$dbh->do("SELECT tool_claims.set_tool_policy('*', log => 'all')");

	open my $traffic, '<', $file or die "could not open $file: $!\n";
	my $insert = $dbh->prepare(<<'SQL');
INSERT INTO traffic
SELECT $1, call ->> 'task_id', call ->> 'tool_call_id', call ->> 'tool_name',
	call ->> 'arguments', json_of(call ->> 'result')
FROM CAST($2 AS json) AS call
SQL
	while (my $line = <$traffic>)
	{
		$insert->execute($., $line) if $line =~ /\S/;
	}
	close $traffic;

	# who says the same under one pair has the same identity
	$dbh->do(<<'SQL');
UPDATE traffic SET identity = i.identity
FROM (SELECT line, dense_rank() OVER (PARTITION BY task_id, tool_call_id
									  ORDER BY tool_name, arguments::jsonb) AS identity
	  FROM traffic) AS i
WHERE traffic.line = i.line
SQL
	return $dbh;
}


# ---- a pass -------------------------------------------------------------

# replay(pass, how to deliver, what to do between rounds)
sub replay
{
	my ($pass, $deliver, $between) = @_;
	my $started  = time;
	my $rounds   = 0;
	my $killed   = 0;
	my @waiting  = shuffled();

	$admin->do("SET tool_claims.organization = '$pass'");
	while (@waiting && $rounds < $last_round)
	{
		my $faults = $rounds++ < $faulty_rounds;

		$killed += run_round($pass, $deliver, $faults, @waiting);
		$between->($pass);
		@waiting = @{
			$admin->selectcol_arrayref(
				"DELETE FROM answers WHERE pass = ? AND outcome = 'later' RETURNING delivery",
				undef, $pass)
		};
		@waiting = shuffle(sort { $a <=> $b } @waiting);
	}

	tally($pass, { 'backends terminated' => $killed, 'rounds' => $rounds });
	printf "%s: %d deliveries in %.1f s; %s\n", $pass, $times * @$calls, time - $started,
	  join ', ', map { "$_->[1] $_->[0]" } @{
		$admin->selectall_arrayref(
			'SELECT what, sum(n) FROM tally WHERE pass = ? GROUP BY what ORDER BY what',
			undef, $pass)
	  };
	check_pass($pass);
}

# All deliveries in random order, half of the calls with their copies close
# together, so that they are at work at the same time.  Delivery d is of the call
# d / times.
sub shuffled
{
	my %place;

	for my $call (0 .. $#$calls)
	{
		my $together = rand() < 0.5 ? rand() : undef;

		for my $copy (0 .. $times - 1)
		{
			$place{ $call * $times + $copy } =
			  defined $together ? $together + rand() * 2 / @$calls : rand();
		}
	}
	return sort { $place{$a} <=> $place{$b} || $a <=> $b } keys %place;
}

# run_round(pass, how to deliver, with faults, deliveries): has the deliveries
# made by the clients; returns how many backends were terminated
sub run_round
{
	my ($pass, $deliver, $faults, @deliveries) = @_;
	my $killed = 0;
	my %child;

	# Records of eight bytes in a file that the clients have open together, so
	# that each of them takes the next one.
	my $queue = "$work/queue";
	open my $file, '>', $queue or die "could not write $queue: $!\n";
	printf $file "%07d\n", $_ for @deliveries;
	close $file;
	sysopen $file, $queue, O_RDONLY or die "could not open $queue: $!\n";
	binmode $file;

	for my $number (1 .. $clients)
	{
		my $client_seed = int rand 0x7fffffff;
		my $pid         = fork;

		die "could not fork: $!\n" unless defined $pid;
		if ($pid)
		{
			$child{$pid} = 1;
			next;
		}
		srand $client_seed;
		open STDERR, '>>', "$work/stderr";
		my $good = eval { client($pass, $deliver, $faults, $number, $file); 1 };
		print "client $number: $@" unless $good;
		POSIX::_exit($good ? 0 : 1);
	}
	close $file;

	# Nobody but the clients' own backends: by their name, in this database.
	my $kill = $admin->prepare(<<'SQL');
SELECT count(*) FILTER (WHERE pg_terminate_backend(pid))
FROM (SELECT pid FROM pg_stat_activity
	  WHERE datname = current_database() AND application_name LIKE 'replay\_client\_%'
	  ORDER BY random()
	  LIMIT 1) AS victim
SQL
	while (%child)
	{
		while ((my $pid = waitpid -1, WNOHANG) > 0)
		{
			delete $child{$pid};
			tally($pass, { 'clients broken' => 1 }) if $?;
		}
		sleep 0.002 + rand() * 0.01;
		if ($faults && %child)
		{
			$kill->execute;
			$killed += ($kill->fetchrow_array)[0];
		}

		# an auditor looks at a chain that is just growing
		my $call = $calls->[ rand @$calls ];
		my ($broken) = $admin->selectrow_array(
			'SELECT reason FROM tool_claims.verify_evidence($1, $2) WHERE NOT ok',
			undef, @$call{qw(task_id tool_call_id)});
		if (defined $broken)
		{
			print "    $call->{task_id} | $call->{tool_call_id} | $broken\n";
			tally($pass, { 'chains seen broken' => 1 });
		}
	}

	# what the clients said, without the last words of their backends
	if (open my $stderr, '<', "$work/stderr")
	{
		print grep { !/terminating connection due to administrator command/ } <$stderr>;
		unlink "$work/stderr";
	}
	return $killed;
}

sub tally
{
	my ($pass, $numbers, $dbh) = @_;

	($dbh || $admin)->do('INSERT INTO tally VALUES (?, ?, ?)', undef, $pass, $_, $numbers->{$_})
	  for keys %$numbers;
}


# ---- a client -----------------------------------------------------------

# client(pass, how to deliver, with faults, number, queue): delivers what it takes
# from the queue, until that is empty, and reports the answers
sub client
{
	my ($pass, $deliver, $faults, $number, $queue) = @_;
	my $client = {
		name   => "replay_client_$number",
		pass   => $pass,
		faults => $faults,
		tally  => {}
	};
	my (@later, %answer);

	connect_client($client);
	while (sysread($queue, my $delivery, 8))
	{
		$delivery += 0;
		$answer{$delivery} = $deliver->($client, $calls->[ $delivery / $times ]);
		push @later, $delivery if $answer{$delivery}[0] eq 'later';
	}

	# once more what somebody else was at work on
	$answer{$_} = $deliver->($client, $calls->[ $_ / $times ]) for @later;
	eval { $client->{dbh}->disconnect };

	# This connection has another name, so that nobody terminates it.
	my $dbh = connect_as('replay_report', $database);
	$dbh->begin_work;
	for my $delivery (sort { $a <=> $b } keys %answer)
	{
		$dbh->do('INSERT INTO answers VALUES (?, ?, ?, ?, ?)', undef, $pass, $delivery,
			$calls->[ $delivery / $times ]{line},
			@{ $answer{$delivery} }[ 0, 1 ]);
	}
	tally($pass, $client->{tally}, $dbh);
	$dbh->commit;
	$dbh->disconnect;
}

# A new connection, in the organization of the pass, instead of the old one.
sub connect_client
{
	my ($client) = @_;

	# what a dead connection says when it is closed is of no interest
	if ($client->{dbh})
	{
		local $SIG{__WARN__} = sub { };
		eval { $client->{dbh}->disconnect };
		delete $client->{dbh};
	}
	for my $try (1 .. 50)
	{
		return if eval {
			$client->{dbh} = connect_as($client->{name}, $database);
			$client->{dbh}->do("SET tool_claims.organization = '$client->{pass}'");
			1;
		};
		sleep 0.02;
	}
	die "could not connect: $@";
}

# Asks the server; an answer that was lost with the connection is undefined,
# after which there is a new one.  Any other error is the caller's.
sub ask
{
	my ($client, $question) = @_;
	my $answer = eval { $question->($client->{dbh}) };
	my $error  = $@;

	return $answer unless $error;
	die { state => $client->{dbh}->state, message => $error } if $client->{dbh}->ping > 0;
	$client->{tally}{'connections lost'}++;
	connect_client($client);
	return;
}

# The client dies here, once in so many times: its connection is gone, and it
# remembers nothing.
sub dies
{
	my ($client, $once_in, $where) = @_;

	return 0 unless $client->{faults} && rand() < 1 / $once_in;
	$client->{tally}{"died $where"}++;
	connect_client($client);
	return 1;
}

# deliver_execute(client, call): delivers until there is an answer; returns its
# outcome and result
sub deliver_execute
{
	my ($client, $call) = @_;
	my $answer;

	until ($answer)
	{
		my $block = rand() < 0.5;

		$answer = eval {
			ask($client, sub {
				my ($dbh) = @_;

				$dbh->begin_work if $block;
				my ($result) = $dbh->selectrow_array(
					q{SELECT tool_claims.execute($1, $2, $3, $4, 'tool(jsonb)', wait => $5)},
					undef,
					@$call{qw(task_id tool_call_id tool_name arguments)},
					rand() < 0.3 ? '0' : '10 s');
				$dbh->commit if $block;
				return [ 'completed', $result ];
			});
		};
		if (my $error = $@)
		{
			my $state = ref $error ? $error->{state} : '';

			eval { $client->{dbh}->rollback if $block };
			$answer =
				$state eq 'TC006' ? ['conflict']
			  : $state eq 'TC007' ? ['later']
			  :                     [ 'error', ref $error ? $error->{message} : $error ];
		}
	}
	$client->{tally}{'in progress'}++ if $answer->[0] eq 'later';
	return $answer;
}

# deliver_leased(client, call): claims and, if it acquires, acts and completes;
# returns the outcome and result
sub deliver_leased
{
	my ($client, $call) = @_;
	my $answer = eval { claim_and_act($client, $call) };

	return $answer if $answer;
	my $error = $@;
	return [ 'error', ref $error ? "$error->{state} $error->{message}" : $error ];
}

sub claim_and_act
{
	my ($client, $call) = @_;
	my @pair       = @$call{qw(task_id tool_call_id)};
	my $request    = rand() < 0.7 ? random_uuid() : undef;
	my $dispatched = rand() < 0.7;
	my ($started, $claim);

	# The request id is sent again only while no answer has arrived.
	until ($claim)
	{
		$started = time;
		$claim   = ask($client, sub {
			$_[0]->selectrow_hashref(
				'SELECT outcome, reason, attempt, effect_key, result FROM tool_claims.claim($1, $2, $3, $4, '
				  . 'lease => $5, wait => $6, request_id => $7, dispatched => $8)',
				undef, @pair,
				@$call{qw(tool_name arguments)},
				"$lease s",
				rand() < 0.7 ? '0' : '50 ms',
				$request, $dispatched ? 't' : 'f');
		});
	}

	my $outcome = $claim->{outcome};
	return [ $outcome, $claim->{result} ] if $outcome eq 'completed' || $outcome eq 'conflict';
	if ($outcome eq 'in_progress' || $outcome eq 'uncertain')
	{
		$client->{tally}{$outcome eq 'uncertain' ? 'uncertain' : 'in progress'}++;
		return ['later'];
	}
	die "outcome $outcome\n" unless $outcome eq 'acquired';
	$client->{tally}{ 'acquired again, ' . $claim->{reason} }++ if defined $claim->{reason};

	unless ($dispatched)
	{
		my $step = ask($client, sub {
			$_[0]->selectrow_hashref('SELECT outcome FROM tool_claims.dispatch($1, $2, $3)',
				undef, @pair, $claim->{attempt});
		});

		# whether the dispatch was committed is not known: do not act
		return ['later'] unless $step;
	}
	return ['later'] if dies($client, 25, 'before acting');
	if (time - $started > $lease / 2)
	{
		ask($client, sub {
			$_[0]->selectrow_hashref(q{SELECT outcome FROM tool_claims.release($1, $2, $3, 'too late to act')},
				undef, @pair, $claim->{attempt});
		});
		$client->{tally}{'too late to act'}++;
		return ['later'];
	}

	act($claim->{effect_key}, $call, $claim->{attempt});

	return ['later'] if dies($client, 25, 'after acting');
	for (;;)
	{
		my $step = ask($client, sub {
			$_[0]->selectrow_hashref(
				'SELECT outcome, result FROM tool_claims.complete($1, $2, $3, $4)',
				undef, @pair, $call->{result}, $claim->{attempt});
		});

		return [ $step->{outcome}, $step->{result} ] if $step;

		# some try again with their own attempt, the others forget it
		if (rand() < 0.5)
		{
			$client->{tally}{'forgot after acting'}++;
			return ['later'];
		}
	}
}

# act(effect key, call, attempt): the effect outside, a line in a log
sub act
{
	my ($effect_key, $call, $attempt) = @_;

	sysopen my $log, "$work/effects", O_WRONLY | O_APPEND | O_CREAT
	  or die "could not open the log: $!\n";
	binmode $log;
	syswrite $log, "$effect_key\t$call->{line}\t$attempt\n";
	close $log;
	sleep 0.004 * rand();
}

# effect key -> line and attempt of each effect in the log
sub effects
{
	my %effect;

	return \%effect unless -e "$work/effects";
	open my $log, '<', "$work/effects" or die "could not open the log: $!\n";
	while (<$log>)
	{
		chomp;
		my ($key, $line, $attempt) = split /\t/;
		push @{ $effect{$key} }, { line => $line, attempt => $attempt };
	}
	close $log;
	return \%effect;
}

sub random_uuid
{
	return sprintf '%08x-%04x-4%03x-8%03x-%06x%06x', map { int rand $_ } 1 << 32, 1 << 16,
	  1 << 12, 1 << 12, 1 << 24, 1 << 24;
}


# ---- between rounds -----------------------------------------------------

# What a person does about uncertain claims: waits until no lease runs any
# more, looks at the destination, and says what was found.
sub reconcile
{
	my ($pass) = @_;

	for my $try (1 .. 10 * ($lease + 1))
	{
		my ($running) = $admin->selectrow_array(
			q{SELECT count(*) FROM tool_claims.claims WHERE state = 'claimed'});
		last unless $running;
		sleep 0.1;
	}

	my $effects   = effects();
	my %found     = (occurred => 0, not_occurred => 0);
	my $uncertain = $admin->selectall_arrayref(<<'SQL', { Slice => {} });
SELECT task_id, tool_call_id, attempt, effect_key
FROM tool_claims.attention
WHERE kind IN ('uncertain', 'lease_expired')
SQL
	for my $claim (@$uncertain)
	{
		my $effect  = $effects->{ $claim->{effect_key} };
		my $finding = $effect ? 'occurred' : 'not_occurred';

		$admin->selectrow_array(<<'SQL', undef,
SELECT outcome FROM tool_claims.reconcile($1, $2, $3, $4, '{"looked at": "the log of effects"}', $5)
SQL
			@$claim{qw(task_id tool_call_id attempt)},
			$finding,
			$effect ? $call_of_line{ $effect->[0]{line} }{result} : undef);
		$found{$finding}++;
	}
	tally($pass, { map { ("found $_" => $found{$_}) } keys %found });
}


# ---- checks -------------------------------------------------------------

# check(what holds, query): passes if the query finds no counter-example
sub check
{
	my ($what, $query, @values) = @_;
	my $wrong = eval { $admin->selectall_arrayref($query, undef, @values) };

	if ($wrong && !@$wrong)
	{
		print "ok - $what\n";
		$passed++;
		return;
	}
	print "not ok - $what\n";
	$failed++;
	print "    error: $@\n" unless $wrong;
	return unless $wrong;
	for my $row (@$wrong[ 0 .. ($#$wrong < 4 ? $#$wrong : 4) ])
	{
		print '    ', join(' | ', map { defined $_ ? $_ : '(null)' } @$row), "\n";
	}
	printf "    %d in all\n", scalar @$wrong;
}

sub check_pass
{
	my ($pass) = @_;

	if ($pass eq 'lease')
	{
		my $effects = effects();

		for my $effect (map { @$_ } values %$effects)
		{
			$admin->do(<<'SQL', undef, $effect->{attempt}, $effect->{line});
INSERT INTO effects
SELECT 'lease', task_id, tool_call_id, line, $1 FROM traffic WHERE line = $2
SQL
		}
	}

	# one row a key: what took effect, and what is recorded
	$admin->do(<<"SQL");
CREATE OR REPLACE TEMPORARY VIEW keys AS
SELECT k.task_id, k.tool_call_id, count(e.line) AS effects, min(e.line) AS line
FROM (SELECT DISTINCT task_id, tool_call_id FROM traffic) AS k
	LEFT JOIN effects AS e
		ON (e.pass, e.task_id, e.tool_call_id) = ('$pass', k.task_id, k.tool_call_id)
GROUP BY k.task_id, k.tool_call_id
SQL
	$admin->do(<<"SQL");
CREATE OR REPLACE TEMPORARY VIEW outcomes AS
SELECT a.delivery, a.outcome, a.result, t.line, t.task_id, t.tool_call_id,
	t.identity = actor.identity AS same, actor.result::text AS expected
FROM answers AS a
	JOIN traffic AS t USING (line)
	JOIN keys AS k USING (task_id, tool_call_id)
	LEFT JOIN traffic AS actor ON actor.line = k.line
WHERE a.pass = '$pass'
SQL

	check("$pass: backends were terminated, and clients lost answers", <<'SQL', ($pass) x 2);
SELECT 'none' WHERE (SELECT sum(n) FROM tally WHERE pass = ? AND what = 'backends terminated') = 0
	OR NOT EXISTS (SELECT FROM tally WHERE pass = ? AND what = 'connections lost')
SQL
	check("$pass: no client process failed",
		q{SELECT n FROM tally WHERE pass = ? AND what = 'clients broken'}, $pass);
	check("$pass: every delivery has one answer", <<'SQL', $times, $pass);
SELECT t.line, count(a.delivery), count(DISTINCT a.delivery), max(a.result)
FROM traffic AS t LEFT JOIN answers AS a ON (a.line, a.pass) = (t.line, $2)
GROUP BY t.line
HAVING (count(a.delivery), count(DISTINCT a.delivery)) <> ($1, $1)
	OR bool_or(a.outcome NOT IN ('completed', 'conflict'))
SQL
	check("$pass: every key had exactly one effect",
		'SELECT * FROM keys WHERE effects <> 1');
	check("$pass: all deliveries of the acting identity got its stored result", <<'SQL');
SELECT task_id, tool_call_id, line, outcome, result FROM outcomes
WHERE same AND (outcome, result) IS DISTINCT FROM ('completed', expected)
SQL
	check("$pass: all other deliveries got a conflict", <<'SQL');
SELECT task_id, tool_call_id, line, outcome, result FROM outcomes
WHERE same IS NOT TRUE AND (outcome, result) IS DISTINCT FROM ('conflict', NULL)
SQL
	check("$pass: records and effects match", <<'SQL');
SELECT k.task_id, k.tool_call_id, s.state, s.tool_name, t.tool_name, s.result, t.result
FROM keys AS k
	LEFT JOIN traffic AS t ON t.line = k.line
	LEFT JOIN LATERAL tool_claims.status(k.task_id, k.tool_call_id) AS s ON true
WHERE (s.state::text, s.tool_name, s.result::text, s.input_digest::text)
	IS DISTINCT FROM ('completed', t.tool_name, t.result::text,
					  tool_claims.digest(t.arguments::tool_claims.canonical_json)::text)
SQL
	check("$pass: there is no record without a call", <<'SQL');
SELECT c.task_id, c.tool_call_id FROM tool_claims.claims AS c
WHERE NOT EXISTS (SELECT FROM traffic AS t
				  WHERE (t.task_id, t.tool_call_id) = (c.task_id, c.tool_call_id))
SQL
	check("$pass: no chain looked broken while it grew",
		q{SELECT sum(n) FROM tally WHERE pass = ? AND what = 'chains seen broken' HAVING count(*) > 0}, $pass);
	check("$pass: every chain of evidence verifies", <<'SQL');
SELECT k.task_id, k.tool_call_id, v.*
FROM keys AS k LEFT JOIN LATERAL tool_claims.verify_evidence(task_id, tool_call_id) AS v ON true
WHERE v.ok IS NOT TRUE
SQL
	check("$pass: nothing waits for a person", <<'SQL');
SELECT kind, task_id, tool_call_id FROM tool_claims.attention WHERE kind IN ('uncertain', 'lease_expired')
SQL
	return unless $pass eq 'lease';

	# execute() raises an error instead, which takes its event along
	check("$pass: every conflict that was answered is in the evidence", <<'SQL');
SELECT k.task_id, k.tool_call_id
FROM keys AS k
WHERE (SELECT count(*) FROM tool_claims.evidence(k.task_id, k.tool_call_id) WHERE kind = 'conflict')
	< (SELECT count(*) FROM outcomes AS o
	   WHERE (o.task_id, o.tool_call_id, o.outcome) = (k.task_id, k.tool_call_id, 'conflict'))
SQL
	check("$pass: the evidence has one event for each attempt and each finding", <<'SQL', $pass);
SELECT kind, seen, happened
FROM (SELECT 'acquired' AS kind,
		(SELECT sum(attempt) FROM tool_claims.claims) AS happened,
		(SELECT count(*) FROM keys AS k, tool_claims.evidence(k.task_id, k.tool_call_id)
		 WHERE kind = 'acquired') AS seen
	  UNION ALL
	  SELECT 'reconciled',
		(SELECT sum(n) FROM tally WHERE pass = ? AND what LIKE 'found %'),
		(SELECT count(*) FROM keys AS k, tool_claims.evidence(k.task_id, k.tool_call_id)
		 WHERE kind = 'reconciled')) AS counts
WHERE seen IS DISTINCT FROM happened
SQL
}
