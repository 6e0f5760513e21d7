"""What a command says: lines and tables on standard output; progress, notes and warnings on standard error.

On a terminal progress is a bar; in a pipe or a log file it is one plain line per step.
"""

import os
import shutil
import signal
import sys
import textwrap
import threading

from pgm_bma.foundation.runtime.messages import progress
from pgm_bma.report.page import column_cell, visible

WIDTH = 100  # of texts beside their names; less on a narrow terminal


class UsageError(Exception):
    """The words of a command do not fit together; exit code 2."""


class ends_at_once:
    """Context manager under which Ctrl-C ends the program there and then, with exit code 130.

    Python would raise KeyboardInterrupt, and raised inside a compiled loop that can crash the interpreter. Where several
    processes do the work (`n_jobs`), no such loop runs here, and KeyboardInterrupt lets joblib end them. Code of other
    libraries may swallow it: then the next step of a progress bar, or the end of this block, raises it again.
    """

    asked = False  # Ctrl-C was pressed while several processes worked

    def __init__(self, n_jobs=1):
        self.n_jobs = n_jobs

    def __enter__(self):
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self._leave if self.n_jobs == 1 else self._ask)

    def __exit__(self, *_):
        if self.main:
            signal.signal(signal.SIGINT, self.before)
            self.check()

    @classmethod
    def check(cls):
        if cls.asked:
            cls.asked = False
            raise KeyboardInterrupt

    @staticmethod
    def _ask(signum, frame):
        ends_at_once.asked = True
        raise KeyboardInterrupt

    @staticmethod
    def _leave(signum, frame):
        os.write(2, b"\npgm-bma: interrupted\n")
        os._exit(130)


class Console:
    """Collects the notes and warnings of a run while it prints them, so that the report can repeat them."""

    def __init__(self, out=None, err=None):
        self.out, self.err = out or sys.stdout, err or sys.stderr
        self.notes, self.warnings = [], []

    @property
    def is_terminal(self):
        return bool(getattr(self.err, "isatty", lambda: False)())

    def say(self, text=""):
        try:
            print(visible(text.replace("\u00a0", " ")), file=self.out, flush=True)
        except BrokenPipeError:  # the reader of a pipe has gone, as in `... | head -3`; the files are still wanted
            self.out = sys.stdout = open(os.devnull, "w")

    def item(self, name, text):
        """A line with a name in a left column; long texts are wrapped beside it."""
        width = WIDTH
        if getattr(self.out, "isatty", lambda: False)():
            width = max(min(width, shutil.get_terminal_size().columns - 13), 20)
        wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        for i, line in enumerate(wrapped):
            self.say(f"{name if i == 0 else '':<10}  {line}")

    def note(self, text):
        self.notes.append(text)
        print(f"note: {visible(text)}", file=self.err, flush=True)

    def warn(self, text):
        text = one_line(text)
        if text not in self.warnings:
            self.warnings.append(text)
            print(f"warning: {visible(text)}", file=self.err, flush=True)

    def step(self, text):
        """What is being done now; on a terminal the bars say it."""
        if not self.is_terminal:
            print(visible(text), file=self.err, flush=True)

    def compiling(self, line):
        """The line that says why the first call takes longer."""
        print(visible(line.removeprefix("pgm_bma: ")), file=self.err, flush=True)

    def progress(self, steps, total, label, brief=False, quiet=False):
        """Yield from `steps`, showing how far it is; `brief`: one line for all where there is no terminal, `quiet`: none."""
        with progress(self.is_terminal, "steps", total=total, label=label, file=self.err) as advance:
            for number, step in enumerate(steps, start=1):
                ends_at_once.check()
                if advance is not None:
                    advance(1)
                elif not quiet and (not brief or number == total):
                    self.step(f"{label}: {number} of {total} done")
                yield step


def text_table(frame, digits=3):
    """A DataFrame as plain text: texts left, numbers right."""
    columns = []
    for name, values in frame.items():
        cells = [column_cell(name, value, digits) for value in values]
        left = any(isinstance(value, str) for value in values)
        width = max(map(len, [str(name), *cells]))
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in (str(name), "-" * width, *cells)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns))


def one_line(text):
    return " ".join(str(text).split())


def listed(names, limit=6):
    """'a', 'b' and 3 more."""
    names = [repr(name) if isinstance(name, str) else str(name) for name in names]
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit} more"
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def count(number, word, plural=None):
    """1 row, 2 rows."""
    return f"{number} {word if number == 1 else plural or word + 's'}"
