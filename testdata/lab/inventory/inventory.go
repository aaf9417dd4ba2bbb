package inventory

import (
	"bufio"
	"bytes"
	_ "embed" // for the script
	"fmt"
	"slices"
	"strings"
)

// Script is run on a host as root, by sh; Parse reads what it prints.
//
//go:embed inventory.sh
var Script string

// Inventory is what a host is: how each thing is, by its kind and name.
type Inventory map[Thing]string

// Thing is a file, a unit, a route, and so on.
type Thing struct{ Kind, Name string }

// Parse reads what Script printed. Of equal names the states stand together.
func Parse(out []byte) (Inventory, error) {
	inv := Inventory{}
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		part := strings.SplitN(s.Text(), "\t", 3)
		if len(part) != 3 {
			return nil, fmt.Errorf("line %d of an inventory: %q", n, s.Text())
		}
		t := Thing{part[0], part[1]}
		if old, ok := inv[t]; ok && old != part[2] {
			part[2] = old + " | " + part[2]
		}
		inv[t] = part[2]
	}
	return inv, s.Err()
}

// Difference is one thing that is not what it was.
type Difference struct {
	Thing
	Before, After string
	Came, Went    bool
}

// String gives "+ file /etc/x …", "- unit …" or "~ mode /etc/x: old → new".
func (d Difference) String() string {
	switch {
	case d.Came:
		return fmt.Sprintf("+ %s %s %s", d.Kind, d.Name, d.After)
	case d.Went:
		return fmt.Sprintf("- %s %s %s", d.Kind, d.Name, d.Before)
	}
	return fmt.Sprintf("~ %s %s: %s → %s", d.Kind, d.Name, d.Before, d.After)
}

// Compare gives every difference that no exclusion covers, sorted by kind and name.
func Compare(before, after Inventory, without Exclusions) []Difference {
	var out []Difference
	for t, was := range before {
		now, ok := after[t]
		if !ok || now != was {
			out = append(out, Difference{Thing: t, Before: was, After: now, Went: !ok})
		}
	}
	for t, now := range after {
		if _, ok := before[t]; !ok {
			out = append(out, Difference{Thing: t, After: now, Came: true})
		}
	}
	out = slices.DeleteFunc(out, func(d Difference) bool { return without.covers(d.Thing) })
	slices.SortFunc(out, func(a, b Difference) int {
		return strings.Compare(a.Kind+"\t"+a.Name, b.Kind+"\t"+b.Name)
	})
	return out
}
