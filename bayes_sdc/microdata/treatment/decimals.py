"""Numbers as they are written: exact, and with all their digits."""

import re
from fractions import Fraction

from bayes_sdc.errors import InputError

Number = int | float | str | Fraction

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def exact(number: Number) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth, and not the nearest binary fraction.

    Raises
    ------
    InputError
        If it is no number, or has no end when it is written with a point, such as a third.
    """
    try:
        found = number if isinstance(number, Fraction) else Fraction(str(number))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"a band or an end must be a number; it is {number!r}") from None
    rest = found.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest > 1:
        raise InputError(f"a band or an end must be a decimal number; it is {number}")
    return found


def decimal(number: Fraction) -> str:
    """Write a decimal number with all its digits.

    >>> decimal(Fraction("-12345678.50")), decimal(Fraction(3))
    ('-12345678.5', '3')
    """
    places = 0
    while (number * 10**places).denominator > 1:
        places += 1
    digits = f"{abs(number * 10**places).numerator:0{places + 1}d}"
    text = digits if not places else f"{digits[:-places]}.{digits[-places:]}"
    return "-" * (number < 0) + text
