package versions_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/versions"
)

func TestSupportedSystems(t *testing.T) {
	all, err := versions.Supported()
	if err != nil || !slices.IsSortedFunc(all, func(a, b versions.System) int { return strings.Compare(a.ID, b.ID) }) {
		t.Fatalf("%v, %v", all, err)
	}
	for system, want := range map[string]bool{
		"debian 11": true, "debian 12": true, "debian 13": true, "debian 10": false, "debian ": false,
		"centos 7": true, "centos 8": true, "centos 9": false,
		"rhel 7.9": true, "rhel 8.10": true, "rhel 9.4": true, "rhel 10.0": false, "rhel 90": false,
		"rocky 9.4": true, "rocky 9": true, "rocky 7": false, "almalinux 8.10": true,
		"ubuntu 20.04": true, "ubuntu 22.04": true, "ubuntu 24.04": true, "ubuntu 24.10": false, "ubuntu 24": false,
		"openEuler 22.03": true, "openeuler 24.03": true, "kylin V10": true, "kylin v10": true, "sles 15": false,
	} {
		id, release, _ := strings.Cut(system, " ")
		if got := slices.ContainsFunc(all, func(s versions.System) bool { return s.Is(id, release) }); got != want {
			t.Errorf("%s: supported %t, want %t", system, got, want)
		}
	}
	for _, s := range all {
		if s.Name == "" || len(s.Releases) == 0 || s.ID != strings.ToLower(s.ID) {
			t.Errorf("%+v", s)
		}
	}
}
