"""Examples in docstrings and documents run, and everything public is described."""

import doctest
import importlib
import inspect

import pytest
from conftest import REPOSITORY

import kohort

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("name", ["", "._errors", "._explore", "._functions", "._hierarchy", "._requirements", "._spec", ".ml"])
def test_docstrings_run(name):
    module = importlib.import_module(f"kohort{name}")
    outcome = doctest.testmod(module, optionflags=OPTIONS)
    assert outcome.failed == 0
    assert outcome.attempted > 0 or name == "._errors"


@pytest.mark.parametrize("name", ["docs/python.md", "docs/python-from-other-tools.md", "python/README.md"])
def test_documents_run(name, tmp_path, monkeypatch):
    outcome = doctest.testfile(str(REPOSITORY / name), module_relative=False, optionflags=OPTIONS, globs={"tmp_path": tmp_path})
    assert outcome.failed == 0 and outcome.attempted > 0


def test_the_readme_of_the_project_releases_the_clinic():
    code = (REPOSITORY / "README.md").read_text().split("```python\n")[1].split("```")[0]
    names = {}
    exec(code, names)
    assert names["release"].k >= 5 and names["release"].notes == []


def test_everything_public_has_words():
    for name in kohort.__all__:
        if name != "__version__":
            assert inspect.getdoc(getattr(kohort, name)), name
    assert set(kohort.__all__) <= set(dir(kohort))
