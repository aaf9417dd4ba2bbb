package state

import (
	"fmt"

	"github.com/opencontainers/go-digest"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// View is the information about a cluster that the user gets.
type View struct {
	Name       string            `json:"name"`
	Release    string            `json:"release"` // "" if the installation has not ended
	Masters    int               `json:"masters"`
	Hosts      int               `json:"hosts"`
	Operation  string            `json:"operation,omitempty"` // the open operation
	Serial     int64             `json:"serial"`
	Lead       string            `json:"lead,omitempty"`
	Away       []string          `json:"away,omitempty"` // hosts that the last operation skipped
	Revision   int64             `json:"revision"`
	Bundle     string            `json:"bundle,omitempty"`
	Lock       string            `json:"lock,omitempty"`
	Config     string            `json:"config,omitempty"` // "sha256:…"
	Highest    int64             `json:"highest"`
	Components map[string]string `json:"components,omitempty"`
}

// ViewOf returns the view of a cluster from its record, nil without one, and its open
// operation.
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

// ViewHere returns the view of a cluster from its folder dir on this machine.
func ViewHere(name, dir string) (View, error) {
	known, err := Here(dir)
	if err != nil {
		return View{}, err
	}
	open, err := cluster.ReadWorkdirOperation(dir)
	if err != nil {
		return View{}, err
	}
	return ViewOf(name, known, open)
}

// OperationView is an operation with its cluster.
type OperationView struct {
	cluster.HistoryEntry
	Cluster string `json:"cluster"`
}

// OperationViews returns the operations that have ended, followed by the open one.
func OperationViews(name string, all []cluster.HistoryEntry, open *cluster.Operation) []OperationView {
	var out []OperationView
	for _, e := range all {
		out = append(out, OperationView{HistoryEntry: e, Cluster: name})
	}
	if open != nil {
		out = append(out, OperationView{HistoryEntry: cluster.HistoryEntry{Operation: *open}, Cluster: name})
	}
	return out
}

// OperationsHere returns the operations on a cluster from its folder dir on this machine.
func OperationsHere(name, dir string) ([]OperationView, error) {
	all, err := cluster.ReadWorkdirHistory(dir)
	if err != nil {
		return nil, err
	}
	open, err := cluster.ReadWorkdirOperation(dir)
	return OperationViews(name, all, open), err
}
