package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// transfers sends the bundle to an empty registry, from the archive and from a
// layout that was unpacked before.
func (w *work) transfers(ctx context.Context, r *round) error {
	whole := w.host + "/bench/bundle:1"
	oras := []string{w.self, pushLayout, w.layout, w.root, whole}
	if path, ok := w.peers["oras"]; ok {
		oras = []string{path, "cp", "--no-tty", "--concurrency", fmt.Sprint(atOnce), "--from-oci-layout", w.layout + "@" + w.root, "--to-plain-http", whole}
	}
	for _, pair := range []struct {
		ours, theirs      *sample
		archive, unpacked []string
	}{
		{&r.Push, &r.Oras, w.kubexm("push", "bundle", "push", "--allow-unsigned", "--plain-http", w.archive, whole), oras},
		{&r.Seed, &r.OrasSeed, []string{w.self, seedImages, w.archive, w.host}, []string{w.self, pushImages, w.layout, w.host}},
	} {
		sent, err := w.send(ctx, pair.ours, w.archive, pair.archive)
		if err != nil {
			return err
		}
		same, err := w.send(ctx, pair.theirs, w.layout, pair.unpacked)
		if err != nil {
			return err
		}
		if sent != same || sent == 0 {
			return fmt.Errorf("%s sent %d bytes of blobs, %s sent %d", pair.archive[0], sent, pair.unpacked[0], same)
		}
	}
	return w.haulerPush(ctx, r)
}

// send runs what pushes to the registry, which is emptied before, and says how
// many bytes of blobs came. What it reads was read just before, so that neither
// side has to wait for a disk on which the other's source happened to be warm.
func (w *work) send(ctx context.Context, into *sample, from string, args []string) (sent int64, err error) {
	if err := errors.Join(w.target.empty(), warm(from)); err != nil {
		return 0, err
	}
	home := filepath.Join(w.dir, "sender")
	if err := os.Mkdir(home, 0o750); err != nil {
		return 0, err
	}
	*into, err = w.measure(ctx, process{args: args, out: home, home: home})
	sent = w.target.bytes()
	return sent, errors.Join(err, os.RemoveAll(home), w.target.empty())
}

// warm reads a file or a folder.
func warm(path string) error {
	buf := make([]byte, 1<<20)
	return filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buf)
		return err
	})
}

// unpack makes the layout with plain tools, as anybody can.
func (w *work) unpack(ctx context.Context) error {
	w.layout = filepath.Join(w.dir, "layout")
	if err := os.Mkdir(w.layout, 0o750); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "bash", "-c", `set -o pipefail; zstd -d -q -c "$0" | tar -x -C "$1"`, w.archive, w.layout)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("unpack the archive: %w\n%s", err, out)
	}
	return nil
}
