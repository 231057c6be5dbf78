# doctor() says nothing on a server that keeps the promises, and names each
# thing that weakens them: every finding is provoked here, and taken away again.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('doctor', <<'EOS', allows_streaming => 'logical', extra => ['--data-checksums']);
fsync = on
client_connection_check_interval = '10s'
idle_in_transaction_session_timeout = '5min'
jit = off
max_prepared_transactions = 5
EOS

my $admin = session($node);

# Runs statements of an administrator.
sub run_all
{
	my ($session, @statements) = @_;

	foreach my $statement (@statements)
	{
		$session->do($statement) or BAIL_OUT("$statement: " . $session->errstr);
	}
	return;
}

run_all($admin,
	'CREATE ROLE app LOGIN',
	'CREATE ROLE crew',
	map { ("CREATE ROLE the_$_ LOGIN", "SELECT tool_claims.grant_duty('the_$_', '$_')") }
	  qw(proposer approver approval_service auditor administrator backup));

# What the doctor finds: errors and warnings, or all of a level.
sub findings
{
	my ($session, @levels) = @_;

	@levels = qw(error warning) if !@levels;
	my $rows = $session->selectcol_arrayref(
		"SELECT level || ': ' || finding FROM tool_claims.doctor() WHERE level = ANY (?) ORDER BY 1",
		undef, \@levels);
	return $session->err ? 'error ' . $session->state : join("\n", @$rows);
}

sub healthy
{
	my ($session, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(findings($session), '', $name);
}

# A setting of the server, as a new session has it.
sub server_setting
{
	my ($name, $value) = @_;

	$admin->do("ALTER SYSTEM SET $name = '$value'") or BAIL_OUT($admin->errstr);
	$admin->do('SELECT pg_reload_conf()');
	wait_until(sub { value($admin, "SELECT setting FROM pg_settings WHERE name = '$name'") eq $value })
	  or die "$name does not change";
	return;
}

# Something is wrong, is named with its level and an advice, and is the only
# thing that is; then it is mended.
sub provoke
{
	my ($what, $expected, $break, $mend, $session) = @_;
	my ($level) = $expected =~ /^(\w+)/;

	$session //= $admin;
	run_all($session, ref $break ? @$break : $break);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is(findings($session), $expected, $what);
	is( value($session, 'SELECT count(*) FROM tool_claims.doctor() WHERE advice IS NULL OR advice !~ \'\.$\''),
		'0', "$what: with an advice");
	run_all($session, ref $mend ? @$mend : $mend);
	healthy($session, "$what: mended");
	return;
}

#
# A clean server.
#
is(findings($admin, qw(error warning info)), '', 'nothing to say about a clean server');
my $worker = session($node, 'worker');
$worker->do("SELECT tool_claims.claim('t', 'local', 'refund', '{}'), tool_claims.complete('t', 'local', '1')")
  or BAIL_OUT($worker->errstr);
healthy($admin, 'nor about one that works');
healthy(session($node, "the_$_"), "$_ may ask") foreach qw(auditor administrator);
is(findings(session($node, $_)), 'error 42501', "$_ may not")
  foreach qw(worker reconciler the_proposer the_approver the_approval_service the_backup app);

#
# Settings.
#
foreach my $case (
	[ 'fsync', 'off', 'on', 'error: fsync is off' ],
	[ 'full_page_writes', 'off', 'on', 'error: full_page_writes is off' ],
	[
		'idle_in_transaction_session_timeout', '0', '300000',
		'warning: idle_in_transaction_session_timeout is not set'
	])
{
	my ($name, $bad, $good, $finding) = @$case;

	server_setting($name, $bad);
	is(findings($admin), $finding, $finding);
	server_setting($name, $good);
	healthy($admin, "$name is mended");
}
server_setting('client_connection_check_interval', '0');
is(findings($admin, 'info'), 'info: client_connection_check_interval is not set', 'a hint');
server_setting('client_connection_check_interval', '10000');
is(findings($admin, 'info'), '', 'mended');

provoke("tool_claims.clock_offset by $_->[0]", 'error: tool_claims.clock_offset is not 0', $_->[1], $_->[2])
  foreach (
	[ 'SET', 'SET tool_claims.clock_offset = 1000', 'RESET tool_claims.clock_offset' ],
	[
		'ALTER ROLE', 'ALTER ROLE worker SET tool_claims.clock_offset = \'1 s\'',
		'ALTER ROLE worker RESET tool_claims.clock_offset'
	],
	[
		'ALTER DATABASE', 'ALTER DATABASE postgres SET tool_claims.clock_offset = \'-1 s\'',
		'ALTER DATABASE postgres RESET tool_claims.clock_offset'
	]);

my $pinned = 'error: organizations are pinned to roles and the library is not preloaded';
provoke("an organization pinned by $_->[0]", $pinned, $_->[1], $_->[2])
  foreach (
	[
		'ALTER ROLE', 'ALTER ROLE app SET tool_claims.organization = \'a\'',
		'ALTER ROLE app RESET tool_claims.organization'
	],
	[
		'ALTER ROLE IN DATABASE', 'ALTER ROLE app IN DATABASE postgres SET tool_claims.organization = \'a\'',
		'ALTER ROLE app IN DATABASE postgres RESET tool_claims.organization'
	]);

#
# Tables.
#
my $tables = $admin->selectcol_arrayref(<<'EOS');
SELECT relname FROM pg_class WHERE relnamespace = 'tool_claims'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1
EOS
cmp_ok(scalar @$tables, '>', 10, 'tables');
provoke("table $_ without WAL", "error: table $_ is not permanent",
	"ALTER TABLE tool_claims.$_ SET UNLOGGED", "ALTER TABLE tool_claims.$_ SET LOGGED")
  foreach @$tables;

foreach my $case (
	[ 'events', 'events_guard' ],
	[ 'policies', 'policies_changed' ],
	[ 'policies', 'policies_truncated' ])
{
	my ($table, $trigger) = @$case;
	my $finding = "error: trigger $trigger is missing or disabled";
	my $enable = "ALTER TABLE tool_claims.$table ENABLE " . ($table eq 'policies' ? 'ALWAYS ' : '') . "TRIGGER $trigger";

	provoke("$trigger disabled", $finding, "ALTER TABLE tool_claims.$table DISABLE TRIGGER $trigger", $enable);
	provoke("$trigger for replicas only", $finding,
		"ALTER TABLE tool_claims.$table ENABLE REPLICA TRIGGER $trigger", $enable);
}
run_all($admin, 'ALTER TABLE tool_claims.events ENABLE ALWAYS TRIGGER events_guard');
healthy($admin, 'a guard may be always enabled');

run_all($admin, 'CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS \'BEGIN RETURN new; END\'');
foreach my $table (qw(claim_records operations))
{
	my $finding = "warning: table $table has insert triggers, rules or row security";

	provoke("an insert trigger on $table", $finding,
		"CREATE TRIGGER x BEFORE INSERT ON tool_claims.$table FOR EACH ROW EXECUTE FUNCTION nothing()",
		"DROP TRIGGER x ON tool_claims.$table");
	provoke("row security on $table", $finding,
		"ALTER TABLE tool_claims.$table ENABLE ROW LEVEL SECURITY",
		"ALTER TABLE tool_claims.$table DISABLE ROW LEVEL SECURITY");
}

#
# Rights.
#
my $right = sub { "error: role $_[0] has $_[1] on $_[2] without a duty that gives it" };

provoke('a stray SELECT', $right->(qw(app SELECT claim_records)),
	'GRANT SELECT ON tool_claims.claim_records TO app', 'REVOKE ALL ON tool_claims.claim_records FROM app');
provoke('a stray UPDATE of one with a duty', $right->(qw(worker UPDATE votes)),
	'GRANT UPDATE ON tool_claims.votes TO worker', 'REVOKE UPDATE ON tool_claims.votes FROM worker');
provoke('a stray SELECT of a column', $right->('app', 'SELECT', 'claim_records (result)'),
	'GRANT SELECT (result) ON tool_claims.claim_records TO app',
	'REVOKE SELECT (result) ON tool_claims.claim_records FROM app');
provoke('a view for PUBLIC', $right->(qw(PUBLIC SELECT claims)),
	'GRANT SELECT ON tool_claims.claims TO PUBLIC', 'REVOKE SELECT ON tool_claims.claims FROM PUBLIC');
provoke('a function for PUBLIC', $right->(qw(PUBLIC EXECUTE sweep)),
	'GRANT EXECUTE ON FUNCTION tool_claims.sweep TO PUBLIC',
	'REVOKE EXECUTE ON FUNCTION tool_claims.sweep FROM PUBLIC');
provoke('a function of another duty', $right->(qw(worker EXECUTE reconcile)),
	'GRANT EXECUTE ON FUNCTION tool_claims.reconcile TO worker',
	'REVOKE EXECUTE ON FUNCTION tool_claims.reconcile FROM worker');
provoke('the schema', $right->(qw(app USAGE tool_claims)),
	'GRANT USAGE ON SCHEMA tool_claims TO app', 'REVOKE USAGE ON SCHEMA tool_claims FROM app');
provoke('default privileges for what comes into the schema', $right->(qw(app DELETE extra)),
	[
		'ALTER DEFAULT PRIVILEGES IN SCHEMA tool_claims GRANT DELETE ON TABLES TO app',
		'CREATE TABLE tool_claims.extra ()'
	],
	[
		'DROP TABLE tool_claims.extra',
		'ALTER DEFAULT PRIVILEGES IN SCHEMA tool_claims REVOKE DELETE ON TABLES FROM app'
	]);

# default privileges of before leave nothing behind
run_all($admin, 'CREATE DATABASE generous');
{
	my $generous = session($node, undef, dbname => 'generous');

	run_all($generous,
		(map { "ALTER DEFAULT PRIVILEGES GRANT ALL ON $_ TO app" } qw(SCHEMAS TABLES FUNCTIONS SEQUENCES TYPES)),
		'ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC',
		'CREATE EXTENSION tool_claims');
	healthy($generous, 'an extension made under generous default privileges');
	is(value($generous, "SELECT has_schema_privilege('app', 'tool_claims', 'USAGE')"), '0', 'gives nothing');
	$generous->disconnect;
}

#
# Roles.
#
provoke('pg_write_all_data', 'warning: role app can write every table through pg_write_all_data',
	'GRANT pg_write_all_data TO app', 'REVOKE pg_write_all_data FROM app');
provoke(
	'pg_write_all_data by way of another',
	"warning: role app can write every table through pg_write_all_data\n"
	  . 'warning: role crew can write every table through pg_write_all_data',
	[ 'GRANT pg_write_all_data TO crew', 'GRANT crew TO app' ],
	[ 'REVOKE pg_write_all_data FROM crew', 'REVOKE crew FROM app' ]);

foreach my $case (
	[qw(worker approver)], [qw(worker approval_service)], [qw(worker reconciler)],
	[qw(proposer approver)], [qw(proposer approval_service)],
	[qw(administrator approver)], [qw(administrator approval_service)])
{
	my ($one, $other) = @$case;
	my $finding = "warning: role app has the duties $one and $other";

	provoke("$one and $other", $finding,
		[ map { "SELECT tool_claims.grant_duty('app', '$_')" } $one, $other ],
		[ map { "SELECT tool_claims.revoke_duty('app', '$_')" } $one, $other ]);
	provoke("$one and, as a member, $other", $finding,
		[
			"SELECT tool_claims.grant_duty('app', '$one')",
			"SELECT tool_claims.grant_duty('crew', '$other')",
			'GRANT crew TO app'
		],
		[
			"SELECT tool_claims.revoke_duty('app', '$one')",
			"SELECT tool_claims.revoke_duty('crew', '$other')",
			'REVOKE crew FROM app'
		]);
}

#
# Prepared transactions.
#
{
	my $other = session($node);

	run_all($other, 'BEGIN', 'LOCK TABLE tool_claims.claim_records IN ROW SHARE MODE', 'PREPARE TRANSACTION \'forgotten\'');
	is(findings($admin), 'warning: prepared transaction forgotten holds a lock on claim_records', 'a prepared transaction');
	run_all($other, 'ROLLBACK PREPARED \'forgotten\'');
	run_all($other, 'CREATE TABLE business ()', 'BEGIN', 'LOCK TABLE business', 'PREPARE TRANSACTION \'other\'');
	healthy($admin, 'one that holds nothing of ours is none of our business');
	run_all($other, 'ROLLBACK PREPARED \'other\'');
}

#
# Publications and subscriptions.
#
provoke('a publication', 'warning: publication p has the table claim_records',
	'CREATE PUBLICATION p FOR TABLE tool_claims.claim_records', 'DROP PUBLICATION p');
run_all($admin, 'CREATE PUBLICATION p FOR TABLES IN SCHEMA tool_claims');
is(findings($admin), join("\n", map { "warning: publication p has the table $_" } @$tables), 'one of the schema');
run_all($admin, 'DROP PUBLICATION p', 'CREATE PUBLICATION p FOR ALL TABLES');
like(findings($admin), qr/^warning: publication p has the table claim_records$/m, 'one of all tables');
run_all($admin, 'DROP PUBLICATION p', 'CREATE PUBLICATION p FOR TABLE tool_claims.events', 'CREATE DATABASE subscriber');
{
	my $subscriber = session($node, undef, dbname => 'subscriber');
	my $source = sprintf('host=%s port=%d dbname=postgres user=%s', $node->host, $node->port,
		value($admin, 'SELECT current_user'));

	run_all($subscriber, 'CREATE EXTENSION tool_claims');
	provoke(
		'a subscription',
		'warning: subscription s writes the table events',
		"CREATE SUBSCRIPTION s CONNECTION '$source' PUBLICATION p WITH (create_slot = false, slot_name = NONE, enabled = false)",
		'DROP SUBSCRIPTION s',
		$subscriber);
	$subscriber->disconnect;
}
run_all($admin, 'DROP PUBLICATION p');
healthy($admin, 'without them');

#
# An asynchronous standby matters beside leased claims.
#
$node->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'base', has_streaming => 1);
$standby->start;
$node->wait_for_catchup($standby);
healthy($admin, 'an asynchronous standby and no leased claim');
$worker->do("SELECT tool_claims.claim('t', 'leased', 'refund', '{}', lease => '50 min')") or BAIL_OUT($worker->errstr);
is( findings($admin),
	'warning: standby standby is asynchronous and there are leased claims',
	'an asynchronous standby beside leased claims');
server_setting('synchronous_standby_names', 'standby');
wait_until(sub { value($admin, 'SELECT sync_state FROM pg_stat_replication') eq 'sync' }) or die 'it does not become synchronous';
healthy($admin, 'a synchronous one');
$node->wait_for_catchup($standby);
healthy(session($standby), 'the doctor comes to the standby too');
server_setting('synchronous_standby_names', '');
$standby->stop;

#
# Nobody misleads the doctor.
#
{
	my $auditor = session($node, 'the_auditor');

	run_all($admin, 'GRANT pg_write_all_data TO app', 'GRANT TEMPORARY ON DATABASE postgres TO the_auditor');
	run_all($auditor,
		'CREATE TEMPORARY TABLE pg_roles (oid oid, rolname name, rolsuper boolean)',
		'CREATE TEMPORARY TABLE pg_class (oid oid)',
		'CREATE FUNCTION pg_temp.current_setting(text) RETURNS text LANGUAGE sql AS \'SELECT $1\'',
		'SET search_path = pg_temp, pg_catalog');
	is(findings($auditor), 'warning: role app can write every table through pg_write_all_data',
		'objects of the caller mislead nobody');
	run_all($admin, 'REVOKE pg_write_all_data FROM app');
	healthy($auditor, 'mended');
}

# library and script of different versions
provoke(
	'another version of the library',
	'error: extension version 0.0.9 runs with library version 0.1.0',
	'UPDATE pg_extension SET extversion = \'0.0.9\' WHERE extname = \'tool_claims\'',
	'UPDATE pg_extension SET extversion = \'0.1.0\' WHERE extname = \'tool_claims\'');

# rules, and when they are gone
provoke("a rule on $_", "warning: table $_ has insert triggers, rules or row security",
	"CREATE RULE x AS ON INSERT TO tool_claims.$_ WHERE false DO ALSO NOTHING",
	"DROP RULE x ON tool_claims.$_")
  foreach qw(claim_records operations);

# pinned organizations with the library preloaded, and no checksums
run_all($admin, 'ALTER ROLE app SET tool_claims.organization = \'a\'');
is(findings($admin), $pinned, 'pinned without preload');
$_->disconnect foreach $admin, $worker;
$node->append_conf('postgresql.conf', 'shared_preload_libraries = \'tool_claims\'');
$node->stop;
command_ok([ 'pg_checksums', '--disable', '-D', $node->data_dir ], 'checksums are taken away');
$node->start;
$admin = session($node);
is(findings($admin, qw(error warning info)), 'info: data checksums are off', 'with preload, pinned organizations are fine');

$node->stop;
done_testing();
