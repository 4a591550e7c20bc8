"""Measures the package beside the command, pycanon and anonypy, and prints tables.

    python measure.py --command KOHORT --data FOLDER [--runs N]

FOLDER has `adult/adult.csv` and `census_like/persons.parquet`. Every measurement is a process of its own, so that its peak of
memory is its own. Times are the fastest of some runs, peaks the largest. Both the call and the command include reading,
verifying, and giving the result: a frame or a folder. The time of the call includes importing kohort, and that of the command
starting its process. Needs Linux, pandas, polars, pyarrow, pycanon, anonypy and kohort, built with optimizations.

The command reads a file piece by piece, while a call is given a frame that is in memory as a whole, next to Python and its
libraries. So four figures of memory are printed:

- process: the peak of the whole process, compared with the peak of the command;
- alone:   the peak of a process that imports the same libraries and reads the same frame, and does nothing else;
- kept:    what such a process keeps when the frame is there and the libraries gave back what they no longer need;
- call:    the peak during the call minus what is kept, compared with the peak of the command. Nothing that the libraries
           held back is hidden in it, so it is larger than `process` minus `alone`, which is printed as `added`.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADULT = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
CENSUS = ["sex", "age", "race", "hispanic", "marital", "state", "edu", "zip"]
SENSITIVE = {"adult": "salary-class", "census": "famincome"}
QUASI = {"adult": ADULT, "census": CENSUS}

#: Frames with columns of Python's objects, and frames backed by Arrow.
FRAMES = ("pandas", "pandas-arrow", "polars")


def read(table, kind, data):
    """A table as a frame."""
    adult, census = data / "adult" / "adult.csv", data / "census_like" / "persons.parquet"
    columns = [*CENSUS, SENSITIVE["census"]]
    if kind == "polars":
        import polars as pl

        return pl.read_csv(adult, separator=";") if table == "adult" else pl.read_parquet(census, columns=columns)
    import pandas as pd

    backend = {"dtype_backend": "pyarrow"} if kind == "pandas-arrow" else {}
    if table == "adult":
        return pd.read_csv(adult, sep=";", **backend)
    return pd.read_parquet(census, columns=columns, **backend)


def by_package(frame, quasi, sensitive, algorithm):
    import kohort

    release = kohort.anonymize(frame, k=10, quasi=quasi, sensitive=sensitive, algorithm=algorithm, accept_risks=True)
    assert len(release.table) == len(frame)


def by_check(frame, quasi, sensitive, _):
    import kohort

    found = kohort.check(frame, quasi=quasi, sensitive=sensitive)
    return [found.k, found.sensitive[sensitive]["l"], round(found.sensitive[sensitive]["t"], 6)]


def by_pycanon(frame, quasi, sensitive, _):
    from pycanon import anonymity

    k = anonymity.k_anonymity(frame, quasi)
    l = anonymity.l_diversity(frame, quasi, [sensitive])  # noqa: E741
    t = anonymity.t_closeness(frame, quasi, [sensitive])
    return [int(k), int(l), round(float(t), 6)]


def by_anonypy(frame, quasi, sensitive, _):
    import anonypy

    frame = frame.copy()
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = frame[name].astype("category")
    return len(anonypy.Preserver(frame, quasi, sensitive).anonymize_k_anonymity(k=10))


def by_prepare(frame, quasi, sensitive, file):
    """Writes the file that the command reads. A process of its own, because a child starts with the peak of its parent."""
    frame[[*quasi, sensitive]].to_parquet(file, index=False)


def by_nothing(frame, quasi, sensitive, _):
    """What Python, its libraries and the frame take alone: the peak, and what they keep."""
    import gc

    gc.collect()
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    return status("VmRSS")


DOINGS = {
    "prepare": by_prepare,
    "nothing": by_nothing,
    "package": by_package,
    "check": by_check,
    "pycanon": by_pycanon,
    "anonypy": by_anonypy,
}


def status(key):
    """Memory of this process in MB, as the kernel says."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{key}:"))


def child(doing, table, kind, given, data):
    """One measurement, in this process."""
    frame = read(table, kind, data)
    Path("/proc/self/clear_refs").write_text("5")  # The peak that the kernel counts begins again.
    begin = time.perf_counter()
    result = DOINGS[doing](frame, QUASI[table], SENSITIVE[table], given)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "peak_of_call": status("VmHWM"), "result": result}))


def measured(doing, table, kind, given, data, runs=1):
    """The fastest run of a child, and the largest peaks."""
    found = []
    for _ in range(runs):
        arguments = [sys.executable, __file__, doing, table, kind, str(given), str(data)]
        outcome = subprocess.run(arguments, capture_output=True, text=True, check=False)
        if outcome.returncode != 0:
            raise SystemExit(outcome.stderr)
        found.append(json.loads(outcome.stdout.splitlines()[-1]))
    fastest = min(found, key=lambda run: run["seconds"])
    return {**fastest, **{key: max(run[key] for run in found) for key in ("peak", "peak_of_call")}}


def measured_command(command, file, table, algorithm, runs):
    """The same for the command, whose time is that of the whole process."""
    seconds, peaks = [], []
    flags = ["--k", "10", "--quasi", ",".join(QUASI[table]), "--sensitive", SENSITIVE[table], "--algorithm", algorithm]
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            timed = (
                "import resource, subprocess, sys, time; begin = time.perf_counter(); "
                "subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL); "
                "print(time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
            )
            whole = [sys.executable, "-c", timed, command, "anonymize", file, *flags, "--accept-risks", "-o", f"{folder}/out"]
            outcome = subprocess.run([str(part) for part in whole], capture_output=True, text=True, check=True)
            one, peak = map(float, outcome.stdout.split())
            seconds.append(one)
            peaks.append(peak)
    return {"seconds": min(seconds), "peak": max(peaks)}


def beside_command(options):
    """Prints time and memory of the package over those of the command: 1.00 x is the same, more is worse."""
    print("package / command        frame           time                    process              alone    kept  added  call")
    for table in QUASI:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"{table}.parquet")
            measured("prepare", table, "pandas", file, options.data)
            alone = {kind: measured("nothing", table, kind, "-", options.data) for kind in FRAMES}
            for algorithm in ("mondrian", "auto"):
                command = measured_command(options.command, file, table, algorithm, options.runs)
                for kind in FRAMES:
                    found = measured("package", table, kind, algorithm, options.data, options.runs)
                    peak, kept = alone[kind]["peak"], alone[kind]["result"]
                    call = found["peak_of_call"] - kept
                    print(
                        f"{f'{table}, {algorithm}':<24} {kind:<13}"
                        f"{found['seconds']:6.2f} /{command['seconds']:5.2f} s {found['seconds'] / command['seconds']:5.2f} x"
                        f"{found['peak']:6.0f} /{command['peak']:4.0f} MB {found['peak'] / command['peak']:5.2f} x"
                        f"{peak:6.0f} MB{kept:5.0f} MB{found['peak'] - peak:5.0f} MB"
                        f"{call:5.0f} MB {call / command['peak']:5.2f} x",
                        flush=True,
                    )


def beside_others(options):
    """Prints how many times faster the package is than other packages."""
    for what, doing, given, other in (
        ("check adult: k, l, t", "check", "-", "pycanon"),
        ("anonymize adult, mondrian", "package", "mondrian", "anonypy"),
    ):
        found = measured(doing, "adult", "pandas", given, options.data, options.runs)
        beside = measured(other, "adult", "pandas", "-", options.data)
        times = beside["seconds"] / found["seconds"]
        print(f"{what:<27} package {found['seconds']:6.2f} s, {other} {beside['seconds']:8.2f} s: {times:.0f} times faster")
        if doing == "check":
            print(f"  kohort says {found['result']}, {other} {beside['result']}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--command", required=True)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    beside_command(options)
    beside_others(options)


if __name__ == "__main__":
    if len(sys.argv) == 6 and sys.argv[1] in DOINGS:
        child(*sys.argv[1:5], Path(sys.argv[5]))
    else:
        main()
