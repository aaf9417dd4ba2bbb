package fetch

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// The variables that make this test's own binary a process to be killed.
const (
	roleVariable     = "KUBEXM_FETCH_TEST_ROLE"
	cacheVariable    = "KUBEXM_FETCH_TEST_CACHE"
	upstreamVariable = "KUBEXM_FETCH_TEST_UPSTREAM"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := victim(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// killFiles is what a victim brings: some plain files, and beside them a package and an archive.
const killFiles = 4

func killContent(i int) []byte { return noise(byte(100+i), 400<<10) }

func killArchive(t testing.TB) []byte {
	return pack(t, "tar.gz", entry{"x", string(noise(120, 300<<10))}, entry{"y", string(noise(121, 300<<10))})
}

// victim brings everything into the cache, by the package or by a writer that
// knows nothing of crashes.
func victim(role string) error {
	cache, err := OpenCache(os.Getenv(cacheVariable))
	if err != nil {
		return err
	}
	ctx := context.Background()
	if role == "naive" {
		return naive(ctx, cache)
	}
	c, err := New(Options{
		Cache: cache,
		Sources: manifest.Sources{Replace: []manifest.Replacement{
			{From: "upstream.test", To: os.Getenv(upstreamVariable), PlainHTTP: true},
		}},
	})
	if err != nil {
		return err
	}
	fmt.Println("begun")
	for i := range killFiles {
		if err := c.FetchArtifact(ctx, killArtifact(i)); err != nil {
			return err
		}
	}
	p, m := killPackage()
	if err := c.FetchMember(ctx, p, m); err != nil {
		return err
	}
	a := archiveOf(killArchive(quiet{}), "tar.gz", "x", "y")
	a.Address = address("archive")
	_, err = c.PinArtifact(ctx, a)
	return err
}

func killArtifact(i int) manifest.Artifact {
	a := plainFile(killContent(i))
	a.Address = address("file" + itoa(i))
	return a
}

// killPackage is one package of a repository.
func killPackage() (manifest.Artifact, manifest.Member) {
	content := killContent(killFiles)
	m := manifest.Member{
		Path: "pool/tool.deb", Name: "pool/tool.deb", Size: int64(len(content)), SHA256: sum(content),
		Package: "tool 1 (all)", Address: address("file" + itoa(killFiles)), Record: "x",
	}
	return manifest.Artifact{ID: "packages/debian-12", Kind: manifest.Packages, Name: "debian-12", Members: []manifest.Member{m}}, m
}

// quiet is a testing.TB for a process that is no test.
type quiet struct{ testing.TB }

func (quiet) Helper() {}

// naive downloads straight to the final name.
func naive(ctx context.Context, cache *Cache) error {
	fmt.Println("begun")
	for i := range killFiles {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+os.Getenv(upstreamVariable)+"/file"+itoa(i), nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		path := cache.blob(sum(killContent(i)))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, resp.Body); err != nil {
			return err
		}
		_ = f.Close()
		_ = resp.Body.Close()
	}
	return nil
}

// TestKilled kills a process that fills a cache, again and again until one run
// is left to finish, and looks at the blobs after each. The naive writer shows
// that the look would find a half blob.
func TestKilled(t *testing.T) {
	archive := killArchive(t)
	u := serve(t, func(w http.ResponseWriter, r *http.Request) {
		content := archive
		if n := strings.TrimPrefix(r.URL.Path, "/file"); n != r.URL.Path {
			content = killContent(int(n[0] - '0'))
		}
		w.Header().Set("ETag", `"`+sum(content)+`"`)
		http.ServeContent(slow{w}, r, "f", time.Time{}, bytes.NewReader(content))
	})
	for _, role := range []string{"fetch", "naive"} {
		t.Run(role, func(t *testing.T) {
			dir := t.TempDir()
			const kills = 12
			corrupt := 0
			kill := func(i int) {
				runVictim(t, role, dir, u.Listener.Addr().String(), time.Duration(5+9*i)*time.Millisecond)
				corrupt += halfBlobs(t, dir)
			}
			if role == "naive" {
				for i := 0; corrupt == 0; i++ { // a busy machine takes its time to write half a blob
					if i == 10*kills {
						t.Fatal("the naive writer left no half blob: this test finds nothing")
					}
					kill(i)
				}
				return
			}
			for i := range kills {
				kill(i)
			}
			if corrupt > 0 {
				t.Errorf("%d half blobs after %d kills", corrupt, kills)
			}
			runVictim(t, role, dir, u.Listener.Addr().String(), 0)
			cache, err := OpenCache(dir)
			if err != nil {
				t.Fatal(err)
			}
			for i := range killFiles + 1 {
				mustHaveBlob(t, cache, killContent(i))
			}
			mustHaveBlob(t, cache, noise(120, 300<<10))
			mustHaveBlob(t, cache, noise(121, 300<<10))
			if halfBlobs(t, dir) > 0 {
				t.Error("half blobs in the end")
			}
		})
	}
}

func mustHaveBlob(t *testing.T, c *Cache, content []byte) {
	t.Helper()
	if !c.Has(sum(content), int64(len(content))) {
		t.Errorf("blob %s is missing", sum(content))
	}
}

// runVictim runs one process and kills it after a while; 0 lets it finish.
func runVictim(t *testing.T, role, dir, upstream string, after time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, cacheVariable+"="+dir, upstreamVariable+"="+upstream)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Errorf("the process did not begin: %v %s", err, stderr.String())
	}
	if after > 0 {
		time.Sleep(after)
		_ = cmd.Process.Kill() // it may have finished
	}
	if err := cmd.Wait(); err != nil && after == 0 {
		t.Errorf("the last run failed: %v %s", err, stderr.String())
	}
}

// halfBlobs counts the blobs that are not what their names say.
func halfBlobs(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(filepath.Join(dir, "sha256"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if s := sha256.Sum256(b); hex.EncodeToString(s[:]) != d.Name() {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// slow spreads a body over some time, so that kills fall into it.
type slow struct{ http.ResponseWriter }

func (s slow) Write(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		k, err := s.ResponseWriter.Write(p[n:min(n+16<<10, len(p))])
		if n += k; err != nil {
			return n, err
		}
		_ = http.NewResponseController(s.ResponseWriter).Flush()
		time.Sleep(500 * time.Microsecond)
	}
	return n, nil
}
