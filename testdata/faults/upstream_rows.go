package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
)

// Where a fault of the upstream strikes.
const (
	file   = "file"     // a plain file
	packed = "archive"  // an archive of which some members are wanted
	layer  = "layer"    // a blob of an image
	deb    = "package"  // a package of an operating system
	index  = "manifest" // an image's index, asked for by digest
)

// upstreamFault is a way to answer for one address, and what has to come of it.
type upstreamFault struct {
	name   string
	answer fault
	code   int      // exit code; 0 wants the same bytes
	words  []string // what the error says
	took   time.Duration
	waits  bool
	only   []string // targets; none for file, archive, layer and package
	quick  int      // which of the targets the test tries, counted from 1; 0 for none
}

// upstreamRows is one row for each fault and place.
func upstreamRows() []row {
	var rows []row
	for _, f := range upstreamFaults() {
		targets := f.only
		if targets == nil {
			targets = []string{file, packed, layer, deb}
		}
		expect := "the same bytes"
		if f.code != 0 {
			expect = fmt.Sprintf("exit %d: %s", f.code, strings.Join(f.words, ", "))
		}
		if f.took > 0 {
			expect += fmt.Sprintf(", not before %s", f.took)
		}
		for i, target := range targets {
			rows = append(rows, row{
				group: "upstream", fault: f.name + ", " + target, expect: expect, waits: true, quick: i == f.quick-1,
				run: func(ctx context.Context, l *lab) (string, error) { return f.run(ctx, l, target) },
			})
		}
	}
	return rows
}

// run builds once with the fault and, when that failed, once without it.
func (f upstreamFault) run(ctx context.Context, l *lab, target string) (string, error) {
	at, err := l.target(target)
	if err != nil {
		return "", err
	}
	p := newProxy(at, l.up, f.answer)
	defer p.close()
	s, err := l.site(ctx, f.name+"-"+target, p)
	if err != nil {
		return "", err
	}
	defer s.close()
	r := s.run(ctx, s.build(s.archive())...)
	if p.asked() == 0 {
		return r.String(), errors.New("the fault's address was not asked for")
	}
	if r.took < f.took {
		return r.String(), fmt.Errorf("IT DID NOT WAIT: it took %s", r.took.Round(time.Millisecond))
	}
	if f.code == 0 {
		if r.code != 0 {
			return r.String(), errors.New("a build that had to succeed")
		}
		return "the same bytes", s.same(s.archive())
	}
	return r.String(), s.refused(ctx, r, f.code, f.words, p.mend)
}

// refused looks at a run that had to fail, and at the one after it, when the
// fault is gone.
func (s *site) refused(ctx context.Context, r ended, code int, words []string, mend func()) error {
	if r.code != code {
		return fmt.Errorf("exit %d, want %d", r.code, code)
	}
	for _, w := range words {
		if !strings.Contains(r.stderr, w) {
			return fmt.Errorf("the error does not say %q", w)
		}
	}
	if exists(s.archive()) {
		return errors.New("AN ARCHIVE after a failure")
	}
	if err := onlyIn(s.out, unfinished...); err != nil {
		return err
	}
	mend()
	if again := s.run(ctx, s.build(s.archive())...); again.code != 0 {
		return fmt.Errorf("run again without the fault: %s", again)
	}
	if err := s.same(s.archive()); err != nil {
		return err
	}
	return onlyIn(s.out, "bundle.tar.zst")
}

// unfinished is what a build that failed may leave, to continue there.
var unfinished = []string{"bundle.tar.zst.partial", "bundle.tar.zst.partial.journal", "bundle.tar.zst.partial.staged"}

// target gives the path of the largest thing of a kind.
func (l *lab) target(kind string) (string, error) {
	best, size := "", int64(-1)
	consider := func(path string, n int64) {
		if n > size {
			best, size = path, n
		}
	}
	for _, a := range l.pinned.Artifacts {
		if (kind == file && a.Archive == "" && a.Kind == manifest.Binary) || (kind == packed && a.Archive != "") {
			consider("/"+strings.TrimPrefix(a.Address, "https://"), a.Size)
		}
		for _, m := range a.Members {
			if kind == deb && m.Package != "" {
				consider("/"+strings.TrimPrefix(m.Address, "https://"), m.Size)
			}
		}
	}
	for _, im := range l.pinned.Images {
		repository := im.Reference[:strings.LastIndex(im.Reference, ":")]
		if kind == index {
			consider("/v2/"+repository+"/manifests/"+im.Digest, im.Size)
		}
		if kind != layer {
			continue
		}
		for at, c := range l.up.Counts() {
			if strings.HasPrefix(at, "/v2/"+repository+"/blobs/") {
				consider(at, c.Size)
			}
		}
	}
	if best == "" {
		return "", fmt.Errorf("the lock has no %s", kind)
	}
	return best, nil
}

// exists reports whether something stands at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// status answers with a status and nothing else.
func status(code int, header ...string) answer {
	return func(c *call) {
		for i := 0; i+1 < len(header); i += 2 {
			c.w.Header().Set(header[i], header[i+1])
		}
		http.Error(c.w, "told to answer so", code)
	}
}
