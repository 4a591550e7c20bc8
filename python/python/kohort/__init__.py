"""Releases tables about people so that nobody can be told apart from k-1 others, and proves it.

>>> import kohort
>>> found = kohort.check("examples/clinic/patients.csv", quasi=["birth", "sex", "postcode"])
>>> found.unique_persons, found.persons
(5000, 5000)
"""

from . import ml
from ._errors import (
    Cancelled,
    CannotTell,
    Fault,
    FileError,
    InputError,
    KohortError,
    MissingLibrary,
    NotMet,
    Report,
    RequirementUnreachable,
    RiskError,
)
from ._functions import (
    Audit,
    Check,
    Estimate,
    Suggestion,
    Suggestions,
    Verification,
    anonymize,
    audit,
    check,
    estimate,
    schema,
    suggest,
    verify,
)
from ._hierarchy import Hierarchy, Tree, date, dates, flat, hierarchy, hierarchy_file, mask, steps
from ._kohort import ArrowTable, __version__
from ._release import Release, WrittenRelease
from ._requirements import (
    Requirement,
    alpha,
    beta_likeness,
    enhanced_beta_likeness,
    entropy_l_diversity,
    l_diversity,
    recursive_diversity,
    t_closeness,
)
from ._spec import Audience, Column, Register, Spec, Table

__all__ = [
    "ArrowTable",
    "Audience",
    "Audit",
    "Cancelled",
    "CannotTell",
    "Check",
    "Column",
    "Estimate",
    "Fault",
    "FileError",
    "Hierarchy",
    "InputError",
    "KohortError",
    "MissingLibrary",
    "NotMet",
    "Register",
    "Release",
    "Report",
    "Requirement",
    "RequirementUnreachable",
    "RiskError",
    "Spec",
    "Suggestion",
    "Suggestions",
    "Table",
    "Tree",
    "Verification",
    "WrittenRelease",
    "__version__",
    "alpha",
    "anonymize",
    "audit",
    "beta_likeness",
    "check",
    "date",
    "dates",
    "enhanced_beta_likeness",
    "entropy_l_diversity",
    "estimate",
    "flat",
    "hierarchy",
    "hierarchy_file",
    "l_diversity",
    "mask",
    "ml",
    "recursive_diversity",
    "schema",
    "steps",
    "suggest",
    "t_closeness",
    "verify",
]
