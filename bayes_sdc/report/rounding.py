"""Numbers as the public reads them."""


def two_figures(n: int) -> int:
    """Round a number to two figures, half up; below a hundred it stays as it is.

    Examples
    --------
    >>> [two_figures(n) for n in (7, 99, 137, 2_731, 99_950)]
    [7, 99, 140, 2700, 100000]
    """
    step: int = 10 ** max(len(str(n)) - 2, 0)
    return (n + step // 2) // step * step
