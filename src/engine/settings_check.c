/* The settings as a whole: contradictions between rows, and the learner's part of them. */
#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "engine/refit.h"
#include "store/journal.h"
#include "engine/settings.h"

#define GAMMA_LEAST 1e-100 /* of what can be computed with, whatever the distances */
#define GAMMA_MOST  1e100

bool svi_settings_switch(const struct svi_setting *row) {
    return row->choices && strcmp(row->choices, "no|yes") == 0;
}

static bool from_stdin(const struct svi_settings *s) {
    return strcmp(s->in, "-") == 0;
}

/* A port that the system chooses differs each time. */
static bool any_port(const char *address) {
    size_t n = strlen(address);
    return n > 2 && (strcmp(address + n - 2, ":*") == 0 || strcmp(address + n - 2, ":0") == 0);
}

static bool same_address(const char *a, const char *b) {
    return strcmp(a, b) == 0 && !any_port(a);
}

static svs_code check_addresses(const struct svi_settings *s, svs_error *err) {
    const struct {
        const char *key_a, *a, *key_b, *b;
    } pairs[] = {{"in", s->in, "out", s->out}, {"in", s->in, "ctl", s->ctl}, {"out", s->out, "ctl", s->ctl}};
    for (int i = 0; i < 3; i++)
        if (same_address(pairs[i].a, pairs[i].b))
            return svi_fail(err, SVS_SETTING,
                            "%s and %s have the same address %.100s: give one of them another",
                            pairs[i].key_a, pairs[i].key_b, pairs[i].a);
    return SVS_OK;
}

static svs_code check_input(const struct svi_settings *s, svs_error *err) {
    if (from_stdin(s) && s->in_mode != SVI_IN_PULL)
        return svi_fail(err, SVS_SETTING,
                        "in.mode %s needs a socket, but in is - (standard input): give in an address",
                        s->in_mode == SVI_IN_SUB ? "sub" : "router");
    if (s->in_topic[0] && s->in_mode != SVI_IN_SUB)
        return svi_fail(err, SVS_SETTING,
                        "in.topic is for subscribers only: set in.mode sub or leave in.topic out");
    return SVS_OK;
}

const char *svi_delivery_name(enum svi_delivery level) {
    static const char *const names[] = {"auto",          "at-most-once", "acked",
                                        "at-least-once", "durable",      "exactly-once"};
    return names[level];
}

enum svi_delivery svi_settings_delivery(const struct svi_settings *s) {
    if (s->delivery != SVI_AUTO)
        return (enum svi_delivery)s->delivery;
    if (s->in_mode != SVI_IN_ROUTER)
        return SVI_AT_MOST_ONCE;
    return s->state_dir[0] ? SVI_AT_LEAST_ONCE : SVI_ACKED;
}

/* A key that means nothing without a folder for the state. */
static const char *orphan(const struct svi_settings *s) {
    static const char *const keys[] = {"journal.fsync", "journal.interval",   "journal.segment",
                                       "journal.keep",  "checkpoint.seconds", "accept-loss"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0] && !s->state_dir[0]; i++)
        if (svi_settings_given(s, svi_settings_row(keys[i])))
            return keys[i];
    return NULL;
}

static svs_code check_delivery(const struct svi_settings *s, svs_error *err) {
    enum svi_delivery level = svi_settings_delivery(s);
    const char *name = svi_delivery_name(level), *without = orphan(s);
    if (without)
        return svi_fail(err, SVS_SETTING, "%s is about a kept state: give --state.dir FOLDER too", without);
    if (level > SVI_AT_MOST_ONCE && s->in_mode != SVI_IN_ROUTER)
        return svi_fail(err, SVS_SETTING,
                        "delivery %s acknowledges each message, in.mode %s does not: set in.mode router",
                        name, s->in_mode == SVI_IN_SUB ? "sub" : "pull");
    if (level == SVI_AT_MOST_ONCE && s->in_mode == SVI_IN_ROUTER)
        return svi_fail(
            err, SVS_SETTING,
            "in.mode router acknowledges each message: set delivery acked or more, or in.mode pull");
    if (level >= SVI_AT_LEAST_ONCE && !s->state_dir[0])
        return svi_fail(err, SVS_SETTING, "delivery %s writes samples down: give --state.dir FOLDER too",
                        name);
    if (level >= SVI_DURABLE && s->journal_fsync > 1 + (int)SVI_FSYNC_ALWAYS)
        return svi_fail(
            err, SVS_SETTING,
            "delivery %s syncs before each acknowledgement: set journal.fsync always, or delivery "
            "at-least-once",
            name);
    return SVS_OK;
}

static svs_code check_learner(const struct svi_settings *s, svs_error *err) {
    if (s->method == SVI_METHOD_FALSVM && s->task == SVS_REGRESS)
        return svi_fail(err, SVS_SETTING,
                        "method falsvm learns classes only: set task classify or method alsvm");
    if (s->window_seconds > 0 && s->window == 0)
        return svi_fail(
            err, SVS_SETTING,
            "window.seconds needs samples to be kept, but window is 0: set window to the most to keep");
    return SVS_OK;
}

static svs_code check_refit(const struct svi_settings *s, svs_error *err) {
    double p;
    svs_code code = svi_refit_loss(s->refit_loss, &p, err);
    if (code == SVS_OK && s->refit == 4 && p != 1)
        code = svi_fail(err, SVS_SETTING, "refit nesvm does refit.loss l1 only: set that, or refit auto");
    if (code == SVS_OK && s->refit == 3 && p != 1 && p != 2)
        code = svi_fail(err, SVS_SETTING,
                        "refit dcd does refit.loss l1 and l2 only: set one of these, or refit auto");
    return code;
}

static svs_code check_novelty(const struct svi_settings *s, svs_error *err) {
    svs_novelty_options o;
    svs_code code = svi_settings_novelty(s, &o, err);
    const double least = 1 / (1 + (double)s->novelty_calibration);
    if (code != SVS_OK || !s->novelty) {
        if (code == SVS_OK && s->method == SVI_METHOD_NONE)
            code = svi_fail(err, SVS_SETTING,
                            "method none and novelty none leave nothing to do: give one of them");
        return code;
    }
    if (s->alert_fdr == 0 && s->alert_p < least)
        return svi_fail(
            err, SVS_SETTING,
            "with novelty.calibration %lld no p-value is below %.3g, so alert.p %g cannot be met: "
            "set novelty.calibration to %.0f or more",
            (long long)s->novelty_calibration, least, s->alert_p, ceil(1 / s->alert_p) - 1);
    if (s->alert_clear < s->alert_p)
        return svi_fail(err, SVS_SETTING,
                        "alert.clear %g is below alert.p %g, so that an alert would close at once: "
                        "set alert.clear to %g or more",
                        s->alert_clear, s->alert_p, s->alert_p);
    return SVS_OK;
}

static svs_code check_features(const struct svi_settings *s, svs_error *err) {
    int64_t count = s->features[0] ? 1 : 0;
    for (const char *at = s->features; *at; at++)
        count += *at == ',';
    if (count > s->max_features)
        return svi_fail(err, SVS_SETTING,
                        "features names %lld features, but max.features is %lld: raise max.features",
                        (long long)count, (long long)s->max_features);
    return SVS_OK;
}

typedef svs_code check(const struct svi_settings *s, svs_error *err);

static svs_code all_of(check *const *checks, size_t count, const struct svi_settings *s, svs_error *err) {
    svs_code code = SVS_OK;
    for (size_t i = 0; i < count && code == SVS_OK; i++)
        code = checks[i](s, err);
    return code;
}

svs_code svi_settings_check_outside(const struct svi_settings *s, svs_error *err) {
    static check *const checks[] = {check_addresses, check_input, check_delivery};
    return all_of(checks, sizeof checks / sizeof checks[0], s, err);
}

svs_code svi_settings_check(const struct svi_settings *s, svs_error *err) {
    static check *const checks[] = {svi_settings_check_outside, check_learner, check_refit, check_novelty,
                                    check_features};
    return all_of(checks, sizeof checks / sizeof checks[0], s, err);
}

/* Only this machine reaches it: ipc, inproc, 127.0.0.0/8, ::1 and the interface lo. */
static bool is_local(const char *address) {
    char host[64];
    struct in_addr v4;
    struct in6_addr v6;
    const char *begin = address + 6, *colon = strrchr(address, ':');
    if (strncmp(address, "ipc://", 6) == 0 || strncmp(address, "inproc://", 9) == 0)
        return true;
    if (strncmp(address, "tcp://", 6) != 0 || colon < begin || (size_t)(colon - begin) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", (int)(colon - begin), begin);
    size_t n = strlen(host);
    if (n > 2 && host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = '\0';
        return inet_pton(AF_INET6, host + 1, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    }
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "lo") == 0;
}

static svs_code check_exposed(const char *key, const char *address, svs_error *err) {
    if (is_local(address))
        return SVS_OK;
    return svi_fail(
        err, SVS_SETTING,
        "%s %.60s can be reached from other machines, and nothing protects it: make a key with "
        "`svmstream keys new` and give --curve on, or say --insecure where everybody may feed, read "
        "and stop it",
        key, address);
}

/* Subscribers (in.mode sub) connect; standard input opens no socket that was not asked for. */
static bool binds(const struct svi_settings *s, const char *key, const char *address) {
    if (strcmp(key, "in") == 0)
        return !from_stdin(s) && s->in_mode != SVI_IN_SUB;
    return address[0] && (!from_stdin(s) || svi_settings_given(s, svi_settings_row(key)));
}

svs_code svi_settings_check_security(const struct svi_settings *s, svs_error *err) {
    const struct { const char *key, *address; } sockets[] = {{"in", s->in}, {"out", s->out}, {"ctl", s->ctl}};
    bool off = strcmp(s->curve, "off") == 0, sub = !from_stdin(s) && s->in_mode == SVI_IN_SUB;
    if (!s->curve[0] || !s->curve_allow[0])
        return svi_fail(err, SVS_SETTING,
                        "curve is off, on or a key file, and curve.allow a file: neither is empty");
    if (!off && sub && !s->curve_server[0] && !s->insecure)
        return svi_fail(err, SVS_SETTING,
                        "in.mode sub with curve connects to a publisher whose key must be known: give "
                        "--curve.server KEY, or --insecure when the publisher has no curve");
    for (int i = 0; i < 3 && off && !s->insecure; i++) {
        svs_code code = binds(s, sockets[i].key, sockets[i].address)
                            ? check_exposed(sockets[i].key, sockets[i].address, err)
                            : SVS_OK;
        if (code != SVS_OK)
            return code;
    }
    return SVS_OK;
}

void svi_settings_learner(const struct svi_settings *s, svs_options *o) {
    svs_options_default(o);
    o->task = (svs_task)s->task;
    o->rule = s->method == SVI_METHOD_FALSVM ? SVS_FALSVM : SVS_ALSVM;
    o->C = s->C;
    o->window = s->window;
    o->window_seconds = s->window_seconds;
    o->forget = s->forget;
    o->scale = (svs_scale)s->scale;
    o->max_features = (int)s->max_features;
    o->max_classes = (int)s->max_classes;
    o->labels_ttl = s->labels_ttl;
    o->labels_max = (int)s->labels_max;
}

static svs_code gamma_of(const char *text, svs_novelty_options *o, svs_error *err) {
    static const struct {
        const char *word;
        svs_gamma_rule rule;
    } rules[] = {{"auto", SVS_GAMMA_AUTO}, {"median", SVS_GAMMA_MEDIAN}, {"scale", SVS_GAMMA_SCALE}};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(text, rules[i].word) == 0) {
            o->gamma_rule = rules[i].rule;
            return SVS_OK;
        }
    char *end;
    o->gamma_rule = SVS_GAMMA_GIVEN;
    o->gamma = strtod(text, &end);
    if (end != text && !*end && o->gamma >= GAMMA_LEAST && o->gamma <= GAMMA_MOST)
        return SVS_OK;
    return svi_fail(err, SVS_SETTING,
                    "novelty.gamma is '%.20s': give auto, median, scale or a number from %g to %g", text,
                    GAMMA_LEAST, GAMMA_MOST);
}

svs_code svi_settings_novelty(const struct svi_settings *s, svs_novelty_options *o, svs_error *err) {
    svs_novelty_options_default(o);
    o->fosvm = s->novelty == 2 ? 2 : 1;
    o->kernel = (svs_novelty_kernel)s->novelty_kernel;
    o->theta = s->novelty_theta;
    o->epsilon = s->novelty_epsilon;
    o->m = s->novelty_m;
    o->max = (int)s->novelty_max;
    o->trim = s->novelty_trim;
    o->seed = (uint64_t)s->seed;
    return gamma_of(s->novelty_gamma, o, err);
}
