"""One election under test: a release of the chart, or pods with client-go's Lease, and its pollers."""

import base64
import json
import math
import os
import time

import proof
import records
from cluster import run, say, wait_until

CHART = os.path.join(os.path.dirname(__file__), "..", "..", "helm", "bellwether")
READY_SECONDS = 120
# How long the application of a pod takes to end that drains.
DRAIN_SECONDS = 20
# The kubelet may update the files of a Secret a minute late, and the sidecar looks at them every 10 s.
STEP_SECONDS = 120
# More than the pollers of one election ever send.
LINES_A_SECOND = 100
RESTRICTED = {
    "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "seccompProfile": {"type": "RuntimeDefault"},
    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
}


def peer_pod(name, image, arguments, labels=None):
    """A pod of the tests' own program."""
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 5, "enableServiceLinks": False,
            "containers": [{
                "name": "peer", "image": image, "imagePullPolicy": "IfNotPresent", "args": arguments,
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "securityContext": RESTRICTED,
            }],
        },
    }


class Election:
    """What both kinds have in common. `where` is what the table calls it."""

    process = ""  # the name of the process that leads
    safety = ""  # what the release promises; nothing where it is no release
    has_epochs = True
    has_pollers = True  # in each pod, beside the watcher outside
    every = "2ms"  # between two questions of the watcher to one pod

    def __init__(self, cluster, images, namespace, name, where, replicas=3):
        self.cluster, self.images, self.namespace, self.name, self.where = cluster, images, namespace, name, where
        self.replicas = replicas
        self.collector = f"{name}-collector"

    def path(self, kind, name=""):
        group = {"pods": "/api/v1", "services": "/api/v1", "secrets": "/api/v1", "endpointslices": "/apis/discovery.k8s.io/v1",
                 "statefulsets": "/apis/apps/v1", "deployments": "/apis/apps/v1"}[kind]
        return f"{group}/namespaces/{self.namespace}/{kind}" + (f"/{name}" if name else "")

    def apply(self, *objects):
        for item in objects:
            item["metadata"]["namespace"] = self.namespace
        self.cluster.apply(*objects)

    def watch(self):
        labels = {"bellwether-e2e/collector": self.name}
        self.apply(
            peer_pod(self.collector, self.images.peer, ["collect"], labels),
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.collector},
             "spec": {"selector": labels, "ports": [{"port": 9000}]}},
            peer_pod(f"{self.name}-watcher", self.images.peer,
                     ["watch", "-to", f"{self.collector}:9000", "-service", self.name, "-every", self.every]))

    def forget(self, *names):
        """Deletes the watch, and pods, services and the like of these names."""
        watchers = [("pods", self.collector), ("pods", f"{self.name}-watcher"), ("services", self.collector)]
        for kind, name in [*watchers, *names]:
            self.cluster.delete(self.path(kind, name))

    def pods(self):
        """All pods of the election, also those that are being deleted."""
        return self.cluster.get(self.path("pods"), labelSelector=self.selector)["items"]

    def runs(self, seconds):
        """What was recorded in the last seconds, and of older runs those that went on."""
        return records.parse(self.cluster.text(
            self.path("pods", self.collector) + "/log", sinceSeconds=math.ceil(seconds),
            # The kubelet looks at all lines for their times, unless it knows from where on.
            tailLines=math.ceil(seconds) * LINES_A_SECOND))

    def is_ready(self, pod):
        return any(condition["type"] == "Ready" and condition["status"] == "True"
                   for condition in pod["status"].get("conditions", []))

    def settled(self, without=(), other_than=None, restarts=None, seconds=READY_SECONDS):
        """Waits until all pods are there and ready and all of them name one leader; returns the leader's run, and the last
        time at which it is proven to lead. (The newest record of any pod may be half a second newer than the leader's.)

        `without`: uids of pods that must have gone. `other_than`: a leadership that must have ended.
        `restarts`: how many restarts of containers there must have been at least."""

        def condition():
            pods = self.pods()
            living = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
            names = sorted(pod["metadata"]["name"] for pod in living)
            if len(pods) != len(living) or len(living) != self.replicas:
                return None, f"{len(living)} pods, {len(pods) - len(living)} more are being deleted"
            old = [pod["metadata"]["name"] for pod in living if pod["metadata"]["uid"] in without]
            if old:
                return None, f"{old} are the old pods"
            unready = [pod["metadata"]["name"] for pod in living if not self.is_ready(pod)]
            if unready:
                return None, f"{unready} are not ready"
            if restarts is not None and restart_count(living) < restarts:
                return None, f"{restart_count(living)} restarts, not {restarts}"
            runs = self.runs(4)
            leader, why = records.watched(runs, names)
            if leader and self.has_pollers:
                leader, why = records.agreed(runs, names, self.has_epochs)
            if leader and leader.leadership == other_than:
                return None, f"{leader.leader} still leads"
            return ((leader, leader.proven[1]), "") if leader else (None, why)

        return wait_until(seconds, f"settled election {self.name}", condition)

    def pod(self, name):
        return self.cluster.get(self.path("pods", name))

    def restart_all(self):
        """New pods, all at once: the kubelet waits longer with each restart of a container in the same one."""
        pods = self.pods()
        for pod in pods:
            self.cluster.delete(self.path("pods", pod["metadata"]["name"]), grace=0)
        return self.settled(without=uids(pods))

    def kill_list(self):
        return ",".join(f"{pod['metadata']['name']}={pod['metadata']['uid']}={pod['status']['podIP']}"
                        for pod in self.pods() if pod["status"].get("podIP"))


def uids(pods):
    return {pod["metadata"]["uid"] for pod in pods}


def restart_count(pods):
    return sum(status["restartCount"] for pod in pods
               for status in pod["status"].get("initContainerStatuses", []) + pod["status"].get("containerStatuses", []))


class Release(Election):
    """A release of the chart, with a poller as the application in each pod."""

    process = "bellwether"

    def __init__(self, *arguments, values=None, **more):
        super().__init__(*arguments, **more)
        self.values = values or {}
        self.kind = self.values.get("kind", "StatefulSet")
        self.safety = "majority" if self.kind == "StatefulSet" else "classic"
        self.selector = f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component=member"
        self.tag = self.images.tags[0]
        self.secret = f"{self.name}-peer-secret"  # the one that the chart makes
        self.app = {
            "image": self.images.peer, "args": ["poll", "-to", f"{self.collector}:9000", "-every", "10ms"],
            "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        }

    def install(self):
        say(f"{self.name}: installing as {self.kind}")
        self.watch()
        self.helm("install")

    def remove(self):
        run("helm", "uninstall", self.name, "--namespace", self.namespace, "--wait", "--timeout", "90s")
        self.forget()

    def helm(self, verb):
        """Installs or upgrades with the values as they are now."""
        repository, _, _ = self.images.bellwether.rpartition(":")
        values = {
            "fullnameOverride": self.name, "replicas": self.replicas,
            "image": {"repository": repository, "tag": self.tag},
            "app": self.app,
            **self.values,
        }
        run("helm", verb, self.name, CHART, "--namespace", self.namespace, "--timeout", "90s", "--values", "-",
            given=json.dumps(values))

    def workload(self):
        return self.path("statefulsets" if self.kind == "StatefulSet" else "deployments", self.name)

    def ask(self, pod, path):
        """What the pod's status API answers, by the API server's proxy."""
        return self.cluster.get(self.path("pods", f"{pod}:4040") + f"/proxy/{path}")

    def led_by_another(self, leadership, seconds):
        """Waits until a pod leads in a later epoch."""

        def condition():
            others = sorted({run.leader for run in self.runs(4) if run.state == "leads" and run.epoch > leadership[1]})
            return (others, "") if others else (None, "the first leader still leads")

        return wait_until(seconds, "another leader", condition)

    def replicas_are(self, count):
        """What `kubectl scale` does: the voters stay those that the pods were started with."""
        self.cluster.patch(self.workload(), {"spec": {"replicas": count}})

        def condition():
            left = [pod["metadata"]["name"] for pod in self.pods()]
            return (True, "") if len(left) == count else (None, f"there are {left}")

        wait_until(READY_SECONDS, f"{count} pods", condition)

    def proofs(self):
        """What each member says of its proof, by the names of the pods."""
        names = [pod["metadata"]["name"] for pod in self.pods()]
        return {name: proof.read(self.cluster.text(self.path("pods", f"{name}:4040") + "/proxy/metrics")) for name in names}

    def files(self):
        """What is in the Secret of the members' proof."""
        data = self.cluster.get(self.path("secrets", self.secret))["data"]
        return {name: base64.b64decode(content).decode() for name, content in data.items()}

    def take(self, step):
        """Changes the Secret, and waits until all members have read it and made their links anew; returns the seconds."""
        (before,) = {found.keys for found in self.proofs().values()}
        began, seen = time.monotonic(), []
        self.cluster.patch(self.path("secrets", self.secret), {"stringData": step.files})
        for pod in self.pods():
            # A change of the pod has the kubelet look at its volumes now.
            self.cluster.patch(self.path("pods", pod["metadata"]["name"]),
                               {"metadata": {"annotations": {"bellwether-e2e/changed": str(began)}}})

        def condition():
            # Twice: a member shows its new keys a moment before it counts the links of the former ones.
            why = step.lacks(before, self.proofs())
            seen.append(not why)
            return (True, "") if seen[-2:] == [True, True] else (None, why or "it was seen once")

        wait_until(STEP_SECONDS, f"{step.what} in use by all members", condition)
        return time.monotonic() - began

    def voters_follow(self):
        """Waits until the leader counts the voters that it should."""
        wanted = [f"{self.name}-{ordinal}" for ordinal in range(self.replicas)]

        def condition():
            leader, _ = self.settled()
            view = self.ask(leader.leader, "members")["voters"]
            voters = sorted(view["names"]) if view else []
            return (True, "") if voters == wanted else (None, f"{voters} vote, not {wanted}")

        wait_until(60, "voters", condition)


class CertifiedRelease(Release):
    """A release with certificates. One Secret with the names of all pods serves all of them."""

    def __init__(self, *arguments, values=None, **more):
        super().__init__(*arguments, values=values, **more)
        self.secret = f"{self.name}-certificate"
        self.values = {"peerCertificate": {"enabled": True, "volume": {"secret": {"secretName": self.secret}}}, **self.values}
        self.authority = None

    def names(self):
        return [f"{self.name}-{ordinal}.{self.name}.{self.namespace}.svc" for ordinal in range(self.replicas)]

    def install(self):
        self.authority = proof.Authority()
        self.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self.secret},
                    "stringData": {"ca.crt": self.authority.pem, **self.authority.certificate(self.names())}})
        super().install()

    def remove(self):
        super().remove()
        self.forget(("secrets", self.secret))


class DrainingRelease(Release):
    """A release whose application takes long to end."""

    def __init__(self, *arguments, values=None, **more):
        super().__init__(*arguments, values=values, **more)
        self.app["lifecycle"] = {"preStop": {"sleep": {"seconds": DRAIN_SECONDS}}}


class ExecRelease(Release):
    """A release whose application is a command that runs while its pod leads, and reports as a poller does. Each pod
    announces its application's URL."""

    has_pollers = False
    command = "peer"  # the name of its process

    def __init__(self, *arguments, values=None, **more):
        super().__init__(*arguments, values=values, **more)
        self.app |= {"exec": True, "command": ["/peer", *self.app.pop("args")]}
        self.values = {"config": {"announce": {"url": "http://$(POD_IP):8080"}}, **self.values}

    def settled(self, **expected):
        """The leader's command runs as well; the time is one at which both are proven."""

        def condition():
            leader, at = super(ExecRelease, self).settled(**expected)
            for run in records.current(self.runs(4)):
                first, last = run.proven
                if run.target == "own" and run.observer == leader.leader and first <= min(at, last):
                    return (leader, min(at, last)), ""
            return None, f"the command of {leader.leader} does not run"

        return wait_until(READY_SECONDS, f"settled command of {self.name}", condition)

    def inside(self, pod, container, *command):
        return run("kubectl", "exec", "--namespace", self.namespace, pod, "-c", container, "--", *command)

    def announced(self):
        """Each sidecar names the URL of the leader's application, by its address."""
        leader, _ = self.settled()
        wanted = f"http://{self.pod(leader.leader)['status']['podIP']}:8080"
        for pod in self.pods():
            found = self.ask(pod["metadata"]["name"], "leader")["leader"].get("announce")
            if found != {"url": wanted}:
                raise RuntimeError(f"{pod['metadata']['name']} says that {leader.leader} announces {found}, not {wanted}")


class HealthRelease(Release):
    """A release whose application is asked whether it is healthy, and says what it was told."""

    port = 8081

    def __init__(self, *arguments, values=None, **more):
        super().__init__(*arguments, values=values, **more)
        self.app["args"] = [*self.app["args"], "-health", f":{self.port}"]
        self.values = {"config": {"app-health": f"http://127.0.0.1:{self.port}/healthz"}, **self.values}

    def tell(self, pod, word):
        """Has the pod's application be `sick`, or `well`."""
        self.cluster.text(self.path("pods", f"{pod}:{self.port}") + f"/proxy/{word}")


class LeaderReadyRelease(Release):
    """A release of which only the leader's pod is ready."""

    def is_ready(self, pod):
        return all(status["started"] for status in pod["status"].get("initContainerStatuses", [{"started": False}]))

    def endpoints(self):
        """Names of the pods that the leader's Service sends to."""
        slices = self.cluster.get(self.path("endpointslices"),
                                  labelSelector=f"kubernetes.io/service-name={self.name}-leader")["items"]
        return sorted(endpoint["targetRef"]["name"] for one in slices for endpoint in one.get("endpoints") or []
                      if endpoint["conditions"].get("ready"))


class LeaseElection(Election):
    """Pods of a Deployment that elect by client-go and a Lease. They answer as a sidecar does."""

    process = "peer"
    has_epochs = False
    has_pollers = False
    every = "10ms"

    def __init__(self, *arguments, times, **more):
        super().__init__(*arguments, **more)
        self.times = times
        self.selector = f"bellwether-e2e/lease={self.name}"

    def install(self):
        say(f"{self.name}: installing")
        self.watch()
        labels = {"bellwether-e2e/lease": self.name}
        duration, deadline, retry = self.times
        pod = peer_pod(self.name, self.images.peer, [
            "lease", "-name", self.name, "-duration", duration, "-deadline", deadline, "-retry", retry], labels)
        spec = pod["spec"]
        spec["automountServiceAccountToken"] = True
        spec["serviceAccountName"] = self.name
        spec["containers"][0]["env"].append(
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}})
        spec["containers"][0]["readinessProbe"] = {"tcpSocket": {"port": 4040}, "periodSeconds": 1}
        rbac = "rbac.authorization.k8s.io"
        self.apply(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": self.name}},
            {"apiVersion": f"{rbac}/v1", "kind": "Role", "metadata": {"name": self.name},
             "rules": [{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
                        "verbs": ["get", "create", "update"]}]},
            {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": {"name": self.name},
             "roleRef": {"apiGroup": rbac, "kind": "Role", "name": self.name},
             "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}]},
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": self.name},
             "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": labels,
                      "ports": [{"port": 4040}]}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": self.name},
             "spec": {"replicas": self.replicas, "selector": {"matchLabels": labels},
                      "template": {"metadata": {"labels": labels}, "spec": spec}}})

    def remove(self):
        self.forget(("deployments", self.name), ("services", self.name))
