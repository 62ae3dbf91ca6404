"""A file of coarser levels: what it was before, what was changed, and what the public reads."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bayes_sdc import InputError, Intruder, read_microdata, treat
from bayes_sdc.jobs.recoding import recoded_file, what_recoding_did
from bayes_sdc.jobs.treatment import TreatedRun, load_to_treat, treat_file
from bayes_sdc.report.microdata.public_page_one import _public_treatment
from bayes_sdc.report.microdata.treated_words import before_and_after, measured_of, tell_treated
from bayes_sdc.report.microdata.treatment import tell_treatment

KEYS = ["age", "sex"]


def recoded(
    folder: Path, frame: pd.DataFrame, recode: list[str], method: str = "recoding", **options: Any
) -> TreatedRun:
    file = folder / "people.csv"
    frame.to_csv(file, index=False)
    read = read_microdata(file, keys=KEYS)
    data = recoded_file(read, recode)
    asked = {
        "method": method, "target_risk": None, "share": None, "keys": [], "datasets": 1,
        "recode": recode, "propose": False, "regressions": [], "sensitive": None, "given": [],
        "structural_zeros": None, "keep": [], "keep_order": True,
        "intruder": {"keys": KEYS, "knowledge": "population", "knows": "keys"}, **options,
    }  # fmt: skip
    return treat_file(
        data, load_to_treat(file, data, asked), asked=asked, policy=None, population_size=6000,
        seed=1, notes=what_recoding_did(read, data, recode, alone=method == "recoding"),
        as_it_came=read,
    )  # fmt: skip


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"age": rng.integers(15, 90, 600), "sex": rng.choice(["m", "f"], 600)})
    return frame.astype(str)


def test_before_is_the_file_as_it_came_and_recoded_records_are_counted(people, tmp_path) -> None:
    """Both were less than 1 %, of a file in which every age was changed."""
    run = recoded(tmp_path, people, ["age=band:20"])
    done = run.treatment
    alone = treat(
        read_microdata(people, keys=KEYS), method="pram", change=0.1, population_size=6000, seed=1,
        intruder=Intruder(keys=KEYS),
    )  # fmt: skip
    assert done.before.expected == alone.before.expected
    assert done.before.expected.value > 5 * done.after.expected.value
    assert done.changed.all()
    assert not done.treated.any()
    said = _public_treatment(done, run.utility)
    share = f"{done.before.expected.value / 600:.0%}"
    assert f"in more than 99 % of the records. Right matches were {share} of the records" in said
    assert "It is not good for single records and small cells" in said
    assert "was not judged: the detail that the coarser levels took away is not measured" in said
    record = run.record()
    assert (record["recoded_keys"], record["recoded_records"]) == (["age"], 600)
    facts = tell_treatment(done, run.utility, run.file, audience="external")["facts"]
    assert facts["records with coarser levels"] == "more than 99 %"
    assert measured_of((done, run.utility)) == " with the recoded file"
    inside = tell_treated((done, run.utility))
    assert "Recoded (age=band:20)" in inside
    assert "first" not in inside
    assert " before the recoding, and are " in inside
    assert "good for: not judged" in "\n".join(run._lines())


def test_a_treatment_after_recoding_counts_both(people, tmp_path) -> None:
    run = recoded(tmp_path, people, ["age=top:80"], "suppression", k=3)
    done, old = run.treatment, people["age"].astype(int) >= 80
    assert (done.recoded[:, 0] == old).all()
    assert (done.changed == (done.treated | old)).all()
    said = _public_treatment(done, run.utility)
    assert f"{old.mean():.0%} of the records have coarser levels" in said
    assert f"{done.treated.mean():.0%} were treated" in said
    assert "of the records before the recoding, and are " in said
    assert " after both. Beside the recoded file, the file stays good for" in said
    assert "The detail that the coarser levels took away is not counted" in said
    inside = tell_treated((done, run.utility))
    assert " before the recoding, and are " in inside
    assert " after both, and " in inside
    assert "Recoded first" in inside
    assert "before it" not in said + inside
    columns = tell_treatment(done, run.utility, run.file, audience="internal")["columns"]
    assert columns[1:3] == ["before the recoding", "after both"]


def test_where_nearly_all_are_unique_before_says_what_it_is_of(people, tmp_path) -> None:
    frame = people.assign(age=np.arange(600))
    run = recoded(tmp_path, frame, ["age=band:100"])
    done = run.treatment
    assert done.before_recoded
    assert done.before.expected == done.after.expected
    said = _public_treatment(done, run.utility)
    assert "in the recoded file (the file as it came was not measured), and are" in said
    assert before_and_after(done) == "in the recoded file and after the treatment"
    assert any("that of the file as it came was not measured" in note for note in done.notes)
    columns = tell_treatment(done, run.utility, run.file, audience="external")["columns"]
    assert columns[1] == "before, recoded file"


@pytest.mark.parametrize(
    "step", ["age=top:95", "age=bottom:3", "age=band:1", "sex=same.csv:1"], ids=str
)
def test_a_recoding_that_changes_nothing_is_refused(step, people, tmp_path, monkeypatch) -> None:
    """The file left as it is, though that is refused where no recoding is named."""
    monkeypatch.chdir(tmp_path)
    Path("same.csv").write_text("m;m\nf;f\n")
    with pytest.raises(InputError, match="merges no levels"):
        recoded_file(read_microdata(people, keys=KEYS), ["age=top:80", step])
