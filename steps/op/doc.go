// Package op is the generic half of every step: wanted state as resources that
// compare, apply, remove and restore themselves, and Do for what has no
// resource form.
//
// A resource that changes a host first records what was there, on the host
// itself (see record.go), so that a removal weeks later, from another machine,
// gives back what there was. Undo is the fast path within one run.
//
// A resource that one domain alone needs is in that domain's package. It is made of
// Recall, Remember and Forget, or of NoteOnce and PutBack, embeds NoNeeds where it
// opens no artifact, and is an Around where it depends on those before it.
//
// A Resource is not a steps.Step: tasks take steps, so a generic piece does not
// fit into a task by itself. A domain wraps it, with a name that says what for.
//
// It may import steps, steps/runner and manifest.
package op
