"""Exceptions: why there is no result.

Nothing was released or written where an exception is raised, and no message holds a cell of a private table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Report(NamedTuple):
    """One thing that is wrong, and what to do about it."""

    message: str
    hint: str | None = None


class KohortError(Exception):
    """The base of all exceptions of kohort.

    ``reports`` lists everything that is wrong, each with a ``message`` and a ``hint``.
    """

    reports: tuple[Report, ...]

    def __init__(self, reports: Iterable[tuple[str, str | None]] = ()) -> None:
        self.reports = tuple(Report(*report) for report in reports)
        super().__init__("\n".join(_words(report) for report in self.reports))


class InputError(KohortError, ValueError):
    """A spec, a table, a hierarchy, a register or a parameter is wrong, or a file is not there."""


class RequirementUnreachable(KohortError):
    """The requirement can't be reached with these persons.

    ``reason`` is a word for programs, such as ``too_few_persons``. ``persons``, ``k`` and ``column`` say more where they
    apply, and are None elsewhere.
    """

    def __init__(
        self,
        reports: Iterable[tuple[str, str | None]] = (),
        *,
        reason: str = "unreachable",
        persons: int | None = None,
        k: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(reports)
        self.reason = reason
        self.persons = persons
        self.k = k
        self.column = column


class RiskError(KohortError):
    """The requirement holds, but blatant risks make it worth little.

    ``risks`` names them in words for programs, such as ``rows_are_not_persons``. ``accept_risks=True`` goes on in spite of
    them, and the manifest then says so.
    """

    def __init__(self, reports: Iterable[tuple[str, str | None]] = (), *, risks: Iterable[str] = ()) -> None:
        super().__init__(reports)
        self.risks = tuple(risks)


class NotMet(KohortError):
    """A release is not what its manifest says."""


class CannotTell(KohortError):
    """Whether a release can have come from the private tables was not decided."""


class FileError(KohortError, OSError):
    """A file could not be read or written."""


class Cancelled(KohortError):
    """The work was cancelled."""


class Fault(KohortError, RuntimeError):
    """A fault of kohort itself. A release that does not pass its verification ends here."""


class MissingLibrary(KohortError, ImportError):
    """A library that this call needs is not installed."""


def _words(report: Report) -> str:
    return report.message if report.hint is None else f"{report.message}\nhint: {report.hint}"
