package steps

import (
	"fmt"
	"sync"
)

// AnyKey is a Key without its type parameter, for the lists in Meta.
type AnyKey interface {
	// Name is the output's name, "kubeadm.join".
	Name() string
	id() string
}

// Key identifies one output of type T. It is a package variable of the step that writes
// the output. Steps of other domains take it as an argument, so that the plan shows the
// data flow. On identifies the output of one host.
type Key[T any] struct{ name, host string }

// NewKey returns the key of the output with that name.
func NewKey[T any](name string) Key[T] { return Key[T]{name: name} }

// Name is the output's name.
func (k Key[T]) Name() string { return k.name }

// On returns the key of the same output for one host.
func (k Key[T]) On(host string) Key[T] { k.host = host; return k }

func (k Key[T]) id() string { return k.name + "@" + k.host }

// Put sets the output. It is an error if the step does not declare the key in
// Meta.Writes.
func (k Key[T]) Put(h *Host, v T) error {
	if !declares(h.meta.Writes, k) {
		return fmt.Errorf("step %s writes %s without declaring it", h.meta.Name, k.name)
	}
	h.board.put(k.id(), v)
	return nil
}

// Get returns the output. It is an error if the step does not declare the key in
// Meta.Reads, or if the output has not been set.
func (k Key[T]) Get(h *Host) (T, error) {
	var zero T
	if !declares(h.meta.Reads, k) {
		return zero, fmt.Errorf("step %s reads %s without declaring it", h.meta.Name, k.name)
	}
	v, ok := h.board.get(k.id())
	if !ok {
		return zero, fmt.Errorf("output %s has not been set", k.id())
	}
	t, ok := v.(T)
	if !ok {
		return zero, fmt.Errorf("output %s is a %T, not a %T", k.id(), v, zero)
	}
	return t, nil
}

func declares(ks []AnyKey, k AnyKey) bool {
	for _, d := range ks {
		if d.Name() == k.Name() {
			return true
		}
	}
	return false
}

// Board passes outputs between the steps of one run, in memory. It is safe for
// concurrent use.
type Board struct {
	mu sync.Mutex
	m  map[string]any
}

func (b *Board) put(id string, v any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.m == nil {
		b.m = map[string]any{}
	}
	b.m[id] = v
}

func (b *Board) get(id string) (any, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.m[id]
	return v, ok
}

// has reports whether k, or k of this host, has been set.
func (b *Board) has(k AnyKey, host string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, global := b.m[k.Name()+"@"]
	_, ofHost := b.m[k.Name()+"@"+host]
	return global || ofHost
}
