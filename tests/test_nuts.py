"""NUTS is all or nothing."""

import _thread
import threading

import numpy as np
import pymc as pm
import pytest

from bayes_sdc.nuts import sample_nuts


def test_interrupted_chains_are_never_taken_for_whole_ones() -> None:
    """Else a file's risk rests on the draws up to Ctrl-C, and nothing says so."""
    import nutpie

    with pm.Model() as model:
        pm.Normal("x", np.zeros(50))
    compiled = nutpie.compile_pymc_model(model)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            sample_nuts(compiled, draws=20_000_000, tune=100, chains=1, cores=1, seed=1)
    finally:
        timer.cancel()
