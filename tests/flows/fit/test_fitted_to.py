"""Draws that were cut, turned or lost after the fit are refused in words."""

from collections.abc import Callable

import numpy as np
import pytest
import xarray as xr

from bayes_sdc.errors import InputError
from bayes_sdc.flows.fit.fitted_to import _check_draws

AREAS = ["a", "b", "c"]


def tree(draws: xr.Dataset) -> xr.DataTree:
    fitted = xr.Dataset(coords={"origin_effect": AREAS})
    return xr.DataTree.from_dict({"posterior": draws, "constant_data": fitted})


def drawn() -> xr.Dataset:
    shape = {"chain": 2, "draw": 4, "origin_effect": 3}
    values = xr.DataArray(np.ones(tuple(shape.values())), dims=list(shape))
    return xr.Dataset(dict.fromkeys(("alpha", "beta", "gamma"), values)).assign_coords(
        origin_effect=AREAS
    )


@pytest.mark.parametrize(
    "kept",
    [lambda d: d, lambda d: d.isel(chain=[0]), lambda d: d.isel(draw=slice(0, None, 2))],
)
def test_some_of_the_draws_are_draws(kept: Callable[[xr.Dataset], xr.Dataset]) -> None:
    _check_draws(tree(kept(drawn())))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.isel(chain=0), "must begin with chain and draw"),
        (lambda d: d.transpose("origin_effect", "draw", "chain"), "must begin with chain"),
        (lambda d: d.isel(draw=[]), "no draws"),
        (lambda d: d.drop_vars("alpha"), "lacks alpha"),
        (lambda d: d.drop_vars(["alpha", "beta", "gamma"]), "lacks alpha, beta, gamma"),
        (lambda d: d.isel(origin_effect=slice(None, None, -1)), "in another order"),
        (lambda d: d.where(d["origin_effect"] != "b"), "no numbers"),
        (lambda d: d * np.inf, "no numbers"),
        (lambda d: d.astype(str), "no numbers"),
    ],
)
def test_what_is_no_longer_that_of_the_fit_is_refused(
    change: Callable[[xr.Dataset], xr.Dataset], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        _check_draws(tree(change(drawn())))
    with pytest.raises(InputError, match="lacks the group posterior"):
        _check_draws(xr.DataTree.from_dict({"posterior": change(drawn())}))
