"""Hold the Python of README.md, block by block, for the type checker; tests/test_package.py compares the two."""

# fmt: off
import pgm_bma

votes, party = pgm_bma.load_dataset("voting")
survey = votes.drop(columns=party)
clusterer = pgm_bma.EMAClusterer(n_clusters=2, random_state=0).fit(survey)
print(clusterer.describe(2)[["cluster", "column", "state", "probability"]].round(2))
print(clusterer.arc_posterior_.nsmallest(2).round(2))  # votes that say least

wine, cultivar = pgm_bma.load_dataset("wine")
X, y = wine.drop(columns=cultivar), wine[cultivar]
new = [25, 83]
classifier = pgm_bma.AdditiveBayesClassifier().fit(X.drop(new), y.drop(new))
print(classifier.predict_proba(X.loc[new]).round(2))
print(classifier.explain(X.loc[83]).iloc[:3].round(2))  # column by class

import numpy as np

sample = pgm_bma.simulate(pgm_bma.load_network("asia"), 500, random_state=0)
missing = sample.mask(np.random.default_rng(0).random(sample.shape) < 0.1)
posterior = pgm_bma.OrderPosterior(random_state=0).fit(missing)
print(posterior.skeleton_posterior_.loc["either"].round(2))  # in either direction

from pgmpy.models import DiscreteBayesianNetwork

rows = missing.drop(columns="either")  # it was never recorded
asia = pgm_bma.load_network("asia")
model = DiscreteBayesianNetwork(asia.edges(), latents={"either"})
model.fit(rows, estimator=pgm_bma.EMEstimator(latent_card={"either": 2}, seed=0))
print(pgm_bma.predict_proba(model, rows.head(2), "lung").round(2))
