"""Docstring parts of the parameters and attributes that the order estimators share (`foundation.faces.docstrings.fill`)."""

FAMILIES = """max_indegree : int, default=3
        Most parents of a variable.
    alpha : float, default=1.0
        Pseudo-count of a cell, as `parameter_prior` spreads it.
    equivalent_sample_size : float, optional
        Total pseudo-count of every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": alpha in every cell, but no table holds more pseudo-counts than a quarter of the rows; those of larger
        tables are spread evenly, so that no arc gains from a larger table. "paper": alpha in every cell (K2 when 1), under which
        arcs into a column of very many states, noise or not, look certain.
    structure_prior : {"mdl", "friedman_koller", "uniform"}, default="mdl"
        Prior of a parent set by its size; "mdl" is the paper's (ORD eq. 13).
    required_arcs : list of pairs, optional
        Pairs (parent, child) of names that every structure has.
    forbidden_arcs : list of pairs, optional
        Pairs (parent, child) of names that no structure has.
    expert_knowledge : pgmpy ExpertKnowledge, optional
        Required and forbidden edges, a temporal order and a search space, in addition to the two lists.
    eps : float, default=1e-3
        In family lists, a parent set is dropped when one of its subsets outweighs it by more than 1 / eps.
    beam : int, default=60
        Where all families are too many to score, the best `beam` parent sets of every size are extended by every variable.
    n_candidates : None
        Gone; an error names `beam`."""

ROWS = """missing : {"auto", "augment", "drop", "state"}, default="auto"
        Rows with missing cells in training. "augment": cells and structures are sampled together (missing at random), every row
        counts. "drop": such rows are left out, with a warning. "state": missing is a value of its own, in prediction too.
        "auto": "augment" where a cell is missing (but "drop" under method="exact" or moves="swap", which need complete rows).
    unobserved : {"sum_out", "fill"}, default="sum_out"
        Missing cells of rows that are judged: summed out (exactly up to `max_completions` completions of a row, else over
        `n_completions` draws with a standard error), or filled in uniformly at random as the paper does.
    max_completions : int, default=1024
        Most completions of a row that are summed out exactly.
    n_completions : int, default=200
        Draws for rows past that."""

CHAINS = """n_orders : int, default=30
        Orders kept per chain, evenly spaced, for predictions and sampled networks; under "exact", independent draws.
    moves : {"gibbs", "swap"}, default="gibbs"
        "gibbs": one variable is put back into any place with exactly the right probabilities, chains run until they agree.
        "swap": the paper's swaps of two variables, for a given number of iterations.
    n_chains : int, default=4
        Independent chains.
    n_temperatures : int or "auto", default="auto"
        Replicas of a chain at different temperatures, which help it across modes; "auto": as many as exchanges of neighbours at a
        rate of 0.4 take to a tenth of the log posterior, 3 to 16, found in burn-in. Not used under structure_weighting="dag",
        where arcs are turned round instead.
    tol : float, default=0.05
        Gibbs chains stop when no arc posterior differs by more than this between two of them, and split R-hat holds.
    max_sweeps : int, default=4096
        Most sweeps (one move per variable) of a chain; they are doubled until the chains agree, and the last half to three
        quarters count. With missing cells, a sweep over structures and cells counts as one to four, by families and rows.
    max_time : float, optional
        Seconds after which Gibbs chains end, converged or not; a run that ends so cannot be repeated bit for bit.
    burn_in : int, default=10000
        Iterations before the first kept one, under moves="swap".
    thin : int, default=1667
        Iterations from one kept order to the next, under moves="swap".
    structure_weighting : {"order", "dag"}, default="order"
        Every order counts once (the paper's), or every DAG.
    init : list, optional
        Order to start from, or one per chain; random by default."""

RUN = """checkpoint : path, optional
        File that keeps the run; a killed run started again ends with the same orders.
    checkpoint_every : int, default=10000
        Moves of a chain between two writes.
    preset : {"paper"}, optional
        The chain of the paper: 30 orders, iterations 10,001 + 1667 t of one chain of swaps, alpha in every cell.
    n_jobs : int, optional
        Threads for the chains, as joblib reads it; the result does not depend on it.
    random_state : int, Generator, RandomState or None, default=None
        Seed.
    verbose : bool or int, default=False
        Progress; from 2 on, a line with the difference of the chains whenever there is a new one.
    show_progress : None
        Now called `verbose`."""

RESULTS = """edge_posterior_ : DataFrame
        Parent x child, P(parent -> child | data); `attrs` names the weighting.
    skeleton_posterior_ : DataFrame
        P(an arc between row and column, in either direction).
    edge_graph_ : networkx DiGraph
        Arcs with their `posterior`; may be cyclic.
    ancestor_posterior_ : DataFrame
        Ancestor x descendant, share of 1000 sampled DAGs with a directed path.
    family_scores_ : DataFrame
        Scores of every variable with every set of parents that was kept.
    lost_mass_ : float
        Bound on the share of a variable's sum that parent sets left out of its list had, the largest over the variables; 0 when
        all were kept. Sets that were never scored (more than `beam` of a size) are not in it. Of a table with gaps, the largest
        over the kept tables (`gaps_.attrs["lost_mass"]` has them all, NaN where it was not measured).
    gaps_ : DataFrame
        Missing cells in training by column; `attrs` tells what was done with them.
    arc_spread_ : DataFrame
        Standard deviation of every arc posterior from completed table to completed table.
    orders_ : list of tuples
        Kept orders, earliest first.
    order_log_scores_ : array
        Log of their unnormalised posteriors.
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
