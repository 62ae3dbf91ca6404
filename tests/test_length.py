"""Modules of one idea, functions that can be read without scrolling and called without counting."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES, MOST_PARAMETERS, MOST_OF_A_MODULE = 60, 10, 400

# public signatures that are fixed, and what only hands options on
MANY_PARAMETERS = {
    "flows.job.protect.protect_flows": "the job: what can be asked of it, in one call",
    "flows.fitting.fit_flows": "public and fixed",
    "flows.intruder.measure.intruder_risk": "public and fixed",
    "commands.flows.flows": "the options of a command",
    "commands.microdata.microdata": "the options of a command",
    "commands.audit.audit": "the options of a command",
    "flows.audit.holes.audit_holes": "public and fixed",
    "microdata.treatment.treat.treat": "the treatments: what can be asked of one, in one call",
    "jobs.flows.run_flows": "the options of a command, in groups",
    "jobs.microdata.run_microdata": "the options of a command, in groups",
    "models.migration.build": "public and fixed: what a model of the user must take as well",
}

LONG = {
    "commands.flows.flows": "a dictionary of the options, one per line",
    "models.migration.build": "the model, to be read from top to bottom",
    # loops stand for expressions of whole arrays, each of which takes seconds to compile
    "flows.gibbs.national.move_nation": "a kernel",
    # its steps share a dozen numbers, and a call for each of millions of cells costs time
    "models.truncated._log_probability": "a kernel",
}

LONG_MODULES = {
    "models.migration": "stands alone: one model, to be read from top to bottom",
}


def modules() -> Iterator[tuple[str, Path]]:
    """Name and file of every module of the package and of its models."""
    for folder in ("bayes_sdc", "models"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(parts).removeprefix("bayes_sdc."), path


@functools.cache  # when a test asks: every process that collects tests loads this file
def functions() -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Name and definition of every function of the package and of its models."""
    return [
        (f"{module}.{node.name}", node)
        for module, path in modules()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, the docstring left out."""
    body = function.body
    if ast.get_docstring(function) is not None:
        body = body[1:]
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def is_kernel(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether Numba compiles it: arrays are handed over one by one, which keeps the loop fast."""
    return any(
        "njit" in ast.dump(one) or "compiled" in ast.dump(one) for one in function.decorator_list
    )


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters of a function, self and cls left out."""
    given = function.args
    named = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len([name for name in named if name not in ("self", "cls")])


def test_a_module_holds_one_idea() -> None:
    """Beyond some 400 lines there is a second one in it, and the reader has to find where."""
    long = {
        name
        for name, path in modules()
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_OF_A_MODULE
    }
    assert long == set(LONG_MODULES), "take them apart where an idea ends"


def test_a_body_fits_on_a_screen() -> None:
    long = {name: length(node) for name, node in functions() if length(node) > MOST_LINES}
    assert set(long) == set(LONG), "take them apart"


def test_parameters_can_be_kept_in_mind() -> None:
    many = {
        name: parameters(node)
        for name, node in functions()
        if parameters(node) > MOST_PARAMETERS and not is_kernel(node)
    }
    assert set(many) <= set(MANY_PARAMETERS), "pass an object on"


@pytest.mark.parametrize("name", MANY_PARAMETERS)
def test_exceptions_are_still_needed(name: str) -> None:
    """An exception that nobody needs hides the next one."""
    (count,) = [parameters(node) for other, node in functions() if other == name]
    assert count > MOST_PARAMETERS
