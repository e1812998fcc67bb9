"""Write a table like an export of a spreadsheet program: `python docs/_scripts/orders.py` writes orders.csv.

The table has a title, semicolons, decimal commas, units, percent signs, missing values,
codes with leading zeros, dates, customer numbers, and a Windows encoding.
"""

from datetime import date, timedelta
from pathlib import Path

import numpy as np

N_ORDERS = 600
CHANNELS = np.array(["Büro", "Laden", "Netz"])


def orders(n_orders: int = N_ORDERS, seed: int = 0) -> str:
    """Return the text of a table with three kinds of orders, one for each channel."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n_orders)
    amount = np.array([240, 650, 1250])[kind] + rng.normal(0, 60, n_orders)
    weight = np.array([0.8, 2.5, 4.5])[kind] + rng.normal(0, 0.2, n_orders)
    discount = np.array([3, 8, 15])[kind] + rng.normal(0, 0.9, n_orders)
    minutes = np.array([5, 12, 24])[kind] + rng.normal(0, 1, n_orders)
    channel = np.where(
        rng.random(n_orders) < 0.8, CHANNELS[kind], rng.choice(CHANNELS, n_orders)
    )
    customers = np.random.default_rng(seed + 1).integers(1000, 9999, n_orders)
    lines = ["Orders of the winter season", ""]
    columns = "order;date;customer no;amount;weight;discount;packing;channel;comment"
    lines.append(columns)
    for row in range(n_orders):
        euros = f"{amount[row]:,.2f}".translate(str.maketrans(",.", ".,"))
        grams = f"{1000 * weight[row]:.0f} g"
        kilograms = f"{weight[row]:.2f} kg".replace(".", ",")
        cells = [
            f"{7 * row + 13:06d}",
            f"{date(2025, 12, 1) + timedelta(row // 8):%d.%m.%Y}",
            f"{customers[row]}",
            "?" if row % 40 == 7 else f"{euros} €",
            grams if weight[row] < 1 else kilograms,
            f"{discount[row]:.1f} %".replace(".", ","),
            f"{int(minutes[row])}:{int(60 * minutes[row] % 60):02d}",
            channel[row],
            f"call {rng.integers(10**6)} before noon" if row % 3 else "",
        ]
        lines.append(";".join(cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path("orders.csv").write_text(orders(), encoding="cp1252")
