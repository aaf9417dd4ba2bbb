#!/bin/bash
# build.sh DEBIAN DIR: makes the rpms, in DIR.rpms a signed repository of them, and in
# DIR a host that dnf installed from there.
set -euo pipefail
debian=$1 out=$2
inside() { chroot "$debian" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/build LC_ALL=C.UTF-8 "$@"; }

inside rpmbuild -bb --quiet --target x86_64 --define '_topdir /build/top' --define '_rpmdir /build/rpms' \
    --define '_build_name_fmt %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' /build/kubexmlab.spec
inside createrepo_c --quiet --no-database /build/rpms
mkdir -m 700 "$debian/build/.gnupg"
inside gpg --quiet --batch --passphrase '' --quick-gen-key 'kubexm lab <lab@lab.test>' rsa3072 sign never
inside gpg --quiet --batch --armor --detach-sign /build/rpms/repodata/repomd.xml
inside gpg --batch --armor --export > "$debian/build/rpms/RPM-GPG-KEY-kubexmlab"
inside gpgconf --kill all

mkdir -p "$debian/build/conf/repos" "$debian/build/host/dev"
printf '[main]\nreposdir=/build/conf/repos\ncachedir=/build/cache\nplugins=0\ngpgcheck=0\ninstall_weak_deps=0\ncolor=never\n' > "$debian/build/conf/dnf.conf"
printf '[lab]\nname=lab\nbaseurl=file:///build/rpms\ngpgcheck=0\n' > "$debian/build/conf/repos/lab.repo"
echo '%_dbpath %{_var}/lib/rpm' > "$debian/usr/lib/rpm/macros.d/macros.kubexmlab" # Debian's rpm keeps it in a home
mknod -m 666 "$debian/build/host/dev/null" c 1 3 # for the packages' scripts
mount -t proc proc "$debian/proc"
trap 'umount "$debian/proc"' EXIT
inside dnf -y -c /build/conf/dnf.conf --installroot /build/host --releasever 9 install kubexmlab-host
# As packages of dnf and what it is written in have it.
chroot "$debian/build/host" python3 -m compileall -q /usr/lib/python3 /usr/lib/python3.11
rm -r "$debian/build/host/dev/null" "$debian/build/host/build"

# chronyd may be configured and started, and leaves the machine's clock alone.
mkdir -p "$debian/build/host/etc/systemd/system/chronyd.service.d"
printf '[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x -f /etc/chrony.conf $OPTIONS\n' > "$debian/build/host/etc/systemd/system/chronyd.service.d/lab.conf"

rm -rf "$out" "$out.rpms"
mv "$debian/build/rpms" "$out.rpms"
mv "$debian/build/host" "$out"
