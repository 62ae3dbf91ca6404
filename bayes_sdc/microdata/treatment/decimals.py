"""Numbers as they are written: exact, and with all their digits."""

import re
from fractions import Fraction

Number = int | float | str | Fraction

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def exact(number: Number) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth, and not the nearest binary fraction."""
    return number if isinstance(number, Fraction) else Fraction(str(number))


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
