#!/bin/bash
# debian.sh DIR: a Debian with everything that becomes an rpm, and with the programs
# that make rpms of it.
set -euo pipefail
out=$1

packages=systemd,systemd-sysv,dbus,openssh-server,sudo,iproute2,iputils-ping,iptables,nftables,conntrack,socat
packages=$packages,ethtool,ipset,kmod,procps,ca-certificates,curl,tar,gzip,xz-utils,zstd,rsync,util-linux,mount,less
packages=$packages,netcat-openbsd,udev,chrony,logrotate,bash-completion,bind9-dnsutils,openssl,hostname,findutils,perl-base
packages=$packages,rpm,dnf,createrepo-c,gpg,gpg-agent,gpgconf,ipvsadm,nfs-common,open-iscsi,haproxy,keepalived,nginx,tcpdump,selinux-utils

sources=/etc/apt/sources.list.d/debian.sources
[ -e "$sources" ] || sources=/etc/apt/sources.list
rm -rf "$out"
mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$out" "$sources"
mkdir "$out/build"
