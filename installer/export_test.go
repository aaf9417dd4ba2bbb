package installer

import "github.com/mensylisir/kubexm/manifest"

// SecretsOf gives what a session on a cluster masks.
func SecretsOf(c *manifest.Cluster) []string {
	s := &Session{Options: Options{Cluster: c, LookupEnv: func(string) (string, bool) { return "", false }}}
	return s.secrets()
}
