# SPDX-License-Identifier: Apache-2.0
"""The text of a program as its mutations see it: the plan, the kernels with their
parameters, and where a kernel reads and writes the plan's tensors. Both dialects.
"""

import dataclasses
import re

_HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_TENSOR = re.compile(r"^[ \t]*//@\s*(input|weight|buffer|output)\s+(\w+)\s+(\w+)\[([\d,]*)\]", re.M)
_LAUNCH = re.compile(r"^[ \t]*//@\s*launch\s+(\w+)\b.*?args=\((.*)\)[ \t]*$", re.M)
_ASSIGNS = re.compile(r"\s*([-+*/|&^]?=)(?!=)")
_LOOP = re.compile(r"\bfor\s*\(")
_QUALIFIERS = re.compile(
    r"\b(const|restrict|__restrict__|__global|global|__local|volatile|unsigned(?= long| int))\b"
)


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of the plan."""

    role: str
    name: str
    element: str
    shape: tuple

    @property
    def count(self):
        """Number of elements."""
        total = 1
        for extent in self.shape:
            total *= extent
        return total

    @property
    def is_floating(self):
        """Whether it holds fractions."""
        return self.element in ("f64", "f32", "f16", "bf16")


@dataclasses.dataclass(frozen=True)
class Access:
    """One `name[index]` in a kernel; `tensor` is None where the plan passes several."""

    name: str
    tensor: Tensor
    index: str
    start: int
    end: int
    # `=`, `+=` and the like; empty for a load.
    assigns: str = ""


@dataclasses.dataclass(frozen=True)
class Loop:
    """`for (int variable = begin; variable < limit; step) body`."""

    variable: str
    limit: str
    step: str
    limit_span: tuple
    step_span: tuple
    body_span: tuple


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A kernel that the plan launches."""

    name: str
    # (type without qualifiers, name, is a pointer)
    parameters: tuple
    # Between the braces.
    start: int
    end: int
    # Of the list of parameters, without the parentheses.
    parameters_span: tuple = ()


class ProgramText:
    """A value: see the module."""

    def __init__(self, text):
        self.text = text
        # Same length, with blanks for what the compiler does not see.
        self.visible = _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        self.is_cuda = re.search(r"//@\s*mtmc\s+1\s+cuda", text) is not None
        self.tensors = {
            name: Tensor(role, name, element, tuple(int(e) for e in shape.split(",") if e))
            for role, name, element, shape in _TENSOR.findall(text)
        }
        self.launches = [
            (found[1], _split(found[2]), found.start(), found.end())
            for found in _LAUNCH.finditer(text)
        ]
        kernels = [self._kernel(name) for name in dict.fromkeys(n for n, *_ in self.launches)]
        self.kernels = [kernel for kernel in kernels if kernel]

    def accesses(self, kernel):
        """All that `kernel` reads and writes through its parameters."""
        found = []
        for position, (_, name, is_pointer) in enumerate(kernel.parameters):
            if not is_pointer:
                continue
            tensor = self._passed(kernel, position)
            for use in re.finditer(rf"\b{name}\s*\[", self.visible[kernel.start : kernel.end]):
                start, opening = kernel.start + use.start(), kernel.start + use.end() - 1
                end = _closing(self.visible, opening) + 1
                assigns = _ASSIGNS.match(self.visible, end)
                index = self.text[opening + 1 : end - 1]
                operator = assigns[1] if assigns else ""
                found.append(Access(name, tensor, index, start, end, operator))
        return sorted(found, key=lambda access: access.start)

    def loads(self, roles=("input", "weight")):
        """Reads of the tensors with `roles`, in all kernels."""
        return [
            access
            for kernel in self.kernels
            for access in self.accesses(kernel)
            if not access.assigns and access.tensor and access.tensor.role in roles
        ]

    def stores(self, roles=("output", "buffer")):
        """(kernel, access, span of the value) of plain assignments to tensors with `roles`."""
        found = []
        for kernel in self.kernels:
            for access in self.accesses(kernel):
                if access.assigns == "=" and access.tensor and access.tensor.role in roles:
                    begin = self.visible.index("=", access.end) + 1
                    found.append((kernel, access, (begin, self.visible.index(";", begin))))
        return found

    def loops(self):
        """Counting loops of the kernels, outer ones first."""
        found = []
        for kernel in self.kernels:
            for head in _LOOP.finditer(self.visible, kernel.start, kernel.end):
                close = _closing(self.visible, head.end() - 1)
                parts = self.visible[head.end() : close].split(";")
                if len(parts) != 3:
                    continue
                condition = re.fullmatch(r"\s*(\w+)\s*<\s*(.+)", parts[1], re.DOTALL)
                if not condition:
                    continue
                limit = head.end() + len(parts[0]) + 1 + condition.start(2)
                step = head.end() + len(parts[0]) + len(parts[1]) + 2
                found.append(
                    Loop(
                        condition[1],
                        condition[2],
                        parts[2].strip(),
                        (limit, limit + len(condition[2])),
                        (step, close),
                        self._body(close + 1),
                    )
                )
        return found

    def bodies(self):
        """Spans of the kernels' bodies."""
        return [(kernel.start, kernel.end) for kernel in self.kernels]

    def in_bodies(self, pattern):
        """Matches of `pattern` in what the compiler sees of the kernels."""
        compiled = re.compile(pattern)
        return [m for start, end in self.bodies() for m in compiled.finditer(self.visible, start, end)]

    def replaced(self, *edits):
        """The text with each (start, end, new) done; they do not overlap."""
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def before_source(self):
        """Position where a declaration may be put: after the last directive."""
        last = [found.end() for found in re.finditer(r"^[ \t]*//@[^\n]*\n", self.text, re.M)]
        return last[-1] if last else 0

    def word(self, opencl, cuda):
        """The dialect's word."""
        return cuda if self.is_cuda else opencl

    def _body(self, start):
        opening = re.compile(r"\s*").match(self.visible, start).end()
        if self.visible[opening] == "{":
            return opening + 1, _closing(self.visible, opening)
        return opening, self.visible.index(";", opening) + 1

    def _passed(self, kernel, position):
        """The tensor at `position`, None where launches pass several."""
        passed = {arguments[position] for name, arguments, *_ in self.launches if name == kernel.name}
        return self.tensors.get(passed.pop()) if len(passed) == 1 else None

    def _kernel(self, name):
        for head in re.finditer(rf"\b{name}\s*\(", self.visible):
            close = _closing(self.visible, head.end() - 1)
            opening = re.compile(r"\s*\{").match(self.visible, close + 1)
            if not opening:
                continue
            span = (head.end(), close)
            parameters = tuple(_parameter(part) for part in _split(self.visible[slice(*span)]))
            end = _closing(self.visible, opening.end() - 1)
            return Kernel(name, parameters, opening.end(), end, span)
        return None


def _parameter(text):
    words = re.findall(r"\w+", _QUALIFIERS.sub(" ", text))
    return " ".join(words[:-1]), words[-1], "*" in text


def _split(text):
    """Parts between the commas of the first level."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    return parts + ([current.strip()] if current.strip() else [])


def _closing(text, opening):
    """Position of what closes the bracket at `opening`."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position
    raise ValueError("a bracket is not closed")
