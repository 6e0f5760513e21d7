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
        "What the method takes for granted before it sees the data; with many rows it hardly matters.",
    ),
    r"\b[Aa]rcs?\b|-&gt;": (
        "arc",
        "A direct dependence from one column to another (a -> b): b's values are distributed differently for different a. "
        "The direction alone is no proof of a cause.",
    ),
    r"dependence|I_P": (
        "dependence, I_P",
        "Mutual information of a column with the cluster or the class: how much knowing the one tells about the other, in nats. "
        "0 is nothing.",
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
    r"[Ll]og loss": (
        "log loss",
        "Minus the natural log of the probability that was given to what turned out true, on average; lower is better, 0.69 is a "
        "coin with two sides. It punishes being sure and wrong.",
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
    r"\bstarts?\b": (
        "start",
        "The search for clusters begins at random and may end in a poor place; it is run from many starts and the best kept.",
    ),
    r"R-hat|\b[Cc]hains?\b": (
        "chain, R-hat",
        "Orders of the columns are sampled in several chains; R-hat near 1 says that they agree.",
    ),
    r"[Dd]iscretised": ("discretised", "Numbers cut into bins, because the methods work on categories."),
}
