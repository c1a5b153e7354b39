package policy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

const (
	maxName  = 253 // RFC 1035: 255 octets on the wire, less the length byte and the root
	maxLabel = 63  // RFC 1035
)

// NormalizeName gives the one spelling of a host name under which it is compared: lower case, without the final dot,
// international names in their ASCII form. Addresses, in any notation that a resolver takes for one, are refused.
func NormalizeName(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" {
		return "", errors.New("the host name is empty: write one like example.com")
	}
	if len(name) > 4*maxName {
		return "", errors.New("the host name is too long: 253 characters are the most")
	}
	for _, c := range []byte(name) {
		if c < 0x80 && c != '.' && !isNameByte(c) && (c < 'A' || c > 'Z') {
			return "", notNameByte(c)
		}
	}
	ascii, err := toASCII(name)
	if err != nil {
		return "", err
	}
	ascii = strings.ToLower(ascii)
	if len(ascii) > maxName {
		return "", fmt.Errorf("the host name has %d characters: %d are the most", len(ascii), maxName)
	}
	if _, err := netip.ParseAddr(ascii); err == nil {
		return "", fmt.Errorf("%s is an address: use the host's name", ascii)
	}
	labels := strings.Split(ascii, ".")
	for _, label := range labels {
		if err := checkLabel(label); err != nil {
			return "", err
		}
	}
	// "127.1", "0x7f.1" and "2130706433" are addresses to inet_aton.
	if last := labels[len(labels)-1]; isNumber(last) {
		return "", fmt.Errorf("the host name %s ends in a number, as an address does: use the host's name", ascii)
	}
	return ascii, nil
}

func checkLabel(label string) error {
	switch {
	case label == "":
		return errors.New("the host name has an empty part: take out the extra dot")
	case len(label) > maxLabel:
		return fmt.Errorf("a part of the host name has %d characters: %d are the most", len(label), maxLabel)
	case label[0] == '-' || label[len(label)-1] == '-':
		return fmt.Errorf("the part %q of the host name starts or ends with a hyphen", label)
	}
	for _, c := range []byte(label) {
		if !isNameByte(c) {
			return notNameByte(c)
		}
	}
	return nil
}

func notNameByte(c byte) error {
	return fmt.Errorf("the character %q can't be in a host name: letters, digits, hyphens and dots can", c)
}

func isNameByte(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-'
}

func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
