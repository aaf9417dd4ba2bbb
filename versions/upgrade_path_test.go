package versions

import (
	"errors"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

func TestWayIn(t *testing.T) {
	sets := func(names string) *manifest.Lock {
		l := &manifest.Lock{}
		for _, n := range strings.Fields(names) {
			l.Sets = append(l.Sets, manifest.Set{Name: n})
		}
		return l
	}
	for _, row := range []struct{ sets, from, to, want string }{
		{"v1.32.2 v1.32.5", "v1.32.2", "v1.32.5", "v1.32.5+nodes"},
		{"v1.32.2 v1.33.1 v1.33.4 v1.34.0", "v1.32.2", "v1.34.0", "v1.33.4 v1.34.0+nodes"},
		{"v1.33.1 v1.33.4", "v1.32.2", "v1.33.1", "v1.33.1+nodes"}, // the recorded set need not be carried
		{"v1.30.0 v1.31.0 v1.32.0 v1.33.0 v1.34.0", "v1.30.0", "v1.34.0", "v1.31.0 v1.32.0 v1.33.0+nodes v1.34.0+nodes"},
		{"v1.30.0 v1.31.0 v1.32.0 v1.33.0", "v1.30.0", "v1.33.0", "v1.31.0 v1.32.0 v1.33.0+nodes"},
		{"v1.24.0 v1.25.0 v1.26.0 v1.27.0", "v1.24.0", "v1.27.0", "v1.25.0 v1.26.0+nodes v1.27.0+nodes"},
		{"v1.32.2 v1.34.0", "v1.32.2", "v1.34.0", "no upgrade path from Kubernetes v1.32.2 to v1.34.0: the bundle contains no release of v1.33: add one to spec.bundle.kubernetesVersions"},
		{"v1.32.2", "v1.32.2", "v1.34.0", "no upgrade path from Kubernetes v1.32.2 to v1.34.0: the bundle does not contain v1.34.0"},
		{"v1.32.2 v1.33.0", "v1.33.0", "v1.32.2", "no upgrade path from Kubernetes v1.33.0 to v1.32.2: it is not newer"},
		{"v1.32.2", "v1.32.2", "v1.32.2", "no upgrade path from Kubernetes v1.32.2 to v1.32.2: it is not newer"},
		{"v1.32.2", "next", "v1.32.2", "no upgrade path from Kubernetes next to v1.32.2: invalid semantic version"},
	} {
		w, err := FindUpgradePath(sets(row.sets), row.from, row.to)
		var got []string
		for _, h := range w.Steps {
			got = append(got, h.Set+map[bool]string{true: "+nodes"}[h.Nodes])
		}
		if no := (*NoUpgradePathError)(nil); err != nil {
			if got = []string{err.Error()}; !errors.As(err, &no) {
				t.Errorf("%T", err)
			}
		}
		if text := strings.Join(got, " "); !strings.HasPrefix(text, row.want) || err == nil && text != row.want {
			t.Errorf("%s → %s by %s: %s, want %s", row.from, row.to, row.sets, text, row.want)
		}
	}
}
