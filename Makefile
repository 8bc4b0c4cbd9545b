# Needs make and Python 3.11 or newer; everything else comes into .venv, at the versions of requirements.lock.
#
#   make run     three replicas on an embedded PostgreSQL (or on SOLOIST_DATABASE_URL); Ctrl-C stops them
#   make test    what every change runs          make full   all of it, also what takes long
#   make check   lint and test                   make lint   ruff, mypy, import-linter
#   make pooler  every test of a database once more through PgBouncer, then with two server connections only
#   make chaos   ten minutes of faults over six replicas; SECONDS=60 and SEED=7 choose others
#   make bench   each benchmark beside the floor, a short set; LONG=1: the figures of docs/performance.md, about an hour
#   make lock    choose the versions anew
#   make clean   remove .venv and caches; .soloist, the data, stays

BIN := .venv/bin
INSTALLED := .venv/.installed

.PHONY: run check test full bench chaos pooler pooler-transaction pooler-small pooler-short lint lock clean

run: $(INSTALLED)
	@exec $(BIN)/python -c "$$IN_FRONT" $(BIN)/soloist serve --replicas 3 --seed jobs.sample:seed

check: lint test

test: $(INSTALLED)
	$(BIN)/pytest -m "not full" -n 4 --dist worksteal

full: $(INSTALLED) pooler
	$(BIN)/pytest -n 4 --dist worksteal

pooler: pooler-transaction pooler-small

pooler-transaction pooler-small: pooler-%: $(INSTALLED)
	SOLOIST_TEST_POOLER=$* $(BIN)/pytest -m "not full" -n 4 --dist worksteal

# what a change is checked with: the statements, the traps, races of replicas, their deaths, and the guards past it
pooler-short: $(INSTALLED)
	SOLOIST_TEST_POOLER=transaction $(BIN)/pytest -m "not full" -n 3 --dist worksteal tests/store tests/traps \
		tests/race $(addprefix tests/chaos/test_,kill.py transaction_crashes.py advisory_lock.py)

chaos: $(INSTALLED)
	PYTHONPATH=.:tests $(BIN)/python -m chaos.storm --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(INSTALLED)
	$(BIN)/python -m benchmarks $(if $(LONG),--long)
	$(if $(LONG),$(BIN)/python -m benchmarks.table --write)

lock: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --extra embedded --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-annotate --upgrade --custom-compile-command "make lock" \
		--quiet --output-file requirements.lock

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): requirements.lock pyproject.toml
	@for python in python3 python3.14 python3.13 python3.12 python3.11; do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then echo "make: Soloist needs Python 3.11 or newer, and finds none on the PATH" >&2; exit 1; fi; \
	$$found -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# make itself dies of a Ctrl-C, with an ugly status, even when what it runs stops in good order. So on a terminal the
# server becomes the foreground group, and Ctrl-C is for it alone. Nobody here could wake it up after a Ctrl-Z, so that
# is ignored; and at the end the terminal goes back to the group it came from. Elsewhere this only runs the command.
define IN_FRONT
import os, signal, subprocess, sys

command, ours = sys.argv[1:], os.getpgrp()
if not os.isatty(0) or os.tcgetpgrp(0) != ours:
    os.execv(command[0], command)

server, asks = None, []

def pass_on(number, frame):
    if server is None:
        asks.append(number)
    else:
        server.send_signal(number)

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, pass_on)
for number in (signal.SIGTSTP, signal.SIGTTOU):
    signal.signal(number, signal.SIG_IGN)
server = subprocess.Popen(command, process_group=0)
for number in asks:
    server.send_signal(number)
try:
    os.tcsetpgrp(0, server.pid)
    code = server.wait()
    os.tcsetpgrp(0, ours)
except OSError:
    code = server.wait()
sys.exit(code if code >= 0 else 128 - code)
endef
export IN_FRONT
