# make demo   sets everything up and shows real Pi at work in a real sandbox
# make test   sets everything up and runs every test
#
# Each step can be run again: what is done is not done twice, and what was interrupted
# leaves nothing half made.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

# Debian's versioned Go isn't in PATH. An older Go fetches the one that go.mod names.
GO := $(shell command -v go || ls /usr/lib/go-*/bin/go 2>/dev/null | tail -n 1)
GO := $(if $(GO),$(GO),go)
ifneq ($(shell $(GO) env GOVERSION 2>/dev/null | grep -cE '^go1\.(2[6-9]|[3-9][0-9])'),1)
export GOTOOLCHAIN := auto
endif

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# Static binaries: the supervisor and runsc start in namespaces without a libc.
GOBUILD := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false
BENCH ?= .
TESTFLAGS ?= -timeout 30m

.PHONY: all build setup packages runsc image demo test check fmt vet lint golden bench clean

all: build

build:
	@mkdir -p bin
	@$(GOBUILD) -ldflags "-s -w -X patio/internal/cli.version=$(VERSION)" -o bin/patio.tmp . && mv bin/patio.tmp bin/patio

packages:
	@internal/setup/packages.sh build

# The key names what runsc is made from: the modules that it links, by checksum, and the compiler.
runsc: build
	@modules=$$($(GO) list -deps -f '{{with .Module}}{{.Path}} {{.Version}} {{.Sum}}{{end}}' gvisor.dev/gvisor/runsc | sort -u); \
	key=$$( { echo "$$modules"; $(GO) env GOVERSION GOARCH; } | sha256sum | cut -c1-16); \
	if [ "$$(cat libexec/patio/runsc.key 2>/dev/null)" = "$$key" ] && [ -x libexec/patio/runsc ]; then exit 0; fi; \
	version=$$($(GO) list -m -f '{{.Version}}' gvisor.dev/gvisor); \
	echo "building runsc $$version (some minutes the first time)" >&2; \
	mkdir -p libexec/patio; \
	$(GOBUILD) -ldflags "-s -w -X gvisor.dev/gvisor/runsc/version.version=$$version" -o libexec/patio/runsc.tmp gvisor.dev/gvisor/runsc; \
	mv libexec/patio/runsc.tmp libexec/patio/runsc; \
	echo "$$key" > libexec/patio/runsc.key.tmp; mv libexec/patio/runsc.key.tmp libexec/patio/runsc.key

image: build
	@bin/patio image build --quiet >/dev/null

setup: packages
	@$(MAKE) build
	@$(MAKE) runsc
	@$(MAKE) image

demo: setup
	@bin/patio demo

test: setup
	@$(GO) test $(TESTFLAGS) ./...

# What CI runs.
check: setup
	@internal/setup/packages.sh check
	@$(MAKE) fmt vet lint
	@$(MAKE) test TESTFLAGS="-race -timeout 30m"

fmt:
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "not formatted, run gofmt -w:" >&2; echo "$$out" >&2; exit 1; }

vet:
	@$(GO) vet ./...
	@shellcheck internal/setup/*.sh .ci/run

LINT := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
lint:
	@GOFLAGS=-mod=mod $(GO) run $(LINT) run ./...

golden:
	@$(GO) test ./sandbox ./internal/cli $(patsubst %/testdata/golden,./%,$(wildcard tui/testdata/golden tui/*/testdata/golden)) -update

# One line a figure: NAME: VALUE UNIT, RATIO to WHAT. BENCH=start runs one of them.
bench: setup
	@internal/setup/packages.sh bench
	@$(GO) run ./internal/bench $(BENCH)

clean:
	@rm -rf bin libexec
