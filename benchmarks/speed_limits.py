"""Distance from the limit: every fit and prediction that keeps people waiting, against a peer and against a bound.

CPU seconds on one thread, each in a separate process (`_child`), compiled code in the cache. "peer": the package that a user
would take instead, on the same table in the same run; where it would take minutes, both run on the smaller table that is named.
"bound": the time that the machine needs for the bytes that must be read, at the speed of reading memory, or for the
multiplications of the counts, at the speed of its matrix product, both measured at the beginning. A ratio is ours / theirs:
against the bound it says how much is left to gain (below 1: less work than the plain products), against the peer below 1 is faster.

Parts run alone with ``--only``; each replaces its lines of the kept CSV.
"""

import math
import os
import time
import warnings

import numpy as np

from ._child import first_fit, in_child
from ._common import Skip, kept_rows, need, parser, print_line, replace_table, run, save_csv

LIMIT = 100  # CPU seconds of one line
PEER_LIMIT = 40  # of a peer: the ratio is then an upper bound
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

CLASSIFIERS = (
    "NaiveBayesClassifier",
    "AveragedNaiveBayesClassifier",
    "TANClassifier",
    "ForestAveragedClassifier",
    "KikuchiBayesClassifier",
    "FixedOrderClassifier",
    "OrderAveragedClassifier",
)
OTHERS = (
    "LatentClassClusterer",
    "EMAClusterer",
    "StructuralEMClusterer",
    "ForestAveragedClusterer",
    "OrderPosterior",
)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--only", default="", help=f"parts, separated by commas: {', '.join(PARTS)}")
    options.add_argument("--page", default="", help="write the table into this page (docs/evidence.md)")
    arguments = options.parse_args(argv)
    if any(os.environ.get(name) != "1" for name in THREADS[:2]):
        raise Skip(f"set {' and '.join(f'{name}=1' for name in THREADS[:2])} first: all is measured on one thread")
    warnings.simplefilter("ignore")
    chosen = arguments.only.split(",") if arguments.only else list(PARTS)
    machine = Machine()
    print(f"memory {machine.bytes_per_second / 1e9:.1f} GB/s, matrix product {machine.flops / 1e9:.1f} GFlop/s")
    speeds = {"GB/s": machine.bytes_per_second / 1e9, "GFlop/s": machine.flops / 1e9}
    for part in chosen:
        found = []
        for line in PARTS[part](machine, arguments.seed):
            found.append({"part": part, **line, **speeds})
            print_line({key: value for key, value in line.items() if value is not None})
            # a run that is stopped keeps what it has
            keep(found, arguments.out, "line", [one["line"] for one in found])
        lines = keep(found, arguments.out, "part", [part])
    print(f"\n{as_markdown(lines)}")
    if arguments.page:
        replace_table(arguments.page, as_markdown(lines))


def keep(found, out, column, measured):
    """Lines of the kept CSV with `found` in the place of those whose `column` is `measured`; they are saved and returned."""
    lines = kept_rows("speed_limits", out, column, measured) + found
    lines.sort(key=lambda line: list(PARTS).index(line["part"]))
    save_csv(lines, "speed_limits", out)
    return lines


def as_markdown(lines):
    """Return the table of docs/evidence.md."""
    said = ["| line | CPU s | MB | ours / peer | peer |", "|---|---|---|---|---|"]
    for line in lines:
        cpu = (
            digits(line["cpu"]) if line["ended"] == "whole" else line["ended"].split(";")[0].replace("refused", "error")
        )
        cells = [line["line"], cpu, digits(line.get("mb"), 0), digits(line.get("peer ratio")), line.get("peer") or ""]
        said.append(f"| {' | '.join(cells)} |")
    return "\n".join(said)


def digits(value, n=2):
    """Two significant digits; 0 for whole numbers."""
    if value is None or value != value:
        return ""
    if n == 0 or value >= 10:
        return f"{value:,.0f}"
    return f"{value:.{max(0, n - 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


class Machine:
    """Speed of one core, measured: reading memory, and multiplying matrices of doubles."""

    def __init__(self):
        block = np.ones(1 << 25)  # 268 MB, more than any cache
        factor = np.random.default_rng(0).random((1000, 1000))
        self.bytes_per_second = block.nbytes / cheapest(block.max)
        self.flops = 2 * 1000**3 / cheapest(lambda: factor @ factor)

    def reading(self, n_bytes, what):
        return {"bound": f"{what}: {n_bytes:.3g} bytes read", "bound s": n_bytes / self.bytes_per_second}

    def product(self, n_flops, what):
        return {"bound": f"{what}: {n_flops:.3g} flops", "bound s": n_flops / self.flops}


def cheapest(function, repeats=5):
    """Smallest CPU time of some calls."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def compared(what, work, aim=None, *, bound, peer=None, scale=1.0, at=None, limit=LIMIT):
    """One line: `work` in a child, its bound, and the peer.

    aim : (seconds, MB or None)     bound : what `Machine` says, or a function of what the child reports     scale : of the seconds,
    for costs of one row     peer : (name, function) on the same data, or a function of what the child reports that gives both
    at : a smaller size, (its name, work on it), where the peer is measured
    """
    told = in_child(work, limit)
    bound = bound(told) if callable(bound) and told["ended"] == "whole" else {} if callable(bound) else bound
    line = {"line": what, "cpu": scaled(told, scale), "mb": told.get("mb"), "ended": told["ended"]}
    line |= {"aim": None if aim is None else aim[0], "aim mb": None if aim is None else aim[1], **bound}
    if line["cpu"] is not None and "bound s" in line:
        line["bound ratio"] = line["cpu"] / line["bound s"]
    if callable(peer):
        peer = peer(told) if told["ended"] == "whole" else None
    if peer is None:
        return line
    name, theirs = peer
    ours = told if at is None else in_child(at[1], limit)
    other = in_child(theirs, PEER_LIMIT)
    line["peer"] = name + (f", at {at[0]}" if at else "")
    if other["ended"].startswith("over"):
        other = {"ended": "whole", "cpu": float(PEER_LIMIT)}
        line["peer"] += f", stopped at {PEER_LIMIT} s"
    if other["ended"] == "whole" and ours["ended"] == "whole":
        line |= {"peer s": scaled(other, scale), "peer ratio": ours["cpu"] / other["cpu"]}
    return line


def scaled(told, scale):
    return told["cpu"] * scale if told["ended"] == "whole" else None


# ------------------------------------------------------------------------------------------------------------- ours


def ours(name, X, y=None, **parameters):
    """A fit of one of ours, compiled before; what it ran is reported."""
    import pgm_bma

    make = getattr(pgm_bma, name)
    small = (X.iloc[:200, :6],) if y is None else (X.iloc[:200, :6], y.iloc[:200])
    make(**parameters).fit(*small)

    def work():
        fitted = make(**parameters).fit(*((X,) if y is None else (X, y)))
        starts = getattr(fitted, "starts_", None)
        if starts is None:
            return {}
        updates = starts["em_updates"] if "em_updates" in starts else starts["n_iter"]
        return {"updates": int(updates.sum()), "starts": len(starts)}

    return work


def one_hot(X):
    from sklearn.preprocessing import OneHotEncoder

    return OneHotEncoder().fit_transform(X)


# ------------------------------------------------------------------------------------------------------------ peers


def categorical_nb(X, y):
    from sklearn.naive_bayes import CategoricalNB
    from sklearn.preprocessing import OrdinalEncoder

    return "OrdinalEncoder + CategoricalNB", lambda: CategoricalNB().fit(OrdinalEncoder().fit_transform(X), y) and None


def logistic_regression(X, y):
    from sklearn.linear_model import LogisticRegression

    return "one-hot + LogisticRegression", lambda: LogisticRegression(max_iter=1000).fit(one_hot(X), y) and None


def catboost(X, y):
    try:
        make = need("catboost").CatBoostClassifier
    except Skip as reason:
        print(f"without CatBoost: {reason}")
        return None
    texts = X.astype(str)

    def work():
        make(thread_count=1, verbose=False, allow_writing_files=False, cat_features=list(texts.columns)).fit(texts, y)

    return "CatBoost, its defaults", work


def stepmix(X, n_timed=10):
    """StepMix at as many updates as ours ran in all: some are timed, the rest follows from them."""
    try:
        make = need("stepmix.stepmix").StepMix
    except Skip as reason:
        print(f"without StepMix: {reason}")
        return None
    codes = np.column_stack([X[name].cat.codes for name in X])

    def peer(told):
        def work():
            settings = {"n_init": 1, "abs_tol": 0, "rel_tol": 0, "progress_bar": 0, "random_state": 0}
            model = make(3, measurement="categorical", max_iter=n_timed, **settings)
            began = time.process_time()
            model.fit(codes)
            return {"cpu": (time.process_time() - began) * told["updates"] / n_timed}

        return f"StepMix, as many updates ({told['updates']})", work

    return peer


def pyagrum_tan(X, y):
    import pyagrum.skbn as skbn
    from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor

    def work():
        settings = {"learningMethod": "TAN", "prior": "Smoothing", "priorWeight": 1}
        model = skbn.BNClassifier(type_processor=DiscreteTypeProcessor(), **settings)
        model.fit(X.astype(str), y)

    return "pyAgrum BNClassifier('TAN')", work


def pgmpy_tan(X, y):
    """The tree of pgmpy, with its tables."""
    from pgmpy.estimators import TreeSearch
    from pgmpy.models import DiscreteBayesianNetwork

    table = X.assign(y=y.to_numpy())

    def work():
        tree = TreeSearch(table, root_node=X.columns[0]).estimate(
            estimator_type="tan", class_node="y", show_progress=False
        )
        DiscreteBayesianNetwork(tree.edges()).fit(table)

    return "pgmpy TreeSearch('tan')", work


def pyagrum_greedy(X):
    import pyagrum

    def work():
        learner = pyagrum.BNLearner(X.astype(str))
        learner.useScoreBDeu()
        learner.useGreedyHillClimbing()
        learner.learnBN()

    return "pyAgrum greedy hill climbing (one network)", work


# ------------------------------------------------------------------------------------------------------------ parts


def prediction(machine, seed):
    """A row and class: the products of the elimination of n nodes are n^3 / 3 multiplications and as many additions."""
    from pgm_bma import ForestAveragedClassifier

    for n_columns, n_rows, aim in ((50, 400, 1e-4), (500, 100, 5e-3)):
        X, y = binary_table(1000, n_columns, seed)
        fitted = ForestAveragedClassifier().fit(X, y)
        rows = X.head(n_rows)
        fitted.predict_proba(rows.head(20))
        yield compared(
            f"forest prediction of a row and class, {n_columns} columns",
            lambda f=fitted, r=rows: f.predict_proba(r) is None,
            (aim, None),
            scale=1 / n_rows / 2,
            bound=machine.product(2 * n_columns**3 / 3, "elimination"),
            peer=catboost_prediction(X, y, rows),
        )


def catboost_prediction(X, y, rows):
    found = catboost(X.head(300), y.head(300))
    if found is None:
        return None
    from catboost import CatBoostClassifier

    texts = rows.astype(str)
    settings = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "iterations": 200}
    model = CatBoostClassifier(cat_features=list(texts.columns), **settings).fit(X.astype(str), y)

    def work():
        model.predict_proba(texts, thread_count=1)

    return "CatBoost of 200 trees", work


def binary_table(n_rows, n_columns, seed):
    """Two classes, columns of two states, every third a noisy copy of its left neighbour."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    X = np.where(rng.random((n_rows, n_columns)) < 0.6, y[:, None], rng.integers(0, 2, (n_rows, n_columns)))
    copies = X[:, 1::3]
    X[:, 1::3] = np.where(rng.random(copies.shape) < 0.7, X[:, : n_columns - 1 : 3][:, : copies.shape[1]], copies)
    frame = pd.DataFrame({f"x{j}": pd.Categorical.from_codes(X[:, j], ["no", "yes"]) for j in range(n_columns)})
    return frame, pd.Series(np.where(y, "b", "a"), name="y")


def forest_clusters(machine, seed):
    """An update counts all pairs of states in every cluster: 2 rows states^2 / 2 clusters flops as products of indicators."""
    for n_rows, n_columns, aim in ((50_000, 50, (20.0, None)), (10_000, 20, None), (10_000, 40, None)):
        X = table(n_rows, n_columns, seed)[0]
        yield compared(
            f"ForestAveragedClusterer, {n_rows:,} x {n_columns}, 3 clusters",
            ours("ForestAveragedClusterer", X, n_clusters=3, random_state=0),
            aim,
            bound=lambda told, size=(n_rows, n_columns): pair_products(machine, told, *size),
            peer=stepmix(X) if n_rows == 50_000 else None,
        )


def pair_products(machine, told, n_rows, n_columns, n_clusters=3, n_states=3):
    flops = told["updates"] * n_rows * (n_columns * n_states) ** 2 * n_clusters
    return machine.product(flops, f"pair counts of {told['updates']} updates")


def latent_classes(machine, seed):
    """An update is two products with the indicators: 4 rows states clusters flops."""
    X = table(50_000, 50, seed)[0]
    easier = clear_table(50_000, 50, seed)
    for name, aim in (("LatentClassClusterer", 4.0), ("EMAClusterer", 5.0)):
        for what, frame in (("dependent columns", X), ("clear clusters", easier)):
            n_states = sum(frame[column].cat.categories.size for column in frame)

            def bound(told, n_states=n_states):
                flops = told["updates"] * 4 * 50_000 * n_states * 3
                return machine.product(flops, f"products of {told['updates']} updates")

            yield compared(
                f"{name}, 50,000 x 50, 3 clusters, 30 starts, {what}",
                ours(name, frame, n_clusters=3, random_state=0),
                (aim, None),
                bound=bound,
                peer=stepmix(frame),
            )


def clear_table(n_rows, n_columns, seed):
    """Rows of a latent-class model of 3 clusters, columns of two states."""
    import pandas as pd

    rng = np.random.default_rng(seed)
    labels, shares = rng.integers(0, 3, n_rows), rng.beta(5, 5, (n_columns, 3))
    cells = rng.random((n_rows, n_columns)) < shares[:, labels].T
    return pd.DataFrame({f"x{j}": pd.Categorical.from_codes(cells[:, j].astype(int), [0, 1]) for j in range(n_columns)})


def many_rows(machine, seed):
    """A table of codes must be read once: a byte per cell."""
    X, y = table(1_000_000, 50, seed)
    bound = machine.reading(1_000_000 * 51, "the codes, once")
    for name, peer, n_rows, aim in (
        ("NaiveBayesClassifier", categorical_nb, 50_000, None),
        ("AveragedNaiveBayesClassifier", categorical_nb, 50_000, None),
        ("TANClassifier", pyagrum_tan, 5_000, (5.0, 600.0)),
        ("ForestAveragedClassifier", pgmpy_tan, 5_000, (5.0, 600.0)),
    ):
        some = X.head(n_rows), y.head(n_rows)
        yield compared(
            f"{name}, 1,000,000 x 50, 3 classes",
            ours(name, X, y),
            aim,
            bound=bound,
            peer=peer(*some),
            at=(f"{n_rows:,} rows", ours(name, *some)),
        )
    some = X.head(50_000), y.head(50_000)
    yield compared(
        "pair counts of 3 soft clusters (structural EM, forest clustering), 1,000,000 x 50",
        soft_pairs(X, seed),
        (5.0, 600.0),
        bound=machine.product(1_000_000 * 150**2 * 3, "products of indicators"),
        peer=("numpy: products of indicators", indicator_products(some[0], seed)),
        at=("50,000 rows", soft_pairs(some[0], seed)),
    )
    for parameters, aim in (({"weights": "counting"}, (5.0, 600.0)), ({}, None)):
        said = ", ".join(f"{key}={value!r}" for key, value in parameters.items())
        yield compared(
            f"KikuchiBayesClassifier({said}), 1,000,000 x 50, 3 classes",
            ours("KikuchiBayesClassifier", X, y, **parameters),
            aim,
            bound=bound,
            peer=logistic_regression(*some),
            at=("50,000 rows", ours("KikuchiBayesClassifier", *some, **parameters)),
        )
    yield compared(
        "LatentClassClusterer, 1,000,000 x 50, 3 clusters, 30 starts, dependent columns",
        ours("LatentClassClusterer", X, n_clusters=3, random_state=0),
        bound=lambda told: machine.product(
            told["updates"] * 4 * 1_000_000 * 150 * 3, f"products of {told['updates']} updates"
        ),
        peer=stepmix(X, n_timed=2),
    )


def indicator_products(X, seed):
    """Pair counts as a user would write them: a product per cluster."""
    indicators = np.asarray(one_hot(X).todense(), dtype=float)
    q = np.random.default_rng(seed).dirichlet(np.ones(3), len(indicators))

    def work():
        for c in range(3):
            (indicators * q[:, [c]]).T @ indicators

    return work


def soft_pairs(X, seed):
    from pgm_bma.foundation.numbers.pairs import grouped_pair_counts, make_pair_groups

    codes = np.column_stack([X[name].cat.codes for name in X])
    q = np.random.default_rng(seed).dirichlet(np.ones(3), len(codes))
    cards = np.full(codes.shape[1], 3)

    def work(n_rows=None):
        grouped_pair_counts(make_pair_groups(codes[:n_rows], cards), q[:n_rows])

    work(100)
    return work


def many_columns(machine, seed, n_columns=500):
    """All pairs of states in every class are counted at least once: 2 rows states^2 / 2 classes flops."""
    X, y = table(500, n_columns, seed)
    counted = machine.product(500 * (3 * n_columns) ** 2 * 3, "pair counts, once")
    for name, aim, peer in (
        ("TANClassifier", None, lambda: categorical_nb(X, y)),
        ("ForestAveragedClassifier", None, lambda: categorical_nb(X, y)),
        ("KikuchiBayesClassifier", (5.0, None), lambda: logistic_regression(X, y)),
        ("StructuralEMClusterer", (20.0, None), lambda: stepmix(X, n_timed=5)),
        ("ForestAveragedClusterer", None, None),
    ):
        if n_columns > 500 and name.startswith("Forest"):
            continue
        is_clusterer = name.endswith("Clusterer")
        made = {"n_clusters": 3, "random_state": 0} if is_clusterer else {}
        yield compared(
            f"{name}, 500 x {n_columns:,}",
            ours(name, X, None if is_clusterer else y, **made),
            aim if n_columns == 500 else None,
            bound=counted,
            peer=None if peer is None else peer(),
            limit=LIMIT if n_columns == 500 else 3 * LIMIT,
        )


def very_many_columns(machine, seed):
    """The same with 2,000, where averaging over forests would take an hour."""
    yield from many_columns(machine, seed, 2000)


def many_states(machine, seed):
    """A column of thousands of states: no table of all pairs of them is made; what needs one refuses."""
    import pandas as pd

    X, y = table(100_000, 19, seed)
    X = X.assign(many=pd.Categorical(np.random.default_rng(seed).integers(0, 10_000, len(X))))
    for name in CLASSIFIERS[2:5] + OTHERS[2:4]:
        is_clusterer = name.endswith("Clusterer")
        yield compared(
            f"{name}, 100,000 x 20, one column of 10,000 states",
            ours(name, X, None if is_clusterer else y, **({"n_clusters": 3} if is_clusterer else {})),
            bound=machine.reading(100_000 * 22, "the codes, once"),
        )


def many_classes(machine, seed):
    """19 classes x 35 columns x 500 rows; all pairs of states in every class are counted once."""
    X, y = table(500, 35, seed, n_classes=19)
    counted = machine.product(500 * (3 * 35) ** 2 * 19, "pair counts, once")
    for name, parameters, peer in (
        ("KikuchiBayesClassifier", {}, logistic_regression),
        ("KikuchiBayesClassifier", {"level": 3}, logistic_regression),
        ("OrderAveragedClassifier", {"random_state": 0}, catboost),
    ):
        said = ", ".join(f"{key}={value}" for key, value in parameters.items() if key != "random_state")
        what = f"{name}({said}), 500 x 35, 19 classes"
        yield compared(what, ours(name, X, y, **parameters), (5.0, None), bound=counted, peer=peer(X, y))


def structures(machine, seed):
    """Structural EM on many rows, and the structure learners: a table must be read once for every set of parents that is scored."""
    X = table(50_000, 50, seed)[0]
    yield compared(
        "StructuralEMClusterer, 50,000 x 50, 3 clusters",
        ours("StructuralEMClusterer", X, n_clusters=3, random_state=0),
        bound=lambda told: machine.product(
            told["updates"] * 4 * 50_000 * 450 * 3, f"products of {told['updates']} updates"
        ),
        peer=stepmix(X),
    )
    X, y = table(1000, 20, seed)
    for name, data, peer in (
        ("OrderPosterior", (X,), pyagrum_greedy(X)),
        ("FixedOrderClassifier", (X, y), catboost(X, y)),
        ("OrderAveragedClassifier", (X, y), catboost(X, y)),
    ):
        sets = sum(np.prod([20 - i for i in range(size)]) / np.prod(np.arange(1, size + 1)) for size in range(5))
        yield compared(
            f"{name}, 1,000 x 20",
            ours(name, *data, random_state=0) if name != "FixedOrderClassifier" else ours(name, *data),
            bound=machine.reading(sets * 1000, f"a table for each of {sets:.0f} sets of at most 4 columns"),
            peer=peer,
        )


def table(n_rows, n_columns, seed, n_classes=3):
    """A frame of categoricals and the clusters that its rows come from."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, n_classes, n_rows)
    weights = rng.dirichlet(np.full(3, 2.0), (n_columns, n_classes)).cumsum(axis=2)
    columns = {}
    for j in range(n_columns):
        states = (rng.random(n_rows)[:, None] > weights[j, cluster, :2]).sum(axis=1).astype(np.int8)
        if j % 2:
            states = np.where(rng.random(n_rows) < 0.5, columns[f"x{j - 1}"].codes, states)
        columns[f"x{j}"] = pd.Categorical.from_codes(states, categories=["low", "middle", "high"])
    return pd.DataFrame(columns), pd.Series(cluster.astype(str), name="y")


def imported(machine, seed):
    """A first fit in a new process against the imports that it cannot do without."""
    for name in ("EMAClusterer", "KikuchiBayesClassifier", "StructuralEMClusterer"):
        found = first_fit(name, {}, 5)
        yield {
            "line": f"{name}().fit in a new process, above its imports",
            "cpu": found["above base"],
            "aim": 0.5,
            "ended": "whole",
            "peer": "import numba, pandas, sklearn.base",
            "peer s": found["base"],
            "peer ratio": found["above base"] / found["base"],
        }


PARTS = {
    "prediction": prediction,
    "forest_clusters": forest_clusters,
    "latent_classes": latent_classes,
    "many_rows": many_rows,
    "many_columns": many_columns,
    "very_many_columns": very_many_columns,
    "many_states": many_states,
    "many_classes": many_classes,
    "structures": structures,
    "imported": imported,
}


if __name__ == "__main__":
    run(main)
