/* Any bytes as a settings file: never a crash, and what is accepted can be written and read again. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds) {
    if (!holds)
        abort();
}

static void check_round_trip(const struct svi_settings *s) {
    struct svi_settings again;
    svs_error err;
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);
    must(to != NULL);
    svi_settings_write(s, to);
    fclose(to);
    svi_settings_default(&again);
    must(svi_settings_read(&again, "again", text, length, &err) == SVS_OK);
    memcpy(again.given, s->given, sizeof s->given);
    must(memcmp(&again, s, sizeof again) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct svi_settings s, before;
    svs_error err;
    svi_settings_default(&s);
    before = s;
    if (svi_settings_read(&s, "fuzz", data, size, &err) == SVS_OK) {
        check_round_trip(&s);
        (void)svi_settings_check(&s, &err);
    } else {
        must(memcmp(&s, &before, sizeof s) == 0);
        must(strlen(err.text) > 0 && strlen(err.text) < sizeof err.text);
    }
    return 0;
}
