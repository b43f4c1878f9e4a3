/* Removes features and classes that no held sample has, so that new ones fit max.features and max.classes.
 *
 * All that can fail comes first, on copies: kept names and columns, an empty bank of the new shape, the
 * learner. After the learner was pruned nothing fails any more, since the stages would have different
 * columns. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fail.h"
#include "engine/engine_internal.h"
#include "learner/learner_prune.h"

int svi_engine_classes(const svi_engine *e) {
    return svs_learner_class_count(e->learner);
}

svs_value svi_engine_class(const svi_engine *e, int index) {
    return index >= 0 && index < svi_engine_classes(e) ? svs_learner_class(e->learner, index) : svs_none();
}

static int flags_missing(const bool *flags, int n) {
    int missing = 0;
    for (int i = 0; i < n; i++)
        missing += !flags[i];
    return missing;
}

/* Flags what is held: `features` has one flag for each column of the shape, `classes` one for each class. The
 * learner may have fewer columns, since a header names them before the first row. Columns of dense rows are
 * kept while any sample is held, since their rows have a value for each, and fixed columns always. */
static svs_code find_held(const struct svi_engine *e, bool *features, bool *classes, svs_error *err) {
    bool any = false;
    const bool maps = e->schema.shape.kind == SVI_SPARSE || e->schema.shape.kind == SVI_NAMED;
    svs_code code = svi_learner_held(e->learner, features, classes, &any, err);
    for (int j = 0; e->schema.columns && j < e->schema.shape.d; j++)
        features[j] =
            features[j] || e->schema.owner[j] < 0; /* calendar features may be 0 in all held samples */
    if (code == SVS_OK && (e->schema.shape.fixed_names || (any && !maps)))
        memset(features, 1, (size_t)e->schema.shape.d * sizeof *features);
    return code;
}

static void prune_carried(struct svi_engine *e, const bool *features, int d) {
    int kept = 0;
    for (int j = 0; j < d; j++)
        if (features[j])
            e->carried[kept++] = e->carried[j];
    for (int j = kept; j < d; j++)
        e->carried[j] = NAN;
}

/* Renumbers the columns in all stages that index by them, and restarts those that cannot be renumbered. Takes
 * ownership of names and columns. */
static void engine_drop_features(struct svi_engine *e, const bool *features, svs_features *names,
                                 svs_features *columns) {
    static const char why[] = "features were dropped";
    if (e->carried)
        prune_carried(e, features, e->schema.shape.d);
    if (e->outliers)
        svi_outliers_prune(e->outliers, features);
    svi_schema_keep(&e->schema, features, names, columns);
    svi_columns_forget(&e->columns);
    e->name_count = 0;
    svi_engine_end_novelty(e, why);
    svi_alert_stage_reset(e->novelty);
    svi_engine_end_drift(e, why);
    svi_alarm_prune(&e->quality_stage.alarm);
    svi_engine_rules_forget(e);
}

static svs_code prune_to(struct svi_engine *e, const bool *features, const bool *classes, svs_error *err) {
    const int fewer = flags_missing(classes, svi_engine_classes(e));
    /* A header may have named columns that no row has had yet. */
    const bool nameless = !e->schema.shape.fixed_names && e->schema.shape.names_kept > e->schema.shape.d;
    const bool without = flags_missing(features, e->schema.shape.d) > 0 || nameless ||
                         (e->schema.shape.d == 0 && e->schema.shape.kind != SVI_UNSET);
    if (!without && fewer == 0)
        return SVS_OK;
    svs_features *names = without ? svi_shape_kept_names(&e->schema.shape, features, err) : NULL;
    svs_features *columns = NULL;
    if (without && !names)
        return err->code;
    svs_code code = without ? svi_schema_kept_columns(&e->schema, features, &columns, err) : SVS_OK;
    svi_bank *spare = NULL;
    if (code == SVS_OK)
        code = svi_engine_spare_bank(e, features, classes, &spare, err);
    if (code == SVS_OK)
        code = svi_learner_prune(e->learner, features, classes, err);
    if (code != SVS_OK) {
        svi_bank_free(&spare);
        svs_features_free(&names);
        svs_features_free(&columns);
        return code;
    }
    svi_engine_replace_bank(e, &spare);
    svi_refit_policy_reset(e->refit); /* its model has the old columns */
    if (fewer > 0)
        svi_quality_stage_reset(&e->quality_stage); /* classes have new indices */
    if (without)
        engine_drop_features(e, features, names, columns);
    svi_engine_stack_pruned(e); /* by the columns that are left */
    return SVS_OK;
}

svs_code svi_engine_prune(svi_engine *e, svs_error *err) {
    svi_engine_settle(e);
    svi_engine_capacity_changed(e);
    const size_t d = (size_t)e->schema.shape.d, count = (size_t)svi_engine_classes(e);
    bool *flags = svi_alloc_array(d + count + 1, sizeof *flags);
    if (!flags)
        return svi_fail_memory(err, "what is held");
    svs_code code = find_held(e, flags, flags + d, err);
    if (code == SVS_OK)
        code = prune_to(e, flags, flags + d, err);
    svi_free(flags);
    return code;
}
