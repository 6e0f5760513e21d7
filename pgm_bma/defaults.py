"""Which method when nothing is said: the one place that decides it.

Chosen by ``python -m benchmarks default_methods`` (log loss and processor time of 5 folds on the development tables), to be run
again before every release; its kept result is in benchmarks/results/default_methods*.csv.

* Classes: `ForestAveragedClassifier`, which has the lowest log loss on the most tables and the lowest mean. On wide tables, where
  a sum over forests takes minutes, `AveragedNaiveBayesClassifier` answers in a fraction of a second.
* Clusters: `EMAClusterer`, which tells relevant columns from irrelevant ones and takes about the time of EM.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgm_bma.forests.classifier import ForestAveragedClassifier
    from pgm_bma.latent_class.clusterer import EMAClusterer


def default_classifier(**parameters: Any) -> "ForestAveragedClassifier":
    """The classifier to begin with, not fitted.

    Parameters
    ----------
    **parameters : any
        Parameters of `ForestAveragedClassifier`.

    Returns
    -------
    ForestAveragedClassifier
        An unfitted classifier.

    Examples
    --------
    >>> import pgm_bma
    >>> pgm_bma.default_classifier(alpha=0.5)
    ForestAveragedClassifier(alpha=0.5)
    """
    from pgm_bma.forests.classifier import ForestAveragedClassifier

    return ForestAveragedClassifier(**parameters)


def default_clusterer(**parameters: Any) -> "EMAClusterer":
    """The clusterer to begin with, not fitted.

    Parameters
    ----------
    **parameters : any
        Parameters of `EMAClusterer`, such as ``n_clusters``.

    Returns
    -------
    EMAClusterer
        An unfitted clusterer.

    Examples
    --------
    >>> import pgm_bma
    >>> pgm_bma.default_clusterer(n_clusters=3)
    EMAClusterer(n_clusters=3)
    """
    from pgm_bma.latent_class.clusterer import EMAClusterer

    return EMAClusterer(**parameters)
