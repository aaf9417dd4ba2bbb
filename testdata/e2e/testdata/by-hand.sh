#!/bin/bash
# Makes a cluster as a person does who has the files at hand: tar and ctr over plain
# ssh, kubeadm, kubectl. It checks nothing, writes down nothing and leaves no registry,
# and would not go on where it stopped.
#
#     by-hand.sh MASTER WORKER...     addresses
#
# FILES and IMAGES are what kubexm bundle extract gave, KEY lets root in, VERSION is
# Kubernetes', PODS and SERVICES are its ranges, OUT is a folder for what comes of it.
# Prints a line for each phase: how long it took, in seconds, and its name.
set -euo pipefail
master=$1
all=("$@")
began=$EPOCHREALTIME
phase() {
    local now=$EPOCHREALTIME
    echo "$now $began $1" | awk '{printf "%.1f %s\n", $1 - $2, $3}'
    began=$now
}
on() {
    local host=$1
    shift
    ssh -F none -i "$KEY" -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "root@$host" "$@"
}
each() { # FUNCTION HOST...: on all of them at once
    local do=$1 ids=() id
    shift
    for host in "$@"; do "$do" "$host" >>"$OUT/$host.log" 2>&1 & ids+=($!); done
    for id in "${ids[@]}"; do wait "$id"; done
}

# What a bundle calls COMPONENT/NAME.
file() { find "$FILES" -path "*/$1/*" -name "$2" -type f; }
mkdir "$OUT/bin"
for f in containerd/containerd containerd/containerd-shim-runc-v2 containerd/ctr kubeadm/kubeadm kubelet/kubelet kubectl/kubectl runc/runc; do
    cp "$(file "${f%/*}" "${f#*/}")" "$OUT/bin"
done
cni=$(dirname "$(file cni-plugins bridge)")
tar -C "$IMAGES" -cf "$OUT/images.tar" .
began=$EPOCHREALTIME

bring() {
    tar -C "$OUT/bin" --mode=755 -cf - . | on "$1" 'tar -C /usr/local/bin -xf -'
    tar -C "$cni" --mode=755 -cf - . | on "$1" 'mkdir -p /opt/cni/bin && tar -C /opt/cni/bin -xf -'
    on "$1" 'cat >/root/images.tar' <"$OUT/images.tar"
}
each bring "${all[@]}"
phase files

prepare() {
    on "$1" bash -se <<'REMOTE'
mkdir -p /etc/containerd /etc/cni/net.d
cat >/etc/containerd/config.toml <<'TOML'
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
TOML
cat >/etc/systemd/system/containerd.service <<'UNIT'
[Service]
ExecStart=/usr/local/bin/containerd
Type=notify
Delegate=yes
KillMode=process
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
After=containerd.service
[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
UNIT
modprobe overlay
modprobe br_netfilter
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1
systemctl daemon-reload
systemctl enable --now containerd
systemctl enable kubelet
REMOTE
}
each prepare "${all[@]}"
phase runtime

import() { on "$1" 'ctr -n k8s.io images import --all-platforms=false /root/images.tar && rm /root/images.tar'; }
each import "${all[@]}"
phase images

on "$master" 'cat >/root/kubeadm.yaml' <<YAML
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {advertiseAddress: $master, bindPort: 6443}
nodeRegistration: {criSocket: "unix:///run/containerd/containerd.sock"}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: $VERSION
controlPlaneEndpoint: "$master:6443"
networking: {podSubnet: $PODS, serviceSubnet: $SERVICES}
YAML
on "$master" 'kubeadm init --config /root/kubeadm.yaml' >>"$OUT/$master.log" 2>&1
phase init

words=$(on "$master" kubeadm token create --print-join-command)
join() { on "$1" "$words"; }
each join "${all[@]:1}"
phase join

on "$master" 'kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f -' <"$(file flannel kube-flannel.yml)" >>"$OUT/$master.log"
on "$master" 'kubectl --kubeconfig /etc/kubernetes/admin.conf wait --for=condition=Ready nodes --all --timeout=120s
kubectl --kubeconfig /etc/kubernetes/admin.conf -n kube-system rollout status deployment/coredns --timeout=120s' >>"$OUT/$master.log"
phase ready
