package rpm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// tokens is the part of xml.Decoder's methods that is used to read a package element.
type tokens interface {
	Token() (xml.Token, error)
	Skip() error
}

// errIrregular is the error for an element that only xml.Decoder can read.
var errIrregular = errors.New("not as createrepo writes")

// scanner returns the tokens of one element like xml.Decoder, but much faster. It supports
// only the XML that createrepo and similar programs write. It does not support comments,
// CDATA, namespace declarations, and entities other than the five predefined ones; for
// these xml.Decoder is used.
type scanner struct {
	rest  []byte
	words map[string]string // to store equal words once
	open  []string
	empty bool // the current element is an empty-element tag
}

func newScanner(element []byte, words map[string]string) *scanner {
	if !utf8.Valid(element) || bytes.ContainsFunc(element, odd) || bytes.Contains(element, []byte("]]>")) {
		element = []byte("&") // is irregular
	}
	return &scanner{rest: element, words: words}
}

// odd reports whether XML forbids or changes a character.
func odd(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff }

// Skip reads to the end of the current element.
func (s *scanner) Skip() error {
	for depth := len(s.open); len(s.open) >= depth; {
		if _, err := s.Token(); err != nil {
			return err
		}
	}
	return nil
}

// Token returns the next token; io.EOF at the end of the element.
func (s *scanner) Token() (xml.Token, error) {
	if s.empty {
		s.empty = false
		return s.close(s.open[len(s.open)-1])
	}
	if len(s.rest) == 0 {
		if len(s.open) > 0 {
			return nil, errIrregular
		}
		return nil, io.EOF
	}
	if s.rest[0] != '<' {
		end := bytes.IndexByte(s.rest, '<')
		if end < 0 || len(s.open) == 0 {
			return nil, errIrregular
		}
		text := s.rest[:end]
		s.rest = s.rest[end:]
		if bytes.IndexByte(text, '&') >= 0 {
			plain, ok := unescape(string(text))
			if !ok {
				return nil, errIrregular
			}
			text = []byte(plain)
		}
		return xml.CharData(text), nil
	}
	end := bytes.IndexByte(s.rest, '>')
	if end < 0 {
		return nil, errIrregular
	}
	tag := s.rest[1:end]
	s.rest = s.rest[end+1:]
	if len(tag) > 0 && tag[0] == '/' {
		return s.close(string(tag[1:]))
	}
	return s.start(tag)
}

func (s *scanner) close(name string) (xml.Token, error) {
	if len(s.open) == 0 || s.open[len(s.open)-1] != name {
		return nil, errIrregular
	}
	s.open = s.open[:len(s.open)-1]
	return xml.EndElement{}, nil
}

// start parses the text between "<" and ">" of a start tag.
func (s *scanner) start(tag []byte) (xml.Token, error) {
	if len(tag) > 0 && tag[len(tag)-1] == '/' {
		s.empty = true
		tag = tag[:len(tag)-1]
	}
	n := nameLength(tag)
	name := s.word(tag[:n])
	s.open = append(s.open, name)
	prefix, local, ok := strings.Cut(name, ":")
	if !ok {
		prefix, local = "", name
	}
	if local == "" || ok && prefix == "" || strings.Contains(local, ":") {
		return nil, errIrregular
	}
	token := xml.StartElement{Name: xml.Name{Local: local}}
	for tag = tag[n:]; ; {
		rest := bytes.TrimLeft(tag, " \t\n")
		if len(rest) == 0 {
			return token, nil
		}
		n := nameLength(rest)
		if len(rest) == len(tag) || n == 0 || len(rest) < n+3 || rest[n] != '=' || rest[n+1] != '"' && rest[n+1] != '\'' {
			return nil, errIrregular
		}
		name, quote := s.word(rest[:n]), rest[n+1]
		rest = rest[n+2:]
		end := bytes.IndexByte(rest, quote)
		if end < 0 || strings.Contains(name, ":") || name == "xmlns" || bytes.IndexByte(rest[:end], '<') >= 0 {
			return nil, errIrregular
		}
		value := s.word(rest[:end])
		if strings.Contains(value, "&") {
			if value, ok = unescape(value); !ok {
				return nil, errIrregular
			}
		}
		token.Attr = append(token.Attr, xml.Attr{Name: xml.Name{Local: name}, Value: value})
		tag = rest[end+1:]
	}
}

// nameLength returns the length in bytes of the name at the start of b.
func nameLength(b []byte) int {
	for i, c := range b {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return i
		}
	}
	return len(b)
}

// word returns the same string for equal bytes.
func (s *scanner) word(b []byte) string {
	if w, ok := s.words[string(b)]; ok {
		return w
	}
	w := string(b)
	s.words[w] = w
	return w
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// unescape replaces the five predefined entities; others are not supported.
func unescape(s string) (string, bool) {
	for rest := s; ; {
		i := strings.IndexByte(rest, '&')
		if i < 0 {
			return entities.Replace(s), true
		}
		name, _, ok := strings.Cut(rest[i+1:], ";")
		if !ok || name != "lt" && name != "gt" && name != "quot" && name != "apos" && name != "amp" {
			return "", false
		}
		rest = rest[i+1:]
	}
}
