package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mensylisir/kubexm/cmd/kubexm/console"
	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/manifest/refusal"
	"github.com/mensylisir/kubexm/steps/connector"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show what was done to hosts, and prove that the log is complete",
		Long: `Every command that kubexm runs on a host, every file it writes and every connection it makes there
is a line of .kubexm/<cluster>/audit.jsonl: when, who, which step, which command, with what outcome.
Each line holds the hash of the line before.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(a.auditShow(), a.auditVerify())
	return cmd
}

// clusterFlags say which cluster's folder is meant.
type clusterFlags struct{ config, cluster, workdir string }

func (f *clusterFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "filename", "f", "", also(useConfig, "for the cluster's name"))
	fs.StringVar(&f.cluster, "cluster", "", "the cluster's name (default the only one that has a folder)")
	fs.StringVar(&f.workdir, "workdir", ".", useWorkdir)
	cmd.MarkFlagsMutuallyExclusive("filename", "cluster")
	_ = cmd.MarkFlagFilename("filename", "yaml", "yml")
	_ = cmd.MarkFlagDirname("workdir")
}

// folderName is what a cluster's folder may be called.
var folderName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)

// folder gives the folder of the cluster that is meant.
func (f *clusterFlags) folder(a *app) (installer.Workdir, error) {
	name := f.cluster
	switch {
	case f.config != "":
		c, err := a.loadCluster(f.config, "")
		if err != nil {
			return installer.Workdir{}, err
		}
		name = c.Metadata.Name
	case name == "":
		var err error
		if name, err = f.only(); err != nil {
			return installer.Workdir{}, err
		}
	}
	if !folderName.MatchString(name) {
		return installer.Workdir{}, &refusal.Error{Err: fmt.Errorf("--cluster %q is no cluster's name", name), Kind: refusal.Usage, Advice: "the name is metadata.name of its config"}
	}
	return installer.Workdir{Dir: filepath.Join(f.workdir, ".kubexm", name)}, nil
}

// only names the one cluster that has a folder here.
func (f *clusterFlags) only() (string, error) {
	entries, err := os.ReadDir(filepath.Join(f.workdir, ".kubexm"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 1 {
		return names[0], nil
	}
	err = errors.New("several clusters have a folder here: " + strings.Join(names, ", "))
	if len(names) == 0 {
		err = fmt.Errorf("no cluster has a folder below %s", filepath.Join(f.workdir, ".kubexm"))
	}
	return "", &refusal.Error{Err: err, Kind: refusal.Usage, Advice: "name it: --cluster NAME, or -f its config; --workdir says where .kubexm lies"}
}

// openAudit opens a cluster's log to read it.
func openAudit(w installer.Workdir) (*os.File, error) {
	f, err := os.Open(w.Audit())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &refusal.Error{Err: fmt.Errorf("there is no audit log: %w", err), Kind: refusal.Usage, Advice: "the first command that calls a host begins one"}
	}
	return f, err
}

func (a *app) auditShow() *cobra.Command {
	f := &clusterFlags{}
	var since string
	var filter audit.Filter
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show what was done to hosts",
		Long: `Print the audit log, one line for each command on each host, the oldest first. What was masked in
the log is masked here. With -o json the lines are printed as they stand there, as one array.`,
		Example: `  kubexm audit show --changes                        # all but looks
  kubexm audit show --host m1 --since 2h
  kubexm audit show --step kubeadm. --since 2026-01-31T08:00:00Z
  kubexm audit show -o json | jq '.[] | select(.exit != 0 and .exit != null)'`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var err error
			if filter.Since, err = sinceOf(since, time.Now()); err != nil {
				return err
			}
			w, err := f.folder(a)
			if err != nil {
				return err
			}
			return a.showAudit(w, filter)
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&filter.Hosts, "host", nil, "of these hosts alone")
	cmd.Flags().StringVar(&filter.Step, "step", "", "of steps alone whose id in the plan holds this")
	cmd.Flags().StringVar(&since, "since", "", "only what is newer than this: 90m, 24h, or a time as 2026-01-31T08:00:00Z")
	cmd.Flags().BoolVar(&filter.Changes, "changes", false, "leave out what only looks")
	a.outputFlag(cmd, "text", "json")
	return cmd
}

// sinceOf reads how far back somebody wants to see.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, &refusal.Error{Err: fmt.Errorf("--since %q is neither a time nor a duration", text), Kind: refusal.Usage, Advice: "write 90m, 24h or 2026-01-31T08:00:00Z"}
	}
	return t, nil
}

// knownHosts refuses hosts that the log never speaks of.
func knownHosts(w installer.Workdir, hosts []string) error {
	if len(hosts) == 0 {
		return nil
	}
	log, err := openAudit(w)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // read only: nothing to lose
	seen := map[string]bool{}
	if err := audit.Show(log, audit.Filter{}, func(x audit.Line, _ []byte) error {
		seen[x.Host] = true
		return nil
	}); err != nil {
		return err
	}
	delete(seen, "") // lines about the log itself
	for _, h := range hosts {
		if !seen[h] {
			return &refusal.Error{Err: fmt.Errorf("no such host: %s%s", h, refusal.DidYouMean(h, sortedKeys(seen))), Kind: refusal.Usage, Advice: "hosts are " + strings.Join(sortedKeys(seen), ", ")}
		}
	}
	return nil
}

func (a *app) showAudit(w installer.Workdir, filter audit.Filter) error {
	if err := knownHosts(w, filter.Hosts); err != nil {
		return err
	}
	log, err := openAudit(w)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // read only: nothing to lose
	if !a.structured() {
		return audit.Show(log, filter, func(x audit.Line, _ []byte) error {
			_, err := fmt.Fprintln(a.out, auditLine(x))
			return err
		})
	}
	if a.output == "yaml" {
		lines := []json.RawMessage{}
		if err := audit.Show(log, filter, func(_ audit.Line, text []byte) error {
			lines = append(lines, bytes.Clone(text))
			return nil
		}); err != nil {
			return err
		}
		return a.printValue(lines)
	}
	before := "[\n"
	err = audit.Show(log, filter, func(_ audit.Line, text []byte) error {
		_, err := fmt.Fprintf(a.out, "%s%s", before, text)
		before = ",\n"
		return err
	})
	end := "\n]"
	if before == "[\n" { // there was none
		end = "[]"
	}
	_, said := fmt.Fprintln(a.out, end)
	return errors.Join(err, said)
}

// auditLine is a line for people.
func auditLine(x audit.Line) string {
	when := x.Time.Local().Format("2006-01-02 15:04:05.000")
	switch x.Type {
	case audit.TypeHead:
		return fmt.Sprintf("%s  log of cluster %s begun by %s, kubexm %s", when, x.Cluster, x.Who, x.Kubexm)
	case audit.TypeRun, audit.TypeEnd:
		return fmt.Sprintf("%s  %s, by %s, kubexm %s%s", when, x.Message, x.Who, x.Kubexm, colon(x.Error))
	case audit.TypeTorn:
		return fmt.Sprintf("%s  %s before this one cut off while written: kubexm was killed, or the machine lost power", when, console.Count(len(x.Torn), "line"))
	}
	how := "no end on record"
	switch {
	case x.Exit != nil:
		how = fmt.Sprintf("exit %d", *x.Exit)
	case x.Error != "":
		how = "error"
	case x.Type == audit.TypeDid:
		how = "done"
	}
	var more []string
	if x.Sudo {
		more = append(more, "sudo")
	}
	if c := x.Stdin; c != nil && c.Bytes > 0 {
		sum := "holds a secret"
		if !c.Secret {
			sum = "sha256:" + c.SHA256
		}
		more = append(more, fmt.Sprintf("stdin %d bytes %s", c.Bytes, sum))
	}
	line := fmt.Sprintf("%s  %s  %s  %s %s  (%s)", when, x.Host, how, x.Verb, connector.Quote(x.Argv), strings.Join(append([]string{stepName(x.Step)}, more...), ", "))
	return strings.ReplaceAll(line, "\n", "\\n") + colon(x.Error)
}

func stepName(id string) string {
	if id == "" {
		return "outside of a plan"
	}
	return id
}

func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(text, "\n", "; ")
}
