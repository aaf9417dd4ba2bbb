package part

import (
	"net"
	"strconv"

	"github.com/mensylisir/kubexm/manifest"
)

// StoreKind says who runs the members of the store.
type StoreKind int

// The kinds of stores.
const (
	Stacked  StoreKind = iota // the kubelets of the masters, as kubeadm has it
	Service                   // systemd on the hosts of the role etcd
	External                  // somebody else
)

// Store is the etcd that the API servers keep their objects in.
type Store struct {
	Kind    StoreKind
	Members []manifest.Host // none of an external one
	// Endpoints are where every API server reaches it. There are none of a stacked one:
	// each API server has its own member.
	Endpoints []string
	DataDir   string   // on each member
	Images    []string // that members run, as needs name them
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

// StoreOf gives the store of a config.
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
