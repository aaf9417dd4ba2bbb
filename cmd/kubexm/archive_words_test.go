package main

import (
	"os"
	"strings"
	"testing"
)

// TestNoArchive: what is plainly no bundle is a mistake in the command line, said
// before anything is read, fetched or called.
func TestNoArchive(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"config.yaml": "# a comment\napiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\n", "site.json": `{"kind": "SiteInventory"}`,
		"pod.yaml": "kind: Pod\n", "exists.tar.zst": "x", "text": "nothing\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"bundle verify config.yaml":                                   "config.yaml is a cluster config; a bundle is NAME.tar.zst",
		"bundle ls folder":                                            "folder is a folder; a bundle is",
		"bundle check -f config.yaml site.json":                       "site.json is the inventory of a site; a bundle",
		"bundle diff exists.tar.zst pod.yaml":                         "pod.yaml is a document of kind Pod; a bundle",
		"install config.yaml":                                         "config.yaml is a cluster config",
		"install -b folder -f config.yaml":                            "folder is a folder",
		"install exists.tar.zst --base folder":                        "folder is a folder",
		"site inventory -f config.yaml -b exists.tar.zst -b pod.yaml": "pod.yaml is a document of kind Pod",
		"registry serve --bundle config.yaml":                         "config.yaml is a cluster config",
		"bundle build -f config.yaml folder":                          "folder is a folder",
		"bundle build -f absent.yaml exists.tar.zst":                  "exists.tar.zst already exists",
		"bundle build -f absent.yaml config.yaml --force":             "config.yaml is a cluster config",
		"install a.tar.zst --bundle b.tar.zst":                        "two bundles are given: a.tar.zst, and --bundle b.tar.zst",
		"install":                                                     "install requires the archive: kubexm install ARCHIVE [-f CONFIG]",
		"install absent.tar.zst":                                      "open absent.tar.zst: no such file",
		"create cluster absent.tar.zst":                               "open absent.tar.zst: no such file",
	} {
		if code, out, stderr := ran(t, strings.Fields(line)...); code != exitUsage || out != "" || !strings.HasPrefix(stderr, "error: "+want) {
			t.Errorf("%s: exit code %d\n%s%s\nwant %s", line, code, out, stderr, want)
		}
	}
	if code, _, stderr := ran(t, "bundle", "ls", "text"); code != exitRefused {
		t.Errorf("a file that may be damaged: exit code %d, %s", code, stderr)
	}
}
