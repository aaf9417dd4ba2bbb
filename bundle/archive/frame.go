package archive

// Raw frames: zstd frames of raw blocks, whose length follows from that of
// their content.
const (
	blockSize      = 128 << 10 // the most that one zstd block may hold
	blockHeaderLen = 3
	// magic; no flags; window descriptor for 128 KiB
	rawFrameHeader = "\x28\xb5\x2f\xfd\x00\x38"
)

// Tar: a header, the data, zeros up to the next whole block.
const (
	tarBlock = 512
	headLen  = int64(len(rawFrameHeader)) + blockHeaderLen + tarBlock // a member's header frame
	endData  = 2 * tarBlock
)

// rawFrameLen is the length of the raw frame that holds n bytes.
func rawFrameLen(n int64) int64 {
	if n == 0 {
		return 0
	}
	return int64(len(rawFrameHeader)) + blockHeaderLen*((n+blockSize-1)/blockSize) + n
}

// paddingLen is how many zeros follow n bytes of data in the tar.
func paddingLen(n int64) int64 { return -n & (tarBlock - 1) }

// storedLen is the length of all frames of a stored member of n bytes.
func storedLen(n int64) int64 { return headLen + rawFrameLen(n) + rawFrameLen(paddingLen(n)) }

// appendBlockHeader appends the header of a raw block of n bytes.
func appendBlockHeader(dst []byte, n int, last bool) []byte {
	h := uint32(n) << 3 //nolint:gosec // at most blockSize; type 0 in bits 1 and 2: raw
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16)) //nolint:gosec // its three bytes
}

// appendRawFrame appends the raw frame of data, nothing for no data.
func appendRawFrame(dst, data []byte) []byte {
	if len(data) > 0 {
		dst = append(dst, rawFrameHeader...)
	}
	for len(data) > 0 {
		n := min(len(data), blockSize)
		dst = appendBlockHeader(dst, n, n == len(data))
		dst = append(dst, data[:n]...)
		data = data[n:]
	}
	return dst
}

// headFrame makes the frame of a member's tar header, headLen bytes long.
func headFrame(name string, size int64) ([]byte, error) {
	h, err := tarHeader(name, size)
	if err != nil {
		return nil, err
	}
	return appendRawFrame(nil, h), nil
}

// paddingFrame makes the frame of the zeros that follow n bytes of data; it
// may be empty.
func paddingFrame(n int64) []byte { return appendRawFrame(nil, make([]byte, paddingLen(n))) }

// endFrame makes the frame of the tar's end.
func endFrame() []byte { return appendRawFrame(nil, make([]byte, endData)) }
