"""Predictions where the rows are: one Parquet file per part of a scan, written under another name and renamed when whole.

What is there already is skipped, so that a run which was interrupted goes on where it stopped: every file tells in its metadata
which part it holds predictions of, and by which model. Values that fit did not see are treated as `handle_unknown` says.
"""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.rows.pieces import texts_like
from pgm_bma.foundation.rows.scan import as_scan, is_scan
from pgm_bma.foundation.rows.scanned_rows import as_numbers
from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.foundation.runtime.messages import needed, warn
from pgm_bma.foundation.tables.columns import is_missing, plain, unseen

KEY = b"pgm_bma"
FILES = """Parameters
        ----------
        path : str or path
            The folder to write to; it is made where it does not exist.
        X : scan, optional
            The rows; by default those of the scan that `fit` saw.
        keep : list of str, optional
            Columns of the scan to write next to what is predicted, such as a key.

        Returns
        -------
        list of Path
            The files, part by part."""
PROBES = 64  # rows by whose predictions a model is known again


class PredictsToFiles:
    """`predict_to` and `predict_proba_to` for estimators that predict."""

    @fill(files=FILES)
    def predict_to(self, path: Any, X: Any = None, *, keep: Any = ()) -> list[Path]:
        """Write the prediction of every row of a scan into Parquet files, one per part, rows in the order of the part.

        A file appears under its name when it is whole. Files of the same model and part are left as they are, so that an
        interrupted run goes on where it stopped.

        {files}
        """
        return write_predictions(self, path, X, list(keep), proba=False)

    @fill(files=FILES)
    def predict_proba_to(self, path: Any, X: Any = None, *, keep: Any = ()) -> list[Path]:
        """Write the probabilities of every row of a scan into Parquet files, as `predict_to` does; one column per class.

        {files}
        """
        return write_predictions(self, path, X, list(keep), proba=True)


class Job(NamedTuple):
    """Job of writing one part."""

    estimator: Any
    folder: str
    keep: list
    proba: bool
    model: str
    texts: Any  # texts that mean missing where cells are texts, else None
    kept_types: list  # Arrow types of the kept columns


def write_predictions(estimator, path, X, keep, proba):
    """See `PredictsToFiles.predict_to`."""
    check_is_fitted(estimator)
    needed("pyarrow.parquet", "predict_to")
    rows = _find_scan(estimator, X)._rows
    names = _read_names(estimator)
    absent = [name for name in [*names, *keep] if name not in rows.names]
    if absent:
        raise ValueError(
            f"the scan lacks the column {absent[0]!r}; its columns are {', '.join(map(repr, rows.names[:12]))}"
        )
    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    predictor = estimator.__class__.__new__(estimator.__class__)
    predictor.__setstate__(estimator.__getstate__())  # without the scan, which does not travel
    job = Job(
        predictor, str(folder), keep, proba, fingerprint(estimator, proba, keep), rows.texts, rows.arrow_types(keep)
    )
    clash = set(keep) & set(output_names(estimator, proba))
    if clash:
        raise ValueError(f"keep={sorted(clash)[0]!r} is also the name of a predicted column; leave it out")
    unknown = rows.map_parts(write_part, job, [*names, *keep])
    if job.estimator.handle_unknown != "ignore":
        _warn_of_unknown(estimator.schema_.names, np.sum(unknown, axis=0))
    return [part_path(folder, i) for i in range(len(rows.parts))]


def write_part(job, number, source, batches):
    """Write the predictions of one part unless they are there; returns how often each column held an unknown value.

    number : position of the part     source : dict that identifies its rows     batches : iterator of (columns, n_rows)
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = part_path(job.folder, number)
    told = {"model": job.model, "part": number, "source": source}
    n_read = len(_read_names(job.estimator))
    unknown = np.zeros(len(job.estimator.schema_.names), dtype=np.int64)
    if _is_done(target, told):
        return unknown
    fields = [pa.field(name, kind) for name, kind in zip(job.keep, job.kept_types)]
    schema = pa.schema([*fields, *output_schema(job.estimator, job.proba)], {KEY: json.dumps(told).encode()})
    with replacing(target) as file, pq.ParquetWriter(file, schema) as writer:
        for columns, n_rows in batches:
            frame = _known_frame(job, columns[:n_read], n_rows, unknown)
            kept = [_kept(values, codes, kind) for (values, codes), kind in zip(columns[n_read:], job.kept_types)]
            writer.write_table(pa.table(kept + _predicted(job, frame, schema.types[-1]), schema=schema))
    return unknown


def _read_names(estimator):
    """Columns that a prediction reads: those with states, then those that are numbers in the model."""
    names = estimator.schema_.names
    return [*names, *(name for name in estimator._fitted_names if name not in set(names))]


def part_path(folder, number):
    """File of the predictions of one part."""
    return Path(folder) / f"part-{number:05d}.parquet"


def output_names(estimator, proba):
    """Names of the predicted columns: the cluster or target, or one per class."""
    if hasattr(estimator, "cluster_name"):
        name = estimator.cluster_name
        return [f"{name}{k}" for k in range(estimator.n_clusters_)] if proba else [name]
    return [str(state) for state in estimator.target_states_] if proba else [str(estimator.target_name_)]


def output_schema(estimator, proba):
    """Arrow schema of the predicted columns; classes of several types are written as text."""
    import pyarrow as pa

    if proba:
        kind = pa.float64()
    elif hasattr(estimator, "cluster_name"):
        kind = pa.int64()
    else:
        try:
            kind = pa.array(list(estimator.target_states_)).type
        except (pa.ArrowInvalid, pa.ArrowTypeError):
            kind = pa.string()
    return pa.schema([(name, kind) for name in output_names(estimator, proba)])


def fingerprint(estimator, proba, keep):
    """By what a model is known again: its columns and states, and what it predicts for a few made-up rows."""
    schema = estimator.schema_
    rng = np.random.default_rng(0)
    codes = np.empty((PROBES, len(schema.names)), dtype=np.int64)
    for i, n in enumerate(schema.cardinalities):
        codes[:, i] = rng.integers(-1, n, PROBES)
    # nine digits: a saved and loaded model, or another machine, may differ in the last ones
    middles = {}
    for name, edges in _edges(estimator).items():  # a number inside every interval, one below and one above
        values = np.concatenate([edges - 0.5 * np.diff(edges, prepend=edges[:1] - 2.0), edges[-1:] + 1.0, [np.nan]])
        middles[name] = values[rng.integers(0, len(values), PROBES)]
    for name, center, scale in zip(*_scales(estimator)):
        middles[name] = center + scale * rng.standard_normal(PROBES)
    frame = _as_frame(schema, codes).assign(**middles)
    probabilities = np.round(estimator.predict_proba(frame), 9) + 0.0
    told = repr((schema.names, schema.states, output_names(estimator, True), proba, keep))
    return hashlib.sha256(told.encode() + probabilities.tobytes()).hexdigest()


def _find_scan(estimator, X):
    if X is None:
        X = estimator.__dict__.get("_cached_scan")
        if X is None:
            raise ValueError("this estimator was not fitted on a scan (or was loaded from a file); pass the rows as X=")
    if not is_scan(X):
        raise TypeError(
            f"predict_to writes the rows of a scan, got {type(X).__name__}; use predict for a table in memory"
        )
    return as_scan(X)


def _known_frame(job, columns, n_rows, unknown):
    """Rows of one batch as categoricals over the fitted states; unknown values are counted and missing, or an error."""
    schema, edges, numbers = job.estimator.schema_, _edges(job.estimator), {}
    codes = np.full((n_rows, len(schema.names)), -1, dtype=np.int64, order="F")
    for name, (values, raw) in zip(_scales(job.estimator)[0], columns[len(schema.names) :]):
        numbers[name] = as_numbers(texts_like(values, (0.0,), job.texts))[raw]
    for i, ((values, raw), states) in enumerate(zip(columns, schema.states)):
        if schema.names[i] in edges:
            numbers[schema.names[i]] = as_numbers(texts_like(values, (0.0,), job.texts))[raw]
            continue
        position = {state: code for code, state in enumerate(states)}
        values = [plain(value) for value in texts_like(values, states, job.texts)]
        look_up = np.array([*(-1 if is_missing(value) else position.get(value, -2) for value in values), -1])
        codes[:, i] = look_up[raw]
        strange = codes[:, i] == -2
        if strange.any():
            if job.estimator.handle_unknown == "error":
                raise unseen(schema.names[i], values[int(np.asarray(raw)[np.argmax(strange)])], "error")
            unknown[i] += int(strange.sum())
            codes[strange, i] = -1
    return _as_frame(schema, codes).assign(**numbers)


def _edges(estimator):
    """dict column -> edges of the intervals into which the fit cut its numbers; such columns are predicted as numbers."""
    cuts = estimator.__dict__.get("_cuts")
    return {} if cuts is None else dict(zip(cuts.names, map(np.asarray, cuts.edges)))


def _scales(estimator):
    """(names, means, standard deviations) of the columns that are numbers in the model."""
    columns = estimator.__dict__.get("_numbers")
    return ((), (), ()) if columns is None else (columns.names, columns.centers, columns.scales)


def _as_frame(schema, codes):
    columns = [
        pd.Categorical.from_codes(codes[:, i], dtype=pd.CategoricalDtype(pd.Index(states, dtype=object)))
        for i, states in enumerate(schema.states)
    ]
    frame = pd.DataFrame(dict(enumerate(columns)), index=range(len(codes)))
    return frame.set_axis(list(schema.names), axis=1)


def _kept(values, codes, kind):
    """A column as it was read: the slot behind the last value stands for missing, which is the code -1."""
    import pyarrow as pa

    values = pa.array([*(None if is_missing(value) else value for value in values), None], type=kind)
    return values.take(pa.array(np.asarray(codes) % len(values)))


def _predicted(job, frame, kind):
    import pyarrow as pa

    if job.proba:
        return [pa.array(column) for column in job.estimator.predict_proba(frame).T]
    labels = job.estimator.predict(frame)
    return [pa.array([str(label) for label in labels] if kind == pa.string() else labels.tolist(), type=kind)]


def _is_done(target, told):
    """Return whether a file holds these predictions; an error where it holds those of another model."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not target.exists():
        return False
    try:
        found = json.loads((pq.read_schema(target).metadata or {})[KEY])
    except (KeyError, ValueError, pa.ArrowException):
        raise FileExistsError(f"{target} was not written by predict_to; choose another folder, or delete it") from None
    if found["model"] != told["model"]:
        raise FileExistsError(f"{target} holds predictions of another model; choose another folder, or delete it")
    return found == told


def _warn_of_unknown(names, counts):
    for name, count in zip(names, counts):
        if count:
            warn(f"column {name!r} holds {count} values that fit did not see; they were taken as missing")
