#!/bin/bash
# Starts one host of a lab: in cgroups and namespaces of its own it lays out a
# mount tree and becomes systemd. The lab gives it all it needs in LAB_*.
set -euo pipefail

if [ "${LAB_STAGE:-1}" = 1 ]; then
    for dir in $LAB_CGROUPS; do
        echo $$ > "$dir/cgroup.procs"
    done
    export LAB_STAGE=2
    exec nsenter --net="/run/netns/$LAB_NETNS" \
        unshare --mount --uts --ipc --pid --cgroup --fork --kill-child --propagation private bash "$0"
fi

hostname "$LAB_HOST"
root=$LAB_DIR/root

# A disk of its own, whole: the kubelet evicts by percentages of the disk that it
# is on, and an overlay could not carry the layers of containers. The loop device
# goes with the last mount of it.
mount -o loop,discard,noatime "$LAB_DIR/disk.img" "$root"
if [ -d "$LAB_DIR/seed" ]; then # at its first start
    cp -a "$LAB_DIR/seed/." "$root/"
    sync -f "$root" # so that a host whose power is cut soon still has its keys
fi

mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
for controller in $LAB_CONTROLLERS; do
    mkdir "$root/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "$root/sys/fs/cgroup/$controller"
done
mkdir "$root/sys/fs/cgroup/systemd"
mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
mount -t bpf bpf "$root/sys/fs/bpf" 2>/dev/null || true

mount -t tmpfs -o mode=755 tmpfs "$root/dev"
while read -r name mode major minor; do
    mkdir -p "$(dirname "$root/dev/$name")"
    mknod -m "$mode" "$root/dev/$name" c "$major" "$minor"
done <<'NODES'
null 666 1 3
zero 666 1 5
full 666 1 7
random 666 1 8
urandom 666 1 9
kmsg 644 1 11
tty 666 5 0
fuse 666 10 229
net/tun 666 10 200
NODES
touch "$root/dev/console"
mount --bind /dev/null "$root/dev/console"
mkdir "$root/dev/pts" "$root/dev/shm" "$root/dev/mqueue"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t mqueue mqueue "$root/dev/mqueue"
ln -s /proc/self/fd "$root/dev/fd"
ln -s fd/0 "$root/dev/stdin"
ln -s fd/1 "$root/dev/stdout"
ln -s fd/2 "$root/dev/stderr"

mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"

cd "$root"
mkdir -p .old
pivot_root . .old
cd /
mount --make-rprivate /.old
umount -l /.old
rmdir /.old
mount --make-rshared /
# shellcheck disable=SC2086 # one word per argument
exec env -i container=lab PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=linux \
    /sbin/init $LAB_INIT </dev/null >/dev/null 2>&1
