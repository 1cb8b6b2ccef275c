# SPDX-License-Identifier: Apache-2.0
"""The processes below this one, from /proc. Orphans come to this process, so
that nothing that a test started can hide."""

import ctypes
import dataclasses
import os
import pathlib
import time

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    """Makes this process the parent of every descendant whose parent has died."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_CHILD_SUBREAPER) failed")


@dataclasses.dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: tuple

    @property
    def name(self):
        """Program's file name; `mtmc_reference` for the Python child."""
        if "mtmc_reference" in self.command:
            return "mtmc_reference"
        return os.path.basename(self.command[0]) if self.command else ""


def _read(pid):
    folder = pathlib.Path("/proc", str(pid))
    try:
        # "pid (name) state parent ...": the name may hold spaces and brackets.
        state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        command = (folder / "cmdline").read_bytes().split(b"\0")[:-1]
    except (OSError, ValueError):
        return None
    if state in "ZX":
        return None
    return Process(pid, int(parent), tuple(part.decode(errors="replace") for part in command))


def descendants(root=None):
    """Living descendants of `root`, by default of this process."""
    found = [_read(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    children = {}
    for process in filter(None, found):
        children.setdefault(process.parent, []).append(process)
    below, queue = [], [root or os.getpid()]
    while queue:
        for child in children.get(queue.pop(), ()):
            below.append(child)
            queue.append(child.pid)
    return below


def eventually(condition, seconds, what, pause=0.05):
    """The first true value of `condition()`; an AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(pause)
