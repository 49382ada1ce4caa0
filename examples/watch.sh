#!/bin/sh
# Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
# A shell waits for one thing at a time. So it asks again each 300 ms, and no longer than an answer holds.
url=${BELLWETHER_URL:-http://127.0.0.1:4040}
silence=1000 stop=200 # ms: no answer; the end of curl and jq, and of the work
leads=0 until=0 classic=true after=
fields='"\(.version) \(.is_leader) \(.epoch) \(.valid_for_ms) \(.as_of.boottime_ms)"'

work() {
  [ "$leads" = 0 ] || [ "$leads" = "$1" ] || echo stops
  [ "$1" = 0 ] || [ "$leads" = "$1" ] || echo "leads epoch=$1" # the fencing token of all that is written
  leads=$1
}
look() { # CLOCK_BOOTTIME in ms, rounded up, and for how long this process leads still
  read -r uptime _ </proc/uptime
  now=$((${uptime%.*} * 1000 + 1${uptime#*.}0 - 990)) # no number that begins with a zero
  left=$((until - now)) wait=$silence
  if [ "$left" -le 0 ]; then work 0; elif [ "$left" -lt "$wait" ]; then wait=$left; fi
  wait=$((wait / 1000)).$(printf %03d $((wait % 1000)))
}
while true; do
  look
  answer=$(curl -sf --noproxy '*' -m "$wait" "$url/watch?timeout=300ms&valid_for=800ms$after" | jq -r "$fields")
  # shellcheck disable=SC2086 # These are five words.
  set -- $answer
  look
  if [ $# != 5 ]; then # no answer says nothing of the leader, and the last one may still hold
    if $classic; then until=0 && look; fi
    sleep "$wait"
    continue
  fi
  # CLOCK_MONOTONIC_RAW is not read: hence the tenth.
  after="&after=$1" classic=false until=$(($5 + $4 * 9 / 10 - stop))
  if [ "$4" = null ]; then classic=true until=$((now + silence)); fi
  if [ "$2" = false ] || [ "$5" -gt "$now" ]; then until=0; fi # or it is another machine's clock
  look
  if [ "$left" -gt 0 ]; then work "$3"; fi
done
