"""Kikuchi-Bayes classifier: regions of attributes and the class, combined in closed form."""

from copy import copy

import numpy as np
import pandas as pd
from sklearn.base import clone

from pgm_bma.foundation import table
from pgm_bma.foundation.classifier import ClassifierBase, single_row
from pgm_bma.foundation.missing import add_missing_state, mark_missing, with_missing_state
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice, check_number, resolve_preset
from pgm_bma.kikuchi import selection as kikuchi_selection
from pgm_bma.kikuchi.fit import KikuchiOptions, fit_kikuchi, information_gains, interaction_information
from pgm_bma.kikuchi.terms import class_data, downward_closure, interaction_terms, log_scores, term_evidence
from pgm_bma.kikuchi.tuning import DEFAULT_STRENGTH

_PAPER = {
    "cycles": "allow",
    "prior": "laplace",
    "weights": "counting",
    "criterion": "divergence",
    "regions": None,
    "missing": "state",
    "handle_unknown": "missing",
}
# the six columns of Table 2 of the paper
PRESETS = {
    "NB": {**_PAPER, "level": 1, "significance_level": 1.0},
    "K1": {**_PAPER, "level": 1, "significance_level": 0.1},
    "TAN": {**_PAPER, "level": 2},
    "TK": {**_PAPER, "level": 2, "significance_level": 0.1, "cycles": "table"},
    "K2": {**_PAPER, "level": 2, "significance_level": 0.1},
    "K2all": {**_PAPER, "level": 2, "significance_level": 1.0},
}
# pairs x rows up to which the interactions of all pairs are counted in fit
_PAIR_WORK = 500_000_000


class KikuchiBayesClassifier(ClassifierBase):
    """Kikuchi-Bayes: naive Bayes with every interaction between attributes that pays (Jakulin, Bratko, Rish 2004).

    A region is the class with one, two or three attributes. Regions that tell more about the class than the smaller regions
    inside them are found by tests; counting numbers of the region graph combine their probabilities in closed form. Regions may
    overlap in loops, where counting numbers take back too much or too little; weights on the interaction terms cure that.

    Parameters
    ----------
    level : 1, 2 or 3, default 2
        Largest number of attributes in a region. 1 is naive Bayes with selected attributes.
    significance_level : float, default 0.1
        A region is taken when its p is below; 1 takes every region (good with learned weights).
    n_resamples : int, default 100
        Resamples of a region's table behind a p near the threshold; far from it a chi-square tail decides.
    cycles : "allow", "gated" or "table"
        "gated": significant regions by rising p, without closing a cycle; "table": all regions that way.
    prior : "consistent", "laplace" or "marginal"
        "consistent": one total mass spread over the cells of every table; "laplace" (paper): one per cell; "marginal": only the
        maximal regions are estimated, smaller ones are the mean of their marginals.
    prior_strength : float or None
        Total mass of the consistent prior; None is 2, or chosen together with the ridge when ``ridge="cv"``.
    weights : "learned", "tree" or "counting"
        Weight of each interaction term. "counting" (paper): 1. "tree": pairs by their effective resistance, so that copies of an
        attribute count once. "learned": by leave-one-out conditional likelihood with a ridge around naive Bayes.
    ridge : "cv", "loo" or float
        Ridge of the learned weights: chosen by cross-validation (one each for single attributes, pairs, triples), by the
        approximate leave-one-out likelihood of the weights, or given. "loo" is cheaper and too trusting where cells are sparse.
    criterion : "divergence", "log_loss" or "error"
        What a region is judged by: divergence against resamples (paper), or the left-out loss, first of the region alone and then
        of the whole model.
    regions : list of lists of names, optional
        Initial regions by hand, the target's name included where a region holds the class; ``[]`` is the class alone.
    missing : "ignore" or "state"
        Missing cells in fit: left out of the tables that need them, or one more state of the column (paper).
    preset : None, "NB", "K1", "TAN", "TK", "K2" or "K2all"
        The six columns of Table 2 of the paper; sets everything above but `n_resamples`, and ``handle_unknown="missing"``.
    state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`
        At predict every term with a missing value (or an unseen one, with ``handle_unknown="missing"``) is left out.
    random_state : int, Generator, RandomState or None
        For resamples and folds.

    Attributes
    ----------
    initial_regions_ : list of frozensets, the maximal regions
    region_graph_ : networkx DiGraph of regions with `counting_number` and `level`
    tests_ : DataFrame with region, level, loss, mean_self_loss, p, z, resampled, taken; with another criterion than divergence
        `loss` and `mean_self_loss` are the left-out losses of the approximation and of the region's own table
    term_weights_ : Series, weight of the interaction term of each region
    interaction_strength_ : DataFrame in nats, I(X_i; class) on the diagonal, I(X_i; X_j | class) - I(X_i; X_j) beside it:
        positive where a pair says more than its attributes, negative where they repeat each other; NaN where not counted
    ridge_, prior_strength_ : ridge by number of attributes (dict, learned weights only), total mass of the consistent prior
    model_ : pgmpy DiscreteMarkovNetwork of exp(weight x term); on complete rows its normalised query equals `predict_proba`
    classes_, target_name_, target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import KikuchiBayesClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 20, "b": list("0101") * 20, "noise": list("01101001") * 10})
    >>> parity = KikuchiBayesClassifier(random_state=0).fit(X, ["even", "odd", "odd", "even"] * 20)
    >>> [sorted(region) for region in parity.initial_regions_]
    [['a', 'b', 'class']]
    >>> parity.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    """

    def __init__(
        self,
        *,
        level=2,
        significance_level=0.1,
        n_resamples=100,
        cycles="allow",
        prior="consistent",
        prior_strength=None,
        weights="learned",
        ridge="cv",
        criterion="divergence",
        regions=None,
        missing="ignore",
        preset=None,
        state_names=None,
        target_name=None,
        handle_unknown="missing",
        random_state=None,
    ):
        self.level = level
        self.significance_level = significance_level
        self.n_resamples = n_resamples
        self.cycles = cycles
        self.prior = prior
        self.prior_strength = prior_strength
        self.weights = weights
        self.ridge = ridge
        self.criterion = criterion
        self.regions = regions
        self.missing = missing
        self.preset = preset
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.random_state = random_state

    def log_scores(self, X):
        """Sum of the weighted terms that hold the class, not normalised: (n_samples, n_classes).

        With counting weights this is the sum over the regions that hold the class of c_R ln P(x_R, c).
        """
        return self._log_joint(self._encode(X))

    def region_loss(self, X, y, regions, focus, *, n_resamples=None, random_state=None):
        """Loss of an approximation inside a focus, D(P(C | X_F) || Phi(C | X_F)), with the self-loss of the focus.

        Needs no fit; prior and treatment of missing cells are those of the estimator.

        Parameters
        ----------
        X, y : table and classes, as in `fit`
        regions : lists of names, the initial regions of the approximation, the target's name in those that hold the class
        focus : names of the focus; the target is added
        n_resamples, random_state : as in the estimator, whose values are the default

        Returns
        -------
        RegionLoss
            A float, the loss in nats, with `self_losses` (n_resamples,), `mean_self_loss`, `p` and `z`.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import KikuchiBayesClassifier
        >>> X = pd.DataFrame({"a": list("0011") * 20, "b": list("0101") * 20})
        >>> y = pd.Series([0, 1, 1, 0] * 20, name="odd")
        >>> loss = KikuchiBayesClassifier(random_state=0).region_loss(X, y, [["a", "odd"], ["b", "odd"]], ["a", "b"])
        >>> round(loss, 3), loss.p
        (0.693, 0.0)
        """
        reader = clone(self)
        values = reader._resolve()
        training = reader._read_training(X, y, None)
        data = reader._class_data(training, values["missing"])
        sets = [s for s, holds in reader._attribute_sets(regions) if holds]
        inside = tuple(sorted(reader._attribute_sets([focus])[0][0]))
        n_resamples = values["n_resamples"] if n_resamples is None else n_resamples
        check_number("n_resamples", n_resamples, 0, integer=True)
        options = kikuchi_selection.SelectionOptions(
            values["prior"], values["prior_strength"] or DEFAULT_STRENGTH, n_resamples=n_resamples
        )
        rng = random_generator(self.random_state if random_state is None else random_state)
        return RegionLoss(*kikuchi_selection.region_loss(data, [(), *sets], inside, options, rng))

    def explain(self, row):
        """Evidence of each region for each class in one row: its weighted term, zeros where a value is missing.

        The index names the attributes of the region, "(prior)" is the class alone; the column sums are `log_scores`.
        """
        from pgm_bma.kikuchi.network import region_labels

        codes = self._encode(single_row(row, self))[0]
        evidence = term_evidence(self._result.terms, codes, self._result.weights)
        labels = region_labels(self._result.terms.layout.sets, self.schema_.names)
        return pd.DataFrame(evidence, index=labels, columns=list(self.classes_))

    def to_bayesian_network(self):
        """The fitted model as a pgmpy ``DiscreteBayesianNetwork``: exact, so that it can be written as BIF.

        Possible where the regions are acyclic (naive Bayes, ``cycles="gated"``, hand-made trees), else an error tells the loop.
        """
        from pgm_bma.kikuchi.network import kikuchi_bayesian_network

        names, states = self._variables()
        position = {name: k for k, name in enumerate(names)}
        regions = [frozenset(position[name] for name in region) for region in self.initial_regions_]
        regions += [frozenset([k]) for k in range(len(names))]
        return kikuchi_bayesian_network(self._factors(), regions, names, states)

    def to_networkx(self):
        """The regions as a plain ``networkx.Graph``: variables that share a region are joined, edges carry `interaction`."""
        from pgm_bma.kikuchi.region_graph import interaction_graph

        return interaction_graph(
            self.schema_.names, self.target_name_, self.initial_regions_, self.interaction_strength_
        )

    @property
    def region_graph_(self):
        """Region graph of the initial regions, built on first access."""
        if "_cached_region_graph" not in self.__dict__:
            from pgm_bma.kikuchi.region_graph import region_graph

            self._cached_region_graph = region_graph(self.initial_regions_)
        return self._cached_region_graph

    @property
    def interaction_strength_(self):
        """Information on the class in nats: of each attribute on the diagonal, of each pair beyond its attributes beside it."""
        names, values = list(self.schema_.names), self._information
        if values.ndim == 1:
            values = np.where(np.eye(len(names), dtype=bool), values, np.nan)
        return pd.DataFrame(values, index=names, columns=names)

    # ---------------------------------------------------------------------------------------------------- hooks

    def _fit(self, training):
        from pgm_bma.kikuchi.network import named_region, region_series, tests_frame

        values = self._resolve()
        self.__dict__.pop("_cached_region_graph", None)
        data = self._class_data(training, values["missing"])
        given = None if values["regions"] is None else self._attribute_sets(values["regions"])
        options = KikuchiOptions(
            values["level"],
            values["significance_level"],
            values["n_resamples"],
            values["cycles"],
            values["prior"],
            values["prior_strength"],
            values["weights"],
            values["ridge"],
            values["criterion"],
            "tan" if self.preset == "TAN" else "kikuchi",
        )
        holding = None if given is None else [s for s, holds in given if holds]
        self._check_tree(options, holding)
        result = fit_kikuchi(data, options, random_generator(self.random_state), holding)
        names, target = list(training.schema.names), self.target_name_
        self._result = result
        self._free_terms = self._terms_without_class(data, options, [s for s, holds in given or [] if not holds])
        self._handle_unknown = values["handle_unknown"]
        regions = [named_region(s, names, target) for s in result.regions]
        free = [frozenset(names[a] for a in s) for s, holds in given or [] if not holds and s]
        self.initial_regions_ = regions
        if free:
            everything = list(dict.fromkeys([*regions, *free]))
            self.initial_regions_ = [r for r in everything if not any(r < other for other in everything)]
        self.tests_ = tests_frame(result.tests, names, target)
        self.term_weights_ = region_series(result.terms.layout.sets, result.weights, names, target, "weight")
        self.ridge_ = None if result.learned is None else result.learned.ridge
        self.prior_strength_ = result.strength
        self._information = self._count_information(data, values["level"] > 1 or given is not None)

    def _log_joint(self, codes):
        return log_scores(self._result.terms, codes, self._result.weights)

    def _build_model(self):
        from pgm_bma.kikuchi.network import kikuchi_markov_network

        return kikuchi_markov_network(self._factors(), *self._variables())

    def _fitted_summary(self):
        return f"{super()._fitted_summary()}, {len(self.initial_regions_)} initial regions"

    # ---------------------------------------------------------------------------------------------------- helpers

    def _resolve(self):
        """Checked parameter values under the preset."""
        values = resolve_preset(self, PRESETS)
        check_number("level", values["level"], 1, 3, integer=True)
        check_number("significance_level", values["significance_level"], 0, 1)
        check_number("n_resamples", values["n_resamples"], 1, integer=True)
        check_choice("cycles", values["cycles"], ("allow", "gated", "table"))
        check_choice("prior", values["prior"], ("consistent", "laplace", "marginal"))
        check_choice("weights", values["weights"], ("learned", "tree", "counting"))
        check_choice("criterion", values["criterion"], ("divergence", "log_loss", "error"))
        check_choice("missing", values["missing"], ("ignore", "state"))
        if values["prior_strength"] is not None:
            check_number("prior_strength", values["prior_strength"], 0, open_low=True)
        if isinstance(values["ridge"], str):
            check_choice("ridge", values["ridge"], ("cv", "loo"))
        else:
            check_number("ridge", values["ridge"], 0, open_low=True)
        return values

    def _check_tree(self, options, holding):
        if options.weights != "tree":
            return
        largest = options.level if holding is None else max((len(s) for s in holding), default=0)
        if largest > 2:
            what = f"level={options.level}" if holding is None else f"a region of {largest} attributes"
            raise ValueError(f"weights='tree' knows pairs only, but {what} was passed; use weights='learned'")

    def _class_data(self, training, missing):
        """Folded codes for the room; columns with missing cells get one more state when `missing` is "state"."""
        schema, codes, self._state_columns = training.schema, training.codes, np.zeros(0, dtype=np.int64)
        if missing == "state":
            schema, codes, self._state_columns = add_missing_state(schema, codes)
        rows, weights, _ = table.fold(
            np.column_stack([codes.astype(np.int32), training.target.astype(np.int32)]), training.weights
        )
        unit = 1.0
        if training.weights is not None:  # weights from 1 on are repetitions, smaller ones parts of a row
            shares = training.weights / training.weights.sum()
            unit = min(float(shares @ training.weights), 1.0)
        return class_data(rows[:, :-1], rows[:, -1], schema.cardinalities, len(training.classes), weights, unit)

    def _attribute_sets(self, regions):
        """[(sorted attribute numbers, whether the class is in)] of regions given by name."""
        if isinstance(regions, str) or not hasattr(regions, "__iter__"):
            raise ValueError(f"regions must be a list of lists of names, got {regions!r}")
        sets = []
        for region in regions:
            if isinstance(region, str) or not hasattr(region, "__iter__"):
                raise ValueError(f"a region must be a list of names, got {region!r}; write [{region!r}]")
            try:
                members = set(region)
            except TypeError:
                raise ValueError(f"region {list(region)!r} must hold names of columns, not lists of them") from None
            unknown = [name for name in region if name not in self.schema_.names and name != self.target_name_]
            if unknown:
                raise ValueError(
                    f"region {sorted(map(str, members))} holds {unknown[0]!r}, which is no column and not the target "
                    f"{self.target_name_!r}"
                )
            attributes = sorted(self.schema_.index(name) for name in members - {self.target_name_})
            sets.append((tuple(attributes), self.target_name_ in members))
        return sets

    def _terms_without_class(self, data, options, free_regions):
        """Terms of class-free regions, and of attributes that are in no region: they say nothing of the class."""
        held = {a for s in [*self._result.regions, *free_regions] for a in s}
        alone = [(a,) for a in range(len(data.cardinalities)) if a not in held]
        sets = downward_closure([*free_regions, *alone])
        if len(sets) == 1:
            return None
        blind = data._replace(target=np.zeros_like(data.target), n_classes=1)
        return interaction_terms(blind, sets, options.prior, self._result.strength)

    def _count_information(self, data, pairs):
        """(n, n) with the interactions of all pairs, or (n,) information gains when pairs are not wanted or too many."""
        n_features = len(data.cardinalities)
        if pairs and n_features**2 * (data.n_classes + len(data.codes)) <= _PAIR_WORK:
            return interaction_information(data)
        return information_gains(data)

    def _variables(self):
        """Names and states of the model's variables, the class last."""
        states = with_missing_state(self.schema_, self._state_columns).states
        return [*self.schema_.names, self.target_name_], [*map(list, states), list(self.target_states_)]

    def _factors(self):
        from pgm_bma.kikuchi.network import log_factors

        return log_factors(self._result, self._free_terms, self.n_features_in_)

    def _encode(self, X):
        reader = self
        if self.__dict__.get("_handle_unknown", self.handle_unknown) != self.handle_unknown and self.preset is not None:
            reader = copy(self)  # a preset decides on unseen values, and parameters stay as they were passed
            reader.handle_unknown = self._handle_unknown
        codes = super(KikuchiBayesClassifier, reader)._encode(X)
        return mark_missing(X, codes, self.schema_, self._state_columns)


class RegionLoss(float):
    """The loss of an approximation inside a focus, in nats, with the self-losses of the focus' resamples."""

    def __new__(cls, loss, self_losses):
        value = super().__new__(cls, loss)
        value.self_losses = self_losses
        value.mean_self_loss = float(np.mean(self_losses)) if len(self_losses) else np.nan
        value.p = kikuchi_selection.tail_share(self_losses, loss)
        spread = float(np.std(self_losses)) if len(self_losses) else np.nan
        value.z = float(
            kikuchi_selection.z_scores(np.float64(loss), np.float64(value.mean_self_loss), np.float64(spread))
        )
        return value

    def __getnewargs__(self):
        return float(self), self.self_losses
