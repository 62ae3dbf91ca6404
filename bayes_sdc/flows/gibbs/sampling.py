"""The settings of a Gibbs sampler, and the interface of its chains."""

import json
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from bayes_sdc.flows.table.bound import Bound


class Sampling(NamedTuple):
    """Settings of a fit, names and defaults resolved; `flows.fit.settings` makes them."""

    family: str
    prior: Mapping[str, float]  # the numbers
    draws: int
    tune: int
    chains: int
    seed: int
    cores: int
    sampler: str = "gibbs"
    scheduler: str | None = None  # address of a cluster
    prior_name: str = "given"
    covariates: str = "none"  # or "published", besides those of the table
    bound: Bound | None = None  # of the steps from a count to the next
    impossible: tuple[int, ...] = ()  # counts from 0 that a rule excludes, with family "base"
    centres_from: str = ""  # source of its centres, in words
    weight: np.ndarray | None = None  # (cell,) of the log-likelihoods, in the table's order
    weights_from: str = ""  # source of these, in words
    gain_limit: float | None = None  # in bits, where they come from the risk


class MarkovChain(Protocol):
    """A running chain; the engine and the reference sampler have one each."""

    @property
    def done(self) -> int:
        """Draws made, those of the warm-up included."""

    def draw(self) -> None:
        """Advance to the next draw."""

    def record(self) -> dict[str, np.ndarray]:
        """Present values by the paper's names."""

    def acceptance(self) -> dict[str, np.ndarray]:
        """Acceptance rates after the warm-up, by name."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that a chain needs to continue exactly as it would have."""

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Return to the state of a chain of the same call."""


def generator_state(rng: np.random.Generator) -> np.ndarray:
    """State of a generator as an array of text, which can be stored without pickling.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> again = restored_generator(generator_state(rng))
    >>> bool(rng.random() == again.random())
    True
    """
    return np.array(json.dumps(rng.bit_generator.state))


def restored_generator(state: np.ndarray) -> np.random.Generator:
    """Make a generator that continues from a state; see :func:`generator_state`."""
    bits = np.random.PCG64()
    bits.state = json.loads(str(state))
    return np.random.Generator(bits)
