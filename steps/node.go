package steps

import "context"

// nodeKey is the context's key for the node of the plan that is carried out.
type nodeKey struct{}

// WithNode says in whose name things are done from here on: node is a step's id in
// the plan.
func WithNode(ctx context.Context, node string) context.Context {
	return context.WithValue(ctx, nodeKey{}, node)
}

// NodeOf gives the id of the step in whose name something is done; "" outside of a plan.
func NodeOf(ctx context.Context) string {
	node, _ := ctx.Value(nodeKey{}).(string)
	return node
}
