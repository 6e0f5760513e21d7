"""Do completed tables help classifiers that have their own way with missing values? Log loss with 30 % missing.

Each classifier is fitted to the incomplete table as it is, to the complete table, and to ten completed tables drawn by
`OrderPosterior.complete` (the class is a column of it), whose class probabilities are averaged. Test rows are complete.
With `--clusters`, densities of clusterings instead: mean log p of test rows, the densities of the ten averaged.
"""

import resource
import time
import warnings
from functools import partial

import numpy as np
import pandas as pd

from pgm_bma import (
    AveragedNaiveBayesClassifier,
    ForestAveragedClassifier,
    GibbsSampler,
    KikuchiBayesClassifier,
    LatentClassClusterer,
    OrderAveragedClassifier,
    OrderPosterior,
    StructuralEMClusterer,
    TANClassifier,
    load_network,
    simulate,
)

from ._common import parser, print_line, run, save_csv

TARGETS = {"child": "Disease", "insurance": "Accident"}
CLASSIFIERS = {
    "averaged naive Bayes": AveragedNaiveBayesClassifier,
    "TAN": TANClassifier,
    "forest average": ForestAveragedClassifier,
    "Kikuchi-Bayes": KikuchiBayesClassifier,
}
CLUSTERERS = {
    "latent classes": LatentClassClusterer,
    "structural EM": StructuralEMClusterer,
    "structural EM, any network": partial(StructuralEMClusterer, structures="general"),
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=None, help="data sets per network (default 2; --full 10)")
    options.add_argument("--rows", type=int, default=300, help="training rows")
    options.add_argument("--forests", action="store_true", help='the forest average and its own missing="augment" only')
    options.add_argument("--clusters", action="store_true", help="clusterings, by the log density of test rows")
    options.add_argument(
        "--columns", type=int, nargs="+", help="time and memory of the forest average by number of columns only"
    )
    options.add_argument("--network", choices=[*TARGETS], action="append", help="which networks (default: all)")
    options = options.parse_args(argv)
    if options.columns:
        lines = []
        for n_columns in options.columns:
            lines.append(size_line(n_columns, 1000))
            print_line(lines[-1])
            save_csv(lines, "completed_tables_columns", options.out)
        return
    lines, kept = [], "completed_tables" + "_forests" * options.forests + "_clusters" * options.clusters
    for name, target in TARGETS.items():
        if options.network and name not in options.network:
            continue
        model = load_network(name)
        states = {cpd.variable: list(cpd.state_names[cpd.variable]) for cpd in model.get_cpds()}
        for k in range(options.sets or (10 if options.full else 2)):
            frame = simulate(model, options.rows, random_state=k).astype(object)
            test = simulate(model, 1000, random_state=1000 + k).astype(object)
            rng = np.random.default_rng([options.seed, k])
            holes = frame.mask(rng.random(frame.shape) < 0.3).assign(**{target: frame[target]})
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if options.forests:
                    lines.append({"network": name, "set": k, **forest_losses(frame, holes, test, target, states)})
                    print_line(lines[-1])
                    continue
                posterior = OrderPosterior(
                    state_names=states,
                    parameter_prior="consistent",
                    sampler=GibbsSampler(max_sweeps=40),
                    random_state=k,
                ).fit(holes)
                copies = posterior.complete(holes, 10)
                if options.clusters:
                    for title, kind in CLUSTERERS.items():
                        line = {"network": name, "set": k, "clusterer": title}
                        for how, tables in (("complete", [frame]), ("gaps", [holes]), ("ten completed", copies)):
                            line[how] = log_density(kind, tables, test, states)
                        lines.append(line)
                        print_line(line)
                    continue
                for title, kind in CLASSIFIERS.items():
                    line = {"network": name, "set": k, "classifier": title}
                    for how, tables in (("complete", [frame]), ("gaps", [holes]), ("ten completed", copies)):
                        line[how] = log_loss(kind, tables, test, target, states)
                    lines.append(line)
                    print_line(line)
                own = OrderAveragedClassifier(state_names=states, sampler=GibbsSampler(max_sweeps=40), random_state=k)
                own.fit(holes.drop(columns=target), holes[target])
                lines.append({"network": name, "set": k, "classifier": "orders", "gaps": loss_of([own], test, target)})
                print_line(lines[-1])
        save_csv(lines, kept, options.out)
    if options.forests or options.clusters:
        by = ["network", "clusterer"] if options.clusters else "network"
        print(pd.DataFrame(lines).groupby(by).mean(numeric_only=True).round(3).to_string())
        return
    means = pd.DataFrame(lines).groupby(["network", "classifier"])[["complete", "gaps", "ten completed"]].mean()
    print(means.round(3).to_string())


def size_line(n_columns, n_rows):
    """CPU seconds and peak memory of `missing="augment"`, past its limit too: columns of three states, each near one before it."""
    from pgm_bma.forests import classifier

    classifier.MAX_COLUMNS = max(n_columns, classifier.MAX_COLUMNS)
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (n_rows, n_columns + 1))
    for k in range(1, n_columns + 1):
        codes[:, k] = np.where(rng.random(n_rows) < 0.7, codes[:, rng.integers(k)], codes[:, k])
    frame = pd.DataFrame(codes[:, 1:], columns=[f"c{k}" for k in range(n_columns)]).astype(float)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ForestAveragedClassifier(missing="augment", random_state=0)
        model.fit(frame.mask(rng.random(frame.shape) < 0.1), codes[:, 0])
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"columns": n_columns, "rows": n_rows, "CPU seconds": seconds, "peak MB of the process": memory}


def forest_losses(frame, holes, test, target, states):
    """Log losses of the forest average, and the CPU seconds of the fit that samples the cells."""
    line = {}
    for how, table, missing in (("complete", frame, "auto"), ("auto", holes, "auto"), ("augment", holes, "augment")):
        began = time.process_time()
        model = ForestAveragedClassifier(missing=missing, state_names=states, random_state=0)
        model.fit(table.drop(columns=target), table[target])
        seconds = time.process_time() - began
        line[how] = loss_of([model], test, target)
    return {**line, "seconds": seconds}


def log_density(kind, tables, test, states):
    """Mean log of the averaged density of test rows, three clusters."""
    models = [kind(3, n_init=2, state_names=states, random_state=0).fit(table) for table in tables]
    logs = np.array([model.score_samples(test) for model in models])
    return float((np.logaddexp.reduce(logs, axis=0) - np.log(len(models))).mean())


def log_loss(kind, tables, test, target, states):
    return loss_of([kind(state_names=states).fit(t.drop(columns=target), t[target]) for t in tables], test, target)


def loss_of(models, test, target):
    """Mean log loss of the averaged class probabilities."""
    proba = np.mean([model.predict_proba(test.drop(columns=target)) for model in models], axis=0)
    index = [list(models[0].classes_).index(value) for value in test[target]]
    return float(-np.log(np.maximum(proba[np.arange(len(test)), index], 1e-300)).mean())


if __name__ == "__main__":
    run(main)
