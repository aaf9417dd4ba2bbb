package versions

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/manifest"
)

// repositories gives the locks' repositories by id.
func repositories(lock *manifest.Lock) map[string]manifest.Artifact {
	out := map[string]manifest.Artifact{}
	for _, a := range lock.Artifacts {
		if a.Kind == manifest.Packages {
			out[a.ID] = a
		}
	}
	return out
}

func TestPackagesOfAConfig(t *testing.T) {
	lock, problems := load(t).Resolve(cluster(func(s *manifest.Spec) {
		hosts(s, &s.RoleGroups.Master, "amd64", "m1")
		s.Bundle.Platforms = platforms("amd64", "arm64")
		s.Bundle.KubernetesVersions = []string{"v1.33.0"}
		s.LoadBalancer.Mode, s.LoadBalancer.External.Type = "external", "kubexm-kh"
		s.System = manifest.System{Debs: []string{"jq", "socat"}, RPMs: []string{"tcpdump"}, Timezone: "Europe/Berlin"}
		s.Bundle.OperatingSystems = []manifest.OperatingSystem{
			{Name: "debian", Releases: []string{"12", "13"}, Repositories: []string{"debian.sources"}, Keys: []string{"debian.gpg"}},
			{Name: "openeuler", Releases: []string{"22.03"}},
			{Name: "house", Format: manifest.RPM, Releases: []string{"1"}},
		}
	}))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := repositories(lock)
	var ids []string
	for id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	want := []string{
		"packages/debian-12/12/linux/amd64", "packages/debian-12/12/linux/arm64", "packages/debian-13/13/linux/amd64", "packages/debian-13/13/linux/arm64",
		"packages/house-1/1/linux/amd64", "packages/house-1/1/linux/arm64", "packages/openeuler-22.03/22.03/linux/amd64", "packages/openeuler-22.03/22.03/linux/arm64",
	}
	if d := cmp.Diff(want, ids); d != "" {
		t.Fatal(d)
	}
	debian := all["packages/debian-13/13/linux/arm64"]
	if d := cmp.Diff(manifest.Artifact{
		ID: "packages/debian-13/13/linux/arm64", Kind: manifest.Packages, Name: "debian-13", Version: "13", Sets: []string{"v1.32.4", "v1.33.0"},
		Platform: manifest.Platform{OS: "linux", Arch: "arm64", Distribution: "debian", Release: "13"},
		Packages: &manifest.PackageSet{Format: manifest.Deb, Sources: []string{"debian.sources"}, Keys: []string{"debian.gpg"}, Want: []string{
			"bash-completion", "chrony | time-daemon", "conntrack", "ebtables", "haproxy", "ipset", "ipvsadm", "jq", "keepalived", "nfs-common", "open-iscsi", "socat", "tzdata",
		}},
	}, debian); d != "" {
		t.Error(d)
	}
	if got := all["packages/house-1/1/linux/amd64"].Packages; got.Format != manifest.RPM || !slices.Contains(got.Want, "tcpdump") ||
		slices.Contains(got.Want, "jq") || !slices.Contains(got.Want, "iscsi-initiator-utils | open-iscsi") {
		t.Errorf("%+v", got)
	}
}

func TestNoPackagesWithoutOperatingSystems(t *testing.T) {
	lock, problems := load(t).Resolve(cluster(func(s *manifest.Spec) {
		s.System.RPMs = []string{"tcpdump"}
		s.LoadBalancer.Mode, s.LoadBalancer.External.Type = "external", "kubexm-kn"
	}))
	if problems.Err() != nil || len(repositories(lock)) > 0 {
		t.Fatal(problems, repositories(lock))
	}
	for _, part := range []string{
		"warning: spec.system.rpms: lists packages that the bundle does not contain",
		"warning: spec.loadBalancer.external.type: keepalived is an operating system package",
		"nginx-package is an operating system package",
	} {
		if !strings.Contains(problems.Error(), part) {
			t.Errorf("no problem says %q: %v", part, problems)
		}
	}
}

func TestOperatingSystemProblems(t *testing.T) {
	_, problems := load(t).Resolve(cluster(func(s *manifest.Spec) {
		s.Bundle.OperatingSystems = []manifest.OperatingSystem{
			{Name: "debain", Releases: []string{"12"}}, {Name: "nowhere", Releases: []string{"1"}},
			{Name: "debian", Releases: []string{"12"}}, {Name: "debian", Releases: []string{"13", "12"}},
		}
	}))
	for _, part := range []string{
		"spec.bundle.operatingSystems[0].name: the package format of debain is unknown; did you mean debian, or write format: deb",
		"spec.bundle.operatingSystems[1].name: the package format of nowhere is unknown",
		"spec.bundle.operatingSystems[3]: debian-12 is listed twice",
	} {
		if !strings.Contains(problems.Error(), part) {
			t.Errorf("no problem says %q: %v", part, problems)
		}
	}
}

// TestSystemsAreWhole holds the table against itself.
func TestSystemsAreWhole(t *testing.T) {
	s, err := loadSystems()
	if err != nil {
		t.Fatal(err)
	}
	if known := s.known(); len(slices.Compact(slices.Clone(known))) != len(known) {
		t.Errorf("a distribution is listed twice: %v", known)
	}
	for _, format := range []string{manifest.Deb, manifest.RPM} {
		if len(s.Packages[format]) == 0 || !slices.IsSorted(s.Packages[format]) || !slices.IsSorted(s.Distributions[format]) {
			t.Errorf("%s: %v of %v is empty or not sorted", format, s.Packages[format], s.Distributions[format])
		}
	}
	if len(s.Packages) != 2 || len(s.Distributions) != 2 {
		t.Error("a format that nothing reads")
	}
}
