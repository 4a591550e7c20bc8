"""Anonymizes Adult with another Python package, writes the released rows as CSV, and prints times as JSON.

    anonymize.py PACKAGE FOLDER K SUPPRESSED FILE SECONDS

FOLDER holds the table and ARX's hierarchies; SUPPRESSED is the percentage of rows that may be left out, for packages that
can leave rows out. Only the package's own call is timed, on a DataFrame that is already in memory: neither Python's start,
nor imports, nor reading, nor writing. The system ends the process after this many SECONDS of CPU.
"""

import contextlib
import csv
import json
import signal
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pandas

QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
SENSITIVE = "salary-class"


def timed(call):
    start_wall, start_cpu = time.perf_counter(), time.process_time()
    result = call()
    return result, time.perf_counter() - start_wall, time.process_time() - start_cpu


def anonypy(folder, table, k, _suppressed):
    """Mondrian: gives one row per class and sensitive value, with a count. Categories become sets."""
    from anonypy import Preserver

    for column in [*QUASI, SENSITIVE]:
        if column != "age":
            table[column] = table[column].astype("category")
    classes, wall, cpu = timed(lambda: Preserver(table, QUASI, SENSITIVE).anonymize_k_anonymity(k))
    rows = []
    for part in classes:
        # The same set is not always written in the same order.
        cells = [",".join(sorted(part[column][0].split(","))) for column in QUASI]
        rows.extend([cells] * part["count"])
    return rows, wall, cpu


def anjana(folder, table, k, suppressed):
    """One level per column: always generalizes the column with most values next. Rows in small classes are dropped."""
    from anjana.anonymity import k_anonymity

    hierarchies = {}
    for column in QUASI:
        with open(folder / f"adult_hierarchy_{column}.csv", newline="", encoding="utf-8") as file:
            paths = list(csv.reader(file, delimiter=";"))
        hierarchies[column] = {level: pandas.Series(labels) for level, labels in enumerate(zip(*paths))}
    table["age"] = table["age"].astype(str)
    # anjana may print messages to the standard output, where only our JSON may go.
    with contextlib.redirect_stdout(sys.stderr):
        release, wall, cpu = timed(lambda: k_anonymity(table, [], QUASI, k, suppressed, hierarchies))
    return release[QUASI].values.tolist(), wall, cpu


def main(package, folder, k, suppressed, target, seconds):
    folder = Path(folder)
    table = pandas.read_csv(folder / "adult.csv", sep=";")
    signal.setitimer(signal.ITIMER_PROF, float(seconds))
    rows, wall, cpu = {"anonypy": anonypy, "anjana": anjana}[package](folder, table, int(k), float(suppressed))
    signal.setitimer(signal.ITIMER_PROF, 0)
    with open(target, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(QUASI)
        writer.writerows(rows)
    packages = [package, "pandas", "numpy"]
    print(json.dumps({
        "python": sys.version.split()[0],
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
        "wall": wall,
        "cpu": cpu,
    }))


main(*sys.argv[1:])
