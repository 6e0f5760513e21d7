"""The Python of README.md, block by block, for the type checker; tests/test_package.py compares the two."""

# fmt: off
import pgm_bma

votes, party = pgm_bma.load_dataset("voting")
clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(votes.drop(columns=party))
clusterer.arc_posterior_      # which votes have to do with the clusters
clusterer.describe()          # what marks each cluster
pgm_bma.write_bif(clusterer.model_, "voting.bif")

X, y = votes.drop(columns=party), votes[party]
classifier = pgm_bma.ForestAveragedClassifier().fit(X, y)
classifier.predict_proba(X.head())
classifier.edge_posterior_    # P(column -> column | data), summed over all forests
classifier.explain(X.dropna().iloc[0])

sample = pgm_bma.simulate(pgm_bma.load_network("asia"), 500, random_state=0)
posterior = pgm_bma.OrderPosterior(method="exact").fit(sample)
posterior.edge_posterior_     # P(row -> column | data), an exact sum over all 8! orders

import numpy as np

gaps = sample.mask(np.random.default_rng(0).random(sample.shape) < 0.2)
posterior = pgm_bma.OrderPosterior(random_state=0).fit(gaps)    # structures and missing cells are sampled together
completed = posterior.complete(gaps, 5)                         # five completed tables, for an analysis that needs them

wine, cultivar = pgm_bma.load_dataset("wine")                   # numbers: averaged over all ways to cut them
classifier = pgm_bma.AdditiveBayesClassifier().fit(wine.drop(columns=cultivar), wine[cultivar])
classifier.plot_terms()                                         # what each column says, as a curve

from pgmpy.models import DiscreteBayesianNetwork

rows = sample.drop(columns="either")      # nobody noted it down
model = DiscreteBayesianNetwork(pgm_bma.load_network("asia").edges(), latents={"either"})
model = model.fit(rows, estimator=pgm_bma.EMEstimator(latent_card={"either": 2}, seed=0))
pgm_bma.predict_proba(model, rows.head(), "either")
