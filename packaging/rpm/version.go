package rpm

import (
	"strings"

	version "github.com/knqyf263/go-rpm-version"

	"github.com/mensylisir/kubexm/packaging"
)

// Compare orders two versions as rpm does: "[epoch:]version[-release]". Where one
// of them has no release the releases are taken as equal.
func Compare(a, b string) int {
	x, y := splitRelease(a), splitRelease(b)
	if c := version.NewVersion(x.rest).Compare(version.NewVersion(y.rest)); c != 0 {
		return c
	}
	if x.release == "" || y.release == "" {
		return 0
	}
	return version.NewVersion(x.release).Compare(version.NewVersion(y.release))
}

// label is a version in two parts; the first has epoch and version.
type label struct{ rest, release string }

// splitRelease parts at the last hyphen, as rpm does.
func splitRelease(s string) label {
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		return label{s[:i], s[i+1:]}
	}
	return label{rest: s}
}

// meets tells whether what a package provides answers what is asked for, as
// rpmdsCompare does: a name without a version, on either side, has every
// version; else the two ranges have to overlap.
func meets(provided, asked packaging.Relation) bool {
	if provided.Operator == packaging.AnyVersion || asked.Operator == packaging.AnyVersion {
		return true
	}
	a, b := splitRelease(provided.Version), splitRelease(asked.Version)
	p, q := senses[provided.Operator], senses[asked.Operator]
	switch c := Compare(provided.Version, asked.Version); {
	case c < 0:
		return p&greater != 0 || q&less != 0
	case c > 0:
		return p&less != 0 || q&greater != 0
	case a.release == "" && b.release != "" && p&equal != 0, a.release != "" && b.release == "" && q&equal != 0:
		return true // "= 1" is every release of it
	}
	return p&q != 0
}

type sense int

const (
	less sense = 1 << iota
	equal
	greater
)

var senses = map[packaging.Operator]sense{
	packaging.Earlier: less, packaging.AtMost: less | equal, packaging.Exactly: equal,
	packaging.AtLeast: greater | equal, packaging.Later: greater,
}
