package steptest

import (
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"
	"syscall"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/manifest/part"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
)

const (
	proxySandbox      = "sandbox-of-kube-proxy"
	proxyContainer    = "container-of-kube-proxy"
	balancerContainer = "container-of-balancer"
	balancerPID       = "4711"
)

// digestInConfig finds the digest that a configuration answers for.
var digestInConfig = regexp.MustCompile(`/config/([0-9a-f]{16})`)

// workerPods simulates crictl for kube-proxy and the load balancer on a worker.
func (k *Kube) workerPods(c call) (connector.Result, bool) {
	switch {
	case c.words[0] == "pods" && c.flags["--label"] == "k8s-app=kube-proxy":
		if c.sim.Read(proxyHosts) == "" {
			return prints(`{"items":[]}`), true
		}
		return prints(`{"items":[{"id":%q,"metadata":{"name":"kube-proxy-x","uid":%q}}]}`, proxySandbox, proxyID), true
	case c.words[0] == "ps" && c.flags["--pod"] == proxySandbox:
		return prints("%s\n", proxyContainer), true
	case c.words[0] == "stop" && c.words[1] == proxyContainer:
		k.proxy(c.sim) // the kubelet starts it again at once
		return prints("%s\n", proxyContainer), true
	case c.words[0] == "ps" && c.flags["--name"] == "^balancer$":
		if !balancerRuns(c.sim) {
			return prints(""), true
		}
		return prints("%s\n", balancerContainer), true
	case c.words[0] == "inspect" && c.words[1] == balancerContainer && c.flags["--template"] == "{{.info.pid}}":
		return prints("%s\n", balancerPID), true
	}
	return connector.Result{}, false
}

func balancerRuns(s *conntest.Sim) bool {
	return s.Read(part.WorkerBalancerPod) != "" && s.Unit("kubelet.service").Active
}

// workerBalancer simulates the load balancer in the static pod of a worker: the kubelet starts
// it when its manifest is there, and it reads its configuration then and when it is signalled.
func (k *Kube) workerBalancer(s *conntest.Sim, host string) {
	read := func() {
		for _, name := range []string{"haproxy.cfg", "nginx.conf"} {
			if found := digestInConfig.FindStringSubmatch(s.Read("/etc/kubexm-balancer/" + name)); found != nil {
				k.usedConfig[host] = found[1]
			}
		}
	}
	s.HandleProgram("kill", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if c.Argv[len(c.Argv)-1] == balancerPID && balancerRuns(s) {
			read()
		}
		return connector.Result{}, true
	})
	s.HandleProgram("bash", func(c connector.Cmd, _ []byte) (connector.Result, bool) {
		at := c.Argv[len(c.Argv)-1]
		if !strings.HasPrefix(at, "/config/") || c.Argv[len(c.Argv)-2] != strconv.Itoa(part.BalancerHealthPort) {
			return connector.Result{}, false
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case !balancerRuns(s):
			delete(k.usedConfig, host)
			return prints(""), true
		case k.usedConfig[host] == "":
			read()
		}
		if k.usedConfig[host] != path.Base(at) {
			return prints("404"), true
		}
		return prints(httpOK), true
	})
}

const httpOK = "200"

// aimsAtItself reports whether the endpoint's name means the load balancer on the worker s.
func (k *Kube) aimsAtItself(s *conntest.Sim) bool {
	e := part.EndpointOf(k.cluster)
	own, _, _ := strings.Cut(e.OnWorker(), ":")
	return e.OnNodes != "" && strings.Contains("\n"+s.Read("/etc/hosts"), "\n"+own+" "+e.Domain+"\n")
}

// WorkerEndpoint returns a connection to the load balancer on a worker.
func (k *Kube) WorkerEndpoint(host string) (net.Conn, error) {
	k.mu.Lock()
	runs := balancerRuns(k.hosts[host])
	k.mu.Unlock()
	if !runs {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return k.Endpoint()
}

// JoinedWorker makes s a worker that has joined the cluster.
func JoinedWorker(c *manifest.Cluster, s *conntest.Sim, host string) {
	k := NewKube(c)
	k.stands = true
	s.AddUnit("kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n[Install]\nWantedBy=multi-user.target\n", false, true)
	k.On(s, host)
	s.StartUnit("kubelet.service")
	k.proxy(s)
}
