# What makes a Debian's root, in $out, that of a machine with a kernel of its own: the
# kernel and what it is started with are $out.kernel and $out.initrd.

# The kernel's package is unpacked, not installed: it would want tools to make a boot
# loader and an initial RAM disk with.
if compgen -G "$out/boot/linux-image-*.deb" >/dev/null; then
    rm -rf "$out.unpacked"
    dpkg-deb -x "$out"/boot/linux-image-*.deb "$out.unpacked"
    mkdir -p "$out/usr/lib/modules"
    cp -a "$out.unpacked"/lib/modules/. "$out/usr/lib/modules/"
    mv "$out.unpacked"/boot/vmlinuz-* "$out.kernel"
    mv "$out.unpacked"/boot/config-* "$out/boot/" # kubeadm's preflight reads it
    rm -rf "$out.unpacked" "$out"/boot/linux-image-*.deb
fi
release=$(ls "$out/usr/lib/modules")
depmod -b "$out" "$release"

# The clock is its own. Like any time service with servers of the distribution's,
# chronyd would ask the internet, so it does not start by itself.
rm -rf "$out/etc/systemd/system/chrony.service.d"

# Without the processor's own instructions, AES takes half as long again as this one.
echo 'Ciphers chacha20-poly1305@openssh.com' > "$out/etc/ssh/sshd_config.d/lab-ciphers.conf"

# systemd-resolved has made a link of it, which a host's own files could not replace.
rm -f "$out/etc/resolv.conf"

# The initial RAM disk: busybox, and what it takes to reach the disk and the network.
# Modules are named in the order in which one needs another.
rm -rf "$out.ram"
mkdir -p "$out.ram/bin" "$out.ram/modules"
cp "${busybox:-/bin/busybox}" "$out.ram/bin/busybox"
cat > "$out.ram/init" <<'INIT'
#!/bin/busybox sh
# Finds the disk, gives the network card the addresses that the kernel's command line
# says, as from outside, and leaves the rest to the disk's systemd.
busybox=/bin/busybox
stop() {
    echo "initrd: $*"
    exec $busybox sleep 1000000
}
$busybox mkdir /proc /sys /dev /root
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sysfs /sys
$busybox mount -t devtmpfs devtmpfs /dev
for module in $($busybox cat /modules/order); do
    $busybox insmod "/modules/$module" || stop "no $module"
done
for word in $($busybox cat /proc/cmdline); do
    case $word in
    lab.*=*) eval "${word#lab.}" ;;
    esac
done
tries=0
while [ ! -b /dev/vda ] || [ ! -e /sys/class/net/eth0 ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || stop "no disk, or no network card"
    $busybox sleep 0.1
done
$busybox mount -t ext4 -o noatime,discard /dev/vda /root || stop "no file system on the disk"
for dir in proc sys dev; do
    $busybox mount --move /$dir /root/$dir
done
# By its path: busybox has a program of that name, with less in it.
ip() { $busybox chroot /root /usr/sbin/ip "$@" || echo "initrd: ip $*"; }
ip link set lo up
ip address add "$address" dev eth0
ip address add "$address6" dev eth0 nodad
ip link set eth0 up
ip route add default via "$gateway"
ip route add default via "$gateway6"
exec $busybox switch_root /root /sbin/init
INIT
chmod 755 "$out.ram/init"
for module in \
    drivers/virtio/virtio_ring drivers/virtio/virtio drivers/virtio/virtio_pci_legacy_dev drivers/virtio/virtio_pci_modern_dev \
    drivers/virtio/virtio_pci drivers/block/virtio_blk net/core/failover drivers/net/net_failover drivers/net/virtio_net; do
    cp "$out/usr/lib/modules/$release/kernel/$module.ko" "$out.ram/modules/"
    echo "${module##*/}.ko" >> "$out.ram/modules/order"
done
(cd "$out.ram" && find . | cpio -o -H newc --quiet --owner 0:0 | gzip -9) > "$out.initrd"
rm -rf "$out.ram"
