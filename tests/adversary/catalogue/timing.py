# SPDX-License-Identifier: Apache-2.0
"""A: programs that cheat the clock, and the honest ones that they are compared with."""

import judges

from .attempt import (
    CONTENTS,
    CUBIN,
    PARSER,
    POISON,
    REDZONES,
    SCRUB,
    SINE,
    SOURCE,
    TWINS,
    Row,
    attempt,
)

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

ROWS = {
    "A0": Row(
        "honest twins, which the others are compared with",
        (
            attempt("timing/row_sine.kernel", "row_sine", judges.accepted, "none: it is honest"),
            attempt(
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
        (attempt("timing/side_stream.kernel", "scalar", "PARSE", PARSER),),
    ),
    "A2": Row(
        "thread that works later",
        (attempt("timing/later.kernel", "scalar", "PARSE", PARSER),),
    ),
    "A3": Row(
        "lazy tensor",
        (
            attempt(
                "timing/lazy_negative.kernel",
                "negate",
                "LIBRARY CHECK WRONG_RESULT",
                "library results must be dense and materialised",
                calls=("aten::_neg_view",),
            ),
            attempt(
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
        (attempt("timing/patched_timer.kernel", "scalar", "COMPILE", PARSER),),
    ),
    "A5": Row(
        "native timer hook",
        (
            attempt("timing/got_patch.cl", "scalar", "CHECK", SOURCE),
            attempt("timing/clock_hook.cl", "scalar", "COMPILE", "linker: no function of the host"),
        ),
    ),
    "A6": Row(
        "overwriting event handles",
        (attempt("timing/event_overwrite.kernel", "scalar", "OUT_OF_BOUNDS CRASH", REDZONES),),
    ),
    "A7": Row(
        "forged result channel",
        (
            attempt("timing/result_channel.cl", "scalar", "CHECK", SOURCE),
            attempt("timing/result_print.kernel", "scalar", "CHECK", SOURCE + "; " + CUBIN),
        ),
    ),
    "A8": Row(
        "warm L2",
        (
            attempt("timing/copy.kernel", "copy", judges.is_cold, "the cache is flushed"),
            attempt(
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
            attempt("timing/wide_copy.cu", "copy", judges.accepted, "none: it is honest"),
            attempt(
                "timing/persisting_l2.cu",
                "copy",
                judges.gains_nothing(("A9.wide_copy",), 0.9),
                "persisting lines are reset and the cache is flushed",
            ),
            attempt(
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
            attempt("timing/device_variable.cu", "scalar", "CHECK", CUBIN),
            attempt("timing/ptx_variable.cu", "scalar", "CHECK", CUBIN),
            attempt("timing/constant_table.cu", "scalar", "CHECK", CUBIN),
            attempt(
                "timing/constant_bank.cu",
                "scalar",
                "WRONG_RESULT CRASH LAUNCH OUT_OF_BOUNDS CHECK",
                CONTENTS,
                options={"min_samples": 60},
            ),
            attempt(
                "timing/toolkit_constant.cu",
                "scalar",
                "WRONG_RESULT CHECK",
                CONTENTS,
                options={"min_samples": 60},
            ),
            attempt(
                "timing/phase.kernel",
                "row_sine",
                judges.refused_or_right("WRONG_RESULT NONDETERMINISTIC CHEAT"),
                CONTENTS + "; " + SCRUB,
                replace={"MEMORY": "LOCAL int memory[2]"},
                variant="shared",
                options={"min_samples": 60},
            ),
            attempt(
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
            attempt(
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
            attempt(
                "timing/batch_and_skip.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                CONTENTS + "; " + SCRUB,
            ),
        ),
    ),
    "A13": Row(
        "cache by pointer",
        (
            attempt(
                "timing/pointer_replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                "fresh contents at the same address, fresh addresses",
                replace={"CAPTURE": ""},
            ),
        ),
    ),
    "A14": Row(
        "cache by content",
        tuple(
            attempt(
                "timing/replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT CHEAT OUT_OF_BOUNDS CRASH", SINE),
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
            attempt("timing/disk_replay.cl", "scalar", "CHECK", SOURCE),
            attempt("timing/disk_include.kernel", "scalar", "CHECK", SOURCE),
        ),
    ),
    "A16": Row(
        "stale graph",
        (
            attempt(
                "timing/pointer_replay.kernel",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                "the graph is replayed on fresh contents",
                replace={"CAPTURE": "//@ capture"},
            ),
        ),
    ),
    "A17": Row(
        "underflow of an aggregate",
        (
            attempt(
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
            attempt(
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
            attempt(
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
            attempt("timing/device_launch.cu", "scalar", "COMPILE CHECK", CUBIN),
            attempt("timing/device_runtime.cu", "scalar", "COMPILE CHECK", CUBIN),
            attempt(
                "timing/early_dependents.cu",
                "row_sine",
                judges.refused_or_gains_nothing("WRONG_RESULT NONDETERMINISTIC CHEAT", SINE),
                "launches do not overlap; the end event waits for all",
            ),
            attempt("timing/child_queue.cl", "scalar", "COMPILE", "OpenCL C 1.2 has no child queues"),
        ),
    ),
    "A21": Row(
        "best of many noises",
        (
            attempt(
                "timing/many_variants.kernel",
                "row_sine",
                judges.gains_nothing(TWINS, 0.5),
                "the winner of a sweep is measured anew",
            ),
        ),
    ),
    "A22": Row(
        "names by token pasting",
        (attempt("timing/token_paste.kernel", "scalar", "COMPILE CHECK", "poisoned words; " + CUBIN),),
    ),
}
