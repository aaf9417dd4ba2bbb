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

// Options specify the release and the cluster that a chart is rendered for.
type Options struct {
	Release     string
	Namespace   string
	Kubernetes  string   // version of Kubernetes, for example "v1.32.2"
	Values      []byte   // YAML, merged over the chart's own values
	APIVersions []string // in addition to the built-in ones, for example "monitoring.coreos.com/v1"
}

// Render returns what helm would apply: the output of every template of the chart and of
// each enabled subchart, including hooks, and the definitions in its crds folders. Notes
// are omitted. The files are sorted by name. Values that a schema of the chart rejects are
// a *ValuesError.
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
	// Helm's own validation would fetch what the schema refers to.
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

// load passes the files to Helm's loader.
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
		return nil, fmt.Errorf("chart %s depends on %s, which is not in its folder charts", c.Name, missing[0].Name)
	}
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %s is a library, which cannot be installed", c.Name)
	}
	return loaded, nil
}
