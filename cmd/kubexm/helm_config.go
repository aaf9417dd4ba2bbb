package main

import "path/filepath"

// helmRepositories is where `helm repo add` keeps the logins of chart
// repositories, as Helm looks for it; "" where there is no place for it.
func (a *app) helmRepositories() string {
	if file, _ := a.env("HELM_REPOSITORY_CONFIG"); file != "" {
		return file
	}
	for _, at := range []struct{ variable, below string }{
		{"HELM_CONFIG_HOME", ""}, {"XDG_CONFIG_HOME", "helm"}, {"HOME", ".config/helm"},
	} {
		if dir, _ := a.env(at.variable); dir != "" {
			return filepath.Join(dir, at.below, "repositories.yaml")
		}
	}
	return ""
}
