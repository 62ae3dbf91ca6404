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
# # From records to a release
#
# A file of persons fails a limit. What now? It is treated, measured again, and released if it keeps
# the limit: the same way that a table of flows goes. Here records at risk get new values of some of
# their keys, drawn from a model of the file; other treatments stand beside. The country is
# invented, so what is shown here may be shown.
#
# In one command:
#
# ```
# bayes-sdc microdata survey.csv --keys region,sex,age,marital_status,birth_place --weight weight \
#     --treat synthesis --target-risk 0.05 --out survey-run
# ```

# %%
import pandas as pd

from bayes_sdc import (
    Intruder,
    attribute_risk,
    compare_treatments,
    example_persons_path,
    plot_treatments,
    read_microdata,
    treat,
    treated_utility,
)

SEED, PEOPLE = 8, 20_000  # people of the population that these records are taken to be of
KEYS = ["region", "sex", "age", "marital_status"]
frame = pd.read_csv(example_persons_path(), dtype=str).head(1000)
data = read_microdata(frame, keys=KEYS, household="household")
print(data.summary())

# %% [markdown]
# ## The risk before
#
# Every record is a target once. The intruder knows the four keys of the target, but not whether the
# target is in the file: of the F people with these values any could be meant. F is not known; it is
# estimated by latent classes, and its uncertainty is in the interval.

# %%
done = treat(data, target_risk=0.1, population_size=PEOPLE, seed=SEED)
print(done.before.summary())

# %% [markdown]
# ## Partial synthesis
#
# Records with a risk above 0.1 were treated: so few keys as are needed, chosen one by one, are
# drawn anew given what stays. The region is equal within all households, so it is drawn once for a
# household.

# %%
print(done.summary())

# %%
done.changes.head()

# %%
members = done.released.assign(household=frame["household"])
assert (members.groupby("household")["region"].nunique() == 1).all()

# %% [markdown]
# The intruder of the numbers above knows which keys were treated, how, and how many records, but
# not which: they cannot tell a drawn value from a true one. One who knows the treated records knows
# more; to them a drawn value is as good as none. Both are always reported, and several data sets
# side by side show which records were treated, so with these only the second one counts.

# %%
several = treat(data, target_risk=0.1, population_size=PEOPLE, datasets=3, seed=SEED)
print(several.after.summary())

# %% [markdown]
# ## What the file is still good for

# %%
regression = ["marital_status=married ~ sex + region"]
use = treated_utility(several, regressions=regression)
print(use.summary())

# %%
use.regressions.round(3)

# %% [markdown]
# ## What it tells of a sensitive variable
#
# A file tells something of everybody. What counts is what it tells of a person beyond what it would
# tell without that person's record: the gain. Where k-hat is above 0.7 the number is not reliable.

# %%
first = several.data.with_codes(several.codes[0])
gain = attribute_risk(first, sensitive="marital_status", draws=200, seed=SEED)
print(gain.summary())

# %% [markdown]
# ## Other treatments
#
# Suppression sets the cheapest values missing until every record counts k; PRAM changes values by
# lot, with matrices that keep the shares of the levels. Each at several strengths, in one picture:
# low and left is better.

# %%
strengths = {"synthesis": [0.2, 0.1], "suppression": [2, 3, 5], "pram": [0.05, 0.15, 0.3]}
compared = compare_treatments(data, strengths=strengths, population_size=PEOPLE, seed=SEED)
compared.round(3)

# %%
plot_treatments(compared)

# %% [markdown]
# The same for an intruder who knows which records were treated:

# %%
plot_treatments(compared, strongest=True)

# %% [markdown]
# ## A stronger intruder
#
# Who knows that the target is in the file need not think of the other F - f people.

# %%
inside = treat(data, share=0.2, population_size=PEOPLE, seed=SEED,
               intruder=Intruder(knowledge="sample"))  # fmt: skip
print(inside.summary())
