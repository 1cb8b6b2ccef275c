# SPDX-License-Identifier: Apache-2.0
"""What is deployed of dashboards, rules and documents, as the tests read it."""

import json
import os
import pathlib
import re
import shutil

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROMETHEUS = ROOT / "deploy/prometheus"
GRAFANA = ROOT / "deploy/grafana"
PAGE = ROOT / "docs/monitoring.md"

# Where scripts/setup puts what the host does not have.
_PATH = f"{os.environ.get('PATH', '')}:{ROOT}/.venv/bin"
PROMETHEUS_PROGRAM = shutil.which("prometheus", path=_PATH)
PROMTOOL = shutil.which("promtool", path=_PATH)

# A name of ours, of gRPC's or of a process; `mtmc:...` is a recorded one.
_METRIC = re.compile(r"\b((?:mtmc|grpc_server|process)_[a-z0-9_]+)\b")


def dashboards():
    """Dashboards by file name."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((GRAFANA / "dashboards").glob("*.json"))}


def queries(board):
    """(panel's title, query) of every panel and every variable of a dashboard."""
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


def rules():
    """All rules, recorded ones and alerts."""
    for path in (PROMETHEUS / "rules").glob("*.yml"):
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def metrics_in(expression):
    """Names of metrics in an expression, those of a histogram without their suffix."""
    known = documented()
    for name in _METRIC.findall(expression):
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        yield base if base in known else name


def documented():
    """Labels by metric, from the tables of the page."""
    found = {}
    for line in PAGE.read_text().splitlines():
        row = re.match(r"\| `([a-z_:0-9]+)(?:\{([a-z_, ]*)\})?` \|", line)
        if row:
            found[row.group(1)] = set(filter(None, re.split(r", *", row.group(2) or "")))
    return found


def headings():
    """Anchors of the page's headings, as web pages of Markdown have them."""
    titles = re.findall(r"^#+ (.*)$", PAGE.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
