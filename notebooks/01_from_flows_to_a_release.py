# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # From a flow table to a protected release
#
# An agency knows how many people moved between each pair of areas. Counts from 1 to 9 may not be
# published. This notebook reads such a table, fits a Bayesian model to the small counts, replaces
# them by synthetic ones, and measures what an intruder could still learn. The country is invented:
# 80 areas in 4 states, made by `python -m bayes_sdc.flows.table.simulate`.

# %%
import matplotlib.pyplot as plt
import numpy as np

from bayes_sdc import (
    diagnostics,
    example_flows_path,
    fit_flows,
    intruder_risk,
    read_flows,
    repeat_risk,
    synthesize,
)

# %% [markdown]
# ## Read
# Codes stay text, so that "01001" keeps its zero. Rows fall in four classes: safe, small, set aside
# (people who stayed in their area) and below the range. Nothing is dropped.

# %%
table = read_flows(
    example_flows_path(),
    origin="origin",
    destination="destination",
    count="count",
    groups=["origin_state", "destination_state"],
)
print(table.summary())

# %% [markdown]
# ## Fit
# A truncated negative binomial with effects of origin and destination for each pair of states. The
# pairs share a national distribution of their levels and scales, so that small ones borrow from the
# rest; all of them are in one posterior.

# %%
posterior = fit_flows(table, draws=500, tune=500, seed=1)
posterior

# %% [markdown]
# Before anything else: did it converge? Worst groups first.

# %%
groups = diagnostics.group_diagnostics(posterior)
groups.head()

# %% [markdown]
# And does the model fit? Replicated tables should have as many ones, twos, ..., nines as the real
# one. The paper's Poisson model (`family="poisson"`) would have too few ones and too few nines.

# %%
predictive = diagnostics.predictive_counts(table, posterior, seed=2)
axes = plt.figure(figsize=(7, 3.5)).subplots()
axes.bar(predictive.index, predictive["observed"], color="0.8", label="true table")
axes.errorbar(
    predictive.index,
    predictive["expected"],
    yerr=np.abs(predictive[["lower", "upper"]].to_numpy().T - predictive["expected"].to_numpy()),
    fmt="o",
    color="C0",
    label="replicated tables, 95 %",
)
axes.set(xlabel="count", ylabel="small cells", title="Posterior predictive check")
axes.legend()
predictive.round(2)

# %% [markdown]
# ## Release
# One joint draw of all rates, then a count for each small cell from its table of probabilities.
# Everything else is as it was.

# %%
release = synthesize(table, posterior, seed=3)
changed = release["count"] != table.frame["count"]
print(f"{changed.sum()} of {table.n_small} small counts differ from the true ones")
release.head()

# %% [markdown]
# ## What could an intruder still learn?
# The worst case: somebody who knows every other small count, the model, and the release. For each
# cell, `rho` is the probability of each candidate count in the eyes of that person.

# %%
risk = intruder_risk(table, posterior, release)
print("R_all:", risk.r_all)
print("R_unq:", risk.r_unq)
risk.distance_distribution().round(3)

# %% [markdown]
# The weights behind these numbers have their own diagnostic, Pareto's k-hat. For the paper's
# importance sampling it is bad for candidates far from the true count; with both effects of the
# target integrated out, the default, it is good for all.

# %%
y = table.cells["y"].to_numpy()
distance = np.abs(np.arange(table.k + 1) - y[:, None])
paper = intruder_risk(table, posterior, release, estimator="paper")
axes = plt.figure(figsize=(7, 3.5)).subplots()
for place, (one, hatch) in enumerate([(paper, ""), (risk, "//")]):
    bad = one.khat.to_numpy() > one.khat_threshold
    shares = [bad[distance == d].mean() for d in range(table.k + 1)]
    places = np.arange(table.k + 1) + 0.4 * place
    axes.bar(places, shares, 0.4, hatch=hatch, label=one.estimator)
axes.set(
    xlabel="distance of the candidate from the true count",
    ylabel="share of unreliable weights",
    title=f"k-hat above {risk.khat_threshold:.2f} (paper: {paper.khat_threshold:.2f})",
)
axes.set_ylim(0, 1)
axes.legend()
# %% [markdown]
# One release is one draw of luck. Over twenty releases:

# %%
repeats = repeat_risk(table, posterior, risk, releases=20, seed=4)
repeats.describe().loc[["mean", "std", "min", "max"]].round(3)
