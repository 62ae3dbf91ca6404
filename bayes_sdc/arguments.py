"""One check of the arguments of every public function, by its annotations, before any work.

A type checker finds wrong arguments before a program runs. Nobody runs one in a notebook, where a
wrong argument causes an error deep inside some library, or after hours. What an annotation cannot
say, such as the range of a number, each function checks for itself.
"""

import inspect
import os
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from functools import cache, wraps
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from bayes_sdc.errors import InputError

#: Path of a file or a folder, as text or as a `pathlib.Path`.
PathLike = str | os.PathLike[str]

MADE_BY = {  # functions that return an object of a type, for the message
    "FlowTable": "read_flows",
    "IntruderRisk": "intruder_risk",
    "IrsFlows": "read_irs_flows",
    "DataTree": "fit_flows",
    "Microdata": "read_microdata",
    "RecordRisk": "record_risk",
    "RiskComparison": "compare_risks",
    "Policy": "read_policy",
    "Shapes": "read_shapes",
    "Treatment": "treat",
}

ROWS = (Sequence, Iterable, Collection)  # whose values are checked one by one

FRAMES = {  # functions that return the table that a plot shows
    "plot_chains": "diagnostics.group_diagnostics",
    "plot_convergence": "diagnostics.group_diagnostics",
    "plot_predictive": "diagnostics.predictive_counts",
    "plot_predictive_by_size": "predictive_counts_by_size",
    "plot_margins": "margins",
    "plot_risk_by_count": "risk_by",
    "plot_risk_by_datasets": "risk_by_datasets",
    "plot_promises": "compare_promises",
    "plot_ru_map": "risk_utility",
    "plot_treatments": "compare_treatments",
}


def checked[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Make a function refuse, with `InputError`, arguments that do not fit its annotations.

    Parameters
    ----------
    function : callable
        With an annotation for each parameter.

    Returns
    -------
    callable
        The same, checked.

    Examples
    --------
    >>> @checked
    ... def double(n: int) -> int:
    ...     return 2 * n
    >>> double(2)
    4
    >>> double("2")
    Traceback (most recent call last):
        ...
    bayes_sdc.errors.InputError: n must be a whole number; it is '2'
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        signature, hints = _declared(function)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise InputError(_wrong_call(function.__name__, signature, kwargs, error)) from None
        for name, value in given.items():
            try:
                check(name, value, hints.get(name, Any))
            except InputError as error:
                maker = FRAMES.get(function.__name__, "")
                raise InputError(f"{error}{maker and f'; {maker} gives one'}") from None
        return function(*args, **kwargs)

    return call


def check_fields(made: Any) -> None:
    """Refuse fields of a data class that do not fit their annotations.

    Parameters
    ----------
    made : data class
        A new instance, in its ``__post_init__``.

    Raises
    ------
    InputError
        Naming the field.
    """
    hints = get_type_hints(type(made))
    for one in fields(made):
        check(one.name, getattr(made, one.name), hints[one.name])


def check(name: str, value: object, hint: Any) -> None:
    """Refuse a value that does not fit an annotation.

    Parameters
    ----------
    name : str
        Of the argument.
    value : object
        What was given.
    hint : type
        The annotation.

    Raises
    ------
    InputError
        Naming the argument, what it must be and what it is.

    Examples
    --------
    >>> check("share", 0.5, float | None)
    >>> check("share", "half", float | None)
    Traceback (most recent call last):
        ...
    bayes_sdc.errors.InputError: share must be a number; it is 'half'
    """
    options = _options(hint)
    if any(_fits(value, option) for option in options):
        return
    choices = [choice for one in options if get_origin(one) is Literal for choice in get_args(one)]
    others = [one for one in options if get_origin(one) is not Literal and one is not type(None)]
    if choices and isinstance(value, str):
        more = f" or give {_words(others)}" if others else ""
        raise InputError(f"{name} {value!r} is unknown; choose from {choices}{more}")
    words = _words([*([f"one of {choices}"] if choices else []), *others])
    raise InputError(f"{name} must be {words}; it is {_shown(value)}{_where(value, others)}")


@cache
def _declared(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(function), get_type_hints(function)


def _wrong_call(
    function: str, signature: inspect.Signature, kwargs: Mapping[str, object], error: TypeError
) -> str:
    """Name an argument that is missing, unknown or superfluous."""
    unknown = [name for name in kwargs if name not in signature.parameters]
    if not unknown:
        return f"{function}: {error}; its arguments are {function}{signature}"
    near = get_close_matches(unknown[0], list(signature.parameters), 1)
    meant = f"; do you mean {near[0]!r}?" if near else f"; there are {list(signature.parameters)}"
    return f"{function} has no argument {unknown[0]!r}{meant}"


def _options(hint: Any) -> list[Any]:
    """Alternatives of a union."""
    hint = getattr(hint, "__value__", hint)  # of a type alias
    if get_origin(hint) in (Union, types.UnionType):
        return [option for one in get_args(hint) for option in _options(one)]
    return [hint]


def _fits(value: object, hint: Any) -> bool:
    """Whether a value is of a type; neither a truth value nor NaN is a number."""
    if hint is Any or isinstance(hint, TypeVar):
        return True
    if hint is None or hint is type(None):
        return value is None
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint in (int, float):
        kinds = (int, np.integer) if hint is int else (int, float, np.integer, np.floating)
        return isinstance(value, kinds) and not isinstance(value, bool) and value == value
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if origin in ROWS:
        return _is_row(value, origin, get_args(hint))
    kind = origin or hint
    if kind is Callable:
        return callable(value)
    return isinstance(value, kind) if isinstance(kind, type) else True


def _is_row(value: object, kind: Any, of: tuple[Any, ...]) -> bool:
    """Whether a value is a sequence of values of a type; a text is not a sequence of letters."""
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return False
    if getattr(value, "ndim", 1) == 0:
        return False  # an array of no dimension has no values to go through
    if not hasattr(value, "__len__"):
        return kind is Iterable  # an iterator must not be used up
    if kind is Sequence and (hasattr(value, "columns") or not hasattr(value, "__getitem__")):
        return False  # a data frame is a sequence of names only by accident
    return all(any(_fits(one, option) for option in _options(of[0])) for one in value)


def _where(value: object, options: Iterable[Any]) -> str:
    """Name the value of a list that does not fit, or the way from a frame to a list."""
    rows = [option for option in options if get_origin(option) in ROWS]
    if rows and hasattr(value, "columns"):
        return "; give one of its columns"
    for option in rows:
        kind, of = get_origin(option), get_args(option)
        if _is_row(value, kind, (Any,)):
            kinds = _options(of[0])
            for place, one in enumerate(cast(Iterable[object], value)):
                if not any(_fits(one, kind) for kind in kinds):
                    return f"; value {place + 1} of it is {_shown(one)}"
    return ""


def _words(options: Iterable[Any]) -> str:
    """Say in words what is accepted."""
    plain = {int: "a whole number", float: "a number", str: "a text", bool: "True or False"}
    plain[Any] = "a value"
    words: list[str] = []
    for option in options:
        origin = get_origin(option)
        if origin is os.PathLike:
            words[-1:] = ["a path"]  # in place of the text before it
        elif isinstance(option, str):
            words.append(option)
        elif option in plain:
            words.append(plain[option])
        elif origin in ROWS:
            words.append("a list of " + _many(_words(_options(get_args(option)[0]))))
        else:
            name = getattr(origin or option, "__name__", str(option))
            name = "dict" if name == "Mapping" else name
            maker = f" (from {MADE_BY[name]})" if name in MADE_BY else ""
            words.append(f"{'an' if name[0] in 'AEIO' else 'a'} {name}{maker}")
    return " or ".join(dict.fromkeys(words))


def _many(words: str) -> str:
    """Return the words of `_words` in the plural: ``a number or a text``, ``numbers or texts``."""
    return re.sub(r"\ban? (whole number|\w+)", r"\1s", words)


def _shown(value: object) -> str:
    """Show a value, or only its type where it is long."""
    text = repr(value)
    return text if len(text) <= 60 and "\n" not in text else f"a {type(value).__name__}"
