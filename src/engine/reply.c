#include "engine/reply.h"

void svi_reply_int(struct svi_pack *p, const char *key, int64_t value) {
    svi_pack_text(p, key);
    svi_pack_int(p, value);
}

void svi_reply_real(struct svi_pack *p, const char *key, double value) {
    svi_pack_text(p, key);
    svi_pack_real(p, value);
}

void svi_reply_text(struct svi_pack *p, const char *key, const char *value) {
    svi_pack_text(p, key);
    svi_pack_text(p, value);
}

void svi_reply_bool(struct svi_pack *p, const char *key, bool value) {
    svi_pack_text(p, key);
    if (value)
        msgpack_pack_true(&p->packer);
    else
        msgpack_pack_false(&p->packer);
}

void svi_reply_figure(struct svi_pack *p, const struct svi_figure *f) {
    if (f->type == SVI_COUNT)
        svi_reply_int(p, f->name, f->as.count);
    else if (f->type == SVI_NUMBER)
        svi_reply_real(p, f->name, f->as.number);
    else
        svi_reply_text(p, f->name, f->as.text);
}

void svi_reply_error(struct svi_pack *p, const svs_error *err) {
    svi_reply_text(p, "error", err->text);
    svi_reply_text(p, "code", svs_code_name(err->code));
}
