"""Chains of the base that somebody else sampled, in the form of the package's own."""

import numpy as np
import numpy.typing as npt
import xarray as xr
from scipy.special import logsumexp

from bayes_sdc.errors import InputError
from bayes_sdc.microdata.latent_classes.combinations import Cells
from bayes_sdc.microdata.latent_classes.gibbs import MONITORS, watch
from bayes_sdc.microdata.latent_classes.sample import Sample
from bayes_sdc.microdata.latent_classes.second_stage import Chain, SecondStage
from bayes_sdc.microdata.latent_classes.state import State
from bayes_sdc.microdata.posterior.sampling import ONE_CHAIN, drawn_in

DRAWS = 40  # of the base by chain, for the second stage
FEWEST_DRAWS = 20  # of each chain

Floats = npt.NDArray[np.float64]


def chains_of(
    trace: xr.DataTree, sample: Sample, labels: dict[str, list[str]], seed: int
) -> list[Chain]:
    """Predict from the draws of a trace, evenly spaced along each chain.

    Parameters
    ----------
    trace : DataTree
        What ``pm.sample`` returns in the model of :func:`bayes_sdc.latent_class_model`.
    sample : Sample
        Of the file.
    labels : dict of str to list of str
        Levels of each key, in the order of the sampler.
    seed : int
        Of the second stage.

    Returns
    -------
    list of Chain
        One for each chain of the trace.

    Raises
    ------
    InputError
        If the trace is of another model or file, or too short.
    """
    drawn = _checked(trace, labels)
    said = trace["posterior"]["log_likelihood"].transpose("chain", "draw").to_numpy()
    chains = []
    for number in range(drawn.sizes["chain"]):
        chain = drawn.isel(chain=number)
        length = drawn.sizes["draw"]
        used = np.unique(np.linspace(0, length - 1, min(DRAWS, length)).round().astype(int))
        second = SecondStage(sample, len(used), seed, number)
        rest = (sample.population - 1.0) * second.n
        monitors = np.empty((length, len(MONITORS)))
        tables = {str(name): values.to_numpy() for name, values in chain.items()}
        for draw in range(length):
            state = _state({name: values[draw] for name, values in tables.items()}, sample, labels)
            watch(state.g, sample.cells.records, rest, monitors[draw])
            _same_file(monitors[draw, 0], said[number, draw])
            place = int(np.searchsorted(used, draw))
            if place < len(used) and used[place] == draw:
                second.add(place, state)
        chains.append(second.chain(monitors))
    return chains


def _same_file(own: float, said: float) -> None:
    """Refuse a trace of other records with the same levels."""
    if not np.isclose(own, said, rtol=1e-6, atol=1e-3):
        raise InputError(
            f"the log likelihood of a draw is {said:.6g} in the trace and {own:.6g} by this file: "
            "the trace is of another file"
        )


def _checked(trace: xr.DataTree, labels: dict[str, list[str]]) -> xr.Dataset:
    """Return the variables of the model, with their dimensions in one order."""
    drawn = drawn_in(trace)
    dims: dict[str, tuple[str, ...]] = {
        "alpha": (), "log_likelihood": (), "eta": ("class",)
    }  # fmt: skip
    for key in labels:
        level = f"level of {key}"
        dims |= {f"log strength of {key}": (), f"base of {key}": (level,),
                 f"phi of {key}": ("class", level), f"resolution of {key}": ("class",)}  # fmt: skip
    if missing := [name for name in dims if name not in drawn]:
        raise InputError(
            f"the trace holds no {', '.join(missing)}: it is of another model; remedy: sample in "
            "latent_class_model(microdata)"
        )
    for name, along in dims.items():
        if set(drawn[name].dims) != {"chain", "draw", *along}:
            raise InputError(f"{name} of the trace has the dimensions {drawn[name].dims}")
        if not bool(np.isfinite(drawn[name]).all()):
            raise InputError(f"{name} of the trace holds values that are no numbers")
    for key, levels in labels.items():
        if drawn[f"level of {key}"].to_numpy().tolist() != levels:
            raise InputError(f"the levels of {key!r} in the trace are not those of the file")
    if drawn.sizes["chain"] < 2:
        raise InputError(ONE_CHAIN)
    if drawn.sizes["draw"] < FEWEST_DRAWS:
        raise InputError(
            f"the trace has {drawn.sizes['draw']} draws a chain; {FEWEST_DRAWS} or more are needed"
        )
    chosen = drawn[list(dims)]
    return chosen.transpose("chain", "draw", "class", *(f"level of {key}" for key in labels))


def _state(drawn: dict[str, Floats], sample: Sample, labels: dict[str, list[str]]) -> State:
    """Put one draw into the form of the sampler's own."""
    cells, eta = sample.cells, np.ascontiguousarray(drawn["eta"])
    phi = np.concatenate([drawn[f"phi of {key}"].T for key in labels])
    return State(
        alpha=np.array([float(drawn["alpha"])]),
        eta=eta,
        strength=np.array([float(np.exp(drawn[f"log strength of {key}"])) for key in labels]),
        base=np.concatenate([drawn[f"base of {key}"] for key in labels]),
        phi=np.ascontiguousarray(phi),
        resolution=np.stack([drawn[f"resolution of {key}"] for key in labels]).astype(np.int64),
        shares=np.empty((len(labels), 0)),  # of no use outside a sweep
        size=np.zeros(len(eta), dtype=np.int64),
        counts=np.zeros(phi.shape, dtype=np.int64),
        g=_probabilities(eta, phi, cells),
    )


def _probabilities(eta: Floats, phi: Floats, cells: Cells) -> Floats:
    """Probability of each combination; what is missing is summed over."""
    with np.errstate(divide="ignore"):
        log_phi, log_w = np.log(phi), np.log(eta)[None, :]
    for column in cells.rows.T:
        log_w = log_w + np.where(column[:, None] >= 0, log_phi[column], 0.0)
    return np.asarray(np.exp(logsumexp(log_w, axis=1)), dtype=np.float64)
