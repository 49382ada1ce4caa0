// etcd, embedded: which of its members leads.
package main

import (
	"fmt"
	"log"
	"net/url"
	"strings"

	"bellwether/benches/peers/sidecar"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/embed"
)

func main() {
	args := sidecar.Parse()
	config := embed.NewConfig()
	config.Name, config.Dir, config.LogLevel = args.Name, args.StateDir, "error"
	at, err := url.Parse("http://" + args.Listen)
	if err != nil {
		log.Fatal(err)
	}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*at}, []url.URL{*at}
	// No client asks it anything, at any port.
	client := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config.ListenClientUrls, config.AdvertiseClientUrls = client, client
	var members []string
	for place, peer := range args.Peers {
		members = append(members, fmt.Sprintf("%s=http://%s", args.Voters[place], peer))
	}
	config.InitialCluster = strings.Join(members, ",")
	if args.Fast {
		// An election timeout has to be at least five heartbeats.
		config.TickMs, config.ElectionMs = 50, 250
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		log.Fatal(err)
	}
	// Several clients may ask at once.
	answer := func() sidecar.Answer {
		leader := server.Server.Leader()
		names := map[types.ID]string{}
		for _, member := range server.Server.Cluster().Members() {
			names[member.ID] = member.Name
		}
		leads := leader != 0 && leader == server.Server.MemberID()
		return sidecar.New(names[leader], leads, server.Server.Term())
	}
	sidecar.Serve(args, answer, server.Close)
}
