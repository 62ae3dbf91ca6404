"""Slope and information by the coefficients of areas' covariates, at the cost of a few sums a cell.

A covariate of an area is the same for all cells of its effect. So its row of the information needs
the cells only through sums by area, and pairs of a covariate of origins with one of destinations
through sums by origin of the latter: the work by cell grows with the number of covariates, not with
its square.
"""

import numpy as np

from bayes_sdc.flows.gibbs.state import OF_CELL, OF_DESTINATION, OF_ORIGIN, Data, State
from bayes_sdc.flows.model.hyperpriors import CV, LEVEL, SD_DESTINATION, SD_ORIGIN, compiled

SLOPE, OWN, WITH_CV = 0, 1, 2  # columns of the sums by area: of terms 1, 2 and 5


@compiled
def area_information(
    g: int, columns: np.ndarray, data: Data, state: State, terms: np.ndarray,
    b_scale: float, g_scale: float, slope: np.ndarray, metric: np.ndarray,
) -> None:  # fmt: skip
    """Write the rows of slope and information that belong to covariates of areas."""
    origins = slice(data.origins_of_group[g], data.origins_of_group[g + 1])
    destinations = slice(data.destinations_of_group[g], data.destinations_of_group[g + 1])
    b, x_origin = state.b[origins], data.x_origin[origins]
    effect, x_destination = state.g[destinations], data.x_destination[destinations]
    by_origin, by_destination, across, cell_across = _sums(g, data, effect, x_destination, terms)
    for k in range(len(columns)):
        p = columns[k] - CV - 1
        if p < 0 or data.of[p] == OF_CELL:
            continue
        is_origin = data.of[p] == OF_ORIGIN
        by = by_origin if is_origin else by_destination
        x = x_origin[:, p] if is_origin else x_destination[:, p]
        slope[k] = (x * by[:, SLOPE]).sum()
        for other in range(len(columns)):
            column = columns[other]
            if column == LEVEL:
                total = (x * by[:, OWN]).sum()
            elif column == CV:
                total = (x * by[:, WITH_CV]).sum()
            elif column == SD_ORIGIN:
                with_b = x * by[:, OWN] if is_origin else across[:, 1 + p]
                total = b_scale * (b * with_b).sum()
            elif column == SD_DESTINATION:
                total = (x * across[:, 0]).sum() if is_origin else (x * by[:, OWN] * effect).sum()
                total *= g_scale
            else:
                total = 0.0
                q = column - CV - 1
                if data.of[q] == data.of[p]:
                    x_other = x_origin[:, q] if is_origin else x_destination[:, q]
                    total = (x * by[:, OWN] * x_other).sum()
                elif data.of[q] == OF_CELL and not is_origin:
                    total = (x * cell_across[:, q]).sum()
                elif is_origin:
                    total = (x * across[:, 1 + q]).sum()
                else:
                    total = (x_origin[:, q] * across[:, 1 + p]).sum()
            metric[k, other] = total
            metric[other, k] = total


@compiled
def _sums(
    g: int, data: Data, effect: np.ndarray, x_destination: np.ndarray, terms: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sums of the cells by area.

    Of terms 1, 2 and 5 by origin and by destination; by origin, of term 2 times the destination's
    effect and every covariate that is not one of origins; by destination, of term 2 times every
    covariate of cells.
    """
    covariates = len(data.of)
    origins, destinations = data.origins_of_group[g], data.destinations_of_group[g]
    n_origins = data.origins_of_group[g + 1] - origins
    by_origin, across = np.zeros((n_origins, 3)), np.zeros((n_origins, 1 + covariates))
    by_destination = np.zeros((len(effect), 3))
    cell_across = np.zeros((len(effect), covariates))
    start = data.cells_of_group[g]
    for c in range(start, data.cells_of_group[g + 1]):
        i, j = data.origin[c] - origins, data.destination[c] - destinations
        one, two, five = terms[1, c - start], terms[2, c - start], terms[5, c - start]
        by_origin[i, SLOPE] += one
        by_origin[i, OWN] += two
        by_origin[i, WITH_CV] += five
        by_destination[j, SLOPE] += one
        by_destination[j, OWN] += two
        by_destination[j, WITH_CV] += five
        across[i, 0] += two * effect[j]
        for p in range(covariates):
            if data.of[p] == OF_DESTINATION:
                across[i, 1 + p] += two * x_destination[j, p]
            elif data.of[p] == OF_CELL:
                across[i, 1 + p] += two * data.x[c, p]
                cell_across[j, p] += two * data.x[c, p]
    return by_origin, by_destination, across, cell_across
