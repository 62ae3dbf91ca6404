r"""Risk of the sample uniques by a trace of the log-linear model.

Given the mean mu of a combination in the sample, F - 1 of a sample unique is Poisson with mean
c mu, c = N / n - 1. Where frequencies scatter about the mean with shape r it is negative binomial:
with q = (r + mu) / (r + mu N / n),

.. math:: P(F = 1) = q^{r + 1}, \qquad E(1 / F) = q (1 - q^r) / ((1 - q) r).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.loglinear.selection import alone, matched
from bayes_sdc.microdata.posterior.sampling import ONE_CHAIN, agree, divergences, drawn_in

EFFECTS = "effects of "

Floats = npt.NDArray[np.float64]


class Predicted(NamedTuple):
    """What a trace says of the sample uniques.

    Parameters
    ----------
    unique, inverse : array, shape (sample unique,)
        P(F = 1) and the mean of 1 / F.
    tau1 : array, shape (draw,)
        Sample uniques that are population uniques, one number drawn for each draw.
    interactions : tuple of pairs or triples of str
        Keys that interact.
    agree : bool
        Whether the chains agree about the expected number of them, and no transition diverged.
    notes : tuple of str
        What did not go as it should.
    """

    unique: Floats
    inverse: Floats
    tau1: Floats
    interactions: tuple[tuple[str, ...], ...]
    agree: bool
    notes: tuple[str, ...]


def predict(
    trace: xr.DataTree,
    cells: list[str],
    place: npt.NDArray[np.int64],
    times: float,
    rng: np.random.Generator,
) -> Predicted:
    """Predict from every draw of a trace.

    Parameters
    ----------
    trace : DataTree
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.loglinear_model`.
    cells : list of str
        Names of those of the table of the file.
    place : array of int, shape (sample unique,)
        Cell of each sample unique.
    times : float
        N / n.
    rng : numpy.random.Generator
        Of who is unique, given the model.

    Raises
    ------
    InputError
        If the trace is of another model or file.
    """
    drawn = drawn_in(trace)
    if "log_mean" not in drawn or {*drawn["log_mean"].dims} != {"chain", "draw", "cell"}:
        raise InputError(
            "the trace holds no log_mean by cell: it is of another model; remedy: sample in "
            "loglinear_model(microdata)"
        )
    if "cell" not in drawn.coords or drawn["cell"].to_numpy().tolist() != cells:
        raise InputError(
            "the cells of the trace are not those of the table of this file; remedy: the same "
            "file, and the same seed"
        )
    if drawn.sizes["chain"] < 2:
        raise InputError(ONE_CHAIN)
    log_mean = drawn["log_mean"].transpose("chain", "draw", "cell").to_numpy()[..., place]
    shape = np.exp(drawn["log_shape"].to_numpy()) if "log_shape" in drawn else None
    if not np.isfinite(log_mean).all() or (shape is not None and not np.isfinite(shape).all()):
        raise InputError("log_mean or log_shape of the trace holds values that are no numbers")
    unique, inverse = _by_draw(np.exp(log_mean), shape, times)
    expected = xr.Dataset({"tau1": (("chain", "draw"), unique.sum(axis=-1))})
    agreed = agree(xr.DataTree.from_dict({"posterior": expected}), ["tau1"])
    diverged = divergences(trace, "log-linear")
    names = (str(name).removeprefix(EFFECTS) for name in drawn if str(name).startswith(EFFECTS))
    return Predicted(
        unique.mean(axis=(0, 1)),
        inverse.mean(axis=(0, 1)),
        (rng.random(unique.shape) < unique).sum(axis=-1).ravel().astype(np.float64),
        tuple(tuple(name.split(" x ")) for name in names if " x " in name),
        agreed and not diverged,
        diverged,
    )


def _by_draw(mean: Floats, shape: Floats | None, times: float) -> tuple[Floats, Floats]:
    """P(F = 1) and the mean of 1 / F: (chain, draw, sample unique)."""
    if shape is None:
        return alone(mean, times).value, matched(mean, times).value
    r = shape[..., None]
    q = (r + mean) / (r + mean * times)
    log_q = np.log(q)
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = q * -np.expm1(r * log_q) / ((1.0 - q) * r)
    return np.exp((r + 1.0) * log_q), np.where(q < 1.0, np.clip(inverse, 0.0, 1.0), 1.0)
