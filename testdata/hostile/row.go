package hostile

// row is one hostile bundle.
type row struct {
	group string // names, types, size, integrity or signature
	name  string
	code  string // what verify and install say
	// extract is what extract says, where that is something else: it reads blobs and
	// the documents that lead to them, and not what lies between. "same" where it
	// succeeds, with the content of the true bundle.
	extract string
	says    string // is in what verify says, where a code alone could be about something else
	slow    bool   // made or refused in more than a second
	make    func(t *truth) ([]byte, error)

	identity bool // of signature: an identity is trusted, and no key

	// install says that install alone refuses the bundle, by what it knows of the site.
	install bool
	record  string // what this machine's record of the cluster says; "" is none
}

// from makes a row's archive of a change of the members.
func from(change func(p *pack)) func(*truth) ([]byte, error) {
	return func(t *truth) ([]byte, error) {
		p := t.pack()
		change(p)
		return p.bytes()
	}
}

// of makes it of a change of the bundle, with its archive right in itself.
func of(change func(t *truth) error) func(*truth) ([]byte, error) {
	return func(t *truth) ([]byte, error) {
		t = t.clone()
		if err := change(t); err != nil {
			return nil, err
		}
		return t.pack().bytes()
	}
}

// after changes the bytes of the true archive.
func after(change func(b []byte) []byte) func(*truth) ([]byte, error) {
	return func(t *truth) ([]byte, error) {
		b, err := t.pack().bytes()
		if err != nil {
			return nil, err
		}
		return change(b), nil
	}
}

// slot gives the place of the signature slot among the members.
func (p *pack) slot() int {
	for i := range p.members {
		if p.members[i].name == slotName {
			return i
		}
	}
	return -1
}

// insert puts members behind the slot.
func (p *pack) insert(ms ...member) {
	at := p.slot() + 1
	rest := append(ms[:len(ms):len(ms)], p.members[at:]...)
	p.members = append(p.members[:at:at], rest...)
}

// first is the first blob behind the slot that has content and is stored, or compressed.
func (p *pack) first(compress bool) *member {
	for i := p.slot() + 1; i < len(p.members); i++ {
		if m := &p.members[i]; m.compress == compress && len(m.data) > 600 {
			return m
		}
	}
	return nil
}

// rows is the whole table.
func rows() []row {
	var all []row
	all = append(all, nameRows()...)
	all = append(all, typeRows()...)
	all = append(all, sizeRows()...)
	all = append(all, integrityRows()...)
	all = append(all, lockRows()...)
	return append(all, signatureRows()...)
}
