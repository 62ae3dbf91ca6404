"""Every treatment in one call: what it promises, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_sdc import InputError, Intruder, read_microdata, treat
from bayes_sdc.microdata.treatment.methods import Asked, _changed_less
from bayes_sdc.microdata.treatment.pram import matrices_of

STRENGTHS = {
    "synthesis": {"target_risk": 0.1},
    "full-synthesis": {},
    "suppression": {"k": 3},
    "pram": {"change": 0.2},
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(
        {name: np.minimum(rng.geometric(0.4, 500), 6).astype(str) for name in "abcd"}
    )
    frame.loc[rng.random(500) < 0.03, "b"] = None
    return read_microdata(frame, keys=list("abcd"))


@pytest.mark.parametrize("method", STRENGTHS)
@pytest.mark.parametrize("knowledge", ["population", "sample"])
def test_risks_are_probabilities_and_fall(data, method, knowledge) -> None:
    done = treat(
        data, method=method, **STRENGTHS[method], population_size=5000, seed=1,
        intruder=Intruder(knowledge=knowledge),
    )  # fmt: skip
    for risk in (done.before, done.after, done.strongest):
        values = risk.records.drop(columns="tied").to_numpy()
        assert ((values >= 0) & (values <= 1)).all()
        low, high = risk.expected.interval
        assert low <= risk.expected.value <= high or risk.expected.sd == 0
        assert 0 <= risk.true_rate <= 1
        assert risk.false_rate is None or 0 <= risk.false_rate <= 1
    assert done.after.expected.value < done.before.expected.value
    assert done.strongest.expected.value >= 0
    assert (done.codes[0][~done.hidden] == data.codes[~done.hidden]).all()


def test_in_the_sample_everything_is_riskier(data) -> None:
    """f / F is at most 1; without it each combination adds 1 to the sum of 1 / f."""
    complete = data.select(["a", "c", "d"])
    out, inside = (
        treat(
            complete, share=0.1, population_size=5000, seed=1,
            intruder=Intruder(knowledge=knowledge),
        )
        for knowledge in ("population", "sample")
    )  # fmt: skip
    assert (out.before.records["risk"] <= inside.before.records["risk"] + 1e-12).all()
    assert inside.before.expected.value == pytest.approx(len(complete.combinations))


def test_the_untreated_file_has_the_risk_of_its_uniques(data) -> None:
    """With nothing hidden the risk of a sample unique is the mean of 1 / F of the same model."""
    from bayes_sdc import latent_class_risk

    complete = read_microdata(
        pd.DataFrame(data.codes[:, [0, 2, 3]], columns=list("acd")), keys=list("acd")
    )
    done = treat(complete, share=0.05, population_size=5000, seed=1)
    other = latent_class_risk(complete, population_size=5000, seed=2)
    mine = done.before.records["risk"].to_numpy()[other.records.index]
    assert mine.sum() == pytest.approx(other.tau2.value, rel=0.25)


def test_knowing_less_of_a_target_is_less_risk(data) -> None:
    all_keys, two = (
        treat(data, share=0.1, population_size=5000, seed=1, intruder=Intruder(keys=keys))
        for keys in (None, ["a", "c"])
    )
    assert two.before.expected.value < all_keys.before.expected.value
    assert set(two.treated_keys) <= {"a", "c"}


def test_without_a_population_the_file_is_all_there_is(data) -> None:
    done = treat(data, share=0.1, seed=1)
    assert (done.before.records["in_file"] == 1).all()
    assert any("whole population" in note for note in done.notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "suppression"}, "suppression needs a goal: either k"),
        ({"method": "suppression", "k": 3, "special": 2}, "suppression needs a goal: either k"),
        ({"method": "suppression", "k": 3, "datasets": 2}, "one data set"),
        ({"method": "pram"}, "PRAM needs change"),
        ({"method": "pram", "change": 0.2, "k": 3}, "k belongs to suppression"),
        ({"change": 0.2}, "change belongs to pram"),
        ({"method": "full-synthesis", "keys": ["a"]}, "leave out keys"),
        ({"method": "suppression", "k": 3, "costs": {"z": 1.0}}, "not a key"),
    ],
)
def test_a_strength_of_another_treatment_is_refused(data, options, words) -> None:
    with pytest.raises(InputError, match=words):
        treat(data, seed=1, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "suppression", "k": 2, "costs": {"c": 5.0}}, "'c' is not a key to suppress"),
        ({"method": "suppression", "special": 3}, "from 1 to the 2 keys"),
    ],
)
def test_what_does_not_fit_the_known_keys_is_refused(options, words) -> None:
    """The cost of a key that is not suppressed was dropped without a word."""
    frame = pd.DataFrame(np.random.default_rng(1).integers(0, 3, (50, 3)), columns=list("abc"))
    data = read_microdata(frame, keys=list("abc"))
    with pytest.raises(InputError, match=words):
        treat(data, intruder=Intruder(keys=("a", "b")), seed=1, **options)


def test_a_file_in_which_missing_is_a_category_is_refused_before_the_work() -> None:
    data = read_microdata(pd.DataFrame({"a": list("xyx")}), keys=["a"], missing="own")
    with pytest.raises(InputError, match="not a category"):
        Asked(k=2).check(data, "suppression")


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.floats(0.01, 0.99))
def test_pram_that_changes_less_than_it_was_asked_for_says_what_it_changes(seed, change) -> None:
    """90 % of the values of a key with one level were to change, and no note said that none did."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": rng.choice(list("xyz"), 40, p=[0.8, 0.1, 0.1]), "one": "q"})
    data = read_microdata(frame, keys=["a", "one"])
    treated = np.array([True, True])
    said = " ".join(_changed_less(data, treated, matrices_of(data, treated, change), change))
    most = 1.0 - float((frame["a"].value_counts(normalize=True) ** 2).sum())
    assert "one 0.0%" in said
    assert (f"a {most:.1%}" in said) == (change > most + 1e-9)
    assert not _changed_less(data, ~treated, matrices_of(data, ~treated, change), change)
