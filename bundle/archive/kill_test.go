package archive

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The tests in this file run the test binary again as a process that may be
// killed. KUBEXM_TEST_KILL tells that process what to do.
const killEnv = "KUBEXM_TEST_KILL"

// victim is the content that a killed writer writes.
func victim() *sample {
	return newSample([]int{10, 2 * pieceSize, blockSize}, []int{100, chunkSize + 9})
}

// longVictim takes more reads than a killed process comes to.
func longVictim() *sample { return newSample([]int{10, 6 * pieceSize, 300_000}, []int{100, 400_000}) }

// stopper is a reader that says so and waits for its end at one of the reads
// of a process, counted from 0.
type stopper struct {
	io.Reader
	reads *int
	at    int
}

func (s stopper) Read(p []byte) (int, error) {
	if *s.reads == s.at {
		fmt.Println("waiting")
		select {}
	}
	*s.reads++
	return s.Reader.Read(p[:min(len(p), 200_000)])
}

// TestVictim is not a test of its own.
func TestVictim(t *testing.T) {
	what, path, _ := strings.Cut(os.Getenv(killEnv), " ")
	if what == "" {
		t.Skip("runs only when started by another test")
	}
	kind, n, _ := strings.Cut(what, ":")
	at, err := strconv.Atoi(n)
	if err != nil {
		t.Fatal(err)
	}
	s, reads := victim(), 0
	wrap := func(b []byte) io.Reader { return stopper{bytes.NewReader(b), &reads, at} }
	switch kind {
	case "write":
		err = writeVictim(s, path, wrap, VolumeOptions{})
	case "volumes":
		err = writeVictim(s, path, wrap, VolumeOptions{VolumeSize: 256 << 10, Parity: 2})
	case "resume":
		u := newSupply(longVictim())
		u.wrap = func(r io.Reader) io.Reader { return stopper{r, &reads, at} }
		var l *Layout
		var w *Writer
		if l, err = NewLayout(u.oci, u.index, u.head, u.blobs); err != nil {
			break
		}
		if w, err = Create(path, l, WriteOptions{Resume: true, Workers: 1}); err != nil {
			break
		}
		if err = u.fill(t.Context(), w); err == nil {
			err = w.Close(t.Context(), nil)
		}
	case "naive":
		err = writeNaively(path, wrap(noise(500_000, 1)))
	case "extract":
		b, rerr := os.ReadFile(path)
		if rerr != nil {
			t.Fatal(rerr)
		}
		err = Extract(t.Context(), wrap(b), path+".dir", ExtractOptions{Limit: 1 << 30})
	}
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("done")
}

func writeVictim(s *sample, path string, wrap func([]byte) io.Reader, o VolumeOptions) error {
	ctx := context.Background()
	l, err := NewLayout(s.oci, s.index, s.head, s.blobs)
	if err != nil {
		return err
	}
	w, err := Create(path, l, WriteOptions{Workers: 2, VolumeOptions: o})
	if err != nil {
		return err
	}
	for _, b := range s.blobs {
		if b.Compress {
			continue
		}
		if err := w.WriteStored(ctx, b.Digest, wrap(s.content[b.Digest])); err != nil {
			return err
		}
	}
	return w.Close(ctx, func(_ context.Context, d string) (io.ReadCloser, error) { return io.NopCloser(wrap(s.content[d])), nil })
}

// writeNaively is what the others must not be: it writes to the final name.
func writeNaively(path string, r io.Reader) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		return err
	}
	return f.Close()
}

// killed runs the victim until it waits (or for as long as delay says), kills
// it, and reports whether it had finished before.
func killed(t *testing.T, what, path string, delay time.Duration) (finished bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), killEnv+"="+what+" "+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if delay > 0 {
		time.Sleep(delay)
	} else {
		for lines := bufio.NewScanner(out); lines.Scan() && !finished; {
			if lines.Text() == "waiting" {
				break
			}
			finished = lines.Text() == "done"
		}
	}
	_ = cmd.Process.Kill() // SIGKILL; it may have ended by itself
	_ = cmd.Wait()
	return finished
}

// TestKilledWriter kills a writer at each of its reads: no file under the final
// name, and the next run gives the same bytes.
func TestKilledWriter(t *testing.T) {
	s := victim()
	want := read(t, s.file(t))
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	kills := 0
	for at := 0; ; at += 4 {
		if killed(t, fmt.Sprintf("write:%d", at), path, 0) {
			break
		}
		kills++
		if got := names(t, dir); slices.Contains(got, "x.tar.zst") {
			t.Fatalf("killed at read %d: a file under the final name: %v", at, got)
		}
	}
	if kills < 6 {
		t.Errorf("only %d kills", kills)
	}
	if !bytes.Equal(read(t, path), want) {
		t.Error("other bytes after kills")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestKilledWriterIsContinued kills each process at its tenth read, which is far from the end:
// the next continues where it was, so that one of them ends.
func TestKilledWriterIsContinued(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	kills := 0
	for !killed(t, "resume:10", path, 0) {
		if kills++; kills == 20 {
			t.Fatal("it does not end")
		}
	}
	if kills < 2 {
		t.Errorf("only %d kills", kills)
	}
	if !bytes.Equal(read(t, path), read(t, longVictim().file(t))) {
		t.Error("other bytes after kills")
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("left behind: %v", got)
	}
}

// TestKilledAnywhere kills a writer after some milliseconds, also while it closes: the file
// with the final name is complete or is the previous one.
func TestKilledAnywhere(t *testing.T) {
	s := victim()
	want := read(t, s.file(t))
	path := filepath.Join(t.TempDir(), "x.tar.zst")
	for i := range 12 {
		killed(t, "write:-1", path, time.Duration(i*12+1)*time.Millisecond)
		if b, err := os.ReadFile(path); err == nil && !bytes.Equal(b, want) {
			t.Fatalf("killed after %d ms: a file that is not whole", i*12+1)
		}
	}
	s.write(t, path, 1, []int{0, 1, 2, 3, 4})
	if !bytes.Equal(read(t, path), want) {
		t.Error("other bytes after kills")
	}
}

// TestKilledVolumes does the same to a writer of volumes: where the first stands,
// all do and are whole; the next run leaves nothing but its own.
func TestKilledVolumes(t *testing.T) {
	s := victim()
	want := read(t, s.file(t))
	dir := t.TempDir()
	path := filepath.Join(dir, "x.tar.zst")
	for i := range 12 {
		what, delay := fmt.Sprintf("volumes:%d", 2*i), time.Duration(0)
		if i%2 == 1 {
			what, delay = "volumes:-1", time.Duration(i*15+1)*time.Millisecond
		}
		killed(t, what, path, delay)
		if _, err := os.Stat(path + ".001"); err == nil && !bytes.Equal(joined(t, path+".001"), want) {
			t.Fatalf("kill %d: volumes that are not whole", i)
		}
	}
	wrap := func(b []byte) io.Reader { return bytes.NewReader(b) }
	if err := writeVictim(s, path, wrap, VolumeOptions{VolumeSize: 1 << 20, Parity: 1}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(joined(t, path+".001"), want) {
		t.Error("other bytes after kills")
	}
	n := int(volumeCount(int64(len(want)), 1<<20))
	if got := names(t, dir); len(got) != n+2 {
		t.Errorf("left behind beside %d volumes, parity and table: %v", n, got)
	}
}

// TestKilledExtract kills an extraction at many of its reads.
func TestKilledExtract(t *testing.T) {
	s := victim()
	path := s.file(t)
	for at := 0; ; at += 5 {
		if killed(t, fmt.Sprintf("extract:%d", at), path, 0) {
			break
		}
		if _, err := os.Stat(path + ".dir"); err == nil {
			t.Fatalf("killed at read %d: a directory under the final name", at)
		}
	}
	if got := files(t, path+".dir"); len(got) != len(s.tree()) {
		t.Errorf("%d files, want %d", len(got), len(s.tree()))
	}
	if got := names(t, filepath.Dir(path)); len(got) != 2 {
		t.Errorf("left behind: %v", got)
	}
}

// TestKillsAreSeen is the control: a naive writer killed in the same way leaves
// a broken file under the final name, so the tests above can fail.
func TestKillsAreSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if killed(t, "naive:3", path, 0) {
		t.Fatal("the victim finished")
	}
	if fi, err := os.Stat(path); err != nil || fi.Size() == 0 || fi.Size() >= 500_000 {
		t.Errorf("expected a broken file: %v", err)
	}
}
