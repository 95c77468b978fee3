"""Emu in a virtual machine."""
