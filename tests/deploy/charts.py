# SPDX-License-Identifier: Apache-2.0
"""The chart deploy/helm/mtmc, rendered by Helm: the program if it is there, else its library in a wheel."""

import copy
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy/helm/mtmc"
EXAMPLES = ROOT / "deploy/helm/examples"
RELEASE = "mtmc"
NAMESPACE = "kernels"
CACHE = pathlib.Path(os.environ.get("MTMC_KUBE_CACHE", pathlib.Path.home() / ".cache/mtmc/kube"))


class ChartError(Exception):
    """What Helm says of settings that it refuses."""


def program():
    """Path of helm, or None."""
    return shutil.which("helm", path=f"{os.environ['PATH']}:{CACHE}")


def library():
    """Helm's own code for Python, or None."""
    try:
        import helm_python
    except ImportError:
        return None
    return helm_python


def missing():
    """Why nothing can be rendered here; empty if it can."""
    if program() or library():
        return ""
    return "there is neither helm nor its wheel; run scripts/setup or scripts/kube-binaries helm"


def example(name):
    return yaml.safe_load((EXAMPLES / f"{name}.yaml").read_text())


def merged(base, changes):
    """`base` with `changes`, as Helm puts one file of settings over another."""
    result = copy.deepcopy(base)
    for key, value in changes.items():
        is_deep = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if is_deep else value
    return result


def _run(*command):
    done = subprocess.run([program(), *map(str, command)], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode != 0:
        raise ChartError(done.stdout + done.stderr)
    return done.stdout


def _file(settings):
    file = tempfile.NamedTemporaryFile("w", suffix=".yaml")
    yaml.safe_dump(settings, file)
    file.flush()
    return file


def lint(settings):
    """Messages of `helm lint`, but for a missing icon."""
    if program():
        with _file(settings) as file:
            found = _run("lint", "--strict", CHART, "--values", file.name).splitlines()
            found = [line for line in found if line.startswith("[")]
    else:
        report = library().lint(str(CHART), values=settings)
        found = [message["error"] for message in report["messages"]] + report["errors"]
    return [message for message in found if "icon is recommended" not in message]


def render(settings):
    """Every object of the chart with these settings."""
    if program():
        with _file(settings) as file:
            text = _run("template", RELEASE, CHART, "--namespace", NAMESPACE, "--values", file.name)
        return [object for object in yaml.safe_load_all(text) if object]
    helm = library()
    try:
        with helm.Chart.load(str(CHART)) as chart:
            files = chart.render(settings, name=RELEASE, namespace=NAMESPACE)
    except helm.HelmError as error:
        raise ChartError(str(error)) from error
    texts = [text for name, text in sorted(files.items()) if not name.endswith(".txt")]
    return [object for text in texts for object in yaml.safe_load_all(text) if object]


@functools.cache
def rendered(name):
    """Every object of an example. Not to be changed."""
    return render(example(name))


def pods(objects):
    """(component, pod spec) of everything that starts pods."""
    for object in objects:
        if object["kind"] == "Pod":
            yield object["metadata"]["labels"]["app.kubernetes.io/component"], object["spec"]
        elif object["kind"] in ("Deployment", "StatefulSet", "Job"):
            template = object["spec"]["template"]
            yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]


def named(objects, kind):
    return {object["metadata"]["name"]: object for object in objects if object["kind"] == kind}
