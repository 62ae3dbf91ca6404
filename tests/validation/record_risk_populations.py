"""Invented populations for the study of record risk, which latent classes did not make."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from bayes_sdc.microdata.file.simulate import simulate_persons

PEOPLE = 60_000
LEVELS = (2, 3, 4, 6, 8, 10, 14, 24)
SWEEPS = 20

Integers = npt.NDArray[np.int64]


def as_text(columns: list[Integers]) -> pd.DataFrame:
    """Keys k0, k1, ... of codes."""
    return pd.DataFrame({f"k{j}": pd.Series(c.astype(str)) for j, c in enumerate(columns)})


def categories(rng: np.random.Generator, chances: npt.NDArray[np.float64]) -> Integers:
    """One draw from each row."""
    above = rng.random(len(chances))[:, None] > np.cumsum(chances, axis=1)[:, :-1]
    return above.sum(axis=1)


def pairwise(seed: int = 11) -> pd.DataFrame:
    """Log-linear, with an effect of every pair of levels of every two of eight keys.

    Main effects follow power laws, those of pairs are normal with standard deviation 0.55; people
    are drawn by Gibbs sampling of their keys.
    """
    rng = np.random.default_rng(seed)
    keys = range(len(LEVELS))
    main = [-1.1 * np.log(1.0 + rng.permutation(size)) for size in LEVELS]
    pair = {
        (a, b): rng.normal(0.0, 0.55, (LEVELS[a], LEVELS[b])) for a in keys for b in keys if a < b
    }
    people = np.stack([rng.integers(0, size, PEOPLE) for size in LEVELS], axis=1)
    for _ in range(SWEEPS):
        for j in keys:
            log_p = np.tile(main[j], (PEOPLE, 1))
            for k in keys:
                if k < j:
                    log_p += pair[k, j][people[:, k]]
                elif k > j:
                    log_p += pair[j, k].T[people[:, k]]
            people[:, j] = (log_p + rng.gumbel(size=log_p.shape)).argmax(axis=1)
    return as_text(list(people.T))


def geography(seed: int = 12) -> pd.DataFrame:
    """Forty districts in five regions, each with its own ages, jobs by age and places of birth.

    Every level of the hierarchy is a Dirichlet draw about the one above: region, district, sex,
    age by year, job, place of birth, marital status, education.
    """
    rng = np.random.default_rng(seed)
    districts, ages, jobs, places = 40, 80, 50, 30
    district = rng.choice(districts, PEOPLE, p=rng.dirichlet(np.full(districts, 1.5)))
    nation = np.exp(-(((np.arange(ages) - 35) / 30.0) ** 2))
    nation /= nation.sum()
    region = [rng.dirichlet(60.0 * nation + 0.01) for _ in range(5)]
    age_by = np.stack([rng.dirichlet(80.0 * region[d // 8] + 0.01) for d in range(districts)])
    age = categories(rng, age_by[district])
    sex, band = rng.integers(0, 2, PEOPLE), np.minimum(age // 10, 7)
    job = rng.dirichlet(np.full(jobs, 0.3))
    by_band = [rng.dirichlet(15.0 * job + 0.01) for _ in range(8)]
    job_by = np.stack(
        [[rng.dirichlet(25.0 * by_band[b] + 0.01) for b in range(8)] for _ in range(districts)]
    )
    works = (age >= 16) & (age <= 68)
    occupation = np.where(works, categories(rng, job_by[district, band]), jobs)
    place = np.arange(1.0, places + 1.0) ** -1.8
    place_by = np.stack([rng.dirichlet(12.0 * place + 0.01) for _ in range(districts)])
    birth = categories(rng, place_by[district])
    marital_by = np.stack([rng.dirichlet([3.0, 3.0, 1.0, 0.6]) for _ in range(16)])
    marital = np.where(age < 17, 0, categories(rng, marital_by[2 * band + sex]))
    school_by = np.stack([rng.dirichlet([2.0, 3.0, 3.0, 2.0, 1.0]) for _ in range(jobs + 1)])
    school = categories(rng, school_by[occupation])
    return as_text([district // 8, district, sex, age, occupation, birth, marital, school])


def power_law(levels: int, exponent: float) -> npt.NDArray[np.float64]:
    """Shares of levels that fall by a power of their rank."""
    share = np.arange(1.0, levels + 1.0) ** -exponent
    return np.asarray(share / share.sum())


def independent(seed: int = 31) -> pd.DataFrame:
    """Keys that are nearly independent: sex, region, age, marital status by age, birth, education.

    Only marital status depends on age, and the places of birth of the young are mostly the first.
    """
    rng = np.random.default_rng(seed)
    shape = np.r_[np.ones(14), np.linspace(0.9, 0.1, 6)]
    age = rng.choice(20, PEOPLE, p=shape / shape.sum())
    marital = categories(rng, np.array([rng.dirichlet(np.ones(4)) for _ in range(7)])[age // 3])
    birth = rng.choice(40, PEOPLE, p=power_law(40, 1.6))
    birth = np.where((age < 3) & (rng.random(PEOPLE) < 0.7), 0, birth)
    region = rng.choice(8, PEOPLE, p=power_law(8, 1.0))
    school = rng.choice(6, PEOPLE, p=power_law(6, 1.5))
    return as_text([rng.integers(0, 2, PEOPLE), region, age, marital, birth, school])


SIMULATED = {
    "independent": independent,
    "pairs": pairwise,
    "geography": geography,
    "demo": lambda: simulate_persons(seed=2011),
}
