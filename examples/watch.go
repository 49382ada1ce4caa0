// Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	const silence, look, stop = 1000.0, 20 * time.Millisecond, 120 // no answer; a pause; it and the work's end
	url := cmp.Or(os.Getenv("BELLWETHER_URL"), "http://127.0.0.1:4040") + "/watch?timeout=300ms&valid_for=600ms"
	var epoch, leads any
	for after, now, until, classic := "", 0.0, 0.0, true; ; time.Sleep(look) {
		left, next := cmp.Or(max(until-now, 0), silence), map[string]any{}
		client := http.Client{Timeout: time.Duration(left * 1e6)}
		if response, err := client.Get(url + after); err == nil {
			json.NewDecoder(response.Body).Decode(&next)
			response.Body.Close()
		}
		uptime, _ := os.ReadFile("/proc/uptime") // CLOCK_BOOTTIME in seconds, rounded down to 10 ms
		fmt.Sscan(string(uptime), &now)
		now = now*1000 + 10
		if asOf, is := next["as_of"].(map[string]any); is {
			valid, limited := next["valid_for_ms"].(float64)
			after, epoch, classic, until = fmt.Sprint("&after=", next["version"]), next["epoch"], !limited, now+silence
			if limited { until = asOf["boottime_ms"].(float64) + valid*0.9 - stop } // less a tenth: RAW is unread
			if next["is_leader"] != true || asOf["boottime_ms"].(float64) > now { until = 0 } // a foreign clock
		} else if classic { // Else no answer says nothing of the leader, and the last one may still hold.
			until = 0
		}
		if until <= now { epoch = nil }
		if leads != nil && leads != epoch { fmt.Println("stops") }
		if epoch != nil && leads != epoch { fmt.Printf("leads epoch=%.0f\n", epoch) } // the fencing token
		leads = epoch
	}
}
