package rpm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// tokens is what of xml.Decoder reads a package's element.
type tokens interface {
	Token() (xml.Token, error)
	Skip() error
}

// errIrregular tells that an element is written in a way that only xml.Decoder reads.
var errIrregular = errors.New("not as createrepo writes")

// scanner gives the tokens of one element as xml.Decoder does, in a fraction of the
// time, where it is written as createrepo and all others write it. Anything else it
// leaves to xml.Decoder: comments, CDATA, entities but for the usual five,
// namespaces declared inside.
type scanner struct {
	rest  []byte
	words map[string]string // to keep of equal words only one
	open  []string
	empty bool // the element that was opened last is to be closed
}

func newScanner(element []byte, words map[string]string) *scanner {
	if !utf8.Valid(element) || bytes.ContainsFunc(element, odd) || bytes.Contains(element, []byte("]]>")) {
		element = []byte("&") // is irregular
	}
	return &scanner{rest: element, words: words}
}

// odd tells the characters that XML forbids, or changes.
func odd(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0xfffe || r == 0xffff }

// Skip reads to the end of the element that was opened last.
func (s *scanner) Skip() error {
	for depth := len(s.open); len(s.open) >= depth; {
		if _, err := s.Token(); err != nil {
			return err
		}
	}
	return nil
}

// Token gives the next token; io.EOF where the element is at its end.
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

// start reads what stands between "<" and ">" of an element that begins.
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

// nameLength tells how many bytes a name has that b begins with.
func nameLength(b []byte) int {
	for i, c := range b {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == ':'
		if !letter && (i == 0 || c != '-' && c != '.' && (c < '0' || c > '9')) {
			return i
		}
	}
	return len(b)
}

// word gives a string of which there is only one for equal bytes.
func (s *scanner) word(b []byte) string {
	if w, ok := s.words[string(b)]; ok {
		return w
	}
	w := string(b)
	s.words[w] = w
	return w
}

var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&apos;", "'", "&amp;", "&")

// unescape puts in the five entities that XML has, where there are no others.
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
