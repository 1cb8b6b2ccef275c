# SPDX-License-Identifier: Apache-2.0
"""Evaluates honest programs on one device: none may be turned away.

    python run.py --bin build/release/bin --device opencl:0 --json honest.json

The programs are those that the built-in coder prints for the problems of
problems.py and of examples/problems, several actions deep, and those in
`programs`. Prints one line for each that was rejected, and the counts.
"""

import dataclasses
import os
import pathlib
import subprocess
import sys
import tempfile
import time

_FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(_FOLDER.parent / "adversary"))

import command_line  # noqa: E402  (the path is set above)
import engine as engines  # noqa: E402
import harness  # noqa: E402
import problems  # noqa: E402

_EXAMPLES = _FOLDER.parents[1] / "examples/problems"

# Exit code of `mtmc_reference.graph_of` where a problem cannot be traced.
_SOME_UNTRACEABLE = 3

# Seed of the walks, so that a failure can be repeated.
_SEED = 4

# Hand-written programs and their problems.
_HAND_WRITTEN = {
    "atomic_sum": "sum_all",
    "atomic_sum_native": "sum_all",
    "reverse_sum": "sum_all",
    "tiled_transpose": "transpose",
    "online_softmax": "softmax",
    "welford_variance": "variance",
    "library_and_kernel": "linear_relu",
    "library_only": "linear_relu",
    "captured_steps": "rms_norm",
    "compensated_scan": "long_scan",
    "constant_table": "clamp_where",
    "helper_and_macro": "mish",
    "shuffle_sum": "sum_middle",
    "grid_barrier_norm": "norm",
    "wide_index": "many_elements",
    "last_block_sum": "sum_all",
    "kahan_sum": "sum_all",
    "inline_mma": "half_linear",
    "wmma_half": "half_linear",
    "async_copy_softmax": "softmax",
    "approximate_softmax": "softmax",
    "persistent_gelu": "gelu_chain",
    "cub_layer_norm": "layer_norm",
    "cub_block_scan": "cumulative_sum",
    "tile_reduce_norm": "norm",
    "constexpr_tables": "prime_shape",
    "template_amax": "amax",
    "words_in_comments": "one_row",
    "ballot_count": "count",
    "packed_argmax": "argmax",
    "half_pairs": "half",
    "bf16_pairs": "bf16",
    "shuffle_logsumexp": "logsumexp",
    "register_tile_matmul": "matmul_primes",
    "dynamic_transpose": "permute",
    "split_matrix_vector": "matrix_vector",
}

_WORDS = {
    "opencl": {"COMPARE_AND_SWAP": "atomic_cmpxchg"},
    "cuda": {"COMPARE_AND_SWAP": "atomicCAS"},
}


@dataclasses.dataclass(frozen=True)
class _Source:
    """A problem that is at hand as a file."""

    path: pathlib.Path
    precision: str = "kernelbench"
    randomize: bool = False


def _sources(folder, device, is_ci):
    found = []
    room = _free_bytes(device)
    for problem in problems.PROBLEMS:
        is_here = device.startswith("cuda") or not problem.is_for_gpu
        if is_here and problem.needs_bytes <= room and (problem.in_ci or not is_ci):
            path = folder / f"{problem.name}.py"
            path.write_text(problem.source)
            found.append(_Source(path, problem.precision, problem.randomize))
    if not is_ci:
        found += [_Source(path) for path in sorted(_EXAMPLES.glob("*.py"))]
    return found


def _python():
    return os.environ.get("MTMC_PYTHON") or sys.executable


def _free_bytes(device):
    """Free memory of a GPU; 0 elsewhere."""
    if not device.startswith("cuda"):
        return 0
    code = f"import torch; print(torch.cuda.mem_get_info('{device}')[0])"
    done = subprocess.run([_python(), "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def _graphs(bin_folder, folder, device, sources):
    package = pathlib.Path(bin_folder).resolve().parent / "share/mtmc/python"
    place = device if device.startswith("cuda") else "cpu"
    paths = [source.path for source in sources]
    done = subprocess.run(
        [_python(), "-m", "mtmc_reference.graph_of", "--out", folder, "--device", place, *paths],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env={**os.environ, "PYTHONPATH": str(package)},
    )
    if done.returncode != _SOME_UNTRACEABLE:
        done.check_returncode()
    if done.stderr.strip():
        print(done.stderr.strip(), file=sys.stderr)
    return {source: folder / f"{source.path.stem}.json" for source in sources}


def _case(source, variant, text, dialect):
    return harness.Case(
        name=f"{source.path.stem}.{variant}",
        problem=source.path,
        text=text,
        dialect=dialect,
        options={**harness.FAST, "max_variants": 3},
        allowed_calls=engines.calls_of(text),
        precision=source.precision,
        randomize=source.randomize,
    )


def hand_written(dialect):
    """Texts by name of the programs of `programs` that exist in `dialect`."""
    paths = [next(_FOLDER.glob(f"programs/{name}.*")) for name in _HAND_WRITTEN]
    return {
        path.stem: harness.translate(path, dialect, _WORDS[dialect])
        for path in paths
        if path.suffix == ".kernel" or dialect == "cuda"
    }


def cases_of(bin_folder, device, folder, is_ci, walks):
    """Every honest program that `device` can run, problems together."""
    dialect = harness.dialect_of(device)
    sources = _sources(folder, device, is_ci)
    graphs = {s: g for s, g in _graphs(bin_folder, folder, device, sources).items() if g.exists()}
    by_graph = {graph: source for source, graph in graphs.items()}
    coder = engines.Engine(bin_folder, dialect)
    printed = engines.all_programs(coder, list(by_graph), walks, depth=4, seed=_SEED)
    cases = [_case(by_graph[graph], variant, text, dialect) for graph, variant, text in printed]
    by_name = {source.path.stem: source for source in sources}
    for name, text in hand_written(dialect).items():
        if _HAND_WRITTEN[name] in by_name:
            cases.append(_case(by_name[_HAND_WRITTEN[name]], name, text, dialect))
    return sorted(cases, key=lambda case: str(case.problem))


def run(bin_folder, device, is_ci, walks, timeout):
    """(summary, every program's outcome by name), within `timeout` seconds for all."""
    end = time.monotonic() + timeout
    with tempfile.TemporaryDirectory(prefix="mtmc-honest-") as folder:
        cases = cases_of(bin_folder, device, pathlib.Path(folder), is_ci, walks)
        results = harness.evaluate(bin_folder, device, cases, max(end - time.monotonic(), 1))
    outcomes = {}
    for case in cases:
        result = results.get(case.name)
        outcomes[case.name] = {
            "outcome": harness.describe(result),
            "rejected": result is None or not harness.is_accepted(result),
            "wall_seconds": (result or {}).get("wall_seconds"),
        }
    summary = {
        "device": device,
        "honest_programs": len(outcomes),
        "honest_rejected": sum(outcome["rejected"] for outcome in outcomes.values()),
    }
    return summary, outcomes


def main():
    parser = command_line.parser(__doc__.splitlines()[0], seconds=3000)
    parser.add_argument("--walks", type=int, default=2, help="walks of the coder a problem")
    flags = parser.parse_args()
    summary, outcomes = run(flags.bin, flags.device, flags.ci, flags.walks, flags.timeout)
    complaints = [
        f"REJECTED {name}: {outcome['outcome']}"
        for name, outcome in outcomes.items()
        if outcome["rejected"]
    ]
    return command_line.report(flags.json, summary, outcomes, complaints)


if __name__ == "__main__":
    sys.exit(main())
