"""
Which customers are alike?
==========================

Three commands lead from a CSV file to segments: list the columns, cluster the rows, and
label new ones. The table is raw: customer numbers, an income with a long tail, a flag, a
plan in words, a date, and gaps. Dates are left out unless they are kept, because most
of them only say when a row was recorded.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mmcnb.cli import main

folder = Path(tempfile.mkdtemp())
random = np.random.default_rng(0)
segment = random.integers(0, 3, 900)
plans = np.array(["basic", "plus", "pro"])
customers = pd.DataFrame(
    {
        "customer_id": random.permutation(np.arange(10_000, 10_900)),
        "income": np.exp(random.normal(10 + 0.9 * segment, 0.3)).round(),
        "age": random.normal(40 + 8 * (segment == 1), 5).round(),
        "plan": plans[
            np.where(random.random(900) < 0.7, segment, random.integers(0, 3, 900))
        ],
        "active": random.random(900) < 0.3 + 0.4 * (segment == 2),
        "joined": pd.Timestamp("2020-01-01")
        + pd.to_timedelta(300 * segment + random.integers(0, 250, 900), "D"),
    }
)
customers.loc[random.choice(900, 30, replace=False), "age"] = np.nan
customers.to_csv(folder / "customers.csv", index=False)

# %%
# ``mmcnb info customers.csv``

main(["info", f"{folder}/customers.csv"])

# %%
# ``mmcnb fit customers.csv --n-clusters 3 --keep joined --labels segments.csv --model
# segments.model``

main(
    [
        *("fit", f"{folder}/customers.csv", "--n-clusters", "3", "--random-state", "0"),
        *("--keep", "joined"),
        *("--labels", f"{folder}/segments.csv", "--model", f"{folder}/segments.model"),
    ]
)

# %%
# ``mmcnb predict segments.model new.csv --labels new_segments.csv``

customers.sample(100, random_state=0).to_csv(folder / "new.csv", index=False)
main(
    [
        "predict",
        f"{folder}/segments.model",
        f"{folder}/new.csv",
        "--labels",
        f"{folder}/new_segments.csv",
    ]
)

# %%
# The plot shows the customers on two of the columns, coloured by segment.

labels = pd.read_csv(folder / "segments.csv")["cluster"]
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.scatter(customers["joined"], customers["income"], c=labels, cmap="viridis", s=8)
ax.set(xlabel="joined", ylabel="income", yscale="log", title="three segments")
ax.tick_params(axis="x", rotation=30)
plt.show()
