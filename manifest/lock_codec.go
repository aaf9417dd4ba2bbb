package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/manifest/document"
)

// LockKind is the value of kind in a lock.
const LockKind = "Lock"

// maxLock is the maximum size in bytes of a lock in a bundle or a folder. A lock with 500
// images for two platforms is smaller than 1 MiB.
const maxLock = 16 << 20

// maxLockValues is the maximum number of values in a lock. A decoded value takes about 200
// bytes of memory, even if its text is short.
const maxLockValues = 1 << 19

// lockHeader is the first line of every encoded lock.
const lockHeader = "# Written by kubexm; pins every byte of a bundle. Commit it; change it with `kubexm bundle lock`.\n"

var (
	hexDigest    = regexp.MustCompile(`^[0-9a-f]{64}$`)
	prefixDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// EncodeLock encodes l in canonical form: equal locks are equal bytes.
func EncodeLock(l *Lock) ([]byte, error) {
	c := l.Clone()
	c.Sort()
	c.Created = c.Created.UTC()
	var b bytes.Buffer
	b.WriteString(lockHeader)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(c); err != nil {
		return nil, fmt.Errorf("encode lock: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("encode lock: %w", err)
	}
	return b.Bytes(), nil
}

// DecodeLock reads a lock strictly. Unknown fields, malformed digests, repeated ids and entries
// without a digest are problems. All problems are in one report.
func DecodeLock(r io.Reader) (*Lock, Problems) {
	text, err := io.ReadAll(io.LimitReader(r, maxLock+1))
	if err != nil {
		return nil, Problems{{Message: "cannot be read: " + err.Error()}}
	}
	if len(text) > maxLock {
		return nil, Problems{{Message: fmt.Sprintf("larger than %d bytes", maxLock), Advice: "this is not a lock that kubexm wrote"}}
	}
	if mayHold(text) > maxLockValues {
		return nil, Problems{{Message: fmt.Sprintf("contains more than %d values", maxLockValues), Advice: "this is not a lock that kubexm wrote"}}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var l Lock
	if err := d.Decode(&l); err != nil {
		return nil, yamlProblems(err)
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, Problems{{Message: "contains a second document", Advice: "a lock is one document; create it again with `kubexm bundle lock`"}}
	}
	ps := l.check()
	if ps.Err() != nil {
		return nil, ps
	}
	return &l, ps
}

// mayHold returns an upper bound of the number of values in a YAML text, without parsing it.
// Each value is on a separate line or follows an indicator.
func mayHold(text []byte) int {
	n := 1
	for _, indicator := range []string{"\n", ",", "[", "{", "- ", "? ", ": "} {
		n += bytes.Count(text, []byte(indicator))
	}
	return n
}

// yamlProblems converts a yaml error to problems with line numbers.
func yamlProblems(err error) Problems {
	const advice = "create it again with `kubexm bundle lock`"
	var typed *yaml.TypeError
	messages := []string{strings.TrimPrefix(err.Error(), "yaml: ")}
	if errors.As(err, &typed) {
		messages = typed.Errors
	}
	var ps Problems
	for i, m := range messages {
		if i == document.MaxProblems {
			return append(ps, Problem{Message: fmt.Sprintf("has more problems than these %d", document.MaxProblems), Advice: advice})
		}
		p := Problem{Message: m, Advice: advice}
		if n, _ := fmt.Sscanf(m, "line %d:", &p.Line); n == 1 {
			_, p.Message, _ = strings.Cut(m, ": ")
			p.Column = 1
		}
		ps = append(ps, p)
	}
	return ps
}

// check finds all invalid values in a decoded lock.
func (l *Lock) check() Problems {
	var ps Problems
	bad := func(path, format string, args ...any) {
		ps = append(ps, Problem{Path: path, Message: fmt.Sprintf(format, args...), Advice: "create it again with `kubexm bundle lock`"})
	}
	if l.APIVersion != APIVersion || l.Kind != LockKind {
		bad("apiVersion", "is %s %s, not %s %s", l.APIVersion, l.Kind, APIVersion, LockKind)
	}
	if l.Cluster == "" {
		bad("cluster", "is missing")
	}
	if l.Created.IsZero() || l.Serial <= 0 {
		bad("serial", "created and serial are missing")
	}
	if !prefixDigest.MatchString(l.Config) {
		bad("config", "%q is not a sha256 digest", l.Config)
	}
	if len(l.Sets) == 0 {
		bad("sets", "is empty")
	}
	checkText("", reflect.ValueOf(l).Elem(), bad)
	sets := map[string]bool{}
	for _, s := range l.Sets {
		if sets[s.Name] {
			bad("sets", "%s is listed twice", s.Name)
		}
		sets[s.Name] = true
	}
	ids := map[string]bool{}
	common := func(path, id string, in []string) {
		if ids[id] {
			bad(path, "id %s is not unique", id)
		}
		ids[id] = true
		for _, s := range in {
			if !sets[s] {
				bad(path+".sets", "%s is not a set of this lock", s)
			}
		}
	}
	for i, a := range l.Artifacts {
		path := fmt.Sprintf("artifacts[%d]", i)
		common(path, a.ID, a.Sets)
		l.checkArtifact(path, a, bad)
		a.checkNames(path, bad)
	}
	for i, im := range l.Images {
		path := fmt.Sprintf("images[%d]", i)
		common(path, im.ID, im.Sets)
		checkImage(path, im, bad)
	}
	return ps
}

func (l *Lock) checkArtifact(path string, a Artifact, bad func(path, format string, args ...any)) {
	if a.Kind == Packages {
		a.checkPackages(path, bad)
	} else {
		if a.Address == "" {
			bad(path+".address", "is missing")
		}
		if !hexDigest.MatchString(a.SHA256) || a.Size < 0 {
			bad(path, "%s is not pinned: sha256 %q, size %d", a.ID, a.SHA256, a.Size)
		}
		if a.Packages != nil {
			bad(path+".packages", "must be set for packages only")
		}
	}
	if a.Single() != (len(a.Members) == 0) {
		bad(path+".members", "must be set for an archive or a repository of packages, and only for these")
	}
	if (a.Kind == Chart) != (a.Chart != nil) {
		bad(path+".chart", "must be set for a chart, and only for a chart")
	}
	for j, p := range a.Parts {
		if !hexDigest.MatchString(p.SHA256) || p.Size <= 0 || p.Name == "" || p.Address == "" {
			bad(fmt.Sprintf("%s.parts[%d]", path, j), "%s is not pinned: sha256 %q, size %d", p.Name, p.SHA256, p.Size)
		}
	}
	for j, m := range a.Members {
		if !hexDigest.MatchString(m.SHA256) || m.Size < 0 || m.Name == "" || m.Path == "" {
			bad(fmt.Sprintf("%s.members[%d]", path, j), "%s is not pinned: sha256 %q, size %d", m.Path, m.SHA256, m.Size)
		}
	}
}

func (a Artifact) checkPackages(path string, bad func(path, format string, args ...any)) {
	switch s := a.Packages; {
	case s == nil:
		bad(path+".packages", "is missing")
	case s.Format != Deb && s.Format != RPM:
		bad(path+".packages.format", "is %q, not %s or %s", s.Format, Deb, RPM)
	case len(s.Want) == 0:
		bad(path+".packages.want", "is empty")
	}
	if a.Platform.Distribution == "" || a.Name != a.Platform.System() {
		bad(path+".platform", "%s is not the platform of packages for %s", a.Platform, a.Name)
	}
	for i, m := range a.Members {
		if at := fmt.Sprintf("%s.members[%d]", path, i); !fs.ValidPath(m.Path) || m.Path != m.Name {
			bad(at+".path", "%q is not a valid path in a repository, or differs from the name", m.Path)
		} else if (m.Package == "") != (m.Address == "") || (m.Package == "") != (m.Record == "") {
			bad(at, "%s has some of package, address and record, but not all", m.Path)
		}
	}
}

func checkImage(path string, im ImagePin, bad func(path, format string, args ...any)) {
	if im.Reference == "" {
		bad(path+".reference", "is missing")
	}
	if !prefixDigest.MatchString(im.Digest) || im.MediaType == "" || im.Size <= 0 {
		bad(path, "%s is not pinned: digest %q, size %d", im.ID, im.Digest, im.Size)
	}
	if len(im.Platforms) == 0 {
		bad(path+".platforms", "is empty")
	}
	for j, p := range im.Platforms {
		if !prefixDigest.MatchString(p.Digest) || p.Size <= 0 || p.MediaType == "" || p.Content < 0 {
			bad(fmt.Sprintf("%s.platforms[%d]", path, j), "%s is not pinned: digest %q, size %d", p.Platform, p.Digest, p.Size)
		}
	}
}
