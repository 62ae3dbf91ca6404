"""The treated file of a run on microdata: what leaves, what stays, what the record says of it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pandas as pd

from bayes_sdc.arguments import check
from bayes_sdc.checks import Check
from bayes_sdc.errors import InputError
from bayes_sdc.io.form import FileForm
from bayes_sdc.io.tables import load
from bayes_sdc.jobs.recoding import count_recoding, recoded_columns
from bayes_sdc.jobs.writing import Writer, csv_writer
from bayes_sdc.microdata.file.microdata import Microdata
from bayes_sdc.microdata.file.stored import Stored, load_stored
from bayes_sdc.microdata.measure.result import Measurement
from bayes_sdc.microdata.treatment.attributes import AttributeRisk, attribute_risk
from bayes_sdc.microdata.treatment.limits import check_treated
from bayes_sdc.microdata.treatment.methods import Asked
from bayes_sdc.microdata.treatment.order import dealt_by_columns
from bayes_sdc.microdata.treatment.recoding import candidates, rank_recodings
from bayes_sdc.microdata.treatment.release import ReleasedFile, check_kept, released_file
from bayes_sdc.microdata.treatment.result import Method, Treatment
from bayes_sdc.microdata.treatment.setting import Intruder, population_of, prepare
from bayes_sdc.microdata.treatment.treat import treat
from bayes_sdc.microdata.treatment.utility import TreatedUtility, treated_utility
from bayes_sdc.policy import LimitCheck, Policy
from bayes_sdc.results import summary_lines, with_interval


class TreatedRun(NamedTuple):
    """A treatment with the file that may leave.

    Parameters
    ----------
    treatment : Treatment
        What was done.
    file : ReleasedFile
        What leaves.
    content : bytes
        The same, in the form of the input.
    name : str
        Of the released file.
    checks : list of Check
        On the treatment, the kept columns and the limits.
    seconds : float
        Wall time.
    utility : TreatedUtility
        What the file is good for.
    proposals : DataFrame or None
        Recodings, ranked, where they were asked for.
    attributes : AttributeRisk or None
        Of the released file, where a sensitive variable was named; of the first data set alone
        where there are several, which its notes say.
    """

    treatment: Treatment
    file: ReleasedFile
    content: bytes
    name: str
    checks: list[Check]
    seconds: float
    utility: TreatedUtility
    proposals: pd.DataFrame | None
    attributes: AttributeRisk | None

    def confidential(self) -> dict[str, Writer]:
        """What was changed, and the risk of every record afterwards."""
        changes = self.treatment.changes.reset_index()
        changes["record"] += 1
        risk = self.treatment.after.records.reset_index()
        risk["record"] += 1
        tables = {
            "changes_by_record.csv": csv_writer(changes, index=False),
            "risk_after_treatment.csv": csv_writer(risk, index=False),
            "utility_of_tables.csv": csv_writer(self.utility.tables, index=True),
            "rare_levels.csv": csv_writer(self.utility.levels, index=True),
        }
        if len(self.utility.regressions):
            tables["utility_of_regressions.csv"] = csv_writer(self.utility.regressions, index=True)
        if self.proposals is not None:
            tables["proposed_recodings.csv"] = csv_writer(self.proposals, index=True)
        if self.attributes is not None:
            told = self.attributes.records.reset_index()
            told["record"] += 1
            if self.treatment.datasets > 1:
                told.insert(0, "dataset", 1)
            tables["attribute_risk.csv"] = csv_writer(told, index=False)
        return tables

    def record(self) -> dict[str, Any]:
        """Main numbers for the record of the run."""
        done = self.treatment
        return {
            "method": done.method,
            "treated_keys": list(done.treated_keys),
            "treated_records": int(done.treated.sum()),
            **self._recoded(),
            "datasets": done.datasets,
            "release_sha256": hashlib.sha256(self.content).hexdigest(),
            "columns": {"left_out": list(self.file.left_out)},
            "risk": {
                name: {
                    "expected": risk.expected._asdict(),
                    "highest": risk.highest,
                    "true_match_rate": risk.true_rate,
                    "false_match_rate": risk.false_rate,
                    "knowledge": risk.knowledge,
                    "knows": risk.knows,
                    "keys": list(risk.keys),
                }
                for name, risk in (
                    ("before", done.before),
                    ("after", done.after),
                    ("strongest", done.strongest),
                )
            },
            "utility": {
                "pmse": self.utility.pmse,
                "pmse_ratio": self.utility.pmse_ratio,
                "two_way_tables": self.utility.distance(2),
                "three_way_tables": self.utility.distance(3),
                "good_for": [one._asdict() for one in self.utility.good_for],
            },
            "notes": list(done.notes),
        }

    def _recoded(self) -> dict[str, Any]:
        """What recoding changed before the treatment; nothing where nothing was recoded."""
        done = self.treatment
        if done.recoded is None:
            return {}
        return {
            "recoded_keys": list(done.recoded_keys),
            "recoded_records": int(done.recoded.any(axis=1).sum()),
            "risk_before_is_of": "the recoded file"
            if done.before_recoded
            else "the file as it came",
        }

    def checks_after(self, before: Sequence[Check]) -> list[Check]:
        """Return all checks of the run: limits apply to the risk that is left."""
        return [*(one for one in before if not isinstance(one, LimitCheck)), *self.checks]

    def summary(self, before: Measurement) -> list[str]:
        """Return lines for the console: what is left of the risk first; confidential."""
        first, *lines = self._lines()
        checks = self.checks_after(before.checks)
        return summary_lines(first, checks, lines, before.seconds | {"treatment": self.seconds})

    def _lines(self) -> list[str]:
        done = self.treatment
        before, after = done.before.expected, done.after.expected
        treated = (
            f"treated by {done.method}: {int(done.treated.sum()):,} of {done.data.n:,} records in "
            f"{', '.join(done.treated_keys) or 'no key'}"
        )
        if done.recoded is not None:
            coarser = int(done.recoded.any(axis=1).sum())
            recoded = (
                f"recoded: {coarser:,} of {done.data.n:,} records in {', '.join(done.recoded_keys)}"
            )
            treated = recoded if done.method == "recoding" else f"{recoded}; {treated}"
        was = with_interval(before.value, before.interval) + " (recoded file)" * done.before_recoded
        known = f"; {done.strongest.expected.value:,.1f} if the treated records are known"
        bad = ", ".join(v.use for v in self.utility.good_for if v.good is False) or "nothing"
        # a file that was only recoded was compared with itself
        good = (
            "not judged, the detail lost by recoding is not measured"
            if done.only_recoded
            else ", ".join(v.use for v in self.utility.good_for if v.good) or "nothing measured"
        )
        return [
            treated,
            f"expected right matches before {was}, after "
            f"{with_interval(after.value, after.interval)}{known * (not done.only_recoded)}; "
            f"highest risk of a record {done.before.highest:.3f} -> {done.after.highest:.3f}",
            f"good for: {good}; not for: {bad}",
            *self._left_out(),
            *(f"note: {note}" for note in done.notes),
            *self._besides(),
        ]

    def _besides(self) -> list[str]:
        """Say what was measured besides, where that was asked for."""
        lines = []
        if self.attributes is not None:
            lines = [f"{self.attributes}", *(f"note: {note}" for note in self.attributes.notes)]
        if self.proposals is not None and len(self.proposals):
            lines.append(f"recodings proposed, best first: {', '.join(self.proposals.index[:3])}")
        return lines

    def _left_out(self) -> list[str]:
        """Say which columns do not leave, and how they could."""
        left, weight = self.file.left_out, self.treatment.data.weight_name
        if not left:
            return []
        lacks = ", so the file has no weights" if weight in left else ""
        return [f"columns that do not leave{lacks}: {', '.join(left)}; --keep names those that do"]


def load_to_treat(
    file: Path, data: Microdata, asked: Mapping[str, Any], form: FileForm | None = None
) -> Stored:
    """Read all columns of the input, before anything is computed: bad input is refused early.

    Raises
    ------
    InputError
        If the form of the file is not written, a column that is to be kept is no column, or the
        treatment is impossible.
    """
    check("method", asked["method"], Method)
    who = Intruder(**asked["intruder"])
    _asked(asked).check(data, asked["method"], who.keys)
    _check_sensitive(data, asked["sensitive"], who)
    if asked["method"] == "recoding" and not asked["recode"]:
        raise InputError(
            "--treat recoding releases the file as it is unless --recode names what to recode, as "
            "in --recode age=band:5; to rank recodings first, use --propose-recodings with another "
            "treatment"
        )
    stored = load_stored(file, [*data.keys, *asked["keep"]], form)
    check_kept(data, asked["keep"], datasets=asked["datasets"])
    if len(stored.frame) != data.n:
        raise InputError(
            f"{data.source}: {len(stored.frame):,} rows with all columns, {data.n:,} with the keys "
            "alone; remove blank lines"
        )
    return recoded_columns(stored, data, asked["recode"]) if asked["recode"] else stored


def _check_sensitive(data: Microdata, sensitive: str | None, who: Intruder) -> None:
    """Refuse a sensitive variable of which nothing can be told, before anything is measured."""
    if sensitive is None:
        return
    if sensitive not in data.keys:
        raise InputError(
            f"--sensitive names {sensitive!r}, which is neither a key nor named by --given; they "
            f"are {list(data.keys)}"
        )
    if set(data.keys if who.keys is None else who.keys) == {sensitive}:
        raise InputError(
            f"--sensitive names {sensitive!r}, the only key that the intruder knows: nothing is "
            "left from which they could learn it; name more of --known-keys, or another variable"
        )


def _asked(asked: Mapping[str, Any]) -> Asked:
    keys = tuple(asked["keys"]) or None
    names = ("k", "special", "costs", "change")
    return Asked(
        asked["target_risk"], asked["share"], keys, asked["datasets"], *map(asked.get, names)
    )


def treat_file(
    data: Microdata,
    stored: Stored,
    *,
    asked: Mapping[str, Any],
    policy: Policy | None,
    population_size: int | None,
    seed: int,
    notes: Sequence[str] = (),
    as_it_came: Microdata | None = None,
) -> TreatedRun:
    """Treat a file that was read, and make what may leave of it.

    Parameters
    ----------
    data : Microdata
        All variables of the model as keys.
    stored : Stored
        All columns.
    asked : mapping
        ``method``, ``target_risk``, ``share``, ``keys``, ``datasets``, ``intruder`` (mapping),
        ``structural_zeros`` (path), ``keep`` and ``keep_order``.
    policy : Policy or None
        Limits that are judged afterwards.
    population_size : int or None
        N.
    seed : int
        Everything random follows from it.
    notes : sequence of str
        What was done to the file before.
    as_it_came : Microdata, optional
        The file before its keys were recoded, if they were.

    Returns
    -------
    TreatedRun

    Raises
    ------
    InputError
        As for :func:`bayes_sdc.treat`.
    """
    clock = monotonic()
    rules = asked["structural_zeros"]
    done = treat(
        data,
        method=asked["method"],
        target_risk=asked["target_risk"],
        share=asked["share"],
        keys=asked["keys"] or None,
        k=asked.get("k"),
        special=asked.get("special"),
        costs=asked.get("costs"),
        change=asked.get("change"),
        datasets=asked["datasets"],
        intruder=Intruder(**asked["intruder"]),
        population_size=population_size,
        structural_zeros=None if rules is None else read_structural_zeros(rules),
        seed=seed,
    )
    done = dealt_by_columns(replace(done, notes=(*notes, *done.notes)), stored.frame)
    use = treated_utility(done, columns=stored.frame, regressions=asked["regressions"])
    if as_it_came is not None:
        done, use = count_recoding(done, use, as_it_came, population_size=population_size)
    file = released_file(
        done,
        stored.frame,
        keep=asked["keep"],
        given=asked["given"],
        keep_order=asked["keep_order"],
    )
    stem = Path(data.source).name.partition(".")[0] or "file"
    return TreatedRun(
        treatment=done,
        file=file,
        content=stored.encode(file.frame),
        name=f"{stem}_protected{stored.suffix}",
        checks=[*done.checks, *file.checks, *check_treated(policy, done)],
        utility=use,
        proposals=_proposals(data, asked, population_size, seed) if asked["propose"] else None,
        attributes=_attributes(done, asked["sensitive"], seed),
        seconds=monotonic() - clock,
    )


def _attributes(done: Treatment, sensitive: str | None, seed: int) -> AttributeRisk | None:
    if sensitive is None:
        return None
    released = done.data.with_codes(done.codes[0]).select(
        [*(key for key in done.after.keys if key != sensitive), sensitive]
    )
    found = attribute_risk(released, sensitive=sensitive, seed=seed)
    if done.datasets == 1:
        return found
    # a fit for each data set would take long, and the others are drawn as this one is
    alone = f"what records tell of {sensitive} is that of data set 1 of {done.datasets} alone"
    return replace(found, notes=(*found.notes, alone))


def _proposals(
    data: Microdata, asked: Mapping[str, Any], population_size: int | None, seed: int
) -> pd.DataFrame:
    """Rank recodings of the file as it is."""
    setting = prepare(
        data,
        intruder=Intruder(**asked["intruder"]),
        population_size=population_size,
        structural_zeros=None,
        datasets=1,
        seed=seed,
    )
    size = population_of(data, population_size)
    return rank_recodings(setting, candidates(data, ordered=asked["ordered"]), size, seed=seed)


def read_structural_zeros(path: Path) -> pd.DataFrame:
    """Read rules, one per row, with one column per key; an empty cell stands for any value.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    return load(path, []).frame
