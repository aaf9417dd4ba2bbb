package e2e

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mensylisir/kubexm/testdata/fair"
	"github.com/mensylisir/kubexm/testdata/lab"
)

// A disturbance is what happens to a site while kubexm makes a cluster on it.
type disturbance struct {
	what string
	at   moment // of the run, when it begins
	do   func(t *testing.T, s *labSite)
	// outlasted says that the run is to end well by itself. Otherwise it may, or
	// says what it ran into, and the next one goes on.
	outlasted bool
	said      []string // what a run that fails by it has to say
}

var disturbances = []disturbance{
	{what: "the registry is restarted while it is filled", at: moment{step: "registryd.seed-images", host: "h1", after: time.Second}, outlasted: true,
		do: func(t *testing.T, s *labSite) {
			s.on(t, "h1", "systemctl restart kubexm-registry-push kubexm-registry")
		}},
	{what: "all connections are reset", at: moment{step: "registryd.seed-images", host: "h1", after: 2 * time.Second},
		do: func(t *testing.T, s *labSite) { s.resetAll(t) }},
	{what: "a worker loses its power while it joins", at: moment{step: "kubeadm.join-worker", host: "h3", after: 2 * time.Second},
		do: func(t *testing.T, s *labSite) { s.power(t, "h3") }},
	{what: "the master loses its power while the control plane starts", at: moment{step: "kubeadm.init", host: "h2", after: 8 * time.Second},
		do: func(t *testing.T, s *labSite) { s.power(t, "h2") }},
	{what: "the registry's host loses its power while it is filled", at: moment{step: "registryd.seed-images", host: "h1", after: 2 * time.Second},
		do: func(t *testing.T, s *labSite) { s.power(t, "h1") }},
	{what: "a worker cannot be heard for 12 seconds", at: moment{step: "kubeadm.join-worker", host: "h4", after: time.Second}, outlasted: true,
		do: func(t *testing.T, s *labSite) { s.silent(t, "h4", 12*time.Second) }},
	{what: "a worker's disk is full", at: moment{step: "containerd.install-binaries", host: "h3"}, said: []string{"No space left on device", "/ of h3 has ", "the file needs ", "free space on / of h3"},
		do: func(t *testing.T, s *labSite) { s.fill(t, "h3") }},
}

// TestInterruptions makes a cluster again and again, on hosts that take turns in
// failing, with a kubexm that is killed before that and, where something is left to
// do, after it. The next run goes
// on every time, and in the end every host is what it was. One disturbance alone runs
// with -run 'TestInterruptions/full'.
func TestInterruptions(t *testing.T) {
	s := newLabSite(t, lab.Alone()) // it compares inventories
	before := s.inventories(t)
	config := filepath.Join(s.dir, "config.yaml")
	create := []string{"install", "--bundle", s.bundle, "--allow-unsigned", "-f", config}
	remove := []string{"delete", "cluster", "-f", config, "--yes"}

	created := s.recorded(t, create...)
	deleted := s.recorded(t, remove...)
	t.Logf("undisturbed: create %s, delete %s", created.length.Round(time.Second), deleted.length.Round(time.Second))
	rng := fair.Rand(t)
	kills, inside := 0, 0
	for _, d := range disturbances {
		ok := t.Run(d.what, func(t *testing.T) {
			inits := 0
			count := func(e told) {
				if e.Step == "kubeadm.init" && e.Outcome == "ran" {
					inits++
				}
			}
			killed := func(moments []moment) {
				for _, m := range moments {
					kills++
					was := s.killedAt(t, m, count, create...)
					t.Logf("create killed at %s: %v", m, was)
					if was {
						inside++
					}
				}
			}
			first, rest := created.split(t, d.at)
			killed(first.moments(rng, 2))
			if !s.disturbed(t, d, count, create...) {
				killed(rest.moments(rng, 2))
			}
			said(t, s.install(t, config), 0, "create of cluster site: done")
			said(t, s.install(t, config), 0, "0 steps ran")
			if inits > 1 {
				t.Errorf("kubeadm init ran to its end %d times", inits)
			}
			s.smoke(t)
			for _, m := range deleted.moments(rng, 2)[1:] {
				was := s.killedAt(t, m, func(told) {}, remove...)
				t.Logf("delete killed at %s: %v", m, was)
			}
			s.deleted(t, config)
		})
		if !ok {
			t.FailNow() // what follows would stand on it
		}
	}
	s.asBefore(t, before)
	t.Logf("%d of %d kills came before the run's end", inside, kills)
	if inside < kills/2 {
		t.Errorf("only %d of %d kills came before the run's end: the test proves little", inside, kills)
	}
}

// disturbed runs kubexm, and lets something happen at a moment of it. It reports
// whether the run came to its end all the same.
func (s *labSite) disturbed(t *testing.T, d disturbance, see func(told), args ...string) bool {
	t.Helper()
	var happens sync.WaitGroup
	began := false
	r := s.watched(t, func(e told, _ func()) {
		see(e)
		if began || e.Outcome != "started" || e.Step != d.at.step || e.Host != d.at.host {
			return
		}
		began = true
		if d.at.after == 0 {
			d.do(t, s)
			return
		}
		happens.Go(func() {
			time.Sleep(d.at.after)
			d.do(t, s)
		})
	}, args...)
	happens.Wait()
	t.Logf("%s: exit %d after %s\n%s", d.what, r.code, r.took.Round(time.Second), r.stderr)
	switch {
	case !began:
		t.Fatalf("%s never began on %s", d.at.step, d.at.host)
	case d.outlasted && r.code != 0:
		t.Errorf("the run did not outlast it: exit %d", r.code)
	case r.code != 0 && !strings.Contains(r.stderr, "try "):
		t.Error("no advice was given")
	}
	for _, text := range d.said {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("%q was not said", text)
		}
	}
	if len(d.said) > 0 {
		s.on(t, d.at.host, "rm -f /filler")
	}
	return r.code == 0
}

// power takes a host's power and gives it back.
func (s *labSite) power(t *testing.T, name string) {
	h, err := s.Host(name)
	if err != nil {
		t.Error(err)
		return
	}
	if err := s.Cut(h); err != nil {
		t.Error(err)
		return
	}
	if err := s.Boot(t.Context(), h); err != nil {
		t.Error(err)
	}
}

// silent takes a host off the network for a while.
func (s *labSite) silent(t *testing.T, name string, d time.Duration) {
	h, err := s.Host(name)
	if err != nil {
		t.Error(err)
		return
	}
	if err := s.Unplug(t.Context(), h); err != nil {
		t.Error(err)
	}
	time.Sleep(d)
	if err := s.Plug(context.WithoutCancel(t.Context()), h); err != nil {
		t.Error(err)
	}
}

// resetAll ends every connection that is held by an sshd, as a firewall does that
// forgets what it knew.
func (s *labSite) resetAll(t *testing.T) {
	for i := range s.Hosts {
		// Its own connection is among them, so this never ends well.
		_ = s.SSH(t.Context(), &s.Hosts[i], lab.RootUser, "pkill -KILL -f '^sshd: '").Run()
	}
}

// fill leaves no room on a host's disk.
func (s *labSite) fill(t *testing.T, name string) {
	free := s.on(t, name, "df --output=avail -B1 / | tail -1")
	bytes, err := strconv.ParseInt(strings.TrimSpace(free), 10, 64)
	if err != nil {
		t.Error(err)
		return
	}
	s.on(t, name, "fallocate -l "+strconv.FormatInt(bytes-256<<10, 10)+" /filler")
}
