package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/installer/plan"
)

// batchFlag is how many hosts a rolling change visits at once: "3", or "10%" of them.
type batchFlag struct{ plan.Batch }

func (b *batchFlag) add(cmd *cobra.Command) {
	cmd.Flags().Var(b, "batch", "how many workers at once, a number or a percentage; masters and members of etcd go one at a time (default 1)")
}

// String is the value as it is typed.
func (b *batchFlag) String() string {
	switch {
	case b.Percent > 0:
		return strconv.Itoa(b.Percent) + "%"
	case b.Size > 0:
		return strconv.Itoa(b.Size)
	}
	return ""
}

// Type is what the help calls it.
func (*batchFlag) Type() string { return "N|P%" }

// Set reads a value.
func (b *batchFlag) Set(text string) error {
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.Atoi(number)
	switch {
	case err != nil || n < 1, percent && n > 100:
		return fmt.Errorf("%q is neither a number of hosts, such as 3, nor a percentage from 1%% to 100%%", text)
	case percent:
		b.Batch = plan.Batch{Percent: n}
	default:
		b.Batch = plan.Batch{Size: n}
	}
	return nil
}
