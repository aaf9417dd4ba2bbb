package manifest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Zones lists the values of Sources.Zone.
func Zones() []string {
	f, _ := reflect.TypeFor[Sources]().FieldByName("Zone")
	return document.Enum(f.Tag)
}

// Rewrite returns the address to download from instead of address, and whether HTTP without
// TLS is allowed. It accepts URLs of files (https://…) and image references
// (registry/repository:tag or @digest). An address that no entry matches is returned
// unchanged. The expected digest never changes.
func (s Sources) Rewrite(address string) (target string, plainHTTP bool) {
	_, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		rest = address
	}
	name, suffix := splitSuffix(rest, isURL)
	r, ok := longest(s.Replace, name)
	if !ok {
		r, ok = longest(zoneReplacements(s.Zone, isURL), name)
	}
	if !ok || r.To == "" { // "": the zone lists it as having no mirror
		return address, false
	}
	toScheme, to, hasScheme := strings.Cut(r.To, "://")
	if !hasScheme {
		toScheme, to = "https", r.To
		if r.PlainHTTP {
			toScheme = "http"
		}
	}
	tail := strings.TrimPrefix(name, r.From)
	if r.Flatten && !isURL {
		tail = tail[max(strings.LastIndexByte(tail, '/'), 0):]
	}
	target = strings.TrimSuffix(to, "/") + tail + suffix
	if isURL {
		target = toScheme + "://" + target
	}
	return target, r.PlainHTTP
}

// Direct returns the upstream host or prefix that address is downloaded from although a zone
// is set, and why it has no mirror. It returns "" for addresses that an entry of Replace
// matches, and for hosts that the zone does not list: only the config refers to these.
func (s Sources) Direct(address string) (from, why string) {
	_, rest, isURL := strings.Cut(address, "://")
	if !isURL {
		rest = address
	}
	name, _ := splitSuffix(rest, isURL)
	if _, ok := longest(s.Replace, name); ok {
		return "", ""
	}
	r, ok := longest(zoneReplacements(s.Zone, isURL), name)
	if !ok || r.To != "" {
		return "", ""
	}
	for _, m := range zoneTable(s.Zone) {
		if m.from == r.From {
			return m.from, m.none
		}
	}
	return "", ""
}

// splitSuffix splits after the path: the suffix is an image's tag and digest, or the query and
// fragment of a URL.
func splitSuffix(rest string, isURL bool) (name, suffix string) {
	at := len(rest)
	if isURL {
		if i := strings.IndexAny(rest, "?#"); i >= 0 {
			at = i
		}
		return rest[:at], rest[at:]
	}
	if i := strings.IndexByte(rest, '@'); i >= 0 {
		at = i
	}
	// A colon before the last slash is the registry's port.
	if i := strings.LastIndexByte(rest[:at], ':'); i > strings.LastIndexByte(rest[:at], '/') {
		at = i
	}
	return rest[:at], rest[at:]
}

// longest returns the entry with the longest From that equals name or is a prefix of it that
// ends at a path segment; of two equal ones the first.
func longest(rs []Replacement, name string) (best Replacement, ok bool) {
	for _, r := range rs {
		from := strings.TrimSuffix(r.From, "/")
		if from == "" || !strings.HasPrefix(name, from) || len(name) > len(from) && name[len(from)] != '/' {
			continue
		}
		if !ok || len(from) > len(best.From) {
			r.From = from
			best, ok = r, true
		}
	}
	return best, ok
}

// MergeOver merges s over base: fields that are not set in s come from base. An entry of
// s.Replace replaces the entry of base with the same From.
func (s Sources) MergeOver(base Sources) Sources {
	out := base
	if s.Zone != "" {
		out.Zone = s.Zone
	}
	if s.CAFile != "" {
		out.CAFile = s.CAFile
	}
	if s.DockerConfig != "" {
		out.DockerConfig = s.DockerConfig
	}
	out.Replace = slices.Clone(s.Replace)
	for _, r := range base.Replace {
		same := func(x Replacement) bool {
			return strings.TrimSuffix(x.From, "/") == strings.TrimSuffix(r.From, "/")
		}
		if !slices.ContainsFunc(s.Replace, same) {
			out.Replace = append(out.Replace, r)
		}
	}
	return out
}
