package manifest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// Zones lists what Sources.Zone takes.
func Zones() []string {
	f, _ := reflect.TypeFor[Sources]().FieldByName("Zone")
	return document.Enum(f.Tag)
}

// Rewrite gives the address to fetch from in place of address, and whether it
// may be spoken to without TLS. It takes addresses of files (https://…) and
// image references (registry/repository:tag or @digest). An address that no
// entry matches comes back as it is. What is expected of the bytes never changes.
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
	if !ok || r.To == "" { // "": the zone knows that nobody mirrors it
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

// Direct gives the part of upstream, a host or a prefix, that address is fetched
// from although a zone is set, and why: nobody mirrors it, and no entry of Replace
// stands in. It gives "" for every other address, those of hosts that the zone has
// no line for among them: these are what a config names itself.
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

// splitSuffix cuts off what comes after the path: an image's tag and digest,
// an address's query and fragment.
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

// longest finds the entry with the longest from that is name or a whole-segment
// prefix of it; of two equals the first.
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

// Over lays s over base: what s says counts, what it leaves open comes from
// base. An entry of s stands in for the one of base with the same from.
func (s Sources) Over(base Sources) Sources {
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
