package catalog

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record is a summary with what tells whether it still holds.
type record struct {
	Summary
	stamp  stamp
	read   int64  // when the file was read, Unix nanoseconds
	active int64  // of the last message, Unix milliseconds, 0 when unknown
	mark   uint32 // of the file's beginning and end
}
