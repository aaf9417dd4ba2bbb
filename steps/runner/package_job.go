package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// The exit statuses of the jobs about packages.
const (
	exitLocked  = 75
	exitBroken  = 76
	exitRemoves = 77
	exitForeign = 79
)

// Why packages are neither installed nor removed. The *CmdError beside it has the details.
var (
	ErrPackagesLocked  = errors.New("something else changes packages")
	ErrPackagesBroken  = errors.New("the host's packages are in a broken state")
	ErrPackagesRemove  = errors.New("other packages would have to go")
	ErrPackagesForeign = errors.New("the repository is not the one of the bundle")
)

// PackageInstall is an installation of packages from one repository and no other.
type PackageInstall struct {
	Job    string // its name, see Job.Name
	Format string // manifest.Deb or manifest.RPM
	// Folder is for what the host's own tool needs meanwhile: its configuration,
	// lists, downloads. It is gone when the job ends.
	Folder string
	Base   string // the repository's address as seen from the host: http://… or file:///…
	SHA256 string // of the file that vouches for all others: Release, repodata/repomd.xml
	Names  []string
	Wait   time.Duration // how long a lock of others is waited for; whole seconds
}

// InstallPackages installs packages with the host's own tool, as a Job. That asks
// nothing, takes nothing from any other repository and removes nothing. Of the
// host's own settings of apt those about sources, priorities and proxies do not
// count, nor programs that look at what is about to be installed; dnf's and yum's
// do not count at all. It gives the end of what the tool said.
//
// The errors are ErrPackages…, joined with the *CmdError.
func (r *Runner) InstallPackages(ctx context.Context, p PackageInstall) (log []byte, err error) {
	if err := errors.Join(checkPath(p.Folder), checkPackages(p.Format, p.Names)); err != nil {
		return nil, err
	}
	return r.packageJob(ctx, p.Job, connector.VerbPackagesInstall, scriptPackagesInstall,
		append([]string{p.Format, p.Folder, p.Base, p.SHA256, seconds(p.Wait)}, p.Names...)...)
}

// PackageRemoval is a removal of packages, of exactly those and no others.
type PackageRemoval struct {
	Job    string
	Format string
	// Purge and Remove are IDs. Of what is in Purge nothing stays, of Remove its
	// configuration; rpm knows no difference.
	Purge, Remove []string
	Wait          time.Duration
}

// RemovePackages removes packages as a Job.
func (r *Runner) RemovePackages(ctx context.Context, p PackageRemoval) (log []byte, err error) {
	ids := append(append([]string{}, p.Purge...), p.Remove...)
	if err := checkPackages(p.Format, ids); err != nil || len(ids) == 0 {
		return nil, err
	}
	return r.packageJob(ctx, p.Job, connector.VerbPackagesRemove, scriptPackagesRemove,
		append([]string{p.Format, seconds(p.Wait), strconv.Itoa(len(p.Purge))}, ids...)...)
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// packageJob runs a script as a job. Its first argument is the verb: that is how a
// simulated host knows it.
func (r *Runner) packageJob(ctx context.Context, name, verb, script string, args ...string) ([]byte, error) {
	log, err := r.RunJob(ctx, Job{Name: name, Script: "shift\n" + script, Argv: append([]string{verb}, args...)})
	var cmd *CmdError
	if !errors.As(err, &cmd) {
		return log, err
	}
	cmd.Verb, cmd.Argv = verb, nil // they say nothing to anybody
	for exit, why := range map[int]error{
		exitLocked: ErrPackagesLocked, exitBroken: ErrPackagesBroken, exitRemoves: ErrPackagesRemove, exitForeign: ErrPackagesForeign,
	} {
		if cmd.Exit == exit {
			return log, fmt.Errorf("%w: %w", why, err)
		}
	}
	return log, err
}
