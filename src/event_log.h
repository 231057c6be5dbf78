/*
 * event_log.h
 *
 * The evidence: append-only events, one hash chain per key.
 */
#ifndef TC_EVENT_LOG_H
#define TC_EVENT_LOG_H

#include "lib/stringinfo.h"

#include "claim.h"

typedef struct EventRow
{
	ClaimKey	key;
	int32		seq;
	TimestampTz at;
	const char *kind;
	int32		attempt;		/* 0: none */
	const char *role;
	const char *principal;
	const char *detail;			/* JSON text, NULL where redacted */
	Sha256Digest detail_digest;
	bool		has_previous;
	Sha256Digest previous;
	Sha256Digest hash;
} EventRow;

/* what the module itself and the verification compute alike */
extern bool event_kind_changes(const char *kind);
extern void event_hash(const EventRow *row, Sha256Digest *hash);
extern void event_json_digest(const char *json, Sha256Digest *digest);

extern void event_log_prepare(EventRow *row, const ClaimKey *key,
							  EventKind kind, int32 attempt,
							  const char *principal, const char *detail,
							  const EventRow *after);
extern void event_log_write(const EventRow *row);
extern void event_log_redact(const ClaimKey *key);
extern void event_log_delete(const ClaimKey *key, const EventRow *keep);
extern bool event_log_in_flight(const ClaimKey *key);
extern int	event_log_delete_orphans(const char *organization,
									 TimestampTz before, int max_rows);

/* building the detail of an event, a JSON object */
extern void detail_begin(StringInfo detail);
extern void detail_text(StringInfo detail, const char *name, const char *value);
extern void detail_json(StringInfo detail, const char *name, const char *json);
extern const char *detail_end(StringInfo detail);

#endif							/* TC_EVENT_LOG_H */
