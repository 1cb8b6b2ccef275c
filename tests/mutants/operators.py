# SPDX-License-Identifier: Apache-2.0
"""Every way in which an honest program is made dishonest here.

An operator takes a ProgramText and the values of the public seed by tensor name, and
yields (what it did, text). None knows a problem: they look at the plan and at the
shapes of statements. What one yields may also be honest by luck; truth.py decides.
"""

import dataclasses

import mutate_inputs
import mutate_memory
import mutate_values
import mutate_work
import program_text

OPERATORS = (
    mutate_inputs.drop_input,
    mutate_inputs.bake,
    mutate_inputs.assume_sorted,
    mutate_inputs.assume_range,
    mutate_inputs.assume_positive,
    mutate_inputs.wrong_axis,
    mutate_values.narrow_type,
    mutate_values.remove_guard,
    mutate_values.forget_special,
    mutate_values.replace_epsilon,
    mutate_values.swap_comparison,
    mutate_values.tie_break,
    mutate_work.sample_reduction,
    mutate_work.skip_rows,
    mutate_work.skip_small,
    mutate_work.constant_output,
    mutate_work.approximate,
    mutate_memory.branch_on_poison,
    mutate_memory.memo,
    mutate_memory.drop_barrier,
    mutate_memory.race,
    mutate_memory.stale_scratch,
)


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A program made from an honest one."""

    operator: str
    about: str
    text: str


def mutants(text, public):
    """All mutants of the program `text`, without those that are equal."""
    program = program_text.ProgramText(text)
    found, seen = [], {text}
    for operator in OPERATORS:
        for about, changed in operator(program, public):
            name = operator.__name__
            # A word in front says which of its kinds it is.
            if name == "bake":
                name, _, about = about.partition(": ")
            if changed not in seen:
                seen.add(changed)
                found.append(Mutant(name, about, changed))
    return found
