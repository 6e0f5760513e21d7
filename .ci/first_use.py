"""Fit every public estimator once on a small table: what a user does first after an installation.

Run it with ``python -W error::DeprecationWarning .ci/first_use.py``, outside the checkout.
"""

import pgm_bma
from pgm_bma import catalogue


def main():
    """Fit each estimator of the catalogue and print its name."""
    from pgmpy.models import DiscreteBayesianNetwork

    table, target = pgm_bma.load_dataset("zoo")
    table = table.head(60)
    X, y = table.drop(columns=target).iloc[:, :6], table[target]
    wine, cultivar = pgm_bma.load_dataset("wine")
    small = {"n_init": 2, "max_iter": 50}
    chains = {"sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=5)}
    for estimator in catalogue.ESTIMATORS:
        made = getattr(pgm_bma, estimator.name)
        known = made.__init__.__annotations__
        given = {name: value for name, value in {**small, **chains}.items() if name in known}
        if estimator.kind == "network":
            latent = {"latent_card": {"group": 2}} if "latent_card" in known else {}
            group = "group" if latent else X.columns[0]
            edges = [(group, column) for column in X.columns[1:]]
            model = DiscreteBayesianNetwork(edges, latents={"group"} if latent else set())
            model.fit(X[[c for c in X if c in model.nodes()]], estimator=made(**latent, seed=0) if latent else made())
        elif estimator.kind == "columns":
            made().fit(wine.drop(columns=cultivar), wine[cultivar])
        elif estimator.kind in ("clusterer", "structure"):
            made(**given).fit(X)
        else:
            made(**{name: value for name, value in given.items() if name == "sampler"}).fit(X, y)
        print(estimator.name, flush=True)


if __name__ == "__main__":
    main()
