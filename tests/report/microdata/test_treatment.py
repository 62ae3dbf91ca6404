"""What a report says of a treatment."""

import numpy as np
import pandas as pd

from bayes_sdc import read_microdata, treat, treated_utility
from bayes_sdc.microdata.treatment.release import released_file
from bayes_sdc.report.microdata.treatment import tell_treatment


def test_a_coefficient_without_a_number_is_said_to_be_undefined() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"g": rng.choice(list("BC"), 100), "x": rng.normal(size=100)})
    frame.loc[:1, "g"] = "A"
    done = treat(read_microdata(frame, keys=["g"]), method="suppression", k=3, seed=1)
    use = treated_utility(done, columns=frame, regressions=["x ~ g"])
    told = tell_treatment(done, use, released_file(done, frame), audience="internal")
    assert [row[0] for row in told["regressions"]] == ["x ~ constant", "x ~ g=B", "x ~ g=C"]
    for row in told["regressions"]:
        assert row[4:] == ["undefined"] * 4
        assert all(float(one) == float(one) for one in row[1:4])
    assert [row[1] for row in told["good_for"] if row[0] == "the named regressions"] == [
        "not judged"
    ]
