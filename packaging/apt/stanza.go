package apt

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// stanzas parses the paragraphs of Packages files for one architecture. Equal texts of
// several packages are stored once.
type stanzas struct {
	arch         string
	words        map[string]string // of which there are few: architectures, priorities
	requirements map[string][]packaging.Relation
	mentioned    map[string]int // names → when each was come by first
}

func newStanzas(arch string) *stanzas {
	return &stanzas{arch: arch, words: map[string]string{}, requirements: map[string][]packaging.Relation{}, mentioned: map[string]int{}}
}

// control contains the fields of a stanza.
type control struct {
	name, version, arch, multi, priority, essential string
	location, size, sha256                          []byte
	preDepends, depends, conflicts, breaks, provide []byte
	recommends, suggests, replaces, enhances        []byte
}

// stanza is a package with the values by which apt chooses between alternatives.
type stanza struct {
	*packaging.Package
	rank  int // of its Priority: 1 is required, 5 extra, 0 that it says nothing
	named int // counts names in the order in which they were come by
}

// ranks are the ranks of priorities in apt.
var ranks = map[string]int{"": 0, "required": 1, "important": 2, "standard": 3, "optional": 4, "extra": 5}

// read parses a stanza; the package is nil for another architecture. An error means that
// only this package cannot be used.
func (s *stanzas) read(text []byte) (stanza, error) {
	var c control
	if err := eachField(text, func(f field) error { c.set(s, f); return nil }); err != nil {
		return stanza{}, err
	}
	if !validName(c.name) || strings.Contains(c.name, ":") || c.version == "" {
		return stanza{}, fmt.Errorf("a package has no valid name or version: %q %q", c.name, c.version)
	}
	if c.arch != s.arch && c.arch != "all" {
		return stanza{}, nil
	}
	named := s.mention(c)
	p := &packaging.Package{Name: c.name, Version: c.version, Arch: c.arch, Location: string(c.location), SHA256: strings.ToLower(string(c.sha256)),
		Base: c.essential == "yes" || c.priority == "required"}
	if err := s.file(p, c); err != nil {
		return stanza{}, fmt.Errorf("%s: %w", p, err)
	}
	if err := s.relate(p, c); err != nil {
		return stanza{}, fmt.Errorf("%s: %w", p, err)
	}
	rank, ok := ranks[c.priority]
	if !ok {
		rank = ranks["extra"]
	}
	return stanza{p, rank, named}, nil
}

func (c *control) set(s *stanzas, f field) {
	switch string(f.name) {
	case "Package":
		c.name = string(f.value)
	case "Version":
		c.version = string(f.value)
	case "Architecture":
		c.arch = s.once(f.value)
	case "Multi-Arch":
		c.multi = s.once(f.value)
	case "Priority":
		c.priority = s.once(f.value)
	case "Essential":
		c.essential = s.once(f.value)
	case "Filename":
		c.location = f.value
	case "Size":
		c.size = f.value
	case "SHA256":
		c.sha256 = f.value
	case "Pre-Depends":
		c.preDepends = f.value
	case "Depends":
		c.depends = f.value
	case "Conflicts":
		c.conflicts = f.value
	case "Breaks":
		c.breaks = f.value
	case "Provides":
		c.provide = f.value
	case "Recommends":
		c.recommends = f.value
	case "Suggests":
		c.suggests = f.value
	case "Replaces":
		c.replaces = f.value
	case "Enhances":
		c.enhances = f.value
	}
}

// mention numbers the names that a package mentions, in apt's order, and returns the
// number of its own name.
func (s *stanzas) mention(c control) int {
	own := s.name([]byte(c.name))
	for _, list := range [][]byte{c.preDepends, c.depends, c.conflicts, c.breaks, c.recommends, c.suggests, c.replaces, c.enhances, c.provide} {
		for len(list) > 0 {
			end := bytes.IndexAny(list, ",|")
			if end < 0 {
				end = len(list)
			}
			name := bytes.TrimLeft(list[:end], " \t\n")
			if i := bytes.IndexAny(name, " \t\n(:[<"); i >= 0 {
				name = name[:i]
			}
			s.name(name)
			list = list[min(end+1, len(list)):]
		}
	}
	return own
}

func (s *stanzas) name(name []byte) int {
	n, ok := s.mentioned[string(name)]
	if !ok {
		n = len(s.mentioned)
		s.mentioned[string(name)] = n
	}
	return n
}

// file parses the path, size and digests of the package file.
func (s *stanzas) file(p *packaging.Package, c control) error {
	size, err := strconv.ParseInt(string(c.size), 10, 64)
	if err != nil || size <= 0 {
		return fmt.Errorf("its size is not a number of bytes: %q", c.size)
	}
	p.Size = size
	if sum, err := hex.DecodeString(p.SHA256); err != nil || len(sum) != 32 {
		return errors.New("it has no SHA256 digest, so it cannot be verified")
	}
	if !localPath(p.Location) {
		return fmt.Errorf("its path %q is not inside the repository", p.Location)
	}
	return nil
}

// relate parses dependencies, provided names and conflicts.
func (s *stanzas) relate(p *packaging.Package, c control) error {
	p.Requires = make([]packaging.Requirement, 0, length(c.preDepends)+length(c.depends))
	for _, list := range [][]byte{c.preDepends, c.depends} {
		for x := range elements(list) {
			q, ok := s.requirements[string(x)]
			if !ok {
				text := string(x)
				var err error
				if q, err = alternatives(text, s.arch); err != nil {
					return err
				}
				s.requirements[text] = q
			}
			p.Requires = append(p.Requires, packaging.Requirement{Any: q})
		}
	}
	for _, list := range [][]byte{c.conflicts, c.breaks} {
		for x := range elements(list) {
			r, err := relation(string(x), s.arch)
			if err != nil {
				return err
			}
			// Packages of other architectures are never installed; "any" is this one.
			base, arch, _ := strings.Cut(r.Name, ":")
			if arch == "" || arch == "any" {
				r.Name = base
				p.Conflicts = append(p.Conflicts, r)
			}
		}
	}
	return s.provides(p, c)
}

// provides parses the names that a package provides. With Multi-Arch: allowed it also
// provides "name:any" for each of its names.
func (s *stanzas) provides(p *packaging.Package, c control) error {
	var names []packaging.Relation
	for x := range elements(c.provide) {
		r, err := relation(string(x), s.arch)
		if err != nil {
			return err
		}
		// A range is not a version; apt ignores it too.
		exact := r.Operator == packaging.AnyVersion || r.Operator == packaging.Exactly
		if exact && !strings.Contains(r.Name, ":") {
			names = append(names, r)
		}
	}
	p.Provides = names
	if c.multi == "allowed" {
		own := packaging.Relation{Name: p.Name, Operator: packaging.Exactly, Version: p.Version}
		for _, r := range append([]packaging.Relation{own}, names...) {
			r.Name += ":any"
			p.Provides = append(p.Provides, r)
		}
	}
	return nil
}

// length returns the maximum number of elements of a comma-separated list.
func length(list []byte) int {
	if len(list) == 0 {
		return 0
	}
	return 1 + bytes.Count(list, []byte{','})
}

// once returns the same string for equal bytes.
func (s *stanzas) once(b []byte) string {
	if x, ok := s.words[string(b)]; ok {
		return x
	}
	x := string(b)
	s.words[x] = x
	return x
}
