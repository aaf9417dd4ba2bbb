# What this host is, a line for each thing: kind, name, and how it is, with tabs
# between them. It changes nothing.
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
tab=$(printf '\t')
line() { while IFS= read -r l; do printf '%s\t%s\t%s\n' "$1" "${l%%$tab*}" "${l#*$tab}"; done; }

# Files of the host's own disk. Contents by their digest.
find / -xdev \( -type d -printf 'folder\t%p\t%#m %U:%G\n' \) -o \( -type l -printf 'link\t%p\t%l\n' \) -o \
    \( ! -type f -printf 'special\t%p\t%y %#m %U:%G\n' \) -o \( -printf 'mode\t%p\t%#m %U:%G\n' \)
find / -xdev -type f -print0 | xargs -0 sha256sum 2>/dev/null | sed "s/^\\([^ ]*\\)  \\(.*\\)$/file$tab\\2$tab\\1/"
# Below /run, which is in memory: names alone.
find /run -xdev -mindepth 1 -printf 'run\t%p\t%y\n'

systemctl list-unit-files --no-legend --no-pager | awk '{print "enabled\t" $1 "\t" $2}'
systemctl list-units --all --no-legend --no-pager --plain | awk '{print "unit\t" $1 "\t" $2 " " $3}'
# The disk is another loop device after a boot: its number is the machine's.
awk '{sub("^/dev/loop[0-9]+$", "/dev/loop", $10); print "mount\t" $5 "\t" $9 " " $10}' /proc/self/mountinfo
for t in iptables ip6tables; do
    "$t-save" 2>/dev/null | grep -v '^#' | sed -e 's/\[[0-9]*:[0-9]*\]//' | awk -v t="$t" '/^\*/ {table=$1} !/^(\*|COMMIT)/ {print t "\t" table " " $0 "\t"}'
done
nft -s list ruleset 2>/dev/null | awk '/^table/ {table=$2 " " $3} {sub(/^[ \t]+/, ""); print "nft\t" table ": " $0 "\t"}'
ip -o link | awk '{sub(/@.*/, "", $2); sub(/:$/, "", $2); print "interface\t" $2 "\t" $5}'
ip -o addr | awk '$3 ~ /inet/ {print "address\t" $2 " " $4 "\t"}'
for f in -4 -6; do
    ip $f route show table all 2>/dev/null | sed -e 's/ expires [0-9a-z]*//' | awk -v f="$f" '{print "route\t" f " " $0 "\t"}'
    ip $f rule | awk -v f="$f" '{print "rule\t" f " " $0 "\t"}'
done
ip netns list | awk '{print "netns\t" $1 "\t"}'
ipset list -n 2>/dev/null | awk '{print "ipset\t" $1 "\t"}'
ss -Hlntu | awk '{print "listens\t" $1 " " $5 "\t"}'
ps -eo ppid=,args= | awk -v self=$$ '$1 != self && $2 !~ /^(ps|awk|sort|\[)/ {$1 = ""; print "process\t" $0 "\t"}'
getent passwd | awk -F: '{print "user\t" $1 "\t" $0}'
getent group | awk -F: '{print "group\t" $1 "\t" $0}'
dpkg-query -W -f 'package\t${binary:Package}\t${Version} ${db:Status-Abbrev}\n' 2>/dev/null
rpm -qa --qf 'package\t%{NAME}.%{ARCH}\t%{EPOCHNUM}:%{VERSION}-%{RELEASE}\n' 2>/dev/null
sysctl -a 2>/dev/null | awk -F' = ' '{print "sysctl\t" $1 "\t" $2}'
[ ! -e /proc/modules ] || awk '{print "module\t" $1 "\t"}' /proc/modules
awk 'NR > 1 {print "swap\t" $1 "\t"}' /proc/swaps
printf 'hostname\thostname\t%s\n' "$(hostname)"
find /sys/fs/cgroup -type d \( -name 'kube*' -o -name 'system.slice:*' \) -printf 'cgroup\t%p\t\n' 2>/dev/null
