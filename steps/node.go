package steps

import "context"

// nodeKey is the context key for the plan node that is executed.
type nodeKey struct{}

// WithNode returns a context that attributes all following work to node, a step's ID in
// the plan.
func WithNode(ctx context.Context, node string) context.Context {
	return context.WithValue(ctx, nodeKey{}, node)
}

// NodeOf returns the ID of the step that ctx is attributed to, or "" outside of a plan.
func NodeOf(ctx context.Context) string {
	node, _ := ctx.Value(nodeKey{}).(string)
	return node
}
