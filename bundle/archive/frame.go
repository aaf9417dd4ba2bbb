package archive

// Raw frames are zstd frames of raw blocks. Their length follows from the length of their
// content.
const (
	blockSize      = 128 << 10 // maximum content of a zstd block
	blockHeaderLen = 3
	// magic; no flags; window descriptor for 128 KiB
	rawFrameHeader = "\x28\xb5\x2f\xfd\x00\x38"
)

// A tar entry is a header, the data, and zeros up to the next full block.
const (
	tarBlock = 512
	headLen  = int64(len(rawFrameHeader)) + blockHeaderLen + tarBlock // length of an entry's header frame
	endData  = 2 * tarBlock
)

// rawFrameLen is the length of the raw frame for n bytes of content.
func rawFrameLen(n int64) int64 {
	if n == 0 {
		return 0
	}
	return int64(len(rawFrameHeader)) + blockHeaderLen*((n+blockSize-1)/blockSize) + n
}

// paddingLen is the number of zeros after n bytes of data in the tar.
func paddingLen(n int64) int64 { return -n & (tarBlock - 1) }

// storedLen is the length of all frames of a stored entry of n bytes.
func storedLen(n int64) int64 { return headLen + rawFrameLen(n) + rawFrameLen(paddingLen(n)) }

// appendBlockHeader appends the header of a raw block of n bytes.
func appendBlockHeader(dst []byte, n int, last bool) []byte {
	h := uint32(n) << 3 //nolint:gosec // at most blockSize; type 0 in bits 1 and 2: raw
	if last {
		h |= 1
	}
	return append(dst, byte(h), byte(h>>8), byte(h>>16)) //nolint:gosec // its three bytes
}

// appendRawFrame appends the raw frame of data, or nothing if data is empty.
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

// headFrame returns the frame of an entry's tar header, headLen bytes long.
func headFrame(name string, size int64) ([]byte, error) {
	h, err := tarHeader(name, size)
	if err != nil {
		return nil, err
	}
	return appendRawFrame(nil, h), nil
}

// paddingFrame returns the frame of the zeros after n bytes of data; it may be empty.
func paddingFrame(n int64) []byte { return appendRawFrame(nil, make([]byte, paddingLen(n))) }

// endFrame returns the frame of the end-of-tar blocks.
func endFrame() []byte { return appendRawFrame(nil, make([]byte, endData)) }
