package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
	"github.com/mensylisir/kubexm/steps/connector/conntest"
	"github.com/mensylisir/kubexm/steps/connector/sshtest"
	"github.com/mensylisir/kubexm/steps/runner"
	"github.com/mensylisir/kubexm/steps/steptest"
)

// master starts a simulated host over SSH, and writes CLUSTER.yaml, the config of a
// cluster of which it is the one master. With "bare" nothing was installed on it; with
// "second" it is the second of three masters, and nobody listens at the others; with
// "open" an upgrade is open on it:
// master CLUSTER [bare | second | open].
func master(ts *testscript.TestScript, _ bool, args []string) {
	how := strings.Join(args[min(1, len(args)):], " ")
	if len(args) == 0 || how != "" && how != "bare" && how != "second" && how != "open" {
		ts.Fatalf("usage: master CLUSTER [bare | second | open]")
	}
	sim := conntest.New(nil)
	server, err := sshtest.Serve(sshtest.Config{Password: "secret", NoSignals: true, Run: onSim(sim)})
	ts.Check(err)
	ts.Defer(server.Close)
	text := fmt.Sprintf(`apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: %s}
spec:
  hosts: [{name: m1, address: %s, port: %d, internalAddress: 192.0.2.11, user: root, password: "${env:SSH_PASSWORD}"}]
  roleGroups: {master: [m1], worker: [m1]}
  kubernetes: {version: v1.34.10}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
`, args[0], server.Host, server.Port)
	cluster, problems := manifest.Decode(strings.NewReader(text))
	ts.Check(problems.Err())
	if how != "bare" {
		steptest.ExistingCluster(cluster)(sim)
	}
	if how == "open" {
		ts.Check(remember(cluster, "m1", sim, true))
	}
	if how == "second" {
		text = strings.Replace(text, "hosts: [", `hosts: [{name: m0, address: 127.0.0.2, port: 1, internalAddress: 192.0.2.10}, {name: m2, address: 127.0.0.3, port: 1, internalAddress: 192.0.2.12}, `, 1)
		text = strings.Replace(text, "master: [m1]", "master: [m0, m1, m2]", 1)
		text = strings.Replace(text, "  kubernetes:", `  ssh: {user: root, password: "${env:SSH_PASSWORD}"}`+"\n  kubernetes:", 1)
	}
	home := ts.MkAbs("home")
	ts.Setenv("HOME", home)
	ts.Setenv("SSH_PASSWORD", "secret")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".yaml"), []byte(text), 0o600))
	ts.Check(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	known, err := os.OpenFile(filepath.Join(home, ".ssh", "known_hosts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	ts.Check(err)
	_, err = fmt.Fprintln(known, knownhosts.Line([]string{server.Addr}, server.HostKey()))
	ts.Check(errors.Join(err, known.Close()))
}

// onSim runs command lines as they come over SSH on a simulated host. A shell takes
// them apart, as sshd's does.
func onSim(sim *conntest.Sim) func(context.Context, string, io.Reader, io.Writer, io.Writer) int {
	return func(ctx context.Context, line string, stdin io.Reader, stdout, stderr io.Writer) int {
		split, err := exec.CommandContext(ctx, "/bin/sh", "-c", `printf '%s\0' `+strings.TrimPrefix(line, "exec ")).Output()
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 126
		}
		argv := strings.Split(strings.TrimSuffix(string(split), "\x00"), "\x00")
		if argv[0] == "/usr/bin/env" {
			for argv = argv[1:]; strings.Contains(argv[0], "="); {
				argv = argv[1:]
			}
		}
		res, err := sim.Exec(ctx, connector.Cmd{Verb: runner.VerbOf(argv), Argv: argv, Sudo: true, Stdin: stdin})
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 127
		}
		_, _ = stdout.Write(res.Stdout) // who asked may be gone
		_, _ = stderr.Write(res.Stderr)
		return res.Exit
	}
}

// mode compares the permissions of a file: mode 600 FILE.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	st, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", st.Mode().Perm()); (got == args[0]) == neg {
		ts.Fatalf("%s has mode %s", args[1], got)
	}
}
