// client-go's leader election with a Lease of the API server that KUBECONFIG names.
package main

import (
	"context"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bellwether/benches/peers/sidecar"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// seen is a lock that keeps the number of transitions that it has seen last: it serves as an epoch.
type seen struct {
	resourcelock.Interface
	transitions atomic.Uint64
}

func (lock *seen) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := lock.Interface.Get(ctx)
	if err == nil {
		lock.transitions.Store(uint64(record.LeaderTransitions) + 1)
	}
	return record, raw, err
}

func (lock *seen) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	err := lock.Interface.Update(ctx, record)
	if err == nil {
		lock.transitions.Store(uint64(record.LeaderTransitions) + 1)
	}
	return err
}

func main() {
	args := sidecar.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", args.Election,
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: args.Name})
	if err != nil {
		log.Fatal(err)
	}
	lock := &seen{Interface: lease}
	settings := leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true,
		// The defaults of Kubernetes' own components.
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	}
	if args.Fast {
		// Shorter ones are unsound: the times of the record are whole seconds.
		settings.LeaseDuration, settings.RenewDeadline = 2*time.Second, 1500*time.Millisecond
		settings.RetryPeriod = 500 * time.Millisecond
	}
	elector, err := leaderelection.NewLeaderElector(settings)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Add(1)
	go func() {
		defer ended.Done()
		// It returns where a leader has lost its lease.
		for ctx.Err() == nil {
			elector.Run(ctx)
		}
	}()
	answer := func() sidecar.Answer {
		return sidecar.New(elector.GetLeader(), elector.IsLeader(), lock.transitions.Load())
	}
	sidecar.Serve(args, answer, func() {
		cancel()
		ended.Wait()
	})
}
