// What is sent to the collector: a line of JSON for each run of equal answers, and again when it has grown.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// record is a run of equal answers. Times are nanoseconds of the machine's monotonic clock, which all its pods share;
// `offset` makes them the real-time clock's, for pods of several machines.
type record struct {
	Stream        string `json:"stream"`
	Run           int    `json:"run"`
	Observer      string `json:"observer"`
	Target        string `json:"target"`
	Boot          string `json:"boot"`
	Offset        int64  `json:"offset"`
	State         string `json:"state"`
	Leader        string `json:"leader,omitempty"`
	ID            string `json:"id,omitempty"`
	Epoch         uint64 `json:"epoch,omitempty"`
	Why           string `json:"why,omitempty"`
	FirstSent     int64  `json:"first_sent"`
	FirstReceived int64  `json:"first_received"`
	LastSent      int64  `json:"last_sent"`
	LastReceived  int64  `json:"last_received"`
	Answers       int    `json:"answers"`
}

// The states of a record.
const (
	leads   = "leads"   // the one asked leads
	follows = "follows" // it names another leader
	none    = "none"    // it knows no leader
	silent  = "silent"  // no answer
	killed  = "killed"  // not an answer: its process was killed now
)

func now() int64 {
	var time unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &time)
	return time.Nano()
}

func offset() int64 { return time.Now().UnixNano() - now() }

func boot() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text))
}

func podName() string {
	if name := os.Getenv("POD_NAME"); name != "" {
		return name
	}
	name, _ := os.Hostname()
	return name
}

// sender keeps what it is given until the collector has been reached.
type sender chan record

func newSender(to string) sender {
	records := make(sender, 100_000)
	go records.run(to)
	return records
}

func (s sender) run(to string) {
	var (
		connection net.Conn
		out        *bufio.Writer
		address    string
	)
	for record := range s {
		line, _ := json.Marshal(record)
		line = append(line, '\n')
		for {
			if connection == nil {
				// The name is resolved once: later there may be no name server.
				if address == "" {
					if resolved, err := net.ResolveTCPAddr("tcp", to); err == nil {
						address = resolved.String()
					} else {
						time.Sleep(200 * time.Millisecond)
						continue
					}
				}
				fresh, err := net.DialTimeout("tcp", address, time.Second)
				if err != nil {
					time.Sleep(100 * time.Millisecond)
					continue
				}
				connection, out = fresh, bufio.NewWriter(fresh)
			}
			_, err := out.Write(line)
			if err == nil && len(s) == 0 {
				err = out.Flush()
			}
			if err == nil {
				break
			}
			connection.Close()
			connection = nil
		}
	}
}

// drain gives what is under way a moment to arrive.
func (s sender) drain(ctx context.Context) {
	<-ctx.Done()
	for end := time.Now().Add(50 * time.Millisecond); len(s) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(2 * time.Millisecond)
}
