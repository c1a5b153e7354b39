package cli

import (
	"fmt"
	"strings"
	"time"

	"patio/engine/pi"
	"patio/sandbox/limits"
	"patio/sandbox/network/policy"
	"patio/sandbox/runsc"
)

// settingChecks look at one value of a flag before anything is launched, because only
// there the line is known. The launch checks again. A flag without one is any text.
var settingChecks = map[string]func(string) error{
	"model": func(v string) error {
		if provider, id, ok := strings.Cut(v, "/"); !ok || provider == "" || id == "" {
			return fmt.Errorf("a model is PROVIDER/MODEL, not %q", v)
		}
		return nil
	},
	"thinking": pi.CheckThinking,
	"allow": func(v string) error {
		_, err := policy.ParseRule(v)
		return err
	},
	limitFlag: func(v string) error {
		_, err := limits.Parse(limits.Limits{}, v)
		return err
	},
	"platform": func(v string) error {
		if v != runsc.Systrap && v != runsc.KVM {
			return fmt.Errorf("unknown platform %q: %s or %s", v, runsc.Systrap, runsc.KVM)
		}
		return nil
	},
	outputFlag: func(v string) error { return (&output{format: v}).check() },
	"timeout": func(v string) error {
		d, err := time.ParseDuration(v)
		switch {
		case err != nil:
			return fmt.Errorf("%q is no duration, such as 10m", v)
		case d < 0:
			return fmt.Errorf("the timeout %s is negative", v)
		}
		return nil
	},
}
