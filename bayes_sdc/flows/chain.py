"""What a sampler is told, and what a Gibbs chain leaves behind."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np


class Sampling(NamedTuple):
    """What is drawn from, and how."""

    family: str
    prior: Mapping[str, float]
    draws: int
    tune: int
    chains: int
    seed: int
    cores: int


class Chain(NamedTuple):
    """The kept draws of one chain, and the acceptance rates after the warm-up."""

    states: dict[str, np.ndarray]  # by name, with a leading draw axis
    acceptance: dict[str, np.ndarray]  # by name
