package runnertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Host is a host that the suite runs on.
type Host struct {
	Conn connector.Conn
	Dir  string // an empty folder that the suite may write to
	Root bool   // commands run as root
	Sim  *conntest.Sim
	// Systemd allows the suite to create and start units and to add users. Do not set it
	// for a developer's machine.
	Systemd bool
	// Machine allows the suite to change swap, SELinux, ufw and the host name, all of
	// which the host must have: see swaps.
	Machine bool
}

type check struct {
	name  string
	check func(*testing.T, *bench)
}

// machineChecks test settings of the entire host, outside of Host.Dir.
var machineChecks = []check{{"swaps", swaps}, {"selinux", selinux}, {"ufw", ufw}, {"rename", rename}}

// Machine runs the checks that require Host.Machine.
func Machine(t *testing.T, open func(t *testing.T) Host) { run(t, open, machineChecks) }

// Suite runs all other checks, each on a new host that open returns.
func Suite(t *testing.T, open func(t *testing.T) Host) {
	run(t, open, append([]check{
		{"read and write", readWrite}, {"short write", shortWrite}, {"modes and owners", modes}, {"stat", stat}, {"list", list}, {"lines", lines},
		{"mkdir", mkdir}, {"mkdirs at once", mkdirs}, {"remove", remove}, {"links", links}, {"copy and rename", moves}, {"names", names},
		{"upload", upload}, {"upload again", uploadAgain}, {"upload of wrong bytes", uploadWrong}, {"upload unchecked", uploadUnchecked}, {"uploads", uploads}, {"uploads together", uploadsTogether},
		{"leftovers", leftovers}, {"large files", large},
		{"sysctl", sysctl}, {"module", module}, {"users", users}, {"facts", facts}, {"machine", machine}, {"packages", packages}, {"lease", lease},
		{"exec", execs}, {"units", units}, {"jobs", jobs},
	}, machineChecks...))
}

func run(t *testing.T, open func(t *testing.T) Host, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			h := open(t)
			c.check(t, &bench{T: t, Host: h, r: runner.New(h.Conn, runner.Options{}), ctx: t.Context()})
		})
	}
}

// bench is the host of one check.
type bench struct {
	*testing.T
	Host
	r   *runner.Runner
	ctx context.Context // it lives as long as the test, as testing.T's own does
}

func (b *bench) path(name string) string { return b.Dir + "/" + name }

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatalf("%v", err)
	}
}

func (b *bench) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("error is %v, want %v", err, want)
	}
}

// refused requires that a command has failed with a message.
func (b *bench) refused(err error) {
	b.Helper()
	var c *runner.CmdError
	if !errors.As(err, &c) {
		b.Fatalf("error is %v, want a CmdError", err)
	}
	if c.Stderr == "" {
		b.Fatalf("%v: nothing says why", err)
	}
}

func (b *bench) holds(path, want string) {
	b.Helper()
	got, err := b.r.ReadFile(b.ctx, path)
	b.ok(err)
	if string(got) != want {
		b.Fatalf("%s holds %q, want %q", path, got, want)
	}
}

func readWrite(_ *testing.T, b *bench) {
	p := b.path("a file")
	_, err := b.r.ReadFile(b.ctx, p)
	b.is(err, fs.ErrNotExist)
	_, err = b.r.Digest(b.ctx, p)
	b.is(err, fs.ErrNotExist)
	for _, text := range []string{"one\n", "", "no newline", "nul \x00 and \xff bytes", strings.Repeat("long line\n", 20000)} {
		b.ok(b.r.WriteFile(b.ctx, p, []byte(text), runner.Attr{}))
		b.holds(p, text)
		sum, err := b.r.Digest(b.ctx, p)
		b.ok(err)
		if want := sha(text); sum != want {
			b.Fatalf("digest is %s, want %s", sum, want)
		}
		var down bytes.Buffer
		b.ok(b.r.Download(b.ctx, p, &down))
		if down.String() != text {
			b.Fatalf("download gave %d bytes, want %d", down.Len(), len(text))
		}
	}
	b.refused(b.r.WriteFile(b.ctx, b.path("none/file"), nil, runner.Attr{}))
	b.refused(b.r.WriteFile(b.ctx, p+"/file", nil, runner.Attr{}))
	_, err = b.r.ReadFile(b.ctx, b.Dir)
	b.refused(err)
	b.refused(b.r.WriteFile(b.ctx, b.Dir, []byte("x"), runner.Attr{}))
	b.only("a file")
}

// only requires that the folder contains exactly these names.
func (b *bench) only(names ...string) {
	b.Helper()
	infos, err := b.r.List(b.ctx, b.Dir)
	b.ok(err)
	var got []string
	for _, i := range infos {
		got = append(got, i.Name)
	}
	slices.Sort(names)
	if !slices.Equal(got, names) {
		b.Fatalf("folder holds %q, want %q", got, names)
	}
}

func shortWrite(_ *testing.T, b *bench) {
	// A line that breaks ends a command's input as if there were no more.
	p := b.path("file")
	b.ok(b.r.WriteFile(b.ctx, p, []byte("before"), runner.Attr{}))
	_, err := b.r.Upload(b.ctx, runner.Upload{
		Path: p, Size: 10, SHA256: sha("0123456789"), Open: opens("01234"),
	})
	b.is(err, runner.ErrShort)
	b.holds(p, "before")
	b.only("file")
}

func modes(_ *testing.T, b *bench) {
	p := b.path("file")
	for _, a := range []runner.Attr{{}, {Mode: 0o600}, {Mode: 0o755}, {Mode: 0o4755 & 0o777}, {Mode: 0o444}, {Mode: 0o755 | fs.ModeSetgid}} {
		b.ok(b.r.WriteFile(b.ctx, p, []byte("x"), a))
		b.has(p, a)
		b.ok(b.r.SetAttr(b.ctx, p, runner.Attr{Mode: 0o640}))
		b.has(p, runner.Attr{Mode: 0o640})
	}
	b.is(b.r.SetAttr(b.ctx, b.path("none"), runner.Attr{}), fs.ErrNotExist)
	if !b.Root {
		return
	}
	for _, a := range []runner.Attr{
		{Mode: 0o640, Owner: "nobody"}, {Mode: 0o640, Group: "nogroup"}, {Mode: 0o600, Owner: "65534", Group: "0"},
		{Mode: 0o644, Owner: "root", Group: "root"}, {Mode: 0o600, Owner: "4242", Group: "4243"},
	} {
		b.ok(b.r.WriteFile(b.ctx, p, []byte("x"), a))
		b.has(p, a)
	}
	b.refused(b.r.WriteFile(b.ctx, p, []byte("y"), runner.Attr{Owner: "no-such-user"}))
	b.refused(b.r.WriteFile(b.ctx, p, []byte("y"), runner.Attr{Group: "no-such-group"}))
	b.holds(p, "x")
	b.only("file")
}

func (b *bench) has(p string, a runner.Attr) {
	b.Helper()
	i, err := b.r.Stat(b.ctx, p)
	b.ok(err)
	if !i.Has(a) {
		b.Fatalf("%s has %s %s(%d):%s(%d), want %+v", p, i.Mode, i.Owner, i.UID, i.Group, i.GID, a)
	}
}

func stat(_ *testing.T, b *bench) {
	_, err := b.r.Stat(b.ctx, b.path("none"))
	b.is(err, fs.ErrNotExist)
	b.ok(b.r.WriteFile(b.ctx, b.path("file"), []byte("12345"), runner.Attr{Mode: 0o640}))
	b.ok(b.r.Link(b.ctx, "file", b.path("link")))
	b.ok(b.r.Link(b.ctx, "nowhere", b.path("dangling")))
	_, err = b.r.Mkdir(b.ctx, b.path("dir"), runner.Attr{Mode: 0o750})
	b.ok(err)
	for _, want := range []runner.Info{
		{Name: b.path("file"), Mode: 0o640, Size: 5},
		{Name: b.path("link"), Mode: fs.ModeSymlink | 0o777, Size: 4, Target: "file"},
		{Name: b.path("dangling"), Mode: fs.ModeSymlink | 0o777, Size: 7, Target: "nowhere"},
		{Name: b.path("dir"), Mode: fs.ModeDir | 0o750},
	} {
		got, err := b.r.Stat(b.ctx, want.Name)
		b.ok(err)
		if got.IsDir() {
			got.Size = 0 // is the file system's affair
		}
		if got.Name != want.Name || got.Mode != want.Mode || got.Size != want.Size || got.Target != want.Target {
			b.Fatalf("stat gave %+v, want %+v", got, want)
		}
		if got.Owner == "" || got.Group == "" || got.ModTime.IsZero() {
			b.Fatalf("stat gave no owner, group or time: %+v", got)
		}
	}
	_, err = b.r.ReadFile(b.ctx, b.path("dangling"))
	b.is(err, fs.ErrNotExist)
	b.holds(b.path("link"), "12345")
}

func list(_ *testing.T, b *bench) {
	_, err := b.r.List(b.ctx, b.path("none"))
	b.is(err, fs.ErrNotExist)
	infos, err := b.r.List(b.ctx, b.Dir)
	b.ok(err)
	if len(infos) != 0 {
		b.Fatalf("an empty folder lists %v", infos)
	}
	for _, n := range []string{"b", "a", ".hidden", "..two dots", "with\ttab", "-dash", "*"} {
		if strings.Contains(n, "\t") {
			continue // refused: see names
		}
		b.ok(b.r.WriteFile(b.ctx, b.path(n), nil, runner.Attr{}))
	}
	b.ok(b.r.Link(b.ctx, "target here", b.path("link")))
	b.only("b", "a", ".hidden", "..two dots", "-dash", "*", "link")
	infos, err = b.r.List(b.ctx, b.Dir)
	b.ok(err)
	if i := slices.IndexFunc(infos, runner.Info.IsLink); i < 0 || infos[i].Target != "target here" {
		b.Fatalf("the link is not listed with its target: %+v", infos)
	}
	_, err = b.r.List(b.ctx, b.path("a"))
	b.is(err, fs.ErrNotExist)
}

func lines(_ *testing.T, b *bench) {
	_, err := b.r.Lines(b.ctx, b.path("none"), ".json")
	b.is(err, fs.ErrNotExist)
	has := func(want map[string]string) {
		b.Helper()
		got, err := b.r.Lines(b.ctx, b.Dir, ".json")
		b.ok(err)
		if !maps.EqualFunc(got, want, func(a []byte, b string) bool { return string(a) == b }) {
			b.Fatalf("lines of %q, want %q", got, want)
		}
	}
	has(nil)
	for name, text := range map[string]string{"a.json": "one\n", "-b.json": "two\n\n:three", "c.data": "other", ".d.json": "hidden", "é.json": "\xff\x01:\n"} {
		b.ok(b.r.WriteFile(b.ctx, b.path(name), []byte(text), runner.Attr{}))
	}
	has(map[string]string{"a.json": "one\n", "-b.json": "two\n\n:three\n", "é.json": "\xff\x01:\n"})
	b.ok(b.r.WriteFile(b.ctx, b.path("empty.json"), nil, runner.Attr{}))
	_, err = b.r.Lines(b.ctx, b.Dir, ".json")
	b.refused(err)
}

func remove(_ *testing.T, b *bench) {
	b.ok(b.r.Remove(b.ctx, b.path("none")))
	b.ok(b.r.RemoveDir(b.ctx, b.path("none")))
	b.ok(b.r.RemoveAll(b.ctx, b.path("none")))
	b.ok(b.r.WriteFile(b.ctx, b.path("file"), nil, runner.Attr{}))
	b.ok(b.r.Link(b.ctx, "file", b.path("link")))
	b.ok(b.r.Remove(b.ctx, b.path("link")))
	b.only("file")
	b.ok(b.r.Remove(b.ctx, b.path("file")))
	_, err := b.r.Mkdir(b.ctx, b.path("dir/below"), runner.Attr{})
	b.ok(err)
	b.refused(b.r.Remove(b.ctx, b.path("dir")))
	for _, name := range []string{"one", "two"} {
		b.ok(b.r.WriteFile(b.ctx, b.path(name), nil, runner.Attr{}))
	}
	b.refused(b.r.Remove(b.ctx, b.path("one"), b.path("dir"), b.path("none"), b.path("two")))
	b.only("dir")
	b.ok(b.r.Remove(b.ctx))
	b.is(b.r.RemoveDir(b.ctx, b.path("dir")), runner.ErrNotEmpty)
	b.ok(b.r.RemoveDir(b.ctx, b.path("dir/below")))
	b.ok(b.r.RemoveDir(b.ctx, b.path("dir")))
	b.only()
	_, err = b.r.Mkdir(b.ctx, b.path("tree/below"), runner.Attr{})
	b.ok(err)
	b.ok(b.r.WriteFile(b.ctx, b.path("tree/below/file"), nil, runner.Attr{}))
	b.ok(b.r.WriteFile(b.ctx, b.path("tree2"), nil, runner.Attr{}))
	b.ok(b.r.RemoveAll(b.ctx, b.path("tree")))
	b.only("tree2")
	for _, p := range []string{"/", "/etc", "relative", b.Dir + "/../x", "/a//b", "/a/b/"} {
		if err := b.r.RemoveAll(b.ctx, p); err == nil {
			b.Fatalf("removing all of %q was not refused", p)
		}
	}
}

func links(_ *testing.T, b *bench) {
	b.ok(b.r.WriteFile(b.ctx, b.path("a"), []byte("a"), runner.Attr{}))
	b.ok(b.r.WriteFile(b.ctx, b.path("b"), []byte("b"), runner.Attr{}))
	b.ok(b.r.Link(b.ctx, "a", b.path("link")))
	b.holds(b.path("link"), "a")
	b.ok(b.r.Link(b.ctx, b.path("b"), b.path("link")))
	b.holds(b.path("link"), "b")
	b.ok(b.r.Link(b.ctx, "b", b.path("a"))) // in place of a file
	b.holds(b.path("a"), "b")
	// Writing replaces a link and leaves what it pointed to.
	b.ok(b.r.WriteFile(b.ctx, b.path("link"), []byte("new"), runner.Attr{}))
	b.holds(b.path("link"), "new")
	b.holds(b.path("b"), "b")
	_, err := b.r.Mkdir(b.ctx, b.path("dir"), runner.Attr{})
	b.ok(err)
	b.refused(b.r.Link(b.ctx, "b", b.path("dir")))
	// A folder behind a link is a folder.
	b.ok(b.r.Link(b.ctx, "dir", b.path("way")))
	b.ok(b.r.WriteFile(b.ctx, b.path("way/file"), []byte("x"), runner.Attr{}))
	b.holds(b.path("dir/file"), "x")
	made, err := b.r.Mkdir(b.ctx, b.path("way"), runner.Attr{Mode: 0o700})
	b.ok(err)
	if len(made) > 0 {
		b.Fatalf("made %q, which was there behind a link", made)
	}
	b.has(b.path("dir"), runner.Attr{Mode: 0o700})
}

func moves(_ *testing.T, b *bench) {
	b.is(b.r.Copy(b.ctx, b.path("none"), b.path("x")), fs.ErrNotExist)
	b.is(b.r.Rename(b.ctx, b.path("none"), b.path("x")), fs.ErrNotExist)
	b.ok(b.r.WriteFile(b.ctx, b.path("a"), []byte("text"), runner.Attr{Mode: 0o640}))
	b.ok(b.r.Copy(b.ctx, b.path("a"), b.path("b")))
	b.holds(b.path("b"), "text")
	b.has(b.path("b"), runner.Attr{Mode: 0o640})
	b.ok(b.r.Link(b.ctx, "somewhere", b.path("link")))
	b.ok(b.r.Copy(b.ctx, b.path("link"), b.path("b"))) // in place of a file, as a link
	i, err := b.r.Stat(b.ctx, b.path("b"))
	b.ok(err)
	if i.Target != "somewhere" {
		b.Fatalf("copy of a link is %+v", i)
	}
	b.ok(b.r.Rename(b.ctx, b.path("a"), b.path("b")))
	b.holds(b.path("b"), "text")
	_, err = b.r.Mkdir(b.ctx, b.path("dir/below"), runner.Attr{})
	b.ok(err)
	b.refused(b.r.Copy(b.ctx, b.path("dir"), b.path("dir2")))
	b.refused(b.r.Rename(b.ctx, b.path("b"), b.path("dir")))
	b.refused(b.r.Rename(b.ctx, b.path("dir"), b.path("b")))
	b.refused(b.r.Copy(b.ctx, b.path("b"), b.path("none/b")))
	b.ok(b.r.WriteFile(b.ctx, b.path("dir/below/file"), []byte("deep"), runner.Attr{}))
	b.ok(b.r.Rename(b.ctx, b.path("dir"), b.path("dir2")))
	b.holds(b.path("dir2/below/file"), "deep")
	_, err = b.r.Mkdir(b.ctx, b.path("dir3"), runner.Attr{})
	b.ok(err)
	b.ok(b.r.Rename(b.ctx, b.path("dir2"), b.path("dir3"))) // an empty folder gives way
	b.refused(b.r.Rename(b.ctx, b.path("dir3"), b.Dir))     // a full one does not
	b.only("b", "dir3", "link")
}

func names(_ *testing.T, b *bench) {
	for _, n := range []string{"it's", `quote"d`, "$HOME", "`date`", "a;b", "a&b", "a b  c", "ünïcödé", `back\slash`, "-rf", "~", "{a,b}", "!x", "#x", "%s"} {
		b.ok(b.r.WriteFile(b.ctx, b.path(n), []byte(n), runner.Attr{}))
		b.holds(b.path(n), n)
		i, err := b.r.Stat(b.ctx, b.path(n))
		b.ok(err)
		if i.Name != b.path(n) {
			b.Fatalf("stat of %q is of %q", n, i.Name)
		}
		b.ok(b.r.Rename(b.ctx, b.path(n), b.path(n+"'2")))
		b.ok(b.r.Remove(b.ctx, b.path(n+"'2")))
	}
	b.only()
	for _, n := range []string{"new\nline", "tab\t", "nul\x00", "../up", "./here", "", "a//b"} {
		if err := b.r.WriteFile(b.ctx, b.Dir+"/"+n, nil, runner.Attr{}); err == nil {
			b.Fatalf("the name %q was not refused", n)
		}
	}
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func opens(s string) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }
}
