# SPDX-License-Identifier: Apache-2.0
"""The catalogue of known cheats, row by row, and how each is tried here.

Rows are those of the catalogue of exploits that the published evaluators met:
A timing, B provenance, C numerics and semantics, D the grader itself, E benign
but off-task. Where a cheat needs host code, which no program of ours has, its
nearest relative is tried: what a text can at most say. An attempt that is merely
legal is judged by what it gains (`judge`).
"""

import dataclasses
import pathlib

import judges
from harness import FAST

FOLDER = pathlib.Path(__file__).parent
PROBLEMS = FOLDER / "problems"


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One program of a row."""

    # Path below this folder; `.kernel` texts exist in both dialects.
    program: str
    # Name of a file in `problems`.
    problem: str
    # Kinds of failure of which one must come, or a judge of judges.py.
    refused_by: object
    # What would let the cheat through if it were missing.
    defence: str
    # Words of the text and what stands for them.
    replace: dict = dataclasses.field(default_factory=dict)
    # Tells attempts with one program apart.
    variant: str = ""
    options: dict = dataclasses.field(default_factory=dict)
    calls: tuple = ()
    precision: str = "kernelbench"
    randomize: bool = False
    # Part of the subset that runs in CI.
    in_ci: bool = True

    @property
    def dialects(self):
        """Dialects in which it can be written."""
        suffix = pathlib.Path(self.program).suffix
        return {".cl": ("opencl",), ".cu": ("cuda",)}.get(suffix, ("opencl", "cuda"))

    def all_options(self):
        """Options of the evaluation."""
        return {**FAST, **self.options}


@dataclasses.dataclass(frozen=True)
class Row:
    """One cheat of the catalogue."""

    title: str
    attempts: tuple


def _try(program, problem, refused_by, defence, **fields):
    kinds = frozenset(refused_by.split()) if isinstance(refused_by, str) else refused_by
    return Attempt(program, problem, kinds, defence, **fields)


PARSER = "parser: the format has no host code, streams or conditions"
CHECKER = "plan checker"
SOURCE = "source checks: a text reaches nothing beyond the device"
CUBIN = "cubin scan: a module keeps no state and calls no runtime"
CONTENTS = "fresh contents: outputs of timed calls are compared with verified ones"
POISON = "outputs and scratch are poisoned before every execution"
SCRUB = "on-chip memory is scrubbed before every timed execution"
ORACLE = "comparison with the fp64 run on hidden seeds"
DISTRIBUTIONS = "hidden distributions"
REDZONES = "redzones around every buffer"
CHECKSUMS = "checksums of inputs and weights"
DEADLINES = "deadlines that end the whole process group"

_LOCAL = {"MEMORY": "LOCAL int memory[144]", "EXTRA": "", "ARGUMENT": "", "PARAMETER": ""}
_STACK = {"MEMORY": "volatile int memory[144]", "EXTRA": "", "ARGUMENT": "", "PARAMETER": ""}
_SCRATCH = {
    "MEMORY": "GLOBAL int* memory = kept + GROUP_ID * 144",
    "EXTRA": "//@ buffer kept i32[16,144]",
    "ARGUMENT": ", kept",
    "PARAMETER": ", GLOBAL int* kept",
}
_SLACK = {
    "MEMORY": "volatile GLOBAL int* memory = (volatile GLOBAL int*)(y + 0x40000) + GROUP_ID * 144",
    "EXTRA": "",
    "ARGUMENT": "",
    "PARAMETER": "",
}
# Memory of the context that no buffer holds, on a device where there is some.
_FAR = {
    "MEMORY": "volatile GLOBAL int* memory = (volatile GLOBAL int*)(size_t)0x10000000000"
    " + GROUP_ID * 144",
    "EXTRA": "",
    "ARGUMENT": "",
    "PARAMETER": "",
}
# A forged address that is mapped: nothing in the context decides anything.
_FORGED = judges.refused_or_right("CRASH LAUNCH OUT_OF_BOUNDS WRONG_RESULT")
# One program several times: on a busy host one of them was hardly disturbed.
TWINS = ("A0.row_sine", *(f"D11.row_sine.copy{number}" for number in (1, 2, 3)))
_SINE = judges.gains_nothing(TWINS, 0.6)

_BATCH_NORM = "numerics/batch_norm.kernel"
_LINEAR = "numerics/linear_gelu.kernel"
_TIMES = "TIMEOUT CRASH COMPILE OUT_OF_MEMORY"

ROWS = {
    "A0": Row(
        "honest twins, which the others are compared with",
        (
            _try("timing/row_sine.kernel", "row_sine", judges.accepted, "none: it is honest"),
            _try(
                "timing/prepared_weights.kernel",
                "linear_gelu",
                judges.accepted,
                "none: it is honest",
                replace={"MARKED": "mark[row] == 0x7EED1234 && row > 1000"},
            ),
        ),
    ),
    "A1": Row(
        "side stream",
        (_try("timing/side_stream.kernel", "scalar", "PARSE", PARSER),),
    ),
    "A2": Row(
        "thread that works later",
        (_try("timing/later.kernel", "scalar", "PARSE", PARSER),),
    ),
    "A3": Row(
        "lazy tensor",
        (
            _try(
                "timing/lazy_negative.kernel",
                "negate",
                "LIBRARY CHECK WRONG_RESULT",
                "library results must be dense and materialised",
                calls=("aten::_neg_view",),
            ),
            _try(
                "timing/lazy_clone.kernel",
                "clamp_wide",
                "LIBRARY CHECK WRONG_RESULT INPUT_CHANGED CHEAT",
                "outputs may not alias inputs",
                calls=("aten::_lazy_clone",),
            ),
        ),
    ),
    "A4": Row(
        "patched timer or synchronisation",
        (_try("timing/patched_timer.kernel", "scalar", "COMPILE", PARSER),),
    ),
    "A5": Row(
        "native timer hook",
        (
            _try("timing/got_patch.cl", "scalar", "CHECK", SOURCE),
            _try("timing/clock_hook.cl", "scalar", "COMPILE", "linker: no function of the host"),
        ),
    ),
    "A6": Row(
        "overwriting event handles",
        (_try("timing/event_overwrite.kernel", "scalar", "OUT_OF_BOUNDS CRASH", REDZONES),),
    ),
    "A7": Row(
        "forged result channel",
        (
            _try("timing/result_channel.cl", "scalar", "CHECK", SOURCE),
            _try("timing/result_print.kernel", "scalar", "CHECK", SOURCE + "; " + CUBIN),
        ),
    ),
    "A8": Row(
        "warm L2",
        (
            _try("timing/copy.kernel", "copy", judges.is_cold, "the cache is flushed"),
            _try(
                "timing/copy.kernel",
                "copy",
                judges.accepted,
                "none: it is honest",
                variant="hot",
                options={"hot_cache": True},
            ),
        ),
    ),
    "A9": Row(
        "persisting L2 window",
        (
            _try("timing/wide_copy.cu", "copy", judges.accepted, "none: it is honest"),
            _try(
                "timing/persisting_l2.cu",
                "copy",
                judges.gains_nothing(("A9.wide_copy",), 0.9),
                "persisting lines are reset and the cache is flushed",
            ),
            _try(
                "timing/copy.kernel",
                "copy",
                judges.is_cold,
                "the cache is flushed; the plan reserves none",
            ),
        ),
    ),
    "A10": Row(
        "phase detection",
        (
            _try("timing/device_variable.cu", "scalar", "CHECK", CUBIN),
            _try("timing/ptx_variable.cu", "scalar", "CHECK", CUBIN),
            _try("timing/constant_table.cu", "scalar", "CHECK", CUBIN),
            _try(
                "timing/constant_bank.cu",
                "scalar",
                "WRONG_RESULT CRASH LAUNCH OUT_OF_BOUNDS CHECK",
                CONTENTS,
                options={"min_samples": 60},
            ),
            _try(
                "timing/toolkit_constant.cu",
                "scalar",
                "WRONG_RESULT CHECK",
                CONTENTS,
                options={"min_samples": 60},
            ),
            _try(
                "timing/phase.kernel",
                "row_sine",
                judges.refused_or_right("WRONG_RESULT NONDETERMINISTIC CHEAT"),
                CONTENTS + "; " + SCRUB,
                replace={"MEMORY": "LOCAL int memory[2]"},
                variant="shared",
                options={"min_samples": 60},
            ),
            _try(
                "timing/phase.kernel",
                "row_sine",
                judges.refused_or_right("WRONG_RESULT NONDETERMINISTIC CHEAT"),
                CONTENTS,
                replace={"MEMORY": "volatile int memory[2]"},
                variant="stack",
                options={"min_samples": 60},
            ),
        ),
    ),
    "A11": Row(
        "slow warm-up",
        (
            _try(
                "timing/slow_start.kernel",
                "row_sine",
                judges.has_samples(5),
                "a floor on the number of samples",
                options={"min_samples": 20},
            ),
        ),
    ),
    "A12": Row(
        "batch and skip",
        (
            _try(
                "timing/batch_and_skip.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", _SINE),
                CONTENTS + "; " + SCRUB,
            ),
        ),
    ),
    "A13": Row(
        "cache by pointer",
        (
            _try(
                "timing/pointer_replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", _SINE),
                "fresh contents at the same address, fresh addresses",
                replace={"CAPTURE": ""},
            ),
        ),
    ),
    "A14": Row(
        "cache by content",
        tuple(
            _try(
                "timing/replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT CHEAT OUT_OF_BOUNDS CRASH", _SINE),
                defence,
                replace=memory,
                variant=variant,
                in_ci=variant != "slack",
            )
            for variant, memory, defence in (
                ("shared", _LOCAL, SCRUB),
                ("stack", _STACK, SCRUB + "; inputs that were never seen"),
                ("scratch", _SCRATCH, POISON),
                ("slack", _SLACK, "nothing lies behind a buffer but redzones"),
                ("far", _FAR, "inputs that were never seen"),
            )
        ),
    ),
    "A15": Row(
        "replay from disk or another process",
        (
            _try("timing/disk_replay.cl", "scalar", "CHECK", SOURCE),
            _try("timing/disk_include.kernel", "scalar", "CHECK", SOURCE),
        ),
    ),
    "A16": Row(
        "stale graph",
        (
            _try(
                "timing/pointer_replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", _SINE),
                "the graph is replayed on fresh contents",
                replace={"CAPTURE": "//@ capture"},
            ),
        ),
    ),
    "A17": Row(
        "underflow of an aggregate",
        (
            _try(
                "timing/scalar.kernel",
                "scalar",
                judges.has_positive_times,
                "times and speedups are finite and above zero",
            ),
        ),
    ),
    "A18": Row(
        "sabotage of the baseline",
        (
            _try(
                "timing/busy_device.kernel",
                "row_sine",
                judges.has_baseline_of(TWINS, 2.5),
                "the baseline runs in another process, in turns",
            ),
        ),
    ),
    "A19": Row(
        "work outside the timed region",
        (
            _try(
                "timing/prepared_weights.kernel",
                "linear_gelu",
                judges.gains_nothing(("A0.prepared_weights",), 0.6),
                POISON,
                replace={"MARKED": "mark[row] == 0x5EED1234"},
            ),
        ),
    ),
    "A20": Row(
        "unmeasured tail",
        (
            _try("timing/device_launch.cu", "scalar", "COMPILE CHECK", CUBIN),
            _try("timing/device_runtime.cu", "scalar", "COMPILE CHECK", CUBIN),
            _try(
                "timing/early_dependents.cu",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", _SINE),
                "launches do not overlap; the end event waits for all",
            ),
            _try("timing/child_queue.cl", "scalar", "COMPILE", "OpenCL C 1.2 has no child queues"),
        ),
    ),
    "A21": Row(
        "best of many noises",
        (
            _try(
                "timing/many_variants.kernel",
                "row_sine",
                judges.gains_nothing(TWINS, 0.5),
                "the winner of a sweep is measured anew",
            ),
        ),
    ),
    "A22": Row(
        "names by token pasting",
        (_try("timing/token_paste.kernel", "scalar", "COMPILE CHECK", "poisoned words; " + CUBIN),),
    ),
    "B1": Row(
        "uninitialised memory holds the answer",
        (
            _try("provenance/nothing.kernel", "relu", "WRONG_RESULT", POISON),
            _try("provenance/first_row.kernel", "relu", "WRONG_RESULT", POISON),
            _try("provenance/old_scratch.kernel", "relu", "WRONG_RESULT", POISON),
            _try("provenance/unwritten_scratch.kernel", "relu", "CHECK", CHECKER),
        ),
    ),
    "B2": Row(
        "launch that fails silently",
        (
            _try("provenance/too_much_shared.cu", "relu", "CHECK", CHECKER),
            _try("provenance/too_many_threads.kernel", "relu", "CHECK", CHECKER),
            _try(
                "provenance/static_shared.kernel",
                "relu",
                "COMPILE LAUNCH OUT_OF_MEMORY WRONG_RESULT CRASH",
                "every launch is checked for its error",
            ),
            _try(
                "provenance/register_bound.cu",
                "relu",
                "COMPILE LAUNCH OUT_OF_MEMORY",
                "every launch is checked for its error",
            ),
        ),
    ),
    "B3": Row(
        "stealing the expected output",
        (
            _try(
                "provenance/search_memory.kernel",
                "relu",
                "WRONG_RESULT CRASH LAUNCH",
                "expected outputs never exist in the runner; " + REDZONES,
            ),
        ),
    ),
    "B4": Row(
        "poisoning the expected output",
        (_try("provenance/overwrite_neighbours.kernel", "relu", "OUT_OF_BOUNDS CRASH", REDZONES),),
    ),
    "B5": Row(
        "scanning the address space",
        (
            _try(
                "grader/far_write.kernel",
                "relu",
                _FORGED,
                "no expected data in the context; a broken context is reported",
            ),
            _try(
                "grader/far_write.kernel",
                "relu",
                _FORGED,
                "what guards the context is compared with what it must hold",
                replace={"= 0.0f;": "= 12345.0f;"},
                variant="value",
            ),
            _try(
                "grader/far_read.kernel",
                "relu",
                _FORGED,
                "no expected data in the context; a broken context is reported",
            ),
        ),
    ),
    "B6": Row(
        "calling the reference",
        (
            _try("provenance/call_reference.kernel", "relu", "CHECK PARSE", CHECKER),
            _try("provenance/include_problem.kernel", "relu", "CHECK", SOURCE),
        ),
    ),
    "B7": Row(
        "shrinking the problem",
        (_try("provenance/smaller.kernel", "relu", "CHECK", CHECKER),),
    ),
    "B8": Row(
        "predicting inputs",
        (
            _try(
                "provenance/public_answer.kernel",
                "scalar",
                "WRONG_RESULT",
                "hidden seeds",
                replace={"ANSWER": "PUBLIC_ANSWER"},
            ),
        ),
    ),
    "B9": Row(
        "replay across trials with fixed weights",
        (
            _try(
                "provenance/first_result.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", _SINE),
                "fresh contents; " + SCRUB,
            ),
            _try(
                "numerics/zeros.kernel",
                "constant",
                judges.problem_is_flawed,
                "problems whose output ignores the input are recognised",
            ),
        ),
    ),
    "B10": Row(
        "changing the input",
        (
            _try("provenance/zero_input.kernel", "relu", "INPUT_CHANGED", CHECKSUMS),
            _try("provenance/write_input.kernel", "relu", "CHECK", CHECKER),
            _try("provenance/zero_weight.kernel", "linear_gelu", "INPUT_CHANGED", CHECKSUMS),
        ),
    ),
    "B11": Row(
        "aliasing the input",
        (
            *(
                _try(
                    "provenance/alias_input.kernel",
                    "clamp_wide",
                    "LIBRARY CHECK CHEAT INPUT_CHANGED WRONG_RESULT",
                    "outputs may not alias inputs",
                    replace={"OPERATOR": operator},
                    variant=operator,
                    calls=(f"aten::{operator}",),
                )
                for operator in ("alias", "detach", "contiguous")
            ),
            _try("provenance/output_is_input.kernel", "relu", "CHECK", CHECKER),
            _try("provenance/same_name.kernel", "relu", "PARSE", PARSER),
        ),
    ),
    "B12": Row(
        "aliasing an earlier output",
        (
            _try(
                "provenance/once.kernel",
                "relu",
                judges.writes_every_time,
                POISON,
                options={"min_samples": 10},
            ),
        ),
    ),
    "B13": Row(
        "random state",
        (
            _try("provenance/no_dropout.kernel", "dropout", "WRONG_RESULT", ORACLE),
            _try("provenance/reseed.kernel", "dropout", "CHECK PARSE", CHECKER),
        ),
    ),
    "C1": Row(
        "zeros under the tolerance",
        tuple(
            _try(
                "numerics/fill_softmax.kernel",
                "wide_softmax",
                "WRONG_RESULT",
                "bound that scales with the output",
                replace={"VALUE": value},
                variant=variant,
            )
            for variant, value in (("zeros", "0.0f"), ("mean", "1.0f / 65536"))
        ),
    ),
    "C2": Row(
        "statistically constant output",
        (_try("numerics/constant_loss.kernel", "square_loss", "WRONG_RESULT", DISTRIBUTIONS),),
    ),
    "C3": Row(
        "closed form or sample",
        (
            _try("numerics/sampled_loss.kernel", "square_loss", "WRONG_RESULT", ORACLE),
            _try("numerics/moment_loss.kernel", "square_loss", "WRONG_RESULT", ORACLE),
            _try(
                "numerics/sampled_loss.kernel",
                "square_loss",
                "WRONG_RESULT",
                "heavy-tailed inputs",
                variant="half",
                precision="half",
            ),
        ),
    ),
    "C4": Row(
        "early stop by a property of the data",
        (_try("numerics/early_stop.kernel", "cumulative_product", "WRONG_RESULT", DISTRIBUTIONS),),
    ),
    "C5": Row(
        "assumed sign or range",
        (
            _try("numerics/identity.kernel", "relu", "WRONG_RESULT", DISTRIBUTIONS),
            _try("numerics/saturate.kernel", "relu", "WRONG_RESULT", DISTRIBUTIONS),
            _try("numerics/known_maximum.kernel", "wide_softmax", "WRONG_RESULT", DISTRIBUTIONS),
        ),
    ),
    "C6": Row(
        "unstable formula",
        (
            _try(
                _BATCH_NORM,
                "batch_norm",
                "WRONG_RESULT",
                DISTRIBUTIONS,
                replace={"CHEAT": ""},
                variant="variance",
            ),
            _try(
                "numerics/unstable_softmax.kernel",
                "wide_softmax",
                "WRONG_RESULT",
                DISTRIBUTIONS,
            ),
        ),
    ),
    "C7": Row(
        "precision downgrade",
        (
            _try(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "p = FLOAT(BITS(p) & 0xffff0000); q = FLOAT(BITS(q) & 0xffff0000)",
                    "CHEAT": "",
                },
                variant="bf16",
            ),
            _try(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "p = FLOAT(BITS(p) & 0xffffe000); q = FLOAT(BITS(q) & 0xffffe000)",
                    "CHEAT": "",
                },
                variant="tf32",
            ),
            _try("numerics/linear_half.cu", "linear_gelu", "WRONG_RESULT", "fp64 oracle"),
        ),
    ),
    "C8": Row(
        "approximations",
        (
            _try(
                _LINEAR,
                "linear_gelu",
                "WRONG_RESULT",
                "fp64 oracle",
                replace={
                    "OPERANDS": "",
                    "CHEAT": "result = 0.5f * sum * (1.0f + tanh(0.79788456f * (sum + 0.044715f"
                    " * sum * sum * sum)))",
                },
                variant="tanh",
            ),
        ),
    ),
    "C9": Row(
        "partial work",
        tuple(
            _try(
                "numerics/partial.kernel",
                "relu",
                "WRONG_RESULT",
                POISON,
                replace={"WHERE": where},
                variant=variant,
            )
            for variant, where in (
                ("tail", "i > 16300"),
                ("row", "i / 256 == 17"),
                ("last", "i == 16383"),
                ("tile", "(i & 31) == 31"),
            )
        ),
    ),
    "C10": Row(
        "ghost branch for other shapes",
        (_try("numerics/other_shape.kernel", "relu", "CHECK", CHECKER),),
    ),
    "C11": Row(
        "assumed default parameters",
        (
            _try(
                _BATCH_NORM,
                "batch_norm",
                "WRONG_RESULT",
                "parameters at identity are randomized",
                replace={
                    "CHEAT": "variance = 0.0f; for (int r = 0; r < 256; ++r) variance +="
                    " (x[r * 32 + c] - mean) * (x[r * 32 + c] - mean) / 256;"
                    " scale = 1.0f; shift = 0.0f"
                },
                variant="affine",
                randomize=True,
            ),
        ),
    ),
    "C12": Row(
        "the main operation removed by algebra",
        (
            _try(
                "numerics/zeros.kernel",
                "constant",
                judges.problem_is_flawed,
                "degenerate problems are recognised from behaviour",
                variant="degenerate",
            ),
        ),
    ),
    "C13": Row(
        "wrong axis",
        (
            _try(
                "numerics/wrong_axis.kernel",
                "hinge_loss",
                "WRONG_RESULT",
                DISTRIBUTIONS,
                replace={"INDEX": "(i / 512)"},
            ),
        ),
    ),
    "C14": Row(
        "race that mostly wins",
        (
            _try(
                "numerics/no_barrier.kernel",
                "relu",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
            _try(
                "numerics/lost_update.kernel",
                "square_loss",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
            _try(
                "numerics/cross_block.kernel",
                "relu",
                "WRONG_RESULT NONDETERMINISTIC",
                "runs with another poison and under load must agree",
            ),
        ),
    ),
    "C15": Row(
        "reads out of bounds",
        (
            _try("numerics/beyond_the_end.kernel", "relu", "WRONG_RESULT", REDZONES),
            _try("numerics/before_the_start.kernel", "relu", "WRONG_RESULT", REDZONES),
        ),
    ),
    "C16": Row(
        "NaN",
        tuple(
            _try(
                "numerics/fill_relu.kernel",
                "relu",
                "WRONG_RESULT",
                "NaN and infinities only where the reference has them",
                replace={"VALUE": value},
                variant=variant,
            )
            for variant, value in (
                ("nan", "x[GLOBAL_ID] * 0.0f / 0.0f"),
                ("inf", "1.0f / 0.0f"),
            )
        ),
    ),
    "C17": Row(
        "element type, strides, shape",
        tuple(
            _try(
                "numerics/half_output.kernel",
                "relu",
                "CHECK",
                CHECKER,
                replace={"TYPE": kind, "ELEMENT": element},
                variant=variant,
            )
            for variant, kind, element in (
                ("half", "f16[64,256]", "ushort"),
                ("row", "f32[1,256]", "float"),
                ("flat", "f32[16384]", "float"),
                ("double", "f64[64,256]", "double"),
            )
        ),
    ),
    "C18": Row(
        "averaged tolerance",
        tuple(
            _try(
                "numerics/fill_relu.kernel",
                "relu",
                "WRONG_RESULT",
                "every element is held to the bound",
                replace={"VALUE": f"fmax(x[GLOBAL_ID], 0.0f) + ({where} ? 0.05f : 0.0f)"},
                variant=variant,
            )
            for variant, where in (
                ("element", "GLOBAL_ID == 12345"),
                ("slice", "(GLOBAL_ID % 256) < 4"),
            )
        ),
    ),
    "C19": Row(
        "another mode",
        (
            _try("numerics/inference_mode.kernel", "batch_norm", "WRONG_RESULT", ORACLE),
            _try(
                "provenance/no_dropout.kernel",
                "dropout",
                "WRONG_RESULT",
                "dropout is live",
                variant="mode",
            ),
        ),
    ),
    "D1": Row(
        "patching the comparison",
        (
            _try("grader/patch_comparison.kernel", "relu", "COMPILE", PARSER),
            _try("grader/python_only.txt", "relu", "PARSE", PARSER),
        ),
    ),
    "D2": Row(
        "editing the grader's files",
        (
            _try("grader/write_file.cl", "scalar", "COMPILE CHECK", "poisoned words; sandbox"),
            _try("grader/read_file_call.kernel", "scalar", "CHECK", CHECKER),
        ),
    ),
    "D3": Row(
        "resetting an error counter",
        (
            _try("grader/wide_clear.kernel", "relu", "OUT_OF_BOUNDS CRASH", REDZONES),
            _try("grader/far_write.kernel", "relu", _FORGED, "own process"),
        ),
    ),
    "D4": Row(
        "forging memory",
        (
            _try("grader/self_memory.cl", "scalar", "CHECK", SOURCE),
            _try("grader/system_call.cl", "scalar", "COMPILE", "linker: no function of the host"),
            _try("grader/system_call.cu", "scalar", "COMPILE CHECK", CUBIN),
            _try(
                "grader/more_parameters.kernel",
                "scalar",
                "CHECK LAUNCH COMPILE",
                CUBIN + "; the device checks arguments",
            ),
        ),
    ),
    "D5": Row(
        "code and files at build time",
        (
            *(
                _try(
                    "grader/host_file.kernel",
                    "scalar",
                    "CHECK PARSE",
                    SOURCE,
                    replace={"DIRECTIVE": directive},
                    variant=variant,
                )
                for variant, directive in (
                    ("absolute", '#include "/etc/passwd"'),
                    ("above", '#include "../../../etc/passwd"'),
                    ("splice", '#inc\\\nlude "/etc/passwd"'),
                    ("comment", '/* \n */ # /* \n */ include </etc/passwd>'),
                    ("macro", '#define F "/etc/passwd"\n#include F'),
                    ("embed", 'const char data[] = {\n#embed "/etc/passwd"\n};'),
                    ("digraph", '%:include "/etc/passwd"'),
                    ("probe", '#if __has_include("/root/.ssh/id_rsa")\n#endif'),
                    ("hidden", '#define S "/*"\n#include "/etc/passwd"\n#define T "*/"'),
                )
            ),
            _try("grader/incbin.cl", "scalar", "CHECK", SOURCE),
            _try("grader/load_time.cl", "scalar", "CHECK", SOURCE),
        ),
    ),
    "D6": Row(
        "denial of service",
        (
            _try(
                "grader/endless.kernel",
                "scalar",
                "TIMEOUT",
                DEADLINES,
                options={"verify_timeout": "2s"},
            ),
            _try("grader/trap.kernel", "scalar", "CRASH LAUNCH OUT_OF_BOUNDS", "own process"),
            _try("grader/flood.kernel", "scalar", "CHECK", SOURCE + "; " + CUBIN),
            _try("grader/allocate.cu", "scalar", "CHECK", CUBIN),
            _try(
                "grader/macro_bomb.kernel",
                "scalar",
                _TIMES,
                DEADLINES + "; memory limits",
                options={"build_timeout": "3s"},
            ),
            _try(
                "grader/template_bomb.cu",
                "scalar",
                _TIMES,
                DEADLINES + "; memory limits",
                options={"build_timeout": "3s"},
            ),
            _try("grader/all_memory.kernel", "scalar", "CHECK", CHECKER),
            _try("grader/overflowing_memory.kernel", "scalar", "CHECK PARSE", CHECKER),
            *(
                _try(
                    "grader/overflowing_grid.kernel",
                    "scalar",
                    "CHECK PARSE",
                    CHECKER,
                    replace={"GRID": grid},
                    variant=variant,
                )
                for variant, grid in (
                    ("overflow", "9223372036854775807*2"),
                    ("negative", "0-1"),
                    ("zero", "1/2"),
                    ("division", "1/(1-1)"),
                    ("wide", "4294967297"),
                    ("deep", "(1,65536)"),
                )
            ),
            _try(
                "grader/deep_expression.kernel",
                "scalar",
                "PARSE",
                PARSER,
                replace={"NESTED": "(" * 4000 + "1" + ")" * 4000},
            ),
            _try(
                "grader/huge_sweep.kernel",
                "scalar",
                "PARSE",
                PARSER,
                replace={"VALUES": " ".join(str(i) for i in range(100000))},
            ),
        ),
    ),
    "D7": Row(
        "state left for the next one",
        (
            _try(
                "timing/scalar.kernel",
                "scalar",
                judges.accepted,
                "a spare runner with a context of its own, canary",
                variant="after_the_others",
            ),
        ),
    ),
    "D8": Row(
        "installation or network",
        (
            _try("grader/network.cl", "scalar", "CHECK", SOURCE + "; sandbox"),
            _try("grader/network.cu", "scalar", "COMPILE CHECK", "the toolkit has no sockets"),
            _try("grader/install.kernel", "scalar", "PARSE", PARSER),
        ),
    ),
    "D9": Row(
        "obfuscation",
        tuple(
            _try(
                "grader/hidden_line.kernel",
                "scalar",
                "PARSE CHECK",
                SOURCE,
                replace={"HIDDEN": hidden},
                variant=variant,
            )
            for variant, hidden in (
                ("return", "// harmless\rint hidden;"),
                ("formfeed", "int a;\f"),
                ("bidi", "// \u202e hidden \u2066"),
                ("trigraph", "// harmless ?\x3f/\nint hidden;"),
                ("splice", "// harmless \\ \nint hidden;"),
                ("nul", "// \0"),
            )
        ),
    ),
    "D10": Row(
        "persuading a judge",
        (_try("grader/persuade.kernel", "relu", "WRONG_RESULT", "no verdict reads the text"),),
    ),
    "D11": Row(
        "duplicates",
        tuple(
            _try(
                "timing/row_sine.kernel",
                "row_sine",
                judges.gains_nothing(("A0.row_sine",), 0.3),
                "equal programs have equal fingerprints and times",
                variant=f"copy{number}",
                in_ci=number == 1,
            )
            for number in (1, 2, 3)
        ),
    ),
    "E1": Row(
        "library wrapper",
        (
            _try("offtask/library.kernel", "linear_gelu", "CHECK", "list of allowed calls"),
            _try(
                "offtask/library.kernel",
                "linear_gelu",
                "CHECK",
                "list of allowed calls",
                variant="half_allowed",
                calls=("aten::linear",),
            ),
        ),
    ),
    "E2": Row(
        "the compiled reference as the answer",
        (
            _try(
                "offtask/compiled_reference.kernel",
                "relu",
                "CHECK PARSE",
                "list of allowed calls",
                calls=("aten::relu",),
            ),
        ),
    ),
    "E3": Row(
        "fallback to the reference",
        (
            _try("offtask/fallback.kernel", "relu", "PARSE", PARSER, calls=("aten::relu",)),
            _try("offtask/fallback_call.kernel", "relu", "CHECK", "list of allowed calls"),
        ),
    ),
    "E4": Row(
        "inherit and pass",
        (_try("offtask/inherit.txt", "relu", "PARSE", PARSER),),
    ),
    "E5": Row(
        "decoy kernel",
        (
            _try(
                "offtask/unlaunched.kernel",
                "relu",
                "CHECK",
                CHECKER,
                calls=("aten::relu",),
            ),
            _try("offtask/decoy.kernel", "relu", "CHECK", "list of allowed calls"),
            _try(
                "offtask/decoy.kernel",
                "relu",
                judges.shows_step("relu"),
                "the profile names every step with its share",
                variant="allowed",
                calls=("aten::relu",),
                options={"omit_profile": False},
            ),
        ),
    ),
    "E6": Row(
        "only the trivial part",
        (
            _try("offtask/trivial_part.kernel", "linear_gelu", "CHECK", "list of allowed calls"),
            _try(
                "offtask/trivial_part.kernel",
                "linear_gelu",
                judges.shows_step("linear"),
                "the profile names every step with its share",
                variant="allowed",
                calls=("aten::linear",),
                options={"omit_profile": False},
            ),
        ),
    ),
    "E7": Row(
        "weak reference",
        (
            _try(
                "timing/scalar.kernel",
                "scalar",
                judges.has_comparisons(2),
                "several baselines are compared with",
                options={"baselines": ["BASELINE_EAGER", "BASELINE_EAGER_TF32"]},
            ),
        ),
    ),
}
