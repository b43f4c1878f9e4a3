# The rules of the fault runs: power cuts, failing calls, kills, and stores that are wrong on purpose; included by
# the Makefile.

FUZZ_LONG ?= 257

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

fault: deps ## run the long fault tests: 1,000 kills, 10,000 power cuts of the store and 1,000 of the program, an hour of fuzzing
	$(SUBMAKE) all tests examples python
	@FAULT_KILLS=1000 FAULT_CUTS=10000 FAULT_FLIPS=3 FAULT_LONG=1 tests/run --build $(BUILD) --data $(DATA) --examples examples --timeout 3600 $(FAULT_RUN) adapters/python/tests/test_packages.py $(BUILD)/tests/fault/test_flips
	+@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=$(FUZZ_LONG)

.PHONY: fault-programs fault
