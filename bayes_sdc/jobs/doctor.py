"""Whether this machine has what the jobs need, and what would be slow on it."""

import importlib.resources
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple

from bayes_sdc.cores import threads

PACKAGE = "bayes-sdc"
ENOUGH_MEMORY = 4.0  # GiB; the example needs 1, a whole country 5
EXTRAS = {
    "pyreadstat": "Stata, SPSS and SAS files",
    "distributed": "fits on a cluster",
    "xlrd": "workbooks of the IRS",
    "ipywidgets": "progress bars in notebooks",
}
FILES = ("data/example_flows.csv", "data/example_persons.csv", "report/page.html")


class Finding(NamedTuple):
    """One thing that was looked at."""

    verdict: Literal["ok", "slow", "missing"]
    text: str

    def __str__(self) -> str:
        """Return the line for the console."""
        return (
            f"{self.verdict.upper() if self.verdict == 'missing' else self.verdict:<8} {self.text}"
        )


def examine() -> list[Finding]:
    """Look at versions, compiler, cores, memory and caches.

    Returns
    -------
    list of Finding
        ``missing`` for what no job can do without, ``slow`` for what costs time, ``ok`` else.
    """
    return [
        Finding("ok", f"Python {platform.python_version()} on {platform.platform()}"),
        *judge_packages(requires(PACKAGE) or []),
        _extras(),
        _files(),
        judge_compiler(_compile),
        _cpp(),
        judge_cores(threads(None)),
        judge_memory(memory()),
        *judge_caches(cache_folders()),
        judge_kernels(Path(__file__).parents[1]),
        judge_temporary(Path(tempfile.gettempdir())),
    ]


def judge_packages(requirements: Iterable[str]) -> list[Finding]:
    """Required packages and their versions; one that is absent or too old is missing."""
    from packaging.requirements import Requirement

    there, wrong = [f"{PACKAGE} {_version(PACKAGE)}"], []
    for requirement in map(Requirement, requirements):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = _version(requirement.name)
        if found is None:
            wrong.append(f"{requirement} is not installed")
        elif not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement} is needed, {found} is installed")
        else:
            there.append(f"{requirement.name} {found}")
    return [
        Finding("ok", f"packages: {', '.join(there)}"),
        *(
            Finding("missing", f'{what}: python -m pip install "{re.split(" is ", what)[0]}"')
            for what in wrong
        ),
    ]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _extras() -> Finding:
    found = [
        f"{name} {number}" if number else f"{name} is not installed ({what})"
        for name, what in EXTRAS.items()
        for number in [_version(name)]
    ]
    return Finding("ok", f"extras: {', '.join(found)}")


def _files() -> Finding:
    root = importlib.resources.files("bayes_sdc")
    gone = [name for name in FILES if not root.joinpath(name).is_file()]
    if gone:
        return Finding("missing", f"files of the package: {', '.join(gone)}: install it again")
    return Finding("ok", "files of the package: complete")


def _compile() -> float:
    """Compile a small function, and return the seconds it took."""
    import numba

    start = monotonic()
    if numba.njit(lambda x: x + 1)(1) != 2:
        raise RuntimeError("a compiled function gives a wrong answer")
    return monotonic() - start


def judge_compiler(compiles: Callable[[], float]) -> Finding:
    """Judge whether numba compiles, with the seconds it takes."""
    try:
        seconds = compiles()
    except Exception as error:  # whatever it is, no job can run
        return Finding("missing", f"compiler: numba cannot compile ({error}): install it again")
    numbers = f"numba {_version('numba')}, llvmlite {_version('llvmlite')}"
    return Finding("ok", f"compiler: {numbers}; a small function took {seconds:.1f} s")


def _cpp() -> Finding:
    found = next(filter(None, map(shutil.which, ("g++", "clang++"))), None)
    return Finding("ok", f"C++ compiler: {found or 'none'} (not needed)")


def judge_cores(cores: int) -> Finding:
    """Judge the number of cores."""
    if cores < 2:
        return Finding("slow", "cores: 1; chains run one after the other")
    return Finding("ok", f"cores: {cores}")


def memory() -> float | None:
    """Return the memory of this machine in GiB, or None where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def judge_memory(gib: float | None) -> Finding:
    """Judge the memory, where it is known."""
    if gib is None:
        return Finding("ok", "memory: unknown on this system")
    if gib < ENOUGH_MEMORY:
        return Finding("slow", f"memory: {gib:.1f} GiB; too little for a whole country")
    return Finding("ok", f"memory: {gib:.1f} GiB")


def cache_folders() -> dict[str, list[Path]]:
    """Folders where compiled code is kept; of each kind the first that is writable is used."""
    home = Path.home()
    named = os.environ.get("NUMBA_CACHE_DIR")
    beside = Path(__file__).parent / "__pycache__"
    kernels = [Path(named)] if named else [beside, home / ".cache" / "numba"]
    flags = re.search(r"base_compiledir=([^,]+)", os.environ.get("PYTENSOR_FLAGS", ""))
    return {
        "the package's own code": kernels,
        "PyTensor's code": [Path(flags[1]) if flags else home / ".pytensor"],
    }


def judge_caches(folders: dict[str, list[Path]]) -> list[Finding]:
    """Judge whether compiled code can be kept."""
    found = []
    for what, places in folders.items():
        place = next(filter(_writable, places), None)
        if place is None:
            text = (
                f"cache of {what}: {places[0]} is not writable, so every run compiles it again, "
                "which takes minutes"
            )
            found.append(Finding("slow", text))
        else:
            found.append(Finding("ok", f"cache of {what}: {place}"))
    return found


def judge_kernels(package: Path) -> Finding:
    """Tell whether compiled code of an earlier run is there."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    if any(Path(named or package).rglob("*.nbi")):
        return Finding("ok", "compiled code: kept from an earlier run")
    return Finding("slow", "compiled code: none yet; the first run compiles for some minutes")


def judge_temporary(folder: Path) -> Finding:
    """Judge whether temporary files can be written."""
    if not _writable(folder):
        return Finding("missing", f"folder for temporary files: {folder} is not writable")
    return Finding("ok", f"folder for temporary files: {folder}")


def _writable(folder: Path) -> bool:
    """Tell whether a folder can be written, or made."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    return there is not None and there.is_dir() and os.access(there, os.W_OK | os.X_OK)


def verdict_line(findings: list[Finding]) -> str:
    """Sum up the findings in one line.

    Examples
    --------
    >>> verdict_line([Finding("ok", "cores: 2"), Finding("slow", "memory: 1.0 GiB")])
    'everything needed is here; 1 thing makes runs slower'
    """
    missing = sum(finding.verdict == "missing" for finding in findings)
    slow = sum(finding.verdict == "slow" for finding in findings)
    if missing:
        return f"{missing} thing{'s' * (missing > 1)} that the jobs need: missing"
    more = f"; {slow} thing{'s' * (slow > 1)} make{'s' * (slow == 1)} runs slower" if slow else ""
    return f"everything needed is here{more}"
