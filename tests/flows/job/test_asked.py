"""What is asked for and cannot be done, or would be forgotten, is refused before the fit."""

import pandas as pd
import pytest

from bayes_sdc import InputError, protect_flows, read_flows


@pytest.fixture
def table():
    frame = pd.DataFrame({"o": list("aab"), "d": list("xyx"), "n": [1, 4, 2], "g": list("uuv")})
    return read_flows(frame, origin="o", destination="d", count="n", groups="g")


@pytest.mark.parametrize(
    ("asked", "belongs"),
    [
        ({"kept_limit": 0.5}, "kept_limit belongs to totals_kept"),
        ({"pinned_allowed": True}, "pinned_allowed belongs to totals_kept"),
        ({"totals_base": 3}, "totals_base belongs to totals_kept"),
        ({"totals_base": 3, "totals_kept": "none"}, "totals_base belongs to totals_kept"),
        ({"published_base": 3}, "published totals are rounded to, and none are named"),
        ({"gain_limit": 0.1}, "gain_limit belongs to weights"),
        ({"centres": [0.5, 0.5]}, "centres: belong to epsilon"),
        ({"share": 0.5}, 'share goes with knowledge="share"'),
        ({"impossible": [1]}, "with family 'base' only"),
        ({"released_epsilon": [1.0]}, "1 numbers for 0 earlier releases"),
        ({"keep": ["o"]}, "keep: column 'o' is released anyway"),
        ({"keep": ["d"]}, "keep: column 'd' is released anyway"),
        ({"keep": ["n"]}, "keep: column 'n' is released anyway"),
        ({"keep": ["g"]}, "keep: column 'g' is released anyway"),
    ],
    ids=str,
)
def test_what_belongs_to_something_else_is_refused_alone(table, asked, belongs):
    """Whoever gives it believes that it was heeded."""
    with pytest.raises(InputError, match=belongs):
        protect_flows(table, **asked)


def test_an_epsilon_of_earlier_releases_needs_one_of_this(table):
    earlier = table.frame.assign(n=[2, 3, 9])
    with pytest.raises(InputError, match="released_epsilon belongs to epsilon"):
        protect_flows(table, already_released=[earlier], released_epsilon=[1.0])


@pytest.mark.parametrize("bad", [0.0, -1.0, float("inf")])
def test_an_epsilon_that_is_none_is_refused_before_the_fit(table, bad):
    """It was refused after fit and risk, with the name of another argument, and left a folder."""
    earlier = table.frame.assign(n=[2, 3, 9])
    with pytest.raises(InputError, match=r"released_epsilon.*above 0.*--released-epsilon"):
        protect_flows(table, epsilon=1.0, already_released=[earlier], released_epsilon=[bad])
