"""The house: each room imports only rooms that stand before it, and no rooms import each other."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
HOUSE = ROOT / "bayes_sdc"

# in the order that data walks through them; a room is a folder, or a module that stands alone
STAGES = {
    "bayes_sdc": [
        "errors arguments seeds cores compiled progress html",
        "convergence checks results nuts models",
        "locks",
        "runs",
        "io",
        "agency_limits",
        "policy shapes",
        "flows microdata",
        "irs",
        "plots",
        "report",
        "jobs",
        "commands",
        "cli",
    ],
    "bayes_sdc.flows": [
        "table",
        "model",
        "gibbs",
        "fit",
        "release",
        "audit",
        "intruder",
        "fitting",
        "kept_columns",
        "diagnostics cross_validation leaks limits forecast guarantee tainted compiling",
        "protection",
        "job",
    ],
    "bayes_sdc.microdata": [
        "posterior file",
        "individual size_models special_uniques lancaster",
        "latent_classes loglinear",
        "treatment",
        "uniques",
        "patience",
        "comparison limits",
        "measure",
    ],
}


def module_of(path: Path) -> str:
    """Dotted name of a source file."""
    parts = ["bayes_sdc", *path.relative_to(HOUSE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(HOUSE.rglob("*.py"))}


def imports(module: str) -> Iterator[str]:
    """Modules of the package that a module imports, those inside functions among them."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayes_sdc"):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else str(node.module)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("bayes_sdc."))


def room(module: str, house: str) -> str | None:
    """Return the room of a house that a module stands in."""
    inside = module.removeprefix(house + ".")
    return None if inside == module else inside.split(".")[0]


@pytest.mark.parametrize("house", STAGES)
def test_every_room_has_its_place(house: str) -> None:
    """A new room that nobody put into the order could import anything."""
    rooms = {room(module, house) for module in MODULES} - {None}
    assert rooms <= set(" ".join(STAGES[house]).split())


@pytest.mark.parametrize("house", STAGES)
def test_no_room_imports_a_later_one(house: str) -> None:
    floor = {name: k for k, names in enumerate(STAGES[house]) for name in names.split()}
    wrong = []
    for module in MODULES:
        here = room(module, house)
        for imported in imports(module) if here is not None else ():
            there = room(imported, house)
            if there not in (None, here) and floor[str(there)] > floor[str(here)]:
                wrong.append(f"{module} imports {imported}")
    assert not wrong


def folders(module: str) -> str:
    """Return the folder of a module, or the module itself where it is a room alone."""
    path = MODULES[module]
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def test_no_folders_import_each_other() -> None:
    """Rooms in a circle cannot be understood, tested or moved one by one."""
    arrows: dict[str, set[str]] = {}
    for module in MODULES:
        here = folders(module)
        for imported in imports(module):
            there = folders(imported) if imported in MODULES else here
            # what stands in a house sees its rooms, so only folders beside each other count
            if there != here and not f"{there}.".startswith(f"{here}."):
                arrows.setdefault(here, set()).add(there)

    def walk(path: list[str]) -> list[str] | None:
        for there in sorted(arrows.get(path[-1], ())):
            if there in path:
                return [*path[path.index(there) :], there]
            if there not in seen:
                seen.add(there)
                if (circle := walk([*path, there])) is not None:
                    return circle
        return None

    for start in sorted(arrows):
        seen: set[str] = set()
        circle = walk([start])
        assert circle is None, " -> ".join(circle or [])


def test_no_modules_import_each_other() -> None:
    """A circle of modules works only in the order in which they happen to be imported."""
    state: dict[str, bool] = {}

    def walk(path: list[str]) -> None:
        module = path[-1]
        if state.get(module):
            return
        assert module not in path[:-1], " -> ".join(path)
        for imported in imports(module):
            if imported in MODULES and imported != module:
                walk([*path, imported])
        state[module] = True

    for module in MODULES:
        walk([module])


def test_the_order_is_an_order() -> None:
    """No room is named twice."""
    for stages in STAGES.values():
        names = " ".join(stages).split()
        assert len(names) == len(set(names))
        assert all(a != b for a, b in pairwise(names))
