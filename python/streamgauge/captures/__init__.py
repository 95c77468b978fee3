"""Packet captures, analysed: the figures of one, or of two matched packet by packet."""
