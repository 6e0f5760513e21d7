"""Clusters as data for the page: their sizes, and how every column is distributed inside each of them."""

import numpy as np

MOST_NUMBERS = 60_000  # of all profiles together


def cluster_data(estimator):
    """Sizes and profiles of a fitted clusterer; columns that depend most on the cluster first, as many as a page can hold."""
    sizes, profiles = estimator._profiles()
    schema = estimator.schema_
    items = []
    for name, states, profile in zip(schema.names, schema.states, profiles):
        profile = np.asarray(profile, dtype=float)
        overall = np.asarray(sizes) @ profile
        ratio = np.divide(profile, overall, out=np.ones_like(profile), where=(overall > 0) & (profile > 0))
        tells = float((np.asarray(sizes)[:, None] * profile * np.log(ratio)).sum())
        items.append((tells, name, states, profile, overall))
    items.sort(key=lambda item: -item[0])
    shown, room = [], MOST_NUMBERS
    for _, name, states, profile, overall in items:
        room -= profile.size
        if room < 0:
            break
        shown.append(
            {
                "name": str(name),
                "states": [str(state) for state in states],
                "p": profile.round(4).tolist(),
                "overall": overall.round(4).tolist(),
            }
        )
    return {
        "names": [str(k) for k in range(estimator.n_clusters_)],
        "sizes": [round(float(size), 4) for size in sizes],
        "items": shown,
        "n_columns": len(items),
    }
