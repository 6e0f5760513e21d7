"""Class and arc posteriors averaged over node orders or DAGs: family scores, chains, exact sums.

families     family_table, family_lists, counted (rows in passes), arcs
one order    fixed_order, search, unobserved
exact sums   exact_orders, exact_dags
chains       order_mcmc, partition_mcmc and chains (the paper's swaps); relocation and convergence (Gibbs moves); checkpoints
gaps         augment, augment_run, augmented_average
averages     weighting (every order once, or every DAG), structure_average, consensus, diagnostics
faces        fitting, parameters, results, network, classifier, posterior
"""
