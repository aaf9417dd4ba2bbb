package main

import (
	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/plan"
)

// batchFlag is the number of workers that a rolling change works on in parallel: "3",
// or "10%" of them.
type batchFlag struct{ plan.Batch }

func (b *batchFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(b, "batch", "number or percentage of workers in parallel; masters and etcd members are done one at a time (default 1)")
}

// Type returns the placeholder of the value in the help.
func (*batchFlag) Type() string { return "N|P%" }

// Set parses a value.
func (b *batchFlag) Set(text string) (err error) {
	b.Batch, err = plan.ParseBatch(text)
	return err
}
