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
# # IRS migration files, and what published margins give away
#
# The Statistics of Income division of the IRS publishes how many tax returns were filed in one
# county in one year and in another in the next. Flows of few returns are not shown; they are in
# rows of *other flows*, next to totals. This notebook reads such files, checks that published and
# other flows add up to the totals, and asks what the totals still say of the flows that are hidden.
#
# The files here are invented (`python -m bayes_sdc.irs.simulate`). With real ones in a
# folder, named by the environment variable `BAYES_SDC_IRS_FILES`, the last part reads those too.

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bayes_sdc import (
    InputError,
    IrsFlows,
    example_irs_path,
    hidden_flows,
    hidden_margins,
    read_flows,
    read_irs_flows,
    simulate_irs_flows,
)
from bayes_sdc.irs.thresholds import THRESHOLDS

# %% [markdown]
# ## Read
# Every row is in one class, and rows that cannot be read are listed with their lines. Inflows are
# by county of destination, outflows by county of origin. The invented files name no years, so the
# years are given; they decide which threshold applies.

# %%
inflow = read_irs_flows(example_irs_path("inflow"), years="2010-2011")
outflow = read_irs_flows(example_irs_path("outflow"), years="2010-2011")
print(inflow.summary())

# %%
inflow.rows.drop(columns="name").groupby("record", sort=False).head(2)

# %% [markdown]
# ## Thresholds by years
# A dated policy. Since 2013-2014 published and other flows need not add up to a county's totals:
# other flows that are too few are in the row of another county, and some returns are in no flow.

# %%
for rule in THRESHOLDS:
    print(f"{rule}\n  adds up: {rule.adds_up}; source: {rule.source}")

# %% [markdown]
# ## Published + other = total
# For each county and measure. A missing part is what the file hides; the rest of the total tells
# how much it is. Only AGI may be off by rounding.

# %%
inflow.identities

# %%
inflow.gaps  # identities that fail although all their numbers are there

# %% [markdown]
# ## What is hidden
# The sum of the hidden flows of each county, from its row of other flows or from what is left of
# its total. In a state where nearly all flows are shown, this sum is about very few flows.

# %%
margins = pd.concat([hidden_margins(f).assign(direction=f.direction) for f in (inflow, outflow)])
margins.groupby(["direction", "scope"]).agg(
    counties=("county", "size"),
    sum_known=("high", "count"),
    hidden_returns=("high", "sum"),
    shown_returns=("detail", "sum"),
)

# %% [markdown]
# Both files print the same flows, but not always the same ones: what one hides to keep its rows of
# other flows large enough, the other may show.

# %%
shown = [
    set(f.detail[["origin", "destination"]].itertuples(index=False)) for f in (inflow, outflow)
]
print(f"shown in both files: {len(shown[0] & shown[1])}, in one: {len(shown[0] ^ shown[1])}")

# %% [markdown]
# ## Bounds on hidden flows
# Within a state the hidden flows are the empty places of a table whose row sums come from the
# outflow file and whose column sums come from the inflow file. `hidden_flows` bounds each place.
# These bounds are certain: they assume nothing about why a flow is hidden.

# %%
bounds = {
    "inflow file": hidden_flows(inflow),
    "outflow file": hidden_flows(outflow),
    "both files": hidden_flows(inflow, outflow),
    "both, assuming at most 9": hidden_flows(inflow, outflow, largest=inflow.threshold.returns - 1),
}
truth = simulate_irs_flows(seed=1040).set_index(["origin", "destination"])["n1"]


def limits(table: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds as floats, infinite where nothing is known."""
    return table["lower"].to_numpy(float), table["upper"].to_numpy(float, na_value=np.inf)


def given_away(table: pd.DataFrame, threshold: int) -> dict[str, int]:
    """Count what the bounds say of the flows that are not shown."""
    lower, upper = limits(table)
    known = table["determined"].to_numpy()
    return {
        "hidden pairs": len(table),
        "determined": int(known.sum()),
        "determined, zero": int((known & (lower == 0)).sum()),
        "determined, 1 to below threshold": int((known & (lower > 0) & (lower < threshold)).sum()),
        "bounds at most 2 apart": int((upper - lower <= 2).sum()),
        "upper bound below threshold": int((upper < threshold).sum()),
        "no upper bound": int(np.isinf(upper).sum()),
    }


def wrong(table: pd.DataFrame) -> int:
    """Count bounds that miss the true flow; this country is invented, so that it is known."""
    pairs = pd.MultiIndex.from_frame(table[["origin", "destination"]])
    true = truth.reindex(pairs, fill_value=0).to_numpy()
    lower, upper = limits(table)
    return int(((true < lower) | (true > upper)).sum())


limit = inflow.threshold.returns
pd.DataFrame({k: given_away(t, limit) | {"wrong": wrong(t)} for k, t in bounds.items()})

# %% [markdown]
# Two files say more than one. And who takes for granted that hidden flows are below the threshold
# is sometimes wrong: larger flows were hidden too, to protect the small ones. That is as it should
# be, because it makes the sharper bounds unreliable.
#
# The risk is greatest in small states, where few places are empty:

# %%
both = bounds["both files"]
by_state = both.groupby("state").agg(hidden=("lower", "size"), determined=("determined", "sum"))
counties = inflow.rows["county"][~inflow.rows["county"].str.endswith("000")]
by_state["counties"] = counties.drop_duplicates().groupby(counties.str[:2]).size()
by_state["share determined"] = (by_state["determined"] / by_state["hidden"]).round(3)
by_state

# %%
figure, axes = plt.subplots(figsize=(7, 3.5))
edges = np.arange(0, 42, 2)
for (name, table), style in zip(bounds.items(), ["-", "--", "-", ":"], strict=True):
    lower, upper = limits(table)
    shares = [(upper - lower <= edge).mean() for edge in edges]
    axes.plot(edges, shares, style, label=name)
axes.set(
    xlabel="width of the bounds (returns)",
    ylabel="share of hidden flows",
    title="How closely published margins bound the hidden flows",
    ylim=(0, 1),
)
_ = axes.legend()

# %% [markdown]
# ## From here to a release
# The published file has no small counts left to protect. The agency's own table has them: it is
# read with `read_flows` and goes on as in notebook 1. `flow_frame` gives the columns `read_flows`
# takes, with the states as groups.

# %%
columns = {"origin": "origin", "destination": "destination", "count": "count"}
groups = ["origin_state", "destination_state"]
published = read_flows(inflow.flow_frame(), **columns, groups=groups, high=limit - 1)
own = truth.rename("count").reset_index().astype({"origin": str, "destination": str})
own = own[~own["origin"].str.startswith("57") & ~own["destination"].str.startswith("57")]
own = own.assign(origin_state=own["origin"].str[:2], destination_state=own["destination"].str[:2])
confidential = read_flows(own, **columns, groups=groups, high=limit - 1)
print(f"published: {published.n_safe} flows, {published.n_small} of them small")
print(f"confidential: {confidential.n_safe} safe flows and {confidential.n_small} small ones")

# %% [markdown]
# Synthetic counts for the small flows, with totals and other flows published as before, would bring
# the exact margins back in. Totals of a release must be made from the release.

# %% [markdown]
# ## Real files
# All IRS files in the folder that `BAYES_SDC_IRS_FILES` names; nothing happens without it.


# %%
def read_all(path: Path) -> list[IrsFlows]:
    """Read a file, or both sheets of a workbook; say why if neither works."""
    found, said = [], ""
    for direction in (None, "inflow", "outflow"):
        try:
            found.append(read_irs_flows(path, direction=direction))
        except InputError as error:
            said = said or str(error)
        if direction is None and found:
            break
    if not found:
        print(f"not read: {said[:150]}\n")
    return found


folder = os.environ.get("BAYES_SDC_IRS_FILES")
paths = sorted(Path(folder).iterdir()) if folder else []
real = [flows for path in paths for flows in read_all(path)]
for flows in real:
    print(flows.summary(), end="\n\n")
if not folder:
    print("BAYES_SDC_IRS_FILES is not set")

# %%
pd.DataFrame(
    [
        {
            "file": flows.source,
            "direction": flows.direction,
            "years": flows.years,
            "threshold": flows.threshold.returns,
            "lowest shown": flows.detail["returns"].min(),
            "flows": len(flows.detail),
            "below threshold": len(flows.below_threshold),
            "suppressed": int(flows.rows["suppressed"].sum()),
            "repeated": len(flows.duplicates),
            "broken": len(flows.broken),
            "identities that hold": int(flows.identities.loc["returns", "holds"].sum()),
            "gaps": int(flows.identities.loc["returns", "gap"].sum()),
        }
        for flows in real
    ]
)

# %% [markdown]
# What their margins give away, where both directions are there for the same years and states:

# %%
states = [tuple(sorted(flows.rows["county"].str[:2].unique())) for flows in real]
found = {}
for i, one in enumerate(real):
    for j, other in enumerate(real):
        fit = (one.years, states[i]) == (other.years, states[j])
        if fit and (one.direction, other.direction) == ("inflow", "outflow"):
            table = hidden_flows(one, other)
            found[one.source, one.years] = given_away(table, one.threshold.returns)
pd.DataFrame(found)
