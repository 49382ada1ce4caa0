"""Says when the work may run: while the sidecar's last answer says that this process leads, and holds."""
import contextlib, http.client, json, os, queue, threading, time, urllib.request

URL = (os.environ.get("BELLWETHER_URL") or "http://127.0.0.1:4040") + "/watch?every=200ms&valid_for=500ms"
SILENCE, STOP, LOOK = 2.0, 0.1, 0.05  # seconds: no answer; a look and the work's own end; a look
CLOCKS = [("monotonic_ms", time.CLOCK_MONOTONIC), ("boottime_ms", time.CLOCK_BOOTTIME),
          ("raw_ms", time.CLOCK_MONOTONIC_RAW)]

def follow(answers):
    request = urllib.request.Request(URL, headers={"Accept": "text/event-stream"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
            with direct.open(request, timeout=SILENCE) as stream:
                for line in stream:
                    if line.startswith(b"data: "):
                        answers.put(json.loads(line[6:]))
        answers.put(None)
        time.sleep(1)

def holds(answer, heard):
    if answer["valid_for_ms"] is None:  # classic: until silence or an error
        return heard + SILENCE > time.monotonic()
    mono, boot, raw = (time.clock_gettime(clock) - answer["as_of"][name] / 1000 for name, clock in CLOCKS)
    if boot - mono > 0.01 or min(boot, raw) < 0:  # a suspend, or another machine's clocks
        return False
    return max(boot, raw) + STOP < answer["valid_for_ms"] / 1000

answers, answer, heard, leads = queue.Queue(), {"is_leader": False}, 0.0, 0
threading.Thread(target=follow, args=[answers], daemon=True).start()
while True:
    with contextlib.suppress(queue.Empty):
        new = answers.get(timeout=LOOK if leads else None)
        answer, heard = new or answer, time.monotonic() if new else float("-inf")
    epoch = answer["epoch"] if answer["is_leader"] and holds(answer, heard) else 0
    if leads not in (0, epoch):
        print("stops", flush=True)
    if epoch not in (0, leads):
        print(f"leads epoch={epoch}", flush=True)  # the fencing token of all that is written
    leads = epoch
