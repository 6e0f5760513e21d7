"""Speed against peers, and the tables of the papers reproduced. `python -m benchmarks` lists what there is."""
