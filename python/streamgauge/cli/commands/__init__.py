"""Interface of each command: its arguments, its options, its help. Quick to import, as every start of the
program needs all of them; the implementation of a command is imported when it runs."""
