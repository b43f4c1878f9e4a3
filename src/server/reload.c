/* SIGHUP, in three independent steps: settings, allow file, key file.
 *
 * Settings are compared with what the file contained before, not with the current values: what `ctl config`
 * has changed stays until the file itself changes. Changes are applied as a control request, so a kept state
 * records them before they take effect and a restart repeats them. A setting that needs a restart is named at
 * each reload until then.
 *
 * The authenticator follows the allow file anyway, so it is only checked and counted here. Keys are part of
 * the bound sockets: a different key in the key file needs a restart. */
#include "server/reload.h"

#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "config/settings_record.h"
#include "net/acl.h"
#include "wire/pack.h"

#define NAMES_MAX 400 /* bytes of the names listed in one line */

struct names {
    char text[NAMES_MAX];
    int count;
};

static void add_name(struct names *n, const char *name) {
    const size_t length = strlen(n->text);
    snprintf(n->text + length, sizeof n->text - length, "%s%s", n->count++ ? ", " : "", name);
}

static void reload_log(FILE *to, const char *what, const char *names) {
    if (to) {
        fprintf(to, "reload: %s%s\n", what, names);
        fflush(to);
    }
}

static void reload_complain(const struct svi_reload *r, const char *what, const svs_error *err) {
    if (r->errors) {
        fprintf(r->errors, "reload: %s: %s\n", what, err->text);
        fflush(r->errors);
    }
}

/* Packs {op: config, set: {...}} with the settings that differ and may change at any time. */
static svs_code pack_changes(const struct svi_reload *r, const struct svi_settings *fresh,
                             struct svi_bytes *request) {
    char text[SVI_FEATURES_MAX];
    struct svi_pack p;
    svi_pack_begin(&p, request);
    svi_pack_map(&p, 2);
    svi_put_text(&p, "op", "config");
    svi_pack_key(&p, "set");
    const struct svi_open_map set = svi_pack_open(&p);
    for (const struct svi_setting *row = svi_settings_table; row->key; row++)
        if (svi_change_any_time(row->change) && svi_settings_differ(&r->given, fresh, row))
            svi_put_text(&p, row->key, svi_settings_value(fresh, row, text, sizeof text));
    svi_pack_close(&p, set);
    return svi_pack_end(&p);
}

static svs_code change_settings(struct svi_reload *r, const struct svi_settings *fresh,
                                const struct names *changed, struct svi_control *c, double now,
                                svs_error *err) {
    struct svi_bytes request = {0};
    if (changed->count == 0)
        return SVS_OK;
    svs_code code = pack_changes(r, fresh, &request) == SVS_OK
                        ? svi_control_do(c, request.data, request.size, now, err)
                        : svi_fail_memory(err, "the changed settings");
    svi_bytes_clear(&request);
    /* Only after success: a failed change is tried again by the next SIGHUP. */
    if (code == SVS_OK)
        svi_settings_adopt(&r->given, fresh);
    return code;
}

/* All or nothing: if the file is invalid or one change is refused, all settings stay. */
static void reload_settings(struct svi_reload *r, struct svi_control *c, double now) {
    struct names changed = {{0}, 0}, later = {{0}, 0};
    svs_error err = {0};
    struct svi_settings *fresh = svi_alloc(sizeof *fresh);
    svs_code code = fresh ? r->read(r->from, fresh, &err) : svi_fail_memory(&err, "the settings");
    /* Sorts the changed settings by whether they can change now or need a restart. */
    for (const struct svi_setting *row = svi_settings_table; row->key && code == SVS_OK; row++)
        if (svi_settings_differ(&r->given, fresh, row))
            add_name(svi_change_any_time(row->change) ? &changed : &later, row->key);
    if (code == SVS_OK)
        code = change_settings(r, fresh, &changed, c, now, &err);
    svi_free(fresh);
    if (code != SVS_OK) {
        reload_complain(r, "the settings are unchanged", &err);
        return;
    }
    /* Only settings of the first kind were adopted: the others differ again at the next reload and are named
     * again. */
    reload_log(r->log, changed.count ? "changed " : "no setting has changed", changed.text);
    if (later.count)
        reload_log(r->log, "these need a restart: ", later.text);
}

static void reload_keys(const struct svi_reload *r, const struct svi_settings *s,
                        const struct svi_access *access) {
    struct svi_acl acl = {0};
    struct svi_identity id = {0};
    svs_error err;
    char text[64];
    if (!access->authenticator)
        return;
    /* Loaded into a copy that is thrown away: the one in force is the authenticator's. */
    if (svi_acl_load(&acl, s->curve_allow, &err) == SVS_OK) {
        snprintf(text, sizeof text, "%d", acl.count);
        reload_log(r->log, "keys in the allow file: ", text);
    } else
        reload_complain(r, "the previous allow file stays in force", &err);
    /* The identity was loaded only to compare public keys. */
    if (svi_identity_load(s, false, &id, &err) != SVS_OK)
        reload_complain(r, "the key is unchanged", &err);
    else if (strcmp(id.public_key, access->identity.public_key) != 0)
        reload_log(r->log, "these need a restart: ", "the key file, which holds another key");
    svi_acl_clear(&acl);
    svi_identity_wipe(&id);
}

void svi_reload(struct svi_reload *r, struct svi_control *c, const struct svi_access *access, double now) {
    if (r->read)
        reload_settings(r, c, now);
    reload_keys(r, c->settings, access);
}
