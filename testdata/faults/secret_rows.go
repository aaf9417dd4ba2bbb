package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mensylisir/kubexm/manifest"
	"github.com/mensylisir/kubexm/steps/connector"
)

// secretRows look for the secrets of configs in all that kubexm says, writes, sends to
// hosts as words, and packs.
func secretRows() []row {
	const expect = "nowhere but in the files that have to hold them, 0600"
	return []row{
		{group: "secrets", fault: "in every field, while a bundle is planned and built", expect: expect, quick: true, run: secretsBuilt},
		{group: "secrets", fault: "of each form, while a cluster is made, fails and is deleted", expect: expect, quick: true, run: secretsInstalled},
	}
}

// everySecret is a config with something in each field that is a secret: as it is, in
// an environment variable, in a file.
//
//nolint:gosec // names of values, that plant puts in their place
const everySecret = `apiVersion: kubexm.mensylisir.io/v1alpha1
kind: Cluster
metadata: {name: demo}
spec:
  ssh: {user: admin, password: CANARY1, privateKeyPath: key, passphrase: CANARY2, sudoPassword: CANARY3, jumpHost: {address: 192.0.2.9, user: hop, password: CANARY4, passphrase: CANARY5, privateKeyPath: key}}
  hosts:
    - {name: r1, address: 192.0.2.10, password: CANARY6, sudoPassword: "${env:CANARY7}"}
    - {name: m1, address: 192.0.2.11, password: "file:CANARY8"}
    - {name: w1, address: 192.0.2.12, passphrase: "${env:CANARY9}", privateKeyPath: key}
  roleGroups: {registry: [r1], master: [m1], worker: [w1]}
  registry:
    type: registry
    auths: {dockerhub.kubexm.local: {username: puller, password: CANARY10}, other.example: {username: reader, password: "${env:CANARY11}", pullUsername: puller, pullPassword: CANARY14}}
    harborConfig: {adminPassword: CANARY12, databasePassword: "file:CANARY13"}
  kubernetes: {version: %s}
  etcd: {type: kubeadm}
  network: {plugin: flannel}
  bundle: {platforms: [linux/amd64]}
`

// plant puts values in the place of names: CANARY1 is the value itself, that of an
// environment variable is given to it, that of a file is written there.
func plant(text, dir string) (config string, c canaries, environ []string, err error) {
	c = canaries{}
	for n := 20; n > 0; n-- { // 12 before 1
		name := fmt.Sprintf("CANARY%d", n)
		value := fmt.Sprintf("canary-%02d+Zq/7w", n)
		at := strings.Index(text, name)
		if at < 0 {
			continue
		}
		c[name] = value
		switch {
		case strings.HasSuffix(text[:at], "${env:"):
			environ = append(environ, "SECRET_"+fmt.Sprint(n)+"="+value)
			text = strings.Replace(text, name, "SECRET_"+fmt.Sprint(n), 1)
		case strings.HasSuffix(text[:at], "file:"):
			path := filepath.Join(dir, fmt.Sprintf("secret-%d", n))
			if err := os.WriteFile(path, []byte(value+"\n"), 0o600); err != nil {
				return "", nil, nil, err
			}
			text = strings.Replace(text, name, path, 1)
		default:
			text = strings.Replace(text, name, value, 1)
		}
	}
	return text, c, environ, nil
}

// talk is all that commands say.
type talk struct {
	*site
	environ []string
	said    strings.Builder
}

// run runs kubexm with the secrets in its environment, keeps what it says, and gives
// its exit code.
func (t *talk) run(ctx context.Context, args ...string) (int, string) {
	c := t.command(ctx, t.binary, args)
	c.Env = append(c.Env, t.environ...)
	var both bytes.Buffer
	c.Stdout, c.Stderr = &both, &both
	_ = c.Run() // its exit code says how it ended
	fmt.Fprintf(&t.said, "\n$ %s\n%s", strings.Join(args, " "), both.String())
	return c.ProcessState.ExitCode(), both.String()
}

func secretsBuilt(ctx context.Context, l *lab) (string, error) {
	_, version, err := l.installable(ctx)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(l.dir, "secrets-built")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	text, c, environ, err := plant(fmt.Sprintf(everySecret, version), dir)
	if err != nil {
		return "", err
	}
	if err := plantedAll(text); err != nil {
		return "", err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return "", err
	}
	var t *talk
	err = l.buildFor(ctx, config, dir, func(s *site) error {
		t = &talk{site: s, environ: environ}
		archive := filepath.Join(dir, "demo.tar.zst")
		for _, args := range [][]string{
			{"config", "validate", "-f", config}, {"config", "validate", "-f", config, "-o", "json"},
			s.args("lock", "-o", "json"), s.args("images"), {"plan", "create", "-f", config}, {"plan", "create", "-f", config, "-o", "json"},
			{"plan", "delete", "-f", config, "-o", "dot"}, s.args("build", archive, "-v"), {"bundle", "show", archive, "-o", "json"}, {"bundle", "ls", archive, "-o", "json"},
			{"bundle", "verify", "--allow-unsigned", archive, "-o", "json"}, {"bundle", "sbom", archive}, {"bundle", "extract", "--allow-unsigned", archive, "--layout", filepath.Join(dir, "out")},
		} {
			if code, said := t.run(ctx, args...); code != 0 {
				return fmt.Errorf("kubexm %s: exit %d: %s", strings.Join(args, " "), code, clip(said, 800))
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	// A mistake beside a secret is shown without it.
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte(strings.ReplaceAll(text, "password:", "pasword:")), 0o600); err != nil {
		return "", err
	}
	if code, _ := t.run(ctx, "config", "validate", "-f", broken); code != 2 {
		return "", fmt.Errorf("a config with mistakes: exit %d", code)
	}
	if found := c.in(t.said.String()); len(found) > 0 {
		return "", fmt.Errorf("SECRETS IN WHAT COMMANDS SAY: %s", strings.Join(found, ", "))
	}
	files, err := c.below(dir, "config.yaml", "broken.yaml", "secret-8", "secret-13")
	if err != nil {
		return "", err
	}
	if found := c.in(text); len(found) != len(c)-5 { // two are in files, three in the environment
		return "", fmt.Errorf("of %d secrets these are found where they are: %v", len(c), found)
	}
	return fmt.Sprintf("%d secrets: none in %d bytes that commands say and %d files", len(c), t.said.Len(), files), nil
}

// plantedAll wants a value in every kind of secret that a config has.
func plantedAll(text string) error {
	cluster, problems := manifest.Decode(strings.NewReader(text))
	if err := problems.Err(); err != nil {
		return err
	}
	last := func(path string) string { return path[strings.LastIndex(path, ".")+1:] }
	planted := slices.Collect(maps.Keys(cluster.Secrets()))
	for _, f := range manifest.ConfigFields().All() {
		if f.Kind == manifest.SecretField && !slices.ContainsFunc(planted, func(p string) bool { return strings.EqualFold(last(p), last(f.Path)) }) {
			return fmt.Errorf("%s: nothing was planted there, but in %v", f.Path, planted)
		}
	}
	return nil
}

// secretsInstalled logs in by a password of each form, has a host say all that it could
// know, makes the cluster and deletes it.
func secretsInstalled(ctx context.Context, l *lab) (string, error) {
	g, err := l.clusterSite(ctx, "secrets-installed")
	if err != nil {
		return "", err
	}
	defer g.close()
	text, err := os.ReadFile(g.config())
	if err != nil {
		return "", err
	}
	file := filepath.Join(g.root, "secret-login")
	if err := os.WriteFile(file, []byte(loginPassword+"\n"), 0o600); err != nil {
		return "", err
	}
	config := string(text)
	for name, form := range map[string]string{"m1": "${env:SECRET_LOGIN}", "w1": "file:" + file} {
		config = strings.Replace(config, "{name: "+name+",", "{name: "+name+", password: \""+form+"\",", 1)
	}
	config = strings.Replace(config, "password: "+loginPassword, "sudoPassword: CANARY1, password: "+loginPassword, 1)
	config = strings.Replace(config, "  kubernetes:", "  registry: {auths: {dockerhub.kubexm.local: {username: puller, password: \"${env:CANARY2}\"}, other.example: {username: reader, password: CANARY3}}}\n  kubernetes:", 1)
	config, c, environ, err := plant(config, g.root)
	if err != nil {
		return "", err
	}
	c["the login's password"] = loginPassword
	if err := os.WriteFile(g.config(), []byte(config), 0o600); err != nil {
		return "", err
	}
	t := &talk{site: g.site, environ: append(environ, "SECRET_LOGIN="+loginPassword)}
	var mu sync.Mutex
	var lines strings.Builder
	talking := true
	for _, h := range g.hosts {
		h.mu.Lock()
		h.heard = func(line string) {
			mu.Lock()
			defer mu.Unlock()
			lines.WriteString(line + "\n")
		}
		h.mu.Unlock()
		h.sim.HandleProgram("kubeadm", func(connector.Cmd, []byte) (connector.Result, bool) {
			mu.Lock()
			defer mu.Unlock()
			all := []byte("I know " + strings.Join(slices.Collect(maps.Values(c)), ", ") + "\n")
			return connector.Result{Exit: 1, Stdout: all, Stderr: all}, talking
		})
	}
	k, err := l.keys(ctx)
	if err != nil {
		return "", err
	}
	do := func(code int, args ...string) error {
		if got, said := t.run(ctx, args...); got != code {
			return fmt.Errorf("kubexm %s: exit %d, want %d: %s", args[0], got, code, clip(said, 1500))
		}
		return nil
	}
	if err := errors.Join(do(0, "preflight", "-f", g.config(), "--workdir", g.workdir, "-o", "json"), do(0, g.install("--dry-run", "-o", "json")...), do(1, g.install("-v")...), do(1, g.install("-o", "json")...)); err != nil {
		return "", err
	}
	mu.Lock()
	talking = false
	mu.Unlock()
	if err := do(0, g.install("-v", "-o", "json", "--sign-key", k.private, "--key-password-file", k.password)...); err != nil {
		return "", err
	}
	held, err := g.holders(c)
	if err != nil {
		return "", err
	}
	if err := errors.Join(do(0, "audit", "show", "--cluster", "demo", "--workdir", g.workdir, "-o", "json"), do(0, g.destroy("-v")...)); err != nil {
		return "", err
	}
	if !strings.Contains(t.said.String(), "I know ***") {
		return "", errors.New("what the host said is not among what was looked at")
	}
	for what, text := range map[string]string{"WHAT COMMANDS SAY": t.said.String(), "COMMAND LINES ON HOSTS": lines.String()} {
		if found := c.in(text); len(found) > 0 {
			return "", fmt.Errorf("SECRETS IN %s: %s", what, strings.Join(found, ", "))
		}
	}
	files, err := c.below(g.root, "config.yaml", "secret-login")
	if err != nil {
		return "", err
	}
	if lines.Len() < 10000 || files < 10 {
		return "", fmt.Errorf("not all was looked at: %d bytes of command lines, %d files", lines.Len(), files)
	}
	return fmt.Sprintf("%d secrets: none in %d bytes that commands say, %d of command lines, %d files here; held by %s", len(c), t.said.Len(), lines.Len(), files, strings.Join(held, ", ")), g.gone()
}

// holders are files of hosts that hold a secret; nobody but root may read one.
func (g *clusterSite) holders(c canaries) (held []string, err error) {
	for _, n := range g.names {
		for _, p := range g.hosts[n].sim.Below("") {
			f, ok := g.hosts[n].sim.File(p)
			if !ok || len(c.in(string(f.Data))) == 0 {
				continue
			}
			held = append(held, n+":"+p)
			if f.Mode&0o077 != 0 {
				err = errors.Join(err, fmt.Errorf("SECRETS FOR EVERYBODY TO READ: %s:%s is %o and holds %s", n, p, f.Mode, strings.Join(c.in(string(f.Data)), ", ")))
			}
		}
	}
	if len(held) == 0 && err == nil {
		err = errors.New("no host holds a password that it was given: what looks for them shows nothing")
	}
	return held, err
}
