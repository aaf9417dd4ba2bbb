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

// endAll sends SIGTERM to every process with the mark $1, and SIGKILL to those that are
// still running after two seconds. Its own arguments do not contain variable and mark as
// one string, because sudo copies its command line into the environment (SUDO_COMMAND).
const endAll = `i=0
while p=$(grep -lsF -- "KUBEXM_COMMAND=$1" /proc/[0-9]*/environ | cut -d/ -f3) && [ -n "$p" ]; do
	if [ $i -eq 0 ]; then kill -TERM $p; elif [ $i -ge 20 ]; then kill -KILL $p; fi
	i=$((i + 1))
	[ $i -lt 40 ] || exit 1
	sleep 0.1
done 2>/dev/null
exit 0`

// endTimeout is the timeout for terminating a command's processes.
const endTimeout = 6 * time.Second

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
