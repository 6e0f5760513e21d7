"""Slow references for the tests: plain enumeration that shares no code with pgm_bma."""
