"""Structural EM: one run on nursery, all pair scores against matrix products, the compiled E step against plain numpy."""

import warnings

import numpy as np

from pgm_bma import StructuralEMClusterer, load_dataset
from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.search import family_scores, make_pair_source, maximum_branching
from pgm_bma.augmented.structures import AugmentedModel
from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.foundation.tables.table import encode

from ._common import best_of, best_of_each, parser, print_table, run, save_csv


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=None, help="repetitions, the best counts (quick 5, full 20)")
    options = arguments.parse_args(argv)
    repeats = options.repeats or (20 if options.full else 5)
    rows = [*whole_runs(options.seed, repeats), pair_scores(options.seed, repeats)]
    rows += [branching(options.seed, repeats), e_step(options.seed, repeats), *missing_cells(options.seed, repeats)]
    print_table(rows, "times in milliseconds, best of several; a ratio is ours / peer")
    save_csv(rows, "speed_structural_em", options.out)


def whole_runs(seed, repeats):
    X = load_dataset("nursery")[0].drop(columns="class")
    ways = {
        "default, one start": {"n_init": 1},
        "default, all starts": {},
        "paper, EM": {"preset": "paper"},
        "paper, BC+EM": {"preset": "paper", "parameters": "bound_collapse"},
    }
    for name, how in ways.items():
        clusterer = StructuralEMClusterer(5, random_state=seed, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds = best_of(lambda c=clusterer: c.fit(X), 2 + min(repeats, 3))
        starts = clusterer.get_params()["n_init"] if "preset" not in how else 1
        row = {"what": f"nursery, 5 clusters: {name}", "ours_ms": 1e3 * seconds, "starts": starts}
        yield {**row, "aim": "one run at most 2000 ms" if starts == 1 else ""}


def pair_scores(seed, repeats, n=8000, width=20, k=4):
    rng = np.random.default_rng(seed)
    cards = np.full(width, 2)
    cases = anb.make_cases(rng.integers(0, 2, (n, width)), cards)
    flags, source = indicators(cases.codes, cards), make_pair_source(cases)
    weights = rng.dirichlet(np.ones(k), n)
    seconds = best_of_each(
        {
            "ours": lambda: family_scores(cases, weights, source=source),
            "peer": lambda: [flags.T @ (flags * weights[:, c : c + 1]) for c in range(k)],
        },
        4 * repeats,
    )
    return _row(f"all pair scores, {n} x {width}, {k} clusters", seconds, "one matrix product per cluster", "at most 2")


def branching(seed, repeats, n=40):
    """The best structure from the scores of all pairs: compiled against networkx."""
    import networkx as nx

    rng = np.random.default_rng(seed)
    scores = np.full((n, n + 1), -1.0)
    scores[:, 1:] = rng.normal(size=(n, n))
    scores[:, 1:] += scores[:, 1:].T.copy()

    def peer():
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n))
        gains = scores[:, 1:] - scores[:, :1]
        graph.add_weighted_edges_from(
            (j, i, gains[i, j]) for i in range(n) for j in range(n) if i != j and gains[i, j] > 0
        )
        return nx.maximum_branching(graph)

    maximum_branching(scores)
    seconds = best_of_each({"ours": lambda: maximum_branching(scores), "peer": peer}, min(repeats, 3))
    return _row(f"best structure of {n} columns from pair scores", seconds, "networkx maximum_branching", "")


def e_step(seed, repeats):
    """Expected counts of one EM update on nursery: the compiled sweep over joined columns and its plain version."""
    X = load_dataset("nursery")[0].drop(columns="class")
    read = encode(X)
    rng = np.random.default_rng(seed)
    parents = [-1, 0, -1, 2, -1, 4, -1, -1]
    cases = anb.make_cases(read.codes, read.schema.cardinalities)
    model = AugmentedModel.build(cases, parents, anb.Prior())
    parameters = anb.random_parameters(model.layout, 5, rng)
    above = np.where(model.parents >= 0, cases.codes[:, np.maximum(model.parents, 0)], 0)
    cells = model.layout.offsets[:-1] + above * model.layout.cardinalities + cases.codes
    flat = np.zeros((len(cells), model.layout.offsets[-1]))
    np.put_along_axis(flat, cells, 1.0, axis=1)

    def plain():
        joint = flat @ np.log(parameters.table) + np.log(parameters.class_probs)
        joint -= joint.max(axis=1, keepdims=True)
        np.exp(joint, out=joint)
        joint /= joint.sum(axis=1, keepdims=True)
        return flat.T @ joint

    np.testing.assert_allclose(model.e_step(parameters)[1].table, plain(), rtol=1e-9)
    seconds = best_of_each({"ours": lambda: model.e_step(parameters), "peer": plain}, 4 * repeats)
    return _row("one E step, nursery, 5 clusters, 3 arcs", seconds, "one-hot matrix products in numpy", "")


def missing_cells(seed, repeats):
    """One E step with missing cells: passes up and down each row's forest against the junction tree of any network."""
    rng = np.random.default_rng(seed)
    X = load_dataset("nursery")[0].drop(columns="class")
    codes = np.array(encode(X).codes, dtype=np.int64)[rng.permutation(len(X))[:3000]]
    cards = encode(X).schema.cardinalities
    parents = np.array([-1, 0, 1, 2, -1, 4, 5, 6])
    families = ((), *[(0,) if p < 0 else (0, int(p) + 1) for p in parents])
    for share in (0.05, 0.3):
        holes = codes.copy()
        holes[rng.random(holes.shape) < share] = -1
        model = AugmentedModel.build(anb.make_cases(holes, cards), parents, anb.Prior())
        parameters = anb.random_parameters(model.layout, 5, rng)
        tables = [parameters.class_probs[None]]
        tables += [t.reshape(-1, t.shape[-1]) for t in anb.unpack_tables(parameters.table, model.layout)]
        everything = np.array([5, *cards])
        peer = general.GeneralModel(
            general.with_cluster(holes), np.ones(len(holes)), everything, families, anb.Prior(), 3
        )
        np.testing.assert_allclose(model.e_step(parameters)[0], peer.e_step(tables)[0], rtol=1e-10)
        work = {"ours": lambda m=model, p=parameters: m.e_step(p), "peer": lambda m=peer, t=tables: m.e_step(t)}
        seconds = best_of_each(work, repeats)
        yield _row(f"one E step, 3000 rows, {share:.0%} cells missing", seconds, "junction tree of network_em", "")


def _row(what, seconds, peer, aim):
    ours, theirs = seconds["ours"], seconds["peer"]
    row = {"what": what, "ours_ms": 1e3 * ours, "peer": peer, "peer_ms": 1e3 * theirs, "ratio": ours / theirs}
    return {**row, "aim": f"ratio {aim}" if aim else ""}


if __name__ == "__main__":
    run(main)
