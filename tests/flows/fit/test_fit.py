"""Fitting: labels, reproducibility, resuming, and agreement of the two samplers."""

from pathlib import Path

import arviz_stats
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm

from bayes_sdc import (
    FlowTable,
    InputError,
    diagnostics,
    fit_flows,
    intruder_risk,
    posterior_so_far,
    read_flows,
    synthesize,
    with_covariates,
)
from bayes_sdc.flows.fit import batches as parts
from bayes_sdc.flows.fit import chains as chain
from bayes_sdc.flows.fit import fit, nuts
from bayes_sdc.flows.gibbs import engine
from bayes_sdc.flows.gibbs import reference as gibbs
from bayes_sdc.flows.table.cells import small_cells
from bayes_sdc.flows.table.published import published_covariates
from bayes_sdc.flows.table.simulate import simulate_flows
from bayes_sdc.models import migration

COLUMNS = {"origin": "origin", "destination": "destination", "count": "count"}
STATES = ["origin_state", "destination_state"]
SHORT = {"draws": 40, "tune": 60, "chains": 2}


def small_table(seed: int = 3, areas: int = 12, states: int = 2) -> FlowTable:
    """A country of a few areas, four groups."""
    return read_flows(
        simulate_flows(areas=areas, states=states, seed=seed), **COLUMNS, groups=STATES
    )


@pytest.fixture(scope="module")
def table() -> FlowTable:
    return small_table()


@pytest.fixture(scope="module")
def by_nuts(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, **SHORT, sampler="nuts", prior="weak", seed=5, cores=2)


@pytest.fixture(scope="module")
def by_gibbs(table: FlowTable) -> xr.DataTree:
    return fit_flows(table, **SHORT, sampler="gibbs", prior="weak", seed=5, cores=2)


def same_draws(one: xr.DataTree, two: xr.DataTree) -> bool:
    return one["posterior"].to_dataset().equals(two["posterior"].to_dataset())


@pytest.mark.parametrize("which", ["by_nuts", "by_gibbs"])
def test_tree_is_labelled_and_complete(
    which: str, table: FlowTable, request: pytest.FixtureRequest
) -> None:
    """Every group and every area has its draws, under labels that the paper's names lead to."""
    tree = request.getfixturevalue(which)
    cells = table.cells
    posterior = tree["posterior"].to_dataset()
    assert set(posterior["group"].values) == set(cells["group"])
    assert set(posterior["origin_effect"].values) == set(cells["group"] + "|" + cells["origin"])
    assert set(posterior["destination_effect"].values) == set(
        cells["group"] + "|" + cells["destination"]
    )
    for name in ("mu_beta", "mu_gamma", "phi_beta", "phi_gamma", "alpha", "delta"):
        assert posterior[name].dims == ("chain", "draw", "group")
    assert all(np.isfinite(values).all() for values in posterior.data_vars.values())
    np.testing.assert_allclose(posterior["alpha"], posterior["mu_beta"] + posterior["mu_gamma"])
    np.testing.assert_array_equal(tree["observed_data"]["y"], cells["y"])
    labels = tree["constant_data"]["origin_effect"].values[tree["constant_data"]["origin_index"]]
    assert list(labels) == list(cells["group"] + "|" + cells["origin"])
    for name in ("model", "prior", "sampler", "seed", "low", "high", "input_sha256", "versions"):
        assert name in tree.attrs


@pytest.mark.parametrize("which", ["by_nuts", "by_gibbs"])
def test_draws_do_not_depend_on_cores_or_row_order(
    which: str, table: FlowTable, request: pytest.FixtureRequest
) -> None:
    """One seed is one posterior, whatever the machine and however the file is sorted."""
    shuffled = read_flows(table.frame.sample(frac=1.0, random_state=1), **COLUMNS, groups=STATES)
    sampler = which.removeprefix("by_")
    again = fit_flows(shuffled, **SHORT, sampler=sampler, prior="weak", seed=5, cores=1)
    assert same_draws(request.getfixturevalue(which), again)


def test_another_seed_gives_other_draws(table: FlowTable, by_gibbs: xr.DataTree) -> None:
    other = fit_flows(table, **SHORT, sampler="gibbs", prior="weak", seed=6)
    assert not same_draws(by_gibbs, other)


@pytest.mark.parametrize("which", ["by_nuts", "by_gibbs"])
def test_netcdf_loses_nothing(which: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    tree = request.getfixturevalue(which)
    tree.to_netcdf(tmp_path / "posterior.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "posterior.nc", engine="h5netcdf") as loaded:
        for group in ("posterior", "sample_stats", "observed_data", "constant_data"):
            assert loaded[group].to_dataset().equals(tree[group].to_dataset())
        assert dict(loaded.attrs) == dict(tree.attrs)


@pytest.mark.parametrize(
    ("which", "unit"), [("by_nuts", "_nuts_parts"), ("by_gibbs", "_gibbs_parts")]
)
def test_interrupted_fit_resumes_with_the_same_draws(
    which: str,
    unit: str,
    table: FlowTable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    """Finished groups are kept, not fitted again, and the result is that of a run in one go."""
    monkeypatch.setattr(parts, "BATCH", 10)
    sampler = which.removeprefix("by_")
    call = {**SHORT, "sampler": sampler, "prior": "weak", "seed": 5, "cores": 2}
    whole = request.getfixturevalue(which) if which == "by_nuts" else fit_flows(table, **call)
    original = getattr(fit, unit)

    def interrupted(*args: object, **kwargs: object) -> object:
        parts = original(*args, **kwargs)
        yield next(parts)
        yield next(parts)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit, unit, interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit_flows(table, **call, resume=tmp_path)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("part-*.npz")}
    assert len(kept) == 2
    so_far = posterior_so_far(table, tmp_path)
    finished = so_far["posterior"].to_dataset()
    assert 2 <= finished.sizes["group"] < whole["posterior"].sizes["group"]
    assert finished.equals(
        whole["posterior"].to_dataset().sel({dim: finished[dim] for dim in finished.coords})
    )
    assert set(diagnostics.group_diagnostics(so_far).index) == set(finished["group"].values)
    assert same_draws(whole, fit_flows(table, **call, resume=tmp_path))
    assert all((tmp_path / name).stat().st_mtime_ns == then for name, then in kept.items())


@pytest.mark.parametrize("sampler", ["gibbs", "reference"])
def test_pooled_draws_do_not_depend_on_cores_or_row_order(table: FlowTable, sampler: str) -> None:
    """All groups advance together, so their order must be that of the labels."""
    shuffled = read_flows(table.frame.sample(frac=1.0, random_state=1), **COLUMNS, groups=STATES)
    table, shuffled = with_two_covariates(table), with_two_covariates(shuffled)
    call = {**SHORT, "sampler": sampler, "prior": "pooled", "family": "negative-binomial"}
    one = fit_flows(table, **call, seed=5, cores=2)
    assert same_draws(one, fit_flows(shuffled, **call, seed=5, cores=1))
    national = one["posterior"]["national_mean"]
    published = published_covariates(table).cells.columns
    assert len(published) > 0
    assert list(national["parameter"].values) == [
        "alpha", "log_sd_beta", "log_sd_gamma", "log_cv", "coefficient of near",
        "coefficient of old", *(f"coefficient of {name}" for name in published),
    ]  # fmt: skip
    assert one["posterior"]["coefficient"].dims == ("chain", "draw", "group", "covariate")


@pytest.mark.slow
def test_pooled_posterior_of_nuts_has_the_same_shape(table: FlowTable) -> None:
    call = {"draws": 20, "tune": 30, "chains": 2, "prior": "pooled", "family": "poisson"}
    by_nuts, by_gibbs = (
        fit_flows(table, **call, sampler=sampler, seed=1)["posterior"].to_dataset()
        for sampler in ("nuts", "gibbs")
    )
    assert {name: v.shape for name, v in by_nuts.items()} == {
        name: v.shape for name, v in by_gibbs.items()
    }
    for dim in by_gibbs.coords:
        np.testing.assert_array_equal(by_nuts[dim], by_gibbs[dim])


@pytest.mark.parametrize("sampler", ["gibbs", pytest.param("reference", marks=pytest.mark.slow)])
@pytest.mark.parametrize("at", [30, 75, 250], ids=["warm-up", "draws", "third chain"])
def test_interrupted_pooled_fit_goes_on_where_it_was(
    table: FlowTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampler: str, at: int
) -> None:
    """All groups are one piece of work: an interruption must not cost all of it, nor show."""
    call = {**SHORT, "chains": 3, "prior": "pooled", "seed": 5, "cores": 1, "sampler": sampler}
    whole, drawn = fit_flows(table, **call), []
    module = engine if sampler == "gibbs" else gibbs
    original = module.MarkovChain.draw

    def interrupted(chain: engine.MarkovChain | gibbs.MarkovChain) -> None:
        drawn.append(1)
        if len(drawn) == at:
            raise KeyboardInterrupt
        original(chain)

    monkeypatch.setattr(module.MarkovChain, "draw", interrupted)
    monkeypatch.setattr(parts, "SAVE_EVERY", 0.0)  # every draw is kept at once
    with pytest.raises(KeyboardInterrupt):
        fit_flows(table, **call, resume=tmp_path)
    if at == 30:
        with pytest.raises(InputError, match="holds no draw yet"):
            posterior_so_far(table, tmp_path)
    else:
        so_far = posterior_so_far(table, tmp_path)
        chains, draws = {75: (1, 14), 250: (2, 40)}[at]
        assert so_far.attrs["interrupted"].endswith(f"{chains} of 3 chains, {draws} of 40 draws")
        start = whole["posterior"].to_dataset().isel(chain=slice(chains), draw=slice(draws))
        assert so_far["posterior"].to_dataset().equals(start)
        with pytest.raises(InputError, match="an interrupted fit"):
            synthesize(table, so_far, seed=1)
        with pytest.raises(InputError, match="another table"):
            posterior_so_far(small_table(seed=4), tmp_path)
    assert same_draws(whole, fit_flows(table, **call, resume=tmp_path))
    # not a draw is made twice: all calls but the one that was interrupted made one
    assert len(drawn) - 1 == 3 * (SHORT["draws"] + SHORT["tune"])
    assert [path.name for path in tmp_path.glob("*.npz")] == ["part-000000.npz"]


def test_tiny_group_borrows_from_the_nation() -> None:
    """The point of pooling: without it a group of one cell has the rate of its prior."""
    rng = np.random.default_rng(2)
    rows = [
        (f"o{g}{i}", f"d{g}{j}", g, 7 + rng.integers(0, 3))
        for g in range(12)
        for i in range(4)
        for j in range(4)
    ]
    rows.append(("o", "d", 99, 1))
    table = read_flows(
        pd.DataFrame(rows, columns=["origin", "destination", "g", "count"]), **COLUMNS, groups="g"
    )
    alpha = {
        prior: fit_flows(
            table,
            family="poisson",
            prior=prior,
            sampler="gibbs",
            draws=300,
            tune=150,
            chains=2,
            seed=3,
        )["posterior"]["alpha"].mean(["chain", "draw"])
        for prior in ("pooled", "weak")
    }
    others = float(alpha["pooled"].drop_sel(group="99").mean())
    lone = {prior: float(values.sel(group="99")) for prior, values in alpha.items()}
    assert lone["weak"] < lone["pooled"] < others


def test_resuming_another_call_is_refused(table: FlowTable, tmp_path: Path) -> None:
    fit_flows(table, **SHORT, sampler="gibbs", seed=5, resume=tmp_path)
    with pytest.raises(InputError, match=r"differs in seed"):
        fit_flows(table, **SHORT, sampler="gibbs", seed=6, resume=tmp_path)
    # the same bytes read in another way are another job: labels would meet the wrong draws
    for other in ({"groups": None}, {"origin": "destination", "destination": "origin"}):
        again = read_flows(table.frame, **{**COLUMNS, "groups": STATES, **other})
        with pytest.raises(InputError, match=r"differs in .*cells_sha256"):
            fit_flows(again, **SHORT, sampler="gibbs", seed=5, resume=tmp_path)


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ({"sampler": "hmc"}, "sampler 'hmc' is unknown"),
        ({"prior": "flat"}, "prior 'flat' is unknown"),
        ({"draws": 0}, "draws must be at least 1"),
        ({"chains": 0}, "chains must be at least 1"),
        ({"cores": 0}, "cores must be a whole number, 1 or more; it is 0"),
        ({"cores": -1}, "it is -1"),
    ],
)
def test_bad_arguments_are_named(table: FlowTable, argument: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        fit_flows(table, **{**SHORT, **argument}, seed=1)


@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
def test_effects_that_run_away_stay_numbers(family: str) -> None:
    """Under the paper's prior those of a group of one cell go beyond single precision."""
    frame = pd.DataFrame(
        {"origin": list("ab"), "destination": list("xy"), "count": [1, 9], "group": list("12")}
    )
    table = read_flows(frame, **COLUMNS, groups="group")
    posterior = fit_flows(table, family=family, prior="paper", draws=300, tune=100, seed=1)
    effects = [posterior["posterior"][name].to_numpy() for name in ("beta", "gamma")]
    assert max(np.abs(effect).max() for effect in effects) == np.float32(chain.LARGEST)
    assert np.isfinite(effects[0] + effects[1]).all()
    rho = intruder_risk(table, posterior, synthesize(table, posterior, seed=2)).rho.to_numpy()
    assert ((rho >= 0.0) & (rho <= 1.0)).all()
    assert set(diagnostics.group_diagnostics(posterior)["verdict"]) == {"fail"}


def test_table_without_small_cells_is_refused() -> None:
    frame = pd.DataFrame({"origin": ["a"], "destination": ["b"], "count": [50]})
    with pytest.raises(InputError, match="no small cells"):
        fit_flows(read_flows(frame, **COLUMNS), seed=1)


def test_every_group_is_in_one_bucket_that_is_large_enough() -> None:
    cells = small_cells(small_table(areas=40, states=5))
    buckets = nuts.shape_buckets(cells)
    n_cells = np.bincount(cells.group)
    assert sorted(np.concatenate([b.groups for b in buckets])) == list(range(len(cells.groups)))
    for bucket in buckets:
        assert n_cells[bucket.groups].max() == bucket.cells
        assert np.bincount(cells.group_of_origin)[bucket.groups].max() == bucket.origins
        assert np.bincount(cells.group_of_destination)[bucket.groups].max() == bucket.destinations


def test_buckets_cost_no_more_than_any_other_cuts() -> None:
    """The dynamic programme beats one bucket for all, one for each size, and cuts at random."""
    cells = small_cells(small_table(areas=60, states=6))
    n_cells = np.sort(np.bincount(cells.group))
    sizes = np.unique(n_cells)

    def cost(cuts: np.ndarray) -> float:
        upper = np.append(cuts, sizes[-1])
        return nuts.COMPILATION * len(upper) + upper[np.searchsorted(upper, n_cells)].sum()

    best = cost(np.array([b.cells for b in nuts.shape_buckets(cells)][:-1], dtype=int))
    rng = np.random.default_rng(1)
    others = [cost(np.array([], dtype=int)), cost(sizes[:-1])] + [
        cost(np.sort(rng.choice(sizes[:-1], rng.integers(1, 5), replace=False))) for _ in range(200)
    ]
    assert best <= min(others)


def test_padding_adds_nothing_but_standard_normals() -> None:
    """The padded model's density is the plain one times that of the idle effects, to rounding."""
    rng = np.random.default_rng(4)
    y = np.array([0, 3, 8, 1])
    origin, destination = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 0])
    model = {"upper": 8, "family": "poisson", "prior": "weak"}
    plain = migration.build(
        y, origin, destination, origins=["a", "b", "c"], destinations=["x", "y"], **model
    )
    idle = np.zeros(3, np.int64)
    padded = migration.build(
        np.concatenate([y, idle]),
        np.concatenate([origin, idle]),
        np.concatenate([destination, idle]),
        **model,
        origins=[str(i) for i in range(5)],
        destinations=[str(j) for j in range(4)],
        offset=np.concatenate([np.zeros(4), np.full(3, nuts.EMPTY)]),
    )
    # the pads sit on the first areas, whose own centering must stay that of their real cells
    padded["origin_centering"].set_value(migration.centering(np.array([2, 1, 1, 0, 0])))
    padded["destination_centering"].set_value(migration.centering(np.array([2, 2, 0, 0])))
    density, density_padded = plain.compile_logp(), padded.compile_logp()
    for _ in range(5):
        point = {
            "alpha": rng.normal(size=1),
            "delta": rng.normal(size=1),
            "sd_beta_log__": rng.normal(size=1),
            "sd_gamma_log__": rng.normal(size=1),
            "beta_raw": rng.normal(size=3),
            "gamma_raw": rng.normal(size=2),
        }
        extra_b, extra_g = rng.normal(size=2), rng.normal(size=2)
        longer = {
            **point,
            "beta_raw": np.append(point["beta_raw"], extra_b),
            "gamma_raw": np.append(point["gamma_raw"], extra_g),
        }
        idle_density = norm.logpdf(extra_b).sum() + norm.logpdf(extra_g).sum()
        assert density_padded(longer) == pytest.approx(density(point) + idle_density, abs=1e-10)


def identified(draws: xr.Dataset, data: xr.Dataset) -> xr.Dataset:
    """Level, scales, deviations and coefficients: all that the data can tell."""
    means = draws[["mu_beta", "mu_gamma"]].drop_vars("group")
    names = [
        "alpha",
        "phi_beta",
        "phi_gamma",
        "r",
        "national_mean",
        "national_sd",
        "national_slope",
    ]
    names += ["coefficient"]
    return draws[[name for name in names if name in draws]].assign(
        {
            "b": draws["beta"] - means["mu_beta"].isel(group=data["group_of_origin"]),
            "g": draws["gamma"] - means["mu_gamma"].isel(group=data["group_of_destination"]),
        }
    )


def disagreement(one: xr.DataTree, two: xr.DataTree) -> tuple[float, int]:
    """Largest |z| between two posteriors over means and quantiles of every parameter."""
    largest, comparisons = 0.0, 0
    # what the data inform; the free direction would drown a difference, and is compared by itself
    both = [
        identified(tree["posterior"].to_dataset(), tree["constant_data"].to_dataset())
        for tree in (one, two)
    ]
    both = [
        draws.assign(delta=tree["posterior"].to_dataset()["delta"])
        for draws, tree in zip(both, (one, two), strict=True)
    ]
    assert set(both[0]) == set(both[1])
    for name in both[0]:
        pair = [draws[[name]] for draws in both]
        if name.startswith("phi") or name == "r":
            pair = [np.log(draws) for draws in pair]  # a precision has no mean to compare
        summaries = [
            (lambda d: d.mean(["chain", "draw"]), {"method": "mean"}),
            *[
                (
                    lambda d, q=q: d.quantile(q, ["chain", "draw"]).drop_vars("quantile"),
                    {"method": "quantile", "prob": q},
                )
                for q in (0.1, 0.5, 0.9)
            ],
        ]
        for value, error in summaries:
            difference = (value(pair[0]) - value(pair[1]))[name].to_numpy()
            variance = sum(arviz_stats.mcse(d, **error)[name].to_numpy() ** 2 for d in pair)
            largest = max(largest, float(np.max(np.abs(difference) / np.sqrt(variance))))
            comparisons += difference.size
    return largest, comparisons


def with_two_covariates(table: FlowTable) -> FlowTable:
    """Covariates that the counts know nothing of: their coefficients follow the prior's pull."""
    rng = np.random.default_rng(17)
    values = rng.normal(size=(table.n_small, 2))
    return with_covariates(table, pd.DataFrame(values, table.cells.index, ["near", "old"]))


def check_agreement(
    table: FlowTable, seed: int, samplers: tuple[str, str], draws: int = 2000, **model: str
) -> None:
    long = {"draws": draws, "tune": 1000, "chains": 4, **model}
    one = fit_flows(table, **long, sampler=samplers[0], seed=seed)
    two = fit_flows(table, **long, sampler=samplers[1], seed=seed + 100)
    largest, comparisons = disagreement(one, two)
    # Bonferroni: one false alarm in a thousand runs of this check
    assert largest < norm.isf(0.0005 / comparisons)


@pytest.mark.slow
def test_nuts_and_gibbs_agree() -> None:
    """NUTS and Metropolis within Gibbs draw from one posterior, whatever the coordinates."""
    table = small_table(seed=11, areas=14)
    check_agreement(table, 1, ("nuts", "gibbs"), family="poisson", prior="weak")


@pytest.mark.slow
def test_gibbs_and_reference_agree_with_pooling_and_covariates() -> None:
    """Two samplers that share no move but that of the national distribution given the groups."""
    table = with_two_covariates(small_table(seed=11, areas=14))
    model = {"family": "negative-binomial", "prior": "pooled"}
    check_agreement(table, 2, ("gibbs", "reference"), draws=3000, **model)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("covariates", [False, True])
@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("prior", ["weak", "pooled"])
def test_nuts_agrees_with_gibbs_on_every_model(
    family: str, prior: str, covariates: bool, seed: int
) -> None:
    table = small_table(seed=16 + seed, areas=16)
    if covariates:
        table = with_two_covariates(table)
    check_agreement(table, seed, ("nuts", "gibbs"), family=family, prior=prior)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "negative-binomial"])
@pytest.mark.parametrize("prior", ["weak", "pooled", "paper"])
def test_reference_agrees_with_gibbs_on_every_model(family: str, prior: str) -> None:
    # the paper's prior has a posterior only where there are many areas
    table = small_table(seed=40, areas=40 if prior == "paper" else 16)
    check_agreement(table, 5, ("gibbs", "reference"), draws=6000, family=family, prior=prior)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nuts_agrees_with_gibbs_under_the_paper_s_prior(seed: int) -> None:
    table = small_table(seed=40, areas=40)
    check_agreement(table, seed, ("nuts", "gibbs"), family="poisson", prior="paper")
