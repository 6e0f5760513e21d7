"""The commands that learn from a table: cluster, classify, structure, impute, compare. Each reads, fits, tells and writes.

A command is a function (arguments, console) -> exit code. Data and model problems are ValueErrors with one clear line;
`UsageError` means that the words of the command do not fit together.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from pgm_bma import plotting
from pgm_bma.commands import cluster_findings as clusters
from pgm_bma.commands import findings as telling
from pgm_bma.commands import methods
from pgm_bma.commands import relation_findings as relations
from pgm_bma.commands.console import UsageError, count, ends_at_once, one_line
from pgm_bma.commands.gap_findings import completed_table, gap_findings
from pgm_bma.commands.preparation import conform, pipeline
from pgm_bma.commands.scanned import is_scanned
from pgm_bma.commands.session import Run, as_seen, last_step, source_record
from pgm_bma.commands.tabular_files import closest, read_table
from pgm_bma.commands.validation import (
    class_frequencies,
    class_probabilities,
    cross_predict,
    scaled,
    scores,
    standard_error,
)

SURELY = 2  # standard errors of a difference, less may be chance
N_CALIBRATED = 3  # lines that can be told apart in one picture


def cluster(arguments, console):
    """Find clusters, and say what marks them."""
    if arguments.discretize == "mdl":
        raise UsageError("--discretize mdl needs classes, which clustering does not have; take frequency or width")
    run = Run(arguments, console, methods.CLUSTERERS)
    target = arguments.target if arguments.target is not None else run.raw.target
    run.read(target)
    if target is not None:
        run.note(f"{target!r} takes no part in the clustering and is compared with the clusters afterwards")
    frame = run.data.frame
    model = run.fit(frame, weights=run.data.weights, n_clusters=arguments.clusters)
    if run.scanned is not None:
        return _tell_scanned_clusters(run, model)
    estimator, proba = last_step(model), model.predict_proba(frame)
    seen, weights = as_seen(model, frame), run.data.weights
    weights = None if weights is None else scaled(weights)
    goodness = clusters.goodness_of_fit(estimator, seen, weights, arguments.seed, arguments.jobs)
    found = clusters.cluster_findings(estimator, seen, proba, run.data.target, goodness)
    profiles, run.tables["profiles.csv"] = clusters.profile_findings(estimator)
    if estimator.n_clusters_ > 1:
        found.add(profiles).add(clusters.residual_findings(estimator, seen, weights))
    aside = run.set_aside()
    covariates = aside if arguments.outcome is None else aside[:-1]
    related, files = relations.relation_findings(
        estimator, seen, run.data.aside, covariates, arguments.outcome, run.data.weights
    )
    found.add(related)
    run.tables.update(files)
    labels = pd.DataFrame({estimator.cluster_name: estimator.labels_, "probability": proba.max(axis=1)})
    labels = labels.join(pd.DataFrame(proba, columns=[f"P({k})" for k in range(proba.shape[1])]))
    labels = _with_row_names(labels, run.data.index)
    run.finish(f"Clusters in {run.name}", found, model, "labels.csv", labels)


def _tell_scanned_clusters(run, estimator):
    """Findings of clusters in a scan, told on its sample; the labels of all rows go to files of their own."""
    seen = run.scanned.table.frame[list(run.data.frame.columns)]
    found = clusters.cluster_findings(estimator, seen, estimator.predict_proba(seen), run.data.target)
    if estimator.n_clusters_ > 1:
        found.add(clusters.residual_findings(estimator, seen, None))
    _finish_scanned(run, f"Clusters in {run.name}", found, estimator, "labels")


def _finish_scanned(run, title, found, estimator, name):
    run.console.step(f"predicting {count(run.scanned.scan.n_rows, 'row')}")
    run.folder.prepare()
    run.note(run.scanned.predict_to(estimator, run.folder.path, name))
    run.finish(title, found, estimator, f"{name}.csv", None)


def classify(arguments, console):
    """Fit a classifier, judge it on rows it has not seen, and predict."""
    run = Run(arguments, console, methods.CLASSIFIERS)
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
            found = telling.classifier_findings(model, frame, target, judged)
            return _finish_scanned(run, f"Predicting {target.name} in {run.name}", found, model, "predictions")
        full = class_probabilities(model, data.frame, target.cat.categories) if not known.all() else None
        table = _predictions(data, known, proba, fold, full)
    judged.warnings += telling.class_warnings(target)
    names = [name for name, is_known in zip(data.index, known) if is_known]
    found = telling.classifier_findings(last_step(model), as_seen(model, frame), target, judged, names)
    found.add(gap_findings(last_step(model)))
    run.finish(f"Predicting {target.name} in {run.name}", found, model, "predictions.csv", table)


def structure(arguments, console):
    """Posterior probabilities of the arcs between all columns."""
    run, model, estimator = _fit_structures(arguments, console)
    found = telling.arc_findings(estimator).add(gap_findings(estimator)).add(telling.chain_findings(estimator))
    run.finish(f"Structure of {run.name}", found, model, "arcs.csv", telling.arc_table(estimator.edge_posterior_))


def impute(arguments, console):
    """Completed copies of the table, drawn from the posterior over structures and their parameters."""
    if is_scanned(arguments):
        raise UsageError("impute completes tables that are read whole; give one file, without --memory and --workers")
    run, model, estimator = _fit_structures(arguments, console)
    rows = as_seen(model, run.data.frame)
    if not pd.DataFrame(rows).isna().to_numpy().any():
        run.note("no cell is missing: every copy is the table itself")
    found = gap_findings(estimator).add(telling.chain_findings(estimator))
    copies = estimator.complete(rows, arguments.copies, random_state=arguments.seed)
    found.words.insert(
        0,
        f"completed.csv holds {count(arguments.copies, 'completed copy', 'completed copies')} of the table, one below the other. "
        "Analyse each by itself and pool the results: how the copies differ is what the gaps leave open.",
    )
    index = pd.Index(np.tile(run.data.index, len(copies)), name=run.data.index.name)
    run.finish(f"Completed {run.name}", found, model, "completed.csv", _with_row_names(completed_table(copies), index))


def _fit_structures(arguments, console):
    """The run, what was fitted to all columns of its table, and the estimator in it."""
    if arguments.discretize == "mdl":
        raise UsageError(
            f"--discretize mdl needs a class, and {arguments.command} treats all columns alike; take frequency or width"
        )
    run = Run(arguments, console, methods.STRUCTURES)
    run.read(None)
    model = run.fit(run.data.frame, weights=run.data.weights)
    return run, model, last_step(model)


def compare(arguments, console):
    """All classifiers on the same folds, in one table."""
    offered = methods.CLASSIFIERS
    chosen = _chosen_methods(arguments.methods, offered)
    run = Run(arguments, console, offered, chosen[0])
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
    for message in telling.class_warnings(target):
        console.warn(message)
    found = _compare_findings(table, n_folds, probabilities, target)
    run.finish(f"Classifiers compared on {run.name}", found, None, "comparison.csv", table.drop(columns="seconds"))


# ------------------------------------------------------------------------------------------------ predictions


def class_column(arguments, raw):
    """The target named by the user, else the one an embedded data set has."""
    if arguments.target is not None:
        return arguments.target
    if raw.target is None:
        raise UsageError(
            f"--target is missing: {raw.source} has the columns {', '.join(map(repr, raw.frame.columns[:12]))}"
        )
    return raw.target


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
        raise ValueError(f"--cv {wanted} wants more folds than there are rows with a class ({len(target)})")
    return wanted


def _on_folds(run, frame, target, weights, n_folds):
    predictions = _cross_validated(run, frame, target, weights, n_folds, label="fold")
    for message in predictions.messages:
        run.console.warn(message)
    smallest = int(target.value_counts().min())
    if smallest < n_folds:
        run.console.note(f"the smallest class has {count(smallest, 'row')}, fewer than the {n_folds} folds")
    baseline = class_frequencies(target.cat.codes.to_numpy(), len(target.cat.categories), predictions.fold)
    judged = telling.prediction_findings(target, predictions.proba, baseline, f"{n_folds}-fold cross-validation")
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
    return _with_row_names(table, data.index)


def _on_test_file(run, frame, target, weights):
    arguments, console = run.arguments, run.console
    raw = read_table(arguments.test, arguments.missing, not arguments.no_header, [*frame.columns, target.name])
    X, truth, index, notes = conform(raw, run.data, run.roles)
    for note in notes:
        run.note(note)
    run.others["test"] = {**source_record(raw, run.folder.path), "rows": len(X)}
    model = run.fit(frame, target, weights)
    proba = class_probabilities(model, X, target.cat.categories)
    table = _with_row_names(_prediction_table(truth, proba, list(target.cat.categories)), index)
    judged = telling.Findings()
    if truth is None or truth.isna().all():
        judged.words.append(
            f"{count(len(X), 'row')} of {Path(raw.source).name} were predicted; it does not tell their true classes."
        )
        return judged, table, model
    seen = truth.notna().to_numpy()
    counts = np.bincount(target.cat.codes, minlength=len(target.cat.categories)) + 1.0
    baseline = np.tile(counts / counts.sum(), (int(seen.sum()), 1))
    console.step(f"judging on {count(int(seen.sum()), 'row')} of {raw.source}")
    how = f"On the {count(int(seen.sum()), 'row')} of {Path(raw.source).name}"
    return telling.prediction_findings(truth[seen], proba[seen], baseline, how), table, model


def _with_row_names(table, index):
    """The table behind a column that names its rows as the file does; called row if that name is taken."""
    table.insert(0, "row" if index.name in table else index.name, index)
    return table


def _prediction_table(truth, proba, classes):
    table = pd.DataFrame(index=range(len(proba)))
    if truth is not None:
        table["true"] = truth.astype(object).to_numpy()
    table["predicted"] = [classes[i] for i in np.argmax(proba, axis=1)]
    table["probability"] = proba.max(axis=1)
    return table.join(pd.DataFrame(proba, columns=[f"P({c})" for c in classes]))


# ------------------------------------------------------------------------------------------------- comparison


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
    found = telling.Findings(
        numbers={
            row["method"]: {"accuracy": row["accuracy"], "log_loss": row["log loss"]}
            for row in table.to_dict("records")
        }
    )
    close = [row["method"] for row in table.to_dict("records") if row["difference"] == "may be chance"]
    found.words.append(f"Lowest log loss in {n_folds}-fold cross-validation: {best} ({table['log loss'].iloc[0]:.3f}).")
    if best not in probabilities:
        found.words.append(f"No method predicts {target.name!r} better than somebody who knows its frequencies only.")
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
        "Of the rows predicted with some probability, how many came true; the methods of lowest log loss.",
    )
    return found
