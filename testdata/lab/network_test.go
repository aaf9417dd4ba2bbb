package lab

import (
	"strings"
	"testing"
)

// TestOwnAddresses: hosts have the addresses that they are given, and the lab's own do not collide with
// them. What is in no common range is refused.
func TestOwnAddresses(t *testing.T) {
	l := &Lab{Index: 3}
	if err := l.addHosts(2, []string{"172.16.0.2,2001:db8::1", "172.16.0.13,2001:db8::13"}); err != nil {
		t.Fatal(err)
	}
	got := []string{l.Hosts[1].Address, l.Hosts[1].Address6, l.Subnet(), l.Gateway(), l.Workdir().Address6, l.Asker(), l.address6(0)}
	if want := "172.16.0.13 2001:db8::13 172.16.0.0/24 172.16.0.251 2001:db8::fc 172.16.0.254 2001:db8::0"; strings.Join(got, " ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	for pair, want := range map[string]string{
		"172.16.1.14,2001:db8::14":  "is not in 172.16.0.0/24",
		"172.16.0.14,2001:db9::14":  "is not in 172.16.0.0/24 and 2001:db8::/64",
		"172.16.0.251,2001:db8::14": "last number is 1 to 250",
		"172.16.0.14":               "a comma, and an IPv6 address",
	} {
		if _, _, err := l.own(pair); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", pair, err, want)
		}
	}
}
