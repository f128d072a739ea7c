# Hearth: `make demo` shows the main job, `make check` runs the tests. `make help` lists the rest.

VERSION  := 0.1.0
O        ?= build
CC       ?= cc
# Programs for another architecture: CROSS=aarch64-linux-gnu, with Debian's cross compiler and that architecture's libraries.
CROSS    ?=
ifneq ($(CROSS),)
CC       := $(CROSS)-gcc
export PKG_CONFIG_LIBDIR := /usr/lib/$(CROSS)/pkgconfig:/usr/share/pkgconfig
endif
SAN      ?=
CSTD     := -std=gnu11
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
OPT      ?= -O2 -g
# V=1 shows the commands.
Q        := $(if $(V),,@)
say       = @printf '  %-5s %s\n' $(1) $(patsubst $(O)/%,%,$@)
# The outermost make decides; makes that it calls share its jobs.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS := $(if $(filter -j%,$(MAKEFLAGS)),$(MAKEFLAGS),$(MAKEFLAGS) -j$(shell nproc))
endif
DEFS     := -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DFUSE_USE_VERSION=314 -DHEARTH_VERSION='"$(VERSION)"'

# What each part is linked with. A program gets the libraries that it calls and no others (--as-needed).
COMMON_PKGS := glib-2.0 gio-2.0 gio-unix-2.0 jansson libmicrohttpd gnutls
DRIVER_PKGS := libnghttp2 libprotobuf-c libcurl yaml-0.1 blkid
CACHE_PKGS  := fuse3 libxxhash
CEPH_LIBS   := -lcephfs -lrados -lrbd
ALL_PKGS    := $(COMMON_PKGS) $(DRIVER_PKGS) $(CACHE_PKGS)
# Asked once, when first needed: `make deps` may have to install pkg-config before.
once         = $(eval $(1) := $$(shell $(2)))$($(1))
PKG_CFLAGS   = $(call once,PKG_CFLAGS,pkg-config --cflags $(ALL_PKGS))
PKG_LIBS     = $(call once,PKG_LIBS,pkg-config --libs $(ALL_PKGS))
CHECK_LIBS   = $(call once,CHECK_LIBS,pkg-config --libs check)

CFLAGS   ?=
ALL_CFLAGS = $(CSTD) $(OPT) $(WARN) $(DEFS) $(SAN) -I. -I$(O)/proto $(PKG_CFLAGS) -pthread -MMD -MP $(CFLAGS)
LINK       = $(CC) $(SAN) $(LDFLAGS) -Wl,--as-needed -o $@ $^
LIBS       = $(PKG_LIBS) -llmdb $(CEPH_LIBS) -pthread

PROGRAMS := $(O)/hearth-csi $(O)/hearthd $(O)/hearthctl
KEEPER   := $(O)/hearth-keeper

sources     = $(shell find $(1) -name '*.c')
obj         = $(patsubst %.c,$(O)/obj/%.o,$(1))
PROTO_C    := $(patsubst %.proto,$(O)/%.pb-c.c,$(wildcard proto/*.proto))
COMMON_OBJ := $(call obj,$(call sources,common proto))
DRIVER_OBJ := $(call obj,$(call sources,driver)) $(patsubst $(O)/proto/%.c,$(O)/obj/%.o,$(PROTO_C))
CACHE_OBJ  := $(call obj,$(call sources,cache))
CTL_OBJ    := $(call obj,$(filter-out %/main.c,$(call sources,cmd/hearthctl)))
# Preloaded into a program, not run.
FAULTS_SRC := tests/tools/ceph-faults.c
TOOL_SRC   := $(filter-out $(FAULTS_SRC),$(wildcard tests/tools/*.c))
UNIT_SRC   := $(shell find tests/unit -name '*_test.c')
UNIT_BIN   := $(patsubst %.c,$(O)/%,$(UNIT_SRC))
TOOL_BIN   := $(patsubst tests/tools/%.c,$(O)/tools/%,$(TOOL_SRC)) $(O)/tools/ceph-faults.so $(O)/tools/pause $(O)/tools/sign

.PHONY: all
all: deps
	+@$(MAKE) --no-print-directory programs

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: deps
deps: ## install missing packages for the build (apt)
	@tests/tools/install-deps build

$(O)/hearth-csi: $(call obj,$(wildcard cmd/hearth-csi/*.c)) $(O)/driver.a $(O)/common.a
$(O)/hearthd: $(call obj,$(wildcard cmd/hearthd/*.c)) $(O)/cache.a $(O)/common.a
$(O)/hearthctl: $(call obj,cmd/hearthctl/main.c) $(O)/ctl.a $(O)/driver.a $(O)/common.a
$(PROGRAMS):
	$(call say,LD)
	$(Q)$(LINK) $(LIBS)
# With the C library alone, see there.
$(KEEPER): $(call obj,$(wildcard cmd/hearth-keeper/*.c) proto/keep.c)
	$(call say,LD)
	$(Q)$(LINK) $(if $(SAN),,-static)

$(O)/proto/%.pb-c.c $(O)/proto/%.pb-c.h: proto/%.proto
	@mkdir -p $(O)/proto
	$(call say,PROTO)
	$(Q)protoc-c --proto_path=proto --c_out=$(O)/proto $*.proto
$(O)/obj/%.pb-c.o: $(O)/proto/%.pb-c.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CSTD) $(OPT) $(SAN) -I$(O)/proto $(shell pkg-config --cflags libprotobuf-c) -c -o $@ $<
$(O)/obj/%.o: %.c | $(PROTO_C:.c=.h)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

# Archives, so that a program or a test links only what it uses.
$(O)/common.a: $(COMMON_OBJ)
$(O)/driver.a: $(DRIVER_OBJ)
$(O)/cache.a: $(CACHE_OBJ)
$(O)/ctl.a: $(CTL_OBJ)
$(O)/%.a:
	@rm -f $@; $(AR) rcs $@ $^
$(UNIT_BIN): $(O)/%: $(O)/obj/%.o
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(LINK) $(LIBS) $(CHECK_LIBS)
units_of = $(filter $(O)/tests/unit/$(1)/%,$(UNIT_BIN))
$(O)/tests/unit/cache/fuse/live/session_test: LDFLAGS += -Wl,--wrap=store_spoil_fills
$(O)/tests/unit/cache/block/buffers_test: LDFLAGS += -Wl,--wrap=pthread_mutex_unlock
$(call units_of,driver): $(O)/driver.a
$(call units_of,cache): $(O)/cache.a
$(call units_of,cmd): $(O)/ctl.a $(O)/driver.a
$(UNIT_BIN): $(O)/common.a
$(O)/tools/%: $(O)/obj/tests/tools/%.o $(O)/driver.a $(O)/cache.a $(O)/common.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(LINK) $(LIBS)

$(O)/tools/pause: tests/e2e/pause.c
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CSTD) $(OPT) $(WARN) $(DEFS) -static -o $@ $<
$(O)/tools/sign: tests/release/sign.c
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CSTD) $(OPT) $(WARN) $(DEFS) $(shell pkg-config --cflags gnutls) -o $@ $< $(shell pkg-config --libs gnutls)
$(O)/tools/ceph-faults.so: $(FAULTS_SRC)
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(CC) $(CSTD) $(OPT) $(WARN) $(DEFS) -fPIC -shared -o $@ $< -ldl

-include $(shell find $(O)/obj -name '*.d' 2>/dev/null)

.PHONY: clean
clean: ## remove build/
	rm -rf $(O)

# ---- tests, demo, installation --------------------------------------------------------------------
# Recipes call make again where one step has to follow another: targets run in parallel.

AGAIN := +@$(MAKE) --no-print-directory
# Objects of tests are kept for the next run.
.SECONDARY:

.PHONY: test-deps programs tools unit-tests
test-deps:
	@tests/tools/install-deps test
programs: $(PROGRAMS) $(KEEPER) ; @:
tools: $(TOOL_BIN) ; @:
unit-tests: $(UNIT_BIN) ; @:

.PHONY: demo
demo: ## start a Ceph, provision, read cold and warm, print a table, clean up
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) tests/demo/demo.sh

.PHONY: check test
check: ## all tests: layout, format, the chart if helm is installed, unit, integration (as root)
	@tests/tools/install-deps test
	$(AGAIN) programs tools unit-tests
	+@tests/total 'tests/layout/check' '$(MAKE) --no-print-directory format-check' 'HELM=$(HELM) tests/chart/check $(abspath $(O))/helm have' \
	    '$(MAKE) --no-print-directory check-unit' \
	    '$(MAKE) --no-print-directory check-integration'
test: check

.PHONY: check-unit
check-unit: ## unit tests: no root, no Ceph
	@tests/tools/install-deps test
	$(AGAIN) unit-tests
	@tests/unit/run $(UNIT_BIN)

ASAN := O=$(O)/asan OPT="-O1 -g" SAN="-fsanitize=address,undefined -fno-omit-frame-pointer"
TSAN := O=$(O)/tsan OPT="-O1 -g" SAN=-fsanitize=thread UNIT_TSAN=1
.PHONY: check-asan
check-asan: ## unit tests under AddressSanitizer and UBSan
	$(AGAIN) $(ASAN) check-unit

.PHONY: check-tsan
check-tsan: ## unit tests under ThreadSanitizer
	$(AGAIN) $(TSAN) check-unit
export UNIT_TSAN

.PHONY: sanitized
sanitized: ## build the tests of these two
	$(AGAIN) $(ASAN) unit-tests
	$(AGAIN) $(TSAN) unit-tests

.PHONY: check-integration
check-integration: ## integration tests against a real Ceph, as root; T="coherence posix" runs some
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) tests/integration/run $(T)

.PHONY: check-crash
check-crash: ## kill the controller at every call to Ceph, repeat and revert, as root; T="cephfs" one type
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) CRASH_FULL=1 TYPES="$(T)" TEST_SECONDS=7200 tests/integration/run crash

.PHONY: chaos
chaos: ## hearthd, node plugin, keeper and Ceph's daemons end under load, as root; ROUNDS=1000 SEED=7 -> build/chaos/
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) ROUNDS=$(or $(ROUNDS),300) TEST_SECONDS=36000 \
	    $(if $(SEED),SEED=$(SEED)) tests/integration/run chaos

.PHONY: check-image-crash
check-image-crash: ## kill hearthd and the node plugin during I/O on images, as root; ROUNDS=200 SEED=7
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) ROUNDS=$(or $(ROUNDS),200) TEST_SECONDS=86400 \
	    $(if $(SEED),SEED=$(SEED)) tests/integration/run image_crash

.PHONY: bench
BENCH_PARTS := dataset_small dataset_large dataset_names dataset_memory image
CORE_PARTS := core_isolation core_cold core_latency core_locks core_loop core_warm
# T="small" is dataset_small, T=core all of CORE_PARTS.
bench_parts = $(foreach part,$(or $(T),$(BENCH_PARTS)),$(if $(filter core,$(part)),$(CORE_PARTS),$(if \
    $(filter $(part),$(BENCH_PARTS) $(CORE_PARTS)),,dataset_)$(part)))
bench: ## datasets and images beside local ones, ceph-fuse and librbd, as root -> build/bench/; T="small image" some, T=core
	@tests/tools/install-deps test
	$(AGAIN) programs tools $(O)/bench/store_bench
	@for part in $(bench_parts); do \
	    HEARTH_BUILD=$(abspath $(O)) tests/bench/$$part || exit 1; \
	done
	@missed=0; for of in $(sort $(foreach part,$(bench_parts),$(firstword $(subst _, ,$(part))))); do \
	    python3 tests/bench/$${of}_report.py $(O)/bench $(bench_parts) || missed=1; \
	done; exit $$missed

$(O)/bench/%_bench: $(O)/obj/tests/bench/%_bench.o $(O)/cache.a $(O)/common.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(LINK) $(LIBS)

.PHONY: bench-csi
bench-csi: ## CreateVolume and DeleteVolume beside bare Ceph, and memory, as root -> build/bench/csi.json
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) TYPES="$(T)" tests/bench/csi

.PHONY: check-torture
check-torture: ## random operations on two nodes for minutes, as root; TORTURE_SECONDS=60 TORTURE_SEEDS="1 2 3"
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) TORTURE_SECONDS=$(or $(TORTURE_SECONDS),60) \
	    TORTURE_SEEDS="$(or $(TORTURE_SEEDS),1 2 3)" TEST_SECONDS=7200 tests/integration/run torture

.PHONY: check-tsan-load
check-tsan-load: ## integration tests with daemons under ThreadSanitizer, as root: half an hour; T="coherence posix" runs some
	@tests/tools/install-deps test
	$(AGAIN) $(TSAN) programs tools
	@HEARTH_BUILD=$(abspath $(O))/tsan tests/integration/tsan $(T)

.PHONY: check-partition
check-partition: ## two nodes and a plain client while links, MDS, OSD and sessions fail, as root; ROUNDS=200 SEED=7
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) ROUNDS=$(or $(ROUNDS),200) SEED=$(or $(SEED),7) TEST_SECONDS=86400 \
	    tests/integration/run partition

FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/*_fuzz.c))
# With it, main() is libFuzzer's.
FUZZ_LINK ?=
$(O)/fuzz/%_fuzz: $(O)/obj/tests/fuzz/%_fuzz.o $(if $(FUZZ_LINK),,$(O)/obj/tests/fuzz/driver.o) $(O)/driver.a $(O)/cache.a $(O)/common.a
	@mkdir -p $(@D)
	$(call say,LD)
	$(Q)$(LINK) $(FUZZ_LINK) $(LIBS) $(CHECK_LIBS)

.PHONY: check-fuzz fuzzers
check-fuzz: ## run each fuzz target for FUZZ_SECONDS=60; T="manifest control" runs some
	@tests/tools/install-deps test
	+@MAKE='$(MAKE)' O='$(O)' FUZZ_SECONDS='$(or $(FUZZ_SECONDS),60)' tests/fuzz/run $(T)
fuzzers: $(FUZZ_BIN) ; @:

.PHONY: conformance
conformance: ## csi-sanity on a real Ceph, as root; needs Go, skips without
	@tests/tools/install-deps test
	$(AGAIN) programs tools
	@HEARTH_BUILD=$(abspath $(O)) tests/conformance/run

.PHONY: check-matrix
check-matrix: ## integration tests and csi-sanity on Ceph 16, 18 and 20, in Debian chroots, as root; T="posix" PAIRS="20:20 20:18" some
	@tests/tools/install-deps image
	@T="$(T)" tests/matrix/run $(abspath $(O))/matrix $(PAIRS)

.PHONY: e2e
e2e: ## scheduling on a real Kubernetes control plane and Ceph, as root; needs Go; T="claims" some, T=external Kubernetes' storage tests
	@tests/tools/install-deps e2e
	$(AGAIN) programs tools $(if $(filter install,$(or $(T),install)),$(O)/image/hearth.tar)
	@HEARTH_BUILD=$(abspath $(O)) tests/e2e/run $(T)

.PHONY: image check-image
define build_image
	@tests/tools/install-deps image
	@VERSION=$(VERSION) BASE=$(BASE) tests/image/build $(abspath $(O))/image
endef
image: ## build the container image without a registry and a daemon, as root -> build/image/; BASE=debian:forky-slim
	$(build_image)
	@VERSION=$(VERSION) tests/image/check $(abspath $(O))/image

# For tests that run in it: built again when the programs are.
$(O)/image/hearth.tar: $(PROGRAMS) $(KEEPER) Dockerfile
	$(build_image)

check-image: image ## check the image, and that a second build is identical
	@VERSION=$(VERSION) BASE=$(BASE) tests/image/check $(abspath $(O))/image repeat

.PHONY: release check-release
release: ## image (amd64, arm64), chart, SBOM and their signatures, as root -> build/release/; KEY=FILE IMAGE=REPOSITORY
	@tests/tools/install-deps release
	$(AGAIN) $(O)/tools/sign
	@VERSION=$(VERSION) KEY=$(KEY) IMAGE=$(IMAGE) SIGN=$(abspath $(O))/tools/sign tests/release/build $(abspath $(O))/release

check-release: ## build two releases with a temporary key and compare them; half an hour
	@tests/tools/install-deps release
	$(AGAIN) $(O)/tools/sign
	@VERSION=$(VERSION) SIGN=$(abspath $(O))/tools/sign tests/release/check $(abspath $(O))/release-check

.PHONY: chart-check deploy
chart-check: ## test the Helm chart: lint, output for several values, deploy/; needs Go, or HELM=PATH
	@HELM=$(HELM) tests/chart/check $(abspath $(O))/helm

deploy: ## write deploy/ again from the chart; needs Go, or HELM=PATH
	@HELM=$(HELM) tests/chart/check $(abspath $(O))/helm write

.PHONY: check-layout
check-layout: ## rules for folders, files, names and documents
	@tests/layout/check

.PHONY: format-check
format-check: ## check the format with clang-format
	@tests/tools/install-deps format
	@tests/layout/format

PREFIX ?= /usr/local
.PHONY: install
install: ## install to $(DESTDIR)$(PREFIX)
	@tests/tools/install-deps build
	$(AGAIN) programs
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(O)/hearthctl deploy/kubectl/kubectl-hearth deploy/kubectl/kubectl_complete-hearth
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/sbin $(O)/hearth-csi $(O)/hearthd $(KEEPER)
	@for page in $(wildcard deploy/man/*.[1-8]); do \
	    install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man$${page##*.} $$page; done
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/bash-completion/completions deploy/completion/hearthctl
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/zsh/site-functions deploy/completion/_hearthctl
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d deploy/completion/hearthctl.fish
