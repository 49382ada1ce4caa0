// keepalived's VRRP: each process in a network namespace of its own, which benches/peers/programs.rs makes.
//
// VRRP names no leader and has no epochs. keepalived says by a fifo whether it is the master, and all others know
// its address from its advertisements. A master counts its terms in a file that all read.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"bellwether/benches/peers/sidecar"

	"golang.org/x/sys/unix"
)

const (
	// The addresses of the processes begin here.
	network = "198.18.9."
	vrrp    = "ip4:112"
	// Where a VRRP advertisement has its priority. One of a master that ends has 0.
	priorityAt = 2
	// Where it has the address that a master adds to its interface, and where that ends.
	addressAt, addressEnd = 8, 12
	// A master is gone after three intervals and a part of one, by its priority of 100.
	intervals = 3.61
)

const config = `global_defs {
    vrrp_version 3
    vrrp_notify_fifo %[1]s
}
vrrp_instance bellwether {
    interface eth0
    state BACKUP
    nopreempt
    virtual_router_id %[5]d
    priority 100
    advert_int %[2]v
    unicast_src_ip %[3]s
    unicast_peer {
        %[4]s
    }
    virtual_ipaddress {
        %[6]s/32
    }
}
`

// term is what the file says: the place of the latest master, when it began, and how many there were.
type term struct {
	Place int
	Began time.Time
	Epoch uint64
}

// node is what a process knows.
type node struct {
	sidecar.Args
	place  int
	silent time.Duration
	// What a master of this cluster adds to its interface. Clusters at the same time differ in it.
	shared net.IP

	mutex  sync.Mutex
	master bool
	// When each place last advertised itself, and when it last said that it ends.
	heard, ended map[int]time.Time
}

func main() {
	args := sidecar.Parse()
	place, err := strconv.Atoi(args.Name[strings.LastIndex(args.Name, "-")+1:])
	if err != nil {
		log.Fatalf("the name of a process ends with its place: %v", err)
	}
	interval := 1.0
	if args.Fast {
		interval = 0.07
	}
	port := firstPort(args)
	node := &node{
		Args: args, place: place, shared: net.IPv4(198, 19, byte(port>>8), byte(port)), silent: time.Duration(interval * intervals * float64(time.Second)),
		heard: make(map[int]time.Time), ended: make(map[int]time.Time),
	}
	namespace := fmt.Sprintf("bellwether-peers-%d-%d", os.Getppid(), place)
	folder, err := os.MkdirTemp(args.StateDir, "")
	if err != nil {
		log.Fatal(err)
	}
	fifo := filepath.Join(folder, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		log.Fatal(err)
	}
	var peers []string
	for other := range args.Voters {
		if other+1 != place {
			peers = append(peers, address(other+1))
		}
	}
	file := filepath.Join(folder, "keepalived.conf")
	text := fmt.Sprintf(config, fifo, interval, address(place), strings.Join(peers, "\n        "),
		1+port%255, node.shared)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Fatal(err)
	}
	adverts, err := listen(namespace, address(place))
	if err != nil {
		log.Fatalf("adverts: %v", err)
	}
	// Open for writing too, so that it has no end.
	states, err := os.OpenFile(fifo, os.O_RDWR, 0)
	if err != nil {
		log.Fatal(err)
	}
	keepalived := exec.Command("ip", "netns", "exec", namespace, "keepalived", "--dont-fork", "--log-console",
		"--vrrp", "--use-file", file, "--pid", filepath.Join(folder, "pid"),
		"--vrrp_pid", filepath.Join(folder, "vrrp-pid"))
	keepalived.Stdout, keepalived.Stderr = os.Stderr, os.Stderr
	// With the thread that starts it.
	runtime.LockOSThread()
	keepalived.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := keepalived.Start(); err != nil {
		log.Fatal(err)
	}
	go node.hear(adverts)
	go node.follow(states)
	go node.lead()
	// The bench's signals go to the process group, and so to keepalived too; other signals do not.
	sidecar.Serve(args, node.answer, func() {
		_ = keepalived.Process.Signal(syscall.SIGTERM)
		if err := keepalived.Wait(); err != nil {
			log.Print(err)
		}
	})
}

func address(place int) string {
	return network + strconv.Itoa(place)
}

// firstPort is a number that all processes of a cluster know, and no other cluster.
func firstPort(args sidecar.Args) uint16 {
	_, port, err := net.SplitHostPort(args.Peers[0])
	if err != nil {
		log.Fatal(err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		log.Fatal(err)
	}
	return uint16(number)
}

// listen opens a socket for advertisements in a namespace.
func listen(namespace, address string) (net.PacketConn, error) {
	// The thread stays in that namespace, so it is not given back, and ends with its goroutine.
	type opened struct {
		conn net.PacketConn
		err  error
	}
	done := make(chan opened)
	go func() {
		runtime.LockOSThread()
		there, err := os.Open("/run/netns/" + namespace)
		if err == nil {
			err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET)
		}
		var conn net.PacketConn
		if err == nil {
			conn, err = net.ListenPacket(vrrp, address)
		}
		done <- opened{conn, err}
	}()
	result := <-done
	return result.conn, result.err
}

// hear takes down which other process advertises itself.
func (node *node) hear(adverts net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		count, from, err := adverts.ReadFrom(buffer)
		if err != nil {
			log.Fatal(err)
		}
		place, err := strconv.Atoi(strings.TrimPrefix(from.String(), network))
		if err != nil || place < 1 || place > len(node.Voters) || place == node.place || count < addressEnd ||
			!node.shared.Equal(net.IP(buffer[addressAt:addressEnd])) {
			continue
		}
		node.mutex.Lock()
		if buffer[priorityAt] == 0 {
			node.ended[place] = time.Now()
		} else {
			node.heard[place] = time.Now()
		}
		node.mutex.Unlock()
	}
}

// follow takes down whether this process is the master.
func (node *node) follow(states *os.File) {
	lines := bufio.NewScanner(states)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 || words[0] != "INSTANCE" {
			continue
		}
		node.mutex.Lock()
		// Or MASTER_RX_LOWER_PRI: it has heard of another master, which yields.
		node.master = strings.HasPrefix(words[2], "MASTER")
		node.claim()
		node.mutex.Unlock()
	}
}

// lead begins a term where another master has counted one and yields: two led for a moment.
func (node *node) lead() {
	for range time.Tick(5 * time.Millisecond) {
		node.mutex.Lock()
		node.claim()
		node.mutex.Unlock()
	}
}

// alive says whether a place leads as far as is known here, if it led at this time.
func (node *node) alive(place int, since time.Time) bool {
	if heard := node.heard[place]; heard.After(since) {
		since = heard
	}
	return node.ended[place].Before(since) && time.Since(since) <= node.silent
}

func (node *node) file() string {
	return filepath.Join(filepath.Dir(node.StateDir), "term")
}

func (node *node) term() (term, error) {
	var latest term
	text, err := os.ReadFile(node.file())
	if errors.Is(err, os.ErrNotExist) {
		return latest, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &latest)
	}
	return latest, err
}

// claim begins a term, if this process is the master. Of two masters, the one of the lower address yields.
func (node *node) claim() {
	if !node.master {
		return
	}
	latest, err := node.term()
	if err != nil {
		log.Fatal(err)
	}
	yields := latest.Place > node.place && node.alive(latest.Place, latest.Began)
	if latest.Place == node.place || yields {
		return
	}
	text, err := json.Marshal(term{Place: node.place, Began: time.Now(), Epoch: latest.Epoch + 1})
	if err != nil {
		log.Fatal(err)
	}
	own := filepath.Join(node.StateDir, "term")
	if err := os.WriteFile(own, text, 0o600); err != nil {
		log.Fatal(err)
	}
	if err := os.Rename(own, node.file()); err != nil {
		log.Fatal(err)
	}
}

// answer names the master that the file names, once an advertisement of it has come. keepalived sends the first one
// before it says that it is the master.
func (node *node) answer() sidecar.Answer {
	node.mutex.Lock()
	defer node.mutex.Unlock()
	latest, err := node.term()
	itself := node.master && latest.Place == node.place
	follows := !node.master && node.alive(latest.Place, node.heard[latest.Place])
	if err != nil || !itself && !follows {
		return sidecar.New("", false, 0)
	}
	return sidecar.New(node.Voters[latest.Place-1], itself, latest.Epoch)
}
