#!/bin/sh
# Starts calico's programs, and with them BIRD where nodes exchange routes by BGP. BIRD is Debian's,
# and its birdc stands for birdcl: it cannot send packets through a tunnel, so that templates lose the
# lines about one. With the mode CrossSubnet BIRD finds a mistake in what is left.
calico-node -startup || exit 1
NODENAME=$(cat /var/lib/calico/nodename)
export NODENAME FELIX_FELIXHOSTNAME="$NODENAME"
calico-node -allocate-tunnel-addrs -allocate-tunnel-addrs-run-once || exit 1

services='felix monitor-addresses allocate-tunnel-addrs node-status-reporter cni'
if [ "$CALICO_NETWORKING_BACKEND" = bird ]; then
	services="$services confd bird"
	mkdir -p /etc/calico/confd/config
	ipam=/etc/calico/confd/templates/bird_ipam.cfg.template
	while IFS= read -r line; do
		case $line in
		*krt_tunnel*) ;;
		*) printf '%s\n' "$line" ;;
		esac
	done <"$ipam" >"$ipam.new"
	mv "$ipam.new" "$ipam"
fi
mkdir -p /etc/service/enabled
for service in $services; do
	cp -r "/etc/service/available/$service" /etc/service/enabled/
done
exec runsvdir -P /etc/service/enabled
