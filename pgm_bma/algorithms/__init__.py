"""The rooms: arrays and records in, records out."""
