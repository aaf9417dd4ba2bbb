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
)

func TestMain(m *testing.M) {
	if code, mine := baseline(context.Background(), os.Args[1:]); mine {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// TestSmoke measures a small work set once: every figure is there.
func TestSmoke(t *testing.T) {
	for _, tool := range []string{"tar", "zstd"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s here", tool)
		}
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "kubexm")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/kubexm")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build kubexm: %v\n%s", err, out)
	}
	var stdout, stderr bytes.Buffer
	args := []string{"-kubexm", binary, "-f", "../configs/quickstart.yaml", "-dir", filepath.Join(dir, "work"), "-scale", "0.01", "-rounds", "1", "-o", "json"}
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
		if f.Ours <= 0 {
			t.Errorf("%s: %v", f.Name, f.Ours)
		}
	}
	if got.ContentBytes < 1<<20 || len(got.Figures) != 10 {
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
	var b bytes.Buffer
	table(&b, []figure{
		{Name: "a", Must: 1.2, Beyond: 1.05, Ours: 1.05}, {Name: "b", Must: 1.2, Beyond: 1.05, Ours: 1.1},
		{Name: "c", Must: 1.2, Beyond: 1.05, Ours: 1.3}, {Name: "d", Unit: "MB", Must: 128, Beyond: 64, Ours: 100},
	})
	for i, want := range []string{"FIGURE", "beyond", "reached", "MISSED", "100 MB"} {
		if line := strings.Split(b.String(), "\n")[i]; !strings.Contains(line, want) {
			t.Errorf("line %d: %q lacks %q", i, line, want)
		}
	}
}
