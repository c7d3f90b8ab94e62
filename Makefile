# Everything that is done to this repository by hand or by CI. A fresh clone needs python3 (3.11 or newer) and make.
#
#   make demo     the whole service on this machine, on real data, with a live table and a report
#   make test     integration on the most real broker that can be had, then property, golden, simulation, unit, doctests
#   make faults   all runs of faults on real Kafka, and a table of what each induced and found; `make test` has some
#   make image    build the image and run it, confined, against a real Kafka
#   make stack    Kafka, two workers, Prometheus and Alertmanager on this machine; ONCE=1 checks that they work, and ends
#   make golden   what BASE=COMMIT and this tree write of the same events, compared byte for byte; LONG=1 folds more
#   make simulate SEEDS deployments on simulated time, each with its own faults; SEED=n tells of one; MUTANT=name breaks
#                 the mechanism first
#   make check    style, types, imports, spelling, docs, generated files; then what it is deployed with (tests/infra)
#   make house    signs of how simple the package is: size, what a round passes, imports, words of docs
#   make release  what a tag publishes, in dist/: wheels, sources, image, chart, docs, bill of materials, upgrade notes, sums
PYTHON ?= python3
VENV ?= .venv
PIP = $(VENV)/bin/python -m pip --disable-pip-version-check
# Tests on Kafka mostly wait: they come first, on more processes than there are cores. The files' order is testpaths'.
PYTEST_ARGS ?= --numprocesses=4 --dist=loadfile --no-loadscope-reorder -m "not faults"
FAULT_ARGS ?= --numprocesses=2 --dist=load
INFRA_ARGS ?= --numprocesses=4 --dist=loadfile --no-loadscope-reorder
DEMO_ARGS ?=

# The data sets that some tests and benchmarks read; without them those are skipped.
export STREAM_PEER_DATA ?= $(wildcard $(abspath ../shared/data))

# Debian keeps runc and debootstrap there, which root's PATH does not always name.
export PATH := $(PATH):/usr/sbin:/sbin

# Tests start hundreds of processes, each of which would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test faults golden simulate check lint infra image image-archive chart wheel stack bench bench-peers bench-short house soak quality generated docs format lock dist sbom release clean

include tools.mk

help:
	@grep -E '^#   make ' Makefile | cut -c5-

# Environments. demo and dev share one; the pins of one are those of the other.
$(VENV)/.made:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.13 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: requirements/build.txt requirements/demo.txt pyproject.toml client/pyproject.toml | $(VENV)/.made
	$(PIP) install --quiet --require-hashes -r requirements/build.txt
	$(PIP) install --quiet --require-hashes -r requirements/demo.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable . --editable client
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.demo
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

demo: $(VENV)/.demo
	$(VENV)/bin/stream-peer demo $(DEMO_ARGS)

test: $(VENV)/.dev
	$(VENV)/bin/python -m pytest $(PYTEST_ARGS)

faults: export STREAM_PEER_TEST_REQUIRE = kafka
faults: $(VENV)/.dev
	$(VENV)/bin/python -m pytest $(FAULT_ARGS) tests/integration/faults

# Recorded bytes differ on purpose? python -m tests.golden write, after this has shown how.
golden: $(VENV)/.dev
	$(VENV)/bin/python -m tests.golden against $(or $(BASE),$(error name the commit to compare with: make golden BASE=COMMIT)) \
		$(if $(LONG),--long) $(GOLDEN_ARGS)

SEEDS ?= 1000
simulate: $(VENV)/.dev
	$(VENV)/bin/python -m tests.simulation $(SEEDS) $(if $(SEED),--seed $(SEED)) $(if $(MUTANT),--mutant "$(MUTANT)")

check:
	$(MAKE) --no-print-directory --jobs=3 --output-sync lint docs infra

# Chart, compose file, rules, dashboards, workflows, contract, repository. `make image` tests the image.
infra: $(VENV)/.dev tools
	$(VENV)/bin/python -m pytest $(INFRA_ARGS) -m "not image" tests/infra

# The image of a release, run: minutes the first time, when debootstrap makes a base; as root, with buildah, podman and runc.
image: image-archive
	$(VENV)/bin/python -m pytest -s -v -m image tests/infra/test_image.py

# What an operator has, with the demo's data in it; ONCE=1 induces three faults and wants their alerts. Workers run from the
# image of a release or, where none can be built, from its wheel.
stack: $(VENV)/.dev
	$(VENV)/bin/python -m tests.infra.stack

lint: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy stream_peer tests client
	$(VENV)/bin/lint-imports
	$(VENV)/bin/deptry .
	$(VENV)/bin/codespell
	$(VENV)/bin/python docs/generate.py --check

format: $(VENV)/.dev
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

bench: $(VENV)/.dev
	$(VENV)/bin/python -m benchmarks.pipeline

# Beside Kafka Streams, Quix, Bytewax, stock Faust and raw aiokafka; what they need is fetched into the user's cache.
bench-peers: $(VENV)/.dev
	$(VENV)/bin/python -m benchmarks.pipeline --peers --rounds 3 --write benchmarks/README.md

house: $(VENV)/.dev
	$(VENV)/bin/python -m benchmarks.house

bench-short: $(VENV)/.dev
	$(VENV)/bin/python -m benchmarks.pipeline --short --only ours ours_forecasts aiokafka --rounds 2 --floors
	$(VENV)/bin/python -m benchmarks.rebuild --short
	$(VENV)/bin/python -m benchmarks.soak --short --quiet

soak: $(VENV)/.dev
	$(VENV)/bin/python -m benchmarks.soak

# How good the mix is, on the data sets in STREAM_PEER_DATA. crowd-kit, which it is compared with, is large.
$(VENV)/.quality: requirements/quality.txt $(VENV)/.dev
	$(PIP) install --quiet --require-hashes -r requirements/quality.txt
	@touch $@

quality: $(VENV)/.quality
	$(VENV)/bin/python benchmarks/quality.py $(STREAM_PEER_DATA) $(QUALITY_ARGS)

generated: $(VENV)/.dev
	$(VENV)/bin/python docs/generate.py
	$(VENV)/bin/python -m helm.dashboards

docs: $(VENV)/.dev
	$(VENV)/bin/sphinx-build --quiet --fail-on-warning --keep-going docs docs/_build/html
	$(VENV)/bin/python -m benchmarks.house --words

# Newer versions within the bounds of pyproject.toml: review the difference, run the tests, commit.
PIP_COMPILE = $(VENV)/bin/pip-compile --quiet --strip-extras --generate-hashes --reuse-hashes --allow-unsafe --no-header \
	--no-annotate --no-emit-index-url --no-emit-trusted-host --no-emit-find-links $(LOCK_ARGS)
lock: $(VENV)/.dev
	mkdir -p build
	$(PIP_COMPILE) --output-file requirements/build.txt requirements/build.in
	$(PIP_COMPILE) --output-file requirements/runtime.txt pyproject.toml
	$(PIP_COMPILE) --constraint requirements/runtime.txt --extra demo,report --output-file requirements/demo.txt \
		pyproject.toml
	$(VENV)/bin/python -c "import tomllib; g = tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']; \
		print(*g['dev'], *g['docs'], sep='\n')" > build/dev.in
	$(PIP_COMPILE) --constraint requirements/demo.txt --all-extras --output-file requirements/dev.txt pyproject.toml build/dev.in
	$(PIP_COMPILE) --constraint requirements/dev.txt --output-file requirements/quality.txt requirements/quality.in
	$(PIP_COMPILE) --output-file requirements/peers.txt requirements/peers.in

# What a release consists of. Everything in it has the date of the commit: the same commit gives the same files.
DIST ?= dist
BASE_IMAGE ?=
IMAGE_ARCHIVE = build/stream-peer-image-$(VERSION).tar
CHART_ARCHIVE = build/stream-peer-$(VERSION).tgz
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' stream_peer/__init__.py)
PACK = tar --sort=name --mtime=@$$SOURCE_DATE_EPOCH --owner=0 --group=0 --numeric-owner --format=ustar
dist sbom release chart wheel: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)

dist: $(VENV)/.dev chart
	rm -rf $(DIST)
	$(VENV)/bin/python -m build --no-isolation --outdir $(DIST) .
	$(VENV)/bin/python -m build --no-isolation --outdir $(DIST) client
	cp $(CHART_ARCHIVE) $(DIST)

# The chart, which tests render: packed beside its place, as several tests may ask for it at once.
chart: | $(TOOLS)/.complete
	mkdir -p build
	beside=$$(mktemp -d build/chart-XXXXXX) && $(TOOLS)/bin/helm package helm/stream-peer --destination $$beside >/dev/null \
		&& tar -C $$beside -xzf $$beside/stream-peer-$(VERSION).tgz \
		&& $(PACK) -C $$beside -c stream-peer | gzip -n > $$beside/packed \
		&& mv $$beside/packed $(CHART_ARCHIVE) && rm -r $$beside

# The image, which tests and the stack run. It is built by root, with buildah, unless the archive is of this tree already;
# BASE_IMAGE=python:3.13-slim-bookworm@sha256:... instead of a base by debootstrap.
image-archive: $(VENV)/.dev
	$(VENV)/bin/python -m tests.infra.support.image $(IMAGE_ARCHIVE) $(BASE_IMAGE)

# The wheel in FOLDER, with what it needs and nothing else: $(call installed,FOLDER,ENVIRONMENT)
define installed
	$(PYTHON) -m venv --clear --without-pip $(2)
	$(PIP) --python $(2)/bin/python install --quiet --no-compile --require-hashes -r requirements/runtime.txt
	$(PIP) --python $(2)/bin/python install --quiet --no-compile --no-deps --no-index --find-links $(1) stream-peer
endef

wheel: $(VENV)/.dev
	rm -rf build/wheel
	$(VENV)/bin/python -m build --no-isolation --wheel --outdir build/wheel .
	$(call installed,build/wheel,build/wheel/environment)

# What comes along with the wheel, by name, version and licence.
sbom: dist
	$(call installed,$(DIST),$(DIST)/runtime)
	sed 's/^dynamic = .*/version = "$(VERSION)"/' pyproject.toml > $(DIST)/runtime/pyproject.toml
	$(TOOLS)/bin/cyclonedx-py environment --pyproject $(DIST)/runtime/pyproject.toml --output-reproducible \
		--output-file $(DIST)/sbom.cdx.json $(DIST)/runtime
	rm -rf $(DIST)/runtime

# The image first: a machine may lack what builds it.
release: image-archive sbom docs
	$(PACK) --exclude=.doctrees --exclude=.buildinfo -C docs/_build/html -c . | gzip -n > $(DIST)/stream-peer-docs-$(VERSION).tar.gz
	$(VENV)/bin/python -m docs.upgrade_notes > $(DIST)/UPGRADE.md
	cp $(IMAGE_ARCHIVE) $(DIST)
	cd $(DIST) && sha256sum -- * > SHA256SUMS

clean:
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis report.html paper-report paper-images
