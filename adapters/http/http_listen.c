#include "http_listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_log.h"

#define WAITING 1024 /* connections that the system holds until they are accepted */

static const char *http_listen_reason(int error) {
    switch (error) {
    case EADDRINUSE:
        return "another process has this port; end it, or name another with --listen (port 0: a free one)";
    case EADDRNOTAVAIL:
        return "this machine has no such address";
    case EACCES:
        return "permission denied; ports below 1024 need privileges";
    default:
        return strerror(error);
    }
}

static int http_listen_bind(const struct addrinfo *a) {
    const int yes = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
        bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, WAITING) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int http_listen(const struct http_options *o, bool tls, char *url, size_t size) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    char port[16];
    snprintf(port, sizeof port, "%d", (int)o->port);
    int fd = -1, code = getaddrinfo(o->host, port, &hints, &found);
    if (code == 0) {
        fd = http_listen_bind(found);
        freeaddrinfo(found);
    }
    if (fd < 0) {
        http_log("cannot listen at %s: %s", o->listen, code ? gai_strerror(code) : http_listen_reason(errno));
        return -1;
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0 ||
        getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof port, NI_NUMERICSERV) != 0)
        strcpy(port, "?");
    /* A browser cannot open an address of all interfaces. */
    const bool any = strcmp(o->host, "0.0.0.0") == 0 || strcmp(o->host, "::") == 0;
    const char *host = !any ? o->host : o->names > 0 ? o->name[0] : "localhost";
    const bool six = strchr(host, ':') != NULL;
    snprintf(url, size, "%s://%s%s%s:%s/", tls ? "https" : "http", six ? "[" : "", host, six ? "]" : "",
             port);
    return fd;
}
