package installer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
)

func TestCheckSerial(t *testing.T) {
	lock := &manifest.Lock{Serial: 20260101000000}
	for name, c := range map[string]struct {
		record string
		older  bool
		broken bool
	}{
		"no record":         {"", false, false},
		"the same":          {`{"serial": "20260101000000"}`, false, false},
		"an older one":      {`{"serial": "20250101000000"}`, false, false},
		"a newer one":       {`{"serial": "20260101000001"}`, true, false},
		"a newer one once":  {`{"serial": "20250101000000", "highest": "20260601000000"}`, true, false},
		"before it counted": {`{"bundle": "sha256:x"}`, false, false},
		"damaged":           {`{"serial": `, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			if c.record != "" {
				dir := filepath.Join(base, ".kubexm", "demo", "applied")
				if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "applied.json"), []byte(c.record), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			err := CheckSerial(base, lock, "demo")
			if older := errors.Is(err, bundle.TrustSerial) && errors.Is(err, bundle.ErrUntrusted); older != c.older || (err != nil) != (c.older || c.broken) {
				t.Errorf("%v", err)
			}
		})
	}
}
