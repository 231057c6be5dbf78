# tool_claims: durable claims of tool calls
#
#   make, make install       build and install (PG_CONFIG names the server)
#   make installcheck        regress, isolation and Perl tests on a running server
#   make installcheck-pgtap  pgTAP, in the database that the regress tests leave
#   make test, make demo     everything a newcomer needs: these two install what
#                            is missing and start a server of their own

MODULE_big = tool_claims
OBJS = $(patsubst %.c,%.o,$(sort $(wildcard src/*.c)))
SHLIB_LINK = -lcrypto
PGFILEDESC = "tool_claims - durable claims of tool calls"

EXTENSION = tool_claims
DATA = src/tool_claims--0.1.0.sql

REGRESS = canonical_json sha256_digest claims leases operations execution \
	policies duties evidence administration approvals validation marks
REGRESS_OPTS = --load-extension=tool_claims

ISOLATION = approvals_isolation_levels assert_claim completing_row \
	decisions_race dispatch_takeover doubt_complete evidence_forks evidence_prune \
	evidence_redact evidence_snapshot execute expiry_reserve gate_deadline \
	gate_expect gate_offers gate_prune isolation_levels leased_deliveries \
	lost_answer mark_keys operations opposite_order policy_change policy_reserve \
	propose_claim prune_claim prune_held_proposal race_losers reconcile \
	redact_complete remove_approver_reserve renew_expiry reserve_race \
	revoke_reserve savepoints serializable_keys slow_check_policy \
	slow_check_revoke sweep takeover two_deliveries waits_end withdraw_reserve
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=tool_claims

TAP_TESTS = 1
PROVE_TESTS = test/t/*.pl

PGTAP_TESTS = $(sort $(wildcard test/pgtap/*.sql))
PG_PROVE = pg_prove

PG_CONFIG = pg_config

.PHONY: test demo installcheck-pgtap

# these two must run where there is no PostgreSQL yet
ifneq ($(filter-out test demo,$(or $(MAKECMDGOALS),all)),)
PGXS := $(shell $(PG_CONFIG) --pgxs)
ifeq ($(PGXS),)
$(error $(PG_CONFIG) was not found: install the PostgreSQL server development package, or name it with PG_CONFIG=)
endif
include $(PGXS)

$(OBJS) $(OBJS:.o=.bc): $(wildcard src/*.h)
endif

test:
	@test/run

demo:
	@test/replay/demo

installcheck-pgtap:
	PATH='$(bindir)':"$$PATH" $(PG_PROVE) $(PROVE_FLAGS) --dbname $(CONTRIB_TESTDB) $(PGTAP_TESTS)
