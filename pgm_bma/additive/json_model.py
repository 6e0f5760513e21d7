"""An additive model as plain lists and numbers, which JSON holds, and back (see `AdditiveBayesClassifier.to_dict`)."""

import numpy as np

from pgm_bma.additive.forest import MIXED, Forest
from pgm_bma.additive.model import AdditiveModel, Density, DensityPart, Slope, Trees
from pgm_bma.additive.terms import CLIP
from pgm_bma.foundation.faces.validation import brief
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.cut_points import bin_labels

FORMAT, VERSION = "pgm_bma additive model", 1
_LOW_BITS = 31  # of a mask, in its first half: other languages have 32 bits
_LOW = 2**_LOW_BITS - 1


def as_dict(model, target, classes, schema, edges):
    """The model in plain lists and numbers, see `AdditiveBayesClassifier.to_dict`; edges {name: (n_bins - 1,)} of the numbers."""
    columns = []
    for name, states in zip(schema.names, schema.states):
        if name in edges:
            columns.append({"name": _plain(name), "kind": "number", "edges": [float(edge) for edge in edges[name]]})
        else:
            columns.append({"name": _plain(name), "kind": "states", "states": [_plain(s) for s in states]})
    return {
        "format": FORMAT,
        "version": VERSION,
        "target": _plain(target),
        "classes": [_plain(c) for c in classes],
        "columns": columns,
        "clip": CLIP,
        "prior": model.prior.tolist(),
        "tables": [
            {"column": int(model.columns[j]), "evidence": table.tolist()} for j, table in enumerate(model.tables)
        ],
        "slopes": [
            {"column": int(model.columns[s.column]), "mean": s.mean, "spread": s.spread, "weights": s.weights.tolist()}
            for s in model.slopes
        ],
        "pairs": [
            {"columns": [int(model.columns[i]), int(model.columns[j])], "evidence": table.tolist()}
            for (i, j), table in model.pairs.items()
        ],
        "densities": [
            {
                "columns": [int(j) for j in _numeric_columns(model, columns)],
                "knots": [{"values": values.tolist(), "scores": scores.tolist()} for values, scores in density.knots],
                "means": density.means.tolist(),
                "parts": [
                    {
                        "class": part.group,
                        "weight": part.weight,
                        "constant": part.constant,
                        "joint_power": part.joint_power,
                        "single_power": part.single_power,
                        "inverse": part.inverse.tolist(),
                        "widths": part.widths.tolist(),
                    }
                    for part in density.parts
                ],
            }
            for density in model.densities
        ],
        "trees": [
            {
                "columns": [int(model.columns[j]) for j in splits[:, 0]],
                "last_bins": splits[:, 1].tolist(),
                "leaves": leaves.tolist(),
            }
            for trees in model.trees
            for splits, leaves in zip(trees.splits, trees.leaves)
        ],
        "forest": None if model.forest is None else _forest_dict(model.forest),
    }


def _forest_dict(forest):
    edges = {str(j): edge.tolist() for j, edge in zip(forest.numbers.tolist(), forest.edges)}
    return {
        "weight": forest.weight,
        "mixed": MIXED,
        "shares": forest.shares.tolist(),
        "edges": edges,
        "roots": forest.roots.tolist(),
        "columns": forest.columns.tolist(),
        "masks": [(forest.masks & _LOW).tolist(), (forest.masks >> _LOW_BITS).tolist()],
        "children": forest.children.tolist(),
        "leaves": forest.leaves.tolist(),
    }


def _forest_of(content, n_columns, n_classes):
    """`Forest` from what `_forest_dict` made; an error where its nodes lead out of it, as compiled code does not look."""
    low, high, columns, children, roots, numbers = (
        np.array(part, dtype=np.int64).ravel()
        for part in (
            *content["masks"],
            content["columns"],
            content["children"],
            content["roots"],
            list(content["edges"]),
        )
    )
    leaves, places = np.array(content["leaves"], dtype=float), np.arange(len(children))
    inner = children >= 0
    sound = len(low) == len(high) == len(columns) == len(children) and leaves.shape[1:] == (n_classes,)
    for index, size in ((columns, n_columns), (numbers, n_columns), (roots, len(children))):
        sound = sound and bool(((0 <= index) & (index < size)).all())
    sound = sound and bool((places[inner] < children[inner]).all() and (children[inner] < len(children) - 1).all())
    if not sound or (children < -len(leaves)).any():
        raise ValueError("the forest in content leads to nodes, leaves or columns that are not there; pass a to_dict()")
    edges = [np.array(edge, dtype=float) for edge in content["edges"].values()]
    shares = np.array(content["shares"], dtype=float)
    masks = low | (high << _LOW_BITS)
    return Forest(numbers, edges, columns, masks, children, leaves, roots, shares, content["weight"])


def _plain(value):
    """A name, state or class as JSON has it; an error for what it has not."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, (str, int, float, bool)):
        return value
    raise ValueError(f"{value!r} is neither a text nor a number, so JSON cannot hold it; fit with texts instead")


def from_dict(content):
    """`AdditiveModel` from what `as_dict` made."""
    columns = np.array([table["column"] for table in content["tables"]], dtype=np.int64)
    position = {int(column): j for j, column in enumerate(columns)}
    all_numbers = [k for k, column in enumerate(content["columns"]) if column["kind"] == "number"]
    own = [k for k in all_numbers if k in position]
    number = {k: m for m, k in enumerate(own)}
    slopes = [
        Slope(position[s["column"]], number[s["column"]], s["mean"], s["spread"], np.array(s["weights"]))
        for s in content["slopes"]
    ]
    pairs = {
        tuple(position[c] for c in pair["columns"]): np.array(pair["evidence"], dtype=float)
        for pair in content["pairs"]
    }
    densities = []
    for density in content["densities"]:
        parts = [
            DensityPart(
                part["class"], part["weight"], part["constant"], part["joint_power"], part["single_power"],
                np.array(part["inverse"]), np.array(part["widths"]),
            )
            for part in density["parts"]
        ]  # fmt: skip
        knots = [(np.array(knot["values"]), np.array(knot["scores"])) for knot in density["knots"]]
        densities.append(Density(knots, np.array(density["means"]), parts))
    tables = [np.array(table["evidence"], dtype=float) for table in content["tables"]]
    numbers = np.array([all_numbers.index(k) for k in own], dtype=np.int64)
    trees = [
        Trees(
            np.array([[[position[c], b] for c, b in zip(tree["columns"], tree["last_bins"])]], dtype=np.int64),
            np.array([tree["leaves"]], dtype=float),
        )
        for tree in content["trees"]
    ]
    prior, forest = np.array(content["prior"]), None
    if content.get("forest"):
        forest = _forest_of(content["forest"], len(content["columns"]), len(content["classes"]))
    return AdditiveModel(columns, numbers, prior, tables, slopes, pairs, densities, tuple(trees), forest)


def _numeric_columns(model, columns):
    """Positions in the table of the columns whose numbers vary together."""
    return [j for j in model.columns if columns[j]["kind"] == "number"]


def check_content(content):
    """Raise an error unless `content` is what `as_dict` makes."""
    found = [content.get("format"), content.get("version")] if isinstance(content, dict) else content
    if found != [FORMAT, VERSION]:
        raise ValueError(
            f"content is {brief(found)}, not a model of format {FORMAT!r} and version {VERSION}; pass a to_dict()"
        )


def schema_of(content):
    """The `Schema` of the columns; numbers have their bins as states."""
    states = [
        tuple(column["states"] if column["kind"] == "states" else bin_labels(np.array(column["edges"])))
        for column in content["columns"]
    ]
    return table.Schema(tuple(column["name"] for column in content["columns"]), tuple(states))
