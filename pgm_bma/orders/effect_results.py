"""Effects of setting a variable, read off the DAGs of a posterior: tables of one effect and of all, and their picture."""

from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import brief, check_choice, check_number, is_hashable
from pgm_bma.orders import dags, effects
from pgm_bma.orders.families.counted import CountedTraining
from pgm_bma.orders.gaps.augmented_average import completed_training
from pgm_bma.orders.score_files import ScoresOnly
from pgm_bma.orders.structures import DagResults

CONTRASTS = ("difference", "mean", "ratio")


class EffectResults(DagResults):
    """Effects of an estimator over ``_average``, ``_variables`` and ``_seed``; see `results.OrderResults`."""

    def effect(
        self,
        of: Any,
        on: Any,
        given: dict | None = None,
        *,
        contrast: str | None = None,
        adjust_for: str | None = None,
        level: float = 0.9,
    ) -> pd.DataFrame:
        """Effect of setting one variable on another: P(on | do(of = state)), averaged over structures and parameters.

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
        given : dict, optional
            Variable -> state: the effect among rows that show these states after the setting. All figures then come from drawn
            tables.
        contrast : {"difference", "mean", "ratio"}, optional
            Compare two states of `of` at a time instead: the difference of probabilities, the difference of the mean of `on`
            (its states must be numbers), or the ratio of probabilities.
        adjust_for : {"parents"}, optional
            "parents" gives the classical estimate: adjustment for the parents of `of`, from one Dirichlet table of parents, `of`
            and `on`. It uses rows in which nothing but `of` was set. By default the truncated factorisation of every DAG.
        level : float, default=0.9
            Probability between `low` and `high`.

        Returns
        -------
        DataFrame
            A row per state of `of` (`do`) and of `on` (`outcome`): `mean`, `sd`, `low` and `high` of the posterior. With a
            contrast, a row per two states of `of` (`do`, compared with `against`) and outcome. `attrs` has `ancestor`, P(of is an
            ancestor of on | data), and `zero`, the rest of the posterior, in which there is no effect.

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
        >>> posterior.effect("a", "b", contrast="mean").round(2)[["do", "against", "mean"]]
          do against  mean
        0  1       0  0.96
        """
        x, y = self._position("of", of), self._position("on", on)
        if x == y:
            raise ValueError(f"of and on are both {of!r}; name two different variables")
        check_number("level", level, 0, 1, open_low=True)
        if contrast is not None:
            check_choice("contrast", contrast, CONTRASTS)
        if adjust_for is not None:
            check_choice("adjust_for", adjust_for, ("parents",))
            if given:
                raise ValueError("given cannot be combined with adjust_for='parents'; leave one of them out")
        numbers = self._numbers_of(on, y) if contrast == "mean" else None
        known = self._codes_given(given, {of: "of", on: "on"})
        if adjust_for is None:
            mean, values = self._truncated(x, y, known)
        else:
            mean, values = self._adjusted(x, y)
        if known or contrast == "ratio":
            mean = None
        if contrast is not None:
            values = effects.contrasts(values, contrast, numbers)
            mean = None if mean is None else effects.contrasts(mean, contrast, numbers)
        found = self._effect_frame(x, y, contrast, values.mean(0) if mean is None else mean, values, level)
        sample = self._dags()
        paths = dags.paths(dags.arcs(sample.parents))[:, x, y]
        ancestor = float(self.ancestor_posterior_.iloc[x, y])
        found.attrs.update(
            self._drawn_labels(sample, paths),
            of=of,
            on=on,
            level=level,
            ancestor=ancestor,
            zero=max(1.0 - ancestor, 0.0),
        )
        return found

    def _effect_frame(self, x, y, contrast, mean, values, level):
        before, after = self._variables.states[x], self._variables.states[y]
        outcomes = ["mean"] if contrast == "mean" else list(after)
        if contrast is None:
            index = [(a, b) for a in before for b in outcomes]
            columns = {"do": [a for a, _ in index]}
        else:
            pairs = effects.contrast_pairs(len(before))
            index = [(pair, b) for pair in pairs for b in outcomes]
            columns = {name: [before[pair[k]] for pair, _ in index] for k, name in enumerate(("do", "against"))}
        found = pd.DataFrame({**columns, "outcome": [b for _, b in index]})
        parts = mean, *effects.spread(values, level)
        return found.assign(**{name: part.ravel() for name, part in zip(("mean", "sd", "low", "high"), parts)})

    def _truncated(self, x, y, given):
        """(mean, drawn values) of P(y | do(x)) by truncated factorisation."""
        sample, drawn = self._dags(), self._drawn_dags()
        mean = np.zeros((len(self._variables.states[x]), len(self._variables.states[y])))
        if not given:
            distinct = _fold(sample if self._average.gaps is not None else sample._replace(states=None))
            for places, values in effects.effect_blocks(self._question(distinct, [x], [y])):
                mean += np.tensordot(distinct.weights[places], values, axes=1)
        rng = np.random.default_rng([self._seed, 6])
        blocks = effects.effect_blocks(self._question(drawn, [x], [y], given), rng)
        return mean, np.concatenate([values for _, values in blocks])

    def _adjusted(self, x, y):
        """(mean, drawn values) of P(y | do(x)) by adjustment for the parents of x."""
        if isinstance(self._average.training, CountedTraining):
            raise ValueError("adjust_for='parents' needs the rows, which were counted in passes; fit on rows in memory")
        rng, drawn = np.random.default_rng([self._seed, 6]), self._drawn_dags()
        parts = []
        for sample, generator in ((self._dags(), None), (drawn, rng)):
            for source, parents, places in self._parents_in(sample, x):
                table = effects.adjusted_rows(self._table_of(source), x)
                parts.append((sample, places, effects.adjusted(table, x, y, parents, len(places), generator)))
        mean = sum(s.weights[places].sum() * found[0] for s, places, found in parts if s is not drawn)
        return mean, np.concatenate([found for s, _, found in parts if s is drawn])

    def _parents_in(self, sample, x):
        """[(source, parents of x, places of the DAGs)] of the DAGs that share both."""
        sources = self._sources(sample)
        keys, inverse = np.unique(np.column_stack([sources, sample.parents[:, x]]), axis=0, return_inverse=True)
        groups = np.split(np.argsort(inverse.ravel(), kind="stable"), np.cumsum(np.bincount(inverse.ravel()))[:-1])
        return [(int(key[0]), tuple(int(p) for p in key[1:] if p >= 0), places) for key, places in zip(keys, groups)]

    def _numbers_of(self, on, y):
        numbers = pd.to_numeric(pd.Series(list(self._variables.states[y]), dtype=object), errors="coerce").astype(float)
        if not np.isfinite(numbers).all():
            raise ValueError(
                f"contrast='mean' needs an outcome of numbers, but {on!r} has the states {list(self._variables.states[y])[:6]}; "
                "pass contrast='difference', or fit with numbers as its states"
            )
        return numbers.to_numpy()

    def _codes_given(self, given, taken):
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise ValueError(f"given={brief(given)} is not a dict variable -> state")
        codes = {}
        for name, state in given.items():
            z = self._position("given", name)
            if name in taken:
                raise ValueError(f"given names {name!r}, which is {taken[name]} already; name other variables")
            states = list(self._variables.states[z])
            if not is_hashable(state) or state not in states:
                raise ValueError(
                    f"given has {name!r}: {brief(state)}, which is not a state of it; its states are {states}"
                )
            codes[z] = states.index(state)
        return codes

    def effects(self, *, level: float = 0.9) -> pd.DataFrame:
        """Effects of setting each variable on each other one, strongest first.

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
            A row per ordered pair: `of`, `on`, `ancestor` (P(of is an ancestor of on | data)), `zero` (the share of the posterior
            in which there is no effect), `size`, its `low` and `high`, and `jensen_shannon`, the expected Jensen-Shannon
            divergence (nats) of the distributions of `on` under all states of `of`. `attrs` has `variables`, `level`, `n_dags`
            (None where `ancestor` was summed) and `monte_carlo_error`, the largest standard error of `ancestor`.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": [0, 0, 1, 1] * 6, "b": [0, 0, 1, 1] * 6})
        >>> posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X, interventions=["a"] * 24)
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
        paths = dags.paths(dags.arcs(drawn.parents))
        sizes, divergence = np.empty(paths.shape), np.empty(paths.shape)
        for places, values in effects.effect_blocks(self._question(drawn, everything, everything), rng):
            # without a path there is no effect, only rounding
            sizes[places] = effects.total_variation(values, cards, cards) * paths[places]
            divergence[places] = effects.jensen_shannon(values, cards, cards) * paths[places]
        _, low, high = effects.spread(sizes, level)
        ancestor = self.ancestor_posterior_
        shares = ancestor.to_numpy()
        parts = {
            "ancestor": shares,
            "zero": np.maximum(1 - shares, 0.0),
            "size": sizes.mean(0),
            "low": low,
            "high": high,
        }
        parts["jensen_shannon"] = divergence.mean(0)
        pairs = [(x, y) for x in everything for y in everything if x != y]
        columns = {"of": [names[x] for x, _ in pairs], "on": [names[y] for _, y in pairs]}
        found = pd.DataFrame(columns).assign(**{key: [part[pair] for pair in pairs] for key, part in parts.items()})
        found = found.sort_values("size", ascending=False, kind="stable", ignore_index=True)
        found.attrs.update(ancestor.attrs, level=level, variables=list(names))
        return found

    @fill(drawn=DRAWN)
    def plot_effects(self, *, kind: str = "ranked", top: int = 20, title: str | None = None, ax: Any = None) -> Any:
        """Draw the effects of all variables on all others.

        Parameters
        ----------
        kind : {"ranked", "matrix"}, default="ranked"
            The strongest effects as dots with their intervals, or all of them as a matrix.
        top : int, default=20
            Number of effects that "ranked" shows.
        {drawn}
        """
        from pgm_bma import plotting

        return plotting.plot_effects(self, kind=kind, top=top, title=title, ax=ax)

    def _drawn_dags(self):
        """`WeightedDags` of equal weights, state by state."""
        if isinstance(self._average.training, ScoresOnly):
            raise ValueError("fit_scores has scores of families and no rows: effects need the tables of fit(X)")
        sample = self._dags()
        if sample.states is not None:
            ranked = np.argsort(sample.states, kind="stable")
            return sample._replace(parents=sample.parents[ranked], states=sample.states[ranked])
        chosen = np.random.default_rng([self._seed, 8]).choice(len(sample.weights), dags.N_DAGS, p=sample.weights)
        return sample._replace(parents=sample.parents[chosen], weights=np.full(dags.N_DAGS, 1 / dags.N_DAGS))

    def _sources(self, sample):
        """(n_dags,) which completed table each DAG belongs to; 0 without missing values."""
        return np.zeros(len(sample.weights), dtype=np.int64) if self._average.gaps is None else sample.states

    def _question(self, sample, of, on, given=None):
        """An `EffectQuestion` about `WeightedDags`; with missing values, tables come from the completed table of each state."""
        table_of = lru_cache(maxsize=1)(self._table_of)

        @lru_cache(maxsize=10_000)
        def count(source, child, parents):
            return table_of(source).family_counts(child, parents)

        listed = [dags.as_tuples(parents) for parents in sample.parents]
        cards, prior = np.asarray(self._variables.cardinalities), self._average.training.prior
        return effects.EffectQuestion(listed, self._sources(sample), count, prior, cards, of, on, given or {})

    def _table_of(self, state):
        """The `Training` that a kept state was drawn on."""
        average = self._average
        return average.training if average.gaps is None else completed_training(average, state)


def _fold(sample):
    """Equal DAGs (of the same state, where there are states) once, with the sum of their weights, state by state."""
    keys = sample.parents.reshape(len(sample.weights), -1)
    if sample.states is not None:
        keys = np.column_stack([sample.states, keys])
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    states = None if sample.states is None else sample.states[first]
    return dags.WeightedDags(sample.parents[first], np.bincount(inverse.ravel(), sample.weights), states)
