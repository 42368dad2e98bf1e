"""The host side of millpond: build, deploy, virtual board, listener, demonstration, benchmarks."""
