# SPDX-License-Identifier: Apache-2.0
"""Mutations of what is computed: narrower types, guards and special values that are
forgotten, comparisons that let one value more through.
"""

import re

_FLOAT = r"(?:float|double)"
# `name = condition ? a : b;`, within one line.
_CHOICE = re.compile(r"= ([^=?;{}\n][^?;\n]*) \? ([^:;\n]+) : ([^;\n]+);")
_SMALL = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?e-\d+f?)\b")


def narrow_type(program, _public):
    """Values and sums with fewer bits than the type has."""
    for load in program.loads(("input", "weight", "buffer")):
        if load.tensor.element == "f32":
            x = f"{load.name}[{load.index}]"
            for bits, about in ((13, "ten bits"), (16, "seven bits")):
                new = _rounded(program, x, bits)
                edit = (load.start, load.end, new)
                yield f"{load.tensor.name} is rounded to {about}", program.replaced(edit)
        elif load.tensor.element == "f64":
            new = f"((double)(float){load.name}[{load.index}])"
            yield f"{load.tensor.name} is read as float", program.replaced((load.start, load.end, new))
        elif load.tensor.element in ("i64", "i32"):
            for kind in ("short", "float") if load.tensor.element == "i32" else ("int", "short", "float"):
                new = f"(({kind}){load.name}[{load.index}])"
                edit = (load.start, load.end, new)
                yield f"{load.tensor.name} is read as {kind}", program.replaced(edit)
    for sum_of in program.in_bodies(r"\b(\w+) \+= ([^;]+);"):
        if _type_of(program, sum_of[1], sum_of.start()) != "float":
            continue
        for bits, about in ((13, "ten bits"), (16, "seven bits")):
            new = f"{sum_of[1]} = {_rounded(program, f'{sum_of[1]} + ({sum_of[2]})', bits)};"
            edit = (sum_of.start(), sum_of.end(), new)
            yield f"the sum {sum_of[1]} has {about}", program.replaced(edit)
    doubles = program.in_bodies(r"\bdouble\b(?!\s*\*)")
    if doubles:
        edits = [(found.start(), found.end(), "float") for found in doubles]
        yield "doubles are computed as floats", program.replaced(*edits)
    for _, store, span in program.stores():
        if store.tensor.element == "f32":
            new = " " + _rounded(program, program.text[slice(*span)].strip(), 13)
            yield f"{store.tensor.name} has ten bits", program.replaced((*span, new))


def remove_guard(program, _public):
    """A choice is made once for all, a bound is dropped."""
    for choice in program.in_bodies(_CHOICE.pattern):
        for number, about in ((2, "always"), (3, "never")):
            new = f"= {choice[number]};"
            edit = (choice.start(), choice.end(), new)
            yield f"`{choice[1][:40]}` {about} holds", program.replaced(edit)
    for call in program.in_bodies(r"\b(fmax|fmin|fmaxf|fminf|max|min)\("):
        inner = _arguments(program, call.end() - 1)
        if inner and len(inner[0]) == 2:
            (first, second), end = inner
            for value in (first, second):
                edit = (call.start(), end, f"({value})")
                yield f"{call[1]} is its argument {value[:30]}", program.replaced(edit)
    for call in program.in_bodies(r"\b(fabs|fabsf|abs)\("):
        inner = _arguments(program, call.end() - 1)
        if inner:
            edit = (call.start(), inner[1], f"({inner[0][0]})")
            yield f"{call[1]} is dropped", program.replaced(edit)
    for start in program.in_bodies(r"= -INFINITY;"):
        for value in ("0", "-10.0f", "-1e4f"):
            edit = (start.start(), start.end(), f"= {value};")
            yield f"a maximum begins at {value}", program.replaced(edit)
    for found in program.in_bodies(r"\bexp(f?)\(([\w\[\]]+) - (\w+)\)"):
        edit = (found.start(), found.end(), f"exp{found[1]}({found[2]})")
        yield f"nothing is subtracted from {found[2]} before exp", program.replaced(edit)


def forget_special(program, _public):
    """Values with a meaning of their own are taken like any other."""
    for found in program.in_bodies(r"(\w+) == (-\d+)"):
        edit = (found.start(), found.end(), f"{found[1]} == {int(found[2]) - 1}")
        yield f"{found[2]} is a value like any other", program.replaced(edit)
    for found in program.in_bodies(r"\|\| (\w+) != \1\b"):
        yield f"NaN in {found[1]} is forgotten", program.replaced((found.start(), found.end(), ""))
    for found in program.in_bodies(r"\b(isinf|isnan)\("):
        inner = _arguments(program, found.end() - 1)
        if inner:
            yield f"{found[1]} is never true", program.replaced((found.start(), inner[1], "(0)"))
    for found in program.in_bodies(r"(\w+) < 0 \? \1 \+ (\w+) : \1"):
        yield "a negative index is not wrapped", program.replaced((found.start(), found.end(), found[1]))


def replace_epsilon(program, _public):
    """Small constants are left out or become others."""
    for found in program.in_bodies(_SMALL.pattern):
        suffix = "f" if found[1].endswith("f") else ""
        value = float(found[1].rstrip("f"))
        for new in (0.0, value * 100, value / 100):
            edit = (found.start(), found.end(), f"{new!r}{suffix}")
            yield f"{found[1]} becomes {new!r}", program.replaced(edit)


def swap_comparison(program, _public):
    """The bound belongs to the other side."""
    swaps = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > "}
    heads = [range(loop.limit_span[0] - 40, loop.step_span[1]) for loop in program.loops()]
    for found in program.in_bodies(r" (?:<=|>=|<|>) "):
        line = program.visible[: found.start()].rsplit("\n", 1)[-1].strip()
        if any(found.start() in head for head in heads) or line.startswith("if (i"):
            continue
        # `mask >= 0` would never end.
        if line.startswith("for (") and found[0] == " > ":
            continue
        edit = (found.start(), found.end(), swaps[found[0]])
        yield f"`{found[0].strip()}` becomes `{swaps[found[0]].strip()}`", program.replaced(edit)


def tie_break(program, _public):
    """The last of equal values is picked."""
    for found in program.in_bodies(r"(\w+) < (\w*index\w*)"):
        edit = (found.start(), found.end(), f"{found[1]} > {found[2]}")
        yield "the last of equal values is picked", program.replaced(edit)


def _rounded(program, value, bits):
    mask = f"0x{(0xFFFFFFFF << bits) & 0xFFFFFFFF:X}u"
    half = f"0x{1 << (bits - 1):X}u"
    if program.is_cuda:
        return f"__uint_as_float((__float_as_uint({value}) + {half}) & {mask})"
    return f"as_float((as_uint((float)({value})) + {half}) & {mask})"


def _type_of(program, name, before):
    declared = re.findall(rf"\b({_FLOAT}|int|long long|long)\s+{name}\b", program.visible[:before])
    return declared[-1] if declared else ""


def _arguments(program, opening):
    """(arguments, end) of the call whose bracket opens there."""
    depth, parts, last = 0, [], opening + 1
    for position in range(opening, len(program.visible)):
        character = program.visible[position]
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            parts.append(program.text[last:position].strip())
            last = position + 1
        if depth == 0:
            return parts, position + 1
    return None
