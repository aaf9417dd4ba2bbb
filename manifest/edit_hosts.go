package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// RemoveHosts removes hosts from the text of a config: from spec.hosts and from spec.roleGroups.
// Comments and all other fields stay. A range of names is split where necessary: without node2,
// node[1:4] becomes node1 and node[3:4].
func RemoveHosts(text []byte, names []string) ([]byte, error) {
	return editHosts(text, func(hosts *yaml.Node, roles map[string]*yaml.Node) error {
		hosts.Content = slices.DeleteFunc(hosts.Content, func(n *yaml.Node) bool { return slices.Contains(names, nameIn(n)) })
		for _, entries := range roles {
			if err := removeNames(entries, names); err != nil {
				return err
			}
		}
		return nil
	})
}

// ListedHosts returns those of some names that spec.hosts in the text of a config lists.
func ListedHosts(text []byte, names []string) (listed []string, err error) {
	_, err = editHosts(text, func(hosts *yaml.Node, _ map[string]*yaml.Node) error {
		for _, n := range hosts.Content {
			if name := nameIn(n); slices.Contains(names, name) {
				listed = append(listed, name)
			}
		}
		return nil
	})
	return listed, err
}

// AddHosts adds hosts of the config from to the text of a config, with their roles.
func AddHosts(text, from []byte, names []string) ([]byte, error) {
	fresh := map[string]*yaml.Node{}
	var order []string
	roles := map[string][]string{}
	if _, err := editHosts(from, func(hosts *yaml.Node, groups map[string]*yaml.Node) error {
		for _, n := range hosts.Content {
			if name := nameIn(n); slices.Contains(names, name) {
				fresh[name], order = n, append(order, name)
			}
		}
		for role, entries := range groups {
			for _, e := range entries.Content {
				all, err := ExpandRange(e.Value)
				if err != nil {
					return err
				}
				for _, name := range all {
					if slices.Contains(names, name) {
						roles[role] = append(roles[role], name)
					}
				}
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return editHosts(text, func(hosts *yaml.Node, groups map[string]*yaml.Node) error {
		for _, name := range order {
			hosts.Content = append(hosts.Content, fresh[name])
		}
		for role, more := range roles {
			entries := groups[role]
			if entries == nil {
				entries = &yaml.Node{Kind: yaml.SequenceNode}
				groups[role] = entries
			}
			for _, name := range more {
				entries.Content = append(entries.Content, word(name))
			}
		}
		return nil
	})
}

// editHosts passes the lists of hosts and of roles in a config to edit, and returns the new text.
func editHosts(text []byte, edit func(hosts *yaml.Node, roles map[string]*yaml.Node) error) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) != 1 {
		return nil, errors.New("the config is empty")
	}
	spec := fieldOf(doc.Content[0], "spec")
	hosts, groups := fieldOf(spec, "hosts"), fieldOf(spec, "roleGroups")
	if hosts == nil || groups == nil {
		return nil, errors.New("the config has no spec.hosts or no spec.roleGroups")
	}
	roles := map[string]*yaml.Node{}
	for i := 0; i+1 < len(groups.Content); i += 2 {
		roles[groups.Content[i].Value] = groups.Content[i+1]
	}
	if members := fieldOf(fieldOf(spec, "etcd"), "nodes"); members != nil { // the second spelling of roleGroups.etcd
		roles[RoleEtcd] = members
	}
	if err := edit(hosts, roles); err != nil {
		return nil, err
	}
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		if fieldOf(groups, role) == nil && (role != RoleEtcd || fieldOf(fieldOf(spec, "etcd"), "nodes") == nil) {
			groups.Content = append(groups.Content, word(role), roles[role])
		}
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(&doc), e.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// fieldOf returns the value of a key of a mapping; nil if there is none.
func fieldOf(n *yaml.Node, key string) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// nameIn returns the name of an entry of spec.hosts.
func nameIn(n *yaml.Node) string {
	if name := fieldOf(n, "name"); name != nil {
		return name.Value
	}
	return ""
}

func word(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

// removeNames removes names from the entries of a role.
func removeNames(entries *yaml.Node, names []string) error {
	var out []*yaml.Node
	for _, e := range entries.Content {
		all, err := ExpandRange(e.Value)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return slices.Contains(names, name) })
		switch {
		case len(left) == len(all):
			out = append(out, e)
		case len(all) > 1:
			r, err := parseRange(e.Value)
			if err != nil {
				return err
			}
			for _, text := range r.without(names) {
				out = append(out, word(text))
			}
		}
	}
	entries.Content = out
	return nil
}

// without returns the entries that represent a range without some names.
func (r span) without(names []string) []string {
	var out []string
	flush := func(first, last int) {
		switch {
		case first > last:
		case first == last:
			out = append(out, r.name(first))
		default:
			number := func(n int) string { return fmt.Sprintf("%0*d", r.width, n) }
			if r.width == 0 {
				number = strconv.Itoa
			}
			out = append(out, r.before+"["+number(first)+":"+number(last)+"]"+r.after)
		}
	}
	first := r.first
	for n := r.first; n <= r.last; n++ {
		if slices.Contains(names, r.name(n)) {
			flush(first, n-1)
			first = n + 1
		}
	}
	flush(first, r.last)
	return out
}

// WithoutHosts is Without for a cluster that is recorded afterwards: its Public text lists the
// hosts no more.
func (c *Cluster) WithoutHosts(names []string) (*Cluster, error) {
	out := c.Without(names)
	if len(names) == 0 {
		return out, nil
	}
	var err error
	if out.public, err = RemoveHosts(c.public, names); err != nil {
		return nil, fmt.Errorf("remove hosts from the config: %w", err)
	}
	return out, nil
}

// WithRecord returns c with the Public text of the applied config, without some hosts and with
// some of from: the result of a change of hosts that applies no other difference.
func (c *Cluster) WithRecord(applied, from *Cluster, add, remove []string) (*Cluster, error) {
	out := *c
	out.public = applied.public
	var err error
	if len(remove) > 0 {
		if out.public, err = RemoveHosts(out.public, remove); err != nil {
			return nil, fmt.Errorf("remove hosts from the recorded config: %w", err)
		}
	}
	if len(add) > 0 {
		if out.public, err = AddHosts(out.public, from.public, add); err != nil {
			return nil, fmt.Errorf("add hosts to the recorded config: %w", err)
		}
	}
	return &out, nil
}
