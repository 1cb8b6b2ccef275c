# SPDX-License-Identifier: Apache-2.0
"""Names of graph values: unique C identifiers that read well in a kernel."""

import re

# Words that C++, CUDA or OpenCL C take, and functions that an emitted kernel is
# likely to call: a variable of that name would hide them.
_RESERVED = frozenset(
    """
    alignas alignof and asm auto bfloat16 block bool break case catch char class const constant
    constexpr continue default delete do double else enum explicit export extern false float for
    friend global goto grid half if image inline int kernel local long mutable namespace new not
    operator or private protected public register restrict return shared short signed sizeof
    static struct switch template this thread throw true try typedef typename uchar uint ulong
    union unsigned ushort using vector virtual void volatile while xor
    abs acos acosh asin asinh atan atan2 atanh ceil clamp cos cosh dot erf erfc exp exp2 expm1
    fabs floor fma fmax fmin fmod isinf isnan ldexp length log log10 log1p log2 max min mix pow
    round rsqrt select sign sin sinh sqrt step tan tanh trunc
    """.split()
)

# Operators whose own name is not what people call them.
_SPOKEN = {"_native_batch_norm_legit_functional": "batch_norm", "native_dropout": "dropout"}


class Names:
    """Hands out each name once."""

    def __init__(self):
        self._taken = set()

    def take(self, wish):
        """A unique C identifier close to `wish`; `exp` becomes `exp_1`."""
        stem = re.sub(r"\W", "_", wish, flags=re.ASCII).strip("_") or "value"
        if stem[0].isdigit():
            stem = "value_" + stem
        stem = re.sub(r"__+", "_", stem)
        name, number = stem, 0
        while name in self._taken or name in _RESERVED:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name

    def take_first(self, wishes):
        """The first of `wishes` that is free, else a numbered form of the last."""
        for wish in wishes:
            if wish not in self._taken and wish not in _RESERVED:
                return self.take(wish)
        return self.take(wishes[-1])


def operator_stem(target):
    """`aten._softmax.default` to `softmax`."""
    name = target._schema.name.split("::")[-1]
    return _SPOKEN.get(name, name.strip("_"))
