package components

import "context"

// Stamp gives a digest of everything that decides what a component is built of.
func (b *Builder) Stamp(ctx context.Context, c Component) (string, error) { return b.stamp(ctx, c) }
