"""Write the table of the first page: `python docs/_scripts/customers.py` writes customers.csv.

The table has customer numbers, dates, missing values, words, and numbers with a long
tail.
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_CUSTOMERS = 300
CHANNELS = np.array(["app", "shop", "web"])


def customers(n_customers: int = N_CUSTOMERS, seed: int = 0) -> str:
    """Return the text of the table, with three kinds of customers.

    Parameters
    ----------
    n_customers : int
        Number of rows.
    seed : int
        Random seed.

    Returns
    -------
    str
        The lines of a CSV file.
    """
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n_customers, p=[0.45, 0.35, 0.2])
    age = np.array([24, 66, 45])[kind] + rng.normal(0, 4, n_customers)
    orders = rng.poisson(np.array([18, 4, 8])[kind])
    basket = np.exp(np.log([19, 42, 150])[kind] + rng.normal(0, 0.25, n_customers))
    returns = np.array([22, 3, 9])[kind] + rng.normal(0, 2, n_customers)
    channel = np.where(
        rng.random(n_customers) < 0.75,
        CHANNELS[[0, 2, 1]][kind],
        rng.choice(CHANNELS, n_customers),
    )
    numbers = rng.permutation(np.arange(10_000, 10_000 + n_customers))
    joined = rng.integers(0, 1500, n_customers)
    lines = ["customer_id,joined,age,orders,basket,returns,channel"]
    for row in range(n_customers):
        cells = [
            f"{numbers[row]}",
            f"{date(2021, 1, 1) + timedelta(int(joined[row]))}",
            "" if row % 25 == 9 else f"{age[row]:.0f}",
            f"{orders[row]}",
            f"{basket[row]:.2f}",
            f"{max(0, returns[row]):.0f} %",
            channel[row],
        ]
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path("customers.csv").write_text(customers(), encoding="utf-8")
