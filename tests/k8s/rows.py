"""The rows: what is done to an election, again and again, and what it must not cost."""

import dataclasses
import datetime
import itertools
import time

import proof
import records
from cluster import Refused, say, wait_until
from election import restart_count, uids
from table import MORE_ROUNDS, Bounds, Row

# A crash that nothing tells of, with the program's defaults at most: --lease and --answer-timeout.
CRASH_MS = 1500 + 300
KILLED = "leader's process killed (SIGKILL)"
# The kubelet starts a container of a pod again after 0, 10, 20, 40 s. After as many kills all pods are made anew.
KILLS = 3
# How long a command under exec may take to end: its default --stop-grace.
STOP_GRACE_MS = 300
# In an outage: seconds until the first kill, and how many there are. With more of them, pods that are
# started again later and later would add up to a majority.
BEFORE_KILLS = 6
OUTAGE_KILLS = 3


class Lab:
    """What rows share: the settings, the killer, and the rows that were made."""

    def __init__(self, killer, rounds, wanted):
        self.killer, self.rounds, self.wanted = killer, rounds, wanted
        self.rows = []

    def row(self, what, election, bounds=None, rounds=None):
        """A new row, or None where it was not asked for."""
        if self.wanted and not any(word in f"{what}, {election.where}" for word in self.wanted):
            return None
        bounds = bounds or Bounds()
        if election.has_epochs:
            # No row partitions the network, so that classic promises it as well.
            bounds = dataclasses.replace(bounds, duals=0)
        row = Row(what, election.where, bounds, self.rounds if rounds is None else rounds)
        self.rows.append(row)
        return row


def recorded(election, began):
    """What was recorded since this time of the local clock, and a little before."""
    return election.runs(time.monotonic() - began + 5)


def take(row, election, runs, since, until):
    """Adds what was recorded between two times to the row."""
    summary = records.summarise(runs, since, until)
    row.add(summary)
    if not summary.epochs_rise and election.safety == "majority":
        row.errors.append(f"an epoch went back, or had two leaders: {summary.leaders}")
    strangers = records.strangers(runs, [f"{election.name}-"])
    if strangers:
        row.errors.append(f"pods of another election were named as leaders: {strangers}")
    return summary


def one_round(row, election, act, since=None):
    """Does it once, waits until all is well again, and adds what happened meanwhile, or `since` then. Returns until when."""
    began = time.monotonic()
    leader, settled = election.settled()
    expected = act(election, leader)
    _, until = election.settled(**expected)
    row.latest = (recorded(election, began), since or settled, until)
    summary = take(row, election, *row.latest)
    path = " > ".join(f"{name.removeprefix(election.name + '-')}" for name, _ in summary.leaders)
    say(f"{row.where}: {row.what} {len(row.leaderless)}: {summary.leaderless * 1000:.1f} ms without a leader, {path}"
        + (f", TWO LEADERS {summary.duals}" if summary.duals else ""))
    return until


def repeat(row, election, act, renew=0):
    """As many rounds as the row wants. `renew`: after so many all pods are made anew."""
    if row is None:
        return
    until = None  # A round begins where the one before ended, so that nothing happens between them.
    for number in itertools.takewhile(row.wants_more, itertools.count()):
        try:
            if renew and number and number % renew == 0:
                election.restart_all()
                until = None
            until = one_round(row, election, act, until)
        except Exception as error:
            failed(row, error)
            until = None
            try:
                election.restart_all()
            except Exception as another:
                failed(row, another)
                return


def failed(row, error):
    say(f"{row.where}: {row.what}: FAILED: {error}")
    row.errors.append(f"{type(error).__name__}: {error}")


# What is done to an election. Each returns what `settled` has to wait for.

def delete_leader(grace):
    def act(election, leader):
        pod = election.pod(leader.leader)
        election.cluster.delete(election.path("pods", leader.leader), grace)
        return dict(without=uids([pod]), other_than=leader.leadership)
    return act


def evict_leader(election, leader):
    """By the eviction API, as `kubectl drain` does; a second pod must not be evicted meanwhile."""
    pods = election.pods()

    def evict(name):
        election.cluster.request("POST", election.path("pods", name) + "/eviction", {
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": election.namespace}})

    def allowed():
        try:
            return evict(leader.leader) or True, ""
        except Refused as error:
            if error.code != 429:
                raise
            return None, str(error)  # The budget has not been counted anew since the last round.

    wait_until(60, "eviction", allowed)
    other = next(pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] != leader.leader)
    try:
        evict(other)
    except Refused as error:
        if error.code != 429:
            raise
    else:
        raise RuntimeError(f"{other} was evicted while {leader.leader} was away: the PodDisruptionBudget allowed it")
    evicted = [pod for pod in pods if pod["metadata"]["name"] == leader.leader]
    return dict(without=uids(evicted), other_than=leader.leadership)


def delete_all(election, leader):
    pods = election.pods()
    for pod in pods:
        election.cluster.delete(election.path("pods", pod["metadata"]["name"]))
    return dict(without=uids(pods))


def kill_with(killer):
    def act(election, leader):
        restarts = restart_count(election.pods())
        killer.kill(election, leader.leader)
        return dict(other_than=leader.leadership, restarts=restarts + 1)
    return act


def roll(election, leader):
    """What `kubectl rollout restart` does."""
    pods = election.pods()
    now = datetime.datetime.now(datetime.timezone.utc).isoformat()
    election.cluster.patch(election.workload(), {"spec": {"template": {"metadata": {"annotations": {
        "kubectl.kubernetes.io/restartedAt": now}}}}})
    return dict(without=uids(pods))


def upgrade(election, leader):
    """`helm upgrade` to the image's other tag."""
    pods = election.pods()
    election.tag = next(tag for tag in election.images.tags if tag != election.tag)
    election.helm("upgrade")
    return dict(without=uids(pods))


def scale(replicas):
    def act(election, leader):
        pods = election.pods()
        election.replicas = replicas
        election.helm("upgrade")
        # The number of voters is an argument, so the old pods are restarted.
        return dict(without=uids(pods))
    return act


# Tracks: the rows of one election, one after the other.

def kill_gap(election, gap):
    """What a killed process may cost: evidence of the crash is all that `classic` needs, and no end of a lease."""
    return gap if election.safety == "classic" else CRASH_MS


def basic(lab, election, gap):
    """Deletions, kills, evictions: `gap` bounds what is orderly."""
    repeat(lab.row("leader's pod deleted", election, Bounds(median=gap, changes=1)), election, delete_leader(None))
    repeat(lab.row("leader's pod deleted, --force --grace-period=0", election, Bounds(longest=CRASH_MS)),
           election, delete_leader(0))
    repeat(lab.row(KILLED, election, Bounds(median=kill_gap(election, gap), changes=1)),
           election, kill_with(lab.killer), renew=KILLS)
    repeat(lab.row("leader's pod evicted; a second eviction is refused", election, Bounds(median=gap, changes=1)),
           election, evict_leader)
    repeat(lab.row("all pods deleted at once", election), election, delete_all)


def drained(lab, election, seconds, gap):
    """Deletions of a leader's pod whose application takes so long to end. Its sidecar hands over before that."""
    row = lab.row(f"leader's pod deleted; its application drains for {seconds} s", election, Bounds(median=gap, changes=1),
                  rounds=max(1, lab.rounds // 3))

    def delete(election, leader):
        expected = delete_leader(None)(election, leader)
        began = time.monotonic()
        election.led_by_another(leader.leadership, seconds / 2)
        say(f"{election.where}: another pod leads {time.monotonic() - began:.1f} s after the deletion, the first one drains")
        return expected

    repeat(row, election, delete)


def unready(lab, election, seconds):
    """Two of three voters are gone: none leads, and the pod that is left stays ready."""
    row = lab.row(f"no majority for {seconds} s; the pod that is left stays ready", election, rounds=max(1, lab.rounds // 3))

    def lose(election, leader):
        election.replicas_are(1)
        time.sleep(seconds)
        pod = election.pod(f"{election.name}-0")
        if not election.is_ready(pod):
            raise RuntimeError(f"{election.name}-0 is not ready")
        if election.ask(f"{election.name}-0", "epoch")["leader_id"]:
            raise RuntimeError(f"{election.name}-0 knows a leader without a majority")
        election.replicas_are(3)
        return {}

    repeat(row, election, lose)


def rolling(lab, election, what, act, gap):
    """Restarts of all pods. A StatefulSet's go from the highest ordinal down: when that one leads, its successor has yet
    to be restarted, so two changes are the least there can be, and those rounds are a row of their own."""
    row = lab.row(what, election, Bounds(median=gap, changes=1))
    if row is None:
        return
    if election.kind != "StatefulSet":
        repeat(row, election, act)
        return
    first = Row(f"{what}, the first pod to go leads", election.where, Bounds(median=2 * gap, changes=2, duals=0))
    try:
        # Not for ever: the leader may never be the pod that a row waits for.
        for _ in range(4 * (row.wanted + MORE_ROUNDS)):
            wants, first_wants = row.wants_more(len(row.leaderless)), first.wants_more(len(first.leaderless))
            if not wants and not first_wants:
                break
            leader, _ = election.settled()
            leads_first = leader.leader.endswith(f"-{election.replicas - 1}")
            if leads_first and (first_wants or len(first.leaderless) < max(1, row.wanted // 3)):
                one_round(first, election, act)
            elif wants and not leads_first:
                one_round(row, election, act)
            else:
                election.settled(**delete_leader(None)(election, leader))
    except Exception as error:
        failed(row, error)
    if first.leaderless:
        lab.rows.append(first)


def scaling(lab, election):
    up, down = lab.row("scaled from 3 to 5", election), lab.row("scaled from 5 to 3", election)
    if up is None or down is None:
        return
    for _ in range(up.wanted):
        for row, act in (up, scale(5)), (down, scale(3)):
            try:
                one_round(row, election, act)
                election.voters_follow()
            except Exception as error:
                failed(row, error)
                return


def middle_and_most(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2], ordered[-1]


def gated(lab, election):
    """The leader's Service: how long until its only endpoint is the new leader."""
    for what, act, renew in [("leader's pod deleted", delete_leader(None), 0),
                             (KILLED, kill_with(lab.killer), KILLS)]:
        row = lab.row(f"{what}; the leader's Service follows", election)
        if row is None:
            continue
        took = []

        def followed(election, leader):
            def only(names, endpoints):
                return (True, "") if len(names) == 1 and endpoints == names else (
                    None, f"the endpoints are {endpoints}, and {names} lead")

            def moved():
                # A process that was killed may be back in time to be elected again: the endpoint is then the same.
                current = records.current(election.runs(4))
                names = {run.leader for run in current if run.state == "leads" and run.leadership != leader.leadership}
                return only(sorted(names), election.endpoints())

            wait_until(60, "leader as the only endpoint", lambda: only([leader.leader], election.endpoints()))
            began = time.monotonic()
            expected = act(election, leader)
            wait_until(60, "endpoint of the new leader", moved, every=0.05)
            took.append(time.monotonic() - began)
            return expected

        repeat(row, election, followed, renew)
        if took:
            middle, most = middle_and_most(took)
            row.notes.append(f"the Service's only endpoint is the new leader {middle:.1f} s (median), "
                             f"at most {most:.1f} s after the command")


def rotated(lab, election, what, steps):
    """The members' proof changes in steps, each after all members have followed the one before. It costs nothing: no time
    without a leader, no change, no restart, and no connection between members is refused."""
    row = lab.row(what, election, Bounds(longest=0, changes=0), rounds=max(1, lab.rounds // 3))
    if row is None:
        return
    took = []

    def rotate(election, leader):
        pods, refused = election.pods(), refusals(election)
        for step in steps(election):
            took.append(election.take(step))
            say(f"{row.where}: {step.what} in use by all members after {took[-1]:.1f} s")
        after = election.pods()
        if uids(after) != uids(pods) or restart_count(after) != restart_count(pods):
            raise RuntimeError("a pod or a container was restarted")
        if refusals(election) != refused:
            raise RuntimeError(f"the members failed {refusals(election) - refused} authentications")
        return {}

    repeat(row, election, rotate)
    if took:
        middle, most = middle_and_most(took)
        row.notes.append(f"all members had followed a step {middle:.1f} s (median), "
                         f"at most {most:.1f} s after the change of the Secret")


def commanded(lab, election, gap, beyond, losses):
    """A command under `bellwether exec`. It never runs in two pods, and a loss of leadership restarts no container. It runs
    in the next leader's pod at most `beyond` later than that pod leads. A leader waits for its command's end."""
    waited = Bounds(median=gap + STOP_GRACE_MS, changes=1)
    row = lab.row(f"leadership given up {losses} times; a command under exec follows", election, waited, rounds=losses)
    later = []

    def resign(election, leader):
        election.inside(leader.leader, "bellwether", "bellwether", "resign")
        return dict(other_than=leader.leadership)

    for _ in range(row.wanted if row else 0):
        try:
            one_round(row, election, resign)
            election.announced()
            later.append(command_gap(row) - row.leaderless[-1])
        except Exception as error:
            failed(row, error)
            break
    if later:
        middle, most = middle_and_most(later)
        row.notes.append(f"the command runs {middle:.1f} ms (median) later than the next pod leads, at most {most:.1f} ms")
        if middle > beyond:
            row.errors.append(f"the command runs {middle:.1f} ms later; at most {beyond:g}")
        restarts = restart_count(election.pods())
        if restarts:
            row.errors.append(f"{restarts} containers were restarted")

    def kill_command(election, leader):
        lab.killer.kill(election, leader.leader, election.command)
        return dict(other_than=leader.leadership)

    def fall_silent(election, leader):
        """It was to say again that it is healthy, and does not. Later it does."""
        alive = (leader.leader, "app", "/opt/bellwether/bellwether", "alive", "--ttl")
        election.inside(*alive, "500ms")
        election.settled(other_than=leader.leadership)
        election.inside(*alive, "1h")
        return dict(other_than=leader.leadership)

    few = max(1, lab.rounds // 3)
    for what, act, bounds in [("leader's command killed (SIGKILL)", kill_command, Bounds(median=gap, changes=1)),
                              ("leader's application falls silent", fall_silent, waited)]:
        repeat(lab.row(what, election, bounds, rounds=few), election, act)


def healthy(lab, election, gap):
    """The leader's application says that it is not healthy: a member whose application is healthy takes over."""
    row = lab.row("leader's application answers 503", election, Bounds(median=gap, changes=1), rounds=max(1, lab.rounds // 3))
    if row is None:
        return
    took = []

    def sicken(election, leader):
        began = time.monotonic()
        election.tell(leader.leader, "sick")
        election.settled(other_than=leader.leadership)
        took.append(time.monotonic() - began)
        election.tell(leader.leader, "well")
        return dict(other_than=leader.leadership)

    repeat(row, election, sicken)
    if took:
        middle, most = middle_and_most(took)
        row.notes.append(f"another pod is seen to lead {middle:.1f} s (median), at most {most:.1f} s after the first 503")


def command_gap(row):
    """For how many milliseconds no command ran in the last round. Two at once are an error."""
    runs, since, until = row.latest
    summary = records.summarise(records.commands(runs), since, until)
    for start, end, *pods in summary.duals:
        row.errors.append(f"commands ran in {' and '.join(pods)} at once, for {(end - start) * 1000:.1f} ms")
    return summary.leaderless * 1000


def refusals(election):
    return sum(found.refused for found in election.proofs().values())


def secret_rotated(lab, election):
    rotated(lab, election, "peer secret rotated in three steps", proof.secret_steps)


def certificates_rotated(lab, election):
    rotated(lab, election, "certificates renewed", proof.certificate_steps)
    rotated(lab, election, "authority of the certificates replaced in three steps", proof.authority_steps)


def compared(lab, election):
    """The same for client-go's election."""
    repeat(lab.row("leader's pod deleted", election), election, delete_leader(None))
    repeat(lab.row("leader's pod deleted, --force --grace-period=0", election), election, delete_leader(0))
    repeat(lab.row(KILLED, election), election, kill_with(lab.killer), renew=KILLS)


def outage(lab, service, killed, others, seconds, every, gap):
    """A service of the cluster is stopped for some seconds, and meanwhile each of `killed` loses its leader several times;
    nothing else may happen to them. `others` are only looked at. As often as makes the rounds."""
    rows = {}
    for election in killed:
        rows[election] = lab.row(f"{service.what} stopped, the leader's process killed meanwhile", election,
                                 Bounds(median=kill_gap(election, gap), changes=1))
    for election in others:
        rows[election] = lab.row(f"{service.what} stopped for {seconds} s, nothing else", election, rounds=1)
    if not any(rows.values()):
        return
    if service.missing():
        say(f"SKIPPED: rows with {service.what} stopped: {service.missing()}")
        for row in rows.values():
            if row:
                row.skipped = service.missing()
        return
    elections = [election for election, row in rows.items() if row]

    def plan():
        for number, election in enumerate(e for e in elections if e in killed):
            lab.killer.plan(election, BEFORE_KILLS + number * every / 2, every, OUTAGE_KILLS)

    while any(rows[election].wants_more(len(rows[election].leaderless)) for election in elections):
        if any(rows[election].errors for election in elections):
            return
        stopped = False
        try:
            for election in elections:
                if election in killed:
                    election.restart_all()
            started = {election: election.settled()[1] for election in elections}
            began = time.monotonic()
            stopped = True
            # As late as a command can reach the cluster.
            for step in (plan, service.stop) if service.commands_need_it else (service.stop, plan):
                step()
            time.sleep(seconds)
            service.start()
            stopped = False
            for election in elections:
                _, until = election.settled()
                account(rows[election], election, recorded(election, began), started[election], until,
                        OUTAGE_KILLS if election in killed else 0)
        except Exception as error:
            for election in elections:
                failed(rows[election], error)
            if stopped:
                service.start()
            return


def account(row, election, runs, since, until, kills):
    """A round for each kill, from just before it to just before the next one; before the first one nothing may happen."""
    if not kills:
        summary = take(row, election, runs, since, until)
        say(f"{row.where}: {row.what}: {summary.leaderless * 1000:.1f} ms without a leader, {summary.leaders}")
        return
    times = [at - 0.05 for at, _ in records.kills(runs) if at > since]
    if len(times) != kills:
        row.errors.append(f"{len(times)} kills of {kills} are recorded")
    if not times:
        return
    quiet = records.summarise(runs, since, times[0])
    if quiet.changes or quiet.leaderless > 0.05:
        row.errors.append(f"before the first kill: {quiet.changes} changes, {quiet.leaderless * 1000:.1f} ms without a leader")
    for start, end in zip(times, times[1:] + [until]):
        summary = take(row, election, runs, start, end)
        if not summary.changes:
            row.errors.append("a kill changed nothing, so it was not the leader's")
        say(f"{row.where}: {row.what} {len(row.leaderless)}: {summary.leaderless * 1000:.1f} ms without a leader, "
            f"{summary.changes} changes")
