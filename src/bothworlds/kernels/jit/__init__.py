"""Compilation of kernels: machine code in a disk cache, and packs of numbers as SIMD types."""
