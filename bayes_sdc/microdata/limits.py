"""Verdicts on the risk of records by the limits of a policy."""

from collections.abc import Mapping

import numpy as np

from bayes_sdc.microdata.individual.record_risk import RecordRisk
from bayes_sdc.microdata.individual.superpopulation import SuperpopulationRisk
from bayes_sdc.microdata.latent_classes.risk import LatentClassRisk
from bayes_sdc.policy import LimitCheck, Policy

NAMED = "the model of frequencies {!r}"


def check_limits(
    policy: Policy | None,
    risk: RecordRisk,
    models: Mapping[str, SuperpopulationRisk],
    latent_classes: LatentClassRisk | None = None,
) -> list[LimitCheck]:
    """Judge the risk of a file by the limits of a policy.

    Parameters
    ----------
    policy : Policy or None
        With a section for microdata; without a policy nothing is judged.
    risk : RecordRisk
        The individual risk.
    models : mapping from name to SuperpopulationRisk
        Totals of the file by model, at least one.
    latent_classes : LatentClassRisk, optional
        The recommended estimate. Its file risk is that of the sample uniques, a lower bound.

    Returns
    -------
    list of LimitCheck
        One for each limit that is set, in the order of `bayes_sdc.MicrodataLimits`. A risk
        is judged by the model in which it is highest, which the definition names.

    Raises
    ------
    InputError
        If the policy has no section for microdata.

    Examples
    --------
    >>> import datetime
    >>> import pandas as pd
    >>> from bayes_sdc.microdata.measure.measure import measure_microdata
    >>> from bayes_sdc.microdata.file.read import read_microdata
    >>> from bayes_sdc import MicrodataLimits, Policy
    >>> people = pd.DataFrame({"sex": list("mmf"), "w": [10, 30, 5]})
    >>> found = measure_microdata(read_microdata(people, keys=["sex"], weight="w"), seed=1)
    >>> limits = MicrodataLimits(k=2, record_risk=0.7)
    >>> policy = Policy("Survey", datetime.date(2026, 1, 15), microdata=limits)
    >>> [check.verdict for check in check_limits(policy, found.risk, found.models)]
    ['fail', 'pass']
    """
    if policy is None:
        return []
    limits, data = policy.for_microdata(), risk.data
    checks = []
    if limits.k is not None:
        low = data.k_violations(limits.k)
        checks.append(
            policy.judge(
                "k",
                limits.k,
                int(data.f.min()),
                units=data.n,
                definition="smallest f of a record",
                detail=f"{low.records:,} records in {low.combinations:,} combinations are below it",
            )
        )
    if limits.record_risk is not None:
        # the closed form is known to be too low for rare combinations
        of_records = {"the closed form": risk.combinations["risk"].to_numpy()}
        of_records |= {NAMED.format(name): model.risk for name, model in models.items()}
        if latent_classes is not None:
            by_classes = np.zeros(len(risk.combinations))
            unique = latent_classes.records
            by_classes[risk.data.combination[unique.index]] = unique["inverse_F"]
            of_records["latent classes"] = by_classes
        name, highest = max(of_records.items(), key=lambda item: float(np.max(item[1])))
        above = highest > limits.record_risk
        records = int(risk.combinations["records"].to_numpy()[above].sum())
        checks.append(
            policy.judge(
                "record_risk",
                limits.record_risk,
                float(np.max(highest)),
                units=data.n,
                definition=f"largest individual risk of a record, by {name}, where it is highest",
                detail=f"{records:,} records in {int(above.sum()):,} combinations are above it",
            )
        )
    if limits.file_risk is not None:
        expected = {NAMED.format(name): model.expected.value for name, model in models.items()}
        if latent_classes is not None:
            expected["latent classes (sample uniques alone)"] = latent_classes.tau2.value
        name, highest_share = max(expected.items(), key=lambda item: item[1])
        checks.append(
            policy.judge(
                "file_risk",
                limits.file_risk,
                highest_share / data.n,
                units=data.n,
                definition=f"expected share of re-identified records, by {name}, where it is "
                "highest",
            )
        )
    return checks
