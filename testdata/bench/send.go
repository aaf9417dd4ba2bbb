package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/manifest"
	connssh "github.com/mensylisir/kubexm/steps/connector/ssh"
	"github.com/mensylisir/kubexm/steps/runner"
)

// The processes that have to do with hosts. FROM is an archive or a layout, TO is ADDRESS=FOLDER.
const (
	serveHost   = "host"         // HOSTKEY AUTHORIZED: a host, until killed
	uploadFiles = "upload"       // FROM KEYS TO...: what the steps of an installation do for each file
	rawStreams  = "baseline-cat" // LAYOUT FROM KEYS TO...: a stream into `cat >` for each file
)

// uploads sends the bundle's files to every host, by kubexm's steps and by hand,
// as fast as it goes and over a link that the hosts share; and many small files.
func (w *work) uploads(ctx context.Context, r *round) error {
	many := max(10, int(float64(smallFiles)*min(w.scale, 1)))
	small, err := w.smallFiles(many)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		layout, from string
		bytes        int64
		linked       bool
		ours, theirs *sample
	}{
		{w.layout, w.archive, w.fleetBytes, false, &r.Upload, &r.Cat},
		{small, small, int64(many) * smallSize, false, &r.UploadSmall, &r.CatSmall},
		{w.layout, w.archive, w.fleetBytes, true, &r.LinkUpload, &r.LinkCat},
	} {
		if kind.linked {
			w.fleet.link.rate.Store(linkRate)
			defer w.fleet.link.rate.Store(0)
		}
		to := w.fleet.to(kind.linked)
		for _, side := range []struct {
			into *sample
			from string
			args []string
		}{
			{kind.theirs, kind.layout, append([]string{w.self, rawStreams, kind.layout, kind.from, w.fleet.dir}, to...)},
			{kind.ours, kind.from, append(w.before("upload"), append([]string{w.self, uploadFiles, kind.from, w.fleet.dir}, to...)...)},
		} {
			if err := errors.Join(w.fleet.empty(), warm(side.from)); err != nil {
				return err
			}
			var err error
			if *side.into, err = w.measure(ctx, process{args: side.args}); err != nil {
				return err
			}
			if err := w.fleet.holds(kind.bytes); err != nil {
				return fmt.Errorf("%s: %w", side.args[1], err)
			}
		}
	}
	return w.fleet.empty()
}

// The small files: as many with a work set of full size, of so many bytes each.
const (
	smallFiles = 1000
	smallSize  = 4 << 10
)

// smallFiles writes them into a layout.
func (w *work) smallFiles(n int) (layout string, err error) {
	layout = filepath.Join(w.dir, "small")
	dir := filepath.Join(layout, "blobs", "sha256")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	for i := range n {
		content := bytes.Repeat(fmt.Appendf(nil, "file %03d", i), smallSize/8)
		sum := sha256.Sum256(content)
		if err := os.WriteFile(filepath.Join(dir, hex.EncodeToString(sum[:])), content, 0o600); err != nil {
			return "", err
		}
	}
	return layout, nil
}

// place is where one host is and where its files go.
type place struct{ address, dir string }

func places(args []string) (out []place) {
	for _, a := range args {
		address, dir, _ := strings.Cut(a, "=")
		out = append(out, place{address, dir})
	}
	return out
}

// filesOf lists the files of a bundle, as they are found on hosts.
func filesOf(l *manifest.Lock) (files []manifest.Blob) {
	seen := map[string]bool{}
	for _, a := range l.Artifacts {
		for _, b := range a.Blobs() {
			if !seen[b.SHA256] {
				seen[b.SHA256] = true
				files = append(files, b)
			}
		}
	}
	return files
}

// file is what is sent. Its name on a host is its digest.
type file struct {
	sha256 string
	size   int64
	open   func() (io.ReadCloser, error)
}

// filesIn lists the files of an archive or of a layout. done closes it.
func filesIn(ctx context.Context, from string) (files []file, done func() error, err error) {
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		entries, err := os.ReadDir(filepath.Join(from, "blobs", "sha256"))
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				return nil, nil, err
			}
			files = append(files, file{e.Name(), info.Size(), func() (io.ReadCloser, error) { return os.Open(blobOf(from, e.Name())) }})
		}
		return files, func() error { return nil }, err
	}
	b, err := bundle.Open(ctx, from, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return nil, nil, err
	}
	for _, f := range filesOf(b.Lock) {
		files = append(files, file{f.SHA256, f.Size, func() (io.ReadCloser, error) {
			rc, _, err := b.Blob("sha256:" + f.SHA256)
			return rc, err
		}})
	}
	return files, b.Close, nil
}

func blobOf(layout, sha256 string) string { return filepath.Join(layout, "blobs", "sha256", sha256) }

// each does the same for every host, all at once.
func each(ctx context.Context, to []place, do func(context.Context, place) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range to {
		g.Go(func() error { return do(ctx, p) })
	}
	return g.Wait()
}

// uploadAll brings every file of an archive or a layout to each host as a step does.
func uploadAll(ctx context.Context, from, keys string, to []place) error {
	files, done, err := filesIn(ctx, from)
	if err != nil {
		return err
	}
	defer func() { _ = done() }() // it was only read
	key, err := os.ReadFile(filepath.Join(keys, loginKey))
	if err != nil {
		return err
	}
	host, err := os.ReadFile(filepath.Join(keys, hostKey+".pub"))
	if err != nil {
		return err
	}
	return each(ctx, to, func(ctx context.Context, p place) error {
		name, port, err := net.SplitHostPort(p.address)
		if err != nil {
			return err
		}
		at, err := strconv.Atoi(port)
		if err != nil {
			return err
		}
		conn := connssh.New(connssh.Config{Address: name, Port: at, Key: key, Policy: connssh.Pinned, HostKey: strings.TrimSpace(string(host))})
		defer conn.Close()
		r := runner.New(conn, runner.Options{AsLogin: os.Geteuid() != 0})
		return uploadsOf(ctx, r, files, p.dir)
	})
}

// uploadsOf looks, brings what lacks, and looks again, as a list of files in a step does.
func uploadsOf(ctx context.Context, r *runner.Runner, files []file, dir string) error {
	var us []runner.Upload
	for _, f := range files {
		us = append(us, runner.Upload{Path: filepath.Join(dir, f.sha256), Size: f.size, SHA256: f.sha256, Open: func(context.Context) (io.ReadCloser, error) { return f.open() }})
	}
	if lacks, err := r.Pending(ctx, us); err != nil || len(lacks) != len(us) {
		return errors.Join(err, fmt.Errorf("%s: %d of %d files are there already", dir, len(us)-len(lacks), len(us)))
	}
	if _, err := r.Uploads(ctx, us); err != nil {
		return err
	}
	if lacks, err := r.Pending(ctx, us); err != nil || len(lacks) != 0 {
		return errors.Join(err, fmt.Errorf("%s: %d files are not there", dir, len(lacks)))
	}
	return nil
}

// catAll sends the same from an unpacked layout, and looks at nothing.
func catAll(ctx context.Context, layout, from, keys string, to []place) error {
	files, done, err := filesIn(ctx, from)
	if err != nil {
		return err
	}
	defer func() { _ = done() }() // it was only read
	text, err := os.ReadFile(filepath.Join(keys, loginKey))
	if err != nil {
		return err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return err
	}
	return each(ctx, to, func(_ context.Context, p place) error {
		c, err := ssh.Dial("tcp", p.address, &ssh.ClientConfig{
			User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), //nolint:gosec // its own, on loopback
		})
		if err != nil {
			return err
		}
		defer c.Close()
		for _, f := range files {
			if err := cat(c, blobOf(layout, f.sha256), filepath.Join(p.dir, f.sha256)); err != nil {
				return err
			}
		}
		return nil
	})
}

func cat(c *ssh.Client, from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	s, err := c.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := s.StdinPipe()
	if err != nil {
		return err
	}
	if err := s.Start("cat >" + to); err != nil {
		return err
	}
	if _, err := io.CopyBuffer(struct{ io.Writer }{in}, struct{ io.Reader }{f}, make([]byte, 256<<10)); err != nil {
		return err
	}
	if err := in.Close(); err != nil {
		return err
	}
	return s.Wait()
}

// ofHosts has the rows of what is sent over SSH.
func (m measured) ofHosts() []figure {
	return []figure{
		{Name: "files to 4 hosts / streams into `cat >`", Goal: most(1.1, 1), Step: "upload",
			Ours: m.ratio(func(r round) sample { return r.Upload }, func(r round) sample { return r.Cat })},
		{Name: "files to 4 hosts on a 250 MB/s link / streams into `cat >`", Goal: most(1.1, 1), Step: "upload",
			Ours: m.ratio(func(r round) sample { return r.LinkUpload }, func(r round) sample { return r.LinkCat })},
		{Name: "1,000 files of 4 KB to 4 hosts / streams into `cat >`", Goal: most(1.1, 1), Step: "upload",
			Ours: m.ratio(func(r round) sample { return r.UploadSmall }, func(r round) sample { return r.CatSmall })},
		{Name: "peak memory of sending files to 4 hosts", Unit: "MB", Ours: m.megabytes(func(r round) int64 { return r.Upload.Memory })},
	}
}
