"""What is looked at once: the chart's own test, releases side by side, and manifests that the API server takes."""

import glob
import os
import subprocess

from cluster import COMMAND_SECONDS, Refused, run, say, wait_until
from election import CHART, peer_pod

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", ".."))
OPERATOR = "monitoring.coreos.com"


class Checks:
    """A list of (what, verdict, detail)."""

    def __init__(self):
        self.found = []

    def check(self, what, function, *arguments):
        try:
            detail, verdict = function(*arguments) or "", "ok"
        except Skipped as reason:
            detail, verdict = str(reason), "SKIPPED"
        except Exception as error:
            detail, verdict = f"{type(error).__name__}: {error}", "FAILED"
        self.found.append((what, verdict, detail))
        say(f"{verdict}: {what}" + (f": {detail}" if detail else ""))

    def markdown(self):
        lines = ["| check | | |", "| --- | --- | --- |"]
        for what, verdict, detail in self.found:
            first = detail.splitlines()[0] if detail else ""
            lines.append(f"| {what} | {first.replace('|', '/')} | {verdict} |")
        return "\n".join(lines) + "\n"


class Skipped(Exception):
    """It could not be looked at, for this reason."""


def helm_test(election):
    run("helm", "test", election.name, "--namespace", election.namespace, "--timeout", "100s")


def agree(election):
    """`settled` compares what every pod's own sidecar answers with the pods that the API lists."""
    leader, _ = election.settled()
    return f"{leader.leader} in epoch {leader.epoch}"


def apart(elections):
    """Each release's members are its own pods and no others."""
    counts = []
    for election in elections:
        def own(election=election):
            leader, _ = election.settled()
            # Not before: right after the installation some pods may not have been made yet.
            pods = sorted(pod["metadata"]["name"] for pod in election.pods())
            members = election.ask(leader.leader, "members")["members"]
            alive = sorted(member["name"] for member in members if member["state"] == "alive")
            strangers = sorted({member["name"] for member in members
                                if not member["name"].startswith(f"{election.name}-")})
            if strangers:
                raise RuntimeError(f"{election.name} counts {strangers} among its members")
            return (len(pods), "") if alive == pods else (None, f"{alive} are alive, and the pods are {pods}")

        counts.append(f"{election.name}: {wait_until(60, f'members of {election.name}', own)}")
    return ", ".join(counts)


def refused(cluster, namespace, image):
    """The namespace really enforces restricted Pod Security, or the rest would prove nothing."""
    try:
        cluster.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "rootish"},
            "spec": {"containers": [{"name": "c", "image": image}]}})
    except Refused as error:
        if error.code == 403 and "restricted" in str(error):
            return
        raise
    raise RuntimeError("a pod without a security context was admitted")


def admitted(namespace, manifests):
    """`kubectl apply --dry-run=server`; a warning counts, since Pod Security only warns of templates."""
    done = subprocess.run(
        ["kubectl", "apply", "--dry-run=server", "--namespace", namespace, "-f", "-"],
        input=manifests, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if done.returncode != 0 or "Warning" in done.stderr:
        raise RuntimeError(done.stderr.strip())
    return f"{len(done.stdout.splitlines())} objects"


def scenarios(cluster, checks, namespace, crds):
    """Every scenario of the charts and every file of deploy/ that is for a cluster."""
    with_operator = OperatorKinds(cluster, crds)
    try:
        for chart in ("bellwether", "own-chart"):
            for values in sorted(glob.glob(os.path.join(ROOT, "helm", chart, "ci", "*-values.yaml"))):
                checks.check(f"API server takes helm/{chart}/ci/{os.path.basename(values)}",
                             scenario, os.path.join(CHART, "..", chart), values, namespace, with_operator)
        for folder in ("manifests", "patterns"):
            for path in sorted(glob.glob(os.path.join(ROOT, "deploy", folder, "*.yaml"))):
                with open(path) as file:
                    checks.check(f"API server takes deploy/{folder}/{os.path.basename(path)}",
                                 admitted, namespace, file.read())
        checks.check("API server takes deploy/kustomize/example, but for what its own example lacks", kustomized)
    finally:
        with_operator.forget()


def scenario(chart, values, namespace, with_operator):
    manifests = run_quietly("helm", "template", "web", chart, "--namespace", namespace, "--values", values,
                            "--kube-version", with_operator.version)
    if OPERATOR in manifests and not with_operator.there:
        raise Skipped(f"the cluster has no kinds of {OPERATOR}, and CRDS names no folder with them")
    return admitted(namespace, manifests)


def injected(cluster, namespace, images, program):
    """`kubectl get | bellwether inject | kubectl apply` on a StatefulSet that runs; the same again changes nothing; and out
    again."""
    if not program:
        raise Skipped("BELLWETHER names no program")
    labels, path = {"app": "plain"}, f"/apis/apps/v1/namespaces/{namespace}/statefulsets/plain"
    pod = peer_pod("plain", images.peer, ["idle"], labels)
    cluster.apply({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "plain", "namespace": namespace},
        "spec": {"replicas": 3, "serviceName": "plain", "podManagementPolicy": "Parallel",
                 "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod["spec"]}}})

    def through(*flags):
        """Pipes it through; returns its generation, which rises with each change of it."""
        found = run_quietly("kubectl", "get", "statefulset", "plain", "--namespace", namespace, "-o", "yaml")
        passed = run_quietly(program, "inject", "--strict", *flags, "-", given=found)
        run("kubectl", "apply", "--namespace", namespace, "-f", "-", given=passed)
        run("kubectl", "rollout", "status", "statefulset/plain", "--namespace", namespace, "--timeout", "100s")
        return cluster.get(path)["metadata"]["generation"]

    def agreed():
        answers = [cluster.get(f"/api/v1/namespaces/{namespace}/pods/plain-{ordinal}:4040/proxy/leader")
                   for ordinal in range(3)]
        leaders = {(answer["leader"]["name"], answer["epoch"]) for answer in answers}
        return (leaders, "") if len(leaders) == 1 else (None, f"{leaders} lead")

    run("kubectl", "rollout", "status", "statefulset/plain", "--namespace", namespace, "--timeout", "100s")
    first = through("--image", images.bellwether)
    ((leader, _),) = wait_until(30, "leader among the injected pods", agreed)
    if through("--image", images.bellwether) != first:
        raise RuntimeError("a second injection changed the StatefulSet")
    through("--uninject")
    spec = cluster.get(path)["spec"]["template"]["spec"]
    cluster.delete(path)
    cluster.delete(f"/api/v1/namespaces/{namespace}/services/plain-bellwether")
    if spec.get("initContainers") or len(spec["containers"]) != 1:
        raise RuntimeError(f"something is left of the sidecar: {spec}")
    return f"{leader} led"


def kustomized():
    """The example's own application has no security context, so no restricted namespace is asked."""
    manifests = run_quietly("kubectl", "kustomize", os.path.join(ROOT, "deploy", "kustomize", "example"))
    return admitted("default", manifests)


def run_quietly(*command, given=None):
    """Its output without its remarks."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


class OperatorKinds:
    """The Prometheus operator's kinds: those that are there, or else those of a folder, for as long as it takes."""

    def __init__(self, cluster, folder):
        self.version = cluster.get("/version")["gitVersion"]
        groups = [group["name"] for group in cluster.get("/apis")["groups"]]
        self.there, self.made = OPERATOR in groups, None
        if self.there or not folder:
            return
        files = sorted(glob.glob(os.path.join(folder, "*.yaml")))
        if not files:
            raise RuntimeError(f"CRDS names {folder}, which holds no .yaml file")
        self.made = [argument for file in files for argument in ("-f", file)]
        run("kubectl", "create", *self.made)
        run("kubectl", "wait", "--for=condition=Established", "--timeout=60s", *self.made)
        self.there = True

    def forget(self):
        if self.made:
            run("kubectl", "delete", "--wait=true", *self.made)
