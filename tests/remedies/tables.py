"""Text of CSV files with what people's files have."""


def lines(header, row, n=40):
    """A header and rows."""
    return "\n".join([header, *(row(k) for k in range(n))]) + "\n"


def numbers(k):
    """A row of two numbers."""
    return f"{k % 7},{k * k % 11}"


def beside(cell, n=40, header="age,what"):
    """A column of numbers, and one whose cells a function gives."""
    return lines(header, lambda k: f"{k % 5},{cell(k)}", n)


PLAIN = lines("age,pay", numbers)
