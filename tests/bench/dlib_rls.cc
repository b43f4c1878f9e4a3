// The like-for-like peer: dlib's recursive least squares (closed form, add only), predict + train per sample.
#include <dlib/svm/rls.h>

struct peer {
    dlib::rls model;
    dlib::matrix<double, 0, 1> x;
    peer(long d) : model(1.0, 1.0), x(d) {
    }
};

extern "C" peer *peer_new(int d) {
    return new peer(d);
}

extern "C" void peer_free(peer *p) {
    delete p;
}

extern "C" double peer_learn(peer *p, const double *x, double y) {
    for (long j = 0; j < p->x.size(); j++)
        p->x(j) = x[j];
    double score = p->model.get_w().size() ? p->model(p->x) : 0;
    p->model.train(p->x, y);
    return score;
}
