# Thermite. `make help` lists what there is to make.

# SQLite's full-text search is the one thing the code needs the build to be
# told. The tag stands here and nowhere else; a binary built without it says so
# and stops.
TAGS := sqlite_fts5
# The tests add those that need a browser, and those that drive the MCP server
# with the protocol's own clients, from the npm registry. CLIENTS= leaves these
# out, where there is none.
CLIENTS ?= ,clients
TEST_TAGS := $(TAGS),browser$(CLIENTS)

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

export CGO_ENABLED := 1
export GOFLAGS := -tags=$(TAGS) -buildvcs=false

# Debian packages: to build, and what the tests need besides.
BUILD_NEEDS := gcc libc6-dev
TEST_NEEDS := $(BUILD_NEEDS) git chromium fonts-dejavu-core systemd $(if $(CLIENTS),npm)

.PHONY: help demo build test check clients bench latency fuzz clean
.DEFAULT_GOAL := help

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## */\1\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: build ## run control, the bus and a rig that works on a kit, on this machine
	bin/thermite up --demo

build: ## build every program into bin/
	@tools/need go $(BUILD_NEEDS)
	@test -e bin/thermite || echo 'The first build takes some minutes, most of it SQLite.'
	@mkdir -p bin
	go build -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/...

# RACE= turns the race detector off, COUNT=3 runs each test three times. The
# detector's reports of races inside the bus's server are left out: see the file.
# Leaving the server out of the detector instead makes it see races that are
# none, in generic code of the standard library that both use.
RACE ?= -race
# A program built with it waits a second at each exit; a short wait is enough.
export GORACE := suppressions="$(CURDIR)/tools/race-suppressions" atexit_sleep_ms=100
COUNT ?= 1
PACKAGES ?= ./...
test: ## run every test, with the race detector
	@tools/need go $(TEST_NEEDS)
	@test -z '$(CLIENTS)' || tools/clients/install >/dev/null
	GOFLAGS='-tags=$(TEST_TAGS) -buildvcs=false' go test $(RACE) -shuffle=on -count=$(COUNT) -timeout=40m $(PACKAGES)

check: ## formatting, vet and staticcheck
	@tools/need go $(BUILD_NEEDS)
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt -w these:"; echo "$$unformatted"; exit 1; }
	GOFLAGS='-tags=$(TEST_TAGS) -buildvcs=false' go vet ./...
	GOFLAGS='-tags=$(TEST_TAGS) -buildvcs=false' go tool staticcheck ./...

clients: ## drive the MCP server with the protocol's inspector and its conformance suite
	@tools/need go $(BUILD_NEEDS) npm
	@tools/clients/install >/dev/null
	GOFLAGS='-tags=$(TAGS),clients -buildvcs=false' go test -count=1 -run='Inspector|Conformance' ./pkg/control/mcp

BENCH ?= .
BENCHTIME ?= 1s
BENCH_PACKAGES ?= $(addprefix ./,$(sort $(dir $(shell git grep -l '^func Benchmark' -- '*_test.go'))))
bench: ## run the benchmarks, or those of BENCH=, beside the figures we measure against
	@tools/need go $(BUILD_NEEDS)
	@mkdir -p bin
	go build -o bin/benchtable ./tools/benchtable
	go test -p 1 -vet=off -run='^$$' -bench='$(BENCH)' -benchtime=$(BENCHTIME) -benchmem -timeout=60m $(BENCH_PACKAGES) | bin/benchtable

latency: build ## measure how long each change takes to show, beside the seed's table; it takes some five minutes
	go build -o bin/latency ./tools/latency
	bin/latency

FUZZTIME ?= 10s
fuzz: ## run every fuzz target for FUZZTIME, 10s unless told
	@tools/need go $(BUILD_NEEDS)
	tools/fuzz $(FUZZTIME)

clean: ## remove bin/
	rm -rf bin
