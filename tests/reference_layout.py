"""A slow, plain twin of the layout of a graph: the same arithmetic in the same order."""

import numpy as np

from tests.reference import random_numbers


def forces(scale, difference):
    return [min(max(scale * one, -4.0), 4.0) for one in difference]


def between(x, y):
    difference = [one - other for one, other in zip(x, y, strict=True)]
    squared = 0.0
    for one in difference:  # `sum` adds with a correction
        squared += one * one
    return difference, squared


def lay_out(indptr, indices, weights, start, n_epochs, n_negative, seed):
    positions = start.tolist()
    due = [0.0] * len(weights)
    numbers = random_numbers(seed)
    for epoch in range(n_epochs):
        rate = 1.0 - epoch / n_epochs
        for i, x in enumerate(positions):
            for edge in range(indptr[i], indptr[i + 1]):
                due[edge] += weights[edge]
                if due[edge] < 1.0:
                    continue
                due[edge] -= 1.0
                y = positions[indices[edge]]
                difference, square = between(x, y)
                for c, force in enumerate(forces(-2.0 / (1.0 + square), difference)):
                    x[c] += rate * force
                    y[c] -= rate * force
                total = [0.0] * len(x)
                for _ in range(n_negative):
                    difference, square = between(
                        x, positions[int(next(numbers) * len(positions))]
                    )
                    scale = 2.0 / ((1e-3 + square) * (1.0 + square))
                    total = [
                        a + b
                        for a, b in zip(total, forces(scale, difference), strict=True)
                    ]
                x[:] = [one + rate * force for one, force in zip(x, total, strict=True)]
    return np.array(positions)
