#include "redis_trouble.h"

#include <string.h>

#define PERMISSION                                                                                           \
    "the user lacks a permission: `svmstream help cluster`, On Redis Streams, has the line for ACL SETUSER"

static const struct redis_trouble troubles[] = {
    {"OOM", true,
     "Redis is full: raise its maxmemory, or start workers, whose checkpoints let the log be trimmed"},
    {"READONLY", true,
     "this server is a replica and takes no writes: give the address of the primary (or of any node of a "
     "cluster)"},
    {"LOADING", true, "Redis is loading its data; waiting"},
    {"MASTERDOWN", true, "this replica has lost its primary; waiting"},
    {"CLUSTERDOWN", true,
     "the cluster is incomplete: `redis-cli --cluster check HOST:PORT` shows which slots have no server"},
    {"TRYAGAIN", true, "slots are being moved; waiting"},
    {"BUSY", true, "Redis is busy with a script of another client; `redis-cli SCRIPT KILL` ends it"},
    {"MISCONF", true,
     "Redis cannot write to its disk and refuses writes: look into its log, free space there"},
    {"NOREPLICAS", true, "Redis has fewer replicas than min-replicas-to-write: start them"},
    {"UNBLOCKED", true, "slots are being moved; waiting"},
    {"NOAUTH", false,
     "Redis wants a password: --password-file FILE, or SVMSTREAM_REDIS_PASSWORD; the user is in the address, "
     "redis://USER@HOST"},
    {"WRONGPASS", false,
     "user or password are wrong: the user is in the address, redis://USER@HOST, the password in "
     "--password-file or SVMSTREAM_REDIS_PASSWORD"},
    {"NOPERM", false, PERMISSION},
};

const struct redis_trouble *redis_trouble_find(const char *error) {
    const size_t n = strcspn(error, " ");
    for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++)
        if (strlen(troubles[i].word) == n && strncmp(error, troubles[i].word, n) == 0)
            return &troubles[i];
    return NULL;
}

/* Inside a script a missing permission is an ERR with a sentence of the server's. */
const char *redis_trouble_of_script(const char *error) {
    return strstr(error, "The user executing the script") || strstr(error, "NOPERM")
               ? PERMISSION
               : "another program may have written one of the keys of this partition";
}
