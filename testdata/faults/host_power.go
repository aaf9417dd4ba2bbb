package main

import (
	"context"
	"time"

	"github.com/mensylisir/kubexm/steps/connector"
)

// growing are the verbs that need room on the disk.
var growing = []string{connector.VerbWrite, connector.VerbPut, connector.VerbCopy, connector.VerbMkdir, connector.VerbLink, connector.VerbJobStart}

// noSpace answers what needs room while there is none: nothing of it stays, as the
// runner's scripts see to on a real host.
func (h *host) noSpace(c connector.Cmd, _ []byte) (connector.Result, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, there := h.sim.File(c.Args()[0])
	if !h.full || there && c.Verb == connector.VerbMkdir {
		return connector.Result{}, false
	}
	return connector.Result{Exit: 1, Stderr: []byte("cat: write error: No space left on device\n")}, true
}

// fill fills the disk, or gives room again.
func (h *host) fill(full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.full = full
}

// powerCycle takes the power away and gives it back: all that runs ends where it
// is, connections are never heard of again, and of what no sync had seen to only
// as much is left as lose says: it picks one of n states of the disk, 0 being the
// oldest, and tells of a file that was not synced whether its content is lost.
func (h *host) powerCycle(pick func(n int) int, lost func() bool) {
	h.wire.unplug()
	h.wire.each(stall)
	h.mu.Lock()
	h.off()
	jobs := h.jobs
	h.jobs, h.leases = map[string]*hostJob{}, map[string]*hostLease{}
	h.mu.Unlock()
	for _, j := range jobs {
		<-j.over
	}
	h.server.Drop()
	for h.server.Open() > 0 { // nothing that was asked before happens after
		time.Sleep(time.Millisecond)
	}
	h.sim.Crash(pick, lost)
	for _, p := range []string{"/etc/kubernetes/kubelet.conf", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/pki/kubelet-client-current.pem"} {
		if h.sim.Read(p) == "" {
			h.sim.StopUnit("kubelet.service") // it ends as soon as it is started
		}
	}
	h.mu.Lock()
	h.on, h.off = context.WithCancel(context.Background())
	h.mu.Unlock()
	h.wire.each(reset) // the first packet to a host that knows nothing of the connection
	h.wire.plug()
}
