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
		return fmt.Errorf("its checksum type is %s, not sha256 or sha512", kind)
	}
	return nil
}

// checkSum returns an error if a checksum is not valid for its type.
func checkSum(kind, sum string) error {
	h, ok := hashes[kind]
	if !ok {
		return fmt.Errorf("its checksum type is %q, not sha256, sha384 or sha512", kind)
	}
	if raw, err := hex.DecodeString(sum); err != nil || len(raw) != h().Size() || strings.ToLower(sum) != sum {
		return fmt.Errorf("its %s %q is not valid", kind, sum)
	}
	return nil
}

// check returns an error if required values of a package are missing or unsafe: names are
// used in commands, URLs and paths.
func (e *entry) check() error {
	switch {
	case !plain(e.Name) || !plain(e.Arch) || !plain(e.Version) || strings.ContainsRune(e.Name, '/'):
		return fmt.Errorf("name %q, version %q or architecture %q is not valid", e.Name, e.Version, e.Arch)
	case e.SHA256 == "" && e.SHA512 == "":
		return errors.New("no checksum")
	}
	return checkLocation(e.Location)
}

// plain reports whether s has only characters that rpm allows in names and versions.
func plain(s string) bool {
	return s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune("'\"`$;&|<>\\*?[]{}()!#%", r)
	})
}

// checkLocation returns an error for a path that is not inside the repository. The path
// is not a URL: some programs do not escape it.
func checkLocation(href string) error {
	if href == "" || href == "." || path.IsAbs(href) || path.Clean(href) != strings.TrimPrefix(href, "./") ||
		strings.HasPrefix(path.Clean(href), "../") || path.Clean(href) == ".." || strings.Contains(href, "://") ||
		strings.ContainsFunc(href, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("\\?#", r) }) {
		return fmt.Errorf("location %q is not inside the repository", href)
	}
	return nil
}

// format parses the relations of a package.
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

// relations parses a list of <rpm:entry name flags epoch ver rel pre/>. Dependencies of
// scripts (pre) are treated like all others.
func (e *entry) relations(d tokens, f func(packaging.Relation) error) error {
	return children(d, func(s xml.StartElement) error {
		if s.Name.Local == "entry" {
			r := packaging.Relation{Name: attribute(s, "name")}
			if flags := attribute(s, "flags"); flags != "" {
				op, ok := flagged[flags]
				if !ok {
					return fmt.Errorf("%s: unknown flags %q", r.Name, flags)
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

// flagged contains the operators as written in primary.
var flagged = map[string]packaging.Operator{
	"LT": packaging.Earlier, "LE": packaging.AtMost, "EQ": packaging.Exactly, "GE": packaging.AtLeast, "GT": packaging.Later,
}

// requires adds the dependencies of the package, except "rpmlib(…)": these are features
// of rpm that no package provides.
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

// conflicts adds the conflicts of the package.
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
