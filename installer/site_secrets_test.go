package installer_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mensylisir/kubexm/installer"
	"github.com/mensylisir/kubexm/installer/pipeline"
	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// canaries gives every field of a config that is a secret a value of its own, also
// one that the config leaves out: a new field is covered when it is there.
func canaries(v reflect.Value, path string, out map[string]string) {
	switch {
	case v.Type() == reflect.TypeFor[manifest.Secret]():
		out[path] = fmt.Sprintf("canary-%03d-Xq7", len(out))
		v.Set(reflect.ValueOf(manifest.NewSecret(out[path])))
	case v.Kind() == reflect.Pointer:
		if v.IsNil() && holdsSecret(v.Type(), map[reflect.Type]bool{}) {
			v.Set(reflect.New(v.Type().Elem()))
		}
		if !v.IsNil() {
			canaries(v.Elem(), path, out)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				canaries(v.Field(i), path+"."+f.Name, out)
			}
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			canaries(v.Index(i), fmt.Sprintf("%s[%d]", path, i), out)
		}
	case v.Kind() == reflect.Map && holdsSecret(v.Type().Elem(), map[reflect.Type]bool{}):
		for _, k := range v.MapKeys() {
			e := reflect.New(v.Type().Elem()).Elem()
			e.Set(v.MapIndex(k))
			canaries(e, path+"."+k.String(), out)
			v.SetMapIndex(k, e)
		}
	}
}

// holdsSecret reports whether there may be a secret in a value of a type.
func holdsSecret(t reflect.Type, seen map[reflect.Type]bool) bool {
	if t == reflect.TypeFor[manifest.Secret]() {
		return true
	}
	if seen[t] {
		return false
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return holdsSecret(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if f := t.Field(i); f.IsExported() && holdsSecret(f.Type, seen) {
				return true
			}
		}
	}
	return false
}

// TestSecretsAreNowhere makes a cluster, and fails to make one on a host that says
// all that it knows, with another value in each secret of its config: none is in
// a command's words (and so in no host's list of processes), a log, an event, the
// audit log, a plan, an error, or a file on this machine.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, "registry-existing")
		planted := map[string]string{}
		canaries(reflect.ValueOf(s.Cluster).Elem(), "", planted)
		for _, f := range manifest.ConfigFields().All() { // all of the schema's, and not those of this config
			last := f.Path[strings.LastIndex(f.Path, ".")+1:]
			if f.Kind == manifest.SecretField && !slices.ContainsFunc(slices.Collect(maps.Keys(planted)), func(p string) bool {
				return strings.EqualFold(p[strings.LastIndex(p, ".")+1:], last)
			}) {
				t.Errorf("%s: nothing was planted there", f.Path)
			}
		}
		if len(planted) < 5*len(s.Cluster.Spec.Hosts) {
			t.Fatalf("%d secrets: %v", len(planted), planted)
		}
		// The registry lets in whoever has its password.
		s.ExternalRegistry.Password = planted[".Spec.Registry.Auths."+s.Cluster.Spec.Registry.PrivateRegistry+".Password"]
		s.Secrets = installer.SecretsOf(s.Cluster)
		var log bytes.Buffer
		var mu sync.Mutex
		var words []string
		s.Debug = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		var talk string // what a host says in place of doing it
		s.Answer = func(c connector.Cmd) *connector.Result {
			mu.Lock()
			defer mu.Unlock()
			words = append(words, strings.Join(c.Argv, " "))
			if talk != "" && slices.Contains(c.Argv, "kubeadm") {
				return &connector.Result{Exit: 1, Stdout: []byte(talk), Stderr: []byte(talk)}
			}
			return nil
		}
		s.record()
		all := strings.Join(slices.Collect(maps.Values(planted)), "\n")
		talk = "I know " + all
		err := s.Run(pipeline.Create, nil)
		if err == nil {
			t.Fatal("a host that does nothing made a cluster")
		}
		said := found(err) + err.Error() + strings.Join(steps.Advice(err), "")
		talk = ""
		events := append(s.Events[:0:0], s.Events...)
		s.Must(pipeline.Create, "create")
		seen := map[string]string{"errors": said, "log": log.String(), "words of commands": strings.Join(words, "\n"), "plan": s.Graph(pipeline.Create, nil).String() + s.Graph(pipeline.Create, nil).Dot()}
		for name, v := range map[string]any{"events": append(events, s.Events...), "plan -o json": s.Graph(pipeline.Create, nil).View(), "config": s.Cluster} {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			seen[name] = string(b)
		}
		err = filepath.WalkDir(s.Workdir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			seen[strings.TrimPrefix(path, s.Workdir)] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(seen["/audit.jsonl"]) < 10000 || len(words) < 100 || !strings.Contains(said, "***") || log.Len() == 0 {
			t.Errorf("not all was looked at: %d of the audit log, %d commands, %s", len(seen["/audit.jsonl"]), len(words), said)
		}
		for where, text := range seen {
			for path, canary := range planted {
				if strings.Contains(text, canary) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(canary))) {
					t.Errorf("%s is in %s", path, where)
				}
			}
		}
		// It was there to be seen: nodes are given the registry's password.
		if state := strings.Join(s.State(true), "\n"); !strings.Contains(state, "hosts.toml") {
			t.Error("no host was told of the registry")
		}
	})
}
