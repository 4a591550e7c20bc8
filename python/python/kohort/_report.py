"""The documents of a release: what people sign, and what its owner alone may see."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import _kohort
from ._errors import FileError
from ._folders import Folders
from ._progress import Progress, reporting
from ._spec import Spec


@dataclass(frozen=True)
class Documents:
    """The report of a release. A notebook shows its page."""

    #: The figures, as ``report.json`` has them.
    figures: dict[str, Any] = field(repr=False)
    #: The page, as ``report.html`` has it.
    html: str = field(repr=False)

    def _repr_html_(self) -> str:
        # The page has a style of its own, so it must not be part of the notebook's page.
        return f'<iframe srcdoc="{html.escape(self.html)}" style="width:100%;height:640px;border:0"></iframe>'


def report(
    release: Any,
    *,
    against: Spec | str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    tables: Mapping[str, Any] | None = None,
    costs: bool = False,
    target: str | None = None,
    population: int | None = None,
    threads: int | None = None,
    progress: Progress = None,
) -> Documents:
    """Makes the report of a release: what was asked, reached and lost, and what is not protected.

    ``release`` is a folder or a :class:`Release`. The report follows from the released files alone. It is written to the folder
    ``out`` as ``report.html`` and ``report.json``; if that is the folder of the release itself, all its documents are renewed, as by
    the command. Without ``out`` nothing is written.

    ``against`` is a spec or the path of one, and makes a second report with figures that need the private tables, **for their owner
    alone**. ``tables`` gives frames for tables that the spec names as files, and ``out`` must be outside of the release. With
    ``against``, ``costs=True`` measures what each quasi column and each requirement costs, which takes a run for each; ``target`` is a
    column, and the report says how well it can be predicted from such a release; and ``population`` is the number of persons that the
    private table is a sample of, for the risk among them.
    """
    if against is None and (costs or target is not None or population is not None):
        raise TypeError("costs, target and population are figures of the owner's report: name the spec with against=...")
    with Folders() as folders, reporting(progress) as hook:
        folder = folders.of(release)
        if against is not None:
            spec = against if isinstance(against, Spec) else Spec.from_toml(against)
            job, _ = spec._job(tables, threads, hook)
            written = None if out is None else os.fspath(out)
            texts = dict(_kohort.owner_report(folder, job, written, costs, target, population, threads, hook))
            return Documents(json.loads(texts["owner-report.json"]), texts["owner-report.html"])
        if out is not None and Path(out).resolve() == Path(folder).resolve():
            _kohort.write_report(folder, threads, hook)
            return read_documents(folder)
        texts = dict(_kohort.report(folder, threads, hook))
    if out is not None:
        _write(Path(out), {name: texts[name] for name in ("report.html", "report.json")})
    return Documents(json.loads(texts["report.json"]), texts["report.html"])


def read_documents(folder: str | os.PathLike[str]) -> Documents:
    """The report that is in a folder."""
    page, figures = (Path(folder, name).read_text(encoding="utf-8") for name in ("report.html", "report.json"))
    return Documents(json.loads(figures), page)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        problem = FileError([(f"{folder}: can't be written: {error.strerror}", None)])
    else:
        return
    raise problem
