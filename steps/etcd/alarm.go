package etcd

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
)

// noSpace is the alarm of a member whose database has reached its quota: etcd rejects writes.
const noSpace = "NOSPACE"

// Alarm is an alarm of an etcd member, which stays until it is disarmed.
type Alarm struct {
	Member uint64
	Kind   string // NOSPACE or CORRUPT
}

var alarmLine = regexp.MustCompile(`memberID:(\d+) alarm:(\w+)`)

// Alarms lists the alarms of all members.
func (c Client) Alarms(ctx context.Context, h *steps.Host) ([]Alarm, error) {
	out, err := c.Run(ctx, h, "alarm", "list")
	if err != nil {
		return nil, err
	}
	return parseAlarms(out), nil
}

// parseAlarms reads etcdctl's lines of alarms. crictl prints standard error as well.
func parseAlarms(text []byte) []Alarm {
	var all []Alarm
	for _, m := range alarmLine.FindAllSubmatch(text, -1) {
		id, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil { // more digits than an ID has
			continue
		}
		if a := (Alarm{Member: id, Kind: string(m[2])}); !slices.Contains(all, a) {
			all = append(all, a)
		}
	}
	return all
}

// AlarmReport is an alarm, with the host of its member.
type AlarmReport struct {
	Name string `json:"name"` // the host; the member's ID if no host matches
	ID   string `json:"id"`   // of the member, hexadecimal
	Kind string `json:"alarm"`
}

// AlarmsOf lists the alarms through the member on h.
func AlarmsOf(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]AlarmReport, error) {
	alarms, members, err := alarmsOf(ctx, c, h)
	out := []AlarmReport{}
	for _, a := range alarms {
		out = append(out, AlarmReport{Name: a.name(c, members), ID: Member{ID: a.Member}.id(), Kind: a.Kind})
	}
	return out, err
}

func alarmsOf(ctx context.Context, c *manifest.Cluster, h *steps.Host) ([]Alarm, []Member, error) {
	client := memberOn(c, h)
	members, err := client.Members(ctx, h)
	if err != nil {
		return nil, nil, err
	}
	alarms, err := client.Alarms(ctx, h)
	return alarms, members, err
}

// name returns the host of an alarm's member.
func (a Alarm) name(c *manifest.Cluster, members []Member) string {
	for _, m := range members {
		if m.ID == a.Member {
			return nameOf(c, m)
		}
	}
	return Member{ID: a.Member}.id()
}

// CheckAlarms finds the alarms that cannot be disarmed, because their cause still exists: the
// database of a member has reached its quota, or the data of a member is corrupt.
func CheckAlarms(c *manifest.Cluster) steps.Step {
	return op.Check("etcd.check-alarms", func(ctx context.Context, h *steps.Host) (steps.Findings, error) { return unresolved(ctx, c, h) })
}

// Disarm disarms all alarms, unless CheckAlarms finds one. etcdctl cannot disarm a single alarm.
func Disarm(c *manifest.Cluster) steps.Step {
	return &op.Do{
		M: steps.Meta{Name: "etcd.disarm-alarms", Timeout: time.Minute},
		Done: func(ctx context.Context, h *steps.Host) (bool, error) {
			all, err := memberOn(c, h).Alarms(ctx, h)
			return err == nil && len(all) == 0, err
		},
		Act: func(ctx context.Context, h *steps.Host) error {
			found, err := unresolved(ctx, c, h)
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return steps.Advise(errors.New(found[0].What), "%s", found[0].Advice)
			}
			_, err = memberOn(c, h).Run(ctx, h, "alarm", "disarm")
			return err
		},
	}
}

func unresolved(ctx context.Context, c *manifest.Cluster, h *steps.Host) (steps.Findings, error) {
	alarms, members, err := alarmsOf(ctx, c, h)
	if err != nil {
		return nil, err
	}
	statuses, err := memberOn(c, h).Statuses(ctx, h)
	if err != nil {
		return nil, err
	}
	var found steps.Findings
	for _, a := range alarms {
		if what, advice := a.cause(c, members, statuses); what != "" {
			found = append(found, steps.Finding{What: what, Advice: advice})
		}
	}
	return found, nil
}

// cause returns why an alarm is still justified, and what resolves it; "" if it is not, or if
// its member was removed.
func (a Alarm) cause(c *manifest.Cluster, members []Member, statuses []Status) (what, advice string) {
	if !slices.ContainsFunc(members, func(m Member) bool { return m.ID == a.Member }) {
		return "", ""
	}
	name := a.name(c, members)
	if a.Kind != noSpace {
		return fmt.Sprintf("member %s has the alarm %s, which is not disarmed while it is a member", name, a.Kind),
			"replace the member: kubexm etcd replace " + name + " -f CONFIG"
	}
	quota := c.Spec.Etcd.QuotaBackendBytes
	for _, s := range statuses {
		if s.Status.Header.Member == a.Member && s.Status.Size >= quota {
			return fmt.Sprintf("the database of member %s has %d bytes, and its quota is %d", name, s.Status.Size, quota),
				"run kubexm etcd defrag -f CONFIG; if that frees too little, delete objects or set a larger spec.etcd.quotaBackendBytes"
		}
	}
	return "", ""
}
