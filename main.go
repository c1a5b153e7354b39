// Command patio manages sessions of the coding agent Pi, each in a gVisor sandbox of its
// own. Everything it does is in package internal/cli.
package main

import (
	"os"

	"patio/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
