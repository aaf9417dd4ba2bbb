package runner

// scriptFacts prints sections, each with a header line "==> NAME". It changes nothing. The
// section of a missing program is empty.
const scriptFacts = `exec 2>/dev/null
s() { printf '\n==> %s\n' "$1"; }
s os-release; cat /etc/os-release || cat /usr/lib/os-release
s machine; uname -m
s kernel; uname -r
s hostname; cat /proc/sys/kernel/hostname
s machine-id; cat /etc/machine-id
s product-uuid; cat /sys/class/dmi/id/product_uuid
s boot-id; cat /proc/sys/kernel/random/boot_id
s cpus; getconf _NPROCESSORS_ONLN
s meminfo; grep -E '^(MemTotal|MemAvailable|SwapTotal):' /proc/meminfo
s swaps; cat /proc/swaps
s addresses; ip -o addr show
s links; ip -o link show
s route4; ip -4 route show default
s route6; ip -6 route show default
s cgroup; stat -fc %T /sys/fs/cgroup
s selinux; getenforce || cat /sys/fs/selinux/enforce
s apparmor; cat /sys/module/apparmor/parameters/enabled
s init; cat /proc/1/comm; [ -d /run/systemd/system ] && echo running
s systemd; systemctl --version
s time; date +%s.%N; date +%z
s disks; df -PTkl -x tmpfs -x devtmpfs -x squashfs
s inodes; df -Pil -x tmpfs -x devtmpfs -x squashfs
s resolv-link; readlink -f /etc/resolv.conf
s resolv; cat /etc/resolv.conf
s packages; for p in apt-get dnf yum zypper; do command -v "$p" && break; done
s firewall; for u in firewalld ufw nftables; do systemctl is-active --quiet "$u" && echo "$u"; done
s virt; systemd-detect-virt
s user; id -un; id -u
s resolv-file; [ -e /etc/resolv.conf ] && echo there
s resolv-real; cat /run/systemd/resolve/resolv.conf
s hostname-addresses; getent -s hosts:files ahosts "$(cat /proc/sys/kernel/hostname)"
s units; systemctl show -p Id -p LoadState -p ActiveState -p FragmentPath -- kubelet.service chronyd.service chrony.service ntpd.service ntp.service ntpsec.service openntpd.service systemd-timesyncd.service
s processes; grep -HxE 'kubelet|kube-apiserver|kube-controller|kube-scheduler|kube-proxy|etcd' /proc/[0-9]*/comm
s traces; find /etc/kubernetes /var/lib/kubelet /etc/cni/net.d /var/lib/cni -maxdepth 2 -type f | head -n 100
s modules; k=/lib/modules/$(uname -r)
for m in overlay br_netfilter nf_conntrack ip_vs ip_vs_rr ip_vs_wrr ip_vs_sh vxlan ipip wireguard dummy iscsi_tcp; do
	if grep -q "^$m " /proc/modules; then echo "$m loaded"
	elif [ -r "$k/modules.builtin" ] && tr - _ <"$k/modules.builtin" | grep -q "/$m\.ko"; then echo "$m builtin"
	elif [ -d "/sys/module/$m" ]; then echo "$m builtin"
	elif modprobe -n -q -- "$m"; then echo "$m available"
	else echo "$m absent"; fi
done
s commands; for c in conntrack ebtables ethtool ip ipset iptables iscsiadm modprobe mount mount.nfs nsenter socat tar tc touch; do command -v "$c" >/dev/null && echo "$c"; done
s sysctls; for k in fs/inotify/max_user_instances fs/inotify/max_user_watches net/ipv6/conf/all/disable_ipv6; do [ -r "/proc/sys/$k" ] && echo "$k $(cat "/proc/sys/$k")"; done
s sysctl-files; grep -HsE '^[[:space:]]*-?net[./](ipv[46]|bridge)[./][^=]*=' /etc/sysctl.conf /etc/sysctl.d/*.conf /run/sysctl.d/*.conf /usr/local/lib/sysctl.d/*.conf /usr/lib/sysctl.d/*.conf | head -n 500
s held; dpkg-query -W -f '${db:Status-Want} ${Package}\n' | grep '^hold '; cat /etc/dnf/plugins/versionlock.list /etc/yum/pluginconf.d/versionlock.list
s ports; if command -v ss >/dev/null; then ss -Hlntup; else cat /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6; fi
s end
exit 0`
