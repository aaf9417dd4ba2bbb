package rpm

import (
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

func (e *entry) checksum(d tokens, s xml.StartElement) error {
	var sum string
	if err := text(d, &sum); err != nil {
		return err
	}
	kind := attribute(s, "type")
	if err := checkSum(kind, sum); err != nil {
		return err
	}
	switch kind {
	case "sha256":
		e.SHA256 = sum
	case "sha512":
		e.SHA512 = sum
	default:
		return fmt.Errorf("its checksum is %s, neither sha256 nor sha512", kind)
	}
	return nil
}

// checkSum looks whether a checksum is one of its kind.
func checkSum(kind, sum string) error {
	h, ok := hashes[kind]
	if !ok {
		return fmt.Errorf("its checksum is %q, not one of sha256, sha384 and sha512", kind)
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != h().Size() || strings.ToLower(sum) != sum {
		return fmt.Errorf("its %s %q is none", kind, sum)
	}
	return nil
}

// check looks whether what one needs of a package is there, and harmless: names
// end up in commands, addresses and folders.
func (e *entry) check() error {
	switch {
	case !plain(e.Name) || !plain(e.Arch) || !plain(e.Version) || strings.ContainsRune(e.Name, '/'):
		return fmt.Errorf("name %q, version %q or architecture %q is not one of a package", e.Name, e.Version, e.Arch)
	case e.SHA256 == "" && e.SHA512 == "":
		return errors.New("no checksum")
	}
	return checkLocation(e.Location)
}

// plain tells whether s consists of what rpm allows in a name or a version.
func plain(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("'\"`$;&|<>\\*?[]{}()!#%", r)
	})
}

// checkLocation refuses what does not lead to a place below the repository. It is
// no address: some programs leave in what an address would have to escape.
func checkLocation(href string) error {
	if href == "" || href == "." || path.IsAbs(href) || path.Clean(href) != strings.TrimPrefix(href, "./") ||
		strings.HasPrefix(path.Clean(href), "../") || path.Clean(href) == ".." || strings.Contains(href, "://") ||
		strings.ContainsFunc(href, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\\?#", r) }) {
		return fmt.Errorf("location %q is no place below the repository", href)
	}
	return nil
}

// format reads what a package provides and asks for.
func (e *entry) format(d tokens) error {
	return children(d, func(s xml.StartElement) error {
		switch s.Name.Local {
		case "provides":
			return e.relations(d, func(r packaging.Relation) error {
				e.Provides = append(e.Provides, r)
				return nil
			})
		case "requires":
			return e.relations(d, e.requires)
		case "conflicts":
			return e.relations(d, e.conflicts)
		case "obsoletes":
			return e.relations(d, func(r packaging.Relation) error {
				e.Obsoletes = append(e.Obsoletes, r)
				return nil
			})
		case "file":
			f := owned{kind: attribute(s, "type")}
			if err := text(d, &f.path); err != nil {
				return err
			}
			e.files = append(e.files, f)
			return nil
		}
		return d.Skip()
	})
}

// relations reads a list of <rpm:entry name flags epoch ver rel pre/>. What has to
// be there before the package's scripts run is in the set like all the rest.
func (e *entry) relations(d tokens, f func(packaging.Relation) error) error {
	return children(d, func(s xml.StartElement) error {
		if s.Name.Local == "entry" {
			r := packaging.Relation{Name: attribute(s, "name")}
			if flags := attribute(s, "flags"); flags != "" {
				op, ok := flagged[flags]
				if !ok {
					return fmt.Errorf("%s: there are no flags %q", r.Name, flags)
				}
				if r.Version = evr(attribute(s, "epoch"), attribute(s, "ver"), attribute(s, "rel")); r.Version != "" {
					r.Operator = op
				}
			}
			if r.Name == "" {
				return errors.New("a relation without a name")
			}
			if err := f(r); err != nil {
				e.odd = append(e.odd, err.Error())
			}
		}
		return d.Skip()
	})
}

// flagged has the operators as primary writes them.
var flagged = map[string]packaging.Operator{
	"LT": packaging.Earlier, "LE": packaging.AtMost, "EQ": packaging.Exactly, "GE": packaging.AtLeast, "GT": packaging.Later,
}

// requires adds what the package needs. What rpm itself has to be able to,
// "rpmlib(…)", no package provides.
func (e *entry) requires(r packaging.Relation) error {
	if strings.HasPrefix(r.Name, "rpmlib(") {
		return nil
	}
	all := []packaging.Requirement{{Any: []packaging.Relation{r}}}
	if strings.HasPrefix(r.Name, "(") {
		x, err := parseRich(r.Name)
		if err != nil {
			return err
		}
		if all, err = x.clauses(false); err != nil {
			return fmt.Errorf("rich dependency %q: %w", r.Name, err)
		}
	}
	for _, q := range all {
		if !slices.ContainsFunc(e.Requires, func(x packaging.Requirement) bool { return x.String() == q.String() }) {
			e.Requires = append(e.Requires, q)
		}
	}
	return nil
}

// conflicts adds what may not stand beside the package.
func (e *entry) conflicts(r packaging.Relation) error {
	if !strings.HasPrefix(r.Name, "(") {
		e.Conflicts = append(e.Conflicts, r)
		return nil
	}
	x, err := parseRich(r.Name)
	if err != nil {
		return err
	}
	all, err := x.clauses(true)
	if err != nil {
		return fmt.Errorf("rich dependency %q: %w", r.Name, err)
	}
	for _, q := range all {
		if len(q.Any) == 0 && len(q.If) == 1 {
			e.Conflicts = append(e.Conflicts, q.If[0])
		} else {
			e.Requires = append(e.Requires, q)
		}
	}
	return nil
}
