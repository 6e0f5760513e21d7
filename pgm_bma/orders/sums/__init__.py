"""Exact sums over one order, all orders and all DAGs."""
