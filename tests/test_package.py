"""The package as a whole: what is installed, what is public, what it must not hold."""

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import bayes_sdc

ROOT = Path(__file__).resolve().parent.parent


def test_every_package_folder_is_listed_for_installation() -> None:
    """A folder that pyproject does not list is missing from the wheel, and only there."""
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(setup["tool"]["setuptools"]["packages"])
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "bayes_sdc").rglob("__init__.py")
    }
    folders |= {
        "bayes_sdc." + ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "models").rglob("__init__.py")
    }
    assert listed == folders


def test_models_are_imported_from_the_folder_beside_the_package_or_from_the_wheel() -> None:
    module = importlib.import_module("bayes_sdc.models.migration")
    assert module.__file__ is not None
    folder = Path(module.__file__).parent
    assert folder.name == "models"
    assert folder.parent in (ROOT, Path(bayes_sdc.__file__).parent)


@pytest.mark.parametrize("name", bayes_sdc.__all__)
def test_public_names_are_documented_with_an_example(name: str) -> None:
    """``help()`` of every public function must be enough to use it."""
    public = getattr(bayes_sdc, name)
    text = inspect.getdoc(public) or ""
    assert len(text) > 20
    if inspect.isfunction(public):
        takes = ("Parameters", "Raises") if inspect.signature(public).parameters else ()
        for heading in ("Returns", *takes):
            assert f"{heading}\n---" in text, heading
        assert ">>>" in text
    elif inspect.isclass(public) and not issubclass(public, Exception):
        assert "Parameters\n---" in text
        assert "ade by " in text or ">>>" in text, "where does one get it?"


def test_importing_the_package_imports_no_slow_library() -> None:
    """These take seconds to import; ``bayes-sdc --help`` and reading a table should not."""
    code = (
        "import sys, bayes_sdc, bayes_sdc.cli\n"
        "sys.exit(bool({'pymc', 'matplotlib', 'arviz_plots', 'IPython'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_module_imports_scipy_stats() -> None:
    """It takes half a second of every start; ``scipy.special`` has what is needed."""
    found = re.compile(r"^\s*(from scipy import .*\bstats\b|(from|import) scipy\.stats)", re.M)
    paths = [path for room in ("bayes_sdc", "models") for path in (ROOT / room).rglob("*.py")]
    assert [path for path in paths if found.search(path.read_text("utf-8"))] == []


def test_every_plot_of_the_package_can_be_reached_by_its_name() -> None:
    """A name that is listed but imported lazily may be misspelt without anybody noticing."""
    public = {name for name in bayes_sdc.__all__ if name.startswith("plot_")}
    assert public <= set(dir(bayes_sdc))
    for name in public:
        assert getattr(bayes_sdc, name) is getattr(importlib.import_module("bayes_sdc.plots"), name)
    with pytest.raises(AttributeError, match="plot_nothing"):
        bayes_sdc.plot_nothing  # noqa: B018


PUBLIC_FUNCTIONS = [n for n in bayes_sdc.__all__ if inspect.isfunction(getattr(bayes_sdc, n))]
# these read, make up, hand over or draw; what they draw is explained where it is computed
NOT_STATISTICAL = ("read_", "example_", "simulate_", "plot_", "with_covariates", "allowed_cells")


def section(name: str, heading: str) -> str:
    """Text of a section of the docstring of a public function; empty without one."""
    text = inspect.getdoc(getattr(bayes_sdc, name)) or ""
    found = re.search(rf"^{heading}\n-+\n(.*?)(?=\n\n[A-Z][A-Za-z ]*\n---|\Z)", text, re.S | re.M)
    return found.group(1) if found else ""


@pytest.mark.parametrize("name", PUBLIC_FUNCTIONS)
def test_functions_name_public_neighbours(name: str) -> None:
    """A link to a private or renamed function leads nowhere."""
    named = re.findall(r"bayes_sdc\.(\w+)", section(name, "See Also"))
    assert named
    assert name not in named
    assert set(named) <= set(bayes_sdc.__all__)


@pytest.mark.parametrize("name", [n for n in PUBLIC_FUNCTIONS if not n.startswith(NOT_STATISTICAL)])
def test_statistical_functions_say_where_the_method_is_from(name: str) -> None:
    assert section(name, "References")


# of the reports as a whole, in a browser and number by number
WHOLE_ROOMS = {"report/test_browser.py", "report/test_shown_numbers.py"}


def test_test_files_are_named_for_what_they_test() -> None:
    """Anyone who changes a module looks for its tests under the same path in tests/."""
    folders = {"models": ROOT / "models"}
    lost = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT / "tests")
        room = str(place.parent)
        if room.split("/")[0] in (".", "benchmarks", "validation") or str(place) in WHOLE_ROOMS:
            continue
        modules = folders.get(room, ROOT / "bayes_sdc" / room).glob("*.py")
        named = place.stem.removeprefix("test_")
        if not any(named == m.stem or named.startswith(f"{m.stem}_") for m in modules):
            lost.append(str(place))
    assert not lost
