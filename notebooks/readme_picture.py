"""Draw the picture of the README from the bundled example.

Usage: python notebooks/readme_picture.py
"""

from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from bayes_sdc import example_flows_path, protect_flows, read_flows

table = read_flows(
    example_flows_path(),
    origin="origin",
    destination="destination",
    count="count",
    groups=["origin_state", "destination_state"],
)
result = protect_flows(table, seed=1)
measured = result.measured
rows = table.cells["row"].to_numpy()
counts = np.arange(table.low, table.high + 1)
true, synthetic = (frame["count"].iloc[rows] for frame in (table.frame, result.release))

matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "readme", "font.size": 9})
figure = Figure(figsize=(9, 2.9), layout="constrained")
left, middle, right = figure.subplots(1, 3)
width = 0.4
left.bar(counts - width / 2, [(true == c).sum() for c in counts], width, label="true")
left.bar(counts + width / 2, [(synthetic == c).sum() for c in counts], width, label="synthetic")
left.set(xlabel="count", ylabel="small cells", title="Small counts", xticks=counts)
left.legend(frameon=False)
for side, areas in measured.margins.groupby("side"):
    middle.scatter(areas["true"], areas["synthetic"], s=9, alpha=0.7, label=side)
end = measured.margins["true"].max()
middle.plot([0, end], [0, end], color="0.5", lw=0.8)
middle.set(xlabel="true", ylabel="synthetic", title="Totals of the small cells by area")
middle.legend(frameon=False)
names = ["blind\nguess", "believe the\nrelease", "R_all", "R_unq"]
shares = [
    measured.risk.r_all.baseline,
    measured.risk.believes_release,
    float(measured.risk.r_all),
    float(measured.risk.r_unq),
]
bars = right.bar(names, shares, color=["0.7", "0.7", "C3", "C3"])
right.bar_label(bars, [f"{share:.0%}" for share in shares])
right.set(ylim=(0, 1), ylabel="share of cells found", title="What an intruder learns")
right.tick_params(axis="x", labelsize=7)
path = Path(__file__).parent / "pictures" / "release.svg"
figure.savefig(path, metadata={"Date": None})
