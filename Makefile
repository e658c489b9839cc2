# Each target can be the first command on a fresh Debian 12: what is missing is installed by name
# (tools/bootstrap), and make itself by ./start. The work is done by CMake presets and by tools/.

# GCC presets build with $CXX where that is set, and with g++ where it is not.
ifeq ($(origin CXX),default)
CXX := g++
endif
export CXX

JOBS := $(shell nproc)
CONFIGURE = @cmake >/dev/null --log-level=NOTICE --preset
# Where not all is built: what only other commands lack is not said, and what this one lacks is said by
# tools/bootstrap.
CONFIGURE_QUIETLY = @cmake >/dev/null --log-level=WARNING --preset
BUILD = cmake --build -j $(JOBS) --preset
TEST = ctest -j 2 --preset

.PHONY: help run test test-clients test-packages test-ports footprint abi bench bench-net bench-bars soak fuzz fuzz-hooks posix-suite mutate model check \
	claims tidy headers format format-check clean
.NOTPARALLEL:

help:
	@echo "make run      the main job: an echo server in every style, then a short comparison"
	@echo "make test     build and run every test, debug and release"
	@echo "make test-clients  unchanged client libraries in fibers, against their servers"
	@echo "make test-packages  take weft as others do: CMake, Meson, a package and others; WAYS=... some of them"
	@echo "make test-ports  the tests on other processors, under qemu-user; PORT=aarch64 one of them"
	@echo "make footprint  what a program takes with each layer; writes docs/footprint.md; FOOTPRINT=options"
	@echo "make abi      libweft.so of two commits, compared by abidiff: FROM=<commit>, TO=<commit> or HEAD"
	@echo "make bench    the whole comparison; writes docs/benchmarks.md. PEERS=...: a folder of checkouts"
	@echo "              of other libraries; writes docs/seed-comparison.md too"
	@echo "make bench-net  servers under load, an hour; writes their sections of docs/benchmarks.md; NET=options"
	@echo "make bench-bars  datagrams, files, shared listeners, TLS: each with its bar"
	@echo "make soak     mixed load for SECONDS=600: does it grow? then storms, SEED=..., and refused calls"
	@echo "make fuzz     any bytes to what takes bytes of others: SECONDS=60 each, or one TARGET=..."
	@echo "make fuzz-hooks  random programs of hooked calls on threads and in fibers: SECONDS=60, SEED=..."
	@echo "make posix-suite  the Open POSIX Test Suite in fibers: LTP=its folder, or the Linux Test Project"
	@echo "make mutate   small changes to the sources: does a test fail? LAYER=... COUNT=... SEED=..."
	@echo "make model    which walk of the model checker is whole, and what bounds the others"
	@echo "make check    the matrix: GCC and Clang, sanitizers, both switch backends; CELLS=... some of it"
	@echo "make claims   docs/claims.md against the tests that ran"
	@echo "make tidy     includes against the layers, headers alone, tests, README code, headers' examples, words, spelling, repeats"
	@echo "make headers  the public headers in each compiler, library and language: see tools/header_matrix"
	@echo "make format   clang-format on all C++; make format-check only looks"
	@echo "make clean    remove build/"

COMPARISON = build/release/bench/weft_bench
run:
	@tools/bootstrap run bench
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target echo echo_small weft_bench
	build/release/examples/echo
	@if ! command -v python3 >/dev/null; then echo "no comparison: python3 is not installed"; \
	elif [ -x $(COMPARISON) ]; then python3 tools/bench_report.py $(COMPARISON) --short; fi

test:
	@tools/bootstrap test
	$(CONFIGURE) debug
	$(BUILD) debug
	$(CONFIGURE) release
	$(BUILD) release
	$(TEST) debug
	$(TEST) release

# Their times optimised, and what they leave behind when they are killed under LeakSanitizer.
CLIENTS = ctest --output-on-failure --no-tests=error -C clients -L clients \
	--output-junit clients.xml --test-dir
test-clients:
	@tools/bootstrap clients
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target weft_clients
	$(CLIENTS) build/release
	$(CONFIGURE_QUIETLY) asan
	@$(BUILD) asan --target weft_clients
	@GTEST_FILTER='*stop*:*kill*:*death*' $(CLIENTS) build/asan

# make test-packages WAYS="find_package pkg_config"
test-packages:
	@tools/bootstrap packages $(if $(WAYS),$(filter bazel,$(WAYS)),bazel)
	@python3 -B test/packages/packages_test.py $(WAYS)

# make test-ports PORT=aarch64 LAYERS="base context"; each port installs its own compiler
test-ports:
	@tools/bootstrap ports
	@tools/ports $(if $(LAYERS),--layers "$(LAYERS)") $(PORT)

# make footprint FOOTPRINT="--only 'io|sync'"; tools/footprint.py --help says what else
footprint:
	@tools/bootstrap packages
	@python3 -B tools/footprint.py $(FOOTPRINT)

# make abi FROM=v0.2.0 TO=main; a commit is built once, and what is not committed is not in it
abi:
	@tools/bootstrap abi
	@python3 -B tools/abi.py $(FROM) $(TO)

# make bench PEERS=../peers: each folder of it is a checkout, found by its name; one that does not
# build is left out. Nothing of them is fetched, and nothing written there.
bench:
	@tools/bootstrap bench
	$(if $(PEERS),$(CONFIGURE),$(CONFIGURE_QUIETLY)) release -DWEFT_PEERS=$(abspath $(PEERS))
	$(BUILD) release --target weft_bench
	python3 tools/bench_report.py $(COMPARISON)
	@if [ -z "$(PEERS)" ]; then \
		echo "docs/seed-comparison.md is left alone: PEERS= names no folder of checkouts"; \
	else \
		$(BUILD) release --target weft_peers -- -k 0 || echo "some peers did not build, see above"; \
		python3 tools/bench_seeds.py build/release; \
	fi

# make bench-net NET="--quick --only 'bare|fiber'"; tools/bench_net.py --help says what else
bench-net:
	@tools/bootstrap bench-net
	$(CONFIGURE_QUIETLY) release
	$(BUILD) release --target weft_net
	python3 tools/bench_net.py build/release $(NET)
	@if command -v vgdb >/dev/null; then \
		python3 tools/bench_net_counts.py build/release --out docs/benchmarks.md; \
	else echo "nothing is counted: valgrind is not installed"; fi
	python3 tools/bench_net.py build/release --many

# Each measures its servers in turn, and ends with 1 where a bar is missed.
BARS = weft_udp weft_send_file weft_shared_listener
TLS_LOAD = build/release/bench/net_tls_load
TLS_PEER = build/release/bench/net_asio_tls_echo
TLS_ECHO = build/release/bench/weft_net_tls_echo
TLS_SERVERS = $(foreach driver,epoll io_uring,$(foreach style,fiber task,\
	"WEFT_IO=$(driver) $(TLS_ECHO) $(style)"))
bench-bars:
	@tools/bootstrap bench-net
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target $(BARS) weft_net
	@status=0; for program in $(BARS); do \
		build/release/bench/$$program || status=1; \
	done; \
	if [ -x $(TLS_LOAD) ] && [ -x $(TLS_PEER) ]; then \
		$(TLS_LOAD) 13 $(TLS_PEER) $(TLS_SERVERS) || status=1; \
	else echo "no comparison of TLS: OpenSSL or Boost.Asio is not installed"; fi; exit $$status

# make soak SECONDS=600: the load for so long, then each storm at its full count, from SEED if given,
# and 10^6 programs of hooked calls, or as many as HOOK_SECONDS allow.
SECONDS := 600
HOOK_SECONDS := 14400
HOOK_FUZZ = build/release/test/hook/fuzz/weft_hook_fuzz
soak:
	@tools/bootstrap run test
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target weft_soak weft_storms weft_refusals weft_hook_fuzz
	python3 tools/soak.py build/release/bench/weft_soak $(SECONDS)
	python3 tools/soak.py --storms build/release/test/storm $(SEED)
	build/release/test/refusals/weft_refusals --every
	$(HOOK_FUZZ) --programs 1000000 --seconds $(HOOK_SECONDS) --jobs 32 --seed $(or $(SEED),1)

# make fuzz SECONDS=600 TARGET=dns_answer; without a target each of test/fuzz, one after the other
FUZZ = build/fuzz/test/fuzz/weft_fuzz
fuzz: SECONDS := 60
fuzz:
	@tools/bootstrap check
	$(CONFIGURE_QUIETLY) fuzz
	@$(BUILD) fuzz --target weft_fuzz$(addprefix _,$(TARGET))
	@status=0; for program in $(FUZZ)_$(or $(TARGET),*); do \
		if [ -x $$program ]; then tools/fuzz $$program $(SECONDS) || status=1; fi; \
	done; exit $$status

# make fuzz-hooks SECONDS=600 SEED=7 PROGRAMS=1000; without a seed other programs each time
fuzz-hooks: SECONDS := 60
fuzz-hooks: PROGRAMS := 1000000
fuzz-hooks:
	@tools/bootstrap run test
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target weft_hook_fuzz
	$(HOOK_FUZZ) --programs $(PROGRAMS) --seconds $(SECONDS) --seed $(or $(SEED),$(shell date +%s)000) \
		--known test/hook/fuzz/known.txt

# make posix-suite LTP=../ltp ONLY='^pthread_'; nothing of it is fetched, and nothing written there
POSIX_SUITE = python3 -B test/posix_suite/posix_suite.py build/release/libweft_hook.so
THREADS_ARE_FIBERS = build/release/test/posix_suite/libweft_threads_are_fibers.so
posix-suite:
	@tools/bootstrap run test
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target weft_hook_preload weft_threads_are_fibers
	@if [ -z "$(LTP)" ]; then \
		echo "skipped: LTP= names no copy of github.com/linux-test-project/ltp"; \
	else \
		status=0; for more in "" "--threads $(THREADS_ARE_FIBERS)"; do \
			$(POSIX_SUITE) $(LTP) $$more $(if $(ONLY),--only '$(ONLY)') || status=1; \
		done; exit $$status; \
	fi

# make mutate LAYER=sync COUNT=100 SEED=7; without them all layers, 600 mutations, a seed that is told
COUNT := 600
mutate:
	@tools/bootstrap test
	@python3 tools/mutate.py --count $(COUNT) $(if $(LAYER),--layer $(LAYER)) $(if $(SEED),--seed $(SEED))

model:
	@tools/bootstrap run test
	$(CONFIGURE_QUIETLY) release
	@$(BUILD) release --target weft_model_test
	@python3 tools/model_table.py build/release/test/model/weft_model_test

check:
	@tools/bootstrap check
	@tools/check $(CELLS)

# Of what ran since `make clean`; in CI of every cell.
claims:
	@python3 tools/claims.py

tidy:
	@tools/bootstrap tidy
	@python3 tools/tidy.py
	@python3 tools/words.py
	@tools/spelling
	@python3 tools/repeats.py
	@python3 tools/header_examples.py
	@python3 tools/header_examples.py --alone
	@python3 tools/compiler_traps.py

headers:
	@tools/bootstrap check
	@tools/header_matrix

format:
	@tools/bootstrap check
	@tools/format

format-check:
	@tools/bootstrap check
	@tools/format --check

clean:
	rm -rf build
