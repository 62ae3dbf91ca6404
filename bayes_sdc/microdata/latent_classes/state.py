"""Where a chain of the latent-class sampler is."""

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """Where a chain is; every array is changed in place.

    Parameters
    ----------
    alpha : array, shape (1,)
        Concentration of the class weights.
    eta : array, shape (class,)
        Weight of each class.
    strength : array, shape (key,)
        b, how alike the classes are in a key.
    base : array, shape (row,)
        m, the levels of a key in the mean of the classes.
    phi : array, shape (row, class)
        Levels of a key in each class.
    resolution : array of int, shape (key, class)
        s, how finely a class has levels of its own, from 0 to the depth of the key's tree.
    shares : array, shape (key, resolution)
        Probability of each resolution in a key; of no meaning beyond the key's depth.
    size : array of int, shape (class,)
        Records in each class.
    counts : array of int, shape (row, class)
        Records of a class with each level.
    g : array, shape (combination,)
        Probability of each combination under eta and phi; with a missing value that of all
        combinations that it may be.
    """

    alpha: np.ndarray
    eta: np.ndarray
    strength: np.ndarray
    base: np.ndarray
    phi: np.ndarray
    resolution: np.ndarray
    shares: np.ndarray
    size: np.ndarray
    counts: np.ndarray
    g: np.ndarray
