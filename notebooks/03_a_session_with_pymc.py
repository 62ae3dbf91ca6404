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
# # A session with PyMC and ArviZ
#
# The model behind a release is an ordinary PyMC model, and its posterior an ordinary ArviZ tree. At
# the end of this notebook you will be able to
#
# - get the `pm.Model` of a table, look at its graph and at what its prior expects;
# - sample it with `pm.sample`, and read `az.summary`, traces and ranks;
# - check the fit, and compare four models by leave-one-out cross-validation;
# - add a covariate of your own in two lines;
# - save a posterior as netCDF and go on from it later;
# - release a table from your own trace, and measure its risk.

# %%
import logging
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

import arviz as az
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr
from IPython.display import display

from bayes_sdc import (
    as_posterior,
    extend_posterior,
    fit_flows,
    intruder_risk,
    loo_flows,
    migration_model,
    read_flows,
    simulate_areas,
    simulate_flows,
    synthesize,
    with_covariates,
)

logging.getLogger("pymc").setLevel(logging.WARNING)  # warnings, but no lists of variables

country, areas = simulate_flows(seed=2011), simulate_areas(seed=2011)
inside = country[(country[["origin_state", "destination_state"]] == "03").all(axis=1)]
inside = inside.reset_index(drop=True)
table = read_flows(inside, origin="origin", destination="destination", count="count")
print(table.summary())

# %% [markdown]
# ## The model
# The count less its lower bound is negative binomial, truncated to 0..8. Its log rate is the effect
# of the origin plus that of the destination, plus covariates: by default what anyone sees of the
# sizes of the areas in the counts that are published as they are.
#
# The picture of the graph needs the program Graphviz (`apt install graphviz`, `brew install
# graphviz`, or graphviz.org) and its Python package (`pip install graphviz`). Without them the same
# graph is shown as text.

# %%
model = migration_model(table, prior="weak")
if shutil.which("dot") and find_spec("graphviz"):
    display(pm.model_to_graphviz(model))
else:
    print(pm.model_to_mermaid(model))

# %% [markdown]
# What does the prior expect of the counts? More ones than anything else, but with a wide range: the
# bars are the table, the marks the prior's tables. The table is within the range.

# %%
with model:
    prior = pm.sample_prior_predictive(300, random_seed=1)
counts = np.arange(table.low, table.high + 1)
expected = np.stack(
    [
        (prior["prior_predictive"]["y"] == k).mean("cell").to_numpy().ravel()
        for k in range(table.k + 1)
    ]
)
low, middle, high = np.quantile(expected, [0.05, 0.5, 0.95], axis=1)
axes = plt.figure(figsize=(7, 3.4), layout="constrained").subplots()
observed = np.bincount(table.cells["y"], minlength=table.k + 1) / table.n_small
axes.bar(counts, observed, color="0.8", label="true table")
axes.errorbar(counts, middle, yerr=[middle - low, high - middle], fmt="o", label="prior, 90 %")
axes.set(xlabel="count", ylabel="share of small cells", title="What does the prior expect?")
_ = axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))

# %% [markdown]
# ## Sample
# `pm.sample` uses NUTS. `fit_flows(sampler="nuts")` is the same with the model compiled once;
# `fit_flows` alone is the engine that fits whole nations. All are tested against each other.
#
# Read `ess_bulk` first: 2,000 draws that depend on each other count as a few hundred here, enough
# for a look and too few for a release. The rank plot says so too: chains this short do not have the
# same ranks yet (p below 0.01). For a release draw more, and ask `diagnostics.group_diagnostics`.

# %%
with model:
    trace = pm.sample(
        draws=500, tune=1000, chains=4, target_accept=0.95, random_seed=2, progressbar=False
    )
print("divergences:", int(trace["sample_stats"]["diverging"].sum()))
az.summary(trace, var_names=["alpha", "sd_beta", "sd_gamma", "r"])

# %%
az.plot_trace(trace, var_names=["alpha", "r"], figure_kwargs={"figsize": (8, 3.6)})
_ = az.plot_rank(trace, var_names=["alpha", "r"], figure_kwargs={"figsize": (8, 3)})

# %% [markdown]
# ## From the trace to a release
# `as_posterior` gives the trace the labels of the package. From here on it is like any other.

# %%
posterior = as_posterior(table, trace, prior="weak")
release = synthesize(table, posterior, seed=3)
risk = intruder_risk(table, posterior, release)
print("R_all:", risk.r_all)

# %% [markdown]
# ## Check the fit
# `extend_posterior` adds what ArviZ looks for. Counts there are those of the table, from 1 on.

# %%
checked = extend_posterior(table, posterior, ["posterior_predictive", "log_likelihood"], seed=4)
az.plot_ppc_rootogram(checked, var_names="count", figure_kwargs={"figsize": (7, 3.4)})
checked

# %% [markdown]
# ## A covariate of your own
# One value for each small cell. Two lines: the covariate into the table, the table into the model.

# %%
ends = [areas.set_index("area").loc[table.cells[side]] for side in ("origin", "destination")]
steps = [ends[0][name].to_numpy() - ends[1][name].to_numpy() for name in ("longitude", "latitude")]
distance = pd.DataFrame({"log_distance": np.log(np.hypot(*steps))}, index=table.cells.index)

far = with_covariates(table, distance)
with_distance = migration_model(far, prior="weak", covariates="none")
print(with_distance.coords["covariate"])

# %% [markdown]
# ## Which of four models?
# Poisson as in the paper, or negative binomial; with or without the distance. The difference in
# expected log predictive density is in `elpd_diff`, with its standard error `dse`. `loo_flows` is
# what `az.loo` gives, for tables of any size. `diag_elpd` counts the cells with a k-hat above 0.7:
# these cannot be left out by weighting alone, so small differences are not to be relied on.

# %%
how = {"prior": "weak", "covariates": "none", "draws": 1000, "tune": 500, "seed": 5}
fits, left_out = {}, {}
for family in ("poisson", "negative-binomial"):
    for words, of in (("areas", table), ("areas and distance", far)):
        name = f"{family}, {words}"
        fits[name] = fit_flows(of, family=family, **how)
        left_out[name] = loo_flows(of, fits[name])
compared = az.compare(left_out)
compared[["elpd", "se", "elpd_diff", "dse", "p", "weight", "diag_elpd"]]

# %%
assert compared.index[0] == "negative-binomial, areas and distance"
best = fits[compared.index[0]]
az.summary(best, var_names=["coefficient"])

# %% [markdown]
# ## Save, and go on
# The tree is netCDF. What is read back serves for a release like the one in memory; it holds true
# counts and is confidential.

# %%
file = Path(tempfile.mkdtemp()) / "posterior.nc"
best.to_netcdf(file)
again = xr.load_datatree(file)
one, other = (synthesize(far, each, seed=6) for each in (best, again))
assert one.equals(other)
print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB; the releases are equal")

# %% [markdown]
# ## Conclusion
# The prior leaves every count open. R-hat is near 1, but the chains are short. The negative
# binomial predicts far better than the Poisson; distance adds a little to the areas. The release
# and its risk came from the trace of `pm.sample` as from any other fit.
#
# The models of persons are as open: `latent_class_model`, `loglinear_model`,
# `individual_risk_model` and `uniques_model` give a `pm.Model`, and `latent_class_risk`,
# `loglinear_risk`, `superpopulation_risk` and `learn_uniques` take its trace.
#
# What next: give the model with distance to the whole job, by `bayes-sdc flows --areas ...
# --longitude ... --latitude ...`; read why three samplers give one posterior, and what the data
# cannot tell, in [notebook 10](10_two_samplers_one_posterior.ipynb); or fit a nation in
# [notebook 7](07_a_whole_country.ipynb).
