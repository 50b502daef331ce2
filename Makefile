# SPDX-License-Identifier: BSD-2-Clause
#
# Plain Make, one file. Every target below `help` is one command a person types; what they build lands in
# build/VARIANT, and the same rules serve every variant: the compiler and its flags are all that differs.
#
#   gcc    what is shipped          clang   the second opinion
#   asan   address and undefined-behaviour sanitizers          fuzz    libFuzzer (clang)
#
# The module is not built by nginx's own `make modules`: that knows no variants, no header dependencies and only
# nginx's warnings. nginx's configure runs once (build/nginx-VERSION) for its headers and for the module list that our
# `config` file yields; the sources are compiled here. tests/tools/test_build.py keeps the other way working.

VARIANT ?= gcc
PYTHON  := /usr/bin/python3
B       := build/$(VARIANT)

ifeq (0,$(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)))
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --no-print-directory --no-builtin-rules
.SUFFIXES:
.DELETE_ON_ERROR:

# One short line a step; `make V=1` shows the commands.
Q   := $(if $(V),,@)
say  = @$(if $(V),:,printf '  %-6s %s\n' '$(1)' '$(2)')

# --- flags ---------------------------------------------------------------------------------------------------------

BUILDFLAGS := DEB_BUILD_MAINT_OPTIONS="hardening=+bindnow optimize=-lto" dpkg-buildflags --get
HARDENING  := $(shell $(BUILDFLAGS) CFLAGS 2>/dev/null) $(shell $(BUILDFLAGS) CPPFLAGS 2>/dev/null)
LDFLAGS    := $(shell $(BUILDFLAGS) LDFLAGS 2>/dev/null)
SANITIZE   := -g -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all

CC.gcc       := gcc
CC.clang     := clang
CC.asan      := gcc
CC.fuzz      := clang
FLAGS.gcc    := $(HARDENING) -O2
FLAGS.clang  := $(HARDENING) -O2
FLAGS.asan   := $(SANITIZE) -fsanitize=address,undefined
FLAGS.fuzz   := $(SANITIZE) -fsanitize=fuzzer-no-link,address,undefined
LDFLAGS.asan := -fsanitize=address,undefined
LDFLAGS.fuzz := -fsanitize=address,undefined
# The sanitizers bring their own allocator; gcc's optimiser sees phantom paths through its checks.
FLAGS.asan   += -Wno-maybe-uninitialized

CC       := $(CC.$(VARIANT))
WARNINGS := -Wall -Wextra -Werror -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith -Wundef \
            -Wwrite-strings -Wvla -Wformat=2 -Wcast-qual
CFLAGS   := -std=gnu17 $(FLAGS.$(VARIANT)) $(WARNINGS) -fPIC -fvisibility=hidden -Isrc
LDFLAGS  += $(LDFLAGS.$(VARIANT))
DEPFLAGS  = -MMD -MP

# nginx's headers are not ours to warn about. Its idiom: callbacks with parameters that not every handler needs, and
# `char *` for the literal that says what is wrong with a directive.
NGX          := build/nginx-$(shell sed -n 's/^.define NGINX_VERSION *"\(.*\)"/\1/p' \
                  /usr/share/nginx/src/src/core/nginx.h 2>/dev/null)
NGX_INCLUDES := $(addprefix -isystem $(NGX)/,src/core src/event src/event/modules src/os/unix src/http \
                  src/http/modules src/http/v2 objs)
NGX_CFLAGS   := $(NGX_INCLUDES) -Wno-unused-parameter -Wno-undef -Wno-cast-qual -Wno-write-strings

# --- what is built of what -----------------------------------------------------------------------------------------

# In the order of DESIGN: a layer includes only those before it (scripts/check-layers). `config` names the same ones.
CORE_LAYERS := base room token journal engine redis
CORE        := $(wildcard $(CORE_LAYERS:%=src/%/*.c))
CORE_OBJS   := $(CORE:%.c=$(B)/%.o)
CORE_LIB    := $(B)/libweir.a

# What a Redis runs: each file of lua/, whole.
SCRIPT_SRCS := $(patsubst lua/%.lua,$(B)/script_%.c,$(wildcard lua/*.lua))
CORE_OBJS   += $(SCRIPT_SRCS:.c=.o)

PAGES       := $(patsubst web/%/index.html,$(B)/page_%.c,$(wildcard web/*/index.html))
NGX_SRCS    := $(wildcard src/nginx/*.c)
MODULE      := $(B)/ngx_http_weir_module.so
MODULE_LIST := $(NGX)/objs/ngx_http_weir_module_modules.c
MODULE_OBJS := $(CORE_OBJS) $(NGX_SRCS:%.c=$(B)/%.o) $(PAGES:.c=.o) $(B)/ngx_http_weir_module_modules.o
MODULE_LIBS := -lcrypto -ljansson -lhiredis -lpthread

CLI         := $(B)/weir
CLI_OBJS    := $(patsubst %.c,$(B)/%.o,$(wildcard src/cli/*.c))
CLI_LIBS    := -ljansson -lcurl -lhiredis -lssl -lcrypto -lpthread -lm

UNIT_HELP   := $(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c))
UNIT        := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))
UNIT_LIBS   := -lcmocka -lcrypto -ljansson -lhiredis -lpthread -lm

FUZZ        := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
REPLAYS     := $(FUZZ:%=$(B)/replay/%)
FUZZ_LIBS   := -lcrypto -ljansson -lhiredis -lpthread

SIM         := $(B)/sim
SIM_OBJS    := $(patsubst %.c,$(B)/%.o,$(wildcard tests/sim/*.c))

BENCHES     := $(patsubst bench/%.c,$(B)/bench/%,$(wildcard bench/*.c))
REFERENCE   := $(wildcard src/reference/*.c)

C_FILES     := $(wildcard src/*/*.c src/*/*.h tests/unit/*.c tests/unit/*.h tests/fuzz/*.c \
                 tests/sim/*.[ch] bench/*.c bench/*.h)

# --- commands ------------------------------------------------------------------------------------------------------

.DEFAULT_GOAL := help
.PHONY: help run test conformance asan bench sim crash lint format format-check docs fuzz screenshot install-deps clean \
        all module cli unit replays simulator benches

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

run: ## the demo, in the foreground: PORT=8000 DATA=build/demo WORKERS=(all cores) STORE=(redis://…)
	@scripts/install-deps run
	@$(MAKE) -s module
	@exec env PORT='$(PORT)' DATA='$(DATA)' WORKERS='$(WORKERS)' STORE='$(STORE)' scripts/run-demo

test: ## every test; the last line is `N passed, N failed`
	@scripts/install-deps test
	@$(PYTHON) tests/run all

conformance: ## end-to-end tests in a zone and on each arrangement of Redis and Valkey: BACKENDS="standalone cluster" FILES=tests/e2e/test_api.py
	@scripts/install-deps test
	@BACKENDS='$(BACKENDS)' $(PYTHON) tests/run conformance $(FILES)

asan: ## unit, fuzz corpus and end-to-end tests with address and undefined-behaviour sanitizers
	@scripts/install-deps test
	@$(PYTHON) tests/run asan

bench: ## the figures, one a line: name value unit (bar …)
	@scripts/install-deps bench
	@$(MAKE) module benches
	@bench/run

sim: ## simulated on-sales, every promise checked after every event: SEEDS=1-2000 EVENTS=10000
	@scripts/install-deps build
	@$(MAKE) -s simulator
	@$(SIM) --seeds $(or $(SEEDS),1-2000) --events $(or $(EVENTS),10000)

crash: ## kill -9 of workers, the master and everything, under load: ROUNDS=10000
	@scripts/install-deps test
	@$(MAKE) module
	@WEIR_MODULE=$(CURDIR)/$(MODULE) WEIR_CRASHES=$(or $(ROUNDS),10000) \
	    $(PYTHON) -m pytest -q -p no:cacheprovider tests/e2e/test_crash.py

lint: ## clang-tidy, shellcheck, layers, licence lines: no warnings
	@scripts/install-deps lint
	@$(MAKE) $(NGX)/.configured
	@scripts/lint

format: ## lay the C code out as .clang-format says
	@scripts/install-deps lint
	@clang-format -i $(C_FILES)

format-check: ## fail where `make format` would change something
	@scripts/install-deps lint
	@clang-format --dry-run --Werror $(C_FILES)

docs: ## write docs/reference from the tables in the code
	@scripts/install-deps build
	@$(MAKE) $(B)/reference
	@mkdir -p docs/reference
	@$(B)/reference docs/reference

fuzz: ## libFuzzer on one target: NAME=ticket SECONDS=60
	@scripts/install-deps test
	@$(MAKE) VARIANT=fuzz build/fuzz/fuzzer/$(NAME)
	@mkdir -p build/fuzz/found/$(NAME)
	build/fuzz/fuzzer/$(NAME) -max_total_time=$(or $(SECONDS),60) -artifact_prefix=build/fuzz/found/$(NAME)- \
	    build/fuzz/found/$(NAME) tests/fuzz/corpus/$(NAME)

screenshot: ## docs/images/waiting-page.png from the running demo
	@scripts/install-deps screenshot
	@$(MAKE) module
	@$(PYTHON) scripts/screenshot

install-deps: ## every Debian package any target needs
	@scripts/install-deps all

clean: ## remove build/
	rm -rf build

# --- pieces: `make VARIANT=clang unit` and the like ----------------------------------------------------------------

all: module unit
# Who has the module has the command for it.
module: $(MODULE) $(CLI)
cli: $(CLI)
unit: $(UNIT)
replays: $(REPLAYS)
simulator: $(SIM)
benches: $(BENCHES)

$(CORE_LIB): $(CORE_OBJS)
	@rm -f $@
	$(call say,ar,$@)
	$(Q)ar rcs $@ $^

# The version script keeps every name but the three that nginx asks for inside: nginx loads all modules into one
# name space, and ours have plain names.
$(MODULE): $(MODULE_OBJS) scripts/module.map
	$(call say,link,$@)
	$(Q)$(CC) -shared $(LDFLAGS) -Wl,--version-script=scripts/module.map -o $@ $(MODULE_OBJS) $(MODULE_LIBS)

$(B)/src/nginx/%.o: src/nginx/%.c Makefile $(NGX)/.configured
	@mkdir -p $(@D)
	$(call say,$(CC),$(patsubst $(B)/%,%,$@))
	$(Q)$(CC) $(CFLAGS) $(NGX_CFLAGS) $(DEPFLAGS) -c $< -o $@

$(B)/ngx_http_weir_module_modules.o: $(NGX)/.configured Makefile
	@mkdir -p $(@D)
	$(call say,$(CC),$(patsubst $(B)/%,%,$@))
	$(Q)$(CC) $(CFLAGS) $(NGX_CFLAGS) -w -fvisibility=default -c $(MODULE_LIST) -o $@

$(B)/page_%.o: $(B)/page_%.c Makefile
	$(call say,$(CC),$<)
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

$(B)/page_%.c: web/%/index.html scripts/embed
	@mkdir -p $(@D)
	$(call say,embed,$<)
	$(Q)scripts/embed weir_page_$* $< > $@

$(B)/script_%.o: $(B)/script_%.c Makefile
	$(call say,$(CC),$<)
	$(Q)$(CC) $(CFLAGS) -c $< -o $@

$(B)/script_%.c: $(B)/lua/%.lua scripts/embed
	$(call say,embed,$<)
	$(Q)scripts/embed script_$* $< > $@

$(B)/lua/%.lua: lua/%.lua $(wildcard lua/lib/*.lua) scripts/compose-lua
	@mkdir -p $(@D)
	$(Q)scripts/compose-lua $< > $@

$(B)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,$(CC),$(patsubst $(B)/%,%,$@))
	$(Q)$(CC) $(CFLAGS) $(DEPFLAGS) -c $< -o $@

$(NGX)/.configured: config scripts/configure-nginx
	$(call say,nginx,$(NGX))
	$(Q)scripts/configure-nginx $(NGX)

$(CLI): $(CLI_OBJS) $(CORE_LIB)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(CLI_LIBS)

# What of the command is pure is tested like the core.
$(B)/unit/test_plan: $(addprefix $(B)/src/cli/,plan.o number.o)

$(B)/unit/%: $(B)/tests/unit/%.o $(UNIT_HELP:%.c=$(B)/%.o) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(CORE_LIB) $(UNIT_LIBS)

# The journal is fuzzed on the same disk in memory that its tests use.
$(B)/replay/journal $(B)/fuzzer/journal: $(B)/tests/unit/shelf.o

$(B)/replay/%: $(B)/tests/fuzz/fuzz_%.o $(B)/tests/fuzz/replay.o $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(FUZZ_LIBS)

$(B)/fuzzer/%: $(B)/tests/fuzz/fuzz_%.o $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(FUZZ_LIBS)

$(SIM): $(SIM_OBJS) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcrypto -lpthread

$(B)/bench/%: $(B)/bench/%.o $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcrypto -ljansson -lpthread -lm

$(B)/reference: $(REFERENCE:%.c=$(B)/%.o) $(CORE_LIB)
	@mkdir -p $(@D)
	$(call say,link,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcrypto -lpthread

.SECONDARY:
-include $(shell find $(B) -name '*.d' 2>/dev/null)
