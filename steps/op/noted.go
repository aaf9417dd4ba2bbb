package op

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/runner"
)

// Noted are kernel settings that what kubexm installs changes by itself. Their
// values are put on record before it comes, and set again when it is gone.
type Noted struct {
	noNeeds
	Keys []string
}

func (Noted) String() string { return "kernel settings that others change" }

// Want puts the values on record. Keys that this kernel does not have are passed
// over.
func (n Noted) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	return noted(ctx, h, n, "note kernel settings", func() (string, error) {
		values := map[string]string{}
		for _, key := range n.Keys {
			v, err := h.Sysctl(ctx, key)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return "", err
			}
			values[key] = v
		}
		text, err := json.Marshal(values)
		return string(text), err
	})
}

// Gone sets the values that differ by now. One that the kernel refuses to take, as
// in a container, was not changed by others either.
func (n Noted) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return renounced(ctx, h, n, "set kernel settings back", func(ctx context.Context, before string) error {
		values := map[string]string{}
		if err := json.Unmarshal([]byte(before), &values); err != nil {
			return fmt.Errorf("record of %s: %w", n, err)
		}
		for _, key := range n.Keys { // in an order of their own: one may follow from another
			was, ok := values[key]
			if !ok {
				continue
			}
			now, err := h.Sysctl(ctx, key)
			if errors.Is(err, fs.ErrNotExist) || err == nil && sameWords(now, was) {
				continue
			}
			if err != nil {
				return err
			}
			var refused *runner.CmdError
			if err := h.SetSysctl(ctx, key, was); errors.As(err, &refused) {
				h.Log.WarnContext(ctx, "a kernel setting stays as it is", "key", key, "value", now, "before", was, "err", err)
			} else if err != nil {
				return err
			}
		}
		return nil
	})
}

// Tables are the tables of the packet filter that iptables makes for whoever looks
// into them. Those that came and hold nothing go again; one that holds a rule of
// anybody stays. With iptables of the old kind, tables go with a boot alone.
type Tables struct{ noNeeds }

func (Tables) String() string { return "tables of the packet filter" }

// Want puts on record which there are.
func (t Tables) Want(ctx context.Context, h *steps.Host, _ bool) (*Change, error) {
	return noted(ctx, h, t, "note the tables of the packet filter", func() (string, error) {
		all, err := tables(ctx, h)
		return strings.Join(all, "\n"), err
	})
}

// Gone deletes the empty ones that were not there.
func (t Tables) Gone(ctx context.Context, h *steps.Host) (*Change, error) {
	return renounced(ctx, h, t, "remove empty tables of the packet filter", func(ctx context.Context, before string) error {
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

// iptables are the tables that iptables of the new kind makes.
var iptables = []string{"ip filter", "ip nat", "ip mangle", "ip raw", "ip6 filter", "ip6 nat", "ip6 mangle", "ip6 raw"}

// tables gives all tables as "ip filter"; none where there is no nft.
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

// emptyTable tells whether a table as nft lists it has nothing but the chains that
// the kernel calls, and these let everything through.
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

// noted makes the change that puts something on record, once.
func noted(ctx context.Context, h *steps.Host, r Resource, what string, read func() (string, error)) (*Change, error) {
	_, recorded, err := recall(ctx, h, r)
	if err != nil || recorded {
		return nil, err
	}
	return &Change{
		What: what,
		Apply: func(ctx context.Context, h *steps.Host) error {
			value, err := read()
			if err != nil {
				return err
			}
			return remember(ctx, h, r, entry{Existed: true, Value: value})
		},
		Undo: func(ctx context.Context, h *steps.Host) error { return forget(ctx, h, r) },
	}, nil
}

// renounced makes the change that brings back what is on record.
func renounced(ctx context.Context, h *steps.Host, r Resource, what string, back func(ctx context.Context, before string) error) (*Change, error) {
	e, recorded, err := recall(ctx, h, r)
	if err != nil || !recorded {
		return nil, err
	}
	return &Change{What: what, Apply: func(ctx context.Context, h *steps.Host) error {
		if err := back(ctx, e.Value); err != nil {
			return err
		}
		return forget(ctx, h, r)
	}}, nil
}
