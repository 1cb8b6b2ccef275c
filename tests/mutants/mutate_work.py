# SPDX-License-Identifier: Apache-2.0
"""Mutations that do less work: samples of a reduction, rows and tails that are copied
or left out, small values that become zero, one answer for all.
"""

import re


def sample_reduction(program, _public):
    """A part of what is summed stands for all of it."""
    for loop in program.loops():
        body = program.visible[slice(*loop.body_span)]
        sums = [m for m in re.finditer(r"\b(\w+) \+= ([^;]+);", body) if not m[1].endswith("_n")]
        if not (sums or re.search(r"\w+ = [^;=]*[<>?+*]", body)):
            continue
        doubled = f"{loop.variable} += 2 * ({_step(loop)})"
        cuts = [
            ("every other", (*loop.step_span, " " + doubled), "2"),
            ("seven of eight", (*loop.limit_span, f"({loop.limit}) * 7 / 8"), "(8.0f / 7.0f)"),
            ("half", (*loop.limit_span, f"(({loop.limit}) + 1) / 2"), "2"),
        ]
        for about, cut, factor in cuts:
            yield f"{about} of {loop.variable} is reduced", program.replaced(cut)
            scaled = [_scaled(program, loop, one, factor) for one in sums]
            if scaled:
                yield (
                    f"{about} of {loop.variable} is reduced, and scaled",
                    program.replaced(cut, *scaled),
                )


def skip_rows(program, _public):
    """Rows are answered with what their neighbours have, or not at all."""
    for kernel in program.kernels:
        first = re.compile(r"const (?:int|long|size_t) (\w+) = ([^;]*(?:group|block)[^;]*);")
        found = first.search(program.visible, kernel.start, kernel.end)
        if not found:
            continue
        row = found[1]
        for about, other in (
            ("every eighth", f"{row} - ({row} % 8 == 7)"),
            ("every other", f"({row} & ~1)"),
        ):
            edits = [
                (load.start, load.end, f"{load.name}[{_other_row(load.index, row, other)}]")
                for load in program.accesses(kernel)
                if not load.assigns and re.search(rf"\b{row}\b", load.index)
            ]
            if edits:
                yield f"{about} {row} has its neighbour's answer", program.replaced(*edits)
    for bound in program.in_bodies(r"\bif \((\w+) < (\d+)\) \{"):
        if int(bound[2]) > 8:
            edit = (bound.start(2), bound.end(2), str(int(bound[2]) - 1))
            yield f"the last {bound[1]} is left out", program.replaced(edit)
            edit = (bound.start(), bound.end(), f"if ({bound[1]} < {bound[2]} && {bound[1]} % 61 != 60) {{")
            yield f"one {bound[1]} in 61 is left out", program.replaced(edit)


def skip_small(program, _public):
    """Small results become zero, large ones stay within a bound."""
    for _, store, span in program.stores():
        if store.tensor.element != "f32":
            continue
        value = program.text[slice(*span)].strip()
        absolute = program.word("fabs", "fabsf")
        for floor in ("1e-3f", "1e-4f", "1e-6f"):
            new = f" {absolute}({value}) < {floor} ? 0.0f : ({value})"
            yield f"{store.tensor.name} below {floor} is zero", program.replaced((*span, new))
        for most in ("6.0f", "1e3f"):
            new = f" ({value}) > {most} ? {most} : ({value})"
            yield f"{store.tensor.name} is at most {most}", program.replaced((*span, new))


def constant_output(program, _public):
    """One answer for rows that look degenerate, or for all."""
    for kernel, store, span in program.stores():
        value = program.text[slice(*span)].strip()
        yield f"{store.tensor.name} is zero", program.replaced((*span, " 0"))
        loads = [a for a in program.accesses(kernel) if not a.assigns and a.tensor and a.tensor.count]
        for load in loads[:2]:
            if load.tensor.element in ("f32", "f64") and store.tensor.is_floating:
                new = f" {load.name}[0] == 0 ? 0 : ({value})"
                yield (
                    f"{store.tensor.name} is zero where {load.tensor.name} begins with zero",
                    program.replaced((*span, new)),
                )


def approximate(program, _public):
    """A cheaper formula near zero, a series that stops early."""
    series = {
        "exp": "(1 + ({x}) * (1 + ({x}) * (0.5f + ({x}) * (1.0f / 6 + ({x}) * (1.0f / 24)))))",
        "tanh": "(({x}) / (1 + fabs({x})))",
        "erf": "tanh(1.1283792f * ({x}))",
        "log": "(({x}) - 1)",
    }
    for name, formula in series.items():
        for call in program.in_bodies(rf"\b{name}f?\((\w+)\)"):
            new = formula.format(x=call[1])
            yield f"{name} is a formula near zero", program.replaced((call.start(), call.end(), new))


def _step(loop):
    found = re.search(r"\+=\s*(.+)", loop.step)
    return found[1] if found else "1"


def _scaled(program, loop, found, factor):
    start = loop.body_span[0] + found.start()
    end = loop.body_span[0] + found.end()
    return start, end, f"{found[1]} += {factor} * ({found[2]});"


def _other_row(index, row, other):
    return re.sub(rf"\b{row}\b", f"({other})", index)
