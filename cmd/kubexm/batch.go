package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/plan"
)

// batchFlag is how many hosts a rolling change visits at once: "3", or "10%" of them.
type batchFlag struct{ plan.Batch }

func (b *batchFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(b, "batch", "how many workers at once, a number or a percentage; masters and members of etcd go one at a time (default 1)")
}

// Type is what the help calls it.
func (*batchFlag) Type() string { return "N|P%" }

// Set reads a value.
func (b *batchFlag) Set(text string) (err error) {
	b.Batch, err = plan.ParseBatch(text)
	return err
}
