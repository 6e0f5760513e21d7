"""``pgm-bma classify`` and ``compare``: fit classifiers, judge them on rows they have not seen, and predict.

Standard errors are over rows: the spread of the rows' losses divided by the root of their number. In a cross-validation the
folds share training rows, so they are a little too small; differences between two methods are taken row by row, which
removes what is common to both.
"""

import re
import time
import warnings
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import confusion_matrix

from pgm_bma import catalogue, plotting
from pgm_bma.commands.findings import Findings, column_dependence, percent, region_findings, relevance
from pgm_bma.commands.output import UsageError, collected_warnings, count, ends_at_once, listed, one_line
from pgm_bma.commands.preparation import conform, pipeline
from pgm_bma.commands.session import (
    CommandRun,
    as_seen,
    as_states,
    fitted,
    last_step,
    source_record,
    with_row_names,
)
from pgm_bma.commands.structure import arc_findings, chain_findings, gap_findings
from pgm_bma.commands.tabular_files import closest, read_table
from pgm_bma.report.live_data import row_data

SURELY = 2  # standard errors of a difference, less may be chance
N_CALIBRATED = 3  # lines that can be told apart in one picture
TINY_CLASS = 10
NOTICED = 0.2  # of the most used column of an additive model, whose noise columns keep small weights
SMALLEST = 1e-15  # a probability below it counts as this much in the log loss


class Predictions(NamedTuple):
    """proba : (n_samples, n_classes)   fold : (n_samples,)   messages : warnings of the fits   seconds : of all fits"""

    proba: np.ndarray
    fold: np.ndarray
    messages: list
    seconds: float


class Scores(NamedTuple):
    """Accuracy and mean natural log loss with their standard errors; `losses` row by row."""

    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float
    losses: np.ndarray


def classify(arguments, console):
    """Fit a classifier, judge it on rows it has not seen, and predict."""
    run = CommandRun(arguments, console, "classifier")
    unknown = "they are predicted only" if arguments.test is None else "they are not used"
    known, frame, target, weights = _read_classes(run, unknown)
    data = run.data
    if arguments.test is not None:
        judged, table, model = _on_test_file(run, frame, target, weights)
    else:
        n_folds = folds(arguments.cv, target)
        judged, proba, fold = _on_folds(run, frame, target, weights, n_folds)
        model = run.fit(frame, target, weights)
        if run.scanned is not None:
            run.note("cross-validation: on the sample, whose models see fewer rows than the one that is kept")
            found = classifier_findings(model, frame, target, judged)
            return run.finish_scan(f"Predicting {target.name} in {run.name}", found, model, "predictions")
        full = class_probabilities(model, data.frame, target.cat.categories) if not known.all() else None
        table = _predictions(data, known, proba, fold, full)
    judged.warnings += class_warnings(target)
    names = [name for name, is_known in zip(data.index, known) if is_known]
    found = classifier_findings(last_step(model), as_seen(model, frame), target, judged, names)
    found.add(gap_findings(last_step(model)))
    run.finish(f"Predicting {target.name} in {run.name}", found, model, "predictions.csv", table)


def compare(arguments, console):
    """All classifiers on the same folds, in one table."""
    offered = catalogue.METHODS["classifier"]
    chosen = _chosen_methods(arguments.methods, offered)
    run = CommandRun(arguments, console, "classifier", chosen[0])
    _, frame, target, weights = _read_classes(run, "they are not used")
    n_folds = folds(arguments.cv, target)
    codes, n_classes = target.cat.codes.to_numpy(), len(target.cat.categories)
    results, probabilities, failed = {}, {}, {}
    for name in chosen:
        run.method = offered[name]
        try:
            predictions = _cross_validated(run, frame, target, weights, n_folds, label=name, brief=True)
        except (ValueError, MemoryError) as error:  # one method that cannot do these data does not stop the others
            failed[name] = one_line(error) or type(error).__name__
            console.warn(f"{name} is left out: {failed[name]}")
            continue
        for message in predictions.messages:
            console.warn(f"{name}: {message}")
        results[name] = (scores(codes, predictions.proba), predictions.seconds)
        probabilities[name] = predictions.proba
    if not results:
        raise ValueError(f"no method could work on {run.name}: {next(iter(failed.values()))}")
    fold = predictions.fold
    results["(class frequencies)"] = (scores(codes, class_frequencies(codes, n_classes, fold)), 0.0)
    table = _comparison(results)
    for message in class_warnings(target):
        console.warn(message)
    found = _compare_findings(table, n_folds, probabilities, target)
    run.finish(f"Classifiers compared on {run.name}", found, None, "comparison.csv", table.drop(columns="seconds"))


# ---------------------------------------------------------------------------------------------- predictions


def class_column(arguments, raw):
    """The target named by the user, else the one an embedded data set has."""
    if arguments.target is not None:
        return arguments.target
    if raw.target is None:
        raise UsageError(
            f"--target is missing: name the column to predict, as --target COLUMN; {raw.source} has the columns {_ends(raw.frame)}"
        )
    return raw.target


def _ends(frame):
    """Names of the columns; of many the first and the last, where a class often stands."""
    names = list(map(repr, frame.columns))
    return ", ".join(names if len(names) <= 20 else [*names[:8], "...", *names[-4:]])


def _read_classes(run, consequence):
    """Read the table with its classes: (which rows have one, and of these the columns, classes and weights)."""
    run.read(class_column(run.arguments, run.raw))
    target, weights = run.data.target, run.data.weights
    known = target.notna().to_numpy()
    if not known.all():
        run.note(f"{count(int((~known).sum()), 'row')} without a value of {target.name!r}: {consequence}")
    return known, run.data.frame[known], target[known], None if weights is None else weights[known]


def folds(wanted, target):
    if wanted > len(target):
        raise ValueError(f"--cv {wanted} asks for more folds than there are rows with a class ({len(target)})")
    return wanted


def _on_folds(run, frame, target, weights, n_folds):
    predictions = _cross_validated(run, frame, target, weights, n_folds, label="fold")
    for message in predictions.messages:
        run.console.warn(message)
    smallest = int(target.value_counts().min())
    if smallest < n_folds:
        run.console.note(f"the smallest class has {count(smallest, 'row')}, fewer than the {n_folds} folds")
    baseline = class_frequencies(target.cat.codes.to_numpy(), len(target.cat.categories), predictions.fold)
    judged = prediction_findings(target, predictions.proba, baseline, f"{n_folds}-fold cross-validation")
    return judged, predictions.proba, predictions.fold


def _cross_validated(run, frame, target, weights, n_folds, **shown):
    """`cross_predict` of the run's estimator, its progress on the console."""
    arguments = run.arguments
    model = pipeline(run.estimator(), run.data, arguments.discretize, arguments.bins)
    follow = partial(run.console.progress, **shown)
    with ends_at_once(arguments.jobs):
        return cross_predict(model, frame, target, n_folds, arguments.seed, arguments.jobs, follow, weights)


def _predictions(data, known, proba, fold, full):
    """One line per row of the file: predicted by a model that has not seen it; rows without a class by the final model."""
    classes = list(data.target.cat.categories)
    everything = np.empty((len(known), len(classes)))
    everything[known] = proba
    folds_of_rows = pd.array([pd.NA] * len(known), dtype="Int64")
    folds_of_rows[known] = fold + 1
    if full is not None:
        everything[~known] = full[~known]
    table = _prediction_table(data.target, everything, classes)
    table.insert(0, "fold", folds_of_rows)
    return with_row_names(table, data.index)


def _on_test_file(run, frame, target, weights):
    arguments, console = run.arguments, run.console
    raw = read_table(arguments.test, arguments.missing, not arguments.no_header, [*frame.columns, target.name])
    X, truth, index, notes = conform(raw, run.data, run.roles)
    for note in notes:
        run.note(note)
    run.others["test"] = {**source_record(raw, run.folder.path), "rows": len(X)}
    model = run.fit(frame, target, weights)
    proba = class_probabilities(model, X, target.cat.categories)
    table = with_row_names(_prediction_table(truth, proba, list(target.cat.categories)), index)
    judged = Findings()
    if truth is None or truth.isna().all():
        judged.words.append(
            f"{count(len(X), 'row')} of {Path(raw.source).name} were predicted; the file does not hold their true classes."
        )
        return judged, table, model
    seen = truth.notna().to_numpy()
    counts = np.bincount(target.cat.codes, minlength=len(target.cat.categories)) + 1.0
    baseline = np.tile(counts / counts.sum(), (int(seen.sum()), 1))
    console.step(f"judging on {count(int(seen.sum()), 'row')} of {raw.source}")
    how = f"On the {count(int(seen.sum()), 'row')} of {Path(raw.source).name}"
    return prediction_findings(truth[seen], proba[seen], baseline, how), table, model


def _prediction_table(truth, proba, classes):
    table = pd.DataFrame(index=range(len(proba)))
    if truth is not None:
        table["true"] = truth.astype(object).to_numpy()
    table["predicted"] = [classes[i] for i in np.argmax(proba, axis=1)]
    table["probability"] = proba.max(axis=1)
    return table.join(pd.DataFrame(proba, columns=[f"P({c})" for c in classes]))


def cross_predict(estimator, X, y, n_folds, seed, n_jobs=1, follow=None, weights=None):
    """Predict every row by a model that has not seen it.

    Parameters
    ----------
    estimator : classifier or pipeline, cloned for every fold
    X, y : DataFrame; categorical Series without missing values
    n_folds : stratified and shuffled by `seed`
    n_jobs : folds at a time
    follow : function (steps, total) -> steps that shows progress
    weights : (n_samples,) of the rows in the fits, or None

    Returns
    -------
    Predictions
    """
    from joblib import Parallel, delayed

    fold = stratified_folds(y.cat.codes.to_numpy(), n_folds, seed)
    began = time.perf_counter()
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_one_fold)(estimator, X, y, fold == k, weights) for k in range(n_folds)
    )
    proba = np.zeros((len(y), len(y.cat.categories)))
    messages: dict[str, str] = {}
    try:
        for k, (found, said) in enumerate(follow(work, n_folds) if follow else work):
            proba[fold == k] = found
            for message in said:  # every fold says it with its own numbers: once is enough
                messages.setdefault(re.sub(r"\d+(\.\d+)?", "#", message), f"in fold {k + 1}: {message}")
    finally:
        with warnings.catch_warnings():  # joblib warns of folds that an interruption leaves undone
            warnings.simplefilter("ignore")
            work.close()
    return Predictions(proba, fold, list(messages.values()), time.perf_counter() - began)


def stratified_folds(codes, n_folds, seed):
    """Fold of every row: rows shuffled inside each class, then dealt out in turn, so that every class is spread evenly."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(codes))
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int64)
    fold[dealt] = np.arange(len(codes)) % n_folds
    return fold


def _one_fold(estimator, X, y, held_out, weights):
    from sklearn.base import clone

    with collected_warnings() as messages:
        model = fitted(clone(estimator), X[~held_out], y[~held_out], None if weights is None else weights[~held_out])
        proba = class_probabilities(model, X[held_out], y.cat.categories)
    return proba, messages


def class_probabilities(model, X, classes):
    """`predict_proba` with one column per class of the whole table, also for classes that a fold did not have."""
    found = pd.DataFrame(model.predict_proba(X), columns=list(model.classes_))
    return found.reindex(columns=list(classes), fill_value=0.0).to_numpy()


def class_frequencies(codes, n_classes, fold):
    """The prediction of somebody who knows no column: class frequencies of the other folds, one pseudo-count each."""
    proba = np.empty((len(codes), n_classes))
    for k in np.unique(fold):
        counts = np.bincount(codes[fold != k], minlength=n_classes) + 1.0
        proba[fold == k] = counts / counts.sum()
    return proba


# ------------------------------------------------------------------------------------------------- findings


def classifier_findings(estimator, frame, target, judged=None, names=None):
    """Collect what a classifier learned from the rows `frame` with the classes `target`; `judged`: how well it predicts."""
    found = judged or Findings()
    known = np.eye(len(target.cat.categories))[target.cat.codes]
    states = as_states(estimator, frame)
    judge = _used_columns if hasattr(estimator, "pairs_") else relevance
    found.add(judge(estimator, repr(target.name), column_dependence(states, known)))
    found.add(arc_findings(estimator)).add(region_findings(estimator, states, target)).add(chain_findings(estimator))
    return found.add(_explained_rows(estimator, frame, target, names))


def _used_columns(estimator, root, dependence):
    """Relevance of the columns in an additive model: a column may say nothing alone and much in a pair."""
    used = pd.Series(estimator.feature_importances_, index=dependence.index)
    used = used.sort_values(ascending=False, kind="stable")
    found = Findings()
    if used.iloc[0] > 0:
        strong = used.index[used > NOTICED * used.iloc[0]][:8]
        which = "this column" if len(strong) == 1 else "these columns"
        found.words.append(f"The evidence for {root} changes most with {which}: {listed(strong, 8)}.")
    label, caption = (
        "change of the evidence (nats)",
        f"Change of the evidence for {root} by the terms that hold the column",
    )
    caption += ", alone and in pairs: the spread over the classes, averaged over the rows."
    table = pd.DataFrame({label: used, "alone, beyond chance (nats)": dependence.astype(float)}).reindex(used.index)
    said = f"{caption} Alone: mutual information of the column and {root}, less what chance gives."
    found.table("Relevance of the columns", table.rename_axis("column").reset_index(), said)
    if used.iloc[0] > 0:
        found.figure("Which columns matter", lambda: plotting.plot_relevance(used, label=label), caption)
        pairs = estimator.interactions_.query("low > 0")[["first", "second"]].head(3).itertuples(index=False, name=None)
        drawn = [*strong[:6], *pairs]
        said = "Evidence for a class at each value of a column, with two standard errors; bars below show where the rows are. Heat "
        said += "maps: what two columns say together beyond what each says alone."
        found.figure("What the columns say", lambda: estimator.plot_terms(drawn).axes[0], said)
    return found


def _explained_rows(estimator, frame, target, names):
    """Rows to pick, and what each column says in them."""
    caption = (
        "Choose a row. Bars to the right are evidence for the first class, bars to the left for the second, in nats. The worst "
        "predictions come first. Probabilities are those of the final model, which was fitted to the row too."
    )
    make = lambda: row_data(estimator, frame, target, names)  # noqa: E731
    return Findings(live=[("Why a row is predicted as it is", "rows", make, caption, None)])


def prediction_findings(truth, proba, baseline, how):
    """Judge the predictions. truth : categorical Series; proba, baseline : (n_samples, n_classes)."""
    codes, classes = truth.cat.codes.to_numpy(), list(truth.cat.categories)
    ours, simple = scores(codes, proba), scores(codes, baseline)
    frequent = truth.value_counts().index[0]
    found = Findings(
        words=[
            f"{how}: {percent(ours.accuracy)} of the rows are classified correctly (standard error "
            f"{100 * ours.accuracy_error:.1f} points). Always predicting {listed([frequent])} "
            f"would be right for {percent((codes == classes.index(frequent)).mean())}.",
            f"The mean log loss is {ours.log_loss:.3f} (standard error {ours.log_loss_error:.3f}); class frequencies alone have "
            f"{simple.log_loss:.3f}. Lower is better; confident wrong predictions cost most.",
        ],
        numbers={
            "accuracy": float(ours.accuracy),
            "accuracy_standard_error": ours.accuracy_error,
            "log_loss": float(ours.log_loss),
            "log_loss_standard_error": ours.log_loss_error,
        },
    )
    gain = simple.losses - ours.losses
    if 0 <= gain.mean() <= SURELY * standard_error(gain):
        found.words.append(
            f"That gain of {gain.mean():.3f} may be chance (standard error {standard_error(gain):.3f}, row by row): nothing below "
            f"is certain to help predict {truth.name!r}."
        )
    predicted = np.argmax(proba, axis=1)
    counts = confusion_matrix(codes, predicted, labels=range(len(classes)))
    table = pd.DataFrame(counts, columns=[f"predicted {c}" for c in classes])
    table.insert(0, "true class", [str(c) for c in classes])
    found.head("True and predicted classes", table, "Rows of each true class by what was predicted.")
    if ours.log_loss > simple.log_loss:
        found.warnings.append(
            "the predictions are worse than class frequencies alone (by log loss): they are too confident where they are wrong"
        )
    if len(codes) >= 30:
        found.figure(
            "Can the probabilities be believed?",
            lambda: plotting.plot_calibration(
                np.array([str(c) for c in truth]), proba, classes=[str(c) for c in classes]
            ),
            "How often a prediction came true, by its probability. On the diagonal the probabilities are right.",
        )
    return found


def class_warnings(truth):
    sizes = truth.value_counts()
    small = sizes[sizes < TINY_CLASS]
    if small.empty:
        return []
    said = ", ".join(f"{listed([name])} ({count(int(size), 'row')})" for name, size in small.items())
    return [f"tiny classes: {said}; what is said about them rests on few rows"]


def scores(codes, proba):
    """`Scores` of predicted probabilities against the true classes `codes`.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.commands.classify import scores
    >>> found = scores(np.array([0, 1]), np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> float(found.accuracy), round(float(found.log_loss), 4)
    (1.0, 0.4904)
    """
    right = (np.argmax(proba, axis=1) == codes).astype(float)
    losses = -np.log(np.maximum(proba[np.arange(len(codes)), codes], SMALLEST))
    return Scores(right.mean(), standard_error(right), losses.mean(), standard_error(losses), losses)


def standard_error(values):
    """Of the mean of `values`; NaN for a single one."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def _chosen_methods(text, offered):
    if not text:
        return list(offered)
    chosen = [name.strip() for name in text.split(",") if name.strip()]
    for name in chosen:
        if name not in offered:
            raise UsageError(f"--methods names {name!r}: {closest(name, offered)}")
    if not chosen:
        raise UsageError(f"--methods names none of {', '.join(offered)}")
    return list(dict.fromkeys(chosen))


def _comparison(results):
    """One row per method, the lowest log loss first; differences to it are taken row by row."""
    best = min(results, key=lambda name: results[name][0].log_loss)
    rows = []
    for name, (found, seconds) in results.items():
        difference = found.losses - results[best][0].losses
        more, error = float(difference.mean()), standard_error(difference)
        rows.append(
            {
                "method": name,
                "log loss": found.log_loss,
                "± log loss": found.log_loss_error,
                "more than best": more,
                "± more": error,
                "difference": "best" if name == best else "worse" if more > SURELY * error else "may be chance",
                "accuracy": found.accuracy,
                "± accuracy": found.accuracy_error,
                "seconds": seconds,
            }
        )
    return pd.DataFrame(rows).sort_values("log loss", kind="stable").reset_index(drop=True)


def _compare_findings(table, n_folds, probabilities, target):
    best = table["method"].iloc[0]
    found = Findings(
        numbers={
            row["method"]: {"accuracy": row["accuracy"], "log_loss": row["log loss"]}
            for row in table.to_dict("records")
        }
    )
    close = [row["method"] for row in table.to_dict("records") if row["difference"] == "may be chance"]
    found.words.append(f"Lowest log loss in {n_folds}-fold cross-validation: {best} ({table['log loss'].iloc[0]:.3f}).")
    if best not in probabilities:
        found.words.append(f"No method predicts {target.name!r} better than the class frequencies alone.")
    if close:
        found.words.append(
            f"Not clearly worse, the difference may be chance (within two standard errors of it): {', '.join(close)}."
        )
    else:
        found.words.append("All others are worse by more than two standard errors of the difference.")
    found.head(
        "All classifiers on the same folds",
        table,
        "± are standard errors over rows. 'more than best' is how much more log loss a method has than the first, row by row; "
        "within two of its standard errors the difference may be chance.",
    )
    classes = [str(c) for c in target.cat.categories]
    truth = np.array([str(c) for c in target])
    shown = {name: probabilities[name] for name in table["method"] if name in probabilities}
    shown = dict(list(shown.items())[:N_CALIBRATED])
    found.figure(
        "Can the probabilities be believed?",
        lambda: plotting.plot_calibration(truth, shown, classes=classes),
        "How often a prediction came true, by its probability, for the methods of lowest log loss.",
    )
    return found
