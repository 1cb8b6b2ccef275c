# SPDX-License-Identifier: Apache-2.0
"""For tests: the texts of this folder as one module, as in an exported file."""

import contextlib
import ctypes
import pathlib
import threading
import types

import torch

FOLDER = pathlib.Path(__file__).parent


def module(*parts, **names):
    exported = types.ModuleType("exported")
    exported.__dict__.update(
        _mtmc_contextlib=contextlib,
        _mtmc_ctypes=ctypes,
        _mtmc_threading=threading,
        _mtmc_torch=torch,
        _mtmc_settings=contextlib.nullcontext(),
    )
    exported.__dict__.update(names)
    for part in parts:
        path = FOLDER / f"{part}.py"
        exec(compile(path.read_text(), str(path), "exec"), exported.__dict__)
    return exported
