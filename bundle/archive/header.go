package archive

import (
	"archive/tar"
	"bytes"
	"strings"
	"time"
)

// tarHeader returns the only valid header for an entry of this name and size.
func tarHeader(name string, size int64) ([]byte, error) {
	var b bytes.Buffer
	err := tar.NewWriter(&b).WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644,
		ModTime: time.Unix(0, 0), Format: tar.FormatGNU,
	})
	if err != nil {
		return nil, fault(ErrInput, name, noOffset, "write a tar header for %d bytes: %v", size, err)
	}
	return b.Bytes(), nil
}

// parseHeader accepts only the header that tarHeader returns for its name and size. The
// other checks find a precise error for any other header.
func parseHeader(block []byte) (*Member, error) {
	field, _, _ := strings.Cut(string(block[:100]), "\x00")
	if string(block[257:262]) != "ustar" {
		return nil, fault(ErrHeader, "", noOffset, "not a tar header")
	}
	if t := block[156]; t != tar.TypeReg {
		return nil, fault(ErrType, field, noOffset, "an entry of type %q; only regular files are accepted", t)
	}
	if err := checkName(field); err != nil {
		return nil, &Error{Code: ErrName, Member: field, Offset: noOffset, Detail: "entry rejected", Err: err}
	}
	h, err := tar.NewReader(bytes.NewReader(block)).Next()
	if err != nil {
		return nil, &Error{Code: ErrHeader, Member: field, Offset: noOffset, Detail: "the tar header is damaged", Err: err}
	}
	if h.Size > maxBlob {
		return nil, fault(ErrLimit, field, noOffset, "%d bytes, the limit is %d", h.Size, int64(maxBlob))
	}
	want, err := tarHeader(field, h.Size)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(block, want) {
		return nil, fault(ErrHeader, field, noOffset, "the tar header differs from the format: mode, owner, time or an unused field is set")
	}
	return &Member{Name: field, Digest: nameDigest(field), Size: h.Size}, nil
}
