"""Names of files as a user hands them over, read before the system is asked: what no file name may hold is told in words."""

import os
from pathlib import Path


def file_path(path, name="path"):
    """`path` as a `Path`; an error names the argument, its value and what would do.

    Bytes of a file name that is not UTF-8 (Python writes them as U+DC80 to U+DCFF) stay what they are.

    Examples
    --------
    >>> from pgm_bma.foundation.runtime.paths import file_path
    >>> file_path("model.pgm").name
    'model.pgm'
    """
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"{name}={_shown(path)} must be the path of a file: a text or a Path")
    text = os.fspath(path)
    if "\0" in text:
        raise ValueError(f"{name}={_shown(text)} holds a zero byte, which no file name may; leave it out")
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise ValueError(
            f"{name}={_shown(text)} holds a character that this system cannot write in a file name; leave it out"
        ) from None
    return Path(text)


def _shown(value):
    from pgm_bma.foundation.faces.validation import brief  # numpy, which the help of the command line does without

    return brief(value)
