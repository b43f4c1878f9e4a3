# svmstream: `make help` lists what there is.
ifeq ($(origin CC),default)
CC = gcc
endif
BUILD   ?= build
DATA    ?= ../shared/data
PREFIX  ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 30
FUZZ_LONG ?= 257
JOBS    ?= $(shell nproc 2>/dev/null || echo 2)
# Debian's python3-zmq serves Debian's interpreter; another one that comes first in PATH does not see it.
PYTHON  ?= /usr/bin/python3

VERSION := $(shell sed -n 's/^.define SVS_VERSION "\(.*\)"/\1/p' include/svmstream/svmstream.h)
SONAME   = libsvmstream.so.0

# Every Debian package that building, demo, test, fuzz, metrics and format need.
PACKAGES = gcc libc6-dev make pkg-config libzmq3-dev libmsgpack-dev libopenblas-dev liblapacke-dev libcyaml-dev \
           libjansson-dev zlib1g-dev libxxhash-dev libcmocka-dev clang libclang-rt-14-dev clang-format python3-zmq python3-msgpack \
           python3-numpy liblinear-tools libsvm-tools libglpk-dev universal-ctags gnuplot-nox libmosquitto-dev mosquitto \
           mosquitto-clients openssl libsvm-dev afl++ gcovr
# What `make bench` needs besides: the peers it compares with.
BENCH_PACKAGES = g++ libdlib-dev liblinear-dev python3-sklearn

CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wpedantic -Werror
CPPFLAGS_ALL = -Iinclude -Isrc -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL   = -std=c11 $(WARN) -fPIC -fvisibility=hidden -fno-math-errno $(CFLAGS)
LDLIBS_LIB   = -lmsgpackc -ljansson -lz -lxxhash -llapacke -lopenblas -lm
LDLIBS_ALL   = -lzmq -lcyaml $(LDLIBS_LIB) -lpthread

LIB_SRC := $(wildcard $(addprefix src/,$(addsuffix /*.c,base linalg data learner solver novelty wire store)))
APP_SRC := $(wildcard src/engine/*.c src/cli/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
APP_OBJ := $(APP_SRC:%.c=$(BUILD)/obj/%.o)
MQTT_OBJ := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard adapters/mqtt/*.c))
LIB_A    = $(BUILD)/libsvmstream.a
LIB_SO   = $(BUILD)/libsvmstream.so.$(VERSION)

# One short line for each step; `make V=1` shows the commands.
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)

# A second `make` inside a recipe builds with all cores unless the caller chose a number.
SUBMAKE  = +@$(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j$(JOBS))

all: $(BUILD)/svmstream $(BUILD)/svmstream-mqtt ## the programs: build/svmstream, build/svmstream-mqtt (CC=clang works too)

# The kernels are one source compiled three times; each may fuse multiply and add.
ifeq ($(shell uname -m),x86_64)
$(BUILD)/obj/src/linalg/pass_avx512.o: ISA = -O3 -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512 -ffp-contract=fast
$(BUILD)/obj/src/linalg/pass_avx2.o:   ISA = -O3 -mavx2 -mfma -ffp-contract=fast
endif
$(BUILD)/obj/src/linalg/pass_generic.o: ISA = -O3

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(ISA) -MMD -MP -c $< -o $@

$(LIB_A): $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(LIB_SO): $(LIB_OBJ)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) $^ $(LDLIBS_LIB) -o $@
	@ln -sf $(@F) $(BUILD)/$(SONAME)
	@ln -sf $(SONAME) $(BUILD)/libsvmstream.so

$(BUILD)/svmstream: $(APP_OBJ) $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ $(LDLIBS_ALL) -o $@

# The adapter speaks the wire format only: of the program it has nothing but the reading of key files.
$(BUILD)/svmstream-mqtt: $(MQTT_OBJ) $(BUILD)/obj/src/engine/keys.o $(LIB_A)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ -lmosquitto -lzmq -lmsgpackc -ljansson -lm -o $@

libs: $(LIB_A) $(LIB_SO) ## libsvmstream.a and libsvmstream.so

# ---- packages

deps: ## install missing Debian packages (never asks; nothing to do = nothing done)
	@tests/deps $(PACKAGES)

deps-bench: deps
	@tests/deps $(BENCH_PACKAGES)

# ---- the main job on real data

demo: deps ## build, then run + feed + watch on real weather data; under a minute
	$(SUBMAKE) all
	@SVMSTREAM=$(BUILD)/svmstream examples/pipeline.sh

# ---- examples: public headers only

EXAMPLES := $(patsubst examples/%.c,$(BUILD)/examples/%,$(wildcard examples/*.c))

examples: $(EXAMPLES) ## the C programs of examples/

$(BUILD)/examples/%: examples/%.c $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) -Iinclude -std=c11 $(WARN) $(CFLAGS) $(LDFLAGS) -MMD -MP -MF $@.d $< $(LIB_A) -lzmq $(LDLIBS_LIB) -o $@

# ---- tests: one cmocka program a file, linked with everything but main()

TEST_SRC := $(wildcard $(addprefix tests/,unit/test_*.c property/test_*.c wire/test_*.c fault/test_*.c))
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
TEST_OBJ  = $(filter-out $(BUILD)/obj/src/cli/main.o,$(APP_OBJ))
TEST_RUN  = $(wildcard tests/structure/test_*.sh tests/cli/test_*) $(FAULT_RUN)
# What runs nothing that a sanitizer sees: in the plain build only.
PLAIN_RUN = $(wildcard tests/structure/test_*.sh) tests/fault/test_simulator
# Programs that make the n-th allocation fail take the place of the gate.
WRAP      = $(if $(findstring _nomem,$@),-Wl$(comma)--wrap=svi_alloc$(comma)--wrap=svi_realloc)
comma    := ,
# A linear program and a one-class SVM are solved by peers.
PEER      = $(if $(findstring test_lpsvm,$@),-lglpk)$(if $(findstring test_fosvm,$@),-lsvm)

$(BUILD)/tests/%: tests/%.c $(TEST_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(LDFLAGS) -MMD -MP -MF $@.d $< $(TEST_OBJ) $(LIB_A) $(WRAP) $(LDLIBS_ALL) $(PEER) -lcmocka -o $@

tests: $(TEST_BIN) fault-programs

# ---- power cuts, failing calls, kills

FAULT       = $(BUILD)/fault
FAULT_RUN   = $(filter-out %.c,$(wildcard tests/fault/test_*))
FAULT_WRONG = no-check no-sync tmp-unsynced deaf-sync
FAULT_WRONG_RUN = no-sync no-sync-beside tmp-unsynced deaf-sync
FAULT_BIN   = $(FAULT)/powercut.so $(addprefix $(FAULT)/,store_writer store_check) \
              $(foreach w,$(FAULT_WRONG),$(addprefix $(FAULT)/$(w)/,store_writer store_check)) $(FAULT_WRONG_RUN:%=$(FAULT)/%/svmstream)
FAULT_LIBS  = -Wl,--as-needed $(LDLIBS_LIB) -lpthread

# Never sanitized: it has to come before everything else in the process.
$(FAULT)/powercut.so: $(wildcard tests/fault/*.h) $(addprefix tests/fault/,powercut.c plan.c writeback.c undo.c)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests -std=c11 $(WARN) -O2 -g -fPIC -fvisibility=hidden -shared $(filter %.c,$^) -o $@ -lpthread

$(FAULT)/store_%: tests/fault/store_%.c tests/fault/store_common.c tests/fault/store_common.h $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(LDFLAGS) $(filter %.c,$^) $(LIB_A) $(FAULT_LIBS) -o $@

# Stores with one error each, from patched copies: the tests must find it.
$(FAULT)/%/sabotaged: tests/fault/sabotage $(wildcard src/store/*.[ch])
	$(call say,GEN,$@)tests/fault/sabotage $* $(FAULT)/$* && touch $@

define wrong_store
$(FAULT)/$(1)/store_%: tests/fault/store_%.c tests/fault/store_common.c tests/fault/store_common.h $(FAULT)/$(1)/sabotaged $(LIB_A)
	$$(call say,LD,$$@)$$(CC) $$(CPPFLAGS_ALL) -Itests $$(CFLAGS_ALL) $$(LDFLAGS) $$(filter %.c,$$^) $(FAULT)/$(1)/store/*.c $$(LIB_A) $$(FAULT_LIBS) -o $$@

$(FAULT)/$(1)/svmstream: $(FAULT)/$(1)/sabotaged $(APP_OBJ) $(LIB_A)
	$$(call say,LD,$$@)$$(CC) $$(CPPFLAGS_ALL) $$(CFLAGS_ALL) $$(LDFLAGS) $$(APP_OBJ) $(FAULT)/$(1)/store/*.c $$(LIB_A) $$(LDLIBS_ALL) -o $$@
endef
$(foreach w,$(sort $(FAULT_WRONG) $(FAULT_WRONG_RUN)),$(eval $(call wrong_store,$(w))))

fault-programs: $(FAULT_BIN)

test-run: all libs tests examples
	@tests/run --build $(BUILD) --data $(DATA) --examples examples $(RUN_FLAGS) $(TEST_BIN) $(if $(RUN_FLAGS),$(filter-out $(PLAIN_RUN),$(TEST_RUN)),$(TEST_RUN))

test: deps ## build and run all tests (some 4 minutes on 2 cores)
	$(SUBMAKE) test-run

# -g1: file and line for the reports, in less time
SANITIZE = -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all

asan: deps ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan
	$(SUBMAKE) BUILD=build-asan CC=gcc CFLAGS="$(SANITIZE) -fsanitize=address,undefined" RUN_FLAGS=--sanitized test-run

tsan: deps ## the tests under ThreadSanitizer, in build-tsan
	$(SUBMAKE) BUILD=build-tsan CC=gcc CFLAGS="$(SANITIZE) -fsanitize=thread" RUN_FLAGS="--sanitized --races" test-run

FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/%: tests/fuzz/%.c $(TEST_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -fsanitize=fuzzer -MMD -MP -MF $@.d $< $(TEST_OBJ) $(LIB_A) $(LDLIBS_ALL) -o $@

fuzz-targets: $(FUZZ_BIN)

fuzz: deps ## libFuzzer, FUZZ_SECONDS (30) for each target
	$(SUBMAKE) BUILD=build-fuzz CC=clang CFLAGS="$(SANITIZE) -fsanitize=address,undefined,fuzzer-no-link" fuzz-targets
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

fault: deps ## the long run: 1,000 kills, 10,000 power cuts of the store and 1,000 of the program, an hour of fuzzing
	$(SUBMAKE) all tests examples
	@FAULT_KILLS=1000 FAULT_CUTS=10000 FAULT_FLIPS=3 FAULT_LONG=1 tests/run --build $(BUILD) --data $(DATA) --examples examples --timeout 3600 $(FAULT_RUN) $(BUILD)/tests/fault/test_flips
	+@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(FUZZ_LONG)

fuzz-afl: deps ## the same targets with AFL++, FUZZ_SECONDS for each
	$(SUBMAKE) BUILD=build-afl CC="env AFL_USE_ASAN=1 afl-clang-fast" CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link" fuzz-targets
	@touch build-afl/afl
	@tests/fuzz/run build-afl $(FUZZ_SECONDS)

coverage: deps ## branches that the tests take: at least 90 % of wire and store
	@DATA=$(DATA) tests/coverage

# ---- measurements

BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/bench_*.c))

$(BUILD)/bench/%: tests/bench/%.c $(TEST_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -MMD -MP -MF $@.d $< $(TEST_OBJ) $(LIB_A) $(LDLIBS_ALL) $(PEER) -o $@

# These measure beside a peer in the same process.
$(BUILD)/bench/bench_solvers $(BUILD)/bench/bench_papers: PEER = -llinear -lsvm
$(BUILD)/bench/bench_novelty $(BUILD)/bench/bench_novelty_stream: PEER = -lsvm

# The peer is C++, so this one program is linked with it.
$(BUILD)/bench/bench_learner: tests/bench/bench_learner.c tests/bench/dlib_rls.cc $(LIB_A)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -MMD -MP -MF $@.d -c $< -o $@.o
	$(call say,LD,$@)g++ -O3 -DDLIB_USE_BLAS -Itests tests/bench/dlib_rls.cc $@.o $(LIB_A) $(LDLIBS_ALL) -o $@

bench-run: all $(BENCH_BIN)
	@tests/bench/run --build $(BUILD) --data $(DATA) $(ONLY)

bench: deps-bench ## every measurement, beside its peer (ONLY=learner: one)
	$(SUBMAKE) bench-run

bench-novelty: deps-bench ## one-class models and novelty in the stream beside five peers; under six minutes
	$(SUBMAKE) $(BUILD)/bench/bench_novelty $(BUILD)/bench/bench_novelty_stream
	@tests/bench/novelty --build $(BUILD) --data $(DATA)

PLOT = set terminal svg; set output "$(BUILD)/papers/time_against_n.svg"; set logscale xy; set xlabel "samples"; set ylabel "seconds"; \
       plot "$(BUILD)/papers/time_against_n.dat" with linespoints title "alm, L2, gap 1e-3"

bench-papers: deps-bench ## the papers' comparisons with our solvers, as tables and a plot in $(BUILD)/papers
	$(SUBMAKE) $(BUILD)/bench/bench_papers
	@mkdir -p $(BUILD)/papers
	@SVMSTREAM_DATA=$(DATA) OPENBLAS_NUM_THREADS=1 $(BUILD)/bench/bench_papers $(BUILD)/papers | tee $(BUILD)/papers/tables.txt
	@gnuplot -e '$(PLOT)' 2>/dev/null && echo "plot $(BUILD)/papers/time_against_n.svg"

metrics: ## figures of the source: function lengths, nesting, layers, exports
	$(SUBMAKE) all libs
	@$(PYTHON) tests/metrics $(BUILD)

format: ## clang-format over all C sources
	clang-format -i $(shell git ls-files '*.c' '*.h')

# ---- installation

$(BUILD)/svmstream.1: $(BUILD)/svmstream
	$(call say,GEN,$@)$< help-man > $@.tmp && mv $@.tmp $@

$(BUILD)/svmstream.bash: $(BUILD)/svmstream
	$(call say,GEN,$@)$< help-completion > $@.tmp && mv $@.tmp $@

$(BUILD)/svmstream.pc: Makefile include/svmstream/svmstream.h
	@mkdir -p $(@D)
	@printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' '' 'Name: svmstream' \
	  'Description: exact sliding-window linear SVM' 'Version: $(VERSION)' 'Cflags: -I$${includedir}' \
	  'Libs: -L$${libdir} -lsvmstream' 'Libs.private: $(LDLIBS_LIB)' > $@

ROOT = $(DESTDIR)$(PREFIX)
COMPLETIONS = share/bash-completion/completions

install: all libs $(BUILD)/svmstream.1 $(BUILD)/svmstream.bash ## under PREFIX (/usr/local), staged in DESTDIR
	@rm -f $(BUILD)/svmstream.pc
	@$(MAKE) --no-print-directory -s $(BUILD)/svmstream.pc
	install -d $(ROOT)/bin $(ROOT)/lib/pkgconfig $(ROOT)/include/svmstream $(ROOT)/share/man/man1 $(ROOT)/$(COMPLETIONS)
	install -m 755 $(BUILD)/svmstream $(BUILD)/svmstream-mqtt $(ROOT)/bin/
	install -m 644 $(LIB_A) $(LIB_SO) $(ROOT)/lib/
	ln -sf $(notdir $(LIB_SO)) $(ROOT)/lib/$(SONAME)
	ln -sf $(SONAME) $(ROOT)/lib/libsvmstream.so
	install -m 644 include/svmstream/*.h $(ROOT)/include/svmstream/
	install -m 644 $(BUILD)/svmstream.pc $(ROOT)/lib/pkgconfig/
	install -m 644 $(BUILD)/svmstream.1 $(ROOT)/share/man/man1/
	install -m 644 $(BUILD)/svmstream.bash $(ROOT)/$(COMPLETIONS)/svmstream

uninstall: ## takes away what install put there
	rm -f $(ROOT)/bin/svmstream $(ROOT)/bin/svmstream-mqtt $(ROOT)/lib/libsvmstream.a $(ROOT)/lib/libsvmstream.so* $(ROOT)/lib/pkgconfig/svmstream.pc
	rm -f $(ROOT)/share/man/man1/svmstream.1 $(ROOT)/$(COMPLETIONS)/svmstream
	rm -rf $(ROOT)/include/svmstream

clean: ## removes all build folders
	rm -rf $(BUILD) build-asan build-tsan build-fuzz build-clang build-afl build-coverage

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1\t\2/p' Makefile | expand -t 20

.PHONY: all libs deps deps-bench demo examples tests fault-programs fault fuzz-afl coverage test-run test asan tsan fuzz-targets fuzz bench-run bench bench-novelty bench-papers metrics format \
        install uninstall clean help
.SECONDARY:
-include $(LIB_OBJ:.o=.d) $(APP_OBJ:.o=.d) $(MQTT_OBJ:.o=.d) $(wildcard $(BUILD)/tests/*/*.d $(BUILD)/examples/*.d $(BUILD)/bench/*.d $(BUILD)/fuzz/*.d)
