#!/bin/bash
# Ratios of the claim verbs against what users would write themselves, in one
# run on one server: server CPU (of the ended backends, as their postmaster
# counts it) and WAL bytes.  Uses the server of the PG* environment, which has
# to run on this machine, and a database of its own.
#
#   test/bench/claims.sh [transactions a client] [clients]
set -euo pipefail

transactions=${1:-20000}
clients=${2:-2}
database=tool_claims_bench_$$
work=$(mktemp -d)
clean_up() {
	psql -XqAt -d postgres -c 'ALTER SYSTEM RESET autovacuum' -c 'SELECT pg_reload_conf()' >/dev/null 2>&1
	dropdb --if-exists --force "$database" >/dev/null 2>&1
	rm -rf "$work"
}
trap clean_up EXIT

createdb "$database"
export PGDATABASE=$database
psql -XqAt -v ON_ERROR_STOP=1 <<'SQL'
ALTER SYSTEM SET autovacuum = off;
SELECT pg_reload_conf() \g /dev/null
CREATE EXTENSION tool_claims;
-- the same columns, written by hand
CREATE TABLE by_hand (LIKE tool_claims.claim_records INCLUDING DEFAULTS INCLUDING CONSTRAINTS);
ALTER TABLE by_hand ALTER input_digest TYPE bytea USING NULL;
ALTER TABLE by_hand ADD PRIMARY KEY (organization, task_id, tool_call_id);
CREATE SEQUENCE keys;
CREATE TABLE effects (task text, call text);
CREATE FUNCTION pay(jsonb) RETURNS jsonb LANGUAGE plpgsql AS
	$$BEGIN RETURN '{"ok": true}'; END$$;
CREATE FUNCTION execute_by_hand(t text, c text, tool text, i jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE r json; d bytea := sha256(convert_to(i::text, 'UTF8'));
BEGIN
	INSERT INTO by_hand (organization, task_id, tool_call_id, tool_server, tool_name, input_digest,
		state, leased, reacquire, attempt, claimed_at, held_role, held_from)
	VALUES ('', t, c, '', tool, d, 'c', false, false, 1, clock_timestamp(), current_user,
		current_setting('application_name')) ON CONFLICT DO NOTHING;
	IF NOT FOUND THEN
		SELECT result INTO r FROM by_hand WHERE organization = '' AND task_id = t AND tool_call_id = c;
		RETURN r;
	END IF;
	r := pay(i);
	UPDATE by_hand SET state = 'd', ended_by = 'h', result = r, finished_at = clock_timestamp()
	WHERE organization = '' AND task_id = t AND tool_call_id = c;
	RETURN r;
END$$;
INSERT INTO by_hand (organization, task_id, tool_call_id, tool_server, tool_name, input_digest,
	state, ended_by, leased, reacquire, attempt, claimed_at, finished_at, held_role, result)
VALUES ('', 'replay', 'c', '', 'refund', '', 'd', 'h', false, false, 1, now(), now(), 'x', '{"ok": true}');
SELECT 1 FROM tool_claims.execute('replay', 'c', 'refund', '{"order": 7, "amount": 12.5}', 'pay(jsonb)') \g /dev/null
SQL

write() { cat > "$work/$1.sql"; }
key="SELECT nextval('keys') AS n \gset"
input="'{\"order\": 7, \"amount\": 12.5}'"
insert="INSERT INTO by_hand (organization, task_id, tool_call_id, tool_server, tool_name, input_digest, state, leased, reacquire, attempt, claimed_at, held_role, held_from) VALUES ('', 'task ' || :n, 'call', '', 'refund', sha256(convert_to((${input}::jsonb)::text, 'UTF8')), 'c', false, false, 1, clock_timestamp(), current_user, current_setting('application_name')) ON CONFLICT DO NOTHING;"

write execute <<E2
$key
SELECT tool_claims.execute('x ' || :n, 'call', 'refund', $input, 'pay(jsonb)');
E2
write execute_by_hand <<E2
$key
SELECT execute_by_hand('x ' || :n, 'call', 'refund', $input);
E2
write both <<E2
$key
BEGIN;
SELECT outcome FROM tool_claims.claim('task ' || :n, 'call', 'refund', $input);
SELECT outcome FROM tool_claims.complete('task ' || :n, 'call', '{"ok": true}');
COMMIT;
E2
write both_by_hand <<E2
$key
BEGIN;
$insert
UPDATE by_hand SET state = 'd', ended_by = 'h', result = '{"ok": true}', finished_at = clock_timestamp() WHERE organization = '' AND task_id = 'task ' || :n AND tool_call_id = 'call';
COMMIT;
E2
write replay <<E2
SELECT outcome, result FROM tool_claims.claim('replay', 'c', 'refund', $input);
E2
write replay_by_hand <<E2
SELECT state, result FROM by_hand WHERE organization = '' AND task_id = 'replay' AND tool_call_id = 'c';
E2
write key_only <<E2
$key
E2

postmaster=$(head -1 "$(psql -XAtc 'SHOW data_directory')/postmaster.pid")
cpu() { awk '{ print $16 + $17 }' "/proc/$postmaster/stat"; }
wal() { psql -XAtc "SELECT pg_current_wal_insert_lsn() - '0/0'"; }

run() {		# name: sets ${name}_cpu (ticks) and ${name}_wal (bytes)
	local before_cpu before_wal
	psql -XqAtc 'CHECKPOINT'
	before_wal=$(wal); before_cpu=$(cpu)
	pgbench -n -M prepared -c "$clients" -j 1 -t "$transactions" -f "$work/$1.sql" > "$work/out" 2>&1 ||
		{ cat "$work/out"; exit 1; }
	sleep 0.5
	printf -v "$1_cpu" %s $(( $(cpu) - before_cpu ))
	printf -v "$1_wal" %s $(( $(wal) - before_wal ))
}

compare() {	# label, ours, theirs
	for name in "$3" "$2" "$3" "$2"; do run "$name"; done
	local a="$2_cpu" b="$3_cpu" c="$2_wal" d="$3_wal"
	awk -v l="$1" -v a="${!a}" -v b="${!b}" -v c="${!c}" -v d="${!d}" -v n=$((transactions * clients)) 'BEGIN {
		printf "%-28s server CPU %5.1f / %5.1f us = %.2f", l, a * 10000 / n, b * 10000 / n, a / b
		if (d > 100 * n) printf ", WAL %d / %d bytes = %.2f", c / n, d / n, c / d
		print "" }'
}

echo "$clients clients, $((transactions * clients)) transactions each; the second of two runs"
compare execute execute execute_by_hand
compare "claim + complete" both both_by_hand
compare "replay" replay replay_by_hand

psql -XqAt <<'SQL'
-- inside one backend: no round trip, only the work
CREATE FUNCTION pg_temp.took(statement text) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE t timestamptz := clock_timestamp();
BEGIN
	EXECUTE statement;
	RETURN round(extract(epoch FROM clock_timestamp() - t) * 1000000 / 50000, 2);
END$$;
BEGIN;
SELECT format('claim alone in one backend   %s / %s us = %s', a, b, round(a / b, 2)) FROM (SELECT
	pg_temp.took($$INSERT INTO by_hand (organization, task_id, tool_call_id, tool_server, tool_name, input_digest, state, leased, reacquire, attempt, claimed_at, held_role, held_from)
		SELECT '', 'i ' || n, 'call', '', 'refund', sha256(convert_to(('{"order": 7, "amount": 12.5}'::jsonb)::text, 'UTF8')), 'c', false, false, 1, clock_timestamp(), current_user, current_setting('application_name')
		FROM generate_series(1, 50000) n ON CONFLICT DO NOTHING$$) AS b,
	pg_temp.took($$SELECT count((c).attempt) FROM (SELECT tool_claims.claim('i ' || n, 'call', 'refund', '{"order": 7, "amount": 12.5}') AS c FROM generate_series(1, 50000) n OFFSET 0) s$$) AS a) x;
ROLLBACK;
SELECT format('HOT updates of claim_records %s %%', round(100.0 * n_tup_hot_upd / n_tup_upd, 2)) FROM pg_stat_user_tables WHERE relname = 'claim_records';
SQL
