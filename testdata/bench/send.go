package main

import (
	"context"
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

// The processes that have to do with hosts. TO is ADDRESS=FOLDER.
const (
	serveHost   = "host"         // HOSTKEY AUTHORIZED: a host, until killed
	uploadFiles = "upload"       // ARCHIVE KEYS TO...: what the steps of an installation do for each file
	rawStreams  = "baseline-cat" // LAYOUT ARCHIVE KEYS TO...: a stream into `cat >` for each file
)

// uploads sends the bundle's files to every host, by kubexm's steps and by hand,
// as fast as it goes and over a link that the hosts share.
func (w *work) uploads(ctx context.Context, r *round) error {
	for _, linked := range []bool{false, true} {
		to, ours, theirs := w.fleet.to(linked), &r.Upload, &r.Cat
		if linked {
			ours, theirs = &r.LinkUpload, &r.LinkCat
			w.fleet.link.rate.Store(linkRate)
			defer w.fleet.link.rate.Store(0)
		}
		for _, side := range []struct {
			into *sample
			from string
			args []string
		}{
			{theirs, w.layout, append([]string{w.self, rawStreams, w.layout, w.archive, w.fleet.dir}, to...)},
			{ours, w.archive, append(w.before("upload"), append([]string{w.self, uploadFiles, w.archive, w.fleet.dir}, to...)...)},
		} {
			if err := errors.Join(w.fleet.empty(), warm(side.from)); err != nil {
				return err
			}
			var err error
			if *side.into, err = w.measure(ctx, process{args: side.args}); err != nil {
				return err
			}
			if err := w.fleet.holds(w.fleetBytes); err != nil {
				return fmt.Errorf("%s: %w", side.args[1], err)
			}
		}
	}
	return w.fleet.empty()
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

// each does the same for every host, all at once.
func each(ctx context.Context, to []place, do func(context.Context, place) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range to {
		g.Go(func() error { return do(ctx, p) })
	}
	return g.Wait()
}

// uploadAll brings every file of an archive to each host as a step does.
func uploadAll(ctx context.Context, archive, keys string, to []place) error {
	b, err := bundle.Open(ctx, archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	defer b.Close()
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
		return uploadsOf(ctx, r, b, p.dir)
	})
}

// uploadsOf looks, brings what lacks, and looks again, as a list of files in a step does.
func uploadsOf(ctx context.Context, r *runner.Runner, b *bundle.Bundle, dir string) error {
	var us []runner.Upload
	for _, f := range filesOf(b.Lock) {
		us = append(us, runner.Upload{Path: filepath.Join(dir, f.SHA256), Size: f.Size, SHA256: f.SHA256, Open: func(context.Context) (io.ReadCloser, error) {
			rc, _, err := b.Blob("sha256:" + f.SHA256)
			return rc, err
		}})
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
func catAll(ctx context.Context, layout, archive, keys string, to []place) error {
	b, err := bundle.Open(ctx, archive, bundle.Policy{AllowUnsigned: true})
	if err != nil {
		return err
	}
	defer b.Close()
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
		for _, f := range filesOf(b.Lock) {
			if err := cat(c, filepath.Join(layout, "blobs", "sha256", f.SHA256), filepath.Join(p.dir, f.SHA256)); err != nil {
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
		{Name: "peak memory of sending files to 4 hosts", Unit: "MB", Ours: m.megabytes(func(r round) int64 { return r.Upload.Memory })},
	}
}
