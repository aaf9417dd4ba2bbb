package sign

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

var update = flag.Bool("update", false, "make testdata/kubexm and testdata/keyless anew; testdata/make.sh has cosign look at the first")

func read(t *testing.T, name ...string) []byte {
	t.Helper()
	return must(os.ReadFile(filepath.Join(append([]string{"testdata"}, name...)...)))(t)
}

// TestCosign: what stock cosign signed counts, and it took what was signed here.
// testdata/README.md says how the files were made.
func TestCosign(t *testing.T) {
	blob := digest.FromBytes(read(t, "blob.txt")).String()
	st := must(decodeStatement(read(t, "statement.json")))(t)
	if *update {
		writeOurs(t, blob, st)
	}
	for _, maker := range []string{"kubexm", "cosign2", "cosign3"} {
		t.Run(maker, func(t *testing.T) {
			trust := must(TrustKey(read(t, maker, "cosign.pub")))(t)
			s := must(LoadSigner(read(t, maker, "cosign.key"), []byte("fixture")))(t)
			if "key "+s.KeyID() != trust.String() {
				t.Errorf("the private key is of %s, the public one of %s", s.KeyID(), trust)
			}
			if err := trust.VerifyDigest(read(t, maker, "blob.sigstore.json"), blob); err != nil {
				t.Error(err)
			}
			v, err := Verifier{trust}.Verify(t.Context(), aRoot, read(t, maker, "statement.sigstore.json"))
			if err != nil {
				t.Fatal(err)
			}
			if v[0].Claim.Cluster != "demo" || v[0].Claim.Serial != 20261121034500 {
				t.Errorf("read %+v", v[0].Claim)
			}
			if maker == "kubexm" {
				return
			}
			// Its own key did not make ours; ours did, twice.
			said := string(read(t, maker, "verified.txt"))
			if n := strings.Count(said, "\nVerified OK"); n != 2 {
				t.Errorf("cosign accepted %d of 2:\n%s", n, said)
			}
		})
	}
}

// writeOurs makes what cosign is to verify.
func writeOurs(t *testing.T, blob string, st Statement) {
	t.Helper()
	pair := must(Generate([]byte("fixture")))(t)
	s := must(LoadSigner(pair.Private, []byte("fixture")))(t)
	for name, text := range map[string][]byte{
		"cosign.key": pair.Private, "cosign.pub": pair.Public,
		"blob.sigstore.json": must(s.SignDigest(blob))(t), "statement.sigstore.json": must(s.Sign(st))(t),
	} {
		if err := os.WriteFile(filepath.Join("testdata", "kubexm", name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
