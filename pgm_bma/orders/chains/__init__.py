"""Chains over orders and DAGs."""
