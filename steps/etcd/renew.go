package etcd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/op"
	"github.com/mensylisir/kubexm/steps/runner"
)

// othersOf returns the hosts of all other members of the config.
func othersOf(c *manifest.Cluster, h *steps.Host) []manifest.Host {
	return slices.DeleteFunc(slices.Clone(part.StoreOf(c).Members), func(m manifest.Host) bool { return m.Name == h.Name })
}

// ofOthers returns a client of all other members, which is run on h.
func ofOthers(c *manifest.Cluster, h *steps.Host) Client {
	var at []string
	for _, m := range othersOf(c, h) {
		at = append(at, clientURL(address(c, m)))
	}
	return ofService(answerTime, at...)
}

// CheckReplaceable finds the reasons why the member of a host cannot be replaced: most members
// are lost, another one is not healthy, or the host lacks what etcd needs. etcd adds no member
// while another one does not answer.
func CheckReplaceable(c *manifest.Cluster) steps.Step {
	return op.Check("etcd.check-replaceable", func(ctx context.Context, h *steps.Host) (steps.Findings, error) {
		for _, path := range []string{"/usr/local/bin/etcd", "/usr/local/bin/etcdctl", unitPath, caFile, serverCert, peerCert, healthCert} {
			if exists, err := h.Exists(ctx, path); err != nil || !exists {
				return steps.Findings{{What: path + " is missing: this host lost more than etcd's data", Advice: "run kubexm install with the bundle of the cluster: it installs etcd again, and replaces the member"}}, err
			}
		}
		others := othersOf(c, h)
		if len(others) == 0 {
			return steps.Findings{{What: "this is the only etcd member: nothing has a copy of its data", Advice: restoreAdvice}}, nil
		}
		var bad steps.Findings
		for _, m := range others {
			_, err := ofService(answerTime, clientURL(address(c, m))).Run(ctx, h, "endpoint", "health")
			switch {
			case err == nil || isAlarm(err):
			case !runner.Refused(err):
				return nil, err
			default:
				bad = append(bad, steps.Finding{What: "member " + m.Name + " is not healthy: etcd adds no member meanwhile",
					Advice: "start etcd on " + m.Name + "; if its data is lost too, run kubexm install with the bundle of the cluster: it replaces all members without data"})
			}
		}
		if healthy, all := len(others)-len(bad), len(others)+1; healthy <= all/2 {
			return steps.Findings{{What: fmt.Sprintf("only %d of %d etcd members answer without this one: there is no quorum", healthy, all), Advice: restoreAdvice}}, nil
		}
		return bad, nil
	})
}

const restoreAdvice = "start etcd on the hosts that still have data; if most members have lost their data, restore all of them from a snapshot with etcdutl snapshot restore"

// isAlarm reports whether a member answers and is unhealthy only because of an alarm.
func isAlarm(err error) bool {
	return runner.Refused(err) && (strings.Contains(err.Error(), "Active Alarm(s)") || strings.Contains(err.Error(), "etcdserver: corrupt cluster"))
}

// ClearMember removes the member of a host from etcd and deletes its data, so that Rejoin adds
// it as a new member. A leader passes the leadership first. The alarms of removed members are
// disarmed: with the alarm CORRUPT etcd answers no request.
func ClearMember(c *manifest.Cluster) steps.Step {
	return op.Again("etcd.clear-member", func(ctx context.Context, h *steps.Host) error {
		if err := dismiss(ctx, c, h); err != nil {
			return err
		}
		if err := h.UnitStop(ctx, unit); err != nil {
			return err
		}
		if err := h.Remove(ctx, joinFile); err != nil {
			return err
		}
		return member{cluster: c}.clear(ctx, h)
	}, op.Destroys)
}

// dismiss removes the member of a host from etcd, through the others.
func dismiss(ctx context.Context, c *manifest.Cluster, h *steps.Host) error {
	client := ofOthers(c, h)
	l, err := leadershipBy(ctx, h, client)
	if err != nil {
		return steps.Advise(err, "check the other members with kubexm etcd status -f CONFIG")
	}
	own, err := l.member(c, h.Host)
	if err != nil { // an interrupted run has removed it
		return disarmRemoved(ctx, h, client)
	}
	if own.ID == l.leader {
		if err := l.moveTo(ctx, c, h, othersOf(c, h)[0]); err != nil {
			return err
		}
	}
	h.Log.InfoContext(ctx, "remove a member", "member", h.Name)
	if err := change(ctx, h, client.endpoints, "remove", own.id()); err != nil {
		return steps.Advise(err, "all other members must run: check with kubexm etcd status -f CONFIG")
	}
	return disarmRemoved(ctx, h, client)
}

// disarmRemoved disarms the alarms if all are of members that were removed.
func disarmRemoved(ctx context.Context, h *steps.Host, client Client) error {
	alarms, err := client.Alarms(ctx, h)
	if err != nil || len(alarms) == 0 {
		return err
	}
	members, err := client.Members(ctx, h)
	if err != nil {
		return err
	}
	for _, a := range alarms {
		if slices.ContainsFunc(members, func(m Member) bool { return m.ID == a.Member }) {
			return nil
		}
	}
	_, err = client.Run(ctx, h, "alarm", "disarm")
	return err
}

// Rejoin adds the host's member again, as a learner that is promoted once it has the data of the
// others. Everything but the data exists on the host.
func Rejoin(c *manifest.Cluster) steps.Step {
	joins := func(m *steps.Meta) {
		m.Reads, m.Timeout, m.Risk = append(m.Reads, Data), catchUpTimeout+10*time.Minute, steps.Disruptive
	}
	return op.Ensure("etcd.rejoin", []op.Resource{dataDir(c), unitFile(c), member{Unit: op.Unit{Name: unit}, cluster: c}, joining{c}}, joins)
}
