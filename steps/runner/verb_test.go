package runner_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/runner/runnertest"
)

// wordsOnly passes on commands without their verb, as SSH does.
type wordsOnly struct {
	*conntest.Sim
	t    *testing.T
	seen *sync.Map
}

func (w wordsOnly) Exec(ctx context.Context, c connector.Cmd) (connector.Result, error) {
	if got := runner.VerbOf(c.Argv); got != c.Verb {
		w.t.Errorf("%q is %s, and meant is %s", c.Argv, got, c.Verb)
	}
	w.seen.Store(c.Verb, true)
	c.Verb = runner.VerbOf(c.Argv)
	return w.Sim.Exec(ctx, c)
}

// TestAVerbIsKnownByTheWords: the suite passes if the verbs are determined from argv alone.
// It covers every verb except those that would shut down the machine.
func TestAVerbIsKnownByTheWords(t *testing.T) {
	var seen sync.Map
	t.Run("suite", func(t *testing.T) {
		runnertest.Suite(t, func(t *testing.T) runnertest.Host {
			sim := conntest.New(t)
			sim.AddDir("/srv/suite", 0o755)
			return runnertest.Host{Conn: wordsOnly{sim, t, &seen}, Sim: sim, Dir: "/srv/suite", Root: true}
		})
	})
	sim := conntest.New(t)
	sim.AddUnit("some.service", "[Service]\n[Install]\nWantedBy=multi-user.target\n", false, false)
	r := runner.New(wordsOnly{sim, t, &seen}, runner.Options{})
	for _, do := range []func(context.Context, string) error{
		r.UnitReload, r.UnitMask, r.UnitUnmask, r.UnitResetFailed, r.UnitEnable, r.UnitDisable, r.UnitRestart, r.UnitStop, r.UnitStart,
	} {
		if err := do(t.Context(), "some.service"); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Journal(t.Context(), "some.service", 3); err != nil {
		t.Error(err)
	}
	if err := r.SetHostname(t.Context(), "other"); err != nil {
		t.Error(err)
	}
	sim.AddPackage("socat", "1.7")
	if _, err := r.Packages(t.Context(), "deb"); err != nil {
		t.Error(err)
	}
	if _, _, err := r.FreePackages(t.Context(), "deb", []string{"socat"}); err != nil {
		t.Error(err)
	}
	if err := r.Reboot(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	for _, other := range [][]string{{"systemctl", "is-active", "x"}, {"/bin/sh", "-c", "exit 1"}, {"rm", "x"}, {"kubeadm", "init"}} {
		if got := runner.VerbOf(other); got != connector.VerbExec {
			t.Errorf("%q is %s", other, got)
		}
	}
	var missed []string
	for _, verb := range []string{
		connector.VerbRead, connector.VerbWrite, connector.VerbPut, connector.VerbDigest, connector.VerbStat,
		connector.VerbList, connector.VerbLines, connector.VerbCompare, connector.VerbMkdir, connector.VerbAttr, connector.VerbRemove, connector.VerbRmdir,
		connector.VerbPurge, connector.VerbLink, connector.VerbCopy, connector.VerbRename, connector.VerbSysctl, connector.VerbSysctlW,
		connector.VerbModule, connector.VerbModprobe, connector.VerbRmmod, connector.VerbUnitShow, connector.VerbUnitStart,
		connector.VerbUnitStop, connector.VerbUnitRestart, connector.VerbUnitReload, connector.VerbUnitEnable, connector.VerbUnitDisable,
		connector.VerbUnitMask, connector.VerbUnitUnmask, connector.VerbUnitReset, connector.VerbUnitScan, connector.VerbUnitJournal,
		connector.VerbJobStart, connector.VerbJobPoll, connector.VerbJobClear, connector.VerbUser, connector.VerbUserAdd,
		connector.VerbUserDel, connector.VerbGroup, connector.VerbGroupAdd, connector.VerbGroupDel, connector.VerbHostname,
		connector.VerbHostnameW, connector.VerbBootID, connector.VerbFacts, connector.VerbHasProgram, connector.VerbLease,
		connector.VerbPackages, connector.VerbPackagesFree, connector.VerbReboot,
		connector.VerbSwaps, connector.VerbSwapOff, connector.VerbSwapOn, connector.VerbSELinux, connector.VerbSELinuxW,
		connector.VerbUFW, connector.VerbUFWOff, connector.VerbUFWOn,
	} {
		if _, ok := seen.Load(verb); !ok {
			missed = append(missed, verb)
		}
	}
	if len(missed) > 0 {
		t.Errorf("never tried: %s", strings.Join(missed, ", "))
	}
}
