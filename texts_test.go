package kubexm_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// maxWords is how many words a sentence of a text in the code may have: of what the program
// prints, and of documentation comments.
const (
	maxWords        = 25
	maxCommentWords = 35
)

// banned are phrases that readers of the field do not use, with what they use.
var banned = []struct {
	phrase  *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`(?i)\b(no(t|body)( is| are)? heard)\b`), "rejected"},
	{regexp.MustCompile(`(?i)\b(stands already|already stands)\b`), "already exists"},
	{regexp.MustCompile(`(?i)\b(take|takes|taken|took) (a cluster |it |them |all of it )?away\b`), "delete, remove"},
	{regexp.MustCompile(`(?i)\banew\b`), "again, rebuild"},
	{regexp.MustCompile(`(?i)\b(take|takes|taken|took) back\b`), "roll back, undo"},
	{regexp.MustCompile(`(?i)\bvouch(es|ed)?\b`), "signature"},
	{regexp.MustCompile(`(?i)\bas (it|they) ha(s|ve) to be\b`), "in the desired state"},
	{regexp.MustCompile(`(?i)\bthe other way about\b`), "the reverse"},
	{regexp.MustCompile(`(?i)\b(breath|mouth)\b`), "a pause; a source"},
	{regexp.MustCompile(`(?i)\bbroken off\b`), "interrupted"},
	{regexp.MustCompile(`(?i)\bonce more\b`), "again"},
	{regexp.MustCompile(`(?i)\b(where|until|as long as|while|if) (nobody|somebody)\b`), "the subject: no user, a process"},
	{regexp.MustCompile(`(?i)\bwho(ever)? (asks|reads|calls|writes|has no)\b`), "the caller, a client, a user without"},
	{regexp.MustCompile(`(?i)\bdo(es)? without\b`), "does not need"},
	{regexp.MustCompile(`(?i)\bgive(s|n)? (it )?up on\b`), "stops waiting for"},
	{regexp.MustCompile(`(?i)\b(deployment matrix|design document)\b`), "a public source"},
	{regexp.MustCompile(`(?i)\blooks? whether\b`), "check whether"},
	{regexp.MustCompile(`(?i)\bwhat (it|they) (is|are) made of\b`), "its parts"},
}

// wording is one text of the source that people read.
type wording struct {
	at, words string
	comment   bool
}

// texts returns the texts of a source: the strings that commands, flags, errors, advice and
// findings are made of, and the documentation comments.
func texts(s source) (all []wording) {
	add := func(n ast.Expr) {
		if words := literal(n); words != "" {
			all = append(all, wording{at: s.at(n), words: words})
		}
	}
	ast.Inspect(s.File, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Short", "Long", "What", "Advice", "Question", "Confirmation", "Limits", "Reads", "Source", "Hint", "About", "Does"}, key.Name) {
				add(n.Value)
			}
		case *ast.CallExpr:
			f, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || len(n.Args) == 0 {
				return true
			}
			switch name := f.Sel.Name; {
			case name == "Errorf" || name == "New" && receiver(f) == "errors":
				add(n.Args[0])
			case name == "Advise" && len(n.Args) > 1:
				add(n.Args[1])
			case strings.Contains(receiver(f), "Flags()") || strings.HasSuffix(name, "Var") || strings.HasSuffix(name, "VarP"):
				add(n.Args[len(n.Args)-1])
			}
		case *ast.GenDecl:
			all = append(all, comment(s, n.Doc)...)
		case *ast.FuncDecl:
			all = append(all, comment(s, n.Doc)...)
		case *ast.Field:
			all = append(all, comment(s, n.Doc)...)
		case *ast.File:
			all = append(all, comment(s, n.Doc)...)
		}
		return true
	})
	return all
}

func comment(s source, g *ast.CommentGroup) []wording {
	if g == nil {
		return nil
	}
	var out []wording
	for _, paragraph := range strings.Split(g.Text(), "\n\n") {
		if !strings.HasPrefix(paragraph, "\t") && !strings.HasPrefix(paragraph, " ") {
			out = append(out, wording{at: s.at(g), words: paragraph, comment: true})
		}
	}
	return out
}

func receiver(f *ast.SelectorExpr) string {
	switch x := f.X.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.CallExpr:
		if inner, ok := x.Fun.(*ast.SelectorExpr); ok {
			return inner.Sel.Name + "()"
		}
	}
	return ""
}

// literal returns the text of a string that is written in parts, "" for anything else.
func literal(n ast.Expr) string {
	switch n := n.(type) {
	case *ast.BasicLit:
		if n.Kind == token.STRING {
			if value, err := strconv.Unquote(n.Value); err == nil {
				return value
			}
		}
	case *ast.BinaryExpr:
		if n.Op == token.ADD {
			return literal(n.X) + literal(n.Y)
		}
	case *ast.CallExpr: // fmt.Sprintf
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" && len(n.Args) > 0 {
			return literal(n.Args[0])
		}
	}
	return ""
}

// preformatted are lines that are shown as they are: code and tables.
var preformatted = regexp.MustCompile(`(?m)^(  |\t).*$`)

// faults returns what is wrong with a text.
func (x wording) faults() (out []string) {
	most := maxWords
	if x.comment {
		most = maxCommentWords
	}
	words := codeSpan.ReplaceAllString(preformatted.ReplaceAllString(x.words, ""), "code")
	for _, sentence := range regexp.MustCompile(`[.!?:;]["')*]*(?:\s+|$)|\n\n|\n\s*- `).Split(words, -1) {
		if n := len(strings.Fields(sentence)); n > most {
			out = append(out, fmt.Sprintf("%s: a sentence of %d words, %d at most: %s", x.at, n, most, strings.Join(strings.Fields(sentence), " ")))
		}
	}
	for _, b := range banned {
		if found := b.phrase.FindString(x.words); found != "" {
			out = append(out, fmt.Sprintf("%s: %q: write %s", x.at, found, b.instead))
		}
	}
	return out
}

// TestTextsAreClear holds what the program prints and the documentation comments to short
// sentences, and to the terms of the field.
func TestTextsAreClear(t *testing.T) {
	read := 0
	eachSource(t, func(s source) {
		for _, x := range texts(s) {
			read++
			for _, fault := range x.faults() {
				t.Error(fault)
			}
		}
	}, ".")
	if read < 3000 {
		t.Errorf("%d texts were found", read)
	}
}

// TestUnclearTextsAreFound: in each of the places.
func TestUnclearTextsAreFound(t *testing.T) {
	long := strings.Repeat("word ", maxWords+1)
	s := parsed(t, "x.go", `package x

// F does it anew.
func F() error {
	c := &cobra.Command{Short: "Take a cluster away", Long: "`+long+`"}
	c.Flags().String("flag", "", "`+long+`")
	_ = steps.Finding{What: "it already stands", Advice: "do it " + "once more"}
	_ = steps.Advise(fmt.Errorf("who asks: %w", err), "`+"`a b c`"+` is fine. So is this")
	return errors.New("broken off")
}
`)
	var got []string
	for _, x := range texts(s) {
		for _, fault := range x.faults() {
			place, what, _ := strings.Cut(fault, ": ")
			got = append(got, place+" "+strings.Join(strings.Fields(what)[:2], " "))
		}
	}
	want := []string{`x.go:3 "anew": write`, `x.go:5 "Take a`, "x.go:5 a sentence", "x.go:6 a sentence", `x.go:7 "already stands":`, `x.go:7 "once more":`, `x.go:8 "who asks":`, `x.go:9 "broken off":`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
