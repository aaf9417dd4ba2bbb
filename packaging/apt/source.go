package apt

import (
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/packaging"
)

// Source is one repository as apt's configuration names it: one address and one
// suite.
type Source struct {
	URI           string   // of the archive, without a slash at its end
	Suite         string   // "bookworm", or for a flat repository a folder that ends in "/"
	Components    []string // none for a flat repository
	Architectures []string // the only ones to read; none: every one
	Without       []string // architectures not to read
	SignedBy      Keys     // whose signature counts; none: every key that the Request has
	// AnyAge reads a repository after its Valid-Until, as one has to with
	// archives of old releases.
	AnyAge bool
	NoHash bool // never ask for by-hash addresses
	// Expect is what the release has to say of itself. It always has to be of the suite.
	Expect Expect
	// Given tells that a person named it for this purpose. Of others those that
	// are of another distribution or release are passed over.
	Given bool

	File string // where it is configured, for messages
	Line int
}

// Expect is what a Release says of itself; empty fields mean anything.
type Expect struct {
	Origin, Suite, Codename string
}

// Keys says whose signatures count for one repository.
type Keys struct {
	Files        []string // keyrings, armored or binary
	Fingerprints []string // upper-case hex: of the keys in the system's keyrings only these
	Inline       string   // an armored block
}

func (k Keys) none() bool { return len(k.Files) == 0 && len(k.Fingerprints) == 0 && k.Inline == "" }

func (k Keys) equal(o Keys) bool {
	return slices.Equal(k.Files, o.Files) && slices.Equal(k.Fingerprints, o.Fingerprints) && k.Inline == o.Inline
}

// String gives "https://host/debian bookworm", without a password.
func (s Source) String() string { return redacted(s.URI) + " " + s.Suite }

// redacted gives an address without the password in it.
func redacted(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// flat tells whether the packages lie beside their index, without components.
func (s Source) flat() bool { return strings.HasSuffix(s.Suite, "/") }

// wants tells whether it is to be read for an architecture.
func (s Source) wants(arch string) bool {
	return !slices.Contains(s.Without, arch) && (len(s.Architectures) == 0 || slices.Contains(s.Architectures, arch))
}

// index gives the address of a file that the release lists.
func (s Source) index(name string) string {
	if s.flat() {
		return s.join(s.Suite, name)
	}
	return s.join("dists", s.Suite, name)
}

func (s Source) join(parts ...string) string {
	return strings.TrimRight(s.URI, "/") + path.Join(append([]string{"/"}, parts...)...)
}

// Package gives the address of a package's file, which is relative to the
// archive in flat repositories too. No password is in it.
func (s Source) Package(location string) string {
	return packaging.Address(s.URI, path.Clean(location))
}

// localPath tells whether a path stays where it is laid.
func localPath(p string) bool {
	if p == "" || strings.HasPrefix(p, "/") || strings.ContainsAny(p, "\\\x00\n") {
		return false
	}
	clean := path.Clean(p)
	return clean != "." && clean != ".." && !strings.HasPrefix(clean, "../")
}
