# SPDX-License-Identifier: Apache-2.0
"""An owner that is cut off from the store, and does not know yet that another one has taken
over, acknowledges nothing: what it says is not written."""

import hashlib
import time
import uuid

import contract
import processes
import pytest
import simulated
import stack as stacks
import world as worlds
from google.protobuf import text_format

C = stacks.CONTRACT
NAMES = ("c0", "c1")


class OneWorker:
    """Calls as a simulated worker, one by one, of whichever coordinator."""

    def __init__(self):
        self._instance = str(uuid.uuid4())

    def call(self, client, seconds=6, **state):
        request = C.SynchronizeRequest(instance_id=self._instance, **state)
        request.worker.name = "workers/sim-0"
        request.worker.version = simulated.VERSION
        request.worker.host = "chaos"
        request.worker.isolation_level = simulated.CONFINED
        text_format.Parse(simulated.DEVICE, request.worker.device)
        return client.call("LeaseService", "Synchronize", seconds=seconds,
                           **{f.name: v for f, v in request.ListFields()})  # fmt: skip

    def await_lease(self, client):
        def look():
            try:
                return self.call(client, idle=C.SynchronizeRequest.Idle()).lease
            except contract.CallError:
                return None

        return processes.eventually(lambda: (lease := look()) and lease.id and lease, 30, "a lease")


def completed(lease, **result):
    return C.SynchronizeRequest.Completed(lease_id=lease.id, result=C.LeaseResult(**result))


def owner_of(world):
    address = world.sql("SELECT address FROM owner")[0][0]
    return next((name for name in NAMES if address.endswith(f":{world.links.ports[f'peer-{name}']}")), None)


def create_job(client):
    data = b"# late owner\nclass Model: pass\n"
    digest = C.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    client.upload(data, digest)
    job = C.Job(problem=C.Problem(display_name="late", source=digest), budget=C.Budget(max_trials=1),
                search=C.SearchOptions(speed_of_light_ratio=10),
                worker_selector=C.WorkerSelector(product=simulated.PRODUCT))  # fmt: skip
    return client.call("JobService", "CreateJob", parent="projects/rich", job=job, request_id=str(uuid.uuid4())).job


@pytest.fixture
def world(tmp_path):
    with worlds.World(tmp_path, has_worker=False, coordinators=NAMES) as running:
        processes.eventually(lambda: owner_of(running), 30, "a coordinator owns the jobs")
        yield running


def test_a_late_owner_does_not_acknowledge_a_result_of_a_lease_it_does_not_know(world):
    late = owner_of(world)
    other = next(name for name in NAMES if name != late)
    old, new = (worlds.Client(world.endpoint(name)) for name in (late, other))
    worker = OneWorker()
    # The late one knows the worker, and has nothing to write about it.
    with pytest.raises(contract.CallError):
        worker.call(old, seconds=1, idle=C.SynchronizeRequest.Idle())
    world.links.set(f"{late}-postgres", "freeze")
    processes.eventually(lambda: owner_of(world) == other, 30, "another one takes over")
    job = create_job(new)
    inspection = C.Inspection()
    text_format.Parse(simulated.INSPECTION, inspection)
    worker.call(new, completed=completed(worker.await_lease(new), inspection=inspection))
    lease = worker.await_lease(new)
    evaluation = simulated.evaluate(lease, "chaos acknowledged", 1000)

    try:
        worker.call(old, completed=completed(lease, evaluation=evaluation))
        is_acknowledged = True
    except contract.CallError:
        is_acknowledged = False

    time.sleep(0.5)
    listed = new.call("CandidateService", "ListCandidates", parent=job.name).candidates
    kept = [c.name for c in listed if c.evaluation.profile.summary == "chaos acknowledged"]
    world.links.mend()
    for client in (old, new):
        client.close()
    assert kept or not is_acknowledged, f"{late} said OK, and {other} knows nothing of it"
