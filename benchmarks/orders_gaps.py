"""Structures from tables with missing values: sampling cells and structures together against the complete table, and the truth.

Parts (`--part`): "tiny", against every completion times all structures; "alarm" and "child", against the complete table;
"many", child again on many tables, next to ten completed copies drawn from one network; "expected", how far complete tables are by
what is left open; "starts", chains that begin on the hidden table; "hard", cells of sachs that are missing depending on
other columns, run twice; "voting", an incomplete table,
drawn with and without its incomplete rows. Else K2 with alpha = 1, "mdl", at most three parents.
"""

import time
import warnings
from itertools import product

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from pgm_bma import GibbsSampler, OrderAveragedClassifier, OrderPosterior, impute, load_network, predict_proba, simulate

from ._common import parser, print_line, results_folder, run, save_csv

COMMON = {"parameter_prior": "paper", "max_indegree": 3}
PARTS = ("tiny", "alarm", "child", "many", "expected", "starts", "hard", "voting")
SETS = {"tiny": 6, "many": 12, "starts": 2, "hard": 1, "voting": 1}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--part", choices=PARTS, action="append", help="which part (default: all)")
    options.add_argument("--sets", type=int, default=None, help="data sets of a part (default 5, tiny 6, many 12)")
    options.add_argument(
        "--sweeps",
        type=int,
        default=None,
        help="most sweeps over structures and cells (default 40; expected and starts 80; child 320; many and hard 640)",
    )
    options = options.parse_args(argv)
    for part in options.part or PARTS:
        rows = []
        for seed in range(
            options.seed,
            options.seed + (options.sets or SETS.get(part, 5)),
        ):
            for line in globals()[part](seed, options.sweeps):
                rows.append({"part": part, "seed": seed, **line})
                print_line(rows[-1])
            save_csv(rows, f"orders_gaps_{part}", options.out)


# ---------------------------------------------------------------------------------------------------- tiny problems


def tiny(seed, sweeps):
    """Mean absolute error of the arcs, 3 or 4 binary variables, 8 to 12 rows, 4 to 6 missing values."""
    from pgm_bma.orders.families.family_table import family_table
    from pgm_bma.orders.gaps import augment, augment_lists, augmented_chains

    rng = np.random.default_rng([seed, 1])
    n, n_rows, n_gaps, sweeps = 3 + seed % 2, 8 + 2 * (seed % 3), 4 + seed % 3, sweeps or 1500
    cause = rng.integers(0, 2, (n_rows, 1))
    codes = np.where(rng.random((n_rows, n)) < 0.75, cause, 1 - cause).astype(np.int32)
    codes.ravel()[rng.choice(codes.size, n_gaps, replace=False)] = -1
    frame = as_frame(codes)
    off = ~np.eye(n, dtype=bool)
    for weighting in ("order", "dag"):
        truth = enumerated(codes, weighting)
        gaps = augment.GapTable(codes, np.ones(n_rows), np.full(n, 2), (1.0, None))
        walk = np.random.default_rng([seed, 2])
        filled = augment.first_filling(gaps, walk)
        table = family_table(augment.completed(gaps, filled), gaps.cardinalities)
        move = augment.make_move(augment_lists.all_families(table), gaps, weighting)
        chain = augmented_chains.new_chain(np.arange(n) if weighting == "order" else np.zeros(n, dtype=np.int64), walk)
        chain.filled = filled
        arcs = np.array([augment.sweep(move, gaps, chain)[0] for _ in range(sweeps + 20)])[20:]
        batches = np.array([part.mean(0) for part in np.array_split(arcs, 30)])
        z = (arcs.mean(0) - truth)[off] / (batches.std(0, ddof=1)[off] / np.sqrt(30))
        line = {"weighting": weighting, "variables": n, "rows": n_rows, "gaps": n_gaps, "sweeps": sweeps}
        line |= {"error": np.abs(arcs.mean(0) - truth)[off].mean(), "largest |z|": np.abs(z).max()}
        for how in ("drop", "state"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = OrderPosterior(**COMMON, method="exact", missing=how, structure_weighting=weighting).fit(frame)
            line[f"error, {how}"] = np.abs(other.edge_posterior_.to_numpy() - truth)[off].mean()
        yield line


def as_frame(codes):
    frame = pd.DataFrame(codes, columns=[f"v{k}" for k in range(codes.shape[1])])
    return frame.astype(object).where(codes >= 0, None)


def enumerated(codes, weighting):
    """Arcs with all completions written out, structures of each summed exactly."""
    rows, columns = np.nonzero(codes < 0)
    states = {f"v{k}": [0, 1] for k in range(codes.shape[1])}
    evidence, arcs = [], []
    for values in product((0, 1), repeat=len(rows)):
        full = codes.copy()
        full[rows, columns] = values
        exact = OrderPosterior(**COMMON, method="exact", structure_weighting=weighting, state_names=states)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exact.fit(as_frame(full))
        evidence.append(exact.log_evidence_)
        arcs.append(exact.edge_posterior_.to_numpy())
    shares = np.exp(np.array(evidence) - max(evidence))
    return np.tensordot(shares / shares.sum(), np.array(arcs), axes=1)


# ---------------------------------------------------------------------------------------------------- networks


def alarm(seed, sweeps):
    """Average precision of the arcs, N = 1000, 20 % missing completely at random."""
    model = load_network("alarm")
    frame = simulate(model, 1000, random_state=seed)
    holes = with_gaps(frame, 0.2, seed)
    truth = truth_of(model, frame)
    found = {}
    for name, rows, settings in (
        ("complete", frame, {"sampler__tol": 0.1, "sampler__max_sweeps": 512}),
        ("augment", holes, {"sampler__max_sweeps": 4 * (sweeps or 40)}),
        ("state", holes, {"missing": "state", "sampler__tol": 0.1, "sampler__max_sweeps": 512}),
    ):
        posterior, seconds = fitted(OrderPosterior, settings | {"state_names": states_of(model)}, rows, None, seed)
        found[name] = posterior.edge_posterior_.to_numpy()
        yield judged(name, posterior, found, truth, seconds)


def child(seed, sweeps):
    """Arcs and the class log loss of Disease, N = 300, 30 % missing completely at random; 1000 complete test rows."""
    model = load_network("child")
    frame, test = simulate(model, 300, random_state=seed), simulate(model, 1000, random_state=1000 + seed)
    holes = with_gaps(frame.drop(columns="Disease"), 0.3, seed)
    order = [*holes.columns, "Disease"]
    truth = truth_of(model, frame[order])
    found = {}
    whole = frame.drop(columns="Disease"), {"sampler__tol": 0.05, "sampler__max_sweeps": 1024}
    gaps = holes, {"sampler__max_sweeps": sweeps or 320}
    for name, (rows, settings), start in (
        ("complete", whole, seed),
        ("complete, again", whole, 100 + seed),
        ("complete, 210 rows", (whole[0][:210], whole[1]), seed),  # as many cells as are left
        ("augment", gaps, seed),
        (
            "augment, again",
            gaps,
            100 + seed,
        ),  # what two runs differ by is chance of the chains, not of the missing values
        ("state", (holes, {"missing": "state", "sampler__tol": 0.1, "sampler__max_sweeps": 512}), seed),
    ):
        settings = settings | {"state_names": states_of(model)}
        classifier, seconds = fitted(OrderAveragedClassifier, settings, rows, frame["Disease"][: len(rows)], start)
        found[name] = classifier.edge_posterior_.to_numpy()
        line = judged(name, classifier, found, truth, seconds)
        if "again" in name:
            line["rms of the two runs"] = rms(found[name], found[name.partition(",")[0]])
        line["class log loss"] = class_loss(
            classifier.predict_proba(test.drop(columns="Disease")), classifier.classes_, test
        )
        yield line


def class_loss(proba, classes, test):
    index = [list(classes).index(value) for value in test["Disease"]]
    return -np.log(proba[np.arange(len(test)), index]).mean()


def many(seed, sweeps):
    """The tables of `child`: missing values sampled, and ten copies drawn from its best network, fitted alone."""
    model = load_network("child")
    frame, test = simulate(model, 300, random_state=seed), simulate(model, 10_000, random_state=1000 + seed)
    X, y, rows = frame.drop(columns="Disease"), frame["Disease"], test.drop(columns="Disease")
    holes, states = with_gaps(X, 0.3, seed), {"state_names": states_of(model)}
    truth, found = truth_of(model, frame[[*X.columns, "Disease"]]), {}
    known = predict_proba(model, rows, "Disease")
    yield {"rows": "the true network", "class log loss": class_loss(known.to_numpy(), known.columns, test)}
    for name, table, settings in (
        ("complete", X, {"sampler__max_sweeps": 512}),
        ("augment", holes, {"sampler__max_sweeps": sweeps or 640}),
    ):
        classifier, seconds = fitted(OrderAveragedClassifier, settings | states, table, y, seed)
        found[name] = classifier.edge_posterior_.to_numpy()
        loss = class_loss(classifier.predict_proba(rows), classifier.classes_, test)
        yield judged(name, classifier, found, truth, seconds) | {"class log loss": loss}
    network, rng, copies = classifier.model_, np.random.default_rng([seed, 8]), []
    for _ in range(10):
        copy = impute(network, holes.assign(Disease=y), "sample", random_state=rng)
        copies.append(
            fitted(OrderAveragedClassifier, states | {"sampler__max_sweeps": 256}, copy[X.columns], y, seed)[0]
        )
    arcs = np.mean([one.edge_posterior_.to_numpy() for one in copies], axis=0)
    off = ~np.eye(len(arcs), dtype=bool)
    yield {
        "rows": "ten copies from one network",
        "average precision": average_precision_score(truth[off], arcs[off]),
        "rms distance": rms(arcs, found["complete"]),
        "class log loss": class_loss(
            np.mean([one.predict_proba(rows) for one in copies], axis=0), classifier.classes_, test
        ),
    }


def expected(seed, sweeps):
    """Distance of the arcs of complete tables from those of the observed cells, by what is left open: the hidden table is one more
    draw from the posterior, so its distance is that of the sampled completions, if the sampling is right."""
    from pgm_bma.orders.gaps import augment
    from pgm_bma.orders.gaps.augmented_average import gaps_of

    model = load_network("child")
    frame = simulate(model, 300, random_state=seed)
    holes, states = with_gaps(frame.drop(columns="Disease"), 0.3, seed), {"state_names": states_of(model)}
    settings = states | {"sampler__max_sweeps": sweeps or 80}
    posterior, _ = fitted(OrderPosterior, settings, holes.assign(Disease=frame["Disease"]), None, seed)
    arcs, gaps = posterior.edge_posterior_, gaps_of(posterior._average)
    names, filled = list(arcs.columns), posterior._average.gaps.filled
    plain = {name: list(range(card)) for name, card in zip(names, gaps.cardinalities.tolist())}
    drawn = []
    for cells in filled.reshape(-1, filled.shape[2])[:: filled.shape[0] * filled.shape[1] // 8][:8]:
        table = pd.DataFrame(augment.completed(gaps, cells), columns=names).astype(object)
        table = table.loc[table.index.repeat(gaps.weights.astype(int))]
        one, _ = fitted(OrderPosterior, {"state_names": plain, "sampler__max_sweeps": 512}, table, None, seed)
        drawn.append(rms(one.edge_posterior_.to_numpy(), arcs.to_numpy()))
    whole, _ = fitted(OrderPosterior, states | {"sampler__max_sweeps": 512}, frame[names], None, seed)
    yield {
        "distance of the complete table": rms(whole.edge_posterior_.to_numpy(), arcs.to_numpy()),
        "distance of sampled completions": float(np.sqrt(np.mean(np.square(drawn)))),
        "least": min(drawn),
        "most": max(drawn),
    }


def starts(seed, sweeps):
    """Two chains that begin with the true values of the hidden cells, and two that begin with drawn ones: where do they end?"""
    from pgm_bma.orders.families.family_table import family_table
    from pgm_bma.orders.gaps import augment, augment_lists, augmented_chains

    model, sweeps = load_network("child"), sweeps or 80
    states = states_of(model)
    frame = simulate(model, 300, random_state=seed)
    holes = with_gaps(frame.drop(columns="Disease"), 0.3, seed).assign(Disease=frame["Disease"])
    names = list(holes.columns)
    full = np.column_stack([[states[name].index(value) for value in frame[name]] for name in names]).astype(np.int32)
    codes = np.where(holes.isna().to_numpy(), np.int32(-1), full)
    gaps = augment.GapTable(codes, np.ones(len(codes)), np.array([len(states[name]) for name in names]), (1.0, None))
    move = augment.make_move(augment_lists.all_families(family_table(full, gaps.cardinalities)), gaps, "order")
    whole, _ = fitted(OrderPosterior, {"state_names": states, "sampler__max_sweeps": 512}, frame[names], None, seed)
    whole, ends = whole.edge_posterior_.to_numpy(), {}
    for how in ("true", "drawn"):
        for k in range(2):
            rng = np.random.default_rng([seed, k, len(how)])
            cells = full[gaps.cells] if how == "true" else augment.first_filling(gaps, rng)
            chain = augmented_chains.new_chain(rng.permutation(len(names)), rng)
            chain.filled = cells
            arcs = [augment.sweep(move, gaps, chain)[0] for _ in range(2 * sweeps)]
            ends[how, k] = np.mean(arcs[sweeps:], axis=0)
            line = {"start": how, "chain": k, "sweeps": 2 * sweeps, "distance of the first sweep": rms(arcs[0], whole)}
            yield line | {"distance": rms(ends[how, k], whole)}
    means = {how: np.mean([ends[how, 0], ends[how, 1]], axis=0) for how in ("true", "drawn")}
    yield {
        "start": "true against drawn",
        "distance": rms(means["true"], means["drawn"]),
        "two chains, true": rms(ends["true", 0], ends["true", 1]),
        "two chains, drawn": rms(ends["drawn", 0], ends["drawn", 1]),
    }


def hard(seed, sweeps):
    """sachs, N = 1000, cells missing at random depending on other columns, 20 % of all."""
    model = load_network("sachs")
    frame = simulate(model, 1000, random_state=seed)
    for name, n_seen in (("one column always seen", 1), ("five of eleven", 5), ("six of eleven", 6)):
        holes = depending(frame, n_seen, 0.2, seed)
        first = None
        for start in (seed, 100 + seed):  # separate chains: a convergence that is real is found twice
            posterior, seconds = fitted(OrderPosterior, {"sampler__max_sweeps": sweeps or 640}, holes, None, start)
            line = judged(name, posterior, {}, truth_of(model, frame), seconds)
            arcs = posterior.edge_posterior_.to_numpy()
            first = arcs if first is None else first
            line["run"], line["largest difference of the runs"] = start, float(np.abs(arcs - first).max())
            yield line | {"missing": float(holes.isna().to_numpy().mean())}


def depending(frame, n_seen, share, seed):
    """Missing at random: `n_seen` drawn columns are always seen; each of the others is hidden more often where one of those has its
    rarer states."""
    rng = np.random.default_rng([seed, 7])
    columns = list(rng.permutation(frame.columns))
    holes, wanted = frame.astype(object).copy(), share * len(columns) / (len(columns) - n_seen)
    for name in columns[n_seen:]:
        driver = frame[columns[rng.integers(n_seen)]]
        usual = (driver == driver.mode()[0]).to_numpy()
        low = wanted / (usual.mean() + 4 * (1 - usual.mean()))  # four times as often: wanted on average
        holes.loc[rng.random(len(frame)) < np.where(usual, low, np.minimum(4 * low, 0.95)), name] = None
    return holes


def voting(seed, sweeps):
    """Arcs between the votes of 435 members, 203 of whom did not vote on something; default prior, a picture next to the table."""
    import matplotlib.pyplot as plt

    from pgm_bma import load_dataset
    from pgm_bma.plotting import plot_arc_posteriors

    data, _ = load_dataset("voting")
    figure, axes = plt.subplots(1, 2, figsize=(16, 8), layout="constrained")
    ways = {"drop": "232 complete rows only", "augment": "all 435 rows, gaps sampled with the structures"}
    arcs = {}
    for ax, (how, title) in zip(axes, ways.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = OrderPosterior(
                missing=how,
                parameter_prior="consistent",
                sampler=GibbsSampler(max_sweeps=sweeps or 1024),
                random_state=seed,
            ).fit(data)
        arcs[how] = posterior.edge_posterior_
        plot_arc_posteriors(posterior.edge_posterior_, ax=ax, title=title)
    figure.savefig(results_folder() / "orders_gaps_voting.png", dpi=90)
    plt.close(figure)
    for parent, child in arcs["drop"].stack().index:
        pair = {how: float(edges.loc[parent, child]) for how, edges in arcs.items()}
        if max(pair.values()) >= 0.5:
            yield {"from": parent, "to": child, **pair}


def with_gaps(frame, share, seed):
    return frame.astype(object).mask(np.random.default_rng([seed, 5]).random(frame.shape) < share)


def states_of(model):
    return {cpd.variable: list(cpd.state_names[cpd.variable]) for cpd in model.get_cpds()}


def rms(one, two):
    """Root mean square difference of two arc matrices off the diagonal."""
    return float(np.sqrt(((one - two)[~np.eye(len(one), dtype=bool)] ** 2).mean()))


def truth_of(model, frame):
    names = list(frame.columns)
    truth = np.zeros((len(names), len(names)), dtype=int)
    for parent, child in model.edges():
        truth[names.index(parent), names.index(child)] = 1
    return truth


def fitted(kind, settings, X, y, seed):
    """(estimator, CPU seconds); warnings of convergence are reported by the result."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        estimator = kind(**COMMON, random_state=seed).set_params(**settings)
        estimator = estimator.fit(X) if y is None else estimator.fit(X, y)
        return estimator, time.process_time() - start


def judged(name, estimator, found, truth, seconds):
    arcs = estimator.edge_posterior_.to_numpy()
    off = ~np.eye(len(arcs), dtype=bool)
    return {
        "rows": name,
        "average precision": average_precision_score(truth[off], arcs[off]),
        "rms distance": rms(arcs, found["complete"]) if found else np.nan,
        "sweeps": estimator.n_sweeps_,
        "converged": estimator.converged_,
        "arcs apart": estimator.diagnostics_.attrs.get("n_apart", 0),
        "lost mass": estimator.lost_mass_,
        "families": len(estimator._average.table.log_prior),
        "CPU seconds": seconds,
        "CPU seconds a sweep": seconds / max(estimator.n_sweeps_ * estimator.n_chains, 1),
    }


if __name__ == "__main__":
    run(main)
