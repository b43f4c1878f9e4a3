/* feed_columns.h: the names of a file's columns, which go with its rows, and what a process says of them. */
#ifndef SVI_FEED_COLUMNS_H
#define SVI_FEED_COLUMNS_H

#include "base/bytes.h"
#include "config/settings.h"
#include "data/message.h"
#include "svmstream/outbox.h"

/* Before a row is put: where its cells are listed, their names go with each message from here on. *named:
 * those that do already. Codes of svs_outbox_columns. */
svs_code feed_columns_tell(svs_outbox *box, const struct svi_message *row, struct svi_bytes *named,
                           svs_error *err);

/* A process that acknowledges nothing cannot refuse them: it is asked at `ctl`, if that is given or `in` is
 * not, so that both are of one process. SVS_OTHER_COLUMNS: with both lists; SVS_BAD_KEY: the row has
 * a key, and the process one model. Without an answer SVS_OK. */
svs_code feed_columns_ask(const struct svi_settings *s, const struct svi_message *row, svs_error *err);

#endif
