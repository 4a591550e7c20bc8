"""Progress is shown where somebody can see it, work runs beside Python, and Ctrl-C stops it."""

import contextlib
import io
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import kohort
from kohort import _progress


def large(n=300_000):
    chance = np.random.default_rng(7)
    columns = {f"q{i}": chance.integers(0, 50, n) for i in range(6)}
    return pd.DataFrame(columns), list(columns)


def test_a_function_hears_of_stages():
    frame, quasi = large()
    heard = []
    kohort.anonymize(frame, k=5, quasi=quasi, algorithm="mondrian", progress=lambda *told: heard.append(told))
    assert heard and all(isinstance(stage, str) and done >= 0 and total >= 0 for stage, done, total in heard)
    assert len({stage for stage, _, _ in heard}) > 1


def test_an_exception_of_the_function_cancels_the_work():
    frame, quasi = large()

    def refuse(stage, done, total):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        kohort.anonymize(frame, k=5, quasi=quasi, progress=refuse)


def test_other_threads_run_while_kohort_works():
    frame, quasi = large()
    ticks = []
    stop = threading.Event()

    def tick():
        while not stop.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    n_before = len(ticks)
    kohort.anonymize(frame, k=5, quasi=quasi, algorithm="mondrian")
    n_during = len(ticks) - n_before
    stop.set()
    thread.join()
    # A call that holds the interpreter lets none of them through.
    assert n_during > 20


def test_calls_from_several_threads_give_the_same_release():
    frame, quasi = large(20_000)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(kohort.anonymize(frame, k=5, quasi=quasi).to_csv())) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3 and len(set(found)) == 1


INTERRUPTED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import kohort
from test_progress import large
frame, quasi = large(1_000_000)
heard = []
def interrupt(stage, done, total):
    heard.append(stage)
    if stage == {stage!r}:
        os.kill(os.getpid(), signal.SIGINT)
try:
    kohort.anonymize(frame, k=5, quasi=quasi, progress=interrupt)
except KeyboardInterrupt:
    print(heard[-1])
    # The process ends at once, so an error of work that goes on would show.
    sys.exit(0)
sys.exit(1)
"""


@pytest.mark.parametrize("stage", ["reading", "partition"])
def test_an_interrupt_ends_the_call_in_the_stage_it_is_in(stage):
    code = INTERRUPTED.format(tests=os.path.dirname(__file__), stage=stage)
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip() == stage and outcome.stderr == ""


ENDING = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import pyarrow as pa
import kohort
from test_progress import large
frame, quasi = large(1_000_000)
table = pa.Table.from_pandas(frame)
def interrupt(stage, done, total):
    os.kill(os.getpid(), signal.SIGINT)
try:
    {call}
except KeyboardInterrupt:
    del frame, table
    sys.exit(0)
sys.exit(1)
"""


@pytest.mark.parametrize(
    "call",
    [
        "kohort.check(table, quasi=quasi, progress=interrupt)",
        "kohort.suggest(table, progress=interrupt)",
        "kohort.anonymize(table, k=5, quasi=quasi, progress=interrupt)",
        "kohort.Spec(frame, k=5, quasi=quasi).write_in_cells('never-written', '20MB', progress=interrupt)",
    ],
)
def test_a_process_ends_in_peace_while_work_that_was_interrupted_still_reads_its_table(call):
    code = ENDING.format(tests=os.path.dirname(__file__), call=call)
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert not os.path.exists("never-written")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_is_drawn_in_a_terminal_and_removed(monkeypatch):
    monkeypatch.setattr(_progress, "_PATIENCE_SECONDS", 0)
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal), _progress.reporting(None) as bar:
        bar("reading", 1, 2)
        bar("verifying", 0, 0)
    text = terminal.getvalue()
    assert "reading      [====================                    ]  50 %" in text
    assert "verifying    ..." in text and text.endswith("\r\x1b[K")


def test_nothing_is_drawn_where_nobody_sees_it(monkeypatch):
    monkeypatch.setattr(_progress, "_PATIENCE_SECONDS", 0)
    for choice, stream in ((None, io.StringIO()), (False, Terminal())):
        with contextlib.redirect_stderr(stream), _progress.reporting(choice) as bar:
            assert bar is None
        assert stream.getvalue() == ""


def test_quick_work_shows_no_bar():
    terminal = Terminal()
    with contextlib.redirect_stderr(terminal):
        kohort.check(pd.DataFrame({"age": [1, 1]}), quasi="age")
    assert terminal.getvalue() == ""


def test_a_forked_process_can_work():
    frame, quasi = large(5_000)
    kohort.anonymize(frame, k=5, quasi=quasi)
    code = (
        "import os, sys\n"
        f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"
        "import kohort\n"
        "from test_progress import large\n"
        "frame, quasi = large(5_000)\n"
        "expected = kohort.anonymize(frame, k=5, quasi=quasi).to_csv()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(0 if kohort.anonymize(frame, k=5, quasi=quasi).to_csv() == expected else 1)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert outcome.returncode == 0, outcome.stderr
