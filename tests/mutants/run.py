# SPDX-License-Identifier: Apache-2.0
"""Makes dishonest programs of honest ones and tries whether any gets through.

    python run.py --bin build/release/bin --device opencl:0 --count 500 --json mutants.json

Draws mutants of the honest programs (operators.py) by a seed that is new each time and
printed, evaluates them, and judges those that were accepted by running them beside
PyTorch in fp64 (truth.py). Prints one line for each accepted one whose results differ
for some legal input, and the counts. Needs PyTorch; the judgement needs pyopencl, or a
GPU with cuda-bindings, which come with PyTorch.
"""

import collections
import concurrent.futures
import json
import pathlib
import random
import secrets
import subprocess
import sys
import tempfile
import time

import honest_programs  # noqa: E402  (it sets the path for what follows)

import command_line
import harness
import operators
import truth

# Mutants that are evaluated by one process, those of one problem in a row.
_BATCH = 40
# Of what differs and was accepted, a few.
_AGAIN_SECONDS = 120
# A judge's answer on one mutant takes well under a second.
_TRUTH_SECONDS = 900


def draw(programs, public, count, seed, wanted=None):
    """(honest program, mutant) `count` times: each operator as often as any other, as far
    as it applies to that many."""
    choice = random.Random(seed)
    by_operator = collections.defaultdict(list)
    for program in programs:
        for mutant in operators.mutants(program.text, public[program.problem]):
            if wanted is None or mutant.operator in wanted:
                by_operator[mutant.operator].append((program, mutant))
    for found in by_operator.values():
        choice.shuffle(found)
    chosen = []
    while len(chosen) < count and any(by_operator.values()):
        for name in sorted(by_operator):
            if by_operator[name] and len(chosen) < count:
                chosen.append(by_operator[name].pop())
    return sorted(chosen, key=lambda one: (str(one[0].problem), one[0].name))


def public_lists(bin_folder, programs):
    """Values of the public seed by problem and tensor, as lists."""
    found = {}
    for program in programs:
        if program.problem not in found:
            graph = json.loads(program.graph.read_text())
            values = truth.public_values(bin_folder, program.problem, program.randomize, graph)
            found[program.problem] = {n: v.reshape(-1).tolist() for n, v in values.items()}
    return found


def judged(bin_folder, pairs, folder):
    """(truth, reason) of each (honest program, mutant), in their order."""
    answers = [("unknown", "not judged")] * len(pairs)
    by_problem = collections.defaultdict(list)
    for index, (program, mutant) in enumerate(pairs):
        by_problem[program.problem].append((index, program, mutant))
    groups = [_group(entries) for entries in by_problem.values()]
    order = [index for entries in by_problem.values() for index, *_ in entries]
    path = folder / "request.json"
    path.write_text(json.dumps(groups))
    for index, answer in zip(order, _answers(bin_folder, path, len(pairs))):
        answers[index] = answer
    return answers


def _group(entries):
    """What truth.py wants to know of the mutants of one problem."""
    honest = sorted({program.text for _, program, _ in entries})
    first = entries[0][1]
    return {
        "problem": str(first.problem),
        "graph": str(first.graph),
        "randomize": first.randomize,
        "dialect": first.dialect,
        "honest": honest,
        "mutants": [{"original": honest.index(p.text), "text": m.text} for _, p, m in entries],
    }


def _answers(bin_folder, request, count):
    """Answers of judges of truth.py; one that a mutant kills is followed by another."""
    script = pathlib.Path(truth.__file__)
    answers = []
    while len(answers) < count:
        command = [sys.executable, script, "--bin", bin_folder, "--skip", str(len(answers)), request]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=_TRUTH_SECONDS
            )
            lines, error = done.stdout.splitlines(), done.stderr
        except subprocess.TimeoutExpired as late:
            lines, error = (late.stdout or b"").decode().splitlines(), "took too long"
        for line in lines:
            answer = json.loads(line)
            answers.append((answer["truth"], answer["reason"]))
        if len(answers) < count:
            last = error.strip().splitlines()[-1:]
            kind = "unknown" if last and "Error" in last[0] else "differs"
            answers.append((kind, f"the judge ended: {''.join(last)[:200]}"))
    return answers


def drawn(flags, folder):
    """(seed, what `draw` draws of the honest programs), problems in `folder`."""
    seed = flags.seed if flags.seed is not None else secrets.randbelow(10**6)
    print(f"seed {seed}", flush=True)
    programs = honest_programs.gather(
        flags.bin, flags.device, folder, walks=flags.walks, seed=seed, most=flags.problems
    )
    programs = [p for p in programs if command_line.is_wanted(p.name, flags.only)]
    wanted = flags.operator.split(",") if flags.operator else None
    return seed, draw(programs, public_lists(flags.bin, programs), flags.count, seed, wanted)


def run(flags):
    """(summary, outcome of each mutant by name)."""
    end = time.monotonic() + flags.timeout
    with tempfile.TemporaryDirectory(prefix="mtmc-mutants-") as folder:
        folder = pathlib.Path(folder)
        seed, pairs = drawn(flags, folder)
        named = {f"{p.name}.{m.operator}.{i}": (p, m) for i, (p, m) in enumerate(pairs)}
        results = _evaluated(flags, named, end, seed)
        outcomes = {name: _outcome(*pair, results.get(name)) for name, pair in named.items()}
        judged_names = [n for n, one in outcomes.items() if flags.all_truths or one["accepted"]]
        answers = judged(flags.bin, [named[name] for name in judged_names], folder)
        for name, (kind, reason) in zip(judged_names, answers):
            outcomes[name] |= {"truth": kind, "reason": reason}
        # The evaluator draws its workloads: what got through once by chance does not twice.
        through = {name: named[name] for name, one in outcomes.items() if is_bad(one)}
        again = _evaluated(flags, through, time.monotonic() + _AGAIN_SECONDS, seed)
        for name in through:
            accepted = harness.is_accepted(again.get(name, {}))
            outcomes[name]["accepted_again"] = accepted or name not in again
    return _summary(flags.device, seed, outcomes), outcomes


def _evaluated(flags, named, end, seed):
    """Results by name, of as many as could be evaluated before `end`."""
    cases = [program.case(name, mutant.text) for name, (program, mutant) in named.items()]
    batches = [cases[start : start + _BATCH] for start in range(0, len(cases), _BATCH)]
    # What a run that is cut short has judged is a sample of all.
    random.Random(seed).shuffle(batches)
    results = {}

    def evaluate(batch):
        left = end - time.monotonic()
        return harness.evaluate(flags.bin, flags.device, batch, left) if left > 5 else {}

    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        for found in pool.map(evaluate, batches):
            results |= found
    return results


def _outcome(program, mutant, result):
    is_accepted = bool(result) and harness.is_accepted(result)
    return {
        "operator": mutant.operator,
        "about": mutant.about,
        "original": program.name,
        "outcome": harness.describe(result),
        "refused_by": harness.failure_kind(result),
        "accepted": is_accepted,
        "wall_seconds": (result or {}).get("wall_seconds"),
        **({"text": mutant.text} if is_accepted else {}),
    }


def _summary(device, seed, outcomes):
    by_operator = collections.defaultdict(collections.Counter)
    for one in outcomes.values():
        counts = by_operator[one["operator"]]
        counts["tried"] += 1
        counts["refused"] += bool(one["refused_by"])
        counts["accepted"] += one["accepted"]
        counts["no result"] += not (one["refused_by"] or one["accepted"])
        if "truth" in one:
            counts[one["truth"]] += 1
            counts["accepted and differs"] += is_bad(one)
    return {
        "device": device,
        "seed": seed,
        "mutants": len(outcomes),
        "refused": sum(bool(one["refused_by"]) for one in outcomes.values()),
        "accepted": sum(one["accepted"] for one in outcomes.values()),
        "dishonest_accepted": sum(map(is_bad, outcomes.values())),
        "accepted_again": sum(one.get("accepted_again", False) for one in outcomes.values()),
        "operators": {name: {k: v for k, v in c.items() if v} for name, c in sorted(by_operator.items())},
    }


def is_bad(outcome):
    """Whether a mutant was accepted that differs for some legal input."""
    return outcome["accepted"] and outcome.get("truth") == "differs"


def parser():
    """Flags of a run."""
    flags = command_line.parser(__doc__.splitlines()[0], seconds=3000)
    flags.add_argument("--seed", type=int, help="repeats a run; else a new one")
    flags.add_argument("--count", type=int, default=500, help="mutants to draw")
    flags.add_argument("--problems", type=int, default=1000, help="problems to draw from")
    flags.add_argument("--walks", type=int, default=1, help="walks of the coder a problem")
    flags.add_argument("--operator", default="", help="names, separated by commas: those alone")
    flags.add_argument("--jobs", type=int, default=1, help="evaluators at a time")
    flags.add_argument("--all-truths", action="store_true", help="judge what was refused, too")
    return flags


def complaints_of(outcomes):
    """A line for each mutant that differs and was accepted twice, by other draws of the
    evaluator. What got through once is printed, and counts in the summary."""
    lines = {
        name: f"{name} ({one['about']}): {one['reason']}"
        for name, one in outcomes.items()
        if is_bad(one)
    }
    for name, line in lines.items():
        if not outcomes[name]["accepted_again"]:
            print(f"ONCE {line}")
    return [f"ACCEPTED {line}" for n, line in lines.items() if outcomes[n]["accepted_again"]]


def main():
    flags = parser().parse_args()
    summary, outcomes = run(flags)
    return command_line.report(flags.json, summary, outcomes, complaints_of(outcomes))


if __name__ == "__main__":
    sys.exit(main())
