package kubexm_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// foreign names modules that one folder alone may use, so that what they bring
// along can be told from the rest, and be left behind.
var foreign = map[string]string{
	"github.com/sigstore/":               "bundle/sign",
	"github.com/secure-systems-lab/":     "bundle/sign",
	"github.com/theupdateframework/":     "bundle/sign",
	"github.com/in-toto/":                "bundle/sign",
	"google.golang.org/protobuf/":        "bundle/sign",
	"github.com/google/certificate-tran": "bundle/sign", // its tests make a certificate that was logged
}

// refusedPackages are never linked, not even by way of another module: the first
// is cosign's command line, which fetches keys from the network whatever it is
// told, and makes the program three times as large.
var refusedPackages = []string{"github.com/sigstore/cosign/v2/cmd/", "github.com/open-policy-agent/", "cuelang.org/"}

// atLeast are modules that cosign asks for in versions with known holes:
// go.mod has to ask for more.
var atLeast = map[string]string{
	"github.com/sigstore/sigstore-go":         "v1.3.0",
	"github.com/theupdateframework/go-tuf/v2": "v2.4.2",
	"golang.org/x/crypto":                     "v0.58.0",
}

func TestForeignModules(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for module, least := range atLeast {
		i := slices.IndexFunc(file.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
		if i < 0 || semver.Compare(file.Require[i].Mod.Version, least) < 0 {
			t.Errorf("go.mod does not ask for %s %s or newer", module, least)
		}
	}
	for _, pkg := range listed(t, "-deps", "-f", "{{.ImportPath}}", "./cmd/kubexm") {
		for _, refused := range refusedPackages {
			if strings.HasPrefix(pkg, refused) {
				t.Errorf("kubexm links %s", pkg)
			}
		}
	}
	for _, l := range listed(t, "-f", `{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}{{range .TestImports}}{{$p}} {{.}}{{"\n"}}{{end}}`, "./...") {
		from, to, _ := strings.Cut(l, " ")
		folder := strings.TrimPrefix(from, file.Module.Mod.Path+"/")
		for prefix, owner := range foreign {
			if strings.HasPrefix(to, prefix) && folder != owner {
				t.Errorf("%s imports %s: only %s does", folder, to, owner)
			}
		}
	}
}

// listed gives the lines of `go list`.
func listed(t *testing.T, args ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list"}, args...)...).Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
}
