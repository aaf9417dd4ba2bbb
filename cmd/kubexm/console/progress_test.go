package console

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/bundle"
)

// TestAProgressThatIsDoneSaysSoOnce: while what was fetched is packed, no line
// says again that all of it is there.
func TestAProgressThatIsDoneSaysSoOnce(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{out: &out, current: map[int]string{}}
	p.Phase("build")
	defer p.Stop()
	p.Total(bundle.Plan{Blobs: 2, Bytes: 300, Download: 200})
	p.start = time.Now().Add(-20 * time.Second)
	one := p.Start("binary/a", 200)
	one.Add(150)
	if got := p.line(); got != "build: 150 B of 200 B (75 %), 7 B/s, 7s left; now binary/a" {
		t.Error(got)
	}
	one.Add(50)
	if got := p.line(); !strings.HasPrefix(got, "build: 200 B of 200 B (100 %), ") {
		t.Error(got)
	}
	one.Done(nil)
	var lines []string
	for range 2 * waitEvery {
		if l := p.line(); l != "" {
			lines = append(lines, l)
		}
	}
	if len(lines) != 2 || lines[0] != "build: packing, 20s so far" {
		t.Errorf("%q", lines)
	}
	// All of the next one is cached.
	p.Phase("build")
	p.Total(bundle.Plan{Blobs: 2, Bytes: 300, Cached: 300})
	if got := p.line(); got != "build: packing, 0s so far" {
		t.Error(got)
	}
	// Other work has nothing after its bytes.
	p.Phase("verify")
	p.Expect(10)
	p.Add(10)
	if got := p.line(); got != "verify: 10 B of 10 B (100 %), …" {
		t.Error(got)
	}
}
