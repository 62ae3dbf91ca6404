"""What a kernel must not hold, because each of it costs a new user seconds of compiling."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Functions of numpy that bring dozens of numba's own with them.
DEAR = {
    "any", "all", "argsort", "concatenate", "median", "percentile", "quantile", "searchsorted",
    "sort", "sorted", "unique", "einsum", "dot", "column_stack", "stack", "clip", "where",
}  # fmt: skip
#: What stands in the kernels today and pays for itself; not to grow without a measurement.
KNOWN = {
    ("bayes_sdc/flows/gibbs/newton.py::sweep_group", "any"),
    ("bayes_sdc/flows/gibbs/newton_step.py::root_of", "raise"),
    ("bayes_sdc/flows/gibbs/newton_step.py::root_of", "text"),
    ("bayes_sdc/flows/intruder/totals/cycles.py::release_given_cycles", "copy"),
    ("bayes_sdc/flows/intruder/probabilities/pareto.py::largest_values", "sort"),
    ("bayes_sdc/flows/intruder/probabilities/pareto.py::smooth", "any"),
    ("bayes_sdc/flows/intruder/probabilities/pareto.py::smooth", "argsort"),
    ("bayes_sdc/flows/intruder/estimators/refit.py::run_engine", "searchsorted"),
    ("bayes_sdc/flows/intruder/estimators/refit.py::run_engine", "text"),
    ("bayes_sdc/microdata/treatment/matching.py::weigh", "searchsorted"),
    ("bayes_sdc/microdata/treatment/matching.py::weigh", "text"),
}


def kernels() -> Iterator[tuple[str, ast.FunctionDef]]:
    """Every function that numba compiles, with its place."""
    for path in sorted((ROOT / "bayes_sdc").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "numba" not in text and "compiled" not in text and "inlined" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                marks = " ".join(ast.unparse(mark) for mark in node.decorator_list)
                names = ("njit", "compiled", "inlined", "vectorized", "vectorised")
                if any(name in marks for name in names):
                    yield f"{path.relative_to(ROOT)}::{node.name}", node


def copies(target: ast.expr) -> bool:
    """Whether a part of an array is written: ``x[2:5] = y`` may fail, with a text that says how."""
    return isinstance(target, ast.Subscript) and any(
        isinstance(part, ast.Slice) for part in ast.walk(target.slice)
    )


def dear(kernel: ast.FunctionDef) -> Iterator[str]:
    """What of a kernel brings much that is compiled with it."""
    body = kernel.body[1:] if ast.get_docstring(kernel) else kernel.body
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Raise | ast.Assert):
            yield "raise"
        elif isinstance(node, ast.JoinedStr) or (
            isinstance(node, ast.Constant) and isinstance(node.value, str)
        ):
            yield "text"
        elif isinstance(node, ast.Assign) and any(copies(target) for target in node.targets):
            if not isinstance(node.value, ast.Constant | ast.UnaryOp):
                yield "copy"
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else ast.unparse(called)
            if name in DEAR:
                yield name


def test_no_kernel_holds_text_sorting_or_what_else_is_dear() -> None:
    """A sort or the text of an error is compiled with every caller, longer than the kernel."""
    found = {(place, what) for place, kernel in kernels() for what in dear(kernel)}
    assert found - KNOWN == set()
    assert KNOWN - found == set(), "strike out what is gone"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("x.sort()", "sort"),
        ("y = f'{x}'", "text"),
        ("raise ValueError", "raise"),
        ("x[1:] = y", "copy"),
        ("x[:] = 0.0", ""),
        ("x += 1", ""),
    ],
)
def test_what_is_dear_is_found(line: str, what: str) -> None:
    kernel = ast.parse(f"def kernel(x):\n    'Say what it does.'\n    {line}").body[0]
    assert isinstance(kernel, ast.FunctionDef)
    assert set(dear(kernel)) == ({what} if what else set())


def test_there_are_kernels_to_look_at() -> None:
    assert len(list(kernels())) > 100
