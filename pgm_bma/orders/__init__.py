"""Class and arc posteriors averaged over node orders or DAGs.

families   scores of parent sets: tables, lists, counts from rows in passes
sums       exact sums: over one order, all orders, all DAGs; values that are not observed
chains     chains over orders and DAGs: states, moves, one runner
`gaps`     tables with missing values: structures and cells are sampled together
"""
