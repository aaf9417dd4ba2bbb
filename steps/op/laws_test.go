package op_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

func text(s string) func(context.Context, *steps.Host) ([]byte, error) {
	return func(context.Context, *steps.Host) ([]byte, error) { return []byte(s), nil }
}

const (
	unitText  = "[Service]\nExecStart=/usr/local/bin/x\n[Install]\nWantedBy=multi-user.target\n"
	otherUnit = "[Service]\nExecStart=/usr/bin/y\n[Install]\nWantedBy=multi-user.target\n"
)

// own adds an existing unit with the name of kubexm's unit.
func own(text string, active, enabled bool) func(*conntest.Sim) {
	return func(s *conntest.Sim) {
		s.AddUnit("x.service", "", false, false)
		s.RemoveAll("/usr/lib/systemd/system/x.service")
		s.AddFile("/etc/systemd/system/x.service", text, 0o600)
		ctl(s, active, enabled)
	}
}

// ctl does what systemctl does, without the methods under test.
func ctl(s *conntest.Sim, active, enabled bool) {
	r := runner.New(s, runner.Options{})
	ctx := context.Background()
	err := r.DaemonReload(ctx)
	if err == nil && enabled {
		err = r.UnitEnable(ctx, "x.service")
	}
	if err == nil && active {
		err = r.UnitStart(ctx, "x.service")
	}
	if err != nil {
		panic(err)
	}
	s.ForgetCalls()
}

func TestEnsureAndRemoveKeepTheirLaws(t *testing.T) {
	blob := op.Blob{Path: "/usr/local/bin/x", Need: manifest.Need{Kind: manifest.Binary, Name: "x"}}
	blobs := []op.Resource{blob}
	for _, name := range []string{"y", "z"} {
		blobs = append(blobs, op.Blob{Path: "/usr/local/bin/" + name, Need: manifest.Need{Kind: manifest.Binary, Name: name}})
	}
	service := []op.Resource{
		blob, op.Dir{Path: "/etc/x", Own: true}, op.Text("/etc/x/x.conf", text("a\n")),
		op.Text("/etc/systemd/system/x.service", text(unitText)), op.Unit{Name: "x.service"},
		op.Dir{Path: "/etc/x/hosts.d", Own: true}, op.Text("/etc/x/hosts.d/after", text("b\n")),
	}
	block := op.Block{Path: "/etc/hosts", Body: text("192.0.2.1 a\n192.0.2.2 b\n")}
	top := op.Block{Path: "/etc/hosts", Body: text("192.0.2.1 a\n"), Top: true}
	for name, c := range map[string]struct {
		before func(*conntest.Sim)
		rs     []op.Resource
	}{
		"file":                        {nil, []op.Resource{op.Text("/etc/x.conf", text("a\n"))}},
		"file, secret":                {nil, []op.Resource{op.File{Path: "/etc/x.key", Attr: runner.Attr{Mode: 0o600}, Secret: true, Body: text("a\n")}}},
		"file over another":           {func(s *conntest.Sim) { s.AddFile("/etc/x.conf", "theirs\n", 0o640) }, []op.Resource{op.Text("/etc/x.conf", text("a\n"))}},
		"file of another mode":        {func(s *conntest.Sim) { s.AddFile("/etc/x.conf", "a\n", 0o600) }, []op.Resource{op.Text("/etc/x.conf", text("a\n"))}},
		"file over a link":            {func(s *conntest.Sim) { s.AddFile("/etc/y", "a\n", 0o644); s.AddLink("/etc/x.conf", "y") }, []op.Resource{op.Text("/etc/x.conf", text("a\n"))}},
		"file over a link to nothing": {func(s *conntest.Sim) { s.AddLink("/etc/x.conf", "nothing") }, []op.Resource{op.Text("/etc/x.conf", text("a\n"))}},
		"file that is empty":          {nil, []op.Resource{op.Text("/etc/x.conf", text(""))}},
		"blob":                        {nil, []op.Resource{blob}},
		"blob over another":           {func(s *conntest.Sim) { s.AddFile("/usr/local/bin/x", "theirs", 0o711) }, []op.Resource{blob}},
		"blob of another mode":        {func(s *conntest.Sim) { s.AddFile("/usr/local/bin/x", "binary x for linux/amd64\n", 0o644) }, []op.Resource{blob}},
		"blobs":                       {nil, blobs},
		"blobs, one there, one over another": {func(s *conntest.Sim) {
			s.AddFile("/usr/local/bin/x", "binary x for linux/amd64\n", 0o755)
			s.AddFile("/usr/local/bin/z", "theirs", 0o700)
		}, blobs},
		"folder":                        {nil, []op.Resource{op.Dir{Path: "/etc/x", Attr: runner.Attr{Mode: 0o700}}}},
		"folder with those above":       {nil, []op.Resource{op.Dir{Path: "/data/a/b", Own: true}, op.Text("/data/a/b/c", text("a\n"))}},
		"folder that was there":         {func(s *conntest.Sim) { s.AddDir("/etc/x", 0o750); s.AddFile("/etc/x/theirs", "t", 0o644) }, []op.Resource{op.Dir{Path: "/etc/x", Own: true}, op.Text("/etc/x/ours", text("a\n"))}},
		"block":                         {nil, []op.Resource{block}},
		"block without a newline":       {func(s *conntest.Sim) { s.AddFile("/etc/hosts", "127.0.0.1 localhost", 0o664) }, []op.Resource{block}},
		"block in no file":              {func(s *conntest.Sim) { s.RemoveAll("/etc/hosts") }, []op.Resource{block}},
		"block in an empty file":        {func(s *conntest.Sim) { s.AddFile("/etc/hosts", "", 0o644) }, []op.Resource{block}},
		"block at the top":              {func(s *conntest.Sim) { s.AddFile("/etc/hosts", "127.0.0.1 localhost", 0o664) }, []op.Resource{top}},
		"block at the top of no file":   {func(s *conntest.Sim) { s.RemoveAll("/etc/hosts") }, []op.Resource{top}},
		"block behind a link":           {func(s *conntest.Sim) { s.AddFile("/run/h/osts", "a", 0o600); s.AddLink("/etc/hosts", "../run/h/osts") }, []op.Resource{block}},
		"service":                       {nil, service},
		"service, others' off":          {own(otherUnit, false, false), service},
		"service, others' enabled":      {own(otherUnit, false, true), service},
		"service, others' active":       {own(otherUnit, true, false), service},
		"service, others' on":           {own(otherUnit, true, true), service},
		"service, the same file, on":    {own(unitText, true, true), service},
		"service of the distribution's": {func(s *conntest.Sim) { s.AddUnit("x.service", otherUnit, true, true) }, service},
		"service, others' program": {func(s *conntest.Sim) {
			own(unitText, true, true)(s)
			s.AddFile("/usr/local/bin/x", "theirs", 0o755)
		}, service},
		"idle unit":  {nil, []op.Resource{op.Text("/etc/systemd/system/x.service", text(unitText)), op.Unit{Name: "x.service", Idle: true}}},
		"unit alone": {func(s *conntest.Sim) { s.AddUnit("x.service", otherUnit, false, false) }, []op.Resource{op.Unit{Name: "x.service"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			every := 1
			if strings.HasPrefix(name, "service,") { // long, and much alike
				every = 7
			}
			steptest.Ensure(t, steptest.Case{Before: c.before, Every: every}, op.Ensure("x.install", c.rs), op.Remove("x.uninstall", c.rs))
		})
	}
}
