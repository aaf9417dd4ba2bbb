package versions

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

var once = sync.OnceValues(loadEmbedded)

// load gives the embedded matrix, read once for all tests: none may change it.
func load(t testing.TB) *Catalog {
	t.Helper()
	c, problems := once()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// loadOver is Load over that one.
func loadOver(t testing.TB, texts ...string) (*Catalog, manifest.Problems) {
	t.Helper()
	var in []io.Reader
	for _, text := range texts {
		in = append(in, strings.NewReader(text))
	}
	return load(t).with(in)
}

func fakeDigest(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:])
}

func mapped(in []string, f func(string) string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}
