# What makes a distribution's root, in $out, a host of the lab.

# Apt's timers would ask the internet for updates, which is not what the lab is to
# watch. The others look after disks, at times that have nothing to do with a test.
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_reap.service e2scrub_all.timer fstrim.timer; do
    ln -sfn /dev/null "$out/etc/systemd/system/$unit"
done

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

