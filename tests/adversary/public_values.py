# SPDX-License-Identifier: Apache-2.0
"""What a program may hold of the public seed: words of its text that stand for values.

`PUBLIC_INPUT_1` is the second input, `PUBLIC_STATE_table_weight` the parameter or
buffer `table.weight`, `PUBLIC_FIRST` the first element of the first input and
`PUBLIC_OUTPUT` the output, all as elements with commas between. Values are those of a
CPU, which the other devices share where the problem draws on the host.
"""

import functools
import re
import subprocess

_WORD = re.compile(r"\bPUBLIC_(INPUT_\d+|STATE_\w+|FIRST|OUTPUT)\b")

# Gets the problem's path and prints a line for each word that follows.
_PRINT = """
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("problem", sys.argv[1])
problem = importlib.util.module_from_spec(spec)
spec.loader.exec_module(problem)
torch.manual_seed(0)
arguments = problem.get_init_inputs()
torch.manual_seed(0)
model = problem.Model(*arguments)
torch.manual_seed(0)
inputs = problem.get_inputs()
states = {name.replace(".", "_"): value for name, value in model.state_dict().items()}
for word in sys.argv[2:]:
    kind, _, name = word.partition("_")
    if kind == "INPUT":
        value = inputs[int(name)]
    elif kind == "STATE":
        value = states[name]
    else:
        value = inputs[0].reshape(-1)[:1] if kind == "FIRST" else model(*inputs).detach()
    print(", ".join(map(repr, value.reshape(-1).tolist())))
"""


def filled(text, problem, python):
    """`text` with its words replaced; `python` is the interpreter that has PyTorch."""
    words = tuple(sorted(set(_WORD.findall(text))))
    if not words:
        return text
    values = _values(str(problem), words, python)
    return _WORD.sub(lambda found: values[found[1]], text)


@functools.lru_cache(maxsize=None)
def _values(problem, words, python):
    command = [python, "-c", _PRINT, problem, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(zip(words, done.stdout.splitlines()))
