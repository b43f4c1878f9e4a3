# The rules of the tests, of the sanitizers and of fuzzing; included by the Makefile.

FUZZ_SECONDS ?= 30

# ---- tests: one cmocka program a file, linked with everything but main()

# LEAVE_OUT: sources that a run does without.
TEST_SRC := $(filter-out $(LEAVE_OUT),$(wildcard $(addprefix tests/,unit/test_*.c property/test_*.c wire/test_*.c fault/test_*.c)))
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
TEST_OBJ  = $(filter-out $(BUILD)/obj/src/cli/main.o,$(APP_OBJ))
TEST_RUN  = $(wildcard tests/structure/test_* tests/cli/test_*) $(FAULT_RUN)
# What runs nothing that a sanitizer sees, or has no room for one: in the plain build only.
PLAIN_RUN = $(wildcard tests/structure/test_*) tests/fault/test_simulator tests/cli/test_address_space tests/cli/test_memory
# Programs that make the n-th allocation fail take the place of the gate.
WRAP      = $(if $(findstring _nomem,$@),-Wl$(comma)--wrap=svi_alloc$(comma)--wrap=svi_realloc)
comma    := ,
# A linear program and a one-class SVM are solved by peers; JSON is read by one, jansson, in many tests.
PEER      = $(if $(findstring test_lpsvm,$@),-lglpk)$(if $(findstring test_fosvm,$@),-lsvm)

$(BUILD)/tests/%: tests/%.c $(TEST_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(LDFLAGS) -MMD -MP -MF $@.d $< $(TEST_OBJ) $(LIB_A) $(WRAP) $(LDLIBS_ALL) $(PEER) -lcmocka -ljansson -o $@

tests: $(TEST_BIN) fault-programs

test-run: all libs tests examples
	@tests/run --build $(BUILD) --data $(DATA) --examples examples $(RUN_FLAGS) $(TEST_BIN) $(if $(RUN_FLAGS),$(filter-out $(PLAIN_RUN),$(TEST_RUN)),$(TEST_RUN))

test: deps ## build and run all tests (some 4 minutes on 2 cores)
	$(SUBMAKE) test-run

# -g1: file and line for the reports, in less time
SANITIZE = -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all

asan: deps ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan
	$(SUBMAKE) BUILD=build-asan CC=gcc CFLAGS="$(SANITIZE) -fsanitize=address,undefined" RUN_FLAGS=--sanitized test-run

# Properties of the learner and the solvers are those of one thread: there is no race to be found.
tsan: deps ## the tests under ThreadSanitizer but for the property tests, in build-tsan
	$(SUBMAKE) BUILD=build-tsan LEAVE_OUT="tests/property/%" CC=gcc CFLAGS="$(SANITIZE) -fsanitize=thread" RUN_FLAGS="--sanitized --races" test-run

FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/%: tests/fuzz/%.c $(TEST_OBJ) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -fsanitize=fuzzer -MMD -MP -MF $@.d $< $(TEST_OBJ) $(LIB_A) $(LDLIBS_ALL) -o $@

fuzz-targets: $(FUZZ_BIN)

fuzz: deps ## libFuzzer, FUZZ_SECONDS (30) for each target
	$(SUBMAKE) BUILD=build-fuzz CC=clang CFLAGS="$(SANITIZE) -fsanitize=address,undefined,fuzzer-no-link" fuzz-targets
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

fuzz-afl: deps ## the same targets with AFL++, FUZZ_SECONDS for each
	$(SUBMAKE) BUILD=build-afl CC="env AFL_USE_ASAN=1 afl-clang-fast" CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link" fuzz-targets
	@touch build-afl/afl
	@tests/fuzz/run build-afl $(FUZZ_SECONDS)

coverage: deps ## branches that the tests take: at least 90 % of wire and store
	@DATA=$(DATA) tests/coverage

metrics: ## figures of the source: function lengths, nesting, layers, exports
	$(SUBMAKE) all libs
	@$(PYTHON) tests/metrics $(BUILD)

.PHONY: tests test-run test asan tsan fuzz-targets fuzz fuzz-afl coverage metrics
