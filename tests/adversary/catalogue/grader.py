# SPDX-License-Identifier: Apache-2.0
"""D: programs that attack who judges them."""

import judges

from .attempt import (
    CHECKER,
    CUBIN,
    DEADLINES,
    PARSER,
    REDZONES,
    SOURCE,
    Row,
    attempt,
    forged,
)

_TIMES = "TIMEOUT CRASH COMPILE OUT_OF_MEMORY"

ROWS = {
    "D1": Row(
        "patching the comparison",
        (
            attempt("grader/patch_comparison.kernel", "relu", "COMPILE", PARSER),
            attempt("grader/python_only.txt", "relu", "PARSE", PARSER),
        ),
    ),
    "D2": Row(
        "editing the grader's files",
        (
            attempt("grader/write_file.cl", "scalar", "COMPILE CHECK", "poisoned words; sandbox"),
            attempt("grader/read_file_call.kernel", "scalar", "CHECK", CHECKER),
        ),
    ),
    "D3": Row(
        "resetting an error counter",
        (
            attempt("grader/wide_clear.kernel", "relu", "OUT_OF_BOUNDS CRASH", REDZONES),
            *forged("grader/far_write.kernel", "own process"),
        ),
    ),
    "D4": Row(
        "forging memory",
        (
            attempt("grader/self_memory.cl", "scalar", "CHECK", SOURCE),
            attempt("grader/system_call.cl", "scalar", "COMPILE", "linker: no function of the host"),
            attempt("grader/system_call.cu", "scalar", "COMPILE CHECK", CUBIN),
            attempt(
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
                attempt(
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
            attempt("grader/incbin.cl", "scalar", "CHECK", SOURCE),
            attempt("grader/load_time.cl", "scalar", "CHECK", SOURCE),
        ),
    ),
    "D6": Row(
        "denial of service",
        (
            attempt(
                "grader/endless.kernel",
                "scalar",
                "TIMEOUT",
                DEADLINES,
                options={"verify_timeout": "2s"},
            ),
            attempt("grader/trap.kernel", "scalar", "CRASH LAUNCH OUT_OF_BOUNDS", "own process"),
            attempt("grader/flood.kernel", "scalar", "CHECK", SOURCE + "; " + CUBIN),
            attempt("grader/allocate.cu", "scalar", "CHECK", CUBIN),
            attempt(
                "grader/macro_bomb.kernel",
                "scalar",
                _TIMES,
                DEADLINES + "; memory limits",
                options={"build_timeout": "3s"},
            ),
            attempt(
                "grader/template_bomb.cu",
                "scalar",
                _TIMES,
                DEADLINES + "; memory limits",
                options={"build_timeout": "3s"},
            ),
            attempt("grader/all_memory.kernel", "scalar", "CHECK", CHECKER),
            attempt("grader/overflowing_memory.kernel", "scalar", "CHECK PARSE", CHECKER),
            *(
                attempt(
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
            attempt(
                "grader/deep_expression.kernel",
                "scalar",
                "PARSE",
                PARSER,
                replace={"NESTED": "(" * 4000 + "1" + ")" * 4000},
            ),
            attempt(
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
            attempt(
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
            attempt("grader/network.cl", "scalar", "CHECK", SOURCE + "; sandbox"),
            attempt("grader/network.cu", "scalar", "COMPILE CHECK", "the toolkit has no sockets"),
            attempt("grader/install.kernel", "scalar", "PARSE", PARSER),
        ),
    ),
    "D9": Row(
        "obfuscation",
        tuple(
            attempt(
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
        (attempt("grader/persuade.kernel", "relu", "WRONG_RESULT", "no verdict reads the text"),),
    ),
    "D11": Row(
        "duplicates",
        tuple(
            attempt(
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
}
