package node

import (
	"context"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Tables are the nftables tables that iptables creates whenever it is used. A removal
// deletes those that did not exist before and are empty; a table with any rule is
// preserved. Tables of legacy iptables remain until a reboot.
type Tables struct{ op.NoNeeds }

func (Tables) String() string { return "tables of the packet filter" }

// Want puts the existing tables on record.
func (t Tables) Want(ctx context.Context, h *steps.Host, _ bool) (*op.Change, error) {
	return op.RecordOnce(ctx, h, t, "note the tables of the packet filter", func() (string, error) {
		all, err := tables(ctx, h)
		return strings.Join(all, "\n"), err
	})
}

// Gone deletes the empty tables that did not exist before.
func (t Tables) Gone(ctx context.Context, h *steps.Host) (*op.Change, error) {
	return op.Restore(ctx, h, t, "remove empty tables of the packet filter", func(ctx context.Context, before string) error {
		all, err := tables(ctx, h)
		if err != nil {
			return err
		}
		for _, table := range all {
			if slices.Contains(strings.Split(before, "\n"), table) || !slices.Contains(iptables, table) {
				continue
			}
			words := strings.Fields(table)
			res, err := h.Run(ctx, runner.Cmd{Argv: append([]string{"nft", "list", "table"}, words...), OK: []int{1}})
			if err != nil {
				return err
			}
			if res.Exit != 0 || !emptyTable(string(res.Stdout)) {
				continue
			}
			if _, err := h.Run(ctx, runner.Cmd{Argv: append([]string{"nft", "delete", "table"}, words...), OK: []int{1}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// iptables are the tables that iptables-nft creates.
var iptables = []string{"ip filter", "ip nat", "ip mangle", "ip raw", "ip6 filter", "ip6 nat", "ip6 mangle", "ip6 raw"}

// tables returns all tables in the form "ip filter"; nil if there is no nft.
func tables(ctx context.Context, h *steps.Host) ([]string, error) {
	res, err := h.Run(ctx, runner.Cmd{Argv: []string{"nft", "list", "tables"}, OK: []int{1, 127}})
	if err != nil || res.Exit != 0 {
		return nil, err
	}
	var out []string
	for line := range strings.Lines(string(res.Stdout)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "table "); ok {
			out = append(out, name)
		}
	}
	return out, nil
}

// emptyTable reports whether a table, as nft lists it, has only base chains without rules
// and with policy accept.
func emptyTable(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line == "}" || strings.HasPrefix(line, "#"),
			strings.HasPrefix(line, "table ") && strings.HasSuffix(line, "{"):
		case strings.HasPrefix(line, "chain ") && slices.Contains(builtin, strings.TrimSuffix(strings.TrimPrefix(line, "chain "), " {")):
		case strings.HasPrefix(line, "type ") && strings.Contains(line, " hook ") && strings.HasSuffix(line, "; policy accept;"):
		default:
			return false
		}
	}
	return true
}

var builtin = []string{"INPUT", "FORWARD", "OUTPUT", "PREROUTING", "POSTROUTING"}
