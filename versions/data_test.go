package versions

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"

	"github.com/mensylisir/kubexm/manifest"
)

// newestOfMinors gives the newest patch of each Kubernetes minor, oldest minor first.
func newestOfMinors(c *Catalog) []string {
	var out []string
	last := uint64(0)
	for _, v := range c.Versions(Kubernetes) {
		if x := semver.MustParse(v); x.Minor() != last {
			out, last = append(out, v), x.Minor()
		}
	}
	slices.Reverse(out)
	return out
}

func TestMatrixHoldsWhatItSays(t *testing.T) {
	c := load(t)
	for _, name := range c.Names() {
		x, _ := c.Component(name)
		if x.About == "" || !slices.Contains(familyNames, x.Family) {
			t.Errorf("%s: no line about it, or family %q", name, x.Family)
		}
		if x.Kind == Package {
			if len(x.Packages) == 0 {
				t.Errorf("%s: no package is named", name)
			}
			continue
		}
		if len(x.Versions) == 0 && x.Unresolved == "" {
			t.Errorf("%s: no version, and no reason why", name)
		}
		for _, v := range c.Versions(name) {
			_, r, _ := c.Release(name, v)
			if name != Kubernetes {
				checkRelease(t, name+" "+v, x.Kind, v, r)
			}
		}
	}
}

func checkRelease(t *testing.T, at string, kind manifest.Kind, version string, r Release) {
	t.Helper()
	if why := r.incomplete(kind); why != "" {
		t.Errorf("%s %s", at, why)
	}
	archs := r.Architectures
	if len(archs) == 0 {
		archs = []string{""}
	}
	for _, arch := range archs {
		filled := []string{r.Address, r.DigestAddress, r.Chart}
		for _, m := range r.Members {
			filled = append(filled, m.Path)
		}
		for _, i := range r.Images {
			filled = append(filled, i.Reference)
		}
		for _, template := range filled {
			s := expand(template, version, arch)
			if strings.ContainsAny(s, "{} ") || strings.Contains(s, "vv") {
				t.Errorf("%s for %q: %s", at, arch, s)
			}
		}
	}
	for _, i := range r.Images {
		if why := reference(expand(i.Reference, version, "")); why != "" {
			t.Errorf("%s: %s %s", at, i.Reference, why)
		}
	}
	if r.Kubernetes != "" {
		if why := isRange(r.Kubernetes); why != "" {
			t.Errorf("%s: %s %s", at, r.Kubernetes, why)
		}
	}
}

// withoutDefault are the components that no version of goes with a Kubernetes minor.
var withoutDefault = map[string]bool{
	"ingress-nginx v1.36": true, // upstream ended before it
}

// defaultProblems says which default of which component cannot be downloaded.
func defaultProblems(c *Catalog) []string {
	var out []string
	for _, kubernetes := range newestOfMinors(c) {
		minor := kubernetes[:strings.LastIndex(kubernetes, ".")]
		for _, name := range c.Names() {
			x, _ := c.Component(name)
			if x.Kind == Package || name == Kubernetes || withoutDefault[name+" "+minor] {
				continue
			}
			at := fmt.Sprintf("%s for %s", name, minor)
			v, ok := c.Default(name, kubernetes)
			if !ok {
				out = append(out, at+": no default")
				continue
			}
			_, r, ok := c.Release(name, v)
			switch {
			case !ok:
				out = append(out, at+": default "+v+" is no version")
			case r.Unresolved != "":
				out = append(out, at+": default "+v+" is unresolved")
			case !r.CompatibleWith(kubernetes):
				out = append(out, at+": default "+v+" goes with "+r.Kubernetes)
			case r.incomplete(x.Kind) != "":
				out = append(out, at+": default "+v+" "+r.incomplete(x.Kind))
			}
		}
	}
	return out
}

func TestDefaultsCanBeFetched(t *testing.T) {
	for _, p := range defaultProblems(load(t)) {
		t.Error(p)
	}
}

// The check above must see each of the faults it is there for.
func TestDefaultsCheckSeesFaults(t *testing.T) {
	tests := []struct {
		name, component string
		spoil           func(x *Component)
		want            string
	}{
		{"no address", "runc", func(x *Component) { x.Address = "" }, "has no address"},
		{"no digest source", "crun", func(x *Component) {
			x.Versions = map[string]Release{"1.17": {Recipe: Recipe{Architectures: []string{"amd64"}}}}
		},
			"neither sha256 nor digestAddress"},
		{"no images", "pause", func(x *Component) { x.Images = nil }, "has no images"},
		{"unresolved", "coredns", func(x *Component) { x.Unresolved = "lost" }, "is unresolved"},
		{"no such version", "etcd", func(x *Component) { x.Versions = nil }, "no default"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, _ := load(t).with(nil)
			x := *c.components[tt.component]
			tt.spoil(&x)
			c.components[tt.component] = &x
			if got := strings.Join(defaultProblems(c), "\n"); !strings.Contains(got, tt.component) || !strings.Contains(got, tt.want) {
				t.Errorf("%s is not seen:\n%s", tt.want, got)
			}
		})
	}
}

func TestKubernetesAsksForKnownVersions(t *testing.T) {
	c := load(t)
	for _, v := range c.Versions(Kubernetes) {
		_, r, _ := c.Release(Kubernetes, v)
		for _, name := range []string{"coredns", "pause", "etcd", "etcd-image"} {
			if _, _, ok := c.Release(name, r.With[name]); !ok {
				t.Errorf("%s asks for %s %q, which is no version", v, name, r.With[name])
			}
		}
		if !strings.HasPrefix(r.With["etcd-image"], strings.TrimPrefix(r.With["etcd"], "v")+"-") {
			t.Errorf("%s: etcd %s, but its image %s", v, r.With["etcd"], r.With["etcd-image"])
		}
		for _, name := range []string{"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
			if d, ok := c.Default(name, v); !ok || d != v {
				t.Errorf("%s of %s is %q", name, v, d)
			}
		}
	}
}

func TestVersionsAreNewestFirst(t *testing.T) {
	got := newestFirst([]string{"v1.9.0", "odd", "3.5.16-0", "v1.10.0", "v1.9.10"})
	if want := []string{"3.5.16-0", "v1.10.0", "v1.9.10", "v1.9.0", "odd"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
