package fair

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedVariable contains a number, or the word random. A run with it requires -count=1, because
// Go's test cache considers the word an unchanged input.
const seedVariable = "KUBEXM_SEED"

// Rand returns the random numbers of a test: the same on each run, or those of KUBEXM_SEED,
// which is a number or "random". A failing test reports the seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(1)
	switch text := os.Getenv(seedVariable); text {
	case "":
	case "random":
		seed = rand.Uint64() //nolint:gosec // input of a test
	default:
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", seedVariable, err)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the input was that of %s=%d", seedVariable, seed)
		}
	})
	return rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // input of a test
}
