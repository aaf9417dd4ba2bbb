package packages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"slices"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// maxAttempts is the maximum number of attempts of an installation whose connection breaks
// while it serves the repository.
const maxAttempts = 3

// roots are the metadata files with the digests of all other files of a repository, the
// preferred one first.
var roots = []string{"InRelease", "Release", "repodata/repomd.xml"}

// root returns the digest of the repository's root metadata file.
func (w *work) root() (string, error) {
	for _, r := range roots {
		for _, m := range w.repo.Members {
			if m.Path == r {
				return m.SHA256, nil
			}
		}
	}
	return "", fmt.Errorf("the repository %s has no metadata", w.need.Name)
}

// installNames installs packages. It serves the repository through the connection to the
// host, or uploads it if the host does not allow port forwarding. Other users of the host
// can read the served files, and can serve others on the port after the connection broke.
// Therefore the job verifies the metadata against the digest in the lock.
func (w *work) installNames(ctx context.Context, names []string) error {
	sum, err := w.root()
	if err != nil {
		return err
	}
	job := runner.PackageInstall{
		Job: job(w.h).Name, Format: w.format(), Folder: workDir(w.h), SHA256: sum, Names: names, Wait: lockWait,
	}
	for try := 1; ; try++ {
		l := w.listen(ctx)
		if l == nil {
			return w.upload(ctx, job)
		}
		s := serve(ctx, l, w)
		job.Base = "http://" + l.Addr().String() + "/"
		log, err := w.h.InstallPackages(ctx, job)
		lost := s.end()
		w.h.Log.DebugContext(ctx, "installed packages", "log", string(log))
		if err == nil || !lost || try == maxAttempts || ctx.Err() != nil {
			return err
		}
		w.h.Log.WarnContext(ctx, "the connection broke while it served packages, retrying", "err", err)
		if err := finish(ctx, w.h); err != nil {
			return err
		}
	}
}

// listen opens a port on the host that is forwarded to this process. It returns nil if the
// host does not allow it.
func (w *work) listen(ctx context.Context) net.Listener {
	l, err := w.h.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		w.h.Log.InfoContext(ctx, "uploading packages, because the host does not allow port forwarding", "err", err)
		return nil
	}
	return l
}

// upload installs packages from a repository that it uploads as files. The job removes the
// files.
func (w *work) upload(ctx context.Context, job runner.PackageInstall) error {
	dir := path.Join(job.Folder, "repository")
	var us []runner.Upload
	var folders []string
	for _, m := range w.repo.Members {
		at := path.Join(dir, m.Path)
		if !within(dir, at) {
			return fmt.Errorf("the lock lists a package file outside of the repository: %q", m.Path)
		}
		if d := path.Dir(at); !slices.Contains(folders, d) {
			folders = append(folders, d)
		}
		us = append(us, runner.Upload{Path: at, Size: m.Size, SHA256: m.SHA256, Attr: runner.Attr{Mode: 0o644}, Open: func(ctx context.Context) (io.ReadCloser, error) {
			rc, _, err := w.open(ctx, m.Path)
			return rc, err
		}})
	}
	for _, d := range slices.Concat([]string{job.Folder, dir}, folders) {
		if _, err := w.h.Mkdir(ctx, d, runner.Attr{Mode: 0o755}); err != nil {
			return err
		}
	}
	if _, err := w.h.Uploads(ctx, us); err != nil {
		return err
	}
	job.Base = "file://" + dir + "/"
	_, err := w.h.InstallPackages(ctx, job)
	return err
}

func within(dir, p string) bool {
	return len(p) > len(dir) && p[:len(dir)] == dir && p[len(dir)] == '/'
}

// open opens a file of the repository.
func (w *work) open(ctx context.Context, file string) (io.ReadCloser, manifest.Blob, error) {
	return w.h.Artifact(ctx, manifest.Need{Kind: manifest.Packages, Name: w.need.Name + "/" + file})
}

// server serves the files of a repository to all clients of its listener.
type server struct {
	http  *http.Server
	l     net.Listener
	ended chan error
}

func serve(ctx context.Context, l net.Listener, w *work) *server {
	files := map[string]manifest.Member{}
	for _, m := range w.repo.Members {
		files["/"+m.Path] = m
	}
	s := &server{l: l, ended: make(chan error, 1), http: &http.Server{
		ReadHeaderTimeout: lockWait, BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			m, ok := files[path.Clean(r.URL.Path)] // apt asks for /./Release
			switch {
			case r.Method != http.MethodGet && r.Method != http.MethodHead:
				http.Error(rw, "read only", http.StatusMethodNotAllowed)
			case !ok:
				http.NotFound(rw, r)
			default:
				if err := w.serveFile(rw, r, m); err != nil {
					w.h.Log.DebugContext(ctx, "a package file was not read completely", "file", m.Path, "err", err)
				}
			}
		}),
	}}
	go func() { s.ended <- s.http.Serve(l) }()
	return s
}

// end closes the server. It reports whether the listener had failed before.
func (s *server) end() (lost bool) {
	_ = s.http.Close() // also closes the listener; a failed one returns an error
	return !errors.Is(<-s.ended, http.ErrServerClosed)
}

// serveFile sends one file, or the rest of it for a resumed download.
func (w *work) serveFile(rw http.ResponseWriter, r *http.Request, m manifest.Member) error {
	from, status := int64(0), http.StatusOK
	rw.Header().Set("Content-Type", "application/octet-stream")
	rw.Header().Set("Accept-Ranges", "bytes")
	rw.Header().Set("ETag", `"`+m.SHA256+`"`)
	if n, ok := rangeStart(r, m); ok {
		from, status = n, http.StatusPartialContent
		rw.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, m.Size-1, m.Size))
	}
	rw.Header().Set("Content-Length", fmt.Sprint(m.Size-from))
	if r.Method == http.MethodHead {
		rw.WriteHeader(status)
		return nil
	}
	body, _, err := w.open(r.Context(), m.Path)
	if err != nil {
		rw.Header().Del("Content-Length")
		http.Error(rw, "not readable", http.StatusInternalServerError)
		return err
	}
	defer body.Close()
	if _, err := io.CopyN(io.Discard, body, from); err != nil {
		return err
	}
	rw.WriteHeader(status)
	_, err = io.Copy(rw, body)
	return err
}

// rangeStart parses the only supported form of Range: "bytes=N-". Requests with another
// form receive the complete file, as HTTP allows.
func rangeStart(r *http.Request, m manifest.Member) (int64, bool) {
	var n int64
	var rest string
	if c, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-%s", &n, &rest); c != 1 || err == nil {
		return 0, false
	}
	if f := r.Header.Get("If-Range"); f != "" && f != `"`+m.SHA256+`"` {
		return 0, false
	}
	return n, n > 0 && n < m.Size
}
