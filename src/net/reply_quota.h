/* reply_quota.h: bounds the replies that libzmq holds for peers that do not read them. Its queues count
 * messages, and a reply with scores may have 64 MiB.
 *
 * The bytes that wait are counted by peer and in all. A peer is given a large reply while it has fewer bytes
 * waiting than half of what is left of the whole. So one that does not read cannot keep the others from
 * theirs: with n such peers, 2 / (n + 2) of the whole stays free. */
#ifndef SVI_REPLY_QUOTA_H
#define SVI_REPLY_QUOTA_H

#include "net/transport.h"

#define SVI_REPLY_SMALL 4096 /* bytes up to which a reply is not counted: the queues bound their number */

struct svi_reply_quota;

/* NULL: no memory. */
struct svi_reply_quota *svi_reply_quota_new(void);

/* Sets *q to NULL. Replies that still wait remain valid: the last one frees what they share. NULL is fine. */
void svi_reply_quota_leave(struct svi_reply_quota **q);

/* May the peer with this hash be given a large reply now? */
bool svi_reply_quota_admits(const struct svi_reply_quota *q, uint64_t peer);

/* svi_request_reply of a large reply, which is counted. */
bool svi_reply_quota_send(struct svi_reply_quota *q, uint64_t peer, void *router, struct svi_request *r,
                          const void *bytes, size_t length);

#endif
