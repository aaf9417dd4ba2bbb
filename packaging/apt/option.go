package apt

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// entry is a source as it is being read: what stands in one place, for several
// addresses and suites.
type entry struct {
	source   Source
	types    []string
	uris     []string
	suites   []string
	off      bool
	file     string
	line     int
	base     string // where relative paths of keys start; "": there are none
	problems manifest.Problems
}

func (e *entry) problem(line int, message, advice string) {
	e.problems = append(e.problems, manifest.Problem{File: e.file, Line: line, Message: message, Advice: advice})
}

func (e *entry) warn(line int, message, advice string) {
	e.problems = append(e.problems, manifest.Problem{Severity: manifest.Warning, File: e.file, Line: line, Message: message, Advice: advice})
}

// lenient are options that would have apt believe what nobody signed.
var lenient = []string{"trusted", "allow-insecure", "allow-weak", "allow-downgrade-to-insecure"}

// ignored are options that change nothing of what is read here.
var ignored = []string{"lang", "languages", "target", "targets", "pdiffs", "valid-until-min", "valid-until-max", "date-max-future", "description",
	"x-repolib-name", "x-repolib-id", "enabled-by", "snapshot"}

// option takes one option, its name in lower case as one-line sources have it.
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
		e.warn(line, "check-date=no does not count here", "set this machine's clock where it is wrong")
	case name == "inrelease-path":
		e.problem(line, "an inrelease-path is not read here", "name the repository by its ordinary address and suite")
	case slices.Contains(lenient, name):
		if on {
			e.warn(line, name+"="+strings.Join(values, ",")+" does not count here: the repository has to be signed", "name its key with signed-by")
		}
	case slices.Contains(ignored, name) || name == "check-date":
	default:
		e.warn(line, "the option "+name+" is unknown", "")
	}
}

// signedBy takes paths of keyrings and fingerprints.
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
			e.problem(line, fmt.Sprintf("signed-by has %q, which is neither a path nor a whole fingerprint", v), "")
		}
	}
}

// mirror gives the first address of a list of mirrors on this machine, as cloud
// images have it; or the list's own where there is none.
func (e *entry) mirror(uri, list string) string {
	list = filepath.Clean(list)
	var b []byte
	info, err := os.Stat(list)
	if err == nil && info.Mode().IsRegular() {
		b, err = os.ReadFile(list)
	}
	if err != nil {
		e.warn(e.line, "the list of mirrors: "+err.Error(), "")
		return uri
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 0 && strings.HasPrefix(f[0], "http") {
			return f[0]
		}
	}
	return uri
}

// schemes that lead to a folder of files.
var schemes = []string{"http", "https", "file", "copy"}

// sources gives one Source for each address and suite, unless something is wrong.
func (e *entry) sources() []Source {
	for _, t := range e.types {
		if t != "deb" && t != "deb-src" {
			e.problem(e.line, fmt.Sprintf("%q is no type of source", t), "write deb")
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
			e.warn(e.line, fmt.Sprintf("%q is passed over: only http, https and file addresses can be read", redacted(uri)), "name a mirror's address instead")
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
				e.problem(e.line, fmt.Sprintf("the suite %q ends in a slash, and such a repository has no components", suite), "drop the components or the slash")
				continue
			case !s.flat() && len(s.Components) == 0:
				e.problem(e.line, fmt.Sprintf("the suite %q needs components, as in main", suite), "name them, or end the suite in a slash where the repository is flat")
				continue
			case !s.flat() && !localPath(suite):
				e.problem(e.line, fmt.Sprintf("%q is no suite", suite), "")
				continue
			}
			out = append(out, s)
		}
	}
	return out
}
