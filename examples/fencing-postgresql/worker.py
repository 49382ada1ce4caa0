"""Stores what a program prints, while the sidecar says that this process leads: worker.py PROGRAM ARGUMENTS

libpq's variables (PGHOST, PGUSER …) name the database. An error other than a refusal ends the worker.
"""
import http.client, json, os, subprocess, sys, time, urllib.request
import psycopg2  # Debian: python3-psycopg2

URL = (os.environ.get("BELLWETHER_URL") or "http://127.0.0.1:4040") + "/leader"
ELECTION = os.environ.get("BELLWETHER_ELECTION", "default")
STOP = 100  # milliseconds: what the write itself may take

def ask():
    """The sidecar's answer, if it is a yes."""
    try:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with direct.open(URL, timeout=1) as response:
            answer = json.load(response)
    except (OSError, ValueError, http.client.HTTPException):  # No answer means no.
        return None
    if answer["safety"] != "majority":
        sys.exit("an epoch is a fencing token only with --safety majority")
    return answer if answer["is_leader"] else None

def holds(answer):
    """Whether the yes is still valid. This saves useless work. It cannot stop a stale write."""
    age = time.clock_gettime(time.CLOCK_BOOTTIME) * 1000 - answer["as_of"]["boottime_ms"]
    return 0 <= age < answer["valid_for_ms"] - STOP

def write(connection, epoch, entry):
    with connection, connection.cursor() as cursor:  # One transaction.
        cursor.execute("select fencing.enter('journal', %s, %s)", (ELECTION, epoch))
        # From here to the commit no other leader writes. Read here what the write depends on.
        cursor.execute("insert into journal (epoch, entry) values (%s, %s)", (epoch, entry))

def say(what, epoch):
    print(f"{what} epoch={epoch}", flush=True)

connection = psycopg2.connect("")
while True:
    answer = ask()
    if answer is None:
        time.sleep(0.2)
        continue
    epoch = answer["epoch"]
    say("works", epoch)
    entry = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, text=True, check=True).stdout
    if not holds(answer):
        say("stops", epoch)
        continue
    say("writes", epoch)
    try:
        write(connection, epoch, entry)
        say("wrote", epoch)
    except psycopg2.Error as error:
        if error.pgcode != "LF001":
            raise
        say("refused", epoch)
