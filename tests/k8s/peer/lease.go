// An election by client-go and a Lease, as most controllers have it, which answers like the sidecar.

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func lease(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("lease", flag.ExitOnError)
	name := flags.String("name", "", "name of the Lease")
	duration := flags.Duration("duration", 15*time.Second, "LeaseDuration")
	deadline := flags.Duration("deadline", 10*time.Second, "RenewDeadline")
	retry := flags.Duration("retry", 2*time.Second, "RetryPeriod")
	listen := flags.String("listen", ":4040", "where /leader is answered")
	_ = flags.Parse(arguments)
	namespace := os.Getenv("POD_NAMESPACE")
	if *name == "" || namespace == "" {
		return fmt.Errorf("-name and the variable POD_NAMESPACE are needed")
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return err
	}
	// What else the client would wait for is not the election's.
	config.QPS, config.Burst = 100, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	// Another identity in each life, as controllers have it.
	identity := fmt.Sprintf("%s_%d", podName(), now())

	var (
		guard  sync.Mutex
		leader string // the leader that the elector has told of
		epoch  uint64 // of this process's leadership; 0 when it does not lead
	)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		guard.Lock()
		reply := map[string]any{"leader": nil, "is_leader": epoch > 0, "epoch": epoch}
		holder := leader
		if epoch > 0 {
			holder = identity
		}
		guard.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if holder == "" {
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			pod, _, _ := strings.Cut(holder, "_")
			reply["leader"] = map[string]string{"id": holder, "name": pod}
		}
		_ = json.NewEncoder(w).Encode(reply)
	}))

	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: *name, Namespace: namespace},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
	// A controller that has lost its lease ends and is started again. Here it stands again at once, which is faster.
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: *duration, RenewDeadline: *deadline, RetryPeriod: *retry,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					guard.Lock()
					epoch = uint64(time.Now().UnixMicro())
					guard.Unlock()
				},
				OnStoppedLeading: func() {
					guard.Lock()
					epoch = 0
					guard.Unlock()
				},
				OnNewLeader: func(holder string) {
					guard.Lock()
					leader = holder
					guard.Unlock()
				},
			},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
	}
	return nil
}
