# SPDX-License-Identifier: Apache-2.0
"""What the user says is part of the problem: inputs, parameters and buffers that stay.

Named in the request, or in the file by a comment `# mtmc: fixed NAME[, NAME...]`, NAME
being a parameter of `forward` or a key of `state_dict`, or `parameters` for all of those.
"""

import inspect
import io
import re
import tokenize

from .failure import ProblemFailure

_ALL_STATE = "parameters"
_COMMENT = re.compile(r"#\s*mtmc:\s*fixed\b(.*)")
# As many as a sentence can bear.
_MOST_NAMES = 20


class Fixed:
    """What no workload changes: positions of arguments of `forward`, targets of its state."""

    def __init__(self, positions=(), targets=()):
        self.positions = frozenset(positions)
        self.targets = frozenset(targets)


def find_fixed(problem, model, names):
    """What `names` and the comments of the problem file fix; raises FIXED_UNKNOWN."""
    arguments = list(inspect.signature(model.forward).parameters)
    targets = list(model.state_dict(keep_vars=True))
    positions, fixed_targets = set(), set()
    for name, line in [*((name, 0) for name in names), *_names_in(problem.source)]:
        if name in arguments:
            positions.add(arguments.index(name))
        elif name in targets:
            fixed_targets.add(name)
        elif name == _ALL_STATE:
            fixed_targets.update(targets)
        else:
            raise _unknown(name, line, [*arguments, *targets])
    return Fixed(positions, fixed_targets)


def _names_in(source):
    """(name, line) of what the comments fix."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
        if match:
            names = [name for name in re.split(r"[,\s]+", match.group(1)) if name]
            for name in names or [""]:
                yield name, token.start[0]


def _unknown(name, line, known):
    listed = ", ".join(known[:_MOST_NAMES]) + (", ..." if len(known) > _MOST_NAMES else "")
    what = f"{name!r} is neither an argument of forward nor in state_dict" if name else (
        "a comment `# mtmc: fixed` names nothing"
    )
    where = f"line {line}: " if line else ""
    return ProblemFailure(
        "FIXED_UNKNOWN",
        f"{where}{what}; write `# mtmc: fixed NAME` with some of: {listed}, {_ALL_STATE}",
        line,
    )
