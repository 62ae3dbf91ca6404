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
# # What an intruder learns
#
# Notebook 1 ends with a release. This one takes its risk apart. At the end you will be able to
#
# - compute the probability of one cell by hand, and tell which estimates of it can be relied on;
# - say what the intruder is supposed to know, and what difference it makes;
# - see where the risk is, and how it grows with the number of data sets;
# - compare the release with rounding, noise, cell keys, swapping and suppression, where totals are
#   published and where they are not;
# - set limits, and choose among releases within them.
#
# It uses two of the four states of the invented country, so that every step takes seconds.

# %%
import datetime

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayes_sdc import (
    FlowLimits,
    Policy,
    choose_release,
    compare_protections,
    fit_flows,
    intruder_risk,
    plot_intruder_risk,
    plot_risk_by_count,
    plot_risk_by_datasets,
    plot_ru_map,
    read_flows,
    repeat_risk,
    risk_by,
    risk_by_datasets,
    risk_utility,
    simulate_flows,
    synthesize,
)
from bayes_sdc.flows.limits import check_limits

country = simulate_flows(seed=2011)
states = ["origin_state", "destination_state"]
table = read_flows(
    country[country[states].isin(["01", "02"]).all(axis=1)],
    origin="origin",
    destination="destination",
    count="count",
    groups=states,
)
posterior = fit_flows(table, draws=300, tune=500, seed=1)
release = synthesize(table, posterior, seed=3)
risk = intruder_risk(table, posterior, release)
print(table.summary())

# %% [markdown]
# ## One cell by hand
# The intruder wants the count of one cell, the target. They know every other small count, the
# model and the release. For each candidate count they ask: had this been the truth, how probable is
# the count that was released? These probabilities are the matrix M of the cell, a row for each
# candidate. The column of the released count is the likelihood. Prior times likelihood, made to
# add up to one, is `rho`.

# %%
cell = table.cells.index[table.cells["y"] == 4][0]
true = int(table.cells.loc[cell, "y"]) + table.low
released = int(release["count"].iloc[table.cells.loc[cell, "row"]])
m = risk.release_probability.sel(cell=cell)
likelihood = m.sel(released=released).to_numpy()
prior = np.full(len(likelihood), 1 / len(likelihood))
rho = prior * likelihood / (prior * likelihood).sum()

assert np.allclose(m.sum("released"), 1)
assert np.allclose(rho, risk.rho.sel(cell=cell))
print(f"cell {cell}: true count {true}, released {released}")
by_hand = {"prior": prior, "likelihood of the release": likelihood, "rho": rho}
pd.DataFrame(by_hand, index=pd.Index(m["true"].to_numpy(), name="candidate")).round(3)

# %% [markdown]
# The left picture is M. Its rows are much alike: the target is one of many cells that make the
# rates, so what is drawn for it depends little on its own count. This is where the protection
# comes from. The right picture is one column of M, and what becomes of it.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
edges = np.arange(table.low, table.high + 2) - 0.5
image = left.pcolormesh(edges, edges, m, cmap="viridis", vmin=0)
figure.colorbar(image, ax=left, label="probability")
left.axvline(released, color="white", linestyle="--")
left.set(
    xlabel="released count",
    ylabel="candidate for the true count",
    title=f"M of {cell} (dashed: what was released)",
)
right.bar(m["true"], rho, color="C0", label="rho")
right.axhline(prior[0], color="0.3", linestyle="--", label="prior")
right.axvline(true, color="C3", linestyle=":", label="true count")
right.set(xlabel="candidate", ylabel="probability", title="What the intruder believes")
right.set_ylim(0, 1.35 * rho.max())
right.legend(loc="upper right")
spread = float(abs(m - m.mean("true")).sum("released").max() / 2)
print(f"largest distance (total variation) of a row of M from the mean row: {spread:.3f}")

# %% [markdown]
# With several data sets the likelihoods of the released counts are multiplied, because each is
# drawn from a rate of its own.
#
# ## Three summaries
# - **R_all**: share of cells whose single most probable count is the true one. A tie is no find.
# - **R_unq**: the same among cells with one mover, who may recognise himself.
# - **mean d**: mean distance between the most probable count and the true one.

# %%
all_rho, y = risk.rho.to_numpy(), table.cells["y"].to_numpy()
single = (all_rho == all_rho.max(axis=1, keepdims=True)).sum(axis=1) == 1
found = single & (all_rho.argmax(axis=1) == y)
assert found.mean() == risk.r_all.value
assert found[y == 0].mean() == risk.r_unq.value
assert np.abs(all_rho.argmax(axis=1) - y).mean() == float(risk.distance.mean())
print("R_all:", risk.r_all)
print("R_unq:", risk.r_unq)
print(f"mean d: {float(risk.distance.mean()):.2f}")

# %% [markdown]
# R_all is all or nothing. Beside it belongs the probability of the true count (right): most cells
# stay near the prior, 1 in 9. The left picture shows that a wrong best guess is often far off.

# %%
_ = plot_intruder_risk(risk)

# %% [markdown]
# ## Three ways to compute M
# M asks for the posterior that the intruder would have with another count in the cell.
#
# - `refit` fits the table anew for every candidate. It is exact up to Monte Carlo error, and slow.
# - `paper` reweights the draws of the one posterior there is, with smoothed weights. It is cheap,
#   and bad where the two posteriors are far apart.
# - `integrated`, the default, also reweights, but integrates both effects of the target out of
#   every draw first. What is left in the weights varies little.
#
# Pareto's k-hat tells from the weights alone whether they can be relied on. Here are the cells for
# which the paper's weights look worst. A second refit with another seed shows the Monte Carlo
# error of the refits themselves. To have refits in seconds, this part uses the flows within one
# state.

# %%
state = read_flows(
    country[(country[states] == "01").all(axis=1)],
    origin="origin",
    destination="destination",
    count="count",
)
state_posterior = fit_flows(state, prior="weak", draws=500, tune=300, seed=1)
of_state = (state, state_posterior, synthesize(state, state_posterior, seed=3))
integrated = intruder_risk(*of_state)
paper = intruder_risk(*of_state, estimator="paper")
worst = paper.khat.max("count").to_series().sort_values(ascending=False, kind="stable")
chosen = sorted(worst.index[:2])
exact, again = (
    intruder_risk(*of_state, estimator="refit", cells=chosen, seed=seed) for seed in (4, 5)
)
compared = {"integrated": integrated, "paper": paper, "second refit": again}
rows = {}
for name, one in compared.items():
    here = one.release_probability.sel(cell=exact.rho["cell"])
    rows[name] = {
        "largest error of M": float(abs(here - exact.release_probability).max()),
        "largest error of rho": float(abs(one.rho.sel(cell=exact.rho["cell"]) - exact.rho).max()),
        "largest k-hat": float(one.khat.sel(cell=exact.rho["cell"]).max()),
        "limit of k-hat": one.khat_threshold,
    }
errors = pd.DataFrame(rows).T
assert errors.loc["paper", "largest error of M"] > errors.loc["integrated", "largest error of M"]
errors.round(3)

# %% [markdown]
# A refit has no weights, so its k-hat is minus infinity. An error that is not much above that of
# the second refit is Monte Carlo error of the refits. Each mark of the picture is a candidate of a
# cell. Right of the dashed line are candidates of the paper's estimator only, and the largest error
# is among them.

# %%
axes = plt.figure(figsize=(7, 3.6), layout="constrained").subplots()
for (name, one), marker in zip(list(compared.items())[:2], "os", strict=True):
    khat = one.khat.sel(cell=exact.rho["cell"]).to_numpy()
    here = one.release_probability.sel(cell=exact.rho["cell"])
    error = abs(here - exact.release_probability).max("released").to_numpy()
    used = np.isfinite(khat)  # the true count needs no weights
    axes.plot(khat[used], error[used], marker, alpha=0.7, label=name)
assert (integrated.khat.sel(cell=exact.rho["cell"]) < paper.khat_threshold).all()
axes.axvline(paper.khat_threshold, color="0.3", linestyle="--", label="limit of k-hat")
axes.set(
    xlabel="Pareto k-hat of the weights of a candidate",
    ylabel="largest error of its row of M",
    title="What k-hat warns of: errors against exact refits",
)
_ = axes.legend()

# %% [markdown]
# `refits=` is a budget: that many of the cells beyond the limit are refitted, worst first. Cells
# that stay beyond it are counted, and `R_all` says NOT TRUSTED when they are more than one in a
# hundred.

# %%
mended = intruder_risk(*of_state, estimator="paper", refits=2, seed=6)
assert int(mended.refitted.sum()) == min(2, paper.unreliable_cells)
print(f"unreliable of {state.n_small} cells, integrated:", integrated.unreliable_cells)
print("unreliable, paper:", paper.unreliable_cells, "and with refits=2:", end=" ")
print(mended.unreliable_cells)
print("R_all, paper:", paper.r_all)

# %% [markdown]
# ## What the intruder knows
# The prior is what they believed before: all counts alike (the paper's choice), what the model
# predicts from the other cells, or any weights. Here is one that falls as 1 / count, as counts of
# movers do. A prior also serves them without a release: the column `no release`. What a release
# adds is the difference between the two.
#
# Knowledge is which other small counts they have: all of them is the worst case; with "none" the
# release stands in for them; "share" is in between.

# %%
falling = 1 / np.arange(table.low, table.high + 1)
scenarios = {
    "uniform prior, all others": {},
    "prior of the model, all others": {"prior": "model"},
    "falling prior, all others": {"prior": falling},
    "uniform prior, half of the others": {"knowledge": "share", "share": 0.5, "seed": 7},
    "uniform prior, none": {"knowledge": "none", "seed": 7},
    "falling prior, none": {"prior": falling, "knowledge": "none", "seed": 7},
}
measured = {
    name: intruder_risk(table, posterior, release, **how) for name, how in scenarios.items()
}
summary = pd.DataFrame(
    {
        name: {
            "no release": one.r_all.baseline,
            "R_all": one.r_all.value,
            "R_unq": one.r_unq.value,
            "mean d": float(one.distance.mean()),
            "probability of truth": float(one.true_count_probability.mean()),
        }
        for name, one in measured.items()
    }
).T
summary.round(3)

# %% [markdown]
# The naive intruder takes the released count for the true one. They need no model.

# %%
print(f"R_all of the naive intruder: {risk.believes_release:.1%}")
axes = plt.figure(figsize=(6, 3.8), layout="constrained").subplots()
places = np.arange(len(summary))
axes.barh(places + 0.2, summary["no release"], 0.4, color="0.7", label="without the release")
axes.barh(places - 0.2, summary["R_all"], 0.4, color="C3", label="R_all")
axes.axvline(risk.believes_release, color="0.2", linestyle="--", label="believes the release")
axes.set(xlabel="share of cells found", title="How much does the release add?")
axes.set_yticks(places, summary.index)
axes.invert_yaxis()
_ = axes.legend(loc="upper center", bbox_to_anchor=(0.3, -0.17), ncols=3, fontsize="small")

# %% [markdown]
# The prior matters more than the knowledge of other cells. With the falling prior, and with that of
# the model, the best guess is 1 almost everywhere, with the release and without. All single movers
# are then "found", but by the prior: R_all is what it is without a release. So R_all is never to be
# read without its baseline. With the uniform prior the release adds something, and to believe it is
# about as good as Bayes' rule. What is known of the other cells changes little here.

# %%
by_prior = summary.loc[["prior of the model, all others", "falling prior, all others"]]
assert (abs(by_prior["R_all"] - by_prior["no release"]) < 0.01).all()
uniform = summary[summary.index.str.startswith("uniform")]
assert (uniform["R_all"] > uniform["no release"]).all()
assert uniform["R_all"].max() - uniform["R_all"].min() < 0.03
assert abs(risk.believes_release - risk.r_all.value) < 0.03

# %% [markdown]
# ## More data sets
# Each data set is another draw, and the intruder multiplies. Means over twenty releases, and in the
# picture their range: the risk grows with the number of data sets, slowly.

# %%
growth = risk_by_datasets(table, posterior, risk, most=20, releases=20, seed=8)
axes = plot_risk_by_datasets(growth)
axes.set_title("Risk by number of data sets")
assert growth["true_count_probability"].is_monotonic_increasing
growth.loc[[1, 2, 5, 10, 20], ["r_all", "r_unq", "mean_distance", "true_count_probability"]].round(
    3
)

# %% [markdown]
# ## Where the risk is
# By true count. The bars, cells found, are uneven: the best guess is often 1 or 9, whatever the
# truth. The mean probability of the true count hardly differs from the prior anywhere.

# %%
classes = risk_by(table, risk, "true-count")
axes = plot_risk_by_count(classes, baseline=risk.r_all.baseline)
axes.set_title("Risk by true count")
at_ends = (risk.rho.argmax("count").isin([0, table.k])).mean()
assert classes["r_all"].idxmax() == 1
assert (abs(classes["true_count_probability"] - risk.r_all.baseline) < 0.02).all()
print(f"best guess is 1 or 9 in {float(at_ends):.0%} of the cells")
classes.round(3)

# %% [markdown]
# By pair of states, and by quarters of the cells by the size of the smaller area.

# %%
risk_by(table, risk, "group").round(3)

# %%
risk_by(table, risk, "area-size").round(3)

# %% [markdown]
# The cells whose true count is most probable, and how many small cells of the group their areas
# have. A mean hides them; a limit on the largest probability does not.

# %%
highest = risk.highest(0.13).head(8).rename("probability of the true count").to_frame()
cells = table.cells
for side in ("origin", "destination"):
    number = cells.groupby(["group", side])["y"].transform("size")
    highest[f"cells of the {side}"] = number[highest.index]
highest["true count"] = cells["y"][highest.index] + table.low
highest.round(3)

# %% [markdown]
# ## One release is one draw of luck
# M is the same for every release, so that the risk of a hundred more costs little. The release
# above (dashed) is one of many possible ones; another could have looked safer, or less safe.

# %%
repeats = repeat_risk(table, posterior, risk, releases=100, seed=9)
figure, panels = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained", sharey=True)
for axes, column, name, share in zip(
    panels, ["r_all", "r_unq"], ["R_all", "R_unq"], [risk.r_all, risk.r_unq], strict=True
):
    axes.hist(repeats[column], bins=15, color="C0", alpha=0.8)
    axes.axvline(share.value, color="C3", linestyle="--", label="the release above")
    axes.set(xlabel=name, title=f"{name} over 100 releases")
panels[0].set_ylabel("releases")
panels[1].legend()
repeats.describe().loc[["mean", "std", "min", "max"]].round(3)

# %% [markdown]
# ## Other protections
# The same intruder against suppression, rounding, noise and a synthesis of each cell from its own
# count. Low and left is better. The first and the last mark of a line carry their numbers of data
# sets.

# %%
compared = risk_utility(table, posterior, risk, datasets=[1, 2, 5, 10], seed=10)
axes = plot_ru_map(compared)
axes.set_title("Risk and loss of utility")
first = compared[compared["datasets"] == 1].set_index(["method", "knowledge"])
first[["r_all", "true_count_probability", "totals_error"]].round(3)

# %% [markdown]
# The model's synthesis is the one whose true counts stay almost as improbable as the prior has
# them, also with more data sets. It pays with the largest error of totals. The other draws,
# repeated, give the counts away. Suppression hides nothing from who knows the other cells: they
# subtract. Its other mark is of an intruder with far less knowledge, and not to be compared.

# %%
others = compared[compared["knowledge"] == "all-others"].set_index("method")
ours = others.loc["model-based synthesis"]
rest = others.drop("model-based synthesis")
assert ours["true_count_probability"].max() < rest["true_count_probability"].min()
assert ours["totals_error"].min() > rest["totals_error"].max()

# %% [markdown]
# ## A release that keeps totals
# Where totals by area are published too, or kept by the release, whoever knows all other small
# counts subtracts them. The strongest intruder with something to learn lacks the counts along one
# cycle of totals. The totals tell them much; the release adds next to nothing.

# %%
totals = "origin,destination"
tied = synthesize(table, posterior, totals=totals, seed=3)
knowing = intruder_risk(table, posterior, tied, totals=totals, seed=3)
print(knowing.strongest)
assert abs(knowing.strongest.bits.gain) < 0.05

# %% [markdown]
# Other protections meet the same intruder, first without totals and then beside exact totals. Why
# not cell keys, or rounding? `after` less `before` is what each release tells.

# %%
protections = compare_protections(table, posterior, totals=totals, seed=12)
protections.round(3)

# %%
shown = protections[protections["totals"] != "not published"].iloc[::-1]
axes = plt.figure(figsize=(7.2, 5.4), layout="constrained").subplots()
places = np.arange(len(shown))
axes.hlines(places, shown["before"], shown["after"], color="0.6", linewidth=2)
axes.plot(shown["before"], places, "o", color="white", markeredgecolor="0.3", label="before")
axes.plot(shown["after"], places, "s", color="C3", label="after the release")
axes.set_yticks(places, shown["method"])
beside = axes.secondary_yaxis("right")
beside.set_yticks(places, shown["totals_error"].map("{:.0%}".format))
beside.set_ylabel("error of totals by area")
axes.set(
    xlim=(0, None),
    xlabel="mean probability of the true count",
    title="What does a release tell beside exact totals?",
)
_ = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)

# %%
kept_rows = protections.set_index(["method", "totals"])["after"]
assert (
    kept_rows["model, totals kept", "kept"]
    < kept_rows.drop("model", level=0)[:, "published beside"].min()
)

# %% [markdown]
# ## Limits, and choosing a release
# An agency sets limits beforehand, in a dated policy (also a TOML file, `read_policy`). Each limit
# gets a verdict.

# %%
policy = Policy(
    "Example board",
    datetime.date(2026, 1, 15),
    flows=FlowLimits(r_all=0.3, r_unq=0.9, true_count_probability=0.5),
)
for check in check_limits(policy, risk, unique=risk.unique):
    print(check.verdict, "-", check.reason, end="\n\n")

# %% [markdown]
# Several releases may be drawn, those beyond a limit dropped, and the one with the best totals
# kept. This looks at the true table, so the choice itself says something about it. `choose_release`
# therefore repeats the whole procedure and reports the risk of its winners.

# %%
choices = {
    number: choose_release(
        table, posterior, risk, policy.for_flows(), candidates=number, repetitions=20, seed=11
    )
    for number in (1, 5, 20, 50)
}
chosen_risk = pd.DataFrame(
    {
        number: {
            "error of totals": float(
                choice.candidates.loc[choice.candidates["chosen"], "totals_error"].item()
            ),
            **choice.procedure[["r_all", "r_unq", "believes_release"]].mean(),
            "standard error of r_all": choice.procedure["r_all"].sem(),
        }
        for number, choice in choices.items()
    }
).T.rename_axis("candidates")
chosen_risk.round(3)

# %%
print(choices[50])

# %% [markdown]
# More candidates give better totals. The winners' `r_all` grows little here, by less than the
# standard deviation of single releases above. It need not be so in other tables: where an area has
# few small cells, a close total is a close count, and believing the winner pays.

# %%
assert chosen_risk["error of totals"].is_monotonic_decreasing
change = chosen_risk.loc[50, "r_all"] - chosen_risk.loc[1, "r_all"]
assert change < repeats["r_all"].std()

# %% [markdown]
# ## Conclusion
# The probability of a true count hardly moves when the model's release comes out, whatever the
# intruder expects, and k-hat says for which cells that can be relied on. What moves it are totals:
# they tell more than the release. Rounding, noise and cell keys keep totals closer and give single
# counts away, most of all beside exact totals; the model with totals kept does neither.
#
# What next: put the limits of your board into a policy file and run the command with it, as at the
# end of [notebook 1](01_from_flows_to_a_release.ipynb); look at the posterior behind the risk with
# PyMC and ArviZ in [notebook 3](03_a_session_with_pymc.ipynb).
