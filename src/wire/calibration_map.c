#include "wire/calibration_map.h"

void svi_put_calibration(struct svi_pack *p, const svs_calibration *c, int rows) {
    svi_pack_key(p, "calibration");
    svi_pack_map(p, 2 + (c->curve != NULL));
    svi_put_real(p, "a", c->a);
    if (rows == 1)
        svi_put_real(p, "b", c->b[0]);
    else
        svi_put_doubles(p, "b", c->b, (size_t)rows);
    if (c->curve)
        svi_put_doubles(p, "curve", c->curve, SVS_CURVE);
}
