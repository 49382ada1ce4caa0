"""The end-to-end tests as one command; `run --help` tells of its settings, README.md of what it does."""

import argparse
import collections
import os
import shlex
import signal
import statistics
import subprocess
import sys
import time
from functools import partial

import picture
import rows
from checks import Checks, agree, apart, helm_test, injected, refused, scenarios
from cluster import COMMAND_SECONDS, Cluster, say
from election import (DRAIN_SECONDS, CertifiedRelease, DrainingRelease, ExecRelease, HealthRelease, LeaderReadyRelease,
                      LeaseElection, Release)
from node import ApiServer, Killer, NameServer
from table import as_json, markdown

Images = collections.namedtuple("Images", "bellwether peer tags")
# Everything is in these namespaces, and goes with them.
MAIN, LEASES, NODE = "bellwether-e2e", "bellwether-e2e-leases", "bellwether-e2e-node"

ELECTIONS = ["web", "batch", "gate", "cert", "slow", "work", "ill", "lease", "fast"]

DEFAULT = ("15s", "10s", "2s")
# The API refuses a Lease of less than a second; client-go wants duration > deadline > 1.2 * retry.
FASTEST = ("1s", "900ms", "100ms")
# Nothing but a leader that was told to stop (or killed, in classic) may cost more than this, in the middle of all rounds. On
# a slow machine it may cost more, and so may the start of a command.
GAP_MS = 50
# How much later than its pod leads a command under `bellwether exec` runs there; and how often leadership is given up.
COMMAND_MS, LOSSES = 100, 20
# What `slowness` computes takes so long on a machine of usual speed.
USUAL_SECONDS = 0.07


def arguments():
    environment = os.environ.get
    parser = argparse.ArgumentParser(
        prog="tests/k8s/run", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the chart on the cluster that KUBECONFIG names, and measures it.",
        epilog="""environment:
  IMAGE        image of bellwether (local/bellwether:dev)
  NEXT_TAG     a second tag of the same image, for `helm upgrade` (next)
  PEER_IMAGE   image of the tests' own program (local/bellwether-peer:dev)
  LOAD         command that loads an image archive, such as `kind load image-archive`
  STOP, START  commands that stop and start a program of the control plane, whose name is added
  BELLWETHER   the program, for `inject` between kubectl and kubectl
  CRDS         folder with the Prometheus operator's CRDs, for a cluster without them""")
    parser.add_argument("archives", nargs="*", help="image archives to load first, with the command in LOAD")
    parser.add_argument("--rounds", type=int, default=10, help="of each row (10)")
    parser.add_argument("--only", action="append", default=[], metavar="TEXT", help="only rows with TEXT in their name")
    parser.add_argument("--election", action="append", default=[], choices=ELECTIONS, help="only these elections")
    parser.add_argument("--no-checks", action="store_true", help="leave out what is looked at once")
    parser.add_argument("--keep", action="store_true", help="leave everything as it is at the end")
    parser.add_argument("--out", metavar="FOLDER", help="write table.md and results.json there")
    parser.add_argument("--picture", metavar="FILE", help="draw a killed leader of each election as SVG there")
    given = parser.parse_args()
    given.images = Images(environment("IMAGE", "local/bellwether:dev"),
                          environment("PEER_IMAGE", "local/bellwether-peer:dev"), [])
    if ":" not in given.images.bellwether.rpartition("/")[2]:
        parser.error(f"IMAGE={given.images.bellwether} has no tag; expected NAME:TAG")
    given.images.tags.extend([given.images.bellwether.rpartition(":")[2], environment("NEXT_TAG", "next")])
    given.program = environment("BELLWETHER", "")
    given.elections = given.election or ELECTIONS
    given.load, given.crds = environment("LOAD", ""), environment("CRDS", "")
    given.stop, given.start = environment("STOP", ""), environment("START", "")
    if given.archives and not given.load:
        parser.error("archives are given, and LOAD does not say how to load them, for instance LOAD='kind load image-archive'")
    if given.rounds < 1:
        parser.error(f"--rounds {given.rounds}; at least 1")
    return given


def slowness():
    """How many times as long as usual this machine computes, at least 1."""
    def seconds():
        began = time.monotonic()
        sum(number * number for number in range(1_000_000))
        return time.monotonic() - began

    return max(1, statistics.median(seconds() for _ in range(9)) / USUAL_SECONDS)


def main():
    given = arguments()
    slow = slowness()
    given.gap, given.command = GAP_MS * slow, COMMAND_MS * slow
    say(f"bounds of {GAP_MS} and {COMMAND_MS} ms count {slow:.1f} times, for the speed of this machine")
    for archive in given.archives:
        say(f"loading {archive}")
        subprocess.run([*shlex.split(given.load), archive], check=True, timeout=COMMAND_SECONDS, stdout=subprocess.DEVNULL)
    checks = Checks()
    with Cluster() as cluster:
        killer = Killer(cluster, given.images, NODE)
        lab = rows.Lab(killer, given.rounds, given.only)
        try:
            for namespace in (MAIN, LEASES):
                cluster.namespace(namespace)
            killer.install()
            if not given.no_checks:
                checks.check("the namespace refuses what is not restricted", refused, cluster, MAIN, given.images.peer)
                scenarios(cluster, checks, MAIN, given.crds)
                checks.check("inject: into a StatefulSet that runs, again, and out again", injected, cluster, MAIN, given.images,
                             given.program)
            main_rows(cluster, given, lab, checks)
            for namespace in (MAIN, LEASES):
                cluster.namespace(namespace)
            outages(cluster, given, lab, checks)
        finally:
            if not given.keep:
                say("deleting everything")
                cluster.forget(MAIN, LEASES, NODE)
    if given.only and not lab.rows:
        sys.exit(f"error: no row has one of {given.only} in its name")
    report(given, lab, checks)
    if given.picture:
        draw(given.picture, lab.rows)
    bad = [row for row in lab.rows if row.verdict == "FAILED"] + [one for one in checks.found if one[1] == "FAILED"]
    skipped = [row for row in lab.rows if row.skipped] + [one for one in checks.found if one[1] == "SKIPPED"]
    say(f"{len(lab.rows)} rows and {len(checks.found)} checks: {len(bad)} failed, {len(skipped)} SKIPPED")
    return 1 if bad else 0


def report(given, lab, checks):
    text = markdown(lab.rows) + ("\n" + checks.markdown() if checks.found else "")
    print(text, flush=True)
    if given.out:
        os.makedirs(given.out, exist_ok=True)
        for name, content in (("table.md", text), ("results.json", as_json(lab.rows, checks.found))):
            with open(os.path.join(given.out, name), "w") as file:
                file.write(content)


def draw(path, wanted):
    """The last round of each row in which a leader was killed."""
    bands = [picture.band(f"{row.where}", *row.latest) for row in wanted if row.what == rows.KILLED and row.latest]
    bands = [band for band in bands if band]
    if not bands:
        sys.exit(f'error: nothing to draw: no round of the row "{rows.KILLED}" has passed; leave out --only, or name that row')
    with open(path, "w") as file:
        file.write(picture.svg(bands))


def track(lab, election, *steps):
    """Installs an election, does the steps, and removes it; what ends that is a failure of a row. One election at a time:
    pods that start and pollers that ask would make all gaps longer."""
    try:
        election.install()
        for step in steps:
            step(election)
    except Exception as error:
        row = rows.Row("the track of all rows", election.where)
        rows.failed(row, error)
        lab.rows.append(row)
    finally:
        election.remove()


def main_rows(cluster, given, lab, checks):
    def release(sort, name, where, **values):
        return sort(cluster, given.images, MAIN, name, where, values=values)

    majority = release(Release, "web", "StatefulSet, majority")
    classic = release(Release, "batch", "Deployment, classic", kind="Deployment")
    gated = release(LeaderReadyRelease, "gate", "StatefulSet, majority", readiness="leader", updateStrategy={"type": "OnDelete"},
                    podDisruptionBudget={"enabled": False}, leaderService={"enabled": True})
    certified = release(CertifiedRelease, "cert", "StatefulSet, majority")
    draining = release(DrainingRelease, "slow", "StatefulSet, majority")
    working = release(ExecRelease, "work", "StatefulSet, majority")
    ill = release(HealthRelease, "ill", "StatefulSet, majority")
    slow = LeaseElection(cluster, given.images, LEASES, "lease", "client-go, " + "/".join(DEFAULT), times=DEFAULT)
    fast = LeaseElection(cluster, given.images, LEASES, "fast", "client-go, " + "/".join(FASTEST), times=FASTEST)

    def checked(election):
        if not given.no_checks:
            checks.check(f"helm test, {election.name} ({election.where})", helm_test, election)
            checks.check(f"every pod's own sidecar agrees with the list of pods, {election.name} ({election.where})",
                         agree, election)

    basics = partial(rows.basic, lab, gap=given.gap)
    rolls = [partial(rows.rolling, lab, what=what, act=act, gap=given.gap) for what, act in [
        ("rolling restart", rows.roll), ("helm upgrade to another image tag", rows.upgrade)]]
    gates, scales, compares, secrets, certificates = (partial(steps, lab) for steps in (
        rows.gated, rows.scaling, rows.compared, rows.secret_rotated, rows.certificates_rotated))
    drains = partial(rows.drained, lab, seconds=DRAIN_SECONDS, gap=given.gap)
    unready = partial(rows.unready, lab, seconds=10)
    commands = partial(rows.commanded, lab, gap=given.gap, beyond=given.command, losses=LOSSES)
    health = partial(rows.healthy, lab, gap=given.gap)
    for election, *steps in [(majority, checked, basics, *rolls, secrets, scales), (classic, checked, basics, *rolls, secrets),
                             (gated, gates), (certified, checked, certificates),
                             (draining, drains, unready), (working, commands), (ill, health), (slow, compares), (fast, compares)]:
        if election.name in given.elections:
            track(lab, election, *steps)


def outages(cluster, given, lab, checks):
    """With five pods each: a pod whose process was killed twice is started again late."""
    majority = Release(cluster, given.images, MAIN, "web", "StatefulSet of 5, majority", replicas=5)
    classic = Release(cluster, given.images, MAIN, "batch", "Deployment of 5, classic", replicas=5,
                      values={"kind": "Deployment"})
    slow = LeaseElection(cluster, given.images, LEASES, "lease", "client-go, " + "/".join(DEFAULT), times=DEFAULT)
    killed = [one for one in (majority, classic) if one.name in given.elections]
    others = [one for one in (slow,) if one.name in given.elections]
    for election in killed + others:
        election.install()
    if not given.no_checks:
        checks.check("releases in one namespace do not mix", apart, killed)
    rows.outage(lab, NameServer(cluster), killed, [], 60, 10, given.gap)
    rows.outage(lab, ApiServer(cluster, given.stop, given.start), killed, others, 30, 5, given.gap)


if __name__ == "__main__":
    # As an interrupt: what was made is deleted, and what was stopped is started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    sys.exit(main())
