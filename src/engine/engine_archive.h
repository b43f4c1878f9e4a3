/* engine_archive.h: the whole state of an engine as sections of a checkpoint, bit for bit.
 *
 * Not kept: what the surroundings measure (notes, rates, uptime) and the solver's own state of a refit. What
 * differs between two runs over the same inputs for reasons of time alone (numbers of stats and error events,
 * refusals, duplicates) is in the section `tallies`, which the fingerprint leaves out. */
#ifndef SVI_ENGINE_ARCHIVE_H
#define SVI_ENGINE_ARCHIVE_H

#include "engine/engine.h"
#include "store/files.h"

/* Fills everything but `position` of *c, whose buffers keep their room; the engine does not change. */
svs_code svi_engine_save(svi_engine *e, struct svi_checkpoint *c, svs_error *err);

/* Bytes that the sections take now. */
size_t svi_engine_size(svi_engine *e);

/* Into an engine made anew with the settings of the checkpoint. SVS_DAMAGED, SVS_NO_MEMORY: it is fit to be
 * freed, nothing else. */
svs_code svi_engine_load(svi_engine *e, const struct svi_checkpoint *c, svs_error *err);

/* The same engine with the limits of *s, which are higher: a new one takes its place. What may change while
 * the model lives stays as it is. On failure *e is as it was. */
svs_code svi_engine_widen(svi_engine **e, const struct svi_settings *s, svs_error *err);

/* How far the model is from solving the system of its window (svi_learner_residual). */
double svi_engine_residual(svi_engine *e);

/* The model against one made afresh from the window: the largest relative difference of the weights. Changes
 * nothing. */
svs_code svi_engine_verify(svi_engine *e, double *difference, svs_error *err);

/* Makes the model afresh: its bits were made by another program or instruction set. */
void svi_engine_rebuild(svi_engine *e);

#endif
