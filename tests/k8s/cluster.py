"""The cluster that KUBECONFIG names: its API through one `kubectl proxy`, and the commands kubectl and helm."""

import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import urllib.parse

# Longer than anything takes here; only what hangs meets it.
COMMAND_SECONDS = 180
REQUEST_SECONDS = 20


class Refused(Exception):
    """The API server's answer was an error."""

    def __init__(self, code, message):
        super().__init__(f"HTTP {code}: {message}")
        self.code = code


class Unreachable(Exception):
    """The API server did not answer."""


def say(text, began=time.monotonic()):
    """A line of progress with the seconds since the start."""
    print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)


def wait_until(seconds, what, condition, every=0.2):
    """Polls until `condition()` returns (something, ""); then returns that something. Its second part says why not yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            found, why = condition()
        except (Refused, Unreachable) as error:
            found, why = None, str(error)
        if found is not None:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"no {what} within {seconds} s: {why}")
        time.sleep(every)


def run(*command, given=None, seconds=COMMAND_SECONDS, folder=None):
    """Runs a command; returns what it printed, or raises with all of that."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}".rstrip())
    return done.stdout + done.stderr


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=REQUEST_SECONDS)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Cluster:
    """Use as `with Cluster() as cluster`. kubectl does whatever the kubeconfig wants for logging in."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="bellwether-e2e-")
        path = os.path.join(self.folder, "socket")
        self.proxy = subprocess.Popen(["kubectl", "proxy", f"--unix-socket={path}"], stdout=subprocess.DEVNULL)
        self.local = threading.local()
        self.path = path
        wait_until(30, "answer of kubectl proxy", lambda: (self.get("/version"), ""))
        return self

    def __exit__(self, *_):
        self.proxy.terminate()
        self.proxy.wait()
        shutil.rmtree(self.folder)

    def request(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body)
        for attempt in range(2):
            # A connection for each thread. A kept one may have ended meanwhile; only what changes nothing is asked again.
            kept = getattr(self.local, "connection", None) if method == "GET" else None
            connection = self.local.connection = kept or _UnixConnection(self.path)
            try:
                connection.request(method, path, data, {"Content-Type": kind} if data else {})
                answer = connection.getresponse()
                text = answer.read().decode(errors="replace")
                break
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.local.connection = None
                if attempt or not kept:
                    raise Unreachable(f"{method} {path}: {error}") from error
        if answer.status >= 400:
            # kubectl proxy answers 502 when it cannot reach the API server.
            if answer.status == 502:
                raise Unreachable(text.strip())
            try:
                text = json.loads(text)["message"]
            except (ValueError, KeyError, TypeError):
                pass
            raise Refused(answer.status, text.strip())
        return text

    def get(self, path, **query):
        return json.loads(self.text(path, **query))

    def text(self, path, **query):
        return self.request("GET", path + ("?" + urllib.parse.urlencode(query) if query else ""))

    def delete(self, path, grace=None):
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        try:
            self.request("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **body})
        except Refused as error:
            if error.code != 404:
                raise

    def patch(self, path, body):
        return json.loads(self.request("PATCH", path, body, "application/strategic-merge-patch+json"))

    def apply(self, *objects):
        run("kubectl", "apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def namespace(self, name, security="restricted"):
        """A new namespace that enforces that level of Pod Security."""
        self.forget(name)
        labels = {f"pod-security.kubernetes.io/{mode}": security for mode in ("enforce", "warn")}
        self.request("POST", "/api/v1/namespaces", {
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "bellwether-e2e", **labels}}})
        # Pods cannot be made before it is there.
        wait_until(30, f"service account in {name}", lambda: (
            self.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"), ""))

    def forget(self, *names):
        """Deletes namespaces with all that is in them, and waits for their end."""
        for name in names:
            self.delete(f"/api/v1/namespaces/{name}")

        def gone():
            left = [item["metadata"]["name"] for item in self.get("/api/v1/namespaces")["items"]]
            left = [name for name in names if name in left]
            return (None, f"{left} are still there") if left else (True, "")

        wait_until(240, "end of the namespaces", gone, every=0.5)
