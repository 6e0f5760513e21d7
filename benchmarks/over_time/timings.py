"""Benchmarks of asv, one per work. ``asv run --quick`` runs them; ``asv compare`` shows two commits next to each other."""

from .works import WORKS, prepared


class Works:
    """CPU time of every work, after a first call."""

    params = [list(WORKS)]
    param_names = ["work"]
    timeout = 300
    number = 1  # a work is long enough; asv repeats it
    warmup_time = 0

    def setup(self, work):
        self.run = prepared(WORKS[work])

    def time_work(self, work):
        self.run()


class Import:
    """Seconds until the package and one estimator are there."""

    def timeraw_import(self):
        return "import pgm_bma; pgm_bma.EMAClusterer"
