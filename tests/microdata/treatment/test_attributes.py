"""What a record adds to what a file tells of it, against a fit without the record."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_sdc import InputError, attribute_risk, read_microdata
from bayes_sdc.microdata.treatment.attributes import diversity, without_record
from bayes_sdc.microdata.treatment.population import probabilities
from bayes_sdc.microdata.treatment.states import draw_states


def people(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.integers(0, 3, rows), "b": rng.integers(0, 2, rows)})
    frame["ill"] = np.where(rng.random(rows) < 0.8, frame["a"] > 0, rng.random(rows) < 0.5)
    return frame.astype(str)


def test_what_a_record_adds_is_that_of_a_fit_without_it() -> None:
    """Importance weights and a second posterior agree within their Monte Carlo error."""
    frame = people()
    keys = ["a", "b", "ill"]
    found = attribute_risk(read_microdata(frame, keys=keys), sensitive="ill", draws=2000, seed=1)
    record = int(found.records["gain"].abs().idxmax())
    rest = read_microdata(frame.drop(record), keys=keys)
    states = draw_states(rest, draws=2000, seed=2)
    code = np.array(
        [[rest.labels[j].index(frame.loc[record, key]) for j, key in enumerate(keys)]], np.int32
    )
    rows = states.layout.rows(code)
    known = rows.copy()
    known[:, 2] = -1
    whole, part = (
        np.mean([probabilities(r, e, p)[0] for e, p in zip(states.eta, states.phi, strict=True)])
        for r in (rows, known)
    )
    row = found.records.loc[record]
    assert row["khat"] < 0.7
    assert row["without_record"] == pytest.approx(whole / part, abs=0.03)
    assert row["with_record"] > row["without_record"]


def test_a_file_that_always_says_the_same_tells_nothing_by_a_record() -> None:
    frame = people().assign(ill="yes")
    found = attribute_risk(
        read_microdata(frame, keys=["a", "b", "ill"]), sensitive="ill", draws=100, seed=1
    )
    assert found.records["gain"].to_numpy() == pytest.approx(0.0)
    assert (found.smallest_l, found.largest_t) == (1, 0.0)


def test_a_level_that_nobody_has_any_more_changes_nothing() -> None:
    """A treatment may take the last record of a level away."""
    data = read_microdata(people(), keys=["a", "b", "ill"])
    codes = data.codes.copy()
    codes[codes[:, 0] == 0, 0] = -1
    treated = data.with_codes(codes)
    frame = people()
    frame.loc[frame["a"] == "0", "a"] = None
    plain = read_microdata(frame, keys=["a", "b", "ill"])
    one, two = (
        attribute_risk(given, sensitive="ill", draws=100, seed=1) for given in (treated, plain)
    )
    pd.testing.assert_frame_equal(one.records, two.records)


@given(st.integers(0, 10_000))
def test_diversity_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 3, (30, 3)), columns=list("abs")).astype(str)
    whole = frame["s"].value_counts(normalize=True)
    values, entropy, t = [], [], []
    for _, of in frame.groupby(["a", "b"])["s"]:
        share = of.value_counts(normalize=True)
        values.append(len(share))
        entropy.append(np.exp(-(share * np.log(share)).sum()))
        t.append(whole.sub(share, fill_value=0).abs().sum() / 2)
    found = diversity(read_microdata(frame, keys=list("abs")), "s")
    assert found == pytest.approx((min(values), min(entropy), max(t)))


def test_weights_divide_the_record_out() -> None:
    """Without a heavy tail they are one over its probability."""
    p = np.random.default_rng(1).uniform(0.4, 0.6, 2000)
    weights, khat = without_record(np.log(p))
    assert khat < 0.5
    assert weights == pytest.approx((1 / p) / (1 / p).sum(), rel=0.02)


@pytest.mark.parametrize(
    "options", [{"sensitive": "zz"}, {"sensitive": "ill", "draws": 10}, {"sensitive": "none"}]
)
def test_what_cannot_be_used_is_refused(options) -> None:
    frame = people().assign(none=None)
    with pytest.raises(InputError):
        attribute_risk(read_microdata(frame, keys=["a", "ill", "none"]), seed=1, **options)
