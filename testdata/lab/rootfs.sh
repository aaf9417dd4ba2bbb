#!/bin/bash
# rootfs.sh DIR SUITE [PACKAGE,... [KERNEL]]: a Debian as a site's administrator
# installs it, for the lab's hosts. It is made from the machine's own package sources,
# with the suite's name in the place of their own's. Nothing of it is Kubernetes'. The
# package of a kernel is left in DIR/boot.
set -euo pipefail
out=$1 suite=$2 more=${3:-} kernel=${4:-}

packages=systemd,systemd-sysv,dbus,openssh-server,sudo,iproute2,iputils-ping,iptables,nftables,conntrack,socat,ebtables
packages=$packages,ethtool,ipset,kmod,procps,ca-certificates,curl,tar,gzip,xz-utils,zstd,rsync,util-linux,mount,less
packages=$packages,netcat-openbsd,udev,chrony,logrotate,bash-completion,python3,bind9-dnsutils,openssl${more:+,$more}
case ,$more, in # of two that keep the time a Debian has one
*,systemd-timesyncd,*) packages=${packages/chrony,/} ;;
esac

# KERNEL is a package that depends on the one of the current version.
export kernel
fetch='[ -z "$kernel" ] || { cd "$1/boot" && export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG" && apt-get -qq download $(apt-cache depends "$kernel" | sed -n s/.*Depends:.//p); }'

if [ ! -e "$out/.bootstrapped" ]; then
    from=/etc/apt/sources.list.d/debian.sources
    [ -e "$from" ] || from=/etc/apt/sources.list
    sources=$out.${from##*.}
    sed "s/\b$(. /etc/os-release && echo "$VERSION_CODENAME")\b/$suite/g" "$from" > "$sources"
    rm -rf "$out"
    mmdebstrap --quiet --variant=minbase --mode=root --include="$packages" \
        --aptopt='APT::Install-Recommends "false"' \
        --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' --customize-hook="$fetch" \
        "$suite" "$out" "$sources"
    # No package source of this machine is a site's.
    rm -rf "$out"/etc/apt/sources.list "$out"/etc/apt/sources.list.d/* "$out"/var/lib/apt/lists/*
    rm "$sources"
    touch "$out/.bootstrapped"
fi

# chronyd may be configured and started, and leaves the machine's clock alone.
mkdir -p "$out/etc/systemd/system/chrony.service.d"
printf '[Service]\nExecStart=\nExecStart=!/usr/sbin/chronyd -x $DAEMON_OPTS\n' > "$out/etc/systemd/system/chrony.service.d/lab.conf"
rm -f "$out"/etc/systemd/system/multi-user.target.wants/chrony.service "$out"/etc/systemd/system/chronyd.service
