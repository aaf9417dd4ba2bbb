# What makes a Debian's root, in $out, that of arm64: the files of each package are
# replaced by those of the same package for arm64. What the packages' scripts made when
# they were installed stays, since it is text: nothing of arm64 has to run here.
if [ ! -e "$out/.arm64" ]; then
    from=/etc/apt/sources.list.d/debian.sources
    [ -e "$from" ] || from=/etc/apt/sources.list
    work=$out.arm64
    rm -rf "$work"
    mkdir -p "$work"/state/lists/partial "$work"/cache/archives/partial "$work/debs" "$work/sources"
    : > "$work/status"
    sed "s/\b$(. /etc/os-release && echo "$VERSION_CODENAME")\b/$suite/g" "$from" > "$work/sources/debian.${from##*.}"
    apt="-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=$work/sources -o Dir::State=$work/state -o Dir::State::status=$work/status -o Dir::Cache=$work/cache"
    apt="$apt -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root"
    # shellcheck disable=SC2086 # one word per option
    {
        apt-get -qq $apt update
        kernel=$(apt-cache $apt depends linux-image-cloud-arm64 | sed -n 's/.*Depends: *\(linux-image-.*\)/\1/p')
        packages=$(sed -n 's/^Package: //p' "$out/var/lib/dpkg/status")
        (cd "$work/debs" && apt-get -qq $apt download $packages "$kernel" busybox-static)
    }
    dpkg-deb -x "$work"/debs/busybox-static_*.deb "$work/busybox"
    mv "$work/busybox/bin/busybox" "$out.busybox"
    mv "$work/debs/$kernel"_*.deb "$out/boot/"
    rm -rf "$work"/debs/busybox-static_*.deb "$out/usr/lib/x86_64-linux-gnu" "$out"/usr/lib64/* "$out/etc/ld.so.cache"
    find "$out/usr" -name '*x86_64-linux-gnu*' -prune -exec rm -rf {} +
    for deb in "$work"/debs/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$out" \
            --exclude='./usr/share/man/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*'
    done
    rm -rf "$work"
    sed -i 's/^Architecture: amd64$/Architecture: arm64/' "$out/var/lib/dpkg/status"
    for file in "$out"/var/lib/dpkg/info/*:amd64.*; do
        mv "$file" "${file/:amd64./:arm64.}"
    done
    # Each program has to have been replaced.
    if left=$(LC_ALL=C grep -rlaP '^\x7fELF\x02\x01\x01[\x00-\xff]{9}[\x02\x03]\x00\x3e\x00' "$out/usr"); then
        echo "programs for amd64 are left: $left" >&2
        exit 1
    fi
    touch "$out/.arm64"
fi
busybox=$out.busybox
