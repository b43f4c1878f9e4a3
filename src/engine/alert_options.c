#include "engine/alert_options.h"

#include "base/fail.h"
#include "config/rule_settings.h"

svs_code svi_engine_alert_options(const struct svi_settings *s, struct svi_alert_stage_options *o,
                                  svs_error *err) {
    *o = (struct svi_alert_stage_options){.on = s->novelty != SVI_NOVELTY_NONE,
                                          .novelty = {.window = s->novelty_window,
                                                      .calibration = (int)s->novelty_calibration,
                                                      .learn = (enum svi_novelty_learn)s->novelty_learn,
                                                      .p = s->alert_p,
                                                      .clear = s->alert_clear,
                                                      .confirm = (int)(s->novelty_confirm + s->novelty_lags -
                                                                       1), /* one odd value lasts so long */
                                                      .persist = s->novelty_persist},
                                          .lags = (int)s->novelty_lags,
                                          .differences = s->novelty_differences,
                                          .with_context = s->context[0],
                                          .zone = s->zone,
                                          .alert = {.p = s->alert_p,
                                                    .clear = s->alert_clear,
                                                    .cooldown = s->alert_cooldown,
                                                    .fdr = s->alert_fdr,
                                                    .warmup = s->novelty_warmup},
                                          .policy = {.interval = s->alert_interval,
                                                     .group = s->alert_group,
                                                     .clear = s->alert_clear,
                                                     .warmup = s->novelty_warmup}};
    SVI_TRY(svi_settings_alert_budget_read(s->alert_budget, &o->policy.a_day, err));
    return svi_settings_novelty(s, &o->novelty.model, err);
}
