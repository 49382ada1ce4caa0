// Package sidecar gives another system's election the command line and the `/leader` of bellwether, so that one
// prober measures both.
package sidecar

import (
	"encoding/json"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Args are what `bellwether run` is given by benches/peers.rs.
type Args struct {
	Election, Name, Listen, HTTP, StateDir string
	// Peers are all members' addresses, and Voters their names, in one order.
	Peers, Voters []string
	// Fast asks for the fastest documented setting.
	Fast bool
}

// Parse reads the command line.
func Parse() Args {
	var args Args
	var peers, voters string
	flags := flag.NewFlagSet("run", flag.ExitOnError)
	flags.StringVar(&args.Election, "election", "", "")
	flags.StringVar(&args.Name, "name", "", "")
	flags.StringVar(&args.Listen, "listen", "", "")
	flags.StringVar(&args.HTTP, "http", "", "")
	flags.StringVar(&args.StateDir, "state-dir", "", "")
	flags.StringVar(&peers, "peers", "", "")
	flags.StringVar(&voters, "voters", "", "")
	flags.BoolVar(&args.Fast, "fast", false, "")
	// Given to each process, and without a meaning here.
	flags.String("advertise", "", "")
	flags.String("safety", "", "")
	if len(os.Args) < 2 || os.Args[1] != "run" {
		log.Fatal("the first argument is run")
	}
	if err := flags.Parse(os.Args[2:]); err != nil {
		log.Fatal(err)
	}
	args.Peers, args.Voters = strings.Split(peers, ","), strings.Split(voters, ",")
	return args
}

// NameOf is the name of the member at an address.
func (args Args) NameOf(address string) string {
	for at, peer := range args.Peers {
		if peer == address && at < len(args.Voters) {
			return args.Voters[at]
		}
	}
	return ""
}

// Leader is a leader as `/leader` names it.
type Leader struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Answer is what `/leader` answers.
type Answer struct {
	Leader   *Leader `json:"leader"`
	IsLeader bool    `json:"is_leader"`
	Epoch    uint64  `json:"epoch"`
}

// New answers for a leader of this name; an empty one is none.
func New(leader string, isLeader bool, epoch uint64) Answer {
	answer := Answer{IsLeader: isLeader, Epoch: epoch}
	if leader != "" {
		answer.Leader = &Leader{ID: leader, Name: leader}
	}
	return answer
}

// Serve answers `/leader` until SIGTERM, and then stops in order.
func Serve(args Args, answer func() Answer, stop func()) {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	http.HandleFunc("/leader", func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(answer())
	})
	go func() { log.Fatal(http.ListenAndServe(args.HTTP, nil)) }()
	<-asked
	stop()
}
