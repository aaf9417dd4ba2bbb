package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// The exit statuses of the package jobs.
const (
	exitLocked  = 75
	exitBroken  = 76
	exitRemoves = 77
	exitForeign = 79
)

// The reasons why packages were not installed or removed. The joined *CmdError has the
// details.
var (
	ErrPackagesLocked  = errors.New("another program is changing packages")
	ErrPackagesBroken  = errors.New("the host's packages are in a broken state")
	ErrPackagesRemove  = errors.New("other packages would be removed")
	ErrPackagesForeign = errors.New("the repository does not match the bundle")
)

// PackageInstall describes an installation of packages from exactly one repository.
type PackageInstall struct {
	Job    string // see Job.Name
	Format string // manifest.Deb or manifest.RPM
	// Folder is the working folder of the package tool: its configuration, lists and
	// downloads. The job removes it at its end.
	Folder string
	Base   string // the repository's URL as seen from the host: http://… or file:///…
	SHA256 string // of the metadata file with the digests of all others: Release, repodata/repomd.xml
	Names  []string
	Wait   time.Duration // how long to wait for the package lock; whole seconds
}

// InstallPackages installs packages with the host's package tool, as a Job. The tool runs
// without prompts, uses no other repository and removes no packages. It ignores the
// host's apt settings for sources, priorities, proxies and hooks before an installation,
// and all settings of dnf and yum. InstallPackages returns the end of the tool's output.
//
// The errors are ErrPackages…, joined with the *CmdError.
func (r *Runner) InstallPackages(ctx context.Context, p PackageInstall) (log []byte, err error) {
	if err := errors.Join(checkPath(p.Folder), checkPackages(p.Format, p.Names)); err != nil {
		return nil, err
	}
	return r.packageJob(ctx, p.Job, connector.VerbPackagesInstall, scriptPackagesInstall,
		append([]string{p.Format, p.Folder, p.Base, p.SHA256, seconds(p.Wait)}, p.Names...)...)
}

// PackageRemoval describes a removal of exactly the listed packages.
type PackageRemoval struct {
	Job    string
	Format string
	// Purge and Remove are IDs. Packages in Purge are removed with their configuration
	// files; those of Remove keep them. rpm makes no difference.
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

// packageJob runs a script as a job. Its first argument is the verb, by which a simulated
// host identifies it.
func (r *Runner) packageJob(ctx context.Context, name, verb, script string, args ...string) ([]byte, error) {
	log, err := r.RunJob(ctx, Job{Name: name, Script: "shift\n" + script, Argv: append([]string{verb}, args...)})
	var cmd *CmdError
	if !errors.As(err, &cmd) {
		return log, err
	}
	cmd.Verb, cmd.Argv = verb, nil // the script's arguments would not help the reader
	for exit, why := range map[int]error{
		exitLocked: ErrPackagesLocked, exitBroken: ErrPackagesBroken, exitRemoves: ErrPackagesRemove, exitForeign: ErrPackagesForeign,
	} {
		if cmd.Exit == exit {
			return log, fmt.Errorf("%w: %w", why, err)
		}
	}
	return log, err
}
