package hostile

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/mensylisir/kubexm/bundle"
	"github.com/mensylisir/kubexm/bundle/sign"
	"github.com/mensylisir/kubexm/manifest"
)

// signatures is the group whose runs trust one key, or an identity, and not anybody.
const signatures = "signature"

// claim is what the maker of the bundle truly says of it.
func (t *truth) claim() (bundle.Claim, error) {
	l, problems := manifest.DecodeLock(bytes.NewReader(t.head[lockAt]))
	if err := problems.Err(); err != nil {
		return bundle.Claim{}, err
	}
	return bundle.ClaimOf(l), nil
}

// sign is what somebody signs of a root, with the claim of the bundle as it is now; claims
// may change that, and may be nil.
func (t *truth) sign(by *sign.Signer, root string, claims func(*bundle.Claim)) ([]byte, error) {
	c, err := t.claim()
	if err != nil {
		return nil, err
	}
	if claims != nil {
		claims(&c)
	}
	return by.SignRoot(root, c)
}

// under is the true bundle with an edit that its signature does not know of.
func under(edit func(*truth) error) func(*truth) ([]byte, error) {
	return of(func(t *truth) error {
		line, err := t.sign(t.maker, digestOf(t.head[0]), nil)
		if err != nil {
			return err
		}
		if err := edit(t); err != nil {
			return err
		}
		return t.setSlot(line)
	})
}

// signed is the true bundle with what a change makes of its maker's signature.
func signed(by func(t *truth) *sign.Signer, claims func(c *bundle.Claim), change func(line []byte) ([]byte, error)) func(*truth) ([]byte, error) {
	return of(func(t *truth) error {
		line, err := t.sign(by(t), digestOf(t.head[0]), claims)
		if err != nil {
			return err
		}
		if change != nil {
			if line, err = change(line); err != nil {
				return err
			}
		}
		return t.setSlot(line)
	})
}

// setSlot puts one line into the slot.
func (t *truth) setSlot(line []byte) error {
	if len(line) >= slotSize {
		return fmt.Errorf("a signature of %d bytes", len(line))
	}
	t.slot = bytes.Repeat([]byte{' '}, slotSize)
	copy(t.slot, append(line[:len(line):len(line)], '\n'))
	return nil
}

// envelope changes the envelope of a signature.
func envelope(change func(e map[string]any)) func([]byte) ([]byte, error) {
	return func(line []byte) ([]byte, error) {
		var b map[string]any
		if err := json.Unmarshal(line, &b); err != nil {
			return nil, err
		}
		e, ok := b["dsseEnvelope"].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("no envelope in %.80s", line)
		}
		change(e)
		return json.Marshal(b)
	}
}

func maker(t *truth) *sign.Signer    { return t.maker }
func stranger(t *truth) *sign.Signer { return t.stranger }

// signatureRows: bundles that are whole, and not vouched for by whom the site trusts.
func signatureRows() []row {
	const other = "sha256:0000000000000000000000000000000000000000000000000000000000000001"
	statement := func(predicateType string) func(*truth) ([]byte, error) {
		return of(func(t *truth) error {
			c, err := t.claim()
			if err != nil {
				return err
			}
			st, err := sign.NewStatement(c.Cluster, digestOf(t.head[0]), predicateType, c)
			if err != nil {
				return err
			}
			line, err := t.maker.Sign(st)
			if err != nil {
				return err
			}
			return t.setSlot(line)
		})
	}
	all := []row{
		{name: "none", code: "bundle-unsigned", make: of(func(*truth) error { return nil })},
		{name: "other key", says: "signature-key", make: signed(stranger, nil, nil)},
		{name: "other key, under the trusted one's name", says: "signature-invalid", make: of(func(t *truth) error {
			ours, err := t.sign(t.maker, digestOf(t.head[0]), nil)
			if err != nil {
				return err
			}
			theirs, err := t.sign(t.stranger, digestOf(t.head[0]), nil)
			if err != nil {
				return err
			}
			var a, b map[string]any
			if err := json.Unmarshal(ours, &a); err != nil {
				return err
			}
			if err := json.Unmarshal(theirs, &b); err != nil {
				return err
			}
			a["dsseEnvelope"] = b["dsseEnvelope"]
			line, err := json.Marshal(a)
			if err != nil {
				return err
			}
			return t.setSlot(line)
		})},
		{name: "valid signature of another bundle", says: "signature-subject", make: of(func(t *truth) error {
			line, err := t.sign(t.maker, other, nil)
			if err != nil {
				return err
			}
			return t.setSlot(line)
		})},
		{name: "root swapped under its signature", says: "signature-subject", make: under(func(t *truth) error {
			return t.editRoot(func(root document) { root["annotations"] = map[string]any{"x": "y"} })
		})},
		{name: "wrong DSSE payloadType", says: "signature-payload-type", make: signed(maker, nil, envelope(func(e map[string]any) { e["payloadType"] = "application/json" }))},
		{name: "wrong predicateType", says: "signature-predicate-type", make: statement("https://example.org/x/v1")},
		{name: "unparsable payload", says: "signature-payload", make: signed(maker, nil, envelope(func(e map[string]any) { e["payload"] = "e30ge30=" }))},
		{name: "payload changed", says: "signature-invalid", make: signed(maker, nil, envelope(func(e map[string]any) {
			var payload []byte
			text, _ := e["payload"].(string)
			if err := json.Unmarshal([]byte(`"`+text+`"`), &payload); err == nil { // base64, as encoding/json has it
				e["payload"] = bytes.Replace(payload, []byte(`"serial":`), []byte(`"serial":1`), 1)
			}
		}))},
		{name: "zero signatures", says: "signature-count", make: signed(maker, nil, envelope(func(e map[string]any) { e["signatures"] = []any{} }))},
		{name: "no Sigstore bundle", says: "signature-format", make: of(func(t *truth) error { return t.setSlot([]byte("{}")) })},
		{name: "a serial that differs from the lock's", code: "bundle-claim", make: signed(maker, func(c *bundle.Claim) { c.Serial++ }, nil)},
		{name: "its lock's serial raised under its signature", says: "signature-subject", make: under(func(t *truth) error { return t.editLock(func(l *manifest.Lock) { l.Serial++ }) })},
		{name: "another platform than the lock's", code: "bundle-claim", make: signed(maker, func(c *bundle.Claim) { c.Platforms = []string{"linux/s390x"} }, nil)},
		{name: "an invalid minimum version of kubexm", code: "bundle-kubexm", make: signed(maker, func(c *bundle.Claim) { c.MinimumKubexm = "no version" }, nil)},
		{name: "keyless, by somebody else", identity: true, says: "signature-identity", make: signed(maker, nil, nil)},
	}
	all = append(all, siteRows()...)
	for i := range all {
		all[i].group = signatures
		if all[i].code == "" {
			all[i].code = "bundle-signature"
		}
	}
	return all
}

// newerRecord is what a machine keeps of a cluster that had a newer bundle than any.
const newerRecord = `{"serial": "99991231000000"}`

// siteRows: bundles that are whole and well signed, and not for this site.
func siteRows() []row {
	return []row{
		{name: "lower serial than the site has", code: "bundle-serial", install: true, record: newerRecord, make: signed(maker, nil, nil)},
		{name: "replay: lower serial than the site has ever had", code: "bundle-serial", install: true,
			record: `{"serial": "20000101000000", "highest": "99991231000000"}`, make: signed(maker, nil, nil)},
		{name: "for hosts of another platform", code: "bundle-lacks", says: "for linux/amd64", install: true,
			make: func(t *truth) ([]byte, error) { return signed(maker, nil, nil)(t.other) }},
	}
}
