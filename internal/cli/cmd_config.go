package cli

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"patio/engine"
	"patio/sandbox/limits"
)

// configuration is what is in effect for the calling user.
type configuration struct {
	State       string            `json:"state"`
	Data        string            `json:"data"`
	Cache       string            `json:"cache"`
	Runtime     string            `json:"runtime"`
	Images      []string          `json:"images"`
	Environment map[string]string `json:"environment"`
	Limits      string            `json:"default_limits"`
}

func configCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Directories and settings in effect",
		Args:  arguments(cobra.NoArgs),
	}
	o := addOutput(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := o.check(); err != nil {
			return err
		}
		dirs, err := engine.UserDirs()
		if err != nil {
			return err
		}
		host, err := limits.HostInfo("")
		if err != nil {
			return err
		}
		c := configuration{
			State: dirs.State, Data: dirs.Data, Cache: dirs.Cache, Runtime: dirs.Runtime,
			Images: dirs.Images(), Environment: patioEnvironment(os.Environ()),
			Limits: limits.Default(host.Memory, host.CPUs).String(),
		}
		return o.object(a, c, func(w io.Writer) error { return writeConfiguration(w, c) })
	}
	return cmd
}

// patioEnvironment picks the settings out of the environment. None of them is a secret.
func patioEnvironment(environ []string) map[string]string {
	set := map[string]string{}
	for _, kv := range environ {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "PATIO_") {
			set[name] = value
		}
	}
	return set
}

func writeConfiguration(w io.Writer, c configuration) error {
	err := fields(w,
		[2]string{"Sessions, journals", c.State},
		[2]string{"Images", strings.Join(c.Images, ", ")},
		[2]string{"Caches", c.Cache},
		[2]string{"Sockets", c.Runtime},
		[2]string{"Limits by default", c.Limits},
	)
	if err != nil {
		return err
	}
	var lines []string
	for name, value := range c.Environment {
		lines = append(lines, name+"="+value)
	}
	slices.Sort(lines)
	return section(w, "From the environment", lines...)
}
