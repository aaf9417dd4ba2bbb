package fetch

import "path/filepath"

// HelmRepositories returns the path of the file in which `helm repo add` stores the logins
// of chart repositories, by Helm's rules; "" if there is none.
func HelmRepositories(env func(string) (string, bool)) string {
	if file, _ := env("HELM_REPOSITORY_CONFIG"); file != "" {
		return file
	}
	for _, at := range []struct{ variable, below string }{
		{"HELM_CONFIG_HOME", ""}, {"XDG_CONFIG_HOME", "helm"}, {"HOME", ".config/helm"},
	} {
		if dir, _ := env(at.variable); dir != "" {
			return filepath.Join(dir, at.below, "repositories.yaml")
		}
	}
	return ""
}
