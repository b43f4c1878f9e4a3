# svmstream: `make help` lists what there is.
CC      ?= gcc
BUILD   ?= build
DATA    ?= ../shared/data
PREFIX  ?= /usr/local

CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wpedantic -Werror
PKGS     = libzmq msgpack libcyaml jansson zlib
CPPFLAGS_ALL = -Iinclude -Isrc -D_GNU_SOURCE $(CPPFLAGS)
CFLAGS_ALL   = -std=c11 $(WARN) -fPIC -fvisibility=hidden -fno-math-errno $(CFLAGS)
LDLIBS_ALL   = -lzmq -lmsgpackc -lcyaml -ljansson -lz -llapacke -lopenblas -lm -lpthread

LIB_SRC := $(wildcard src/base/*.c src/linalg/*.c src/data/*.c src/learner/*.c src/wire/*.c)
APP_SRC := $(wildcard src/engine/*.c src/cli/*.c)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/obj/%.o)
APP_OBJ := $(APP_SRC:%.c=$(BUILD)/obj/%.o)

all: $(BUILD)/svmstream

# The kernels are one source compiled three times; each may fuse multiply and add.
$(BUILD)/obj/src/linalg/pass_avx512.o: CFLAGS_ALL += -O3 -mavx512f -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512 -ffp-contract=fast
$(BUILD)/obj/src/linalg/pass_avx2.o:   CFLAGS_ALL += -O3 -mavx2 -mfma -ffp-contract=fast
$(BUILD)/obj/src/linalg/pass_generic.o: CFLAGS_ALL += -O3

$(BUILD)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(BUILD)/libsvmstream.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^

$(BUILD)/svmstream: $(APP_OBJ) $(BUILD)/libsvmstream.a
	$(CC) $(CFLAGS_ALL) $(LDFLAGS) $^ $(LDLIBS_ALL) -o $@

# Unit and property tests: one cmocka program a file, linked with everything but main().
TEST_SRC := $(wildcard tests/unit/test_*.c tests/property/test_*.c tests/wire/test_*.c)
TEST_BIN := $(TEST_SRC:%.c=$(BUILD)/%)
TEST_OBJ  = $(filter-out $(BUILD)/obj/src/cli/main.o,$(APP_OBJ))

$(BUILD)/tests/%: tests/%.c $(TEST_OBJ) $(BUILD)/libsvmstream.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) $(LDFLAGS) $< $(TEST_OBJ) $(BUILD)/libsvmstream.a $(LDLIBS_ALL) -lcmocka -o $@

tests: $(TEST_BIN)

clean:
	rm -rf $(BUILD)

.PHONY: all tests clean
-include $(LIB_OBJ:.o=.d) $(APP_OBJ:.o=.d)
