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
# # A whole country
#
# A country has thousands of pairs of states, each a group with levels and effects of its own. All
# of them are fitted at once; with the pooled prior they are one model. This notebook does with a
# small invented country what a nation needs: it fits with draws kept on disk, stops, looks,
# resumes, finds the groups that did not converge, and measures the intruder's risk by group. It
# ends with what the same takes for 3,142 counties, and with how to run it on a cluster.

# %%
import tempfile
from pathlib import Path

from bayes_sdc import (
    diagnostics,
    fit_flows,
    intruder_risk,
    posterior_so_far,
    read_flows,
    risk_by,
    simulate_flows,
    synthesize,
)

# %% [markdown]
# ## An invented country
# `bayes-sdc simulate country.csv.gz --areas 3142 --states 51 --small 515000 --areas-file
# areas.csv` writes one of the size of the United States. Here are 90 areas in 6 states.

# %%
country = simulate_flows(areas=90, states=6, small=1500, seed=7)
table = read_flows(
    country,
    origin="origin",
    destination="destination",
    count="count",
    groups=["origin_state", "destination_state"],
)
print(table.summary())

# %% [markdown]
# ## Fit, with draws on disk
# `resume` names a folder for what is done. The draws of every chain are kept there every twenty
# seconds. After Ctrl-C, the stop button or a power cut the same call goes on from there and ends
# with the same draws as a call that was left alone. The command does this by itself: repeat it
# with `--resume`. The folder is confidential, like all draws.

# %%
folder = Path(tempfile.mkdtemp()) / "fit-so-far"
posterior = fit_flows(table, draws=500, tune=300, chains=4, seed=20261129, resume=folder)

# %% [markdown]
# `posterior_so_far` reads what is there, also while the fit is stopped half-way. Diagnostics and
# plots take it; no release is made from it.

# %%
posterior_so_far(table, folder).attrs["interrupted"]

# %% [markdown]
# ## Which groups did not converge?
# In a nation some of two and a half thousand groups mix slowly. The table has the worst first;
# `by_prior` marks groups so small that the prior decides them.

# %%
groups = diagnostics.group_diagnostics(posterior)
groups[["rhat", "ess", "cells", "by_prior"]].head()

# %%
groups["by_prior"].value_counts()

# %% [markdown]
# ## Release and risk
# The risk of every small cell, and by group: tiny groups are not where the intruder finds most.

# %%
release = synthesize(table, posterior, seed=20261130)  # for a real table: secrets.randbits(128)
risk = intruder_risk(table, posterior, release)
print("R_all:", risk.r_all)

# %%
risk_by(table, risk, "group").head().round(3)

# %% [markdown]
# ## What a nation takes
# Measured on two cores: 516,000 small cells in 2,593 groups, four chains of 250 draws, each the
# last of three sweeps, default family and prior.
#
# | | seconds |
# |---|---|
# | the command, from reading to reports, on an idle machine | 1,020 |
# | of these: the fit | 293 |
# | diagnostics | 99 |
# | intruder risk of all cells | 382 |
# | other releases, other protections, the rest of the risk | 194 |
# | the fit beside other work | 393 |
# | the same with `--family poisson` | 283 |
# | a fresh `pm.sample` of 1,000 + 1,000 draws for every group, from 20 groups | 43,558 |
# | NUTS for one group of 390 cells, 4 x 1,000 draws, once it is compiled | 1 |
# | the same in a new process | 11 |
#
# The command took 4.3 GiB of memory, the fit alone 2.3. 99.8 % of the cells had a log rate with an
# R-hat of at most 1.01 and a bulk effective size of at least 400. The national parameters and the
# scales of single groups mix more slowly, and the report says so. Effects are kept in single
# precision, an error of at most 5e-7 in a log rate (6e-6 with the paper's prior).
#
# Before it starts, the command tells the time of every step, from constants measured on simulated
# tables, and afterwards what is left. The first run also compiles, for some minutes.
#
# ## Resume after the fit
# The expensive steps after the fit are kept as well: the intruder's risk every 10,000 cells (every
# 16 that are refitted), the fits of an intruder who does not know the other counts, and the tables
# of diagnostics, repeated releases and other protections. A candidate of `--choose`, the check of
# the fit to the counts and the reports are made again. Options that the fit does not depend on,
# such as a policy or a number of data sets, may change; with another table, model, sampler, number
# of draws or seed `--resume` is refused.
#
# ## A cluster
# The chains also run on the workers of a dask.distributed cluster, with the same draws. Install
# the same versions, with the extra `cluster`, on every machine:
#
# ```sh
# dask scheduler                                     # on one machine; prints its address
# dask worker tcp://scheduler:8786 --nworkers 2      # on the others, a process for each core
# bayes-sdc flows country.csv.gz ... --scheduler tcp://scheduler:8786
# ```
#
# A task is a chain of a batch of groups, or of the whole country with the pooled prior: four tasks
# a table. A task whose worker is lost is run again. Progress counts chains that ended, and so does
# `--resume`: a chain at work is on its worker and is not kept. Counts and draws travel over the
# network as they are: it must be one that may see them.
