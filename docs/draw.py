"""Draw the picture of the README: ``python docs/draw.py`` writes docs/overview.png."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import pgm_bma
from pgm_bma import plotting


def main():
    fig, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), width_ratios=[1.0, 1.25, 1.05])
    votes, party = pgm_bma.load_dataset("voting")
    clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(votes.drop(columns=party))
    plotting.plot_relevance(clusterer, ax=left, title="Clusters: which votes matter")
    sample = pgm_bma.simulate(pgm_bma.load_network("asia"), 1000, random_state=1)
    posterior = pgm_bma.OrderPosterior(method="exact").fit(sample)
    plotting.plot_network(posterior, threshold=0.15, ax=middle, title="Structure: arcs with posterior probabilities")
    game, result = pgm_bma.load_dataset("tic-tac-toe")
    kikuchi = pgm_bma.KikuchiBayesClassifier(random_state=0).fit(game.drop(columns=result), game[result])
    plotting.plot_interactions(kikuchi, max_edges=8, ax=right, title="Classes: squares that speak together")
    fig.tight_layout(w_pad=3)
    path = Path(__file__).with_name("overview.png")
    fig.savefig(path, dpi=110)
    print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
