package namespace

import (
	"os"
	"testing"
)

// The test binary is also the init process of the namespaces that its tests make.
func TestMain(m *testing.M) {
	if IsInit() {
		os.Exit(InitMain())
	}
	os.Exit(m.Run())
}
