package main

import (
	"bytes"
	"io/fs"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/installer/site"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/versions"
)

// TestStarters: each can be installed as it is. Nothing is held against it, the matrix
// knows all that it asks for, and a bundle of that has all that the plans open. One
// has a registry, on a host that is nothing else.
func TestStarters(t *testing.T) {
	catalog, problems := versions.Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	files, err := fs.ReadDir(starters, "starters")
	if err != nil || len(files) != len(templates) {
		t.Fatalf("%d starters for %d templates, %v", len(files), len(templates), err)
	}
	for _, name := range templates {
		text, err := starters.ReadFile("starters/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, problems := manifest.Decode(bytes.NewReader(text))
		for _, p := range problems {
			t.Errorf("%s: %s", name, p)
		}
		if c == nil {
			continue
		}
		if wants := name == "registry"; len(c.HostsWith("registry")) > 0 != wants || (c.Spec.Registry.Type == "registry") != wants {
			t.Errorf("%s: registry %q on %v", name, c.Spec.Registry.Type, c.HostsWith("registry"))
		}
		for _, h := range c.HostsWith("registry") {
			if roles := c.RolesOf(h.Name); len(roles) != 1 {
				t.Errorf("%s: the registry host is %q too", name, roles)
			}
		}
		lock, problems := catalog.Resolve(c)
		for _, p := range problems {
			t.Errorf("%s: %s", name, p)
		}
		for _, p := range site.UnsupportedBy(pipeline.Create(), c, lock) {
			t.Errorf("%s cannot be installed: %s", name, p)
		}
		if err := site.Complete(c, lock); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if lock == nil || len(lock.Artifacts) == 0 || len(lock.Images) == 0 {
			t.Errorf("%s: the lock is empty", name)
		}
	}
}

// TestStartersUncommented: what a starter offers in comments is right too. A
// line is such an offer when it is a comment that holds a field.
func TestStartersUncommented(t *testing.T) {
	for _, name := range templates {
		text, err := starters.ReadFile("starters/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		offered := 0
		for line := range strings.Lines(string(text)) {
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			comment, isComment := strings.CutPrefix(strings.TrimSpace(line), "# ")
			word, _, hasField := strings.Cut(comment, ":")
			if isComment && hasField && indent != "" && !strings.Contains(strings.TrimLeft(word, " -{"), " ") {
				line = indent + comment + "\n"
				offered++
			}
			b.WriteString(line)
		}
		_, problems := manifest.Decode(strings.NewReader(b.String()))
		for _, p := range problems {
			// A choice between two ways is offered as one that replaces the other.
			if p.Severity == manifest.Error && !strings.Contains(p.Advice, "choose one of the two") {
				t.Errorf("%s: %s\n%s", name, p, b.String())
			}
		}
		if offered == 0 && name != "dual-stack" {
			t.Errorf("%s offers nothing", name)
		}
	}
}
