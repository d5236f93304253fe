// Only here so that `go build github.com/temporalio/cli/cmd/temporal` works: `go install` refuses that module for
// the `replace` in its own go.mod. Nothing of ours is built.
module billing-connector/temporal-cli

go 1.26.4

require github.com/temporalio/cli v1.8.2

replace github.com/temporalio/cli/cliext => github.com/temporalio/cli/cliext v0.0.0-20260731000218-c579925f193f
