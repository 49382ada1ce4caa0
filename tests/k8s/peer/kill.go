// Killing the leader's process, as a crash would: from the node's process namespace, since a container's first
// process ignores SIGKILL from its own.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type pod struct{ name, uid, ip string }

func pods(list string) ([]pod, error) {
	var all []pod
	for _, item := range strings.Split(list, ",") {
		parts := strings.Split(item, "=")
		if len(parts) != 3 {
			return nil, fmt.Errorf("-pods: %q is no NAME=UID=IP", item)
		}
		all = append(all, pod{parts[0], parts[1], parts[2]})
	}
	return all, nil
}

func kill(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("kill", flag.ExitOnError)
	process := flags.String("process", "", "name of the process")
	list := flags.String("pods", "", "the pods of the election: NAME=UID=IP,...")
	to := flags.String("to", "", "the collector")
	wait := flags.Duration("wait", 0, "before the first kill")
	every := flags.Duration("every", 0, "between two kills")
	times := flags.Int("times", 1, "how many kills")
	detach := flags.Bool("detach", false, "go on after this command has ended, when no node can be reached to run another")
	_ = flags.Parse(arguments)
	all, err := pods(*list)
	if err != nil {
		return err
	}
	if *process == "" {
		return errors.New("-process is needed")
	}
	if *detach {
		rest := []string{"kill"}
		for _, argument := range arguments {
			if argument != "-detach" {
				rest = append(rest, argument)
			}
		}
		// Without files of its own, so that no process waits for their end.
		child := exec.Command("/proc/self/exe", rest...)
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return child.Start()
	}
	var records sender
	if *to != "" {
		records = newSender(*to)
	}
	next := time.Now().Add(*wait)
	for count := 0; count < *times; count++ {
		time.Sleep(time.Until(next))
		next = next.Add(*every)
		victim, err := leader(all)
		if err != nil {
			if *times == 1 {
				return err
			}
			continue // An election is under way; the record will lack this kill.
		}
		at, err := killIn(victim.uid, *process)
		if err != nil {
			return fmt.Errorf("%s: %w", victim.name, err)
		}
		fmt.Println(victim.name)
		if records != nil {
			records <- record{
				Observer: podName(), Target: victim.name, State: killed, Boot: boot(), Offset: offset(), Answers: 1,
				Stream: "kill", Run: int(at), FirstSent: at, FirstReceived: at, LastSent: at, LastReceived: at,
			}
		}
	}
	if records != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		records.drain(ended)
		time.Sleep(500 * time.Millisecond) // The connection may have to be made first.
	}
	return nil
}

// leader finds out who leads, by asking all.
func leader(all []pod) (pod, error) {
	for try := 0; try < 20; try++ {
		for _, candidate := range all {
			asker := newAsker(net.JoinHostPort(candidate.ip, "4040"), "", 0, nil)
			got, err := asker.ask()
			asker.close()
			if err == nil && got.Leads {
				return candidate, nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return pod{}, errors.New("no process says that it leads")
}

// killIn kills the process of that name in the pod, which is known by its cgroup.
func killIn(uid, process string) (int64, error) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		name, _ := os.ReadFile(folder + "/comm")
		if strings.TrimSpace(string(name)) != process {
			continue
		}
		// systemd's driver writes the number with underscores.
		groups, _ := os.ReadFile(folder + "/cgroup")
		if !strings.Contains(strings.ReplaceAll(string(groups), "_", "-"), uid) {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return 0, err
		}
		return now(), syscall.Kill(id, syscall.SIGKILL)
	}
	return 0, fmt.Errorf("no process %s on this node", process)
}
