#include "formats/model_any.h"

#include <string.h>

#include "base/fail.h"
#include "formats/checked_file.h"
#include "formats/file_io.h"
#include "formats/model_file.h"
#include "wire/event.h"

static svs_code any_bytes(const char *path, struct svi_bytes *out, svs_error *err) {
    char *bytes;
    size_t size;
    svs_error why;
    svs_code code = svi_file_read(path, &bytes, &size, &why);
    *out = (struct svi_bytes){.data = (uint8_t *)bytes, .size = size, .capacity = size};
    return code == SVS_OK ? SVS_OK : svi_fail(err, code, "%.150s: %.300s", path, why.text);
}

/* What `train` writes is read too; its bytes become those of an event's model. */
static svs_model *from_training(const char *path, struct svi_bytes *bytes, svs_error *err) {
    struct svi_machine machine = {0};
    svs_error why;
    if (svi_machine_read(&machine, path, &why) != SVS_OK) { /* *err tells why it is no event's model */
        if (!svi_checked_file_looks(bytes->data, bytes->size))
            *err = why;
        return NULL;
    }
    bytes->size = 0;
    if (machine.kernel)
        svi_fail(err, SVS_UNAVAILABLE,
                 "%.150s is a kernel model, which has no weights to show: `svmstream predict` uses it", path);
    else if (svi_model_encode(machine.linear, NULL, 0, bytes) != SVS_OK)
        svi_fail_memory(err, "the model");
    else
        return machine.linear;
    svi_machine_clear(&machine);
    return NULL;
}

svs_code svi_model_any_read(const char *path, struct svi_bytes *bytes, svs_model **model, svs_error *err) {
    SVI_TRY(any_bytes(path, bytes, err));
    *model = svs_model_decode(bytes->data, bytes->size, err);
    if (!*model && strcmp(path, "-") != 0)
        *model = from_training(path, bytes, err);
    return *model ? SVS_OK : err->code;
}
