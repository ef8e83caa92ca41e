"""Work that benchmarks give to Warmband, and meters for it."""
