"""``pgm-bma demo``: the main jobs on embedded data, in a minute; models, pictures and labels go to one folder.

A method joins by a function ``(out) -> None`` in SECTIONS that prints what it found and calls `_wrote` for its files.
"""

import base64
import io
import os
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial

import pandas as pd

from pgm_bma.commands.output import Folder, write_csv
from pgm_bma.commands.structure import arc_table
from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.report.page import Report


def run(out="pgm-bma-demo", overwrite=False):
    """Run all sections, writing into folder `out`; two at a time where there are two processors, printed in order."""
    folder = Folder(out, overwrite)
    out = folder.path
    folder.check(ours=_demo_files(out))
    folder.prepare()
    began = time.perf_counter()
    print(
        "The main jobs on embedded data, half a minute; the first run also compiles, which takes most of a minute.",
        flush=True,
    )
    with ProcessPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        texts = []
        for text in pool.map(partial(_printed, out=out), SECTIONS):
            texts.append(text)
            print(text, end="", flush=True)
    folder.wrote(*sorted(_demo_files(out)))
    folder.report(_page(out, texts))
    folder.record(command="demo", seconds=round(time.perf_counter() - began, 3))
    print(f"\nAll files are in {out}/ ({time.perf_counter() - began:.0f} s); read {out / 'report.html'}.\n{NEXT}")


NEXT = """
Where to look next:
  pgm-bma cluster FILE.csv --clusters 2:6            clusters of your own table, with a report
  pgm-bma classify FILE.csv --target COLUMN --cv 10  a classifier, cross-validated
  pgm-bma compare FILE.csv --target COLUMN           all classifiers in one table
  pgm-bma structure FILE.csv                         arcs with posterior probabilities
  README.md, docs/ and tutorials/ for the same in Python"""


def _demo_files(out):
    return {path.name for path in out.glob("*") if path.name.startswith(PREFIXES)}


def _page(out, texts):
    """The report: what every section printed, and its pictures."""
    report = Report("The main jobs on embedded data", "pgm-bma demo")
    for section, text in zip(SECTIONS, texts):
        title, _, *lines = text.strip().splitlines()
        written = lines.pop() if lines[-1].startswith("wrote ") else ""
        report.code(title, [(f"{section.__doc__}", "\n".join(lines).strip())])
        for path in sorted(out.glob("*.png")):
            if path.name in written:
                picture = base64.b64encode(path.read_bytes()).decode()
                report.figure(path.stem.replace("-", " "), f"data:image/png;base64,{picture}", path.name)
    report.code("Where to look next", [("In a terminal:", NEXT.partition(":")[2].strip("\n"))])
    return report


def _printed(section, out):
    """Run a section and return what it prints."""
    text = io.StringIO()
    with redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore", category=FutureWarning)
        section(out)
    return text.getvalue()


def averaged_naive_bayes(out):
    """Class probabilities averaged over all selective naive Bayes structures."""
    from sklearn.model_selection import cross_val_predict, cross_validate

    import pgm_bma
    from pgm_bma.plotting import plot_relevance

    frame, target = pgm_bma.load_dataset("voting")
    X, y = frame.drop(columns=target), frame[target]
    _title(
        "Classify: the default, and averaged naive Bayes",
        f"voting, {len(X)} members of congress, {X.shape[1]} votes, missing votes kept",
    )
    rows = []
    methods = ["AdditiveBayes", "ForestAveraged", "TAN", "AveragedNaiveBayes", "NaiveBayes"]
    for name in (f"{method}Classifier" for method in methods):
        found = cross_validate(getattr(pgm_bma, name)(), X, y, cv=10, scoring=("accuracy", "neg_log_loss"))
        accuracy, log_loss = found["test_accuracy"], -found["test_neg_log_loss"]
        rows.append((name, f"{accuracy.mean():.3f}", f"{accuracy.std(ddof=1) / 10**0.5:.3f}", f"{log_loss.mean():.3f}"))
    print(_table(["classifier", "accuracy (10-fold)", "standard error", "log loss"], rows))

    classifier = pgm_bma.AveragedNaiveBayesClassifier().fit(X, y)
    ranking = classifier.arc_posterior_.sort_values(ascending=False)
    print("\nP(party -> vote | data), the least certain arcs:")
    print(_table(["vote", "arc posterior"], [(name, f"{p:.4f}") for name, p in ranking.tail(4).items()]))
    predicted = cross_val_predict(pgm_bma.AveragedNaiveBayesClassifier(), X, y, cv=10)
    table = pd.DataFrame({"true": y, "predicted": predicted})
    write_csv(out / "voting-predictions.csv", table, index=True, index_label="row")
    pgm_bma.write_bif(classifier.model_, out / "voting-averaged-naive-bayes.bif")
    _picture(plot_relevance(classifier.arc_posterior_), out / "voting-arc-posteriors.png")
    _wrote(out, "voting-predictions.csv", "voting-averaged-naive-bayes.bif", "voting-arc-posteriors.png")


def forest_average(out):
    """Arcs between columns with their posterior, summed over all forest-augmented naive Bayes structures."""
    import pgm_bma
    from pgm_bma.plotting import plot_network

    frame, target = pgm_bma.load_dataset("zoo")
    X, y = frame.drop(columns=target), frame[target]
    _title("Classify: the sum over all forests", f"zoo, {len(X)} animals, {X.shape[1]} traits, {y.nunique()} classes")
    classifier = pgm_bma.ForestAveragedClassifier().fit(X, y)
    arcs = arc_table(classifier.edge_posterior_)
    print(
        f"log evidence of all structures together: {classifier.log_evidence_:.1f} nats; the surest arcs between traits:"
    )
    print(_table(["from", "to", "posterior"], [(a, b, f"{p:.3f}") for a, b, p in arcs.head(6).itertuples(index=False)]))
    graph = classifier.edge_graph_
    graph.remove_edges_from([arc for arc in graph.edges if graph.edges[arc]["posterior"] < 0.2])
    graph.remove_nodes_from([classifier.target_name_])
    graph.remove_nodes_from([node for node, degree in graph.degree() if degree == 0])
    pgm_bma.write_bif(classifier.model_, out / "zoo-best-forest.bif")
    _picture(plot_network(graph), out / "zoo-forest-arcs.png")
    _wrote(out, "zoo-best-forest.bif", "zoo-forest-arcs.png")


def kikuchi_regions(out):
    """List the columns that say more about the class together than apart."""
    import pgm_bma
    from pgm_bma.plotting import plot_interactions

    frame, target = pgm_bma.load_dataset("tic-tac-toe")
    X, y = frame.drop(columns=target), frame[target]
    _title("Classify: Kikuchi-Bayes", f"tic-tac-toe, {len(X)} final boards, {X.shape[1]} squares, did x win?")
    test = X.sample(frac=0.3, random_state=0).index
    train = X.index.difference(test)
    rows = []
    for title, parameters in (
        ("naive Bayes", {"preset": "NB"}),
        ("pairs, counting numbers", {"preset": "K2"}),
        ("pairs, learned weights", {"level": 2}),
        ("triples, learned weights", {"level": 3}),
    ):
        classifier = pgm_bma.KikuchiBayesClassifier(**parameters, random_state=0).fit(X.loc[train], y.loc[train])
        proba = classifier.predict_proba(X.loc[test])
        loss = pgm_bma.evaluation.capped_log_loss(y.loc[test], proba, classifier.classes_)
        accuracy = classifier.score(X.loc[test], y.loc[test])
        rows.append((title, len(classifier.initial_regions_), f"{accuracy:.3f}", f"{loss:.3f}"))
    print(_table(["model", "regions", "accuracy (30 % held out)", "log loss"], rows))

    weights = classifier.term_weights_[[len(region) == 4 for region in classifier.term_weights_.index]]
    strongest = weights.sort_values(key=abs, ascending=False).head(8)
    print("\nStrongest triples (the eight lines of the board are tl-tm-tr, ..., bl-mm-tr):")
    squares = [" ".join(sorted(name for name in region if name != target)) for region in strongest.index]
    print(_table(["squares", "weight"], [(names, f"{w:.2f}") for names, w in zip(squares, strongest)]))
    strength = classifier.interaction_strength_
    own = dict(zip(strength.columns, strength.to_numpy().diagonal()))
    _picture(plot_interactions(strength, relevance=own), out / "tic-tac-toe-interactions.png")
    write_csv(out / "tic-tac-toe-interactions.csv", strength, index=True, index_label="square")
    tree = pgm_bma.KikuchiBayesClassifier(cycles="gated", random_state=0).fit(X, y)
    pgm_bma.write_bif(tree.to_bayesian_network(), out / "tic-tac-toe-kikuchi-tree.bif")
    _wrote(out, "tic-tac-toe-interactions.csv", "tic-tac-toe-interactions.png", "tic-tac-toe-kikuchi-tree.bif")


def ema_clustering(out):
    """Clusters averaged over all selective naive Bayes structures, with the relevance of every column."""
    import pgm_bma
    from pgm_bma.metrics import clustering_accuracy
    from pgm_bma.plotting import plot_cluster_profiles, plot_relevance

    frame, target = pgm_bma.load_dataset("voting")
    X = frame.drop(columns=target)
    _title("Cluster: EMA", f"voting, {len(X)} members of congress, {X.shape[1]} votes, the party left out")
    ema = pgm_bma.EMAClusterer(n_clusters=range(1, 7), n_init=10, random_state=0).fit(X)
    tried = ", ".join(f"{k}: {s:.0f}" for k, s in ema.n_clusters_path_[["n_clusters", "score"]].itertuples(index=False))
    print(f"evidence by number of clusters: {tried} -> {ema.n_clusters_} clusters")
    two = pgm_bma.EMAClusterer(n_clusters=2, n_init=10, random_state=0).fit(X)
    print(f"two clusters against the two parties: accuracy {clustering_accuracy(frame[target], two.labels_):.3f}")
    relevance = pd.DataFrame({"arc": two.arc_posterior_, "I_P": two.cluster_dependence_}).sort_values("I_P")
    rows = [(name, f"{row.arc:.3f}", f"{row.I_P:.3f}") for name, row in relevance[::-1].iterrows()]
    print("\nRelevance of the votes for two clusters (P(arc) at the expected counts; I_P in nats):")
    print(_table(["vote", "P(arc)", "I_P"], [*rows[:4], ("...", "", ""), *rows[-3:]]))
    table = pd.DataFrame({"cluster": two.labels_, "party": frame[target]})
    write_csv(out / "voting-ema-labels.csv", table, index=True, index_label="row")
    pgm_bma.write_bif(two.model_, out / "voting-ema.bif")
    _picture(plot_relevance(two.cluster_dependence_), out / "voting-ema-relevance.png")
    _picture(plot_cluster_profiles(two.model_), out / "voting-ema-profiles.png")
    _wrote(out, "voting-ema-labels.csv", "voting-ema.bif", "voting-ema-relevance.png", "voting-ema-profiles.png")


def structural_em(out):
    """Clusters, and which columns depend on each other inside them."""
    import pgm_bma
    from pgm_bma.plotting import plot_network

    frame, target = pgm_bma.load_dataset("voting")
    X = frame.drop(columns=target)
    _title("Cluster: structural EM", f"voting, {len(X)} members of congress, {X.shape[1]} votes, the party hidden")
    clusterer = pgm_bma.StructuralEMClusterer(n_clusters=2, n_init=6, random_state=0).fit(X)
    crossed = pd.crosstab(frame[target], clusterer.labels_)
    print(_table(["party", *(f"cluster {k}" for k in crossed)], [(party, *row) for party, row in crossed.iterrows()]))
    alone = pgm_bma.LatentClassClusterer(n_clusters=2, n_init=6, random_state=0).fit(X)
    gain = clusterer.cheeseman_stutz_ - alone.cheeseman_stutz_
    arcs = [arc for arc in clusterer.causal_graph_.edges if clusterer.cluster_name not in arc]
    print(
        f"\n{len(arcs)} arcs between votes raise the log evidence (Cheeseman-Stutz) by {gain:.1f} nats over none; some:"
    )
    print(_table(["vote", "depends on, inside a cluster"], [(child, parent) for parent, child in arcs[:6]]))
    graph = clusterer.to_networkx()
    graph.remove_node(clusterer.cluster_name)
    graph.remove_nodes_from([node for node, degree in list(graph.degree()) if degree == 0])
    labels = pd.DataFrame({"cluster": clusterer.labels_, target: frame[target]})
    write_csv(out / "voting-structural-em-labels.csv", labels, index=True, index_label="row")
    pgm_bma.write_bif(clusterer.model_, out / "voting-structural-em.bif")
    _picture(plot_network(graph), out / "voting-structural-em.png")
    _wrote(out, "voting-structural-em-labels.csv", "voting-structural-em.bif", "voting-structural-em.png")


def order_average(out):
    """Class and arcs averaged over all networks of the columns, exactly over all orders."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    import pgm_bma
    from pgm_bma.plotting import plot_network

    frame, target = pgm_bma.load_dataset("breast-wisc")
    X, y = frame.drop(columns=target), frame[target]
    _title("Classify: average over networks", f"breast-wisc, {len(X)} cell samples, {X.shape[1]} traits of 10 grades")
    states = {column: sorted(X[column].unique(), key=int) for column in X}
    train, test, y_train, y_test = train_test_split(X, y, train_size=200, stratify=y, random_state=0)
    gaps = test.mask(np.random.default_rng(0).random(test.shape) < 0.15)
    rows = []
    for name, settings in (("OrderAveragedClassifier", {"random_state": 0}), ("TANClassifier", {})):
        classifier = getattr(pgm_bma, name)(state_names=states, **settings).fit(train, y_train)
        rows.append((name, *(f"{classifier.score(part, y_test):.3f}" for part in (test, gaps))))
    print(f"200 rows to learn from, {len(test)} to test on:")
    print(_table(["classifier", "accuracy", "15 % of the cells hidden"], rows))

    classifier = pgm_bma.OrderAveragedClassifier(state_names=states, random_state=0).fit(X, y)
    edges = classifier.edge_posterior_
    either = (edges + edges.T).where(np.triu(np.ones(edges.shape, dtype=bool), 1)).stack()
    print("\nP(arc | data) over all 10! orders, the surest pairs, and how the direction is shared:")
    surest = either.sort_values(ascending=False).head(6)
    rows = [
        (f"{a} - {b}", *(f"{x:.3f}" for x in (p, edges.loc[a, b], edges.loc[b, a]))) for (a, b), p in surest.items()
    ]
    print(_table(["pair", "joined", "forth", "back"], rows))
    pgm_bma.write_bif(classifier.model_, out / "breast-best-network.bif")
    ax = plot_network(classifier.edge_graph_, highlight=target, threshold=0.1, title="arcs over all orders")
    _picture(ax, out / "breast-arc-posteriors.png")
    _wrote(out, "breast-best-network.bif", "breast-arc-posteriors.png")


PREFIXES = ("voting-", "zoo-", "tic-tac-toe-", "breast-")  # of the files that the sections write
SECTIONS = [averaged_naive_bayes, forest_average, order_average, kikuchi_regions, ema_clustering, structural_em]


def _title(title, data):
    print(f"\n{title}\n{'=' * len(title)}\ndata: {data}\n")


def _table(header, rows):
    """Plain text table: the first column left, the others right."""
    lines = [list(map(str, row)) for row in [header, *rows]]
    first, *others = [max(map(len, column)) for column in zip(*lines)]
    lines.insert(1, ["-" * width for width in (first, *others)])
    padded = [[line[0].ljust(first), *map(str.rjust, line[1:], others)] for line in lines]
    return "\n".join(map("  ".join, padded))


def _picture(ax, path):
    import matplotlib.pyplot as plt

    with replacing(path) as file:
        ax.figure.savefig(file, format="png", dpi=130, bbox_inches="tight")
    plt.close(ax.figure)


def _wrote(out, *names):
    print(f"\nwrote {', '.join(str(out / name) for name in names)}")
