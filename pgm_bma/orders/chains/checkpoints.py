"""The file that keeps a run of chains: written whole or not at all, refused when it is damaged or of another run."""

import os

import numpy as np

from pgm_bma.foundation.runtime.archive import Damaged, read_archive, write_archive

FORMAT = 2


def write_checkpoint(path, fingerprint, document, arrays):
    """Keep `document` (JSON) and `arrays` (name -> array) of a run."""
    record = {"format": FORMAT, "fingerprint": fingerprint, "names": list(arrays), "run": document}
    write_archive(path, record, arrays.values())


def read_checkpoint(path, fingerprint):
    """(document, name -> array), or None where there is no file; an error where it is damaged or another run's."""
    if path is None or not os.path.exists(path):
        return None
    fingerprint = fingerprint or {}
    try:
        with open(path, "rb") as file:
            archive = read_archive(file.read())
        record = archive.document
        if record["format"] != FORMAT:
            raise Damaged(f"it has format {record['format']}, this version writes {FORMAT}")
        arrays = {name: np.array(archive.array(k)) for k, name in enumerate(record["names"])}
        saved, run = record["fingerprint"], record["run"]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"checkpoint {path} cannot be read ({error}); delete it to start again, or name another file"
        ) from error
    for field in [*fingerprint, *(name for name in saved if name not in fingerprint)]:
        if saved.get(field) != fingerprint.get(field):
            raise ValueError(
                f"checkpoint {path} belongs to another run: {field} was {saved.get(field)}, "
                f"now it is {fingerprint.get(field)}; restore it, or name another file"
            )
    return run, arrays
