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
# published. At the end of this notebook you will be able to
#
# - replace the small counts of such a table by synthetic ones, drawn from a Bayesian model;
# - judge whether the model fits, and what the release is good for;
# - release a table whose totals by area are the true ones;
# - say what an intruder could still learn;
# - make the folder that is handed over: the table, a report for the public and one for the board.
#
# The country is invented: 80 areas in 4 states, made by
# `python -m bayes_sdc.flows.table.simulate`.

# %%
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayes_sdc import (
    audit_totals,
    diagnostics,
    example_flows_path,
    fit_flows,
    flow_uses,
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
posterior = fit_flows(table, draws=300, tune=300, seed=1)
posterior

# %% [markdown]
# Before anything else: did it converge? Worst groups first. The chains of this page are short, so
# that it is quick to run; for a release leave out `draws` and `tune`.

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
# ## A release that adds up
# Every cell was drawn by itself, so the totals by area are off. A release can keep them: counts are
# then drawn given the totals. Totals can tell small counts, so look first: the audit bounds every
# small count by the totals of origins and destinations.

# %%
audit = audit_totals(table)
print(audit)
assert not audit.bounds["pinned"].any()

# %% [markdown]
# No count follows from these totals. Where some do, `keep_totals(table, posterior)`, or
# `--totals-kept auto`, keeps as many as tell no count, and lists the others, which must not be
# published, each with the reason.

# %%
totals = "origin,destination"
adding_up = synthesize(table, posterior, totals=totals, seed=3)

# %%
true_outflow = table.frame.groupby("origin")["count"].sum()
releases = {"each cell by itself": release, "totals kept": adding_up}
figure, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for axes, (name, one) in zip(panels, releases.items(), strict=True):
    off = one.groupby("origin")["count"].sum() - true_outflow
    axes.plot(true_outflow, off, "o", markersize=4, alpha=0.7)
    axes.axhline(0, color="0.3", linewidth=0.8)
    axes.set(
        xscale="log", xlabel="true outflow of an area", title=f"{name}: {(off != 0).sum()} off"
    )
_ = panels[0].set_ylabel("released less true outflow")

# %% [markdown]
# What a demographer does with the table, true against released: an error of totals near 0, or
# intervals that overlap. `good for` means up to 2 % off.

# %%
uses = {name: flow_uses(table, one).table.set_index("use") for name, one in releases.items()}
pd.concat({name: use[["value", "verdict"]] for name, use in uses.items()}, axis=1).round(3)

# %%
assert uses["totals kept"].loc["outflow of an area", "value"] <= 0.001
assert uses["each cell by itself"].loc["outflow of an area", "value"] > 0.001

# %% [markdown]
# ## What could an intruder still learn?
# The worst case for a release without totals: somebody who knows every other small count, the
# model, and the release. For each cell, `rho` is the probability of each candidate count in the
# eyes of that person.

# %%
risk = intruder_risk(table, posterior, release)
print("R_all:", risk.r_all)
print("R_unq:", risk.r_unq)
risk.distance_distribution().round(3)

# %% [markdown]
# The weights behind these numbers have their own diagnostic, Pareto's k-hat: beyond 0.7 they cannot
# be relied on, and R_all says NOT TRUSTED where too many cells have such weights. The picture shows
# the largest k-hat of all cells. The paper's importance sampling goes wrong for candidates far from
# the true count; with both effects of the target integrated out, the default, far fewer weights do.
# More draws help too.

# %%
y = table.cells["y"].to_numpy()
distance = np.abs(np.arange(table.k + 1) - y[:, None])
paper = intruder_risk(table, posterior, release, estimator="paper")
axes = plt.figure(figsize=(7, 3.5)).subplots()
for one, look in [(paper, "s--"), (risk, "o-")]:
    khat = one.khat.to_numpy()
    largest = [khat[distance == d].max() for d in range(1, table.k + 1)]
    bad = (khat > one.khat_threshold).mean()
    label = f"{one.estimator}: {bad:.2%} of all weights beyond"
    axes.plot(range(1, table.k + 1), largest, look, label=label)
axes.axhline(risk.khat_threshold, color="0.3", linestyle=":", label="limit")
axes.set(
    xlabel="distance of the candidate from the true count",
    ylabel="largest k-hat",
    title="Which weights can be relied on?",
)
_ = axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")

# %% [markdown]
# Where totals are kept, anyone who knows all other counts subtracts them, and nothing is left to
# measure. The strongest intruder with something to learn lacks the counts along one cycle of
# totals. What they know before any release they know from the totals; the release adds next to
# nothing.

# %%
knowing = intruder_risk(table, posterior, adding_up, totals=totals, seed=3)
gain = {"each cell by itself": risk.strongest, "totals kept": knowing.strongest}
pd.DataFrame(
    {
        name: {
            "probability of the true count, before": one.probability.before,
            "after the release": one.probability.after,
            "bits gained": one.bits.gain,
        }
        for name, one in gain.items()
    }
).T.round(3)

# %%
assert all(abs(one.bits.gain) < 0.05 for one in gain.values())

# %% [markdown]
# One release is one draw of luck. Over twenty releases:

# %%
repeats = repeat_risk(table, posterior, risk, releases=20, seed=4)
repeats.describe().loc[["mean", "std", "min", "max"]].round(3)

# %% [markdown]
# ## Hand over
# The command does all of the above, with its checks, and writes a folder: `release/` is what may
# leave, the table and a report for the public; `confidential/` is for the board. If a check fails,
# the release is written to `held/`, until somebody approves it with a reason. The seed is given
# here so that this page stays as it is; leave it out for a real release, and never publish it:
# anyone who has it can undo the release.

# %%
policy = """
name = "Example board"
date = 2026-01-15

[flows]
gain_bits = 0.05
pushed_over_80 = 10
"""
folder = Path(tempfile.mkdtemp())
(folder / "policy.toml").write_text(policy, encoding="utf-8")
command = [
    *(sys.executable, "-m", "bayes_sdc.cli", "flows", str(example_flows_path())),
    *("--origin", "origin", "--destination", "destination", "--count", "count"),
    *("--groups", "origin_state,destination_state", "--totals-kept", totals),
    *("--policy", str(folder / "policy.toml"), "--draws", "700", "--tune", "700"),
    *("--releases", "5", "--seed", "5"),
    *("--out", str(folder / "run")),
]
done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
record = json.loads((folder / "run" / "confidential" / "run.json").read_text(encoding="utf-8"))
verdicts = pd.DataFrame(record["checks"])
assert done.returncode == 0, done.stdout
print(*sorted(str(file.relative_to(folder)) for file in (folder / "run").glob("*/*")), sep="\n")
verdicts[["name", "verdict"]]

# %% [markdown]
# The file that may leave has the true totals:

# %%
handed_over = pd.read_csv(next(folder.glob("run/*/*_synthetic.csv")), dtype={"origin": str})
off = handed_over.groupby("origin")["count"].sum() - true_outflow
assert (off == 0).all()
print(f"{(off != 0).sum()} of {len(off)} outflows differ from the true ones")

# %% [markdown]
# ## Conclusion
# The small counts are gone from the table, its totals are the true ones, and the release tells an
# intruder next to nothing beyond what the totals tell. The report for the public is beside the
# table; the one for the board says what is to be decided.
#
# No check failed, so both are in `release/`. What stands at "look" the board reads before it lets
# them go: more draws, which is to leave out `--draws` and `--tune`, make the chains agree better.
# Had a check failed, table and report would be in `held/`, and whoever may decide to release them
# all the same would say `bayes-sdc approve DIR --reason TEXT`. The reason is kept.
#
# What next: [notebook 2](02_what_an_intruder_learns.ipynb) takes the risk apart and sets other
# protections beside; [notebook 3](03_a_session_with_pymc.ipynb) is for users of PyMC and
# ArviZ; [notebook 7](07_a_whole_country.ipynb) does a whole country.
