"""Docstring parts of the parameters and attributes that the order estimators share (`foundation.faces.docstrings.fill`)."""

_PARENTS = """max_indegree : int, default=3
        Most parents of a variable."""

_PRIOR = """alpha : float, default=1.0
        Pseudo-count of a cell, as `parameter_prior` spreads it.
    equivalent_sample_size : float, optional
        Total pseudo-count of every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": alpha in every cell, but no table holds more pseudo-counts than a quarter of the rows; those of larger
        tables are spread evenly, so that no arc gains from a larger table. "paper": alpha in every cell (K2 when 1), under which
        arcs into a column of very many states, noise or not, look certain."""

_BY_EVIDENCE = """alpha : float, optional
        Pseudo-count of a cell, as `parameter_prior` spreads it; 1 under "consistent" and "paper" unless given. If it is given,
        "evidence" is read as "consistent".
    equivalent_sample_size : float, optional
        Total pseudo-count of every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"evidence", "consistent", "paper"}, default="evidence"
        "evidence": BDeu, with the total of 1, 3 and 10 that has most evidence: summed over all orders up to 16 columns, else
        under good orders. Equivalent DAGs have equal scores. "consistent": alpha in every cell, but no table holds more
        pseudo-counts than a quarter of the rows; those of larger tables are spread evenly. "paper": alpha in every cell (K2 when
        1), under which arcs into a column of very many states, noise or not, look certain."""

_SETS = """structure_prior : {"mdl", "friedman_koller", "fair", "fair+", "uniform"}, default="mdl"
        Prior of a parent set by its size; "mdl" is the paper's (ORD eq. 13). "friedman_koller", or "fair": every number of parents
        has the same prior. "fair+": k parents have 1 / (k + 1)^2 of that.
    expert_knowledge : pgmpy ExpertKnowledge or dict, optional
        Required and forbidden arcs, a temporal order and a search space; a dict says the same in the words `required_edges`,
        `forbidden_edges` (pairs (parent, child) of names), `temporal_order` and `search_space`."""

FAMILIES = "\n    ".join([_PARENTS, _PRIOR, _SETS])
FAMILIES_BY_EVIDENCE = "\n    ".join([_PARENTS, _BY_EVIDENCE, _SETS])

ARCS = """required_arcs : list of pairs, optional
        Pairs (parent, child) of names that every structure has, in addition to `expert_knowledge`.
    forbidden_arcs : list of pairs, optional
        Pairs (parent, child) of names that no structure has, likewise."""

ROWS = """missing : {"auto", "augment", "drop", "state"}, default="auto"
        Rows with missing cells in training. "augment": cells and structures are sampled together (missing at random), every row
        counts. "drop": such rows are left out, with a warning. "state": missing is one more state, in prediction too.
        "auto": "augment" where a cell is missing (but "drop" under method="exact" or a SwapSampler, which need complete rows).
    unobserved : {"sum_out", "fill"}, default="sum_out"
        Missing cells of rows that are judged: summed out (exactly up to 1024 completions of a row, else over 200
        draws with a standard error), or filled in uniformly at random as the paper does."""

SAMPLER = """sampler : GibbsSampler or SwapSampler, optional
        The chains over orders: how many, how long, and which orders are kept. By default GibbsSampler(), which
        on tables of more than about 100 columns ends after the sweeps that take about a minute; one that is given does not. A
        SwapSampler makes the paper's swaps. One field is changed by ``set_params(sampler__tol=0.01)``.
    structure_weighting : {"order", "dag"}, default="order"
        Every order counts once (the paper's), or every DAG."""

RUN = """preset : {"paper"}, optional
        The chain of the paper: 30 orders, iterations 10,001 + 1667 t of one chain of swaps, alpha in every cell;
        incomplete rows are left out.
    n_jobs : int, optional
        Threads for the chains, as joblib reads it; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    verbose : bool or int, default=False
        Progress; from 2 on, a line with the difference of the chains whenever there is a new one."""

RESULTS = """edge_posterior_ : DataFrame
        Parent x child, P(parent -> child | data); `attrs` names the weighting.
    skeleton_posterior_ : DataFrame
        P(an arc between row and column, in either direction).
    compelled_posterior_ : DataFrame
        Parent x child, P(the arc is in all DAGs equivalent to the one drawn).
    chain_posteriors_ : array of shape (n_chains_, n, n)
        `edge_posterior_` of every chain by itself.
    edge_graph_ : networkx DiGraph
        Arcs with their `posterior`; may be cyclic.
    ancestor_posterior_ : DataFrame
        Ancestor x descendant, P(a directed path), summed over all DAGs or from 1000 draws, with the Monte Carlo error in `attrs`.
    family_scores_ : DataFrame
        Scores of every variable with every set of parents that was kept.
    lost_mass_ : float
        Bound on what parent sets left out of a variable's list have, as a share of the sum over the others, whatever stands before
        the variable; the largest over the variables. Arcs given an order are off by no more. 0 when all were kept; at most `eps`
        when all were scored, else sets that were never scored are not in it. With missing values, the share itself in
        the present state of a chain, the largest over the tables that chains looked at
        (`gaps_.attrs["lost_mass"]` has them all, NaN where it was not measured).
    gaps_ : DataFrame
        Missing cells in training by column; `attrs` tells what was done with them.
    arc_spread_ : DataFrame
        Standard deviation of every arc posterior from completed table to completed table.
    orders_ : list of tuples
        Kept orders, earliest first.
    order_log_scores_ : array
        Log of their unnormalised posteriors.
    n_chains_ : int
        Chains behind `orders_`, which has them one after the other.
    acceptance_rate_ : float
        Share of accepted swaps (NaN without any).
    diagnostics_ : DataFrame
        Mean, R-hat, effective size and difference of the chains, per arc; `attrs` has the sweeps, the largest difference, the
        number of arcs apart by more than 0.2, and whether the chains have converged.
    converged_ : bool
        Whether the chains agree; True when nothing was sampled by Gibbs moves.
    n_sweeps_ : int
        Sweeps of every Gibbs chain.
    log_evidence_ : float
        Log of the sum over all orders, or all DAGs under "dag" (NaN unless exact).
    method_ : str
        "exact", "mcmc" or "given".
    structure_weighting_ : str
        "order" or "dag".
    model_ : DiscreteBayesianNetwork
        The best DAG (exact search under "exact", best seen otherwise) with posterior-mean tables; not the average itself.
    causal_graph_ : pgmpy DAG
        Its structure.
    adjacency_matrix_ : DataFrame
        Its structure as 0 and 1, parent x child.
    best_log_score_ : float
        Its log prior + log marginal likelihood."""
