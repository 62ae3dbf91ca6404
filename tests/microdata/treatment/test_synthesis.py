"""Synthetic values against the distribution they are drawn from, rules and households."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare

from bayes_sdc import InputError, read_microdata, treat
from bayes_sdc.microdata.treatment.households import shared_keys, spread_over_households
from bayes_sdc.microdata.treatment.setting import rules_by_row
from bayes_sdc.microdata.treatment.states import Layout, States, layout_of
from bayes_sdc.microdata.treatment.synthesis import synthesise

KEYS = ["a", "b", "c"]


def made_up(data, seed: int = 3, classes: int = 3) -> States:
    """A model with made-up parameters for the keys of a file."""
    rng, layout = np.random.default_rng(seed), layout_of(data)
    sizes = np.diff(layout.start)
    phi = np.concatenate([rng.dirichlet(np.ones(size), classes).T for size in sizes])
    return States(layout, rng.dirichlet(np.ones(classes))[None], phi[None].copy(), {}, {})


def probabilities(states: States, sizes) -> np.ndarray:
    """Table of the probabilities of all combinations."""
    eta, phi, start = states.eta[0], states.phi[0], states.layout.start
    tables = [phi[start[j] : start[j] + size] for j, size in enumerate(sizes)]
    return np.einsum("h,ah,bh,ch->abc", eta, *tables)


def many(rows: int, **more) -> object:
    """A file of equal records, so that many draws of one record can be counted."""
    frame = pd.DataFrame({"a": ["0", "1"], "b": ["0", "2"], "c": ["1", "0"]})
    frame = pd.concat([frame.iloc[:1]] * rows + [frame], ignore_index=True)
    frame.loc[len(frame)] = ["0", "1", "0"]
    return read_microdata(frame.assign(**more), keys=KEYS)


def test_draws_have_the_conditional_distribution_of_the_model() -> None:
    """b and c given a, by the definition of the mixture."""
    data = many(20_000)
    states = made_up(data)
    hidden = np.zeros(data.codes.shape, dtype=bool)
    hidden[:20_000, 1:] = True
    drawn = synthesise(
        data, states, hidden=hidden, rules=np.zeros((0, 7), bool), datasets=1, seed=1
    )[0]
    expected = probabilities(states, (2, 3, 2))[0]
    counts = np.zeros((3, 2))
    np.add.at(counts, (drawn[:20_000, 1], drawn[:20_000, 2]), 1)
    assert (drawn[:, 0] == data.codes[:, 0]).all()
    assert (drawn[20_000:] == data.codes[20_000:]).all()
    assert chisquare(counts.ravel(), 20_000 * (expected / expected.sum()).ravel()).pvalue > 0.001


def test_structural_zeros_are_conditioned_on_and_never_drawn() -> None:
    """What is left keeps its proportions."""
    data = many(20_000)
    states = made_up(data)
    rules, _ = rules_by_row(data, [{"a": "0", "b": "2"}, {"b": "1", "c": "1"}], states.layout)
    hidden = np.zeros(data.codes.shape, dtype=bool)
    hidden[:20_000, 1:] = True
    drawn = synthesise(data, states, hidden=hidden, rules=rules, datasets=1, seed=2)[0][:20_000]
    expected = probabilities(states, (2, 3, 2))[0]
    expected[2] = 0.0
    expected[1, 1] = 0.0
    counts = np.zeros((3, 2))
    np.add.at(counts, (drawn[:, 1], drawn[:, 2]), 1)
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    shares = expected[possible] / expected.sum()
    assert chisquare(counts[possible], 20_000 * shares).pvalue > 0.001


def test_a_shared_key_is_drawn_once_for_a_household_by_all_its_members() -> None:
    """P(a | what both members keep), by Bayes' rule in which they are independent given a."""
    homes = 8000
    frame = pd.DataFrame(
        {
            "a": np.repeat(["0", "1"], [2 * homes, 2]),
            "b": ["0", "2"] * homes + ["1", "1"],
            "c": ["1", "0"] * homes + ["0", "0"],
            "home": np.repeat(np.arange(homes + 1), 2),
        }
    )
    data = read_microdata(frame, keys=KEYS, household="home")
    states = made_up(data)
    assert shared_keys(data).tolist() == [True, False, False]
    hidden = np.zeros(data.codes.shape, dtype=bool)
    hidden[: 2 * homes : 2, :2] = True  # the first member of each, in a and b
    hidden = spread_over_households(data, hidden)
    assert hidden[1].tolist() == [True, False, False]
    drawn = synthesise(
        data, states, hidden=hidden, rules=np.zeros((0, 7), bool), datasets=1, seed=4
    )[0][: 2 * homes]
    assert (drawn[::2, 0] == drawn[1::2, 0]).all()
    joint = probabilities(states, (2, 3, 2))
    # the first keeps c = 1, the second b = 2 and c = 0
    weight = joint[:, :, 1].sum(1) * joint[:, 2, 0] / joint.sum((1, 2))
    first = joint[:, :, 1] / joint[:, :, 1].sum(1, keepdims=True)
    expected = (weight / weight.sum())[:, None] * first
    counts = np.zeros((2, 3))
    np.add.at(counts, (drawn[::2, 0], drawn[::2, 1]), 1)
    assert chisquare(counts.ravel(), homes * expected.ravel()).pvalue > 0.001


def people(seed: int = 1, rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, 5, (rows, 4)), columns=list("abcd")).astype(str)
    frame["home"] = np.repeat(np.arange(rows // 2), 2)
    frame["a"] = frame.groupby("home")["a"].transform("first")
    frame.loc[rng.random(rows) < 0.05, "d"] = None
    return frame


def test_the_order_of_records_and_the_cores_do_not_matter() -> None:
    frame = people()
    order = np.random.default_rng(2).permutation(len(frame))
    results = [
        treat(
            read_microdata(given, keys=list("abcd"), household="home"),
            target_risk=0.1, population_size=4000, seed=5, cores=cores,
        )
        for given, cores in ((frame, 1), (frame.iloc[order].reset_index(drop=True), 2))
    ]  # fmt: skip
    first, second = (one.released for one in results)
    pd.testing.assert_frame_equal(first.iloc[order].reset_index(drop=True), second)
    assert results[0].after.expected == results[1].after.expected


def test_rules_hold_in_what_is_released_and_households_stay_together() -> None:
    frame = people()
    frame.loc[frame["b"] == "0", "c"] = "1"
    data = read_microdata(frame, keys=list("abcd"), household="home")
    rules = [{"b": "0", "c": ["0", "2", "3", "4"]}]
    done = treat(
        data, share=0.5, population_size=4000, structural_zeros=rules, datasets=3, seed=6,
        keys=list("abc"),
    )  # fmt: skip
    released = done.released
    assert done.datasets == 3
    assert done.treated.mean() >= 0.5
    assert not ((released["b"] == "0") & (released["c"] != "1")).any()
    for number, of in released.groupby("dataset"):
        home = frame["home"].to_numpy()
        assert (of.groupby(home)["a"].nunique() == 1).all(), number
        assert (of["d"].isna().to_numpy() == frame["d"].isna().to_numpy()).all()
    untouched = ~done.hidden
    assert (done.codes[:, untouched] == data.codes[untouched]).all()


def test_a_member_without_the_shared_value_does_not_keep_the_others_from_sharing_one() -> None:
    """One missing region in the file, and the members of all households showed it of each other."""
    frame = people()
    frame.loc[0, "a"] = None
    data = read_microdata(frame, keys=list("abcd"), household="home")
    done = treat(data, share=0.5, population_size=4000, seed=6, keys=list("ab"))
    released = done.released
    assert (released.groupby(frame["home"].to_numpy())["a"].nunique() <= 1).all()
    assert (released["a"].isna() == frame["a"].isna()).all()
    assert (done.codes[0][:, 0] != data.codes[:, 0]).any()


def test_rules_that_leave_nothing_are_an_error_that_names_the_record() -> None:
    data = many(5)
    states = made_up(data)
    # b = 0 and b = 1 and b = 2 are impossible with c = 1, which stays
    rules = np.zeros((1, 7), dtype=bool)
    rules[0, [0, 1, 2, 3, 4, 6]] = True
    hidden = np.zeros(data.codes.shape, dtype=bool)
    hidden[0, 1] = True
    with pytest.raises(InputError, match=r"record 1: .* structural zeros"):
        synthesise(data, states, hidden=hidden, rules=rules, datasets=1, seed=1)


def test_the_layout_is_that_of_the_sampler() -> None:
    """Keys with few levels come first in the sampler; here they stand as in the file."""
    frame = pd.DataFrame({"many": list("abcd") * 50, "few": list("xy") * 100})
    data = read_microdata(frame, keys=["many", "few"])
    done = treat(data, share=1.0, keys=["few"], population_size=2000, seed=1)
    layout: Layout = layout_of(data)
    assert layout.start.tolist() == [0, 4, 6]
    # few follows many: a model whose rows are mixed up would not know
    agree = (done.released["few"] == frame["few"]).mean()
    assert agree > 0.9


@pytest.mark.parametrize("method", ["synthesis", "full-synthesis"])
@pytest.mark.parametrize("missing", ["conservative", "wildcard", "own"])
def test_a_key_that_is_missing_does_not_let_the_impossible_through(method, missing) -> None:
    """A rule on age and marital status holds whether the nationality is known or not."""
    rng = np.random.default_rng(1)
    age = rng.choice([str(a) for a in range(0, 60, 5)], 400)
    drawn = rng.choice(["single", "married", "widowed"], 400, p=[0.6, 0.3, 0.1])
    people = pd.DataFrame({"age": age, "marital": np.where(age == "0", "single", drawn)})
    people["nat"] = np.where(rng.random(400) < 0.5, None, rng.choice(list("abcd"), 400))
    people["region"] = rng.choice(list("ABCDEF"), 400)
    rules = [{"age": "0", "marital": "married"}, {"age": "0", "marital": "widowed"}]
    share = {"share": 0.9} if method == "synthesis" else {}
    data = read_microdata(people, keys=list(people), missing=missing)
    done = treat(
        data, method=method, population_size=20_000, structural_zeros=rules, seed=1, datasets=3,
        **share,
    )  # fmt: skip
    released = done.released
    assert released["nat"].isna().any() or missing == "own"
    assert not ((released["age"] == "0") & (released["marital"] != "single")).any()
