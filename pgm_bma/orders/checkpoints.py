"""Checkpoints of order estimators: whether a file can be written, and what it must share with the run that reads it."""

import hashlib
import os

import numpy as np

# what a checkpoint must share, with the data, the arcs, the seed and the version
_FINGERPRINT = (
    "structure_weighting", "max_indegree", "alpha", "equivalent_sample_size", "parameter_prior", "structure_prior", "missing",
)  # fmt: skip
_FREE = ("tol", "max_time", "checkpoint")  # of the sampler: a run may go on under other values


def check_checkpoint(path):
    """Raise an error where the file cannot be written."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path) or not os.path.isdir(folder):
        wrong = "it is a folder" if os.path.isdir(path) else f"there is no folder {folder!r}"
        raise ValueError(f"checkpoint={str(path)!r} cannot be written: {wrong}")


def fingerprint(training, names, settings, arcs, random_state, root, orders=None):
    """Return what a checkpoint must share with the run that reads it: field -> text; orders : those that are given."""
    import pgm_bma

    digest = hashlib.sha256()
    for part in training.digested:
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(repr(names).encode())
    fields = {"version": pgm_bma.__version__, "data": digest.hexdigest()}
    fields.update({name: repr(getattr(settings, name)) for name in _FINGERPRINT})
    fields["sampler"] = type(settings.sampler).__name__
    fields.update({name: repr(v) for name, v in settings.sampler.get_params().items() if name not in _FREE})
    fields["orders"] = repr(orders)
    for name, pairs in zip(("required_arcs", "forbidden_arcs"), arcs):
        fields[name] = repr([(names[p], names[c]) for p, c in pairs])
    fields["arc_prior"] = "None" if arcs.odds is None else hashlib.sha256(arcs.odds.tobytes()).hexdigest()
    # a fresh seed is new at every start: then the generators in the file carry on
    fields["random_state"] = "None" if random_state is None else repr((root.entropy, root.spawn_key))
    return fields
