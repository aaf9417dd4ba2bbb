package upstream

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
)

// Sizes of the stand-ins, in bytes, before the scale.
const (
	smallFile = 1 << 20
	largeFile = 6 << 20
)

// file is one thing that is served under an address.
type file struct {
	body   Content
	sha256 string
	typ    string // Content-Type
}

// where gives the path at which the server holds an address: its host, then its path.
func where(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "", fmt.Errorf("%q is not an address with a host", address)
	}
	return "/" + u.Host + u.EscapedPath(), nil
}

// makeFile makes the stand-in of a: its content, and in a the size and digest
// of it and of its members. Salt makes another content of the same shape.
func makeFile(a *manifest.Artifact, salt string, scale float64) (file, error) {
	name, plain := a.Address+salt, a.Address // sizes stay when the content changes
	f := file{typ: "application/octet-stream"}
	switch {
	case a.Archive == "tar.gz":
		g, err := makeArchive(a, salt, scale)
		if err != nil {
			return file{}, fmt.Errorf("%s: %w", a.ID, err)
		}
		f.body, f.sha256 = g, g.digest
	case a.Archive != "":
		return file{}, fmt.Errorf("%s: no stand-in for an archive of type %q", a.ID, a.Archive)
	case a.Kind == manifest.Chart:
		g, err := makeChart(a, name)
		if err != nil {
			return file{}, fmt.Errorf("%s: %w", a.ID, err)
		}
		f.body, f.sha256 = g, g.digest
	case strings.HasSuffix(a.Address, ".yaml"), strings.HasSuffix(a.Address, ".yml"):
		f.body, f.typ = text(configMap(a.Name, a.Version, name)), "text/plain; charset=utf-8"
	default:
		f.body = executable(a.Name, a.Version, a.Platform, name, size(plain, smallFile, largeFile, scale))
	}
	if f.sha256 == "" {
		var err error
		if f.sha256, err = sha256Of(f.body); err != nil {
			return file{}, fmt.Errorf("%s: %w", a.ID, err)
		}
	}
	a.Size, a.SHA256 = f.body.Size(), f.sha256
	return f, nil
}

// executable is a program's stand-in: run, it says what it is.
func executable(name, version string, p manifest.Platform, seed string, size int64) Content {
	head := fmt.Sprintf("#!/bin/sh\necho 'this is a stand-in for %s %s %s, made by a test; it does nothing' >&2\nexit 1\n", name, version, p)
	return concat(text(head), program(seed, max(size-int64(len(head)), 0)))
}

// configMap is a Kubernetes manifest's stand-in, which does no harm if applied.
func configMap(name, version, seed string) string {
	return fmt.Sprintf(`# This is a stand-in for the manifest of %s %s, made by a test; it installs nothing.
apiVersion: v1
kind: ConfigMap
metadata:
  name: stand-in-%s
data:
  seed: %q
`, name, version, name, seed)
}

// note is what every stand-in archive carries beside its members.
func note(name, version string) string {
	return fmt.Sprintf("This archive is a stand-in for %s %s, made by a test: nothing in it is the real program.\n", name, version)
}

// makeArchive makes an archive with a's members at their paths and two files
// that nobody asked for.
func makeArchive(a *manifest.Artifact, salt string, scale float64) (*gzipped, error) {
	// Releases packed with `tar -C bin .` begin every name with "./".
	prefix, top := "", ""
	if strings.HasSuffix(a.Address, ".tgz") {
		prefix = "./"
	}
	for _, m := range a.Members {
		if strings.Contains(m.Path, "/") {
			prefix = ""
			top = strings.SplitAfterN(m.Path, "/", 2)[0]
		}
	}
	entries := []entry{{name: prefix + path.Join(top, "README.md"), mode: 0o644, body: text(note(a.Name, a.Version))}}
	for i := range a.Members {
		m := &a.Members[i]
		seed := a.Address + "/" + m.Path
		// A file of twenty members is larger than one of one, though not twenty times.
		share := scale * 2 / float64(len(a.Members)+1)
		body := executable(m.Name, a.Version, a.Platform, seed+salt, size(seed, smallFile, largeFile, share))
		sha, err := sha256Of(body)
		if err != nil {
			return nil, err
		}
		m.Size, m.SHA256 = body.Size(), sha
		entries = append(entries, entry{name: prefix + m.Path, mode: 0o755, body: body})
	}
	extra := size(a.Address+"/extra", 16<<10, 256<<10, scale)
	entries = append(entries, entry{name: prefix + path.Join(top, "contrib/not-wanted"), mode: 0o755, body: program(a.Address+"/extra"+salt, extra)})
	tape, err := archive(entries)
	if err != nil {
		return nil, err
	}
	return compress(tape)
}

// makeChart makes a chart that Helm would load: it renders one ConfigMap.
func makeChart(a *manifest.Artifact, name string) (*gzipped, error) {
	chart := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\ndescription: %q\n", a.Name, a.Version, note(a.Name, a.Version))
	tape, err := archive([]entry{
		{name: a.Name + "/Chart.yaml", mode: 0o644, body: text(chart)},
		{name: a.Name + "/values.yaml", mode: 0o644, body: text("{}\n")},
		{name: a.Name + "/templates/configmap.yaml", mode: 0o644, body: text(configMap(a.Name, a.Version, name))},
	})
	if err != nil {
		return nil, err
	}
	return compress(tape)
}

// digestFile writes what upstream would publish at a path for the files in of.
func digestFile(at string, of []sumLine) Content {
	host := strings.SplitN(strings.TrimPrefix(at, "/"), "/", 2)[0]
	// Kubernetes and crictl publish the digest alone.
	if len(of) == 1 && strings.HasSuffix(at, ".sha256") && (host == "dl.k8s.io" || strings.Contains(at, "/cri-tools/")) {
		return text(of[0].sha256)
	}
	var b strings.Builder
	for _, l := range of {
		fmt.Fprintf(&b, "%s  %s\n", l.sha256, l.name)
	}
	return text(b.String())
}

// sumLine is one line of a digest file.
type sumLine struct{ name, sha256 string }
