/* store_check.c: what the store finds in a folder, held against what was written there. Changes nothing.
 *
 * usage: store_check FOLDER SEED
 *
 * Prints `recovered N damaged N torn N spans FIRST:CYCLE ...` (damaged: checkpoints that cannot be read;
 * torn: bytes behind the last sound record) and ends with 0; 1: something was accepted that never was
 * written; 2: the store refuses the folder. Both with a line that says why. */
#include "fault/store_common.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    struct svi_state_dir folder;
    struct recovered r;
    svs_error err = {0};
    if (count != 3) {
        fprintf(stderr, "usage: store_check FOLDER SEED\n");
        return 64;
    }
    if (svi_state_dir_open(&folder, words[1], false, &err) != SVS_OK) {
        printf("no folder: %s\n", err.text);
        return 3;
    }
    svs_code code = recover(&folder, strtoull(words[2], NULL, 10), &r, &err);
    svi_state_dir_close(&folder);
    if (code != SVS_OK) {
        printf("refused: %s\n", err.text);
        return 2;
    }
    if (r.wrong[0]) {
        printf("wrong: %s\n", r.wrong);
        return 1;
    }
    printf("recovered %" PRIu64 " damaged %d torn %" PRIu64 " spans", r.state.count, r.damaged,
           r.journal.torn);
    for (uint64_t i = 0; i < r.state.spans; i++)
        printf(" %" PRIu64 ":%" PRIu64, r.state.span[i].first, r.state.span[i].cycle);
    printf("\n");
    return 0;
}
