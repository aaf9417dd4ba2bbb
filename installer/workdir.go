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

// NewWorkdir returns the folder of a cluster below base, and creates it if necessary. Its
// content is secret: keys, tokens, kubeconfigs; see CheckWorkdir.
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

// KnownHosts is the cluster's own known_hosts file.
func (w Workdir) KnownHosts() string { return filepath.Join(w.Dir, "known_hosts") }

// Certs is the folder for the keys of one component of the cluster.
func (w Workdir) Certs(part string) string { return filepath.Join(w.Dir, "certs", part) }

// Audit is the log of everything that was done to the cluster's hosts.
func (w Workdir) Audit() string { return filepath.Join(w.Dir, "audit.jsonl") }

// Receipt is the statement of a successful run.
func (w Workdir) Receipt(name string) string { return filepath.Join(w.Dir, "receipts", name+".json") }

// Run is the journal of a run that starts at t.
func (w Workdir) Run(t time.Time) string {
	return filepath.Join(w.Dir, "runs", t.UTC().Format(runTime)+".jsonl")
}

// runTime is the format of the start time in a journal's name.
const runTime = "2006-01-02T15-04-05"

// Applied is the path of a document that the last successful run stored.
func (w Workdir) Applied(name string) string { return filepath.Join(w.Dir, "applied", name) }

// holderWait is how long a refused run waits for the description of the other run, which is
// written after the lock is taken.
const holderWait = time.Second

// Lock keeps other runs on this machine away from the cluster until the returned function is
// called.
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
