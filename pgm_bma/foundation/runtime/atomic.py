"""Files that are written whole or not at all: a draft of its own name in the same folder, synced, then renamed.

Two writers of one path never mix: a reader sees the old file or one of the new ones. Nobody else's file is touched. No draft is
left behind; what a killed process left is removed by the next writer of that path. Only regular files are read and replaced.
"""

import contextlib
import glob
import os
import platform
import stat
import tempfile
import time
import zlib
from pathlib import Path

_DRAFT = ".pgm_bma-draft"
_ABANDONED = 86400.0  # seconds after which nobody writes to a draft any more, on any machine


@contextlib.contextmanager
def replacing(path, mode="wb", **keywords):
    """A file open for writing that takes the place of `path` when the block ends without an error.

    Parameters
    ----------
    path : str or path-like
    mode, keywords : as in ``open`` ("wb" or "w")

    Raises
    ------
    ValueError
        Where `path` is a folder, a pipe or a device. Through a link the file that it leads to is replaced.
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
    refuse_special(path)
    if path.is_symlink():
        path = path.resolve()
    draft = None
    try:
        prefix = f".{path.name[:40]}."  # at most 255 bytes in all
        _remove_abandoned(path.parent, prefix)
        handle, draft = tempfile.mkstemp(_DRAFT, f"{prefix}{_machine()}-{os.getpid()}.", path.parent)
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


def read_bytes(path):
    """The content of a regular file; a folder, a pipe or a device is an error at once."""
    path = file_path(path)
    refuse_special(path)
    return path.read_bytes()


def refuse_special(path):
    """An error for what is there and no regular file: reading a pipe would wait for ever, replacing a device would break it."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # not there, or not for us: what opens it has the words
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe" if stat.S_ISFIFO(mode) else "a device or socket"
        raise ValueError(f"{path} is {what}; pass the path of a file")


def _remove_abandoned(folder, prefix):
    """Remove the drafts of writers that were killed: of processes of this machine that are no more, and very old ones."""
    for name in glob.glob(f"{glob.escape(prefix)}*{_DRAFT}", root_dir=folder, include_hidden=True):
        machine, _, process = name[len(prefix) :].partition(".")[0].partition("-")
        with contextlib.suppress(OSError):
            old = time.time() - os.stat(folder / name).st_mtime > _ABANDONED
            if old or (machine == _machine() and process.isdigit() and not _is_alive(int(process))):
                os.unlink(folder / name)


def _machine():
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_alive(process):
    if os.name != "posix":  # where there is no harmless way to ask
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


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
