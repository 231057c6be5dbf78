# What the Perl tests share: a server with the extension and two roles, calls
# of verbs by named arguments, and a crash.

package ToolClaims;

use strict;
use warnings;

use DBI;
use Exporter 'import';
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @EXPORT = qw(new_server add_extension session call evidence_ok value
  sqlstate crash wait_until wait_event start_statement end_statement);

# A running server, with the extension in database postgres.
sub new_server
{
	my ($name, $conf, %init) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init(allows_streaming => 1, %init);
	$node->append_conf('postgresql.conf', <<"EOF");
log_statement = none
log_min_duration_statement = -1
max_connections = 50
shared_buffers = 16MB
timezone = 'UTC'
EOF
	$node->append_conf('postgresql.conf', $conf) if defined $conf;
	$node->start;
	add_extension($node);
	return $node;
}

# The extension, a worker and a reconciler.
sub add_extension
{
	my ($node) = @_;

	$node->safe_psql('postgres', <<'EOF');
CREATE EXTENSION tool_claims;
CREATE ROLE worker LOGIN;
CREATE ROLE rival LOGIN;
CREATE ROLE reconciler LOGIN;
SELECT tool_claims.grant_duty('worker', 'worker');
SELECT tool_claims.grant_duty('rival', 'worker');
SELECT tool_claims.grant_duty('reconciler', 'reconciler');
EOF
	return;
}

# A connection.  Options: dbname, options (start-up options).
sub session
{
	my ($node, $role, %option) = @_;
	my $source = sprintf('dbi:Pg:host=%s;port=%d;dbname=%s',
		$node->host, $node->port, $option{dbname} // 'postgres');

	$source .= ";options='$option{options}'" if defined $option{options};
	return DBI->connect(
		$source, $role // '', '',
		{
			AutoCommit => 1,
			AutoInactiveDestroy => 1,
			PrintError => 0,
			PrintWarn => 0,
			RaiseError => 0,
			pg_server_prepare => 0
		});
}

# Calls a verb with named arguments:  call($session, 'claim', task_id => 't', …)
# The answer is its row, or { sqlstate => …, message => … }.
sub call
{
	my ($session, $verb, @arguments) = @_;
	my (@names, @values);

	while (my ($name, $value) = splice(@arguments, 0, 2))
	{
		push @names, "$name => ?";
		push @values, $value;
	}
	my $row = $session->selectrow_hashref(
		"SELECT * FROM tool_claims.$verb(" . join(', ', @names) . ')',
		undef, @values);
	return { sqlstate => $session->state, message => $session->errstr }
	  if $session->err;
	return $row // {};
}

# The first column of the first row.
sub value
{
	my ($session, $sql, @values) = @_;
	my ($value) = $session->selectrow_array($sql, undef, @values);

	return $session->err ? 'error ' . $session->state : $value;
}

# Runs a statement; the answer is its SQLSTATE, 00000 when it went well.
sub sqlstate
{
	my ($session, $sql) = @_;

	$session->do($sql);
	return $session->err ? $session->state : '00000';
}

# A test: every chain of the organization '' verifies.
sub evidence_ok
{
	my ($session, $name) = @_;
	my $bad = $session->selectcol_arrayref(<<'EOF');
SELECT format('%s %s: %s at %s', k.task_id, k.tool_call_id, v.reason, v.broken_at)
FROM (SELECT DISTINCT task_id, tool_call_id
	  FROM tool_claims.events
	  WHERE organization = '') AS k,
	tool_claims.verify_evidence(k.task_id, k.tool_call_id) AS v
WHERE NOT v.ok
EOF
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($session->errstr // join("\n", @$bad), '', $name);
}

# Kills a server with all its processes, by their numbers, and starts it again.
sub crash
{
	my ($node) = @_;
	my $data = $node->data_dir;
	my ($postmaster) = slurp_file("$data/postmaster.pid") =~ /^(\d+)/;

	# a stopped postmaster starts no further child
	kill 'STOP', $postmaster;
	my @pids = ($postmaster, children($postmaster));
	kill 'KILL', @pids;
	wait_until(sub { !grep { (process_state($_))[0] } @pids })
	  or die "the server does not die";

	$node->{_pid} = undef;
	unlink "$data/postmaster.pid";
	unlink glob($node->host . '/.s.PGSQL.' . $node->port . '*');
	wait_until(sub { $node->start(fail_ok => 1) })
	  or die "the server does not start";
	return;
}

# State and parent of a process; nothing when it is gone, or is a zombie that
# its parent has not noticed yet.
sub process_state
{
	my ($pid) = @_;
	my $stat = eval { slurp_file("/proc/$pid/stat") } // '';

	return $stat =~ /^\d+ \(.*\) ([^ZX]) (\d+)/ ? ($1, $2) : ();
}

sub children
{
	my ($parent) = @_;

	return grep { ((process_state($_))[1] // 0) == $parent }
	  map { m{^/proc/(\d+)$} ? $1 : () } glob('/proc/[0-9]*');
}

sub wait_until
{
	my ($condition, $seconds) = @_;
	my $end = time + ($seconds // 60);

	while (time < $end)
	{
		return 1 if $condition->();
		sleep 0.02;
	}
	return 0;
}

# What a backend waits for.
sub wait_event
{
	my ($observer, $session) = @_;

	return value($observer,
		'SELECT wait_event FROM pg_stat_activity WHERE pid = ?',
		$session->{pg_pid}) // '';
}

# Sends a statement and does not wait for its end.
sub start_statement
{
	my ($session, $sql) = @_;

	$session->do($sql, { pg_async => 1 });
	return;
}

# Waits for its end; the answer is its SQLSTATE.
sub end_statement
{
	my ($session) = @_;
	my $ok = $session->pg_result;

	return $ok ? '00000' : $session->state;
}

1;
