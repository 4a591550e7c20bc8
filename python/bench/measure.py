"""Measures the package beside the command, pycanon and anonypy, and prints tables in Markdown.

    python measure.py --command KOHORT --data FOLDER [--runs N]

FOLDER has `adult/adult.csv` and `census_like/persons.parquet`. Every measurement is a process of its own, so that its peak of
memory is its own. Runs of the call and of the command alternate. Times are the fastest of them, peaks the largest; CPU is the
time of all threads, which a busy machine disturbs least. Both the call and the command include reading, verifying, and giving
the result: a frame or a folder. The time of the command includes starting its process. Importing kohort is not part of a call, so
its time is printed apart; its memory counts as that of the call. Needs Linux, pandas, polars, pyarrow, pycanon, anonypy and kohort, built with optimizations.

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


def by_check_of_k(frame, quasi, *_):
    import kohort

    return [kohort.check(frame, quasi=quasi).k]


def by_pycanon_of_k(frame, quasi, *_):
    from pycanon import anonymity

    return [int(anonymity.k_anonymity(frame, quasi))]


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
    "check of k": by_check_of_k,
    "pycanon": by_pycanon,
    "pycanon of k": by_pycanon_of_k,
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
    begin_of_import = time.process_time()
    if doing in ("package", "check", "check of k"):
        import kohort  # noqa: F401
    begin, begin_of_cpu = time.perf_counter(), time.process_time()
    result = DOINGS[doing](frame, QUASI[table], SENSITIVE[table], given)
    seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_of_cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found = {"seconds": seconds, "cpu": cpu, "import": begin_of_cpu - begin_of_import, "peak": peak}
    print(json.dumps({**found, "peak_of_call": status("VmHWM"), "result": result}))


def measured(doing, table, kind, given, data, runs=1):
    """The fastest run of a child, and the largest peaks."""
    return summary([child_alone(doing, table, kind, given, data) for _ in range(runs)])


def child_alone(doing, table, kind, given, data):
    """One measurement, in a process of its own."""
    arguments = [sys.executable, __file__, doing, table, kind, str(given), str(data)]
    outcome = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if outcome.returncode != 0:
        raise SystemExit(outcome.stderr)
    return json.loads(outcome.stdout.splitlines()[-1])


def summary(runs):
    """The least times of some runs, and the largest peaks."""
    least = {key: min(run.get(key, 0) for run in runs) for key in ("seconds", "cpu", "import")}
    most = {key: max(run[key] for run in runs) for key in ("peak", "peak_of_call")}
    return {**runs[0], **least, **most}


def command_alone(command, file, table, algorithm):
    """One run of the command, whose time is that of the whole process."""
    flags = ["--k", "10", "--quasi", ",".join(QUASI[table]), "--sensitive", SENSITIVE[table], "--algorithm", algorithm]
    timed = (
        "import resource, subprocess, sys, time; begin = time.perf_counter(); "
        "subprocess.run(sys.argv[1:], check=True, stderr=subprocess.DEVNULL); seconds = time.perf_counter() - begin; "
        "used = resource.getrusage(resource.RUSAGE_CHILDREN); "
        "print(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)"
    )
    with tempfile.TemporaryDirectory() as folder:
        whole = [sys.executable, "-c", timed, command, "anonymize", file, *flags, "--accept-risks", "-o", f"{folder}/out"]
        outcome = subprocess.run([str(part) for part in whole], capture_output=True, text=True, check=True)
    seconds, cpu, peak = map(float, outcome.stdout.split())
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "peak_of_call": peak}


def beside_command(options):
    """Prints time and memory of the package over those of the command: 1.00 is the same, more is worse."""
    print("| table, algorithm | frame | time | ratio | CPU | ratio | process | ratio | alone | kept | added | call | ratio |")
    print("| --- | --- " + "| ---: " * 11 + "|")
    for table in QUASI:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, f"{table}.parquet")
            measured("prepare", table, "pandas", file, options.data)
            alone = {kind: measured("nothing", table, kind, "-", options.data) for kind in FRAMES}
            for algorithm in ("mondrian", "auto"):
                runs = {kind: [] for kind in ("command", *FRAMES)}
                for _ in range(options.runs):
                    runs["command"].append(command_alone(options.command, file, table, algorithm))
                    for kind in FRAMES:
                        runs[kind].append(child_alone("package", table, kind, algorithm, options.data))
                command = summary(runs["command"])
                for kind in FRAMES:
                    found = summary(runs[kind])
                    peak, kept = alone[kind]["peak"], alone[kind]["result"]
                    call = found["peak_of_call"] - kept
                    cells = [
                        f"{table}, {algorithm}",
                        kind,
                        *compared(found["seconds"], command["seconds"], "{:.2f} / {:.2f} s"),
                        *compared(found["cpu"], command["cpu"], "{:.2f} / {:.2f} s"),
                        *compared(found["peak"], command["peak"], "{:.0f} / {:.0f} MB"),
                        *(f"{size:.0f} MB" for size in (peak, kept, found["peak"] - peak)),
                        *compared(call, command["peak"], "{:.0f} / {:.0f} MB"),
                    ]
                    print(f"| {' | '.join(cells)} |", flush=True)


def compared(ours, theirs, words):
    return words.format(ours, theirs), f"{ours / theirs:.2f}"


def beside_others(options):
    """Prints how many times faster the package is than other packages."""
    print("\n| what | package | CPU | other | CPU | times faster | by CPU |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for what, doing, given, other in (
        ("check of Adult: k", "check of k", "-", "pycanon of k"),
        ("check of Adult: k, l and t", "check", "-", "pycanon"),
        ("anonymize Adult, Mondrian, k = 10", "package", "mondrian", "anonypy"),
    ):
        found = measured(doing, "adult", "pandas", given, options.data, options.runs)
        beside = measured(other, "adult", "pandas", "-", options.data)
        if other.startswith("pycanon") and found["result"] != beside["result"]:
            raise SystemExit(f"{what}: kohort says {found['result']}, {other} {beside['result']}")
        seconds = f"{found['seconds']:.3f} s | {found['cpu']:.3f} s | {other.split()[0]} {beside['seconds']:.2f} s | {beside['cpu']:.2f} s"
        times = f"{beside['seconds'] / found['seconds']:.0f} | {beside['cpu'] / found['cpu']:.0f}"
        print(f"| {what} | {seconds} | {times} |", flush=True)
    print(f"\nImporting kohort takes {found['import']:.3f} s of CPU.")


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
