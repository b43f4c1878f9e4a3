/* What the keys of a stream are called: the word of their column, or what their names begin with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fleet/key_word.h"

static void words_and_their_plurals(void **state) {
    (void)state;
    static const char *const presses[] = {"press-01", "press-02", "press-17"}, *const few[] = {"m1", "m2"},
                             *const places[] = {"north", "south"}, *const acronyms[] = {"PLC-1", "PLC-2"};
    static const struct {
        const char *column;
        const char *const *names;
        int count;
        const char *word;
    } cases[] = {
        {"machine", presses, 3, "machines"},
        {"key", presses, 3, "presses"},
        {"key", few, 2, "keys"},
        {"key", places, 2, "keys"},
        {"key", NULL, 0, "keys"},
        {"0", few, 2, "keys"},
        {"press", few, 2, "presses"},
        {"box", few, 2, "boxes"},
        {"branch", few, 2, "branches"},
        {"dish", few, 2, "dishes"},
        {"battery", few, 2, "batteries"},
        {"relay", few, 2, "relays"},
        {"bus", few, 2, "buses"},
        {"sensors", few, 2, "sensors"},
        {"machine_id", few, 2, "machines"},
        {"sensor-id", few, 2, "sensors"},
        {"device id", few, 2, "devices"},
        {"deviceId", few, 2, "devices"},
        {"grid", few, 2, "grids"},
        {"id", few, 2, "ids"},
        {"Pump", few, 2, "pumps"},
        {"press_line_no", few, 2, "press lines"},
        {"key", acronyms, 2, "PLCs"},
        {"ger\xc3\xa4t", few, 2, "ger\xc3\xa4ts"},
        {"a1", few, 2, "keys"},
        {"_", few, 2, "keys"},
        {"", few, 2, "keys"},
        {"a_name_that_is_longer_than_any_word_of_a_language_is", few, 2, "keys"},
        {"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopch", few, 2,
         "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopches"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char word[SVI_KEY_WORD];
        assert_string_equal(svi_key_word(word, cases[i].column, cases[i].names, cases[i].count),
                            cases[i].word);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_and_their_plurals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
