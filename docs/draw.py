"""Draw the pictures of README.md and of the guides: ``python docs/draw.py`` writes docs/overview.png and docs/pictures/."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from pgmpy.causal_discovery import ExpertKnowledge
from sklearn.model_selection import StratifiedKFold, cross_val_predict

import pgm_bma
from pgm_bma import plotting

HERE = Path(__file__).resolve().parent


def main():
    """Draw them all."""
    (HERE / "pictures").mkdir(exist_ok=True)
    votes, party = pgm_bma.load_dataset("voting")
    X, y = votes.drop(columns=party), votes[party]
    overview(X)
    guides(X, y)


def overview(X):
    """Draw one panel for each of three jobs."""
    fig, (left, middle, right) = plt.subplots(
        1, 3, figsize=(15, 4.6), width_ratios=[1.0, 1.0, 1.3], layout="constrained"
    )
    clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(X)
    plotting.plot_relevance(clusterer, ax=left, title="Cluster: which votes make the groups")
    wine, cultivar = pgm_bma.load_dataset("wine")
    classifier = pgm_bma.AdditiveBayesClassifier().fit(wine[[cultivar, "A1", "A7"]], y=cultivar)
    curve(classifier, "A7", wine["A7"], middle)
    sample = pgm_bma.simulate(pgm_bma.load_network("asia"), 1000, random_state=1)
    # the data alone do not say which of smoking and a disease comes first
    tiers = [["asia", "smoke"], ["tub", "lung", "bronc"], ["either"], ["xray", "dysp"]]
    posterior = pgm_bma.OrderPosterior(expert_knowledge=ExpertKnowledge(temporal_order=tiers)).fit(sample)
    plotting.plot_network(posterior, threshold=0.15, ax=right, title="Structure: arcs with their probabilities")
    save(fig, "overview.png")


def curve(classifier, column, values, ax):
    """Draw what one column says for each class, and where the rows are."""
    terms = classifier.term_curves().query("column == @column")
    inner = terms["from"].replace(-float("inf"), values.min())
    for label, style in zip(classifier.classes_, ("-", "--", "-.")):
        ax.step(
            [*inner, values.max()],
            [*terms[label], terms[label].iloc[-1]],
            style,
            where="post",
            lw=2,
            label=f"class {label}",
        )
    ax.plot(values, [ax.get_ylim()[0]] * len(values), "|", color="0.5", ms=10, alpha=0.5)
    ax.axhline(0, color="0.8", lw=0.8, zorder=0)
    ax.set(title="Classify: what a column says for each class", xlabel=f"column {column}", ylabel="evidence (nats)")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)


def guides(X, y):
    """Draw the pictures that howto/scikit_learn.md explains."""
    wine, cultivar = pgm_bma.load_dataset("wine")
    columns = [cultivar, "A1", "A7", "A10"]
    terms = pgm_bma.AdditiveBayesClassifier().fit(wine[columns].drop(columns=cultivar), wine[cultivar])
    save(figure(terms.plot_terms()), "pictures/terms.png")
    averaged = pgm_bma.AveragedNaiveBayesClassifier().fit(X, y)
    save(figure(plotting.plot_relevance(averaged)), "pictures/relevance.png")
    model = pgm_bma.AdditiveBayesClassifier().fit(X, y)
    patients, recurrence = pgm_bma.load_dataset("breast-LJ")
    table, truth = patients.drop(columns=recurrence), patients[recurrence]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)  # the rows of the table are sorted
    held_out = cross_val_predict(model, table, truth, cv=folds, method="predict_proba")
    save(figure(plotting.plot_calibration(truth, held_out)), "pictures/calibration.png")
    save(figure(plotting.plot_evidence(model.explain(X.dropna().iloc[0]))), "pictures/evidence.png")


def figure(drawn):
    """Return the figure of what a plot function returned."""
    return getattr(drawn, "figure", None) or plt.gcf()


def save(fig, name):
    """Write a picture and close it."""
    fig.savefig(HERE / name, dpi=110 if name == "overview.png" else 90, bbox_inches="tight")
    plt.close(fig)
    print(f"wrote docs/{name}")


if __name__ == "__main__":
    main()
