package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/durable"
	"github.com/mensylisir/kubexm/manifest/part"
)

// Left is a host that a deletion skipped, with the config that was applied to it.
type Left struct {
	Host    string    `json:"host"`
	Address string    `json:"address"`
	Since   time.Time `json:"since"` // UTC, whole seconds
	// Pending reports that the deletion has not ended: the host may still be part of a
	// cluster.
	Pending bool `json:"pending,omitempty"`
	// Node reports that only the host was deleted: its cluster still exists.
	Node bool `json:"node,omitempty"`
	// Config is the applied config of the cluster, without secrets: it determines what is on
	// the host.
	Config string `json:"config"`
}

// Cluster decodes the config.
func (l Left) Cluster() (*manifest.Cluster, error) {
	c, problems := manifest.Decode(bytes.NewReader([]byte(l.Config)))
	if err := problems.Err(); err != nil {
		return nil, fmt.Errorf("the config that was applied to host %s: %w", l.Host, err)
	}
	return c, nil
}

// Stays returns what remains on a host of c that a deletion skips.
func Stays(c *manifest.Cluster, host string) []string {
	var out []string
	if part.Masters.In(c, host) {
		out = append(out, "the control plane with the cluster's keys in /etc/kubernetes")
	}
	if part.Members.In(c, host) {
		out = append(out, "etcd's data with all Secrets in "+part.StoreOf(c).DataDir)
	}
	if part.Nodes.In(c, host) {
		runtime := part.RuntimeOf(c)
		out = append(out, "the kubelet with its pods' data in /var/lib/kubelet", runtime.Name+" with its images and containers in "+runtime.DataDir)
	}
	if part.RegistryHosts.In(c, host) {
		out = append(out, "the registry with its images in "+part.RegistryOf(c).DataDir)
	}
	return append(out, "the host's preparation, and the record of its previous settings in /var/lib/kubexm/"+c.Metadata.Name)
}

func leftPath(dir string) string { return filepath.Join(dir, "left.json") }

// ReadLeft returns the hosts that deletions skipped, from the cluster's folder dir on this
// machine, sorted by name.
func ReadLeft(dir string) ([]Left, error) {
	text, err := os.ReadFile(leftPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Left
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", leftPath(dir), err)
	}
	return out, nil
}

// IsLeft reports whether a host was skipped by a deletion that has ended.
func IsLeft(all []Left, host string) bool {
	return slices.ContainsFunc(all, func(l Left) bool { return l.Host == host && !l.Pending })
}

// Begin records the skipped hosts of a deletion before anything is changed. An existing entry
// of an earlier deletion is preserved.
func (d *Deletion) Begin(dir string, now time.Time) error {
	all, err := ReadLeft(dir)
	if err != nil {
		return err
	}
	for _, name := range d.Skip {
		if slices.ContainsFunc(all, func(l Left) bool { return l.Host == name }) {
			continue
		}
		h, _ := d.Whole.Host(name)
		all = append(all, Left{Host: name, Address: h.Address, Since: now.UTC().Truncate(time.Second), Config: string(d.config), Pending: true})
	}
	return writeLeft(dir, all)
}

// End records that a deletion succeeded: the skipped hosts still have to be cleaned, the
// others are clean.
func (d *Deletion) End(dir string) error {
	all, err := ReadLeft(dir)
	if err != nil {
		return err
	}
	names := d.Names()
	all = slices.DeleteFunc(all, func(l Left) bool { return slices.Contains(names, l.Host) })
	for i := range all {
		all[i].Pending = all[i].Pending && !slices.Contains(d.Skip, all[i].Host)
	}
	return writeLeft(dir, all)
}

// BeginLeaving records hosts that leave the cluster c and do not answer. An existing entry is
// preserved.
func BeginLeaving(dir string, c *manifest.Cluster, names []string, now time.Time) error {
	config, err := c.Public()
	if err != nil {
		return err
	}
	all, err := ReadLeft(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(all, func(l Left) bool { return l.Host == name }) {
			continue
		}
		h, _ := c.Host(name)
		all = append(all, Left{Host: name, Address: h.Address, Since: now.UTC().Truncate(time.Second), Config: string(config), Pending: true, Node: true})
	}
	return writeLeft(dir, all)
}

// EndLeaving records that the hosts have left the cluster, and still have to be cleaned.
func EndLeaving(dir string, names []string) error {
	all, err := ReadLeft(dir)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].Pending = all[i].Pending && !slices.Contains(names, all[i].Host)
	}
	return writeLeft(dir, all)
}

// Cleaning is what a host has to be cleaned of.
type Cleaning struct {
	Cluster *manifest.Cluster // as it was applied, with only this host
	Node    bool              // only the host was deleted: its cluster still exists
}

// Cleanings returns, for hosts of c that deletions skipped, the clusters to clean them of: as
// they were applied, with only these hosts, reached as specified in c.
func Cleanings(dir string, c *manifest.Cluster) ([]Cleaning, error) {
	all, err := ReadLeft(dir)
	if err != nil {
		return nil, err
	}
	var out []Cleaning
	for _, l := range all {
		if _, ok := c.Host(l.Host); !ok || l.Pending {
			continue
		}
		was, err := l.Cluster()
		if err != nil {
			return nil, err
		}
		one := c.Applied(was).Only([]string{l.Host})
		one.Spec.Etcd.PreserveData = false
		out = append(out, Cleaning{Cluster: one, Node: l.Node})
	}
	return out, nil
}

// Cleaned removes the entries of hosts that were cleaned successfully.
func Cleaned(dir string, c *manifest.Cluster) error {
	all, err := ReadLeft(dir)
	if err != nil {
		return err
	}
	return writeLeft(dir, slices.DeleteFunc(all, func(l Left) bool {
		_, ok := c.Host(l.Host)
		return ok
	}))
}

func writeLeft(dir string, all []Left) error {
	if len(all) == 0 {
		err := os.Remove(leftPath(dir))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	slices.SortFunc(all, func(a, b Left) int { return bytes.Compare([]byte(a.Host), []byte(b.Host)) })
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(leftPath(dir), append(text, '\n'), 0o600)
}
