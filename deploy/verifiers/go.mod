module sluice.example/verifiers

go 1.26.0

require (
	github.com/klauspost/compress v1.20.0
	golang.org/x/mod v0.42.0
)
