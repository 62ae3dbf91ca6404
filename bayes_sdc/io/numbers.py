"""Numbers as people write them: with a point or a comma, with thousands set apart, with flags.

A number that can be read in two ways is not read: ``1.000`` is one in one country and a thousand in
the next, and nothing in a file of such numbers tells which.
"""

import re
from typing import Any

from bayes_sdc.io.form import UNTOLD, FileForm

NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
TWO_WAYS = re.compile(r"[+-]?[0-9]+\.[0-9]{3}")  # decimals, or thousands
NO_DECIMALS = re.compile(r"[+-]?[0-9]+")
# a letter or sign beside a number: 17 b, 17*, ~5, (5)
FLAGGED = re.compile(
    r"(?=.*[^0-9.,+\s-])[^\w\s+<>-]{0,2}[+-]?[0-9]+([.,][0-9]+)*[.,]?\s*([A-Za-z]{1,3}|[^\w\s]{1,2})?"
)
BLANKS = str.maketrans(dict.fromkeys("\xa0\u2009\u202f", " ") | {"\u2019": "'"})
# minus signs that are no hyphen, as word processors write them
MINUS = str.maketrans(dict.fromkeys("\u2212\ufe63\uff0d", "-"))
TOO_LONG = 400  # characters of a number; one of a thousand digits is damage


def text_of_number(value: Any) -> str:
    r"""Return how a value is written; a float as the shortest text that gives it back.

    Examples
    --------
    >>> text_of_number(" \u22123"), text_of_number(3.0)
    ('-3', '3.0')
    """
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > TOO_LONG * 4:
        return "inf" if value > 0 else "-inf"  # Python refuses to write thousands of digits
    if isinstance(value, float):
        return repr(float(value))
    return str(value).strip().translate(MINUS)


def plain(text: str, form: FileForm = UNTOLD) -> str | None:
    """Return a number as Python writes it, or None for what is no number in this form.

    Examples
    --------
    >>> german = FileForm(decimal=",", thousands=".")
    >>> plain("1.076,5", german), plain("1.5", german), plain("1e3"), plain("1,076")
    ('1076.5', None, '1e3', None)
    """
    if len(text) > TOO_LONG:
        return "inf" if NUMBER.fullmatch(text) else None
    decimal, thousands = form.notation
    if thousands is not None:
        mark, point = re.escape(thousands), re.escape(decimal or ".")
        grouped = rf"([+-]?[0-9]{{1,3}}(?:{mark}[0-9]{{3}})+|[+-]?[0-9]+)({point}[0-9]*)?"
        match = re.fullmatch(grouped, text.translate(BLANKS))
        if match is not None:
            whole = match[1].replace(thousands, "")
            return whole + (match[2] or "").replace(decimal or ".", ".")
        if thousands == ".":
            return None  # a point is no decimal here
    if decimal == ",":
        if "." in text:
            return None
        text = text.replace(",", ".")
    return text if NUMBER.fullmatch(text) else None


def reads_in_two_ways(text: str, form: FileForm = UNTOLD) -> bool:
    """Whether a count has three digits after a point, and no option says what the point means.

    Examples
    --------
    >>> reads_in_two_ways("1.000"), reads_in_two_ways("1.00"), reads_in_two_ways("1.000.000")
    (True, False, False)
    """
    return form.notation == (None, None) and TWO_WAYS.fullmatch(text) is not None


def decimals_in_two_ways(texts: list[str], form: FileForm = UNTOLD) -> list[str]:
    """Numbers of a column that may be thousands: all that have decimals have three of them.

    Examples
    --------
    >>> decimals_in_two_ways(["950", "1.076"]), decimals_in_two_ways(["950.5", "1.076"])
    (['1.076'], [])
    """
    if form.notation != (None, None):
        return []
    found = [text for text in texts if TWO_WAYS.fullmatch(text)]
    others = [text for text in texts if text and not TWO_WAYS.fullmatch(text)]
    return found if all(NO_DECIMALS.fullmatch(text) for text in others) else []


def both_readings(text: str) -> str:
    """Say the two numbers that a text can be, and how to tell which.

    Examples
    --------
    >>> both_readings("1.076")
    "'1.076' is 1.076 if the point stands before decimals, and 1,076 if between thousands"
    """
    number = text_of_number(text)
    thousands = int(number.replace(".", "").lstrip("+"))
    return (
        f"{text!r} is {float(number):.15g} if the point stands before decimals, and {thousands:,} "
        "if between thousands"
    )
