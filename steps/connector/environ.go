package connector

import (
	"context"
	"io"
	"time"
)

// SearchPath is the PATH of commands on hosts. It does not depend on the login shell or on
// sudoers, so that a command finds the same program on all hosts.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// marker is the environment variable that identifies the processes of one command.
const marker = "KUBEXM_COMMAND="

// withEnvironment wraps argv in a fixed environment: the C locale, which parsers expect, the
// search path, and a mark that identifies all processes of the command.
func withEnvironment(path, mark string, argv []string) []string {
	if path == "" {
		path = SearchPath
	}
	return append([]string{"/usr/bin/env", "LC_ALL=C", "PATH=" + path, marker + mark}, argv...)
}

// endAll sends SIGTERM to every process with the mark $1, and SIGKILL to those that are still
// running after two seconds. It measures the time, in hundredths of seconds: on a busy host one
// search of /proc can take a second. Its own arguments do not contain variable and mark as one
// string, because sudo copies its command line into the environment (SUDO_COMMAND).
const endAll = `began=
while p=$(grep -lsF -- "KUBEXM_COMMAND=$1" /proc/[0-9]*/environ | cut -d/ -f3) && [ -n "$p" ]; do
	read -r now rest </proc/uptime
	now=${now%.*}${now#*.}
	if [ -z "$began" ]; then began=$now; kill -TERM $p; elif [ $((now - began)) -ge 200 ]; then kill -KILL $p; fi
	[ $((now - began)) -lt 800 ] || exit 1
	sleep 0.1
done 2>/dev/null
exit 0`

// endTimeout is the timeout for terminating a command's processes.
const endTimeout = 10 * time.Second

// end terminates the processes of a canceled command: sshd forwards signals only for some
// users, and signals do not reach processes that sudo started. It works on a best-effort
// basis: on an unreachable host the processes continue.
func (w Wire) end(ctx context.Context, mark string, asRoot bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTimeout)
	defer cancel()
	argv := []string{"/bin/sh", "-c", endAll, "sh", mark}
	if asRoot {
		_, _ = w.Sudo.Run(ctx, w.Start, argv, nil, io.Discard, io.Discard) // the caller returns the error of the command itself
		return
	}
	_, _ = w.Start(ctx, argv, nil, io.Discard, io.Discard) // as above
}
