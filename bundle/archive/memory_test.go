package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// memoryEnv makes TestMemoryVictim work: "path mebibytes".
const memoryEnv = "KUBEXM_TEST_MEMORY"

// stream gives n MiB that compress somewhat, without holding them.
type stream struct {
	r     *rand.ChaCha8
	block [64 << 10]byte
	left  int
	rest  []byte
}

func newStream(mib int, seed byte) *stream {
	return &stream{r: rand.NewChaCha8([32]byte{seed}), left: mib * 16}
}

func (s *stream) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		if s.left == 0 {
			return 0, io.EOF
		}
		s.left--
		_, _ = s.r.Read(s.block[:32<<10])
		s.rest = s.block[:]
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// TestMemoryVictim writes, verifies and extracts an archive of a given size,
// and splits and mends it, in a process of its own. It is not a test of its own.
func TestMemoryVictim(t *testing.T) {
	path, size, ok := strings.Cut(os.Getenv(memoryEnv), " ")
	if !ok {
		t.Skip("runs only when started by another test")
	}
	mib, err := strconv.Atoi(size)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	seeds := make(map[string]byte)
	var blobs []Blob
	for seed := range byte(8) {
		h := sha256.New()
		n, err := io.Copy(h, newStream(mib, seed))
		if err != nil {
			t.Fatal(err)
		}
		d := digestPrefix + hex.EncodeToString(h.Sum(nil))
		seeds[d] = seed
		blobs = append(blobs, Blob{Digest: d, Size: n, Compress: seed%2 == 0})
	}
	l, err := NewLayout([]byte("{}"), []byte("{}"), nil, blobs)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Create(path, l, WriteOptions{Workers: maxWorkers})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, b := range blobs {
		if !b.Compress {
			wg.Go(func() {
				if err := w.WriteStored(ctx, b.Digest, newStream(mib, seeds[b.Digest])); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	if err := w.Close(ctx, func(_ context.Context, d string) (io.ReadCloser, error) {
		return io.NopCloser(newStream(mib, seeds[d])), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := check(t, path); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Extract(ctx, f, path+".dir", ExtractOptions{Limit: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	if err := Split(ctx, path, path, VolumeOptions{VolumeSize: int64(mib) << 19, Parity: 4}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".001", ".003", ".p002"} {
		if err := os.Remove(path + name); err != nil {
			t.Fatal(err)
		}
	}
	if mended, err := Repair(ctx, path+".001", nil); err != nil || len(mended) != 3 {
		t.Fatal(mended, err)
	}
	if err := check(t, path+".001"); err != nil {
		t.Fatal(err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("%s\n", status)
}

// TestMemoryIsFlat: with the maximum number of workers, peak memory stays below 128 MiB and
// does not grow with the size of blobs. On a busy machine the garbage collector is late in some
// runs; memory that is held is held in each run, so the smallest peak of several is compared.
func TestMemoryIsFlat(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("no /proc here")
	}
	var small, large int
	for try := range 5 {
		s, l := memoryPeak(t, 4), memoryPeak(t, 16)
		if try == 0 {
			small, large = s, l
		}
		small, large = min(small, s), min(large, l)
		t.Logf("peaks of %d and %d MiB", s, l)
		if large <= 128 && large <= small+32 {
			return
		}
	}
	t.Errorf("peaks of %d and %d MiB for blobs of 4 and 16 MiB: over 128, or growing with them", small, large)
}

// memoryPeak returns the peak memory of TestMemoryVictim with blobs of a size, both in MiB.
func memoryPeak(t *testing.T, size int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMemoryVictim$")
	cmd.Env = append(os.Environ(), "GOGC=100", fmt.Sprintf("%s=%s %d", memoryEnv, filepath.Join(t.TempDir(), "x"), size))
	out, err := cmd.CombinedOutput()
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(out)
	if err != nil || m == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kib, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kib >> 10
}
