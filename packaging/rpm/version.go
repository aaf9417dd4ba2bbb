package rpm

import (
	"strings"

	version "github.com/knqyf263/go-rpm-version"

	"github.com/mensylisir/kubexm/packaging"
)

// Compare compares two versions like rpm: "[epoch:]version[-release]". If one of them has
// no release, the releases count as equal.
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

// label is a version split into epoch and version, and release.
type label struct{ rest, release string }

// splitRelease splits at the last hyphen, like rpm.
func splitRelease(s string) label {
	if i := strings.LastIndexByte(s, '-'); i >= 0 {
		return label{s[:i], s[i+1:]}
	}
	return label{rest: s}
}

// meets reports whether a provided relation meets a required one, like rpmdsCompare: a
// name without a version, on either side, matches every version; else the two ranges must
// overlap.
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
		return true // "= 1" matches every release of version 1
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
