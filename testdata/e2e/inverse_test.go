package e2e

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/testdata/lab"
	"github.com/mensylisir/kubexm/testdata/lab/inventory"
)

// inventories writes down what every host is.
func (s *labSite) inventories(t testing.TB) map[string]inventory.Inventory {
	t.Helper()
	all := make([]inventory.Inventory, len(s.Hosts))
	var g errgroup.Group
	for i, h := range s.Hosts {
		g.Go(func() (err error) {
			cmd := s.SSH(t.Context(), &h, lab.RootUser, "sh -s")
			var errs bytes.Buffer
			cmd.Stdin, cmd.Stderr = strings.NewReader(inventory.Script), &errs
			out, err := cmd.Output()
			if err != nil {
				t.Logf("%s: %s", h.Name, errs.String())
				return err
			}
			all[i], err = inventory.Parse(out)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	named := map[string]inventory.Inventory{}
	for i, h := range s.Hosts {
		named[h.Name] = all[i]
	}
	return named
}

// asBefore tells of everything on the hosts that is not what it was.
func (s *labSite) asBefore(t testing.TB, before map[string]inventory.Inventory) {
	t.Helper()
	without, err := inventory.ReadExclusions()
	if err != nil {
		t.Fatal(err)
	}
	after := s.inventories(t)
	for _, h := range s.Hosts {
		var left []string
		for _, d := range inventory.Compare(before[h.Name], after[h.Name], without) {
			left = append(left, d.String())
		}
		if len(left) > 0 {
			t.Errorf("%s is not what it was, in %d things:\n%s", h.Name, len(left), strings.Join(left, "\n"))
		}
	}
}
