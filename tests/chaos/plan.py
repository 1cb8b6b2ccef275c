# SPDX-License-Identifier: Apache-2.0
"""Which faults come when: drawn from a seed, so that a run can be had again."""

import dataclasses
import random

COORDINATORS = ("c0", "c1", "c2")
MODES = {"refuse": (0,), "freeze": (0,), "mute": (0,), "delay": (0.05, 0.3), "lose": (0.05, 0.3)}
# Shorter than a lease, about as long as ownership, and longer than either.
TIMES = (0.1, 0.5, 1.0, 2.0, 4.0, 7.0)
LINKS = {"client": 3, "peer": 2, "postgres": 4, "s3": 2, "gateway": 1, "policy": 1, "worker": 1}

# How often each kind is drawn, of 100.
WEIGHTS = {
    "kill coordinator": 16,
    "terminate coordinator": 4,
    "stop coordinator": 12,
    "kill helper": 5,
    "stop helper": 3,
    "kill real worker": 3,
    "kill child of worker": 2,
    "stop real worker": 2,
    "kill simulated worker": 8,
    "stall simulated worker": 5,
    "network": 22,
    "postgres fast restart": 4,
    "postgres immediate restart": 4,
    "s3 refuses": 3,
    "disk full": 3,
    "clock jump": 4,
}


@dataclasses.dataclass(frozen=True)
class Fault:
    """Begins `start` seconds after the storm and lasts `seconds`."""

    number: int
    start: float
    kind: str
    target: str
    seconds: float
    mode: str = ""
    value: float = 0.0


def _link(draw):
    name = draw.choices(list(LINKS), LINKS.values())[0]
    coordinator = draw.choice(COORDINATORS)
    return f"{name}-{coordinator}" if name in ("client", "peer", "worker") else f"{coordinator}-{name}"


def _shape(draw, kind, num_workers):
    """Target, mode and value of a fault of that kind."""
    if kind.endswith("coordinator"):
        return draw.choice(COORDINATORS), "", 0.0
    if kind.endswith("helper"):
        return draw.choice(("gateway", "policy")), "", 0.0
    if kind.endswith("real worker"):
        return "worker", "", 0.0
    if kind == "kill child of worker":
        return draw.choice(("mtmc-runner", "mtmc-builder", "mtmc_reference")), "", 0.0
    if kind.endswith("simulated worker"):
        return f"sim-{draw.randrange(num_workers)}", "", 0.0
    if kind == "network":
        mode = draw.choice(list(MODES))
        return _link(draw), mode, draw.choice(MODES[mode])
    if kind.startswith("postgres"):
        return "postgres", "", 0.0
    if kind == "s3 refuses":
        return "s3", "", 0.0
    if kind == "disk full":
        return draw.choice(("postgres", "s3", "scratch")), "", 0.0
    return draw.choice(COORDINATORS), "", draw.choice((-3600.0, -5.0, 5.0, 3600.0))


def draw_plan(seed, count, num_workers, gap=1.2):
    """`count` faults, `gap` seconds apart on average. Two that overlap have other targets."""
    draw = random.Random(f"plan {seed}")
    faults, until, now = [], {}, 0.0
    while len(faults) < count:
        now += draw.uniform(0.2, 2) * gap
        kind = draw.choices(list(WEIGHTS), WEIGHTS.values())[0]
        target, mode, value = _shape(draw, kind, num_workers)
        seconds = draw.choice(TIMES)
        if kind == "clock jump":
            # libfaketime looks once a second.
            seconds = max(seconds, 3.0)
        # A filled disk and a stopped server are both of one part.
        part = "disk" if kind == "disk full" else target
        if until.get(part, 0) > now:
            continue
        until[part] = now + seconds + 0.5
        faults.append(Fault(len(faults), now, kind, target, seconds, mode, value))
    return faults


def never_drawn(faults):
    return sorted(WEIGHTS.keys() - {fault.kind for fault in faults})
