package rpm

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mensylisir/kubexm/packaging"
	"github.com/mensylisir/kubexm/packaging/rpm/rpmtest"
)

var update = flag.Bool("update", false, "write testdata anew, with the programs of make rpm-tools")

// fixtureWants are packages of testdata/specs that are wanted together.
var fixtureWants = []string{"socat", "bash-completion", "chrony", "rich-or", "rich-and", "rich-else", "rich-nested", "rich-with", "rich-without"}

// TestInstall has dnf install from the repository that we write what we chose, on
// an installation that has only the base, where nothing leads out.
func TestInstall(t *testing.T) {
	r := rpmtest.New(t)
	r.Build(t, rpmtest.Specs(t, "testdata/specs")...)
	r.Run(t, "createrepo_c", "--quiet", "--no-database", "--general-compress-type=xz", "rpms")
	m, u := read(t, r.Out("rpms"))
	base, err := u.BaseClosure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"bash-5.2.21-1.noarch", "coreutils-9.4-1.noarch", "filesystem-3.18-1.noarch", "glibc-2.38-1.noarch", "setup-2.14-1.noarch"}, nevras(base)); d != "" {
		t.Fatal(d)
	}
	r.Install(t, "rpms", nevras(base)...)
	before := r.Installed(t)
	if d := cmp.Diff(nevras(base), before); d != "" {
		t.Fatal(d)
	}

	s, err := u.Solve(t.Context(), packaging.Request{Want: m.Want(fixtureWants...), Installed: base})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(nevras(s.Add))
	members, err := m.Members(s.Add)
	if err != nil {
		t.Fatal(err)
	}
	files, err := Write(members, time.Unix(1700000000, 0))
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range s.Add {
		b, err := os.ReadFile(r.Out("rpms/" + p.Location))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, packaging.File{Path: members[i].Path, Content: b})
	}
	for _, f := range files {
		name := r.Out(path.Join("ours", f.Path))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, f.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.Install(t, "ours", fixtureWants...)
	if d := cmp.Diff(nevras(append(base, s.Add...)), r.Installed(t)); d != "" {
		t.Errorf("-ours +installed: %s", d)
	}

	// What was written reads as what it was written of.
	again, _ := read(t, r.Out("ours"), "/usr/share/doc/socat/README")
	var reread []*packaging.Package
	for _, e := range again.entries[0] {
		reread = append(reread, &e.Package)
	}
	if d := cmp.Diff(nevras(s.Add), nevras(reread)); d != "" {
		t.Error(d)
	}
}

// TestUpdateFixture writes the repository of testdata, which the tests read that run
// anywhere: metadata of all packages, signed, and two of the packages, one of them
// signed.
func TestUpdateFixture(t *testing.T) {
	if !*update {
		t.Skip("testdata/repo stays as it is without -update")
	}
	r := rpmtest.New(t)
	r.Build(t, rpmtest.Specs(t, "testdata/specs")...)
	r.Run(t, "sh", "-ec", `
mkdir -m 700 gnupg
for who in right other; do
    gpg --batch --quiet --passphrase '' --quick-gen-key "$who <$who@example.org>" rsa2048 sign never
    gpg --armor --export $who@example.org > $who.asc
done
rpmsign --define '__gpg /usr/bin/gpg' --define '_gpg_name right@example.org' --addsign rpms/socat-1.8*.rpm
createrepo_c --quiet --no-database rpms
gpg --batch --local-user right@example.org --armor --detach-sign rpms/repodata/repomd.xml
mkdir repo keys
cp -r rpms/repodata rpms/socat-1.8*.rpm rpms/chrony-4.5*.rpm repo
cp *.asc keys`)
	for _, content := range []string{fewPackages, "<" + manyBlanks} {
		name := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
		if err := os.WriteFile(r.Out(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		r.Run(t, "sh", "-ec", "mkdir -p xz; xz "+name+"; mv "+name+".xz xz")
	}
	for _, folder := range []string{"repo", "keys", "xz"} {
		if err := os.RemoveAll(filepath.Join("testdata", folder)); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join("testdata", folder), os.DirFS(r.Out(folder))); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckAsRpmDoes has rpm judge the packages of testdata that Check judges.
func TestCheckAsRpmDoes(t *testing.T) {
	r := rpmtest.New(t)
	if err := os.CopyFS(r.Out(""), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	r.Run(t, "sh", "-ec", "rpmkeys --dbpath $PWD/keydb --import keys/right.asc; rpmkeys --dbpath $PWD/keydb --checksig --define '_pkgverify_level signature' repo/socat-*.rpm")
	if out, err := r.Try(t, "sh", "-ec", "rpmkeys --dbpath $PWD/keydb --checksig --define '_pkgverify_level signature' repo/chrony-*.rpm"); err == nil {
		t.Errorf("rpm takes a package without a signature: %s", out)
	}
}
