# The rules of the tests, of the sanitizers and of fuzzing; included by the Makefile.

FUZZ_SECONDS ?= 30

# ---- tests: one cmocka program a file, linked with everything but main()

# LEAVE_OUT, RUN_OUT: sources and programs that a run does without.
TEST_SRC := $(filter-out $(LEAVE_OUT),$(wildcard $(addprefix tests/,unit/test_*.c property/test_*.c wire/test_*.c fault/test_*.c)))
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
# Of the program alone: measurements link nothing of the adapters, nor their libraries.
TEST_APP  = $(filter-out $(BUILD)/obj/src/cli/main.o,$(APP_OBJ))
TEST_OBJ  = $(TEST_APP) $(patsubst %,$(BUILD)/obj/adapters/mqtt/%.o,join joins log naming) \
           $(patsubst %,$(BUILD)/obj/adapters/http/%.o,body compress csv_rows exposition figures figures_table figures_write http_log principal sample_rows target tokens \
           history_point history_db history_store history_alerts history_answer history_worker) $(BUILD)/obj/adapters/common/adapter_log.o $(LOG_OBJ)
# An archive, of which each of the 190 programs takes what it needs: half the time of a link, and a tenth of the disk.
TEST_A    = $(BUILD)/tests.a
comma    := ,
# So does a faster linker, where there is one; not with --wrap, which for lld takes in calls from where the function itself is, too.
# One thread for each: `make` has work for the other cores, and lld's own take as much time as they save.
LLD      := $(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(comma)--threads=1)
TEST_LD   = $(if $(WRAP),,$(LLD))
TEST_RUN  = $(wildcard tests/structure/test_* tests/cli/test_*) $(FAULT_RUN) $(PYTHON_RUN)
PYTHON_RUN = $(wildcard adapters/python/tests/test_*.py)
# What runs nothing that a sanitizer sees, or has no room for one: in the plain build only. So are the sessions of the pages and of README,
# whose commands have tests of their own, the recordings, power cuts, which try what is on the disk, and what a browser, Node and Prometheus see.
# The package for Python is built by the plain build alone; what it calls has tests in C, and memcheck runs it (test_memcheck.py).
# Consumer groups of Kafka wait for timeouts that do not grow with a slower program.
PLAIN_RUN = $(wildcard tests/structure/test_*) $(PYTHON_RUN) $(addprefix tests/fault/test_,simulator powercut powercut_run redis_cluster) \
            $(addprefix tests/cli/test_,address_space memory pages readme recorded manual node kafka http_page screenshot http_metrics config.sh examples.sh install.sh)
# Programs that make the n-th allocation fail, or count them, take the place of the gate.
WRAP      = $(if $(findstring _nomem,$@)$(findstring key_memory,$@),-Wl$(comma)--wrap=svi_alloc$(comma)--wrap=svi_alloc_plain$(comma)--wrap=svi_realloc$(comma)--wrap=svi_realloc_plain)$(if $(findstring key_memory,$@),$(comma)--wrap=svi_free)
# A linear program and a one-class SVM are solved by peers; JSON is read by one, jansson, in many tests.
PEER      = $(if $(findstring test_lpsvm,$@),-lglpk)$(if $(findstring test_fosvm,$@),-lsvm)

$(TEST_A): $(TEST_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^
$(BUILD)/tests/%: tests/%.c $(TEST_A) $(LIB_FIXED)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(TEST_O) $(LDFLAGS) $(TEST_LD) -MMD -MP -MF $@.d $< $(TEST_A) $(LIB_A) $(WRAP) $(LDLIBS_ALL) $(PEER) -lcmocka -ljansson -lgnutls -lsqlite3 -o $@

# A cluster for tests of svmstream-kafka, where its library is.
MOCK_KAFKA = $(if $(filter svmstream-kafka,$(OPTIONAL)),$(BUILD)/tests/support/mock_kafka)
$(BUILD)/tests/support/mock_kafka: tests/support/mock_kafka.c
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CFLAGS_ALL) $< -lrdkafka -o $@

# Power cuts are of the plain build: no other one needs the stores that are wrong on purpose, only calls that fail.
tests: $(TEST_BIN) $(MOCK_KAFKA) $(if $(RUN_FLAGS),$(addprefix $(BUILD)/fault/,powercut.so store_writer store_check deaf-sync/store_writer deaf-sync/store_check),fault-programs)

# What a compiler has to say of every source; nothing is made of them.
WARN_SRC = $(wildcard $(addprefix tests/,unit/*.c property/*.c wire/*.c fault/*.c fuzz/*.c) examples/*.c)

$(BUILD)/warned/%: %.c
	$(call say,WARN,$<)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $<

warned: $(LIB_OBJ) $(APP_OBJ) $(MQTT_OBJ) $(HTTP_OBJ) $(LOG_OBJ) $(ADAPTER_OBJ) $(WARN_SRC:%.c=$(BUILD)/warned/%)

# Those of clang come with `make asan` as well, which builds all of it; here they take a minute.
warnings: deps ## check all sources with clang's warnings, without building
	$(SUBMAKE) BUILD=build-clang CC=clang CFLAGS=-fsyntax-only warned

# Where cffi or Python's headers are absent, the tests of the package say so and are skipped.
python-if-possible: libs
	@! tests/pytest --check || $(MAKE) --no-print-directory -s python

# These wait most of their time, for clocks, time limits and each other: two of them run beside the rest.
WAITING = $(addprefix tests/cli/test_,ack curve mqtt kafka clock key_alerts connections http_history http_metrics http_server http_streams manual merge merged redis screenshot status) $(addprefix tests/fault/test_,full_disk kill_redis redis_cluster)
# The long ones first: at the end no row waits for the other.
LONG    = $(addprefix $(BUILD)/tests/,fault/test_flips property/test_key_alerts property/test_prior_hostile property/test_desk property/test_key_walks)
RUN_ALL = $(filter-out $(RUN_OUT) $(if $(RUN_FLAGS),$(PLAIN_RUN)),$(TEST_RUN)) $(TEST_BIN)
test-run: all libs tests examples $(if $(RUN_FLAGS),,python-if-possible)
	@tests/run --build $(BUILD) --data $(DATA) --examples examples $(RUN_FLAGS) --waiting "$(WAITING)" $(filter $(LONG),$(RUN_ALL)) $(filter-out $(LONG),$(RUN_ALL))

test: deps ## build and run all tests (about 6 minutes on 2 cores)
	$(SUBMAKE) test-run

# -g1: file and line for the reports, in less time
SANITIZE = -O1 -g1 -fno-omit-frame-pointer -fno-sanitize-recover=all

# One build by clang serves these tests and the fuzzers, and gives clang's warnings for the sources as well. An empty array is NULL here, and
# NULL + 0 is the start of it: clang counts that as undefined.
ASAN = BUILD=build-asan CC=clang CFLAGS="$(SANITIZE) -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize=pointer-overflow"

# Fuzzers follow the branches of all rooms. What is compared with what leads them on where bytes are read; in the rooms of arithmetic, whose
# comparisons are of numbers, reporting each of them is half of the time of all that learns.
ifeq ($(CC) $(findstring fuzzer-no-link,$(CFLAGS)),clang fuzzer-no-link)
$(filter $(addprefix $(BUILD)/obj/src/,$(addsuffix /%,linalg trees features learner solver novelty bank refit alerts quality)),$(LIB_OBJ) $(APP_OBJ)): ISA += -fno-sanitize-coverage=trace-cmp
# A test is no part of what is fuzzed; to optimise it takes longer than it saves, except where it works out what is right.
$(TEST_BIN): TEST_O = $(if $(findstring /property/,$@),,-O0) -fno-sanitize=fuzzer-no-link
endif

asan: deps ## run the tests under AddressSanitizer and UndefinedBehaviorSanitizer, in build-asan
	$(SUBMAKE) $(ASAN) RUN_FLAGS=--sanitized test-run

# ThreadSanitizer's part are the tests that have threads. Properties of the learner and the solvers, the wire format, and allocations that
# fail where one thread is at work have no race to be found (of what is built, tests/run leaves out the programs that cannot start a thread).
# Keys have threads in test_key_prior, test_key_shared, test_prior_hostile, test_keys and test_many_keys; their walks are too slow here. Kills, power cuts and calls that fail try what
# is on the disk, not what threads share.
# Commands of one thread (train, predict, config, novelty, feed, the adapter to MQTT) and the reading of samples have none either, nor the store's writer; the adapter to
# HTTP has one besides its own, of the history, which test_http_history in C tries; and what eval,
# watch and ctl, the texts of alerts, the recordings, and the sessions of README and the manual start, is what test_stdin, test_sockets, test_state, test_threads and
# others run.
NO_RACES_SRC = $(filter-out tests/property/test_key_prior.c tests/property/test_prior_hostile.c tests/property/test_trees_resume.c tests/property/test_key_shared.c,$(wildcard tests/property/test_*.c)) tests/wire/% tests/fault/test_flips.c tests/unit/test_options.c $(patsubst %,tests/unit/test_%_nomem.c,bank engine engine_configure library key_shared novelty_stage load)
NO_RACES     = $(addprefix tests/cli/,test_commands test_pages test_readme test_manual test_train test_probabilities test_novelty test_config.sh test_install.sh \
                 test_recorded test_logs test_alert_lines test_feed test_load test_look test_mqtt test_merge test_http_server test_http_requests test_http_streams test_http_history test_http_metrics test_status test_redis \
                 test_cursor test_examples.sh test_json test_misread test_refusals) \
               $(addprefix tests/fault/,test_powercut test_powercut_run test_kill test_kill_keys test_kill_config test_kill_redis test_key_faults test_io_errors test_cut_load test_full_disk)
# Programs of the plain build, where it is there, that start no thread: they need not be made again.
NO_THREADS   = $(patsubst $(BUILD)/%,%.c,$(shell for t in $(TEST_BIN); do [ -x $$t ] && ! nm -u $$t | grep -q pthread_create && echo $$t; done))

# The bank's arithmetic is reached through the bank alone: a second thread that enters it is seen in bank.c and bank_step.c,
# which read and write its fields at each call. Without these accesses an engine of the default method takes a third less time.
ifneq ($(findstring -fsanitize=thread,$(CFLAGS)),)
$(patsubst %,$(BUILD)/obj/src/bank/%.o,neighbours fourier_ridge block stack standardiser): ISA = -fno-sanitize=thread
endif

tsan: deps ## run the tests with threads under ThreadSanitizer, in build-tsan
	$(SUBMAKE) BUILD=build-tsan LEAVE_OUT="$(NO_RACES_SRC) $(NO_THREADS)" RUN_OUT="$(NO_RACES)" CC=gcc CFLAGS="$(SANITIZE) -fsanitize=thread" RUN_FLAGS="--sanitized --races" test-run

FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(BUILD)/fuzz/%: tests/fuzz/%.c $(TEST_A) $(LIB_FIXED)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(TEST_LD) -fsanitize=fuzzer -MMD -MP -MF $@.d $< $(TEST_A) $(LIB_A) $(LDLIBS_ALL) -lgnutls -lsqlite3 -o $@

fuzz-targets: $(FUZZ_BIN)

fuzz: deps ## run each fuzz target with libFuzzer for FUZZ_SECONDS (30)
	$(SUBMAKE) $(ASAN) fuzz-targets
	@tests/fuzz/run build-asan $(FUZZ_SECONDS)

fuzz-afl: deps ## run each fuzz target with AFL++ for FUZZ_SECONDS (30)
	$(SUBMAKE) BUILD=build-afl CC="env AFL_USE_ASAN=1 afl-clang-fast" CFLAGS="-O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link" fuzz-targets
	@touch build-afl/afl
	@tests/fuzz/run build-afl $(FUZZ_SECONDS)

screenshot: deps ## take README's picture of the page again: examples/page.png
	$(SUBMAKE) all
	@SVMSTREAM=$(BUILD)/svmstream SVMSTREAM_BUILD=$(BUILD) tests/cli/test_screenshot --write

coverage: deps ## measure the branches that the tests take: at least 90 % of wire and store
	@DATA=$(DATA) tests/coverage

ORACLE_FLAGS ?=
oracle: all ## compare this build with another one, ORACLE_BASE=/path/to/svmstream: the same scenes give the same bytes (about 4 minutes; ORACLE_FLAGS=--quick: 1)
	$(if $(ORACLE_BASE),,$(error give the program that is right: make oracle ORACLE_BASE=/path/to/svmstream))
	@DATA=$(DATA) $(PYTHON) tests/oracle $(ORACLE_BASE) $(BUILD)/svmstream $(ORACLE_FLAGS)

data: ## list the data sets that tests and benchmarks read from DATA (data): what for, how large, from where
	@$(PYTHON) tests/data_sets $(DATA)

metrics: ## report figures of the source: function lengths, nesting, layers, exports
	$(SUBMAKE) all libs
	@$(PYTHON) tests/metrics $(BUILD)

.PHONY: data tests python-if-possible warned warnings test-run test asan tsan fuzz-targets fuzz fuzz-afl screenshot coverage oracle metrics
