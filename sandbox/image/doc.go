// Package image owns the sandbox's root file system: it builds the one EROFS file from pinned inputs, stores it under
// its digest, and verifies it; it must not start sandboxes nor know how a session is launched.
package image
