"""What is read off the DAGs of a posterior: paths, Markov blankets, parent sets, networks, effects of setting a variable."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.validation import brief, check_number, is_hashable
from pgm_bma.foundation.runtime.seeds import random_generator
from pgm_bma.orders import dags, network
from pgm_bma.orders.chains.weighting import WEIGHTINGS
from pgm_bma.orders.effects import EffectQuestion, effect_blocks, spread, total_variation
from pgm_bma.orders.families.family_table import members
from pgm_bma.orders.gaps.augment import completed
from pgm_bma.orders.gaps.augmented_average import gaps_of
from pgm_bma.orders.sums import fixed_order


class DagResults:
    """Methods of an estimator over ``_average``, ``_variables`` and ``_seed``; see `results.OrderResults`."""

    _average: Any
    _variables: Any
    _seed: int
    _mixture: Any
    _labels: Any

    def _dags(self):
        """The `WeightedDags` that everything here but `sample_dags` reads, made once."""
        if "_cached_dags" not in self.__dict__:
            rng = np.random.default_rng([self._seed, 1])
            self._cached_dags = dags.weighted_dags(self._average, self._mixture, rng)
        return self._cached_dags

    def _position(self, parameter, name):
        check_is_fitted(self)
        names = list(self._variables.names)
        if not is_hashable(name) or name not in names:
            raise ValueError(f"{parameter}={brief(name)} is no variable; the variables are {names}")
        return names.index(name)

    def _drawn_labels(self, sample, values):
        n_dags = None if sample.states is None else len(sample.weights)
        return {**self._labels(), "n_dags": n_dags, "monte_carlo_error": sample.error(values)}

    @property
    def ancestor_posterior_(self):
        """DataFrame ancestor x descendant: P(a directed path from row to column | data).

        Summed over all DAGs under method "exact" with up to 5 variables. Else the share of 1000 drawn DAGs: under "exact" each
        with its own order from the exact law, otherwise from the kept orders in turn (`sampler.n_orders` of every chain). `attrs`
        has `n_dags` (None where all were summed) and `monte_carlo_error`, the largest standard error of an entry.
        """
        sample, names = self._dags(), list(self._variables.names)
        found = dags.paths(dags.arcs(sample.parents))
        paths = pd.DataFrame(sample.share(found), index=names, columns=names)
        paths.index.name, paths.columns.name = "ancestor", "descendant"
        paths.attrs.update(self._drawn_labels(sample, found))
        return paths

    def markov_blanket_posterior(self, node: Any) -> pd.Series:
        """Probability that each other variable is in the Markov blanket of `node`: a parent, a child or a child's other parent.

        Parameters
        ----------
        node : label
            A variable.

        Returns
        -------
        Series
            By variable, from the DAGs that `ancestor_posterior_` is made of; `attrs` has their number and the Monte Carlo error.
        """
        v, sample = self._position("node", node), self._dags()
        found = dags.blankets(dags.arcs(sample.parents), v)
        share = pd.Series(sample.share(found), index=list(self._variables.names), name=node).drop(node)
        share.attrs.update(self._drawn_labels(sample, np.delete(found, v, axis=1)))
        return share

    def sample_dags(self, n_dags: int = 1, random_state: Any = None) -> list:
        """Draw DAGs from the posterior, as pgmpy networks with posterior-mean tables.

        Under method "exact" the draws are independent, each with its own order from the exact law. Otherwise the kept orders
        (`sampler.n_orders` of every chain) take turns; within an order, parents are drawn exactly.

        Parameters
        ----------
        n_dags : int, default=1
            How many.
        random_state : int, Generator, RandomState or None, default=None
            Seed; without it, equal calls give equal networks.

        Returns
        -------
        list of DiscreteBayesianNetwork
            The networks.
        """
        check_is_fitted(self)
        check_number("n_dags", n_dags, 0, integer=True)
        rng = np.random.default_rng([self._seed, 2]) if random_state is None else random_generator(random_state)
        drawn = dags.draw(self._average, self._mixture, n_dags, rng)
        return [self._network(dags.as_tuples(parents)) for parents in drawn]

    def _network(self, parents):
        return network.dag_network(self._variables, self._average.training, parents)

    def parent_set_posterior(self, node: Any) -> pd.DataFrame:
        """Probability of every set of parents of a variable.

        Exact under method "exact"; else averaged over the kept orders, exactly given each of them.

        Parameters
        ----------
        node : label
            A variable.

        Returns
        -------
        DataFrame
            Columns `parents` (tuple of names in the order of the columns) and `probability`, falling.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
        >>> OrderPosterior(equivalent_sample_size=1).fit(X).parent_set_posterior("b").round(2).head(2)
          parents  probability
        0      ()         0.49
        1    (a,)         0.41
        """
        v, average = self._position("node", node), self._average
        if average.method == "exact":
            kind = WEIGHTINGS[average.weighting]
            sets, shares = members(average.table, v), kind.parent_sets(kind.sum_all(average.table), v)
        else:
            mix = self._mixture()
            sets, shares = fixed_order.set_members(mix.table, v, mix.places[v]), mix.weights[v].mean(0)
        ranked = np.argsort(-shares, kind="stable")
        names = self._variables.names
        parents = [tuple(names[p] for p in sets[k] if p >= 0) for k in ranked]
        found = pd.DataFrame({"parents": pd.Series(parents, dtype=object), "probability": shares[ranked]})
        found.attrs.update(self._labels(), node=node)
        return found

    # ------------------------------------------------------------------------------------------------ effects

    def effect(self, of: Any, on: Any, *, level: float = 0.9) -> pd.DataFrame:
        """What setting one variable does to another: P(on | do(of = state)), averaged over structures and parameters.

        The mean is that of the networks with posterior-mean tables, summed over all DAGs under method "exact" with up to 5
        variables and averaged over 1000 drawn DAGs otherwise (see `ancestor_posterior_`). The spread is that of 1000 drawn DAGs
        with drawn tables.

        Without experiments in the data (`interventions`), DAGs that imply the same independences cannot be told apart: the
        direction of an arc that they disagree about is then an opinion of `structure_weighting`, `structure_prior` and the
        parameter prior, and so is the share of an effect that rests on it. Variables that were not measured are not accounted for.

        Parameters
        ----------
        of : label
            The variable that is set.
        on : label
            The outcome.
        level : float, default=0.9
            Probability between `low` and `high`.

        Returns
        -------
        DataFrame
            A row per state of `of` (`do`) and of `on` (`outcome`): `mean`, `sd`, `low` and `high` of the posterior. `attrs` has
            `ancestor`, P(of is an ancestor of on | data): in the rest of the posterior the effect is zero.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6})
        >>> X["set"] = ["a"] * 24
        >>> posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X, interventions="set")
        >>> posterior.effect("a", "b").round(2)[["do", "outcome", "mean"]]
          do outcome  mean
        0  0       0  0.98
        1  0       1  0.02
        2  1       0  0.02
        3  1       1  0.98
        """
        x, y = self._position("of", of), self._position("on", on)
        if x == y:
            raise ValueError(f"of and on are both {of!r}; name two different variables")
        check_number("level", level, 0, 1, open_low=True)
        sample, drawn = self._dags(), self._drawn_dags()
        states = self._variables.states
        mean = np.zeros((len(states[x]), len(states[y])))
        distinct = _fold(sample if self._average.gaps is not None else sample._replace(states=None))
        for places, values in effect_blocks(self._question(distinct, [x], [y])):
            mean += np.tensordot(distinct.weights[places], values, axes=1)
        rng = np.random.default_rng([self._seed, 6])
        values = np.concatenate([values for _, values in effect_blocks(self._question(drawn, [x], [y]), rng)])
        sd, low, high = spread(values, level)
        index = [(a, b) for a in states[x] for b in states[y]]
        found = pd.DataFrame({"do": [a for a, _ in index], "outcome": [b for _, b in index]})
        found["mean"], found["sd"], found["low"], found["high"] = (part.ravel() for part in (mean, sd, low, high))
        paths = dags.paths(dags.arcs(sample.parents))[:, x, y]
        found.attrs.update(
            self._drawn_labels(sample, paths), of=of, on=on, level=level, ancestor=float(sample.share(paths))
        )
        return found

    def effects(self, *, level: float = 0.9) -> pd.DataFrame:
        """How much setting each variable moves each other one, strongest first.

        The size of an effect is the largest total variation between the distributions of `on` that two states of `of` lead to: 0
        where setting `of` does nothing, 1 where it decides `on`. It is averaged over structures and drawn tables; `effect` says
        what it means and what cannot be known without experiments.

        Parameters
        ----------
        level : float, default=0.9
            Probability between `low` and `high`.

        Returns
        -------
        DataFrame
            A row per ordered pair: `of`, `on`, `ancestor` (P(of is an ancestor of on | data)), `size`, its `low` and `high`.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6})
        >>> X["set"] = ["a"] * 24
        >>> posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X, interventions="set")
        >>> posterior.effects().round(1)[["of", "on", "ancestor", "size"]]
          of on  ancestor  size
        0  a  b       1.0   1.0
        1  b  a       0.0   0.0
        """
        check_is_fitted(self)
        check_number("level", level, 0, 1, open_low=True)
        cards, names = self._variables.cardinalities, self._variables.names
        everything = list(range(len(names)))
        rng, drawn = np.random.default_rng([self._seed, 7]), self._drawn_dags()
        blocks = effect_blocks(self._question(drawn, everything, everything), rng)
        sizes = np.concatenate([total_variation(values, cards, cards) for _, values in blocks])
        sizes *= dags.paths(dags.arcs(drawn.parents))  # rounding is no effect
        _, low, high = spread(sizes, level)
        ancestor, size = self.ancestor_posterior_, sizes.mean(0)
        pairs = [(x, y) for x in everything for y in everything if x != y]
        columns = {"of": [names[x] for x, _ in pairs], "on": [names[y] for _, y in pairs]}
        parts = {"ancestor": ancestor.to_numpy(), "size": size, "low": low, "high": high}
        found = pd.DataFrame(columns).assign(**{key: [part[pair] for pair in pairs] for key, part in parts.items()})
        found = found.sort_values("size", ascending=False, kind="stable", ignore_index=True)
        found.attrs.update(ancestor.attrs, level=level)
        return found

    def _drawn_dags(self):
        """`WeightedDags` of equal weights, state by state."""
        sample = self._dags()
        if sample.states is not None:
            ranked = np.argsort(sample.states, kind="stable")
            return sample._replace(parents=sample.parents[ranked], states=sample.states[ranked])
        chosen = np.random.default_rng([self._seed, 8]).choice(len(sample.weights), dags.N_DAGS, p=sample.weights)
        return sample._replace(parents=sample.parents[chosen], weights=np.full(dags.N_DAGS, 1 / dags.N_DAGS))

    def _question(self, sample, of, on):
        """An `EffectQuestion` about `WeightedDags`; with missing values, tables come from the completed table of each state."""
        average = self._average
        sources = np.zeros(len(sample.weights), dtype=np.int64) if average.gaps is None else sample.states
        table_of = lru_cache(maxsize=1)(self._table_of)

        @lru_cache(maxsize=10_000)
        def count(source, child, parents):
            return table_of(source).family_counts(child, parents)

        listed = [dags.as_tuples(parents) for parents in sample.parents]
        cards = np.asarray(self._variables.cardinalities)
        return EffectQuestion(listed, sources, count, average.training.prior, cards, of, on)

    def _table_of(self, state):
        """The `Training` that a kept state was drawn on."""
        training, gaps = self._average.training, self._average.gaps
        if gaps is None:
            return training
        own = gaps_of(self._average)
        rows = completed(own, gaps.filled.reshape(-1, gaps.filled.shape[2])[state])
        return training._replace(codes=rows, weights=own.weights)


def _fold(sample):
    """Equal DAGs (of the same state, where there are states) once, with the sum of their weights, state by state."""
    keys = sample.parents.reshape(len(sample.weights), -1)
    if sample.states is not None:
        keys = np.column_stack([sample.states, keys])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    states = None if sample.states is None else sample.states[first]
    return dags.WeightedDags(sample.parents[first], np.bincount(inverse.ravel(), sample.weights), states)
