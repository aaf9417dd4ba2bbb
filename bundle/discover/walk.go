package discover

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// where is the position of a node in its object.
type where struct {
	path string
	key  string // the key of the node
	list string // the list that contains the node's mapping, for example "containers"
	// inData: inside the data of a ConfigMap or Secret, where keys are file names.
	inData bool
	// inMeta: inside annotations or labels, which repeat objects and quote anything.
	inMeta bool
}

func (w where) under(key string) where {
	w.path, w.key = join(w.path, key), key
	return w
}

// walk scans a tree.
func (s *scan) walk(n *yaml.Node, w where, depth int) error {
	if err := s.visit(depth); err != nil {
		return err
	}
	switch n = real(n); {
	case n == nil:
	case n.Kind == yaml.MappingNode:
		return s.mapping(n, w, depth)
	case n.Kind == yaml.SequenceNode:
		if w.key == "args" || w.key == "command" || strings.HasSuffix(strings.ToLower(w.key), "args") {
			s.arguments(n, w)
		}
		for i, item := range n.Content {
			at := w
			at.path, at.list = index(w.path, i), w.key
			if err := s.walk(item, at, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *scan) mapping(n *yaml.Node, w where, depth int) error {
	whole := s.parts(n, w)
	s.variable(n, w)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i].Value, real(n.Content[i+1])
		at := w.under(key)
		if value != nil && value.Kind == yaml.ScalarNode {
			if !whole[key] {
				s.scalar(key, value, at)
			}
			continue
		}
		if depth == 0 && (key == "data" || key == "stringData" || key == "binaryData") {
			at.inData = s.at.Kind == "ConfigMap" || s.at.Kind == "Secret"
		}
		if key == "annotations" || key == "labels" {
			at.inMeta = true
		}
		at.list = ""
		if err := s.walk(value, at, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// scalar checks one key and its text.
func (s *scan) scalar(key string, n *yaml.Node, w where) {
	value := text(n)
	if value == "" {
		return
	}
	want, ok := imageKey(key)
	switch {
	case key == "image" && strings.HasSuffix(w.list, "ontainers"):
		want = loose
	case w.inMeta:
		want = complete
	case w.inData && !ok:
		ok, want = speaksOfImage(key), tagged
	}
	if ok && !strings.Contains(value, "\n") {
		if ref := normal(value, want); ref != "" {
			s.add(ref, w.path)
			return
		}
	}
	if !w.inMeta && strings.ContainsAny(value, "\n{[") {
		s.inner(value, w)
	}
}

// line matches an image in a text that is a template of another program and not YAML.
var line = regexp.MustCompile(`(?m)^[ \t]*(?:-[ \t]+)?"?image"?:[ \t]*["']?([^\s"'{}#]+)["']?,?[ \t]*$`)

// inner scans a text inside a string, for example a pod template in a ConfigMap.
func (s *scan) inner(value string, w where) {
	if !strings.Contains(strings.ToLower(value), "image") || s.within >= maxWithin {
		return
	}
	in := &scan{at: s.at, within: s.within + 1, left: s.left}
	if err := in.text([]byte(value), s.within+1); err == nil {
		for _, im := range in.found {
			for _, p := range im.Places {
				s.add(im.Reference, w.path+": "+p.Path)
			}
		}
		s.left = in.left
		return
	}
	for _, m := range line.FindAllStringSubmatch(value, -1) {
		if ref := normal(m[1], tagged); ref != "" {
			s.add(ref, w.path)
		}
	}
}

// parts assembles an image from separate fields and returns the keys of these fields.
func (s *scan) parts(n *yaml.Node, w where) map[string]bool {
	first := func(keys ...string) (string, string) {
		for _, k := range keys {
			if v := text(child(n, k)); v != "" {
				return k, v
			}
		}
		return "", ""
	}
	_, about := imageKey(w.key)
	_, tag := first("tag", "imageTag", "newTag")
	_, sum := first("digest", "imageDigest", "sha", "sha256")
	_, host := first("registry")
	key, name := first("repository", "image", "imageName", "baseImage")
	if about && key == "" {
		key, name = first("name", "newName", "reference")
		if key == "reference" {
			return s.compose(key, name, "", "", w)
		}
	}
	if tag == "" && (about || key == "baseImage") {
		_, tag = first("version")
	}
	switch {
	case name == "" || tag == "" && sum == "" && host == "" && (!about || key != "repository"):
		return nil
	case key == "name" && tag == "" && sum == "":
		return nil
	}
	if host != "" && !strings.HasPrefix(name, host+"/") {
		name = strings.TrimSuffix(host, "/") + "/" + strings.TrimPrefix(name, "/")
	}
	return s.compose(key, name, tag, sum, w)
}

// compose adds tag and digest to name if it has none.
func (s *scan) compose(key, name, tag, sum string, w where) map[string]bool {
	base, own, _ := strings.Cut(name, "@")
	if tag != "" && strings.LastIndexByte(base, ':') <= strings.LastIndexByte(base, '/') {
		base += ":" + strings.TrimPrefix(tag, ":")
	}
	if own == "" && sum != "" {
		if own = sum; !strings.Contains(sum, ":") {
			own = "sha256:" + sum
		}
	}
	if own != "" {
		base += "@" + own
	}
	ref := normal(base, tagged)
	if ref == "" {
		return nil
	}
	s.add(ref, join(w.path, key))
	return map[string]bool{key: true}
}

// variable checks an entry of env.
func (s *scan) variable(n *yaml.Node, w where) {
	name, value := text(child(n, "name")), text(child(n, "value"))
	if name == "" || value == "" {
		return
	}
	want := complete
	if speaksOfImage(name) {
		want = tagged
	}
	if ref := normal(value, want); ref != "" {
		s.add(ref, join(w.path, "value"))
	}
}

// arguments checks a list of arguments.
func (s *scan) arguments(n *yaml.Node, w where) {
	about := false // the previous argument is a flag about an image
	for i, item := range n.Content {
		arg := text(real(item))
		want, after := complete, about
		about = false
		if after {
			want = tagged
		}
		flag, value, has := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(flag, "-")
		switch {
		case has && isFlag && speaksOfImage(flag):
			arg, want = value, tagged
		case has && isFlag:
			arg = value
		case isFlag:
			about = speaksOfImage(flag)
			continue
		}
		for piece := range strings.SplitSeq(arg, ",") {
			if j := strings.LastIndexByte(piece, '='); j >= 0 {
				piece = piece[j+1:]
			}
			if ref := normal(piece, want); ref != "" {
				s.add(ref, index(w.path, i))
			}
		}
	}
}
