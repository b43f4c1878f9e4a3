"""Many rows at once: matrices and DataFrames to svs_block, and results as arrays."""
from __future__ import annotations

import time
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from . import _archive, _matrix, _rows, errors
from ._labels import LabelBlock, targets
from ._library import failure, ffi, fill_id, lib
from ._single import Single
from ._warning import warn

_NULL = ffi.NULL
PART = 1024  # rows of the first part of a block


class Blocks(Single):
    """Learns and scores blocks, for scikit-learn's and River's methods for many rows."""

    __slots__ = ()

    def _names_of(self, m: _matrix.Matrix, strict: bool) -> Tuple[Any, Any]:
        """Names for the columns of a block as a char*[] or NULL, and what must outlive it; checks
        them against those of the stream.

        strict (scikit-learn's methods): the same columns, in any order. Otherwise columns may
        appear and be left out.
        """
        known = self._width()
        own = self.columns if known else []
        if known and not own:
            if m.names is not None:
                warn(
                    "X has feature names, but %s was fitted without feature names"
                    % type(self).__name__
                )
                if m.words:
                    raise errors.WrongKindError(
                        "X has words, but the stream has no names of columns"
                    )
            if m.d != known:
                raise self._dimension(m.d, known)
            return _NULL, None
        names = m.names
        if own and names is None:
            if m.d != known:
                raise self._dimension(m.d, known)
            warn(
                "X does not have valid feature names, but %s was fitted with feature names"
                % type(self).__name__
            )
            names = own
        if names is None:
            return _NULL, None
        if strict and own and (len(names) != known or set(names) != set(own)):
            self._differing(names, own)
        texts = [self._rows.text(name, "the column") for name in names]
        return ffi.new("char *[]", texts), texts

    def _dimension(self, d: int, known: int) -> errors.SvmstreamError:
        return errors.WrongDimensionError(
            "X has %d features, but %s is expecting %d features as input"
            % (d, type(self).__name__, known)
        )

    @staticmethod
    def _differing(names: Sequence[str], own: Sequence[str]) -> None:
        unseen = [n for n in names if n not in own]
        missing = [n for n in own if n not in names]
        raise errors.WrongColumnsError(
            "The feature names should match those that were passed during fit.%s%s"
            % (
                "\nFeature names unseen at fit time: " + ", ".join(unseen[:5]) if unseen else "",
                "\nFeature names seen at fit time, yet now missing: " + ", ".join(missing[:5])
                if missing
                else "",
            )
        )

    def _learn_many(
        self, m: _matrix.Matrix, y: Any, w: Any, ids: Any, ts: Any, strict: bool
    ) -> None:
        """Learns a matrix with labels (already checked to be those of the task), as a whole or not
        at all.
        """
        weight, when = _rows.weights(w, m.n), _rows.times(ts, m.n)
        with self._lock:
            labels = self._block_labels(y, m.n)
            names, texts = self._names_of(m, strict)
            block, row = ffi.new("svs_block *"), ffi.new("int64_t *", -1)
            keep = [
                texts,
                m.fill(block, self._rows.text),
                self._block_extras(block, labels, weight, ids, when, m.n),
            ]
            block.names = names
            # Words can contradict each other within a block, which the library finds on the way.
            before = self._pack(None) if m.words else None
            seen = lib.svs_stream_seen(self._handle)
            code = 0
            try:
                code = self._in_parts(lib.svs_stream_learn_block, block, _NULL, row)
            finally:  # also after Ctrl-C or a late refusal, when the rows before are learned
                if not code or (before is None and lib.svs_stream_seen(self._handle) != seen):
                    if isinstance(labels, LabelBlock):
                        labels.commit()
                    self._fitted = self._fitted or y is not None
            del keep
            if code:
                self._refuse(failure(self._err, code), row[0], seen, before)
            found = self._collect()
        self._notify(found)

    def _in_parts(self, call: Any, block: Any, results: Any, row: Any) -> int:
        """Learns or scores a block in parts of some tenths of a second: Python raises
        KeyboardInterrupt between them. Returns the code of the call.
        """
        most = PART
        while True:
            begun = time.monotonic()
            block.count = most
            code = call(self._handle, block, results, row, self._err)
            if code or row[0] >= block.n:
                return int(code)
            block.first = row[0]
            took = time.monotonic() - begun
            most = min(2 * most, 1 << 20) if took < 0.1 else max(1, most // 2) if took > 0.4 else most

    def _refuse(self, error: errors.SvmstreamError, row: int, seen: int, before: Any) -> None:
        """Raises the error of a row of a block; what the rows before it changed is taken back, if
        their state was kept.
        """
        if lib.svs_stream_seen(self._handle) != seen and before is None:
            text = "%s; the rows before it were learned" % error
        else:
            text = str(error)
            if before is not None:
                self._restore(*_archive.unpack(before))
        raise errors.by_code(error.code, self._of_row(text, row))

    @staticmethod
    def _of_row(text: str, row: int) -> str:
        return text if row < 0 or text.startswith("row ") else "row %d: %s" % (row, text)

    def _block_labels(self, y: Any, n: int) -> Any:
        if y is None:
            return None
        if self._regress:
            return targets(y, n)
        labels = self._labels.block(y, n)
        fresh = [name for name in labels.names if name not in self._labels.cells]
        if fresh:
            if self._declared is not None and any(name not in self._declared for name in fresh):
                wrong = [name for name in fresh if name not in self._declared]
                raise errors.BadLabelError(
                    "y has labels that are not among the classes that partial_fit was given: %s"
                    % ", ".join(map(repr, wrong[:5]))
                )
            most = int(self.setting("max.classes"))
            classes = lib.svs_stream_class_count(self._handle)
            if (
                self._takes_labels
                and classes + len(fresh) > most
                and len(set(labels.names) | set(self._labels.classes(self._handle))) > most
            ):
                raise errors.LimitError(
                    "y would make more than %d classes: raise the setting max.classes" % most
                )
        return labels

    def _block_extras(
        self, block: Any, labels: Any, weight: Any, ids: Any, when: Any, n: int
    ) -> List[Any]:
        """Labels, weights, ids and times of a block; returns what must outlive it."""
        keep: List[Any] = [labels, weight, when]
        if isinstance(labels, LabelBlock):
            block.labels, block.label_count = labels.table, labels.count
            block.y_index = ffi.cast("int32_t *", labels.index.__array_interface__["data"][0])
        elif labels is not None:
            block.y = ffi.cast("double *", labels.__array_interface__["data"][0])
        if weight is not None:
            block.weight = ffi.cast("double *", weight.__array_interface__["data"][0])
        if when is not None:
            block.ts = ffi.cast("double *", when.__array_interface__["data"][0])
        if ids is not None:
            if isinstance(ids, (str, bytes)) or not hasattr(ids, "__iter__"):
                raise errors.BadIdError("ids is a %s; it holds one id for each row"
                                        % type(ids).__name__)
            ids = _rows.unmasked(ids, "ids")
            ids = list(ids.tolist() if hasattr(ids, "tolist") else ids)
            if len(ids) != n:
                raise errors.BadIdError("X has %d rows and ids %d" % (n, len(ids)))
            cells = ffi.new("svs_value[]", n)
            keep.append(cells)
            for i, (cell, item) in enumerate(zip(cells, ids)):
                try:
                    keep.append(fill_id(cell, item))
                except errors.InputError as error:
                    raise errors.BadIdError("row %d: %s" % (i, error)) from error
            block.ids = cells
        return keep

    def _score_many(
        self, m: _matrix.Matrix, want: Mapping[str, str], strict: bool
    ) -> Dict[str, Any]:
        """Results of a matrix. want: members of svs_results and their widths: "" (n), "rows" or
        "classes".
        """
        with self._lock:
            names, texts = self._names_of(m, strict)
            rows, classes = lib.svs_stream_rows(self._handle), lib.svs_stream_class_count(
                self._handle
            )
            width = {"rows": rows, "classes": classes}
            arrays = {
                name: np.full(
                    (m.n, width[by]) if by else m.n,
                    -1 if name == "predicted" else np.nan,
                    np.int32 if name == "predicted" else np.float64,
                )
                for name, by in want.items()
            }
            block, results, row = (
                ffi.new("svs_block *"),
                ffi.new("svs_results *"),
                ffi.new("int64_t *", -1),
            )
            keep = [texts, m.fill(block, self._rows.text)]
            block.names, results.rows, results.classes = names, rows, classes
            for name, array in arrays.items():
                kind = "int32_t *" if name == "predicted" else "double *"
                setattr(results, name, ffi.cast(kind, array.__array_interface__["data"][0]))
            code = self._in_parts(lib.svs_stream_score_block, block, results, row)
            del keep
            if code:
                error = failure(self._err, code)
                raise errors.by_code(error.code, self._of_row(str(error), row[0]))
            return arrays
