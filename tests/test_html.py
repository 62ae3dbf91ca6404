"""What a notebook shows of a result: its numbers, its definitions, and no markup of the data."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import protect_flows, read_flows, read_microdata
from bayes_sdc.html import facts_table

NASTY = "<script>alert(1)</script>"


class Rows(HTMLParser):
    """Texts of the cells of each row, and all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: dict[str, list[str]] = {}
        self.tags: set[str] = set()
        self.caption = ""
        self._row: list[str] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self._open = tag
        if tag == "tr":
            self._row = []
        elif tag in ("td", "th"):
            self._row.append("")

    def handle_endtag(self, tag):
        if tag == "tr":
            self.rows[self._row[0]] = self._row[1:]
        self._open = ""

    def handle_data(self, data):
        if self._open in ("td", "th"):
            self._row[-1] += data
        elif self._open == "caption":
            self.caption += data


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    pairs = [(o, d) for o in (NASTY, "b", "c") for d in (NASTY, "b", "c")]
    counts = 1 + rng.binomial(8, 0.3, len(pairs))
    counts[[0, 4]] = 700, 40
    return pd.DataFrame(pairs, columns=["o", "d"]).assign(n=counts, **{NASTY: "x"})


@pytest.fixture(scope="module")
def result(frame):
    table = read_flows(frame, origin="o", destination="d", count="n", groups=NASTY)
    return protect_flows(table, draws=30, tune=30, chains=2, releases=2, seed=1)


def test_flow_table(result):
    shown = Rows(result.table._repr_html_())
    numbers = {name: values[0] for name, values in shown.rows.items()}
    assert numbers == {
        "rows read": "9", "small": "6", "safe": "0", "set aside": "3", "below": "0", "groups": "1",
    }  # fmt: skip
    assert NASTY in shown.rows["groups"][1]
    assert "script" not in shown.tags


def test_intruder_risk(result):
    risk = result.measured.risk
    shown = Rows(risk._repr_html_())
    assert "confidential" in shown.caption
    assert shown.rows["R_all"] == [str(risk.r_all), risk.r_all.definition]
    assert shown.rows["R_unq"][0] == str(risk.r_unq)
    mean = float(risk.true_count_probability.mean())
    assert shown.rows["probability of the true count"][0] == f"{mean:.1%}"
    assert shown.rows["unreliable cells"][0] == str(risk.unreliable_cells)
    assert not re.search(r"\bnan\b", risk._repr_html_())


def test_protection_shows_every_verdict(result):
    shown = Rows(result._repr_html_())
    for check in result.checks:
        assert shown.rows[check.name] == [check.verdict, check.reason]
    assert shown.rows["R_all"][0] == str(result.measured.risk.r_all)
    assert "script" not in shown.tags


def test_protection_of_a_table_without_small_cells(frame):
    table = read_flows(frame.assign(n=50), origin="o", destination="d", count="n")
    shown = Rows(protect_flows(table, seed=1)._repr_html_())
    assert shown.rows["small cells"][0] == "0"
    assert "R_all" not in shown.rows


def test_microdata():
    people = pd.DataFrame({NASTY: [NASTY, NASTY, "b", None], "age": list("1222")})
    data = read_microdata(people, keys=[NASTY, "age"], missing="own")
    shown = Rows(data._repr_html_())
    assert shown.rows["records"] == ["4", f"keys {NASTY}, age"]
    assert shown.rows["sample uniques"][0] == str(data.sample_uniques)
    violations = data.k_violations(2)
    assert shown.rows["f < 2"][0] == str(violations.records)
    assert str(violations.combinations) in shown.rows["f < 2"][1]
    assert shown.rows["missing values"][0] == "own"
    assert "script" not in shown.tags
    assert "li" in shown.tags, "the notes are missing"


def test_every_text_is_escaped():
    shown = facts_table("<b>", [("<i>", "<u>", "<s>")], ["<p>"])
    assert not {"b", "i", "u", "s", "p"} & Rows(shown).tags
