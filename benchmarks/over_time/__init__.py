"""Speed over time: what asv and `python -m benchmarks instructions` run on several commits."""
