# %% [markdown]
# # 3. Which arcs can you believe? Averages over orders
#
# With a few hundred rows, thousands of networks fit about equally well. Instead
# of one network, `OrderPosterior` gives the probability of every arc, added up over all networks, and
# `OrderAveragedClassifier` predicts with all of them at once.
#
# If we knew the *order* of the variables, the sum over all networks would be easy. So the methods sum over the networks of an
# order, and then over the orders: over all of them while there are few variables, over a random sample when there are many.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

warnings.filterwarnings("ignore", category=FutureWarning)  # pgmpy announces changes
warnings.filterwarnings("ignore", message="the chains have not converged")  # classifiers below: said in the text

from pgmpy.models import DiscreteBayesianNetwork

import pgm_bma
from pgm_bma.plotting import plot_arc_posteriors, plot_network, plot_score_traces

plt.rcParams["figure.dpi"] = 90

# %% [markdown]
# ## Asia: eight variables, all 40,320 orders
#
# *Asia* is a small textbook network about lung diseases. We draw 500 patients from it and pretend not to know the arcs.

# %%
asia = pgm_bma.load_network("asia")
patients = pgm_bma.simulate(asia, 500, random_state=0)
posterior = pgm_bma.OrderPosterior(random_state=0).fit(patients)
print(posterior)
_ = plot_network(asia, title="asia: the true network")

# %% [markdown]
# The sum over all orders is exact and fast. Here are the arc posteriors, from row to column:

# %%
_ = plot_arc_posteriors(posterior)


# %% [markdown]
# Most pairs that are joined have some probability in both directions: data often cannot tell which of two variables comes
# first. Add both directions, and compare with the truth.


# %%
def joined(fitted):
    both = fitted.edge_posterior_ + fitted.edge_posterior_.T
    names = list(both)
    values = {(a, b): both.loc[a, b] for i, a in enumerate(names) for b in names[i + 1 :]}
    return pd.Series(values).sort_values(ascending=False)


def compare(network, fitted):
    pairs = joined(fitted).rename("posterior").to_frame()
    true = {frozenset(arc) for arc in network.edges()}
    pairs["true"] = [frozenset(pair) in true for pair in pairs.index]
    return pairs


pairs = compare(asia, posterior)
print(f"the arc asia - tub, which is true, has posterior {joined(posterior)['asia', 'tub']:.2f}")
pairs.head(10).round(2)

# %% [markdown]
# The six most probable pairs are all true. Below them the posterior shows the doubt: `lung` and `either` compete for the arc
# to `dysp` (`either` means lung cancer or tuberculosis, which is rare), and the arc from `asia` (a visit to Asia, rarer still) to
# `tub` cannot be seen in 500 rows. More data settle most of the rest:

# %%
for n in (100, 500, 5000):
    rows = pgm_bma.simulate(asia, n, random_state=0)
    answer = compare(asia, pgm_bma.OrderPosterior(random_state=0).fit(rows))
    sure = answer[answer["posterior"] > 0.9]
    print(
        f"{n:5d} rows: {sure['true'].sum()} of 8 pairs found with a posterior above 0.9, {(~sure['true']).sum()} false ones"
    )

# %% [markdown]
# One caution about every arc posterior: **it depends on the prior**. Counting every order once favours networks that
# fit many orders. The alternative counts every network once (`structure_weighting="dag"`):

# %%
by_dag = pgm_bma.OrderPosterior(structure_weighting="dag", random_state=0).fit(patients)
both_ways = pd.DataFrame({"every order once": joined(posterior), "every network once": joined(by_dag)})
both_ways["difference"] = both_ways.iloc[:, 1] - both_ways.iloc[:, 0]
both_ways.sort_values("difference", key=abs, ascending=False).head(5).round(2)

# %% [markdown]
# Doubtful pairs can move by 0.1 and more. Say which weighting you used when you report an arc posterior.
#
# ## Alarm: 37 variables, a sample of orders
#
# *Alarm* describes the monitoring of patients under anaesthesia. 37 variables have 37! orders, about 10 to the 43, so a
# Markov chain samples them. Two chains from different random starts should come to agree. First a short chain that keeps its
# beginning:

# %%
alarm = pgm_bma.load_network("alarm")
monitored = pgm_bma.simulate(alarm, 1000, random_state=0)
with warnings.catch_warnings(record=True) as remarks:
    swaps = pgm_bma.SwapSampler(n_chains=2, burn_in=0, thin=100, n_orders=100)
    walk = pgm_bma.OrderPosterior(sampler=swaps, random_state=0).fit(monitored)
for remark in remarks:
    print("warning:", remark.message)
scores = walk.order_log_scores_.reshape(2, -1)
ax = plot_score_traces(scores, burn_in=40, title="every 100th step of two chains")
_ = ax.set_xlabel("steps / 100")

# %% [markdown]
# Both chains climb a long way and then stay on the same level. The beginning does not belong in the average, and swaps of two
# variables are slow. By default one variable at a time is put back into any place, with exact probabilities, in four chains. They
# go on until they agree on every arc. If they never agree, a warning says so:

# %%
chains = pgm_bma.OrderPosterior(random_state=0).fit(monitored)
arcs = compare(alarm, chains)
for threshold in (0.5, 0.9):
    sure = arcs[arcs["posterior"] > threshold]
    print(
        f"above {threshold}: {len(sure)} pairs, {sure['true'].sum()} of them true; the truth has {arcs['true'].sum()}"
    )
doubtful = chains.diagnostics_.sort_values("difference_of_chains", ascending=False)

# %% [markdown]
# The chains differ most on these arcs:

# %%
doubtful[["what", "mean", "difference_of_chains"]].head(4).round(2)

# %% [markdown]
# 43 of the 46 pairs are found, and none that is not in the network. Where the chains differ most, it is about the *direction*
# of an arc. If such an arc matters to you, let the chains run longer (`GibbsSampler` with a smaller `tol`, a larger
# `max_sweeps`).

# %%
_ = plot_arc_posteriors(chains)

# %% [markdown]
# ## Predict: what must be observed?
#
# Suppose we want to predict `CATECHOL` (stress hormones). If everything else is observed, only a few variables
# matter: its parents, its children and their other parents, the *Markov blanket*. If one of these cannot be
# observed, what lies behind it begins to matter. `effective_markov_blanket` finds out.

# %%
target = "CATECHOL"
unseen = {"everything observed": [], "HR and SAO2 not observed": ["HR", "SAO2"]}
figure, axes = plt.subplots(2, 1, figsize=(8, 6.4), height_ratios=[2, 3])
for ax, (title, hidden) in zip(axes, unseen.items()):
    blanket = pgm_bma.effective_markov_blanket(alarm, target, unobserved=hidden)
    print(f"{title}: {len(blanket)} variables: {', '.join(sorted(blanket))}")
    near = {target, *blanket, *hidden, *alarm.predecessors(target), *alarm.successors(target)}
    part = DiscreteBayesianNetwork([arc for arc in alarm.edges() if set(arc) <= near])
    part.latents = set(hidden)
    plot_network(part, highlight=[target, *sorted(blanket)], title=title, ax=ax)

# %% [markdown]
# Orange: the target and what its prediction needs; dashed: not observed.
#
# ## Missing features
#
# Back to asia: predict `dysp` (shortness of breath) from the other seven variables, trained on 100 patients, when some of
# these are missing for each new patient. `OrderAveragedClassifier` *sums missing features out*: it considers every value
# they could have. The simple alternative fills them in at random (`unobserved="fill"`).

# %%
train, test = pgm_bma.simulate(asia, 100, random_state=1), pgm_bma.simulate(asia, 2000, random_state=2)
y_train, y_test = train.pop("dysp"), test.pop("dysp")
methods = {
    "orders, summed out": pgm_bma.OrderAveragedClassifier(random_state=0),
    "orders, filled in": pgm_bma.OrderAveragedClassifier(unobserved="fill", random_state=0),
    "naive Bayes": pgm_bma.NaiveBayesClassifier(),
}
rng = np.random.default_rng(0)
accuracy = {}
for share in (0.0, 0.1, 0.3, 0.5):
    incomplete = test.mask(rng.random(test.shape) < share)
    accuracy[f"{share:.0%} missing"] = {
        name: m.fit(train, y_train).score(incomplete, y_test) for name, m in methods.items()
    }
accuracy = pd.DataFrame(accuracy).round(3)
accuracy.round(3)

# %%
figure, ax = plt.subplots(figsize=(5.5, 3.2))
for (name, row), marker in zip(accuracy.iterrows(), "osD"):
    ax.plot([0, 10, 30, 50], row, marker=marker, label=name)
ax.set(xlabel="features missing in each new patient, %", ylabel="accuracy")
ax.legend(frameon=False)
ax.grid(axis="y", alpha=0.4)

# %% [markdown]
# Summing out is better than filling in at random wherever something is missing, and the gain grows with the share that is
# missing. With 30 % or more missing, filling in is worse than naive Bayes, which simply leaves missing features out.
#
# ## On alarm too
#
# Predict `CATECHOL` from 500 patients; in the 200 new ones every tenth feature is missing.
# (The chains stop with an arc or two still open. The warning about it is left out here.)

# %%
train, test = pgm_bma.simulate(alarm, 500, random_state=1), pgm_bma.simulate(alarm, 200, random_state=2)
y_train, y_test = train.pop(target), test.pop(target)
incomplete = test.mask(np.random.default_rng(0).random(test.shape) < 0.1)
for name, method in {
    "orders, summed out": pgm_bma.OrderAveragedClassifier(random_state=0),
    "orders, filled in": pgm_bma.OrderAveragedClassifier(unobserved="fill", random_state=0),
    "naive Bayes": pgm_bma.NaiveBayesClassifier(),
}.items():
    method.fit(train, y_train)
    complete, missing = method.score(test, y_test), method.score(incomplete, y_test)
    print(f"{name:20s} accuracy {complete:.3f} with all features, {missing:.3f} with missing ones")
print(f"\nstandard error of such an accuracy: about {np.sqrt(0.96 * 0.04 / len(test)):.3f}")

# %% [markdown]
# The averaged networks are ahead of naive Bayes. The difference between the two ways to treat missing features is within the
# error here.
#
# ## Summary
#
# - Use arc posteriors instead of a best network; add both directions unless direction is what you need.
# - Arc posteriors are exact up to 20 variables, classification up to 12 (16 on request). Beyond, run several chains and look at
#   `diagnostics_`.
# - The posterior depends on the prior over structures: name it when you report an arc.
# - Leave missing features missing; the classifier sums them out.
