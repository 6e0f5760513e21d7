"""The two families of structures that structural EM searches, each behind one object: what its estimator asks of it.

`AUGMENTED` is augmented naive Bayes, `GENERAL` any directed acyclic graph over cluster and columns. A kind knows how a
structure and its parameters are held (`AugmentedModel` and `GeneralModel` are its structures with their rows, which the loops of
`structural_em` see) and how to turn them into a network: families and tables of the cluster, node 0, and the columns.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.search import family_scores
from pgm_bma.augmented.structures import AugmentedModel, BlocksModel, attribute_families
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.networks.em import relabel
from pgm_bma.networks.given import as_augmented


class ClusterTable(NamedTuple):
    """Rows in memory: codes (n, n_columns), weights (n,), cardinalities (n_columns,)."""

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray


class Start(NamedTuple):
    """Where a start comes from ("naive_bayes", "tree" or "network"), its first structure and its first parameters."""

    init: str
    model: Any
    parameters: Any


def make_starts(kind, rows, n_clusters, generators, inits, settings, given=None):
    """One Start per generator.

    rows : ClusterTable, or for augmented naive Bayes `Rows` of `Block`
    inits : of every start     given : (families, tables, node names) of the network behind "network"
    """
    n_columns = len(rows.schema.names) if isinstance(rows, Rows) else len(rows.cardinalities)
    naive = kind.model(rows, n_clusters, kind.structure(np.full(n_columns, -1), settings.max_indegree), settings)
    models = {"naive_bayes": naive}
    if "tree" in inits:
        models["tree"] = naive.with_structure(kind.structure(naive.tree(), settings.max_indegree))
    starts = []
    for init, rng in zip(inits, generators):
        if init == "network":
            parents, parameters = kind.read(*given)
            starts.append(Start(init, naive.with_structure(parents), parameters))
        else:
            starts.append(Start(init, models[init], models[init].random_parameters(n_clusters, rng)))
    return starts


class _Augmented:
    """Parents: (n_columns,) other parent of every column, -1 = none. Parameters: `model.Parameters`."""

    def model(self, rows, n_clusters, parents, settings):
        """A structure with its rows, for the loops."""
        if isinstance(rows, Rows):
            return BlocksModel.build(rows, parents, settings.prior)
        cases = anb.make_cases(rows.codes, rows.cardinalities, rows.weights)
        return AugmentedModel.build(cases, parents, settings.prior)

    def structure(self, parents, max_indegree):
        """The structure in which every column has the cluster and, where `parents` names it, one other column above it."""
        return parents

    def read(self, families, tables, names):
        """(parents, parameters) of a network; an arc that does not fit is an error."""
        parents, class_probs, tables = as_augmented(families, tables, names)
        return parents, anb.Parameters(np.ascontiguousarray(class_probs), anb.pack_tables(tables))

    def by_size(self, run, renumber):
        """(parents, parameters) of a run, clusters by falling probability where `renumber`."""
        class_probs, table = run.parameters
        order = np.argsort(-class_probs, kind="stable") if renumber else slice(None)
        parameters = anb.Parameters(np.ascontiguousarray(class_probs[order]), np.ascontiguousarray(table[:, order]))
        return run.model.parents, parameters

    def network(self, parents, parameters, cardinalities):
        """(families, tables): parents of every node as positions, and (n_parent_states, n_states) of each."""
        tables = anb.unpack_tables(parameters.table, anb.make_layout(parents, cardinalities))
        return attribute_families(parents), [
            parameters.class_probs[None],
            *(t.reshape(-1, t.shape[-1]) for t in tables),
        ]

    def log_joint(self, codes, cardinalities, parents, parameters):
        """Natural log p(cluster, row), missing cells summed out: (n_samples, n_clusters)."""
        return anb.log_joint(codes, cardinalities, parents, parameters)

    def family_scores(self, model, parameters, responsibilities, names):
        """Scores of every column below the cluster alone and below the cluster and one other, see the estimator."""
        n_clusters = len(parameters.class_probs)
        if model.cases.n_complete < len(model.cases.codes) and responsibilities.shape[1] != n_clusters:
            raise ValueError(
                f"responsibilities has {responsibilities.shape[1]} clusters, the model that completes the missing cells "
                f"{n_clusters}"
            )
        return model.family_scores(parameters, np.ascontiguousarray(responsibilities[model.order]))


class _General:
    """Parents: a tuple of tuples of nodes. Parameters: a list of tables (n_parent_states, n_states)."""

    def model(self, rows, n_clusters, parents, settings):
        cards = np.array([n_clusters, *rows.cardinalities])
        codes = general.with_cluster(rows.codes)
        return general.GeneralModel(codes, rows.weights, cards, parents, settings.prior, settings.max_indegree)

    def structure(self, parents, max_indegree):
        return attribute_families(parents if max_indegree > 1 else np.full(len(parents), -1))

    def read(self, families, tables, names):
        return families, tables

    def by_size(self, run, renumber):
        parents, tables = tuple(run.model.parents), list(run.parameters)
        if renumber:
            order = np.argsort(-(run.model.weights @ run.responsibilities), kind="stable")
            tables = relabel(tables, parents, run.model.cardinalities, 0, order)
        return parents, tables

    def network(self, parents, parameters, cardinalities):
        return parents, parameters

    def log_joint(self, codes, cardinalities, parents, parameters):
        return general.log_joint(codes, np.array([parameters[0].shape[-1], *cardinalities]), parents, parameters)

    def family_scores(self, model, parameters, responsibilities, names):
        codes = model.codes[:, 1:]
        if (codes < 0).any():
            name = names[int(np.argmax((codes < 0).any(axis=0)))]
            raise ValueError(
                f"column {name!r} has missing cells; with structures='general' pass complete rows, or impute"
            )
        cases = anb.make_cases(codes, model.cardinalities[1:], model.weights)
        return family_scores(cases, responsibilities[cases.order], model.prior)


AUGMENTED, GENERAL = _Augmented(), _General()
KINDS = {"augmented": AUGMENTED, "general": GENERAL}


def kind_of(parameters):
    """The kind of fitted parameters."""
    return AUGMENTED if isinstance(parameters, anb.Parameters) else GENERAL
