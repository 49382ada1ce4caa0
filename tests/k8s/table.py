"""The rows of the result: what each found, what it had to find, and the Markdown table and JSON of all."""

import json
import statistics
from dataclasses import dataclass, field

# A row whose median misses its bound has so many rounds more at most: of two rounds, one on a slow machine makes the median.
MORE_ROUNDS = 5


@dataclass(frozen=True)
class Bounds:
    """What a row must not exceed; None is no bound. Times in milliseconds."""

    median: float = None
    longest: float = None
    changes: int = None  # in one round
    duals: int = None


@dataclass
class Row:
    """One thing that was done to one election, again and again."""

    what: str
    where: str
    bounds: Bounds = Bounds()
    wanted: int = 0  # rounds
    leaderless: list = field(default_factory=list)  # milliseconds, one a round
    changes: list = field(default_factory=list)
    duals: list = field(default_factory=list)  # milliseconds that two led, one for each time
    notes: list = field(default_factory=list)
    errors: list = field(default_factory=list)
    skipped: str = ""
    latest: tuple = None  # records, from when and until when, of the last round

    def add(self, summary):
        self.leaderless.append(summary.leaderless * 1000)
        self.changes.append(summary.changes)
        self.duals.extend((end - start) * 1000 for start, end, *_ in summary.duals)

    def misses_median(self):
        return self.bounds.median is not None and bool(self.leaderless) and (
            statistics.median(self.leaderless) > self.bounds.median)

    def wants_more(self, attempts):
        """Whether another round is wanted after so many."""
        return attempts < self.wanted or self.misses_median() and attempts < self.wanted + MORE_ROUNDS

    def complaints(self):
        """What is wrong with it, as sentences; none where it passed."""
        found = list(self.errors)
        if self.skipped:
            return found
        if len(self.leaderless) < self.wanted:
            found.append(f"{len(self.leaderless)} rounds of {self.wanted}")
        if not self.leaderless:
            return found
        median, longest = statistics.median(self.leaderless), max(self.leaderless)
        bounds = self.bounds
        if self.misses_median():
            found.append(f"half of the rounds took more than {median:.1f} ms without a leader; at most {bounds.median:g}")
        if bounds.longest is not None and longest > bounds.longest:
            found.append(f"{longest:.1f} ms without a leader; at most {bounds.longest:g}")
        if bounds.changes is not None and max(self.changes) > bounds.changes:
            found.append(f"{max(self.changes)} changes of leader in a round; at most {bounds.changes}")
        if bounds.duals is not None and len(self.duals) > bounds.duals:
            found.append(f"two leaders at once {len(self.duals)} times, for up to {max(self.duals):.1f} ms")
        return found

    @property
    def verdict(self):
        if self.skipped:
            return "SKIPPED"
        return "FAILED" if self.complaints() else "ok"

    def cells(self):
        if self.skipped or not self.leaderless:
            return [self.what, self.where, str(len(self.leaderless)), "", "", "", "", self.verdict]
        lowest, highest = min(self.changes), max(self.changes)
        changes = str(lowest) if lowest == highest else f"{lowest} to {highest}"
        duals = f"{len(self.duals)} (up to {max(self.duals):.1f} ms)" if self.duals else "0"
        return [self.what, self.where, str(len(self.leaderless)), f"{statistics.median(self.leaderless):.1f}",
                f"{max(self.leaderless):.1f}", changes, duals, self.verdict]


HEAD = ["what", "where", "rounds", "ms without a leader, median", "max", "changes a round", "two leaders", ""]


def markdown(rows):
    """The table, and below it what was found besides, and what is wrong."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    remarks = []
    for row in rows:
        name = f"{row.what}, {row.where}"
        remarks += [f"- {name}: {note}" for note in row.notes]
        if row.skipped:
            remarks.append(f"- **SKIPPED** {name}: {row.skipped}")
        remarks += [f"- **FAILED** {name}: {complaint}" for complaint in row.complaints()]
    return "\n".join(lines + ([""] + remarks if remarks else [])) + "\n"


def as_json(rows, checks):
    """The same for programs, every round by itself."""
    return json.dumps({
        "rows": [dict(what=row.what, where=row.where, rounds=len(row.leaderless), leaderless_ms=row.leaderless,
                      changes=row.changes, duals_ms=row.duals, notes=row.notes, verdict=row.verdict,
                      complaints=row.complaints(), skipped=row.skipped) for row in rows],
        "checks": [dict(what=what, verdict=verdict, detail=detail) for what, verdict, detail in checks],
    }, indent=1) + "\n"
