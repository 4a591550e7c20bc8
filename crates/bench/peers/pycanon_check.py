"""Times pycanon's checks of one table and prints them as JSON.

    pycanon_check.py FILE QUASI,... SENSITIVE|- MEASURE,... RUNS SECONDS

Only the call of the check is timed, on a DataFrame that is already in memory: neither Python's start, nor imports, nor
reading the file. After so many SECONDS the process is ended by the system's alarm.
"""

import json
import signal
import sys
import time
from importlib.metadata import version

import pandas
from pycanon import anonymity


def read(path):
    if path.endswith(".parquet"):
        return pandas.read_parquet(path)
    return pandas.read_csv(path, sep=";")


def timed(check, n_runs):
    wall, cpu = [], []
    for _ in range(n_runs):
        start_wall, start_cpu = time.perf_counter(), time.process_time()
        value = check()
        wall.append(time.perf_counter() - start_wall)
        cpu.append(time.process_time() - start_cpu)
    return {"value": float(value), "wall": wall, "cpu": cpu}


def main(path, quasi, sensitive, measures, n_runs, seconds):
    signal.alarm(int(seconds))
    table = read(path)
    quasi = quasi.split(",")
    checks = {
        "k": lambda: anonymity.k_anonymity(table, quasi),
        "l": lambda: anonymity.l_diversity(table, quasi, [sensitive]),
        "t": lambda: anonymity.t_closeness(table, quasi, [sensitive]),
    }
    packages = ["pycanon", "pandas", "numpy"]
    print(json.dumps({
        "versions": ", ".join(f"{package} {version(package)}" for package in packages),
        "python": sys.version.split()[0],
        "checks": {measure: timed(checks[measure], int(n_runs)) for measure in measures.split(",")},
    }))


main(*sys.argv[1:])
