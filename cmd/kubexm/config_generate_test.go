package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

// TestGeneratedConfigs: a config for hosts that are named by address validates, and
// can be installed.
func TestGeneratedConfigs(t *testing.T) {
	for line, want := range map[string]int{
		"--masters 10.0.0.11-13 --workers 10.0.0.21-40 --registry 10.0.0.10 --user ops": 24,
		"--masters 10.0.0.11": 1,
		"--masters 10.0.0.11,10.0.1.4-6 --workers 10.0.0.11,10.0.0.12": 5,
		"--masters 10.0.0.11-13 --registry 10.0.0.11":                  3,
		"--masters 10.0.0.11 --workers fd00::1":                        2,
	} {
		code, out, stderr := ran(t, append([]string{"config", "init"}, strings.Fields(line)...)...)
		c, problems := manifest.Decode(bytes.NewReader([]byte(out)))
		if code != exitDone || problems.Err() != nil {
			t.Errorf("%s: exit code %d, %v\n%s%s", line, code, problems.Err(), stderr, out)
			continue
		}
		if err := c.NotInstallable().Err(); err != nil || len(c.Spec.Hosts) != want {
			t.Errorf("%s: %d hosts, %v", line, len(c.Spec.Hosts), err)
		}
		if wants := strings.Contains(line, "--registry"); (c.Spec.Registry.Type == "registry") != wants || len(c.HostsWith("registry")) > 0 != wants {
			t.Errorf("%s: a registry: %t", line, !wants)
		}
	}
	for line, want := range map[string]string{
		"--workers 10.0.0.21":                             "--masters is missing",
		"--masters 10.0.0.13-11":                          "--masters 10.0.0.13-11: not an address",
		"--masters 10.0.0.1-999":                          "not an address",
		"--masters m1":                                    "--masters m1: not an address",
		"--masters fd00::1-3":                             "not an address",
		"--masters 10.0.0.1 --registry 10.0.0.2,10.0.0.3": "--registry: more than one host",
		"--masters 10.0.0.1 --template ha":                "cannot be used together",
	} {
		if code, out, stderr := ran(t, append([]string{"config", "init"}, strings.Fields(line)...)...); code != exitUsage || out != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", line, code, out, stderr, want)
		}
	}
}
