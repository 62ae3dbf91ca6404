"""Results that several tests of the reports share; each takes seconds to make."""

import dataclasses
import datetime

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import FlowLimits, Policy, Protection, protect_flows, read_flows
from bayes_sdc.agency_limits import MicrodataLimits
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.microdata.file.read import read_microdata
from bayes_sdc.microdata.measure.measure import measure_microdata
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.report import plots

NASTY = ['<script>alert("x")</script>', "Größe", "=1+1", "a;b", "Unit #7", "{{ 7 * 7 }}", "a & b"]
SEED = 987654321


def nasty_frame() -> pd.DataFrame:
    """Seven areas with unpleasant names, every pair, in two groups."""
    rng = np.random.default_rng(5)
    pairs = [(o, d) for o in NASTY for d in NASTY]
    counts = np.where([o == d for o, d in pairs], 5000, 1 + rng.poisson(4, len(pairs)))
    counts[3] = 40
    return pd.DataFrame(
        {
            "from <b>": [o for o, _ in pairs],
            "to": [d for _, d in pairs],
            "n": counts,
            "state": ["<i>east</i>" if o < "B" else "west's" for o, _ in pairs],
        }
    )


LOOKED_AT = ("test_browser", "test_plots", "test_render_pictures")


@pytest.fixture(scope="module", autouse=True)
def _pictures_without_layout(request: pytest.FixtureRequest):
    """Room for labels is found by drawing again and again: needless where nobody looks at it."""
    with pytest.MonkeyPatch.context() as patch:
        if request.module.__name__.rpartition(".")[2] not in LOOKED_AT:
            patch.setitem(plots.STYLE, "figure.constrained_layout.use", False)
        yield


@pytest.fixture(scope="session")
def nasty() -> Protection:
    """A small table whose names are unpleasant; nothing of it may reach the public."""
    table = read_flows(
        nasty_frame(), origin="from <b>", destination="to", count="n", groups="state"
    )
    table = dataclasses.replace(
        table, source="/secret/place/moves.csv", notes=("code '00017' seen",)
    )
    return protect_flows(table, sampler="gibbs", draws=30, tune=30, chains=2, releases=3, seed=SEED)


@pytest.fixture(scope="session")
def chosen() -> Protection:
    """An intruder who knows nothing beside the worst case, and a choice of three releases."""
    rng = np.random.default_rng(8)
    areas = [f"area{number}" for number in range(8)]
    pairs = [(o, d) for o in areas for d in areas if o != d]
    frame = pd.DataFrame(
        {
            "o": [o for o, _ in pairs],
            "d": [d for _, d in pairs],
            "n": 1 + rng.poisson(3, len(pairs)),
            "state": ["east" if o < "area4" else "west" for o, _ in pairs],
        }
    )
    table = read_flows(frame, origin="o", destination="d", count="n", groups="state")
    limits = Policy("Board", datetime.date(2026, 1, 15), flows=FlowLimits(r_all=0.9))
    return protect_flows(
        table,
        draws=30,
        tune=30,
        chains=2,
        releases=3,
        knowledge="none",
        candidates=3,
        policy=limits,
        seed=987654321,
        cores=1,
    )


@pytest.fixture(scope="session")
def large(chosen: Protection) -> Protection:
    """The chosen as if of many cells and areas, with a few unique cells."""

    def many(risk: IntruderRisk, value: float) -> IntruderRisk:
        share = Share("cells found", 2731, value, (0.2, 0.3), 0.001, 1 / 9, trusted=True)
        few = dataclasses.replace(share, definition="few cells found", cells=499, value=0.98765)
        rho = risk.rho.isel(cell=np.zeros(2731, dtype=int))
        gains = {
            name: dataclasses.replace(gain, unreliable=0, cells=2731)
            for name, gain in risk.gains.items()
        }
        return dataclasses.replace(risk, r_all=share, r_unq=few, rho=rho, gains=gains)

    found = chosen.measured
    utility = dataclasses.replace(found.utility, totals=found.utility.totals.assign(areas=400))
    return dataclasses.replace(
        chosen,
        table=dataclasses.replace(chosen.table, n_small=2731),
        measured=dataclasses.replace(
            found,
            risk=many(found.risk, 0.25123),
            worst=many(found.worst, 0.31456),
            utility=utility,
        ),
    )


@pytest.fixture(scope="session")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(6)
    return pd.DataFrame(
        {
            "f": rng.choice(NASTY, 900, p=[0.01, 0.3, 0.2, 0.2, 0.1, 0.09, 0.1]),
            "birth place (grouped)": rng.integers(0, 30, 900).astype(str),
            "w": rng.uniform(5, 15, 900).round(3),
            "h": rng.integers(0, 300, 900).astype(str),
            "truth": 999,
        }
    )


@pytest.fixture(scope="session")
def measured(people: pd.DataFrame) -> Measurement:
    """Everything there is to measure on a file of persons with unpleasant values."""
    data = read_microdata(people, keys=["f", "birth place (grouped)"], weight="w", household="h")
    data = dataclasses.replace(data, source="/secret/place/people.csv")
    return measure_microdata(
        data,
        policy=Policy(
            "Survey <b>", datetime.date(2026, 1, 15), microdata=MicrodataLimits(k=3, file_risk=0.9)
        ),
        cells=210,
        population_counts=people["truth"],
        draws=200,
        seed=1,
    )
