package manifest

import "github.com/mensylisir/kubexm/manifest/document"

type (
	// Severity says whether a Problem stops the work.
	Severity = document.Severity
	// Problem is something that is wrong in a document, and where.
	Problem = document.Problem
	// Problems are all that is wrong in a document.
	Problems = document.Problems
)

// Whether a Problem stops the work.
const (
	Error   = document.Error
	Warning = document.Warning
)
