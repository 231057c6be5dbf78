# A tenant's pin holds against its client, with and without the library in
# shared_preload_libraries; the settings belong to the administrator.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $node = new_server('organization');
my $set = '-c tool_claims.organization=';
my $admin = session($node);

foreach my $statement (
	'CREATE ROLE tenant_a LOGIN',
	'CREATE ROLE tenant_b LOGIN',
	'CREATE ROLE gateway LOGIN',
	'ALTER ROLE tenant_a SET tool_claims.organization = \'a\'',
	'ALTER ROLE tenant_b SET tool_claims.organization = \'b\'',
	'GRANT SET ON PARAMETER tool_claims.organization TO gateway',
	(map { ("SELECT tool_claims.grant_duty('$_', 'worker')", "SELECT tool_claims.grant_duty('$_', 'auditor')") }
		qw(tenant_a tenant_b gateway)),
	map { "SELECT tool_claims.grant_duty('tenant_a', '$_')" }
	qw(proposer approver approval_service reconciler administrator))
{
	$admin->do($statement) or BAIL_OUT("$statement: " . $admin->errstr);
}

my @call = (task_id => 't', tool_call_id => 'c', tool_name => 'refund', lease => '10 min');
my @verbs = (
	"claim('t', 'c', 'refund', '{}', lease => '1 min')",
	"dispatch('t', 'c', 1)",
	"renew('t', 'c', 1, '1 min')",
	"complete('t', 'c', '1', 1)",
	"fail('t', 'c', '1', 1)",
	"release('t', 'c', 1)",
	"mark_uncertain('t', 'c', 1, 'time-out')",
	"report_late('t', 'c', 1, '1')",
	"assert_claim('t', 'c', 1)",
	'current_claim()',
	"require_claim('refund')",
	"status('t', 'c')",
	"find_claims('key')",
	"execute('t', 'c', 'refund', '{}', 'pg_catalog.jsonb_strip_nulls(jsonb)')",
	"evidence('t', 'c')",
	"verify_evidence('t', 'c')",
	'evidence_heads()',
	"timeline('t', 'c')",
	"reconcile('t', 'c', 1, 'occurred', '{}')",
	"propose('t', 'c', 'refund', '{}', 'agent')",
	"withdraw('t', 'c', 'why')",
	"reserve('t', 'c', '00000000-0000-4000-8000-000000000001', 'refund', '{}', 'agent', lease => '1 min')",
	"reserve_by_digest('t', 'c', '00000000-0000-4000-8000-000000000001', tool_claims.digest('{}'), lease => '1 min')",
	"approve('t', 'c', tool_claims.digest('{}'))",
	"reject('t', 'c', tool_claims.digest('{}'))",
	"revoke('t', 'c', 'why')",
	"approve_as('ann', 't', 'c', tool_claims.digest('{}'))",
	"reject_as('ann', 't', 'c', tool_claims.digest('{}'))",
	"revoke_as('ann', 't', 'c', 'why')",
	"review('t', 'c')",
	"inbox_for('ann')",
	"add_approver('ann')",
	"remove_approver('ann')",
	"expect_result('t', 'infinity')",
	"offer_result('t', 'succeeded', '1')",
	"gate('t')",
	"require_accepted('t')",
	"add_mark_key('k', '\\x00')",
	"retire_mark_key('k')",
	"revoke_mark_key('k')",
	"mark_content('text', 'k')",
	"verify_mark('text', 'tcm1.aw.AAAA')",
	"set_tool_policy('refund', enabled => true)",
	"drop_tool_policy('refund')",
	'sweep()',
	'prune()',
	"redact('t', 'c', 'a wish')");
my @views = qw(claims proposals inbox ready gates attention stats tool_policies);

# The organization a session is in, or the code it gets.
sub organization
{
	my ($session) = @_;

	return value($session, "SELECT organization FROM tool_claims.claims WHERE tool_call_id = 'c'") // 'none';
}

foreach my $preload (0, 1)
{
	my $with = $preload ? 'with preload' : 'without preload';

	if ($preload)
	{
		$admin->disconnect;
		$node->append_conf('postgresql.conf', 'shared_preload_libraries = \'tool_claims\'');
		$node->restart;
		$admin = session($node);
	}

	# two tenants, one key
	my $a = session($node, 'tenant_a');
	my $b = session($node, 'tenant_b');
	my $outcome = $preload ? 'completed' : 'acquired';
	is(call($a, 'claim', @call, input => '{"of": "a"}')->{outcome}, $outcome, "$with: tenant a has its own claim");
	is(call($b, 'claim', @call, input => '{"of": "b"}')->{outcome}, $outcome, "$with: tenant b too");
	foreach my $session ($preload ? () : ($a, $b))
	{
		is(call($session, 'complete', task_id => 't', tool_call_id => 'c', result => '1', attempt => 1)->{outcome},
			'completed', "$with: and completes it");
	}
	is(organization($a), 'a', "$with: tenant a sees its own");
	is(organization($b), 'b', "$with: tenant b too");
	is(value($a, 'SELECT count(*) FROM tool_claims.claims'), '1', "$with: and nothing else");
	is(organization($admin), 'none', "$with: the organization '' is one of its own");

	# a pinned tenant cannot leave
	foreach my $statement (
		'SET tool_claims.organization = \'b\'',
		'SET SESSION tool_claims.organization = \'\'',
		'SELECT pg_catalog.set_config(\'tool_claims.organization\', \'b\', false)',
		'UPDATE pg_catalog.pg_settings SET setting = \'b\' WHERE name = \'tool_claims.organization\'',
		'ALTER ROLE tenant_a SET tool_claims.organization = \'b\'',
		'CREATE FUNCTION pg_temp.f() RETURNS void LANGUAGE sql SET tool_claims.organization = \'b\' AS \'\'',
		'SET tool_claims.max_lease = \'1 day\'',
		'SET tool_claims.max_input_size = \'1GB\'',
		'SET tool_claims.clock_offset = 1000')
	{
		is(sqlstate($a, $statement), '42501', "$with: refused to a tenant: $statement");
	}
	$a->do('BEGIN');
	is(sqlstate($a, 'SET LOCAL tool_claims.organization = \'b\''), '42501', "$with: nor in a transaction");
	$a->do('ROLLBACK');
	foreach my $statement ('RESET tool_claims.organization', 'RESET ALL', 'DISCARD ALL',
		'SET tool_claims.organization TO DEFAULT')
	{
		$a->do($statement);
		is(organization($a), 'a', "$with: $statement stays in the pin");
	}
	$a->do('SET ROLE NONE');
	is(organization($a), 'a', "$with: so does SET ROLE NONE");

	# a gateway may switch
	my $gateway = session($node, 'gateway');
	is(organization($gateway), 'none', "$with: a gateway begins in ''");
	$gateway->do('BEGIN');
	is(sqlstate($gateway, 'SET LOCAL tool_claims.organization = \'a\''), '00000', "$with: it may switch");
	is(organization($gateway), 'a', "$with: and sees that tenant");
	is(call($gateway, 'claim', @call, input => '{"of": "b"}')->{outcome}, 'conflict', "$with: with that one's keys");
	$gateway->do('ROLLBACK');
	is(organization($gateway), 'none', "$with: until the transaction ends");
	$gateway->do('SET tool_claims.organization = \'*\'');
	is(value($gateway, "SELECT string_agg(organization, ' ' ORDER BY 1) FROM tool_claims.claims"),
		'a b', "$with: under * the views show all");
	is(call($gateway, 'claim', @call, input => '{"of": "b"}')->{sqlstate}, '22023', "$with: and verbs refuse it");
	is(organization(session($node, 'gateway', options => "${set}b")),
		'b', "$with: a gateway may also choose at start-up");
	is(organization(session($node, undef, options => "${set}b")), 'b', "$with: so may a superuser");

	# the client of a tenant asks for another organization as it connects, or for none
	foreach my $asked ('b', '', '*')
	{
		my $client = session($node, 'tenant_a', options => "$set$asked");
		my $having = "$with, asked for '$asked'";

		if ($preload)
		{
			# either it does not get in, or it gets in where it belongs
			is(defined $client ? organization($client) : 'a', 'a', "$having: a start-up option does not break the pin");
			next;
		}
		ok($client, "$having: a client with a start-up option gets in") or next;
		foreach my $verb (@verbs)
		{
			is(sqlstate($client, "SELECT * FROM tool_claims.$verb"), '42501', "$having: then refused: $verb");
		}
		foreach my $view (@views)
		{
			is(sqlstate($client, "SELECT * FROM tool_claims.$view"), '42501', "$having: then refused: view $view");
		}
		is(sqlstate($client, 'SET tool_claims.organization = \'a\''), '42501', "$having: nor can it mend that");
		foreach my $statement ('DISCARD ALL', 'RESET ALL', 'RESET tool_claims.organization')
		{
			$client->do($statement);
			is(organization($client), 'error 42501', "$having: nor with $statement");
		}

		# whatever loads the library first
		foreach my $first ('SET tool_claims.organization = \'a\'', 'LOAD \'$libdir/tool_claims\'',
			'SELECT tool_claims.digest(\'{}\')', 'SHOW tool_claims.organization', 'RESET ALL')
		{
			my $other = session($node, 'tenant_a', options => "$set$asked");

			$other->do($first);
			is(organization($other), 'error 42501', "$having: nor after $first");
		}
	}
	$preload or is(organization(session($node, 'tenant_a', options => "${set}a")),
		'error 42501', "$with: asking for the own one is asking as well");
	is(organization(session($node, 'tenant_a')), 'a', "$with: the next session is as ever");

	# names that do not exist
	is(sqlstate($gateway, 'SET tool_claims.organisation = \'a\''), '42602', "$with: a misspelled setting is noticed");
}

# policies and evidence are each organization's own
$admin->do('SET tool_claims.organization = \'a\'');
$admin->do("SELECT tool_claims.set_tool_policy('refund', enabled => false)");
$admin->do('RESET tool_claims.organization');
@call[2, 3] = (tool_call_id => 'd');
is(call(session($node, 'tenant_a'), 'claim', @call, input => '{}')->{reason},
	'tool_disabled', 'a policy of tenant a');
is(call(session($node, 'tenant_b'), 'claim', @call, input => '{}')->{outcome},
	'acquired', 'is none of tenant b');
$admin->do("SELECT tool_claims.set_tool_policy('mail', enabled => false)");
@call[3, 5] = ('e', 'mail');
is(call(session($node, $_), 'claim', @call, input => '{}')->{reason}, 'tool_disabled', "a policy of '' is one of $_")
  foreach qw(tenant_a tenant_b);

$node->stop;
done_testing();
