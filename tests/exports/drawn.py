# SPDX-License-Identifier: Apache-2.0
"""Problems whose forward returns whatever Python can nest, drawn from a seed."""

import random
import re

_HEAD = '''# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import typing

import torch
import torch.nn as nn

Pair = collections.namedtuple("Pair", "left right")


class Named(typing.NamedTuple):
    value: torch.Tensor
    note: str = "n"


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: object
    more: object = None


@dataclasses.dataclass
class Counted:
    value: object
    doubled: object = dataclasses.field(init=False, default=None)

    def __post_init__(self):
        self.doubled = [self.value]


class Model(nn.Module):
    @dataclasses.dataclass
    class Output:
        first: object
        second: object

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn({columns}))
        self.register_buffer("offset", torch.randn({columns}))
        self.register_buffer("seen", torch.zeros({columns}))

    def forward(self, {names}):
{body}
        return {answer}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
'''

_STEPS = (
    "{a} * {b} + 1.5",
    "torch.tanh({a}) - {b}",
    "{a} * self.weight",
    "{a} + self.offset",
    "{a}.relu() + {b}",
    "{a} / (1 + {b}.abs())",
)


class Drawn:
    """One problem: `source` is its file."""

    def __init__(self, seed):
        self._choice = random.Random(seed)
        rows, columns = self._choice.randint(1, 9), self._choice.randint(1, 17)
        arguments = [self._argument(0) for _ in range(self._choice.randint(1, 3))]
        names = [f"a{i}{path}" for i, (_, paths) in enumerate(arguments) for path in paths]
        if not names:
            arguments.append(("TENSOR", [""]))
            names.append(f"a{len(arguments) - 1}")
        # Computed ones first: something has to be.
        self._tensors = []
        body = []
        for number in range(self._choice.randint(1, 4)):
            a, b = (self._choice.choice(names + self._tensors) for _ in "ab")
            step = self._choice.choice(_STEPS).format(a=a, b=b)
            body.append(f"        t{number} = {step}")
            self._tensors.append(f"t{number}")
        if self._choice.random() < 0.3:
            body.append("        self.seen += t0.mean(0)")
        self._tensors += [*names, "self.weight", "self.offset"]
        answer = self._choice.choice(("({0}, {1})", "[{0}, {1}]", "{{'a': {0}, 'b': {1}}}"))
        answer = answer.format("t0", self._value(1))
        if self._choice.random() < 0.15:
            answer = self._value(0)
            if not re.search(r"\bt0\b(?!\.shape)", answer):
                answer = f"Pair({answer}, t0)"
        self.source = _HEAD.format(
            columns=columns,
            names=", ".join(f"a{i}" for i in range(len(arguments))),
            body="\n".join(body),
            answer=answer,
            inputs=", ".join(text for text, _ in arguments).replace(
                "TENSOR", f"torch.randn({rows}, {columns})"
            ),
        )

    def _argument(self, depth):
        """Text that makes an argument, and where the tensors are in it."""
        draw = self._choice.random()
        if depth > 2 or draw < 0.5:
            return "TENSOR", [""]
        if draw < 0.65:
            return self._choice.choice(("None", "3", "0.5", "True", "'word'")), []
        (a, in_a), (b, in_b) = self._argument(depth + 1), self._argument(depth + 1)
        form, first, second = self._choice.choice(
            (
                ("({a}, {b})", "[0]", "[1]"),
                ("[{a}, {b}]", "[0]", "[1]"),
                ("Pair({a}, {b})", ".left", ".right"),
                ("{{'b': {a}, 'a': {b}}}", "['b']", "['a']"),
                ("{{'k': {a}, 7: {b}}}", "['k']", "[7]"),
            )
        )
        paths = [first + path for path in in_a] + [second + path for path in in_b]
        return form.format(a=a, b=b), paths

    def _value(self, depth):
        draw = self._choice.random()
        if depth > 3 or draw < 0.35:
            return self._choice.choice(self._tensors)
        if draw < 0.45:
            return self._choice.choice(
                ("None", "True", "3", "-7", "2.5", "float('inf')", "'text \\n \"é\"'", "1e-30")
            )
        a, b = self._value(depth + 1), self._value(depth + 1)
        return self._choice.choice(
            (
                f"({a}, {b})",
                f"({a},)",
                "()",
                f"[{a}, {b}]",
                "[]",
                f"{{'one': {a}, 2: {b}, None: 1}}",
                f"{{True: {a}}}",
                f"collections.OrderedDict([('z', {a}), ('a', {b})])",
                f"Pair({a}, {b})",
                f"Named({a}, 'é')",
                f"Frozen({a}, {b})",
                f"Counted({a})",
                f"Model.Output(first={a}, second={b})",
                "t0.max(dim=1)",
                "t0.shape",
            )
        )
