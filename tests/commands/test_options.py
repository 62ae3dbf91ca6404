"""Lists of columns as people type them, and as a shell splits them."""

import ast
import inspect
import sys
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc.cli import EXAMPLES, main
from bayes_sdc.commands.options import (
    as_typed,
    columns,
    joined_lists,
    named_once,
    numbers,
    pairs,
    some_columns,
    whole_numbers,
)
from bayes_sdc.errors import InputError


@pytest.mark.parametrize(
    "typed", ["region,sex,age", "region, sex, age", " region ,sex,  age", "region,sex,age,"]
)
def test_blanks_after_commas_are_no_part_of_a_column(typed: str) -> None:
    assert columns(typed) == ["region", "sex", "age"]


def test_a_blank_within_a_name_stays() -> None:
    assert columns("birth place, age") == ["birth place", "age"]
    assert columns("") == columns(" , ") == []


@pytest.mark.parametrize("split", [some_columns, numbers, whole_numbers])
def test_an_option_that_names_nothing_is_refused(split) -> None:
    """A variable of a shell that is empty would take away what the run was to heed."""
    assert split(None, "--some") == []
    for nothing in ("", " ", ",", " , "):
        with pytest.raises(InputError, match=r"^--some .*it is '"):
            split(nothing, "--some")


def test_a_name_with_two_values_is_refused() -> None:
    """The second would replace the first without a word."""
    assert named_once(["a=x", "b=x"], "--bands") == {"a": "x", "b": "x"}
    assert named_once(None, "--bands") == {}
    with pytest.raises(InputError, match="--bands names 'a' twice"):
        named_once(["a=x", "b=x", "a=y"], "--bands")


@pytest.mark.parametrize(
    ("split", "joined"),
    [
        (["--keys", "a,", "b,", "c", "--out", "x"], ["--keys", "a,b,c", "--out", "x"]),
        (["--keys", "a,b", "--out", "x"], ["--keys", "a,b", "--out", "x"]),
        (["--keys", "a,", "--out", "x"], ["--keys", "a,", "--out", "x"]),
        (["--key-set", "two=a,", "b"], ["--key-set", "two=a,b"]),
        ([], []),
    ],
)
def test_a_list_that_the_shell_split_is_joined(split: list[str], joined: list[str]) -> None:
    """Else the second name is called an unexpected argument."""
    assert joined_lists(split) == joined


def test_pairs_are_split_at_the_last_sign() -> None:
    assert pairs(["a=b=9", "c= x"], "--missing-code") == [("a=b", "9"), ("c", " x")]
    assert pairs(None, "--missing-code") == []
    with pytest.raises(InputError, match="--missing-code must look like NAME=VALUE; it is 'age'"):
        pairs(["age"], "--missing-code")


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.__name__)
def test_no_option_is_taken_and_forgotten(command):
    """An option that does nothing is a promise that is not kept: --threshold-column was one."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(command))))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    options = {one.arg for one in (*function.args.args, *function.args.kwonlyargs)}
    used = {
        node.id for line in function.body for node in ast.walk(line) if isinstance(node, ast.Name)
    }
    assert options <= used


BROKEN = st.text(st.sampled_from("a=,\udc80\udcff"), min_size=1).filter(lambda t: not t.isascii())


@given(st.sampled_from(["microdata", "flows", "audit"]), BROKEN, st.booleans())
def test_bytes_that_are_no_text_are_refused_in_every_argument(command, broken, joined):
    """A run of hours ended in a traceback where its last table was written."""
    option = [f"--any={broken}"] if joined else ["--any", broken]
    with pytest.raises(InputError, match=r"^(--any|the argument) '.* is not valid UTF-8 from sign"):
        as_typed([command, "file.csv", *option, "--out", "run"])
    with pytest.raises(InputError, match=r"^the argument '.* is not valid UTF-8 from sign"):
        as_typed([command, broken, "--out", "run"])
    assert as_typed([command, "é.csv", "--out", "Zürich"]) == [command, "é.csv", "--out", "Zürich"]


@pytest.mark.parametrize("command", EXAMPLES, ids=lambda command: command.__name__)
def test_the_command_refuses_them_before_any_work(command, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["bayes-sdc", command.__name__, "--key-set", "\udcff=a,b"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: --key-set '\\udcff=a,b' is not valid UTF-8")
