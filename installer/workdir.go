package installer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mensylisir/kubexm/manifest/durable"
)

// Workdir is a cluster's folder on this machine: .kubexm/<cluster>.
type Workdir struct{ Dir string }

// NewWorkdir gives the folder of a cluster below base, making it where there is
// none. What lies in it is secret: keys, tokens, kubeconfigs; see CheckWorkdir.
func NewWorkdir(base, cluster string) (Workdir, error) {
	w := Workdir{Dir: filepath.Join(base, ".kubexm", cluster)}
	if err := CheckWorkdir(base, cluster); err != nil {
		return w, err
	}
	for _, sub := range []string{"", "certs", "hosts", "applied", "runs"} {
		if err := durable.MkdirAll(filepath.Join(w.Dir, sub), 0o700); err != nil {
			return w, fmt.Errorf("workdir: %w", err)
		}
	}
	return w, nil
}

// KnownHosts is the cluster's own file of host keys.
func (w Workdir) KnownHosts() string { return filepath.Join(w.Dir, "known_hosts") }

// Certs is where the keys of one part of the cluster lie.
func (w Workdir) Certs(part string) string { return filepath.Join(w.Dir, "certs", part) }

// Audit is the log of all that was done to the cluster's hosts.
func (w Workdir) Audit() string { return filepath.Join(w.Dir, "audit.jsonl") }

// Receipt is what a run that ended well says of itself.
func (w Workdir) Receipt(name string) string { return filepath.Join(w.Dir, "receipts", name+".json") }

// Run is the journal of a run that begins at t.
func (w Workdir) Run(t time.Time) string {
	return filepath.Join(w.Dir, "runs", t.UTC().Format(runTime)+".jsonl")
}

// runTime is when a run began, as its journal's name says it.
const runTime = "2006-01-02T15-04-05"

// Applied is where the last successful run keeps a document.
func (w Workdir) Applied(name string) string { return filepath.Join(w.Dir, "applied", name) }

// holderWait is how long a run that is refused waits for the other one to say who it
// is: that one writes it down once it has the lock.
const holderWait = time.Second

// Lock keeps other runs on this machine away from the cluster until the
// returned function is called.
func (w Workdir) Lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(w.Dir, "lock")
	note := path + ".holder"
	l := flock.New(path, flock.SetPermissions(0o600))
	own := holder(time.Now())
	for until := time.Now().Add(holderWait); ; {
		ok, err := l.TryLock()
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if ok {
			break
		}
		who, err := os.ReadFile(note)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if len(who) > 0 || time.Now().After(until) {
			return nil, &BusyError{At: w.Dir, Holder: strings.TrimSpace(string(who))}
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if err := os.WriteFile(note, []byte(own+"\n"), 0o600); err != nil {
		return nil, errors.Join(err, l.Unlock())
	}
	return func() {
		_ = os.Remove(note)
		_ = l.Unlock() // the process ends soon, and the lock with it
	}, nil
}
