"""Kikuchi-Bayes averaged over region graphs: a path of graphs and their neighbours, weighed by left-out evidence.

A region graph here is naive Bayes with some pairs, all with counting numbers. Two paths of graphs begin at naive Bayes: "tests"
adds pairs by the p of their tests, as the selection does; "greedy" adds or drops the pair or single attribute that raises the
leave-one-out log likelihood of the classes most. The graphs of a path and the neighbours of its best one (one term more or
less) are averaged. Weights of graphs: "evidence" is the softmax of the leave-one-out log likelihood, "bootstrap" its mean over
200 Bayesian bootstraps of the rows (pseudo-BMA+). What is averaged: log scores (closed form: the weight of a term is the
posterior of its region) or class probabilities. "learned" is the default, with averages over the graphs at four thresholds of
its tests. Five folds, cuts inside them, at most 500 rows, p >= 1e-5.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.model_selection import StratifiedKFold, train_test_split

from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier
from pgm_bma.kikuchi.fit import read_class_data
from pgm_bma.kikuchi.terms import as_codes, downward_closure, interaction_terms, term_evidence
from pgm_bma.kikuchi.weights import dense_contrasts, leave_one_out_loss, ridge_vector

from . import _kikuchi as kikuchi
from ._common import parser, print_line, print_table, run, save_csv

CHOOSING = ("breast-LJ", "car", "lymphography", "monk2", "tic-tac-toe", "voting", "wine", "zoo", "hayes-roth", "iris")
REPORTING = (
    "australian", "balance-scale", "breast-wisc", "crx", "ecoli", "heart", "horse-colic", "monk1", "monk3", "shuttle-control",
    "titanic", "german",
)  # fmt: skip
MOST_ROWS, MOST_STEPS = 500, 40
THRESHOLDS = ({"level": 1}, {"significance_level": 0.01}, {}, {"significance_level": 1.0})  # the third is the default


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--domains", nargs="+", default=None)
    options = arguments.parse_args(argv)
    lines = []
    for half, domains in (("choosing", CHOOSING), ("reporting", REPORTING)):
        for domain in options.domains or domains:
            loaded = kikuchi.load_domain(domain) if domain in domains else None
            if loaded is not None:
                lines.append({"domain": domain, "half": half, **losses(*loaded, options.seed)})
                print_line(lines[-1])
                save_csv(lines, "kikuchi_averages", options.out)
    table = pd.DataFrame(lines)
    for half, part in table.groupby("half"):
        measured = part.drop(columns=["domain", "half"])
        lower = {name: f"{(measured[name] < measured['learned']).sum()} of {len(part)}" for name in measured}
        summary = pd.DataFrame({"log loss": measured.mean(), "lower than learned": lower}).rename_axis("method")
        print_table(summary.sort_values("log loss").reset_index(), half)


def losses(X, y, seed):
    """Capped log loss of every method over five folds."""
    y = y.astype(str)
    kept = (y.map(y.value_counts()) >= 10).to_numpy()
    X, y = X[kept].reset_index(drop=True), y[kept].reset_index(drop=True)
    if len(X) > MOST_ROWS:
        rows, _ = train_test_split(np.arange(len(X)), train_size=MOST_ROWS, stratify=y, random_state=seed)
        X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows].reset_index(drop=True)
    target = np.unique(y, return_inverse=True)[1]
    total = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, target):
            cut, cut_test = kikuchi.discretise(X.iloc[train], y.iloc[train], X.iloc[train], X.iloc[test])
            found = averages(cut, target[train], cut_test, seed)
            found["K2"] = KikuchiBayesClassifier(preset="K2").fit(cut, target[train]).predict_proba(cut_test)
            found.update(learned_path(cut, target[train], cut_test))
            found["additive"] = AdditiveBayesClassifier().fit(X.iloc[train], target[train]).predict_proba(X.iloc[test])
            for name, probability in found.items():
                own = np.maximum(probability[np.arange(len(test)), target[test]], 1e-5)
                total[name] = total.get(name, 0.0) - np.log(own).sum() / len(target)
    return total


def averages(X, y, X_test, seed):
    """Class probabilities of the test rows by the best graph of each path and by four averages."""
    reader = KikuchiBayesClassifier(weights="counting").fit(X, y)
    data, _ = read_class_data(reader._read_training(X, y, None), "ignore")
    n = len(data.cardinalities)
    sets = downward_closure([(i, j) for j in range(n) for i in range(j)])
    terms = interaction_terms(data, sets, "consistent", 2.0, leave_one_out=True)
    contrasts = dense_contrasts(data, terms)
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(len(data.weights)), size=200) * len(data.weights)
    evidence = np.array(
        [term_evidence(terms, row) for row in as_codes(reader._encode(X_test))]
    )  # (rows, sets, classes)
    pairs = reader._result.tests[1]
    order = [sets.index(pairs.sets[k]) for k in np.lexsort((-pairs.z, pairs.p))]
    found = {}
    for path, graphs in (("tests", tested_path(order, sets)), ("greedy", greedy_path(contrasts, sets))):
        own = np.array([row_likelihoods(contrasts @ graph.astype(float)) for graph in graphs])
        around = list(neighbours(contrasts, sets, graphs[own.sum(axis=1).argmax()]))
        graphs, own = np.array([*graphs, *(g for g, _ in around)]), np.array([*own, *(o for _, o in around)])
        likelihood = own.sum(axis=1)
        weights = {"evidence": softmax(likelihood), "bootstrap": softmax(share @ own.T, axis=1).mean(axis=0)}
        scores = np.einsum("gs,rsc->grc", graphs.astype(float), evidence, optimize=True)
        found[f"{path}, best graph"] = softmax(scores[likelihood.argmax()], axis=1)
        for name, weight in weights.items():
            found[f"{path}, {name}, log scores"] = softmax(np.einsum("g,grc->rc", weight, scores), axis=1)
            found[f"{path}, {name}, probabilities"] = np.einsum("g,grc->rc", weight, softmax(scores, axis=2))
    return found


def learned_path(X, y, X_test):
    """The default at four thresholds of its tests, and averages over the four."""
    models = [KikuchiBayesClassifier(**setting).fit(X, y) for setting in THRESHOLDS]
    data, _ = read_class_data(models[0]._read_training(X, y, None), "ignore")
    scores = np.array([model.log_scores(X_test) for model in models])
    likelihood = []
    for model in models:
        fit = model._result
        terms = interaction_terms(data, fit.terms.layout.sets, "consistent", fit.strength, leave_one_out=True)
        ridge = ridge_vector(terms.layout.sets, fit.learned.ridge)
        loss = leave_one_out_loss(dense_contrasts(data, terms), data.weights, fit.weights, ridge)
        likelihood.append(-loss * data.weights.sum())
    weight = softmax(likelihood)
    return {
        "learned": softmax(scores[2], axis=1),
        "learned, mean of probabilities": softmax(scores, axis=2).mean(axis=0),
        "learned, mean of log scores": softmax(scores.mean(axis=0), axis=1),
        "learned, evidence, log scores": softmax(np.einsum("g,grc->rc", weight, scores), axis=1),
    }


def tested_path(order, sets):
    """Naive Bayes and the graphs that add the pairs in `order`, up to some hundred: list of masks of the sets."""
    graphs = [np.array([len(s) <= 1 for s in sets])]
    for k in order[: 5 * MOST_STEPS]:
        graphs.append(graphs[-1].copy())
        graphs[-1][k] = True
    return graphs


def greedy_path(contrasts, sets):
    """Naive Bayes and the best neighbour of each graph, as long as it is better: list of masks of the sets."""
    graphs = [np.array([len(s) <= 1 for s in sets])]
    best = row_likelihoods(contrasts @ graphs[0].astype(float)).sum()
    for _ in range(MOST_STEPS):
        graph, own = max(neighbours(contrasts, sets, graphs[-1]), key=lambda pair: pair[1].sum())
        if own.sum() <= best:
            break
        graphs.append(graph)
        best = own.sum()
    return graphs


def neighbours(contrasts, sets, now):
    """Graphs with one pair more or less, or one attribute more or less that no pair of the graph needs, with their likelihoods."""
    base, place = contrasts @ now.astype(float), {s: k for k, s in enumerate(sets)}
    needed = {a for k in np.flatnonzero(now) if len(sets[k]) == 2 for a in sets[k]}
    for k, s in enumerate(sets):
        if len(s) == 0 or (len(s) == 1 and s[0] in needed) or (len(s) == 2 and not all(now[place[(a,)]] for a in s)):
            continue
        graph = now.copy()
        graph[k] = not now[k]
        yield graph, row_likelihoods(base + (1 if graph[k] else -1) * contrasts[:, :, k])


def row_likelihoods(scores):
    """Log p of the class of every row, from the scores of the other classes minus its own."""
    return -np.logaddexp(0.0, np.logaddexp.reduce(scores, axis=1))


if __name__ == "__main__":
    run(main)
