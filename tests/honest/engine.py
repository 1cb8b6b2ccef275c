# SPDX-License-Identifier: Apache-2.0
"""Programs of the built-in coder: the naive one and walks of several actions."""

import concurrent.futures
import os
import pathlib
import random
import re
import subprocess

_CALL = re.compile(r"^\s*//@\s*call\s+(\w+::\w+)", re.MULTILINE)


def calls_of(text):
    """Operators that a program calls."""
    return tuple(sorted(set(_CALL.findall(text))))


class Engine:
    """`mtmc-engine` of a build or a bundle."""

    def __init__(self, bin_folder, dialect):
        self._program = str(pathlib.Path(bin_folder) / "mtmc-engine")
        self._dialect = dialect

    def programs(self, graph, walks, depth, seed):
        """(variant, text) of the naive program and of `walks` random ones, without
        those that are equal."""
        found = {}
        for walk in range(walks + 1):
            # A walk's length differs, so that shallow programs are among them.
            steps = 0 if walk == 0 else 1 + (walk - 1 + depth) % depth
            text = self._text(graph, self._walk(graph, steps, f"{seed}:{graph.stem}:{walk}"))
            if text and text not in found.values():
                found[f"walk{walk}" if walk else "naive"] = text
        return list(found.items())

    def _walk(self, graph, steps, seed):
        choice = random.Random(seed)
        taken = []
        for _ in range(steps):
            legal = [action for action in self._actions(graph, taken) if action != "stop"]
            if not legal:
                break
            taken.append(choice.choice(legal))
        return taken

    def _actions(self, graph, taken):
        text = self._run("actions", graph, taken)
        _, _, actions = (text or "").partition("\n\n")
        return actions.strip().splitlines()

    def _text(self, graph, taken):
        return self._run("print", graph, taken)

    def _run(self, command, graph, taken):
        arguments = [self._program, command, str(graph), "--dialect", self._dialect]
        for action in taken:
            arguments += ["--apply", action]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
        return done.stdout if done.returncode == 0 else None


def all_programs(engine, graphs, walks, depth, seed):
    """(graph, variant, text) over `graphs`, several at a time."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        lists = pool.map(lambda graph: engine.programs(graph, walks, depth, seed), graphs)
        return [(g, *one) for g, found in zip(graphs, lists) for one in found]
