package part

import (
	"net"
	"strconv"

	"github.com/mensylisir/kubexm/manifest"
)

// StoreKind is how the etcd members run.
type StoreKind int

// The kinds of etcd clusters.
const (
	Stacked  StoreKind = iota // static pods on the masters: kubeadm's stacked etcd
	Service                   // systemd services on the hosts of the role etcd
	External                  // existing etcd that kubexm does not manage
)

// Store is the etcd cluster of the API servers.
type Store struct {
	Kind    StoreKind
	Members []manifest.Host // none for external etcd
	// Endpoints are the client URLs for every API server. Stacked etcd has none: each API
	// server uses the local member.
	Endpoints []string
	DataDir   string   // on each member
	Images    []string // of the members, by their names in a Need
}

func storeKind(c *manifest.Cluster) StoreKind {
	switch c.Spec.Etcd.Type {
	case "external":
		return External
	case "kubexm":
		return Service
	}
	return Stacked
}

// StoreOf returns the etcd cluster of a config.
func StoreOf(c *manifest.Cluster) Store {
	s := Store{Kind: storeKind(c), Members: Members.Hosts(c), DataDir: c.Spec.Etcd.DataDir}
	switch s.Kind {
	case External:
		s.DataDir, s.Endpoints = "", c.Spec.Etcd.External.Endpoints
	case Service:
		for _, h := range s.Members {
			s.Endpoints = append(s.Endpoints, "https://"+net.JoinHostPort(c.NodeAddresses(h)[0], strconv.Itoa(ClientPort)))
		}
	case Stacked:
		s.Images = []string{"etcd"}
	}
	return s
}
