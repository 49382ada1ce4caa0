"""What the pollers' records say: which process led when, how long none did, and whether two ever did at once.

Nothing here talks to a cluster. Times are seconds on one clock: the machine's monotonic one where all records come from
one machine, else the real-time clocks of the machines, which agree as well as they are set.
"""

import json
from dataclasses import dataclass, replace

# The pollers report a run that goes on twice a second; what has not been heard of for longer has ended or is not answering.
FRESH_SECONDS = 1.5


@dataclass(frozen=True)
class Run:
    """A run of equal answers of one target to one observer."""

    stream: str
    number: int
    observer: str
    target: str  # `own` for the sidecar of the observer's own pod, else an address
    state: str  # leads, follows, none, silent; killed is not an answer
    leader: str
    id: str
    epoch: int
    first_sent: float
    first_received: float
    last_sent: float
    last_received: float
    answers: int

    @property
    def leadership(self):
        """A process leads in one epoch once; its id stays over a restart where it has a disk."""
        return self.id, self.epoch

    @property
    def proven(self):
        """From when until when the answer held for certain: between an answer's sending and its arrival is a doubt."""
        return self.first_received, max(self.first_received, self.last_sent)


@dataclass(frozen=True)
class Summary:
    """What happened between two times."""

    leaderless: float  # for how long no process was proven to lead
    changes: int  # leaderships that began
    duals: tuple  # (from, until, a leader's name, another's) for each proven time with two leaders
    leaders: tuple  # (name, epoch) in the order in which they began, with the one at the start
    epochs_rise: bool  # each leadership has a higher epoch than the one before it


def parse(text):
    """The runs in a collector's output. A run is reported again as it grows; the last report counts."""
    latest, boots = {}, set()
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # The first or the last line of an excerpt may be cut.
        latest[record["stream"], record["run"]] = record
        boots.add(record["boot"])
    one_machine = len(boots) == 1

    def seconds(record, field):
        return (record[field] + (0 if one_machine else record["offset"])) / 1e9

    return [
        Run(record["stream"], record["run"], record["observer"], record["target"], record["state"],
            record.get("leader", ""), record.get("id", ""), record.get("epoch", 0),
            *(seconds(record, field) for field in ("first_sent", "first_received", "last_sent", "last_received")),
            record["answers"])
        for record in latest.values()
    ]


def newest(runs):
    """The time of the last answer, as a `now` on the records' clock."""
    return max((run.last_received for run in runs), default=0.0)


def current(runs):
    """Each stream's last run, of the streams that go on."""
    last = {}
    for run in runs:
        if run.state != "killed" and (run.stream not in last or last[run.stream].number < run.number):
            last[run.stream] = run
    limit = newest(runs) - FRESH_SECONDS
    return [run for run in last.values() if run.last_received >= limit]


def agreed(runs, pods, epochs=True):
    """The leader's run where every pod's own sidecar names the same leader, and that is one of the pods; else why not.

    Returns (run, "") or (None, reason). `epochs`: they have to name the same epoch as well."""
    own = {}
    for run in current(runs):
        if run.target == "own" and run.observer in pods:
            own[run.observer] = run
    missing = sorted(set(pods) - set(own))
    if missing:
        return None, f"nothing heard from {', '.join(missing)}"
    leading = [run for run in own.values() if run.state == "leads"]
    if len(leading) != 1:
        return None, f"{len(leading)} say that they lead: " + "; ".join(
            f"{pod} {run.state} {run.leader}" for pod, run in sorted(own.items()))
    (leader,) = leading
    if leader.leader != leader.observer:
        return None, f"{leader.observer} leads under the name {leader.leader}"
    for pod, run in sorted(own.items()):
        if run.leader != leader.leader or run.id != leader.id or epochs and run.epoch != leader.epoch:
            return None, f"{pod} {run.state} {run.leader or '-'} in epoch {run.epoch}, not {leader.leader} in {leader.epoch}"
    return leader, ""


def watched(runs, pods):
    """The leader as the watcher outside sees it: exactly one of as many targets as there are pods leads, and all name it."""
    answering = [run for run in current(runs) if run.target != "own" and run.state != "silent"]
    leading = [run for run in answering if run.state == "leads"]
    if len(leading) != 1 or len(answering) != len(pods):
        return None, f"{len(answering)} of {len(pods)} pods answer, {len(leading)} say that they lead"
    (leader,) = leading
    if leader.leader not in pods:
        return None, f"{leader.leader} leads, which is none of {', '.join(sorted(pods))}"
    for run in answering:
        if run.leader != leader.leader:
            return None, f"{run.target} {run.state} {run.leader or '-'}, not {leader.leader}"
    return leader, ""


def summarise(runs, since, until):
    """What happened from `since` (when a process led) to `until`."""
    began, spans = {}, []
    for run in runs:
        if run.state != "leads":
            continue
        start, end = run.proven
        if end < since or start > until:
            continue
        key = run.leadership
        began[key] = min(began.get(key, (start, run.leader)), (start, run.leader))
        spans.append((max(start, since), min(end, until), key, run.leader))
    order = sorted(began.items(), key=lambda item: item[1][0])
    epochs = [key[1] for key, _ in order]
    return Summary(
        leaderless=_uncovered(spans, since, until),
        changes=sum(1 for _, (start, _) in order if start > since),
        duals=_overlaps(spans),
        leaders=tuple((name, key[1]) for key, (_, name) in order),
        epochs_rise=epochs == sorted(set(epochs)),
    )


def commands(runs):
    """The commands of `bellwether exec` as leaderships of their own: each runs from its first answer to its last question."""
    return [replace(run, state="leads", leader=run.observer, id=run.stream, epoch=0) for run in runs if run.target == "own"]


def _uncovered(spans, since, until):
    """How much of the time no span covers."""
    empty, reached = 0.0, since
    for start, end, *_ in sorted(spans, key=lambda span: span[:2]):
        empty += max(0.0, start - reached)
        reached = max(reached, end)
    return empty + max(0.0, until - reached)


def _overlaps(spans):
    """For each pair of leaderships, the hull of the times at which both are proven; two processes with one id count, too."""
    found = {}
    for index, (start, end, key, name) in enumerate(spans):
        for other_start, other_end, other, other_name in spans[index + 1:]:
            low, high = max(start, other_start), min(end, other_end)
            if key == other or low >= high:
                continue
            pair = tuple(sorted((key, other)))
            if pair in found:
                low, high = min(low, found[pair][0]), max(high, found[pair][1])
            found[pair] = (low, high, *sorted((name, other_name)))
    return tuple(sorted(found.values()))


def kills(runs):
    """When which pod's process was killed: (time, pod), in order."""
    return sorted((run.first_sent, run.target) for run in runs if run.state == "killed")


def strangers(runs, pods):
    """Leaders that were named and are none of the pods that may lead: names, sorted."""
    return sorted({run.leader for run in runs if run.leader and not any(run.leader.startswith(pod) for pod in pods)})
