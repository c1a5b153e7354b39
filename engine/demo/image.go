package demo

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"image"
	_ "image/gif"  // so that the size of a GIF can be read
	_ "image/jpeg" // so that the size of a JPEG can be read
	_ "image/png"  // so that the size of a PNG can be read
	"io"
	"net/http"
	"strings"
)

// sniffBytes is enough of an image to tell its type, and its size in pixels where the header comes first.
const sniffBytes = 256 << 10

// describeImages reports what the images of a prompt are, as a Markdown list.
func describeImages(urls []string) string {
	if len(urls) == 0 {
		return "No image was received."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Images received: %d\n\n", len(urls))
	for i, url := range urls {
		fmt.Fprintf(&b, "%d. %s\n", i+1, describeImage(url))
	}
	return b.String()
}

func describeImage(url string) string {
	data, ok := strings.CutPrefix(url, "data:")
	meta, encoded, found := strings.Cut(data, ",")
	declared, isBase64 := strings.CutSuffix(meta, ";base64")
	if !ok || !found || !isBase64 {
		return "not sent as base64 data, and this model fetches nothing"
	}
	decoder := base64.NewDecoder(base64.StdEncoding, strings.NewReader(encoded))
	hash := sha256.New()
	head := &headBuffer{}
	size, err := io.Copy(io.MultiWriter(hash, head), decoder)
	if err != nil {
		return fmt.Sprintf("declared as %s, but its base64 is damaged after %d bytes", code(declared), size)
	}
	pixels := ""
	if config, _, err := image.DecodeConfig(bytes.NewReader(head.Bytes())); err == nil {
		pixels = fmt.Sprintf(", %d×%d pixels", config.Width, config.Height)
	}
	seen := ""
	if kind := http.DetectContentType(head.Bytes()); kind != declared {
		seen = fmt.Sprintf(" (looks like %s)", kind)
	}
	return fmt.Sprintf("%s%s, %d bytes%s, sha256 %x", code(declared), seen, size, pixels, hash.Sum(nil))
}

// headBuffer keeps the first sniffBytes of what is written to it.
type headBuffer struct{ bytes.Buffer }

func (h *headBuffer) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), sniffBytes-h.Len())])
	return len(p), nil
}
