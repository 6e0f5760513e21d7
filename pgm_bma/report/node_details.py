"""What a click on a node tells: its table, and the rows of the data behind it.

Tables are P(x | parents) of the fitted network (the single best one where many are averaged). Where the model has no such tables,
they are shares of the rows by class. Tables and counts are cut to a size that a page can hold, and say so.
"""

import numpy as np
import pandas as pd

MOST_CELLS = 400  # of one node's table
MOST_STATES = 40


def network_details(estimator, names, frame):
    """One dict (or None) per node: the table of the network and the counts of the rows."""
    model = estimator.model_
    if not hasattr(model, "get_cpds"):
        return column_details(estimator, names, frame)
    tables = {cpd.variable: cpd for cpd in model.cpds}
    columns = {} if frame is None else {name: frame[name] for name in frame}
    labels = getattr(estimator, "labels_", None)
    if frame is not None and labels is not None and len(labels) == len(frame):
        columns[estimator.cluster_name] = pd.Series(pd.Categorical(labels))
    is_best = not getattr(estimator, "model_is_exact_", True)
    details = []
    for name in names:
        detail = _table(tables[name], columns, is_best) if name in tables else {}
        detail.update(_counts(columns.get(name)))
        details.append(detail or None)
    return details


def column_details(estimator, names, frame):
    """Shares of every state by class, from the rows: for models without conditional tables."""
    details = []
    target = getattr(estimator, "target_name_", None)
    for name in names:
        detail = {}
        if frame is not None and name in frame and target in frame and name != target:
            table = pd.crosstab(frame[target].astype(object), frame[name].astype(object), dropna=False)
            table = table.loc[table.sum(axis=1) > 0]
            shown = table.iloc[: max(1, MOST_CELLS // max(table.shape[1], 1)), :MOST_STATES]
            sums = table.sum(axis=1).to_numpy()[: len(shown)]
            detail = {
                "title": f"Shares in the rows, by {target}",
                "given": [str(target)],
                "states": [str(state) for state in shown.columns],
                "at": [[str(state)] for state in shown.index],
                "p": (shown.to_numpy() / sums[:, None]).round(4).tolist(),
                "n": sums.tolist(),
                "cut": _cut(shown.shape, table.shape),
            }
        detail.update(_counts(frame[name] if frame is not None and name in frame else None))
        details.append(detail or None)
    return details


def state_codes(column):
    """(codes, number of states) of a column."""
    codes = column.cat if hasattr(column, "cat") else column.astype("category").cat
    return codes.codes.to_numpy().astype(np.int64), len(codes.categories)


def _table(cpd, columns, is_best):
    variable, parents = cpd.variable, list(cpd.variables[1:])
    states = [str(state) for state in cpd.state_names[variable]]
    values = np.asarray(cpd.values, dtype=float).reshape(len(states), -1).T  # a line per configuration
    shape = tuple(len(cpd.state_names[parent]) for parent in parents)
    rows = _rows_behind(cpd, parents, columns, shape)
    order = np.arange(len(values)) if rows is None else np.argsort(-rows, kind="stable")
    kept = order[: max(1, MOST_CELLS // min(len(states), MOST_STATES))]
    kept = np.sort(kept) if len(kept) == len(order) else kept
    at = np.stack(np.unravel_index(kept, shape), axis=1) if parents else np.zeros((len(kept), 0), dtype=int)
    given = f"P({variable} | {', '.join(map(str, parents))})" if parents else f"P({variable})"
    return {
        "title": f"{given} in the single best network" if is_best else given,
        "given": [str(parent) for parent in parents],
        "states": states[:MOST_STATES],
        "at": [[str(cpd.state_names[parent][i]) for parent, i in zip(parents, line)] for line in at],
        "p": values[kept, :MOST_STATES].round(4).tolist(),
        "n": None if rows is None else rows[kept].tolist(),
        "cut": _cut((len(kept), min(len(states), MOST_STATES)), (len(values), len(states))),
    }


def _rows_behind(cpd, parents, columns, shape):
    """Rows of the data with every configuration of the parents; None where a parent is not in the data."""
    if cpd.variable not in columns or any(parent not in columns for parent in parents):
        return None
    n_rows = len(columns[cpd.variable])
    place, known = np.zeros(n_rows, dtype=np.int64), np.ones(n_rows, dtype=bool)
    for parent, size in zip(parents, shape):
        codes = pd.Categorical(columns[parent].astype(object), categories=cpd.state_names[parent]).codes
        known &= codes >= 0
        place = place * size + codes
    return np.bincount(place[known], minlength=int(np.prod(shape, dtype=np.int64)))


def _counts(column):
    if column is None:
        return {}
    counts = column.value_counts(sort=False)
    counts = counts[counts > 0]
    shown = counts if len(counts) <= MOST_STATES else counts.sort_values(ascending=False, kind="stable")[:MOST_STATES]
    return {
        "counts": [[str(state), int(number)] for state, number in shown.items()],
        "missing": int(column.isna().sum()),
    }


def _cut(shown, whole):
    said = []
    if shown[0] < whole[0]:
        said.append(f"the {shown[0]} lines with most rows of {whole[0]}")
    if shown[1] < whole[1]:
        said.append(f"the first {shown[1]} of {whole[1]} states")
    return f"Shown: {' and '.join(said)}." if said else ""
