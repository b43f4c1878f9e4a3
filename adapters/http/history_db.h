/* history_db.h: the SQLite file of a history, or a database in memory: opening, checking, closing it, and its
 * prepared statements. Used by one thread at a time. */
#ifndef HTTP_HISTORY_DB_H
#define HTTP_HISTORY_DB_H

#include <stdbool.h>
#include <stddef.h>

#include <sqlite3.h>

#include "svmstream/error.h"

/* X(CONSTANT, "SQL") */
#define HISTORY_STATEMENTS(X)                                                                                \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                              \
    X(COMMIT, "COMMIT")                                                                                      \
    X(ROLLBACK, "ROLLBACK")                                                                                  \
    X(VACUUM, "PRAGMA incremental_vacuum(64)")                                                               \
    X(STREAM_ADD, "INSERT OR IGNORE INTO streams(name) VALUES (?1)")                                         \
    X(STREAM_GET, "SELECT id, last, measure, epoch, number FROM streams WHERE name = ?1")                    \
    X(STREAM_NAMES, "SELECT name FROM streams ORDER BY name LIMIT 20")                                       \
    X(STREAM_NEXT, "SELECT id FROM streams WHERE id > ?1 ORDER BY id LIMIT 1")                               \
    X(STREAM_SET, "UPDATE streams SET last = ?2, measure = ?3 WHERE id = ?1")                                \
    X(STREAM_NUMBER, "UPDATE streams SET epoch = ?2, number = ?3 WHERE id = ?1")                             \
    X(POINT_PUT, "INSERT INTO points(stream, step, t, figures) VALUES (?1, ?2, ?3, ?4) "                     \
                 "ON CONFLICT DO UPDATE SET figures = excluded.figures")                                     \
    X(POINT_RANGE,                                                                                           \
      "SELECT t, figures FROM points WHERE stream = ?1 AND step = ?2 AND t >= ?3 AND t < ?4 ORDER BY t")     \
    X(POINT_FIRST, "SELECT min(t) FROM points WHERE stream = ?1 AND step = ?2")                              \
    X(POINT_PRUNE, "DELETE FROM points WHERE stream = ?1 AND step = ?2 AND t IN (SELECT t FROM points "      \
                   "WHERE stream = ?1 AND step = ?2 AND t < ?3 ORDER BY t LIMIT ?4)")                        \
    X(EPISODE_PUT,                                                                                           \
      "INSERT INTO episodes(stream, epoch, key, alert, first, last, closed, recorded) "                      \
      "VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?8) ON CONFLICT(stream, epoch, key, alert) DO UPDATE SET "        \
      "first = min(first, excluded.first), last = iif(?7, max(last, excluded.last), last), "                 \
      "closed = coalesce(excluded.closed, closed), recorded = excluded.recorded RETURNING id")               \
    X(EPISODE_RANGE,                                                                                         \
      "SELECT id, epoch, first, last, closed FROM episodes WHERE stream = ?1 AND first <= ?3 "               \
      "AND (last >= ?2 OR (closed IS NULL AND epoch = ?4)) AND (?6 IS NULL OR key = ?6) "                    \
      "ORDER BY first DESC, id DESC LIMIT ?5 OFFSET ?7")                                                     \
    X(EVENT_PUT, "INSERT OR IGNORE INTO events(stream, epoch, number, episode, recorded, size, sum, event) " \
                 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")                                                  \
    X(EVENT_KNOWN, "SELECT 1 FROM events WHERE stream = ?1 AND epoch = ?2 AND number = ?3")                  \
    X(EVENT_RANGE, "SELECT size, sum, event FROM events WHERE episode = ?1 ORDER BY number")                 \
    X(EVENT_PRUNE,                                                                                           \
      "DELETE FROM events WHERE episode IN (SELECT id FROM episodes WHERE recorded < ?1 ORDER BY "           \
      "recorded LIMIT ?2)")                                                                                  \
    X(EPISODE_PRUNE, "DELETE FROM episodes WHERE id IN (SELECT id FROM episodes WHERE recorded < ?1 ORDER "  \
                     "BY recorded LIMIT ?2)")                                                                \
    X(OTHERS_PRUNE, "DELETE FROM events WHERE episode IS NULL AND recorded < ?1")                            \
    X(PAGES_USED, "SELECT (SELECT page_count FROM pragma_page_count) - (SELECT freelist_count FROM "         \
                  "pragma_freelist_count)")                                                                  \
    X(EPISODE_COUNT, "SELECT count(*) FROM episodes")                                                        \
    X(EPISODE_CUT, "SELECT recorded FROM episodes ORDER BY recorded DESC LIMIT 1 OFFSET ?1")

enum history_statement {
#define X(constant, sql) HISTORY_##constant,
    HISTORY_STATEMENTS(X)
#undef X
        HISTORY_STATEMENT_COUNT
};

/* What became of opening a file. */
enum history_opening {
    HISTORY_OPENED = 0,
    HISTORY_REFUSED, /* a mistake of the user: a file of another program or of a newer version, one that is in
                        use, no permission */
    HISTORY_UNKNOWN, /* no database at all: another program's, or ours with a damaged begin. Left alone. */
    HISTORY_DAMAGED, /* ours, and damaged */
    HISTORY_FAILED   /* the disk is full or does not work, no memory: may pass */
};

struct history_db {
    sqlite3 *sqlite; /* NULL: closed */
    sqlite3_stmt *statement[HISTORY_STATEMENT_COUNT];
    char *path; /* NULL: in memory */
    int number; /* errno of the last transaction that failed; 0: none */
    int fd;     /* holds the lock that keeps other adapters out; -1: in memory */
};

/* Opens the file, or makes it, readable by its owner alone. path NULL: in memory. Everything but
 * HISTORY_OPENED: closed, with the reason in `err`. */
enum history_opening http_history_db_open(struct history_db *db, const char *path, svs_error *err);
void http_history_db_close(struct history_db *db);

/* Renames a file that is closed, with what belongs to it, to PATH.damaged-TIME, and writes this name to
 * `name`. SVS_IO: nothing was renamed. */
svs_code http_history_db_set_aside(const char *path, char *name, size_t size, svs_error *err);

/* True: the file is still the one that was opened, under its name. */
bool http_history_db_in_place(const struct history_db *db);

/* The statement, reset, without parameters. NULL: sqlite3_errcode. */
sqlite3_stmt *http_history_db_statement(struct history_db *db, enum history_statement s);

/* Runs a statement without parameters. Returns SQLITE_OK or the error. */
int http_history_db_run(struct history_db *db, enum history_statement s);

/* Ends a transaction: commits it if `result` is SQLITE_OK, else undoes it. Returns the result of both. */
int http_history_db_end(struct history_db *db, int result);

/* Is this result of SQLite that of a damaged file? */
bool http_history_db_is_damage(int result);

/* What the result says about the file, for people: "the disk is full". */
const char *http_history_db_reason(const struct history_db *db, int result);

#endif
