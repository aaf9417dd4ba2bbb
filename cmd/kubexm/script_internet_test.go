package main

import (
	"context"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/testdata/upstream"
	"github.com/mensylisir/kubexm/versions"
)

// commands are the scripts' own words beside those of testscript.
var commands = map[string]func(*testscript.TestScript, bool, []string){
	"internet": internet, "debs": debs, "registry": scriptRegistry, "referrers": referrers, "attach": attach,
	"world": startWorld, "reached": reached, "spoil": spoil,
	"master": master, "twomasters": twoMasters, "balanced": balanced, "kubevip": kubeVIP, "mode": mode,
}

// asked is what a script's internet has for it.
type asked struct {
	server *upstream.Server
	signer *upstream.Signer
	wanted []string // packages that the config asks for
	days   int
	world  *world
}

// internet serves small stand-ins for all that a config asks for, and writes
// sources.yaml and versions.yaml for the flags of these names. With "single" no image
// has an index: registries that want all that an index names take these.
func internet(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 || len(args) == 2 && args[1] != "single" || len(args) > 2 {
		ts.Fatalf("usage: internet CONFIG [single]")
	}
	cluster, problems := manifest.Decode(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(problems.Err())
	catalog, problems := versions.Load()
	ts.Check(problems.Err())
	lock, problems := catalog.Resolve(cluster)
	ts.Check(problems.Err())
	s := ts.Value(askedKey{}).(*asked)
	o := upstream.Options{Scale: 0.001}
	if len(args) == 2 {
		for _, im := range lock.Images {
			o.Single = append(o.Single, im.Reference)
		}
	}
	var err error
	s.server, err = upstream.New(context.Background(), lock, o)
	ts.Check(err)
	ts.Check(os.MkdirAll(ts.MkAbs(mirror), 0o750))
	ts.Check(s.server.Folder("deb.example/debian", ts.MkAbs(mirror)))
	server := httptest.NewServer(s.server)
	ts.Defer(server.Close)
	_, err = s.server.WriteFiles(ts.MkAbs("."), server.URL, nil)
	ts.Check(err)
	for _, a := range lock.Artifacts {
		if a.Packages != nil {
			s.wanted = a.Packages.Want
		}
	}
}

// debs publishes a Debian 12 at https://deb.example/debian, signed by key.asc: the
// packages named as NAME=VERSION[,DEPENDENCY...], and each that the config wants and
// that is none of these in version 1. Every call is a day later.
func debs(ts *testscript.TestScript, _ bool, args []string) {
	s := ts.Value(askedKey{}).(*asked)
	if s.server == nil {
		ts.Fatalf("debs: after internet")
	}
	var err error
	if s.signer == nil {
		s.signer, err = upstream.NewSigner(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC))
		ts.Check(err)
		key, err := s.signer.Public()
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs("key.asc"), key, 0o600))
	}
	var all []upstream.Deb
	for _, arg := range args {
		name, rest, _ := strings.Cut(arg, "=")
		version, depends, more := strings.Cut(rest, ",")
		d := upstream.Deb{Name: name, Version: version, Arch: "amd64", Files: map[string]string{"usr/share/" + name: arg}}
		if more {
			d.Fields = []string{"Depends: " + depends}
		}
		all = append(all, d)
	}
	for _, name := range s.wanted {
		name, _, _ = strings.Cut(name, " ")
		if !slices.ContainsFunc(all, func(d upstream.Deb) bool { return d.Name == name }) {
			all = append(all, upstream.Deb{Name: name, Version: "1"})
		}
	}
	suite := upstream.Suite{Codename: "bookworm", Version: "12", Date: time.Date(2025, 5, 6+s.days, 12, 0, 0, 0, time.UTC)}
	ts.Check(s.signer.WriteApt(ts.MkAbs(mirror), suite, all...))
	s.days++
}

// mirror is the folder that debs writes to.
const mirror = "mirror"

// askedKey is where a script's asked is.
type askedKey struct{}
