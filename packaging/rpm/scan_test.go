package rpm

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// drain gives all tokens, in a form that the two readers share.
func drain(d tokens) (out []string, err error) {
	text := ""
	for {
		token, err := d.Token()
		if _, ok := token.(xml.CharData); !ok && text != "" {
			out = append(out, "text "+text)
			text = ""
		}
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			line := "start " + token.Name.Local
			for _, a := range token.Attr {
				line += " " + a.Name.Space + ":" + a.Name.Local + "=" + a.Value
			}
			out = append(out, line)
		case xml.EndElement:
			out = append(out, "end")
		case xml.CharData:
			text += string(token)
		default:
			out = append(out, "other")
		}
	}
}

// readBoth holds the scanner against xml.Decoder: what it reads, that reads alike.
func readBoth(t *testing.T, element string) (regular bool) {
	t.Helper()
	got, err := drain(newScanner([]byte(element), map[string]string{}))
	if err != nil {
		if !errors.Is(err, errIrregular) {
			t.Error(err)
		}
		return false
	}
	want, err := drain(xml.NewDecoder(strings.NewReader(element)))
	if err != nil {
		t.Errorf("%q: xml.Decoder says %v", element, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%q: %s", element, d)
	}
	return true
}

var elementsToScan = map[string]bool{ // whether the scanner itself reads it
	`<a/>`: true, `<a></a>`: true, `<rpm:a b="c" d='e&amp;lt;"'/>`: true, "<a>\n b &lt;&gt;&amp;&quot;&apos; </a>": true, `<a b=""><c/><c/></a>`: true,
	"<a\n b=\"1\"\t/>": true, `<a b="x>y"/>`: false, `<a><!-- --></a>`: false, `<a><![CDATA[b]]></a>`: false, `<a>&#65;</a>`: false, `<a>&b;</a>`: false,
	`<a b="1" c="2"d="3"/>`: false, `<a xml:b="c"/>`: false, `<a xmlns="c"/>`: false, `<a b=c/>`: false, `<a></b>`: false, `<a>`: false, `</a>`: false, `<a>&amp</a>`: false,
	"<a>\r\n</a>": false, "<a>\x00</a>": false, "<a>\xff</a>": false, `<a>]]></a>`: false, `<a b="<"/>`: false, `<é/>`: false, `<a:/>`: false, `<:a/>`: false, `<a:b:c/>`: false,
	`<1/>`: false, `<a/`: false, `< a/>`: false, `<a b ="1"/>`: false, ``: true, `x<a/>`: false,
}

func TestScanner(t *testing.T) {
	for element, regular := range elementsToScan {
		if got := readBoth(t, element); got != regular {
			t.Errorf("%q: regular %v", element, got)
		}
	}
}

// TestScannerReadsWhatCreaterepoWrites looks that nothing of it is left to xml.Decoder.
func TestScannerReadsWhatCreaterepoWrites(t *testing.T) {
	for _, p := range entriesOf(t, fixture(t), signedRepository) {
		if !readBoth(t, string(p.Record)) {
			t.Errorf("%s", p.Record)
		}
	}
}

func TestElementsAreReadEitherWay(t *testing.T) {
	for _, description := range []string{"plain", "&#65;", "<![CDATA[a]]>", "<!-- a -->", "<a>b</a>"} {
		primary := strings.Replace(primaryOf("a 1-1", "b 1-1"), "<format>", "<description>"+description+"</description><format>", 1)
		for _, before := range []string{"", "<!-- a comment -->", "\n"} {
			all, err := readPrimary(strings.NewReader(strings.Replace(primary, "<metadata", before+"<metadata", 1)), func(string, string) bool { return true })
			if err != nil || len(all) != 2 || !bytes.HasPrefix(all[0].Record, []byte("<package ")) || !bytes.HasSuffix(all[0].Record, []byte("</package>")) {
				t.Errorf("%q %q: %v %v", before, description, all, err)
			}
		}
	}
}

func FuzzScanner(f *testing.F) {
	for element := range elementsToScan {
		f.Add(element)
	}
	f.Fuzz(func(t *testing.T, element string) { readBoth(t, element) })
}
