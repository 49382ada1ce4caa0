// Printing what the others send, so that `kubectl logs` fetches it.

package main

import (
	"bufio"
	"context"
	"flag"
	"net"
	"os"
	"sync"
)

func collect(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("collect", flag.ExitOnError)
	listen := flags.String("listen", ":9000", "where the others connect")
	_ = flags.Parse(arguments)
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	go func() {
		<-ctx.Done()
		listener.Close()
	}()
	var guard sync.Mutex
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			lines := bufio.NewScanner(connection)
			for lines.Scan() {
				guard.Lock()
				_, _ = os.Stdout.Write(append(lines.Bytes(), '\n'))
				guard.Unlock()
			}
		}()
	}
}
