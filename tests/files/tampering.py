"""Saved files that a stranger changed: one array of one file, with checksums that fit again."""

import base64
import copy
import zipfile

import numpy as np

from pgm_bma.foundation.runtime.archive import read_archive, write_archive


def read_parts(path):
    """(document, arrays) of a saved file."""
    archive = read_archive(path.read_bytes())
    with zipfile.ZipFile(path) as file:
        return archive.document, [archive.array(i) for i in range(len(file.namelist()) - 2)]


def array_nodes(node):
    """Every node of the document that holds an array of numbers, or points to one."""
    if isinstance(node, list):
        for item in node:
            yield from array_nodes(item)
    elif isinstance(node, dict):
        if node.get("t") in ("ndarray", "npy"):
            yield node
        for item in node.values():
            yield from array_nodes(item)


def corruptions(array):
    """(name, changed array): what is wrong with it, several ways."""
    yield "shorter", array[:-1].copy()
    yield "flat", array.reshape(-1, 1).copy() if array.ndim == 1 else array.ravel().copy()
    yield "texts", array.astype("U12")
    if array.dtype.kind not in "if" or not array.size:
        return
    whole = array.dtype.kind == "i"
    values = {"negative": -7, "large": 10**6} if whole else {"nan": np.nan, "negative": -7.5, "infinite": np.inf}
    for name, value in values.items():
        for place in {0, array.size // 2, array.size - 1}:
            changed = array.copy()
            changed.flat[place] = value
            yield f"{name} at {place}", changed
    if array.size > 1:
        changed = array.copy()
        changed.flat[0], changed.flat[-1] = changed.flat[-1], changed.flat[0]
        yield "swapped", changed


def tampered(document, arrays):
    """(what was done, document, arrays) of every change."""
    nodes = list(array_nodes(document))
    for place, node in enumerate(nodes):
        if node["t"] == "npy":
            original = arrays[node["v"]]
        else:
            dtype, shape, order, content = node["v"]
            original = np.frombuffer(base64.b64decode(content), dtype=dtype).reshape(shape, order=order)
        if original.ndim == 0:
            continue
        for name, changed in corruptions(original):
            new = copy.deepcopy(document)
            target = list(array_nodes(new))[place]
            order = "F" if original.flags.f_contiguous and not original.flags.c_contiguous else "C"
            target["t"] = "ndarray"
            target["v"] = [
                changed.dtype.str,
                list(changed.shape),
                order,
                base64.b64encode(changed.tobytes(order)).decode(),
            ]
            yield f"array {place} {original.dtype}{original.shape}: {name}", new, arrays


def write_tampered(path, document, arrays):
    """Write the changed parts; every array that is still spoken of has its place."""
    write_archive(path, document, arrays)
