package main

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/plan"
	"github.com/mensylisir/kubexm/steps/cluster"
)

// drainFlags are the flags of commands that drain nodes.
type drainFlags struct{ plan.Drain }

// add adds the flags; --drain only for a command that drains nodes on request.
func (f *drainFlags) add(cmd *cobra.Command, use plan.DrainUse) {
	if use == plan.DrainOnRequest {
		cmd.Flags().BoolVar(&f.Requested, "drain", false, "drain each node before its parts restart, and make it schedulable again afterwards")
	}
	cmd.Flags().DurationVar(&f.Timeout, "drain-timeout", cluster.DefaultDrainTimeout, "how long the evictions of one node may take")
	cmd.Flags().BoolVar(&f.Force, "force-drain", false, "delete pods that are left after --drain-timeout, and pods without a controller")
}

// check checks the values of the flags.
func (f *drainFlags) check(cmd *cobra.Command, use plan.DrainUse) error {
	given := cmd.Flags().Changed("drain-timeout") || f.Force
	switch {
	case use == plan.DrainOnRequest && given && !f.Requested:
		return usageError(cmd, errors.New("--drain-timeout and --force-drain need --drain"))
	case use != plan.NoDrain && f.Timeout < time.Second:
		return usageError(cmd, errors.New("--drain-timeout must be at least 1s"))
	}
	return nil
}
