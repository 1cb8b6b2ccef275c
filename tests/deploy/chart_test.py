# SPDX-License-Identifier: Apache-2.0
"""deploy/helm/mtmc: what the chart makes is valid, closed, and calls the programs by what they have."""

import base64
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import charts
import pytest
import yaml

BIN = pathlib.Path(os.environ["MTMC_BIN"])
EXAMPLES = sorted(path.stem for path in charts.EXAMPLES.glob("*.yaml"))
# Of operators that clusters have beside Kubernetes.
FOREIGN = {"Certificate", "ScaledObject", "ServiceMonitor", "PrometheusRule"}
PROGRAMS = {
    "coordinator": "mtmc-coordinator", "policyd": "mtmc-policyd", "gateway": "mtmc-gateway",
    "worker": "mtmc-worker", "check": "mtmc",
}  # fmt: skip

pytestmark = pytest.mark.skipif(bool(charts.missing()), reason=charts.missing())


def flags(container):
    """Flags of a container with their values."""
    pairs = (argument.partition("=") for argument in container["args"] if argument.startswith("--"))
    return {name: value for name, _, value in pairs}


def containers(name):
    """(component, pod spec, its only container) of every pod of an example."""
    for component, pod in charts.pods(charts.rendered(name)):
        assert len(pod["containers"]) == 1 and "initContainers" not in pod
        yield component, pod, pod["containers"][0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_helm_finds_no_fault(name):
    assert charts.lint(charts.example(name)) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_object_is_one_that_kubernetes_takes(name):
    validator = pytest.importorskip("kubernetes_validate")
    objects = charts.rendered(name)
    own = [object for object in objects if object["kind"] not in FOREIGN]
    for object in own:
        validator.validate(object, "1.34", strict=True)
    assert len(own) > 12
    names = [(object["kind"], object["metadata"]["name"]) for object in objects]
    assert len(names) == len(set(names))


# What is wrong, and what the message says.
REFUSED = [
    ({"coordinator": {"replicas": "abc"}}, "replicas"),
    ({"coordinator": {"replica": 2}}, "replica"),
    ({"coordinator": {"replicas": 2}}, "set coordinator.store.kind=postgresql, or replicas=1"),
    ({"coordinator": {"store": {"kind": "postgresql"}}}, "kubectl create secret generic NAME --from-literal=url="),
    ({"coordinator": {"store": {"kind": "mysql"}}}, "kind"),
    ({"coordinator": {"store": {"artifacts": {"s3": {"url": "s3://a/b"}}}}}, "belongs to store.kind postgresql"),
    ({"coordinator": {"store": {"artifacts": {"s3": {"url": "/mnt"}}}}}, "url"),
    ({"coordinator": {"resources": {"limits": None}}}, "limits"),
    ({"coordinator": {"retention": "3 weeks"}}, "retention"),
    ({"coordinator": {"artifactRetention": "a week"}}, "artifactRetention"),
    ({"coordinator": {"maxArtifactBytes": "20Gi"}}, "maxArtifactBytes"),
    ({"coordinator": {"leaseGraceMs": 10}}, "leaseGraceMs"),
    ({"coordinator": {"auditLog": {"file": "a"}}}, "file"),
    ({"tls": {"mode": "off", "clients": {"required": True}}}, "tls.clients.required needs TLS"),
    ({"tls": {"mode": "secret", "existingSecret": "a", "clients": {"required": True}}}, "tls.clients.existingSecret"),
    ({"tls": {"clients": {"required": True, "existingSecret": "a"}}}, "belongs to tls.mode secret or certManager"),
    ({"auth": {"jwt": {"existingConfigMap": "a"}}}, "auth.jwt.issuer"),
    ({"auth": {"jwt": {"issuer": "https://a"}}}, "kubectl create configmap NAME --from-file=jwks.json"),
    ({"auth": {"mode": "off", "jwt": {"existingConfigMap": "a", "issuer": "b"}}}, "auth.mode is off"),
    ({"image": {"tag": "latest"}}, "tag"),
    ({"image": {"digests": {"worker": "sha256:12"}}}, "digests"),
    ({"tls": {"mode": "secret"}}, "tls.existingSecret"),
    ({"tls": {"mode": "certManager"}}, "tls.issuer.name"),
    ({"auth": {"mode": "secret"}}, "auth.existingSecret"),
    ({"auth": {"lines": ["alice boss vision " + "0" * 64]}}, "lines"),
    ({"auth": {"mode": "off", "lines": ["alice viewer vision " + "0" * 64]}}, "belongs to auth.mode generate"),
    ({"workers": {"classes": {"H100": {}}}}, "H100"),
    ({"workers": {"classes": {"a": {"gpu": {"product": "NVIDIA-L4-SHARED"}}}}}, "product"),
    ({"workers": {"classes": {"a": {"confinement": "none"}}}}, "confinement"),
    ({"gateway": {"llm": {"baseUrl": "llm.example"}}}, "baseUrl"),
    ({"policy": {"extraArgs": ["-v"]}}, "extraArgs"),
]


@pytest.mark.parametrize("settings, message", REFUSED, ids=[json.dumps(case[0])[:60] for case in REFUSED])
def test_settings_that_are_wrong_are_refused_by_name(settings, message):
    with pytest.raises(charts.ChartError) as refused:
        charts.render(settings)
    assert message in str(refused.value)


def test_the_schema_knows_every_setting_and_no_other():
    schema = json.loads((charts.CHART / "values.schema.json").read_text())

    def compare(values, node, path):
        while "$ref" in node:
            node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
        if not values or "properties" not in node:
            return
        known = set(node["properties"]) - {"global"}
        assert node["additionalProperties"] is False, path
        assert set(values) == known, path
        for key, value in values.items():
            if isinstance(value, dict):
                compare(value, node["properties"][key], f"{path}.{key}")

    compare(yaml.safe_load((charts.CHART / "values.yaml").read_text()), schema, "")


def is_restricted(pod, container):
    """By the Pod Security Standard `restricted`, as far as this chart could break it."""
    security = {**pod["securityContext"], **container["securityContext"]}
    kinds = {kind for volume in pod.get("volumes", []) for kind in volume if kind != "name"}
    return (
        security["runAsNonRoot"] is True
        and security["allowPrivilegeEscalation"] is False
        and security["capabilities"] == {"drop": ["ALL"]}
        and security["seccompProfile"] == {"type": "RuntimeDefault"}
        and "procMount" not in security
        and not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        and kinds <= {"configMap", "emptyDir", "persistentVolumeClaim", "secret"}
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_only_workers_leave_the_standard_restricted_and_no_pod_has_more_than_it_needs(name):
    for component, pod, container in containers(name):
        if component != "worker" or name == "restricted":
            assert is_restricted(pod, container), component
        security = {**pod["securityContext"], **container["securityContext"]}
        assert security["runAsUser"] == 65532 and security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False and security["capabilities"] == {"drop": ["ALL"]}
        assert "privileged" not in security
        assert pod["automountServiceAccountToken"] is False and pod["enableServiceLinks"] is False


def test_each_confinement_of_a_worker_takes_what_it_is_documented_to_take():
    page = (charts.ROOT / "docs/deploy/kubernetes.md").read_text()
    for confinement, takes in (("restricted", ()), ("namespaces", ("Unconfined",)), ("full", ("Unconfined", "Unmasked"))):
        objects = charts.render({"workers": {"classes": {"a": {"confinement": confinement}}}})
        pod = next(pod for component, pod in charts.pods(objects) if component == "worker")
        text = yaml.safe_dump({"pod": pod["securityContext"], "container": pod["containers"][0]["securityContext"]})
        assert tuple(word for word in ("Unconfined", "Unmasked") if word in text) == takes
        assert pod.get("hostUsers", True) is (confinement != "full")
        row = re.search(rf"^\| `{confinement}` \|.*$", page, re.M).group()
        assert all(word in row for word in takes)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_container_has_limits_and_an_image_of_one_version(name):
    for component, _, container in containers(name):
        for bound in ("requests", "limits"):
            assert {"cpu", "memory"} <= set(container["resources"][bound]), component
        assert re.fullmatch(r"\S+/mtmc-[a-z]+:\d+\.\d+\.\d+", container["image"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_flags_are_ones_that_the_programs_have(name):
    for component, _, container in containers(name):
        program = PROGRAMS[component]
        if not (BIN / program).exists():
            pytest.skip(f"{program} is not built")
        done = subprocess.run([BIN / program, "--help"], capture_output=True, text=True, timeout=60, check=True)
        help = done.stdout
        if component == "check":
            words = [argument for argument in container["args"] if not argument.startswith("--")][:2]
            done = subprocess.run([BIN / program, *words, "--help"], capture_output=True, text=True, timeout=60, check=True)
            help += done.stdout
        known = set(re.findall(r"--[a-z-]+", help))
        assert set(flags(container)) - known == set(), program


@pytest.mark.parametrize(("given", "grace"), [(300, "270s"), (40, "10s"), (20, "0s")])
def test_a_worker_gives_its_lease_back_before_its_pod_is_killed(given, grace):
    values = charts.example(EXAMPLES[0])
    values.setdefault("workers", {})["terminationGracePeriodSeconds"] = given
    pods = [pod for component, pod in charts.pods(charts.render(values)) if component == "worker"]
    assert pods
    for pod in pods:
        assert pod["terminationGracePeriodSeconds"] == given
        assert flags(pod["containers"][0])["--grace"] == grace


@pytest.mark.parametrize("name", EXAMPLES)
def test_services_and_probes_lead_to_ports_that_the_daemons_listen_at(name):
    listening = {}
    for component, _, container in containers(name):
        given = {f: int(v.rsplit(":", 1)[1]) for f, v in flags(container).items() if f in ("--listen", "--http")}
        ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
        if component != "check":
            assert sorted(given.values()) == sorted(ports.values()), component
            assert all(v.startswith("0.0.0.0:") for f, v in flags(container).items() if f in ("--listen", "--http"))
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                assert ports[container[probe]["httpGet"]["port"]] == given["--http"]
        listening[component] = ports
    for service in charts.named(charts.rendered(name), "Service").values():
        ports = listening[service["spec"]["selector"]["app.kubernetes.io/component"]]
        assert all(ports[port["targetPort"]] == port["port"] for port in service["spec"]["ports"])


def connections(name):
    """(component that calls, host, port) of every address in a flag."""
    for component, _, container in containers(name):
        for flag in ("--policy", "--gateway", "--coordinator", "--endpoint", "--advertise"):
            if flag in flags(container):
                host, _, port = flags(container)[flag].rpartition(":")
                yield component, host, int(port)


def component_at(objects, host):
    """Which component a name leads to; a name of one pod through its headless Service."""
    parts = host.split(".")
    assert parts[-2:] == [charts.NAMESPACE, "svc"]
    service = charts.named(objects, "Service")[parts[-3]]
    return service["spec"]["selector"]["app.kubernetes.io/component"]


def admits(rules, side, component, port):
    for rule in rules:
        peers = [peer["podSelector"].get("matchLabels", {}) for peer in rule.get(side, []) if "podSelector" in peer]
        is_peer = any(peer.get("app.kubernetes.io/component") == component for peer in peers)
        if is_peer and port in [entry["port"] for entry in rule["ports"]]:
            return True
    return False


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_network_lets_through_what_the_flags_name_and_nothing_to_everybody(name):
    objects = charts.rendered(name)
    policies = charts.named(objects, "NetworkPolicy")
    for caller, host, port in connections(name):
        called = component_at(objects, host)
        assert admits(policies[f"mtmc-{caller}"]["spec"]["egress"], "to", called, port), (caller, called)
        assert admits(policies[f"mtmc-{called}"]["spec"]["ingress"], "from", caller, port), (caller, called)
    for component, _, _ in containers(name):
        assert policies[f"mtmc-{component}"]["spec"]["policyTypes"] == ["Ingress", "Egress"]
    # What is not evaluated by a worker cannot leave it: names, and the coordinator.
    assert [len(rule["ports"]) for rule in policies["mtmc-worker"]["spec"]["egress"]] == [2, 1]


def secret(objects, name):
    data = charts.named(objects, "Secret")[name]["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def test_the_certificate_names_what_is_called(tmp_path):
    files = secret(charts.rendered("trial"), "mtmc-tls")
    for key, text in files.items():
        (tmp_path / key).write_text(text)
    called = {host for _, host, _ in connections("trial")} | {"localhost", "mtmc-coordinator-0.mtmc-coordinators.kernels.svc"}
    for host in called:
        done = subprocess.run(
            ["openssl", "verify", "-CAfile", tmp_path / "ca.crt", "-verify_hostname", host, tmp_path / "tls.crt"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (host, done.stderr)
    certificate = charts.named(charts.rendered("team"), "Certificate")["mtmc"]["spec"]
    wildcard = "*.mtmc-coordinators.kernels.svc"
    for _, host, _ in connections("team"):
        assert host in certificate["dnsNames"] or (host.startswith("$(POD_NAME).") and wildcard in certificate["dnsNames"])


def test_the_generated_tokens_are_those_of_the_file():
    files = secret(charts.rendered("team"), "mtmc-tokens")
    lines = dict(zip(("name", "role", "project", "hash"), zip(*(line.split() for line in files["tokens"].splitlines()))))
    assert dict(zip(lines["name"], lines["role"])) == {
        "admin": "administrator", "coordinator": "worker", "worker": "worker", "alice": "submitter",
    }  # fmt: skip
    hashes = dict(zip(lines["name"], lines["hash"]))
    for who in ("admin", "coordinator", "worker"):
        assert hashes[who] == hashlib.sha256(files[f"{who}.token"].encode()).hexdigest()


# Files that a pod gets of the secrets.
GETS = {
    "coordinator": {"ca.crt", "tls.crt", "tls.key", "tokens", "coordinator.token"},
    "policyd": {"ca.crt", "tls.crt", "tls.key", "tokens"},
    "gateway": {"ca.crt", "tls.crt", "tls.key", "tokens"},
    "worker": {"ca.crt", "worker.token"},
    "check": {"ca.crt", "admin.token"},
}


def mounted(pod, container):
    """Paths of the files of secrets and ConfigMaps that a container sees."""
    volumes = {volume["name"]: volume.get("secret") or volume.get("configMap") for volume in pod["volumes"]}
    return {
        f"{mount['mountPath']}/{item['path']}"
        for mount in container["volumeMounts"] if volumes.get(mount["name"])
        for item in volumes[mount["name"]]["items"]
    }  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pod_gets_the_secrets_that_its_flags_name_and_no_other(name):
    for component, pod, container in containers(name):
        files = mounted(pod, container)
        got = {path.rsplit("/", 1)[1] for path in files if path.startswith(("/etc/mtmc/tls/", "/etc/mtmc/auth/"))}
        assert got == GETS[component]
        named = {value for value in flags(container).values() if value.startswith("/etc/mtmc/")}
        assert named <= files and len(named) >= 2


def test_whoever_calls_shows_a_certificate_where_one_is_asked_for(tmp_path):
    objects = charts.render({"tls": {"clients": {"required": True}}, "workers": {"classes": {"a": {}}}})
    for component, pod in charts.pods(objects):
        container = pod["containers"][0]
        given, files = flags(container), mounted(pod, container)
        has_server = component in ("coordinator", "policyd", "gateway")
        assert given.get("--tls-client-ca") == ("/etc/mtmc/clients/ca.crt" if has_server else None), component
        # Daemons call each other by what they serve with; a worker never holds their key.
        folder = "tls" if has_server else "clients"
        assert given["--tls-cert"] == f"/etc/mtmc/{folder}/tls.crt" and given["--tls-key"] == f"/etc/mtmc/{folder}/tls.key"
        assert {value for value in given.values() if value.startswith("/etc/mtmc/")} <= files
        assert ("/etc/mtmc/tls/tls.key" in files) is has_server and ("/etc/mtmc/clients/tls.key" in files) is not has_server

    clients, servers = secret(objects, "mtmc-clients"), secret(objects, "mtmc-tls")
    (tmp_path / "ca").write_text(clients["ca.crt"])
    for shown in (clients, servers):
        (tmp_path / "shown").write_text(shown["tls.crt"])
        done = subprocess.run(
            ["openssl", "verify", "-purpose", "sslclient", "-CAfile", tmp_path / "ca", tmp_path / "shown"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    done = charts.named(charts.rendered("team"), "Certificate")["mtmc-clients"]["spec"]
    assert done["secretName"] == "mtmc-clients" and "client auth" in done["usages"]


def coordinator_of(settings):
    objects = charts.render({"coordinator": settings.get("coordinator", {}), "auth": settings.get("auth", {})})
    pod = charts.named(objects, "StatefulSet")["mtmc-coordinator"]["spec"]["template"]["spec"]
    return pod, pod["containers"][0]


def test_the_coordinator_is_told_what_to_keep_and_for_how_long():
    limits = {"logRetention": "48h", "artifactRetention": "168h", "artifactRetentionTrial": True, "maxArtifactBytes": 500000000000,
              "maxDatabaseBytes": 20000000000, "leaseGraceMs": 20000}  # fmt: skip
    given = flags(coordinator_of({"coordinator": limits})[1])
    assert given["--log-retention"] == "48h"
    assert given["--artifact-retention"] == "168h" and "--artifact-retention-trial" in given
    # Not 5e+11, as Helm prints large numbers.
    assert given["--max-artifact-bytes"] == "500000000000" and given["--max-database-bytes"] == "20000000000"
    assert given["--lease-grace-ms"] == "20000"
    given = flags(coordinator_of({})[1])
    assert given["--artifact-retention"] == "0" and "--artifact-retention-trial" not in given
    assert given["--max-artifact-bytes"] == "0" and not {"--audit-log", "--jwt-keys", "--tls-client-ca"} & set(given)


def test_each_coordinator_writes_an_audit_log_of_its_own():
    volume = {"persistentVolumeClaim": {"claimName": "audit"}}
    pod, container = coordinator_of({"coordinator": {"auditLog": {"volume": volume}}})
    path = pathlib.PurePosixPath(flags(container)["--audit-log"])
    assert path.name == "$(POD_NAME).jsonl" and "POD_NAME" in {entry["name"] for entry in container["env"]}
    (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == str(path.parent)]
    assert {"name": mount["name"], **volume} in pod["volumes"]


def test_the_keys_of_an_issuer_are_a_folder_so_that_new_ones_are_seen():
    jwt = {"existingConfigMap": "keys", "key": "team.json", "issuer": "https://login.example", "audience": "kernels"}
    pod, container = coordinator_of({"auth": {"jwt": jwt}})
    given = flags(container)
    assert given["--jwt-keys"] in mounted(pod, container) and given["--jwt-keys"].endswith("/team.json")
    assert (given["--jwt-issuer"], given["--jwt-audience"]) == ("https://login.example", "kernels")
    assert given["--jwt-grants-claim"] == "mtmc_grants"
    assert all("subPath" not in mount for mount in container["volumeMounts"])


def test_files_of_others_can_be_mounted_beside_every_service():
    extra = {"extraVolumes": [{"name": "more", "emptyDir": {}}],
             "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}]}  # fmt: skip
    objects = charts.render({"coordinator": extra, "policy": extra, "gateway": extra})
    seen = {
        component
        for component, pod in charts.pods(objects)
        if extra["extraVolumes"][0] in pod["volumes"] and extra["extraVolumeMounts"][0] in pod["containers"][0]["volumeMounts"]
    }
    assert seen == {"coordinator", "policyd", "gateway"}


def test_a_worker_tells_its_pod():
    objects = charts.render({"workers": {"classes": {"a": {}}}})
    (container,) = [pod["containers"][0] for component, pod in charts.pods(objects) if component == "worker"]
    source = (charts.ROOT / "worker/daemon/place_labels.cc").read_text()
    set_here = {entry["name"] for entry in container["env"] if entry["name"].startswith("MTMC_POD")}
    assert set_here == set(re.findall(r'"(MTMC_POD\w*)"', source))


def test_a_class_of_workers_asks_for_one_gpu_of_its_product():
    objects = charts.rendered("team")
    for name, product in (("h100", "NVIDIA-H100-80GB-HBM3"), ("a100", "NVIDIA-A100-SXM4-80GB")):
        deployment = charts.named(objects, "Deployment")[f"mtmc-worker-{name}"]["spec"]
        pod = deployment["template"]["spec"]
        assert pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1
        assert pod["nodeSelector"] == {"nvidia.com/gpu.product": product}
        assert {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in pod["tolerations"]
        assert "replicas" not in deployment and deployment["strategy"]["rollingUpdate"]["maxSurge"] == 0
    cpu = charts.named(charts.rendered("trial"), "Deployment")["mtmc-worker-cpu"]["spec"]["template"]["spec"]
    assert "nvidia.com/gpu" not in cpu["containers"][0]["resources"]["limits"] and "tolerations" not in cpu


def test_several_coordinators_stay_apart_and_one_at_a_time_is_away():
    objects = charts.rendered("team")
    affinity = charts.named(objects, "StatefulSet")["mtmc-coordinator"]["spec"]["template"]["spec"]["affinity"]
    terms = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["topologyKey"] for term in terms] == ["kubernetes.io/hostname"]
    assert charts.named(objects, "PodDisruptionBudget")["mtmc-coordinator"]["spec"]["maxUnavailable"] == 1
    # A budget of one coordinator would forbid every drain.
    assert charts.named(charts.rendered("trial"), "PodDisruptionBudget") == {}


def test_projects_share_where_the_settings_say_so():
    for is_shared in (False, True):
        pods = dict(charts.pods(charts.render({"coordinator": {"shareAcrossProjects": is_shared}})))
        assert ("--share-across-projects" in flags(pods["coordinator"]["containers"][0])) == is_shared


def test_queues_scale_the_classes_by_a_metric_that_the_coordinator_has(tmp_path):
    objects = charts.rendered("team")
    (metric,) = charts.named(objects, "HorizontalPodAutoscaler")["mtmc-worker-h100"]["spec"]["metrics"]
    scaled = charts.named(objects, "ScaledObject")["mtmc-worker-a100"]["spec"]
    page = (charts.ROOT / "docs/monitoring.md").read_text()
    assert f"`{metric['external']['metric']['name']}{{queue, gpu_product}}`" in page
    query = scaled["triggers"][0]["metadata"]["query"]
    assert query.startswith("sum(mtmc_queue_depth{") and scaled["minReplicaCount"] == 0
    promtool = shutil.which("promtool", path=f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}")
    if promtool:
        rules = tmp_path / "rules.yml"
        rules.write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": [{"record": "b", "expr": query}]}]}))
        subprocess.run([promtool, "check", "rules", rules], check=True, capture_output=True, timeout=60)


def test_rules_and_dashboards_are_those_of_deploy():
    objects = charts.rendered("team")
    rules = yaml.safe_load((charts.ROOT / "deploy/prometheus/rules/mtmc.yml").read_text())
    assert charts.named(objects, "PrometheusRule")["mtmc"]["spec"]["groups"] == rules["groups"]
    shown = charts.named(objects, "ConfigMap")["mtmc-dashboards"]["data"]
    files = {path.name: path.read_text() for path in (charts.ROOT / "deploy/grafana/dashboards").glob("*.json")}
    assert {name: json.loads(text) for name, text in shown.items()} == {n: json.loads(t) for n, t in files.items()}


def test_without_tls_and_tokens_every_daemon_says_so():
    objects = charts.render({"tls": {"mode": "off"}, "auth": {"mode": "off"}, "workers": {"classes": {"a": None, "b": {}}}})
    seen = set()
    for component, pod in charts.pods(objects):
        given = flags(pod["containers"][0])
        assert "--insecure" in given and not {"--tls-ca", "--tokens", "--token-file"} & set(given)
        assert not any("secret" in volume for volume in pod["volumes"])
        seen.add(component)
    assert seen == set(PROGRAMS) and charts.named(objects, "Secret") == {}


def test_rest_goes_to_others_in_clear_only_where_all_does():
    for mode, is_clear in (("generate", False), ("off", True)):
        objects = charts.render({"tls": {"mode": mode}, "auth": {"mode": "off"}})
        [pod] = [pod for component, pod in charts.pods(objects) if component == "coordinator"]
        assert ("--insecure-http" in flags(pod["containers"][0])) == is_clear


def test_artifacts_of_several_coordinators_are_in_a_bucket_or_in_a_volume_of_all():
    def coordinator(artifacts):
        store = {"kind": "postgresql", "postgresql": {"existingSecret": "a"}, "artifacts": artifacts}
        objects = charts.render({"coordinator": {"replicas": 2, "store": store}})
        pod = charts.named(objects, "StatefulSet")["mtmc-coordinator"]["spec"]["template"]["spec"]
        return charts.named(objects, "PersistentVolumeClaim"), pod, pod["containers"][0]

    claims, pod, container = coordinator({"s3": {"url": "s3://a/b", "existingSecret": "keys"}})
    assert claims == {} and flags(container)["--artifacts"] == "s3://a/b"
    assert "store" not in {volume["name"] for volume in pod["volumes"] + container["volumeMounts"]}
    keys = {entry["name"]: entry["valueFrom"]["secretKeyRef"] for entry in container["env"] if entry["name"].startswith("AWS_")}
    assert keys["AWS_SECRET_ACCESS_KEY"] == {"name": "keys", "key": "secret-key"} and len(keys) == 2

    claims, pod, container = coordinator({})
    assert claims["mtmc-artifacts"]["spec"]["accessModes"] == ["ReadWriteMany"]
    folder = flags(container)["--artifacts"]
    assert any(folder.startswith(mount["mountPath"]) and mount["name"] == "store" for mount in container["volumeMounts"])

    claims, _, _ = coordinator({"existingClaim": "mine"})
    assert claims == {}
