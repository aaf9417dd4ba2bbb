// Package loadbalancer installs the load balancer in front of the API servers on the
// hosts with the role loadbalancer: haproxy or nginx forwards TCP to the API servers,
// and keepalived (VRRP) holds the virtual IP on one of the hosts.
//
// haproxy requests /readyz from each API server over TLS, with the cluster's CA and a
// client certificate of the group system:monitoring. Both exist only after the control
// plane does, and kubeadm init already goes through the load balancer. Until then
// haproxy has a placeholder CA, so that every check fails, and forwards to the servers
// whose port is open; the same degraded mode applies whenever no API server is ready.
// Trust replaces the placeholder.
//
// With kube-vip, the masters hold the virtual IP themselves: each runs it as a static pod, and a
// Lease decides which one has the address.
//
// Configuration changes reload the programs. They are never restarted while they run.
//
// It may import steps, steps/op, steps/runner, steps/pki, steps/controlplane, manifest and
// manifest/part.
package loadbalancer
