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
# # Which records are at risk?
#
# A file of persons, a sample of a population. Somebody who knows the region, sex, age, marital
# status and country of birth of a person in it may find that person's record. How many could be
# found, and which? There are many methods, and they do not agree. The package recommends one of
# them, latent classes, because it was nearest on real populations. Here it comes first, and then
# all the others, on a file whose population is known: each number can be held against the truth.
#
# The country is invented: 100,000 persons in households, made by
# `python -m bayes_sdc.microdata.file.simulate`. What is true of it need not be true of another one.
#
# At the end of this notebook you will be able to
#
# - measure the risk of each record, and of the file, by every method of the package;
# - say what each method assumes, and which of them agree;
# - choose the records to look at first, and let a policy judge the file.

# %%
import datetime
import itertools
import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from bayes_sdc import (
    MicrodataLimits,
    Policy,
    compare_key_sets,
    compare_risks,
    dis,
    dis_special,
    dis_suda,
    ewens,
    example_persons_path,
    expected_uniques,
    household_risk,
    individual_risk,
    lancaster,
    largest_sample,
    latent_class_risk,
    loglinear_risk,
    measure_microdata,
    mixture_of_priors,
    pitman,
    plot_record_risk,
    plot_risk_comparison,
    poisson_gamma,
    read_microdata,
    record_risk,
    simulate_persons,
    suda,
    superpopulation_risk,
    unique_probability,
    unique_test,
    uniques_deviation,
    weight_spread,
    zayatz,
)

# %% [markdown]
# ## Read
# Only the named columns are read, and codes stay text. The weight of a record is the number of
# persons it stands for.

# %%
keys = ["region", "sex", "age", "marital_status", "birth_place"]
data = read_microdata(example_persons_path(), keys=keys, weight="weight", household="household")
print(data.summary())

# %% [markdown]
# **Records and combinations.** A combination is a set of key values that occurs. A k-anonymity
# violation is a combination of fewer than k records. Always say which of the two is counted.

# %%
pd.DataFrame({f"f < {k}": data.k_violations(k)._asdict() for k in (2, 3, 5, 10)}).T

# %% [markdown]
# **Missing values.** What a missing value matches is a decision, and it changes the numbers. This
# file has none, so for this table alone the country of birth is deleted in every twentieth record.

# %%
frame = pd.read_csv(example_persons_path(), dtype=str)
holes = frame.copy()
holes.loc[::20, "birth_place"] = None
rules = {}
for rule in ("wildcard", "conservative", "own"):
    part = read_microdata(holes, keys=keys, weight="weight", missing=rule)
    rules[rule] = {
        "sample uniques": part.sample_uniques,
        "records with f < 3": part.k_violations(3).records,
        "expected re-identifications": record_risk(part).expected,
    }
rules = pd.DataFrame(rules).T
assert rules["sample uniques"].is_monotonic_increasing
rules.round(1)

# %% [markdown]
# With `wildcard` the missing value matches every value, so it protects its own record and those it
# could be. With `own` it is a category, and a rare one. `conservative` is between the two: the
# record itself counts what it could be, but complete records stay as rare as they look.

# %% [markdown]
# ## The truth
# The file says how many persons of the population share each record's key values. That is F, which
# nobody knows in practice. Three totals follow. *tau1*: sample uniques that are population uniques.
# *tau2*: correct matches of sample uniques, each matched to one of its F candidates at random.
# *expected*: the same for all records.

# %%
F = frame["population_count"].astype(int).to_numpy()
unique = data.f == 1
truth = {
    "expected": (1 / F).sum(),
    "tau1": int((F[unique] == 1).sum()),
    "tau2": (1 / F[unique]).sum(),
}
people = simulate_persons(seed=2011)
occupied = read_microdata(people, keys=keys)
print({name: round(float(value), 1) for name, value in truth.items()})
print(f"sampling fraction {data.n / 100_000:.4f}; sum of the weights {data.weights.sum():,.0f}")
print(
    f"combinations: {len(data.combinations):,} in the file, {len(occupied.combinations):,} in all"
)

# %% [markdown]
# ## The estimate to start from: latent classes
# Think of the people as a mixture of kinds (classes), in each of which the keys are independent.
# Enough classes describe any dependence. They say which combinations are plausible, far beyond
# those in the file. A second stage learns how much real combinations scatter about that. Both are
# learned from the file alone; the size of the population must be known.

# %%
classes = latent_class_risk(data, population_size=100_000, seed=1)
print(repr(classes))
rows = []
for name, found in (("tau1", classes.tau1), ("tau2", classes.tau2)):
    low, high = found.interval
    rows.append((name, found.value, low, high, truth[name], low <= truth[name] <= high))
columns = ["total", "estimate", "low", "high", "truth", "holds the truth"]
totals = pd.DataFrame(rows, columns=columns).set_index("total")
assert classes.trusted
assert (totals["estimate"] / totals["truth"]).between(0.8, 1.25).all()
totals.round(1)

# %% [markdown]
# Both intervals hold the truth. Keys of this country are nearly independent, and classes know that:
# a class has levels of its own in a key only where the file shows them, and those of everybody
# elsewhere. Whole households were sampled, and that is left out where a member's rarity is learned
# (`tests/validation/record_risk.md`, "D5 survey", has more samples of this kind beside other
# populations). Name the household when reading the file: without it the members of a rare family
# make each other look common, and the estimate is lower.

# %%
blind = latent_class_risk(
    read_microdata(example_persons_path(), keys=keys, weight="weight"),
    population_size=100_000,
    seed=1,
)
print(f"without households: {blind!r}")
assert blind.tau1.value < classes.tau1.value

# %% [markdown]
# The checks say what the file cannot tell. Read them before the number:

# %%
for check in classes.checks:
    print(f"{check.verdict}: {check.name}: {check.reason}")

# %% [markdown]
# Each record gets a probability to be alone in the population. Of the records with about 30 %,
# about 30 % should be:

# %%
p_alone = classes.records["P_unique"]
really = pd.Series(F[p_alone.index] == 1, index=p_alone.index)
edges = [0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 1.0]
names = [f"{low:g} to {high:g}" for low, high in itertools.pairwise(edges)]
bins = pd.cut(p_alone, edges, include_lowest=True, labels=names)
calibration = pd.DataFrame({"p": p_alone, "alone": really}).groupby(bins, observed=True)
calibration = calibration.agg(records=("p", "size"), said=("p", "mean"), true=("alone", "mean"))
assert really[p_alone > 0.3].mean() > 3 * really[p_alone < 0.1].mean()
calibration.round(3)

# %%
figure, axes = plt.subplots(figsize=(4.5, 4))
error = 2 * np.sqrt(calibration["said"] * (1 - calibration["said"]) / calibration["records"])
axes.errorbar(calibration["said"], calibration["true"], yerr=error, fmt="o", capsize=3)
axes.plot([0, 1], [0, 1], color="C1", linestyle="--")
highest = 1.1 * max(calibration["said"].max(), (calibration["true"] + error).max())
axes.set(
    xlabel="probability said", ylabel="share that is alone", xlim=(0, highest), ylim=(0, highest)
)
axes.set_title("Sample uniques alone in the population")
figure.tight_layout()

# %% [markdown]
# On the dashed line the numbers are right; the bars are two standard errors of chance alone. The
# points lie about it, so these can be used as probabilities, which is not so for the methods below.
#
# ## Log-linear models
# The standard of the field (Skinner and Shlomo): independent keys, to which pairs are added as long
# as an estimate of the error falls. It does not use the weights.

# %%
standard = loglinear_risk(data, 100_000)
print(repr(standard))
path = standard.path[["interaction", "tau1", "error1", "error2"]].assign(truth=truth["tau1"])
path.round(1)

# %% [markdown]
# What it finds depends on where the path stops. Its interval is of chance alone: the model counts
# as known.
#
# ## Individual risk
# Benedetti, Franconi and Polettini: the expected 1/F of a combination, from its frequency f and the
# chance p to be in the sample, which is f over the sum of weights. `order-1` and `order-2` are the
# published approximations.

# %%
risk = record_risk(data)
cells = risk.combinations
by_method = {
    method: individual_risk(cells["f"], cells["p"], method=method)
    for method in ("exact", "order-2", "order-1")
}
alone = (cells["f"] == 1).to_numpy()
sums = {
    name: {"expected": values @ cells["records"], "tau2": values[alone].sum()}
    for name, values in by_method.items()
}
sums["truth"] = {name: truth[name] for name in ("expected", "tau2")}
assert math.isclose(sums["exact"]["expected"], risk.expected)
assert sums["order-1"]["expected"] < sums["order-2"]["expected"] < sums["exact"]["expected"]
assert sums["exact"]["expected"] < sums["truth"]["expected"]
pd.DataFrame(sums).T.round(1)

# %% [markdown]
# The approximations are below the exact value, and the exact value is far below the truth. It is
# exact for its model, and the model is wrong here: its prior 1/rate for every combination says that
# a combination seen once is probably common.

# %%
figure, axes = plt.subplots(figsize=(7, 3.5))
plot_record_risk(risk, ax=axes)
axes.set_title("Individual risk of the records (dashed: limit of the bulk)")
above = risk.above_bulk()
print(f"above {risk.bulk_limit:.2f}: {above.records} records in {above.combinations} combinations")
print(f"of these records sample uniques: {(unique & (risk.risk > risk.bulk_limit)).sum()}")
assert risk.risk.max() < 0.5
print(f"highest risk {risk.risk.max():.3f}; highest true 1/F {1 / F.min():.0f}")

# %% [markdown]
# The peak to the right of the line is that of the sample uniques; they differ among themselves by
# their weights alone. No record comes near the risk of 1 that a population unique has.
#
# **Households.** Who finds one member of a household has found the others. The risk of a household
# is that at least one member is found.

# %%
true_household = household_risk(1 / F, data.household)
pd.DataFrame(
    {
        "records": [risk.expected, truth["expected"]],
        "persons in a household with a found member": [
            risk.expected_by_household,
            true_household.sum(),
        ],
    },
    index=["individual risk", "truth"],
).round(1)

# %% [markdown]
# ## With intervals
# `superpopulation_risk` draws the population frequencies, and gives intervals. Four models:
#
# - `known`: the model above.
# - `uncertain`: the same, and p is estimated from weights that vary.
# - `gamma`: combinations share a distribution of rates, learned from the file.
# - `extended`: the same with a shape that may be negative, which means more rare combinations.

# %%
inputs = {"records": cells["records"], "seed": 1}
models = {}
for model in ("known", "uncertain", "gamma", "extended"):
    spread = None
    if model == "uncertain":
        spread = weight_spread(data.weights, data.combination, cells["records"])
    models[model] = superpopulation_risk(
        cells["f"], cells["p"], model=model, spread=spread, **inputs
    )
rows = []
for name, model in models.items():
    for total, true in truth.items():
        found = getattr(model, total)
        low, high = found.interval
        rows.append((name, total, found.value, low, high, true, low <= true <= high, model.trusted))
columns = ["model", "total", "estimate", "low", "high", "truth", "holds the truth", "trusted"]
intervals = pd.DataFrame(rows, columns=columns)
intervals.round(1)

# %%
figure, panels = plt.subplots(1, 3, figsize=(9, 3), sharey=True)
for axes, (total, true) in zip(panels, truth.items(), strict=True):
    part = intervals[intervals["total"] == total]
    sides = [part["estimate"] - part["low"], part["high"] - part["estimate"]]
    axes.errorbar(part["estimate"], part["model"], xerr=np.abs(sides), fmt="o", capsize=3)
    axes.axvline(true, color="C1", linestyle="--")
    axes.set(xlabel="records", title=f"{total} (dashed: truth)", xlim=(0, None))
panels[0].invert_yaxis()
assert not intervals["holds the truth"].any()
assert (intervals["low"] > intervals["truth"])[intervals["model"] == "extended"].all()
assert (intervals["high"] < intervals["truth"])[intervals["model"] != "extended"].all()
figure.suptitle("95 % intervals of four models")
figure.tight_layout()

# %% [markdown]
# No interval holds the truth. Three models are too low, `extended` is too high; here the truth lies
# between them, which is luck and not a rule. Each interval says how uncertain a total is *if its
# model is right*. So the distance between models, not the interval of one, is the uncertainty. On
# samples from two real populations (`tests/validation/record_risk_accuracy.md`) it was the same:
# the closed form far too low, `extended` right on average in one and too high in the other.

# %% [markdown]
# ## Uniques without structure
# Cohen and Sackrowitz assume nothing about how the cells relate: all tables of N persons in K cells
# are equally likely (concentration c = 1), or all cells are (c infinite). Every sample unique then
# has the same probability to be alone in the population.
#
# K must count the cells that *can* be occupied. A married child is a structural zero.

# %%
young = ["00-04", "05-09", "10-14"]
zeros = [{"age": young, "marital_status": ["married", "divorced", "widowed"]}]
impossible = people["age"].isin(young) & (people["marital_status"] != "single")
assert not impossible.any()
levels = [len(labels) for labels in data.labels]
every = math.prod(levels)
allowed = every - every // levels[2] * len(young) * 3 // levels[3]
settings = (data.n, 100_000)
rows = {}
for name, K in (
    ("all combinations of levels", every),
    ("without structural zeros", allowed),
    ("occupied in the population (unknown)", len(occupied.combinations)),
):
    learned = mixture_of_priors(
        data.size_indices, 100_000, K, concentrations=np.geomspace(0.01, 10, 25)
    )
    rows[name] = {
        "K": K,
        "uniform (c = 1)": expected_uniques(data.sample_uniques, *settings, K),
        "deviation": uniques_deviation(data.sample_uniques, *settings, K),
        "multinomial": expected_uniques(data.sample_uniques, *settings, K, concentration=math.inf),
        "c from the file": data.sample_uniques * learned.probability,
        "truth": truth["tau1"],
    }
unstructured = pd.DataFrame(rows).T
assert unstructured["uniform (c = 1)"].is_monotonic_decreasing
assert (unstructured["uniform (c = 1)"] + 2 * unstructured["deviation"] < truth["tau1"]).all()
unstructured.round(1)

# %% [markdown]
# All are too low. Even worse, the right number of cells, in the last row, gives the estimate that
# is furthest off: the priors spread people evenly, and the population is not even. That too many
# cells come closer to the truth is two errors against each other. To leave out structural zeros is
# right, but it cannot mend the model. The deviation is far smaller than the error.
#
# The same probability decides by losses, and plans samples:

# %%
Q = unique_probability(*settings, allowed)
print(f"Q = {Q:.3f}")
for reject in (5, 20):
    taken = unique_test(Q, loss_accept=1, loss_reject=reject)
    print(f"missing a population unique costs {reject}, a false alarm 1: treat as unique? {taken}")
print(f"largest sample with Q at most 0.1: {largest_sample(100_000, allowed, 0.1):,}")

# %% [markdown]
# ## What the sizes of the combinations say
# Ewens, Pitman, Poisson-gamma and Zayatz look only at how many combinations have one record, two
# records, and so on. All sample uniques get the same risk. A small p-value means that the model
# does not even fit these sizes.

# %%
sizes = data.size_indices
by_size = [
    ewens(sizes, *settings),
    ewens(sizes, *settings, estimator="moments"),
    pitman(sizes, *settings),
    pitman(sizes, *settings, estimator="quick"),
    poisson_gamma(sizes, *settings, cells=allowed),
    zayatz(sizes, *settings),
]
pd.DataFrame(
    [
        {
            "model": model.model,
            "estimator": model.estimator,
            "tau1": model.expected,
            "standard error": model.expected_error,
            "p of the fit": model.fit_p,
            "truth": truth["tau1"],
        }
        for model in by_size
    ]
).round(3)

# %% [markdown]
# The numbers range from a third of the truth to twice the truth. Only Pitman's formula by maximum
# likelihood fits the sizes, and it is too high all the same: a good fit to the file says little
# about the part of the population that is not in it. The standard errors again hold only if the
# model is right.

# %% [markdown]
# ## Which records are special? SUDA
# A minimal sample unique is a set of key values that only one record has, with no smaller set
# inside it that is unique too. A record that is unique on few keys is special. The score adds up
# its minimal sample uniques, small ones counting more.

# %%
special = suda(data, max_size=3)
print((special.variables * 100).round(1).rename("per cent of the score").to_string())
top = int(special.scores.argmax())
special.minimal_sample_uniques(top)

# %% [markdown]
# Does a high score mean rare in the population? Sample uniques by score, in fifths:

# %%
score = pd.Series(special.scores[unique]).rank(method="first", pct=True)
fifth = np.ceil(score * 5).astype(int).to_numpy()
by_fifth = (
    pd.DataFrame({"fifth": fifth, "F = 1": F[unique] == 1, "mean 1/F": 1 / F[unique]})
    .groupby("fifth")
    .agg(records=("F = 1", "size"), population_uniques=("F = 1", "sum"), mean=("mean 1/F", "mean"))
)
assert by_fifth["population_uniques"].idxmax() == 5
by_fifth.round(3)

# %% [markdown]
# The highest fifth holds about half of the population uniques. Below it the order is poor: the
# second fifth has fewer than the first.

# %% [markdown]
# ## DIS: is a unique match correct?
# Somebody of the population is looked for, and one record fits. DIS estimates how often it is the
# right one, from the uniques and pairs of the file alone. The truth is the sample uniques over the
# persons of the population who share their values.

# %%
true_dis = unique.sum() / F[unique].sum()
by_fraction, by_weight = dis(data, data.n / 100_000), dis(data, None)
print(f"with the fraction: {by_fraction}")
print(f"with the weights:  {by_weight}")
print(f"truth:             {true_dis:.4f}")
low, high = by_weight.beta_interval
assert low <= true_dis <= high

# %% [markdown]
# The special form simulates the intruder. It can also match against a protected file. Here the
# country of birth of every sample unique is suppressed, and a suppressed value matches every value.

# %%
hidden = frame.copy()
hidden.loc[unique, "birth_place"] = None
protected = read_microdata(hidden, keys=keys, weight="weight")
plain = dis_special(data, sampling_fraction=data.n / 100_000, seed=1)
after = dis_special(data, protected, sampling_fraction=data.n / 100_000, seed=1)
print(f"as it is:  {plain}")
print(f"protected: {after}")
assert after.value < plain.value
print(f"sample uniques: {data.sample_uniques:,} before, {protected.sample_uniques:,} after")

# %% [markdown]
# DIS is right here, and its interval holds the truth: it needs no model of the population. But it
# answers another question, about the file as a whole. Suppression brings it down, and leaves fewer
# records unique.
#
# ## DIS-SUDA
# DIS times the number of sample uniques, shared out by the logarithm of the SUDA score. `sdcmicro`
# is the different formula of the R package.

# %%
shared = dis_suda(data, None)
theirs = dis_suda(data, None, method="sdcmicro", score="ihsn")
pd.DataFrame(
    {
        "sum over records": [shared.risk.sum(), theirs.risk.sum(), true_dis * unique.sum()],
        "tau2, sum of 1/F": [truth["tau2"]] * 3,
        "rank correlation with 1/F": [
            spearmanr(shared.risk[unique], 1 / F[unique]).statistic,
            spearmanr(theirs.risk[unique], 1 / F[unique]).statistic,
            1.0,
        ],
    },
    index=["DIS-SUDA", "formula of sdcMicro", "truth"],
).round(2)

# %% [markdown]
# The total of DIS-SUDA is near what it estimates, but that is not the number of correct matches
# among sample uniques: DIS averages over persons looked for, and common combinations are looked for
# most. Use these numbers to rank records, not as probabilities.

# %% [markdown]
# ## Lancaster's additive model
# Cell probabilities from all pairs of keys. The interactions may be shrunk: 0 is independence, 1
# takes the pairs as they are in the file. Probabilities can come out negative, and are cut off.

# %%
additive = lancaster(
    data, 100_000, shrinkage=[0.0, 0.2, 0.4, 0.6, 0.8, 1.0], structural_zeros=zeros
)
columns = ["expected_raw", "expected_renormalized", "negative", "clamped"]
additive.table[columns].assign(truth=truth["tau1"]).round(3)

# %% [markdown]
# Independence, in the first row, meets the truth almost to the record, and all interactions
# together do worse. Do not conclude that independence is the right model: this country was
# simulated with few interactions, and on real populations main effects alone are known to
# overestimate. Here the errors of the cells cancel in the sum.

# %% [markdown]
# ## All methods side by side
# `compare_risks` runs them all. Lines are about three different things, so each is held against a
# truth of its own.

# %%
comparison = compare_risks(data, 100_000, structural_zeros=zeros, latent_classes=classes)
about = comparison.methods["about"].drop_duplicates().tolist()
true_of = dict(zip(about, (truth["tau1"], truth["tau2"], true_dis * unique.sum()), strict=True))
table = comparison.methods[["about", "expected", "low", "high"]].copy()
table["truth"] = table["about"].map(true_of)
table["estimate / truth"] = table["expected"] / table["truth"]
ratio = table["estimate / truth"]
assert ratio[["Ewens", "Poisson-gamma", "individual risk, uniques"]].max() < 0.4
assert ratio["Zayatz"] > 1.9
assert table.loc["Pitman", "low"] > truth["tau1"]
assert table.loc["DIS-SUDA", "low"] < true_of[about[2]] < table.loc["DIS-SUDA", "high"]
table.round(2)

# %%
figure, axes = plt.subplots(figsize=(8, 5))
plot_risk_comparison(comparison, truth=truth["tau1"], ax=axes)
axes.set_title("Expected numbers by method")
figure.tight_layout()

# %% [markdown]
# The dashed line is the truth for the round marks alone; the other two are held against truths of
# their own in the table. Right or wrong, and why:
#
# - **Latent classes**: near the truth here, and the only ones whose interval is meant to hold it.
#   Too high where people come in clumps that the keys do not show.
# - **Log-linear**: right where the pairs that it chose are those that matter.
# - **Individual risk, Ewens, Poisson-gamma**: a third of the truth. They let common combinations
#   stand for rare ones: the tail of rare combinations is longer than these models allow.
# - **Zayatz**: twice the truth. It takes the sizes in the file for those of the population, and a
#   small sample is full of ones.
# - **Pitman**: too high, its interval lies above the truth.
# - **Cohen-Sackrowitz, Lancaster**: too low; even spread, and pair terms that are partly noise.
# - **Independence**: right here, by errors that cancel.
# - **DIS-SUDA**: right for what it adds up to, which is not the number of matches.
#
# Without the truth one could not tell which method is right. A board should see the whole range.
#
# ### Who ranks well?
# Totals are one question. Which records to protect is another, and a method with a wrong total can
# rank well. Of the sample uniques a method puts on top, as many as there are population uniques,
# how many are population uniques? Ties are broken in favour of no one: their expected share counts.

# %%


def found_on_top(values: np.ndarray, true: np.ndarray) -> float:
    """Population uniques among the highest values; ties at the limit count by their share."""
    number = int(true.sum())
    limit = np.sort(values)[-number]
    above, tied = values > limit, values == limit
    return float(true[above].sum() + true[tied].mean() * (number - above.sum()))


records = comparison.records
true_risk = 1 / F[records.index]
ranking = pd.DataFrame(
    {
        name: {
            "found among the top": found_on_top(records[name].to_numpy(), true_risk == 1),
            "rank correlation with 1/F": spearmanr(records[name], true_risk).statistic,
        }
        for name in records
    }
).T.sort_values("found among the top", ascending=False)
by_chance = truth["tau1"] ** 2 / data.sample_uniques
print(f"population uniques: {truth['tau1']}; by chance {by_chance:.0f} would be found")
assert ranking.index[-1] == "individual risk"
assert (ranking["found among the top"] < 2 / 3 * truth["tau1"]).all()
assert (ranking["found among the top"] > by_chance).all()
ranking.round(2)

# %%
figure, axes = plt.subplots(figsize=(7, 3.5))
axes.barh(ranking.index, ranking["found among the top"])
axes.axvline(by_chance, color="C1", linestyle="--", label="by chance")
axes.axvline(truth["tau1"], color="C2", linestyle=":", label="all of them")
axes.set(
    xlabel="population uniques found", title="Population uniques among the top of each ranking"
)
axes.invert_yaxis()
axes.legend(loc="lower right")
figure.tight_layout()

# %% [markdown]
# The bars show that models of the combinations rank best, latent classes first, then SUDA. The
# individual risk is last: among sample uniques it knows nothing but the weight. None finds two
# thirds of the population uniques. A wrong total and a good ranking can go together: DIS-SUDA and
# Lancaster are no use as probabilities here, and still say where to look first.

# %%
comparison.agreement.round(2)

# %% [markdown]
# Where two methods disagree most, somebody should look at the record:

# %%
comparison.disagreements.head(5).round(2)

# %% [markdown]
# ## Key sets
# The risk depends on what the intruder knows. Three intruders:

# %%
sets = {
    "neighbour": ["region", "sex", "age"],
    "colleague": ["region", "sex", "age", "marital_status"],
    "register": keys,
}
compared = compare_key_sets(data, sets)
assert compared["expected"].is_monotonic_increasing
compared[["keys", "combinations", "records_below_3", "expected", "tau1", "tau2"]].round(1)

# %% [markdown]
# ## A policy
# What the board decided goes into a policy with a name and a date, and the verdicts follow.

# %%
policy = Policy(
    "Release of the survey, invented",
    datetime.date(2026, 1, 15),
    microdata=MicrodataLimits(k=3, record_risk=0.2, file_risk=0.1),
)
result = measure_microdata(data, population_size=100_000, policy=policy, seed=1)
for check in result.checks:
    print(f"{check.name}: {check.verdict}. {check.reason}")
verdicts = {check.name: check.verdict for check in result.checks}
assert verdicts["limit k"] == "fail"

# %% [markdown]
# ## Conclusion
# Methods with another view of rare combinations give other totals, by a factor of six here; none
# is right in every population. The latent classes are the default because they look at how the
# keys depend on each other. A ranking is easier than a total. Report the range, and the model.
#
# What next: protect the records at risk and measure again, in
# [notebook 8](08_from_records_to_a_release.ipynb).
