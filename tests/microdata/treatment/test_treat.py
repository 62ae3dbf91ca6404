"""Every treatment in one call: what it promises, and what is refused."""

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, Intruder, read_microdata, treat

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
