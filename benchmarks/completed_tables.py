"""Do completed tables help classifiers that have their own way with gaps? Log loss with 30 % of the training cells missing.

Each classifier is fitted to the table with gaps as it is, to the complete table, and to ten completed tables drawn by
`OrderPosterior.complete` (the class is a column of it), whose class probabilities are averaged. Test rows are complete.
"""

import time
import warnings

import numpy as np
import pandas as pd

from pgm_bma import (
    AveragedNaiveBayesClassifier,
    ForestAveragedClassifier,
    KikuchiBayesClassifier,
    OrderAveragedClassifier,
    OrderPosterior,
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


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=None, help="data sets per network (default 2; --full 10)")
    options.add_argument("--rows", type=int, default=300, help="training rows")
    options.add_argument("--forests", action="store_true", help='the forest average and its own missing="augment" only')
    options = options.parse_args(argv)
    lines = []
    for name, target in TARGETS.items():
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
                posterior = OrderPosterior(state_names=states, max_sweeps=160, random_state=k).fit(holes)
                copies = posterior.complete(holes, 10)
                for title, kind in CLASSIFIERS.items():
                    line = {"network": name, "set": k, "classifier": title}
                    for how, tables in (("complete", [frame]), ("gaps", [holes]), ("ten completed", copies)):
                        line[how] = log_loss(kind, tables, test, target, states)
                    lines.append(line)
                    print_line(line)
                own = OrderAveragedClassifier(state_names=states, max_sweeps=160, random_state=k)
                own.fit(holes.drop(columns=target), holes[target])
                lines.append({"network": name, "set": k, "classifier": "orders", "gaps": loss_of([own], test, target)})
                print_line(lines[-1])
        save_csv(lines, "completed_tables_forests" if options.forests else "completed_tables", options.out)
    if options.forests:
        print(pd.DataFrame(lines).groupby("network").mean(numeric_only=True).round(3).to_string())
        return
    means = pd.DataFrame(lines).groupby(["network", "classifier"])[["complete", "gaps", "ten completed"]].mean()
    print(means.round(3).to_string())


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


def log_loss(kind, tables, test, target, states):
    return loss_of([kind(state_names=states).fit(t.drop(columns=target), t[target]) for t in tables], test, target)


def loss_of(models, test, target):
    """Mean log loss of the averaged class probabilities."""
    proba = np.mean([model.predict_proba(test.drop(columns=target)) for model in models], axis=0)
    index = [list(models[0].classes_).index(value) for value in test[target]]
    return float(-np.log(np.maximum(proba[np.arange(len(test)), index], 1e-300)).mean())


if __name__ == "__main__":
    run(main)
