# SPDX-License-Identifier: Apache-2.0
"""scripts/check-docs finds what a document names and nobody has."""

import importlib.machinery
import importlib.util
import pathlib

import pytest

_SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check-docs"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """The script over a repository of two sources; the test adds what names them."""
    loader = importlib.machinery.SourceFileLoader("check_docs", str(_SCRIPT))
    script = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_docs", loader))
    loader.exec_module(script)
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(
        script, "files",
        lambda: sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")))
    (tmp_path / "server").mkdir()
    (tmp_path / "server/there.h").write_text("#pragma once\n")
    (tmp_path / "server/there.cc").write_text('#include "server/there.h"\n')
    return script


@pytest.mark.parametrize("name", ["server/gone.h", "gone.cc", "gone/there.h"])
@pytest.mark.parametrize("path, text", [
    ("docs.md", "One.\n\nSee `{}` for it.\n"),
    ("docs.md", "One.\n\nSee [it]({}).\n"),
    ("server/other.h", "#pragma once\n\n// As in {}, but slower.\n"),
    ("tool.py", "import os\n\nos.sync()  # as in {}, but slower\n"),
])
def test_a_file_that_is_not_there_is_found(repository, path, text, name):
    (repository.ROOT / path).write_text(text.format(name))

    assert list(repository.missing_files()) == [f"{path}:3: there is no file {name}"]


@pytest.mark.parametrize("name", [
    "server/there.h", "there.cc", "there.h", "server/there.h:12", "*_test.cc", "/etc/hosts.txt",
    "$HOME/notes.txt", "cuda_fp16.h", "<cuda.h>",
])
def test_a_file_that_is_there_or_is_of_others_is_not(repository, name):
    (repository.ROOT / "docs.md").write_text(f"See `{name}`.\n")
    (repository.ROOT / "server/other.h").write_text(f"// See {name}.\n")

    assert not list(repository.missing_files())


def test_a_name_in_code_is_none(repository):
    (repository.ROOT / "server/other.cc").write_text('const char* path = "gone.txt";\n')

    assert not list(repository.missing_files())
