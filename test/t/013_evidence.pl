# Evidence under load: equal events at the same moment are events of their own,
# and verifying a chain that is just being written raises no false alarm.
#
# TOOL_CLAIMS_EVENTS says how many equal events each client writes (1,000).

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use ToolClaims;

my $events = $ENV{TOOL_CLAIMS_EVENTS} || 1000;
my $clients = 8;
my $all = $clients * $events;
my $node = new_server('evidence', 'synchronous_commit = off');
my $admin = session($node);

#
# Many clients write equal events: conflicts, refusals, late reports.
#
$admin->do($_) or die $admin->errstr foreach (
	'SELECT tool_claims.set_tool_policy(\'off\', enabled => false)',
	'SELECT tool_claims.claim(\'storm\', \'conflict\', \'refund\', \'{}\', lease => \'10 min\')',
	'SELECT tool_claims.claim(\'storm\', \'report\', \'refund\', \'{}\', lease => \'10 min\')');
my %storms = (
	conflict => 'claim(\'storm\', \'conflict\', \'refund\', \'[]\', lease => \'10 min\')',
	refused => 'claim(\'storm\', \'refused\', \'off\', \'{}\', lease => \'10 min\')',
	report => 'report_late(\'storm\', \'report\', 1, \'"done"\')');

foreach my $key (sort keys %storms)
{
	$node->pgbench(
		"--no-vacuum --client=$clients --jobs=1 --transactions=$events",
		0,
		[qr{processed: $all/$all}],
		[qr{^(?!.*ERROR)}s],
		"$clients clients at once: $key",
		{ "013_evidence_$key" => "SELECT tool_claims.$storms{$key};\n" });
	foreach my $what ('*', 'DISTINCT hash')
	{
		is(value($admin, "SELECT count($what) FROM tool_claims.events WHERE tool_call_id = ?", $key),
			$all, "$key: an event each: $what");
	}
}
evidence_ok($admin, 'every chain verifies');
$admin->do('SELECT * FROM tool_claims.complete(\'storm\', \'conflict\', \'"done"\', 1)');
evidence_ok($admin, 'and after the next change');

#
# Others verify while a key changes all the time, and while keys come, are
# redacted and go.
#
$admin->do($_) or die $admin->errstr foreach (
	'SELECT tool_claims.set_tool_policy(\'all\', log => \'all\')',
	'SELECT tool_claims.set_tool_policy(\'brief\', log => \'all\', retention => \'1 microsecond\')',
	<<'EOF1', <<'EOF2', <<'EOF3');
CREATE PROCEDURE change(rounds integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		PERFORM tool_claims.claim('change', 'c', 'all', '{}', lease => '10 min');
		COMMIT;
		PERFORM tool_claims.dispatch('change', 'c', i, 'bank');
		PERFORM tool_claims.renew('change', 'c', i, '20 min');
		COMMIT;
		PERFORM tool_claims.mark_uncertain('change', 'c', i, 'no answer');
		COMMIT;
		PERFORM tool_claims.reconcile('change', 'c', i, 'not_occurred', '{"by": "hand"}');
		COMMIT;
	END LOOP;
END
$$
EOF1
CREATE PROCEDURE disturb(rounds integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		PERFORM tool_claims.claim('change', 'c', 'all', to_json(i), lease => '10 min')
		WHERE EXISTS (SELECT FROM tool_claims.claims WHERE tool_call_id = 'c');
		IF i % 5 = 0 THEN
			ROLLBACK;
		ELSIF i % 3 = 0 THEN
			COMMIT;
		END IF;
	END LOOP;
END
$$
EOF2
CREATE PROCEDURE come_and_go(rounds integer) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. rounds LOOP
		PERFORM tool_claims.claim('go', i::text, 'brief', '{}', lease => '10 min');
		COMMIT;
		PERFORM tool_claims.claim('go', i::text, 'brief', '[]', lease => '10 min');
		PERFORM tool_claims.complete('go', i::text, '"done"', 1);
		COMMIT;
		PERFORM tool_claims.redact('go', i::text, 'a wish');
		COMMIT;
		IF i % 10 = 0 THEN
			PERFORM tool_claims.prune(max_rows => 10000);
			COMMIT;
		END IF;
	END LOOP;
END
$$
EOF3

my $verify = <<'EOF';
SELECT string_agg(format('%s %s: %s at %s', k.task_id, k.tool_call_id, v.reason, v.broken_at), ', ')
FROM (SELECT DISTINCT task_id, tool_call_id
	  FROM tool_claims.events
	  WHERE task_id IN ('change', 'go')) AS k,
	tool_claims.verify_evidence(k.task_id, k.tool_call_id) AS v
WHERE NOT v.ok
EOF
my @busy = map { session($node) } 1 .. 3;
my $auditor = session($node);
my $looks = 0;
my @alarms;

start_statement($busy[0], 'CALL change(150)');
start_statement($busy[1], 'CALL disturb(1500)');
start_statement($busy[2], 'CALL come_and_go(300)');
while (grep { !$_->pg_ready } @busy)
{
	my $isolation = ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')[ $looks++ % 3 ];

	$auditor->do("BEGIN ISOLATION LEVEL $isolation");
	for (1 .. 2)
	{
		my $alarm = value($auditor, $verify);

		push @alarms, "$isolation: $alarm" if defined $alarm;
	}
	$auditor->do('COMMIT');
}
is(end_statement($_), '00000', 'a busy session ends well') foreach @busy;
cmp_ok($looks, '>', 5, 'looked many times');
is(join("\n", @alarms), '', 'no false alarm');
is(value($admin, 'SELECT count(*) FROM tool_claims.events WHERE tool_call_id = \'c\' AND kind <> \'conflict\''),
	150 * 4, 'every change has its event');
is(value($admin, 'SELECT string_agg(DISTINCT kind, \' \') FROM tool_claims.events WHERE task_id = \'go\''),
	'pruned', 'what came has gone');
evidence_ok($admin, 'all verifies in the end');

$node->stop;
done_testing();
