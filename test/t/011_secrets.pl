# The secret of a mark key, given as a bind parameter, comes out nowhere: not
# in the server log, in what other sessions see, in errors, views or evidence.
# Nor do errors tell contents, results and inputs.

use strict;
use warnings;

use DBD::Pg qw(:pg_types :async);
use FindBin;
use lib $FindBin::RealBin;
use MIME::Base64;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

# a canary in each secret, and one in what is no secret but nobody's business
my $canary = 'nachtigall';
my $secret = "hmac $canary secret of more than thirty-two bytes";
my $seed = substr("$canary ed25519 seed" . 'x' x 32, 0, 32);
my $private = 'steinkauz';

my $node = new_server('secrets', <<'EOS');
log_min_messages = debug2
log_error_verbosity = verbose
log_connections = on
log_lock_waits = on
deadlock_timeout = 50ms
pg_stat_statements.track = all
shared_preload_libraries = 'pg_stat_statements'
EOS
my $admin = session($node);
my @heard;

foreach my $statement (
	'CREATE EXTENSION pg_stat_statements',
	map { ("CREATE ROLE the_$_ LOGIN", "SELECT tool_claims.grant_duty('the_$_', '$_')") }
	qw(worker proposer approver approval_service reconciler auditor administrator backup))
{
	$admin->do($statement) or BAIL_OUT("$statement: " . $admin->errstr);
}

# A session that sends its parameters apart from the statement.
sub binding
{
	my $session = session($node, @_);

	$session->{pg_server_prepare} = 1;
	return $session;
}

# the canary in every spelling that it could have
sub leaks
{
	my ($text, $word) = @_;

	foreach my $spelling (
		$word,
		unpack('H*', $word),
		(map { substr(encode_base64(substr('xx', 0, $_) . $word, ''), 4, 8) } 0 .. 2))
	{
		return 1 if index(lc($text // ''), lc $spelling) >= 0;
	}
	return 0;
}

# Adds a key by bind parameters; the answer is the SQLSTATE.
sub add_key
{
	my ($session, $key_id, $bytes, $algorithm, $async) = @_;
	my $statement = $session->prepare('SELECT tool_claims.add_mark_key($1, $2, $3)',
		{ pg_placeholder_dollaronly => 1, $async ? (pg_async => PG_ASYNC) : () });

	$statement->bind_param(1, $key_id);
	$statement->bind_param(2, $bytes, { pg_type => PG_BYTEA });
	$statement->bind_param(3, $algorithm // 'hmac-sha256');
	$statement->execute;
	return $statement if $async;
	push @heard, $session->errstr // '';
	return $session->err ? $session->state : '00000';
}

sub verdict
{
	my ($session, @arguments) = @_;
	my $row = $session->selectrow_hashref('SELECT * FROM tool_claims.verify_mark(?, ?, ?)', undef, @arguments);

	push @heard, $session->errstr // join ' ', map { $_ // '' } values %$row;
	return $session->err ? $session->state : $row->{verdict};
}

sub failing
{
	my ($session, $sql, @values) = @_;

	$session->do($sql, undef, @values);
	push @heard, $session->errstr // '';
	return $session->err ? $session->state : '00000';
}

#
# Keys that are taken, and keys that are not.
#
my $keeper = binding('the_administrator');
is(add_key($keeper, 'a', $secret), '00000', 'a key');
is(add_key($keeper, 'e', $seed, 'ed25519'), '00000', 'an Ed25519 key');
is(add_key($keeper, 'a', $secret), '23505', 'the same again');
is(add_key($keeper, 'e', $seed, 'ed25519'), '23505', 'of both kinds');
is(add_key($keeper, 'b', "$seed y", 'ed25519'), '22023', 'no Ed25519 key');
is(add_key($keeper, 'b', $secret, 'md5'), '22023', 'no such algorithm');
is(add_key($keeper, '', $secret), '22023', 'no id');
is(add_key($keeper, 'x' x 513, $secret), '22023', 'too long an id');
is(add_key($keeper, undef, $secret), '22004', 'id NULL');
is(add_key(binding("the_$_"), 'b', $secret), '42501', "$_ adds none")
  foreach qw(worker proposer approver approval_service reconciler auditor backup);

$keeper->do('BEGIN READ ONLY');
is(add_key($keeper, 'b', $secret), '25006', 'read only');
$keeper->do('ROLLBACK');
$keeper->do('BEGIN');
$keeper->do('SELECT no_such_function()');
is(add_key($keeper, 'b', $secret), '25P02', 'in a transaction that failed');
$keeper->do('ROLLBACK');

#
# Seen by others while it waits, and cancelled.
#
{
	$admin->do('BEGIN');
	$admin->do('LOCK TABLE tool_claims.mark_keys IN SHARE MODE');
	my $statement = add_key($keeper, 'c', $secret, undef, 1);
	my $watcher = session($node);
	wait_until(sub { wait_event($watcher, $keeper) eq 'relation' }) or die 'it does not wait';
	wait_until(sub { slurp_file($node->logfile) =~ /still waiting/ }, 10) or die 'the log does not tell';
	my $seen = join "\n", map { join ' ', map { $_ // '' } @$_ }
	  @{ $watcher->selectall_arrayref('SELECT query, application_name FROM pg_stat_activity') };
	like($seen, qr/add_mark_key\(\$1/, 'others see the statement');
	ok(!leaks($seen, $canary), 'and not its parameters');
	$watcher->do('SELECT pg_cancel_backend(?)', undef, $keeper->{pg_pid});
	is(end_statement($keeper), '57014', 'cancelled');
	push @heard, $keeper->errstr;
	$admin->do('ROLLBACK');
}

# two of the same id, one waits for the other
{
	my $other = binding('the_administrator');

	$keeper->do('BEGIN');
	is(add_key($keeper, 'c', $secret), '00000', 'a key in an open transaction');
	$other->do('SET lock_timeout = \'200ms\'');
	is(add_key($other, 'c', $secret), '55P03', 'another of the same id waits');
	$keeper->do('ROLLBACK');
}

#
# Marks that are good, and marks that are not.
#
my $worker = binding('the_worker');
my $content = "{\"to\": \"$private\"}";
my %mark = map { $_ => value($worker, 'SELECT tool_claims.mark_content(?, ?, ?)', $content, $_, 'out') } qw(a e);
like($mark{$_}, qr/^tcm1\./, "a mark by $_") foreach qw(a e);
push @heard, values %mark;
foreach my $key (qw(a e))
{
	is(verdict($worker, $content, $mark{$key}, 'out'), 'valid', "$key: valid");
	is(verdict($worker, "$content ", $mark{$key}, 'out'), 'invalid', "$key: other content");
	is(verdict($worker, $content, $mark{$key}, 'in'), 'invalid', "$key: other context");
	is(verdict($worker, $content, $mark{$key} . 'A', 'out'), 'invalid', "$key: a damaged mark");
	is(verdict($worker, $content, undef, 'out'), 'unmarked', "$key: none");
}
is(verdict($worker, $content, 'tcm1.eg.' . 'A' x 43, 'out'), 'unknown_key', 'of a key that is not here');
is(failing($worker, 'SELECT tool_claims.mark_content(?, \'z\')', $content), '42704', 'no such key');
is(failing($keeper, 'SELECT tool_claims.retire_mark_key(\'e\')'), '00000', 'retired');
is(failing($worker, 'SELECT tool_claims.mark_content(?, \'e\')', $content), '55000', 'marks no more');
is(verdict($worker, $content, $mark{e}, 'out'), 'valid', 'verifies still');
is(failing($keeper, 'SELECT tool_claims.revoke_mark_key(\'e\')'), '00000', 'revoked');
is(failing($worker, 'SELECT tool_claims.mark_content(?, \'e\')', $content), '55000', 'marks no more');
is(verdict($worker, $content, $mark{e}, 'out'), 'invalid', 'nor does it verify');
is(failing($keeper, 'SELECT tool_claims.revoke_mark_key(\'z\')'), '42704', 'no key to revoke');

# at a gate
is(failing($worker, 'SELECT tool_claims.expect_result(\'t\', now() + \'1 hour\', mark_context => \'out\')'), '00000', 'a gate');
is(failing($worker, 'SELECT tool_claims.require_accepted(\'t\')'), 'TC011', 'nothing yet');
is(failing($worker, 'SELECT tool_claims.offer_result(\'t\', \'succeeded\', content => ?, mark => ?)', $content, "$mark{a}A"),
	'00000', 'an offer with a damaged mark');
is(failing($worker, 'SELECT tool_claims.require_accepted(\'t\')'), 'TC011', 'not accepted');
is(failing($worker, 'SELECT tool_claims.mark_content(?, NULL)', $content), '22004', 'no key named');

#
# Where it could come out.
#
my $log = slurp_file($node->logfile);
ok($log =~ /add_mark_key\(\$1/, 'the log has the statements');
ok(!leaks($log, $canary), 'and no secret');
ok(!leaks($log, $private), 'nor content');
ok(!leaks(join("\n", @heard), $canary), 'no answer and no error has a secret');
ok(!(grep { /$private/ } @heard), 'nor content');
my $statements = join "\n", @{ $admin->selectcol_arrayref('SELECT query FROM pg_stat_statements') };
ok(!leaks($statements, $canary), 'pg_stat_statements has no secret');

# one that is given as a literal is a constant to pg_stat_statements
$admin->do("SELECT tool_claims.add_mark_key('literal', '$secret')") or BAIL_OUT($admin->errstr);
$statements = join "\n", @{ $admin->selectcol_arrayref('SELECT query FROM pg_stat_statements') };
like($statements, qr/add_mark_key/, 'a literal is in pg_stat_statements as a statement');
ok(!leaks($statements, $canary), 'and not as a value');

# every table and view that is not the table of keys
my $relations = $admin->selectcol_arrayref(<<'EOS');
SELECT oid::regclass FROM pg_class
WHERE relnamespace = 'tool_claims'::regnamespace AND relkind IN ('r', 'v') AND relname <> 'mark_keys'
ORDER BY 1
EOS
cmp_ok(scalar @$relations, '>', 15, 'relations');
foreach my $relation (@$relations)
{
	my $rows = $admin->selectcol_arrayref("SELECT r::text FROM $relation AS r");

	ok(defined $rows && !leaks(join("\n", @$rows), $canary), "nothing in $relation");
}
ok(!leaks(value($admin, 'SELECT string_agg(d::text, \' \') FROM tool_claims.doctor() AS d'), $canary), 'nor does the doctor tell');

# who can read the keys
$admin->do('ANALYZE tool_claims.mark_keys');
foreach my $duty (qw(worker proposer approver approval_service reconciler auditor administrator))
{
	my $session = session($node, "the_$duty");

	is(failing($session, 'SELECT secret FROM tool_claims.mark_keys'), '42501', "$duty reads no secret");
	is(failing($session, 'COPY tool_claims.mark_keys TO STDOUT'), '42501', "$duty copies none");
	ok(!leaks(value($session, 'SELECT string_agg(s::text, \' \') FROM pg_stats AS s WHERE tablename = \'mark_keys\''), $canary),
		"$duty learns none from the statistics");
}
is(failing(session($node, 'the_backup'), 'SELECT secret FROM tool_claims.mark_keys'), '00000', 'a dump has them');

# the marks of a key, made by nobody who lacks the duty
is(failing(session($node, "the_$_"), 'SELECT tool_claims.mark_content(\'x\', \'a\')'), '42501', "$_ makes no mark")
  foreach qw(proposer approver approval_service reconciler auditor backup);

$node->stop;
done_testing();
