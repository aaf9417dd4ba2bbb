package apt

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// Source is one repository of apt's configuration: one URI and one suite.
type Source struct {
	URI           string   // of the archive, without a trailing slash
	Suite         string   // "bookworm", or for a flat repository a folder that ends in "/"
	Components    []string // none for a flat repository
	Architectures []string // architectures to read; empty for all
	Without       []string // architectures not to read
	SignedBy      Keys     // trusted keys; empty for all keys of the Request
	// AnyAge accepts a repository after its Valid-Until, as necessary for archives of old
	// releases.
	AnyAge bool
	NoHash bool // do not use by-hash URLs
	// Expect contains further values that the release must have. It must always match the
	// suite.
	Expect Expect
	// Given is set for sources of the config. Other sources are skipped if they are of
	// another distribution or release.
	Given bool

	File string // where it is configured, for messages
	Line int
}

// Expect contains expected values of a Release; empty fields match anything.
type Expect struct {
	Origin, Suite, Codename string
}

// Keys are the trusted keys of one repository.
type Keys struct {
	Files        []string // keyrings, armored or binary
	Fingerprints []string // upper-case hex: only these keys of the system's keyrings
	Inline       string   // an armored block
}

func (k Keys) none() bool { return len(k.Files) == 0 && len(k.Fingerprints) == 0 && k.Inline == "" }

func (k Keys) equal(o Keys) bool {
	return slices.Equal(k.Files, o.Files) && slices.Equal(k.Fingerprints, o.Fingerprints) && k.Inline == o.Inline
}

// String returns a text such as "https://host/debian bookworm", without a password.
func (s Source) String() string { return redacted(s.URI) + " " + s.Suite }

// redacted returns a URL without its password.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// flat reports whether it is a flat repository, which has no components.
func (s Source) flat() bool { return strings.HasSuffix(s.Suite, "/") }

// wants reports whether it is read for an architecture.
func (s Source) wants(arch string) bool {
	return !slices.Contains(s.Without, arch) && (len(s.Architectures) == 0 || slices.Contains(s.Architectures, arch))
}

// index returns the URL of a file that the release lists.
func (s Source) index(name string) string {
	if s.flat() {
		return s.join(s.Suite, name)
	}
	return s.join("dists", s.Suite, name)
}

func (s Source) join(parts ...string) string {
	return strings.TrimRight(s.URI, "/") + path.Join(append([]string{"/"}, parts...)...)
}

// Package returns the URL of a package's file, without a password. The file's path is
// relative to the archive, also in flat repositories.
func (s Source) Package(location string) string {
	return packaging.Address(s.URI, path.Clean(location))
}

// localPath reports whether a path stays inside its folder.
func localPath(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\\x00\n") {
		return false
	}
	clean := path.Clean(p)
	return clean != "." && clean != ".." && !strings.HasPrefix(clean, "../")
}
