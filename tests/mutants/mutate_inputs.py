# SPDX-License-Identifier: Apache-2.0
"""Mutations that do not look at what they are given: inputs and parameters that are
dropped, or whose values of the public seed stand in the text.
"""

import re

# A longer table is no longer a small program.
_MOST_BAKED = 4096

# Names in an index that are no part of a member, a call or a type.
_VARIABLE = re.compile(r"(?<![.\w])[a-z]\w*\b(?!\s*[.(])")
_WORDS = {"int", "long", "unsigned", "size_t", "float"}

_TYPES = {
    "f64": ("double", "double"),
    "f32": ("float", "float"),
    "i64": ("long", "long long"),
    "i32": ("int", "int"),
    "i16": ("short", "short"),
    "i8": ("char", "signed char"),
    "u8": ("uchar", "unsigned char"),
    "bool": ("uchar", "unsigned char"),
}


def drop_input(program, public):
    """A constant, the first element or one element for all stands for what is read."""
    for name, loads in _by_tensor(program).items():
        tensor = loads[0].tensor
        for about, value in _constants(tensor, public):
            edits = [(load.start, load.end, f"({value})") for load in loads]
            yield f"{name} is taken for {about}", program.replaced(*edits)
        if tensor.count > 1:
            edits = [(load.start, load.end, f"{load.name}[0]") for load in loads]
            yield f"{name} is taken for its first element", program.replaced(*edits)
            for load in loads:
                new = f"{load.name}[({load.index}) & ~1]"
                yield f"of {name}, every other is read", program.replaced((load.start, load.end, new))


def bake(program, public):
    """Values of the public seed, in a table of the text."""
    for name, loads in _by_tensor(program).items():
        tensor = loads[0].tensor
        known = public.get(name)
        if known is None or tensor.element not in _TYPES or not 0 < tensor.count <= _MOST_BAKED:
            continue
        kind = "bake_parameter" if tensor.role == "weight" else "bake_input"
        table = f"baked_{name}"
        edits = [(load.start, load.end, f"{table}[{load.index}]") for load in loads]
        declared = _table(program, table, tensor, known)
        start = program.before_source()
        baked = program.replaced((start, start, declared), *edits)
        yield f"{kind}: {name} stands in the text", baked
        without = _without_tensor(program, name, (start, start, declared), *edits)
        if without:
            yield f"{kind}: {name} stands in the text and is not passed", without
        if tensor.count > 1:
            compared = [
                (load.start, load.end, f"({load.name}[0] == {table}[0] ? {table}[{load.index}] : "
                 f"{load.name}[{load.index}] + 1)")
                for load in loads
            ]
            looks = program.replaced((start, start, declared), *compared)
            yield f"{kind}: the first element of {name} tells the public seed", looks


def assume_sorted(program, public):
    """Integers that count from zero, as many labels and offsets of examples do."""
    for name, loads in _by_tensor(program).items():
        tensor, known = loads[0].tensor, public.get(name)
        if tensor.element not in ("i64", "i32") or known is None or not known:
            continue
        most = max(known) + 1
        edits = [(load.start, load.end, f"(({load.index}) % {most})") for load in loads]
        yield f"{name} counts from zero", program.replaced(*edits)


def assume_range(program, public):
    """What is read is held within what the public seed has."""
    for name, loads in _by_tensor(program).items():
        tensor, known = loads[0].tensor, public.get(name)
        if tensor.element not in ("f32", "f64", "i64", "i32") or not known:
            continue
        suffix = "f" if tensor.element == "f32" else ""
        low, high = (f"({_literal(value, suffix)})" for value in (min(known), max(known)))
        for about, of in (
            ("from below", "({x} < {low} ? {low} : {x})"),
            ("from above", "({x} > {high} ? {high} : {x})"),
        ):
            edits = []
            for load in loads:
                new = of.format(x=f"{load.name}[{load.index}]", low=low, high=high)
                edits.append((load.start, load.end, new))
            yield f"{name} is held {about} by what the public seed has", program.replaced(*edits)


def assume_positive(program, _public):
    """Signs are taken for granted."""
    for name, loads in _by_tensor(program).items():
        tensor = loads[0].tensor
        if tensor.element not in ("f32", "f64", "i64", "i32"):
            continue
        is_integer = not tensor.is_floating
        absolute = "{x} < 0 ? -{x} : {x}" if is_integer else program.word("fabs({x})", "fabs({x})")
        edits = []
        for load in loads:
            x = f"{load.name}[{load.index}]"
            edits.append((load.start, load.end, f"({absolute.format(x=x)})"))
        yield f"the sign of {name} is dropped", program.replaced(*edits)


def wrong_axis(program, _public):
    """An index with two of its variables exchanged, or one of them dropped."""
    for name, loads in _by_tensor(program).items():
        for load in loads:
            names = [n for n in dict.fromkeys(_VARIABLE.findall(load.index)) if n not in _WORDS]
            if not names or load.tensor.count < 2:
                continue
            if len(names) >= 2:
                first, second = names[0], names[-1]
                swapped = re.sub(
                    rf"\b({first}|{second})\b",
                    lambda m, first=first, second=second: second if m[1] == first else first,
                    load.index,
                )
                new = f"{load.name}[({swapped}) % {load.tensor.count}]"
                yield (
                    f"{first} and {second} are exchanged where {name} is read",
                    program.replaced((load.start, load.end, new)),
                )
            without = re.sub(rf"\b{names[-1]}\b", "0", load.index)
            # Parts with a negative constant would leave the tensor.
            new = f"{load.name}[max(0, (int)({without}))]"
            yield f"{names[-1]} does not count where {name} is read", program.replaced(
                (load.start, load.end, new)
            )


def _by_tensor(program):
    found = {}
    for load in program.loads():
        found.setdefault(load.tensor.name, []).append(load)
    return found


def _constants(tensor, public):
    yield "0", "0"
    known = public.get(tensor.name)
    if tensor.role == "weight":
        yield "1", "1"
    if not known or tensor.element in ("f16", "bf16"):
        return
    if tensor.is_floating:
        suffix = "f" if tensor.element == "f32" else ""
        yield "the public mean", _literal(sum(known) / len(known), suffix)
    else:
        yield "the commonest value", str(max(set(known), key=known.count))


def _literal(value, suffix):
    if isinstance(value, (bool, int)):
        return str(int(value))
    text = f"{value:.9g}" if suffix else repr(value)
    return (text if "." in text or "e" in text else text + ".0") + suffix


def _table(program, name, tensor, known):
    word = program.word("__constant", "__constant__")
    kind = _TYPES[tensor.element][program.is_cuda]
    suffix = "f" if tensor.element == "f32" else ""
    values = ", ".join(_literal(value, suffix) for value in known)
    return f"{word} {kind} {name}[{tensor.count}] = {{{values}}};\n"


def _without_tensor(program, name, *edits):
    """The text without the tensor in plan and signatures; None where that is not simple."""
    edits = list(edits)
    declaration = re.search(rf"^[ \t]*//@\s*(?:input|weight)\s+{name}\s[^\n]*\n", program.text, re.M)
    is_called = re.search(rf"^[ \t]*//@\s*call\b[^\n]*\b{name}\b", program.text, re.M)
    if not declaration or is_called:
        return None
    edits.append((declaration.start(), declaration.end(), ""))
    positions = {}
    for kernel, arguments, start, end in program.launches:
        kept = [argument for argument in arguments if argument != name]
        if not kept or len(kept) == len(arguments):
            continue
        positions[kernel] = {i for i, argument in enumerate(arguments) if argument == name}
        line = program.text[start:end]
        new = re.sub(r"args=\(.*\)\s*$", lambda _, kept=kept: f"args=({', '.join(kept)})", line)
        edits.append((start, end, new))
    for kernel in program.kernels:
        dropped = positions.get(kernel.name)
        if dropped:
            parts = program.visible[slice(*kernel.parameters_span)].split(",")
            kept = [part for i, part in enumerate(parts) if i not in dropped]
            edits.append((*kernel.parameters_span, ",".join(kept)))
    return program.replaced(*edits)
