"""A digest of what a table holds, whatever its file looks like."""

import hashlib

import numpy as np

from bayes_sdc.flows.table.read import FlowTable
from bayes_sdc.io.columns import read_codes


def content_digest(table: FlowTable) -> str:
    """SHA-256 of the flows, sorted: the same for another order of rows, format or column names.

    Totals that were set aside do not count: left out or published, the flows are the same. Nor do
    groups, since the same flows can be read with some of them or with none.

    Parameters
    ----------
    table : FlowTable
        From :func:`bayes_sdc.read_flows`.

    Returns
    -------
    str
        In hexadecimal. Confidential: with it, who knows all other counts finds the last one.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_sdc import read_flows
    >>> one = pd.DataFrame({"o": ["a", "b"], "d": ["b", "a"], "n": [1, 20]})
    >>> other = one[::-1].set_axis(["from", "to", "count"], axis=1)
    >>> digests = {
    ...     content_digest(read_flows(one, origin="o", destination="d", count="n")),
    ...     content_digest(read_flows(other, origin="from", destination="to", count="count")),
    ... }
    >>> len(digests)
    1
    """
    flows = np.ones(len(table.frame), dtype=bool)
    flows[list(table.totals)] = False
    counts = table.frame[table.count].to_numpy(np.int64)[flows].astype(str)
    ends = (
        read_codes(table.frame[name], name).texts()[flows]
        for name in (table.origin, table.destination)
    )
    lines = sorted("\x1f".join(row) for row in zip(*ends, counts, strict=True))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
