package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Memory stays under 128 MB however much a bundle holds, and the disk takes the
// archive and the cache and nothing beside them.
func TestMemoryAndDisk(t *testing.T) {
	const most = 128_000_000
	scale := 2.0
	if text := os.Getenv("KUBEXM_E2E_SCALE"); text != "" {
		var err error
		if scale, err = strconv.ParseFloat(text, 64); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t, scale)
	if err := os.RemoveAll(filepath.Join(s.dir, "lock-cache")); err != nil {
		t.Fatal(err)
	}
	out, cache := s.newFolder(t, "out"), filepath.Join(s.dir, "cache")
	path := filepath.Join(out, "bundle.tar.zst")
	standing := int64(0)
	for _, c := range []struct {
		name string
		args []string
	}{
		{"build with a cold cache", s.build(path, cache)},
		{"build with a warm cache", s.build(path, cache, "--force")},
		{"verify", []string{"bundle", "verify", "--allow-unsigned", path}},
	} {
		disk := watch(t, out)
		u := s.measured(t, c.args)
		peak := disk()
		t.Logf("%s: at most %d MB of memory and %d MB of disk for the output, %s of processor time", c.name, u.MaxRSS/1e6, peak/1e6, u.CPU)
		if u.MaxRSS > most {
			t.Errorf("%s: %d bytes of memory, want %d at most", c.name, u.MaxRSS, int64(most))
		}
		// While an archive is replaced the old one stands until the new one is whole. Beside it are
		// the archives that are being extracted, up to two at once: how large depends on luck.
		if before, now := standing, bytesUnder(t, out); peak > before+now+now/20 {
			t.Errorf("%s: %d bytes on the disk at the same time for an archive of %d", c.name, peak, now)
		}
		standing = bytesUnder(t, out)
	}
	content := int64(0)
	for _, m := range members(t, path) {
		content += m.Size
	}
	archive, kept := bytesUnder(t, out), bytesUnder(t, cache)
	t.Logf("%d MB of content: archive %d MB (%.3f of it), cache %d MB", content/1e6, archive/1e6, float64(archive)/float64(content), kept/1e6)
	if archive > content+content/100+1<<20 {
		t.Errorf("the archive has %d bytes for %d bytes of content", archive, content)
	}
	if kept > content+content/100+1<<20 {
		t.Errorf("the cache has %d bytes for %d bytes of content", kept, content)
	}
}

// measured runs kubexm and gives what it took.
func (s *site) measured(t *testing.T, args []string) usage {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(s.dir, "usage.json")
	k := s.command(t, args)
	c := exec.CommandContext(t.Context(), self, append([]string{k.Path}, args...)...)
	c.Env = append(k.Env, measured+"="+name, "GOGC=100") // as people run it
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("kubexm %v: %v\n%s", args, err, out)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var u usage
	if err := json.Unmarshal(text, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// bytesUnder adds up the files of a folder.
func bytesUnder(t *testing.T, dir string) int64 {
	t.Helper()
	total := int64(0)
	walk(dir, func(info fs.FileInfo) { total += info.Size() })
	return total
}

// walk visits every file of a folder that is there when its turn comes.
func walk(dir string, visit func(fs.FileInfo)) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // a file that is gone takes no space
		}
		if info, err := d.Info(); err == nil {
			visit(info)
		}
		return nil
	})
}

// watch looks at the space that a folder takes, over and over, until the
// function that it gives is called, which says how much that was at most.
func watch(t *testing.T, dir string) func() int64 {
	t.Helper()
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		peak := int64(0)
		for {
			now := int64(0)
			walk(dir, func(info fs.FileInfo) {
				if st, ok := info.Sys().(*syscall.Stat_t); ok {
					now += st.Blocks * 512
				}
			})
			peak = max(peak, now)
			select {
			case <-tick.C:
			case <-stop:
				most <- peak
				return
			}
		}
	}()
	return func() int64 { close(stop); return <-most }
}
