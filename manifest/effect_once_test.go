package manifest

import "testing"

// TestOnce: an existing cluster gets what it did not have, and keeps it as it is.
func TestOnce(t *testing.T) {
	const (
		none, first, second = "", "  storage: {openebs: {basePath: /data/a}}\n", "  storage: {openebs: {basePath: /data/b}}\n"
		off, on             = "  kubernetes: {version: v1.34.10, nodeFeatureDiscovery: {enabled: false}}\n", "  kubernetes: {version: v1.34.10, nodeFeatureDiscovery: {enabled: true}}\n"
		plain               = "  kubernetes: {version: v1.34.10}\n"
	)
	for _, c := range []struct {
		was, now string
		refused  int
	}{
		{plain + none, plain + first, 0}, {plain + first, plain + second, 1}, {plain + first, plain + none, 1}, {plain + first, plain + first, 0},
		{plain, on, 0}, {off, on, 0}, {on, off, 1}, {on, plain, 1}, {on, on, 0},
	} {
		if got := RefusedChanges(decodeSpec(t, "\n"+c.was), decodeSpec(t, "\n"+c.now)); len(got) != c.refused {
			t.Errorf("%q → %q: %+v", c.was, c.now, got)
		}
	}
}
