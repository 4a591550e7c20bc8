"""Measures the loss of releases of Adult, whichever program made them, and prints it as JSON.

    loss.py FOLDER FILE...

FOLDER holds the table and ARX's hierarchies, each FILE a release as CSV. The script uses only Python's
standard library, and nothing of kohort. Per file:

lm      mean over the eight quasi cells of all rows of the table: (leaves - 1) / (leaves of the root - 1) of a category,
        (hi - lo) / (width of the column) of an age; a row that is not in the release counts 1 per cell
lm_sets the same, but a set of categories counts its members instead of the leaves below their common ancestor
k       rows in the smallest class
rows    how many were released

A cell is a value, a label of the hierarchy, `*`, a range of ages (`[20,29]` or `20-29`, cut to the ages that occur), or
a set of categories (`a,b,c`).
"""

import csv
import json
import re
import sys
from collections import Counter
from pathlib import Path

NUMBER = "age"
CATEGORIES = ["sex", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
QUASI = [NUMBER, *CATEGORIES]
RANGE = re.compile(r"\[(\d+), ?(\d+)\]|(\d+)-(\d+)")


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        separator = ";" if ";" in file.readline() else ","
        file.seek(0)
        return [tuple(row[column] for column in QUASI) for row in csv.DictReader(file, delimiter=separator)]


class Category:
    """Leaves below every label of a hierarchy."""

    def __init__(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            paths = list(csv.reader(file, delimiter=";"))
        self.n_leaves = len(paths)
        self.leaves = {"*": frozenset(path[0] for path in paths)}
        for label in {label for path in paths for label in path}:
            self.leaves[label] = frozenset(path[0] for path in paths if label in path)

    def losses(self, cell):
        """What a cell loses, and what it would as a plain set."""
        if cell in self.leaves:
            covered = members = len(self.leaves[cell])
        else:
            values = frozenset(cell.split(","))
            if not values <= self.leaves["*"]:
                raise ValueError("a cell is no label of its hierarchy, and no set of values")
            members = len(values)
            covered = min(len(leaves) for leaves in self.leaves.values() if values <= leaves)
        return (covered - 1) / (self.n_leaves - 1), (members - 1) / (self.n_leaves - 1)


class Number:
    """A column of numbers."""

    def __init__(self, values):
        self.lo, self.hi = min(values), max(values)

    def losses(self, cell):
        if cell == "*":
            return 1.0, 1.0
        if cell.isdigit():
            return 0.0, 0.0
        match = RANGE.fullmatch(cell)
        if match is None:
            raise ValueError("a cell of ages is no range")
        lo, hi = (int(bound) for bound in match.groups() if bound is not None)
        loss = (min(hi, self.hi) - max(lo, self.lo)) / (self.hi - self.lo)
        return loss, loss


def measure(path, columns, n_rows):
    classes = Counter(read(path))
    known = [{} for _ in columns]
    lm = sets = 0.0
    for cells, size in classes.items():
        for cell, column, losses in zip(cells, columns, known):
            if cell not in losses:
                losses[cell] = column.losses(cell)
            lm += size * losses[cell][0]
            sets += size * losses[cell][1]
    released = sum(classes.values())
    suppressed = (n_rows - released) * len(columns)
    n_cells = n_rows * len(columns)
    return {
        "lm": (lm + suppressed) / n_cells,
        "lm_sets": (sets + suppressed) / n_cells,
        "k": min(classes.values(), default=0),
        "rows": released,
    }


def main(folder, *files):
    folder = Path(folder)
    table = read(folder / "adult.csv")
    ages = Number([int(row[0]) for row in table])
    columns = [ages, *(Category(folder / f"adult_hierarchy_{column}.csv") for column in CATEGORIES)]
    print(json.dumps([measure(path, columns, len(table)) for path in files]))


main(*sys.argv[1:])
