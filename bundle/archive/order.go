package archive

// order checks the sequence of an archive's entries. It does not know which entries are
// compressed, because a stream without its index does not tell.
type order struct {
	seen      map[string]bool
	slot      bool // the signature slot was seen
	slotAt    int  // its position in the sequence
	descended bool // the second sorted run has begun
	last      string
}

// next checks the next entry's name and its size in bytes.
func (o *order) next(name string, size int64) error {
	if err := checkName(name); err != nil {
		return &Error{Code: ErrName, Member: name, Offset: noOffset, Detail: "entry rejected", Err: err}
	}
	if o.seen == nil {
		o.seen = make(map[string]bool)
	}
	if o.seen[name] {
		return fault(ErrDuplicate, name, noOffset, "the entry occurs twice")
	}
	n := len(o.seen)
	o.seen[name] = true
	if n >= maxMembers {
		return fault(ErrLimit, name, noOffset, "more than %d entries", maxMembers)
	}
	if err := o.place(n, name); err != nil {
		return err
	}
	return o.size(name, size)
}

// place checks that name may be the n-th entry, counted from 0.
func (o *order) place(n int, name string) error {
	want := ""
	switch {
	case n == 0:
		want = layoutName
	case n == 1:
		want = indexName
	case name == layoutName || name == indexName:
		want = "a blob"
	}
	if want != "" && name != want {
		return fault(ErrOrder, name, noOffset, "%s is expected in this position", want)
	}
	switch {
	case name == slotName:
		o.slot, o.slotAt = true, n
		return nil
	case !o.slot:
		return nil
	case name < o.last && o.descended:
		return fault(ErrOrder, name, noOffset, "blobs are not sorted by digest")
	case name < o.last:
		o.descended = true
	}
	o.last = name
	return nil
}

// size checks an entry's size against the format's limits.
func (o *order) size(name string, size int64) error {
	limit := int64(maxBlob)
	switch {
	case name == slotName:
		if size != slotSize {
			return fault(ErrSlot, name, noOffset, "the slot has %d bytes, it must have %d", size, slotSize)
		}
		return nil
	case name == layoutName:
		limit = maxOCILayout
	case name == indexName:
		limit = maxIndexJSON
	case !o.slot:
		limit = maxHeadBlob
	}
	if size < 0 || size > limit {
		return fault(ErrLimit, name, noOffset, "%d bytes, the limit is %d for this entry", size, limit)
	}
	return nil
}

// end returns an error if the sequence may not end here.
func (o *order) end() error {
	if !o.slot {
		return fault(ErrMissing, slotName, noOffset, "the archive ends before its signature slot")
	}
	return nil
}
