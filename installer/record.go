package installer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/mensylisir/kubexm/installer/audit"
	"github.com/mensylisir/kubexm/installer/plan"
)

// Who returns the user and the machine that this process runs as and on: "root@wd1", and the
// user that sudo reports.
func Who(lookup func(string) (string, bool)) string {
	who, where := "somebody", "a machine without a name"
	if u, err := user.Current(); err == nil {
		who = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		where = h
	}
	who += "@" + where
	if by, ok := lookup("SUDO_USER"); ok && by != "" {
		who += " (sudo by " + by + ")"
	}
	return who
}

// auditLine is the journal's line with the head of the audit log at the end of the run: it
// shows later whether the log's end was cut off.
type auditLine struct {
	Audit *audit.Head `json:"audit"`
}

// logged adds the start and the end of a run to the audit log.
func (s *Session) logged(ctx context.Context, g *plan.Graph, o RunOptions, run func() (string, error)) (journal string, err error) {
	what := "run of " + g.Name
	if o.DryRun {
		what = "dry " + what
	}
	if err := errors.Join(s.audit.Add(&audit.Line{Type: audit.TypeRun, Message: what}), s.audit.Sync()); err != nil {
		return "", err
	}
	journal, err = run()
	end := &audit.Line{Type: audit.TypeEnd, Message: what + ": done"}
	switch {
	case ctx.Err() != nil:
		end.Message = what + ": broken off"
	case err != nil:
		end.Message, end.Error = what+": not done", s.redactor.String(err.Error())
	}
	if lost := errors.Join(s.audit.Add(end), s.audit.Sync()); lost != nil {
		return journal, errors.Join(err, lost)
	}
	if journal == "" {
		return journal, err
	}
	head := s.audit.Head()
	return journal, errors.Join(err, appendTo(journal, auditLine{Audit: &head}))
}

// appendTo adds a line to an existing journal.
func appendTo(journal string, line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(journal, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
