package lab

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

// Option is something that Start is told of a lab.
type Option func(*Options)

// WithRoots gives the hosts' root file systems, see Options.Roots.
func WithRoots(roots ...string) Option { return func(o *Options) { o.Roots = roots } }

// WithDisks gives the hosts disks of a size, see Options.DiskSize.
func WithDisks(bytes int64) Option { return func(o *Options) { o.DiskSize = bytes } }

// At gives the hosts addresses, see Options.Addresses.
func At(addresses ...string) Option { return func(o *Options) { o.Addresses = addresses } }

// Named gives the lab a name that does not follow from the test's: one that another
// test resumes it by.
func Named(name string) Option { return func(o *Options) { o.Name = name } }

// Alone has the machine to itself, see Options.Alone.
func Alone() Option { return func(o *Options) { o.Alone = true } }

// Start brings up a lab of n hosts for one test, named after it, and takes it
// down when the test ends. Where no lab can go up the test is skipped, with the
// reason. What tried to leave the lab fails the test, unless it called
// AllowEgress on the lab.
func Start(t *testing.T, n int, with ...Option) *Lab {
	t.Helper()
	return started(t, with, func(o Options) (*Lab, error) {
		o.Hosts = n
		return Up(t.Context(), o)
	})
}

// StartFrom is Start of a lab from a checkpoint that was kept, see Resume.
func StartFrom(t *testing.T, name string, with ...Option) *Lab {
	t.Helper()
	return started(t, with, func(o Options) (*Lab, error) { return Resume(t.Context(), o, name) })
}

func started(t *testing.T, with []Option, up func(Options) (*Lab, error)) *Lab {
	t.Helper()
	o := Options{Name: nameOf(t.Name()), Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, set := range with {
		set(&o)
	}
	if err := o.possible(); err != nil {
		t.Skip(err)
	}
	if testing.Short() {
		t.Skip("a lab takes longer than a short run has")
	}
	l, err := up(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.checkEgress(t)
		if err := l.Down(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// Share keeps tests that have the machine alone waiting until this one has ended: for a
// lab that another process brings up.
func Share(t *testing.T) {
	t.Helper()
	free, err := hold(t.Context(), machineLock, &Options{Name: t.Name(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
}

// AllowEgress says that a test means hosts to try to leave the lab.
func (l *Lab) AllowEgress() { l.egressMeant = true }

func (l *Lab) checkEgress(t *testing.T) {
	t.Helper()
	if l.egressMeant {
		return
	}
	all, err := l.Egress(context.Background()) // the test's own context has ended
	if err != nil {
		t.Error(err)
	}
	for _, a := range Left(all) {
		t.Errorf("something tried to leave the lab: %s", a)
	}
}

// nameOf makes a lab's name of a test's: the letters that it ends with.
func nameOf(test string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(test))
	return "t" + name[max(0, len(name)-11):]
}
