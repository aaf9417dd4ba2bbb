package chart

import (
	"fmt"
	"path"
	"slices"
	"strings"

	helmchart "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// Options say for which release and which cluster a chart is rendered.
type Options struct {
	Release     string
	Namespace   string
	Kubernetes  string   // its version, "v1.32.2"
	Values      []byte   // YAML, laid over the chart's own
	APIVersions []string // beside those that every cluster has, as in "monitoring.coreos.com/v1"
}

// Render gives what helm would apply: every template of the chart and of each
// subchart that is on, hooks included, and the definitions of its crds folders.
// Notes are left out. The files are sorted by name. Values that a schema of the
// chart refuses are a *ValuesError.
func (c *Chart) Render(o Options) ([]File, error) {
	loaded, err := c.load()
	if err != nil {
		return nil, err
	}
	values, err := chartutil.ReadValues(o.Values)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	if err := chartutil.ProcessDependenciesWithMerge(loaded, values); err != nil {
		return nil, fmt.Errorf("dependencies of %s: %w", c.Name, err)
	}
	kube, err := chartutil.ParseKubeVersion(o.Kubernetes)
	if err != nil {
		return nil, err
	}
	if c.KubeVersion != "" && !chartutil.IsCompatibleRange(c.KubeVersion, kube.Version) {
		return nil, fmt.Errorf("chart %s %s is for Kubernetes %s, not for %s", c.Name, c.Version, c.KubeVersion, o.Kubernetes)
	}
	caps := chartutil.DefaultCapabilities.Copy()
	caps.KubeVersion = *kube
	caps.APIVersions = append(slices.Clone(caps.APIVersions), o.APIVersions...)
	release := chartutil.ReleaseOptions{Name: o.Release, Namespace: o.Namespace, Revision: 1, IsInstall: true}
	// Helm's own check of the schema would ask for what the schema refers to.
	all, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values, release, caps, true)
	if err != nil {
		return nil, fmt.Errorf("values of %s: %w", c.Name, err)
	}
	if merged, ok := all["Values"].(chartutil.Values); ok {
		if err := c.checkValues(loaded, merged); err != nil {
			return nil, err
		}
	}
	texts, err := engine.Render(loaded, all)
	if err != nil {
		return nil, fmt.Errorf("render %s %s: %w", c.Name, c.Version, err)
	}
	var out []File
	for name, text := range texts {
		if strings.TrimSpace(text) != "" && path.Base(name) != "NOTES.txt" && !strings.HasPrefix(path.Base(name), "_") {
			out = append(out, File{Name: name, Data: []byte(text)})
		}
	}
	for _, crd := range loaded.CRDObjects() {
		out = append(out, File{Name: crd.Filename, Data: crd.File.Data})
	}
	slices.SortFunc(out, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// load hands the files to Helm's loader.
func (c *Chart) load() (*helmchart.Chart, error) {
	var files []*loader.BufferedFile
	for _, f := range c.Files {
		files = append(files, &loader.BufferedFile{Name: f.Name, Data: f.Data})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, wrong("%v", err)
	}
	if missing := c.Missing(); len(missing) > 0 {
		return nil, fmt.Errorf("chart %s needs %s, which is not in its folder charts", c.Name, missing[0].Name)
	}
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library, which cannot be installed", c.Name)
	}
	return loaded, nil
}
