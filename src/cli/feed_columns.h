/* feed_columns.h: the names of a file's columns, which go with its rows, and what a process says of them. */
#ifndef SVI_FEED_COLUMNS_H
#define SVI_FEED_COLUMNS_H

#include "config/settings.h"
#include "data/message.h"
#include "svmstream/outbox.h"

/* Before a row is put: where it is an array whose columns have names, these go with each message from here
 * on. *named: how many do already. Codes of svs_outbox_columns. */
svs_code feed_columns_tell(svs_outbox *box, const struct svi_shape *shape, const struct svi_message *row,
                           int *named, svs_error *err);

/* A process that acknowledges nothing cannot refuse them: it is asked at `ctl`, if that is given or `in` is
 * not, so that both are of one process. SVS_OTHER_COLUMNS: with both lists. Without an answer SVS_OK. */
svs_code feed_columns_ask(const struct svi_settings *s, const struct svi_shape *shape, svs_error *err);

#endif
