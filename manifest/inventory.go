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

// InventoryKind is the value of kind in an inventory.
const InventoryKind = "SiteInventory"

// Inventory lists the contents of a site. It is carried from the site to the place where
// bundles are built: a delta for the site leaves out what the site already has.
type Inventory struct {
	APIVersion string                  `json:"apiVersion"`
	Kind       string                  `json:"kind"` // "SiteInventory"
	Cluster    string                  `json:"cluster"`
	Taken      *time.Time              `json:"taken,omitempty"`   // time of the inventory, for people
	Applied    *AppliedBundle          `json:"applied,omitempty"` // the bundle that was last applied to the cluster
	Bundles    []InventoryBundle       `json:"bundles"`           // archives on the site's disks, by root
	Registry   InventoryRegistry       `json:"registry"`
	Blobs      map[string]BlobLocation `json:"blobs"` // "sha256:…" → place; only layers and files, every bundle includes its documents
	Hosts      []InventoryMachine      `json:"hosts"`
}

// AppliedBundle identifies a bundle that was applied. The site may no longer have it.
type AppliedBundle struct {
	Root   string `json:"root"` // "sha256:…"
	Serial string `json:"serial,omitempty"`
}

// InventoryBundle is an archive on the site's disks.
type InventoryBundle struct {
	Root  string `json:"root"`            // "sha256:…" of its root index
	File  string `json:"file"`            // its name, without folders
	Bytes int64  `json:"bytes"`           // size of the archive
	Delta bool   `json:"delta,omitempty"` // the archive is a delta, not a complete bundle
}

// BlobLocation is the place of a blob at a site.
type BlobLocation string

// The places of blobs.
const (
	InBundle   BlobLocation = "bundle"
	InRegistry BlobLocation = "registry"
	InBoth     BlobLocation = "bundle+registry"
)

// Bundle reports whether a used bundle contains the blob.
func (h BlobLocation) Bundle() bool { return h == InBundle || h == InBoth }

// Registry reports whether the site's registry contains the blob.
func (h BlobLocation) Registry() bool { return h == InRegistry || h == InBoth }

// And combines two places.
func (h BlobLocation) And(other BlobLocation) BlobLocation {
	if h == "" || h == other {
		return other
	}
	return InBoth
}

// InventoryRegistry is the state and the contents of the site's registry.
type InventoryRegistry struct {
	Host   string           `json:"host,omitempty"`
	State  string           `json:"state"`            // "running", "absent" or "silent"
	Reason string           `json:"reason,omitempty"` // why a silent registry does not answer
	Images []InventoryImage `json:"images"`
}

// The states of a registry.
const (
	RegistryRunning = "running"
	RegistryAbsent  = "absent" // not installed yet
	RegistrySilent  = "silent" // installed, but it does not answer
)

// InventoryImage is a complete image in the registry.
type InventoryImage struct {
	Reference string `json:"reference"` // upstream's reference if a known lock contains it, else the site's
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
	Components  map[string]string `json:"components,omitempty"` // program → version, as the program reports it
	Unreachable string            `json:"unreachable,omitempty"`
}

// Roots returns the roots of the bundles that the site has or that were applied to it, sorted.
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

// BlobsDigest returns the digest of the list of blobs with their places. Equal lists have the
// same digest.
func (i *Inventory) BlobsDigest() string {
	h := sha256.New()
	for _, d := range slices.Sorted(maps.Keys(i.Blobs)) {
		fmt.Fprintf(h, "%s %s\n", d, i.Blobs[d]) // a hash never fails
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// EncodeInventory encodes i in canonical form: equal inventories are equal bytes.
func EncodeInventory(i *Inventory) ([]byte, error) {
	c := *i
	c.APIVersion, c.Kind = APIVersion, InventoryKind
	c.Bundles = sortedBy(i.Bundles, func(b InventoryBundle) string { return b.Root + " " + b.File })
	c.Hosts = sortedBy(i.Hosts, func(m InventoryMachine) string { return m.Name })
	for n := range c.Hosts {
		c.Hosts[n].Roles = append([]string{}, c.Hosts[n].Roles...)
	}
	c.Registry.Images = sortedBy(i.Registry.Images, func(x InventoryImage) string { return x.Reference })
	if c.Blobs == nil {
		c.Blobs = map[string]BlobLocation{}
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

// sortedBy returns a sorted copy that is never null in JSON.
func sortedBy[T any](all []T, key func(T) string) []T {
	out := append([]T{}, all...)
	slices.SortStableFunc(out, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	return out
}
