package installer

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/runner"
)

// mute is a host on which every command runs until it is cancelled.
type mute struct{ connector.Conn }

func (mute) Exec(ctx context.Context, _ connector.Cmd) (connector.Result, error) {
	<-ctx.Done()
	return connector.Result{}, context.Cause(ctx)
}

// TestLeadIsAskedByOneAtATime: a second caller waits for the first, but no longer than its
// context allows.
func TestLeadIsAskedByOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		masters := []manifest.Host{{Name: "a"}, {Name: "b"}}
		w := NewLeadSelector(masters, func(h manifest.Host) *steps.Host {
			return &steps.Host{Host: h, Runner: runner.New(mute{}, runner.Options{}), Log: slog.New(slog.DiscardHandler)}
		})
		begin, short, first := time.Now(), make(chan time.Duration), make(chan time.Duration)
		go func() {
			_, err := w.Lead(t.Context())
			if err != nil {
				t.Error(err)
			}
			first <- time.Since(begin)
		}()
		go func() {
			time.Sleep(time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			if _, err := w.Lead(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the second caller: %v", err)
			}
			short <- time.Since(begin)
		}()
		if took := <-short; took != 6*time.Second {
			t.Errorf("the second caller waited until %s", took)
		}
		if took := <-first; took != 2*serveWait {
			t.Errorf("the first caller had an answer after %s", took)
		}
	})
}

// TestTheLastLeadIsAskedFirst: as far as this machine knows it, and while it is a master
// of the config.
func TestTheLastLeadIsAskedFirst(t *testing.T) {
	t.Parallel()
	const config = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  ssh: {user: root, password: "${env:SSH_PASSWORD}"}
  hosts: [{name: a, address: 192.0.2.1}, {name: b, address: 192.0.2.2}, {name: c, address: 192.0.2.3}]
  roleGroups: {master: [a, b, c], worker: [a]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`
	c, problems := manifest.Decode(strings.NewReader(config))
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	for lead, want := range map[string][]string{"": {"a", "b", "c"}, "a": {"a", "b", "c"}, "b": {"b", "a", "c"}, "c": {"c", "a", "b"}, "gone": {"a", "b", "c"}} {
		s := &Session{Workdir: Workdir{Dir: t.TempDir()}}
		if lead != "" {
			err := errors.Join(os.MkdirAll(s.Workdir.Applied(""), 0o700), os.WriteFile(s.Workdir.Applied("config.yaml"), []byte(config), 0o600),
				os.WriteFile(s.Workdir.Applied("applied.json"), []byte(`{"lead": "`+lead+`"}`), 0o600))
			if err != nil {
				t.Fatal(err)
			}
		}
		masters, err := s.lastLeadFirst(c)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range masters {
			got = append(got, m.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("after lead %q: %q, want %q", lead, got, want)
		}
	}
}
