#!/bin/sh
# Makes the interface of the DNS cache, and runs CoreDNS on it. It is stricter than upstream's
# where a mistake would have no effect in the lab: it knows the flags of main.go without which
# the lab's clusters do not go up, and the plugins that upstream's program has.
set -eu
address='' conf='' base=/etc/coredns/Corefile.base link=nodelocaldns

fail() {
	echo "node-cache: $*" >&2
	exit 2
}

while [ $# -gt 0 ]; do
	case $1 in
	-localip) address=$2 && shift ;;
	-conf) conf=$2 && shift ;;
	-metrics-listen-address) shift ;; # it has none
	-setupiptables=false | -skipteardown=true) ;;
	*) fail "flag provided but not defined: $1" ;;
	esac
	shift
done
[ -n "$address" ] || fail "invalid localip specified - ''"
[ -n "$conf" ] || fail 'no -conf'

# check refuses plugins that upstream's program is built without.
check() {
	depth=0
	while read -r word rest; do
		case $depth$word in
		0* | *'}' | 1) ;;
		1bind | 1cache | 1debug | 1errors | 1forward | 1health | 1hosts | 1loadbalance | 1log | 1loop | 1prometheus | 1pprof | 1reload | 1rewrite | 1template | 1trace | 1whoami) ;;
		1*) fail "$base: Unknown directive '$word'" ;;
		esac
		case "$word $rest" in
		*'{') depth=$((depth + 1)) ;;
		'} ') depth=$((depth - 1)) ;;
		esac
	done <"$base"
}

check
cp "$base" "$conf"
ip link show dev "$link" >/dev/null 2>&1 || ip link add "$link" type dummy
ip addr replace "$address/32" dev "$link"
# Upstream's looks each ten seconds too; CoreDNS looks at the copy by its plugin reload.
while sleep 10; do
	cp "$base" "$conf.new" && mv "$conf.new" "$conf"
done &
exec /coredns -conf "$conf"
