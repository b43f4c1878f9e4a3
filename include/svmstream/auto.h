/* auto.h: a learner without knobs: the bank of `method auto` predicts raw rows of numbers and words. Several
 * learners run side by side and are weighted by what they have predicted so far.
 *
 *     svs_setting regress[] = {{"task", "regress"}};
 *     svs_auto *a = svs_auto_new(regress, 1, &err);
 *     const char *names[] = {"temperature", "city"}, *words[] = {NULL, "Ulm"};
 *     double x[] = {21.5, 0};
 *     svs_row row = {.x = x, .d = 2, .names = names, .words = words, .y = svs_real(412)};
 *     svs_outcome out;
 *     svs_stream_step(a, &row, &out, &err);    // out.prediction.y: before the row was learned
 *     svs_stream_free(&a);
 *
 * Everything else is in stream.h. How the bank works: `svmstream help auto`. */
#ifndef SVMSTREAM_AUTO_H
#define SVMSTREAM_AUTO_H

#include "svmstream/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef svs_stream svs_auto;

/* As svs_stream_new, with these settings first: method auto, novelty none, alert.rules none, missing mean,
 * threads 1. `settings` override them. */
SVS_API svs_auto *svs_auto_new(const svs_setting *settings, int count, svs_error *err);

#ifdef __cplusplus
}
#endif
#endif
