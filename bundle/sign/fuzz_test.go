package sign

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mensylisir/kubexm/bundle"
)

// FuzzVerify: whatever stands in a slot, only what was signed counts, and every
// refusal has a code. Both ways of trusting read it.
func FuzzVerify(f *testing.F) {
	file := func(name ...string) []byte {
		text, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, name...)...))
		if err != nil {
			f.Fatal(err)
		}
		return text
	}
	key, err := TrustKey(file("cosign2", "cosign.pub"))
	if err != nil {
		f.Fatal(err)
	}
	identity, err := TrustIdentity(file("keyless", "trusted_root.json"), Identity{name, issuer})
	if err != nil {
		f.Fatal(err)
	}
	var signed Statement
	if err := json.Unmarshal(file("statement.json"), &signed); err != nil {
		f.Fatal(err)
	}
	for _, seed := range [][]byte{
		file("cosign2", "statement.sigstore.json"), file("cosign2", "blob.sigstore.json"), file("kubexm", "statement.sigstore.json"),
		file("keyless", "statement.sigstore.json"), []byte("{}"), []byte("{}\n{}\n"), []byte(`{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json"}`),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, slot []byte) {
		for _, trust := range []*Trust{key, identity} {
			v, err := Verifier{trust}.Verify(t.Context(), aRoot, slot)
			var finding *Error
			if err != nil && !errors.As(err, &finding) {
				t.Errorf("a refusal without a code: %v", err)
			}
			for _, x := range v {
				var want bundle.Claim
				if err := signed.Decode(&want); err != nil || x.Claim.Serial != want.Serial || x.Claim.Cluster != want.Cluster {
					t.Errorf("counts, and was never signed: %+v", x.Claim)
				}
			}
			if st, err := trust.Verify(slot); err == nil && !bytes.Equal(st.Predicate, signed.Predicate) {
				t.Errorf("counts, and was never signed: %s", st.Predicate)
			}
			if err := trust.VerifyDigest(slot, other); err == nil {
				t.Error("a file that nobody signed counts")
			}
		}
	})
}
