package conntest

import (
	"slices"
	"strings"
	"unique"

	"github.com/mensylisir/kubexm/steps/connector"
)

// Call is one command that a Sim received.
type Call struct {
	Verb string
	Argv []string // for VerbExec
	Args []string // the result of connector.Cmd.Args
	Sudo bool
	Exit int
	Err  error
}

func (c Call) String() string {
	if c.Verb == connector.VerbExec {
		return connector.Quote(c.Argv)
	}
	return strings.TrimSpace(c.Verb + " " + connector.Quote(c.Args))
}

// calls are the commands that a Sim received. A host gets hundreds in a run, nearly all of which its
// neighbours get as well: equal ones are in memory once.
type calls struct {
	noted []unique.Handle[noted]
	errs  map[int]error // by index
}

// noted is a Call without its error.
type noted struct {
	verb  string
	words string // Argv of VerbExec, Args of another verb; each ends with a NUL byte, which no word has
	sudo  bool
	exit  int
}

func (l *calls) add(c connector.Cmd, exit int, err error) {
	words := c.Argv
	if c.Verb != connector.VerbExec {
		words = c.Args()
	}
	var b strings.Builder
	for _, w := range words {
		b.WriteString(w)
		b.WriteByte(0)
	}
	if err != nil {
		if l.errs == nil {
			l.errs = map[int]error{}
		}
		l.errs[len(l.noted)] = err
	}
	l.noted = append(l.noted, unique.Make(noted{c.Verb, b.String(), c.Sudo, exit}))
}

func (l *calls) list() []Call {
	out := make([]Call, 0, len(l.noted))
	for i, h := range l.noted {
		n := h.Value()
		words := strings.Split(n.words, "\x00")
		words = slices.Clip(words[:len(words)-1])
		c := Call{Verb: n.verb, Args: words, Sudo: n.sudo, Exit: n.exit, Err: l.errs[i]}
		if n.verb == connector.VerbExec {
			c.Argv, c.Args = words, connector.Cmd{Argv: words}.Args()
		}
		out = append(out, c)
	}
	return out
}
