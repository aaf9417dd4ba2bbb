package packages

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// NotCarried is a host whose operating system's packages the bundle does not hold.
func NotCarried(h *steps.Host, systems []string) error {
	return steps.Advise(
		fmt.Errorf("the bundle has no packages of %s, only of %s", SystemOf(h.Facts), strings.Join(systems, ", ")),
		"name it under spec.bundle.operatingSystems, and build the bundle again",
	)
}

// Unsupported is a host whose tool for packages kubexm cannot work with; nil
// where it can.
func Unsupported(h *steps.Host) error {
	if h.Facts.PackageTool == "zypper" {
		return steps.Advise(errors.New("packages cannot be installed with zypper"), "take spec.bundle.operatingSystems out of the config, and install the packages on %s yourself", h.Name)
	}
	return nil
}

// Broken is a host whose packages are in a state that kubexm does not force.
func Broken(h *steps.Host, format string, trouble []string) error {
	advice := "run `dpkg --configure -a` on %s, and then `apt-get -f install`"
	if format == manifest.RPM {
		advice = "run `rpm --rebuilddb` on %s, and look what it says"
	}
	return steps.Advise(fmt.Errorf("%w: %s", runner.ErrPackagesBroken, strings.Join(trouble, "; ")), advice, h.Name)
}

// explain adds what a person can do about an installation that failed.
func (w *work) explain(err error) error {
	switch {
	case errors.Is(err, runner.ErrPackagesLocked):
		return steps.Advise(err, "wait until it has ended on %s, or end it, and run again", w.h.Name)
	case errors.Is(err, runner.ErrPackagesBroken):
		return steps.Advise(err, "run `dpkg --configure -a` on %s, and then `apt-get -f install`", w.h.Name)
	case errors.Is(err, runner.ErrPackagesRemove):
		return steps.Advise(err, "remove it on %s yourself if nobody needs it", w.h.Name)
	}
	return err
}
