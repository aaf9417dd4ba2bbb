package state

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// View is what is known of a cluster, for a person.
type View struct {
	Name       string            `json:"name"`
	Release    string            `json:"release"` // "" where the creation has not ended
	Masters    int               `json:"masters"`
	Hosts      int               `json:"hosts"`
	Operation  string            `json:"operation,omitempty"` // that is open
	Serial     int64             `json:"serial"`
	Lead       string            `json:"lead,omitempty"`
	Away       []string          `json:"away,omitempty"` // hosts that the last operation went without
	Revision   int64             `json:"revision"`
	Bundle     string            `json:"bundle,omitempty"`
	Lock       string            `json:"lock,omitempty"`
	Config     string            `json:"config,omitempty"` // "sha256:…"
	Highest    int64             `json:"highest"`
	Components map[string]string `json:"components,omitempty"`
}

// ViewOf is a cluster by its record, nil where it has none, and the operation that is open.
func ViewOf(name string, e *manifest.Existing, open *cluster.Operation) (View, error) {
	v := View{Name: name}
	if open != nil {
		v.Operation = fmt.Sprintf("%s %s", open.Kind, open.State)
	}
	if e == nil {
		return v, nil
	}
	config, err := e.Config.Public()
	if err != nil {
		return v, err
	}
	return View{
		Name: name, Operation: v.Operation, Release: e.Set, Masters: len(e.Config.HostsWith(manifest.RoleMaster)), Hosts: len(e.Hosts), Serial: e.Serial, Lead: e.Lead, Away: e.Away, Revision: e.Revision,
		Bundle: e.Root, Lock: e.Lock, Config: digest.FromBytes(config).String(), Highest: e.Highest, Components: e.Components,
	}, nil
}

// ViewHere is a cluster as its folder dir on this machine knows it.
func ViewHere(name, dir string) (View, error) {
	known, err := Here(dir)
	if err != nil {
		return View{}, err
	}
	open, err := cluster.OperationHere(dir)
	if err != nil {
		return View{}, err
	}
	return ViewOf(name, known, open)
}

// OperationView is an operation, and of which cluster.
type OperationView struct {
	cluster.Ended
	Cluster string `json:"cluster"`
}

// OperationViews are the operations that have ended, then the one that is open.
func OperationViews(name string, all []cluster.Ended, open *cluster.Operation) []OperationView {
	var out []OperationView
	for _, e := range all {
		out = append(out, OperationView{Ended: e, Cluster: name})
	}
	if open != nil {
		out = append(out, OperationView{Ended: cluster.Ended{Operation: *open}, Cluster: name})
	}
	return out
}

// OperationsHere are the operations on a cluster as its folder dir on this machine knows
// them.
func OperationsHere(name, dir string) ([]OperationView, error) {
	all, err := cluster.HistoryHere(dir)
	if err != nil {
		return nil, err
	}
	open, err := cluster.OperationHere(dir)
	return OperationViews(name, all, open), err
}
