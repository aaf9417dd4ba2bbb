package runnertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/runner"
)

func upload(_ *testing.T, b *bench) {
	u := runner.Upload{Path: b.path("tool"), Size: 7, SHA256: sha("content"), Open: opens("content")}
	todo, err := b.r.Pending(b.ctx, []runner.Upload{u})
	b.ok(err)
	if len(todo) != 1 || todo[0].OnlyAttr {
		b.Fatalf("a file that is not there is pending as %+v", todo)
	}
	changed, err := b.r.Upload(b.ctx, u)
	b.ok(err)
	if !changed {
		b.Fatal("the first upload changed nothing")
	}
	b.holds(u.Path, "content")
	b.has(u.Path, runner.Attr{Mode: 0o755})
	b.only("tool")
	have, err := b.r.Uploaded(b.ctx, u)
	b.ok(err)
	if !have {
		b.Fatal("what was uploaded does not count as that")
	}
}

func uploadAgain(_ *testing.T, b *bench) {
	opened := 0
	u := runner.Upload{
		Path: b.path("tool"), Size: 7, SHA256: sha("content"), Attr: runner.Attr{Mode: 0o700},
		Open: func(ctx context.Context) (io.ReadCloser, error) {
			opened++
			return opens("content")(ctx)
		},
	}
	want := func(what string, changes bool, opens int) {
		b.Helper()
		changed, err := b.r.Upload(b.ctx, u)
		b.ok(err)
		if changed != changes || opened != opens {
			b.Fatalf("%s: changed %t, opened %d times in all; want %t, %d", what, changed, opened, changes, opens)
		}
		todo, err := b.r.Pending(b.ctx, []runner.Upload{u})
		b.ok(err)
		if len(todo) != 0 {
			b.Fatalf("%s: still pending", what)
		}
		b.holds(u.Path, "content")
		b.has(u.Path, u.Attr)
	}
	want("new", true, 1)
	want("again", false, 1)
	b.ok(b.r.SetAttr(b.ctx, u.Path, runner.Attr{Mode: 0o600}))
	want("other mode", true, 1)
	b.ok(b.r.WriteFile(b.ctx, u.Path, []byte("CONTENT"), u.Attr))
	want("other bytes of the same size", true, 2)
	b.ok(b.r.WriteFile(b.ctx, u.Path, []byte("longer content"), u.Attr))
	want("other size", true, 3)
	b.ok(b.r.Link(b.ctx, "/etc/hostname", u.Path))
	want("a link in its place", true, 4)
}

// checked is content whose verification fails.
type checked struct {
	io.Reader
	checks *int
	not    bool
}

var errDamaged = errors.New("damaged")

func (c *checked) Uncheck() { c.not = true }

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if err == io.EOF && !c.not {
		*c.checks++
		err = errDamaged
	}
	return n, err
}

func (*checked) Close() error { return nil }

// uploadUnchecked: content that the host hashes is not hashed locally, unless the host
// finds another digest.
func uploadUnchecked(_ *testing.T, b *bench) {
	checks := 0
	of := func(s string) func(context.Context) (io.ReadCloser, error) {
		return func(context.Context) (io.ReadCloser, error) {
			return &checked{Reader: strings.NewReader(s), checks: &checks}, nil
		}
	}
	p := b.path("tool")
	_, err := b.r.Upload(b.ctx, runner.Upload{Path: p, Size: 7, SHA256: sha("content"), Open: of("content")})
	b.ok(err)
	b.holds(p, "content")
	if checks != 0 {
		b.Error("checked here and on the host")
	}
	_, err = b.r.Upload(b.ctx, runner.Upload{Path: p, Size: 7, SHA256: sha("CONTENT"), Open: of("damaged")})
	b.is(err, errDamaged)
	b.holds(p, "content")
	if checks != 1 {
		b.Errorf("checked %d times after the host found other bytes", checks)
	}
}

func uploadWrong(_ *testing.T, b *bench) {
	p := b.path("tool")
	b.ok(b.r.WriteFile(b.ctx, p, []byte("before"), runner.Attr{}))
	_, err := b.r.Upload(b.ctx, runner.Upload{Path: p, Size: 7, SHA256: sha("content"), Open: opens("CONTENT")})
	var wrong *runner.DigestError
	if !errors.As(err, &wrong) || wrong.Path != p {
		b.Fatalf("error is %v, want a DigestError", err)
	}
	b.holds(p, "before")
	b.only("tool")
	_, err = b.r.Upload(b.ctx, runner.Upload{Path: b.Dir, Size: 7, SHA256: sha("content"), Open: opens("content")})
	if err == nil {
		b.Fatal("a folder was taken for a place of a file")
	}
	_, err = b.r.Upload(b.ctx, runner.Upload{Path: b.path("none/tool"), Size: 7, SHA256: sha("content"), Open: opens("content")})
	b.refused(err)
	broken := errors.New("the disk is broken")
	_, err = b.r.Upload(b.ctx, runner.Upload{
		Path: b.path("x"), Size: 7, SHA256: sha("content"),
		Open: func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader([]byte("con")), failing{broken})), nil
		},
	})
	b.is(err, broken)
	if _, err := b.r.Stat(b.ctx, b.path("x")); !errors.Is(err, fs.ErrNotExist) {
		b.Fatalf("half a file is there: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func uploads(_ *testing.T, b *bench) {
	var us []runner.Upload
	var want []string
	for i := range 5 {
		text := fmt.Sprintf("content %d", i)
		u := runner.Upload{Path: b.path(fmt.Sprint("tool", i)), Size: int64(len(text)), SHA256: sha(text), Open: opens(text)}
		us = append(us, u)
		if i == 2 {
			b.ok(b.r.WriteFile(b.ctx, u.Path, []byte(text), runner.Attr{Mode: 0o755}))
			continue
		}
		want = append(want, u.Path)
	}
	changed, err := b.r.Uploads(b.ctx, us)
	b.ok(err)
	if !slices.Equal(changed, want) {
		b.Fatalf("changed %q, want %q", changed, want)
	}
	changed, err = b.r.Uploads(b.ctx, us)
	b.ok(err)
	if len(changed) != 0 {
		b.Fatalf("the second time changed %q", changed)
	}
	// One that fails leaves all of its group as they were, and no other group is begun after it.
	for _, i := range []int{0, 4} {
		b.ok(b.r.Remove(b.ctx, us[i].Path))
	}
	us[0].SHA256 = sha("something else")
	us[4].Attr.Mode = 0o700 // a group of its own
	late := us[4]
	us[4].Open = func(ctx context.Context) (io.ReadCloser, error) {
		select {
		case <-ctx.Done(): // it is under way when the other fails
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Second):
			return nil, errors.New("nobody gave it up")
		}
	}
	changed, err = b.r.Uploads(b.ctx, us)
	var wrong *runner.DigestError
	if !errors.As(err, &wrong) || wrong.Path != us[0].Path || len(changed) != 0 {
		b.Fatalf("changed %q, error %v", changed, err)
	}
	if _, err := b.r.Stat(b.ctx, us[0].Path); !errors.Is(err, fs.ErrNotExist) {
		b.Fatalf("wrong bytes took their place: %v", err)
	}
	_, err = b.r.Upload(b.ctx, late)
	b.ok(err)
}

// uploadsTogether: files of several folders, modes and sizes, some with unusual names.
func uploadsTogether(_ *testing.T, b *bench) {
	_, err := b.r.Mkdir(b.ctx, b.path("below"), runner.Attr{})
	b.ok(err)
	var us []runner.Upload
	var want []string
	for i, name := range []string{"a", "b c", "-n", "it's", `back\slash`, ".hidden", "below/a", "below/b", "*", "last"} {
		text := strings.Repeat(name+"\n", i*1000) // the first is empty
		u := runner.Upload{Path: b.path(name), Size: int64(len(text)), SHA256: sha(text), Open: opens(text)}
		if name == "below/b" {
			u.Attr.Mode = 0o600
		}
		us, want = append(us, u), append(want, u.Path)
	}
	// What a lost connection left is neither followed nor kept.
	b.ok(b.r.WriteFile(b.ctx, b.path("elsewhere"), []byte("theirs"), runner.Attr{}))
	b.ok(b.r.Link(b.ctx, b.path("elsewhere"), b.path(".a.kubexm-new")))
	b.ok(b.r.WriteFile(b.ctx, b.path(".b c.kubexm-new"), []byte("half"), runner.Attr{}))
	changed, err := b.r.Uploads(b.ctx, us)
	b.ok(err)
	if !slices.Equal(changed, want) {
		b.Fatalf("changed %q, want %q", changed, want)
	}
	for i, u := range us {
		got, err := b.r.ReadFile(b.ctx, u.Path)
		b.ok(err)
		if sha(string(got)) != u.SHA256 {
			b.Errorf("%s holds other bytes", u.Path)
		}
		mode := fs.FileMode(0o755)
		if i == 7 {
			mode = 0o600
		}
		b.has(u.Path, runner.Attr{Mode: mode})
	}
	b.holds(b.path("elsewhere"), "theirs")
	b.only("a", "b c", "-n", "it's", `back\slash`, ".hidden", "below", "*", "last", "elsewhere")

	// One with other bytes in the middle: the files beside it stay as they were.
	for i := range us {
		us[i].SHA256 = sha("new")
		us[i].Size, us[i].Open = 3, opens("new")
	}
	us[2].Open = opens("old")
	_, err = b.r.Uploads(b.ctx, us[:4])
	var wrong *runner.DigestError
	if !errors.As(err, &wrong) || wrong.Path != us[2].Path {
		b.Fatalf("error is %v", err)
	}
	b.holds(us[0].Path, "")
	b.holds(us[3].Path, strings.Repeat("it's\n", 3000))
	b.only("a", "b c", "-n", "it's", `back\slash`, ".hidden", "below", "*", "last", "elsewhere")

	// One that is not as long as announced would shift all that follow.
	us[2].Open = opens("ne")
	_, err = b.r.Uploads(b.ctx, us[:4])
	b.is(err, runner.ErrShort)
	b.holds(us[0].Path, "")
	us[2].Open = opens("newer")
	if _, err = b.r.Uploads(b.ctx, us[:4]); err == nil {
		b.Fatal("a file that is longer than announced was sent")
	}
	b.holds(us[0].Path, "")
	us[2].Open = opens("new")
	changed, err = b.r.Uploads(b.ctx, us)
	b.ok(err)
	if !slices.Equal(changed, want) {
		b.Fatalf("changed %q, want %q", changed, want)
	}
	for _, u := range us {
		b.holds(u.Path, "new")
	}
}

func leftovers(_ *testing.T, b *bench) {
	// What a lost connection left beside a file is cleared away by the next write.
	left := b.path(".file.kubexm-new")
	b.ok(b.r.WriteFile(b.ctx, left, []byte("half"), runner.Attr{}))
	b.ok(b.r.WriteFile(b.ctx, b.path("file"), []byte("whole"), runner.Attr{}))
	b.only("file")
	b.ok(b.r.WriteFile(b.ctx, left, []byte("half"), runner.Attr{}))
	_, err := b.r.Upload(b.ctx, runner.Upload{Path: b.path("file"), Size: 3, SHA256: sha("new"), Open: opens("new")})
	b.ok(err)
	b.only("file")
	b.ok(b.r.Link(b.ctx, "elsewhere", left))
	b.ok(b.r.WriteFile(b.ctx, b.path("file"), []byte("whole"), runner.Attr{}))
	b.holds(b.path("file"), "whole")
	b.only("file")
}

func large(_ *testing.T, b *bench) {
	data := make([]byte, 9<<20)
	for i := range data {
		data[i] = byte(i >> 3 * 7)
	}
	sum := sha256.Sum256(data)
	u := runner.Upload{
		Path: b.path("large"), Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:]),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
	_, err := b.r.Upload(b.ctx, u)
	b.ok(err)
	var down bytes.Buffer
	b.ok(b.r.Download(b.ctx, u.Path, &down))
	if !bytes.Equal(down.Bytes(), data) {
		b.Fatalf("%d bytes came back, not the %d that went", down.Len(), len(data))
	}
	got, err := b.r.ReadFile(b.ctx, u.Path)
	b.ok(err)
	if !bytes.Equal(got, data) {
		b.Fatal("ReadFile gave other bytes")
	}
	u.Path, u.Size = b.path("larger"), runner.LargestFile+1
	data = make([]byte, u.Size)
	b.ok(b.r.WriteFile(b.ctx, u.Path, data, runner.Attr{}))
	_, err = b.r.ReadFile(b.ctx, u.Path)
	b.is(err, runner.ErrTooLarge)
}
