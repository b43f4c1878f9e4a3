/* The file of a history: the access to it, its form, and what its errors mean.
 *
 * A file is checked before SQLite sees it, and one that is not ours is never written. A database
 * with another application id, or of a newer form, is refused. Bytes that are no database at all
 * may be ours with a damaged beginning, so the caller continues without them and leaves them where
 * they are. Our own file with damage further in is set aside under another name, so that it can
 * still be repaired. Its write-ahead log goes with it.
 *
 * The lock against a second adapter is flock on a descriptor of our own. SQLite's locks are those
 * of fcntl and do not serve: other programs need them for reading while we write. This process
 * would also lose them by closing any descriptor of the file. So this descriptor is closed last. */
#include "history_db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "net/guarded_file.h"

#define APPLICATION 0x73766d68 /* "svmh" at offset 68 of the file: 1937141096 */
#define FORM        1          /* user_version */
#define HEADER      72         /* bytes of the file's header that are checked */
#define SUFFIX      40         /* bytes of ".damaged-20261127T031500Z-NN-wal" */

static const char db_magic[16] = "SQLite format 3";

/* The pages of removed rows are used again, and given back a few at a time (auto_vacuum). All of it is one
 * transaction: a file either has its whole form or none. */
static const char db_form[] =
    "PRAGMA auto_vacuum = INCREMENTAL;"
    "BEGIN IMMEDIATE;"
    "PRAGMA application_id = 1937141096;"
    "PRAGMA user_version = 1;"
    "CREATE TABLE streams(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, last INTEGER,"
    " measure TEXT, epoch INTEGER, number INTEGER) STRICT;"
    "CREATE TABLE points(stream INTEGER NOT NULL, step INTEGER NOT NULL, t INTEGER NOT NULL,"
    " figures BLOB NOT NULL, PRIMARY KEY(stream, step, t)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE episodes(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, key BLOB NOT NULL, alert INTEGER NOT NULL, first REAL NOT NULL,"
    " last REAL NOT NULL, closed REAL, recorded REAL NOT NULL,"
    " UNIQUE(stream, epoch, key, alert)) STRICT;"
    "CREATE INDEX episodes_first ON episodes(stream, first);"
    "CREATE INDEX episodes_recorded ON episodes(recorded);"
    "CREATE TABLE events(id INTEGER PRIMARY KEY, stream INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL, number INTEGER NOT NULL, episode INTEGER, recorded REAL NOT NULL,"
    " size INTEGER NOT NULL, sum INTEGER NOT NULL, event BLOB NOT NULL,"
    " UNIQUE(stream, epoch, number)) STRICT;"
    "CREATE INDEX events_episode ON events(episode, number);"
    "COMMIT;";

/* Nothing in a file can make SQLite run code or write its schema. synchronous NORMAL loses the last
 * transactions when the power fails, never the file. */
static const char db_ways[] = "PRAGMA journal_mode = WAL;"
                              "PRAGMA synchronous = NORMAL;"
                              "PRAGMA cell_size_check = ON;"
                              "PRAGMA temp_store = MEMORY;"
                              "PRAGMA cache_size = -8192;"
                              "PRAGMA journal_size_limit = 8388608;";

static const char *const db_sql[HISTORY_STATEMENT_COUNT] = {
#define X(constant, sql) sql,
    HISTORY_STATEMENTS(X)
#undef X
};

bool http_history_db_is_damage(int result) {
    const int code = result & 0xff;
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_FORMAT;
}

const char *http_history_db_reason(const struct history_db *db, int result) {
    switch (result & 0xff) {
    case SQLITE_FULL:
        return "the disk is full";
    case SQLITE_IOERR: {
        const int now = db->sqlite ? sqlite3_system_errno(db->sqlite) : 0, number = now ? now : db->number;
        return number == ENOSPC || number == EDQUOT ? "the disk is full"
               : number != 0                        ? strerror(number)
                             : "it cannot be read or written (its device, or a limit of the size of files)";
    }
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return "another program has locked it";
    case SQLITE_NOMEM:
        return "no memory";
    default:
        return http_history_db_is_damage(result) ? "it is damaged" : sqlite3_errstr(result);
    }
}

static enum history_opening db_fail(svs_error *err, enum history_opening what, svs_code code,
                                    const char *path, const char *text) {
    svi_fail_path(err, code, path, "%s", text);
    return what;
}

/* The file before SQLite sees it: a regular one that is nobody else's, of this program. */
static enum history_opening db_examine(struct history_db *db, const char *path, bool *empty, svs_error *err) {
    struct stat st;
    uint8_t header[HEADER] = {0};
    if ((db->fd = open(db->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600)) < 0)
        return db_fail(err, errno == ENOSPC || errno == EDQUOT ? HISTORY_FAILED : HISTORY_REFUSED, SVS_IO,
                       path, strerror(errno));
    if (fstat(db->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return db_fail(err, HISTORY_REFUSED, SVS_IO, path, "is not a file");
    if (flock(db->fd, LOCK_EX | LOCK_NB) != 0)
        return db_fail(err, HISTORY_REFUSED, SVS_IO, path,
                       "is in use by another svmstream-http; give each one a file of its own");
    const ssize_t got = pread(db->fd, header, sizeof header, 0);
    if (got < 0)
        return db_fail(err, HISTORY_FAILED, SVS_IO, path, strerror(errno));
    *empty = got == 0;
    const uint32_t application =
        (uint32_t)header[68] << 24 | (uint32_t)header[69] << 16 | (uint32_t)header[70] << 8 | header[71];
    const bool database = memcmp(header, db_magic, sizeof db_magic) == 0, ours = application == APPLICATION;
    if (*empty || (database && ours))
        return HISTORY_OPENED;
    if (ours)
        return db_fail(err, HISTORY_DAMAGED, SVS_DAMAGED, path, "its begin is damaged");
    return database
               ? db_fail(err, HISTORY_REFUSED, SVS_INVALID, path,
                         "is a database of another program; give --history a file of its own")
               : db_fail(err, HISTORY_UNKNOWN, SVS_INVALID, path,
                         "is no history of svmstream-http, or its begin is damaged; it is left as it is: "
                         "move it away, or give --history another file");
}

static int db_form_of(sqlite3 *sqlite, int64_t *form) {
    sqlite3_stmt *s = NULL;
    int rc = sqlite3_prepare_v2(sqlite, "PRAGMA user_version", -1, &s, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        *form = sqlite3_column_int64(s, 0);
        rc = SQLITE_OK;
    }
    const int end = sqlite3_finalize(s);
    return rc == SQLITE_OK ? end : rc;
}

static enum history_opening db_start(struct history_db *db, const char *path, bool empty, svs_error *err) {
    const char *shown = path ? path : "the history in memory";
    int64_t form = 0;
    int rc = sqlite3_open_v2(db->path ? db->path : ":memory:", &db->sqlite,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_busy_timeout(db->sqlite, 2000);
        sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(db->sqlite, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        rc = empty ? sqlite3_exec(db->sqlite, db_form, NULL, NULL, NULL) : SQLITE_OK;
    }
    if (rc == SQLITE_OK && (rc = db_form_of(db->sqlite, &form)) == SQLITE_OK && form > FORM)
        return db_fail(err, HISTORY_REFUSED, SVS_INVALID, shown,
                       "was made by a newer svmstream-http; use that one, or another file");
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(db->sqlite, db_ways, NULL, NULL, NULL);
    for (int i = 0; i < HISTORY_STATEMENT_COUNT && rc == SQLITE_OK; i++)
        rc =
            sqlite3_prepare_v3(db->sqlite, db_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &db->statement[i], NULL);
    if (rc == SQLITE_OK && form == FORM)
        return HISTORY_OPENED;
    /* A table or a form that is missing is damage, too: we write both in one transaction. */
    if (http_history_db_is_damage(rc) || (rc & 0xff) == SQLITE_ERROR || rc == SQLITE_OK)
        return db_fail(err, HISTORY_DAMAGED, SVS_DAMAGED, shown, "it is damaged");
    return db_fail(
        err, (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_READONLY ? HISTORY_REFUSED : HISTORY_FAILED,
        SVS_IO, shown, http_history_db_reason(db, rc));
}

enum history_opening http_history_db_open(struct history_db *db, const char *path, svs_error *err) {
    bool empty = true;
    enum history_opening result = HISTORY_OPENED;
    *db = (struct history_db){.fd = -1};
    if (path) {
        /* A name that begins with a colon or a scheme would mean something else to SQLite. */
        const size_t size = strlen(path) + 3;
        if (!(db->path = svi_alloc_plain(size)))
            return svi_fail_memory(err, "the history's path"), HISTORY_FAILED;
        snprintf(db->path, size, "%s%s", path[0] == '/' ? "" : "./", path);
        result = db_examine(db, path, &empty, err);
    }
    if (result == HISTORY_OPENED && db->path) {
        struct stat st;
        if (fstat(db->fd, &st) == 0 && (st.st_mode & 077) != 0 && fchmod(db->fd, 0600) != 0)
            result = db_fail(err, HISTORY_REFUSED, SVS_IO, path,
                             "others may read it, and it is not ours to change that (chmod 600)");
    }
    if (result == HISTORY_OPENED)
        result = db_start(db, path, empty, err);
    if (result != HISTORY_OPENED)
        http_history_db_close(db);
    return result;
}

void http_history_db_close(struct history_db *db) {
    for (int i = 0; i < HISTORY_STATEMENT_COUNT; i++)
        sqlite3_finalize(db->statement[i]);
    sqlite3_close(db->sqlite);
    if (db->fd >= 0)
        close(db->fd);
    svi_free(db->path);
    *db = (struct history_db){.fd = -1};
}

svs_code http_history_db_set_aside(const char *path, char *name, size_t size, svs_error *err) {
    static const char *const parts[] = {"", "-wal", "-shm", "-journal"};
    const size_t capacity = strlen(path) + SUFFIX;
    char stamp[20], *from = svi_alloc_plain(capacity), *to = svi_alloc_plain(capacity);
    const time_t now = time(NULL);
    struct tm utc;
    svs_code code = from && to ? SVS_OK : svi_fail_memory(err, "a name");
    strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
    for (int n = 1; code == SVS_OK && n < 100; n++) {
        snprintf(to, capacity, n > 1 ? "%s.damaged-%s-%d" : "%s.damaged-%s", path, stamp, n);
        if (access(to, F_OK) != 0)
            break;
    }
    if (code == SVS_OK)
        snprintf(name, size, "%s", to);
    const size_t length = code == SVS_OK ? strlen(to) : 0;
    for (size_t i = 0; code == SVS_OK && i < sizeof parts / sizeof parts[0]; i++) {
        snprintf(from, capacity, "%s%s", path, parts[i]);
        snprintf(to + length, capacity - length, "%s", parts[i]);
        if (rename(from, to) != 0 && i == 0)
            code = svi_fail_path(err, SVS_IO, path, "cannot be set aside: %s", strerror(errno));
    }
    svi_free(from);
    svi_free(to);
    return code;
}

bool http_history_db_in_place(const struct history_db *db) {
    struct stat ours, named;
    return db->fd < 0 || (fstat(db->fd, &ours) == 0 && stat(db->path, &named) == 0 &&
                          ours.st_ino == named.st_ino && ours.st_dev == named.st_dev);
}

sqlite3_stmt *http_history_db_statement(struct history_db *db, enum history_statement s) {
    sqlite3_stmt *statement = db->statement[s];
    /* NULL where not even a database in memory could be opened: each call then fails by itself. */
    if (statement) {
        sqlite3_reset(statement);
        sqlite3_clear_bindings(statement);
    }
    return statement;
}

int http_history_db_run(struct history_db *db, enum history_statement s) {
    sqlite3_stmt *statement = http_history_db_statement(db, s);
    int rc;
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
        ;
    const int end = sqlite3_reset(statement);
    return rc == SQLITE_DONE ? end : rc;
}

/* Undoing it hides why it failed. */
int http_history_db_end(struct history_db *db, int result) {
    if (result == SQLITE_OK && (result = http_history_db_run(db, HISTORY_COMMIT)) == SQLITE_OK)
        return result;
    db->number = sqlite3_system_errno(db->sqlite);
    if (db->sqlite && !sqlite3_get_autocommit(db->sqlite))
        http_history_db_run(db, HISTORY_ROLLBACK);
    return result;
}
