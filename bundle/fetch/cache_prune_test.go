package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"testing"
	"time"
)

// filled is a cache of blobs with these sizes, the first used last, each a day
// before the one before it.
func filled(t *testing.T, sizes ...int) (*Cache, []string) {
	t.Helper()
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i, n := range sizes {
		b := bytes.Repeat([]byte{byte(i + 1)}, n)
		sum := sha256.Sum256(b)
		name := hex.EncodeToString(sum[:])
		if err := c.Put(t.Context(), name, int64(n), bytes.NewReader(b)); err != nil {
			t.Fatal(err)
		}
		age(t, c.blob(name), time.Duration(i)*24*time.Hour)
		names = append(names, name)
	}
	return c, names
}

func age(t *testing.T, path string, d time.Duration) {
	t.Helper()
	when := time.Now().Add(-d)
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

func TestPrune(t *testing.T) {
	tests := map[string]struct {
		options PruneOptions
		left    []int // of the blobs of 10, 20, 30 and 40 bytes
	}{
		"all":      {PruneOptions{}, nil},
		"by age":   {PruneOptions{UsedSince: time.Now().Add(-36 * time.Hour)}, []int{0, 1}},
		"by size":  {PruneOptions{MaxSize: 60}, []int{0, 1, 2}},
		"by both":  {PruneOptions{UsedSince: time.Now().Add(-60 * time.Hour), MaxSize: 30}, []int{0, 1}},
		"too big":  {PruneOptions{MaxSize: 59}, []int{0, 1}},
		"dry run":  {PruneOptions{DryRun: true}, []int{0, 1, 2, 3}},
		"all stay": {PruneOptions{MaxSize: 1 << 30}, []int{0, 1, 2, 3}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c, blobs := filled(t, 10, 20, 30, 40)
			p, err := c.Prune(t.Context(), test.options)
			if err != nil {
				t.Fatal(err)
			}
			left := map[int]bool{}
			for _, i := range test.left {
				left[i] = true
			}
			bytesLeft := int64(0)
			for i, b := range blobs {
				if _, ok := c.size(b); ok != left[i] {
					t.Errorf("blob %d is there: %v", i, ok)
				}
				if left[i] {
					bytesLeft += int64(10 * (i + 1))
				}
			}
			if !test.options.DryRun && (p.Remaining != len(left) || p.RemainingBytes != bytesLeft || p.Removed != 4-len(left) || p.RemovedBytes != 100-bytesLeft) {
				t.Errorf("%+v with %d bytes left", p, bytesLeft)
			}
			if test.options.DryRun && p.Removed != 4 {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestPruneRefusesAHeldCache(t *testing.T) {
	c, blobs := filled(t, 10)
	release, err := c.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	release()
	other, err := OpenCache(c.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Prune(t.Context(), PruneOptions{}); !errors.Is(err, ErrInUse) {
		t.Errorf("held by one: %v", err)
	}
	if _, ok := c.size(blobs[0]); !ok {
		t.Error("removed what is held")
	}
	second()
	if p, err := other.Prune(t.Context(), PruneOptions{}); err != nil || p.Removed != 1 {
		t.Errorf("%+v %v", p, err)
	}
}

func TestReadingABlobCountsAsUse(t *testing.T) {
	c, blobs := filled(t, 10, 20)
	f, err := c.Open(blobs[1])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := c.List()
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	for _, e := range all {
		if time.Since(e.Used) > touchEvery {
			t.Errorf("%s was written or read just now, and used %s", e.Name, e.Used)
		}
	}
	if err := os.WriteFile(c.partial("x.part"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.partial("x.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// The kernel's clock for files may be some milliseconds behind the one that a read was noted by.
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(c.partial("x.part"), later, later); err != nil {
		t.Fatal(err)
	}
	all, err = c.List()
	if err != nil || len(all) != 3 || !all[0].Partial || all[0].Size != 4 {
		t.Errorf("%+v %v", all, err)
	}
}
