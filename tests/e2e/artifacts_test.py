# SPDX-License-Identifier: Apache-2.0
"""Artifacts in a folder and in S3, with all daemons: jobs live through a server that is
away, damage is told, and what nobody needs goes."""

import hashlib
import os
import time

import contract
import grpc
import kept
import outside
import processes
import pytest
import stack as stacks

SUCCEEDED = stacks.CONTRACT.Job.State.Value("STATE_SUCCEEDED")


def digest_of(data):
    return stacks.CONTRACT.Digest(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def download(service, digest):
    parts = service.client.stream("ArtifactService", "DownloadArtifact", seconds=30, digest=digest)
    return b"".join(part.chunk for part in parts)


def test_a_job_lives_through_a_server_of_s3_that_is_away(tmp_path):
    with outside.S3(tmp_path) as s3:
        flags = ("--data-dir", tmp_path / "store", "--artifacts", s3.address)
        with kept.Service(tmp_path / "host", *flags, **s3.variables) as service:
            assert "artifacts: ok" in service.get("/readyz")[1]
            job = service.start_job(trials=4).name
            service.await_evaluated(job, 1)

            s3.kill()
            away = processes.eventually(
                lambda: [a for a in [service.get("/readyz")] if a[0] == 503], 60, "it is not ready"
            )
            assert "artifacts: S3 is not available" in away[0][1]
            # Calls that need no blob are answered.
            assert service.job(job).state not in kept.ENDED
            with pytest.raises(contract.CallError) as error:
                service.upload("not now")
            assert error.value.code == grpc.StatusCode.UNAVAILABLE
            assert error.value.reason == "S3_UNAVAILABLE"
            s3.start()

            assert service.await_job(job, kept.JOB_SECONDS).state == SUCCEEDED
            assert service.get("/readyz")[0] == 200
            assert {path.name for path in s3.blobs()} == service.programs(job)
            assert not (tmp_path / "store/artifacts").exists()
            assert service.metric("mtmc_s3_requests_total") > 0
            for text in (service.log("mtmc-coordinator"), service.get("/metrics")[1]):
                assert s3.SECRET not in text
        assert service.exit_codes == [0] * 4


def test_a_large_blob_goes_to_s3_and_back(tmp_path):
    with outside.S3(tmp_path) as s3:
        flags = ("--data-dir", tmp_path / "store", "--artifacts", s3.address)
        with kept.Service(tmp_path / "host", *flags, has_worker=False, **s3.variables) as service:
            data = os.urandom(30 << 20)
            service.client.upload(data, digest_of(data))
            assert download(service, digest_of(data)) == data
            (blob,) = s3.blobs()
            assert blob.read_bytes() == data


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, "check the access key and its secret"),
        ({"AWS_SECRET_ACCESS_KEY": None, "AWS_ACCESS_KEY_ID": None}, "there are no credentials for S3"),
        ({"AWS_ENDPOINT_URL_S3": "http://s3.example:9000"}, "--insecure"),
    ],
)
def test_a_coordinator_that_s3_refuses_says_what_to_do(tmp_path, changes, reason):
    with outside.S3(tmp_path) as s3:
        host = stacks.Host(tmp_path)
        done = host.run(
            "--data-dir", tmp_path / "store", "--artifacts", s3.address, "--listen", "127.0.0.1:0", "--http", "",
            program="mtmc-coordinator", **{**s3.variables, **changes},
        )  # fmt: skip
        assert done.returncode != 0
        assert reason in done.stderr
        assert s3.SECRET not in done.stderr and "wrong-secret" not in done.stderr


def test_damage_is_told_counted_and_mended(tmp_path):
    with kept.Service(tmp_path, "--data-dir", tmp_path / "store", has_worker=False) as service:
        digest = service.upload("a program")
        (blob,) = (tmp_path / "store/artifacts").rglob(digest.sha256)
        blob.write_text("A PROGRAM")

        with pytest.raises(contract.CallError) as error:
            download(service, digest)

        assert error.value.code == grpc.StatusCode.DATA_LOSS
        assert error.value.reason == "ARTIFACT_CORRUPT"
        assert service.metric('mtmc_artifact_calls_total{operation="read",result="corrupt"}') == 1
        missing = service.client.call("ArtifactService", "FindMissingArtifacts", digests=[digest]).missing
        assert list(missing) == [digest]
        assert service.upload("a program") == digest
        assert download(service, digest) == b"a program"


def in_folder(tmp_path):
    """Flags, variables, and how to find the blobs' files, of a coordinator's store."""
    folder = tmp_path / "store/artifacts"
    return ("--data-dir", tmp_path / "store"), {}, lambda: [
        path for path in folder.rglob("*") if path.is_file() and len(path.name) == 64
    ]


def _sweep(tmp_path, flags, variables, blobs):
    with kept.Service(tmp_path / "host", *flags, **variables) as service:
        ended = service.start_job(number=0, trials=3).name
        service.await_job(ended, kept.JOB_SECONDS)
    # Without a worker it is paused before it has anything but its source.
    with kept.Service(tmp_path / "host", *flags, has_worker=False, **variables) as service:
        paused = service.start_job(number=1, trials=3).name
        service.client.call("JobService", "PauseJob", name=paused)
        orphan = service.upload("nobody's program").sha256
        kept_ones = service.programs(ended) | service.programs(paused)
    assert {path.name for path in blobs()} == kept_ones | {orphan}
    for path in blobs():
        os.utime(path, (time.time() - 48 * 3600,) * 2)
    retention = ("--artifact-retention", "24h", "--log-format", "json")

    with kept.Service(
        tmp_path / "host", *flags, *retention, "--artifact-retention-trial", has_worker=False, **variables
    ) as service:
        lines = processes.eventually(
            lambda: [n for n in service.log_lines() if n["message"] == "artifacts would be swept"], 30, "a trial"
        )
        assert int(lines[0]["removed"]) == 1
        named = [n["sha256"] for n in service.log_lines() if n["message"] == "artifact would be removed"]
        assert named == [orphan]
        assert orphan in {path.name for path in blobs()}

    with kept.Service(tmp_path / "host", *flags, *retention, **variables) as service:
        processes.eventually(lambda: orphan not in {path.name for path in blobs()}, 30, "the orphan goes")
        assert service.metric("mtmc_artifacts_removed_total") == 1
        assert {path.name for path in blobs()} >= kept_ones
        # What is kept is enough to go on with.
        service.client.call("JobService", "ResumeJob", name=paused)
        assert service.await_job(paused, kept.JOB_SECONDS).state == SUCCEEDED


def test_artifacts_in_a_folder_that_nobody_refers_to_age_out(tmp_path):
    _sweep(tmp_path, *in_folder(tmp_path))


def test_artifacts_in_s3_that_nobody_refers_to_age_out(tmp_path):
    with outside.S3(tmp_path) as s3:
        flags = ("--data-dir", tmp_path / "store", "--artifacts", s3.address)
        _sweep(tmp_path, flags, s3.variables, s3.blobs)
