"""Kikuchi-Bayes: region graphs, fit at levels 2 and 3, prediction per term, learned weights, kernels against plain numpy."""

import itertools

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import CategoricalNB
from sklearn.preprocessing import OneHotEncoder

from pgm_bma import KikuchiBayesClassifier, region_graph
from pgm_bma.kikuchi import selection as kikuchi_selection
from pgm_bma.kikuchi import terms as room
from pgm_bma.kikuchi.fit import KikuchiOptions, fit_kikuchi

from ._common import best_of, best_of_each, parser, print_table, run, save_csv

N_ROWS, N_COLUMNS = 1000, 60


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    X, y = data(options.seed)
    rows = [*graphs(), *fits(X, y, options), prediction(X, y), *learned(X, y), *kernels(X, y), *screen(X, y)]
    print_table(rows, "seconds are the best of several; a ratio is ours / peer in the same run", 4)
    save_csv(rows, "speed_kikuchi", options.out)


def data(seed):
    """60 columns of three states: 20 noisy copies of the class, 10 pairs whose sum tells it, noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_ROWS)
    X = rng.integers(0, 3, (N_ROWS, N_COLUMNS))
    for j in range(20):
        told = rng.random(N_ROWS) < 0.15
        X[told, j] = y[told]
    for j in range(20, 40, 2):
        told = rng.random(N_ROWS) < 0.3
        X[told, j + 1] = (X[told, j] + y[told]) % 3
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(N_COLUMNS)]), pd.Series(y, name="class")


def graphs():
    for size, aim in ((2, 0.1), (3, 5.0)):
        regions = [("C", *s) for s in itertools.combinations(range(60), size)]
        region_graph(regions[:10])
        seconds = best_of(lambda r=regions: region_graph(r), 3)
        yield {
            "what": f"region graph, 60 attributes, all {len(regions)} sets of {size}",
            "seconds": seconds,
            "aim": aim,
        }


def fits(X, y, options):
    for level, aim in ((2, 3.0), (3, 60.0)):
        for weights in ("counting", "learned"):
            make = KikuchiBayesClassifier(level=level, weights=weights, random_state=0)
            make.fit(X.iloc[:, :5], y)
            seconds = best_of(lambda m=make: m.fit(X, y), 3 if level == 2 else 1)
            what = f"fit, 60 attributes x 1000 rows, level {level}, {weights} ({len(make.term_weights_)} terms)"
            yield {"what": what, "seconds": seconds, "aim": aim}


def prediction(X, y):
    """Per term and row, from integer arrays: columns of the naive Bayes are its terms."""
    values = X.to_numpy()
    many = np.tile(values, (20, 1))
    model = KikuchiBayesClassifier(significance_level=1.0, weights="counting", random_state=0).fit(values, y)
    peer = CategoricalNB().fit(values, y)
    model.predict(many[:5])
    seconds = best_of_each({"ours": lambda: model.predict(many), "peer": lambda: peer.predict(many)}, 5)
    ours, theirs = seconds["ours"] / len(model.term_weights_), seconds["peer"] / (N_COLUMNS + 1)
    return {
        "what": f"predict {len(many)} rows, per term ({len(model.term_weights_)} terms)",
        "seconds": ours,
        "peer": "CategoricalNB, per column",
        "ratio": ours / theirs,
        "aim": 5.0,
    }


def learned(X, y):
    codes = X.to_numpy()
    rows = room.class_data(codes, y.to_numpy(), [3] * N_COLUMNS, 2)
    onehot = OneHotEncoder().fit_transform(codes)
    regions = fit_kikuchi(rows, KikuchiOptions(weights="counting")).regions
    for ridge in (5.0, "cv"):
        options = KikuchiOptions(weights="learned", ridge=ridge)
        fit_kikuchi(rows, options, regions)
        seconds = best_of_each(
            {
                "ours": lambda o=options: fit_kikuchi(rows, o, regions),
                "peer": lambda: LogisticRegression(max_iter=1000).fit(onehot, y),
            },
            5,
        )
        n_terms = len(room.downward_closure(regions))
        yield {
            "what": f"learned weights of {n_terms} terms, tables included, ridge={ridge!r}",
            "seconds": seconds["ours"],
            "peer": "LogisticRegression on the one-hot data",
            "ratio": seconds["ours"] / seconds["peer"],
            "aim": 5.0,
        }


def kernels(X, y):
    """Compiled loops against the same work in numpy."""
    rows = room.class_data(X.to_numpy(), y.to_numpy(), [3] * N_COLUMNS, 2)
    sets = room.downward_closure(itertools.combinations(range(N_COLUMNS), 2))
    layout = room.make_layout(sets, rows.cardinalities, 2)
    terms = room.interaction_terms(rows, sets)

    def plain_counts():
        for t, s in enumerate(sets):
            cell = rows.target.astype(np.int64)
            for a, stride in zip(s, layout.strides[t]):
                cell = cell + rows.codes[:, a] * (2 * stride)
            np.bincount(cell, minlength=int(layout.offsets[t + 1] - layout.offsets[t]))

    def plain_scores():
        scores = np.zeros((len(rows.codes), 2))
        for t, s in enumerate(sets):
            cell = np.zeros(len(rows.codes), dtype=np.int64)
            for a, stride in zip(s, layout.strides[t]):
                cell += rows.codes[:, a] * stride
            scores += terms.values[layout.offsets[t] : layout.offsets[t + 1]].reshape(-1, 2)[cell]
        return scores

    pairs = {
        "count the tables of all pairs": (lambda: room.count_tables(rows, layout), plain_counts),
        "score rows with all pairs": (lambda: room.log_scores(terms, rows.codes), plain_scores),
    }
    for what, (ours, plain) in pairs.items():
        seconds = best_of_each({"ours": ours, "plain": plain}, 3)
        yield {
            "what": f"kernel: {what}",
            "seconds": seconds["ours"],
            "peer": "plain numpy",
            "ratio": seconds["ours"] / seconds["plain"],
        }


def screen(X, y):
    """How many foci the chi-square tail decides, how often against 1000 resamples, and what that saves."""
    rows = room.class_data(X.to_numpy(), y.to_numpy(), [3] * N_COLUMNS, 2)
    candidates = list(itertools.combinations(range(N_COLUMNS), 2))
    chosen = [(a,) for a in range(N_COLUMNS)]
    options = kikuchi_selection.SelectionOptions("laplace")

    def tests(resamples, screened):
        return kikuchi_selection.divergence_tests(
            rows, chosen, candidates, options._replace(n_resamples=resamples, screen=screened)
        )

    fast, slow = tests(100, True), tests(1000, False)
    clear = ~fast.resampled
    seconds = best_of_each({"ours": lambda: tests(100, True), "all": lambda: tests(100, False)}, 2)
    wrong = np.mean((fast.p < 0.1)[clear] != (slow.p < 0.1)[clear])
    yield {
        "what": f"chi-square screen decides {clear.mean():.1%} of 1770 pairs, {wrong:.2%} of them against 1000 resamples",
        "seconds": seconds["ours"],
        "peer": "100 resamples of every pair",
        "ratio": seconds["ours"] / seconds["all"],
    }


if __name__ == "__main__":
    run(main)
