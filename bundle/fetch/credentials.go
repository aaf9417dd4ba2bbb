package fetch

import (
	"fmt"
	"os"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/types"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// keychain returns the registry credentials in file or, if file is "", those of docker and
// podman.
func keychain(file string) (authn.Keychain, error) {
	if file == "" {
		return authn.DefaultKeychain, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read registry credentials: %w", err)
	}
	defer func() { _ = f.Close() }() // opened for reading only
	c, err := config.LoadFromReader(f)
	if err != nil {
		return nil, fmt.Errorf("read registry credentials: %s: %w", file, err)
	}
	return credentials{c}, nil
}

// credentials are those in one file in docker's format.
type credentials struct{ file *configfile.ConfigFile }

// Resolve finds the credentials of a repository, or of its registry.
func (c credentials) Resolve(r authn.Resource) (authn.Authenticator, error) {
	for _, key := range []string{r.String(), r.RegistryStr()} {
		if key == name.DefaultRegistry {
			key = authn.DefaultAuthKey // docker's key for its own registry
		}
		a, err := c.file.GetAuthConfig(key)
		if err != nil {
			return nil, fmt.Errorf("read registry credentials for %s: %w", key, err)
		}
		a.ServerAddress = "" // always set, even if nothing was found
		if a == (types.AuthConfig{}) {
			continue
		}
		return authn.FromConfig(authn.AuthConfig{
			Username: a.Username, Password: a.Password, Auth: a.Auth,
			IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken,
		}), nil
	}
	return authn.Anonymous, nil
}
