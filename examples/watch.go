// Says when the work may run: while the sidecar's last answer says that this process leads, and holds.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"
)

const silence, stop = 2 * time.Second, 100 // No answer; the work's own end, in milliseconds.

type answer struct {
	Leads bool `json:"is_leader"`
	Epoch uint64
	Valid *float64           `json:"valid_for_ms"`
	AsOf  map[string]float64 `json:"as_of"`
}

func (a answer) left() time.Duration {
	var uptime float64 // CLOCK_BOOTTIME, rounded down to 10 ms. A timer goes on from there: hence the tenth.
	text, _ := os.ReadFile("/proc/uptime")
	fmt.Sscan(string(text), &uptime)
	passed := uptime*1000 + 10 - a.AsOf["boottime_ms"]
	if !a.Leads || passed < 0 { // Below 0 is another machine's clock.
		return 0
	} else if a.Valid == nil { // classic: until silence, or the next answer.
		return silence
	}
	return time.Duration((*a.Valid*0.9 - passed - stop) * 1e6)
}

func follow(request *http.Request, answers chan<- answer) {
	client := http.Client{Transport: &http.Transport{ResponseHeaderTimeout: silence}}
	for last := (answer{}); ; time.Sleep(time.Second) {
		if response, err := client.Do(request); err == nil {
			timeout := time.AfterFunc(silence, func() { response.Body.Close() })
			for lines := bufio.NewScanner(response.Body); lines.Scan(); timeout.Reset(silence) {
				var next answer // The other goroutine reads the last one.
				data, is := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
				if is && json.Unmarshal(data, &next) == nil {
					last = next
					answers <- next
				}
			}
			response.Body.Close()
		}
		if last.Valid == nil {
			answers <- answer{}
		}
	}
}

func main() {
	url := os.Getenv("BELLWETHER_URL")
	if url == "" {
		url = "http://127.0.0.1:4040"
	}
	request, _ := http.NewRequest("GET", url+"/watch?every=500ms", nil)
	request.Header.Set("Accept", "text/event-stream")
	answers, leads, end := make(chan answer), uint64(0), time.NewTimer(0).C
	go follow(request, answers)
	for {
		epoch := uint64(0)
		select {
		case a := <-answers:
			if left := a.left(); left > 0 {
				epoch, end = a.Epoch, time.NewTimer(left).C
			}
		case <-end:
		}
		if leads != 0 && leads != epoch {
			fmt.Println("stops")
		}
		if epoch != 0 && leads != epoch {
			fmt.Printf("leads epoch=%d\n", epoch) // The fencing token of all that is written.
		}
		leads = epoch
	}
}
