package audit

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/mensylisir/kubexm/steps"
	"github.com/mensylisir/kubexm/steps/connector"
)

// The verbs of connections that are not commands.
const (
	VerbDial   = "net.dial"   // NETWORK ADDRESS, from the host
	VerbListen = "net.listen" // NETWORK ADDRESS, on the host
)

// longestArg is the number of bytes of one argument that a line stores.
const longestArg = 4 << 10

// Conn is a connection to a host that logs all commands. A command that may change something
// is logged before it is sent, so that it is known even if this process is killed while it
// runs, and again when it ends. A command that changes nothing has one line.
type Conn struct {
	conn connector.Conn
	host string
	log  *Log
	red  *connector.Redactor
}

// Wrap returns conn with logging of everything that is done through it. Secrets known to red
// or to a command are masked.
func Wrap(conn connector.Conn, host string, log *Log, red *connector.Redactor) connector.Conn {
	c := &Conn{conn: conn, host: host, log: log, red: red}
	if f, ok := conn.(connector.Forwarder); ok {
		return &forwarder{Conn: c, to: f}
	}
	return c
}

// Root reports whether commands run as root without sudo.
func (c *Conn) Root() bool {
	e, ok := c.conn.(connector.Elevated)
	return ok && e.Root()
}

// Close closes the connection; see connector.Conn. The log stays open.
func (c *Conn) Close() error { return c.conn.Close() }

// Exec runs one command; see connector.Conn. It does not run a command that cannot be logged.
func (c *Conn) Exec(ctx context.Context, cmd connector.Cmd) (connector.Result, error) {
	red := c.red.With(cmd.Secrets...)
	x := c.line(ctx, cmd, red)
	if !x.ReadOnly {
		begin := *x
		begin.Type = TypeBegin
		if err := c.log.Add(&begin); err != nil {
			return connector.Result{}, err
		}
		x.Began = begin.N
	}
	in := newIntake(&cmd, red)
	began := time.Now()
	res, err := c.conn.Exec(ctx, cmd)
	x.Seconds = time.Since(began).Round(time.Millisecond).Seconds()
	x.Stdin = in.content()
	if err != nil {
		x.Error = red.String(err.Error())
	} else {
		x.Exit = &res.Exit
	}
	if lost := c.log.Add(x); lost != nil && err == nil {
		return res, lost // the command ran, but is not logged: this ends the run
	}
	return res, err
}

// line describes a command before it runs.
func (c *Conn) line(ctx context.Context, cmd connector.Cmd, red *connector.Redactor) *Line {
	x := &Line{Type: TypeDid, Host: c.host, Step: steps.NodeOf(ctx), Verb: cmd.Verb, Sudo: cmd.Sudo && !c.Root(), ReadOnly: ReadOnlyVerb(cmd.Verb)}
	argv := cmd.Argv
	if script, args, ok := cmd.Script(); ok && cmd.Verb != connector.VerbExec {
		x.Script, argv = c.log.scriptHash(script), args
	}
	x.Argv = shortened(red.Argv(argv))
	return x
}

func shortened(argv []string) []string {
	for i, a := range argv {
		if len(a) > longestArg {
			argv[i] = strings.ToValidUTF8(a[:longestArg], "") + "… sha256:" + hashOf([]byte(a))
		}
	}
	return argv
}

// ReadOnlyVerb reports whether a verb changes nothing on a host. Programs may change anything.
func ReadOnlyVerb(verb string) bool {
	return slices.Contains([]string{
		connector.VerbRead, connector.VerbDigest, connector.VerbStat, connector.VerbList, connector.VerbLines, connector.VerbCompare, connector.VerbSysctl,
		connector.VerbModule, connector.VerbUnitShow, connector.VerbUnitJournal, connector.VerbJobPoll, connector.VerbUser, connector.VerbGroup,
		connector.VerbHostname, connector.VerbBootID, connector.VerbFacts, connector.VerbHasProgram, connector.VerbSwaps, connector.VerbSELinux,
		connector.VerbUFW, connector.VerbPackages, connector.VerbPackagesFree, VerbDial,
	}, verb)
}

// forwarder is a Conn that also forwards TCP.
type forwarder struct {
	*Conn
	to connector.Forwarder
}

// Dial connects from the host; see connector.Forwarder.
func (f *forwarder) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	began := time.Now()
	conn, err := f.to.Dial(ctx, network, address)
	if lost := f.opened(ctx, VerbDial, network, address, began, err); lost != nil && err == nil {
		return nil, errors.Join(lost, conn.Close())
	}
	return conn, err
}

// Listen accepts connections on the host; see connector.Forwarder.
func (f *forwarder) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	began := time.Now()
	l, err := f.to.Listen(ctx, network, address)
	if lost := f.opened(ctx, VerbListen, network, address, began, err); lost != nil && err == nil {
		return nil, errors.Join(lost, l.Close())
	}
	return l, err
}

func (f *forwarder) opened(ctx context.Context, verb, network, address string, began time.Time, err error) error {
	x := &Line{Type: TypeDid, Host: f.host, Step: steps.NodeOf(ctx), Verb: verb, Argv: []string{network, address}, ReadOnly: ReadOnlyVerb(verb),
		Seconds: time.Since(began).Round(time.Millisecond).Seconds()}
	if err != nil {
		x.Error = f.red.String(err.Error())
	}
	return f.log.Add(x)
}
