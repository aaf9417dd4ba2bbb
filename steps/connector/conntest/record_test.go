package conntest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/local"
	"github.com/mensylisir/kubexm/steps/runner"
)

// session does a few things that give all kinds of output.
func session(t *testing.T, conn connector.Conn, dir string) string {
	t.Helper()
	r := runner.New(conn, runner.Options{})
	var said strings.Builder
	note := func(what any, err error) {
		said.WriteString(strings.TrimSpace(strings.ReplaceAll(strings.Join([]string{toText(what), toText(err)}, "|"), dir, "DIR")) + "\n")
	}
	note(nil, r.WriteFile(t.Context(), dir+"/file", []byte("-- --\n-- x --\r\nbinary \x00\xff without end"), runner.Attr{}))
	b, err := r.ReadFile(t.Context(), dir+"/file")
	note(string(b), err)
	_, err = r.ReadFile(t.Context(), dir+"/none")
	note(nil, err)
	out, err := r.Exec(t.Context(), "/bin/sh", "-c", "echo out; echo complaint >&2; exit 3")
	note(string(out), err)
	res, err := r.Run(t.Context(), runner.Cmd{Argv: []string{"cat"}, Stdin: strings.NewReader("given")})
	note(string(res.Stdout), err)
	return said.String()
}

func toText(v any) string {
	switch v := v.(type) {
	case error:
		return v.Error()
	case string:
		return v
	}
	return ""
}

func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	rec := conntest.Record(local.New(local.Config{}), nil)
	said := session(t, rec, dir)
	file := filepath.Join(t.TempDir(), "session.txtar")
	if err := rec.WriteFile(file); err != nil {
		t.Fatal(err)
	}
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	os.RemoveAll(dir) // the replay needs no host
	rep, err := conntest.Replay(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if again := session(t, rep, dir); again != said {
		t.Errorf("recorded:\n%s\nreplayed:\n%s", said, again)
	}
	if err := rep.Close(); err != nil {
		t.Error(err)
	}
}

func TestReplayIsStrict(t *testing.T) {
	dir := t.TempDir()
	rec := conntest.Record(local.New(local.Config{}), nil)
	session(t, rec, dir)
	// cat reads its input to the end: what a command leaves unread is read beside
	// it, so no two commands share a reader.
	one := func(input string) connector.Cmd {
		return connector.Cmd{Verb: connector.VerbExec, Argv: []string{"cat"}, Stdin: strings.NewReader(input)}
	}
	arc := conntest.Record(local.New(local.Config{}), nil)
	if _, err := arc.Exec(t.Context(), one("in")); err != nil {
		t.Fatal(err)
	}
	for name, cmds := range map[string][]connector.Cmd{
		"other argument": {{Verb: connector.VerbExec, Argv: []string{"cat", "-"}, Stdin: strings.NewReader("in")}},
		"other verb":     {{Verb: connector.VerbRead, Argv: one("").Argv, Stdin: strings.NewReader("in")}},
		"as root":        {{Verb: connector.VerbExec, Argv: one("").Argv, Sudo: true, Stdin: strings.NewReader("in")}},
		"other input":    {one("other")},
		"no input":       {{Verb: connector.VerbExec, Argv: one("").Argv}},
		"one too many":   {one("in"), one("in")},
		"one too few":    nil,
	} {
		var c complaints
		rep, err := conntest.ReplayArchive(&c, arc.Archive())
		if err != nil {
			t.Fatal(err)
		}
		for _, cmd := range cmds {
			_, _ = rep.Exec(t.Context(), cmd) // the complaint counts
		}
		err = rep.Close()
		if len(c) == 0 {
			t.Errorf("%s: nothing was said", name)
		}
		if (name == "one too few") != (err != nil && len(c) == 1) && name == "one too few" {
			t.Errorf("%s: Close gave %v", name, err)
		}
	}
	for _, bad := range []string{"-- x --\n", "-- 001 --\nnonsense\n", "-- 001.stdout --\nx\n", "-- 001 --\nverb x\n-- 001.other --\n", "-- 001 --\nexit x\n", "-- 001 --\nverb x\n-- 001.stdout.base64 --\n!!!\n"} {
		if _, err := conntest.ReplayArchive(t, []byte(bad)); err == nil {
			t.Errorf("%q was taken for a record", bad)
		}
	}
}

func TestRecordHoldsNoSecrets(t *testing.T) {
	rec := conntest.Record(local.New(local.Config{}), connector.NewRedactor("s3cret-known"))
	_, err := rec.Exec(t.Context(), connector.Cmd{
		Verb: connector.VerbExec, Argv: []string{"/bin/sh", "-c", `echo "$1" "$2"; cat >&2; exit 1`, "sh", "s3cret-known", "s3cret-given"},
		Stdin: strings.NewReader("s3cret-given\n"), Secrets: []string{"s3cret-given"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := rec.Archive(); bytes.Contains(a, []byte("s3cret")) || !bytes.Contains(a, []byte("*** ***")) {
		t.Errorf("the record holds secrets, or nothing:\n%s", a)
	}
}

// FuzzReplay: a record that can be read gives an error or a Replayer, and nothing else.
func FuzzReplay(f *testing.F) {
	rec := conntest.Record(conntest.New(nil), nil)
	for _, c := range []connector.Cmd{
		{Verb: connector.VerbHostname, Argv: []string{"x"}}, {Verb: "unknown", Argv: []string{"x"}}, {Verb: connector.VerbRead, Argv: []string{"/bin/sh", "-c", "s", "sh", "/etc/hosts"}},
	} {
		_, _ = rec.Exec(f.Context(), c) // an error is recorded too
	}
	f.Add(rec.Archive())
	f.Fuzz(func(t *testing.T, b []byte) {
		rep, err := conntest.ReplayArchive(nil, b)
		if err != nil {
			return
		}
		_, _ = rep.Exec(t.Context(), connector.Cmd{Argv: []string{"x"}}) // strict: most often an error
	})
}
