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
# # The papers' numbers again
#
# The methods of this package come from five papers. This notebook computes what they print: each
# number that can be had without their data, and each formula that is printed wrong. A wrong formula
# is shown to be wrong by something that does not depend on it: integration, enumeration, or a
# plain count. What cannot be computed again is listed at the end, with the reason.
#
# - **T**: A. Takemura, *Evaluation of per-record identification risk by additive modeling of
#   interaction for contingency table cell probabilities* (2001)
# - **HRW**: S. Hawala, J. Reiter, Q. Wang, *Synthesizing Truncated Count Data for Confidentiality*
# - **EM**: M. Elliot, A. Manning, *Using DIS to modify the classification of special uniques*
#   (2003)
# - **CS**: A. Cohen, H. B. Sackrowitz, *Some issues concerning disclosure risk in contingency
#   tables*
# - **P**: S. Polettini, *A note on the individual risk of disclosure*

# %%
import math
from itertools import combinations, product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pymc as pm
from scipy.integrate import quad
from scipy.special import hyp2f1
from scipy.stats import gamma, nbinom, poisson

from bayes_sdc import (
    dis,
    dis_suda,
    ewens,
    expected_uniques,
    individual_risk,
    lancaster,
    pitman,
    read_microdata,
    suda,
    terms_for_error,
    unique_probability,
)
from bayes_sdc.models.truncated import TruncatedPoisson

pd.set_option("display.max_colwidth", 70)
reproduced, misprints = [], []


def decimals(printed: str) -> int:
    """Count the digits after the point."""
    return len(printed.partition(".")[2])


def reproduce(
    paper: str, place: str, what: str, printed: str, computed: float, *, cut_off: bool = False
) -> None:
    """Set a printed number beside the computed one, rounded (or cut off) to as many digits."""
    digits = decimals(printed)
    shown = math.floor(computed * 10**digits) / 10**digits if cut_off else round(computed, digits)
    agrees = shown == float(printed.replace(",", ""))
    assert agrees, (place, printed, computed)
    reproduced.append((paper, place, what, printed, f"{computed:,.9g}", agrees))


def correct(
    paper: str, place: str, what: str, truth: float, printed: float, corrected: float
) -> None:
    """Note what a printed formula gives, and the corrected one, beside an independent value."""
    wrong = not math.isclose(printed, truth, rel_tol=1e-3)
    right = math.isclose(corrected, truth, rel_tol=1e-6)
    assert wrong, (place, printed, truth)
    assert right, (place, corrected, truth)
    misprints.append((paper, place, what, truth, printed, corrected))


# %% [markdown]
# ## Cohen and Sackrowitz: uniques without structure
# Their example is a Dutch municipality of 46,228 people: a sample of 8,399, 1,108 cells that can be
# occupied, and 108 sample uniques.

# %%
N, n, K, s = 46_228, 8_399, 1_108, 108
reproduce("CS", "sec. 2, last line", "population uniques", "4.36", expected_uniques(s, n, N, K))

# %% [markdown]
# In our copy the last line has the fraction of (2.4) without the factor 108, and its value with
# it. The
# fraction alone is the probability of one cell. The truth beside it is from `expected_uniques`,
# which does not use the fraction: it multiplies the chances that each person outside the sample is
# in another cell.

# %%
fraction = (n + K - 1) * (n + K - 2) / ((N + K - 1) * (N + K - 2))
truth = expected_uniques(s, n, N, K)
correct("CS", "sec. 2, last line", "factor s left out", truth, fraction, s * fraction)
print(f"fraction as printed: {fraction:.4f}; times {s}: {s * fraction:.4f}")

# %% [markdown]
# Structural zeros matter. All combinations of levels are more than the cells that can be occupied,
# and counting them makes every sample unique look rarer.

# %%
every = 24 * 14 * 2 * 2
wrong_cells = expected_uniques(s, n, N, every)
print(f"with all {every:,} combinations instead of {K:,}: {wrong_cells:.4f} population uniques")
assert wrong_cells > expected_uniques(s, n, N, K)

# %% [markdown]
# Theorems 2.1 and 2.2 by enumeration. For a small table all population tables can be listed:
# three cells, a sample of (1, 2, 1), a population of 9. Each population table is weighted by its
# prior and by the number of ways to draw the sample from it, as in (2.3).

# %%
sample, population = (1, 2, 1), 9
tables = [F for F in product(range(population + 1), repeat=3) if sum(F) == population]
chances = {"uniform": [], "multinomial": []}
for F in tables:
    ways = math.prod(math.comb(big, small) for big, small in zip(F, sample, strict=True))
    chances["uniform"].append(ways)
    chances["multinomial"].append(ways * math.factorial(9) / math.prod(map(math.factorial, F)))
alone = np.array([F[0] == 1 for F in tables])
found = pd.DataFrame(
    {
        "by enumeration": {name: (np.array(w) @ alone) / sum(w) for name, w in chances.items()},
        "printed formula": {"uniform": 6 * 5 / (11 * 10), "multinomial": (2 / 3) ** 5},
        "unique_probability": {
            "uniform": unique_probability(4, 9, 3),
            "multinomial": unique_probability(4, 9, 3, concentration=math.inf),
        },
    }
)
np.testing.assert_allclose(found["by enumeration"], found["printed formula"], rtol=1e-12)
np.testing.assert_allclose(found["by enumeration"], found["unique_probability"], rtol=1e-12)
found.rename_axis("prior")

# %% [markdown]
# Both theorems are printed right.

# %% [markdown]
# ## Takemura: Lancaster's additive model
# The file is not published. Its size indices are, and they give the number of its cells and the two
# columns for comparison. The last class is open: 124 cells of 11 records or more.

# %%
sizes = [2249, 521, 275, 132, 104, 60, 59, 34, 46, 19, 124]
file = {"n": 9_809, "N": 4_867_000}
levels = [14, 2, 91, 5, 14, 7, 2, 5, 2, 10]
reproduce("T", "sec. 3", "cells of the table", "249,704,000", math.prod(levels))
reproduce("T", "sec. 2", "pair terms, 10 keys of 10", "4500", math.comb(10, 2) * 10 * 10)
by_moments = ewens(sizes, **file, estimator="moments")
reproduce("T", "sec. 3, Ewens", "population uniques", "5.88", by_moments.expected)
print(by_moments)

# %% [markdown]
# The Pitman column comes from the limit for large files, $s_1 (n/N)^{1-\alpha}$ with
# $\alpha = s_1 /$ (number of cells that occur). The printed number is met when $\alpha$ is first
# rounded to three digits, and what follows the second decimal is then cut off.

# %%
quick = pitman(sizes, **file, estimator="quick")
alpha = round(quick.parameters["alpha"], 3)
rounded = 2249 * (file["n"] / file["N"]) ** (1 - alpha)
print(f"alpha {quick.parameters['alpha']:.5f}: {quick.expected:.4f}; {alpha}: {rounded:.4f}")
what = "population uniques, alpha rounded, cut off"
reproduce("T", "sec. 3, Pitman", what, "213.96", rounded, cut_off=True)

# %% [markdown]
# Both columns depend on the estimator. Maximum likelihood gives other numbers for the same file,
# and for Pitman a range, because the open class leaves something undetermined.

# %%
likely, spread = ewens(sizes, **file), pitman(sizes, **file).expected_range
print(f"Ewens: {likely.expected:.3f} (theta {likely.parameters['theta']:.2f})")
print(f"Pitman: from {spread[0]:.1f} to {spread[1]:.1f}")
assert round(likely.expected, 2) != 5.88
assert spread[1] < 213.96

# %% [markdown]
# ### Equation (4)
# The leading factor is printed as one product of counts over one n. It must be a product of
# proportions: n counts once for each key. A small invented file shows it, since cell probabilities
# have to add up to 1.

# %%
rng = np.random.default_rng(5)
own, random = rng.integers(0, 4, 40), rng.integers(0, [4, 5, 3], (40, 3))
random[:, 0] = own
codes = np.where(rng.random((40, 3)) < 0.7, np.column_stack([own, own, own % 3]), random)
small = pd.DataFrame(codes.astype(str), columns=["a", "b", "c"])
cells = list(product(*(sorted(set(column)) for column in codes.T)))


def additive(cell: tuple[int, ...], factor: float, power: int) -> float:
    """Equation (4) from counts, with n to a power in the leading factor."""
    n = len(codes)
    one = [int((codes[:, k] == cell[k]).sum()) for k in range(3)]
    terms = 0.0
    for a, b in combinations(range(3), 2):
        both = int(((codes[:, a] == cell[a]) & (codes[:, b] == cell[b])).sum())
        terms += n * both / (one[a] * one[b]) - 1.0
    return math.prod(one) / n**power * (1.0 + factor * terms)


for factor in (0.0, 0.5, 1.0):
    sums = [sum(additive(cell, factor, power) for cell in cells) for power in (1, 3)]
    print(f"shrinkage {factor}: sum over cells {sums[0]:,.6f} as printed, {sums[1]:.6f} corrected")
correct("T", "eq. (4)", "power of n; sum of all cells", 1.0, *sums)

# %% [markdown]
# `lancaster` agrees with the corrected formula at every sample unique, with and without the
# renormalisation of (5). Some cells come out negative here, so that the two differ.

# %%
data = read_microdata(small, keys=["a", "b", "c"], missing="own")
model = lancaster(data, 400, shrinkage=[0.0, 0.5, 1.0])
for factor in (0.0, 0.5, 1.0):
    table = {cell: additive(cell, factor, 3) for cell in cells}
    c = sum(p for p in table.values() if p >= 0)
    assert math.isclose(c, 1 - sum(p for p in table.values() if p < 0))
    for record in model.risk.index:
        p = max(table[tuple(codes[record])], 0.0)
        plain, again = (1 - p) ** 360, (1 - p / c) ** 360
        assert math.isclose(model.risk_raw.loc[record, factor], plain, rel_tol=1e-9)
        assert math.isclose(model.risk_renormalized.loc[record, factor], again, rel_tol=1e-9)
assert model.table["negative"].min() < 0
model.table[["negative", "normalizer", "expected_raw", "expected_renormalized", "clamped"]].round(4)

# %% [markdown]
# ## Polettini: the individual risk
# The risk is the mean of 1/F. Two things do not depend on any closed form: the sum (1) over the
# negative binomial distribution, and the integral (3).


# %%
def by_sum(f: int, p: float) -> float:
    """Equation (1)."""
    unsampled = np.arange(200_000)
    return float((nbinom.pmf(unsampled, f, p) / (f + unsampled)).sum())


def by_integral(f: int, p: float) -> float:
    """Equation (3)."""
    return quad(lambda t: (p * math.exp(-t) / (1 - (1 - p) * math.exp(-t))) ** f, 0, 60, limit=400)[
        0
    ]


def closed(f: int, p: float, power: int = 3) -> float:
    """The closed forms of sec. 2, with q to a power for f = 3."""
    q = 1 - p
    if f == 1:
        return p / q * math.log(1 / p)
    if f == 2:
        return p / (1 - p) ** 2 * (p * math.log(p) + 1 - p)
    return p / (2 * q**power) * (q * (3 * q - 2) - 2 * p**2 * math.log(p))


rows = []
for f, p in product((1, 2, 3), (0.01, 0.1, 0.5)):
    third = {"closed form as printed": closed(f, p, 2), "corrected": closed(f, p)}
    rows.append(
        {"f": f, "p": p, "sum (1)": by_sum(f, p), "integral (3)": by_integral(f, p)}
        | third
        | {"individual_risk": float(individual_risk(f, p))}
    )
    assert math.isclose(rows[-1]["sum (1)"], rows[-1]["integral (3)"], rel_tol=1e-7)
    assert math.isclose(rows[-1]["sum (1)"], rows[-1]["individual_risk"], rel_tol=1e-9)
truth = by_integral(3, 0.5)
correct("P", "f = 3", "2 q^2 for 2 q^3; risk at p = 0.5", truth, closed(3, 0.5, 2), closed(3, 0.5))
pd.DataFrame(rows).set_index(["f", "p"]).round(6)

# %% [markdown]
# For f = 3 the printed closed form is too low by the factor q = 1 - p: it hardly matters for small
# p, and takes half of the risk at p = 0.5.
#
# Even the right closed forms are no way to compute the risk: near p = 1 all their digits cancel.
# `individual_risk` uses a series and a recurrence instead.

# %%
near = 1 - 1e-9
print(f"f = 2, p = 1 - 1e-9: closed form {closed(2, near):.3g}, individual_risk ", end="")
print(f"{float(individual_risk(2, near)):.10f}")
assert closed(2, near) < 0.1
assert abs(float(individual_risk(2, near)) - 0.5) < 1e-9

# %% [markdown]
# ### Equation (8) and the line above it
# Both relate two hypergeometric functions. The last argument on the left is printed as 0 in one and
# as p in the other; it is q in both.

# %%
f, p = 3, 0.2
right = hyp2f1(1, 1, f + 1, 1 - p) / p ** (f - 1)
left = {name: hyp2f1(f, f, f + 1, z) for name, z in (("0", 0.0), ("p", p), ("q", 1 - p))}
correct("P", "before eq. (8)", "argument 0 for q; f = 3, p = 0.2", right, left["0"], left["q"])
correct("P", "eq. (8)", "argument p for q; f = 3, p = 0.2", right, left["p"], left["q"])
print(f"right side {right:.6f}; left side " + ", ".join(f"{k}: {v:.6f}" for k, v in left.items()))

# %% [markdown]
# ### Approximations (9) and (10)
# They cut a series with positive terms, so they are too low, as the paper says. How much:

# %%
figure, axes = plt.subplots(figsize=(7, 3.5))
frequency = np.arange(1, 21)
short = {}
for method, style in (("order-1", "o-"), ("order-2", "s--")):
    approximate = individual_risk(frequency, 0.01, method=method)
    short[method] = 100 * (1 - approximate / individual_risk(frequency, 0.01))
    number = {"order-1": 10, "order-2": 9}[method]
    axes.plot(frequency, short[method], style, markersize=4, label=f"({number}), {method}")
axes.set(
    xlabel="sample frequency f",
    ylabel="per cent below the exact risk",
    title="How far (9) and (10) are too low (p = 0.01)",
    ylim=(0, 100),
    xticks=range(2, 21, 2),
)
axes.legend()
assert (short["order-2"] > 0).all()
assert (short["order-1"] > short["order-2"]).all()
print({f: round(float(short["order-2"][f - 1]), 1) for f in (1, 2, 4, 10)})

# %% [markdown]
# Both curves fall with f: the worst case is the sample unique, which matters most.
#
# The printed rule for the number of terms, $j > -\log \epsilon / \log f$, is not enough. With f = 1
# it divides by 0, and for f = 2:

# %%
f, p, wanted = 2, 0.04, 1e-4
terms = math.floor(-math.log(wanted) / math.log(f)) + 1
exact = by_integral(f, p)
enough = terms_for_error(f, p, wanted)
left_out = {j: exact - float(individual_risk(f, p, terms=j)) for j in (terms, enough)}
for j, error in left_out.items():
    print(f"{j} terms: error {error:.2g}, wanted {wanted:.0e}")
assert left_out[terms] > wanted
assert left_out[enough] <= wanted

# %% [markdown]
# ## Elliot and Manning: DIS, SUDA and DIS-SUDA
# The paper prints no number that its methods give: its Table 3 is announced and not there. So its
# formulas are compared with what they stand for, on ten invented records.

# %%
letters = ["UFsE", "UFsE", "UFpN", "UMcE", "RFcX", "UMcE", "UFrN", "UMqX", "UFsN", "UFsN"]
people = pd.DataFrame([list(word) for word in letters], columns=["area", "sex", "job", "status"])
ten = read_microdata(people, keys=list(people.columns))
rows = []
for chance in (0.01, 0.1, 0.5, 0.9):
    # remove each record in turn; copy it back or not; match it against the file
    unique = right = 0.0
    for record in range(ten.n):
        others = int((ten.combination == ten.combination[record]).sum()) - 1
        if others == 0:
            unique, right = unique + chance, right + chance
        elif others == 1:
            unique += 1 - chance
    rows.append({"f": chance, "by enumeration": right / unique, "dis": dis(ten, chance).value})
    assert math.isclose(rows[-1]["by enumeration"], rows[-1]["dis"], rel_tol=1e-12)
pd.DataFrame(rows).set_index("f").round(6)

# %% [markdown]
# The general form is printed right. Minimal sample uniques by their definition, on all sets of
# keys, and the scores with the weight (m - k)(m - k - 1)... of a set of k of the m keys:

# %%
keys, largest = list(people.columns), 3
scores = []
for record in range(ten.n):
    minimal: list[set[str]] = []
    for size in range(1, largest + 1):
        for members in map(list, combinations(keys, size)):
            same = (people[members] == people.loc[record, members]).all(axis=1).sum()
            if same == 1 and not any(smaller <= set(members) for smaller in minimal):
                minimal.append(set(members))
    weights = [math.prod(len(keys) - i for i in range(len(k), largest + 1)) for k in minimal]
    scores.append(sum(weights))
assert scores == suda(ten, max_size=largest).scores.tolist()
print(scores)

# %% [markdown]
# The steps of DIS-SUDA leave open over which records the logarithms are summed in step 5. Summed
# over all records, as the same expression is in step 2, part of the excess of capped records gets
# lost. Summed over those that are not capped, everything is shared out.


# %%
def steps(total: float, scores: np.ndarray, over_all: bool) -> np.ndarray:
    """Steps 1 to 6, with the sum of step 5 over all records or over those below 1."""
    logs = np.log(scores)
    risk = total * logs / logs.sum()
    while (excess := float((risk[risk > 1] - 1).sum())) > 0:
        risk = np.minimum(risk, 1.0)
        free = risk < 1
        risk[free] += excess * logs[free] / (logs if over_all else logs[free]).sum()
    return risk


found = dis_suda(ten, 0.9)
positive = np.array([score for score in scores if score > 0], dtype=float)
literal, whole = (steps(found.total, positive, over_all) for over_all in (True, False))
correct(
    "EM", "step 5", "sum over capped records too; total", found.total, literal.sum(), whole.sum()
)
np.testing.assert_allclose(found.risk[found.risk > 0], whole, rtol=1e-9)
print(f"total {found.total:.6f}; sum over all {literal.sum():.6f}, over the rest {whole.sum():.6f}")

# %% [markdown]
# ## Hawala, Reiter and Wang: truncated counts
# The paper prints methods and no results. Two counts can be computed:

# %%
reproduce("HRW", "sec. 2.1", "models a year, 51 states", "2601", 51**2)
distances = [abs(a - b) for a in range(9) for b in range(9)]
reproduce("HRW", "sec. 3, d_t", "largest distance, squared", "64", max(distances) ** 2)
print(f"largest distance itself: {max(distances)}")

# %% [markdown]
# The 64 is called the largest Euclidean distance, and is its square.
#
# ### Equation (1)
# In the first line $F_8^{-1}$ stands below the fraction and belongs above it. Probabilities have to
# add up to 1.

# %%
counts = np.arange(9)
rate = 5.0
share = poisson.cdf(8, rate)
first = poisson.pmf(counts, rate) / share**-1
second = rate**counts / np.array([math.factorial(y) for y in counts])
second /= second.sum()
ours = np.exp(pm.logp(TruncatedPoisson.dist(log_rate=math.log(rate), upper=8), counts).eval())
np.testing.assert_allclose(ours, second, rtol=1e-10)
np.testing.assert_allclose(poisson.pmf(counts, rate) / share, second, rtol=1e-10)
correct("HRW", "eq. (1), line 1", "F below; sum, rate 5", 1.0, first.sum(), ours.sum())
print(f"sum over counts: {first.sum():.6f} as printed, {ours.sum():.6f} by TruncatedPoisson")

# %% [markdown]
# ### Steps 5 and 6
# The precision of the effects is drawn from a Gamma distribution with a sum of squares about the
# *mean of the effects*. Prior times likelihood has the sum about $\mu$. Integrating that product
# shows which one is the conditional distribution.

# %%
effects, mu = np.array([0.3, -0.4, 1.1, 0.2, 0.9]), -0.5


def unnormalised(precision: float) -> float:
    """Prior of the precision, times the density of the effects."""
    squares = ((effects - mu) ** 2).sum()
    return precision ** (0.01 - 1 + len(effects) / 2) * math.exp(-precision * (0.01 + squares / 2))


area = quad(unnormalised, 0, 60)[0]
mean = quad(lambda x: x * unnormalised(x), 0, 60)[0] / area
shape = 0.01 + len(effects) / 2
drawn = [
    float(gamma.mean(shape, scale=1 / (0.01 + ((effects - about) ** 2).sum() / 2)))
    for about in (effects.mean(), mu)
]
correct("HRW", "steps 5, 6", "sum about the mean, not mu; mean", mean, *drawn)
print(f"mean by integration {mean:.6f}; as printed {drawn[0]:.6f}, corrected {drawn[1]:.6f}")

# %% [markdown]
# ### Equation (7)
# What is the probability of a released count k when the true count were y? One cell whose log rate
# has five possible values and a known posterior is enough. The exact answer refits: prior times the
# probability of y. Importance sampling reweighs draws that were made with the true count; here the
# "draws" are the five values, each as often as the posterior says. With normalised weights the
# factor 1/L must go.

# %%
rates = np.exp(np.array([-1.0, 0.0, 0.7, 1.4, 2.0]))
prior = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
pmf = rates[:, None] ** counts / np.array([math.factorial(k) for k in counts])
pmf /= pmf.sum(axis=1, keepdims=True)
true, candidate, released = 2, 5, 4
refit = prior * pmf[:, candidate]
exact = refit @ pmf[:, released] / refit.sum()
posterior = prior * pmf[:, true]
L = 100_000
often = np.round(L * posterior / posterior.sum()).astype(int)
draws = np.repeat(np.arange(5), often)
weights = rates[draws] ** (candidate - true)
corrected = weights / weights.sum() @ pmf[draws, released]
printed = corrected / len(draws)
print(f"exact {exact:.6f}; eq. (7) as printed {printed:.2e}, without 1/L {corrected:.6f}")
assert math.isclose(corrected, exact, rel_tol=1e-3)  # draws are whole numbers
assert printed < exact / 1000

# %% [markdown]
# ## All together
# Numbers that are met to every printed digit:

# %%
columns = ["paper", "place", "what", "printed", "computed", "agrees"]
again = pd.DataFrame(reproduced, columns=columns)
assert again["agrees"].all()
again

# %% [markdown]
# Formulas that are printed wrong, or that have a reading that is wrong. "Truth" comes from
# integration, enumeration, another way to compute the same, or a sum that must be 1.

# %%
columns = ["paper", "place", "what", "truth", "as printed", "corrected"]
pd.DataFrame(misprints, columns=columns).round(6)

# %% [markdown]
# Equation (7) of HRW belongs to them; it has a cell of its own above. Three more slips need no
# computation, since the symbols do not exist there or belong elsewhere:
#
# - HRW, steps 1 and 2: the exponent is the count $y_{ij}$, not $\gamma_{ij}$.
# - HRW, step 4: it draws $\mu_\gamma$, not $\mu_\beta$.
# - HRW, eq. (7): the inner sum runs over draws of the rate of the target, $\lambda_t^{(h)}$.
#
# What is not computed again, and why:

# %%
pd.set_option("display.max_colwidth", None)
left = [
    ("T", "sec. 3, uniques by shrinkage, negative sums", "the resampled census file is not public"),
    ("EM", "Table 3", "the table is not in the paper, and its census files are closed"),
    ("EM", "Table 1", "no number; its six outcomes are what is enumerated above"),
    ("HRW", "any result", "none is printed"),
    ("CS", "Table 1", "counts that illustrate a story; nothing is computed from them"),
    ("P", "any numerical example", "none is printed"),
]
pd.DataFrame(left, columns=["paper", "what", "why not"])
