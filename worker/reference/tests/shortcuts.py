# SPDX-License-Identifier: Apache-2.0
"""Draws references and short cuts of them that hold for the file's inputs alone.

A reference is a site (`shortcut_sites`) between an affine function and a tail. Whether a
short cut is dishonest is found without the evaluator: on some legal input, on which fp64
agrees with FP32 about the reference, it is far from that.
"""

import dataclasses
import random

import torch
from shortcut_sites import NAMES, SITES

# Factor and summand of what stands before a site; sums and products of short numbers are
# exact, so that rounding explains no difference.
_FACTORS, _SUMMANDS = (1.0, 1.0, 2.0, 0.5, -1.0, 8.0, 3.0), (0.0, 0.0, 1.0, -0.25, 0.375)
_TAILS = ("{}", "{}", "({}) * 1.5", "({}) + 1", "({}).sum(-1)", "2 - ({})")
_SCALES = (1e-40, 1e-25, 1e-12, 1e-3, 1.0, 30.0, 1e3)
# Difference that no class up to KERNELBENCH admits, in parts of the largest element.
_FAR = 1e-2
# Outputs below it count as zero.
_LEAST = 1e-30

_SOURCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Model(nn.Module):
    def forward(self, {arguments}):
        s = {before}
        return {after}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


@dataclasses.dataclass
class Drawn:
    """A reference; `run(after, tensors)` computes it or a short cut of it."""

    site: object
    factor: float
    summand: float
    tail: str
    inputs: str

    @property
    def before(self):
        text = "x" if self.factor == 1 else f"x * {self.factor}"
        return text if not self.summand else f"{text} + {self.summand}"

    @property
    def after(self):
        return self.tail.format(self.site.reference)

    @property
    def twins(self):
        return [self.tail.format(twin) for twin in self.site.twins]

    @property
    def title(self):
        return f"{self.site.name}: {self.after} of {self.before} of {self.inputs}"

    def source(self):
        inputs = [self.inputs, *filter(None, [self.site.whole])]
        arguments = "x, k" if self.site.whole else "x"
        return _SOURCE.format(
            arguments=arguments, before=self.before, after=self.after, inputs=", ".join(inputs)
        )

    def run(self, after, tensors):
        values = dict(tensors)
        values["s"] = eval(self.before, NAMES, values)
        return eval(after, {**NAMES, **values})

    def witness(self, twin):
        """Legal inputs on which a short cut is wrong; None where none was found."""
        public = self.run(self.after, self._public())
        # There is nothing to get wrong.
        if public.abs().max() < 1e-4:
            return None
        for tensors in self._legal():
            expected = self.run(self.after, tensors)
            wide = {n: t.double() if t.is_floating_point() else t for n, t in tensors.items()}
            exact, actual = self.run(self.after, wide), self.run(twin, tensors)
            if not expected.isfinite().all():
                continue
            unit = _FAR * max(_LEAST, expected.abs().max().item())
            if (expected - exact).abs().max() > 1e-3 * unit or actual.shape != expected.shape:
                continue
            if not (actual - expected).abs().max() <= unit:
                return tensors
        return None

    def _public(self):
        torch.manual_seed(0)
        tensors = {"x": eval(self.inputs, NAMES)}
        return {**tensors, "k": eval(self.site.whole, NAMES)} if self.site.whole else tensors

    def _legal(self):
        torch.manual_seed(0)
        shape = (32, 33)
        public = eval(self.inputs, NAMES)
        points = torch.tensor(self.site.points or (0.0, 1.0))
        chosen = points[torch.randint(len(points), shape)]
        floats = [(chosen - self.summand) / self.factor, public]
        floats += [torch.randn(shape) * scale for scale in _SCALES]
        floats += [torch.randint(-9, 10, shape) / 2, torch.zeros(shape), -public]
        floats += [torch.where(torch.arange(33) == 20, torch.ones(shape), 0.0)]
        floats += [torch.zeros(shape).neg(), public[:, :1].expand(shape).clone()]
        for x in floats:
            yield from ({"x": x, **k} for k in self._whole())

    def _whole(self):
        if not self.site.whole:
            return [{}]
        public = eval(self.site.whole, NAMES)
        rows = torch.randint(0, 33, (32, 33))
        wide = [torch.randint(-9, 10, (32, 33)), torch.full((32, 33), 2**32 + 1)]
        try:
            for k in wide:
                self.run(self.after, {"x": torch.randn(32, 33), "k": k})
        except (IndexError, RuntimeError):
            wide = [rows, rows % 3]
        if "labelled" in self.site.name:
            wide = [torch.where(rows < 4, -100, rows)]
        if "negative" in self.site.name:
            wide = [rows - 33]
        return [{"k": k} for k in (public, *wide)]


def draw(seed, count, part=0, parts=1):
    """Of `count` references that are others for another seed, those of one part."""
    chance = random.Random(seed)
    sites = []
    for number in range(count):
        # Each site once before any comes again.
        sites = sites or chance.sample(SITES, len(SITES))
        site = sites.pop()
        is_plain = site.is_bare or bool(site.whole) or site.inputs != SITES[0].inputs
        factor = 1.0 if is_plain else chance.choice(_FACTORS)
        summand = 0.0 if is_plain else chance.choice(_SUMMANDS)
        drawn = Drawn(site, factor, summand, chance.choice(_TAILS), chance.choice(site.inputs))
        if number % parts == part:
            yield drawn
