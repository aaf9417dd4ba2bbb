package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

const (
	// worthwhile is the part of a database, in percent, that must be free before it is
	// defragmented: meanwhile the member answers nothing.
	worthwhile = 30
	// defragmentTime is how long a member may take: it rewrites its database, which has eight
	// gibibytes at most by etcd's advice.
	defragmentTime = 15 * time.Minute
)

// due reports, for each host of a member, whether it has to be defragmented.
var due = steps.NewKey[bool]("etcd.fragmented")

// CheckFragmented finds the members that Defragment has to defragment: those of whose database
// more than 30 % are free, and all if there is an alarm about space or if all is set.
func CheckFragmented(c *manifest.Cluster, all bool) steps.Step {
	return writing{op.Check("etcd.check-fragmented", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		is, err := all, error(nil)
		if !all {
			is, err = fragmented(ctx, c, h)
		}
		if err != nil {
			return nil, err
		}
		return nil, due.On(h.Name).Put(h, is)
	}), due}
}

// Defragment rewrites the database of the host's member without free space, if CheckFragmented
// found that necessary. A leader passes the leadership first: to the last member, which is
// defragmented last.
func Defragment(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "etcd.defragment", Reads: []steps.AnyKey{due}, Writes: []steps.AnyKey{due}, Timeout: defragmentTime + 5*time.Minute, Risk: steps.Disruptive},
		Done: func(_ context.Context, h *steps.Host) (bool, error) {
			is, err := due.On(h.Name).Get(h)
			return err == nil && !is, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			if err := defragment(ctx, c, h); err != nil {
				return err
			}
			return due.On(h.Name).Put(h, false) // the database may have free space again by now
		},
	}
}

// fragmented reports whether it is worthwhile to defragment the member on h.
func fragmented(ctx context.Context, c *manifest.Cluster, h *steps.Host) (bool, error) {
	all, err := memberOn(c, h).Statuses(ctx, h)
	if err != nil {
		return false, err
	}
	members, err := memberOn(c, h).Members(ctx, h)
	if err != nil {
		return false, err
	}
	own, err := leadership{members: members}.member(c, h.Host)
	if err != nil {
		return false, err
	}
	for _, s := range all {
		if s.Status.Header.Member != own.ID {
			continue
		}
		if strings.Contains(strings.Join(s.Status.Errors, " "), noSpace) {
			return true, nil
		}
		return (s.Status.Size-s.Status.InUse)*100 > s.Status.Size*worthwhile, nil
	}
	return false, fmt.Errorf("member %s does not report the size of its database", h.Name)
}

func defragment(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	missing, err := DefragmentBlockers(ctx, c, h)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return steps.Advise(fmt.Errorf("etcd on %s was not defragmented: %s", h.Name, strings.Join(missing, "; ")), "repair that first: a member answers nothing while it is defragmented")
	}
	if err := passLeadership(ctx, c, h); err != nil {
		return err
	}
	_, err = memberOn(c, h).within(defragmentTime).Run(ctx, h, "defrag")
	return err
}

// passLeadership makes the member on h a follower, if there is another member: the last member
// of the config leads, or the first one in its place.
func passLeadership(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	all := part.StoreOf(c).Members
	if len(all) < 2 {
		return nil
	}
	l, err := leadershipOf(ctx, c, h)
	if err != nil || !l.is(c, h.Host) {
		return err
	}
	to := all[len(all)-1]
	if to.Name == h.Name {
		to = all[0]
	}
	return l.moveTo(ctx, c, h, to)
}
