package main

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// config is what the environment says.
type config struct {
	address, port, networkInterface, node string
	namespace, leaseName, metrics         string
	duration, deadline, retry             time.Duration
}

// ours are the prefixes of upstream's variables. Others are the container's.
var ours = []string{"vip_", "cp_", "svc_", "bgp_", "lb_", "prometheus_", "k8s_", "kubernetes_", "address", "port"}

// jitter is by how much client-go may lengthen a retry (leaderelection.JitterFactor).
const jitter = 1.2

// readConfig reads the environment as pkg/kubevip/config_environment.go of v1.2.3 does.
func readConfig(environ []string) (config, error) {
	values := map[string]string{}
	for _, line := range environ {
		name, value, _ := strings.Cut(line, "=")
		if slices.ContainsFunc(ours, func(p string) bool { return strings.HasPrefix(name, p) }) {
			values[name] = value
		}
	}
	var bad error
	take := func(name, otherwise string) string {
		v, ok := values[name]
		delete(values, name)
		if !ok {
			return otherwise
		}
		return v
	}
	must := func(name, value, why string) {
		if got := take(name, "false"); got != value && bad == nil {
			bad = fmt.Errorf("%s is %q: %s", name, got, why)
		}
	}
	seconds := func(name, otherwise string) time.Duration {
		n, err := strconv.Atoi(take(name, otherwise))
		if (err != nil || n < 1) && bad == nil {
			bad = fmt.Errorf("%s is no number of seconds", name)
		}
		return time.Duration(n) * time.Second
	}
	must("vip_arp", "true", "no valid kube-vip mode detected, ensure a supported mode is configured")
	must("cp_enable", "true", "no features are enabled")
	must("vip_leaderelection", "true", "without it each master would have the address")
	c := config{
		address: take("address", ""), port: take("port", "6443"), networkInterface: take("vip_interface", ""), node: take("vip_nodename", ""),
		namespace: take("cp_namespace", ""), leaseName: take("vip_leasename", "plndr-cp-lock"), metrics: take("prometheus_server", ":2112"),
		duration: seconds("vip_leaseduration", "5"), deadline: seconds("vip_renewdeadline", "3"), retry: seconds("vip_retryperiod", "1"),
	}
	subnet := take("vip_subnet", "")
	number, err := strconv.Atoi(c.port)
	switch {
	case bad != nil:
	case len(values) > 0:
		bad = fmt.Errorf("unknown variables %v", values)
	case net.ParseIP(c.address).To4() == nil:
		bad = fmt.Errorf("address is %q: the lab's kube-vip needs an IPv4 address", c.address)
	case c.networkInterface == "" || c.node == "" || c.namespace == "":
		bad = fmt.Errorf("vip_interface is %q, vip_nodename %q and cp_namespace %q: each has to be set", c.networkInterface, c.node, c.namespace)
	case err != nil || number < 1 || number > 65535:
		bad = fmt.Errorf("port is %q", c.port)
	case subnet != "" && subnet != "32":
		bad = fmt.Errorf("failed to set mask for subnet %q", subnet)
	case c.duration <= c.deadline:
		bad = fmt.Errorf("leaseDuration must be greater than renewDeadline")
	case float64(c.deadline) <= jitter*float64(c.retry):
		bad = fmt.Errorf("renewDeadline must be greater than retryPeriod*JitterFactor")
	}
	return c, bad
}
