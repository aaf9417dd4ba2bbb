package runner

// holder prints the process that holds a lock file of the package tools, as "apt-get (process
// 712)". /proc/locks lists locks by inode.
const holder = `
holder() {
	for f; do
		[ -e "$f" ] || continue
		i=$(stat -L -c %i -- "$f") || continue
		p=$(sed -n "s/^[0-9]*: *[A-Z]* *[A-Z]* *WRITE *\([0-9][0-9]*\) [0-9a-f]*:[0-9a-f]*:$i .*/\1/p" /proc/locks | head -n 1)
		if [ -n "$p" ]; then
			n=$(cat "/proc/$p/comm" 2>/dev/null) || n=something
			printf '%s (process %s)' "$n" "$p"
			return
		fi
	done
}
busy() {
	case $1 in
	deb) holder /var/lib/dpkg/lock-frontend /var/lib/dpkg/lock ;;
	rpm) holder /var/lib/rpm/.rpm.lock /usr/lib/sysimage/rpm/.rpm.lock /var/lib/dnf/rpmdb_lock.pid ;;
	esac
}
`

// debTrouble prints problems that make apt fail: an interrupted dpkg, partially installed
// packages.
const debTrouble = `
debtrouble() {
	for f in /var/lib/dpkg/updates/[0-9]*; do
		if [ -e "$f" ]; then echo 'dpkg was interrupted'; break; fi
	done
	dpkg-query -W -f '${db:Status-Status} ${binary:Package}\n' |
		sed -n 's/^\(half-[a-z]*\|unpacked\|triggers-[a-z]*\) \(.*\)/\2 is \1/p'
}
`

// patience waits until the package lock for format $1 is free, for at most $2 seconds.
const patience = `
patience() {
	waited=0
	while who=$(busy "$1") && [ -n "$who" ]; do
		if [ "$waited" -ge "$2" ]; then
			echo "$who has the packages locked since more than $2 seconds" >&2
			exit 75
		fi
		[ "$waited" -gt 0 ] || echo "waiting for $who, which has the packages locked"
		sleep 1
		waited=$((waited + 1))
	done
}
`

// quiet sets up an environment without prompts from packages.
const quiet = `
umask 022
exec </dev/null
unset http_proxy https_proxy ftp_proxy all_proxy HTTP_PROXY HTTPS_PROXY FTP_PROXY ALL_PROXY APT_CONFIG
export LC_ALL=C TERM=dumb DEBIAN_FRONTEND=noninteractive DEBCONF_NONINTERACTIVE_SEEN=true \
	APT_LISTCHANGES_FRONTEND=none APT_LISTBUGS_FRONTEND=none NEEDRESTART_SUSPEND=1 NEEDRESTART_MODE=l UCF_FORCE_CONFFOLD=1
`

const (
	// FORMAT NAME...; prints lines of tab-separated fields.
	scriptPackages = `format=$1; shift` + holder + debTrouble + `
who=$(busy "$format")
[ -z "$who" ] || printf 'busy\t%s\n' "$who"
case $format in
deb)
	native=$(dpkg --print-architecture) || exit
	printf 'native\t%s\n' "$native"
	dpkg-query -W -f 'is\t${db:Status-Status}\t${binary:Package}\t${Package}\t${Version}\t${Architecture}\n' || exit
	[ -n "$who" ] || debtrouble | sed 's/^/trouble	/'
	[ $# -gt 0 ] || exit 0
	given=$(dpkg-query -W -f '${db:Status-Status} ${Provides}\n' | sed -n 's/^installed //p' | tr , '\n' | sed 's/^ *//; s/[ (:].*//')
	for n; do
		printf '%s\n' "$given" | grep -qxF -- "$n" && printf 'provided\t%s\n' "$n"
	done ;;
rpm)
	exec 3>&1
	e=$(rpm -qa --qf 'is\tinstalled\t%{NAME}.%{ARCH}\t%{NAME}\t%{VERSION}-%{RELEASE}\t%{ARCH}\n' 2>&1 >&3)
	status=$?
	printf '%s\n' "$e" | sed -n 's/^error: /trouble	/p' | head -n 3
	[ "$status" -eq 0 ] || exit "$status"
	for n; do
		rpm -q --whatprovides -- "$n" >/dev/null 2>&1 && printf 'provided\t%s\n' "$n"
	done ;;
esac
exit 0`

	// FORMAT ID...; prints "kept ID" for each package that other packages depend on.
	scriptPackagesFree = quiet + `
format=$1; shift
without() { # DROP ID...: sets rest to the IDs that are not among the words of DROP
	drop=" $1 "; shift; rest=
	for n; do
		case $drop in
		*" $n "*) printf 'kept\t%s\n' "$n" ;;
		*) rest="$rest $n" ;;
		esac
	done
}
while [ $# -gt 0 ]; do
	case $format in
	deb)
		if e=$(dpkg --no-act --abort-after=100000 --purge -- "$@" 2>&1); then exit 0; fi
		stuck=$(printf '%s\n' "$e" | sed -n '/^Errors were encountered while processing:$/,$ s/^ //p' | tr '\n' ' ') ;;
	rpm)
		if e=$(rpm -e --test -- "$@" 2>&1); then exit 0; fi
		stuck=$(printf '%s\n' "$e" | sed -n 's/^[ 	]*\(.*\) is needed by .*/\1/p' | while IFS= read -r need; do
			case $need in
			'('*) printf '%s\n' "$need" | tr '() ' '\n\n\n' ;;
			*) printf '%s\n' "${need%% *}" ;;
			esac
		done | sort -u | while IFS= read -r need; do
			[ -z "$need" ] || rpm -q --whatprovides --qf '%{NAME}.%{ARCH} ' -- "$need" 2>/dev/null
		done) ;;
	esac
	had=$#
	without "$stuck" "$@"
	set -- $rest
	if [ $# -eq "$had" ]; then
		printf '%s\n' "$e" >&2
		exit 1
	fi
done
exit 0`

	// FORMAT FOLDER BASE ROOT-SHA256 WAIT NAME...; removes FOLDER at its end.
	scriptPackagesInstall = quiet + `
set -eu
format=$1 dir=$2 base=$3 sum=$4 wait=$5; shift 5
trap 'rm -rf -- "$dir"' EXIT
trap 'exit 143' TERM INT HUP
mkdir -p -- "$dir"` + holder + debTrouble + patience + `
genuine() { # FOLDER PATTERN: what vouches for all else has to be what the bundle has
	found=$(find "$1" -name "$2" -type f -o -name "$2" -type l | head -n 1)
	if [ -z "$found" ]; then echo "the repository at $base has no $2" >&2; exit 79; fi
	h=$(sha256sum <"$found")
	if [ "${h%% *}" != "$sum" ]; then echo "the repository at $base is not the one of the bundle" >&2; exit 79; fi
}
patience "$format" "$wait"
case $format in
deb)
	bad=$(debtrouble)
	if [ -n "$bad" ]; then printf '%s\n' "$bad" >&2; exit 76; fi
	mkdir -p -- "$dir/lists/partial" "$dir/cache/archives/partial"
	printf 'deb [trusted=yes] %s ./\n' "$base" >"$dir/sources.list"
	cat >"$dir/apt.conf" <<EOF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear Acquire::http;
Dir::Etc::sourcelist "$dir/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "$dir/lists/";
Dir::Cache "$dir/cache/";
Dir::Cache::archives "archives/";
Dir::Cache::pkgcache "";
Dir::Cache::srcpkgcache "";
APT::Default-Release "";
APT::Install-Recommends "false";
APT::Install-Suggests "false";
APT::Get::Upgrade-Allow-New "true";
APT::Get::allow-change-held-packages "false";
APT::Get::allow-remove-essential "false";
APT::Get::Remove "true";
APT::Get::Purge "false";
APT::Get::AutomaticRemove "false";
APT::Get::List-Cleanup "false";
APT::Get::Download-Only "false";
APT::Get::Simulate "false";
APT::Sandbox::User "root";
Acquire::Check-Date "false";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::PDiffs "false";
Acquire::Retries "2";
APT::Update::Error-Mode "any";
Acquire::http::Proxy "DIRECT";
Acquire::http::Timeout "60";
DPkg::Lock::Timeout "$wait";
DPkg::Use-Pty "false";
DPkg::Options:: "--force-confdef";
DPkg::Options:: "--force-confold";
Dpkg::Progress-Fancy "false";
EOF
	apt() { apt-get -q -y -c "$dir/apt.conf" "$@"; }
	apt update
	genuine "$dir/lists" '*Release'
	bad=$(apt -s install -- "$@" | sed -n 's/^Remv \([^ ]*\).*/\1/p' | tr '\n' ' ') || true
	if [ -n "$bad" ]; then
		echo "to install $* would remove ${bad% }" >&2
		exit 77
	fi
	apt install -- "$@" ;;
rpm)
	tool=$(command -v dnf || command -v yum) || { echo "neither dnf nor yum is there" >&2; exit 78; }
	mkdir -p -- "$dir/cache" "$dir/repos"
	cat >"$dir/dnf.conf" <<EOF
[main]
reposdir=$dir/repos
cachedir=$dir/cache
plugins=0
assumeyes=1
gpgcheck=0
localpkg_gpgcheck=0
obsoletes=1
install_weak_deps=0
metadata_expire=never
retries=3
timeout=60
deltarpm=0
color=never
EOF
	cat >"$dir/repos/kubexm.repo" <<EOF
[kubexm]
name=kubexm
baseurl=$base
enabled=1
gpgcheck=0
repo_gpgcheck=0
proxy=_none_
metadata_expire=never
module_hotfixes=1
EOF
	"$tool" -q -c "$dir/dnf.conf" makecache
	genuine "$dir/cache" repomd.xml
	"$tool" -c "$dir/dnf.conf" -y install -- "$@" ;;
esac`

	// FORMAT WAIT N ID...; purges the first N packages and removes the others.
	scriptPackagesRemove = quiet + `
set -eu
format=$1 wait=$2 n=$3; shift 3` + holder + patience + `
failed() { # LOAD: the units that failed and are in that state
	systemctl list-units --all --state=failed --plain --no-legend 2>/dev/null | while read -r unit load rest; do
		[ "$load" != "$1" ] || echo "$unit"
	done
}
patience "$format" "$wait"
was=$(failed loaded)
case $format in
deb)
	# Else apt keeps in mind which of them came for another one's sake.
	apt-mark -qq -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= manual -- "$@" || true
	dpkg --abort-after=100000 --remove -- "$@"
	i=0 purge=
	for p; do
		i=$((i + 1))
		[ "$i" -gt "$n" ] || purge="$purge $p"
	done
	[ -z "$purge" ] || dpkg --abort-after=100000 --purge -- $purge ;;
rpm) rpm -e -- "$@" ;;
esac
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
for unit in $(failed not-found); do # systemd remembers the failures of units that are gone
	! printf '%s\n' "$was" | grep -qxF -- "$unit" || systemctl reset-failed -- "$unit"
done`
)
