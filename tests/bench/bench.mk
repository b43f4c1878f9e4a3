# The rules of the measurements, each next to its peer in the same run; included by the Makefile.

BENCH_BIN := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(wildcard tests/bench/bench_*.c))

$(BUILD)/bench/%: tests/bench/%.c $(TEST_APP) $(LIB_A)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -MMD -MP -MF $@.d $< $(TEST_APP) $(LIB_A) $(LDLIBS_ALL) $(PEER) -o $@

# These measure beside a peer in the same process.
$(BUILD)/bench/bench_solvers $(BUILD)/bench/bench_papers: PEER = -llinear -lsvm
$(BUILD)/bench/bench_novelty $(BUILD)/bench/bench_novelty_stream: PEER = -lsvm

# What it measures is no part of the program.
HISTORY_OBJ = $(patsubst %,$(BUILD)/obj/adapters/http/history_%.o,point db store alerts answer)
$(BUILD)/bench/bench_http_history: PEER = $(HISTORY_OBJ) -lsqlite3 -lz
$(BUILD)/bench/bench_http_history: $(HISTORY_OBJ)

# The peer is C++, so this one program is linked with it.
$(BUILD)/bench/bench_learner: tests/bench/bench_learner.c tests/bench/dlib_rls.cc $(LIB_A)
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) -Itests $(CFLAGS_ALL) -MMD -MP -MF $@.d -c $< -o $@.o
	$(call say,LD,$@)g++ -O3 -DDLIB_USE_BLAS -Itests tests/bench/dlib_rls.cc $@.o $(LIB_A) $(LDLIBS_ALL) -o $@

BENCH_FORM = $(if $(FULL),full,whole)

bench-run: all python $(BENCH_BIN)
	@NAB=$(NAB) $(PYTHON) tests/bench/run --build $(BUILD) --data $(DATA) --form $(BENCH_FORM) $(ONLY)

bench: deps-bench ## run every measurement with its peer, then print one table of ratios (within 45 minutes; ONLY="quality rare", FULL=1)
	$(SUBMAKE) bench-run

bench-quick: deps-bench ## build every benchmark and run its shortest form: checks results, and no times
	$(SUBMAKE) BENCH_FORM=quick bench-run

bench-novelty: deps-bench ## measure one-class models, novelty in the stream and alerts alone (NAB=/path; ONLY="plant nab": see tests/bench/alerts)
	$(SUBMAKE) $(BUILD)/bench/bench_novelty $(BUILD)/bench/bench_novelty_stream $(BUILD)/bench/bench_alerts
	@NAB=$(NAB) tests/bench/novelty --build $(BUILD) --data $(DATA) $(ONLY)

cost-run: all $(BUILD)/bench/cost_messages
	@$(PYTHON) tests/bench/cost --build $(BUILD) --cc "$(CC)" --cflags="$(CFLAGS)" --jobs $(JOBS) $(if $(COST),--$(COST)) $(ONLY)

cost: deps ## count instructions a sample by scene, against tests/bench/cost.txt (COST=write: that file becomes them; ONLY="auto json")
	$(SUBMAKE) cost-run

PLOT = set terminal svg; set output "$(BUILD)/papers/time_against_n.svg"; set logscale xy; set xlabel "samples"; set ylabel "seconds"; \
       plot "$(BUILD)/papers/time_against_n.dat" with linespoints title "alm, L2, gap 1e-3"

bench-papers: deps-bench ## repeat the papers' comparisons with our solvers, as tables and a plot in $(BUILD)/papers
	$(SUBMAKE) $(BUILD)/bench/bench_papers
	@mkdir -p $(BUILD)/papers
	@SVMSTREAM_DATA=$(DATA) OPENBLAS_NUM_THREADS=1 $(BUILD)/bench/bench_papers $(BUILD)/papers | tee $(BUILD)/papers/tables.txt
	@gnuplot -e '$(PLOT)' 2>/dev/null && echo "plot $(BUILD)/papers/time_against_n.svg"

.PHONY: bench-run bench bench-quick cost-run cost bench-novelty bench-papers
