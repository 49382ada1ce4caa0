// Asking `/leader` again and again, and folding equal answers into one record.

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// answer is the part of /leader that counts.
type answer struct {
	Leader *struct{ ID, Name string }
	Epoch  uint64
	Leads  bool `json:"is_leader"`
}

const (
	askTimeout = time.Second
	// How often a run that goes on is reported. What is lost with a killed pod is at most this.
	reportEvery = 500 * time.Millisecond
)

// asker asks one address, on one connection as long as it lives.
type asker struct {
	address    string
	every      time.Duration
	connection net.Conn
	in         *bufio.Reader
	record     record
	out        sender
	reported   int64
}

func newAsker(address, observer string, every time.Duration, out sender) *asker {
	stream := make([]byte, 6)
	_, _ = rand.Read(stream)
	return &asker{
		address: address, every: every, out: out,
		record: record{Stream: hex.EncodeToString(stream), Observer: observer, Target: address, Boot: boot()},
	}
}

// run asks until the context ends, or until `enough` says so after a question.
func (a *asker) run(ctx context.Context, enough func(silentFor time.Duration) bool) {
	lastAnswer := now()
	for ctx.Err() == nil {
		sent := now()
		got, err := a.ask()
		received := now()
		if ctx.Err() != nil {
			break
		}
		a.fold(got, err, sent, received)
		if err == nil {
			lastAnswer = received
		}
		if enough != nil && enough(time.Duration(received-lastAnswer)) {
			break
		}
		time.Sleep(a.every - time.Duration(now()-sent))
	}
	a.report()
}

// fold adds an answer to the run under way, or begins another.
func (a *asker) fold(got answer, err error, sent, received int64) {
	next := record{State: silent}
	switch {
	case err != nil:
		next.Why = err.Error()
	case got.Leader == nil:
		next.State = none
	default:
		next.State, next.Leader, next.ID, next.Epoch = follows, got.Leader.Name, got.Leader.ID, got.Epoch
		if got.Leads {
			next.State = leads
		}
	}
	last := &a.record
	if last.Answers > 0 && next.State == last.State && next.ID == last.ID && next.Epoch == last.Epoch {
		last.LastSent, last.LastReceived, last.Answers = sent, received, last.Answers+1
		if received-a.reported > int64(reportEvery) {
			a.report()
		}
		return
	}
	a.report()
	next.Stream, next.Observer, next.Target, next.Boot = last.Stream, last.Observer, last.Target, last.Boot
	next.Run, next.Answers = last.Run+1, 1
	next.FirstSent, next.FirstReceived, next.LastSent, next.LastReceived = sent, received, sent, received
	a.record = next
	a.report()
}

func (a *asker) report() {
	if a.record.Answers == 0 {
		return
	}
	a.record.Offset = offset()
	a.reported = a.record.LastReceived
	select {
	case a.out <- a.record:
	default: // The collector has been away for an hour; the newest runs are lost.
	}
}

// ask asks once. A connection that was closed between two questions proves nothing: then it asks on another one.
func (a *asker) ask() (answer, error) {
	if a.connection != nil {
		if got, err := a.exchange(); err == nil {
			return got, nil
		} else if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
			a.close()
			return answer{}, err
		}
	}
	a.close()
	connection, err := net.DialTimeout("tcp", a.address, askTimeout)
	if err != nil {
		return answer{}, err
	}
	a.connection, a.in = connection, bufio.NewReader(connection)
	got, err := a.exchange()
	if err != nil {
		a.close()
	}
	return got, err
}

func (a *asker) close() {
	if a.connection != nil {
		a.connection.Close()
		a.connection = nil
	}
}

func (a *asker) exchange() (answer, error) {
	var got answer
	_ = a.connection.SetDeadline(time.Now().Add(askTimeout))
	if _, err := fmt.Fprintf(a.connection, "GET /leader HTTP/1.1\r\nHost: %s\r\n\r\n", a.address); err != nil {
		return got, err
	}
	response, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return got, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return got, err
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return got, fmt.Errorf("status %d", response.StatusCode)
	}
	return got, json.Unmarshal(body, &got)
}

// poll asks the sidecar beside it.
func poll(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("poll", flag.ExitOnError)
	to := flags.String("to", "", "the collector")
	from := flags.String("url", "http://127.0.0.1:4040", "the sidecar's status API")
	every := flags.Duration("every", 2*time.Millisecond, "between two questions")
	health := flags.String("health", "", "where /healthz says whether this application is healthy; /sick and /well change that")
	_ = flags.Parse(arguments)
	if *health != "" {
		if err := serveHealth(*health); err != nil {
			return err
		}
	}
	target, err := url.Parse(*from)
	if err != nil || target.Host == "" || *to == "" {
		return fmt.Errorf("-url %q must be a URL and -to %q the collector's HOST:PORT", *from, *to)
	}
	records := newSender(*to)
	asker := newAsker(target.Host, podName(), *every, records)
	asker.record.Target = "own"
	asker.run(ctx, nil)
	records.drain(ctx)
	return nil
}
