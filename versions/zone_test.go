package versions

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// direct lists, for each zone, what of the matrix it fetches from upstream itself:
// there is no known mirror of it.
var direct = map[string][]string{
	"cn": nil,
}

// TestZonesCoverTheMatrix: a zone leaves no address of the matrix at its upstream,
// but for those that are listed, and of these it says why.
func TestZonesCoverTheMatrix(t *testing.T) {
	c, problems := Load()
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	addresses := c.addresses()
	hosts := map[string]bool{}
	for a := range addresses {
		hosts[hostOf(a)] = true
	}
	if len(addresses) < 3000 || len(hosts) < 10 {
		t.Fatalf("the matrix has %d addresses of %d hosts", len(addresses), len(hosts))
	}
	for _, zone := range manifest.Zones() {
		s := manifest.Sources{Zone: zone}
		known, left := map[string]bool{}, map[string]int{}
		for a := range addresses {
			to, plain := s.Rewrite(a)
			from, why := s.Direct(a)
			switch {
			case plain:
				t.Errorf("%s: %s is asked for without TLS", zone, a)
			case from != "" && (to != a || why == ""):
				t.Errorf("%s: %s is direct, because %q, and becomes %s", zone, a, why, to)
			case from != "":
				known[from] = true
			case hostOf(to) == hostOf(a):
				left[hostOf(a)]++
			}
		}
		for _, host := range slices.Sorted(maps.Keys(left)) {
			t.Errorf("%s: %d addresses stay at %s", zone, left[host], host)
		}
		if d := cmp.Diff(direct[zone], slices.Sorted(maps.Keys(known))); d != "" {
			t.Errorf("%s: fetched directly (-want +got):\n%s", zone, d)
		}
	}
}

// addresses gives all that the matrix names: files, where their digests are
// published, charts and images.
func (c *Catalog) addresses() map[string]bool {
	all := map[string]bool{}
	for _, component := range c.components {
		for version := range component.Versions {
			r := component.release(version)
			for arch := range machines {
				for _, template := range []string{r.Address, r.DigestAddress, r.Chart} {
					all[expand(template, version, arch)] = true
				}
			}
			for _, image := range r.Images {
				all[expand(image.Reference, version, "")] = true
			}
		}
	}
	delete(all, "")
	return all
}

// hostOf gives the host of an address or of an image reference.
func hostOf(address string) string {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		address = rest
	}
	host, _, _ := strings.Cut(address, "/")
	return host
}
