"""Releases and hierarchies as files, for work that reads files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _kohort
from ._hierarchy import hierarchy
from ._release import Release, WrittenRelease
from ._sources import source_of


class Folders:
    """Releases and hierarchies as files: those in memory are written to a temporary folder."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._n = 0

    def __enter__(self) -> Folders:
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def of(self, release: Any) -> str:
        if isinstance(release, (str, os.PathLike)):
            return os.fspath(release)
        if isinstance(release, WrittenRelease):
            return release.folder
        if isinstance(release, Release):
            target = self._new("")
            release.write(target, progress=False)
            return str(target)
        source = source_of(release, "the release")
        target = self._new(".arrow")
        _kohort.ArrowTable.of(source.whole()).write_arrow(str(target))
        return str(target)

    def hierarchies(self, said: Mapping[str, Any] | None) -> dict[str, Any]:
        columns = {}
        for column, each in (said or {}).items():
            target = self._new(".csv")
            setting, texts = hierarchy(each)._in_spec(str(target))
            for text in texts.values():
                target.write_text(text, encoding="utf-8")
            columns[column] = {"role": "quasi", "hierarchy": setting}
        return {"k": 1, "tables": {"table": {"file": "-", "columns": columns}}} if columns else {}

    def _new(self, ending: str) -> Path:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="kohort-")
        self._n += 1
        return Path(self._folder.name, f"release-{self._n}{ending}")
