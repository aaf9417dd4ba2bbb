package manifest

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mensylisir/kubexm/manifest/document"
)

// defaultKeys are the private keys that ssh itself looks for, and which a config out
// of a bundle may name.
var defaultKeys = []string{"~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"}

// ownVariables begin as the variables of secrets do, and are kubexm's own.
var ownVariables = []string{"KUBEXM_KEY_PASSWORD", "KUBEXM_CACHE"}

// CheckCarried gives what a config says of the workdir host that a config out of a
// bundle must not: whoever made the bundle could read files and environment variables
// there, send them to any address, and say which SSH host keys are trusted. It may
// refer to variables with the prefix that Public writes, to ssh's default keys, and
// to files below the working directory. policy tells that the command line says which
// host keys are trusted, so that the config's word does not count.
func (c *Cluster) CheckCarried(policy bool) Problems {
	r := &carried{policy: policy}
	for path, s := range c.Secrets() {
		if shared, ok := c.inherited(path); !ok || !shared.Equal(s) {
			r.secret(path, s)
		}
	}
	r.ssh("spec.ssh", c.Spec.SSH, SSH{})
	for i, h := range c.Spec.Hosts {
		r.ssh(document.Indexed("spec.hosts", i), h.SSH, c.Spec.SSH)
	}
	e := c.Spec.Etcd.External
	r.file("spec.etcd.external.caFile", e.CAFile)
	r.file("spec.etcd.external.certFile", e.CertFile)
	r.file("spec.etcd.external.keyFile", e.KeyFile)
	for host, a := range c.Spec.Registry.Auths {
		r.file(document.Join("spec.registry.auths", host)+".certsPath", a.CertsPath)
	}
	r.found.Sort()
	return r.found
}

// inherited gives the secret of spec.ssh that a host has where it has none of its own.
func (c *Cluster) inherited(path string) (Secret, bool) {
	rest, ok := strings.CutPrefix(path, "spec.hosts[")
	_, field, _ := strings.Cut(rest, "].")
	s := c.Spec.SSH
	of := map[string]Secret{"password": s.Password, "passphrase": s.Passphrase, "sudoPassword": s.SudoPassword}
	if s.JumpHost != nil {
		of["jumpHost.password"], of["jumpHost.passphrase"] = s.JumpHost.Password, s.JumpHost.Passphrase
	}
	return of[field], ok
}

type carried struct {
	policy bool
	found  Problems
}

func (r *carried) refuse(path, advice, format string, args ...any) {
	r.found = append(r.found, Problem{Path: path, Message: fmt.Sprintf(format, args...), Advice: advice})
}

const byFile = "give the config with -f"

func (r *carried) secret(path string, s Secret) {
	name, isEnv := s.env()
	switch _, isFile := s.file(); {
	case isEnv && strings.HasPrefix(name, secretPrefix) && !slices.Contains(ownVariables, name):
	case isEnv:
		r.refuse(path, byFile+", or name the variable "+secretPrefix+"…", "refers to the environment variable %s, which a bundle's config may not read", name)
	case isFile:
		r.refuse(path, byFile, "refers to a file on this machine, which a bundle's config may not read")
	default:
		r.refuse(path, byFile, "is a secret in a bundle's config, which holds none")
	}
}

// ssh looks at a way to log in; what is the same in other has been looked at.
func (r *carried) ssh(path string, s, other SSH) {
	r.login(path, s.Login, other.Login)
	if s.JumpHost == nil {
		return
	}
	var o Login
	if other.JumpHost != nil {
		o = other.JumpHost.Login
	}
	r.login(path+".jumpHost", s.JumpHost.Login, o)
}

func (r *carried) login(path string, l, other Login) {
	if key := l.PrivateKeyPath; key != "" && key != other.PrivateKeyPath && !slices.Contains(defaultKeys, key) {
		r.refuse(path+".privateKeyPath", byFile, "names a file on this machine; a bundle's config may name %s alone", strings.Join(defaultKeys, ", "))
	}
	if p := l.HostKeyPolicy; !r.policy && p != "" && p != "strict" && p != other.HostKeyPolicy {
		r.refuse(path+".hostKeyPolicy", byFile+", or say it with --host-key-policy", "is %s: a bundle's config does not say which host keys are trusted", p)
	}
}

// file accepts a path below the working directory without a hidden part.
func (r *carried) file(path, name string) {
	hidden := func(part string) bool { return strings.HasPrefix(part, ".") && part != "." }
	if name == "" || filepath.IsLocal(name) && !slices.ContainsFunc(strings.Split(filepath.ToSlash(name), "/"), hidden) && !strings.HasPrefix(name, "~") {
		return
	}
	r.refuse(path, byFile, "names a file outside of the working directory, or a hidden one, which a bundle's config may not read")
}
