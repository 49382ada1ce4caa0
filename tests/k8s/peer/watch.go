// Asking every pod of a Service from a pod outside: it goes on while the one asked is being deleted.

package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"sync"
	"time"
)

const (
	lookUpEvery = 200 * time.Millisecond
	// A pod that names do not list any more and that has been silent for this long is forgotten.
	forgetAfter = 2 * time.Second
)

func watch(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("watch", flag.ExitOnError)
	to := flags.String("to", "", "the collector")
	service := flags.String("service", "", "the Service whose pods are asked")
	port := flags.String("port", "4040", "the status port")
	every := flags.Duration("every", 2*time.Millisecond, "between two questions to one pod")
	_ = flags.Parse(arguments)
	if *to == "" || *service == "" {
		return fmt.Errorf("-to (the collector's HOST:PORT) and -service are needed")
	}
	records := newSender(*to)
	var (
		guard  sync.Mutex
		listed = map[string]bool{} // by the last look-up that succeeded
		asked  = map[string]bool{}
		all    sync.WaitGroup
	)
	ask := func(address string) {
		defer all.Done()
		asker := newAsker(net.JoinHostPort(address, *port), podName(), *every, records)
		asker.run(ctx, func(silentFor time.Duration) bool {
			guard.Lock()
			defer guard.Unlock()
			if listed[address] || silentFor < forgetAfter {
				return false
			}
			delete(asked, address)
			return true
		})
	}
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, time.Second)
		addresses, err := net.DefaultResolver.LookupHost(limited, *service)
		cancel()
		if err == nil {
			guard.Lock()
			listed = map[string]bool{}
			for _, address := range addresses {
				listed[address] = true
				if !asked[address] {
					asked[address] = true
					all.Add(1)
					go ask(address)
				}
			}
			guard.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-time.After(lookUpEvery):
		}
	}
	all.Wait()
	records.drain(ctx)
	return nil
}
