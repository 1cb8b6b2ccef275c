# SPDX-License-Identifier: Apache-2.0
"""One whole run: a world, users and workers in it, the faults of a plan, and the judgment."""

import collections
import contextlib
import dataclasses
import json
import pathlib
import threading
import time

import clients as users
import contract
import evidence
import faults as faults_module
import history as histories
import judge as judges
import plan as plans
import processes
import simulated
import world as worlds


@dataclasses.dataclass
class Options:
    seed: str
    faults: int
    folder: pathlib.Path
    workers: int = 30
    # How many users each project has, more than it may have open jobs.
    rich: int = 14
    poor: int = 3
    has_worker: bool = True
    gap: float = 1.2
    # Kinds of faults that are not done, to see past what is known.
    without: tuple = ()
    # How long open jobs may take to end once all faults are over.
    drain_seconds: float = 120


class Run:
    """`report` is what is known so far; it is kept in report.json while the run goes on."""

    def __init__(self, options):
        self.options = options
        self.history = histories.History()
        self.plan = plans.draw_plan(options.seed, options.faults, options.workers, options.gap)
        # Faults end in threads of their own.
        self._lock = threading.Lock()
        self.report = {"seed": options.seed, "planned": options.faults, "faults": [],
                       "never_drawn": plans.never_drawn(self.plan)}  # fmt: skip

    def _tell(self, fault, outcome):
        with self._lock:
            self.report["faults"].append({**dataclasses.asdict(fault), "outcome": outcome,
                                          "ended": round(time.monotonic() - self._begin, 2)})  # fmt: skip
            self._keep()

    def _keep(self):
        path = self.options.folder / "report.json"
        path.with_suffix(".new").write_text(json.dumps(self.report, indent=1))
        path.with_suffix(".new").rename(path)

    def run(self):
        """The report; `violations` of it is empty if all survived."""
        options = self.options
        options.folder.mkdir(parents=True, exist_ok=True)
        with worlds.World(options.folder, has_worker=options.has_worker) as world:
            world.skipped |= dict.fromkeys(options.without, "left out on request")
            self.report["skipped"] = world.skipped
            self._await_owner(world)
            storming = users.Storming(world, self.history, options.seed)
            workers = [simulated.Worker(world, self.history, number, options.seed)
                       for number in range(options.workers)]  # fmt: skip
            people = self._people(storming)
            sampler = users.Sampler(storming)
            self._begin = time.monotonic()
            faults = faults_module.Faults(world, workers, options.seed)
            faults.run(self.plan, self._tell)
            self.report["storm_seconds"] = round(time.monotonic() - self._begin, 1)
            world.mend()
            self._await_ends(storming, people)
            sampler.join()
            for worker in workers:
                worker.end()
            for worker in workers:
                worker.join()
            final = evidence.gather(world, self.history)
            self._conclude(world, final)
        return self.report

    def _people(self, storming):
        options = self.options
        people = [users.User(storming, number, "rich") for number in range(options.rich)]
        people += [users.User(storming, 100 + number, "poor") for number in range(options.poor)]
        if options.has_worker:
            people.append(users.User(storming, 200, "rich", is_real=True))
        return people

    def _await_owner(self, world):
        open_jobs = {"rich": self.options.rich - 1, "poor": self.options.poor - 1}

        def look():
            with contextlib.closing(worlds.Client(world.endpoint(world.names[0]))) as client:
                try:
                    evidence.set_quotas(client, open_jobs)
                except contract.CallError:
                    return False
            return True

        processes.eventually(look, 60, "a coordinator owns the jobs")

    def _await_ends(self, storming, people):
        storming.is_ending.set()
        begin = time.monotonic()
        ends = [user.join(begin + self.options.drain_seconds - time.monotonic()) for user in people]
        self.report["drain_seconds"] = round(time.monotonic() - begin, 1)
        self.report["users_that_wait_still"] = ends.count(False)
        # The second watcher of a job may be behind the first.
        deadline = time.monotonic() + 10
        lengths = collections.defaultdict(int)
        for watch in self.history.watches:
            lengths[watch.job] = max(lengths[watch.job], len(watch.events))
        while time.monotonic() < deadline and any(len(w.events) < lengths[w.job] for w in self.history.watches):
            time.sleep(0.1)
        storming.is_over.set()

    def _conclude(self, world, final):
        violations = judges.judge(self.history, final)
        for name, exits in world.exits().items():
            # A positive code is a daemon that says why, at its start; the keeper starts it again.
            bad = [code for code in exits if not isinstance(code, int) or code <= 0]
            if bad and name != "postgres":
                violations.append(f"ended by itself: {name} with {bad}")
        outcomes = collections.Counter(f"{f['kind']}: {f['outcome']}" for f in self.report["faults"])
        self.report |= {"violations": violations, "notes": judges.notes(self.history, final),
                        "outcomes": dict(sorted(outcomes.items())), "exits": world.exits()}  # fmt: skip
        self._keep()
        kept = {"history": self.history.as_dict(), "final": dataclasses.asdict(final)}
        (self.options.folder / "evidence.json").write_text(json.dumps(kept, indent=1))
