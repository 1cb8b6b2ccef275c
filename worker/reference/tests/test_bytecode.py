# SPDX-License-Identifier: Apache-2.0
"""What is imported once lies compiled, and is read by a process that may not write."""

import os
import subprocess
import sys

from conftest import PACKAGE


def _run(folder, *arguments, **variables):
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONPYCACHEPREFIX": str(folder)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, *arguments]
    return subprocess.run(command, env={**environment, **variables}, check=True, text=True,
                          stdout=subprocess.PIPE).stdout  # fmt: skip


def test_a_second_process_finds_the_modules_compiled(tmp_path):
    done = tmp_path / "done"
    _run(tmp_path, "-m", "mtmc_reference.bytecode", str(done))
    assert done.exists()
    compiled = {path.name.split(".")[0] for path in tmp_path.rglob("*.pyc")}
    # PyTorch itself, what only a trace imports, and ours.
    assert {"functional", "_unlift", "sweeps"} <= compiled
    script = """
import sys
from importlib.machinery import SourceFileLoader
sources = []
compiled = SourceFileLoader.source_to_code
def counted(self, data, path, **options):
    sources.append(path)
    return compiled(self, data, path, **options)
SourceFileLoader.source_to_code = counted
import mtmc_reference.MODULE
print(len(sources))
"""
    def compiled_by_import(folder, module):
        text = script.replace("MODULE", module)
        return int(_run(folder, "-c", text, PYTHONDONTWRITEBYTECODE="1").split()[-1])

    assert compiled_by_import(tmp_path, "session") == 0
    assert compiled_by_import(tmp_path / "none", "failure") > 0
