"""The truncated Poisson distribution and the migration model, against closed forms."""

import functools
import json
from pathlib import Path

import mpmath
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import xarray as xr
from scipy import stats

from bayes_sdc.flows.model import truncated as counts
from bayes_sdc.models import migration, truncated

DATA = Path(__file__).resolve().parents[1] / "data"
UPPER = np.array([1, 8, 18, 99])  # the paper's is 8
# rates 1e-12 to 1e12, dense where the two ladders meet
LOG_RATES = np.sort(
    np.concatenate([np.linspace(-12, 12, 25) * np.log(10), [-1e-9, -0.0, 1e-9, 0.7, 2.1, 4.5]])
)
NAMES = ("mu_beta", "mu_gamma", "phi_beta", "phi_gamma", "beta", "gamma")


def table_of(log_rate: float, upper: int) -> np.ndarray:
    """Probabilities by the definition, in logarithms; good to 1e-12 for moderate rates."""
    y = np.arange(upper + 1)
    logits = y * log_rate - np.array([float(mpmath.log(mpmath.factorial(int(v)))) for v in y])
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


# ---- probabilities ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference() -> tuple[np.ndarray, np.ndarray]:
    """Log rates and probabilities computed elsewhere with many digits."""
    entries = json.loads((DATA / "truncated_poisson.json").read_text(encoding="utf-8"))
    assert {entry["K"] for entry in entries} == {8}
    rates = np.array([float(entry["lam"]) for entry in entries])
    return np.log(rates), np.array([entry["pmf"] for entry in entries])


def poisson(n: int, upper: int) -> tuple[np.ndarray, counts.Ladder]:
    """Cells of one Poisson group: their group and its ladder."""
    return np.zeros(n, np.int64), counts.ladder(np.zeros(1), upper)


def test_log_probability_equals_the_reference_table(reference):
    # else the likelihood is not the paper's
    log_rate, pmf = reference
    dist = migration.TruncatedPoisson.dist(log_rate=log_rate[:, None], upper=8, shape=pmf.shape)
    value = np.broadcast_to(np.arange(9), pmf.shape)
    np.testing.assert_allclose(np.exp(pm.logp(dist, value).eval()), pmf, rtol=1e-10)


def test_compiled_probabilities_equal_the_reference_table(reference):
    # else the synthesis draws from another distribution than the one that was fitted
    log_rate, pmf = reference
    np.testing.assert_allclose(
        counts.probabilities(log_rate, *poisson(len(log_rate), 8)), pmf, rtol=1e-10
    )


@functools.cache
def exact(log_rate: float, upper: int) -> tuple[list[mpmath.mpf], mpmath.mpf]:
    """Log-probabilities of 0..upper and the mean, with 50 digits."""
    with mpmath.workdps(50):
        log_rate = mpmath.mpf(float(log_rate))
        terms = [mpmath.exp(r * log_rate) / mpmath.factorial(r) for r in range(upper + 1)]
        total = mpmath.fsum(terms)
        mean = mpmath.fsum(r * term for r, term in enumerate(terms)) / total
        return [mpmath.log(term / total) for term in terms], mean


@pytest.fixture(scope="module")
def value_and_gradient():
    """Compiled log-probability and gradient by upper bound; the first three bounds in one array."""
    value, log_rate = pt.lmatrix("value"), pt.dmatrix("log_rate")
    default = pytensor.compile.mode.get_default_mode()
    functions = {}
    for upper, mode in (
        (UPPER[:3, None], default),
        # all rewrites of 99 unrolled terms take half a minute to compile
        (UPPER[3], default.excluding("canonicalize", "specialize")),
    ):
        logp = truncated.truncated_logp(value, log_rate, upper)
        outputs = [logp, pytensor.grad(logp.sum(), log_rate)]
        functions[pytensor.function([value, log_rate], outputs, mode=mode)] = upper

    def evaluate(value: np.ndarray, log_rate: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        parts = [
            compiled(value[np.isin(UPPER, upper)], log_rate[np.isin(UPPER, upper)])
            for compiled, upper in functions.items()
        ]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    return evaluate


# the value stands at the lower end, inside, and at the upper end of the support
@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("quantity", ["log-probability", "gradient"])
def test_model_is_exact_to_the_ends(value_and_gradient, quantity, share):
    # else NUTS drifts or stalls where lambda is tiny or huge, which small groups reach; the upper
    # bound is an array here, so a bound taken from the wrong cell fails as well
    value = np.round(share * UPPER).astype(np.int64)
    logp, gradient = value_and_gradient(
        np.repeat(value[:, None], len(LOG_RATES), axis=1), np.tile(LOG_RATES, (len(UPPER), 1))
    )
    ours = logp if quantity == "log-probability" else gradient
    theirs = np.empty_like(ours)
    for row, (y, upper) in enumerate(zip(value.tolist(), UPPER.tolist(), strict=True)):
        for column, log_rate in enumerate(LOG_RATES):
            log_pmf, mean = exact(log_rate, upper)
            with mpmath.workdps(50):
                theirs[row, column] = float(
                    log_pmf[y] if quantity == "log-probability" else y - mean
                )
    for row, upper in enumerate(UPPER.tolist()):
        np.testing.assert_allclose(ours[row], theirs[row], rtol=1e-10, err_msg=f"upper {upper}")


def test_nothing_outside_the_support(value_and_gradient):
    # else a count beyond the range would be given a probability
    log_rate = np.zeros((len(UPPER), 2))
    outside = np.column_stack([np.full(len(UPPER), -1), UPPER + 1])
    assert (value_and_gradient(outside, log_rate)[0] == -np.inf).all()
    inside = np.column_stack([np.zeros_like(UPPER), UPPER])
    assert np.isfinite(value_and_gradient(inside, log_rate)[0]).all()


def test_compiled_normalizer_is_exact_to_the_ends():
    # else sampler and intruder weigh cells with another normaliser than the model's
    for upper in UPPER.tolist():
        zero = np.zeros(len(LOG_RATES))
        ours = -counts.log_probabilities(zero, LOG_RATES, *poisson(len(zero), upper))
        for log_rate, log_z in zip(LOG_RATES, ours, strict=True):
            assert log_z == pytest.approx(float(-exact(log_rate, upper)[0][0]), rel=1e-12, abs=0)


def test_mean_equals_the_sum_over_the_support():
    # else starting points and dispersion are computed about another centre
    upper = np.array([1, 8, 18])
    log_rate = np.tile([-5.0, 0.0, 1.5, 9.0], (3, 1))
    ours = truncated.truncated_mean(log_rate, upper[:, None]).eval(mode="FAST_COMPILE")
    brute = [[np.arange(k + 1) @ table_of(x, k) for x in log_rate[0]] for k in upper.tolist()]
    np.testing.assert_allclose(ours, brute, rtol=1e-12)


# ---- draws -----------------------------------------------------------------------------------


def test_draws_follow_the_table_and_stay_in_the_support():
    # else prior and posterior predictive checks judge another model
    log_rate, upper = np.log([0.3, 5.0, 40.0]), np.array([3, 8, 8])
    dist = migration.TruncatedPoisson.dist(log_rate=log_rate, upper=upper)
    y = pm.draw(dist, draws=20_000, random_seed=20)
    assert y.dtype == np.int64
    for cell, (x, bound) in enumerate(zip(log_rate, upper.tolist(), strict=True)):
        observed = np.bincount(y[:, cell], minlength=bound + 1)
        assert len(observed) == bound + 1
        expected = 20_000 * table_of(x, bound)
        # cells too thin for chi-square go together
        thin = expected < 5
        observed = np.append(observed[~thin], observed[thin].sum() if thin.any() else [])
        expected = np.append(expected[~thin], expected[thin].sum() if thin.any() else [])
        assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_compiled_draws_invert_the_table():
    # else the released counts are not draws from the fitted distribution
    uniform = np.array([0.0, 0.2, 0.5, 0.9, 1.0 - 1e-16, 0.999])
    for log_rate in (-3.0, 0.4, 2.0, 25.0):
        # what no number of double precision can meet is never drawn, not even by one of exactly 0:
        # else a count that a rule excludes could be
        probabilities = table_of(log_rate, 8)
        cumulated = np.cumsum(np.where(probabilities < 1e-20, 0.0, probabilities))
        brute = np.minimum(np.searchsorted(cumulated, uniform, side="right"), 8)
        log_rates = np.full(len(uniform), log_rate)
        ours = counts.draw(log_rates, *poisson(len(uniform), 8), uniform)
        np.testing.assert_array_equal(ours, brute)


@pytest.mark.parametrize("upper", [0, -1, 151, 8.0, [8, 0], np.array([3, 200])])
def test_bound_that_cannot_be_is_refused(upper):
    # else K! overflows, or a bound of 8.5 is cut in silence
    with pytest.raises(ValueError, match="upper must be whole numbers from 1 to 150"):
        migration.TruncatedPoisson.dist(log_rate=0.0, upper=upper)


# ---- model -----------------------------------------------------------------------------------

Y = np.array([0, 2, 3, 1, 0])
ORIGIN, DESTINATION = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 2])


def model_with(prior, **changed) -> pm.Model:
    return migration.build(
        Y,
        ORIGIN,
        DESTINATION,
        upper=3,
        origins=["o1", "o2"],
        destinations=["d1", "d2", "d3"],
        prior=prior,
        family="poisson",
        **changed,
    )


def log_density_of_the_paper(x: dict[str, np.ndarray], prior: str) -> float:
    """Joint log-density in the paper's parameters, and y; in sd instead of phi for "weak"."""
    total = 0.0
    for side in ("beta", "gamma"):
        mean, phi = x[f"mu_{side}"], x[f"phi_{side}"]
        if prior == "paper":
            total += stats.norm(0, 5).logpdf(mean) + stats.gamma(0.01, scale=100).logpdf(phi)
        else:
            total += stats.norm(0, 1.5).logpdf(mean) + stats.halfnorm(scale=1).logpdf(phi**-0.5)
        total += stats.norm(mean, phi**-0.5).logpdf(x[side]).sum()
    for y, i, j in zip(Y, ORIGIN, DESTINATION, strict=True):
        total += np.log(table_of(x["beta"][i] + x["gamma"][j], 3)[y])
    return float(np.sum(total))


@pytest.mark.parametrize("prior", ["paper", "weak"])
def test_identified_form_has_the_density_of_the_paper(prior):
    # else the change of coordinates changed the prior, and the posterior is not the paper's
    model = model_with(prior)
    logp = model.compile_logp(mode="FAST_COMPILE")
    scale = "log_phi_{}" if prior == "paper" else "sd_{}_log__"
    assert {v.name for v in model.value_vars} == {
        "alpha", "delta", "beta_raw", "gamma_raw", *(scale.format(s) for s in ("beta", "gamma")),
    }  # fmt: skip
    to_paper = pytensor.function(
        model.value_vars,
        model.replace_rvs_by_values([model[name] for name in NAMES]),
        on_unused_input="ignore",
        mode="FAST_COMPILE",
    )
    weight = {  # of the centred form: cells / (cells + 30)
        "beta": np.bincount(ORIGIN) / (np.bincount(ORIGIN) + 30),
        "gamma": np.bincount(DESTINATION) / (np.bincount(DESTINATION) + 30),
    }
    rng = np.random.default_rng(8)
    for _ in range(5):
        point = {
            v.name: rng.normal(0, 0.8, 2 if "beta_raw" in v.name else 3 if "raw" in v.name else 1)
            for v in model.value_vars
        }
        x = dict(zip(NAMES, to_paper(*[point[v.name] for v in model.value_vars]), strict=True))
        assert x["mu_beta"] + x["mu_gamma"] == pytest.approx(point["alpha"], rel=1e-12)
        log_jacobian = np.log(0.5)  # of (mu_beta, mu_gamma) by (alpha, delta)
        for side in ("beta", "gamma"):
            log_sd = -0.5 * np.log(x[f"phi_{side}"])
            log_jacobian += np.sum(1 - weight[side]) * log_sd  # of the effects by the raw ones
            log_jacobian += np.log(x[f"phi_{side}"]) if prior == "paper" else log_sd
        expected = log_density_of_the_paper(x, prior) + log_jacobian
        assert float(logp(point)) == pytest.approx(np.sum(expected), rel=1e-10)


def test_offset_is_added_to_the_log_rate():
    # else a known exposure is ignored, or enters with another sign
    offset = np.array([0.5, -1.0, 0.0, 2.0, 0.3])
    with_offset, without = model_with("weak", offset=offset), model_with("weak")
    point = with_offset.initial_point()
    shift = [
        float(m.compile_logp(vars=[m["y"]], mode="FAST_COMPILE")(point))
        for m in (with_offset, without)
    ]
    rates = [offset, np.zeros(5)]  # all effects are 0 at the initial point
    expected = [sum(np.log(table_of(x, 3)[y]) for x, y in zip(r, Y, strict=True)) for r in rates]
    np.testing.assert_allclose(shift, expected, rtol=1e-10)


def test_unknown_prior_is_refused():
    # else a misspelt prior falls back to another one in silence
    with pytest.raises(ValueError, match="'papper' is unknown"):
        model_with("papper")


@pytest.fixture(scope="module", params=["paper", "weak"])
def model(request) -> pm.Model:
    return model_with(request.param)


@pytest.fixture(scope="module")
def sampled() -> tuple[pm.Model, xr.DataTree]:
    """The only compilation for NUTS of this file."""
    model = model_with("weak")
    with model:
        trace = pm.sample(
            draws=20,
            tune=50,
            chains=2,
            cores=1,
            nuts_sampler="nutpie",
            random_seed=3,
            progressbar=False,
            compute_convergence_checks=False,
        )
    return model, trace


def test_prior_predictive_draws_are_in_the_support(model):
    # else forward draws fail or leave the range under one of the priors
    with model:
        trace = pm.sample_prior_predictive(draws=50, random_seed=1)
    y = trace["prior_predictive"]["y"]
    assert y.sizes == {"chain": 1, "draw": 50, "cell": 5}
    # the paper's prior leaves little between the ends
    assert {0, 3} <= set(np.unique(y)) <= {0, 1, 2, 3}
    prior = trace["prior"]
    np.testing.assert_allclose(prior["mu_beta"] + prior["mu_gamma"], prior["alpha"], atol=1e-12)


@pytest.mark.slow  # compiles for NUTS
def test_posterior_has_the_names_of_the_paper_and_is_finite(sampled):
    _, trace = sampled
    posterior = trace["posterior"]
    for name in NAMES:
        assert np.isfinite(posterior[name]).all(), name
    assert posterior["beta"].dims == ("chain", "draw", "origin")
    assert posterior["gamma"].dims == ("chain", "draw", "destination")


@pytest.mark.slow  # compiles for NUTS
def test_posterior_predictive_draws_are_in_the_support(sampled):
    # else the posterior predictive check cannot be made with PyMC's own tools
    model, trace = sampled
    with model:
        predictive = pm.sample_posterior_predictive(trace, random_seed=2, progressbar=False)
    y = predictive["posterior_predictive"]["y"]
    assert y.sizes == {"chain": 2, "draw": 20, "cell": 5}
    assert set(np.unique(y)) <= {0, 1, 2, 3}
    assert len(np.unique(y)) > 1


def test_log_likelihood_is_the_one_of_the_effects():
    # else leave-one-out comparison works on another likelihood; draws of the prior do for draws
    with model_with("weak"):
        prior = pm.sample_prior_predictive(draws=20, random_seed=3)["prior"].to_dataset()
        trace = xr.DataTree.from_dict({"posterior": prior})
        likelihood = pm.compute_log_likelihood(
            trace, extend_inferencedata=False, progressbar=False
        )["y"]
    posterior = trace["posterior"]
    for chain, draw in ((0, 0), (0, 19)):
        beta = posterior["beta"].to_numpy()[chain, draw]
        gamma = posterior["gamma"].to_numpy()[chain, draw]
        expected = [
            np.log(table_of(beta[i] + gamma[j], 3)[y])
            for y, i, j in zip(Y, ORIGIN, DESTINATION, strict=True)
        ]
        np.testing.assert_allclose(likelihood.to_numpy()[chain, draw], expected, rtol=1e-9)


def test_graph_names_the_variables(model):
    pytest.importorskip("graphviz")
    source = pm.model_to_graphviz(model).source
    for name in ("alpha", "delta", "beta_raw", "gamma_raw", "TruncatedPoisson", "origin"):
        assert name in source
