"""What must not move the intruder's numbers: the sampler, the order of rows, the names of areas."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import gammaln
from scipy.stats import norm

from bayes_sdc import FlowTable, fit_flows, intruder_risk, read_flows, synthesize, with_covariates
from bayes_sdc.flows.intruder.estimators import integrated
from bayes_sdc.flows.intruder.probabilities.bayes import ReleaseProbabilities
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.table.cells import small_cells

NAMES = {"origin": "o", "destination": "d", "count": "n"}
#: New names, in another order than the old ones.
RENAMED = {"a": "q", "b": "m", "c": "z", "d": "k", "e": "p"}


def flows() -> pd.DataFrame:
    """5 x 5 pairs without own areas, more low counts than high."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame([(i, j) for i in RENAMED for j in RENAMED if i != j], columns=["o", "d"])
    frame["n"] = rng.choice(np.arange(1, 10), len(frame), p=np.arange(9, 0, -1) / 45)
    return frame


def fit(table: FlowTable, **other: object) -> xr.DataTree:
    call = {"family": "poisson", "prior": "weak", "draws": 500, "tune": 300, "chains": 4, "seed": 1}
    return fit_flows(table, **(call | other))


def m_of(table: FlowTable, posterior: xr.DataTree) -> ReleaseProbabilities:
    cells = small_cells(table)
    return integrated.release_probabilities(posterior, cells, np.zeros((1, len(cells.y)), int))


def risk_of(table: FlowTable, posterior: xr.DataTree) -> IntruderRisk:
    """Of a release that is the same whatever the fit: each count of 1 becomes 2, of 2 becomes 3."""
    return intruder_risk(table, posterior, table.frame.assign(n=table.frame["n"] % 9 + 1))


def assert_same_within_error(one: IntruderRisk, other: IntruderRisk) -> None:
    """M entry by entry in its standard errors, and rho in the largest of them."""
    error = np.hypot(one.release_probability_error, other.release_probability_error)
    off = abs(one.release_probability - other.release_probability).max("released")
    # 180 rows, each the largest of nine entries, and errors that are themselves estimates
    assert float((off / error).max()) < 5.0
    assert float((off / error).median()) < 1.6
    assert float(error.max()) < 0.05  # else the comparison says nothing
    # rho divides M at the released count by its sum over candidates, about 1 in a row of nine
    assert float(abs(one.rho - other.rho).max()) < 5.0 * float(error.max())


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return read_flows(flows(), **NAMES)


@pytest.fixture(scope="module")
def posterior(table) -> xr.DataTree:
    return fit(table)


@pytest.mark.slow
def test_risk_from_nuts_is_that_from_gibbs(table, posterior):
    """Else a posterior of one sampler is read wrongly: a mean added twice, a scale inverted."""
    by_nuts = fit(table, sampler="nuts")
    assert_same_within_error(risk_of(table, posterior), risk_of(table, by_nuts))


def test_order_of_rows_leaves_every_number_as_it_is(table, posterior):
    """Else a cell has the risk of another one."""
    shuffled = read_flows(flows().sample(frac=1.0, random_state=3), **NAMES)
    one, other = risk_of(table, posterior), risk_of(shuffled, fit(shuffled))
    for name in ("rho", "release_probability", "prediction", "khat", "ess", "distance"):
        xr.testing.assert_identical(getattr(one, name), getattr(other, name))
    assert one.r_all == other.r_all
    assert one.r_unq == other.r_unq


def renamed_table() -> FlowTable:
    return read_flows(flows().replace({"o": RENAMED, "d": RENAMED}), **NAMES)


def new_label(cell: str) -> str:
    return ">".join(RENAMED[area] for area in cell.split(">"))


def test_names_of_areas_say_nothing(table, posterior):
    """Other names are sorted otherwise, so every effect has another place."""
    renamed = renamed_table()
    again = posterior.copy(deep=True)
    for side, values in (("origin", "beta"), ("destination", "gamma")):
        names, moved = (getattr(small_cells(one), f"{side}_effects") for one in (table, renamed))
        place = {f"all|{RENAMED[name.partition('|')[2]]}": k for k, name in enumerate(names)}
        order = [place[name] for name in moved]
        assert order != sorted(order)
        again["posterior"][values].values[:] = posterior["posterior"][values].values[..., order]
    one, other = m_of(table, posterior), m_of(renamed, again)
    labels = small_cells(renamed).cells
    order = [labels.index(new_label(cell)) for cell in small_cells(table).cells]
    assert order != sorted(order)
    for name in ("m", "prediction", "khat", "ess", "error"):
        # the cells of an effect are multiplied in another order
        np.testing.assert_allclose(
            getattr(other, name)[order], getattr(one, name), rtol=1e-5, atol=1e-9, err_msg=name
        )


def test_names_of_areas_do_not_matter_to_a_fit_of_its_own(table, posterior):
    """Fit and risk anew under other names: only the stream of random numbers is another."""
    renamed = renamed_table()
    one, other = risk_of(table, posterior), risk_of(renamed, fit(renamed))

    def back(values: xr.DataArray) -> xr.DataArray:
        cells = [new_label(cell) for cell in one.rho["cell"].to_numpy()]
        return values.sel(cell=cells).assign_coords(cell=one.rho["cell"])

    names = ("rho", "release_probability", "release_probability_error")
    same_order = other.__class__(**{**vars(other), **{n: back(getattr(other, n)) for n in names}})
    assert_same_within_error(one, same_order)
    assert one.believes_release == other.believes_release


@pytest.mark.parametrize("coefficient", [-1.5, 0.8])
def test_covariate_shifts_the_rate_of_its_cell(coefficient):
    """Two cells that share no area: closed form, a normal log rate at mean + x b."""
    table = read_flows(pd.DataFrame({"o": ["a", "b"], "d": ["x", "y"], "n": [4, 2]}), **NAMES)
    table = with_covariates(table, pd.DataFrame({"z": [1.0, 3.0]}, index=["a>x", "b>y"]))
    posterior = fit(table, draws=8, tune=5, chains=1)
    mean, sd = 0.4, 0.6
    fixed = {
        "alpha": mean, "mu_beta": mean, "mu_gamma": 0.0, "phi_beta": sd**-2, "phi_gamma": sd**-2,
        "beta": mean, "gamma": 0.0, "coefficient": coefficient,
    }  # fmt: skip
    for name, value in fixed.items():
        posterior["posterior"][name].values[:] = value
    found = m_of(table, posterior)
    y = np.arange(9)
    for t, x in enumerate(small_cells(table).x[:, 0]):
        eta = np.linspace(-7.0, 8.0, 20001)
        weight = norm.pdf(eta, mean + x * coefficient, np.hypot(sd, sd))
        log_p = y * eta[:, None] - gammaln(y + 1.0)
        p = np.exp(log_p)
        p /= p.sum(axis=1, keepdims=True)
        z = (weight / weight.sum()) @ p
        exact = p.T @ (p * (weight / weight.sum())[:, None]) / z[:, None]
        np.testing.assert_allclose(found.m[t], exact, atol=2e-5)
        np.testing.assert_allclose(found.prediction[t], z, atol=2e-5)


def test_covariate_of_other_cells_counts_too(table):
    """A covariate known to drive the counts and one that is its negative say the same."""
    rng = np.random.default_rng(3)
    z = pd.DataFrame({"z": rng.normal(size=20)}, index=table.cells.index)
    plain = fit(with_covariates(table, z), draws=100, tune=100, chains=2)
    turned = plain.copy(deep=True)
    turned["posterior"]["coefficient"].values[:] *= -1.0
    one = m_of(with_covariates(table, z), plain)
    other = m_of(with_covariates(table, -z), turned)
    np.testing.assert_allclose(other.m, one.m, rtol=1e-9)
    assert np.abs(m_of(with_covariates(table, z), turned).m - one.m).max() > 1e-3
    release = synthesize(with_covariates(table, z), plain, seed=1)
    risk = intruder_risk(with_covariates(table, z), plain, release)
    np.testing.assert_allclose(risk.rho.sum("count"), 1.0)
