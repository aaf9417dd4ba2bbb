// Command gen writes testdata/vulns/known.json from a checkout of the Go
// vulnerability database: make vulns VULNDB=folder.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/testdata/vulns"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gen VULNDB known.json")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func write(checkout, to string) error {
	list, err := output("go", "list", "-m", "-f", "{{.Path}}", "all")
	if err != nil {
		return err
	}
	k, err := vulns.Distil(os.DirFS(checkout+"/data/osv"), append(strings.Fields(list), "stdlib", "toolchain"))
	if err != nil {
		return err
	}
	commit, err := output("git", "-C", checkout, "log", "-1", "--format=%H %cI")
	if err != nil {
		return err
	}
	var at string
	if _, err := fmt.Sscan(commit, &k.Commit, &at); err != nil {
		return err
	}
	if k.Date, err = time.Parse(time.RFC3339, at); err != nil {
		return err
	}
	k.Date = k.Date.UTC()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", " ")
	if err := e.Encode(k); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}

func output(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...) //nolint:gosec // which program it is says this file
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return string(out), nil
}
