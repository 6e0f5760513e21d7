"""Predictions as data for the page: some rows, what they hold, and how each column speaks for each class.

Rows that went wrong come in first, then rows spread over the table; how many depends on the columns and classes.
"""

import numpy as np

MOST_ROWS = 120
MOST_NUMBERS = 60_000


def row_data(estimator, frame, truth=None, names=None):
    """Explained rows, or None where the estimator cannot explain any of them.

    frame : rows as the estimator sees them      truth : their classes, categorical      names : their names in the file
    """
    classes = [str(c) for c in estimator._evidence_classes()]
    terms = estimator._evidence_labels()
    complete = np.flatnonzero(~frame.isna().any(axis=1).to_numpy())
    room = min(MOST_ROWS, MOST_NUMBERS // max(len(terms) * len(classes), 1))
    if room < 1 or not len(complete):
        return None
    if len(complete) > 20_000:
        complete = complete[np.linspace(0, len(complete) - 1, 20_000).astype(int)]
    proba = estimator.predict_proba(frame.iloc[complete])
    told = None
    if truth is not None:
        told = [classes.index(str(c)) if str(c) in classes else None for c in truth.iloc[complete]]
    chosen = _chosen(proba, told, room)
    rows = frame.iloc[complete[chosen]]
    evidence = np.stack(list(estimator._rows_of_evidence(rows)))
    columns = {str(name): [str(value) for value in rows[name]] for name in rows}
    names = complete if names is None else [names[i] for i in complete]
    return {
        "classes": classes,
        "terms": [str(term) for term in terms],
        "rows": [
            {
                "label": _label(names[i], classes, proba[i], None if told is None else told[i]),
                "truth": None if told is None else told[i],
                "p": proba[i].round(4).tolist(),
                "values": [columns[str(term)][r] if str(term) in columns else None for term in terms],
                "e": [float(f"{x:.4g}") for x in evidence[r].ravel()],
            }
            for r, i in enumerate(chosen)
        ],
    }


def _chosen(proba, told, room):
    """Half of the room for rows that went most wrong, the worst first; the rest spread evenly."""
    n_rows = len(proba)
    wrong: list = []
    if told is not None:
        given = np.array([1.0 if t is None else p[t] for t, p in zip(told, proba)])
        order = np.argsort(given, kind="stable")
        wrong = [int(i) for i in order[: room // 2] if told[i] is not None and told[i] != int(np.argmax(proba[i]))]
    spread = np.linspace(0, n_rows - 1, min(room - len(wrong), n_rows)).astype(int)
    return [*wrong, *(int(i) for i in spread if int(i) not in set(wrong))]


def _label(name, classes, proba, truth):
    best = int(np.argmax(proba))
    said = f"{name}: {classes[best]} ({proba[best]:.2f})"
    return said if truth is None or truth == best else f"{said}, truly {classes[truth]}"
