package apt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// entry is a source entry while it is read; it may have several URIs and suites.
type entry struct {
	source   Source
	types    []string
	uris     []string
	suites   []string
	off      bool
	file     string
	line     int
	base     string // folder of relative paths of keys; "" if they are not allowed
	problems manifest.Problems
}

func (e *entry) problem(line int, message, advice string) {
	e.problems = append(e.problems, manifest.Problem{File: e.file, Line: line, Message: message, Advice: advice})
}

func (e *entry) warn(line int, message, advice string) {
	e.problems = append(e.problems, manifest.Problem{Severity: manifest.Warning, File: e.file, Line: line, Message: message, Advice: advice})
}

// lenient are options that make apt trust unsigned content.
var lenient = []string{"trusted", "allow-insecure", "allow-weak", "allow-downgrade-to-insecure"}

// ignored are options that do not affect what is read.
var ignored = []string{"lang", "languages", "target", "targets", "pdiffs", "valid-until-min", "valid-until-max", "date-max-future", "description",
	"x-repolib-name", "x-repolib-id", "enabled-by", "snapshot"}

// option handles one option, with the lower-case name of one-line sources.
func (e *entry) option(line int, name string, values []string) {
	on := !slices.ContainsFunc(values, func(v string) bool {
		return slices.Contains([]string{"no", "false", "0", "off", "without", "disable"}, strings.ToLower(v))
	})
	switch {
	case name == "arch" || name == "architectures":
		e.source.Architectures = values
	case name == "arch-" || name == "architectures-remove":
		e.source.Without = values
	case name == "arch+" || name == "architectures-add":
		if len(e.source.Architectures) > 0 {
			e.source.Architectures = append(e.source.Architectures, values...)
		}
	case name == "by-hash":
		e.source.NoHash = !on
	case name == "check-valid-until":
		e.source.AnyAge = !on
	case name == "check-date" && !on:
		e.warn(line, "check-date=no is ignored", "set this machine's clock if it is wrong")
	case name == "inrelease-path":
		e.problem(line, "inrelease-path is not supported", "specify the repository by its URI and suite")
	case slices.Contains(lenient, name):
		if on {
			e.warn(line, name+"="+strings.Join(values, ",")+" is ignored: the repository must be signed", "specify its key with signed-by")
		}
	case slices.Contains(ignored, name) || name == "check-date":
	default:
		e.warn(line, "the option "+name+" is unknown", "")
	}
}

// signedBy handles paths of keyrings and fingerprints.
func (e *entry) signedBy(line int, values []string) {
	for _, v := range values {
		fingerprint := strings.ToUpper(strings.TrimSuffix(v, "!"))
		switch {
		case filepath.IsAbs(v):
			e.source.SignedBy.Files = append(e.source.SignedBy.Files, v)
		case len(fingerprint) >= 40 && strings.Trim(fingerprint, "0123456789ABCDEF") == "":
			e.source.SignedBy.Fingerprints = append(e.source.SignedBy.Fingerprints, fingerprint)
		case e.base != "" && v != "":
			e.source.SignedBy.Files = append(e.source.SignedBy.Files, filepath.Join(e.base, v))
		default:
			e.problem(line, fmt.Sprintf("signed-by has %q, which is neither a path nor a full fingerprint", v), "")
		}
	}
}

// mirror returns the first URI of a mirror list file on this machine, as used by cloud
// images; if there is none, it returns the URI of the list.
func (e *entry) mirror(uri, list string) string {
	list = filepath.Clean(list)
	var b []byte
	info, err := os.Stat(list)
	if err == nil && info.Mode().IsRegular() {
		b, err = os.ReadFile(list)
	}
	if err != nil {
		e.warn(e.line, "mirror list: "+err.Error(), "")
		return uri
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "http") {
			return f[0]
		}
	}
	return uri
}

// schemes are the supported URI schemes.
var schemes = []string{"http", "https", "file", "copy"}

// sources returns a Source for each URI and suite; none if the entry has errors.
func (e *entry) sources() []Source {
	for _, t := range e.types {
		if t != "deb" && t != "deb-src" {
			e.problem(e.line, fmt.Sprintf("%q is not a source type", t), "write deb")
		}
	}
	if e.off || !slices.Contains(e.types, "deb") {
		return nil
	}
	var out []Source
	for _, uri := range e.uris {
		if list, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
			uri = e.mirror(uri, list)
		}
		scheme, rest, ok := strings.Cut(uri, ":")
		if !ok || !slices.Contains(schemes, scheme) || strings.Trim(rest, "/") == "" {
			e.warn(e.line, fmt.Sprintf("%q is skipped: only http, https and file URIs are supported", redacted(uri)), "specify a mirror's URI instead")
			continue
		}
		for _, suite := range e.suites {
			s := e.source
			s.URI, s.Suite, s.File, s.Line = strings.TrimRight(uri, "/"), suite, e.file, e.line
			if scheme == "copy" {
				s.URI = "file:" + strings.TrimRight(rest, "/")
			}
			switch {
			case s.flat() && len(s.Components) > 0:
				e.problem(e.line, fmt.Sprintf("the suite %q ends in a slash, so the repository cannot have components", suite), "remove the components or the slash")
				continue
			case !s.flat() && len(s.Components) == 0:
				e.problem(e.line, fmt.Sprintf("the suite %q requires components, such as main", suite), "add them, or end the suite in a slash if the repository is flat")
				continue
			case !s.flat() && !localPath(suite):
				e.problem(e.line, fmt.Sprintf("%q is not a valid suite", suite), "")
				continue
			}
			out = append(out, s)
		}
	}
	return out
}
