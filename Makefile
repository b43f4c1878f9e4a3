# svmstream: `make help` lists what there is.
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD   ?= build
DATA    ?= data
PREFIX  ?= /usr/local
DESTDIR ?=
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
# Debian's python3-zmq serves Debian's interpreter; another one that comes first in PATH does not see it.
PYTHON  ?= /usr/bin/python3

VERSION := $(shell sed -n 's/^.define SVS_VERSION "\(.*\)"/\1/p' include/svmstream/svmstream.h)
SONAME   = libsvmstream.so.0

# Every Debian package that building, demo, test, cost, fuzz, metrics and format need.
PACKAGES = gcc libc6-dev make pkg-config libzmq3-dev libmsgpack-dev libopenblas-dev libyaml-dev \
           libjansson-dev zlib1g-dev libxxhash-dev liblmdb-dev libcmocka-dev clang lld libclang-rt-14-dev clang-format python3-zmq python3-msgpack \
           python3-numpy liblinear-tools libsvm-tools libglpk-dev universal-ctags gnuplot-nox libmosquitto-dev mosquitto \
           mosquitto-clients openssl libsvm-dev afl++ gcovr man-db libfaketime valgrind \
           libmicrohttpd-dev libgnutls28-dev libsqlite3-dev libjs-dygraphs curl jq prometheus chromium \
           python3-dev python3-cffi python3-build python3-venv python3-pytest python3-yaml mypy python3-pandas python3-sklearn \
           redis-server libhiredis-dev librdkafka-dev stunnel4
# What `make bench` needs besides: the peers it compares with.
BENCH_PACKAGES = g++ libdlib-dev liblinear-dev wrk

CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wpedantic -Werror
CPPFLAGS_ALL = -Iinclude -Isrc -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL   = -std=c11 $(WARN) -fPIC -fvisibility=hidden -fno-math-errno -ffp-contract=off $(CFLAGS)
# OpenBLAS first: at every start it looks up 14,000 symbols of its own, in the libraries in this order.
LDLIBS_LIB   = -lopenblas -lmsgpackc -lz -lxxhash -lyaml -llmdb -lpthread -lm
LDLIBS_ALL   = $(LDLIBS_LIB) -lzmq
LDLIBS_HTTP  = -lmicrohttpd -lgnutls -lsqlite3 -ljansson -lzmq -lmsgpackc -lz -lm -lpthread

# Of the reports the library has those of figures: the others read journals and draw.
LIB_REPORT := $(patsubst %,src/report/%.c,quality_report class_report)
LIB_SRC := $(wildcard $(addprefix src/,$(addsuffix /*.c,base linalg trees data features learner solver novelty quality wire formats store config alerts bank refit merge engine fleet library))) $(wildcard src/client/outbox*.c) $(LIB_REPORT)
APP_SRC := $(filter-out src/client/outbox% $(LIB_REPORT),$(wildcard $(addprefix src/,$(addsuffix /*.c,state net client server report cli))))
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
APP_OBJ := $(APP_SRC:%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/cli/pages.o
MQTT_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard adapters/mqtt/*.c))
HTTP_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard adapters/http/*.c)) $(BUILD)/obj/http/page_data.o
REDIS_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard adapters/redis/*.c))
KAFKA_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard adapters/kafka/*.c))
# Adapters whose client library is optional: without it they are left out, and `make all` says so.
present   = $(shell pkg-config --exists $(1) 2>/dev/null && echo $(2))
OPTIONAL := $(call present,hiredis,svmstream-redis) $(call present,rdkafka,svmstream-kafka)
ABSENT   := $(if $(filter svmstream-redis,$(OPTIONAL)),,svmstream-redis (libhiredis-dev)) $(if $(filter svmstream-kafka,$(OPTIONAL)),,svmstream-kafka (librdkafka-dev))
# The adapters share their command line and log; of the program they have the client's sockets and the reading of key files.
ADAPTER_OBJ := $(patsubst %,$(BUILD)/obj/adapters/common/adapter_%.o,options log) $(patsubst %,$(BUILD)/obj/src/%.o,net/keys net/guarded_file net/transport client/link client/subscription)
# Adapters of a log run the program for each partition, and read files; their libraries may be absent.
LOG_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out %/adapter_options.c %/adapter_log.c,$(wildcard adapters/common/*.c)))
LIB_A    = $(BUILD)/libsvmstream.a
# Examples and tests need not be linked again because a commit has another version.
LIB_FIXED = $(filter-out $(VERSION_OBJ),$(LIB_OBJ)) | $(LIB_A)
LIB_SO   = $(BUILD)/libsvmstream.so.$(VERSION)

# Each step has a short line. At a terminal they share one line that counts; with QUIET=1 every hundredth step has a line.
# A dry run, made before the first step, counts how many there will be. `make V=1` shows the commands.
DRY_RUN  = $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS))))
STEP    :=
STEPS    = $(eval STEPS := $(shell $(MAKE) -n COUNT=1 $(MAKEOVERRIDES) $(MAKECMDGOALS) 2>/dev/null | grep -c '^: a step;'))$(STEPS)
say_each = printf '  %-5s %s\n' $(1) $(2);
say_few  = case $(words $(STEP)) in *00|$(STEPS)) printf '  %d of %d steps\n' $(words $(STEP)) $(STEPS);; esac;
say_one  = printf '\033[K[%3d/%d] %-5s %s\$(if $(filter $(STEPS),$(words $(STEP))),n,r)' $(words $(STEP)) $(STEPS) $(1) $(2);
say_how  = $(if $(DRY_RUN),each,$(if $(QUIET),few,$(if $(MAKE_TERMOUT),one,each)))
say = $(if $(V),,@$(eval STEP += x)$(if $(COUNT),: a step;,$(call say_$(say_how),$(1),$(2))))

# A second `make` inside a recipe builds with all cores unless the caller chose a number.
SUBMAKE  = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

all: $(BUILD)/svmstream $(BUILD)/svmstream-mqtt $(BUILD)/svmstream-http $(OPTIONAL:%=$(BUILD)/%) ## build the programs: build/svmstream and the adapters, build/svmstream-mqtt, -http, ... (CC=clang works too)
	@$(if $(strip $(ABSENT)),echo '  left out for want of a library: $(ABSENT)',:)

# The kernels are one source compiled three times; each may fuse multiply and add.
ifeq ($(shell uname -m),x86_64)
$(BUILD)/obj/src/linalg/kernels_avx512.o: ISA = -O3 -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512 -ffp-contract=fast
$(BUILD)/obj/src/linalg/kernels_avx2.o:   ISA = -O3 -mavx2 -mfma -ffp-contract=fast
$(BUILD)/obj/src/linalg/quads_avx2.o:     ISA = -O3 -mavx2
$(BUILD)/obj/src/trees/forest_masks_avx512.o: ISA = -O3 -mavx512f -mavx512bw -mavx512vl -mavx512dq
$(BUILD)/obj/src/trees/boost_loops_avx512.o: ISA = -O3 -mavx512f -mavx512dq -mavx512vl -mprefer-vector-width=512
$(BUILD)/obj/src/trees/boost_loops_avx2.o: ISA = -O3 -mavx2 -Wno-psabi
endif
$(BUILD)/obj/src/trees/boost_loops_generic.o: ISA = -O3 -Wno-psabi
$(BUILD)/obj/src/linalg/kernels_generic.o: ISA = -O3
$(BUILD)/obj/src/linalg/quads_generic.o:  ISA = -O3 -Wno-psabi
# Loops along the columns of a row.
$(addprefix $(BUILD)/obj/src/,$(addprefix alerts/,forecast.o sensors.o deviations.o block_tails.o) \
    $(addprefix novelty/,similarity.o range.o) quality/drift.o wire/packed.o \
    bank/fourier_ridge.o): ISA = -O3

# What --version prints: the release, or the commit after it. One object has it: the others are the same at each commit.
TREE_VERSION := $(or $(shell src/base/tree_version $(VERSION) 2>/dev/null),$(VERSION))
VERSION_OBJ   = $(BUILD)/obj/src/base/version.o
$(VERSION_OBJ): ISA = -DSVI_TREE_VERSION='"$(TREE_VERSION)"'
$(VERSION_OBJ): $(BUILD)/obj/version
# Compared here and not in the recipe: the dry run that counts the steps would take each object that needs it for old.
ifneq ($(shell cat $(BUILD)/obj/version 2>/dev/null),$(TREE_VERSION))
$(BUILD)/obj/version: always
endif
$(BUILD)/obj/version:
	@mkdir -p $(@D)
	@echo '$(TREE_VERSION)' > $@

version: ## print the version of this tree
	@echo '$(TREE_VERSION)'

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(ISA) -MMD -MP -c $< -o $@

# The pages of the manual: those by task in this order, then the reference by name; each is compiled into the program and makes a
# man page of section 7.
TASKS  := $(patsubst %,src/manual/%.md,log sensor fleet producer operate)
PAGES  := $(TASKS) $(filter-out $(TASKS),$(sort $(wildcard src/manual/*.md)))
TOPICS := $(PAGES:src/manual/%.md=%)
MAN7    = $(TOPICS:%=$(BUILD)/man/svmstream-%.7)

$(BUILD)/obj/cli/pages.c: src/manual/embed $(PAGES)
	@mkdir -p $(@D)
	$(call say,GEN,$@)src/manual/embed $(TASKS) -- $(filter-out $(TASKS),$(PAGES)) > $@

$(BUILD)/obj/cli/pages.o: $(BUILD)/obj/cli/pages.c
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

# The page of svmstream-http is one document: its own styles and scripts in the order of their names, after those of dygraphs.
DYGRAPHS ?= /usr/share/javascript/dygraphs
PAGE_PARTS = $(foreach kind,css js,$(DYGRAPHS)/dygraph.min.$(kind) $(sort $(wildcard adapters/http/page/*.$(kind))))

$(BUILD)/obj/http/page_data.c: adapters/http/page/embed adapters/http/page/index.html $(PAGE_PARTS)
	@mkdir -p $(@D)
	$(call say,GEN,$@)adapters/http/page/embed adapters/http/page/index.html $(PAGE_PARTS) > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/http/page_data.o: $(BUILD)/obj/http/page_data.c
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) -Iadapters/http $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/man/svmstream-%.7: $(BUILD)/svmstream
	@mkdir -p $(@D)
	$(call say,GEN,$@)$< help-man $* > $@.tmp && mv $@.tmp $@

$(LIB_A): $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(LIB_SO): $(LIB_OBJ)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) $^ $(LDLIBS_LIB) -o $@
	@ln -sf $(@F) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $(BUILD)/libsvmstream.so

$(BUILD)/svmstream: $(APP_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ $(LDLIBS_ALL) -o $@

# The adapters speak the wire format only.
$(BUILD)/svmstream-mqtt: $(MQTT_OBJ) $(ADAPTER_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ -lmosquitto -lzmq -lmsgpackc -lm -o $@

$(BUILD)/svmstream-http: $(HTTP_OBJ) $(ADAPTER_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ $(LDLIBS_HTTP) -o $@

# A log's adapter owns the processes of its partitions and reads files as `feed` does.
$(BUILD)/svmstream-kafka: $(KAFKA_OBJ) $(LOG_OBJ) $(ADAPTER_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ -lrdkafka $(LDLIBS_ALL) -o $@

$(BUILD)/svmstream-redis: $(REDIS_OBJ) $(LOG_OBJ) $(ADAPTER_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ -lhiredis $(LDLIBS_ALL) -o $@

libs: $(LIB_A) $(LIB_SO) ## build libsvmstream.a and libsvmstream.so

# ---- the Python package: setup.py builds it wherever it is built; here from the library of this folder

PY_FILES = $(wildcard adapters/python/*.* adapters/python/svmstream/*)
PY_BUILD = SVMSTREAM_LIBRARY="$(abspath $(LIB_A))" SVMSTREAM_INCLUDE="$(abspath include)" SVMSTREAM_LIBS="$(LDLIBS_LIB)" CC="$(CC)" \
           PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE= PYTHONPYCACHEPREFIX="$(abspath $(BUILD)/obj/python)"

$(BUILD)/python/built: $(LIB_A) $(wildcard include/svmstream/*.h) $(PY_FILES)
	@mkdir -p $(@D)
	@rm -f $(@D)/svmstream/*.py*
	$(call say,PY,$@)cd adapters/python && $(PY_BUILD) $(PYTHON) setup.py -q build --build-base $(abspath $(BUILD)/obj/python) --build-lib $(abspath $(@D))
	@touch $@

python: $(BUILD)/python/built ## build the Python package: import it with PYTHONPATH=build/python, or install it with pip install adapters/python

# What an sdist carries to build the library, and what that is linked with: for adapters/python/build_native.py.
library-files:
	@printf '%s\n' Makefile $(sort $(LIB_SRC) $(wildcard include/svmstream/*.h src/*/*.h))

library-flags:
	@echo '$(LDLIBS_LIB)'

# ---- packages

deps: ## install missing Debian packages; never asks
	@tests/deps $(PACKAGES)

deps-bench: deps
	@tests/deps $(BENCH_PACKAGES)

# ---- the main job on real data

demo: deps ## build, then two learners live on 50 years of real weather; under a minute
	$(SUBMAKE) $(if $(MAKE_TERMOUT),,QUIET=1) all
	@SVMSTREAM=$(BUILD)/svmstream examples/pipeline.sh

# ---- examples: public headers only

EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

examples: $(EXAMPLES) ## build the C programs of examples/

$(BUILD)/examples/%: examples/%.c $(LIB_FIXED)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -Iinclude -std=c11 $(WARN) $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d $< $(LIB_A) -lzmq $(LDLIBS_LIB) -o $@

# ---- tests, fault runs and measurements have their rules beside them; an sdist of the package for Python has none

RULES = tests/tests.mk tests/fault/fault.mk tests/bench/bench.mk
-include $(RULES)

format: ## format all C sources with clang-format
	clang-format -i $(shell git ls-files '*.c' '*.h')

# ---- installation

$(BUILD)/svmstream.1: $(BUILD)/svmstream
	$(call say,GEN,$@)$< help-man > $@.tmp && mv $@.tmp $@

$(BUILD)/svmstream.bash: $(BUILD)/svmstream
	$(call say,GEN,$@)$< help-completion > $@.tmp && mv $@.tmp $@

$(BUILD)/svmstream.pc: Makefile include/svmstream/svmstream.h
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: svmstream' \
	  'Description: learning, novelty and alerts on streams of feature vectors' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
	  'Libs: -L$${libdir} -lsvmstream' 'Libs.private: $(LDLIBS_LIB)' > $@

ROOT = $(DESTDIR)$(PREFIX)
COMPLETIONS = share/bash-completion/completions

install: all libs $(BUILD)/svmstream.1 $(MAN7) $(BUILD)/svmstream.bash ## install under PREFIX (/usr/local), staged in DESTDIR
	@rm -f $(BUILD)/svmstream.pc
	@$(MAKE) --no-print-directory -s $(BUILD)/svmstream.pc
	install -d $(ROOT)/bin $(ROOT)/lib/pkgconfig $(ROOT)/include/svmstream $(ROOT)/share/man/man1 $(ROOT)/share/man/man7 $(ROOT)/$(COMPLETIONS)
	install -m 755 $(BUILD)/svmstream $(BUILD)/svmstream-mqtt $(BUILD)/svmstream-http $(OPTIONAL:%=$(BUILD)/%) $(ROOT)/bin/
	install -m 644 $(LIB_A) $(LIB_SO) $(ROOT)/lib/
	ln -sf $(notdir $(LIB_SO)) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/libsvmstream.so
	install -m 644 include/svmstream/*.h $(ROOT)/include/svmstream/
	install -m 644 $(BUILD)/svmstream.pc $(ROOT)/lib/pkgconfig/
	install -m 644 $(BUILD)/svmstream.1 $(ROOT)/share/man/man1/
	install -m 644 $(MAN7) $(ROOT)/share/man/man7/
	install -m 644 $(BUILD)/svmstream.bash $(ROOT)/$(COMPLETIONS)/svmstream

uninstall: ## remove what install put there
	rm -f $(ROOT)/bin/svmstream $(ROOT)/bin/svmstream-mqtt $(ROOT)/bin/svmstream-http $(ROOT)/bin/svmstream-redis $(ROOT)/bin/svmstream-kafka $(ROOT)/lib/libsvmstream.a $(ROOT)/lib/libsvmstream.so* $(ROOT)/lib/pkgconfig/svmstream.pc
	rm -f $(ROOT)/share/man/man1/svmstream.1 $(ROOT)/share/man/man7/svmstream-*.7 $(ROOT)/$(COMPLETIONS)/svmstream
	rm -rf $(ROOT)/include/svmstream

DIST = svmstream-$(TREE_VERSION:.dirty=)
dist: ## pack the sources of the commit as build/svmstream-VERSION.tar.gz (needs git)
	@mkdir -p $(BUILD)
	@git archive --prefix=$(DIST)/ --add-virtual-file=$(DIST)/.version:$(TREE_VERSION:.dirty=) HEAD | gzip -n9 > $(BUILD)/$(DIST).tar.gz
	@echo $(BUILD)/$(DIST).tar.gz

clean: ## remove all build folders
	rm -rf $(BUILD) build-asan build-tsan build-clang build-afl build-coverage

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile $(RULES) | expand -t 20

.PHONY: always version all libs python library-files library-flags deps deps-bench demo examples format install uninstall dist clean help
.SECONDARY:
-include $(LIB_OBJ:.o=.d) $(APP_OBJ:.o=.d) $(MQTT_OBJ:.o=.d) $(HTTP_OBJ:.o=.d) $(LOG_OBJ:.o=.d) $(REDIS_OBJ:.o=.d) $(KAFKA_OBJ:.o=.d) $(ADAPTER_OBJ:.o=.d) $(wildcard $(BUILD)/*/*.d $(BUILD)/tests/*/*.d)
