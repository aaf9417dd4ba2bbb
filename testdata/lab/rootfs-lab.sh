# What makes a distribution's root, in $out, the disk of the lab's hosts.

# Units that have nothing to do in a container: the kernel, its devices and its
# clock belong to the machine. Apt's and man-db's timers would ask the internet
# for updates, which is not what the lab is to watch.
for unit in \
    systemd-udevd.service systemd-udev-trigger.service systemd-udevd-kernel.socket systemd-udevd-control.socket \
    systemd-networkd.service systemd-networkd.socket systemd-networkd-wait-online.service \
    systemd-remount-fs.service e2scrub_reap.service e2scrub_all.timer fstrim.timer \
    getty.target console-getty.service \
    sys-kernel-debug.mount sys-kernel-tracing.mount sys-kernel-config.mount sys-fs-fuse-connections.mount \
    proc-sys-fs-binfmt_misc.automount apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer; do
    ln -sfn /dev/null "$out/etc/systemd/system/$unit"
done

# Most kernel settings are the machine's. What the distribution would set at
# boot goes, so that systemd-sysctl sets only what is asked of it later.
rm -f "$out"/usr/lib/sysctl.d/*.conf "$out"/etc/sysctl.d/*.conf
rm -f "$out"/etc/sysctl.conf

# Each host gets a key of its own. Root comes in by key; admin by password, and
# needs it again for sudo; ops by key, and needs none.
rm -f "$out"/etc/ssh/ssh_host_*
printf 'PasswordAuthentication yes\nHostKey /etc/ssh/ssh_host_ed25519_key\nUseDNS no\n' > "$out/etc/ssh/sshd_config.d/lab.conf"
for user in admin ops; do
    chroot "$out" id "$user" >/dev/null 2>&1 || chroot "$out" useradd --create-home --shell /bin/bash "$user"
done
echo 'admin:kubexm-lab' | chroot "$out" chpasswd
printf 'admin ALL=(ALL) ALL\nops ALL=(ALL) NOPASSWD: ALL\n' > "$out/etc/sudoers.d/lab"
chmod 440 "$out/etc/sudoers.d/lab"
: > "$out/etc/fstab"
: > "$out/etc/machine-id"

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
    net/ipv4/netfilter/iptable_mangle drivers/net/vxlan/vxlan drivers/net/veth drivers/net/tun > "$modules/modules.builtin"
chroot "$out" depmod -a "$kernel"

# The disk that each host gets a copy of: nearly all of it is a hole.
rm -f "$out.img.part"
truncate -s 40G "$out.img.part"
mkfs.ext4 -q -F -m 0 -L lab -E lazy_itable_init=1,lazy_journal_init=1,nodiscard,hash_seed=00000000-0000-0000-0000-000000000001 -d "$out" "$out.img.part"
mv "$out.img.part" "$out.img"
