"""A slow, plain twin of the rule of columns, and of the columns that make the clusters: only loops."""

import math
from itertools import combinations

STEP = 0.35


def mean(values, weights):
    return sum(w * x for x, w in zip(values, weights, strict=True)) / sum(weights)


def deviation(values, weights):
    middle = mean(values, weights)
    return math.sqrt(mean([(x - middle) ** 2 for x in values], weights))


def skewness(values, weights):
    middle = mean(values, weights)
    spread = deviation(values, weights)
    return mean([((x - middle) / spread) ** 3 for x in values], weights)


def median(values, weights):
    """The smallest value up to which lies at least half of the weight."""
    reached = 0.0
    for value, weight in sorted(zip(values, weights, strict=True)):
        reached += weight
        if reached >= sum(weights) / 2:
            return value
    raise AssertionError("all of the weight is less than half of it")


def usual(values, weights):
    """The pairs of a value and its weight without those far outside the central 95 %."""
    pairs = sorted(zip(values, weights, strict=True))
    ends = []
    for share in (0.025, 0.975):
        reached = 0.0
        for value, weight in pairs:
            reached += weight
            if reached >= share * sum(weights) * (1 - 1e-12):
                ends.append(value)
                break
    low, high = ends
    if low == high:
        return zip(*pairs, strict=True)
    kept = [pair for pair in pairs if 2 * low - high <= pair[0] <= 2 * high - low]
    return zip(*kept, strict=True)


class Column:
    """A column of the table: its name, its values, and its places among the columns of numbers."""

    def __init__(self, name, places, rows):
        self.name, self.places, self.is_text = name, places, len(places) > 1
        self.values = [tuple(row[p] for p in places) for row in rows]
        self.numbers = [value[0] for value in self.values]
        self.n_values = len(places) if self.is_text else len(set(self.numbers))
        self.is_few = not self.is_text and 1 < self.n_values <= 5
        self.is_many = not self.is_text and self.n_values > 5


def columns_of(rows, sources=None):
    found = []
    for place in range(len(rows[0])):
        name = place if sources is None else sources[place]
        if found and found[-1][0] == name:
            found[-1][1].append(place)
        else:
            found.append((name, [place]))
    return [Column(name, places, rows) for name, places in found]


# -- the rule --------------------------------------------------------------------------


def decision(rows, weights, sources=None):
    """What becomes of the columns, by rules 1 to 4."""
    columns = columns_of(rows, sources)
    many = [column for column in columns if column.is_many]
    places = [[row[p] for row in rows] for p in range(len(rows[0]))]
    ratings = rated(columns, weights)
    if len(ratings) >= 0.9 * len(columns) and any(
        column.name not in ratings and column.n_values > 1 for column in columns
    ):
        return "kinds differ"
    if not many:
        return "few values"
    lengths = [math.sqrt(sum(x * x for x in row)) for row in rows if any(row)]
    if lengths and all(abs(length - 1) <= 0.01 for length in lengths):
        return "length 1"
    off_centre = [
        one
        for one in places
        if abs(mean(one, weights)) > 1e-3 * deviation(one, weights)
    ]
    if len(columns) > 2 and len(many) == len(columns) and not off_centre:
        return "centred"
    least = min(map(min, places))
    greatest = max(max(one.numbers) for one in many)
    sharing = [one for one in places if min(one) == least]
    reaching = [one for one in many if max(one.numbers) == greatest]
    if len(sharing) >= 0.9 * len(places) and len(reaching) >= max(2, 0.5 * len(many)):
        return "one range"
    if len(columns) <= 100 and any(
        column.is_text or column.is_few for column in columns
    ):
        return "kinds differ"
    ratings = rated(columns, weights)
    if ratings and any(column.name not in ratings for column in many):
        return "kinds differ"
    own = [deviation(one.numbers, weights) for one in many]
    logs = [math.log(one) for one in own]
    if deviation(logs, [1] * len(logs)) > 0.5:
        return "units differ"
    middle = sorted(own)[(len(own) - 1) // 2], sorted(own)[len(own) // 2]
    variance = sum(deviation(one, weights) ** 2 for one in places)
    is_widest = max(own) ** 2 > 0.9 * variance and max(own) > 10 * sum(middle) / 2
    return "units differ" if is_widest else "one unit"


def is_whole(x):
    return x == math.floor(x)


def rated(columns, weights):
    """Names of the columns that have a rating scale, by loops over all scales and all sets of columns."""
    if len(columns) > 100:
        return set()
    ends = {}
    for column in columns:
        distinct = set(column.numbers)
        whole = [x for x in distinct if is_whole(x)]
        low, high = min(distinct), max(distinct)
        if column.is_text or not (is_whole(low) and is_whole(high)):
            continue
        share = mean([is_whole(x) for x in column.numbers], weights)
        if len(whole) >= 3 and share >= 0.6 and high - low <= 10:
            ends[column.name] = low, high
    found = set()
    scales = {one for one in ends.values() if one[1] - one[0] >= 3}
    counts = {one: list(ends.values()).count(one) for one in scales}
    while counts:
        low, high = min(counts, key=lambda one: (-counts[one], one[0] - one[1], one))
        n_alike = counts.pop((low, high))
        members = {
            name
            for name, (least, most) in ends.items()
            if low <= least
            and most <= high
            and 2 * (most - least) >= high - low
            and name not in found
        }
        if n_alike >= 2 and len(members) >= 3:
            found |= members
    return found


def treated(column, weights, is_rated=False):
    """Name of the treatment, centre, divisor and unit of a column that is scaled, by rules 5 and 6."""
    values = column.numbers
    if is_rated:
        return "deviation", mean(values, weights), deviation(values, weights), 0.0
    if column.is_text:
        return "category", 0.0, math.sqrt(2) / STEP, 0.0
    if column.n_values == 1:
        return "as it is", 0.0, 1.0, 0.0
    if column.n_values == 2:
        return "step", min(values), (max(values) - min(values)) / STEP, 0.0
    if column.is_few:
        return "step", mean(values, weights), deviation(values, weights) / STEP, 0.0
    near, of_near = usual(values, weights)
    is_skewed = min(values) >= 0 and skewness(near, of_near) >= 1
    if is_skewed and not has_few_levels(column, weights):
        positive = [(x, w) for x, w in zip(values, weights, strict=True) if x > 0]
        unit = median(*zip(*positive, strict=True))
        logs = [math.log(1 + x / unit) for x in near]
        if abs(skewness(logs, of_near)) < skewness(near, of_near):
            logs, of_logs = usual([math.log(1 + x / unit) for x in values], weights)
            return "logarithm", mean(logs, of_logs), deviation(logs, of_logs), unit
    return "deviation", mean(near, of_near), deviation(near, of_near), 0.0


def has_few_levels(column, weights):
    """Whether two random rows have the same number with a probability of a tenth, without those of the most frequent number."""
    if column.is_text or column.n_values == 1:
        return False
    sums = {}
    for value, weight in zip(column.numbers, weights, strict=True):
        sums[value] = sums.get(value, 0.0) + weight
    others = sorted(sums.values())[:-1]
    return sum((weight / sum(others)) ** 2 for weight in others) >= 0.1


# -- columns that make the clusters ----------------------------------------------------


def entropy(codes, weights):
    sums = {}
    for code, weight in zip(codes, weights, strict=True):
        sums[code] = sums.get(code, 0.0) + weight
    return -sum(w / sum(weights) * math.log(w / sum(weights)) for w in sums.values())


def told(codes, labels, weights):
    """Share of the entropy of the labels that codes tell."""
    both = entropy(list(zip(codes, labels, strict=True)), weights)
    return (entropy(codes, weights) + entropy(labels, weights) - both) / entropy(
        labels, weights
    )


def ranks_of(values, weights):
    """The weight below each value, and half of that of equal ones."""
    ranks = []
    for value in values:
        below = sum(w for x, w in zip(values, weights, strict=True) if x < value)
        equal = sum(w for x, w in zip(values, weights, strict=True) if x == value)
        ranks.append(below + equal / 2)
    return ranks


def told_by_ranks(values, labels, weights):
    """Share of the variance of ranks that lies between clusters."""
    ranks = ranks_of(values, weights)
    within = {}
    for rank, label, weight in zip(ranks, labels, weights, strict=True):
        within.setdefault(label, []).append((rank, weight))
    of_row = {label: mean(*zip(*pairs, strict=True)) for label, pairs in within.items()}
    between = deviation([of_row[label] for label in labels], weights)
    return (between / deviation(ranks, weights)) ** 2


def single(rows, weights, labels, sources=None):
    """Each column that makes the clusters, or each pair if none does: share, names, most of the others."""
    columns = columns_of(rows, sources)
    if len(columns) < 2 or len(set(labels)) < 2:
        return []
    few = [one for one in columns if 1 < one.n_values <= (30 if one.is_text else 10)]
    numbers = [one for one in columns if not one.is_text and one.n_values > 10]
    by_ranks = [(one, told_by_ranks(one.numbers, labels, weights)) for one in numbers]
    shares = [*by_ranks, *((one, told(one.values, labels, weights)) for one in few)]
    for number in (1, 2):
        flagged = []
        for chosen in combinations(few, number):
            values = list(zip(*(one.values for one in chosen), strict=True))
            share = told(values, labels, weights)
            others = max(
                (told for one, told in shares if one not in chosen), default=0.0
            )
            if share > 0.6 and others < 0.2:
                flagged.append((share, sorted(one.name for one in chosen), others))
        if flagged:
            return sorted(flagged)[::-1]
    if not few or max(told for one, told in shares if one in few) >= 0.2:
        return []
    return single_number(numbers, shares, weights, labels)


def single_number(numbers, shares, weights, labels):
    """The number whose ranges tell most of the clusters, if no other column tells a fifth."""
    told_of = []
    for one in numbers:
        ranges = [
            int(20 * rank / sum(weights)) for rank in ranks_of(one.numbers, weights)
        ]
        told_of.append((told(ranges, labels, weights), one))
    if not told_of:
        return []
    share, leading = max(told_of, key=lambda pair: pair[0])
    others = max((told for one, told in shares if one is not leading), default=0.0)
    if share > 0.6 and others < 0.2:
        return [(share, [leading.name], others)]
    return []
