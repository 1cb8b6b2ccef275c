# SPDX-License-Identifier: Apache-2.0
"""Alerts, configuration and dashboards, without a running service."""

import pathlib
import subprocess
import sys

import deployed
import pytest
import yaml

needs_promtool = pytest.mark.skipif(deployed.PROMTOOL is None, reason="promtool is missing; scripts/setup fetches it")


def promtool(*arguments):
    done = subprocess.run(
        [deployed.PROMTOOL, *map(str, arguments)], cwd=deployed.PROMETHEUS, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
def test_the_configuration_is_one_of_prometheus():
    promtool("check", "config", "prometheus.yml")


@needs_promtool
def test_alerts_fire_when_they_must_and_only_then():
    promtool("test", "rules", "rules_test.yml")


def alerts():
    return [rule for rule in deployed.rules() if "alert" in rule]


def test_each_alert_is_tested_both_ways():
    tested = {True: set(), False: set()}
    for test in yaml.safe_load((deployed.PROMETHEUS / "rules_test.yml").read_text())["tests"]:
        for case in test["alert_rule_test"]:
            tested[bool(case.get("exp_alerts"))].add(case["alertname"])
    names = {alert["alert"] for alert in alerts()}
    assert names == tested[True] == tested[False]


def test_each_alert_has_a_severity_a_sentence_and_a_runbook_entry():
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket"), alert["alert"]
        page, _, anchor = alert["annotations"]["runbook"].partition("#")
        assert deployed.ROOT / page == deployed.PAGE
        assert anchor == alert["alert"].lower() and anchor in deployed.headings(), anchor
        assert alert["annotations"]["summary"], alert["alert"]


def test_each_metric_of_a_rule_or_panel_is_documented():
    known = deployed.documented()
    expressions = [rule["expr"] for rule in deployed.rules()]
    expressions += [query for board in deployed.dashboards().values() for _, query in deployed.queries(board)]
    unknown = {name for expression in expressions for name in deployed.metrics_in(expression)} - set(known)
    assert not unknown, unknown


def test_the_dashboards_are_as_their_script_writes_them():
    script = deployed.GRAFANA / "make-dashboards"
    done = subprocess.run([sys.executable, str(script), "--check"], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", deployed.dashboards())
def test_a_dashboard_can_be_provisioned_anywhere(name):
    board = deployed.dashboards()[name]
    assert board["uid"] == name
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
        if panel["type"] != "row":
            assert panel["description"] and panel["targets"], panel["title"]


def test_the_containers_mount_what_is_there():
    compose = deployed.ROOT / "deploy/compose/monitoring.yaml"
    services = yaml.safe_load(compose.read_text())["services"]
    assert set(services) == {"prometheus", "grafana"}
    for service in services.values():
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (compose.parent / source).exists(), source
        assert not service["image"].endswith(":latest") and ":" in service["image"]


def test_the_grafana_provisioning_names_our_folder_and_source():
    folder = deployed.GRAFANA / "provisioning"
    sources = yaml.safe_load((folder / "datasources/prometheus.yaml").read_text())["datasources"]
    providers = yaml.safe_load((folder / "dashboards/mtmc.yaml").read_text())["providers"]
    assert sources[0]["type"] == "prometheus" and sources[0]["uid"]
    compose = yaml.safe_load((deployed.ROOT / "deploy/compose/monitoring.yaml").read_text())
    mounted = [volume.split(":")[1] for volume in compose["services"]["grafana"]["volumes"]]
    assert providers[0]["options"]["path"] in mounted
    assert pathlib.PurePosixPath("/etc/grafana/provisioning").as_posix() in mounted
