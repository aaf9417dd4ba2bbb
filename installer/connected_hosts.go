package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
)

// dialedFile lists the addresses that runs of a workdir have connected to, one per line.
const dialedFile = "dialed"

// UnknownHosts returns the hosts and jump hosts of a cluster that no run of the workdir below
// base has connected to, as "name (address:port)", in the order of the config.
func UnknownHosts(base string, c *manifest.Cluster) ([]string, error) {
	seen, err := Workdir{Dir: filepath.Join(base, ".kubexm", c.Metadata.Name)}.dialedBefore()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, h := range c.Spec.Hosts {
		if j := h.JumpHost; j != nil {
			if at := dialed(j.Address, j.Port); !slices.Contains(seen, at) {
				seen = append(seen, at)
				out = append(out, "jump host ("+at+")")
			}
		}
		if at := dialed(h.Address, h.Port); !slices.Contains(seen, at) {
			out = append(out, h.Name+" ("+at+")")
		}
	}
	return out, nil
}

func (w Workdir) dialedBefore() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(w.Dir, dialedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// recordDialed records the hosts of a cluster as connected to.
func (w Workdir) recordDialed(c *manifest.Cluster) error {
	before, err := w.dialedBefore()
	if err != nil {
		return fmt.Errorf("list of hosts dialed before: %w", err)
	}
	all := slices.Clone(before)
	for _, h := range c.Spec.Hosts {
		all = append(all, dialed(h.Address, h.Port))
		if j := h.JumpHost; j != nil {
			all = append(all, dialed(j.Address, j.Port))
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); slices.Equal(all, before) {
		return nil
	}
	return durable.WriteFile(filepath.Join(w.Dir, dialedFile), []byte(strings.Join(all, "\n")+"\n"), 0o600)
}

func dialed(address string, port int) string {
	if port == 0 {
		port = 22
	}
	return net.JoinHostPort(address, strconv.Itoa(port))
}
