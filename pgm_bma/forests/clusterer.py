"""Clusterer averaged over all forest-augmented naive Bayes structures."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.forests.average import ForestPrior, best_tree, complete_log_joint, sample_trees, tree_tables
from pgm_bma.forests.clustering import INITS, MAX_UPDATES, ForestLoop, affordable_updates, fit_forest_clusters
from pgm_bma.forests.results import PAPER, ForestResults
from pgm_bma.forests.rows import HeldRows, PassedRows, hold_rows
from pgm_bma.foundation.faces.clusterer import ClustererBase, check_n_clusters
from pgm_bma.foundation.faces.docstrings import ROWS, STARTS, fill
from pgm_bma.foundation.faces.validation import Choice, Integer, Jobs, Number, Optional, Verbose
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.numbers.starts import path_table, starts_table
from pgm_bma.foundation.rows.blocks import as_is
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.jobs import map_jobs, progress, random_generator
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table

MAX_SAMPLED = 100  # structures behind one call of `sample`


@fill(starts=STARTS, rows=ROWS)
class ForestAveragedClusterer(ForestResults, ClustererBase):
    """Clusters averaged over every structure in which each column depends on the cluster and on at most one other column.

    A variational loop: given the clusters, the structures and their tables have their exact posterior (one determinant); given
    these, the clusters follow from expected logarithms. Its evidence bound never falls, weighs the starts and chooses the number
    of clusters. New rows are judged like `ForestAveragedClassifier` does, with the soft counts taken as observed.

    Parameters
    ----------
    n_clusters : int or iterable of int, default=2
        Number of clusters, or several to choose from by the bound, such as range(1, 7).
    n_init : int, default=10
        Starts.
    n_final : int or None, default=3
        All starts are run for 10 updates (of large tables fewer) and the best `n_final` of them to the end; None runs all.
        Start i is the same whatever `n_init` and `n_final` are.
    init : {"both", "em", "structural", "random"}, default="both"
        Starts from EM, from structural EM (from the best structure without clusters), from the two in turns, or at random.
    combine_starts : {"evidence", "best"}, default="evidence"
        Aligned starts averaged with weights exp(bound), or the best one.
    structure_prior : {"arc_cost", "friedman_koller", "uniform"}, default="arc_cost"
        Every arc between columns costs log n, log(n - 1), or nothing.
    alpha : float, default=1.0
        Pseudo-count of a cell (K2 when 1), as `parameter_prior` spreads it.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": all tables of a column hold the same pseudo-counts in sum: alpha in a cell below the cluster and a
        parent of two states, 2 alpha below the cluster alone. "paper": alpha in every cell.
    max_iter : int, optional
        Updates of a start at most. By default 500; of large tables (from about 300 columns) so many that a fit takes a minute
        or two.
    tol : float, default=1e-8
        Relative gain of the bound that counts as none.
    max_completions : int, default=64
        Rows with missing cells are predicted exactly up to this many completions.
    n_forests : int, default=200
        Forests sampled for rows past that.
    preset : {"paper"}, optional
        alpha = 1 in every cell, all starts run to the end.
    {starts}

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Most probable cluster of every row, int64.
    n_clusters_ : int
        Clusters with at least half an expected row.
    edge_posterior_ : DataFrame
        Parent x child, P(parent -> child) between columns at the expected counts: a ranking.
    class_arc_posterior_ : Series
        P(cluster -> column); 1, since every column depends on the cluster.
    feature_importances_ : array of shape (n_features_in_,)
        Expected information of every column about the cluster, nats.
    edge_graph_ : networkx DiGraph
        All arcs with their `posterior`.
    evidence_bound_ : float
        Of the best start, nats.
    score_path_ : array of shape (n_iter_ + 1,)
        The bound at the best start and after each of its updates.
    log_likelihood_ : float
        Total log p(X).
    n_iter_ : int
        Updates of the best start.
    converged_ : bool
        True if the best start converged.
    n_clusters_path_ : DataFrame
        The numbers of clusters tried, when there was a choice: score (the bound), probability from it, n_effective.
    model_ : DiscreteBayesianNetwork
        The most probable structure with posterior-mean tables, the cluster latent (`model_is_exact_` is False).
    causal_graph_ : pgmpy DAG
        Its structure.
    starts_ : DataFrame
        One line per start: start, stage (1: stopped after the short first stage, 2: run to the end), score (the bound),
        pruned_loss, converged, n_iter, weight (0 at stage 1).
    {rows}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClusterer
    >>> X = pd.DataFrame({"a": list("xxxxyyyy") * 9, "b": list("uuuvvvvv") * 9})
    >>> X = X.assign(c=list("ppqqppqq") * 9, d=list("mmnnmmnn") * 9)
    >>> clusterer = ForestAveragedClusterer(n_clusters=2, n_init=4, random_state=0).fit(X)
    >>> bool(clusterer.edge_posterior_.loc["c", "d"] + clusterer.edge_posterior_.loc["d", "c"] > 0.99)
    True
    """

    _paper = {**PAPER, "n_final": None}
    _max_columns = 500  # every update of every start takes such a sum, of about a second
    _rules = {
        "n_init": Integer(1),
        "n_final": Optional(Integer(1)),
        "init": Choice(*INITS),
        "combine_starts": Choice("evidence", "best"),
        "max_iter": Optional(Integer(1)),
        "tol": Number(0.0),
        "n_jobs": Jobs(),
        "verbose": Verbose(),
    }

    def __init__(
        self,
        n_clusters: int | Iterable[int] = 2,
        *,
        n_init: int = 10,
        n_final: int | None = 3,
        init: str = "both",
        combine_starts: str = "evidence",
        structure_prior: str = "arc_cost",
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        max_iter: int | None = None,
        tol: float = 1e-8,
        max_completions: int = 64,
        n_forests: int = 200,
        preset: str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        state_names: dict | None = None,
        cluster_name: str = "cluster",
        handle_unknown: str = "missing",
    ):
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.n_final = n_final
        self.init = init
        self.combine_starts = combine_starts
        self.structure_prior = structure_prior
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.max_iter = max_iter
        self.tol = tol
        self.max_completions = max_completions
        self.n_forests = n_forests
        self.preset = preset
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.state_names = state_names
        self.cluster_name = cluster_name
        self.handle_unknown = handle_unknown

    def _fit_rows(self, rows, sample_rows):
        """Fit on complete rows that are visited in passes; starts are screened on `sample_rows` of them, None for no screening."""
        if rows.has_missing.any():
            name = rows.schema.names[int(np.argmax(rows.has_missing))]
            raise NeedsRows(
                f"forest clustering of missing cells (such as in {name!r})", "columns without missing cells"
            )
        if self.init == "random":
            raise NeedsRows("init='random'", "init='both', 'em' or 'structural'")
        rows = rows.prepared(as_is)
        sample = None
        if sample_rows is not None:
            block, share = rows.sample(sample_rows)
            codes, weights, _ = table.fold(block.codes, block.weights)
            sample = hold_rows(codes, rows.schema.cardinalities, weights), share
        self._fit_forests(rows.schema, PassedRows(rows), sample)
        self.log_likelihood_ = float(rows.reduce(likelihood_of_block, self._result)[0])

    def _fit(self, folded):
        self._fit_forests(folded.schema, hold_rows(folded.codes, folded.schema.cardinalities, folded.weights))
        joint = self._log_joint(folded.codes)
        self._cached_joint = folded.codes, joint  # the labels are read off it next
        self.log_likelihood_ = float(folded.weights @ logsumexp(joint, axis=1))

    def _fit_forests(self, schema, rows, sample=None):
        """Fit on `forests.rows`; sample : see `fit_forest_clusters`"""
        candidates = [int(k) for k in check_n_clusters(self.n_clusters)]
        values = self._checked_values(schema, max(candidates))
        prior = ForestPrior(
            values["alpha"], values["equivalent_sample_size"], values["parameter_prior"], self.structure_prior
        )
        settings = ForestLoop(prior, self.max_iter or MAX_UPDATES, self.tol)
        if self.max_iter is None and isinstance(rows, HeldRows):
            short, most = affordable_updates(rows, sum(candidates), self.n_init, values["n_final"])
            settings = settings._replace(short=short, max_iter=most)
        rng = random_generator(self.random_state)
        with progress(self.verbose, "starts", total=len(candidates) * self.n_init) as tick:
            found = [
                self._fit_number(rows, k, child, settings, values["n_final"], tick, sample)
                for k, child in zip(candidates, rng.spawn(len(candidates)))
            ]
        chosen = found[int(np.argmax([result.bound for result in found]))]
        self.__dict__.pop("n_clusters_path_", None)
        if not np.isscalar(self.n_clusters):
            n_effective = [len(result.average.class_probability) for result in found]
            self.n_clusters_path_ = path_table(candidates, [each.bound for each in found], n_effective=n_effective)
        run = chosen.runs[chosen.best]
        self._result = chosen.average
        self.n_clusters_ = len(chosen.average.class_probability)
        self.evidence_bound_ = chosen.bound
        self.score_path_ = run.bounds
        self.n_iter_ = len(run.bounds) - 1
        self.converged_ = bool(run.converged)
        self.starts_ = starts_table(
            [r.bounds[-1] for r in chosen.runs],
            [r.converged for r in chosen.runs],
            [len(r.bounds) - 1 for r in chosen.runs],
            chosen.weights,
            chosen.finished,
            pruned_loss=[r.pruned_loss for r in chosen.runs],
        )
        self._read_result(rng)
        if not self.converged_:
            warn(
                f"the best start did not converge in {self.n_iter_} updates; raise max_iter or tol",
                ConvergenceWarning,
            )

    def _fit_number(self, rows, n_clusters, rng, settings, n_final, tick, sample):
        def run_all(function, starts):
            def run(start):
                found = function(start)
                if tick is not None:
                    tick(1)
                return found

            return map_jobs(run, [(start,) for start in starts], self.n_jobs, threads=True)

        starts = self.n_init, n_final, self.init, self.combine_starts, run_all
        return fit_forest_clusters(rows, n_clusters, rng, settings, *starts, sample)

    def _log_joint(self, codes):
        rows, joint = self.__dict__.pop("_cached_joint", (None, None))
        return joint if rows is codes and rows is not None else super()._log_joint(codes)

    def _class_node(self):
        return self.cluster_name, tuple(range(self.n_clusters_)), True

    def _profiles(self):
        splits = np.split(np.exp(self._result.log_singles), state_offsets(self.schema_.cardinalities)[1:-1], axis=1)
        return self._result.class_probability, splits

    def _n_parameters(self):
        _, tables = tree_tables(self._result, *best_tree(self._result))
        return int(sum(t.shape[0] * (t.shape[1] - 1) for t in tables))

    def _sample_codes(self, n_samples, rng):
        """Each row from a structure drawn from the posterior; rows share at most `MAX_SAMPLED` structures."""
        sizes = rng.multinomial(n_samples, np.full(MAX_SAMPLED, 1.0 / MAX_SAMPLED))
        drawn = [np.empty((0, len(self.schema_.names) + 1), dtype=np.int64)]
        for size, (parents, with_class, _) in zip(sizes, sample_trees(self._result, MAX_SAMPLED, rng)):
            families, tables = tree_tables(self._result, parents, with_class)
            drawn.append(sample_codes(tables, families, size, rng).astype(np.int64))
        codes = np.concatenate(drawn)[rng.permutation(n_samples)]
        return codes[:, 1:], codes[:, 0]


def likelihood_of_block(block, average):
    """(log-likelihood,) of a block of complete rows under an average over forests."""
    log_p = logsumexp(complete_log_joint(average, np.asarray(block.codes, dtype=np.int64)), axis=1)
    return (float(log_p.sum() if block.weights is None else block.weights @ log_p),)
