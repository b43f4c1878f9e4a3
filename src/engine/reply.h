/* reply.h: the maps that answer control requests and acknowledged input. */
#ifndef SVI_REPLY_H
#define SVI_REPLY_H

#include "wire/pack.h"

/* One pair each. */
void svi_reply_int(struct svi_pack *p, const char *key, int64_t value);
void svi_reply_real(struct svi_pack *p, const char *key, double value);
void svi_reply_text(struct svi_pack *p, const char *key, const char *value);
void svi_reply_bool(struct svi_pack *p, const char *key, bool value);
void svi_reply_figure(struct svi_pack *p, const struct svi_figure *f);

/* `error` and `code`: two pairs. */
void svi_reply_error(struct svi_pack *p, const svs_error *err);

#endif
