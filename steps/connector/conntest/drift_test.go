package conntest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
)

// FuzzDrift does the same things, chosen by the input, to a simulated host and to
// a real folder: what succeeds, what fails and how, and what is there in the end
// has to be the same. It is how the simulation is kept honest where nobody
// thought of a case.
func FuzzDrift(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, uint8(40))
	}
	f.Fuzz(func(t *testing.T, seed uint64, steps uint8) {
		dir := t.TempDir()
		sim := conntest.New(t)
		sim.AddDir(dir, 0o755)
		hosts := []*runner.Runner{runner.New(sim, runner.Options{}), runner.New(local.New(local.Config{}), runner.Options{})}
		rnd := rand.New(rand.NewPCG(seed, 1))
		var log []string
		for range steps {
			name, do := operation(rnd, dir)
			log = append(log, name)
			var said []string
			for _, r := range hosts {
				said = append(said, do(t, r))
			}
			if said[0] != said[1] {
				t.Fatalf("after\n%s\nthe simulated host says %q, the shell %q", strings.Join(log, "\n"), said[0], said[1])
			}
		}
		want := onDisk(t, dir)
		if got := simulated(t, hosts[0], dir, ""); got != want {
			t.Fatalf("after\n%s\nthe simulated host holds\n%s\nthe folder\n%s", strings.Join(log, "\n"), got, want)
		}
	})
}

// operation chooses one thing to do among few names, so that they meet. A link
// is always named l and no target is, so that links make no circles.
func operation(rnd *rand.Rand, dir string) (string, func(*testing.T, *runner.Runner) string) {
	pick := func(names ...string) string {
		p := names[rnd.IntN(len(names))]
		for range rnd.IntN(3) {
			p += "/" + names[rnd.IntN(len(names))]
		}
		return p
	}
	p, q := pick("a", "b", ".h", "l"), pick("a", "b", ".h", "l")
	if (path.Base(p) == "l") != (path.Base(q) == "l") {
		p, q = p+"/l", q+"/l"
	}
	at, to := dir+"/"+p, dir+"/"+q
	mode := []fs.FileMode{0o644, 0o600, 0o755}[rnd.IntN(3)]
	text := strings.Repeat("x", rnd.IntN(4))
	switch rnd.IntN(12) {
	case 0, 1:
		return fmt.Sprintf("write %s %q", p, text), func(t *testing.T, r *runner.Runner) string {
			return kind(r.WriteFile(t.Context(), at, []byte(text), runner.Attr{Mode: mode}))
		}
	case 2, 3:
		return "mkdir " + p, func(t *testing.T, r *runner.Runner) string {
			made, err := r.Mkdir(t.Context(), at, runner.Attr{Mode: mode | 0o700})
			return fmt.Sprint(made, kind(err))
		}
	case 4:
		return "remove " + p, func(t *testing.T, r *runner.Runner) string { return kind(r.Remove(t.Context(), at)) }
	case 5:
		return "rmdir " + p, func(t *testing.T, r *runner.Runner) string { return kind(r.RemoveDir(t.Context(), at)) }
	case 6:
		return "remove all " + p, func(t *testing.T, r *runner.Runner) string { return kind(r.RemoveAll(t.Context(), at)) }
	case 7:
		target := pick("a", "b", ".h")
		if rnd.IntN(2) == 0 {
			target = dir + "/" + target
		}
		name := path.Join(path.Dir(p), "l")
		return fmt.Sprintf("link %s -> %s", name, target), func(t *testing.T, r *runner.Runner) string {
			return kind(r.Link(t.Context(), target, dir+"/"+name))
		}
	case 8:
		return fmt.Sprintf("copy %s %s", p, q), func(t *testing.T, r *runner.Runner) string { return kind(r.Copy(t.Context(), at, to)) }
	case 9:
		return fmt.Sprintf("rename %s %s", p, q), func(t *testing.T, r *runner.Runner) string { return kind(r.Rename(t.Context(), at, to)) }
	case 10:
		return "read " + p, func(t *testing.T, r *runner.Runner) string {
			b, err := r.ReadFile(t.Context(), at)
			i, serr := r.Stat(t.Context(), at)
			return fmt.Sprint(string(b), kind(err), i.Mode, i.Target, kind(serr))
		}
	}
	return fmt.Sprintf("attr %s %s", p, mode), func(t *testing.T, r *runner.Runner) string {
		return kind(r.SetAttr(t.Context(), at, runner.Attr{Mode: mode | 0o700}))
	}
}

// kind gives what a caller can tell an error by.
func kind(err error) string {
	var failed *runner.CmdError
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	case errors.Is(err, runner.ErrNotEmpty):
		return "not empty"
	case errors.As(err, &failed):
		return "refused"
	}
	return err.Error()
}

// onDisk lists a folder: names, modes, contents.
func onDisk(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(p, dir)
		switch {
		case st.Mode().IsRegular():
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s %s %q\n", rel, st.Mode(), text)
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "%s -> %s\n", rel, target)
		default:
			fmt.Fprintf(&b, "%s %s\n", rel, st.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// simulated lists the same folder of a host.
func simulated(t *testing.T, r *runner.Runner, dir, rel string) string {
	t.Helper()
	infos, err := r.List(t.Context(), dir+rel)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, i := range infos {
		p := rel + "/" + i.Name
		switch {
		case i.IsLink():
			fmt.Fprintf(&b, "%s -> %s\n", p, i.Target)
		case i.IsDir():
			fmt.Fprintf(&b, "%s %s\n%s", p, i.Mode, simulated(t, r, dir, p))
		default:
			text, err := r.ReadFile(t.Context(), dir+p)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s %q\n", p, i.Mode, text)
		}
	}
	return b.String()
}
