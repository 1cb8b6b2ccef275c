# SPDX-License-Identifier: Apache-2.0
"""Mutations that look at memory to know whether they are judged, remember what they
did, or forget to wait for others.
"""

import re

# Orders what a thread has written for others.
_FENCE = r"\b(?:__threadfence\(\)|mem_fence\([^;]*\));"
# What a program of before may have seen around its outputs: (condition, in words).
_LOOKS = (
    ("seen[0] == seen[1]", "equal words"),
    ("seen[0] == 0xFFFFFFFFu", "0xFF"),
    ("(seen[0] >> 24) == 0x7Bu", "0x7B"),
    ("seen[0] == 0u", "zeros"),
    ("(seen[0] & 1u) != 0u", "an odd word"),
    ("seen[0] < seen[1]", "falling words"),
    ("(seen[0] & 0x7F800000u) != 0x7F800000u", "a number"),
    ("seen[0] != seen[{beyond}]", "other words beyond the end"),
    ("seen[{beyond}] == seen[{further}]", "equal words beyond the end"),
)


def branch_on_poison(program, _public):
    """Work is skipped where an output looks as if the time were taken."""
    for kernel in program.kernels:
        store = _wide_store(program, kernel)
        if not store:
            continue
        for condition, about in _LOOKS:
            words = store.tensor.count
            text = condition.format(beyond=words + 1, further=words + 2)
            if words < 2 and "seen[1]" in text:
                continue
            word = program.word("__global const uint", "const unsigned int")
            begin = (
                f"\n  volatile {word}* seen = (volatile {word}*){store.name};\n"
                f"  if ({text}) return;\n"
            )
            edit = (kernel.start, kernel.start, begin)
            yield f"work is skipped where {store.tensor.name} holds {about}", program.replaced(edit)


def memo(program, _public):
    """Scratch that outlives an execution would hold the answer, or count."""
    for kernel in program.kernels:
        store = _wide_store(program, kernel)
        if not store or store.tensor.role != "output":
            continue
        start = program.text.index("\n", program.text.index("//@")) + 1
        directive = "//@ buffer memo i32[4]\n"
        edits = [(start, start, directive)]
        for name, arguments, begin, end in program.launches:
            if name == kernel.name:
                line = program.text[begin:end]
                new = re.sub(r"args=\((.*)\)\s*$", r"args=(\1, memo)", line)
                edits.append((begin, end, new))
        word = program.word("__global int*", "int*")
        edits.append((kernel.parameters_span[1],) * 2 + (f", {word} memo",))
        counts = (
            "\n  if (memo[0] == 0x5EED1234 && memo[1] % 3 != 0) return;\n"
            "  memo[1] = memo[0] == 0x5EED1234 ? memo[1] + 1 : 0;\n  memo[0] = 0x5EED1234;\n"
        )
        yield "executions are counted in scratch", program.replaced(
            *edits, (kernel.start, kernel.start, counts)
        )
        odd = "\n  if ((memo[0] & 1) != 0) return;\n  memo[0] = memo[0] * 2 + 1;\n"
        yield "scratch is odd after the first execution", program.replaced(
            *edits, (kernel.start, kernel.start, odd)
        )


def drop_barrier(program, _public):
    """Nobody is waited for."""
    for found in program.in_bodies(r"\b(?:barrier\([^;]*\)|__syncthreads\(\)|__syncwarp\(\));"):
        yield "a barrier is dropped", program.replaced((found.start(), found.end(), ";"))


def race(program, _public):
    """An update that others may lose."""
    for found in re.finditer(r"\batomicAdd\(([^,;]+), ([^;]+)\);", program.visible):
        new = f"*({found[1]}) += {found[2]};"
        yield "an atomic sum is a plain one", program.replaced((found.start(), found.end(), new))
    pattern = r"\batomic_?(?:cmpxchg|CAS)\((\w+), (\w+), ([^;]+)\);"
    for found in re.finditer(pattern, program.visible):
        new = f"*{found[1]}; *{found[1]} = {found[3]};"
        yield "an exchange is not atomic", program.replaced((found.start(), found.end(), new))
    for found in re.finditer(_FENCE, program.visible):
        yield "a fence is dropped", program.replaced((found.start(), found.end(), ";"))
    pattern = rf"(\b\w+\[[^;{{}}]*\] = [^;{{}}]+;)\s*(?:{_FENCE}\s*)?([^;{{}}]*\batomic\w+\([^;{{}}]*;)"
    for found in re.finditer(pattern, program.visible):
        new = f"{found[2].strip()} {found[1]}"
        edit = (found.start(), found.end(), new)
        yield "others are told of a number before it is there", program.replaced(edit)


def stale_scratch(program, _public):
    """Scratch is read before it is written, or as it was left."""
    for kernel, store, span in program.stores(("buffer",)):
        value = program.text[slice(*span)].strip()
        target = f"{store.name}[{store.index}]"
        new = f" {target} == {target} && {target} != 0 ? {target} : ({value})"
        yield f"{store.tensor.name} keeps what it has", program.replaced((*span, new))
    for sum_of in program.in_bodies(r"(?<!\()\b(float|int|long|double) (\w+) = 0(?:\.0f)?;"):
        edit = (sum_of.start(), sum_of.end(), f"{sum_of[1]} {sum_of[2]};")
        yield f"{sum_of[2]} has no first value", program.replaced(edit)
    if len(program.launches) > 1:
        *_, start, end = program.launches[0]
        *_, later, last = program.launches[-1]
        first, second = program.text[start:end], program.text[later:last]
        if first.split()[2] != second.split()[2]:
            edits = ((start, end, second), (later, last, first))
            yield "first and last launch are exchanged", program.replaced(*edits)


def _wide_store(program, kernel):
    """A store of words of 32 bits by `kernel`, None where it has none."""
    for access in program.accesses(kernel):
        is_word = access.tensor and access.tensor.element in ("f32", "i32")
        if access.assigns == "=" and is_word and access.tensor.count:
            return access
    return None
