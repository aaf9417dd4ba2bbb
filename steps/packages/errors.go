package packages

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// NotInBundle returns the error for a host whose operating system has no packages in the
// bundle.
func NotInBundle(h *steps.Host, systems []string) error {
	return steps.Advise(
		fmt.Errorf("the bundle has no packages of %s, only of %s", SystemOf(h.Facts), strings.Join(systems, ", ")),
		"add it to spec.bundle.operatingSystems, and build the bundle again",
	)
}

// Unsupported returns an error if kubexm does not support the host's package tool, and nil
// otherwise.
func Unsupported(h *steps.Host) error {
	if h.Facts.PackageTool == "zypper" {
		return steps.Advise(errors.New("packages cannot be installed with zypper"), "remove spec.bundle.operatingSystems from the config, and install the packages on %s yourself", h.Name)
	}
	return nil
}

// Broken returns the error for a host whose package database has problems, which kubexm
// does not repair.
func Broken(h *steps.Host, format string, trouble []string) error {
	advice := "run `dpkg --configure -a` on %s, and then `apt-get -f install`"
	if format == manifest.RPM {
		advice = "run `rpm --rebuilddb` on %s, and check its output"
	}
	return steps.Advise(fmt.Errorf("%w: %s", runner.ErrPackagesBroken, strings.Join(trouble, "; ")), advice, h.Name)
}

// explain adds advice to the error of a failed installation.
func (w *work) explain(err error) error {
	switch {
	case errors.Is(err, runner.ErrPackagesLocked):
		return steps.Advise(err, "wait until that program has ended on %s, or stop it, then run the same command again", w.h.Name)
	case errors.Is(err, runner.ErrPackagesBroken):
		return steps.Advise(err, "run `dpkg --configure -a` on %s, and then `apt-get -f install`", w.h.Name)
	case errors.Is(err, runner.ErrPackagesRemove):
		return steps.Advise(err, "remove them on %s yourself if they are not needed", w.h.Name)
	}
	return err
}
