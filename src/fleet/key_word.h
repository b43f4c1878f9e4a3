/* key_word.h: what the keys of a stream are called in a line for a person: "16 presses", not "16 keys".
 *
 * The word is the name of the key's column (`machine_id` is a machine), or else the letters that all key
 * names begin with (press-01, press-02), three at least, or else "key". */
#ifndef SVI_KEY_WORD_H
#define SVI_KEY_WORD_H

#define SVI_KEY_WORD 48 /* bytes, the NUL included */

/* Writes the plural. column: the setting `key`; names: `count` keys. Returns `out`. */
const char *svi_key_word(char out[SVI_KEY_WORD], const char *column, const char *const *names, int count);

#endif
