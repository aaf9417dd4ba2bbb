package serve

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
)

// suiteEnv names the program of the distribution specification's own suite, built
// from its folder conformance. No Go module of it is published to build it from.
const suiteEnv = "OCI_CONFORMANCE"

// TestConformance runs that suite for pulling against a served bundle.
func TestConformance(t *testing.T) {
	suite := os.Getenv(suiteEnv)
	if suite == "" {
		t.Skip(suiteEnv + " names no program")
	}
	dir := t.TempDir()
	s, b := up(t, Options{})
	var manifests, blobs, tops []string
	for _, im := range b.Lock.Images {
		if !strings.HasPrefix(im.Reference, "docker.io/library/busybox:") {
			continue
		}
		tree, err := b.Tree(im)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range tree {
			if bundle.IsManifest(d.MediaType) {
				manifests = append(manifests, d.Digest.String())
			} else {
				blobs = append(blobs, d.Digest.String())
			}
		}
		tops = append(tops, im.Digest)
	}
	run := exec.CommandContext(t.Context(), suite)
	run.Dir = dir
	run.Env = append(os.Environ(),
		"OCI_REGISTRY="+strings.TrimPrefix(s.URL, "http://"), "OCI_TLS=disabled", "OCI_REPO1=docker.io/library/busybox",
		"OCI_API_PUSH=false", "OCI_API_BLOBS_DELETE=false", "OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false",
		"OCI_RO_DATA_TAGS=1.36 1.37", "OCI_RO_DATA_MANIFESTS="+strings.Join(manifests, " "), "OCI_RO_DATA_BLOBS="+strings.Join(blobs, " "),
		"OCI_RO_DATA_REFERRERS="+strings.Join(tops, " "),
		// Of data that was there before, the suite breaks down while it writes its
		// reports: no folder can be made below a file, and what it prints is enough.
		"OCI_RESULTS_DIR="+filepath.Join(suite, "none"),
	)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("the suite: %v", err)
	}
	counted := func(what string) int {
		m := regexp.MustCompile(`(?m)^  ` + what + `\.*: +([0-9]+)$`).FindSubmatch(out)
		if m == nil {
			t.Fatalf("the suite does not count what is %s\n%s", what, out)
		}
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if counted("FAIL") != 0 || counted("Error") != 0 || counted("Pass") < 20 {
		t.Errorf("%s", out)
	}
	t.Logf("%d passed, %d are about pushing and deleting", counted("Pass"), counted("Disabled"))
}
