// An application that says whether it is healthy, as it was told.

package main

import (
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// serveHealth answers 200 or 503 on /healthz: 503 after a request for /sick, 200 again after one for /well.
func serveHealth(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	var sick atomic.Bool
	paths := http.NewServeMux()
	paths.HandleFunc("/healthz", func(answer http.ResponseWriter, _ *http.Request) {
		if sick.Load() {
			answer.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	paths.HandleFunc("/sick", func(http.ResponseWriter, *http.Request) { sick.Store(true) })
	paths.HandleFunc("/well", func(http.ResponseWriter, *http.Request) { sick.Store(false) })
	server := http.Server{Handler: paths, ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}
