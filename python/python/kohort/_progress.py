"""Progress: a bar in terminals and notebooks, or a function of the caller."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Union

Progress = Union[None, bool, Callable[[str, int, int], Any]]

_WIDTH = 40
# Work that ends sooner than this shows no bar.
_PATIENCE_SECONDS = 0.5


@contextmanager
def reporting(progress: Progress) -> Iterator[Callable[[str, int, int], Any] | None]:
    """A function that hears of progress, or None.

    Without a choice of the caller, a bar is shown in notebooks and where stderr is a terminal.
    """
    if callable(progress):
        yield progress
        return
    if progress is False:
        yield None
        return
    bar: _Bar | None = None
    if _in_notebook():
        bar = _NotebookBar()
    elif progress or _is_terminal():
        bar = _TerminalBar()
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _in_notebook() -> bool:
    # A notebook has imported IPython long ago; nobody else should wait for it.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


class _Bar:
    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._last: tuple[str, int] | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not stage or time.monotonic() - self._begin < _PATIENCE_SECONDS:
            return
        percent = min(100, 100 * done // total) if total else -1
        if (stage, percent) != self._last:
            self._last = (stage, percent)
            self.draw(stage, percent)

    def draw(self, stage: str, percent: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _TerminalBar(_Bar):
    def draw(self, stage: str, percent: int) -> None:
        if percent < 0:
            text = f"{stage:12} ..."
        else:
            filled = _WIDTH * percent // 100
            text = f"{stage:12} [{'=' * filled}{' ' * (_WIDTH - filled)}] {percent:3} %"
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._last is not None:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


class _NotebookBar(_Bar):
    """A bar as HTML that is updated in place, for which no widget has to be installed."""

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = None

    def draw(self, stage: str, percent: int) -> None:
        from IPython.display import HTML, display

        if percent < 0:
            html = f"<div>{stage} …</div>"
        else:
            html = f'<div>{stage} <progress value="{percent}" max="100"></progress> {percent} %</div>'
        if self._display is None:
            self._display = display(HTML(html), display_id=True)
        else:
            self._display.update(HTML(html))

    def close(self) -> None:
        if self._display is not None:
            from IPython.display import HTML

            self._display.update(HTML(""))
