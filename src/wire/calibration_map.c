#include "wire/calibration_map.h"

void svi_put_rows(struct svi_pack *p, const char *key, const double *v, int rows) {
    if (rows == 1)
        svi_put_real(p, key, v[0]);
    else
        svi_put_doubles(p, key, v, (size_t)rows);
}

void svi_put_calibration(struct svi_pack *p, const svs_calibration *c, int rows) {
    svi_pack_key(p, "calibration");
    const struct svi_open_map map = svi_pack_open(p);
    svi_put_real(p, "a", c->a);
    svi_put_rows(p, "b", c->b, rows);
    if (c->curve)
        svi_put_doubles(p, "curve", c->curve, SVS_CURVE);
    svi_pack_close(p, map);
}
