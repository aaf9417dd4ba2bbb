package drivers

import (
	"encoding/base64"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Kubeconfig takes the API's address, its CA and the administrator's certificate out of
// a kubeconfig that has them inline, in the first cluster and the first user.
func Kubeconfig(text []byte) (Config, error) {
	var file struct {
		Clusters []struct {
			Cluster struct {
				Server string
				Name   string `yaml:"tls-server-name"`
				CA     string `yaml:"certificate-authority-data"`
			}
		}
		Users []struct {
			User struct {
				Certificate string `yaml:"client-certificate-data"`
				Key         string `yaml:"client-key-data"`
				Token       string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return Config{}, fmt.Errorf("kubeconfig: %w", err)
	}
	if len(file.Clusters) == 0 || len(file.Users) == 0 {
		return Config{}, fmt.Errorf("kubeconfig: %d clusters, %d users", len(file.Clusters), len(file.Users))
	}
	cluster, user := file.Clusters[0].Cluster, file.Users[0].User
	c := Config{Endpoint: cluster.Server, ServerName: cluster.Name, Token: user.Token}
	for _, field := range []struct {
		name, text string
		to         *[]byte
	}{
		{"certificate-authority-data", cluster.CA, &c.CA},
		{"client-certificate-data", user.Certificate, &c.Certificate},
		{"client-key-data", user.Key, &c.Key},
	} {
		raw, err := base64.StdEncoding.DecodeString(field.text)
		if err != nil {
			return Config{}, fmt.Errorf("kubeconfig: %s: %w", field.name, err)
		}
		*field.to = raw
	}
	return c, nil
}
