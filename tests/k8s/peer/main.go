// Command peer is what the end-to-end tests put into pods: an application that asks its sidecar who leads, a watcher that
// asks all of them, a collector of what these saw, the killer of a process, and an elector of client-go to compare with.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `usage: peer poll     -to HOST:PORT [-url URL] [-every DURATION] [-health ADDR:PORT]
                                                                    asks the sidecar of its own pod
       peer watch    -to HOST:PORT -service NAME [-port N] [-every DURATION]   asks every pod of a Service
       peer collect  [-listen ADDR:PORT]                            prints what it is sent
       peer lease    -name NAME [-duration D -deadline D -retry D]  takes part in an election by a Lease
       peer kill     -process NAME -pods NAME=UID=IP,... [-to HOST:PORT] [-wait D -every D -times N -detach]
       peer idle                                                    waits
`

func main() {
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	// The signals that the kubelet sends to end a container.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	modes := map[string]func(context.Context, []string) error{
		"poll": poll, "watch": watch, "collect": collect, "lease": lease, "kill": kill, "idle": idle,
	}
	mode, known := modes[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "peer: there is no mode %q\n%s", os.Args[1], usage)
		os.Exit(2)
	}
	if err := mode(ctx, os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "peer %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

// idle keeps a container alive in which `peer kill` is run.
func idle(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return nil
}
