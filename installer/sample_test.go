package installer_test

import (
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/installer/plan"
)

// everyNth is of how many steps a failure is tried at one.
const everyNth = 3

// sampled picks every third of a plan's steps. The first of them depends on the
// source, so that other steps are tried after the next change, and the same ones as
// long as nothing changes. KUBEXM_ALL=1 picks all: a run for each step makes the
// table grow with the square of the steps.
func sampled(t *testing.T, nodes []*plan.Node) []*plan.Node {
	t.Helper()
	if os.Getenv("KUBEXM_ALL") != "" {
		return nodes
	}
	offset, err := offsetOf(os.DirFS(".."), "installer", "steps")
	if err != nil {
		t.Fatal(err)
	}
	return pick(nodes, offset)
}

func pick[T any](all []T, offset int) (some []T) {
	for i := offset % everyNth; i < len(all); i += everyNth {
		some = append(some, all[i])
	}
	return some
}

// offsetOf gives the offset of the sample for the product source in folders.
func offsetOf(tree fs.FS, folders ...string) (int, error) {
	h := sha256.New()
	for _, folder := range folders {
		if err := fs.WalkDir(tree, folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := fs.ReadFile(tree, path)
			_, _ = h.Write(b) // a hash takes everything
			return err
		}); err != nil {
			return 0, err
		}
	}
	return int(binary.BigEndian.Uint32(h.Sum(nil)) % everyNth), nil
}

// TestSamplesAreWhole: the three samples have every step once.
func TestSamplesAreWhole(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e", "f", "g"}
	seen := map[string]int{}
	for offset := range everyNth {
		for _, x := range pick(all, offset) {
			seen[x]++
		}
	}
	for _, x := range all {
		if seen[x] != 1 {
			t.Errorf("%s is in %d samples", x, seen[x])
		}
	}
	t.Setenv("KUBEXM_ALL", "1")
	if got := sampled(t, []*plan.Node{{ID: "a"}, {ID: "b"}}); len(got) != 2 {
		t.Errorf("all are %d", len(got))
	}
	t.Setenv("KUBEXM_ALL", "")
	if got := sampled(t, make([]*plan.Node, 30)); len(got) != 10 {
		t.Errorf("a third of 30 are %d", len(got))
	}
}
