package policy

import (
	"fmt"

	"golang.org/x/net/idna"
)

// profile is the one of the lookup of names (UTS 46, not transitional), which maps to lower case and to the ASCII form,
// and checks what is in that form already.
var profile = idna.New(
	idna.MapForLookup(),
	idna.BidiRule(),
	idna.StrictDomainName(true),
	idna.CheckHyphens(false), // names such as r3---sn-x.example exist
	idna.CheckJoiners(true),
)

func toASCII(name string) (string, error) {
	ascii, err := profile.ToASCII(name)
	if err != nil {
		return "", fmt.Errorf("%q is no valid international name: %w", name, err)
	}
	// Some names map to an ASCII form that is itself no valid name: such a rule could be written, but never read back.
	if again, err := profile.ToASCII(ascii); err != nil || again != ascii {
		return "", fmt.Errorf("%q is no valid international name", name)
	}
	return ascii, nil
}
