package discover

import (
	"regexp"
	"strings"

	"github.com/distribution/reference"
)

// shape of what a text has to be to count as an image.
type shape int

const (
	loose    shape = iota // any reference: the place leaves no doubt
	named                 // with a registry, a tag or a digest
	tagged                // with a tag or a digest
	complete              // with a registry, and a tag or a digest: the place says little
)

// pictures end like an image of another sort.
var pictures = regexp.MustCompile(`(?i)\.(png|svg|jpe?g|gif|ico|webp|iso|qcow2|img|raw|vmdk)$`)

// moving are tags without a digit that are tags all the same.
var moving = map[string]bool{"latest": true, "main": true, "master": true, "stable": true, "edge": true, "nightly": true, "canary": true, "release": true, "dev": true}

// normal gives the whole form of a reference, or "" where s is none of that shape.
func normal(s string, want shape) string {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 512 || strings.ContainsAny(s, " \t\n\"'$(){}<>,;|&*?%#!=") || pictures.MatchString(s) {
		return ""
	}
	s = strings.TrimPrefix(s, "docker://")
	ref, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return ""
	}
	_, digested := ref.(reference.Digested)
	tag := ""
	if t, ok := ref.(reference.Tagged); ok {
		tag = t.Tag()
	}
	bare := tag == "" && !digested
	first, _, deep := strings.Cut(s, "/")
	domain := reference.Domain(ref)
	written := deep && first == domain
	if want == named && bare && !written || want >= tagged && bare {
		return ""
	}
	if want == complete {
		switch {
		case !written:
			return ""
		case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"): // labels and taints
			return ""
		case !digested && !strings.ContainsAny(tag, "0123456789") && !moving[tag]: // label:Effect
			return ""
		}
	}
	return reference.TagNameOnly(ref).String()
}

// imageKey tells whether a key names an image, and how sure that is.
func imageKey(key string) (shape, bool) {
	if key == "image" {
		return named, true
	}
	if i := strings.LastIndexByte(key, '/'); i >= 0 { // an annotation's or a label's
		key = key[i+1:]
	}
	low := strings.ToLower(key)
	for _, end := range []string{"image", "imagename", "imageref", "imagereference", "imageurl", "image_name", "image-name"} {
		if strings.HasSuffix(low, end) {
			return tagged, true
		}
	}
	return tagged, strings.HasPrefix(low, "image.") || strings.HasSuffix(low, ".image")
}

// speaksOfImage tells whether a flag, a variable or a setting is about an image.
func speaksOfImage(name string) bool {
	low := strings.ToLower(name)
	return strings.Contains(low, "image") && !strings.Contains(low, "pull") && !strings.Contains(low, "imagegc") && !strings.Contains(low, "image-gc")
}

// Whole gives the whole form of a reference: with its registry, and with the tag
// that is meant where it names none. What is no reference stays as it is.
func Whole(ref string) string {
	if w := normal(ref, loose); w != "" {
		return w
	}
	return ref
}
