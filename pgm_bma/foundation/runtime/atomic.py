"""Files that are written whole or not at all: a draft of its own name in the same folder, synced, then renamed.

Two writers of one path never mix: a reader sees the old file or one of the new ones. Nobody else's file is touched, and no
draft is left behind, whatever ends the writing.
"""

import contextlib
import os
import tempfile
from pathlib import Path


@contextlib.contextmanager
def replacing(path, mode="wb", **keywords):
    """A file open for writing that takes the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : str or path-like
    mode, keywords : as in ``open`` ("wb" or "w")

    Raises
    ------
    OSError
        Where the folder cannot be written or the disk is full; the message names file and folder, the old file stays.

    Examples
    --------
    >>> import os, tempfile
    >>> from pgm_bma.foundation.runtime.atomic import replacing
    >>> path = os.path.join(tempfile.mkdtemp(), "note.txt")
    >>> with replacing(path, "w", encoding="utf-8") as file:
    ...     _ = file.write("all of it")
    >>> open(path).read()
    'all of it'
    """
    path = file_path(path)
    draft = None
    try:
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:40]}.")  # at most 255 bytes
        with open(handle, mode, **keywords) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, _permissions(path))
        os.replace(draft, path)
        draft = None
    except OSError as error:
        folder = path.parent.resolve()
        if error.filename is not None and Path(os.fsdecode(error.filename)).parent.resolve() != folder:
            raise  # of something else that the block did
        raise type(error)(error.errno, f"{error.strerror}: {path.name} could not be written in {folder}") from error
    finally:
        if draft is not None:
            with contextlib.suppress(OSError):
                os.unlink(draft)
    _sync_folder(path.parent)


def _permissions(path):
    """Those of the file that is replaced, else what ``open`` would have given."""
    with contextlib.suppress(OSError):
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder):
    with contextlib.suppress(OSError):  # a folder cannot be opened or synced everywhere
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def file_path(path, name="path"):
    """`path` as a `Path`; an error names the argument, its value and what would do.

    Bytes of a file name that is not UTF-8 (Python writes them as U+DC80 to U+DCFF) stay what they are.

    Examples
    --------
    >>> from pgm_bma.foundation.runtime.atomic import file_path
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
