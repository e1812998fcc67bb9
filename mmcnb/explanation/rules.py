"""Find a rule for each cluster: up to three conditions that few other rows meet.

Rules are searched for in a sample. The rows that meet them are then counted on all
rows. The score of a rule is the F-measure of its coverage c and precision p,
2cp / (c + p), minus a price for each bound of its conditions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from mmcnb.engine.run import Engine
from mmcnb.explanation.conditions import BINARY, Column, Condition, columns_of
from mmcnb.explanation.groups import Groups, Sample, draw_rows, sizes_of_samples
from mmcnb.explanation.sentences import cluster_title, percent
from mmcnb.explanation.summary import MOST_COLUMNS, Means, strongest_columns
from mmcnb.samples import Samples
from mmcnb.samples.matrix import Block, Matrix, as_matrix

MOST_CONDITIONS = 3
# The search starts from the best pairs of conditions on SEARCH_ROWS rows of the sample,
# adds a third condition to the best pairs, and refines the best rule on the whole
# sample.
SEARCH_ROWS = 4000
N_CUTS = 7  # number of thresholds per column in the first conditions
N_STARTS = 8  # number of pairs of conditions with which the search starts
N_LENGTHENED = 3  # number of pairs to which a third condition is added
MOST_ROUNDS = 3  # maximum number of rounds that refine all conditions of a rule
# A bound must increase F by more than LEAST_GAIN, so that it is worth reading, and by
# more than LEAST_ROWS divided by the number of rows of the cluster, so that it does not
# depend on single rows.
LEAST_GAIN = 0.01
LEAST_ROWS = 1.5
LOST_BY_ROUNDING = 0.002  # accepted loss in F for a threshold with fewer digits
MOST_OF_OTHERS = 0.5  # maximum weight of a cluster, relative to all other rows
# The F-measure of a rule must exceed the F-measure of the rule without conditions by at
# least this value.
LEAST_LEAD = 0.05

Rule = tuple[Condition, ...]


class CountedRule(NamedTuple):
    """A row of `Explanation.rules`; see `Explanation` for the fields."""

    cluster: object
    rule: str
    conditions: list[tuple[Any, ...]]
    coverage: float
    precision: float
    matching: int


class Weights(NamedTuple):
    """Weights of rows in the search for the rule of one cluster.

    Weights of the cluster are reduced so that their sum is at most half the sum of all
    other weights. Otherwise, no rule for a cluster with most of the rows would be
    clearly better than the rule without conditions.

    Attributes
    ----------
    inside : ndarray of shape (m,)
        Weights of the rows of the cluster, and 0 for other rows.
    all : ndarray of shape (m,)
        Weights of all rows, including the rows of the cluster.
    price : float
        Value that each bound of a rule subtracts from its F-measure.
    """

    inside: np.ndarray
    all: np.ndarray
    price: float

    @classmethod
    def of_cluster(cls, weights: np.ndarray, is_inside: np.ndarray) -> "Weights":
        """Return the weights for the cluster whose rows are True in ``is_inside``."""
        total = weights[is_inside].sum()
        others = weights[~is_inside].sum()
        scale = min(1.0, MOST_OF_OTHERS * others / total)
        inside = np.where(is_inside, weights * scale, 0.0)
        price = max(LEAST_GAIN, LEAST_ROWS / np.count_nonzero(is_inside))
        return cls(inside, np.where(is_inside, inside, weights), price)

    def f_measure(self, mask: np.ndarray) -> float:
        """Return the F-measure of a rule, given a mask of the rows that meet it."""
        matching = self.all[mask].sum()
        return 2 * float(self.inside[mask].sum() / (matching + self.inside.sum()))


@dataclass(frozen=True, eq=False)
class SearchRows:
    """Sampled rows, with the columns that may occur in rules.

    Attributes
    ----------
    columns : list of Column
        Columns that may occur in rules.
    values : ndarray of shape (m, c)
        Value of each column in each row, with NaN for missing values.
    codes : ndarray of shape (m,)
        For each row, the index of its cluster.
    weights : ndarray of shape (m,)
        Number of rows of its cluster that each sampled row represents.
    """

    columns: list[Column]
    values: np.ndarray
    codes: np.ndarray
    weights: np.ndarray

    @classmethod
    def of_sample(cls, columns: list[Column], sample: Sample) -> "SearchRows":
        """Return the rows of a sample, with the given columns.

        Columns of numbers that contain only 0 and 1 become "binary" columns.
        """
        columns_and_kinds = []
        values = np.empty((sample.codes.size, len(columns)), order="F")
        for k, column in enumerate(columns):
            values[:, k] = column.values_of(sample.values)
            column_values = values[:, k]
            is_binary = np.isin(column_values, (0, 1)) | np.isnan(column_values)
            if column.kind == "number" and is_binary.all():
                column = replace(column, kind="binary")
            columns_and_kinds.append(column)
        return cls(columns_and_kinds, values, sample.codes, sample.weights)

    def part(self, rows: np.ndarray) -> "SearchRows":
        """Return a subset of the rows.

        Weights are rescaled so that the total weight of each cluster does not change.
        """
        n_rows = np.bincount(self.codes)
        n_kept = np.maximum(np.bincount(self.codes[rows], minlength=n_rows.size), 1)
        codes = self.codes[rows]
        weights = self.weights[rows] * (n_rows / n_kept)[codes]
        return SearchRows(self.columns, self.values[rows], codes, weights)

    def weights_for(self, k: int) -> Weights:
        """Return the weights of the rows in the search for cluster k."""
        return Weights.of_cluster(self.weights, self.codes == k)

    def mask(self, rule: Rule, but: int = -1) -> np.ndarray:
        """Return a boolean mask of the rows that meet a rule.

        The condition with index ``but`` is ignored; -1 ignores none.
        """
        met = np.ones(self.codes.size, bool)
        for place, condition in enumerate(rule):
            if place != but:
                met &= condition.holds(self.values_of(condition))
        return met

    def values_of(self, condition: Condition) -> np.ndarray:
        """Return the values of the column to which a condition applies."""
        return self.values[:, self.place_of[condition.column]]

    @cached_property
    def place_of(self) -> dict[Column, int]:
        """Mapping from each column to its index in `columns`."""
        return {column: place for place, column in enumerate(self.columns)}

    @cached_property
    def first_conditions(self) -> list[Condition]:
        """Conditions with one bound each, from which the search starts."""
        conditions = []
        for column, values in zip(self.columns, self.values.T, strict=True):
            known = values[~np.isnan(values)]
            if known.size < values.size:
                conditions.append(Condition(column, is_missing=True))
            for cut in _cuts(column, known):
                conditions.append(Condition(column, low=cut))
                if column.kind != "text":
                    conditions.append(Condition(column, high=cut))
        return conditions

    @cached_property
    def indicators(self) -> np.ndarray:
        """0/1 matrix of the rows that meet each of `first_conditions`.

        The axes are rows and conditions.
        """
        met = np.empty((self.codes.size, len(self.first_conditions)), np.float32)
        for k, condition in enumerate(self.first_conditions):
            met[:, k] = condition.holds(self.values_of(condition))
        return met

    def pairs_in(self, k: int) -> np.ndarray:
        """Return the weight of the rows of cluster k that meet both of two conditions.

        The result is a matrix with an entry for each pair of `first_conditions`.
        """
        members = self.codes == k
        met = self.indicators[members]
        # All rows of a cluster have the same weight, so rows can be counted. Counts of
        # up to SEARCH_ROWS rows are exact in float32.
        return self.weights[members][0] * (met.T @ met).astype(np.float64)

    @cached_property
    def pairs(self) -> np.ndarray:
        """Weight of the rows that meet both of two conditions.

        The value is a matrix with an entry for each pair of `first_conditions`.
        """
        return (self.indicators.T * self.weights) @ self.indicators


def _cuts(column: Column, known: np.ndarray) -> np.ndarray:
    """Return thresholds at quantiles of the known values, except the largest value."""
    if column.kind in BINARY:
        return np.array([0.5])
    if known.size == 0:
        return known
    ranks = np.arange(1, N_CUTS + 1) / (N_CUTS + 1) * known.size
    places = np.ceil(ranks).astype(int) - 1
    cuts = np.unique(np.partition(known, np.unique(places))[places])
    return cuts[cuts < known.max()]


class RuleSearch(NamedTuple):
    """Search for a rule of one cluster.

    Attributes
    ----------
    rows : SearchRows
        Rows on which rules are scored.
    weights : Weights
        Weights of these rows for the cluster.
    """

    rows: SearchRows
    weights: Weights

    def score(self, rule: Rule) -> float:
        """Return the F-measure of a rule minus the price of its bounds."""
        n_bounds = sum(condition.n_bounds for condition in rule)
        f_measure = self.weights.f_measure(self.rows.mask(rule))
        # Scores are rounded, because sums may have rounding errors although rules are
        # equally good.
        return round(f_measure - n_bounds * self.weights.price, 9)

    def starts(self, k: int) -> list[Rule]:
        """Return the `N_STARTS` best pairs of first conditions for cluster k.

        At most one pair of conditions is returned for each pair of columns. All pairs
        are scored, so a conjunction is found even if neither of its columns separates
        the cluster on its own.
        """
        rows = self.rows
        conditions = rows.first_conditions
        if not conditions:
            return []
        n_inside = self.weights.inside.sum()
        scale = n_inside / rows.weights[rows.codes == k].sum()
        inside = rows.pairs_in(k)
        matching = rows.pairs - (1 - scale) * inside
        n_bounds = 2 - np.eye(len(conditions))
        f_measures = 2 * scale * inside / (matching + n_inside)
        scores = np.round(f_measures - n_bounds * self.weights.price, 9)
        places = [rows.place_of[condition.column] for condition in conditions]
        ends = np.flatnonzero(np.diff(places, prepend=-1, append=len(rows.columns)))
        starts = ends[:-1]
        by_row = np.maximum.reduceat(scores, starts, axis=0)
        by_column = np.triu(np.maximum.reduceat(by_row, starts, axis=1))
        chosen = []
        for place in np.argsort(-by_column, axis=None, kind="stable")[:N_STARTS]:
            i, j = np.unravel_index(place, by_column.shape)
            block = scores[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
            first, second = np.unravel_index(np.argmax(block), block.shape)
            pair = conditions[starts[i] + first], conditions[starts[j] + second]
            chosen.append(joined(pair))
        return chosen

    def lengthened(self, rule: Rule) -> Iterator[Rule]:
        """Yield two longer rules, each with an additional condition.

        The additional conditions are the best first conditions on two different columns
        that do not occur in the rule.
        """
        rows = self.rows
        met = rows.mask(rule)
        indicators = rows.indicators[met]
        inside = self.weights.inside[met] @ indicators
        matching = self.weights.all[met] @ indicators
        f_measures = 2 * inside / (matching + self.weights.inside.sum())
        order = np.argsort(-np.round(f_measures, 9), kind="stable")
        named = {condition.column for condition in rule}
        n_yielded = 0
        for k in order:
            condition = rows.first_conditions[k]
            if condition.column not in named:
                named.add(condition.column)
                yield (*rule, condition)
                n_yielded += 1
            if n_yielded == 2:
                return

    def polished(self, rule: Rule) -> Rule:
        """Optimise the conditions of a rule one at a time, with the others fixed."""
        best = self.score(rule)
        for _ in range(MOST_ROUNDS):
            changed = rule
            for place, condition in enumerate(changed):
                others = self.rows.mask(changed, but=place)
                better = self.best_condition(condition.column, others)
                changed = (*changed[:place], better, *changed[place + 1 :])
            changed = tuple(condition for condition in changed if condition.n_bounds)
            score = self.score(changed)
            if score <= best:
                break
            rule = changed
            best = score
        return rule

    def best_condition(self, column: Column, others: np.ndarray) -> Condition:
        """Return the best condition on a column, given the other conditions of a rule.

        ``others`` is a mask of the rows that meet the other conditions.
        """
        values = self.rows.values[others, self.rows.place_of[column]]
        ranked = RankedValues.of_rows(
            values, self.weights.inside[others], self.weights.all[others]
        )
        n_inside = self.weights.inside.sum()
        return ranked.best_condition(column, n_inside, self.weights.price)


@dataclass(frozen=True)
class RankedValues:
    """Distinct values of a column in ascending order, with cumulative row weights.

    Attributes
    ----------
    values : ndarray of shape (v,)
        Distinct values, in ascending order.
    inside, all : ndarray of shape (v + 1,)
        Element j is the total weight of the rows with one of the first j values, for
        rows in the cluster and for all rows.
    missing : tuple of float
        Total weight of the rows in which the value is missing, for rows in the cluster
        and for all rows.
    """

    values: np.ndarray
    inside: np.ndarray
    all: np.ndarray
    missing: tuple[float, float]

    @classmethod
    def of_rows(
        cls, values: np.ndarray, inside: np.ndarray, all_weights: np.ndarray
    ) -> "RankedValues":
        """Sort the distinct values of rows, and sum the weights up to each value.

        ``values`` contains the value of each row, and NaN is a missing value.
        ``inside`` and ``all_weights`` are weights as in `Weights`.
        """
        order = np.argsort(values, kind="stable")
        n_known = values.size - np.count_nonzero(np.isnan(values))
        known = values[order[:n_known]]
        is_last = np.append(known[1:] != known[:-1], True)[:n_known]
        sums = []
        missing = []
        for weights in (inside, all_weights):
            running = weights[order[:n_known]].cumsum()
            sums.append(np.append(0.0, running[is_last]))
            missing.append(float(weights[order[n_known:]].sum()))
        return cls(known[is_last], sums[0], sums[1], (missing[0], missing[1]))

    def best_condition(
        self, column: Column, n_inside: float, price: float
    ) -> Condition:
        """Return the condition with the largest F-measure minus the price of bounds.

        Parameters
        ----------
        column : Column
            Column to which the condition applies.
        n_inside : float
            Weight of the whole cluster, including rows that are not ranked.
        price : float
            Price of a bound.
        """
        everything = self.sums(0, self.values.size)
        with_gaps = [
            value + gap for value, gap in zip(everything, self.missing, strict=True)
        ]
        options = {Condition(column): with_gaps}
        if self.missing[1]:
            options[Condition(column, is_missing=True)] = list(self.missing)
        if self.values.size > 1:
            options |= self._inequalities(column, n_inside)
        scores = [
            round(2 * inside / (matching + n_inside) - condition.n_bounds * price, 9)
            for condition, (inside, matching) in options.items()
        ]
        return list(options)[int(np.argmax(scores))]

    def sums(self, first: int, last: int) -> list[float]:
        """Return the weight of the rows with values of ranks ``first`` to ``last - 1``.

        The result is a list of the weight in the cluster and the weight of all rows.
        """
        return [float(sums[last] - sums[first]) for sums in (self.inside, self.all)]

    def _inequalities(
        self, column: Column, n_inside: float
    ) -> dict[Condition, list[float]]:
        """Return the best conditions with one or two bounds, and their weights.

        The result maps each condition to the weights of the rows that meet the
        condition, in the form of `sums`.
        """
        n = self.values.size
        below = 2 * self.inside / (self.all + n_inside)
        rest_inside = self.inside[-1] - self.inside
        rest = self.all[-1] - self.all
        above = 2 * rest_inside / (rest + n_inside)
        first = 1 + int(np.argmax(np.round(above[1:n], 9)))
        last = 1 + int(np.argmax(np.round(below[1:n], 9)))
        options = {self._condition(column, first, n): self.sums(first, n)}
        if column.kind == "text":
            return options
        options[self._condition(column, 0, last)] = self.sums(0, last)
        if column.kind in BINARY:
            return options
        first, last = self._best_interval(n_inside, max(above[first], below[last]))
        options[self._condition(column, first, last)] = self.sums(first, last)
        if column.kind == "clock":
            first, last = self._best_night(n_inside, max(above.max(), below.max()))
            if 0 < first < last < n:
                until, after = self.values[[first - 1, last - 1]].tolist()
                night = Condition(column, low=after, high=until)
                whole = self.sums(0, n)
                day = self.sums(first, last)
                options[night] = [a - b for a, b in zip(whole, day, strict=True)]
        return options

    def _condition(self, column: Column, first: int, last: int) -> Condition:
        """Return the condition that is met by the values of certain ranks only.

        These are the ranks from ``first`` to ``last - 1``.
        """
        low = self.values[first - 1] if first > 0 else -np.inf
        high = self.values[last - 1] if last < self.values.size else np.inf
        return Condition(column, float(low), float(high))

    def _best_interval(self, n_inside: float, f_measure: float) -> tuple[int, int]:
        """Return the interval of values with the largest F-measure.

        F = 2 inside / (matching + n_inside) is a ratio of sums, which Dinkelbach's
        algorithm (1967) maximises. Each step finds the interval with the largest value
        of 2 inside - F matching, for the F of the preceding step. The first step uses
        ``f_measure``.
        """
        best = (0, self.values.size)
        while True:
            first, last = largest_interval(2 * self.inside - f_measure * self.all)
            inside, matching = self.sums(first, last)
            better = 2 * inside / (matching + n_inside)
            if better <= f_measure + 1e-12:
                return best
            best = (first, last)
            f_measure = better

    def _best_night(self, n_inside: float, f_measure: float) -> tuple[int, int]:
        """Return the interval of values whose complement has the largest F-measure.

        The algorithm is the same as in `_best_interval`.
        """
        best = (0, self.values.size)
        whole = self.sums(0, self.values.size)
        while True:
            first, last = largest_interval(f_measure * self.all - 2 * self.inside)
            day = self.sums(first, last)
            better = 2 * (whole[0] - day[0]) / (whole[1] - day[1] + n_inside)
            if better <= f_measure + 1e-12:
                return best
            best = (first, last)
            f_measure = better

    def short_bound(
        self, condition: Condition, n_inside: float, is_low: bool
    ) -> Condition:
        """Round one bound of a condition to few digits, at a similar F-measure.

        ``is_low`` selects the lower bound, and ``n_inside`` is the weight of the whole
        cluster.
        """
        bound = condition.low if is_low else condition.high
        other = condition.high if is_low else condition.low
        n = self.values.size
        if not np.isfinite(bound) or n < 2:
            return condition
        place = int(np.searchsorted(self.values, bound, "right"))
        end = n if is_low else 0
        if np.isfinite(other):
            end = int(np.searchsorted(self.values, other, "right"))
        inside = np.abs(self.inside - self.inside[end])
        matching = np.abs(self.all - self.all[end])
        f_measures = 2 * inside / (matching + n_inside)
        is_close = f_measures >= f_measures[place] - LOST_BY_ROUNDING
        first, last = close_range(is_close, place)
        first = max(first, 1)
        last = min(last, n - 1)
        if first > last:
            return condition
        least, most = self.values[[first - 1, last]].tolist()
        near = bound  # thresholds of columns with levels are not rounded
        if not condition.column.levels:
            # Prefer the midpoint between two values, which is farthest from all rows.
            near = float(self.values[max(place - 1, 0) : place + 1].mean())
        short = condition.column.threshold(least, most, near)
        if is_low:
            return replace(condition, low=short)
        return replace(condition, high=short)

    def short_night(self, condition: Condition) -> Condition:
        """Round both bounds of a condition on a clock column to fewer digits.

        The condition, which has ``low > high``, is met by the same values as before.
        """
        bounds = []
        for bound in (condition.low, condition.high):
            place = int(np.searchsorted(self.values, bound, "right"))
            least, most = self.values[place - 1 : place + 1].tolist()
            bounds.append(condition.column.threshold(least, most, bound))
        return Condition(condition.column, low=bounds[0], high=bounds[1])


def largest_interval(sums: np.ndarray) -> tuple[int, int]:
    """Return the indices i < j with the largest difference sums[j] - sums[i].

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.rules import largest_interval
    >>> largest_interval(np.array([0.0, -1.0, 1.0, 3.0, 2.0]))
    (1, 3)
    """
    least = np.minimum.accumulate(sums[:-1])
    last = 1 + int(np.argmax(np.round(sums[1:] - least, 9)))
    return int(np.argmin(sums[:last])), last


def close_range(is_close: np.ndarray, place: int) -> tuple[int, int]:
    """Return the first and last index of the run of True values around index ``place``.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.explanation.rules import close_range
    >>> close_range(np.array([True, False, True, True, True]), 3)
    (2, 4)
    """
    before = int(np.argmin(np.append(is_close[place::-1], False)))
    after = int(np.argmin(np.append(is_close[place:], False)))
    return place - before + 1, place + after - 1


def joined(rule: Rule) -> Rule:
    """Merge the two conditions of a rule into one if they apply to the same column.

    If such conditions cannot be merged, only the first is kept. A rule with conditions
    on two columns is returned unchanged.
    """
    first, second = rule
    if first.column != second.column:
        return rule
    low = max(first.low, second.low)
    high = min(first.high, second.high)
    if first.is_missing or second.is_missing or low >= high:
        return (first,)
    return (Condition(first.column, low, high),)


def rule_of(k: int, rows: SearchRows, few: SearchRows) -> Rule:
    """Return the rule of a cluster, or an empty rule if no rule is good enough.

    Parameters
    ----------
    k : int
        Index of the cluster.
    rows : SearchRows
        All rows of the sample, on which the best rule is refined.
    few : SearchRows
        Subset of the sample, on which rules are searched for.
    """
    search = RuleSearch(few, few.weights_for(k))
    short = {search.polished(rule) for rule in search.starts(k)} - {()}
    if not short:
        return ()
    ranked = sorted(short, key=lambda rule: (-search.score(rule), str_of(rule)))
    longer = {
        search.polished(candidate)
        for rule in ranked[:N_LENGTHENED]
        if len(rule) < MOST_CONDITIONS
        for candidate in search.lengthened(rule)
    } - {()}
    best = max(
        [*ranked, *sorted(longer, key=str_of)],
        key=search.score,
    )
    whole = RuleSearch(rows, rows.weights_for(k))
    rule = shortened(whole, whole.polished(best))
    trivial = whole.weights.f_measure(np.ones(rows.codes.size, bool))
    if not rule or whole.weights.f_measure(rows.mask(rule)) < trivial + LEAST_LEAD:
        return ()
    return rule


def shortened(search: RuleSearch, rule: Rule) -> Rule:
    """Simplify a rule by removing conditions and rounding thresholds.

    Conditions are removed if they do not improve the score of the rule.
    """
    parts = [
        part
        for n_conditions in range(len(rule), 0, -1)
        for part in combinations(rule, n_conditions)
    ]
    if not parts:
        return ()
    rule = max(parts, key=search.score)
    n_inside = search.weights.inside.sum()
    for place in range(len(rule)):
        condition = rule[place]
        others = search.rows.mask(rule, but=place)
        ranked = RankedValues.of_rows(
            search.rows.values_of(condition)[others],
            search.weights.inside[others],
            search.weights.all[others],
        )
        if condition.low > condition.high:
            condition = ranked.short_night(condition)
        else:
            for is_low in (True, False):
                condition = ranked.short_bound(condition, n_inside, is_low)
        rule = (*rule[:place], condition, *rule[place + 1 :])
    return rule


def str_of(rule: Rule) -> str:
    """Return a rule as text.

    Examples
    --------
    >>> from mmcnb.explanation.conditions import Column, Condition
    >>> from mmcnb.explanation.rules import str_of
    >>> orders = Column("orders", "number", (0,))
    >>> invoice = Column("payment", "text", (1,), "invoice")
    >>> str_of((Condition(orders, low=12.0), Condition(invoice, low=0.5)))
    'orders > 12 and payment = invoice'
    """
    return " and ".join(map(str, rule))


@dataclass(frozen=True)
class RulesPass:
    """A pass that counts the rows that meet each rule.

    Its total is an array of shape (n_rules, 2) with the number of rows of the rule's
    cluster and the number of all rows that meet each rule.

    Parameters
    ----------
    rules : list of (k, rule)
        Rules, each with the index of its cluster.
    codes : ndarray of shape (n,)
        For each row, the index of its cluster.
    """

    rules: list[tuple[int, Rule]]
    codes: np.ndarray

    def block(self, rows: Block, start: int, stop: int) -> np.ndarray:
        """Return the counts for one block."""
        return self.counts(as_matrix(rows), self.codes[start:stop])

    def combine(self, total: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Add the counts for two ranges of rows."""
        return total + other

    def counts(self, X: Matrix, codes: np.ndarray) -> np.ndarray:
        """Return the counts for rows ``X`` with cluster indices ``codes``."""
        counts = np.zeros((len(self.rules), 2), np.int64)
        for place, (k, rule) in enumerate(self.rules):
            met = np.ones(codes.size, bool)
            for condition in rule:
                met &= condition.holds(condition.column.values_of(X))
            counts[place] = np.count_nonzero(met & (codes == k)), np.count_nonzero(met)
        return counts


def find_rules(
    engine: Engine,
    samples: Samples,
    groups: Groups,
    means: Means,
    sample: Sample,
) -> list[tuple[int, Rule]]:
    """Find a rule for each cluster in a sample.

    Parameters
    ----------
    engine : Engine
        Engine that runs the searches.
    samples : Samples
        All rows.
    groups : Groups
        Cluster of each row.
    means : Means
        Means and effects of the columns. For each cluster, only the 50 columns with the
        largest effects may occur in its rule.
    sample : Sample
        Sample in which rules are searched for.

    Returns
    -------
    list of (k, rule)
        For each cluster except noise, its index and its rule. The list is empty if
        there is only one cluster.
    """
    known = groups.known.tolist()
    if len(known) < 2:
        return []
    columns = columns_of(samples)
    few = _few_rows(sample.codes, groups)

    def rows_with(places: np.ndarray) -> tuple[SearchRows, SearchRows]:
        found = [columns[place] for place in np.sort(places)]
        rows = SearchRows.of_sample([c for c in found if c is not None], sample)
        return rows, rows.part(few)

    shared = None
    if len(columns) <= MOST_COLUMNS:
        shared = rows_with(np.arange(len(columns)))
        if shared[1].first_conditions:
            _ = shared[1].pairs  # cache the property before several threads use it

    def of_cluster(k: int) -> tuple[int, Rule]:
        rows, part = shared or rows_with(strongest_columns(means, k))
        return k, rule_of(k, rows, part)

    return engine.each(of_cluster, known)


def _few_rows(codes: np.ndarray, groups: Groups) -> np.ndarray:
    """Draw the rows of a sample on which rules are searched for.

    The result contains the indices of these rows in the sample.
    """
    counts = np.bincount(codes, minlength=groups.counts.size)
    in_sample = Groups(groups.clusters, counts, codes)
    return draw_rows(in_sample, sizes_of_samples(counts, SEARCH_ROWS))


def rule_table(
    groups: Groups, rules: list[tuple[int, Rule]], counts: np.ndarray
) -> pd.DataFrame:
    """Return the table `Explanation.rules`.

    ``counts`` is the result of a `RulesPass` over all rows.
    """
    found = []
    for (k, rule), (inside, matching) in zip(rules, counts.tolist(), strict=True):
        is_counted = bool(rule and matching)
        row = CountedRule(
            cluster=groups.clusters[k],
            rule=str_of(rule),
            conditions=[tuple(term) for part in rule for term in part.terms()],
            coverage=inside / int(groups.counts[k]) if is_counted else np.nan,
            precision=inside / matching if is_counted else np.nan,
            matching=matching if is_counted else 0,
        )
        found.append(row)
    table = pd.DataFrame(found, columns=CountedRule._fields)
    table["sentence"] = list(map(rule_sentence, found))
    return table


def rule_sentence(row: CountedRule) -> str:
    """Return a sentence with a rule, its coverage and its precision."""
    title = cluster_title(row.cluster)
    if not row.rule:
        return f"{title}: no rule of at most {MOST_CONDITIONS} conditions."
    return (
        f"{title}: {row.rule} ({percent(row.coverage)} of the cluster; "
        f"{percent(row.precision)} of the {row.matching:,} rows that match)."
    )
