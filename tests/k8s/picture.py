"""A picture of one failover of each election: which pod led when, all on one axis, as SVG for light and dark pages."""

from dataclasses import dataclass
from xml.sax.saxutils import escape

import records

BEFORE_SECONDS = 1
WIDTH, LEFT, RIGHT = 860, 150, 30
LANE, BAND_GAP, TOP = 20, 46, 40
STYLE = """
  text { font: 13px sans-serif; fill: #1f2328 }
  .title { font-weight: bold } .small { font-size: 11px; fill: #59636e }
  .lane { fill: #eff2f5 } .leads { fill: #1a7f37 } .gap { fill: #d1242f } .gap-text { fill: #d1242f; font-weight: bold }
  .axis { stroke: #59636e } .killed { stroke: #d1242f; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .small { fill: #9198a1 } .lane { fill: #21262d } .leads { fill: #3fb950 }
    .gap { fill: #f85149 } .gap-text { fill: #f85149 } .axis { stroke: #9198a1 } .killed { stroke: #f85149 }
  }"""


@dataclass(frozen=True)
class Band:
    """One election's failover. Times are in seconds after the last proof that the killed process led."""

    title: str
    lanes: tuple  # (a pod's name, ((from, until) while it led)), by name
    gap: float  # without a proven leader
    end: float  # of what was watched


def band(title, runs, since, until):
    """The last change of leader between two times, or None where the records have none."""
    runs = [run for run in runs if run.last_received >= since and run.first_sent <= until]
    spans = {run.observer: [] for run in runs if run.target == "own"}
    leaderships = {}
    for run in runs:
        if run.state == "leads":
            spans.setdefault(run.leader, []).append(run.proven)
            leaderships.setdefault(run.leadership, []).append(run.proven)
    if len(leaderships) < 2:
        return None
    *_, former, latter = sorted(leaderships.values(), key=min)
    zero, began = max(end for _, end in former), min(start for start, _ in latter)
    lanes = tuple((name, tuple(sorted((start - zero, end - zero) for start, end in of_pod)))
                  for name, of_pod in sorted(spans.items()))
    return Band(title, lanes, began - zero, max(run.last_received for run in runs) - zero)


def shown(seconds):
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def svg(bands):
    """The picture. The axis is long enough for the longest gap."""
    after = max(band.gap for band in bands) + 2
    scale = (WIDTH - LEFT - RIGHT) / (BEFORE_SECONDS + after)

    def x(seconds):
        return LEFT + (min(max(seconds, -BEFORE_SECONDS), after) + BEFORE_SECONDS) * scale

    def text(left, top, content, sort, anchor="start"):
        return f'<text x="{left:.1f}" y="{top:.1f}" class="{sort}" text-anchor="{anchor}">{escape(content)}</text>'

    def bar(span, top, height, sort):
        left, width = x(span[0]), max(x(span[1]) - x(span[0]), 1.5)
        return f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height}" class="{sort}"/>'

    parts, top = [], TOP
    for one in bands:
        height = LANE * len(one.lanes)
        parts.append(text(LEFT, top - 8, one.title, "title"))
        for number, (name, spans) in enumerate(one.lanes):
            lane = top + number * LANE
            parts.append(bar((-BEFORE_SECONDS, one.end), lane + 2, LANE - 4, "lane"))
            parts.append(text(LEFT - 8, lane + LANE - 6, name, "small", "end"))
            visible = [span for span in spans if span[1] > -BEFORE_SECONDS and span[0] < after]
            parts += [bar(span, lane + 2, LANE - 4, "leads") for span in visible]
        parts.append(bar((0, one.gap), top, height, "gap"))
        label = f"no leader for {shown(one.gap)}"
        parts.append(text(WIDTH - RIGHT, top - 8, label, "gap-text", "end"))
        top += height + BAND_GAP
    bottom = top - BAND_GAP + 14
    parts.append(f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="{TOP - 4}" y2="{bottom}" class="killed"/>')
    parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{bottom}" y2="{bottom}" class="axis"/>')
    for second in range(0, int(after) + 1, 5 if after > 8 else 1):
        parts.append(text(x(second), bottom + 16, f"{second} s", "small", "middle"))
    parts.append(text(WIDTH - RIGHT, bottom + 32, "after the last yes of the leader, whose process was killed (SIGKILL)", "small", "end"))
    described = "; ".join(f"{one.title}: {shown(one.gap)}" for one in bands)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 42}" role="img">',
        f"<title>Time without a leader after a crash: {escape(described)}</title>", f"<style>{STYLE}\n</style>", *parts, "</svg>",
    ]) + "\n"
