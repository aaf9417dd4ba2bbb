package plan

import "github.com/mensylisir/kubexm/manifest"

// Pipeline answers one request with modules, one after another. What commands and
// sessions do about it follows from its properties, never from its name.
type Pipeline struct {
	Name    string   // in plans, journals and -o json
	Command []string // the words by which a person asks for it: "delete", "cluster"
	// Group is the short help of the words before the last one, which other pipelines may
	// have too: one of them says it.
	Group   string
	Args    Args
	Short   string // of the command's help, as the next two
	Long    string
	Example string

	Bundle Use
	// Asks says what it does that a person has to confirm with --yes: "destroys it", of
	// the cluster. Where it is nil, Question finds in the plan whether somebody is asked.
	Asks func(*manifest.Cluster) string
	// Looks says that it changes nothing: what its checks find is its result.
	Looks bool
	// Keeps says that it ends by recording what was applied, with a receipt. A cluster
	// that exists is held against that record before it begins, and kept from harm.
	Keeps bool
	// HostsOnly says that it makes hosts ready or gives them back, of whatever cluster: it
	// is no operation on one.
	HostsOnly bool
	// Away says that it takes a cluster away: it works on what was applied, whatever the
	// config says by now, and can do without hosts that do not answer.
	Away bool
	// Rolls says that it goes through hosts that are in use some at a time: a person says
	// how many, and may go on after what the last run did.
	Rolls bool
	// Refuses names what of a config it is not for; nil refuses nothing.
	Refuses func(*manifest.Cluster) manifest.Problems

	Modules []Module
}

// Operates tells whether it is an operation on a cluster: on record from its first change
// to its end, and refused while one of another kind is open. Each is that changes a
// cluster.
func (p Pipeline) Operates() bool { return !p.Looks && !p.HostsOnly }

// Args is what follows a pipeline's command.
type Args int

// The arguments of commands.
const (
	NoArgs  Args = iota
	Archive      // the bundle, in place of --bundle
)

// Use is what a pipeline does with a bundle.
type Use int

// The uses of a bundle.
const (
	BundleUnused   Use = iota // what is in it does not matter; its config may
	BundleOptional            // with one, more is looked at
	BundleNeeded              // as far as the plan's steps open what it holds
)
