"""Prices, limits, the ledger of billed seconds, and throughput."""
