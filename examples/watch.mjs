// Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
// A timer ends it, so the work must leave the event loop free.
import { readFileSync } from "node:fs";

const url = (process.env.BELLWETHER_URL || "http://127.0.0.1:4040") + "/watch?every=200ms&valid_for=500ms";
const SILENCE = 2000, STOP = 100; // ms: no answer; the work's own end
let leads = 0, classic = true, end;

function work(epoch) {
  if (leads !== 0 && leads !== epoch) console.log("stops");
  if (epoch !== 0 && leads !== epoch) console.log(`leads epoch=${epoch}`); // the fencing token of all writes
  leads = epoch;
}
function left(answer) {
  if (!answer.is_leader || classic) return answer.is_leader ? SILENCE : 0;
  // CLOCK_BOOTTIME, rounded down to 10 ms. A timer goes on from there: hence the tenth.
  const passed = parseFloat(readFileSync("/proc/uptime", "utf8")) * 1000 + 10 - answer.as_of.boottime_ms;
  return passed < 0 ? 0 : answer.valid_for_ms * 0.9 - passed - STOP; // below 0 is another machine's clock
}
for (;;) {
  const abort = new AbortController(), silence = setTimeout(() => abort.abort(), SILENCE);
  try {
    const response = await fetch(url, { headers: { accept: "text/event-stream" }, signal: abort.signal });
    let rest = "";
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      silence.refresh();
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      for (const answer of lines.filter((l) => l.startsWith("data: ")).map((l) => JSON.parse(l.slice(6)))) {
        classic = answer.valid_for_ms === null;
        clearTimeout(end);
        work(left(answer) > 0 ? answer.epoch : 0);
        end = setTimeout(work, left(answer), 0);
      }
    }
  } catch {} // a broken stream says nothing of the leader
  clearTimeout(silence);
  if (classic) work(0);
  await new Promise((resolve) => setTimeout(resolve, 1000));
}
