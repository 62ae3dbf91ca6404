"""Do log-normal cell effects predict better than gamma ones? The study behind leaving them out.

    python tests/validation/lognormal_study.py DATA

DATA is a folder with ``flows/`` (public files, not part of the repository). In one large group of
each of three tables a random fifth of the small cells is held out. The others are fitted by NUTS
with the weak prior: truncated Poisson, truncated negative binomial (gamma cell effects), and
truncated Poisson with log-normal cell effects, integrated over 15 Gauss-Hermite nodes, so that a
cell's own effect does not follow its own count. Written to ``lognormal_study.md``: mean log
predictive probability of the held-out cells, and its difference to the negative binomial with the
standard error over cells.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from scipy.special import gammaln, logsumexp

from bayes_sdc.models.truncated import truncated_logp

SEED = 20261128
GROUPS = {
    "gb_lad_migration_2011": ("W92000004", "E12000008"),
    "norway_municipality_commuting_2017": ("15", "15"),
    "us_county_commuting_acs2009_2013": ("17", "17"),
}
UPPER = 8
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())
FAMILIES = ("poisson", "negative binomial", "log-normal")


def log_mixture(y: np.ndarray, log_rate: Any, spread: Any) -> Any:
    """Log-probability with log-normal cell effects, as a tensor; y of shape (cell,)."""
    rate = log_rate[:, None] + spread * NODES
    r = np.arange(UPPER + 1)
    terms = rate[..., None] * r - gammaln(r + 1.0)
    log_p = rate * y[:, None] - gammaln(y + 1.0)[:, None] - pt.logsumexp(terms, axis=-1)
    return pt.logsumexp(log_p + LOG_WEIGHTS, axis=-1)


def fit(y: np.ndarray, i: np.ndarray, j: np.ndarray, family: str) -> Any:
    with pm.Model():
        alpha = pm.Normal("alpha", 0.0, 2.1)
        sd = [pm.HalfNormal(f"sd_{side}", 1.0) for side in "bg"]
        b = sd[0] * pm.Normal("b_raw", shape=int(i.max()) + 1)
        g = sd[1] * pm.Normal("g_raw", shape=int(j.max()) + 1)
        spread = pm.HalfNormal("spread", 1.0)  # of the cell effects; idle for Poisson
        log_rate = pm.Deterministic("log_rate", alpha + b[i] + g[j])
        seen = y >= 0
        if family == "log-normal":
            log_p = log_mixture(y[seen], log_rate[seen], spread)
        else:
            kappa = spread**2 if family == "negative binomial" else 0.0
            log_p = truncated_logp(y[seen], log_rate[seen], UPPER, kappa)
        pm.Potential("y", log_p.sum())
        return pm.sample(
            500, tune=500, chains=4, cores=2, nuts_sampler="nutpie", random_seed=SEED,
            progressbar=False,
        )["posterior"].to_dataset()  # fmt: skip


def log_scores(posterior: Any, held: np.ndarray, y: np.ndarray, family: str) -> np.ndarray:
    """Log predictive probability of each held-out cell."""
    flat = posterior.stack(sample=("chain", "draw")).isel(sample=slice(None, None, 4))
    log_rate = flat["log_rate"].to_numpy()[held].T  # (sample, cell)
    spread = flat["spread"].to_numpy()[:, None]
    r = np.arange(UPPER + 1)
    if family == "log-normal":
        rate = log_rate[..., None] + spread[..., None] * NODES
        log_z = logsumexp(rate[..., None] * r - gammaln(r + 1.0), axis=-1)
        log_p = rate * y[:, None] - gammaln(y + 1.0)[:, None] - log_z
        log_p = logsumexp(log_p + LOG_WEIGHTS, axis=-1)
    else:
        kappa = spread**2 if family == "negative binomial" else np.zeros_like(spread)
        product = np.concatenate(
            [np.zeros((len(spread), 1)), np.cumsum(np.log((1 + kappa * r[:-1]) / r[1:]), axis=1)],
            axis=1,
        )
        step = log_rate - np.log1p(kappa * np.exp(log_rate))
        terms = step[..., None] * r + product[:, None, :]
        log_p = np.take_along_axis(terms, np.broadcast_to(y[:, None], (*step.shape, 1)), -1)[..., 0]
        log_p = log_p - logsumexp(terms, axis=-1)
    return logsumexp(log_p, axis=0) - np.log(len(log_p))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    lines = [
        "# Log-normal or gamma cell effects",
        "",
        f"Made by `python tests/validation/lognormal_study.py DATA`, seed {SEED}.",
        "",
        "| table | group | held out | family | log score | less the negative binomial's (s.e.) |",
        "|---|---|---|---|---|---|",
    ]
    for name, (origin, destination) in GROUPS.items():
        frame = pd.read_csv(data / "flows" / f"{name}.csv.gz", dtype=str, keep_default_na=False)
        frame["count"] = frame["count"].astype(int)
        frame = frame[
            (frame["origin_state"] == origin)
            & (frame["destination_state"] == destination)
            & frame["count"].between(1, UPPER + 1)
        ]
        y = frame["count"].to_numpy() - 1
        i, j = (pd.factorize(frame[side], sort=True)[0] for side in ("origin", "destination"))
        held = np.random.default_rng(SEED).random(len(y)) < 0.2
        scores = {
            family: log_scores(fit(np.where(held, -1, y), i, j, family), held, y[held], family)
            for family in FAMILIES
        }
        for family, score in scores.items():
            gain = score - scores["negative binomial"]
            error = gain.std(ddof=1) / np.sqrt(len(gain))
            lines.append(
                f"| {name} | {origin} > {destination} | {held.sum()} | {family} | "
                f"{score.mean():.4f} | {gain.mean():+.4f} ({error:.4f}) |"
            )
    path = Path(__file__).with_suffix(".md")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
