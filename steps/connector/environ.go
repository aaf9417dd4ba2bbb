package connector

import (
	"context"
	"io"
	"time"
)

// SearchPath is where a host's programs are looked for, whatever its login
// shell and its sudoers say: the same command finds the same program on each.
const SearchPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// marker is the variable by which the processes of one command are found again.
const marker = "KUBEXM_COMMAND="

// plainly gives argv in an environment that makes programs print what parsers
// expect (messages in the C locale), with path to search, and a mark by which
// all its processes can be found.
func plainly(path, mark string, argv []string) []string {
	if path == "" {
		path = SearchPath
	}
	return append([]string{"/usr/bin/env", "LC_ALL=C", "PATH=" + path, marker + mark}, argv...)
}

// endAll tells every process with the mark $1 to end, and kills those that are
// still there after two seconds. Its own arguments do not spell variable and mark
// in one: sudo puts them into the environment of what it runs.
const endAll = `i=0
while p=$(grep -lsF -- "KUBEXM_COMMAND=$1" /proc/[0-9]*/environ | cut -d/ -f3) && [ -n "$p" ]; do
	if [ $i -eq 0 ]; then kill -TERM $p; elif [ $i -ge 20 ]; then kill -KILL $p; fi
	i=$((i + 1))
	[ $i -lt 40 ] || exit 1
	sleep 0.1
done 2>/dev/null
exit 0`

// endWithin is how long ending a command's processes may take.
const endWithin = 6 * time.Second

// end ends what a command that was given up has left running: sshd passes
// signals on for some users only, and none reaches what sudo started. It does its
// best; a host that is out of reach keeps its processes.
func (w Wire) end(ctx context.Context, mark string, asRoot bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWithin)
	defer cancel()
	argv := []string{"/bin/sh", "-c", endAll, "sh", mark}
	if asRoot {
		_, _ = w.Sudo.Run(ctx, w.Start, argv, nil, io.Discard, io.Discard) // the command's own error counts
		return
	}
	_, _ = w.Start(ctx, argv, nil, io.Discard, io.Discard) // as above
}
