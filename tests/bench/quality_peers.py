"""Peers of `make bench ONLY=quality`, `ONLY=rare` and `ONLY=keys` that give a probability a row, each before the row is learned.

  HGB     scikit-learn's HistGradientBoostingClassifier and -Regressor (defaults), fitted every 1,000 rows to the last 5,000; columns of
          words are categories; a regression has the last target as one more column. Before the first fit: the shares of the classes
          so far, or the last target
  SGD-b   SGDClassifier with log loss, one row at a time, weighted so that all classes weigh the same on the run; words as columns of
          0 and 1, rows standardised on the run. Its probabilities are those of balanced classes

What they predict depends on the rows and on their code alone, so it is kept in build/peers, named by both. PEER_CACHE=/folder is
another place, PEER_CACHE=no keeps and takes nothing.
"""
import hashlib
import inspect
import os

import numpy as np

try:
    import sklearn
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.linear_model import SGDClassifier
except ImportError:
    sklearn = None

CLIP = 10.0                 # of standardised rows
EVERY, WINDOW = 1000, 5000  # rows between two fits; rows of a fit
CELLS_MAX = 150e3           # rows times classes beyond which the trees would take most of an hour


def standardised(x):
    """Each row by the mean and deviation of the rows up to it; columns that never changed are 0."""
    count = np.arange(1, len(x) + 1)[:, None]
    shifted = x - x[0]
    mean = np.cumsum(shifted, axis=0) / count
    variance = np.maximum(np.cumsum(shifted ** 2, axis=0) / count - mean ** 2, 0)
    variance[variance < 1e-12 * np.maximum(mean ** 2, 1e-300)] = 0
    deviation = np.sqrt(variance)
    return np.clip(np.divide(shifted - mean, deviation, out=np.zeros_like(shifted), where=deviation > 0), -CLIP, CLIP)


def coded(x):
    """Columns as numbers, words by their place in the alphabet, and which columns these are."""
    if x.dtype != object:
        return x, np.zeros(x.shape[1], bool)
    words = np.array([isinstance(v, str) for v in x[0]])
    columns = [np.unique(x[:, j], return_inverse=True)[1] if words[j] else x[:, j] for j in range(x.shape[1])]
    return np.column_stack([c.astype(float) for c in columns]), words


def indicators(x):
    """Columns as numbers, each word a column of 0 and 1."""
    numbers, words = coded(x)
    parts = [np.eye(int(c.max()) + 1)[c.astype(int)] if w else c[:, None] for c, w in zip(numbers.T, words)]
    return np.concatenate(parts, axis=1)


def shares(y, classes):
    """Shares of the classes in the rows before each, each class counting for half a row."""
    before = np.zeros((len(y), classes))
    before[np.arange(1, len(y)), y[:-1]] = 1
    before = np.cumsum(before, axis=0) + 0.5
    return before / before.sum(axis=1, keepdims=True)


def boosted(x, y, classes):
    numbers, words = coded(x)
    last = np.append(y[:1], y[:-1])
    if classes == 0:
        numbers, words = np.column_stack([numbers, last]), np.append(words, False)
    predicted = shares(y, classes) if classes else last.astype(float)
    for at in range(EVERY, len(y), EVERY):
        before, now = slice(max(0, at - WINDOW), at), slice(at, at + EVERY)
        # A column of one value has no bins to choose from, and more than 255 words no category.
        kinds = words & (numbers.max(axis=0) < 255)
        if classes == 0:
            model = HistGradientBoostingRegressor(categorical_features=kinds, random_state=0).fit(numbers[before], y[before])
            predicted[now] = model.predict(numbers[now])
        elif len(np.unique(y[before])) > 1:
            model = HistGradientBoostingClassifier(categorical_features=kinds, random_state=0).fit(numbers[before], y[before])
            predicted[now] = 0
            predicted[now, model.classes_] = model.predict_proba(numbers[now])
    return predicted


def balanced(x, y, classes):
    z, count = standardised(indicators(x)), np.zeros(classes)
    model, predicted = SGDClassifier(loss="log_loss", random_state=0), np.full((len(y), classes), 1 / classes)
    for i in range(len(y)):
        if i:
            score = np.clip(model.coef_ @ z[i] + model.intercept_, -30, 30)
            p = 1 / (1 + np.exp(-score))
            predicted[i] = (1 - p[0], p[0]) if classes == 2 else p / p.sum()
        count[y[i]] += 1
        weight = count.sum() / (np.count_nonzero(count) * count[y[i]])
        model.partial_fit(z[i:i + 1], y[i:i + 1], classes=np.arange(classes), sample_weight=[weight])
    return predicted


PEERS = {"HGB": boosted, "SGD-b": balanced}
HELPERS = (standardised, coded, indicators, shares)


def place(name, x, y, classes):
    """The file of what a peer predicts for these rows; None: nothing is kept."""
    folder = os.environ.get("PEER_CACHE") or os.path.join(os.path.dirname(os.environ["SVMSTREAM"]), "peers")
    if folder == "no":
        return None
    os.makedirs(folder, exist_ok=True)
    code = "".join(inspect.getsource(f) for f in HELPERS + (PEERS[name],))
    found = hashlib.sha256(repr((sklearn.__version__, code, CLIP, EVERY, WINDOW, classes, x.shape)).encode())
    found.update(repr(x.tolist()).encode() if x.dtype == object else np.ascontiguousarray(x, float).tobytes())
    found.update(np.ascontiguousarray(y, float).tobytes())
    return os.path.join(folder, "%s-%s.npy" % (name, found.hexdigest()[:32]))


def runs(name, y, classes):
    """Whether this peer has such a set."""
    return bool(sklearn) and (classes > 0 or name == "HGB") and len(y) * max(1, classes) <= CELLS_MAX


def predict(name, x, y, classes):
    """Probabilities, rows by classes (y: their indices); or values, where classes is 0."""
    path = place(name, x, y, classes)
    if path and os.path.exists(path):
        return np.load(path)
    predicted = PEERS[name](x, y, classes)
    if path:
        part = "%s.%d.npy" % (path[:-4], os.getpid())
        np.save(part, predicted)
        os.replace(part, path)
    return predicted


def accuracy(predicted, y):
    """A tie is an error, as the label decides nothing then."""
    best = predicted.max(axis=1)
    return float(np.mean((predicted[np.arange(len(y)), y] == best) & (np.sum(predicted == best[:, None], axis=1) == 1)))
