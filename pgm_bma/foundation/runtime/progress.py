"""Progress bars: one way to show them, for anything that takes longer than two seconds."""

from contextlib import contextmanager

DELAY = 2  # seconds before a bar appears


@contextmanager
def progress(show, unit, *, total=None, label=None, file=None):
    """A function that counts what is done, or None when nothing is to be shown.

    show : whether to show a bar     unit : what is counted, in the plural     total : how many, if known
    label : before the bar     file : where it is shown, standard error unless given
    """
    if not show:
        yield None
        return
    from tqdm.auto import tqdm

    shown = {"desc": label, "total": total, "unit": f" {unit}", "unit_scale": (total or 10_000) >= 10_000, "file": file}
    with tqdm(**shown, delay=DELAY, leave=False) as bar:
        yield bar.update
