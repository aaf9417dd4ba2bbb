package rpm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

// folders is a Web of what lies in folders.
type folders struct{}

func (folders) Open(_ context.Context, url string) (io.ReadCloser, error) {
	return os.Open(strings.TrimPrefix(url, "file://"))
}

// choice is dnf's answer to one request.
type choice struct {
	Install []string `json:"install"`
	Error   string   `json:"error"`
}

// choose asks dnf what it would install from a folder of the root.
func choose(t *testing.T, r *rpmtest.Root, repo string, requests [][]string) []choice {
	t.Helper()
	content, err := json.Marshal(map[string]any{"repo": filepath.Join(r.Dir, repo), "arch": "x86_64", "requests": requests})
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/choose.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"requests.json": content, "choose.py": script} {
		if err := os.WriteFile(r.Out(name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	answer := r.Run(t, "python3", "choose.py", "requests.json")
	var out []choice
	if err := json.Unmarshal([]byte(answer), &out); err != nil || len(out) != len(requests) {
		t.Fatalf("%v: %s", err, answer)
	}
	return out
}

// nevra writes a package as dnf does.
func nevra(p *packaging.Package) string { return p.Name + "-" + p.Version + "." + p.Arch }

func nevras(all []*packaging.Package) []string {
	out := []string{}
	for _, p := range all {
		out = append(out, nevra(p))
	}
	slices.Sort(out)
	return out
}

func read(t *testing.T, dir string, names ...string) (*Metadata, *packaging.Universe) {
	t.Helper()
	m, err := Read(t.Context(), folders{}, []Repository{{ID: "test", Bases: []string{"file://" + dir}, Priority: 99}},
		Options{Arch: "x86_64", Now: time.Now(), Names: names})
	if err != nil {
		t.Fatal(err)
	}
	u, _, err := m.Universe()
	if err != nil {
		t.Fatal(err)
	}
	return m, u
}

// TestChoiceIsDnfs asks dnf and us for each package of testdata/specs, and for some together.
func TestChoiceIsDnfs(t *testing.T) {
	r := rpmtest.New(t)
	r.Build(t, rpmtest.Specs(t, "testdata/specs")...)
	r.Run(t, "createrepo_c", "--quiet", "rpms")
	m, _ := read(t, r.Out("rpms"))
	var requests [][]string
	for _, e := range m.entries[0] {
		requests = append(requests, []string{e.Name})
	}
	requests = append(requests, []string{"timedaemon"}, []string{"/usr/bin/ls"}, []string{"/usr/share/doc/socat/README"}, []string{"rich-if", "rich-with"},
		[]string{"rich-else", "ipset"}, []string{"rich-conflict", "ebtables"}, []string{"rich-conflict", "rich-and"}, []string{"chrony", "ntp"},
		[]string{"chrony", "systemd-timesyncd"}, []string{"libc.so.6(GLIBC_2.34)(64bit)"}, []string{"kmod(ip_set)"}, []string{"rich-without", "ipset-next"})
	m, u := read(t, r.Out("rpms"), slices.Concat(requests...)...)
	for i, dnf := range choose(t, r, "rpms", requests) {
		t.Run(strings.Join(requests[i], " "), func(t *testing.T) {
			s, err := u.Solve(t.Context(), packaging.Request{Want: m.Want(requests[i]...)})
			var unsolvable *packaging.Unsolvable
			switch {
			case errors.As(err, &unsolvable):
				t.Log(err)
				if dnf.Error == "" {
					t.Errorf("%v, but dnf has %q", err, dnf.Install)
				}
			case err != nil:
				t.Error(err)
			default:
				if dnf.Error != "" {
					t.Errorf("%q, but dnf says %s", nevras(s.Add), dnf.Error)
				} else if d := cmp.Diff(dnf.Install, nevras(s.Add)); d != "" {
					t.Errorf("-dnf +ours: %s", d)
				}
			}
		})
	}
}
