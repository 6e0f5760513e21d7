"""Class and arc posteriors averaged over node orders or DAGs: family scores, chains, exact sums."""
