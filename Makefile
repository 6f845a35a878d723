# Every target is safe to run twice.

.PHONY: control-plane
control-plane: ## Builds the real programs into target/control-plane/bin/
	@tests/control-plane/build.sh
