package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mensylisir/kubexm/manifest"
)

func TestPeersAreToldOfTheLoopbackServer(t *testing.T) {
	l := &manifest.Lock{
		Images:    []manifest.ImagePin{{Reference: "registry.k8s.io/pause:3.10"}},
		Artifacts: []manifest.Artifact{{Address: "https://dl.k8s.io/b"}, {Address: "https://dl.k8s.io/a"}, {Address: "https://dl.k8s.io/b"}},
	}
	to, err := rename(l, "http://127.0.0.1:5")
	if err != nil {
		t.Fatal(err)
	}
	haul, herr := to.haul()
	zarf, zerr := to.zarfPackage()
	for _, text := range []string{string(haul), string(zarf)} {
		if strings.Contains(text, "https:") || strings.Count(text, "127.0.0.1:5/") != 3 || strings.Count(text, "127.0.0.1:5/registry.k8s.io/pause:3.10\n") != 1 {
			t.Errorf("%s", text)
		}
	}
	if err := errors.Join(herr, zerr); err != nil {
		t.Error(err)
	}
	to.files = nil
	if haul, err := to.haul(); err != nil || strings.Contains(string(haul), "Files") {
		t.Errorf("%s %v", haul, err)
	}
}

// standIn writes down what it is told, and makes the file that a peer would. It
// fails on what asks for anything but the loopback address.
const standIn = `#!/bin/sh
echo "$0 $*" >> "$LOG"
case "$HOME$TMPDIR" in *hauler*|*zarf*) ;; *) exit 3 ;; esac
while [ $# -gt 0 ]; do
    case "$1" in
        save) save=1 ;;
        --filename) file=$2 ;;
        --output) file=$2/package; save=1 ;;
        registry://127.0.0.1:*) ;;
        *://*) exit 4 ;;
    esac
    shift
done
if [ -n "$save" ]; then echo whole > "$file"; fi
`

// Peers run in homes of their own, which are gone afterwards, and each of their
// commands is a part of a sample.
func TestPeersAreRun(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	w := &work{
		dir: filepath.Join(dir, "work"), peers: map[string]string{}, host: "127.0.0.1:5",
		theirs: theirs{images: []string{"127.0.0.1:5/x:1"}, files: []string{"http://127.0.0.1:5/y"}},
		target: &target{dir: filepath.Join(dir, "registry")},
	}
	if err := os.Mkdir(w.dir, 0o750); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"hauler", "zarf"} {
		w.peers[name] = filepath.Join(dir, name)
		if err := os.WriteFile(w.peers[name], []byte(strings.ReplaceAll(standIn, "$LOG", log)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var r round
	if err := errors.Join(w.haulerImages(t.Context(), w.peers["hauler"]), w.haulerPush(t.Context(), &r), w.peerBuilds(t.Context(), &r)); err != nil {
		t.Fatal(err)
	}
	if r.HaulerBuild == nil || r.HaulerBuild.Output != 6 || r.HaulerPush == nil || r.HaulerPush.Wall <= 0 || r.ZarfBuild == nil || r.ZarfBuild.Output != 6 {
		t.Errorf("%+v", r)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(string(text)) {
		said = append(said, strings.Join(strings.Fields(line)[1:3], " "))
	}
	want := "store sync, store save, store load, store copy, store sync, store save, package create"
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("ran %s, want %s", got, want)
	}
	if left, err := os.ReadDir(w.dir); err != nil || len(left) != 1 || left[0].Name() != haulName {
		t.Errorf("left behind %v, %v", left, err)
	}
	rows := measured{Rounds: []round{r}}.ofPeers()
	if len(rows) != 3 || len((measured{Rounds: []round{{}}}).ofPeers()) != 0 {
		t.Errorf("%v", rows)
	}
}
