package main

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"

	"github.com/mensylisir/kubexm/versions"
)

//go:embed source.yaml
var sourceTable []byte

//go:embed tags.yaml
var tagsTable []byte

// source is one component of source.yaml; that file's head explains the keys.
type source struct {
	versions.Component `yaml:",inline"`
	Table              string   `yaml:"table"`
	Addon              string   `yaml:"addon"`
	Kubeadm            string   `yaml:"kubeadm"`
	Tags               *tags    `yaml:"tags"`
	Charts             *charts  `yaml:"charts"`
	Prefix             string   `yaml:"prefix"`
	Known              []string `yaml:"known"`
	Published          []string `yaml:"published"`
	Take               string   `yaml:"take"`
	Only               []string `yaml:"only"`
	Minor              bool     `yaml:"minor"`
	Rules              []rule   `yaml:"rules"`
}

// rule sets fields of the versions in a range.
type rule struct {
	In               string `yaml:"versions"`
	versions.Release `yaml:",inline"`
}

// tags describes what is read from a repository's tags for a component.
type tags struct {
	Repository string `yaml:"repository"` // owner/name on github.com
	Tag        string `yaml:"tag"`        // before the version; "v" when empty
	Manifest   string `yaml:"manifest"`   // path of a manifest: its sha256 and images
	List       string `yaml:"list"`       // path of a list of images, in place of the manifest's images
	Take       string `yaml:"take"`       // range of versions
}

// tagged is the entry of one tag in tags.yaml.
type tagged struct {
	SHA256 string            `yaml:"sha256,omitempty"` // of the manifest
	Images map[string]string `yaml:"images,omitempty"` // reference → digest, "" if the manifest has none
}

func readSources() (map[string]*source, error) {
	var all map[string]*source
	if err := strict(sourceTable, &all); err != nil {
		return nil, fmt.Errorf("source.yaml: %w", err)
	}
	return all, nil
}

func readTags() (map[string]map[string]tagged, error) {
	var all map[string]map[string]tagged
	if err := strict(tagsTable, &all); err != nil {
		return nil, fmt.Errorf("tags.yaml: %w", err)
	}
	return all, nil
}

// strict decodes YAML and rejects unknown fields.
func strict(text []byte, into any) error {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	return d.Decode(into)
}

// inRange reports whether a version is in a range; an empty range contains all versions.
func inRange(version, within string) (bool, error) {
	if within == "" {
		return true, nil
	}
	in, err := semver.NewConstraint(within)
	if err != nil {
		return false, fmt.Errorf("range %q: %w", within, err)
	}
	v, err := semver.NewVersion(version)
	if err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	return in.Check(v), nil
}
