/* half_logits.h: scores of members that return probabilities, on a scale where about 1 is sure. */
#ifndef SVI_HALF_LOGITS_H
#define SVI_HALF_LOGITS_H

/* Half the log odds of each class against the others, from the logits f of a softmax. With e_k =
 * exp(f_k), p_k / (1 - p_k) = e_k / (sum of e - e_k). Here f has `known` values (1 to rows), and
 * scores has `rows`. Each score is within +-bound. It is -bound for a class beyond those known. f
 * and scores may be the same. */
void svi_half_logits(const double *f, int known, int rows, double bound, double *scores);

#endif
