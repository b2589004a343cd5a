package hash

import (
	"hash/crc32"
	"unsafe"
)

// checksum goes on from crc with the bytes of s. A string is not copied for
// it: crc32 only reads.
func checksum(crc uint32, s string) uint32 {
	return crc32.Update(crc, crc32.IEEETable, unsafe.Slice(unsafe.StringData(s), len(s)))
}

// prefix is the CRC of the count of hashes in decimal; none for the first.
func prefix(hashes uint32) uint32 {
	if hashes == 0 {
		return 0
	}
	divisor := uint32(1)
	for hashes/divisor >= 10 {
		divisor *= 10
	}
	crc := uint32(0)
	for ; divisor > 0; divisor /= 10 {
		crc = update(crc, byte('0'+hashes/divisor%10))
	}
	return crc
}

// update goes on from crc with one byte.
func update(crc uint32, b byte) uint32 {
	crc = ^crc
	return ^(crc32.IEEETable[byte(crc)^b] ^ crc>>8)
}
