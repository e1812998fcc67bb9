"""Slow, plain twins of the compiled routines: the formula in float64, and nothing else."""

import math

import numpy as np


def dense_rows(data, indices, indptr, n_features):
    X = np.zeros((len(indptr) - 1, n_features))
    for i in range(len(X)):
        for position in range(indptr[i], indptr[i + 1]):
            X[i, indices[position]] = data[position]
    return X


def squared_norms(X):
    return np.array([sum(float(value) ** 2 for value in x) for x in X])


def rbf_kernel_block(X, B, gamma):
    K = np.empty((len(X), len(B)))
    for i, x in enumerate(X):
        for k, b in enumerate(B):
            K[i, k] = math.exp(-gamma * sum((float(x[j]) - float(b[j])) ** 2 for j in range(len(x))))
    return K


def linear_kernel_block(X, B):
    return polynomial_kernel_block(X, B, 1.0, 0.0, 1)


def polynomial_kernel_block(X, B, gamma, coef0, degree):
    K = np.empty((len(X), len(B)))
    for i, x in enumerate(X):
        for k, b in enumerate(B):
            K[i, k] = (gamma * sum(float(x[j]) * float(b[j]) for j in range(len(x))) + coef0) ** degree
    return K


def basis_fixed_point_sums(X, z, b, gamma):
    """Wu & Zhang, eq. (47): numerator and denominator."""
    weights = z * rbf_kernel_block(X, b[None], gamma)[:, 0]
    return weighted_row_sum(X, weights), sum(weights)


def weighted_row_sum(X, z):
    total = np.zeros(X.shape[1])
    for i in range(len(X)):
        total += z[i] * X[i].astype(float)
    return total


def decision_values(F, coef, offset):
    return np.array([sum(float(row[j]) * coef[j] for j in range(len(row))) + offset for row in F])


def most_violated_constraint(F, y, weights, coef, offset, rho):
    """Wu & Zhang, eq. (12): c_i = 1 where y_i f_i <= rho."""
    f = decision_values(F, coef, offset)
    c = y * f <= rho
    sums = [
        sum(weights[c]),
        sum((weights * y)[c]),
        sum((weights * (rho - y * f))[c]),
        sum(weights[f >= 0]),
        np.count_nonzero(np.where(f >= 0, 1, -1) != y),
        sum(weights * np.maximum(0, rho - abs(f))),
        sum(weights),
    ]
    return c, weighted_row_sum(F, weights * y * c), np.array(sums)


def plane_sums(F, y, weights, coefs, offsets, rhos):
    planes = [
        most_violated_constraint(F, y, weights, coef, offset, rho)
        for coef, offset, rho in zip(coefs.T, offsets, rhos, strict=True)
    ]
    s = np.array([sums[0] for _, _, sums in planes])
    t = np.array([sums[1] for _, _, sums in planes])
    return s, t, np.array([row_sum for _, row_sum, _ in planes])
