package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const config = "../../configs/quickstart.yaml"

func TestWithServesWhileTheCommandRuns(t *testing.T) {
	out := filepath.Join(t.TempDir(), "build")
	root := root()
	root.SetArgs([]string{
		"with", "-f", config, "--out", out, "--scale", "0.001", "--",
		"sh", "-c", "test -s " + out + "/sources.yaml && test -s " + out + "/versions.yaml && exit 7",
	})
	var ended *exec.ExitError
	if err := root.ExecuteContext(t.Context()); !errors.As(err, &ended) || ended.ExitCode() != 7 {
		t.Errorf("ended with %v, want the command's 7", err)
	}
	text, err := os.ReadFile(filepath.Join(out, "sources.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	base := regexp.MustCompile("http://127.0.0.1:[0-9]+").FindString(string(text))
	if base == "" {
		t.Fatalf("sources.yaml names no address:\n%s", text)
	}
	if res, err := http.Get(base + "/v2/"); err == nil {
		res.Body.Close()
		t.Errorf("%s is served after the command has ended", base)
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("apiVersion: kubexm.mensylisir.io/v1alpha1\nkind: Cluster\nmetadata: {name: a}\nspec: {hostz: [], kubernetes: {version: v1.32.13}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no config":  {[]string{"serve", "-f", "none.yaml"}, "none.yaml"},
		"bad config": {[]string{"serve", "-f", bad}, "hostz"},
		"no command": {[]string{"with", "-f", config}, "arg"},
		"address":    {[]string{"serve", "-f", config, "--scale", "0.001", "--addr", "nowhere", "--out", t.TempDir()}, "nowhere"},
	} {
		root := root()
		root.SetArgs(c.args)
		// What is served by mistake is served for a moment only.
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := root.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want a word of %s", name, err, c.want)
		}
	}
}
