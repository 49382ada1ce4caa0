"""What needs a node's own view, or the control plane stopped: killing a process in a pod, the API server, CoreDNS."""

import shlex
import subprocess

from cluster import COMMAND_SECONDS, run, say, wait_until

NAMES = "/apis/apps/v1/namespaces/kube-system/deployments"


class Killer:
    """A pod on each node, in the node's process namespace, whose only capability is to kill. It needs a namespace of its
    own, since those of the elections enforce restricted Pod Security."""

    def __init__(self, cluster, images, namespace):
        self.cluster, self.images, self.namespace = cluster, images, namespace

    def install(self):
        self.cluster.namespace(self.namespace, "privileged")
        labels = {"bellwether-e2e/killer": "yes"}
        self.cluster.apply({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "killer", "namespace": self.namespace},
            "spec": {"selector": {"matchLabels": labels}, "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "hostPID": True, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{
                        "name": "killer", "image": self.images.peer, "imagePullPolicy": "IfNotPresent", "args": ["idle"],
                        "securityContext": {"runAsUser": 0, "readOnlyRootFilesystem": True,
                                            "allowPrivilegeEscalation": False,
                                            "capabilities": {"drop": ["ALL"], "add": ["KILL"]}},
                    }],
                }}}})

        def running():
            pods = self.pods()
            missing = [pod for pod in pods if pod["status"].get("phase") != "Running"]
            return (True, "") if pods and not missing else (None, f"{len(missing)} of {len(pods)} do not run yet")

        wait_until(60, "killer on each node", running)

    def pods(self):
        return self.cluster.get(f"/api/v1/namespaces/{self.namespace}/pods")["items"]

    def exec(self, pod, election, *arguments, process=None):
        run("kubectl", "exec", "--namespace", self.namespace, pod, "--", "/peer", "kill",
            "-process", process or election.process, "-pods", election.kill_list(), *arguments, seconds=60)

    def kill(self, election, leader, process=None):
        """Kills the leader's process now, or another one of its pod."""
        node = election.pod(leader)["spec"]["nodeName"]
        (killer,) = (pod for pod in self.pods() if pod["spec"]["nodeName"] == node)
        self.exec(killer["metadata"]["name"], election, process=process)

    def plan(self, election, wait, every, times):
        """Has the leader killed later on, when no command may reach the cluster: each node's killer kills what is its."""
        service = self.cluster.get(election.path("services", election.collector))["spec"]["clusterIP"]
        for pod in self.pods():
            self.exec(pod["metadata"]["name"], election, "-to", f"{service}:9000", "-wait", f"{wait}s",
                      "-every", f"{every}s", "-times", str(times), "-detach")


class ApiServer:
    """Stopped and started by commands that only the cluster's maker knows."""

    what = "the API server"
    commands_need_it = True

    def __init__(self, cluster, stop, start):
        self.cluster, self.commands = cluster, {"stop": stop, "start": start}

    def missing(self):
        if all(self.commands.values()):
            return ""
        return "no command stops the API server of this cluster: STOP and START are not set"

    def stop(self):
        self._run("stop")

    def start(self):
        self._run("start")
        wait_until(60, "answer of the API server", lambda: (self.cluster.text("/readyz"), ""))

    def _run(self, which):
        say(f"{which}: kube-apiserver")
        subprocess.run([*shlex.split(self.commands[which]), "kube-apiserver"], check=True, timeout=COMMAND_SECONDS)


class NameServer:
    """CoreDNS, scaled to no pods."""

    what = "CoreDNS"
    commands_need_it = False

    def __init__(self, cluster):
        self.cluster = cluster
        self.replicas = {item["metadata"]["name"]: item["spec"]["replicas"] for item in cluster.get(
            NAMES, labelSelector="k8s-app=kube-dns")["items"]}

    def missing(self):
        return "" if self.replicas else "kube-system has no Deployment with the label k8s-app=kube-dns"

    def stop(self):
        say("stop: CoreDNS")
        self._scale({name: 0 for name in self.replicas})

        def gone():
            # One that ends still answers.
            pods = self.cluster.get("/api/v1/namespaces/kube-system/pods", labelSelector="k8s-app=kube-dns")["items"]
            return (None, f"{len(pods)} pods are there") if pods else (True, "")

        wait_until(90, "end of CoreDNS", gone)

    def start(self):
        say("start: CoreDNS")
        self._scale(self.replicas)
        for name, number in self.replicas.items():
            def scaled(name=name, number=number):
                status = self.cluster.get(f"{NAMES}/{name}")["status"]
                ready, all_of_them = status.get("readyReplicas", 0), status.get("replicas", 0)
                return (True, "") if ready == all_of_them == number else (None, f"{ready} of {all_of_them} are ready")

            wait_until(60, f"{name} with {number} pods", scaled)

    def _scale(self, replicas):
        for name, number in replicas.items():
            self.cluster.patch(f"{NAMES}/{name}", {"spec": {"replicas": number}})
