package plan

import "github.com/mensylisir/kubexm/manifest"

// Pipeline implements one request with modules that run one after another. Commands and
// sessions depend on its properties, never on its name.
type Pipeline struct {
	Name    string   // in plans, journals and -o json
	Command []string // the words of the command: "delete", "cluster"
	// Group is the short help of the parent command. Other pipelines may share the parent:
	// only one of them sets it.
	Group string
	Args  Args
	// TargetHosts returns the hosts that its arguments may name; nil means every host of the
	// config.
	TargetHosts func(*manifest.Cluster) []manifest.Host
	Flags       []Flag // further flags of its command
	Short       string // of the command's help, as the next two
	Long        string
	Example     string

	Bundle Use
	// Confirmation returns what the user has to confirm with --yes, such as "destroys it". If
	// it is nil, ConfirmationFor derives the confirmation from the plan.
	Confirmation func(*manifest.Cluster) string
	// ReadOnly marks a pipeline that changes nothing: the findings of its checks are its result.
	ReadOnly bool
	// WritesRecord marks a pipeline that ends by writing the cluster record and a receipt. It is
	// compared with the record of an existing cluster before it starts, so that it does no
	// harm.
	WritesRecord bool
	// HostsOnly marks a pipeline that prepares or restores hosts of any cluster: it is not an
	// operation on a cluster.
	HostsOnly bool
	// Deletes marks a pipeline that deletes a cluster: it works from the cluster record, even if
	// the config differs by now, and can skip hosts that do not answer.
	Deletes bool
	// Membership states how the pipeline changes which hosts are part of the cluster. It works
	// from the cluster record, and applies no other difference between it and the config.
	Membership Membership
	// Rolling marks a pipeline that processes hosts in batches: the user chooses the batch size,
	// and can resume after the last run.
	Rolling bool
	// Drains is whether the pipeline drains nodes: the user chooses how.
	Drains DrainUse
	// UnsupportedFields returns the fields of a config that the pipeline does not support; nil
	// refuses nothing.
	UnsupportedFields func(*manifest.Cluster) manifest.Problems

	Modules []Module
}

// Operates reports whether the pipeline is an operation on a cluster: recorded from its first
// change to its end, and refused while another kind of operation is open. Every pipeline that
// changes a cluster is one.
func (p Pipeline) Operates() bool { return !p.ReadOnly && !p.HostsOnly }

// Args are the positional arguments of a pipeline's command.
type Args int

// The kinds of arguments.
const (
	NoArgs      Args = iota
	Archive          // the bundle, instead of --bundle
	HostNames        // names of hosts, which become the targets of the plan
	OneHostName      // one of them, required
)

// Membership is how a pipeline changes the hosts of a cluster.
type Membership int

// The kinds of membership changes.
const (
	KeepsHosts   Membership = iota
	AddsHosts               // the targets join the cluster; without names, all new hosts of the config
	RemovesHosts            // the targets leave the cluster
)

// Flag is a flag without a value that changes what a pipeline does. Scope.Has reports whether
// it is given.
type Flag struct{ Name, Usage string }

// Use is how a pipeline uses a bundle.
type Use int

// The uses of a bundle.
const (
	BundleUnused   Use = iota // only the bundle's config may be used
	BundleOptional            // with a bundle more is checked
	BundleNeeded              // required if the plan's steps open artifacts
)
