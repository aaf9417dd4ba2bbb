package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/built"
)

func TestMain(m *testing.M) {
	if code, mine := baseline(context.Background(), os.Args[1:]); mine {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == "-kubexm" { // the bench itself, in a namespace of its own
		os.Exit(start(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// What fails says so, in whichever process it is, and leaves nothing behind.
func TestFailureIsTold(t *testing.T) {
	dir := t.TempDir()
	var stderr bytes.Buffer
	args := []string{"-kubexm", "/bin/false", "-f", "../configs/quickstart.yaml", "-dir", dir, "-scale", "0.01", "-rounds", "1"}
	if code := start(t.Context(), args, &stderr, &stderr); code != 1 || strings.Count(stderr.String(), "error: ") != 1 || !strings.Contains(stderr.String(), "/bin/false bundle lock") {
		t.Errorf("code %d\n%s", code, &stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// A profiler's files lie where the bench was started, whatever is run.
func TestWrap(t *testing.T) {
	here, home := t.TempDir(), t.TempDir()
	t.Chdir(here)
	w := &work{options: options{binary: "/bin/true", wrap: "touch profile-{}"}, dir: home}
	if _, err := w.measure(t.Context(), process{args: w.kubexm("push"), home: home}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(here, "profile-push")); err != nil {
		t.Error(err)
	}
}

// TestSmoke measures a small work set once: every figure is there.
func TestSmoke(t *testing.T) {
	for _, tool := range []string{"tar", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	args := []string{"-kubexm", built.Kubexm(t), "-f", "../configs/quickstart.yaml", "-dir", filepath.Join(dir, "work"), "-scale", "0.01", "-rounds", "1", "-o", "json"}
	if err := run(t.Context(), args, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var got struct {
		ContentBytes int64
		Figures      []figure
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	for _, f := range got.Figures {
		if f.Ours <= 0 && !strings.HasPrefix(f.Name, "temporary disk of ") {
			t.Errorf("%s: %v", f.Name, f.Ours)
		}
	}
	if got.ContentBytes < 1<<20 || len(got.Figures) != 21 {
		t.Errorf("%d bytes, %d figures", got.ContentBytes, len(got.Figures))
	}
	if left, err := os.ReadDir(filepath.Join(dir, "work")); err != nil || len(left) > 0 {
		t.Errorf("left behind %v, %v", left, err)
	}
}

// What is served the second time comes from disk, whole and in parts, with the
// headers of the first.
func TestContentIsKept(t *testing.T) {
	asked := 0
	c := &content{dir: t.TempDir(), have: map[string]stored{}, make: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/x" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("ETag", `"tag"`)
		_, _ = w.Write([]byte("0123456789"))
	})}
	for _, test := range []struct{ path, part, want string }{
		{"/x", "", "200 0123456789"}, {"/x", "bytes=3-", "206 3456789"}, {"/y", "", "404"},
	} {
		r, w := httptest.NewRequest(http.MethodGet, test.path, nil), httptest.NewRecorder()
		if test.part != "" {
			r.Header.Set("Range", test.part)
		}
		c.ServeHTTP(w, r)
		got := http.StatusText(w.Code) + " " + w.Body.String()
		want := strings.NewReplacer("200", "OK", "206", "Partial Content", "404", "Not Found").Replace(test.want)
		if !strings.HasPrefix(got, want) || (w.Code < 300 && w.Header().Get("ETag") != `"tag"`) {
			t.Errorf("%s %s: %q %v", test.path, test.part, got, w.Header())
		}
	}
	if asked != 3 || c.bytes() != 10 { // the one that is not there is asked for twice
		t.Errorf("asked %d times, %d bytes kept", asked, c.bytes())
	}
}

// The link lets no more through than its rate, however many share it.
func TestLinkIsShared(t *testing.T) {
	var l link
	l.rate.Store(10 << 20)
	begin := time.Now()
	done := make(chan bool)
	for range 4 {
		go func() {
			for range 2 {
				l.take(256 << 10)
			}
			done <- true
		}()
	}
	for range 4 {
		<-done
	}
	if took := time.Since(begin); took < 190*time.Millisecond {
		t.Errorf("2 MiB at 10 MiB/s took %s", took)
	}
}

func TestVerdicts(t *testing.T) {
	rounds := []round{{Build: sample{Wall: 2}, Floor: sample{Wall: 1}}, {Build: sample{Wall: 9}, Floor: sample{Wall: 3}}, {Build: sample{Wall: 4}, Floor: sample{Wall: 4}}}
	if got := median(rounds, func(r round) float64 { return r.Build.Wall / r.Floor.Wall }); got != 2 {
		t.Errorf("median %v, want 2", got)
	}
	if got := median(rounds[:2], func(r round) float64 { return r.Build.Wall / r.Floor.Wall }); got != 2.5 {
		t.Errorf("median of two %v, want 2.5", got)
	}
	ratio := func(name string, must, better, ours float64) figure {
		return figure{Name: name, Goal: most(must, better), Ours: ours}
	}
	peer := func(name string, ours float64) figure { return figure{Name: name, Goal: least(2, 3), Ours: ours} }
	all := []figure{
		ratio("a", 1.2, 1.05, 1.05), ratio("b", 1.2, 1.05, 1.1), ratio("c", 1.2, 1.05, 1.3),
		{Name: "d", Unit: "MB", Goal: most(128, 64), Ours: 100}, {Name: "e", Ours: 3},
		ratio("f", 0, 0, 0), ratio("g", 0, 0, 0.5), ratio("h", 1.01, 0, 1.005), ratio("i", 1.01, 0, 1.02),
		peer("j", 3), peer("k", 2), peer("l", 1.9),
	}
	all[2].Step, all[2].Bound = "push", "the reason"
	for i, want := range []string{"beyond", "reached", "MISSED", "reached", "", "beyond", "MISSED", "reached", "MISSED", "beyond", "reached", "MISSED"} {
		if got := all[i].verdict(); got != want {
			t.Errorf("%s: %q, want %q", all[i].Name, got, want)
		}
	}
	var b bytes.Buffer
	table(&b, all)
	lines := strings.Split(b.String(), "\n")
	for i, want := range map[int]string{0: "FIGURE", 3: "≤ 1.200 ≤ 1.050 1.300 MISSED", 4: "≤ 128 MB ≤ 64 MB 100 MB", 5: "e - - 3.000", 8: "≤ 1.010 - 1.005", 10: "≥ 2.000 ≥ 3.000 3.000"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); !strings.Contains(got, want) {
			t.Errorf("line %d: %q lacks %q", i, lines[i], want)
		}
	}
	said := misses(all)
	if len(said) != 5 || !strings.Contains(said[0], "c is 1.300, to be ≤ 1.200; the reason; profile: ") || !strings.Contains(said[0], "perf-push.data") || !strings.Contains(said[3], "≥ 2.000") || !strings.Contains(said[4], "-wrap") {
		t.Errorf("%s", strings.Join(said, "\n"))
	}
}

// What was pushed is there until the registry is emptied, and nothing is taken
// under a digest that it does not have.
func TestTarget(t *testing.T) {
	to := &target{dir: filepath.Join(t.TempDir(), "registry")}
	if err := to.empty(); err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) int {
		w := httptest.NewRecorder()
		to.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
		return w.Code
	}
	const digest = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" // of hello
	for _, step := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodHead, "/v2/x/blobs/" + digest, "", http.StatusNotFound},
		{http.MethodGet, "/v2/x/blobs/" + digest, "", http.StatusNotFound},
		{http.MethodPut, "/v2/x/blobs/uploads/1?digest=" + digest, "bye", http.StatusBadRequest},
		{http.MethodHead, "/v2/x/blobs/" + digest, "", http.StatusNotFound},
		{http.MethodPut, "/v2/x/blobs/uploads/2?digest=" + digest, "hello", http.StatusCreated},
		{http.MethodHead, "/v2/x/blobs/" + digest, "", http.StatusOK},
		{http.MethodGet, "/v2/x/blobs/" + digest, "", http.StatusOK},
	} {
		if got := ask(step.method, step.path, step.body); got != step.want {
			t.Errorf("%s %s: %d, want %d", step.method, step.path, got, step.want)
		}
	}
	if n := to.bytes(); n != 5 {
		t.Errorf("%d bytes, want 5", n)
	}
	if err := to.empty(); err != nil || to.bytes() != 0 || ask(http.MethodHead, "/v2/x/blobs/"+digest, "") != http.StatusNotFound {
		t.Errorf("not empty, %v", err)
	}
}
