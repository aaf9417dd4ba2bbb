# What a host that has this machine's kernel, and no devices of its own, must not try.

# Units that have nothing to do in a container: the kernel, its devices and its
# clock belong to the machine.
for unit in \
    systemd-udevd.service systemd-udev-trigger.service systemd-udevd-kernel.socket systemd-udevd-control.socket \
    systemd-networkd.service systemd-networkd.socket systemd-networkd-wait-online.service \
    systemd-remount-fs.service \
    getty.target console-getty.service \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
    proc-sys-fs-binfmt_misc.automount; do
    ln -sfn /dev/null "$out/etc/systemd/system/$unit"
done

# Most kernel settings are the machine's. What the distribution would set at
# boot goes, so that systemd-sysctl sets only what is asked of it later.
rm -f "$out"/usr/lib/sysctl.d/*.conf "$out"/etc/sysctl.d/*.conf
rm -f "$out"/etc/sysctl.conf

# The kernel has no loadable modules. What is built in is declared, so that
# modprobe says of each module whether the kernel has it.
kernel=$(uname -r)
modules=$out/usr/lib/modules/$kernel
mkdir -p "$modules"
: > "$modules/modules.order"
: > "$modules/modules.builtin.modinfo"
printf 'kernel/%s.ko\n' \
    net/bridge/br_netfilter net/bridge/bridge fs/overlayfs/overlay fs/fuse/fuse \
    net/netfilter/nf_conntrack net/netfilter/nf_nat net/netfilter/xt_conntrack net/netfilter/nf_tables \
    net/netfilter/ipset/ip_set net/netfilter/ipset/ip_set_hash_ip \
    net/ipv4/netfilter/ip_tables net/ipv4/netfilter/iptable_nat net/ipv4/netfilter/iptable_filter \
    net/ipv4/netfilter/iptable_mangle net/ipv4/netfilter/iptable_raw net/ipv6/netfilter/ip6_tables \
    net/ipv6/netfilter/ip6table_nat net/ipv6/netfilter/ip6table_filter net/ipv6/netfilter/ip6table_mangle \
    net/ipv6/netfilter/ip6table_raw net/netfilter/xt_socket drivers/net/vxlan/vxlan drivers/net/veth drivers/net/tun > "$modules/modules.builtin"
chroot "$out" depmod -a "$kernel"

