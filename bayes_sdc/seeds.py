"""One seed, many independent streams: each purpose has its own, whatever order they are used in."""

import hashlib
import secrets

import numpy as np

from bayes_sdc.errors import InputError


def seed_sequence(seed: int, *purpose: str) -> np.random.SeedSequence:
    """Derive the stream of one purpose; all the entropy of the seed is used.

    Parameters
    ----------
    seed : int
        0 or more; a seed that protects a release has 128 bits, so that it cannot be found by trial.
    *purpose : str
        Names that identify the stream.

    Raises
    ------
    InputError
        If the seed is negative or not a whole number.

    Examples
    --------
    >>> a, b = (np.random.default_rng(seed_sequence(1, name)).random() for name in "ab")
    >>> a != b
    True
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number, 0 or more; it is {seed!r}")
    digest = hashlib.sha256("\x1f".join(purpose).encode()).digest()
    words = np.frombuffer(digest[:16], np.uint32)
    return np.random.SeedSequence([int(seed), *map(int, words)])


def seed_or_fresh(seed: int | None) -> int:
    """Return a seed, or a fresh one of 128 bits in place of none.

    Raises
    ------
    InputError
        If the seed is negative or not a whole number.

    Examples
    --------
    >>> seed_or_fresh(7)
    7
    >>> seed_or_fresh(None) != seed_or_fresh(None)
    True
    """
    if seed is None:
        return secrets.randbits(128)
    seed_sequence(seed)
    return int(seed)


def generator(seed: int, *purpose: str) -> np.random.Generator:
    """Return a generator on the stream of one purpose."""
    return np.random.default_rng(seed_sequence(seed, *purpose))
