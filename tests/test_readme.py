"""What README and notebooks tell a reader to type exists, and is public."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer

import bayes_sdc
from bayes_sdc.cli import app

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))
# models are files of their own, thresholds of the IRS are a table, limits are judged by policies
ROOMS = ("bayes_sdc.models", "bayes_sdc.irs.thresholds", "bayes_sdc.flows.limits")


def test_the_readme_can_be_read_in_one_go() -> None:
    assert len(README.splitlines()) <= 180


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def imported(source: str) -> list[tuple[str, str]]:
    """Module and name of everything that is imported from the package."""
    return [
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bayes_sdc")
        for alias in node.names
    ]


@pytest.mark.parametrize(
    ("where", "source"),
    [("README", block) for block in blocks("python")]
    + [(path.stem, path.read_text(encoding="utf-8")) for path in NOTEBOOKS],
    ids=[f"README-{i}" for i in range(len(blocks("python")))] + [path.stem for path in NOTEBOOKS],
)
def test_names_that_a_reader_is_shown_are_public(where: str, source: str) -> None:
    """A private name moves with the next tidying, and the reader's script breaks."""
    for module, name in imported(source):
        if not module.startswith(ROOMS) and f"{module}.{name}" not in ROOMS:
            assert module == "bayes_sdc", f"{where}: {module}.{name}"
            assert name in [*bayes_sdc.__all__, "models"], f"{where}: {name}"


def test_every_command_of_the_readme_has_these_options() -> None:
    commands = typer.main.get_command(app).commands
    lines = re.findall(r"bayes-sdc (.*)", "".join(blocks("sh")).replace("\\\n", " "))
    assert len(lines) >= 3
    for line in lines:
        name, *rest = shlex.split(line)
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {part for part in rest if part.startswith("--")} <= known, line


def test_links_of_the_readme_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target
