// hashicorp/raft, with its records in bbolt.
package main

import (
	"io"
	"log"
	"path/filepath"
	"time"

	"bellwether/benches/peers/sidecar"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// nothing is a state machine without state.
type nothing struct{}

func (nothing) Apply(*raft.Log) any                 { return nil }
func (nothing) Snapshot() (raft.FSMSnapshot, error) { return nothing{}, nil }
func (nothing) Restore(in io.ReadCloser) error      { return in.Close() }
func (nothing) Persist(sink raft.SnapshotSink) error {
	return sink.Close()
}
func (nothing) Release() {}

func main() {
	args := sidecar.Parse()
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(args.Listen)
	config.LogLevel = "WARN"
	if args.Fast {
		// The library allows far shorter ones, and recommends none.
		config.HeartbeatTimeout = 250 * time.Millisecond
		config.ElectionTimeout = 250 * time.Millisecond
		config.LeaderLeaseTimeout = 125 * time.Millisecond
	}
	store, err := raftboltdb.NewBoltStore(filepath.Join(args.StateDir, "raft.db"))
	if err != nil {
		log.Fatal(err)
	}
	transport, err := raft.NewTCPTransport(args.Listen, nil, 3, time.Second, io.Discard)
	if err != nil {
		log.Fatal(err)
	}
	var servers []raft.Server
	for _, peer := range args.Peers {
		servers = append(servers, raft.Server{ID: raft.ServerID(peer), Address: raft.ServerAddress(peer)})
	}
	snapshots := raft.NewInmemSnapshotStore()
	node, err := raft.NewRaft(config, nothing{}, store, store, snapshots, transport)
	if err != nil {
		log.Fatal(err)
	}
	// A process that comes back has this on disk already.
	_ = node.BootstrapCluster(raft.Configuration{Servers: servers}).Error()
	answer := func() sidecar.Answer {
		_, leader := node.LeaderWithID()
		leads := node.State() == raft.Leader
		return sidecar.New(args.NameOf(string(leader)), leads, node.CurrentTerm())
	}
	sidecar.Serve(args, answer, func() {
		if node.State() == raft.Leader {
			_ = node.LeadershipTransfer().Error()
		}
		_ = node.Shutdown().Error()
	})
}
