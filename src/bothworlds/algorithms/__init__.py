"""One algorithm, one file: hyper-parameters and kernel text together."""
