package manifest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// InventoryKind is the kind that an inventory states.
const InventoryKind = "SiteInventory"

// Inventory is what a site holds, as it is carried out to where bundles are
// built: a bundle made for it may leave out what the site has.
type Inventory struct {
	APIVersion string             `json:"apiVersion"`
	Kind       string             `json:"kind"` // "SiteInventory"
	Cluster    string             `json:"cluster"`
	Taken      *time.Time         `json:"taken,omitempty"`   // when; for people alone
	Applied    *AppliedBundle     `json:"applied,omitempty"` // what the cluster was last made from
	Bundles    []HeldBundle       `json:"bundles"`           // archives that the site has kept, by root
	Registry   InventoryRegistry  `json:"registry"`
	Blobs      map[string]HeldIn  `json:"blobs"` // "sha256:…" → where; layers and files alone, documents travel with every bundle
	Hosts      []InventoryMachine `json:"hosts"`
}

// AppliedBundle names a bundle that may be gone by now.
type AppliedBundle struct {
	Root   string `json:"root"` // "sha256:…"
	Serial string `json:"serial,omitempty"`
}

// HeldBundle is an archive on the site's disks.
type HeldBundle struct {
	Root  string `json:"root"`            // "sha256:…" of its root index
	File  string `json:"file"`            // its name, without folders
	Bytes int64  `json:"bytes"`           // of the archive
	Delta bool   `json:"delta,omitempty"` // it is one: not all of its bundle is in it
}

// HeldIn says where a site has a blob.
type HeldIn string

// The places of blobs.
const (
	InBundle   HeldIn = "bundle"
	InRegistry HeldIn = "registry"
	InBoth     HeldIn = "bundle+registry"
)

// Bundle tells whether a kept archive holds the blob.
func (h HeldIn) Bundle() bool { return h == InBundle || h == InBoth }

// Registry tells whether the site's registry does.
func (h HeldIn) Registry() bool { return h == InRegistry || h == InBoth }

// And gives both places.
func (h HeldIn) And(other HeldIn) HeldIn {
	if h == "" || h == other {
		return other
	}
	return InBoth
}

// InventoryRegistry is what the site's registry answered.
type InventoryRegistry struct {
	Host   string      `json:"host,omitempty"`
	State  string      `json:"state"`            // "running", "absent" or "silent"
	Reason string      `json:"reason,omitempty"` // why it is silent
	Images []HeldImage `json:"images"`
}

// The states of a registry.
const (
	RegistryRunning = "running"
	RegistryAbsent  = "absent" // not installed yet
	RegistrySilent  = "silent" // installed, and it does not answer
)

// HeldImage is an image that the registry has whole.
type HeldImage struct {
	Reference string `json:"reference"` // upstream's own where a known lock names it, else the site's
	Digest    string `json:"digest"`
}

// InventoryMachine is one host of the site.
type InventoryMachine struct {
	Name        string            `json:"name"`
	Roles       []string          `json:"roles"`
	OS          string            `json:"os,omitempty"`
	Version     string            `json:"version,omitempty"`
	Arch        string            `json:"arch,omitempty"`
	Kernel      string            `json:"kernel,omitempty"`
	Components  map[string]string `json:"components,omitempty"` // program → version, as it says itself
	Unreachable string            `json:"unreachable,omitempty"`
}

// Roots gives the roots of the bundles that the site has or was made from, sorted.
func (i *Inventory) Roots() []string {
	var roots []string
	for _, b := range i.Bundles {
		roots = append(roots, b.Root)
	}
	if i.Applied != nil {
		roots = append(roots, i.Applied.Root)
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// BlobsDigest is the digest of the list of blobs and where they are, in the one
// form that it can have.
func (i *Inventory) BlobsDigest() string {
	h := sha256.New()
	for _, d := range slices.Sorted(maps.Keys(i.Blobs)) {
		fmt.Fprintf(h, "%s %s\n", d, i.Blobs[d]) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// EncodeInventory writes i sorted, in the only form that it has.
func EncodeInventory(i *Inventory) ([]byte, error) {
	c := *i
	c.APIVersion, c.Kind = APIVersion, InventoryKind
	c.Bundles = sortedBy(i.Bundles, func(b HeldBundle) string { return b.Root + " " + b.File })
	c.Hosts = sortedBy(i.Hosts, func(m InventoryMachine) string { return m.Name })
	for n := range c.Hosts {
		c.Hosts[n].Roles = append([]string{}, c.Hosts[n].Roles...)
	}
	c.Registry.Images = sortedBy(i.Registry.Images, func(x HeldImage) string { return x.Reference })
	if c.Blobs == nil {
		c.Blobs = map[string]HeldIn{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("encode inventory: %w", err)
	}
	return b.Bytes(), nil
}

// sortedBy gives a sorted copy that is never null in JSON.
func sortedBy[T any](all []T, key func(T) string) []T {
	out := append([]T{}, all...)
	slices.SortStableFunc(out, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return out
}
