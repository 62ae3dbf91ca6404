"""Policies: what is read, what is refused, and when a limit is exceeded."""

import dataclasses
import datetime
import json
import operator
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import FlowLimits, InputError, MicrodataLimits, Policy, protect_flows, read_flows
from bayes_sdc.flows.intruder.comparing.choosing import Choice
from bayes_sdc.flows.intruder.result import IntruderRisk
from bayes_sdc.flows.intruder.share import Share
from bayes_sdc.flows.limits import check_limits, worse_checks
from bayes_sdc.policy import LimitCheck, read_policy
from bayes_sdc.report.policy_limits import tell_limit

DAY = datetime.date(2026, 1, 15)
HEAD = 'name = "Board"\ndate = 2026-01-15\n'


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "policy.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ---- reading ---------------------------------------------------------------------------------


@pytest.mark.parametrize("days", [2, 365, 300_000])
def test_a_policy_from_the_future_is_refused(tmp_path: Path, days: int) -> None:
    """Nobody has decided it yet, and the reports would name it with that date."""
    today = datetime.datetime.now(datetime.UTC).date()
    day = today + datetime.timedelta(days=days)
    text = 'name = "B"\ndate = {}\n[flows]\nr_all = 0.5\n'
    with pytest.raises(InputError, match=f"{day.isoformat()} is in the future"):
        read_policy(written(tmp_path, text.format(day)))
    for known in (today, datetime.date(1990, 1, 1)):
        assert read_policy(written(tmp_path, text.format(known))).date == known


@pytest.mark.parametrize("marks", [1, 2])
def test_marks_of_byte_order_are_no_part_of_a_policy(tmp_path: Path, marks: int) -> None:
    """Two joined files begin with two of them, and the first name would be unknown."""
    text = "\ufeff" * marks + f"{HEAD}[flows]\nr_all = 0.5\n"
    assert read_policy(written(tmp_path, text)).date == DAY


def test_every_key_is_read(tmp_path: Path) -> None:
    text = f"""{HEAD}
    [flows]
    r_all = 0.30  # a comment
    r_unq = 0
    true_count_probability = 0.95
    [microdata]
    k = 3
    record_risk = 0.2
    file_risk = 1e-2
    """
    assert read_policy(written(tmp_path, text)) == Policy(
        "Board",
        DAY,
        FlowLimits(r_all=0.3, r_unq=0.0, true_count_probability=0.95),
        MicrodataLimits(k=3, record_risk=0.2, file_risk=0.01),
    )


def test_what_is_left_out_is_no_limit(tmp_path: Path) -> None:
    policy = read_policy(written(tmp_path, HEAD + "[flows]\nr_unq = 0.6\n"))
    assert policy.flows == FlowLimits(r_unq=0.6)
    assert policy.flows.r_all is None
    assert policy.microdata is None


def test_byte_order_mark_and_line_ends_of_windows(tmp_path: Path) -> None:
    text = HEAD.replace("Board", "Größe") + "[microdata]\nk = 5\n"
    data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert read_policy(str(written(tmp_path, data))).name == "Größe"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no name; add a line such as name ="),
        ("date = 2026-01-15\n[microdata]\nk = 3", "no name"),
        ('name = "Board"\n[microdata]\nk = 3', "no date; add a line such as date = 2026-01-15"),
        (HEAD, "holds no limit; add a section"),
        (HEAD + "[flows]", r"\[flows\] holds no limit; give one of r_all, r_unq, true_count"),
        (HEAD + "[flows]\nr_all = 0.3\n[microdata]", r"\[microdata\] holds no limit"),
        (HEAD + "[flow]\nr_all = 0.3", "'flow' is unknown; choose from name, date, flows, micro"),
        (HEAD + "k = 3", "'k' is unknown"),
        (HEAD + "[flows]\nr_al = 0.3", r"\[flows\] 'r_al' is unknown; choose from r_all, r_unq"),
        (HEAD + "[flows]\nk = 3", r"\[flows\] 'k' is unknown"),
        (HEAD + "[microdata]\nmax_k = 3", r"\[microdata\] 'max_k' is unknown; choose from k"),
        (HEAD + "flows = 0.3", r"flows must be one section, \[flows\].*it is 0.3"),
        (HEAD + "[[flows]]\nr_all = 0.3", "flows must be one section"),
        (HEAD + "[flows]\nr_all = 30", "r_all must be a share .*as 0.3 for 30 %; it is 30"),
        (HEAD + "[flows]\nr_all = 1", "it is 1"),
        (HEAD + "[flows]\nr_all = -0.1", "it is -0.1"),
        (HEAD + "[flows]\nr_unq = nan", "it is nan"),
        (HEAD + "[flows]\nr_unq = inf", "it is inf"),
        (HEAD + '[flows]\nr_unq = "0.6"', "it is '0.6'"),
        (HEAD + "[flows]\ntrue_count_probability = true", "true_count_probability .*it is True"),
        (HEAD + "[microdata]\nk = 3.0", "k must be a whole number from 2; it is 3.0"),
        (HEAD + "[microdata]\nk = 1", "it is 1"),
        (HEAD + "[microdata]\nk = true", "it is True"),
        (HEAD + '[microdata]\nk = "3"', "it is '3'"),
        (HEAD + "[microdata]\nrecord_risk = 1.5", "record_risk .*it is 1.5"),
        (HEAD + "[microdata]\nfile_risk = []", "file_risk .*it is \\[\\]"),
        (HEAD.replace('"Board"', '" "') + "[microdata]\nk = 3", "name must be one line"),
        (HEAD.replace('"Board"', '"a\\nb"') + "[microdata]\nk = 3", "name must be one line"),
        (HEAD.replace('"Board"', "3") + "[microdata]\nk = 3", "name must be .*it is 3"),
        (HEAD.replace("2026-01-15", '"2026-01-15"') + "[microdata]\nk = 3", "without quotes"),
        (HEAD.replace("2026-01-15", "2026") + "[microdata]\nk = 3", "date must be .*it is 2026"),
        (HEAD.replace("15", "15T08:00:00Z") + "[microdata]\nk = 3", "it is 2026-01-15T08"),
        (HEAD.replace("01-15", "13-45") + "[microdata]\nk = 3", "not valid TOML"),
        (HEAD + "[microdata]\nk = 3\nk = 5", "not valid TOML"),
        (HEAD + "[microdata]\nk: 3", "not valid TOML"),
        (HEAD.replace("Board", "Größe").encode("latin-1"), "save it as UTF-8"),
        (HEAD.encode("utf-16"), "save it as UTF-8"),
    ],
)
def test_a_policy_that_cannot_be_used_is_refused(
    text: str | bytes, words: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=words) as refused:
        read_policy(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_the_example_of_the_readme_is_a_policy(tmp_path: Path) -> None:
    readme = Path(__file__).resolve().parent.parent / "README.md"
    (example,) = re.findall(r"```toml\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    policy = read_policy(written(tmp_path, example))
    text = readme.read_text(encoding="utf-8")
    every = {**vars(policy.for_flows()), **vars(policy.for_microdata())}
    for name, value in every.items():
        assert value is not None or f"`{name}`" in text, f"{name} is in no example and no sentence"


@pytest.mark.parametrize(
    ("name", "said"),
    [("nothing.toml", "nothing.toml: cannot be read"), (".", "is a folder; name a file")],
)
def test_a_file_that_cannot_be_opened(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_policy(tmp_path / name)
    assert said in str(refused.value)
    assert "TOML" not in str(refused.value), "what could not be read is not said to be wrong"


def test_limits_made_in_python_are_checked_as_well() -> None:
    for make in (
        FlowLimits,
        MicrodataLimits,
        lambda: FlowLimits(r_all=2),
        lambda: MicrodataLimits(k=0),
        lambda: Policy("Board", DAY),
        lambda: Policy("", DAY, FlowLimits(r_all=0.3)),
    ):
        with pytest.raises(InputError):
            make()


# ---- judging ---------------------------------------------------------------------------------

POLICY = Policy("Board", DAY, FlowLimits(r_all=0.3), MicrodataLimits(k=3))


@pytest.mark.parametrize(
    ("key", "limit", "value", "verdict", "relation"),
    [
        ("r_all", 0.3, 3 / 10, "pass", "0.3 <= 0.3"),
        ("r_all", 0.3, np.nextafter(0.3, 1), "fail", "0.3 > 0.3"),
        ("r_all", 0.3, 0.0, "pass", "0 <= 0.3"),
        ("r_unq", 0.0, 0.0, "pass", "0 <= 0"),
        ("k", 3, 3, "pass", "3 >= 3"),
        ("k", 3, 2, "fail", "2 < 3"),
        ("k", 3, 4, "pass", "4 >= 3"),
        ("r_unq", 0.6, None, "look", "undefined"),
        ("r_all", 0.3, float("nan"), "fail", "nan > 0.3"),
    ],
)
def test_verdict_below_at_and_above(
    key: str, limit: float, value: float | None, verdict: str, relation: str
) -> None:
    check = POLICY.judge(key, limit, value, units=7, definition="something")
    assert (check.name, check.verdict) == (f"limit {key}", verdict)
    assert f"something: {relation}" in check.reason
    assert "Board" not in check.reason, "the section names the policy once"
    assert (check.policy, check.date, check.limit, check.units) == ("Board", "2026-01-15", limit, 7)


@given(
    limit=st.floats(0.001, 10.0).map(lambda x: round(x, 3)),
    away=st.sampled_from([0.0, 1e-9, -1e-9, 1e-4, -1e-4, 0.3, -0.3]),
    key=st.sampled_from(["r_all", "k"]),
)
def test_the_short_form_stands_on_the_side_of_the_verdict(
    limit: float, away: float, key: str
) -> None:
    """A tile that says "0.3 > 0.3" makes a reader doubt the rule, not the release."""
    check = POLICY.judge(key, limit, limit + away, units=7, definition="something")
    value, sign, told = check.compared.split()
    compare = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}[sign]
    assert compare(float(value), float(told))
    assert (sign == check.exceeded_when.split()[0]) == (check.verdict == "fail")
    assert POLICY.judge(key, limit, None, units=0, definition="x").compared == "undefined"


def share(value: float | None, cells: int = 10, trusted: bool = True) -> Share:
    return Share("cells found among cells", cells, value, (0.0, 1.0), None, 0.1, trusted)


def risk(r_all: float, r_unq: float | None, probability: list[float]) -> IntruderRisk:
    cell = xr.DataArray(probability, dims="cell")
    return IntruderRisk(
        rho=cell,
        release_probability=cell,
        prior_probability=cell,
        prediction=cell,
        ess=cell,
        refitted=cell,
        refitted_by_fit=cell,
        khat=xr.DataArray(np.zeros((len(probability), 2)), dims=("cell", "count")),
        release_probability_error=xr.DataArray(
            np.zeros((len(probability), 2)), dims=("cell", "true")
        ),
        khat_threshold=0.7,
        r_all=share(r_all),
        r_unq=share(r_unq, 0 if r_unq is None else 4),
        distance=cell,
        true_count_probability=cell,
        believes_release=0.1,
        prior="uniform",
        knowledge="all-others",
        estimator="paper",
        datasets=1,
        unique="single-mover",
        already_released=cell,
        gains={},
    )


def test_pass_on_weights_that_cannot_be_relied_on_is_none() -> None:
    """A limit that is kept by an unreliable number must be looked at."""
    found = risk(0.1, 0.1, [0.5] * 10)
    khat = found.khat.copy()
    khat[:3] = np.inf
    found = replace(found, khat=khat, r_all=share(0.1, 10, trusted=False))
    for limit, verdict in ((0.3, "look"), (0.4, "pass"), (0.05, "fail")):
        policy = Policy("Board", DAY, FlowLimits(r_all=limit, r_unq=0.6))
        all_cells, unique = check_limits(policy, found, unique="single-mover")
        assert all_cells.verdict == verdict, "a tenth, and three tenths that nobody knows"
        assert ("not known to be kept" in all_cells.reason) == (limit == 0.3)
        assert all_cells.known == (limit != 0.3)
        told = tell_limit(all_cells, at_least=1).reason
        assert ("not known" in told) == (limit == 0.3), (
            "the public is told neither that it is exceeded nor that it is undefined"
        )
        assert unique.verdict == "pass"


def test_pass_of_single_cells_that_cannot_be_relied_on_is_none() -> None:
    """A limit on every cell is not kept when the probability of one is not known."""
    found = risk(0.1, 0.1, [0.5])
    found = replace(found, khat=found.khat + np.inf)
    policy = Policy("Board", DAY, FlowLimits(true_count_probability=0.9))
    (check,) = check_limits(policy, found, unique="single-mover")
    assert check.verdict == "look"
    assert "not known to be kept" in check.reason


def test_of_two_intruders_the_worse_is_judged() -> None:
    """One who knows less may succeed more often, and is the one that was asked about."""
    policy = Policy("Board", DAY, FlowLimits(r_all=0.3, r_unq=0.6))
    knows, asked = (
        check_limits(policy, found, unique="single-mover")
        for found in (risk(0.1, 0.5, [0.5]), risk(0.4, None, [0.5]))
    )
    worse = worse_checks(knows, asked)
    assert [check.value for check in worse] == [0.4, None]
    assert [check.verdict for check in worse] == ["fail", "look"]
    assert worse_checks(knows, knows) == knows


def test_choosing_is_judged_by_its_procedure() -> None:
    """The winner was chosen for being within the limit; drawing and choosing is what is judged."""
    procedure = pd.DataFrame({"r_all": [0.2, 0.6], "r_unq": [0.1, 0.1]})
    choice = Choice(pd.DataFrame(), pd.DataFrame(), procedure)
    policy = Policy("Board", DAY, FlowLimits(r_all=0.3, r_unq=0.6))
    found = check_limits(policy, risk(0.1, 0.1, [0.5]), choice, unique="single-mover")
    by_name = {check.name: check for check in found}
    assert by_name["limit r_all"].verdict == "fail"
    assert by_name["limit r_all"].value == 0.4
    assert by_name["limit r_unq"].verdict == "pass"


@pytest.mark.parametrize(
    ("r_all", "r_unq", "largest", "verdicts"),
    [
        (0.3, 0.6, 0.95, ["pass", "pass", "pass"]),
        (0.2, 0.5, 0.5, ["pass", "pass", "pass"]),
        (0.4, 0.6, 0.95, ["fail", "pass", "pass"]),
        (0.3, 0.7, 0.95, ["pass", "fail", "pass"]),
        (0.3, 0.6, 0.951, ["pass", "pass", "fail"]),
        (0.3, None, 0.95, ["pass", "look", "pass"]),
    ],
)
def test_each_limit_of_a_flow_table(
    r_all: float, r_unq: float | None, largest: float, verdicts: list[str]
) -> None:
    limits = FlowLimits(r_all=0.3, r_unq=0.6, true_count_probability=0.95)
    found = check_limits(
        Policy("Board", DAY, limits),
        risk(r_all, r_unq, [0.1, largest, 0.2]),
        unique="single-mover",
    )
    assert [check.verdict for check in found] == verdicts
    assert [check.name for check in found] == [
        "limit r_all",
        "limit r_unq",
        "limit true_count_probability",
    ]
    assert "true count is 1" in found[1].definition
    assert found[1].value == r_unq
    assert f"{int(largest > 0.95)} of 3 cells are above it" in found[2].reason


def test_undefined_r_unq_is_said_and_neither_passes_nor_fails() -> None:
    policy = Policy("Board", DAY, FlowLimits(r_unq=0.6))
    (check,) = check_limits(policy, risk(0.3, None, [0.1]), unique="isolated")
    assert check.verdict == "look"
    assert "undefined, which is not a risk of 0" in check.reason
    assert check.value is None


def small_table(low: int, high: int) -> pd.DataFrame:
    counts = np.random.default_rng(2).integers(low, high, 12)
    pairs = [(o, d) for o in "abc" for d in "wxyz"]
    return pd.DataFrame(pairs, columns=["o", "d"]).assign(n=counts)


def test_the_job_judges_what_it_measured() -> None:
    table = read_flows(small_table(2, 9), origin="o", destination="d", count="n")
    limits = FlowLimits(r_all=0.0, r_unq=0.6, true_count_probability=0.01)
    arguments = {"draws": 40, "tune": 40, "chains": 2, "releases": 1, "seed": 1}
    plain = protect_flows(table, **arguments)
    judged = protect_flows(table, policy=Policy("Board", DAY, limits), **arguments)
    checks = [check for check in judged.checks if isinstance(check, LimitCheck)]
    assert judged.checks[: -len(checks)] == plain.checks  # a policy changes nothing else
    assert judged.release.equals(plain.release)
    largest = float(plain.measured.risk.true_count_probability.max())
    assert [check.value for check in checks] == [plain.measured.risk.r_all.value, None, largest]
    assert checks[1].verdict == "look"  # nobody moves alone
    assert checks[2].verdict == "fail"
    json.dumps([vars(check) for check in checks], allow_nan=False)


def test_a_table_without_small_cells_leaves_every_limit_undefined() -> None:
    table = read_flows(small_table(20, 90), origin="o", destination="d", count="n")
    limits = FlowLimits(r_all=0.3, r_unq=0.6, true_count_probability=0.95)
    result = protect_flows(table, policy=Policy("Board", DAY, limits), seed=1)
    checks = [check for check in result.checks if isinstance(check, LimitCheck)]
    assert [check.verdict for check in checks] == ["look"] * 3


def test_a_policy_without_the_section_of_the_job_is_refused_before_the_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bayes_sdc.flows.job.steps.fit_weighted", None)
    table = read_flows(small_table(2, 9), origin="o", destination="d", count="n")
    policy = dataclasses.replace(POLICY, flows=None)
    with pytest.raises(InputError, match=r"'Board' of 2026-01-15 has no section \[flows\]"):
        protect_flows(table, policy=policy, seed=1)
