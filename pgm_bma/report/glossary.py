"""The words of a report, each explained in a sentence: for readers who come from their field, not from statistics."""

# pattern that must occur in the report -> (word, explanation)
TERMS: dict[str, tuple[str, str]] = {
    r"\bnats?\b|natural logs?": (
        "nat, natural log",
        "The unit of information in natural logarithms; 0.69 nats are one bit, the answer to one fair yes-no question. A "
        "model that scores 3 higher in natural logs explains the data about 20 times as well.",
    ),
    r"[Pp]osterior|probability (?:that|of an arc)": (
        "posterior probability",
        "How probable something is after the data have been seen, starting from a prior that says how probable it was before.",
    ),
    r"\b[Pp]rior\b": (
        "prior",
        "What the method assumes before it sees the data. With many rows it matters little, except where the data cannot decide, "
        "as with the direction of many arcs.",
    ),
    r"\b[Aa]rcs?\b|-&gt;": (
        "arc",
        "A direct dependence from one column to another (a -> b): b's values are distributed differently for different a. "
        "The direction alone is no proof of a cause.",
    ),
    r"\bI_P\b": (
        "I_P",
        "How much a column differs between the clusters, in nats: the mean over clusters of KL(p(X) || p(X given cluster)), the "
        "divergence of the column's distribution in a cluster from the one over all rows. 0 is nothing.",
    ),
    r"dependence": (
        "dependence",
        "How much a column says about the cluster or the class, in nats: mutual information, or I_P for latent-class models. 0 is "
        "nothing.",
    ),
    r"[Cc]lusters?\b": ("cluster", "A group of rows that the method found; in surveys also called latent class."),
    r"log.likelihood": (
        "log likelihood",
        "The natural log of the probability that the model gives to the data; nearer to zero is a closer fit, not always a "
        "better model.",
    ),
    r"\b[Ss]cores?\b|[Ee]vidence": (
        "score, evidence",
        "How well a model with its number of clusters or its structure explains the data, in natural logs, with a price for "
        "complexity that the prior sets; higher is better.",
    ),
    r"[Ee]vidence (?:for|of)": (
        "evidence for a class",
        "How far a value moves the logarithm of the odds of a class, in nats; 0.69 doubles the odds, 0 changes nothing.",
    ),
    r"[Ll]og loss": (
        "log loss",
        "Minus the natural log of the probability that was given to what turned out true, on average; lower is better, 0.69 is a "
        "coin with two sides. Confident wrong predictions cost most.",
    ),
    r"[Ss]tandard errors?|±": (
        "standard error, ±",
        "How far a figure would typically move with another sample of rows; differences within two of them may be chance.",
    ),
    r"[Cc]ross-validation|\bfolds?\b": (
        "cross-validation, fold",
        "The rows are dealt into folds; each fold is predicted by a model that learned from the others only.",
    ),
    r"Rand index": (
        "adjusted Rand index",
        "How far two ways of grouping the rows agree: 1 is the same grouping, 0 is what chance gives.",
    ),
    r"times as often": (
        "times as often as overall",
        "A value's share inside a cluster divided by its share in all rows (the lift); 1 is nothing special.",
    ),
    r"\b(?:[AB]IC|CAIC|ICL)\b": (
        "AIC, BIC, adjusted BIC, CAIC, ICL",
        "Minus twice the log likelihood plus a price for every parameter, so that lower is better; they differ in the price. "
        "ICL adds one for rows that could belong to several clusters.",
    ),
    r"\b[GX]2\b": (
        "G2, X2",
        "How far what was observed lies from what the model expects: by the likelihood ratio (G2) or by squared differences "
        "(X2, Pearson). About its degrees of freedom is what chance gives.",
    ),
    r"[Dd]egrees? of freedom": (
        "degrees of freedom",
        "How many figures could still move once the model is fitted; the yardstick for G2, X2 and Wald.",
    ),
    r"\bp\b(?: =| <|\))|\bp (?:of|by)\b|parametric bootstrap|tables drawn from the model": (
        "p, bootstrap",
        "How often chance alone gives at least as large a statistic; below 0.05 is usually taken as a finding. By "
        "bootstrap: new tables are "
        "drawn from the fitted model and fitted again, and p is the share of them that reach the observed value.",
    ),
    r"BLRT|likelihood.ratio test": (
        "bootstrapped likelihood-ratio test, BLRT",
        "Does one cluster more fit better than chance explains? The gain in log likelihood is compared with the gains on tables "
        "drawn from the model with fewer clusters.",
    ),
    r"[Ee]ntropy R2|entropy_r2": (
        "entropy R2",
        "How clearly rows belong to one cluster: 1 when every row is sure, 0 when all clusters are equally probable for every row.",
    ),
    r"\bWald\b": (
        "Wald test",
        "An estimate, or several at once, measured against the standard errors; with its degrees of freedom it gives p.",
    ),
    r"[Oo]dds": (
        "log odds, odds ratio",
        "Odds are the probability of the one divided by that of the other. A log odds of 0.7 (an odds ratio of 2) doubles them for "
        "one step of the covariate; 0 (a ratio of 1) changes nothing.",
    ),
    r"[Ee]rror of classification|[Tt]hree.step|\bBCH\b": (
        "three-step, ML and BCH",
        "Clusters first, then every row's most probable cluster, then its relation to other columns. Some rows are given the "
        "wrong cluster, which weakens what is found; the third step corrects for it by maximum likelihood (ML) or by the weights "
        "of Bolck, Croon and Hagenaars (BCH).",
    ),
    r"[Rr]esidual|leave dependent|Pairs of columns": (
        "residual of a pair",
        "How much two columns still depend on each other inside the clusters: X2 of their table by its degrees of freedom, about 1 "
        "where the clusters explain it all.",
    ),
    r"\b95 %": (
        "95 % interval",
        "Intervals made in this way hold the true figure for 95 of 100 samples, if the model is right.",
    ),
    r"\bstarts?\b": (
        "start",
        "The search for clusters begins at random and may end in a poor place; it is run from many starts and the best kept.",
    ),
    r"R-hat|\b[Cc]hains?\b": (
        "chain, R-hat",
        "Orders of the columns are sampled in several chains; R-hat near 1 says that they agree.",
    ),
    r"[Dd]iscretised": ("discretised", "Numbers cut into bins, because this method works on categories."),
}
